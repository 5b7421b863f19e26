"""Stable spellings that people write by hand, read back: max(a, b) + log1p(exp(-|a - b|)) is log(exp a + exp b)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.forms import ONE, Linear

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def with_composites(c: Companions, linear: Linear) -> Linear:
    """The sum with hand-written softplus and logaddexp read as logarithms of sums."""
    for part, times in list(linear.parts.items()):
        pair = _larger(c, part)
        if pair is None:
            continue
        a, b, sign = pair
        for other, k in linear.parts.items():
            if k == times * sign and _log1p_of_exp_of_gap(c, other, a, b, part):
                merged = Linear(
                    {n: t for n, t in linear.parts.items() if n not in (part, other)},
                    linear.constant,
                    linear.logs,
                )
                left, right = (_exp(c, c.linear(x).scaled(sign), part) for x in (a, b))
                log = c.build.elementwise("log", c.build.elementwise("add", left, right))
                return with_composites(c, merged.plus(Linear({log: times * sign})))
    return linear


def _exp(c: Companions, exponent: Linear, like: Node) -> Node:
    if not exponent:
        return c.build.full(ONE, like)
    return c.build.elementwise("exp", c.raw_linear(exponent, like))


def _larger(c: Companions, part: Node) -> tuple[Node, Node, int] | None:
    """(a, b, 1) for max(a, b); (a, b, -1) for min(a, b) = -max(-a, -b)."""
    if part.op.name == "relu":
        return part.inputs[0], c.build.number(0, part.dtype), 1
    if part.op.name in ("max", "min"):
        return part.inputs[0], part.inputs[1], 1 if part.op.name == "max" else -1
    return None


def _log1p_of_exp_of_gap(c: Companions, part: Node, a: Node, b: Node, like: Node) -> bool:
    """part is log1p(exp(-|a - b|)), or log(1 + exp(-|a - b|))."""
    from stablegrad.rules.arguments import log_argument

    argument = log_argument(c, part)
    if argument is None:
        return False
    terms = c.scaled(argument).terms
    numbers = [t for t in terms if t.is_number()]
    others = [t for t in terms if not t.is_number()]
    if len(numbers) != 1 or len(others) != 1 or numbers[0].coefficient != 1 or others[0].coefficient != 1:
        return False
    exponent = others[0].exponent
    if others[0].factors or len(exponent.parts) != 1 or exponent.constant or exponent.logs:
        return False
    ((gap, times),) = exponent.parts.items()
    if gap.op.name != "abs" or times >= 0:
        return False
    inside = c.linear(gap.inputs[0]).scaled(-times)
    difference = _of(c, a).plus(_of(c, b), -ONE)
    return inside in (difference, difference.scaled(-ONE))


def _of(c: Companions, node: Node) -> Linear:
    number = literal_number(node)
    return Linear(constant=number) if number is not None else c.linear(node)
