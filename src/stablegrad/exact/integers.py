"""Integer and boolean arithmetic as the engine does it: fixed width, wrapping, division towards zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def _divide(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        quotient = np.floor_divide(a, b)
        inexact = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
        # XLA: a division by zero gives -1.
        return np.where(b == 0, np.asarray(-1).astype(a.dtype), quotient + inexact.astype(a.dtype)).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.where(b == 0, a, np.fmod(a, b)).astype(a.dtype)


def _shift(how: str) -> Callable[[Array, Array], Array]:
    def shift(a: Array, b: Array) -> Array:
        bits = a.dtype.itemsize * 8
        inside = (b >= 0) & (b < bits)
        by = np.where(inside, b, 0).astype(a.dtype)
        if how == "left":
            return np.where(inside, np.left_shift(a, by), 0).astype(a.dtype)
        if how == "logical":
            unsigned = a.view(f"u{a.dtype.itemsize}")
            shifted = np.right_shift(unsigned, by.astype(unsigned.dtype)).view(a.dtype)
            return np.where(inside, shifted, 0).astype(a.dtype)
        return np.right_shift(a, np.where(inside, b, bits - 1).astype(a.dtype))

    return shift


def _bit_count(a: Array) -> Array:
    return np.vectorize(lambda v: int(v).bit_count(), otypes=[a.dtype])(a.view(f"u{a.dtype.itemsize}"))


def _leading_zeros(a: Array) -> Array:
    bits = a.dtype.itemsize * 8
    count = np.vectorize(lambda v: bits - int(v).bit_length(), otypes=[a.dtype])
    return count(a.view(f"u{a.dtype.itemsize}"))


def _select(which: Array, *cases: Array) -> Array:
    return np.choose(which.astype(np.intp), list(cases))


def _not(a: Array) -> Array:
    return np.logical_not(a) if a.dtype == bool else np.invert(a)


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "rem": _remainder,
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "max": np.maximum, "min": np.minimum, "pow": np.power,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": _not,
    "shift_left": _shift("left"), "shift_right_logical": _shift("logical"),
    "shift_right_arithmetic": _shift("arithmetic"), "population_count": _bit_count, "clz": _leading_zeros,
    "select": _select, "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "stop_gradient": lambda a: a,
}  # fmt: skip

REDUCTIONS: dict[str, Callable[..., Array]] = {
    "reduce_sum": np.sum, "reduce_prod": np.prod, "reduce_max": np.max, "reduce_min": np.min,
    "reduce_and": np.bitwise_and.reduce, "reduce_or": np.bitwise_or.reduce, "reduce_xor": np.bitwise_xor.reduce,
}  # fmt: skip

CUMULATIVE: dict[str, Callable[..., Array]] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate,
}  # fmt: skip


def evaluate(name: str, arrays: list[Array], params: tuple, dtype: Any) -> Array | None:
    """The result of a named operation on integers or booleans, or None for a name that is not known here."""
    with np.errstate(all="ignore"):
        if name in ELEMENTWISE:
            return np.asarray(ELEMENTWISE[name](*arrays))
        if name == "integer_pow":
            return arrays[0] ** np.asarray(params[0], arrays[0].dtype)
        if name == "cast":
            return arrays[0].astype(dtype)
        if name in ("argmax", "argmin"):
            found = np.argmax if name == "argmax" else np.argmin
            return np.asarray(found(arrays[0], axis=params[0][0])).astype(dtype)
        if name in REDUCTIONS:
            function = REDUCTIONS[name]
            more = {"dtype": dtype} if name in ("reduce_sum", "reduce_prod") else {}
            return np.asarray(function(arrays[0], axis=params[0], **more))
        if name in CUMULATIVE:
            axis, reverse = params
            source = np.flip(arrays[0], axis) if reverse else arrays[0]
            result = CUMULATIVE[name](source, axis=axis).astype(dtype)
            return np.flip(result, axis) if reverse else result
    return None
