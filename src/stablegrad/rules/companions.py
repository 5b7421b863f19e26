"""The two companions that every rule asks for: `linear` (a node as a formal sum) and `scaled` (as a few terms
coefficient * factors * exp(exponent)).

Each answer comes from the node's own operation and its inputs' answers, is worked out once, and is "the node itself"
where nothing better is known. The answers per operation stand in `linear_answers.py` and `scaled_answers.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from stablegrad.facts import Facts
from stablegrad.graph.build import Builder
from stablegrad.graph.node import Graph, Node, is_complex, is_float, literal_number
from stablegrad.graph.rational import Rational, magnitude
from stablegrad.rules.forms import ONE, Linear, Term, collect

MAX_TERMS = 8  # a sum of more terms is one factor
MAX_PARTS = 16  # a formal sum of more parts is one part
MAX_KNOWN = 6  # captured sums remembered for one part
MAX_DEPTH = 120  # questions nested deeper are answered "the node itself"; keeps a walk linear and off the stack


class Scaled:
    """A node as a sum of terms; NaN where one of `guards` is negative (the log of a negative number was cancelled)."""

    __slots__ = ("guards", "terms")

    def __init__(self, terms: tuple[Term, ...], guards: frozenset[Node] = frozenset()) -> None:
        self.terms = terms
        self.guards = guards

    def single(self) -> Term | None:
        return self.terms[0] if len(self.terms) == 1 else None


class Companions:
    """Companions of the nodes of one graph.

    Attributes:
        graph, build, facts: the graph, its constructors, its facts.
        roots: the captured nodes that the program needs.
        reductions: node of a virtual reduce_sum -> (the term under the sum, axes).
    """

    def __init__(self, graph: Graph, facts: Facts, roots: Iterable[Node] = ()) -> None:
        self.graph = graph
        self._roots = tuple(roots)
        self._readers: dict[Node, list[Node]] | None = None
        self.build = Builder(graph)
        self.facts = facts
        self.reductions: dict[Node, tuple[Term, tuple[int, ...]]] = {}
        self.taken_out: dict[
            Node, list[Linear]
        ] = {}  # a sum along axes -> what stood in front of it, as it was taken out
        self.means: dict[Node, Term] = {}  # a mean under a softmax -> what it is for a logarithm
        self.others: dict[Node, Linear] = {}  # log_sum_others -> the exponent that it sums over
        self.joined: dict[Node, Term] = {}  # a product of factors of unknown sign that stands as one -> those factors
        self.inside: dict[Node, frozenset[Node]] = {}  # mask -> what the values that it stands over are made of
        self.masked: dict[Node, list[tuple[Linear, Node]]] = {}  # mask -> exponents, and how they stand under a sum
        self.written: set[Node] = set()  # sums along axes that a rewrite has written in its own way
        self.sums_written: dict[tuple, Node] = {}  # (formal sum, shape, dtype) -> the node that it was written as
        self.terms_moved: dict[tuple, Term] = {}  # (how a node moves its input, term) -> the term moved so
        self.terms_written: dict[tuple, Node] = {}  # (term, shape, dtype) -> the node that it was written as
        self.pairs_written: dict[tuple, tuple[Node, Node]] = {}  # ... -> its mantissa and its exponent
        self.gaps: dict[tuple[tuple[Term, ...], int], Node] = {}  # (two terms, which) -> the other's log less its own
        self.answers: defaultdict[Any, dict[tuple, Any]] = defaultdict(dict)  # of functions that are `once`
        self._linear: dict[Node, Linear] = {}
        self._scaled: dict[Node, Scaled] = {}
        self._single: dict[Node, tuple[Term, frozenset[Node]]] = {}
        self._sums: dict[frozenset, Node] = {}
        self._sum_nodes: dict[Node, tuple[Term, ...]] = {}
        self._known_sums: dict[Node, list[tuple[Linear, Node]]] = {}
        self._depth = 0

    def readers(self, node: Node) -> list[Node]:
        """The captured nodes that read `node`, itself captured; none where it is a result."""
        if self._readers is None:
            self._readers = readers_of(self._roots)
        return [] if node in self._roots else self._readers.get(node, [])

    # -- a node as a formal sum ------------------------------------------------------------------------------------

    def linear(self, node: Node) -> Linear:
        found = self._linear.get(node)
        if found is not None:
            return found
        number = literal_number(node)
        if number is not None and is_float(node.dtype):
            answer = Linear(constant=number)
        else:
            answer = Linear({node: ONE})
            rule = LINEAR_ANSWERS.get(node.op.name) if not is_complex(node.dtype) else None
            if rule is not None and self._depth < MAX_DEPTH:
                self._depth += 1
                better = rule(self, node)
                self._depth -= 1
                if better is not None and len(better.parts) <= MAX_PARTS:
                    answer = better
        self._linear[node] = answer
        if node.origin is not None and node not in answer.parts and not answer.constant and not answer.logs:
            for part in answer.parts:
                known = self._known_sums.setdefault(part, [])
                known.append((answer, node))
                if len(known) > MAX_KNOWN:
                    del known[0]
        return answer

    def known_sums(self, part: Node) -> Iterable[tuple[Linear, Node]]:
        """Captured nodes whose formal sum holds `part`, with those sums; the latest few."""
        return self._known_sums.get(part, ())

    # -- a node as a sum of scaled terms -----------------------------------------------------------------------------

    def scaled(self, node: Node) -> Scaled:
        found = self._scaled.get(node)
        if found is not None:
            return found
        answer = None
        number = literal_number(node) if node.dtype is not None and is_float(node.dtype) else None
        if number is not None:
            answer = Scaled((Term(number),) if number else ())
        else:
            rule = SCALED_ANSWERS.get(node.op.name) if not is_complex(node.dtype) else None
            if rule is not None and self._depth < MAX_DEPTH:
                self._depth += 1
                better = rule(self, node)
                self._depth -= 1
                if better is not None and len(better.terms) <= MAX_TERMS and not any(map(_large, better.terms)):
                    answer = better
        if answer is None:
            answer = Scaled((Term(factors={node: ONE}),))
        self._scaled[node] = answer
        if len(answer.terms) > 1:
            self.register(node, answer.terms)
        return answer

    def trivial(self, node: Node) -> bool:
        """True if `scaled` knows nothing better than the node itself, nor what it is a sum of."""
        terms = self.scaled(node).terms
        if len(terms) != 1:
            return False
        factors = terms[0].factors
        itself = len(factors) == 1 and factors.get(node) == 1 and not terms[0].exponent
        return itself and node not in self.reductions and node not in self._sum_nodes

    def single(self, node: Node) -> tuple[Term, frozenset[Node]]:
        """`node` as one term; a sum becomes a factor that `terms_of` opens again."""
        found = self._single.get(node)
        if found is None:
            scaled = self.scaled(node)
            terms = scaled.terms
            term = terms[0] if len(terms) == 1 else self._one_factor(terms, node) if terms else Term(0)
            found = self._single[node] = term, scaled.guards
        return found

    def _one_factor(self, terms: tuple[Term, ...], like: Node) -> Term:
        """A sum as one factor; 1 + exp(-x) as exp(-x) * (1 + exp(x)), so that both spellings share theirs."""
        if all(t.coefficient < 0 for t in terms):
            return self._one_factor(tuple(t.scaled(-ONE) for t in terms), like).scaled(-ONE)
        if len(terms) == 2:
            number, other = terms if terms[0].is_number() else terms[::-1]
            if number.is_number() and not other.factors and other.exponent.parts:
                first = min(other.exponent.parts, key=lambda n: n.order)
                if other.exponent.parts[first] < 0:
                    outside = Term(exponent=other.exponent)
                    turned = Term(number.coefficient, {}, other.exponent.scaled(-ONE))
                    pair = (turned, Term(other.coefficient))
                    return outside.times(Term(factors={self._sum_node(pair, like): ONE}))
        return Term(factors={self._sum_node(terms, like): ONE})

    def register(self, node: Node, terms: tuple[Term, ...]) -> Node:
        """Remember that `node` is the sum of these terms; the node that stood for them first is returned."""
        key = frozenset((t.key, t.coefficient) for t in terms)
        known = self._sums.setdefault(key, node)
        self._sum_nodes[known] = terms
        return known

    def _sum_node(self, terms: tuple[Term, ...], like: Node) -> Node:
        """The one node that stands for a sum of these terms."""
        key = frozenset((t.key, t.coefficient) for t in terms)
        found = self._sums.get(key)
        if found is None:
            found = self.raw_sum(terms, like)
            self._sums[key] = found
            self._sum_nodes[found] = terms
            self._scaled.setdefault(found, Scaled(terms))
        return found

    def terms_of(self, node: Node) -> tuple[Term, ...] | None:
        """The terms of a factor that stands for a sum, else None."""
        return self._sum_nodes.get(node)

    def from_terms(self, terms: list[Term], like: Node) -> Term:
        """A sum of terms as one term."""
        terms = collect(terms)
        if not terms:
            return Term(0)
        if len(terms) == 1:
            return terms[0]
        return self._one_factor(tuple(terms), like)

    # -- virtual nodes: what a term is when written out plainly; keys of the algebra, emitted only through `value.py` --

    def raw_sum(self, terms: tuple[Term, ...], like: Node) -> Node:
        return self.build.total([self.raw_term(t, like) for t in terms])

    def raw_term(self, term: Term, like: Node) -> Node:
        build = self.build
        out: Node | None = None
        for node, power in sorted(term.factors.items(), key=lambda item: item[0].order):
            raised = self.raw_power(node, power)
            out = raised if out is None else build.mul(out, raised)
        if term.exponent:
            exponential = build.elementwise("exp", self.raw_linear(term.exponent, like))
            out = exponential if out is None else build.mul(out, exponential)
        return build.full(term.coefficient, like) if out is None else build.scale(out, term.coefficient)

    def raw_power(self, node: Node, power: Rational) -> Node:
        if power == 1:
            return node
        if power.denominator == 1:
            return self.build.elementwise("integer_pow", node, params=(int(power),))
        return self.build.elementwise("pow", node, self.build.number(power, node.dtype))

    def raw_linear(self, linear: Linear, like: Node) -> Node:
        build = self.build
        parts = [build.scale(n, c) for n, c in sorted(linear.parts.items(), key=lambda item: item[0].order)]
        constant = constant_value(linear)
        if constant or not parts:
            parts.append(build.number(constant, like.dtype) if parts else build.full(constant, like))
        return build.total(parts)


def readers_of(roots: Iterable[Node]) -> dict[Node, list[Node]]:
    """The nodes that read each node, of those that the roots need."""
    readers: defaultdict[Node, list[Node]] = defaultdict(list)
    seen: set[Node] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            for below in node.inputs:
                readers[below].append(node)
            waiting.extend(node.inputs)
    return readers


def _large(term: Term) -> bool:
    return len(term.factors) + len(term.exponent.parts) > MAX_PARTS


def constant_value(linear: Linear) -> Rational | float:
    """The number in a formal sum: exact where it is rational, else rounded to float64 once."""
    import math

    if not linear.logs:
        return linear.constant
    total = float(linear.constant)
    whole = Fraction(1)
    for number, times in linear.logs.items():
        if times.denominator == 1 and magnitude(times) <= 64:
            whole *= Fraction(number) ** int(times)  # log a + log b = log ab: one rounding
        else:
            total += float(times) * _log(number)
    return total + (0.0 if whole == 1 else _log(whole) if abs(whole - 1) > Fraction(1, 4) else math.log1p(whole - 1))


def _log(number: Rational) -> float:
    import math

    return math.log(number.numerator) - math.log(number.denominator) if abs(number) != 1 else 0.0


from stablegrad.rules.linear_answers import LINEAR_ANSWERS  # noqa: E402
from stablegrad.rules.scaled_answers import SCALED_ANSWERS  # noqa: E402
