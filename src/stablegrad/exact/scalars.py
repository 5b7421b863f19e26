"""The numbers that everything here is made of: exact rationals, balls, infinities and undefined values.

A rational stays a rational (`flint.fmpq`), so that a zero which is exactly zero is seen to be one; anything else
finite is a ball (`flint.arb`) at the current working precision. `Infinity` and `Undefined` stand for the rest.
All functions here take and return such scalars; none raises on bad numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from flint import arb, fmpq

Scalar = Any  # fmpq | arb | Infinity | Undefined

ZERO, ONE, MINUS_ONE, HALF = fmpq(0), fmpq(1), fmpq(-1), fmpq(1, 2)
# The zero of IEEE that has a minus sign: a zero like any other, told apart by identity, for the sake of 1 / -0.
NEGATIVE_ZERO = fmpq(0)
# A rational that needs more bits than this becomes a ball; wide enough for products of many float64 numbers.
LARGEST_RATIONAL_BITS = 16384


@final
@dataclass(frozen=True, eq=False, slots=True)
class Infinity:
    """An infinity.

    origin: "data" (an input or a literal, or what they lead to), "log" (the log of an exact zero), "pole" (a division
    by zero), or "exp" (among germs: larger than every power of 1/t).
    """

    sign: int
    origin: str


@final
@dataclass(frozen=True, eq=False, slots=True)
class Undefined:
    """No number, and why.

    kind:
        "nan": certainly NaN (a domain error, NaN in the data, a limit that depends on the direction).
        "unsupported": no exact meaning here (an opaque operation, a user's own derivative rule).
        "kink": a derivative that does not exist.
        "imprecise": more precision may decide it.
        "truncated": more terms of the series may decide it.
        "singular": the plain calculus says nothing at this point (0/0, inf - inf, an infinite slope); a limit may.
    """

    kind: str
    reason: str

    def __bool__(self) -> bool:
        raise TypeError(f"an undefined value was used as a truth value: {self.reason}")


_PRIORITY = {"nan": 0, "unsupported": 1, "kink": 2, "imprecise": 3, "truncated": 4, "singular": 5}

NOT_A_NUMBER = Undefined("nan", "NaN")
BEYOND = Undefined("imprecise", "the precision at hand does not decide it")
INF, MINUS_INF = Infinity(1, "pole"), Infinity(-1, "pole")
LOG_ZERO = Infinity(-1, "log")


def worse(*values: Scalar) -> Undefined:
    """The undefined value that decides what an operation on `values` is."""
    return min((v for v in values if type(v) is Undefined), key=lambda v: _PRIORITY[v.kind])


def is_finite(a: Scalar) -> bool:
    return type(a) is fmpq or type(a) is arb


def is_zero(a: Scalar) -> bool:
    """True for a known zero."""
    return type(a) is fmpq and not a


def ball(x: arb) -> Scalar:
    return x if x.is_finite() else BEYOND


def rational(x: fmpq) -> Scalar:
    return x if x.height_bits() <= LARGEST_RATIONAL_BITS else arb(x)


def exactly(x: arb) -> Scalar:
    """A ball of radius zero as the rational it is."""
    if not x.is_exact() or not x.is_finite():
        return ball(x)
    mantissa, exponent = x.man_exp()
    if abs(int(exponent)) > LARGEST_RATIONAL_BITS:
        return x
    return fmpq(mantissa) * fmpq(2) ** int(exponent)


def from_float(value: float) -> Scalar:
    """The exact value of a float, as held."""
    if math.isnan(value):
        return NOT_A_NUMBER
    if math.isinf(value):
        return Infinity(1 if value > 0 else -1, "data")
    if value == 0 and math.copysign(1.0, value) < 0:
        return NEGATIVE_ZERO
    return fmpq(*value.as_integer_ratio())


def as_ball(a: fmpq | arb) -> arb:
    return a if type(a) is arb else arb(a)


def sign(a: Scalar) -> int | Undefined:
    """-1, 0 or 1, or why that is not known."""
    if type(a) is fmpq:
        return (a > 0) - (a < 0)
    if type(a) is arb:
        return 1 if a > 0 else -1 if a < 0 else BEYOND
    return a.sign if type(a) is Infinity else a


def compare(a: Scalar, b: Scalar) -> int | Undefined:
    """The sign of a - b, where infinities of one sign are equal."""
    if a is b and type(a) is not Undefined:
        return 0
    if type(a) is fmpq and type(b) is fmpq:
        return (a > b) - (a < b)
    if is_finite(a) and is_finite(b):
        return 1 if a > b else -1 if a < b else BEYOND
    if type(a) is Undefined or type(b) is Undefined:
        return worse(a, b)
    left = a.sign if type(a) is Infinity else 0
    right = b.sign if type(b) is Infinity else 0
    return (left > right) - (left < right)


def neg(a: Scalar) -> Scalar:
    if is_zero(a):
        return ZERO if a is NEGATIVE_ZERO else NEGATIVE_ZERO
    if is_finite(a):
        return -a
    return Infinity(-a.sign, a.origin) if type(a) is Infinity else a


def _zero_times(a: Scalar, b: Scalar) -> fmpq:
    """A product that is 0, with the sign of IEEE."""
    minus = False
    for x in (a, b):
        known = -1 if x is NEGATIVE_ZERO else sign(x)
        minus ^= type(known) is int and known < 0
    return NEGATIVE_ZERO if minus else ZERO


def add(a: Scalar, b: Scalar) -> Scalar:
    if type(a) is fmpq:
        if type(b) is fmpq:
            return rational(a + b)
        if not a:
            return b
    if type(b) is fmpq and not b:
        return a
    if is_finite(a) and is_finite(b):
        return ball(a + b)
    if type(a) is Undefined or type(b) is Undefined:
        return worse(a, b)
    if is_finite(a):
        return b
    if is_finite(b):
        return a
    if a.sign == b.sign:
        return Infinity(a.sign, "data" if "data" in (a.origin, b.origin) else a.origin)
    return Undefined("singular", "inf - inf")


def sub(a: Scalar, b: Scalar) -> Scalar:
    if a is b and type(a) is not Undefined:
        return ZERO  # the same number of the program, an infinity included: the limit
    if type(a) is fmpq and type(b) is fmpq:
        return rational(a - b)
    if is_finite(a) and is_finite(b):
        return a if is_zero(b) else ball(a - b)
    return add(a, neg(b))


def mul(a: Scalar, b: Scalar) -> Scalar:
    if type(a) is fmpq and type(b) is fmpq:
        product = a * b
        return rational(product) if product else _zero_times(a, b)
    if is_finite(a) and is_finite(b):
        if is_zero(a) or is_zero(b):
            return _zero_times(a, b)
        if type(a) is fmpq and a == 1:
            return b
        return a if type(b) is fmpq and b == 1 else ball(a * b)
    if type(a) is Undefined or type(b) is Undefined:
        return worse(a, b)
    if is_zero(a) or is_zero(b):
        infinite = b if is_zero(a) else a
        if infinite.origin == "log":
            return ZERO  # 0 * log(0) = 0
        return Undefined("singular", "0 * inf")
    left, right = sign(a), sign(b)
    if type(left) is Undefined or type(right) is Undefined:
        return worse(left, right)
    origins = {v.origin for v in (a, b) if type(v) is Infinity}
    return Infinity(left * right, "data" if "data" in origins else origins.pop())


def div(a: Scalar, b: Scalar) -> Scalar:
    if type(a) is Undefined or type(b) is Undefined:
        return worse(a, b)
    if is_zero(b):
        s = sign(a)
        if type(s) is Undefined:
            return s
        return Infinity(-s if b is NEGATIVE_ZERO else s, "pole") if s else Undefined("singular", "0 / 0")
    if a is b:
        known = sign(a)
        if known in (1, -1):
            return ONE
    if is_finite(b):
        if type(a) is fmpq and type(b) is fmpq:
            return rational(a / b)
        if is_finite(a):
            if is_zero(a):
                return ZERO if type(sign(b)) is int else BEYOND
            return ball(a / b)
        s = sign(b)
        return s if type(s) is Undefined else Infinity(a.sign * s, a.origin)
    if is_finite(a):
        return ZERO
    return Undefined("singular", "inf / inf")


def absolute(a: Scalar) -> Scalar:
    if is_finite(a):
        return abs(a)
    return Infinity(1, a.origin) if type(a) is Infinity else a


def maximum(a: Scalar, b: Scalar) -> Scalar:
    order = compare(a, b)
    if type(order) is Undefined:
        if is_finite(a) and is_finite(b):
            return as_ball(a).max(as_ball(b))
        return order
    if order == 0 and type(a) is Infinity and a is not b:
        # A tie of two infinities is neither of them: inf - max(inf, inf) is not 0.
        return Infinity(a.sign, a.origin)
    return a if order >= 0 else b


def guarded(f: Callable[..., Any], *numbers: fmpq | arb) -> Scalar:
    """f of finite numbers by Python's operators; a division by zero is singular, a ball too wide imprecise."""
    try:
        result = f(*numbers)
    except ZeroDivisionError:
        return Undefined("singular", "an infinite slope")
    if type(result) is arb:
        return ball(result)
    return rational(result) if type(result) is fmpq else fmpq(result)
