"""Lengths of vectors: no square leaves the range of the dtype, and the slope at 0 is 0."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import Axis, along_axis, combined, derivative_of, select, spread

__all__ = ["norm"]


@along_axis
def norm(x: jax.Array, axis: Axis = None) -> jax.Array:
    """sqrt(sum(x**2)) over `axis` (all axes by default); the result lacks those axes.

    Rows whose squares would leave the range are scaled by a power of two first; all others are computed as they stand.
    An infinite entry: inf. The gradient is x / norm(x), and 0 where the norm is 0 (a subgradient), as is the second
    derivative there. After J. L. Blue, "A portable Fortran program to find the Euclidean norm of a vector", ACM
    Transactions on Mathematical Software 4 (1978).

    >>> x = jax.numpy.array([3e-25, 4e-25])
    >>> print(norm(x), jax.grad(norm)(x))
    5e-25 [0.6 0.8]
    """
    scaled, scale = _scaled(x, axis)
    return _length(scaled, axis) / scale


@derivative_of(norm)
def _norm_rule(axis, primals, tangents):
    (x,) = primals
    value = norm(x, axis)
    return value, combined(value, (tangents[0], lambda dx: lax.reduce_sum(_direction(x, axis) * dx, axis)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _direction(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """x / norm(x), 0 where the norm is 0."""
    scaled, _ = _scaled(x, axis)
    length = _length(scaled, axis)
    return scaled / spread(select(length == 0, 1.0, length), x, axis)


@_direction.defjvp
def _direction_rule(axis, primals, tangents):
    (x,), (dx,) = primals, tangents
    unit, length = _direction(x, axis), norm(x, axis)
    across = dx - unit * spread(lax.reduce_sum(unit * dx, axis), x, axis)
    nothing = spread(length == 0, x, axis)
    return unit, select(nothing, 0.0, across / select(nothing, 1.0, spread(length, x, axis)))


def _length(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    return lax.sqrt(lax.reduce_sum(x * x, axis))


def _scaled(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """x times a power of two per row, so that no square of its largest entry leaves the range; and that power."""
    exponent = jnp.finfo(x.dtype).maxexp  # 128, 1024
    border, step = 2.0 ** int(exponent * 0.4), 2.0 ** int(exponent * 0.55)
    largest = lax.stop_gradient(lax.reduce_max(lax.abs(x), axis))
    scale = select(largest > border, 1 / step, select(largest < 1 / border, step, lax.full_like(largest, 1)))
    return x * spread(scale, x, axis), scale
