"""Logarithms of sums of exponentials along axes."""

from collections.abc import Sequence

import jax
from jax import lax

from stablegrad.numerics.jax.definition import along_axis, combined, derivative_of
from stablegrad.numerics.jax.softmaxes import maximum_and_rest, probabilities

__all__ = ["logsumexp"]

Axis = int | Sequence[int] | None


@along_axis
def logsumexp(x: jax.Array, axis: Axis = None) -> jax.Array:
    """log(sum(exp(x))) over `axis` (all axes by default); the result lacks those axes.

    Accurate also where the result is near 0 or near the maximum: it is max + log1p(the sum of the others).
    All entries -inf: -inf, with zero gradient. An entry inf: inf, with gradient 1 there, shared among equals.
    The derivative is the softmax.

    >>> x = jax.numpy.array([0.0, -20.0])
    >>> print(f"{logsumexp(x, 0):.4e}")
    2.0612e-09
    """
    maximum, _, _, rest = maximum_and_rest(x, axis)
    return maximum + lax.log1p(rest)


@derivative_of(logsumexp)
def _logsumexp_rule(axis, primals, tangents):
    (x,) = primals
    value = logsumexp(x, axis)
    return value, combined(
        value, (tangents[0], lambda dx: lax.reduce_sum(probabilities(x, axis, 0.0) * dx, axis))
    )
