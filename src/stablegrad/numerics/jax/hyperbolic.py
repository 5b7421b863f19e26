"""The inverse hyperbolic functions, with derivatives that neither overflow nor cancel."""

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import at_least, at_most, combined, derivative_of, elementwise, select
from stablegrad.numerics.jax.exponentials import log1p

__all__ = ["acosh", "asinh", "atanh"]


@elementwise
def asinh(x: jax.Array) -> jax.Array:
    """log(x + sqrt(x**2 + 1)), odd, accurate for tiny and for huge x. Derivative 1 / hypot(1, x).

    >>> import jax
    >>> print(f"{asinh(-1e30):.4f} {asinh(1e-30):.0e} {jax.grad(asinh)(1e30):.0e}")
    -69.7707 1e-30 1e-30
    """
    return lax.asinh(x)


@derivative_of(asinh)
def _asinh_rule(primals, tangents):
    (x,) = primals
    return asinh(x), combined(x, (tangents[0], lambda dx: _reciprocal_hypot(x) * dx))


@elementwise
def _reciprocal_hypot(x: jax.Array) -> jax.Array:
    """1 / sqrt(1 + x**2), from the square of the smaller over the larger of 1 and |x|."""
    size = lax.abs(x)
    larger = at_least(size, 1.0)
    ratio = at_most(size, 1.0) / larger
    return 1 / (larger * lax.sqrt(1 + ratio * ratio))


@derivative_of(_reciprocal_hypot)
def _reciprocal_hypot_rule(primals, tangents):
    (x,) = primals
    value = _reciprocal_hypot(x)
    return value, combined(x, (tangents[0], lambda dx: -(x * value) * value * value * dx))


@elementwise
def acosh(x: jax.Array) -> jax.Array:
    """log(x + sqrt(x**2 - 1)) for x >= 1, accurate near 1 and for huge x. 0 at 1, NaN below, inf at inf.

    The derivative 1 / sqrt((x - 1) (x + 1)) is inf at 1.

    >>> print(f"{acosh(jnp.float32(1 + 2**-20)):.4e} {acosh(1e30):.4f}")
    1.3811e-03 69.7707
    """
    return lax.acosh(x)


@derivative_of(acosh)
def _acosh_rule(primals, tangents):
    (x,) = primals
    return acosh(x), combined(x, (tangents[0], lambda dx: _acosh_slope(x) * dx))


@elementwise
def _acosh_slope(x: jax.Array) -> jax.Array:
    """1 / sqrt(x**2 - 1), with x - 1 exact near 1 and no square that overflows."""
    return 1 / (lax.sqrt(x - 1) * lax.sqrt(x + 1))


@derivative_of(_acosh_slope)
def _acosh_slope_rule(primals, tangents):
    (x,) = primals
    value = _acosh_slope(x)
    return value, combined(x, (tangents[0], lambda dx: -(x * value) * value * value * dx))


@elementwise
def atanh(x: jax.Array) -> jax.Array:
    """log((1 + x) / (1 - x)) / 2 for |x| <= 1. Infinite at -1 and 1, NaN beyond.

    The derivative is 1 / ((1 - x) (1 + x)).

    >>> print(f"{atanh(1e-30):.0e} {atanh(1.0)}")
    1e-30 inf
    """
    return 0.5 * (log1p(x) - log1p(-x))


@derivative_of(atanh)
def _atanh_rule(primals, tangents):
    (x,) = primals
    return atanh(x), combined(x, (tangents[0], lambda dx: _atanh_slope(x) * dx))


@elementwise
def _atanh_slope(x: jax.Array) -> jax.Array:
    """1 / (1 - x**2) for |x| <= 1, NaN beyond."""
    product = (1 - x) * (1 + x)
    return 1 / select(product >= 0, product, jnp.nan)


@derivative_of(_atanh_slope)
def _atanh_slope_rule(primals, tangents):
    # The derivative of (1 - x) (1 + x) by the product rule cancels at 0.
    (x,) = primals
    value = _atanh_slope(x)
    return value, combined(x, (tangents[0], lambda dx: 2 * (x * value) * value * dx))
