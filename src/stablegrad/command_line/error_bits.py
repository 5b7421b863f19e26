"""Distances between computed and exact numbers, in bits."""

import math

import jax.numpy as jnp
import numpy as np


def bits_of_error(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """log2(1 + distance in ulp), element by element.

    The distance is the number of steps from one float to the next. It is infinite where only one of the two
    is finite, or one is NaN, or they are infinite with opposite signs. A difference below the smallest normal
    number counts as none: many processors flush what is smaller.

    Args:
        got: The computed numbers, of a floating-point type.
        exact: The right ones, of the same type and shape.

    Example:
        >>> bits_of_error(np.float32([1, np.nan, 0]), np.float32([1 + 2**-21, 1, 1e-40]))
        array([2.32192809,        inf, 0.        ])
    """
    same = (got == exact) | (np.isnan(got) & np.isnan(exact))
    comparable = np.isfinite(got) & np.isfinite(exact)
    steps = _steps(_ordinal(got), _ordinal(exact))
    tiny = float(jnp.finfo(exact.dtype).tiny)
    with np.errstate(all="ignore"):
        flushed = np.abs(got.astype(np.float64) - exact.astype(np.float64)) <= tiny
    bits = np.where(flushed & comparable, 0.0, np.log2(1 + steps))
    return np.where(same, 0.0, np.where(comparable, bits, math.inf))


def _ordinal(x: np.ndarray) -> np.ndarray:
    """The place of each float in the order of all floats of its type; 0 has place 0."""
    integers = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    magnitude = integers & ((1 << (8 * x.dtype.itemsize - 1)) - 1)
    return np.where(integers < 0, -magnitude, magnitude)


def _steps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Exact for near numbers; numbers of opposite sign may lie further apart than an integer can say.
    near = np.where((a < 0) == (b < 0), a, b) - b
    return np.where((a < 0) == (b < 0), np.abs(near), np.abs(a.astype(np.float64) - b.astype(np.float64)))
