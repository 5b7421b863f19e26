"""Products of matrices whose elements are mantissa and exponent (`powers_of_two.py`).

Each product of elements is aligned to the largest of its own sum: where a zero of one operand hides what is largest
in the other, what is left counts in full. Rows aligned to their largest element, as the engine's own matrix product
would want them, lose it.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.powers_of_two import aligned

__all__ = ["scaled_dot", "scaled_dot_exponent"]

Dimensions = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""As of `lax.dot_general`: ((contracted of a, of b), (batch of a, of b))."""


def scaled_dot_exponent(dimensions: Dimensions, k_a: jax.Array, k_b: jax.Array) -> jax.Array:
    """The exponents, int32, of the product of numbers with the exponents k_a and k_b: the largest of each sum."""
    a, b, axes = _laid(dimensions, k_a, k_b)
    return lax.reduce_max(a + b, axes)


def scaled_dot(dimensions: Dimensions, m_a: jax.Array, k_a: jax.Array, m_b: jax.Array, k_b: jax.Array) -> jax.Array:
    """The mantissas of the product of m_a * 2**k_a and m_b * 2**k_b, for the exponents of `scaled_dot_exponent`.

    >>> import jax.numpy as jnp
    >>> m, k = jnp.array([0.5, 0.5]), jnp.array([0, -2000])
    >>> dimensions = (((0,), (0,)), ((), ()))
    >>> print(scaled_dot(dimensions, m, k, jnp.array([0.0, 0.5]), jnp.array([-(2**29), 0])))
    0.25
    """

    @jax.checkpoint  # what stands between, of the size of all products, is not kept for the backward pass
    def summed(m_a: jax.Array, m_b: jax.Array) -> jax.Array:
        a, b, axes = _laid(dimensions, k_a, k_b)
        sums = a + b
        below = sums - jnp.expand_dims(lax.reduce_max(sums, axes), axes)
        left, right, _ = _laid(dimensions, m_a, m_b)
        return lax.reduce_sum(aligned(left * right, below), axes)

    return summed(m_a, m_b)


def _laid(dimensions: Dimensions, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array, tuple[int, ...]]:
    """Both over what is contracted, then batch, then the free dimensions of each.

    Summed over leading axes, the sums of a row run side by side, several times as fast.
    """
    (contract_a, contract_b), (batch_a, batch_b) = dimensions
    free_a, free_b = _free(a, (*batch_a, *contract_a)), _free(b, (*batch_b, *contract_b))
    own_a, own_b = (*contract_a, *batch_a, *free_a), (*contract_b, *batch_b, *free_b)
    shape = (*(a.shape[k] for k in own_a), *(b.shape[k] for k in free_b))
    shared = len(contract_a) + len(batch_a)
    places_b = (*range(shared), *range(len(own_a), len(shape)))
    laid_a = lax.broadcast_in_dim(lax.transpose(a, own_a), shape, tuple(range(len(own_a))))
    laid_b = lax.broadcast_in_dim(lax.transpose(b, own_b), shape, places_b)
    return laid_a, laid_b, tuple(range(len(contract_a)))


def _free(x: jax.Array, used: Sequence[int]) -> tuple[int, ...]:
    return tuple(k for k in range(x.ndim) if k not in used)
