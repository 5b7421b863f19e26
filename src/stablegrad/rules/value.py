"""Scaled terms written out as values: probabilities from mantissas and a shift, quotients with opposite parts gone.

A factor that stands for a sum is not computed as it is: with power -1, the sum of two exponentials is written relative
to the one that cancels best against the exponent (`e^x / (e^x + e^y)` is sigmoid(x - y)); a sum along axes becomes a
shifted sum, or a softmax where its own entries stand above it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, moved_inputs
from stablegrad.graph.rational import Rational, integer_power, magnitude, quotient, rational
from stablegrad.rules import known_quotients
from stablegrad.rules.differences import expand
from stablegrad.rules.forms import HALF, ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials, safely_positive
from stablegrad.rules.layout import inside_one_move, moved_as, under_moves
from stablegrad.rules.log_of_sum import difference_to, lesser, one_plus_exponential, write_sum
from stablegrad.rules.masks import above_own_sum, masks_of, outside, selected, unmasked
from stablegrad.rules.vanished import finite_where_raised, parts_of

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions, Scaled

LARGE = 60.0  # |exponent| up to which exp neither overflows nor underflows in float32


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
    return c.build.total([write_term(c, t, like) for t in terms])


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
                return _less(c, scaled)
            return c.build.scale(change, magnitude(base.coefficient))
    gap = plus.log.plus(minus.log, -ONE)
    if gap.size() > min(plus.log.size(), minus.log.size()):
        return None
    mantissa, exponent, sign = apart(c, (plus, minus), ONE, Linear(), like)
    return _assembled(c, rational(sign), [mantissa], exponent, like)


def _less(c: Companions, node: Node) -> Node:
    """0 - node: 0 where that is 0, for the root of -0 has a slope of the other sign."""
    return c.build.elementwise("sub", c.build.number(0, node.dtype), node)


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
        if power.denominator != 1 and is_sum_of_exponentials(c, node) and c.facts.nonnegative(node):
            exponent = exponent.plus(Linear({c.build.elementwise("log", node): power}))
            del factors[node]
    pieces: list[Node] = []
    for pattern in (
        known_quotients.relative_expm1,
        known_quotients.tanh,
        known_quotients.sigmoid_slope,
        known_quotients.softmax,
    ):
        found = pattern(c, factors, exponent, like)
        if found is not None:
            node, factors, exponent, number = found
            pieces.append(node)
            coefficient *= number
    pairs = [(n, p) for n, p in sorted(factors.items(), key=lambda item: item[0].order) if is_pair(c, n)]
    if pairs:
        factors = {n: p for n, p in factors.items() if not is_pair(c, n)}
        opened, exponent, number = _open_pairs(c, pairs, exponent, factors, like)
        pieces += opened
        coefficient *= number
    mantissa, exponent = open_factors(c, Term(ONE, factors, exponent), like)
    if mantissa is not None:
        pieces.append(mantissa)
    return _assembled(c, coefficient, pieces, exponent, like)


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


def _assembled(c: Companions, coefficient: Rational, pieces: list[Node], exponent: Linear, like: Node) -> Node:
    build = c.build
    product: Node | None = None
    for piece in pieces:
        product = piece if product is None else build.mul(product, piece)
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
        found = shifted(c, node)
        value = node
        if found is not None:
            value, shift = found
            exponent = exponent.plus(Linear({shift: ONE}), power)
        if power == -1 and mantissa is not None:
            mantissa = _divided(c, mantissa, value)
            continue
        raised = _raised(c, value, power)
        mantissa = raised if mantissa is None else c.build.mul(mantissa, raised)
    return mantissa, exponent


def _divided(c: Companions, above: Node, below: Node) -> Node:
    """A quotient; the engine's derivative squares the divisor, which may leave the range."""
    return c.build.elementwise("div" if safely_positive(c, below) else "stable_div", above, below)


def _raised(c: Companions, node: Node, power: Rational) -> Node:
    if power == -1:
        return _divided(c, c.build.number(ONE, node.dtype), node)
    if power == HALF:
        return c.build.elementwise("sqrt", node)
    return c.raw_power(node, power)


def shifted(c: Companions, node: Node) -> tuple[Node, Node] | None:
    """(mantissa, shift) with node = mantissa * exp(shift), where `node` is a sum of exponentials; else None."""
    core = under_moves(c, node)
    if core is not None:
        place = moved_as(c, core, node)
        m, s = _shifted_reduction(c, core)
        return place(m), place(s)
    if node.op.name in ("move", "reshape", "arrange") and moved_inputs(node) == (0,):
        inner = shifted(c, node.inputs[0])
        if inner is None:
            return None
        return c.build.move_like(node, {0: inner[0]}), c.build.move_like(node, {0: inner[1]})
    terms = c.terms_of(node)
    if terms is None or not any(t.exponent.parts for t in terms):
        return None
    return _shifted_terms(c, node, terms)


def _shifted_reduction(c: Companions, core: Node) -> tuple[Node, Node]:
    c.written.add(core)
    under, axes = c.reductions[core]
    like = next(iter(under.exponent.parts))
    x = write_sum(c, under.exponent, like)
    if under.factors:
        weights = write_term(c, Term(factors=under.factors), x)
        shift = c.build.along("shift_weighted", x, axes, weights)
    else:
        weights, shift = None, c.build.along("shift", x, axes)
    down = c.build.elementwise("sub", x, c.build.lay_back(shift, x.shape, axes))
    entries = c.build.elementwise("exp", down)
    if weights is not None:
        entries = c.build.elementwise("mul_exp", weights, down)
    return c.build.along("reduce_sum", entries, axes), shift


def _shifted_terms(c: Companions, node: Node, terms: tuple[Term, ...]) -> tuple[Node, Node]:
    from stablegrad.rules.log_of_sum import mantissa_and_exponent

    if len(terms) == 2 and is_pair(c, node) and terms[0].coefficient * terms[1].coefficient < 0:
        mantissa, exponent, sign = apart(c, terms, ONE, Linear(), node)
        return mantissa if sign > 0 else c.build.neg(mantissa), write_sum(c, exponent, node)
    pairs = [mantissa_and_exponent(c, t, node) for t in terms]
    shift = c.build.elementwise("shift_terms", *(n for pair in pairs for n in pair))
    entries = [c.build.elementwise("mul_exp", m, c.build.elementwise("sub", e, shift)) for m, e in pairs]
    return c.build.total(entries), shift


def is_pair(c: Companions, node: Node) -> bool:
    """A sum of two terms, each a number times an exponential, or the magnitude of one."""
    terms = c.terms_of(_signed(node))
    return terms is not None and len(terms) == 2 and not any(t.factors for t in terms)


def _signed(node: Node) -> Node:
    return node.inputs[0] if node.op.name == "abs" else node


def _open_pairs(
    c: Companions, pairs: list[tuple[Node, Rational]], exponent: Linear, factors: dict[Node, Rational], like: Node
) -> tuple[list[Node], Linear, Rational]:
    """Powers of pairs as (pieces, exponent, number): each relative to the exponential that cancels best, where nothing
    is left that brings back what a piece loses by overflow or underflow; otherwise all with mantissa and shift."""
    pieces: list[Node] = []
    left, coefficient = exponent, rational(1)
    for node, power in pairs:
        if node.op.name == "abs":
            break
        left, number = _open_pair(c, node, c.terms_of(node) or (), power, left, pieces, like)
        coefficient *= number
    else:
        shares = left.parts or any(is_sum_of_exponentials(c, n) for n in factors)
        unbounded = any(piece.op.name != "sigmoid" for piece in pieces)
        if not shares and (len(pieces) < 2 or not unbounded):
            return pieces, left, coefficient
    pieces = []
    for node, power in pairs:
        mantissa, exponent = mantissa_of_pair(c, node, power, exponent, like)
        pieces.append(_raised(c, mantissa, power))
    return pieces, exponent, rational(1)


def mantissa_of_pair(c: Companions, node: Node, power: Rational, exponent: Linear, like: Node) -> tuple[Node, Linear]:
    """`node` without the larger of its two exponentials, and the exponent with that one, to `power`."""
    mantissa, exponent, sign = apart(c, c.terms_of(_signed(node)) or (), power, exponent, like)
    if node.op.name == "abs":
        return c.build.elementwise("abs", mantissa), exponent
    return mantissa if sign > 0 else c.build.neg(mantissa), exponent


def apart(
    c: Companions, terms: tuple[Term, ...], power: Rational, exponent: Linear, like: Node
) -> tuple[Node, Linear, int]:
    """(mantissa, the exponent with power * shift, sign) of t1 + t2, shifted by the larger of the two."""
    base = lesser([len(exponent.plus(t.log, power).parts) for t in terms], terms)
    z = difference_to(c, terms, base, like)
    shift = terms[base].log.plus(Linear({c.build.elementwise("pair_shift", z): ONE}))
    alike = (terms[0].coefficient > 0) == (terms[1].coefficient > 0)
    sign = 1 if terms[1 - base].coefficient > 0 else -1
    mantissa = c.build.elementwise("sum_of_pair" if alike else "difference_of_pair", z)
    return mantissa, exponent.plus(shift, power), sign


def _open_pair(
    c: Companions,
    node: Node,
    terms: tuple[Term, ...],
    power: Rational,
    exponent: Linear,
    pieces: list[Node],
    like: Node,
) -> tuple[Linear, Rational]:
    """(t1 + t2) ** power written into `pieces`; the new exponent and a number."""
    alone = one_plus_exponential(c, terms) if power == -1 and exponent.parts else None
    if alone is not None and alone.keys().isdisjoint(exponent.parts):
        return exponent.plus_part(c.build.elementwise("log", node), power), ONE
    logs = [t.log for t in terms]
    if all(t.coefficient > 0 for t in terms) and power < 0:
        copies = [-ONE] * int(-power) if power.denominator == 1 and power >= -4 else [power]
        for copy in copies:
            sizes = [exponent.size_with(log, copy) for log in logs]
            base = lesser(sizes, terms)
            left = exponent.plus(logs[base], copy)
            if copy.denominator != 1 or (left.parts and sizes[base] >= exponent.size()):
                # Nothing cancels: the logarithm of the sum joins the exponent, where it cannot overflow.
                exponent = exponent.plus_part(c.build.elementwise("log", node), copy)
                continue
            exponent = left
            pieces.append(c.build.elementwise("sigmoid", difference_to(c, terms, 1 - base, like)))
        return exponent, ONE
    plus = next((k for k in (0, 1) if terms[k].coefficient > 0), None)
    if plus is None or all(t.coefficient > 0 for t in terms):
        written = c.build.total([write_term(c, t, like) for t in terms])
        pieces.append(_raised(c, written, power))
        return exponent, ONE
    inverse = known_quotients.exponential_minus_number(c, node) if power.denominator == 1 and -4 <= power < 0 else None
    if inverse is not None:
        z, number = inverse
        if exponent.size_with(z, power) < exponent.size():  # e^z / (e^z - 1) = -1 / (e^-z - 1)
            exponent, z, number = exponent.plus(z, power), z.scaled(-ONE), -number
        # 1 / (e^z - 1) with a derivative that neither overflows nor rounds to 0
        pieces.extend([c.build.elementwise("inverse_expm1", write_sum(c, z, like))] * int(-power))
        return exponent, integer_power(number, int(power))
    # a difference: base * expm1(other - base), with the sign of the base's partner
    base = min((0, 1), key=lambda k: (exponent.size_with(logs[k], power), not terms[k].is_number()))
    change = c.build.elementwise("stable_expm1", difference_to(c, terms, base, like))
    if base == plus:
        change = _less(c, change)
    pieces.append(_raised(c, change, power))
    return exponent.plus(logs[base], power), ONE
