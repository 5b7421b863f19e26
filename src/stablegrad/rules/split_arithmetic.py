"""Arithmetic of numbers that are a mantissa and an integer exponent, written as nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stablegrad.graph.arrange import arrange
from stablegrad.graph.node import Node, literal_number

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

INT = np.dtype(np.int32)
OF_ZERO = -(2**29)
"""The exponent of a 0, as in `numerics`: below that of any number."""
MODERATE = 40  # a mantissa of at most so many binary digits on either side of 1 needs no exponent of its own
LONGEST = 60  # a product of mantissas is scaled anew beyond so many
DIGITS = 24  # what a difference may lose


@dataclass(frozen=True, slots=True)
class Split:
    """value = mantissa * 2**exponent.

    Attributes:
        mantissa: of the value's shape and dtype.
        exponent: int32, of that shape, or a literal.
        low, high: 2**low <= |mantissa| < 2**high where it is neither 0 nor infinite nor NaN.
        marked: the exponent of a 0 is about `OF_ZERO`, so that it does not say how others are aligned.
        sums: how many sums stand under each other, with products between them.
        growth: how many factors of unknown size are multiplied.
        divided: a sum or product of such is divided by on the way.
        width: the exponent is at most width * 2**29 in size; int32 holds three.
    """

    mantissa: Node
    exponent: Node
    low: int
    high: int
    marked: bool
    sums: int = 0
    growth: int = 0
    divided: bool = False
    width: int = 1


# -- exponents ---------------------------------------------------------------------------------------------------------


def exponent_number(c: Companions, value: int) -> Node:
    return c.graph.literal(value, INT)


def exponent_value(node: Node) -> int | None:
    number = literal_number(node)
    return None if number is None else int(number)


def _within(value: int) -> int:
    return max(OF_ZERO, min(value, -OF_ZERO))


def _integer(c: Companions, op: str, *inputs: Node) -> Node:
    shape = next((i.shape for i in inputs if i.op.name != "literal"), ())
    return c.graph.node(op, inputs, (), shape, INT)


def exponents_added(c: Companions, a: Node, b: Node, sign: int = 1) -> Node:
    """a + sign * b, not brought back into the range of an exponent unless both are numbers."""
    left, right = exponent_value(a), exponent_value(b)
    if right == 0:
        return a
    if left is not None and right is not None:
        return exponent_number(c, _within(left + sign * right))
    if left == 0 and sign > 0:
        return b
    return _integer(c, "add" if sign > 0 else "sub", a, b)


def bounded(c: Companions, one: Split) -> Split:
    """The same with an exponent of at most 2**29."""
    if one.width <= 1:
        return one
    exponent = _integer(c, "clamp", exponent_number(c, OF_ZERO), one.exponent, exponent_number(c, -OF_ZERO))
    return replace(one, exponent=exponent, width=1)


def exponent_times(c: Companions, a: Node, times: int) -> Node:
    value = exponent_value(a)
    if value is not None:
        return exponent_number(c, _within(value * times))
    bound = -OF_ZERO // max(1, abs(times))
    held = _integer(c, "clamp", exponent_number(c, -bound), a, exponent_number(c, bound))
    return _integer(c, "mul", held, exponent_number(c, times))


def largest(c: Companions, exponents: list[Node]) -> Node:
    values = [exponent_value(e) for e in exponents]
    known = [v for v in values if v is not None]
    others = list(dict.fromkeys(e for e, v in zip(exponents, values) if v is None))
    if known and (not others or max(known) > OF_ZERO):
        others.append(exponent_number(c, max(known)))
    out = others[0]
    for other in others[1:]:
        out = _integer(c, "max", out, other)
    return out


def spread(c: Companions, exponent: Node, shape: tuple[int, ...]) -> Node:
    """An exponent of the value's own shape."""
    return exponent if exponent.shape == shape else arrange(c.graph, exponent, shape, ())


def aligned(c: Companions, one: Split, to: Node) -> Node:
    """The mantissa for the exponent `to`, which is nowhere smaller than its own where it is no 0."""
    if one.exponent is to or literal_number(one.mantissa) == 0:
        return one.mantissa
    difference = exponents_added(c, one.exponent, to, -1)
    if exponent_value(difference) == 0:
        return one.mantissa
    shape = one.mantissa.shape or difference.shape
    return c.graph.node("aligned", (one.mantissa, difference), (), shape, one.mantissa.dtype)


# -- numbers -----------------------------------------------------------------------------------------------------------


def normalised(c: Companions, one: Split) -> Split:
    """The same with a mantissa of [0.5, 1) where it is not 0, whose exponent there is `OF_ZERO`."""
    if one.marked and (one.low, one.high) == (-1, 0):
        return bounded(c, one)
    number = literal_number(one.mantissa)
    if number is not None and one.mantissa.op.name == "literal" and exponent_value(one.exponent) is not None:
        return _normalised_number(c, one, float(number), exponent_value(one.exponent) or 0)
    one = one if one.width <= 2 else bounded(c, one)
    own = c.graph.node("binary_exponent", (one.mantissa,), (), one.mantissa.shape, INT)
    mantissa = c.graph.node("without_exponent", (one.mantissa,), (), one.mantissa.shape, one.mantissa.dtype)
    exponent = exponents_added(c, own, one.exponent)
    width = 1 if exponent is own else one.width + 1
    return bounded(c, replace(one, mantissa=mantissa, exponent=exponent, low=-1, high=0, marked=True, width=width))


def _normalised_number(c: Companions, one: Split, mantissa: float, exponent: int) -> Split:
    if mantissa == 0:
        return replace(one, exponent=exponent_number(c, OF_ZERO), low=-1, high=0, marked=True, width=1)
    mantissa, own = np.frexp(mantissa)
    number = c.build.number(float(mantissa), one.mantissa.dtype)
    return replace(one, mantissa=number, exponent=exponent_number(c, _within(int(own) + exponent)),
                   low=-1, high=0, marked=True, width=1)  # fmt: skip


def plain_leaf(c: Companions, node: Node) -> Split:
    """A value of any size, as the program computed it."""
    return normalised(c, Split(node, exponent_number(c, 0), -200, 200, False, growth=1))


def marked(c: Companions, one: Split) -> Split:
    return one if one.marked else normalised(c, one)


def short(c: Companions, one: Split) -> Split:
    return one if -LONGEST <= one.low and one.high <= LONGEST else normalised(c, one)


def _wide(c: Companions, a: Split, b: Split) -> tuple[Split, Split, int]:
    """Both with exponents whose sum int32 holds, and how wide that is."""
    known = [exponent_value(one.exponent) == 0 for one in (a, b)]
    if any(known):
        return a, b, (b if known[0] else a).width
    if a.width + b.width > 3:
        a, b = bounded(c, a), bounded(c, b)
    return a, b, a.width + b.width


def product(c: Companions, a: Split, b: Split) -> Split:
    a, b, width = _wide(c, a, b)
    both = Split(
        c.build.mul(a.mantissa, b.mantissa),
        exponents_added(c, a.exponent, b.exponent),
        a.low + b.low,
        a.high + b.high,
        a.marked and b.marked,
        max(a.sums, b.sums),
        a.growth + b.growth,
        a.divided or b.divided,
        width,
    )
    return short(c, both)


def quotient(c: Companions, a: Split, b: Split) -> Split:
    a, b, width = _wide(c, a, b)
    both = Split(
        c.build.elementwise("div", a.mantissa, b.mantissa),
        exponents_added(c, a.exponent, b.exponent, -1),
        a.low - b.high,
        a.high - b.low,
        a.marked,
        max(a.sums, b.sums),
        a.growth + b.growth,
        a.divided or b.divided or b.growth > 0,
        width if exponent_value(a.exponent) != 0 else b.width,
    )
    return short(c, both)


def raised(c: Companions, one: Split, power: int) -> Split:
    """one ** power, of a small integer."""
    if power == 1:
        return one
    one = normalised(c, one)
    low, high = sorted((one.low * power, one.high * power))
    out = Split(
        c.build.elementwise("integer_pow", one.mantissa, params=(power,)),
        exponent_times(c, one.exponent, power),
        low,
        high,
        one.marked and power > 0,
        one.sums,
        one.growth * abs(power),
        one.divided or (power < 0 and one.growth > 0),
        1,
    )
    return short(c, out)


def total(c: Companions, parts: list[tuple[Split, int]], one_sign: bool) -> Split:
    """The sum of sign * part over the pairs (part, sign); `one_sign`: they cannot cancel."""
    splits = [bounded(c, marked(c, s)) for s, _ in parts]
    exponent = largest(c, [s.exponent for s in splits])
    out: Node | None = None
    for one, (_, sign) in zip(splits, parts):
        term = aligned(c, one, exponent)
        if out is None:
            out = term if sign > 0 else c.build.neg(term)
        else:
            out = c.build.add(out, term) if sign > 0 else c.build.sub(out, term)
    assert out is not None
    return Split(
        out,
        exponent,
        min(s.low for s in splits) - (0 if one_sign else DIGITS),
        max(s.high for s in splits) + math.ceil(math.log2(len(splits) + 1)),
        one_sign,
        max(s.sums for s in splits) + 1,
        max(s.growth for s in splits),
        any(s.divided for s in splits),
    )
