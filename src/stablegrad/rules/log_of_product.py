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
from stablegrad.rules.structure import is_sum_of_squares

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

TWO = ONE + ONE
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
    """Logarithms of plain values with opposite or equal coefficients, written as one: the rest of the sum, and the
    nodes with their coefficients.

    At most one of the values of a group is of unknown sign. A sum of squares is the square of a length.
    """
    groups: dict[Rational, dict[Node, tuple[Node, Rational]]] = {}  # size -> logarithm -> its argument, coefficient
    for part, times in linear.parts.items():
        found = _plain_argument(c, part, times, plain)
        if found is not None:
            argument, number = found
            group = groups.setdefault(magnitude(times * number), {})
            if c.facts.nonnegative(argument) or all(c.facts.nonnegative(n) for n, _ in group.values()):
                group[part] = argument, times * number
    pieces: list[tuple[Node, Rational]] = []
    taken: set[Node] = set()
    for size, group in groups.items():
        factors: dict[Node, Rational] = {argument: ONE if times > 0 else -ONE for argument, times in group.values()}
        if len(factors) < 2 or len(factors) < len(group):
            continue
        pieces.append((_written(c, Term(factors=factors), next(iter(factors))), size))
        taken.update(group)
    if not taken:
        return linear, []
    left = {p: k for p, k in linear.parts.items() if p not in taken}
    return Linear(left, linear.constant, linear.logs), pieces


def _plain_argument(
    c: Companions, part: Node, times: Rational, plain: Callable[[Node], bool]
) -> tuple[Node, Rational] | None:
    """(v, k) where `part` is k log(v), v plain; the root of a value whose logarithm is halved (`times`)."""
    if part.op.name != "log" or is_sum_of_exponentials(c, part.inputs[0]):
        return None
    u = part.inputs[0]
    if times.denominator == 2 and c.facts.positive(u):
        return c.build.elementwise("sqrt", u), TWO
    if c.terms_of(u) is not None:
        return None
    length = _length(c, u)
    if length is not None:
        return length, TWO
    return (u, ONE) if plain(part) else None


def _length(c: Companions, node: Node) -> Node | None:
    """The length whose square `node` is, a sum of squares which may be laid out in some way; else None."""
    from stablegrad.rules.sqrt import length_of

    if node.op.name in ("arrange", "reshape"):
        inner = _length(c, node.inputs[0])
        return None if inner is None else c.build.move_like(node, {0: inner})
    return length_of(c, node) if is_sum_of_squares(c, node) else None


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
