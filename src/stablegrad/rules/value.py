"""Scaled terms written out as values: probabilities from mantissas and a shift, quotients with opposite parts gone.

A factor that stands for a sum is not computed as it is: with power -1, the sum of two exponentials is written relative
to the one that cancels best against the exponent (`e^x / (e^x + e^y)` is sigmoid(x - y)); a sum along axes becomes a
shifted sum, or a softmax where its own entries stand above it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, moved_inputs
from stablegrad.graph.rational import Rational, magnitude, quotient, rational
from stablegrad.rules import known_quotients
from stablegrad.rules.differences import expand
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.joined import as_exponent
from stablegrad.rules.layout import inside_one_move, moved_as, under_moves
from stablegrad.rules.log_of_sum import write_sum
from stablegrad.rules.masks import above_own_sum, masks_of, outside, selected, unmasked
from stablegrad.rules.pairs import LARGE, apart, cosines_of, is_pair, open_pairs, sinh_of
from stablegrad.rules.powers import divided, less, raised
from stablegrad.rules.taken_out import put_back
from stablegrad.rules.vanished import finite_where_raised, parts_of

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions, Scaled


def write_scaled(c: Companions, scaled: Scaled, like: Node) -> Node:
    """The value of a sum of terms, NaN where a guard is negative."""
    if not scaled.terms:
        out = c.build.full(0, like)
    else:
        out = write_terms(c, list(scaled.terms), like)
    for guard in scaled.guards:
        out = c.build.elementwise("require", out, guard)
    return out


def write_terms(c: Companions, terms: list[Term], like: Node) -> Node:
    if len(terms) == 2:
        difference = write_difference(c, terms, like)
        if difference is not None:
            return difference
    hyperbolic, terms = cosines_of(c, terms, like)
    return c.build.total([*(write_term(c, t, like) for t in terms), *hyperbolic])


def write_difference(c: Companions, terms: list[Term], like: Node) -> Node | None:
    """a e^x - b e^y as a multiple of expm1, where one of the two is a number; else None."""
    plus, minus = sorted(terms, key=lambda t: t.coefficient < 0)
    if plus.coefficient <= 0 or minus.coefficient >= 0 or plus.factors or minus.factors:
        return None
    for base, other, sign in ((minus, plus, ONE), (plus, minus, -ONE)):
        if base.is_number():
            ratio = magnitude(quotient(other.coefficient, base.coefficient))
            z = write_sum(c, other.exponent.with_log(ratio), like)
            change = c.build.elementwise("stable_expm1", z)
            if sign < 0:
                scaled = c.build.scale(change, magnitude(base.coefficient))
                return less(c, scaled)
            return c.build.scale(change, magnitude(base.coefficient))
    gap = plus.log.plus(minus.log, -ONE)
    sinh = sinh_of(c, plus, minus, like)
    if sinh is not None:
        return _assembled(c, 2 * plus.coefficient, [sinh[0]], sinh[1], like)
    if gap.size() > min(plus.log.size(), minus.log.size()):
        return None
    mantissa, exponent, sign = apart(c, (plus, minus), ONE, Linear(), like)
    return _assembled(c, rational(sign), [mantissa], exponent, like)


def write_term(c: Companions, term: Term, like: Node) -> Node:
    key = (term.key, term.coefficient, like.shape, like.dtype)
    out = c.terms_written.get(key)
    if out is None:
        out = c.terms_written[key] = _written_term(c, term, like)
    return out


def _written_term(c: Companions, term: Term, like: Node) -> Node:
    moved = inside_one_move(c, [term]) if any(is_sum_of_exponentials(c, f) for f in term.factors) else None
    if moved is not None:
        model, (inner,) = moved
        return c.build.move_like(model, {0: write_term(c, inner, model.inputs[0])})
    masks = masks_of(term)
    if masks:
        return _write_masked(c, term, masks, like)
    spread = _distributed(c, term)
    if spread is not None:
        return write_terms(c, spread, like)
    coefficient, exponent = term.coefficient, term.exponent
    factors: dict[Node, Rational] = dict(term.factors)
    for node, power in term.factors.items():
        core = under_moves(c, node)
        under = None if core is None else c.reductions[core][0]
        if under is not None and not under.factors and under.exponent.parts.keys().isdisjoint(exponent.parts):
            continue  # shifted by its largest exponent it is 1 at least: a root of it is as safe as it is
        if power.denominator != 1 and is_sum_of_exponentials(c, node) and c.facts.nonnegative(node):
            exponent = exponent.plus(Linear({c.build.elementwise("log", node): power}))
            del factors[node]
    pieces: list[Node] = []
    softmax = known_quotients.softmax(c, factors, exponent, like)
    if softmax is not None and _brought_back(c, softmax[1], softmax[2]):
        return _in_exponent(c, Term(coefficient, factors, exponent), like)
    for pattern in (
        known_quotients.relative_expm1,
        known_quotients.tanh,
        known_quotients.power_of_cosh,
        known_quotients.square_of_sinh,
        known_quotients.mean_under_softmax,
        known_quotients.softmax,
        known_quotients.over_others,
    ):
        found = pattern(c, factors, exponent, like)
        if found is not None:
            node, factors, exponent, number = found
            pieces.append(node)
            coefficient *= number
    pairs = [(n, p) for n, p in sorted(factors.items(), key=lambda item: item[0].order) if is_pair(c, n)]
    divisors: list[Node] = []
    if pairs:
        factors = {n: p for n, p in factors.items() if not is_pair(c, n)}
        opened, divisors, exponent, number = open_pairs(c, pairs, exponent, factors, like)
        pieces += opened
        coefficient *= number
    mantissa, exponent = open_factors(c, Term(ONE, factors, exponent), like)
    if mantissa is not None:
        pieces.insert(0, mantissa)
    return _assembled(c, coefficient, pieces, exponent, like, divisors)


def _brought_back(c: Companions, factors: dict[Node, Rational], exponent: Linear) -> bool:
    """What stands beside a softmax can be large where that has underflowed."""
    sums = [p for n, p in factors.items() if is_sum_of_exponentials(c, n)]
    if any(p > 0 for p in sums):
        return True
    ends = (k * c.facts.interval(part)[0 if k < 0 else 1] for part, k in exponent.parts.items())
    return bool(exponent) and sum(map(float, ends)) + _safe(exponent) > LARGE


def _in_exponent(c: Companions, term: Term, like: Node) -> Node:
    """The term with all its sums of exponentials as logarithms in the exponent: exp(log p - log q)."""
    inside = as_exponent(c, term)
    mantissa, exponent = open_factors(c, Term(ONE, inside.factors, inside.exponent), like)
    return _assembled(c, inside.coefficient, [] if mantissa is None else [mantissa], exponent, like)


def _write_masked(c: Companions, term: Term, masks: list[Node], like: Node) -> Node:
    """The term without its masks, then selected; a softmax of masked entries needs no selection."""
    sums = [core for f, p in term.factors.items() if p < 0 and (core := under_moves(c, f)) is not None]
    own = above_own_sum(c, masks, term.exponent, sums)
    if own is not None:
        exponent, one = own
        rest = {n: p for n, p in term.factors.items() if n is not one}
        if len(rest) == 1 and len(exponent.parts) == 1:
            return write_term(c, Term(term.coefficient, rest, exponent), like)
        term = Term(term.coefficient, rest, exponent)
    written = selected(c, masks, write_term(c, unmasked(term), like), 0.0)
    for node, power in sorted(parts_of([unmasked(term)]).items(), key=lambda item: item[0].order):
        if outside(c, masks, node):
            written = finite_where_raised(c, written, node, power)
    return written


def _distributed(c: Companions, term: Term) -> list[Term] | None:
    """(1 + e^x) e^-x multiplied out: a sum of exponentials is not computed where an exponent beside it cancels it."""
    if not term.exponent.parts or not any(p == 1 and c.terms_of(n) is not None for n, p in term.factors.items()):
        return None
    sums = [n for n in term.factors if is_sum_of_exponentials(c, n)]
    if len(sums) != 1 or term.factors[sums[0]] != 1 or c.terms_of(sums[0]) is None:
        return None
    if len({t.coefficient > 0 for t in c.terms_of(sums[0]) or ()}) > 1:
        return None  # a difference that is exact as it is
    out = expand(c, term)
    return out if out is not None and len(out) > 1 else None


def _assembled(
    c: Companions,
    coefficient: Rational,
    pieces: list[Node],
    exponent: Linear,
    like: Node,
    divisors: Sequence[Node] = (),
) -> Node:
    build = c.build
    product: Node | None = None
    for piece in pieces:
        product = piece if product is None else build.mul(product, piece)
    for divisor in divisors:
        product = raised(c, divisor, -ONE) if product is None else divided(c, product, divisor)
    if not exponent.parts:
        number = float(coefficient) * math.exp(_safe(exponent)) if exponent else coefficient
        if product is None:
            return build.full(number, like)
        return build.scale(product, rational(number) if math.isfinite(number) else 0)
    written = write_sum(c, exponent, like)
    if product is None:
        return build.scale(build.elementwise("exp", written), coefficient)
    if c.facts.within(written, LARGE):
        return build.scale(build.mul(product, build.elementwise("exp", written)), coefficient)
    return build.scale(build.elementwise("mul_exp", product, written), coefficient)


def _safe(exponent: Linear) -> float:
    from stablegrad.rules.companions import constant_value

    return min(float(constant_value(exponent)), 700.0)


def open_factors(c: Companions, term: Term, like: Node) -> tuple[Node | None, Linear]:
    """(mantissa, exponent) of a term of coefficient 1 without masks: factors that are sums are shifted by their largest
    exponent."""
    exponent, mantissa = term.exponent, None
    for node, power in sorted(term.factors.items(), key=lambda item: item[0].order):
        core = under_moves(c, node)
        found: tuple[Node, Node] | None
        back = put_back(c, core, node, power, exponent.parts) if core is not None else None
        if core is not None and back is not None:
            inside, taken = back
            exponent = Linear(
                {p: k for p, k in exponent.parts.items() if p not in taken}, exponent.constant, exponent.logs
            )
            mantissa_of_sum, shift = _shifted_reduction(c, core, inside)
            place = moved_as(c, core, node)
            found = place(mantissa_of_sum), place(shift)
        else:
            found = shifted(c, node)
        value = node
        if found is not None:
            value, shift = found
            exponent = exponent.plus(c.linear(shift), power)
        if power == -1 and mantissa is not None:
            mantissa = divided(c, mantissa, value)
            continue
        factor = raised(c, value, power)
        mantissa = factor if mantissa is None else c.build.mul(mantissa, factor)
    return mantissa, exponent


def shifted(c: Companions, node: Node) -> tuple[Node, Node] | None:
    """(mantissa, shift) with node = mantissa * exp(shift), where `node` is a sum of exponentials; else None."""
    core = under_moves(c, node)
    if core is not None:
        place = moved_as(c, core, node)
        m, s = _shifted_reduction(c, core, c.reductions[core][0].exponent)
        return place(m), place(s)
    if node.op.name in ("move", "reshape", "arrange") and moved_inputs(node) == (0,):
        inner = shifted(c, node.inputs[0])
        if inner is None:
            return None
        return c.build.move_like(node, {0: inner[0]}), c.build.move_like(node, {0: inner[1]})
    terms = c.terms_of(node)
    if terms is None or not any(t.exponent.parts or _along_axes(c, t) for t in terms):
        return None
    return _shifted_terms(c, node, terms)


def _along_axes(c: Companions, term: Term) -> bool:
    """A sum along axes, which stands for no node of the program, is among the factors."""
    return any(under_moves(c, factor) is not None for factor in term.factors)


def _shifted_reduction(c: Companions, core: Node, exponent: Linear) -> tuple[Node, Node]:
    """The largest of k z is k times the largest z, which may cancel against it in what stands beside the sum."""
    c.written.add(core)
    under, axes = c.reductions[core]
    like = next(iter(under.exponent.parts))
    times = _common_multiple(exponent)
    x = write_sum(c, exponent.scaled(quotient(ONE, times)), like)
    if under.factors:
        weights = write_term(c, Term(factors=under.factors), x)
        shift = c.build.along("shift_weighted", x, axes, weights)
    else:
        weights, shift = None, c.build.along("shift", x, axes)
    down = c.build.scale(c.build.elementwise("sub", x, c.build.lay_back(shift, x.shape, axes)), times)
    entries = c.build.elementwise("exp", down)
    if weights is not None:
        entries = c.build.elementwise("mul_exp", weights, down)
    return c.build.along("reduce_sum", entries, axes), c.build.scale(shift, times)


def _common_multiple(exponent: Linear) -> Rational:
    """k > 0 where the exponent is k times a sum whose coefficients are 1 and -1."""
    sizes = {magnitude(k) for k in exponent.parts.values()}
    return ONE if len(sizes) > 1 or exponent.constant or exponent.logs else next(iter(sizes))


def _shifted_terms(c: Companions, node: Node, terms: tuple[Term, ...]) -> tuple[Node, Node]:
    from stablegrad.rules.log_of_sum import mantissa_and_exponent
    from stablegrad.rules.logits import difference_of_sigmoids

    difference = difference_of_sigmoids(c, terms, node)
    if difference is not None:
        return difference, c.build.full(0, node)
    if len(terms) == 2 and is_pair(c, node) and terms[0].coefficient * terms[1].coefficient < 0:
        mantissa, exponent, sign = apart(c, terms, ONE, Linear(), node)
        return mantissa if sign > 0 else c.build.neg(mantissa), write_sum(c, exponent, node)
    pairs = [mantissa_and_exponent(c, t, node) for t in terms]
    shift = c.build.elementwise("shift_terms", *(n for pair in pairs for n in pair))
    entries = [c.build.elementwise("mul_exp", m, c.build.elementwise("sub", e, shift)) for m, e in pairs]
    return c.build.total(entries), shift
