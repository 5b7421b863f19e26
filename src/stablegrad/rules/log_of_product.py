"""Logarithms of products and quotients of plain values, which may leave the range where their logarithm does not.

log(u) + log(v) would lose digits near u v = 1, and is NaN where both are negative: the factors are kept together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, magnitude
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.hazards import HUGE, TINY, is_sum_of_exponentials
from stablegrad.rules.log_of_sum import mantissa_and_exponent

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

MANY = 5  # the largest power that is written as so many factors


def of_joined(c: Companions, node: Node) -> Node | None:
    """log(node), where `node` stands for a product of factors of unknown sign; None where it does not."""
    if node.op.name == "nonnegative" and (term := c.joined.get(node.inputs[0])) is not None:
        return c.build.elementwise("require", _written(c, term, node), node.inputs[0])
    term = c.joined.get(node)
    return None if term is None else _written(c, term, node)


def holds_exponentials(c: Companions, node: Node) -> bool:
    """`node` stands for a product of factors of unknown sign, sums of exponentials among them."""
    term = c.joined.get(node)
    return term is not None and any(is_sum_of_exponentials(c, f) for f in term.factors)


def together(
    c: Companions, linear: Linear, plain: Callable[[Node], bool]
) -> tuple[Linear, list[tuple[Node, Rational]]]:
    """Logarithms of plain nonnegative values with opposite or equal coefficients, written as one: the rest of the sum,
    and the nodes with their coefficients."""
    groups: dict[Rational, list[Node]] = {}
    for part, times in linear.parts.items():
        if part.op.name != "log" or c.terms_of(part.inputs[0]) is not None:
            continue
        if c.facts.nonnegative(part.inputs[0]) and plain(part):
            groups.setdefault(magnitude(times), []).append(part)
    if all(len(parts) < 2 for parts in groups.values()):
        return linear, []
    pieces: list[tuple[Node, Rational]] = []
    taken: set[Node] = set()
    for times, parts in groups.items():
        if len(parts) < 2:
            continue
        factors: dict[Node, Rational] = {p.inputs[0]: ONE if linear.parts[p] > 0 else -ONE for p in parts}
        pieces.append((_written(c, Term(factors=factors), parts[0].inputs[0]), times))
        taken.update(parts)
    left = {p: k for p, k in linear.parts.items() if p not in taken}
    return Linear(left, linear.constant, linear.logs), pieces


def _written(c: Companions, term: Term, like: Node) -> Node:
    """log of a product of whole powers, with the sign of its coefficient."""
    build = c.build
    if any(is_sum_of_exponentials(c, f) for f in term.factors):
        mantissa, exponent = mantissa_and_exponent(c, term, like)
        return build.add(build.elementwise("log", mantissa), exponent)
    order = sorted(term.factors.items(), key=lambda item: item[0].order)
    above = [factor for n, p in order for factor in _factors(c, n, p)]
    below = [factor for n, p in order for factor in _factors(c, n, -p)]
    if term.coefficient < 0:
        side = above or below
        side[0] = build.neg(side[0])
    if len(order) == 1 or all(_moderate(c, n) for n in (*above, *below)):
        return build.elementwise("log", _quotient(c, above, below, like))
    if len(above) == len(below) == 1:
        return build.elementwise("log_of_quotient", *above, *below)
    if len(above) == 2 and not below:
        return build.elementwise("log_of_product", *above)
    return build.elementwise("log_of_ratio", *above, *below, params=(len(above), len(below)))


def _factors(c: Companions, node: Node, power: Rational) -> list[Node]:
    """node ** power as factors; none for a negative power."""
    if power <= 0:
        return []
    return [node] * int(power) if power <= MANY else [c.raw_power(node, power)]


def _moderate(c: Companions, node: Node) -> bool:
    low, high = c.facts.interval(node)
    return TINY**0.5 <= low and high <= HUGE**0.5


def _product(c: Companions, factors: list[Node]) -> Node:
    out = factors[0]
    for factor in factors[1:]:
        out = c.build.mul(out, factor)
    return out


def _quotient(c: Companions, above: list[Node], below: list[Node], like: Node) -> Node:
    numerator = _product(c, above) if above else c.build.full(ONE, like)
    return c.build.elementwise("div", numerator, _product(c, below)) if below else numerator
