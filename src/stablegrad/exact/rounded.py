"""Functions that are constant between jumps, and the rounding of a scalar to a floating dtype."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.scalars import Infinity, Scalar, Undefined

# A ball this much narrower than an ulp is rounded at its middle: two numbers that agree so far are the same.
RELAXED_BITS = 20


def _nearest_even(q: fmpq) -> fmpq:
    low = q.floor()
    rest = q - low
    up = rest > s.HALF or (rest == s.HALF and int(low) % 2 == 1)
    return fmpq(low + 1 if up else low)


def _nearest_away(q: fmpq) -> fmpq:
    whole = fmpq((abs(q) + s.HALF).floor())
    return whole if q >= 0 else -whole


_HOW = {
    "sign": lambda q: fmpq((q > 0) - (q < 0)),
    "floor": lambda q: fmpq(q.floor()),
    "ceil": lambda q: fmpq(q.ceil()),
    "trunc": lambda q: fmpq(q.floor() if q >= 0 else q.ceil()),
    "nearest_even": _nearest_even,
    "nearest_away": _nearest_away,
}


def ends(a: arb) -> tuple[fmpq, fmpq]:
    """The two ends of a ball, as rationals."""
    return tuple(fmpq(m) * fmpq(2) ** int(e) for m, e in (x.man_exp() for x in (a.lower(), a.upper())))  # type: ignore


def round_scalar(how: str, a: Scalar) -> Scalar:
    """sign, floor, ceil, trunc or rounding to the nearest integer; a ball that holds a jump is imprecise."""
    if type(a) is fmpq:
        return _HOW[how](a)
    if type(a) is arb:
        if how == "sign":
            known = s.sign(a)
            return known if type(known) is Undefined else fmpq(known)
        if abs(a) > arb(2) ** 4096:
            return s.BEYOND
        low, high = (_HOW[how](end) for end in ends(a))
        return low if low == high else s.BEYOND
    if type(a) is Infinity and how == "sign":
        return fmpq(a.sign)
    return a


@dataclass(frozen=True)
class Format:
    """A binary floating format: digits of the significand, exponents of the largest and smallest normal number."""

    digits: int
    top: int
    bottom: int
    largest: float


def float_format(dtype: Any) -> Format:
    """The format of a NumPy or ml_dtypes float.

    >>> float_format(np.float32)
    Format(digits=24, top=127, bottom=-126, largest=3.4028234663852886e+38)
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        info: Any = np.finfo(dtype)
    else:
        import ml_dtypes

        info = ml_dtypes.finfo(dtype)
    return Format(int(info.nmant) + 1, math.frexp(float(info.max))[1] - 1, int(info.minexp), float(info.max))


def _to_float(q: fmpq, form: Format) -> float:
    """The nearest number of the format, ties to even, overflow to infinity."""
    if not q:
        return 0.0
    negative, p, d = q < 0, abs(int(q.p)), int(q.q)
    exponent = p.bit_length() - d.bit_length()  # floor(log2 |q|), or one more
    if (p << -exponent if exponent < 0 else p) < (d << exponent if exponent > 0 else d):
        exponent -= 1
    if exponent > form.top:
        return -math.inf if negative else math.inf
    last = max(exponent, form.bottom) - form.digits + 1  # exponent of the last digit
    numerator, denominator = (p << -last, d) if last < 0 else (p, d << last)
    whole, rest = divmod(numerator, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and whole % 2):
        whole += 1
    value = math.ldexp(whole, last) if (whole.bit_length() + last) <= form.top + 1 else math.inf
    value = math.inf if value > form.largest else value
    return -value if negative else value


def to_float(a: Scalar, dtype: Any) -> tuple[float, bool]:
    """(the scalar correctly rounded to dtype, whether that is certain); (nan, False) for an undecided one."""
    if type(a) is Infinity:
        return a.sign * math.inf, True
    if type(a) is Undefined:
        return math.nan, a.kind == "nan"
    form = float_format(dtype)
    if type(a) is fmpq:
        return _to_float(a, form), True
    # Far out of range the ends need not be written as rationals.
    if a > arb(2) ** (form.top + 2):
        return math.inf, True
    if a < -(arb(2) ** (form.top + 2)):
        return -math.inf, True
    tiny = arb(2) ** (form.bottom - form.digits - 2)
    if abs(a) < tiny:
        return 0.0, True
    if a.rel_accuracy_bits() >= form.digits + RELAXED_BITS:
        return _to_float(_middle(a), form), True
    low, middle, high = (_to_float(_clip(end, tiny, form), form) for end in (a.lower(), a.mid(), a.upper()))
    return (low, True) if low == high else (middle, False)


def _middle(a: arb) -> fmpq:
    mantissa, exponent = a.mid().man_exp()
    return fmpq(mantissa) * fmpq(2) ** int(exponent)


def _clip(end: arb, tiny: arb, form: Format) -> fmpq:
    """A point as a rational; far out of range, where that would be huge, another one that is out of range."""
    if abs(end) < tiny:
        return s.ZERO
    far = fmpq(2) ** (form.top + 3)
    if not end.is_finite() or abs(end) > arb(far):
        return -far if end < 0 else far
    return _middle(end)
