"""Quotients of sums of exponentials that are a known function, with its own derivative: softmax, tanh, exprel ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, magnitude, quotient, rational
from stablegrad.rules.forms import HALF, ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.layout import absorbed, moved_as, others_beside, under_moves
from stablegrad.rules.log_of_sum import rest_node, write_sum

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

Found = tuple[Node, dict[Node, Rational], Linear, Rational]
"""The function written, the factors and the exponent that remain, and a number."""


def softmax(c: Companions, factors: dict[Node, Rational], exponent: Linear, like: Node) -> Found | None:
    """exp(r) / sum(exp(r)) along the same axes; with the sum of the others above, 1 - softmax."""
    for node, power in factors.items():
        core = under_moves(c, node) if power < 0 and power.denominator == 1 else None
        if core is None or c.reductions[core][0].factors:
            continue
        under, axes = c.reductions[core]
        remaining = {n: p for n, p in factors.items() if n is not node}
        if power != -1:
            remaining[node] = power + 1
        others = others_beside(c, core, node, -ONE, exponent)
        if others is not None:
            rest, x, place = others
            return place(c.build.keep("one_minus_softmax", x, axes)), remaining, rest, ONE
        taken = absorbed(c, core, node, -ONE, exponent)
        if taken is not None:
            rest, place = taken
            return place(c.build.keep("softmax", rest_node(c, under.exponent), axes)), remaining, rest, ONE
    return None


def over_others(c: Companions, factors: dict[Node, Rational], exponent: Linear, like: Node) -> Found | None:
    """1 / (1 - softmax): the sum over that of the others, as their logarithms' difference."""
    for node, power in factors.items():
        core = under_moves(c, node) if power > 0 else None
        if core is None or c.reductions[core][0].factors:
            continue
        others = others_beside(c, core, node, power, exponent)
        if others is not None:
            rest, x, place = others
            logarithm = place(c.build.keep("log_one_minus_softmax", x, c.reductions[core][1]))
            remaining = {n: p for n, p in factors.items() if n is not node}
            return c.build.elementwise("exp", c.build.scale(logarithm, -power)), remaining, rest, ONE
    return None


def mean_under_softmax(c: Companions, factors: dict[Node, Rational], exponent: Linear, like: Node) -> Found | None:
    """sum(w exp(r)) / sum(exp(r)) = sum(w softmax(r)): the slope by a weight is a probability, also where w is 0."""
    from stablegrad.rules.value import write_term

    for node, power in factors.items():
        core = under_moves(c, node) if power == -1 else None
        if core is None or c.reductions[core][0].factors:
            continue
        plain, axes = c.reductions[core]
        for other, up in factors.items():
            top = under_moves(c, other) if up == 1 else None
            if top is None or not c.reductions[top][0].factors:
                continue
            weighted, top_axes = c.reductions[top]
            place = moved_as(c, top, other)
            if top_axes != axes or weighted.exponent != plain.exponent or place(core) is not node:
                continue
            r = rest_node(c, plain.exponent)
            weights = write_term(c, Term(weighted.coefficient, weighted.factors), r)
            summed = c.build.along("reduce_sum", c.build.mul(weights, c.build.keep("softmax", r, axes)), axes)
            return place(summed), {n: p for n, p in factors.items() if n not in (node, other)}, exponent, ONE
    return None


def relative_expm1(c: Companions, factors: dict[Node, Rational], exponent: Linear, like: Node) -> Found | None:
    """(exp(k x) - 1) / x = k exprel(k x), and x / (exp(k x) - 1) its inverse; nothing else beside them."""
    if exponent.parts or len(factors) != 2:
        return None
    for node, below in (tuple(factors), tuple(factors)[::-1]):
        pair = exponential_minus_number(c, node)
        if pair is None or factors[node] not in (1, -1) or factors[below] != -factors[node]:
            continue
        z, number = pair
        if len(z.parts) == 1 and not z.constant and not z.logs and below in z.parts:
            written = c.build.elementwise("exprel", write_sum(c, z, like))
            k = z.parts[below] * number
            if factors[node] == 1:
                return written, {}, exponent, k
            inverse = c.build.elementwise("inverse_exprel", written.inputs[0])
            return inverse, {}, exponent, quotient(1, k)
    return None


def exponential_minus_number(c: Companions, node: Node) -> tuple[Linear, Rational] | None:
    """(z, k) where `node` stands for k * (exp(z) - 1)."""
    terms = c.terms_of(node)
    if terms is None or len(terms) != 2 or any(t.factors for t in terms):
        return None
    number, other = sorted(terms, key=lambda t: not t.is_number())
    if not number.is_number() or other.is_number() or number.coefficient * other.coefficient >= 0:
        return None
    ratio = magnitude(quotient(other.coefficient, number.coefficient))
    return other.exponent.with_log(ratio), -number.coefficient


def tanh(c: Companions, factors: dict[Node, Rational], exponent: Linear, like: Node) -> Found | None:
    """(e^a - e^b) / (e^a + e^b) = tanh((a - b) / 2)."""
    for node, power in factors.items():
        above = c.terms_of(node) if power == 1 else None
        if above is None or len(above) != 2 or any(t.factors for t in above):
            continue
        if above[0].coefficient != -above[1].coefficient:
            continue
        for below, down in factors.items():
            under = c.terms_of(below)
            if down != -1 or under is None or len(under) != 2 or under[0].coefficient != under[1].coefficient:
                continue
            plus, minus = sorted(above, key=lambda t: -t.coefficient)
            gap = plus.exponent.plus(minus.exponent, -ONE)
            gaps = (
                under[0].exponent.plus(under[1].exponent, -ONE),
                under[1].exponent.plus(under[0].exponent, -ONE),
            )
            if gap not in gaps or any(t.factors for t in under):
                continue
            # what is left over where the two sums differ by a common factor
            base = next(t for t in under if t.exponent == plus.exponent) if any(
                t.exponent == plus.exponent for t in under) else under[gaps.index(gap)]  # fmt: skip
            rest = exponent.plus(plus.exponent).plus(base.exponent, -ONE)
            written = c.build.elementwise("stable_tanh", write_sum(c, gap.scaled(HALF), like))
            remaining = {n: p for n, p in factors.items() if n not in (node, below)}
            return written, remaining, rest, quotient(plus.coefficient, under[0].coefficient)
    return None


def power_of_cosh(c: Companions, factors: dict[Node, Rational], exponent: Linear, like: Node) -> Found | None:
    """(e^a + e^b)^p / e^(p (a + b) / 2) = (2 cosh((a - b) / 2))^p, whose derivative vanishes at a = b; for p = -2, the
    slope s(a - b) s(b - a) of a sigmoid."""
    for node, power in factors.items():
        terms = c.terms_of(node)
        if terms is None or len(terms) != 2 or any(t.factors or t.coefficient <= 0 for t in terms):
            continue
        logs = [t.exponent.with_log(t.coefficient) for t in terms]
        rest = exponent.plus(logs[0], quotient(power, 2)).plus(logs[1], quotient(power, 2))
        if rest.parts:
            continue
        gap, remaining = logs[0].plus(logs[1], -ONE), {n: p for n, p in factors.items() if n is not node}
        if power != -2 and any(is_sum_of_exponentials(c, n) for n in remaining):
            continue  # the one can overflow where the other underflows: `pairs.py`
        if power == -2:
            return c.build.elementwise("sigmoid_slope", write_sum(c, gap, like)), remaining, rest, ONE
        half = write_sum(c, gap.scaled(HALF), like)
        if power in (1, 2):
            cosh = c.build.elementwise("cosh", half)
            return (cosh if power == 1 else c.build.mul(cosh, cosh)), remaining, rest, rational(2 * power)
        raised = c.build.scale(c.build.elementwise("log_cosh", half), power)
        return c.build.elementwise("exp", raised), remaining, rest.with_log(2, power), ONE
    return None


def square_of_sinh(c: Companions, factors: dict[Node, Rational], exponent: Linear, like: Node) -> Found | None:
    """(e^a - e^b)^2 / e^(a + b) = 2 sinh(a - b) tanh((a - b) / 2): cosh(x) - 1 is sinh(x) tanh(x / 2), in range, and
    with slopes in range, wherever that is."""
    for node, power in factors.items():
        terms = c.terms_of(node) if power == 2 else None
        if terms is None or len(terms) != 2 or any(t.factors for t in terms):
            continue
        if terms[0].coefficient != -terms[1].coefficient:
            continue
        rest = exponent.plus(terms[0].exponent).plus(terms[1].exponent)
        remaining = {n: p for n, p in factors.items() if n is not node}
        if rest.parts or any(is_sum_of_exponentials(c, n) for n in remaining):
            continue
        gap = terms[0].exponent.plus(terms[1].exponent, -ONE)
        sinh = c.build.elementwise("sinh", write_sum(c, gap, like))
        tanh = c.build.elementwise("stable_tanh", write_sum(c, gap.scaled(HALF), like))
        return c.build.mul(sinh, tanh), remaining, rest, 2 * terms[0].coefficient ** 2
    return None
