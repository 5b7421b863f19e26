"""Several sums along the same axes at once.

XLA gives each sum a loop of its own over what is summed. For short rows that is more than the arithmetic; one
reduction of several operands is one loop (`benchmarks/runtime.py`: 10 classes).
"""

import math

import jax
import numpy as np
from jax import lax

SHORT = 128
"""Rows up to this length are summed by one loop. Longer ones are quicker with a vectorised loop for each sum."""


def sums_of(axis: tuple[int, ...], *terms: jax.Array) -> tuple[jax.Array, ...]:
    """The sums of the terms, all of one shape and dtype, over `axis`."""
    if not in_one_pass(terms[0], axis):
        return tuple(lax.reduce_sum(term, axis) for term in terms)
    zeros = tuple(np.zeros((), term.dtype) for term in terms)
    return tuple(lax.reduce(terms, zeros, lambda a, b: tuple(map(lax.add, a, b)), axis))


def maximum_and_sum(x: jax.Array, t: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """The maximum of x and the sum of t, both of one shape and dtype, over `axis`."""
    if not in_one_pass(x, axis):
        return lax.reduce_max(x, axis), lax.reduce_sum(t, axis)
    start = np.array(-np.inf, x.dtype), np.zeros((), t.dtype)
    return tuple(lax.reduce((x, t), start, lambda a, b: (lax.max(a[0], b[0]), a[1] + b[1]), axis))


def in_one_pass(x: jax.Array, axis: tuple[int, ...]) -> bool:
    """Whether rows of x along `axis` are quicker to sum in one loop."""
    return math.prod(x.shape[d] for d in axis) <= SHORT
