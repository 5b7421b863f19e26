"""Powers and products whose derivatives are right where a factor is 0."""

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

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

__all__ = ["power_exp"]

Pair: TypeAlias = tuple[jax.Array, ...]  # mantissa, exponent


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
    value = _power(x, p, r)
    logarithm = lax.log(select((x == 0) & (value == 0), 1.0, x))
    return value * lax.integer_pow(logarithm, n) if n else value


def _power(x: jax.Array, p: jax.Array, r: jax.Array) -> jax.Array:
    """x**p exp(r): two factors where both are in range, for the digits of a large p log(x) are not all there."""
    power, factor = lax.pow(x, p), lax.exp(r)
    apart = (x > 0) & _in_range(power) & _in_range(factor)
    return select(apart, power * factor, lax.exp(xlogy(p, x) + r))


def _in_range(x: jax.Array) -> jax.Array:
    return (x >= float(jnp.finfo(x.dtype).tiny)) & (x <= float(jnp.finfo(x.dtype).max))


@_power_log.defjvp
def _power_log_rule(n, primals, tangents):
    (x, p, r), (dx, dp, dr) = primals, tangents
    value = _power_log(x, p, r, n)
    return value, _slope(x, p, r, n) * dx + _power_log(x, p, r, n + 1) * dp + value * dr


def _slope(x: jax.Array, p: jax.Array, r: jax.Array, n: int) -> jax.Array:
    """The derivative of `_power_log` by x."""
    none = (p == 0) & (x < jnp.finfo(x.dtype).tiny)  # 0 / x, not 0 / 0
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
        mantissa, exponent, negative = _parts(x, axis, power)
        return select(negative, jnp.nan, jnp.ldexp(mantissa, exponent))

    @derivative_of(function)
    def rule(axis, primals, tangents):
        (x,) = primals
        value = function(x, axis)
        return value, combined(
            value, (tangents[0], lambda dx: power * lax.reduce_sum(_share(x, axis, power) * dx, axis))
        )

    return function


def _parts(x: jax.Array, axis: tuple[int, ...], power: float) -> tuple[jax.Array, jax.Array, jax.Array]:
    """|prod(x)|**power as mantissa * 2**exponent, and whether the product is negative."""
    mantissa, exponent = jnp.frexp(lax.abs(x))
    whole = lax.convert_element_type(lax.reduce_sum(exponent, axis), x.dtype)
    # power * whole without rounding: the power's leading bits first.
    coarse = _leading_bits(power)
    shift = lax.round(coarse * whole)
    rest = (coarse * whole - shift) + (power - coarse) * whole
    small = power * lax.reduce_sum(lax.log(mantissa), axis) + math.log(2) * rest
    negative = lax.reduce_prod(lax.sign(x), axis) < 0
    return lax.exp(small), lax.convert_element_type(shift, jnp.int32), negative


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _share(x: jax.Array, axis: tuple[int, ...], power: float) -> jax.Array:
    """prod(x)**power / x, also where the power leaves the range and the quotient does not."""
    zero = x == 0
    zeros = lax.reduce_sum(lax.convert_element_type(zero, x.dtype), axis)
    at_zero = select(zeros == 1, math.inf if power < 1 else 0.0, lax.full_like(zeros, 0))
    own, exponent = jnp.frexp(select(zero, 1.0, x))
    mantissa, shift, negative = (spread(part, x, axis) for part in _parts(x, axis, power))
    share = select(negative, jnp.nan, jnp.ldexp(mantissa / own, shift - exponent))
    return select(zero, spread(at_zero, x, axis), share)


@_share.defjvp
def _share_rule(axis, power, primals, tangents):
    (x,), (dx,) = primals, tangents
    share = _share(x, axis, power)
    relative = divide(dx, select(x == 0, 1.0, x))
    return share, share * (power * spread(lax.reduce_sum(relative, axis), x, axis) - relative)


def _leading_bits(power: float) -> float:
    """The number to 11 bits: times a whole number below 2**13 it is exact in float32."""
    mantissa, exponent = math.frexp(power)
    return math.ldexp(round(mantissa * 2**11) / 2**11, exponent)


@along_axis
def product_of_others(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """For each entry the product of all others along one axis: prod(x) / x, also where entries are 0.

    The products before an entry and after it may leave the range: only their product counts.

    >>> print(product_of_others(jnp.array([0.0, 3.0, 4.0])))
    [12.  0.  0.]
    """
    return _others(x, axis)


@derivative_of(product_of_others)
def _product_of_others_rule(axis, primals, tangents):
    (x,) = primals
    value = product_of_others(x, axis)
    return value, combined(value, (tangents[0], lambda dx: jax.jvp(lambda x: _others(x, axis), (x,), (dx,))[1]))


def _others(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    (axis,) = axes
    size = x.shape[axis]
    if size < 2:
        return lax.full_like(x, 1)
    exponent = jnp.frexp(lax.stop_gradient(x))[1]
    pair = (_times_power_of_two(x, -exponent), exponent)
    first = tuple(lax.slice_in_dim(one, 0, size - 1, axis=axis) for one in pair)
    last = tuple(lax.slice_in_dim(one, 1, size, axis=axis) for one in pair)
    before = lax.associative_scan(_pair_product, first, axis=axis)
    after = lax.associative_scan(_pair_product, last, axis=axis, reverse=True)
    one = tuple(lax.full_like(lax.slice_in_dim(part, 0, 1, axis=axis), k) for part, k in zip(pair, (1, 0)))
    before = tuple(lax.concatenate(parts, axis) for parts in zip(one, before))
    after = tuple(lax.concatenate(parts, axis) for parts in zip(after, one))
    return _times_power_of_two(*_pair_product(before, after))


def _times_power_of_two(x: jax.Array, exponent: jax.Array) -> jax.Array:
    """Exact, and so is its derivative."""
    half = exponent >> 1
    for part in (half, exponent - half):
        x = x * jnp.ldexp(lax.full_like(x, 1), part)
    return x


def _pair_product(a: Pair, b: Pair) -> Pair:
    """The product of two numbers mantissa * 2**exponent, the mantissa again between 1/2 and 1."""
    mantissa, exponent = a[0] * b[0], a[1] + b[1]
    small = lax.abs(mantissa) < 0.5
    return select(small, 2 * mantissa, mantissa), select(small, exponent - 1, exponent)
