"""What each operation answers when asked to be a few scaled terms. None: the node itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stablegrad.graph.arrange import constant_along
from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs
from stablegrad.graph.rational import Rational, magnitude, natural_logarithm, quotient
from stablegrad.rules import companions as _companions
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.composites import with_composites
from stablegrad.rules.differences import simplified_sum
from stablegrad.rules.forms import HALF, ONE, Linear, Term, collect, is_mask
from stablegrad.rules.joined import as_exponent, joined, sum_of_pieces
from stablegrad.rules.layout import move_term
from stablegrad.rules.masks import cast_mask, mask
from stablegrad.rules.powers import power_of_term
from stablegrad.rules.rule import once

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions, Scaled

LOG_2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068")


def _scaled(terms: list[Term], *guards: frozenset[Node]) -> Scaled:
    return _companions.Scaled(tuple(terms), frozenset().union(*guards))


# -- exponentials -----------------------------------------------------------------------------------------------------


def exponential(c: Companions, exponent: Linear) -> Scaled:
    """exp of a formal sum: logarithms in it become factors."""
    exponent = with_composites(c, exponent)
    term = Term(exponent=Linear(constant=exponent.constant, logs=exponent.logs))
    guards: frozenset[Node] = frozenset()
    for part, times in exponent.parts.items():
        found = exponential_of(c, part)
        if found is None:
            term = term.times(Term(exponent=Linear({part: times})))
            continue
        raised = power_of_term(c, found[0], times)
        if raised is None:
            term = term.times(Term(exponent=Linear({part: times})))
        else:
            term, guards = term.times(raised), guards | found[1]
    return _scaled([term], guards)


def exponential_of(c: Companions, part: Node) -> tuple[Term, frozenset[Node]] | None:
    """exp(part) as a term where `part` is a logarithm, also moved, joined with others or selected; else None."""
    argument = log_argument(c, part)
    if argument is not None:
        return _argument(c, argument)
    data = moved_inputs(part)
    if not data or part.op.name == "stop_gradient":
        return None
    answers = [_exponential_of_sum(c, part.inputs[k]) for k in data]
    if all(a is None for a in answers):
        return None
    if len(data) == 1:
        assert answers[0] is not None
        return move_term(c, part, answers[0][0], answers[0][1])
    pieces = [
        a if a is not None else (Term(exponent=c.linear(part.inputs[k])), frozenset())
        for k, a in zip(data, answers, strict=True)
    ]
    if any(guards for _, guards in pieces):
        return None
    return joined(c, part, data, [t for t, _ in pieces]), frozenset()


def _exponential_of_sum(c: Companions, node: Node) -> tuple[Term, frozenset[Node]] | None:
    """exp(node) where its formal sum holds a logarithm, else None."""
    linear = c.linear(node)
    if not any(exponential_of(c, p) is not None for p in linear.parts):
        return None
    scaled = exponential(c, linear)
    return scaled.terms[0], scaled.guards


def _argument(c: Companions, u: Node) -> tuple[Term, frozenset[Node]]:
    """u as the result of exp(log(u)): NaN where u < 0."""
    if c.facts.nonnegative(u):
        return c.single(u)
    if c.trivial(u):
        return Term(factors={c.build.elementwise("nonnegative", u): ONE}), frozenset()
    term, guards = c.single(u)
    return term, guards | {u}


def _exp(c: Companions, node: Node) -> Scaled:
    return exponential(c, c.linear(node.inputs[0]))


def _exp2(c: Companions, node: Node) -> Scaled:
    return exponential(c, c.linear(node.inputs[0]).scaled(LOG_2))


def _expm1(c: Companions, node: Node) -> Scaled:
    inner = _exp(c, node)
    return _scaled(simplified_sum(c, [*inner.terms, Term(-ONE)], node), inner.guards)


def _two_exponentials(sign: Rational) -> Callable[[Companions, Node], Scaled]:
    def answer(c: Companions, node: Node) -> Scaled:
        up = exponential(c, c.linear(node.inputs[0]))
        down = exponential(c, c.linear(node.inputs[0]).scaled(-ONE))
        return _scaled([up.terms[0].scaled(HALF), down.terms[0].scaled(sign * HALF)], up.guards, down.guards)

    return answer


def _one_plus_exp(c: Companions, x: Linear, sign: Rational, like: Node) -> tuple[Term, frozenset[Node]]:
    """1 + sign * exp(x) as one term."""
    inner = exponential(c, x)
    return c.from_terms([Term(ONE), inner.terms[0].scaled(sign)], like), inner.guards


def _logistic(c: Companions, node: Node) -> Scaled:
    below, guards = _one_plus_exp(c, c.linear(node.inputs[0]).scaled(-ONE), ONE, node)
    inverse = power_of_term(c, below, -ONE)
    return _scaled([inverse], guards) if inverse is not None else _scaled([Term(factors={node: ONE})])


def _tanh(c: Companions, node: Node) -> Scaled | None:
    """(1 - exp(-2x)) / (1 + exp(-2x))."""
    minus_2x = c.linear(node.inputs[0]).scaled(-2)
    above, guards = _one_plus_exp(c, minus_2x, -ONE, node)
    below, _ = _one_plus_exp(c, minus_2x, ONE, node)
    inverse = power_of_term(c, below, -ONE)
    return None if inverse is None else _scaled([above.times(inverse)], guards)


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _neg(c: Companions, node: Node) -> Scaled:
    inner = c.scaled(node.inputs[0])
    return _scaled([t.scaled(-ONE) for t in inner.terms], inner.guards)


def _added(sign: Rational) -> Callable[[Companions, Node], Scaled | None]:
    def answer(c: Companions, node: Node) -> Scaled | None:
        left, right = (c.scaled(i) for i in node.inputs)
        terms = [*left.terms, *(t.scaled(sign) for t in right.terms)]
        if not any(t.exponent or t.is_number() or len(t.factors) > 1 or not _plain(c, t) for t in terms):
            merged = collect(terms)
            if len(merged) >= len(terms):
                return None  # a sum of plain values: one value
        terms = simplified_sum(c, _flattened(c, terms), node)
        return _scaled(terms, left.guards, right.guards)

    return answer


def _flattened(c: Companions, terms: list[Term]) -> list[Term]:
    """A sum that is one of the terms opened, where few remain: (e^a + e^b) + e^d is one sum of three."""
    out: list[Term] = []
    for term in terms:
        ((node, power),) = term.factors.items() if len(term.factors) == 1 else ((None, 0),)
        inner = c.terms_of(node) if node is not None and power == 1 else None
        beside = Term(term.coefficient, {}, term.exponent)
        out += [term] if inner is None else [t.times(beside) for t in inner]
    return out if len(out) <= _companions.MAX_TERMS else terms


def _plain(c: Companions, term: Term) -> bool:
    return all(c.trivial(f) and c.terms_of(f) is None for f in term.factors)


def _mul(c: Companions, node: Node) -> Scaled:
    for number, other in ((0, 1), (1, 0)):
        value = literal_number(node.inputs[number])
        if value is not None:
            inner = c.scaled(node.inputs[other])
            return _scaled([t.scaled(value) for t in inner.terms] if value else [], inner.guards)
    (left, g), (right, h) = (c.single(i) for i in node.inputs)
    return _scaled([left.times(right)], g, h)


def _div(c: Companions, node: Node) -> Scaled | None:
    value = literal_number(node.inputs[1])
    if value:
        inner = c.scaled(node.inputs[0])
        return _scaled([t.scaled(quotient(1, value)) for t in inner.terms], inner.guards)
    (above, g), (below, h) = (c.single(i) for i in node.inputs)
    if not below.coefficient:
        return None
    inverse = power_of_term(c, below, -ONE)
    return None if inverse is None else _scaled([above.times(inverse)], g, h)


def _power(number: Rational | None) -> Callable[[Companions, Node], Scaled | None]:
    def answer(c: Companions, node: Node) -> Scaled | None:
        power = node.params[0] if number is None else number
        term, guards = c.single(node.inputs[0])
        raised = power_of_term(c, term, power)
        return None if raised is None else _scaled([raised], guards)

    return answer


def _pow(c: Companions, node: Node) -> Scaled | None:
    power = literal_number(node.inputs[1])
    if power is not None:
        return _power(power)(c, node)
    base = literal_number(node.inputs[0])
    if base is None or base <= 0:
        return None
    return exponential(c, c.linear(node.inputs[1]).scaled(natural_logarithm(base)))


def _abs(c: Companions, node: Node) -> Scaled | None:
    inner = c.scaled(node.inputs[0])
    if c.facts.nonnegative(node.inputs[0]):
        return inner
    if len(inner.terms) != 1:
        return None
    term = inner.terms[0]
    if not term.exponent:
        return None
    factors: dict[Node, Rational] = {}
    for factor, power in term.factors.items():
        even = power.denominator == 1 and power.numerator % 2 == 0
        known = even or power.denominator != 1 or c.facts.nonnegative(factor)
        factors[factor if known else c.build.elementwise("abs", factor)] = power
    return _scaled([Term(magnitude(term.coefficient), factors, term.exponent)], inner.guards)


def _guard_of_nonnegative(c: Companions, node: Node) -> Scaled | None:
    """max(p, 0), relu(p) and clip(p, 0, 1) of a p that is in the range anyway: p."""
    x = node.inputs[0] if node.op.name == "relu" else node.inputs[1 if node.op.name == "clamp" else 0]
    if node.op.name == "max" and literal_number(x) is not None:
        x = node.inputs[1]
    low, high = c.facts.interval(x)
    below = c.facts.interval(node.inputs[0])[1] if node.op.name == "clamp" else 0.0
    if node.op.name == "max":
        below = max((float(k) for i in node.inputs if (k := literal_number(i)) is not None), default=math.inf)
    above = c.facts.interval(node.inputs[2])[0] if node.op.name == "clamp" else math.inf
    if not (low >= 0 >= below and high <= above) or c.trivial(x):
        return None
    return c.scaled(x)


# -- moving -----------------------------------------------------------------------------------------------------------


def _moved(c: Companions, node: Node) -> Scaled | None:
    if len(moved_inputs(node)) > 1:
        return _joined_values(c, node)
    if moved_inputs(node) != (0,) or c.trivial(node.inputs[0]):
        return None
    inner = c.scaled(node.inputs[0])
    if not inner.terms and node.op.name == "move":
        return None
    moved = [move_term(c, node, t, inner.guards) for t in inner.terms]
    return _scaled([t for t, _ in moved], *(g for _, g in moved))


def _joined_values(c: Companions, node: Node) -> Scaled | None:
    """Pieces joined (stack, concatenate, pad): their mantissas joined, their exponents joined."""
    data = moved_inputs(node)
    if any(not is_float(node.inputs[k].dtype) for k in data) or all(c.trivial(node.inputs[k]) for k in data):
        return None
    terms = []
    for k in data:
        term, guards = c.single(node.inputs[k])
        if guards:
            return None
        terms.append(as_exponent(c, term))
    if not any(t.exponent for t in terms):
        return None
    return _scaled([joined(c, node, data, terms)])


def _cast(c: Companions, node: Node) -> Scaled | None:
    from stablegrad.rules.linear_answers import widens

    if not widens(node) or c.trivial(node.inputs[0]):
        return None
    inner = c.scaled(node.inputs[0])

    def cast(part: Node) -> Node:
        if is_mask(part):
            return cast_mask(c, part, node)
        return c.graph.node("cast", (part,), (), node.shape, node.dtype)

    terms = []
    for t in inner.terms:
        exponent = Linear({cast(p): k for p, k in t.exponent.parts.items()}, t.exponent.constant, t.exponent.logs)
        terms.append(Term(t.coefficient, {cast(p): k for p, k in t.factors.items()}, exponent))
    return _scaled(terms, frozenset(map(cast, inner.guards)))


def _select(c: Companions, node: Node) -> Scaled | None:
    """A mask over a value; of two exponentials, the exponential of the selected exponent."""
    if len(node.inputs) != 3 or node.dtype is None or is_mask(node):
        return None
    which, *cases = node.inputs
    zero = tuple(literal_number(case) == 0 for case in cases)
    if any(zero) and not all(zero):
        kept = cases[zero.index(False)]
        if which.shape != node.shape or c.trivial(kept) or literal_number(kept) is not None or c.scaled(kept).guards:
            return None
        term, _ = c.single(kept)
        return _scaled([term.times(Term(factors={mask(c, which, zero, kept, node): ONE}))])
    both = [c.scaled(case) for case in cases]
    if any(len(s.terms) != 1 or s.guards or s.terms[0].factors for s in both):
        return None
    if not any(s.terms[0].exponent for s in both) or any(s.terms[0].coefficient <= 0 for s in both):
        return None
    exponents = [c.raw_linear(s.terms[0].exponent.with_log(s.terms[0].coefficient), node) for s in both]
    selected = c.graph.node("select", (which, *exponents), (), node.shape, node.dtype)
    return _scaled([Term(exponent=Linear({selected: ONE}))])


# -- along axes --------------------------------------------------------------------------------------------------------


def split_along(c: Companions, term: Term, axes: tuple[int, ...]) -> tuple[Term, Term]:
    """(what is constant along `axes`, the rest); the first still has those axes."""
    still = {n: k for n, k in term.factors.items() if constant_along(n, axes)}
    moving = {n: k for n, k in term.factors.items() if n not in still}
    still_e = {n: k for n, k in term.exponent.parts.items() if constant_along(n, axes)}
    moving_e = {n: k for n, k in term.exponent.parts.items() if n not in still_e}
    constant = Linear(still_e, term.exponent.constant, term.exponent.logs)
    return Term(term.coefficient, still, constant), Term(factors=moving, exponent=Linear(moving_e))


def drop_term(c: Companions, term: Term, axes: tuple[int, ...]) -> Term:
    """A term that is constant along `axes`, without them."""
    exponent = Linear(
        {c.build.drop(n, axes): k for n, k in term.exponent.parts.items()},
        term.exponent.constant,
        term.exponent.logs,
    )
    return Term(term.coefficient, {c.build.drop(n, axes): k for n, k in term.factors.items()}, exponent)


def _reduce_sum(c: Companions, node: Node) -> Scaled | None:
    (axes,) = node.params
    inner = node.inputs[0]
    if node in c.reductions or c.trivial(inner):
        return None
    scaled = c.scaled(inner)
    if len(axes) == 1 and len(scaled.terms) == 1:
        pieces = sum_of_pieces(c, scaled.terms[0], inner, axes[0])
        if pieces is not None:
            return _scaled(collect(pieces), *[frozenset()])
    signs = {t.coefficient > 0 for t in scaled.terms}
    if scaled.guards or (len(scaled.terms) > 1 and len(signs) > 1):
        return None  # a sum that cancels is better summed entry by entry
    return _scaled(collect(_reduced_term(c, term, axes, inner.shape, inner.dtype) for term in scaled.terms))


@once
def _reduced_term(c: Companions, term: Term, axes: tuple[int, ...], shape: tuple[int, ...], dtype: Any) -> Term:
    """The sum of a term along axes: what is constant along them in front, the sum of the rest as a factor."""
    outside, rest = split_along(c, as_exponent(c, term, axes), axes)
    outside = drop_term(c, outside, axes)
    if not rest.factors and not rest.exponent:
        return outside.scaled(math.prod(shape[k] for k in axes))
    like = next(iter((*rest.factors, *rest.exponent.parts)))
    virtual = c.build.along("reduce_sum", c.raw_term(rest, like), axes)
    if rest.exponent:
        c.reductions[virtual] = (rest, axes)
    return outside.times(Term(factors={virtual: ONE}))


def _reduce_prod(c: Companions, node: Node) -> Scaled | None:
    """A product of exponentials is the exponential of the sum of their exponents."""
    (axes,) = node.params
    inner = node.inputs[0]
    if not c.facts.nonnegative(inner) or c.trivial(inner):
        return None
    term, guards = c.single(inner)
    from stablegrad.rules.log_of_sum import write_sum

    term = as_exponent(c, term)
    if guards or term.coefficient <= 0 or not term.exponent.parts or not all(map(c.facts.nonnegative, term.factors)):
        return None
    count = math.prod(inner.shape[k] for k in axes)
    exponent = Linear({}, term.exponent.constant * count).with_log(term.coefficient, count)
    for number, times in term.exponent.logs.items():
        exponent = exponent.with_log(number, times * count)
    summed = c.build.along("reduce_sum", write_sum(c, Linear(term.exponent.parts), inner), axes)
    factors: dict[Node, Rational] = {}
    if term.factors:
        factors[c.build.along("reduce_prod", c.raw_term(Term(factors=term.factors), inner), axes)] = ONE
    return _scaled([Term(ONE, factors, exponent.plus(Linear({summed: ONE})))])


def _dot_general(c: Companions, node: Node) -> Scaled | None:
    """Rows of either operand scaled by their largest exponent, then the engine's own product."""
    from stablegrad.rules.contraction import scaled_contraction

    return scaled_contraction(c, node)


SCALED_ANSWERS: dict[str, Callable[[Companions, Node], Scaled | None]] = {
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "cosh": _two_exponentials(ONE),
    "sinh": _two_exponentials(-ONE),
    "logistic": _logistic,
    "tanh": _tanh,
    "neg": _neg,
    "add": _added(ONE),
    "sub": _added(-ONE),
    "mul": _mul,
    "div": _div,
    "integer_pow": _power(None),
    "square": _power(2),
    "sqrt": _power(HALF),
    "rsqrt": _power(-HALF),
    "pow": _pow,
    "abs": _abs,
    "max": _guard_of_nonnegative,
    "relu": _guard_of_nonnegative,
    "clamp": _guard_of_nonnegative,
    "cast": _cast,
    "select": _select,
    "reduce_sum": _reduce_sum,
    "reduce_prod": _reduce_prod,
    "dot_general": _dot_general,
    "arrange": _moved,
    "reshape": _moved,
    "move": _moved,
    "stop_gradient": _moved,
}
