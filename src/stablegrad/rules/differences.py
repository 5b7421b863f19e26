"""Sums of scaled terms that cancel: over a common denominator, and the sum of all entries less one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, quotient
from stablegrad.rules.forms import HALF, ONE, Linear, Term, collect, times_all
from stablegrad.rules.joined import as_exponent
from stablegrad.rules.layout import absorbed, inside_one_move, move_term, under_moves

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

EXPANDED = 12  # most terms of an expanded numerator


def simplified_sum(c: Companions, terms: list[Term], like: Node) -> list[Term]:
    """The same sum, brought over a common denominator where that makes it one simpler term."""
    terms = collect(terms)
    square = _perfect_square(c, terms, like) if len(terms) == 3 else None
    if square is not None:
        return [square]
    if not 2 <= len(terms) <= 4 or not _mixed_signs(c, terms):
        return terms
    opened = _opened(c, terms)
    if opened is not None:
        return opened
    under = _under_one_move(c, terms)
    if under is not None:
        return under
    denominators = {
        (n, p) for t in terms for n, p in t.factors.items() if p < 0 and p.denominator == 1 and _opens(c, n)
    }
    for node, power in sorted(denominators, key=lambda item: (item[0].order, item[1])):
        found = _over(c, terms, node, power, like)
        if found is not None:
            return found
    return _over_all(c, terms, denominators, like) or terms


def _perfect_square(c: Companions, terms: list[Term], like: Node) -> Term | None:
    """a e^p + 2 a r e^((p + q) / 2) + a r^2 e^q = a e^q (e^((p - q) / 2) + r)^2: cosh(x) - 1 keeps its digits."""
    if any(t.factors for t in terms):
        return None
    for middle in terms:
        first, last = (t for t in terms if t is not middle)
        if middle.coefficient**2 != 4 * first.coefficient * last.coefficient:
            continue
        if first.exponent.plus(last.exponent) == middle.exponent.scaled(2):
            half = first.exponent.plus(last.exponent, -ONE).scaled(HALF)
            other = Term(quotient(middle.coefficient, 2 * first.coefficient))
            if other.coefficient == 1 and not middle.exponent.parts:  # e^h + e^-h, whose slope vanishes at 0
                h = half.scaled(HALF)
                root = c.from_terms([Term(exponent=h), Term(exponent=h.scaled(-ONE))], like)
                return root.times(root).times(Term(first.coefficient, {}, middle.exponent))
            root = c.from_terms([Term(exponent=half), other], like)
            return root.times(root).times(Term(first.coefficient, {}, last.exponent))
    return None


def _over_all(
    c: Companions, terms: list[Term], denominators: set[tuple[Node, Rational]], like: Node
) -> list[Term] | None:
    """Over all denominators at once, where the numerator is a sum without cancellation: 1 - tanh(x) tanh(y)."""
    if not 2 <= len(denominators) <= 3 or any(p != -1 or c.terms_of(n) is None for n, p in denominators):
        return None
    over = Term(factors={n: ONE for n, _ in denominators})
    opened = [expand(c, t.times(over)) for t in terms]
    numerator = collect([t for ts in opened for t in ts or ()])
    if any(ts is None for ts in opened) or len(numerator) > 4 or len({t.coefficient > 0 for t in numerator}) != 1:
        return None
    return [c.from_terms(numerator, like).times(Term(factors={n: -ONE for n, _ in denominators}))]


def over_both(c: Companions, terms: tuple[Term, ...], like: Node) -> Term | None:
    """A difference of two quotients over the product of their denominators, where the numerators cancel to two terms:
    1 / (1 + e^-a) - 1 / (1 + e^-b), a difference of sigmoids. For its logarithm: as a value the parts may overflow."""
    if len(terms) != 2:
        return None
    below = []
    for term in terms:
        found = [n for n, p in term.factors.items() if p == -1 and c.terms_of(n) is not None]
        if len(found) != 1 or any(c.terms_of(n) is not None for n, p in term.factors.items() if n is not found[0]):
            return None
        below += found
    if below[0] is below[1]:
        return None
    numerator: list[Term] = []
    for term in terms:
        opened = expand(c, term.times(Term(factors=dict.fromkeys(below, ONE))))
        if opened is None:
            return None
        numerator += opened
    numerator = collect(numerator)
    if len(numerator) != 2:
        return None
    single = c.from_terms(numerator, like)
    return single.times(Term(factors=dict.fromkeys(below, -ONE)))


def _mixed_signs(c: Companions, terms: list[Term]) -> bool:
    """Terms of both signs, or a factor that is itself a difference: 1 + (1 - e) / (1 + e)."""
    if len({t.coefficient > 0 for t in terms}) == 2:
        return True
    above = [c.terms_of(n) or () for t in terms for n, p in t.factors.items() if p > 0]
    return any(len({t.coefficient > 0 for t in inner}) == 2 for inner in above)


def _opened(c: Companions, terms: list[Term]) -> list[Term] | None:
    """The terms with sums multiplied out, where that leaves no more of them: 1 - (1 - e^x) is e^x."""
    if not any(p > 0 and c.terms_of(n) is not None for t in terms for n, p in t.factors.items()):
        return None
    out: list[Term] = []
    for term in terms:
        opened = expand(c, term)
        if opened is None:
            return None
        out += opened
    out = collect(out)
    return out if len(out) <= len(terms) else None


def _under_one_move(c: Companions, terms: list[Term]) -> list[Term] | None:
    """Terms that are all moved by the same operation, simplified under it: 1 - softmax(x)[0]."""
    found = inside_one_move(c, terms)
    if found is None:
        return None
    model, inside = found
    inner = simplified_sum(c, inside, model.inputs[0])
    if len(inner) >= len(terms):
        return None
    return [move_term(c, model, t, frozenset())[0] for t in inner]


def _opens(c: Companions, node: Node) -> bool:
    return c.terms_of(node) is not None or _reduction(c, node) is not None


def _reduction(c: Companions, node: Node) -> tuple[Term, tuple[int, ...]] | None:
    """(the term under the sum, its axes) if `node` is a sum of exponentials along axes, laid out."""
    core = under_moves(c, node)
    return c.reductions[core] if core is not None else None


def _over(c: Companions, terms: list[Term], node: Node, power: Rational, like: Node) -> list[Term] | None:
    """terms = numerator * node**power with a numerator that is simpler than the terms, or None."""
    over = Term(factors={node: -power})
    raised = [t.times(over) for t in terms]
    reduction = _reduction(c, node)
    if reduction is not None:
        others = _sum_of_others(c, raised, node, reduction, like)
        return None if others is None else [others.times(Term(factors={node: power}))]
    numerator = []
    for term in raised:
        opened = expand(c, term)
        if opened is None:
            return None
        numerator += opened
    numerator = collect(numerator)
    if len(numerator) > 2 or len(numerator) > len(terms):
        return None
    if len(numerator) == 2 and len({t.coefficient > 0 for t in numerator}) == 1:
        if len(numerator) >= len(c.terms_of(node) or ()):
            return None  # 3 - sigmoid(x): nothing cancelled
    single = c.from_terms(numerator, like)
    if not single.coefficient:
        return []
    return [single.times(Term(factors={node: power}))]


def expand(c: Companions, term: Term) -> list[Term] | None:
    """A term with its factors that stand for sums multiplied out."""
    out = [Term(term.coefficient, {}, term.exponent)]
    for node, power in term.factors.items():
        inner = c.terms_of(node)
        if inner is not None and power.denominator == 1 and 0 < power <= 4:
            for _ in range(int(power)):
                out = times_all(out, inner)
                if len(out) > EXPANDED:
                    return None
        else:
            out = times_all(out, [Term(factors={node: power})])
    return out


def _sum_of_others(
    c: Companions, raised: list[Term], node: Node, reduction: tuple[Term, tuple[int, ...]], like: Node
) -> Term | None:
    """k * sum(exp r) - k * exp(r), the sum over the other entries: 1 - softmax is this over the sum."""
    from stablegrad.rules.log_of_sum import rest_node

    rest, axes = reduction
    if len(raised) != 2 or rest.factors:
        return None
    whole = next((t for t in raised if t.factors == {node: ONE}), None)
    if whole is None:
        return None
    entry = as_exponent(c, raised[1 - raised.index(whole)])
    if entry.coefficient != -whole.coefficient or entry.factors:
        return None
    core = under_moves(c, node)
    assert core is not None
    left = absorbed(c, core, node, -ONE, entry.exponent.plus(whole.exponent, -ONE))
    if left is None or left[0]:
        return None
    r = rest_node(c, rest.exponent)
    others = c.build.keep("log_sum_others", r, axes)
    c.others[others] = rest.exponent
    others = left[1](others)
    return Term(whole.coefficient, {}, whole.exponent.plus(Linear({others: ONE})))
