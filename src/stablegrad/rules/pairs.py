"""Sums of two exponentials as factors: which form of e^a + e^b and e^a - e^b neither overflows nor cancels."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, integer_power, magnitude, quotient, rational
from stablegrad.rules import known_quotients
from stablegrad.rules.forms import HALF, ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.log_of_sum import difference_to, lesser, one_plus_exponential, write_sum
from stablegrad.rules.powers import less, raised

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

LARGE = 60.0  # exponents up to which exp neither overflows nor underflows in float32


def is_pair(c: Companions, node: Node) -> bool:
    """A sum of two terms, each a number times an exponential, or the magnitude of one."""
    terms = c.terms_of(_signed(node))
    return terms is not None and len(terms) == 2 and not any(t.factors for t in terms)


def _signed(node: Node) -> Node:
    return node.inputs[0] if node.op.name == "abs" else node


def open_pairs(
    c: Companions, pairs: list[tuple[Node, Rational]], exponent: Linear, factors: dict[Node, Rational], like: Node
) -> tuple[list[Node], list[Node], Linear, Rational]:
    """Powers of pairs as (factors, divisors, exponent, number): each relative to the exponential that cancels best,
    where nothing is left that brings back what a piece loses by overflow or underflow; otherwise all with mantissa
    and shift."""
    pieces: list[Node] = []
    left, coefficient = exponent, rational(1)
    for node, power in pairs:
        if node.op.name == "abs":
            break
        left, number = _open_pair(c, node, c.terms_of(node) or (), power, left, pieces, like)
        coefficient *= number
    else:
        if _keep_range(c, pieces, left, any(_unbounded(c, n) for n in factors)):
            return pieces, [], left, coefficient
    pieces, divisors = [], []
    for node, power in pairs:
        mantissa, exponent = mantissa_of_pair(c, node, power, exponent, like)
        if power == -1:
            divisors.append(mantissa)
        else:
            pieces.append(raised(c, mantissa, power))
    return pieces, divisors, exponent, rational(1)


def _keep_range(c: Companions, pieces: list[Node], left: Linear, sums_beside: bool) -> bool:
    """No piece loses by overflow or underflow what another one, or the exponent that is left, would bring back."""
    if not pieces:
        return True
    if any(piece.op.name != "sigmoid" for piece in pieces):
        return len(pieces) == 1 and not left.parts and not sums_beside
    # Sigmoids are at most 1: what else is, takes their underflow no further than the product's own.
    ends = (k * c.facts.interval(part)[0 if k < 0 else 1] for part, k in left.parts.items())
    return not sums_beside and sum(map(float, ends)) <= LARGE


def _unbounded(c: Companions, factor: Node) -> bool:
    return is_sum_of_exponentials(c, factor) or c.facts.may_overflow(factor)


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
    alike = (terms[0].coefficient > 0) == (terms[1].coefficient > 0)
    middle = terms[0].log.plus(terms[1].log).scaled(HALF)
    if alike and not middle.parts:  # e^h + e^-h: the slopes of another mantissa and its shift would cancel near h = 0
        half = write_sum(c, terms[0].log.plus(middle, -ONE), like)
        shift = middle.plus(Linear({c.build.elementwise("cosh_shift", half): ONE}))
        mantissa = c.build.elementwise("scaled_cosh", half)
        return mantissa, exponent.plus(shift, power), 1 if terms[0].coefficient > 0 else -1
    lefts = [exponent.plus(t.log, power).parts for t in terms]
    # e^-x (1 - e^-x) and not e^-2x (e^x - 1): where x is infinite, the less is left the less is inf - inf
    sizes = [] if alike else [sum(map(magnitude, left.values())) for left in lefts]
    base = lesser([len(left) for left in lefts], terms, sizes)
    size = magnitude(terms[base].coefficient)
    ratio = quotient(magnitude(terms[1 - base].coefficient), size)
    if alike or ratio == 1:  # numbers stay out of the shift: its parts cancel against others without rounding
        z = write_sum(c, terms[1 - base].exponent.plus(terms[base].exponent, -ONE), like)
    else:
        z = difference_to(c, terms, base, like)
    shift = terms[base].exponent.plus(Linear({c.build.elementwise("pair_shift", z): ONE}))
    sign = 1 if terms[1 - base].coefficient > 0 else -1
    if alike:
        mantissa = c.build.elementwise("sum_of_pair", z, params=(float(ratio),))
    else:
        mantissa = c.build.elementwise("difference_of_pair", z)
    return c.build.scale(mantissa, size), exponent.plus(shift, power), sign


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
            sizes = [_weight(exponent.plus(log, copy)) for log in logs]
            base = lesser(sizes, terms)
            left = exponent.plus(logs[base], copy)
            if copy.denominator != 1 or (left.parts and sizes[base] >= _weight(exponent)):
                # Nothing cancels: the logarithm of the sum joins the exponent, where it cannot overflow.
                exponent = exponent.plus_part(c.build.elementwise("log", node), copy)
                continue
            exponent = left
            pieces.append(c.build.elementwise("sigmoid", difference_to(c, terms, 1 - base, like)))
        return exponent, ONE
    plus = next((k for k in (0, 1) if terms[k].coefficient > 0), None)
    if plus is None or all(t.coefficient > 0 for t in terms):
        from stablegrad.rules.value import write_term

        written = c.build.total([write_term(c, t, like) for t in terms])
        pieces.append(raised(c, written, power))
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
        change = less(c, change)
    pieces.append(raised(c, change, power))
    return exponent.plus(logs[base], power), ONE


def _weight(exponent: Linear) -> int:
    """The size of a formal sum, in which a part, that may be large, is more than a number."""
    return len(exponent.parts) + exponent.size()


def sinh_of(c: Companions, plus: Term, minus: Term, like: Node) -> tuple[Node, Linear] | None:
    """e^a - e^b as 2 sinh((a - b) / 2) e^((a + b) / 2), a + b a number: in range wherever the difference is."""
    middle = plus.exponent.plus(minus.exponent)
    if middle.parts or plus.coefficient != -minus.coefficient:
        return None
    half = plus.exponent.plus(minus.exponent, -ONE).scaled(HALF)
    return c.build.elementwise("sinh", write_sum(c, half, like)), middle.scaled(HALF)


def cosines_of(c: Companions, terms: list[Term], like: Node) -> tuple[list[Node], list[Term]]:
    """e^z + e^-z among other terms as 2 cosh(z), which is in range further than half of e^z; and what remains."""
    found: list[Node] = []
    if len(terms) < 3:
        return found, terms
    for one, other in itertools.combinations(terms, 2):
        if one.factors or other.factors or not one.exponent.parts or one.coefficient * other.coefficient < 0:
            continue
        if one.exponent.plus(other.exponent):
            continue
        common = one if magnitude(one.coefficient) <= magnitude(other.coefficient) else other
        cosh = c.build.elementwise("cosh", write_sum(c, one.exponent, like))
        found.append(c.build.scale(cosh, 2 * common.coefficient))
        rest = [t for t in terms if t is not one and t is not other]
        left = one.coefficient + other.coefficient - 2 * common.coefficient
        if left:
            rest.append(Term(left, {}, (other if common is one else one).exponent))
        more, rest = cosines_of(c, rest, like)
        return found + more, rest
    return found, terms
