"""Numbers of any size as a mantissa and an integer exponent: value = mantissa * 2**exponent.

Scaling by a power of two rounds nothing, so arithmetic on such pairs gives, bit for bit, what plain arithmetic gives
where nothing leaves the range of the dtype, and goes on beyond it. An exponent has no derivative: it is constant
between two powers of two, and what it does is undone by the mantissa.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import derivative_of, elementwise

__all__ = [
    "OF_ZERO",
    "aligned",
    "binary_exponent",
    "exponent_of_exp",
    "log_of_scaled",
    "mantissa_of_exp",
    "scaled_value",
    "times_power_of_two",
    "without_exponent",
]

OF_ZERO = -(2**29)
"""The exponent of 0: below that of any number, so that a zero never says how others are aligned."""

LOG_2 = 0.6931471805599453


def _layout(dtype: Any) -> tuple[Any, int, int]:
    """(unsigned type, bits of the mantissa, bias) of float32 and float64."""
    return (jnp.uint64, 52, 1023) if jnp.dtype(dtype).itemsize == 8 else (jnp.uint32, 23, 127)


def binary_exponent(x: jax.Array) -> jax.Array:
    """The integer k, int32, with 0.5 <= |x| * 2**-k < 1; `OF_ZERO` for 0 and subnormal numbers, `-OF_ZERO` for
    inf and NaN, so that they outweigh what they are added to.

    x is float32 or float64. There is no derivative.

    >>> import jax.numpy as jnp
    >>> print(binary_exponent(jnp.array([1.0, 0.75, -12.0, 1e-30])))
    [  1   0   4 -99]
    """
    unsigned, mantissa_bits, bias = _layout(x.dtype)
    bits = lax.bitcast_convert_type(lax.stop_gradient(x), unsigned)
    shifted = lax.shift_right_logical(bits, lax.full_like(bits, mantissa_bits))
    field = lax.convert_element_type(lax.bitwise_and(shifted, lax.full_like(bits, 2 * bias + 1)), jnp.int32)
    k = field - (bias - 1)
    k = lax.select(field == 2 * bias + 1, _of(k, -OF_ZERO), k)
    return lax.select(field == 0, _of(k, OF_ZERO), k)


def power_of_two(k: jax.Array, dtype: Any) -> jax.Array:
    """2**k for integers from below that of the smallest normal number, where it is 0, to that of the largest."""
    unsigned, mantissa_bits, bias = _layout(dtype)
    signed = jnp.int64 if unsigned == jnp.uint64 else jnp.int32
    field = lax.max(lax.add(k, _of(k, bias)), _of(k, 0))
    bits = lax.shift_left(lax.convert_element_type(field, signed), lax.full_like(k, mantissa_bits, dtype=signed))
    return lax.bitcast_convert_type(bits, jnp.dtype(dtype))


def _of(k: jax.Array, value: int) -> jax.Array:
    return lax.full_like(k, value)


def aligned(m: jax.Array, d: jax.Array) -> jax.Array:
    """m * 2**d for integers d of at most 0, where m is of moderate size: 0 where 2**d is no normal number."""
    return m * power_of_two(d, m.dtype)


def times_power_of_two(m: jax.Array, k: jax.Array) -> jax.Array:
    """m * 2**k for any integer k: exact unless the result leaves the range; 0 and inf beyond it.

    >>> import jax.numpy as jnp
    >>> print(times_power_of_two(jnp.array([0.75, 0.5]), jnp.array([2, -1000])))
    [3. 0.]
    """
    _, _, bias = _layout(m.dtype)
    low, high = _of(k, 1 - bias), _of(k, bias)
    for _ in range(3):  # from the smallest number to the largest it is less than three times that far
        step = lax.clamp(low, k, high)
        m, k = m * power_of_two(step, m.dtype), k - step
    return m


def without_exponent(x: jax.Array) -> jax.Array:
    """x * 2**-k for k = binary_exponent(x): the mantissa, within [0.5, 1) in size; 0, inf and NaN stay.

    The derivative is 2**-k.
    """
    unsigned, mantissa_bits, bias = _layout(x.dtype)
    bits = lax.bitcast_convert_type(lax.stop_gradient(x), unsigned)
    places = lax.full_like(bits, mantissa_bits)
    field = lax.bitwise_and(lax.shift_right_logical(bits, places), lax.full_like(bits, 2 * bias + 1))
    # 2**(2 - k) is a normal number for every normal x; 0, inf and NaN are multiplied by some number.
    number = functools.partial(lax.full_like, bits)
    inverse = lax.clamp(number(1), number(2 * bias + 1) - field, number(2 * bias))
    return x * lax.bitcast_convert_type(lax.shift_left(inverse, places), x.dtype) * 0.25


def scaled_value(m: jax.Array, k: jax.Array) -> jax.Array:
    """m * 2**k, of a mantissa that is `without_exponent` and its exponent: what a loop carries as two numbers."""
    return times_power_of_two(m, k)


def exponent_of_exp(z: jax.Array) -> jax.Array:
    """The integer k, int32, next to z / log(2): exp(z) = mantissa_of_exp(z) * 2**k. `OF_ZERO` for -inf, `-OF_ZERO` for
    inf and NaN."""
    k = lax.round(lax.stop_gradient(z) * (1 / LOG_2), lax.RoundingMethod.TO_NEAREST_EVEN)
    limit = lax.full_like(k, -OF_ZERO)
    k = lax.clamp(-limit, lax.select(k != k, limit, k), limit)
    return lax.convert_element_type(k, jnp.int32)


@elementwise
def mantissa_of_exp(z: jax.Array) -> jax.Array:
    """exp(z) * 2**-k for the k of `exponent_of_exp(z)`: next to 1, within [0.5, 2]; 0, inf, NaN for -inf, inf, NaN.

    The derivative is the function itself.

    >>> print(f"{float(mantissa_of_exp(1000.0)):.4f} * 2**{exponent_of_exp(jax.numpy.float32(1000.0))}")
    0.8095 * 2**1443
    """
    k = lax.round(z * (1 / LOG_2), lax.RoundingMethod.TO_NEAREST_EVEN)
    k = lax.select(lax.is_finite(z), k, lax.full_like(k, 0))
    high, low = _parts_of_log_2(z.dtype)
    return lax.exp((z - k * high) - k * low)


@derivative_of(mantissa_of_exp)
def _mantissa_of_exp_rule(primals, tangents):
    value = mantissa_of_exp(primals[0])
    return value, value * tangents[0]


def _parts_of_log_2(dtype: Any) -> tuple[float, float]:
    """log(2) as two numbers, of which the first has few bits: its product with an integer of few bits is exact."""
    scale = 2.0**32 if jnp.dtype(dtype).itemsize == 8 else 2.0**11
    high = round(LOG_2 * scale) / scale
    # the digits of log(2) behind those of the double
    return high, (LOG_2 - high) + 2.319046813846299616e-17


def log_of_scaled(m: jax.Array, k: jax.Array) -> jax.Array:
    """log(m * 2**k), accurate where the product leaves the range, and next to 1."""
    _, _, bias = _layout(m.dtype)
    near = lax.abs(k) < bias - 1
    inside = lax.select(near, k, _of(k, 0))
    steps = lax.convert_element_type(k - inside, m.dtype)
    high, low = _parts_of_log_2(m.dtype)
    return steps * high + (steps * low + lax.log(m * power_of_two(inside, m.dtype)))
