"""Powers and products whose derivatives are right where a factor is 0."""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import (
    Axis,
    along_axis,
    combined,
    derivative_of,
    elementwise,
    select,
    spread,
)
from stablegrad.numerics.jax.products import xlogy
from stablegrad.numerics.jax.quotients import divide

__all__ = ["power_exp", "power_of_product", "product_of_others"]


@elementwise
def power_exp(x: jax.Array, p: jax.Array, r: jax.Array) -> jax.Array:
    """x**p * exp(r) for x >= 0, as one exponential, so that neither factor leaves the range alone; NaN for x < 0.

    0**0 is 1. The derivative by x is p x**(p - 1) exp(r), 0 where p == 0; by p it is log(x) times the value, 0 where
    both x and the value are 0; by r the value itself.

    >>> import jax
    >>> print([float(g) for g in jax.grad(power_exp, (0, 1, 2))(0.0, 2.0, 0.0)])
    [0.0, 0.0, 0.0]
    """
    return _power_log(x, p, r, 0)


@derivative_of(power_exp)
def _power_exp_rule(primals, tangents):
    x, p, r = primals
    value = power_exp(x, p, r)
    return value, combined(
        value,
        (tangents[0], lambda dx: _slope(x, p, r, 0) * dx),
        (tangents[1], lambda dp: _power_log(x, p, r, 1) * dp),
        (tangents[2], lambda dr: value * dr),
    )


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def _power_log(x: jax.Array, p: jax.Array, r: jax.Array, n: int) -> jax.Array:
    """x**p log(x)**n exp(r), 0 where x**p is 0 at x = 0."""
    value = lax.exp(xlogy(p, x) + r)
    logarithm = lax.log(select((x == 0) & (value == 0), 1.0, x))
    return value * lax.integer_pow(logarithm, n) if n else value


@_power_log.defjvp
def _power_log_rule(n, primals, tangents):
    (x, p, r), (dx, dp, dr) = primals, tangents
    value = _power_log(x, p, r, n)
    return value, _slope(x, p, r, n) * dx + _power_log(x, p, r, n + 1) * dp + value * dr


def _slope(x: jax.Array, p: jax.Array, r: jax.Array, n: int) -> jax.Array:
    """The derivative of `_power_log` by x."""
    none = p == 0
    less = select(none, 1.0, p - 1)
    slope = select(none, 0.0, p * _power_log(x, less, r, n))
    return slope + n * _power_log(x, p - 1, r, n - 1) if n else slope


@functools.cache
def power_of_product(power: float) -> Callable[..., jax.Array]:
    """The function prod(x)**power over `axis` (all axes by default), for a power that is not whole.

    No product leaves the range. NaN where it is negative. The derivative is power / x times the value; where x is 0 it
    is that of power laws, infinite for 0 < power < 1, and 0 where another factor is 0 too.

    >>> print(power_of_product(0.25)(jnp.array([1e-20, 2e-20, 3e-20, 4e-20])))
    2.2133637e-20
    """

    @along_axis
    def function(x: jax.Array, axis: Axis = None) -> jax.Array:
        mantissa, exponent = jnp.frexp(lax.abs(x))
        whole = lax.convert_element_type(lax.reduce_sum(exponent, axis), x.dtype)
        # power * whole without rounding: the power's leading bits first.
        coarse = _leading_bits(power)
        shift = lax.round(coarse * whole)
        rest = (coarse * whole - shift) + (power - coarse) * whole
        small = power * lax.reduce_sum(lax.log(mantissa), axis) + math.log(2) * rest
        negative = lax.reduce_prod(lax.sign(x), axis) < 0
        value = jnp.ldexp(lax.exp(small), lax.convert_element_type(shift, jnp.int32))
        return select(negative, jnp.nan, value)

    @derivative_of(function)
    def rule(axis, primals, tangents):
        (x,) = primals
        value = function(x, axis)
        zero = x == 0
        zeros = lax.reduce_sum(lax.convert_element_type(zero, x.dtype), axis)
        at_zero = select(zeros == 1, math.inf if power < 1 else 0.0, lax.full_like(zeros, 0))
        slope = divide(power * spread(value, x, axis), select(zero, 1.0, x))
        slope = select(zero, spread(at_zero, x, axis), slope)
        return value, combined(value, (tangents[0], lambda dx: lax.reduce_sum(slope * dx, axis)))

    return function


def _leading_bits(power: float) -> float:
    """The number to 11 bits: times a whole number below 2**13 it is exact in float32."""
    mantissa, exponent = math.frexp(power)
    return math.ldexp(round(mantissa * 2**11) / 2**11, exponent)


def product_of_others(x: jax.Array, axis: int) -> jax.Array:
    """For each entry the product of all others along an axis: prod(x) / x, also where entries are 0.

    >>> print(product_of_others(jnp.array([0.0, 3.0, 4.0]), 0))
    [12.  0.  0.]
    """
    axis = axis % x.ndim
    size = x.shape[axis]
    ones = lax.full_like(lax.slice_in_dim(x, 0, min(1, size), axis=axis), 1)
    before = lax.concatenate([ones, lax.slice_in_dim(x, 0, max(size - 1, 0), axis=axis)], axis)
    after = lax.concatenate([lax.slice_in_dim(x, min(1, size), size, axis=axis), ones], axis)
    return lax.cumprod(before, axis) * lax.cumprod(after, axis, reverse=True)
