"""Softmax and its companions: every 1 - p is computed as the sum of the other terms, never by subtraction.

Written for XLA as much as for the reader. On the CPU XLA hands sums and maxima along an axis, and the arithmetic next
to them, to a library of vectorised loops, as long as nothing there is a conditional or has a second reader. The rest
becomes loops of its own, each an array stored and some 20 ms of compile time. Hence here: conditions by arithmetic,
an `optimization_barrier` where XLA would otherwise share (and therefore store) what is quicker taken twice, and
different constants where equal ones would become one stored array.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import Axis, along_axis, at_most, combined, derivative_of, select, spread
from stablegrad.numerics.jax.rows import sums_of

__all__ = ["log_softmax", "one_minus_softmax", "softmax"]


@along_axis
def softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """exp(x) / sum(exp(x)) along `axis` (an int or a tuple).

    Entries -inf give 0. All entries -inf: NaN, the 0/0 that it is. An entry inf is NaN, inf/inf, and the others 0.
    The derivative p_i ((1 - p_i) dx_i - sum of p_j dx_j over the others) holds for confident predictions too.

    >>> [float(p) for p in softmax(jax.numpy.array([1000.0, 1000.0, -jax.numpy.inf]))]
    [0.5, 0.5, 0.0]
    """
    exponentials = powers(x, axis)
    return exponentials * spread(1 / lax.reduce_sum(exponentials, axis), x, axis)


@derivative_of(softmax)
def _softmax_rule(axis, primals, tangents):
    (x,) = primals
    p, rest = probabilities(x, axis)
    return p, combined(x, (tangents[0], lambda dx: p * centred(p, rest, dx, axis)))


@along_axis
def log_softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """x - logsumexp(x) along `axis` (an int or a tuple), accurate in each entry.

    At the largest entry the value is -log1p(sum of the others relative to it), which a confident prediction
    does not round to 0. Entries -inf give -inf, and no gradient flows into them from the others, nor NaN from
    anywhere. All entries -inf: NaN, as the exact 0/0. An entry inf is NaN and the others -inf. Reverse mode yields
    1 - p at a confident prediction without cancellation.

    >>> import jax
    >>> x = jax.numpy.array([30.0, 0.0])
    >>> print(f"{-log_softmax(x)[0]:.4e} {jax.grad(lambda x: log_softmax(x)[0])(x)[0]:.4e}")
    9.3576e-14 9.3576e-14
    """
    return log_of_shares(x, *sums(powers(x, axis), axis), axis)


@derivative_of(log_softmax)
def _log_softmax_rule(axis, primals, tangents):
    (x,) = primals
    p, rest = probabilities(x, axis)
    return log_softmax(x, axis), combined(x, (tangents[0], lambda dx: centred(p, rest, dx, axis)))


@along_axis
def one_minus_softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """1 - softmax(x) as the share of the other entries: accurate where the softmax rounds to 1.

    1 at entries -inf; all entries -inf: NaN. An entry inf is NaN and the others 1.

    >>> print(f"{one_minus_softmax(jax.numpy.array([30.0, 0.0]))[0]:.4e}")
    9.3576e-14
    """
    exponentials = powers(x, axis)
    share, others = sums(exponentials, axis)
    others_of_all = spread(total_less_one(share, others), x, axis) + (1 - exponentials)
    others_of_all = others_of_all * spread(largest_probability(share, others), x, axis)
    return select(exponentials == 0, 1.0, others_of_all)  # beside an infinity it was inf * 0


@derivative_of(one_minus_softmax)
def _one_minus_softmax_rule(axis, primals, tangents):
    (x,) = primals
    p, rest = probabilities(x, axis)
    return one_minus_softmax(x, axis), combined(x, (tangents[0], lambda dx: -(p * centred(p, rest, dx, axis))))


def powers(x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """exp(x - maximum), NaN where all are -inf. If the maximum is inf: inf there and 0 elsewhere, so that what is
    divided by their sum is the inf/inf, or the 0, that it is.

    At the maximum it is exactly 1: `at_most` is not only for infinities. Where x is k * z, XLA contracts a plain
    x - maximum into one rounding of k * z - maximum, which need not be 0, but not across a minimum.
    """
    return powers_below(lax.reduce_max(x, axis), x, axis)


def powers_below(maximum: jax.Array, x: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    number = jnp.finfo(x.dtype)
    top = float(number.max)
    bounded = at_most(maximum, top)
    # The difference is 0 or, beside an infinity, inf: then the bound is lowered by a few of its ulp.
    lowered = bounded - at_most(maximum - bounded, top * float(number.eps))
    return lax.exp(at_most(x, top) - spread(lowered, x, axis))


def sums(exponentials: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """3/2 of the largest probability (from 1 on, one entry outweighs the others twice), and the sum without the ones.

    `exponentials` are `powers`. One is their largest, so that where it occurs once, the second sum is the first less
    1, but keeps the digits of a small one. Beside an infinity the first is 0.
    """
    total, others = sums_of(axis, exponentials, exponentials - lax.floor(exponentials))
    return lax.optimization_barrier(1.5 / total), others


def log_total(share: jax.Array, others: jax.Array) -> jax.Array:
    """log(sum(powers)), from `sums`."""
    # `_confident` once more, as a number. The last factor is 0 if no one was left out, where exp(0) is not 1.
    confident = lax.floor(share) * (1 - lax.floor(share * (others + 0.5) * 0.666))
    return lax.log1p(others * confident + (1 - confident) * (3 / share * 0.5 - 1))


def _confident(share: jax.Array, others: jax.Array) -> jax.Array:
    return (share > 1.0001) & (share * (others + 0.49) < 1.499)


def total_less_one(share: jax.Array, others: jax.Array) -> jax.Array:
    """sum(powers) - 1, from `sums`."""
    return select(_confident(share, others), others, 1.5 / share - 1)


def largest_probability(share: jax.Array, others: jax.Array) -> jax.Array:
    """The largest probability, from `sums`. A step of Newton's method replaces a sum that is rounded next to 1."""
    p = share * (2 / 3)
    return select(_confident(share, others), p * (2 - p - others * p), p)


def factors(share: jax.Array, others: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two numbers whose sum is the largest probability, the first 1 or 0: 1 and minus the rest where it is near 1."""
    confident, p = _confident(share, others), largest_probability(share, others)
    return lax.convert_element_type(confident, p.dtype), select(confident, -others * p, p)


def log_of_shares(x: jax.Array, share: jax.Array, others: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """log_softmax(x), from `sums`."""
    others = select(share == 0, 0.0, others)  # beside an infinity they were inf - inf
    maximum = at_most(lax.reduce_max(lax.optimization_barrier(x), axis), float(jnp.finfo(x.dtype).max))
    # This conditional on rows keeps the maximum from being stored for each entry.
    maximum = spread(select(maximum == -jnp.inf, jnp.nan, maximum), x, axis)
    return select(x == maximum, 0.0, x - maximum) - spread(log_total(share, others), x, axis)


def _probabilities(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """softmax(x); and without `axis`, what the largest entry leaves of 1."""
    exponentials = powers(x, axis)
    share, others = sums(exponentials, axis)
    largest = largest_probability(share, others)
    return exponentials * spread(largest, x, axis), total_less_one(share, others) * largest


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _probabilities_core(x, axis):
    return _probabilities(x, axis)


@_probabilities_core.defjvp
def _probabilities_rule(axis, primals, tangents):
    (x,), (dx,) = primals, tangents
    p, rest = probabilities(x, axis)
    dp = p * centred(p, rest, dx, axis)
    return (p, rest), (dp, -lax.reduce_sum(outweighing(p) * dp, axis))


probabilities = jax.jit(_probabilities_core, static_argnums=1, inline=True)


def outweighing(p: jax.Array) -> jax.Array:
    """1 at a probability of 3/5 and more, of which there is one at most, else 0."""
    return lax.floor(p + 0.4)


def centred(p: jax.Array, rest: jax.Array, dx: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """dx_i - sum(p dx), p and `rest` from `probabilities`; without cancellation at an entry that outweighs the others.

    There it is `rest` dx_i less the sum over the others. Transposed: g_j - p_j sum(g), and at such an entry
    `rest` g_j - p_j times the sum of g over the others.
    """
    peak = outweighing(p)
    others, below = p * (1 - peak), 1 - peak
    own = (below + peak * spread(rest, dx, axis)) * dx
    return (
        own
        - below * spread(lax.reduce_sum(peak * p * dx, axis), dx, axis)
        - spread(lax.reduce_sum(others * dx, axis), dx, axis)
    )
