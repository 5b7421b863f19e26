"""cos(x) - 1."""

import jax
from jax import lax

from stablegrad.numerics.jax.definition import combined, derivative_of, elementwise

__all__ = ["cosm1"]


@elementwise
def cosm1(x: jax.Array) -> jax.Array:
    """cos(x) - 1 = -2 sin(x / 2)**2, without the cancellation near 0. NaN at the infinities.

    >>> print(f"{cosm1(1e-10):.1e}")
    -5.0e-21
    """
    sine = lax.sin(0.5 * x)
    return -2 * sine * sine


@derivative_of(cosm1)
def _cosm1_rule(primals, tangents):
    (x,) = primals
    return cosm1(x), combined(x, (tangents[0], lambda dx: -lax.sin(x) * dx))
