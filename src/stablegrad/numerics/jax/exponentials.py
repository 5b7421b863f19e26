"""exp(x) - 1 and log(1 + x)."""

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import combined, derivative_of, elementwise, select

__all__ = ["expm1", "log1p"]


@elementwise
def expm1(x: jax.Array) -> jax.Array:
    """exp(x) - 1 without the cancellation near 0, with derivative exp(x).

    (`jax.lax.expm1` differentiates to `expm1(x) + 1`, which is 0 or a rounding error for x far below 0.)
    -1 at -inf, inf at inf. Any shape; floating dtypes are kept.

    >>> import jax
    >>> float(expm1(1e-10)), float(jax.grad(expm1)(-30.0)) > 0
    (1.000000013351432e-10, True)
    """
    return lax.expm1(x)


@derivative_of(expm1)
def _expm1_rule(primals, tangents):
    (x,) = primals
    return expm1(x), combined(x, (tangents[0], lambda dx: lax.exp(x) * dx))


@elementwise
def log1p(x: jax.Array) -> jax.Array:
    """log(1 + x) without the rounding of the sum. -inf at -1, NaN below, inf at inf.

    (`jax.lax.log1p` in float64 on the CPU is off by up to 126 ulp for x between -0.42 and -0.29.)

    >>> float(log1p(1e-10))
    1.000000013351432e-10
    """
    if x.dtype == jnp.float64:
        # 1 + x is exact to 2**-54 for x < -1/4, where |log(1 + x)| > 0.28: an error below 1 ulp.
        return select(x < -0.25, lax.log(1 + x), lax.log1p(x))
    return lax.log1p(x)


@derivative_of(log1p)
def _log1p_rule(primals, tangents):
    (x,) = primals
    return log1p(x), combined(x, (tangents[0], lambda dx: dx / (1 + x)))
