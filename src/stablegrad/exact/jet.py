"""A value with its derivatives, sparse in the directions."""

from __future__ import annotations

from typing import Any, final

from flint import arb, fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.scalars import ZERO, Infinity, Scalar, Undefined

Element = Any  # Scalar | Jet
Pairs = dict[tuple[int, int], Scalar]

SINGULAR = Undefined("singular", "an infinite slope")


@final
class Jet:
    """A value, its derivative by each input it depends on, and its second derivatives by pairs (i <= j)."""

    __slots__ = ("grad", "hess", "value")

    def __init__(self, value: Scalar, grad: dict[int, Scalar], hess: Pairs) -> None:
        self.value = value
        self.grad = grad
        self.hess = hess

    def __repr__(self) -> str:
        return f"Jet({self.value}, {self.grad})"


def value_of(a: Element) -> Scalar:
    return a.value if type(a) is Jet else a


def accumulate(total: dict, part: dict) -> None:
    for key, value in part.items():
        found = total.get(key)
        total[key] = value if found is None else s.add(found, value)


def finite(a: Scalar) -> Scalar:
    return SINGULAR if type(a) is Infinity else a


def same(a: Scalar, b: Scalar) -> bool:
    return a is b or (type(a) is fmpq and type(b) is fmpq and a == b)


def angle(y: Scalar, x: Scalar) -> Scalar:
    """atan2 of two scalars; 0 at the origin, as IEEE has it for +0, +0."""
    below, right = s.sign(y), s.sign(x)
    if type(below) is Undefined or type(right) is Undefined:
        return s.worse(below, right)
    if below == 0 and right >= 0:
        return ZERO
    if s.is_finite(x) and s.is_finite(y):
        return s.ball(arb.atan2(s.as_ball(y), s.as_ball(x)))
    steps = fmpq(0 if right > 0 else 1) if s.is_finite(y) else s.HALF
    if not s.is_finite(y) and not s.is_finite(x):
        steps = fmpq(1 if right > 0 else 3, 4)
    return s.mul(s.mul(fmpq(below), steps), arb.pi())
