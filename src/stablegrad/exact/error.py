"""How far a computed number is from the exact one: in ulp, in bits, and against the contract's bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablegrad.exact.rounded import float_format


def _ordered(array: np.ndarray) -> np.ndarray:
    """The position of each float among all floats of its format, in order; -0 and 0 share one."""
    width = array.dtype.itemsize
    bits = array.view(f"i{width}").astype(np.int64)
    lowest = np.int64(np.iinfo(f"i{width}").min)
    return np.where(bits < 0, lowest - bits, bits)


def smallest_normal(dtype: Any) -> float:
    """The smallest positive normal number of a float format.

    >>> smallest_normal(np.float16)
    6.103515625e-05
    """
    return float(np.ldexp(1.0, float_format(dtype).bottom))


def ulp(value: Any, dtype: Any) -> np.ndarray:
    """The distance of `value` from the next larger float of `dtype`; the smallest subnormal at 0. NaN stays NaN.

    Args:
        value: array of floats.
        dtype: float16, bfloat16, float32 or float64.

    Returns:
        float64 array of the same shape; infinite where `value` is.

    >>> ulp([1.0, 0.0], np.float16)
    array([9.76562500e-04, 5.96046448e-08])
    """
    form = float_format(dtype)
    value = np.abs(np.asarray(value, np.float64))
    _, exponent = np.frexp(value)
    last = np.maximum(exponent - 1, form.bottom) - form.digits + 1
    spaced = np.ldexp(1.0, np.where(value == 0, form.bottom - form.digits + 1, last))
    return np.where(np.isfinite(value), spaced, value)


def ulp_distance(got: Any, exact: Any, *, flush: bool = False) -> np.ndarray:
    """How many floats lie between two arrays of one dtype (0 where equal).

    Two NaN agree, and so do two equal infinities; any other pair with a NaN or an infinity is infinitely far apart.

    Args:
        got, exact: arrays of one shape and one dtype: float16, bfloat16, float32 or float64.
        flush: numbers below the smallest normal one count as 0, as engines that flush subnormals have it: two numbers
            no further apart than one smallest normal agree if the exact one is below it.

    Returns:
        float64 array.

    Raises:
        TypeError: for different dtypes.

    >>> ulp_distance(np.float32([1.0, np.nan, np.inf]), np.float32([1.0000001, np.nan, 3e38]))
    array([ 1.,  0., inf])
    """
    got, exact = np.asarray(got), np.asarray(exact)
    if got.dtype != exact.dtype:
        raise TypeError(f"ulp_distance compares one dtype with itself; got {got.dtype} and {exact.dtype}: cast first")
    a, b = got.astype(np.float64), exact.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(over="ignore"):
        # Opposite signs in float64: the difference of the two positions needs one bit more than int64 has.
        apart = np.abs(_ordered(got).astype(np.float64) - _ordered(exact).astype(np.float64))
        near = _ordered(got) - _ordered(exact)
    same_sign = np.signbit(a) == np.signbit(b)
    distance = np.where(same_sign, np.abs(near).astype(np.float64), apart)
    agree = (np.isnan(a) & np.isnan(b)) | (a == b)
    if flush:
        agree |= finite & _both_tiny(a, b, got.dtype)
    return np.where(agree, 0.0, np.where(finite, distance, np.inf))


def bits_of_error(got: Any, exact: Any, *, flush: bool = False) -> np.ndarray:
    """log2(1 + distance in ulp), of arrays of one dtype; see `ulp_distance`.

    >>> float(bits_of_error(np.float32(1.0), np.float32(1.0000004)))
    2.0
    """
    return np.log2(1 + ulp_distance(got, exact, flush=flush))


def _both_tiny(a: np.ndarray, b: np.ndarray, dtype: Any) -> np.ndarray:
    tiny = smallest_normal(dtype)
    with np.errstate(invalid="ignore"):
        return (np.abs(b) < tiny) & ((a == 0) | (np.abs(a - b) <= tiny))


def within_contract(
    got: Any, exact: Any, condition: Any, dtype: Any, factor: float = 4.0, *, sensitivity: Any = None
) -> np.ndarray:
    """Where |got - exact| <= factor * ulp(exact) * (1 + condition).

    A result below the smallest normal number may be 0, or anything within one smallest normal of it. NaN answers NaN,
    and an infinity the same infinity; an overflow is accepted where the bound reaches beyond the largest number.

    Args:
        got: the computed array.
        exact: the exact one, rounded to dtype (`Truth.value`, `Truth.gradient`).
        condition: condition numbers, same shape. NaN (not known) counts as 0, infinity accepts any finite number.
        dtype: of the result.
        factor: of the bound.
        sensitivity: the condition times |exact|, where known (`Truth.sensitivity`): then the bound is
            factor * (ulp(exact) + eps * sensitivity), which says something at exact = 0 too.

    Returns:
        Boolean array.

    >>> bool(within_contract(1.0000004, 1.0, 0.0, np.float32)), bool(within_contract(1.000001, 1.0, 0.0, np.float32))
    (True, False)
    """
    form = float_format(dtype)
    a, b = np.asarray(got).astype(np.float64), np.asarray(exact).astype(np.float64)
    spaced = ulp(b, dtype)
    with np.errstate(all="ignore"):
        if sensitivity is None:
            slack = spaced * (1 + np.nan_to_num(np.asarray(condition, np.float64), nan=0.0, posinf=np.inf))
        else:
            slack = spaced + 2.0 ** (1 - form.digits) * np.nan_to_num(
                np.asarray(sensitivity, np.float64), nan=0.0, posinf=np.inf
            )
        bound = factor * slack
        agree = (np.isnan(a) & np.isnan(b)) | (a == b)
        finite = np.isfinite(a) & np.isfinite(b)
        close = finite & ((np.abs(a - b) <= bound) | _both_tiny(a, b, dtype))
        overflow = np.isfinite(b) & np.isinf(a) & (np.sign(a) == np.sign(b)) & (np.abs(b) + bound > form.largest)
    return agree | close | overflow
