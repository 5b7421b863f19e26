"""Cross entropies of logits as one function each: what the gradient needs is there when the value is.

How `softmaxes.py` is written for XLA holds here too.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import (
    Axis,
    along_axis,
    at_least,
    combined,
    derivative_of,
    elementwise,
    select,
    spread,
)
from stablegrad.numerics.jax.rows import in_one_pass, maximum_and_sum, sums_of
from stablegrad.numerics.jax.sigmoids import sigmoid_slope
from stablegrad.numerics.jax.softmaxes import (
    centred,
    factors,
    log_of_shares,
    log_softmax,
    log_total,
    powers,
    powers_below,
    probabilities,
    sums,
)

__all__ = ["log_softmax_of_picks", "sigmoid_cross_entropy", "softmax_cross_entropy"]


@along_axis
def log_softmax_of_picks(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """`log_softmax` for a loss that then picks one entry along `axis` for each of the other indices.

    The value and all conventions are those of `log_softmax`. So is the derivative; but in reverse mode it takes one
    sum instead of two, and is accurate at a confident prediction only for cotangents with one entry that is not 0.

    >>> x = jnp.array([30.0, 0.0])
    >>> print(f"{jax.grad(lambda x: log_softmax_of_picks(x)[0])(x)[0]:.4e}")
    9.3576e-14
    """
    return log_softmax(x, axis)


@derivative_of(log_softmax_of_picks)
def _log_softmax_of_picks_rule(axis, primals, tangents):
    (x,) = primals
    value, exponentials, a, b = _with_parts_of(x, axis)
    return value, combined(x, (tangents[0], lambda dx: _less_the_mean(dx, exponentials, a, b, axis)))


def _with_parts(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """log_softmax; and e, a, b (the latter two without `axis`), such that e * (a + b) is softmax."""
    exponentials = powers(x, axis)
    share, others = sums(exponentials, axis)
    return log_of_shares(x, share, others, axis), exponentials, *factors(share, others)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _with_parts_core(x, axis):
    return _with_parts(x, axis)


@_with_parts_core.defjvp
def _with_parts_rule(axis, primals, tangents):
    # The derivative of the probability is put into the exponentials, whole.
    (x,), (dx,) = primals, tangents
    value, exponentials, a, b = _with_parts_of(x, axis)
    p, rest = probabilities(x, axis)
    slope = centred(p, rest, dx, axis)
    nothing = lax.full_like(a, 0)
    return (value, exponentials, a, b), (slope, exponentials * slope, nothing, nothing)


_with_parts_of = jax.jit(_with_parts_core, static_argnums=1, inline=True)


def _less_the_mean(dx, exponentials, a, b, axis):
    """dx - sum(p dx), p = e (a + b). Transposed: (g - e a sum(g)) - e b sum(g), exact in g for a one-hot g.

    (Reverse mode adds up what comes from the last equations first, hence the order and the two sums.)
    """
    rest = spread(b * lax.reduce_sum(exponentials * dx, axis), dx, axis)
    return (dx - spread(a * lax.reduce_sum(exponentials * dx, axis), dx, axis)) - rest


@along_axis
def softmax_cross_entropy(x: jax.Array, t: jax.Array, axis: Axis = -1) -> jax.Array:
    """-sum(t * log_softmax(x)) over `axis` (an int or a tuple); the result lacks those axes.

    x: logits, t: targets of the same shape: one-hot, probabilities, or any weights. An entry -inf adds 0 if its
    target is 0, else an infinity. All entries -inf, or an entry inf: NaN. (A gap between logits times a target of more
    than 2e31 in float32 counts as infinite.)
    The derivative by x is sum(t) * softmax(x) - t, accurate for confident predictions too: for a one-hot target at
    the largest entry, that entry's is minus the sum of the other probabilities. (Where the targets of the others sum
    to s, this entry's derivative has an absolute error of eps, that is a relative one of eps / s: for targets that
    are confident probabilities themselves, -sum(t * log_softmax(x)) has more digits.) By t it is -log_softmax(x).

    >>> x, t = jnp.asarray([30.0, 0.0]), jnp.asarray([1.0, 0.0])
    >>> print(f"{softmax_cross_entropy(x, t):.4e} {jax.grad(softmax_cross_entropy)(x, t)[0]:.4e}")
    9.3576e-14 -9.3576e-14
    """
    _, share, others, weight, gap = _parts(x, t, axis)
    return _entropy(x, share, others, weight, gap)


@derivative_of(softmax_cross_entropy)
def _softmax_cross_entropy_rule(axis, primals, tangents):
    x, t = primals
    value, excess = _with_excess_of(x, t, axis)
    return value, combined(
        value,
        (tangents[0], lambda dx: lax.reduce_sum(excess * dx, axis)),
        (tangents[1], lambda dt: lax.reduce_sum(_surprise(x, t, axis) * dt, axis)),
    )


def _surprise(x, t, axis):
    log_p = log_softmax(x, axis)
    return select((t == 0) & (log_p == -jnp.inf), 0.0, -log_p)


def _entropy(x, share, others, weight, gap):
    if not x.size:
        return weight
    steps = 2 / float(jnp.finfo(x.dtype).eps)
    return weight * log_total(share, others) - lax.optimization_barrier(gap * steps) * (1 / steps)


def _parts(x: jax.Array, t: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """`powers`, `sums` of them, sum(t), and `_gaps` summed."""
    if not in_one_pass(x, axis):
        exponentials = powers(x, axis)
        gaps = _gaps(x, t, lax.reduce_max(lax.optimization_barrier(x), axis), axis)
        return exponentials, *sums(exponentials, axis), lax.reduce_sum(t, axis), lax.reduce_sum(gaps, axis)
    maximum, weight = maximum_and_sum(x, t, axis)
    exponentials = powers_below(maximum, x, axis)
    total, others, gap = sums_of(axis, exponentials, exponentials - lax.floor(exponentials), _gaps(x, t, maximum, axis))
    return exponentials, lax.optimization_barrier(1.5 / total), others, weight, gap


def _gaps(x: jax.Array, t: jax.Array, maximum: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """t * (x - maximum), without a conditional: entries are bounded from below, so that a target 0 makes an
    infinite gap 0; with another target it is huge, and `_entropy` lets it leave the range.

    (The bound stands before the subtraction for the sake of the maximum, see `powers`.)
    """
    return t * (at_least(x, -0.5 * float(jnp.finfo(x.dtype).max)) - spread(maximum, x, axis))


def _with_excess(x: jax.Array, t: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """The cross entropy, and sum(t) * softmax(x) - t."""
    exponentials, share, others, weight, gap = _parts(x, t, axis)
    a, b = factors(share, others)
    excess = exponentials * spread(b * weight, x, axis) - (t - exponentials * spread(a * weight, x, axis))
    return _entropy(x, share, others, weight, gap), excess


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _with_excess_core(x, t, axis):
    return _with_excess(x, t, axis)


@functools.partial(_with_excess_core.defjvp, symbolic_zeros=True)
def _with_excess_rule(axis, primals, tangents):
    x, t = primals
    value, excess = _with_excess_of(x, t, axis)
    p, rest = probabilities(x, axis)
    weight = spread(lax.reduce_sum(t, axis), x, axis)

    def by_t(dt):
        return p * spread(lax.reduce_sum(dt, axis), x, axis) - dt

    slope = combined(
        value,
        (tangents[0], lambda dx: lax.reduce_sum(excess * dx, axis)),
        (tangents[1], lambda dt: lax.reduce_sum(_surprise(x, t, axis) * dt, axis)),
    )
    bend = combined(x, (tangents[0], lambda dx: weight * p * centred(p, rest, dx, axis)), (tangents[1], by_t))
    return (value, excess), (slope, bend)


_with_excess_of = jax.jit(_with_excess_core, static_argnums=2, inline=True)


@elementwise
def sigmoid_cross_entropy(x: jax.Array, t: jax.Array) -> jax.Array:
    """-(t * log_sigmoid(x) + (1 - t) * log_sigmoid(-x)), elementwise, with derivative sigmoid(x) - t by x.

    x: logits, t: targets, usually between 0 and 1. A term whose factor is 0 is 0, also at an infinite logit.
    The derivative is accurate where the sigmoid rounds to the target: -sigmoid(-x) for t == 1. By t it is -x.

    >>> print(f"{sigmoid_cross_entropy(30.0, 1.0):.4e} {jax.grad(sigmoid_cross_entropy)(30.0, 1.0):.4e}")
    9.3576e-14 -9.3576e-14
    """
    return _distance(x, t) + lax.log1p(lax.exp(-lax.abs(x)))


@derivative_of(sigmoid_cross_entropy)
def _sigmoid_cross_entropy_rule(primals, tangents):
    x, t = primals
    return sigmoid_cross_entropy(x, t), combined(
        x,
        (tangents[0], lambda dx: _sigmoid_excess(x, t) * dx),
        (tangents[1], lambda dt: -x * dt),
    )


def _distance(x, t):
    """(step(x) - t) * x, with 0 for 0 * inf."""
    # x > -x, for a comparison with 0 would share its 0 with other loops, as a stored array.
    factor = select(x > -x, 1 - t, -t)
    return select(factor == 0, 0.0, factor * x)


@elementwise
def _sigmoid_excess(x: jax.Array, t: jax.Array) -> jax.Array:
    """sigmoid(x) - t"""
    x, t = lax.optimization_barrier((x, t))
    tail = lax.logistic(-lax.abs(x))
    return select(x > -x, (1 - t) - tail, tail - t)


@derivative_of(_sigmoid_excess)
def _sigmoid_excess_rule(primals, tangents):
    x, t = primals
    slope = combined(x, (tangents[0], lambda dx: sigmoid_slope(x) * dx), (tangents[1], lambda dt: -dt))
    return _sigmoid_excess(x, t), slope
