"""Softmax and its companions: every 1 - p is computed as the sum of the other terms, never by subtraction.

Written for XLA as much as for the reader. On the CPU XLA hands sums and maxima along an axis, and the arithmetic next
to them, to a library of vectorised loops, as long as nothing there is a conditional or has a second reader. The rest
becomes loops of its own, each an array stored and some 20 ms of compile time. Hence here: conditions on rows by
arithmetic, an `optimization_barrier` where XLA would otherwise share (and therefore store) what is quicker taken
twice, and different constants where equal ones would become one stored array.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import Axis, along_axis, at_most, combined, derivative_of, select, spread

__all__ = ["log_softmax", "one_minus_softmax", "softmax"]


@along_axis
def softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """exp(x) / sum(exp(x)) along `axis` (an int or a tuple).

    Entries -inf give 0. All entries -inf: NaN, the 0/0 that it is. Entries inf share 1 among them.
    The derivative p_i ((1 - p_i) dx_i - sum of p_j dx_j over the others) holds for confident predictions too.

    >>> [float(p) for p in softmax(jax.numpy.array([1000.0, 1000.0, -jax.numpy.inf]))]
    [0.5, 0.5, 0.0]
    """
    exponentials = powers(x, axis)
    return exponentials * spread(1 / lax.reduce_sum(exponentials, axis), x, axis)


@derivative_of(softmax)
def _softmax_rule(axis, primals, tangents):
    (x,) = primals
    p, q = probabilities_and_complements(x, axis)
    return p, combined(x, (tangents[0], lambda dx: p * centred(p, q, dx, axis)))


@along_axis
def log_softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """x - logsumexp(x) along `axis` (an int or a tuple), accurate in each entry.

    At the largest entry the value is -log1p(sum of the others relative to it), which a confident prediction
    does not round to 0. Entries -inf give -inf, and no gradient flows into them from the others, nor NaN from
    anywhere. All entries -inf: NaN, as the exact 0/0. Reverse mode yields 1 - p at a confident prediction
    without cancellation.

    >>> import jax
    >>> x = jax.numpy.array([30.0, 0.0])
    >>> print(f"{-log_softmax(x)[0]:.4e} {jax.grad(lambda x: log_softmax(x)[0])(x)[0]:.4e}")
    9.3576e-14 9.3576e-14
    """
    return _value(x, *sums(powers(x, axis), axis), axis)


@derivative_of(log_softmax)
def _log_softmax_rule(axis, primals, tangents):
    (x,) = primals
    value, *factors = _with_factors_of(x, axis)
    return value, combined(x, (tangents[0], lambda dx: _less_the_mean(dx, *factors, axis)))


@along_axis
def one_minus_softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """1 - softmax(x) as the share of the other entries: accurate where the softmax rounds to 1.

    1 at entries -inf; all entries -inf: NaN.

    >>> print(f"{one_minus_softmax(jax.numpy.array([30.0, 0.0]))[0]:.4e}")
    9.3576e-14
    """
    return _shares(x, axis)[1]


@derivative_of(one_minus_softmax)
def _one_minus_softmax_rule(axis, primals, tangents):
    (x,) = primals
    p, q = probabilities_and_complements(x, axis)
    return q, combined(x, (tangents[0], lambda dx: -(p * centred(p, q, dx, axis))))


def powers(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """exp(x - maximum), 1 at entries inf; NaN where all are -inf.

    At the maximum it is exactly 1: `at_most` is not only for infinities. Where x is k * z, XLA contracts a plain
    x - maximum into one rounding of k * z - maximum, which need not be 0, but not across a minimum.
    """
    top = float(jnp.finfo(x.dtype).max)
    return lax.exp(at_most(x, top) - spread(at_most(lax.reduce_max(x, axis), top), x, axis))


def sums(exponentials: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """3/2 of the largest probability (from 1 on, one entry outweighs the others twice), and the sum without the ones.

    `exponentials` are `powers`. One is their largest, so that where it occurs once, the second sum is the first less
    1, but keeps the digits of a small one.
    """
    share = lax.optimization_barrier(1.5 / lax.reduce_sum(exponentials, axis))
    return share, lax.reduce_sum(exponentials - lax.floor(exponentials), axis)


def log_total(share: jax.Array, others: jax.Array) -> jax.Array:
    """log(sum(powers)), from `sums`."""
    # `_confident` once more, as a number. The last factor is 0 if no one was left out, where exp(0) is not 1.
    confident = lax.floor(share) * (1 - lax.floor(share * (others + 0.5) * (2 / 3)))
    return lax.log1p(others * confident + (1 - confident) * (3 / share * 0.5 - 1))


def _confident(share: jax.Array, others: jax.Array) -> jax.Array:
    return (share > 1.0001) & (share * (others + 0.49) < 1.5)


def largest_probability(share: jax.Array, others: jax.Array) -> jax.Array:
    """The largest probability, from `sums`. A step of Newton's method replaces a sum that is rounded next to 1."""
    p = share * (2 / 3)
    return select(_confident(share, others), p * (2 - (1 + others) * p), p)


def factors(share: jax.Array, others: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two numbers whose sum is the largest probability, the first 1 or 0: 1 and minus the rest where it is near 1."""
    confident, p = _confident(share, others), largest_probability(share, others)
    return select(confident, 1.0, lax.full_like(p, 0)), select(confident, -others * p, p)


def _value(x: jax.Array, share: jax.Array, others: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    maximum = lax.reduce_max(lax.optimization_barrier(x), axis)
    # This conditional on rows keeps the maximum from being stored for each entry.
    maximum = spread(select(maximum == -jnp.inf, jnp.nan, maximum), x, axis)
    return select(x == maximum, 0.0, x - maximum) - spread(log_total(share, others), x, axis)


def _with_factors(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """log_softmax; and e, a, b (the latter two without `axis`), such that e * (a + b) is softmax."""
    exponentials = powers(x, axis)
    share, others = sums(exponentials, axis)
    return _value(x, share, others, axis), exponentials, *factors(share, others)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _with_factors_core(x, axis):
    return _with_factors(x, axis)


@_with_factors_core.defjvp
def _with_factors_rule(axis, primals, tangents):
    # The derivative of the probability is put into the exponentials, whole.
    (x,), (dx,) = primals, tangents
    value, exponentials, a, b = _with_factors_of(x, axis)
    p, q = probabilities_and_complements(x, axis)
    nothing = lax.full_like(a, 0)
    slope = _less_the_mean(dx, exponentials, a, b, axis)
    return (value, exponentials, a, b), (slope, exponentials * centred(p, q, dx, axis), nothing, nothing)


_with_factors_of = jax.jit(_with_factors_core, static_argnums=1, inline=True)


def _less_the_mean(dx, exponentials, a, b, axis):
    """dx - sum(p dx), p = e (a + b). Transposed: (g - e a sum(g)) - e b sum(g), exact in g for a one-hot g.

    (Reverse mode adds up what comes from the last equations first, hence the order and the two sums.)
    """
    rest = spread(b * lax.reduce_sum(exponentials * dx, axis), dx, axis)
    return (dx - spread(a * lax.reduce_sum(exponentials * dx, axis), dx, axis)) - rest


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _shares_core(x, axis):
    return _shares(x, axis)


@_shares_core.defjvp
def _shares_rule(axis, primals, tangents):
    (x,), (dx,) = primals, tangents
    p, q = probabilities_and_complements(x, axis)
    dp = p * centred(p, q, dx, axis)
    return (p, q), (dp, -dp)


probabilities_and_complements = jax.jit(_shares_core, static_argnums=1, inline=True)
"""softmax(x) and 1 - softmax(x)."""


def _shares(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    exponentials = powers(x, axis)
    share, others = sums(exponentials, axis)
    rest = select(_confident(share, others), others, 1.5 / share - 1)
    share = spread(largest_probability(share, others), x, axis)
    return exponentials * share, (spread(rest, x, axis) + (1 - exponentials)) * share


def centred(p: jax.Array, q: jax.Array, dx: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """dx_i - sum(p dx), with 1 - p_i taken from q: transposed, an exact 1 - p for a one-hot cotangent."""
    weighted = p * dx
    return q * dx - (spread(lax.reduce_sum(weighted, axis), dx, axis) - weighted)
