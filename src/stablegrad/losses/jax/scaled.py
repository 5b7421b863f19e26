"""Numbers from 0 upwards, beyond the range of the dtype: a mantissa and an exponent of its own for each.

m * 2**e, the exponent a whole number held in the same floating dtype (exact up to 2**24 in float32, and as good as the
dtype beyond). Mantissas need not lie in [1, 2): sums take every term relative to the greatest, which brings them back
near 1, so that nothing has to be normalised between two steps. Zero is mantissa 0 with the exponent `LOWEST`.

Exponents are constants to differentiation: the derivative is carried by the mantissas, scaled as they are.
"""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

__all__ = ["LOWEST", "Scaled", "exponential", "kept", "logarithm", "number", "plain", "product", "sum_of", "top"]

LOWEST = -1e30


class Scaled(NamedTuple):
    """mantissa * 2**exponent."""

    mantissa: jax.Array
    exponent: jax.Array


def number(x: jax.Array) -> Scaled:
    """An ordinary number, from 0 upwards."""
    return kept(x > 0, Scaled(x, jnp.zeros_like(x)))


def kept(condition: jax.Array, x: Scaled) -> Scaled:
    """x where the condition holds, zero elsewhere."""
    return Scaled(jnp.where(condition, x.mantissa, 0), jnp.where(condition, x.exponent, LOWEST))


def product(x: Scaled, y: Scaled) -> Scaled:
    return Scaled(x.mantissa * y.mantissa, x.exponent + y.exponent)


def top(x: Scaled) -> jax.Array:
    """The exponent that x would have with a mantissa in [1, 2)."""
    info = jnp.finfo(x.mantissa.dtype)
    stored = lax.bitcast_convert_type(lax.stop_gradient(x.mantissa), _integer(x.mantissa.dtype)) >> info.nmant
    return x.exponent + (stored - (info.maxexp - 1)).astype(x.mantissa.dtype)


def sum_of(terms: list[Scaled], at: jax.Array) -> Scaled:
    """The sum with the exponent `at`, which is that of the greatest term or next to it."""
    parts = [term.mantissa * _power_of_two(term.exponent - at) for term in terms]
    return Scaled(functools.reduce(operator.add, parts), at)


def plain(x: Scaled) -> jax.Array:
    """The number in its dtype, where it fits there."""
    return x.mantissa * _power_of_two(x.exponent)


def logarithm(x: Scaled) -> jax.Array:
    """The natural logarithm; -inf of zero."""
    zero = x.mantissa == 0
    above = top(x)
    mantissa = x.mantissa * _power_of_two(x.exponent - above)
    inside = jnp.log(jnp.where(zero, 1, mantissa)) + above * np.log(2).astype(x.mantissa.dtype)
    return jnp.where(zero, -jnp.inf, inside)


def exponential(x: jax.Array, minus: jax.Array) -> Scaled:
    """exp(x - minus), the difference taken exactly, with no intermediate out of range; NaN of inf.

    The mantissa lies in [0.7, 1.42]. What the subtraction rounds away is found again (Knuth's two-sum) and the
    multiple of log 2 is taken off in parts that are exact up to 2**16 of them: a logit of 400 in float32 would else
    carry an error of 3e-5 into the probability.
    """
    mantissa, exponent = _exponential(x, minus)
    return Scaled(mantissa, lax.stop_gradient(exponent))


@jax.custom_jvp
def _exponential(x: jax.Array, minus: jax.Array) -> tuple[jax.Array, jax.Array]:
    difference = x - minus
    back = difference - x
    lost = (x - (difference - back)) - (minus + back)
    exponent = jnp.round(difference * (1 / np.log(2)).astype(x.dtype))
    first, second, third = _PARTS_OF_LOG_2[np.dtype(x.dtype).itemsize]
    rest = ((difference - exponent * first) - exponent * second) - exponent * third
    rest = jnp.clip(rest + jnp.where(jnp.isfinite(lost), lost, 0), -0.5, 0.5)
    zero = difference < LOWEST
    mantissa = jnp.where(zero, 0, jnp.where(difference == jnp.inf, jnp.nan, jnp.exp(rest)))
    return mantissa, jnp.where(zero, LOWEST, exponent)


@_exponential.defjvp
def _exponential_rule(primals, tangents):
    mantissa, exponent = _exponential(*primals)
    slope = jnp.where(mantissa == 0, 0, mantissa * (tangents[0] - tangents[1]))
    return (mantissa, exponent), (slope, jnp.zeros_like(exponent))


# log 2 as a sum: the first parts have few digits, so that their multiples are exact.
_PARTS_OF_LOG_2: dict[int, Any] = {
    4: tuple(np.float32(part) for part in (0.6875, 0.005645751953125, 1.4286068203094172e-6)),
    8: tuple(np.float64(part) for part in (0.6931471803691238, 1.9082149288430703e-10, 4.275175589747649e-20)),
}


def _power_of_two(exponent: jax.Array) -> jax.Array:
    """2**exponent for whole exponents, 0 far below the range; exact, unlike the engine's exp2."""
    info = jnp.finfo(exponent.dtype)
    bias = info.maxexp - 1
    stored = jnp.clip(exponent, -bias, bias).astype(_integer(exponent.dtype)) + bias
    return lax.bitcast_convert_type(stored << info.nmant, exponent.dtype)


def _integer(dtype: Any) -> Any:
    return jnp.int32 if jnp.finfo(dtype).bits == 32 else jnp.int64
