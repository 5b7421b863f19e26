"""For each entry the logarithm of the sum of the other exponentials, in time linear in their number."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from stablegrad.numerics.jax.definition import Axis, along_axis, combined, derivative_of, select, spread
from stablegrad.numerics.jax.log_domain import difference
from stablegrad.numerics.jax.sigmoids import log_sigmoid, sigmoid

__all__ = ["log_one_minus_softmax", "log_sum_others"]


@along_axis
def log_sum_others(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """For each i: log of the sum of exp(x_j) over all j != i along `axis` (one axis). Same shape as x.

    A single entry gives -inf (the sum of nothing); where the result is -inf no gradient flows. The derivative
    by x_j is exp(x_j - result_i).

    >>> print(log_sum_others(jnp.array([1000.0, -5.0, -jnp.inf])))
    [  -5. 1000. 1000.]
    """
    first, second, gap, terms, rest, maximum, runner_up = _ranked(x, axis)
    return select(
        first,
        spread(runner_up + lax.log1p(rest), x, axis),
        spread(maximum, x, axis) + _log1p_of_lower(second, gap, terms, rest, axis),
    )


@derivative_of(log_sum_others)
def _log_sum_others_rule(axis, primals, tangents):
    (x,) = primals
    value = log_sum_others(x, axis)
    return value, combined(x, (tangents[0], lambda dx: _mean_of_others(x, dx, value, axis)))


@along_axis
def log_one_minus_softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """log(1 - softmax(x)) along `axis` (one axis), for probabilities near 0 and near 1 alike.

    It is log_sigmoid(log_sum_others(x) - x). -inf for a single entry, 0 at an entry -inf; all entries -inf,
    and an entry inf: NaN.

    >>> print(log_one_minus_softmax(jnp.array([100.0, 0.0])))
    [-100.    0.]
    """
    return log_sigmoid(_log_odds_against(x, axis))


@derivative_of(log_one_minus_softmax)
def _log_one_minus_softmax_rule(axis, primals, tangents):
    (x,) = primals
    odds = _log_odds_against(x, axis)

    def linear(dx):
        return sigmoid(-odds) * (_mean_of_others(x, dx, odds, axis) - dx)

    return log_sigmoid(odds), combined(x, (tangents[0], linear))


@along_axis
def _log_odds_against(x: jax.Array, axis: Axis) -> jax.Array:
    """log_sum_others(x) - x, from differences to the maximum: independent of a common offset of x."""
    first, second, gap, terms, rest, maximum, _ = _ranked(x, axis)
    peak = spread(maximum, x, axis)
    odds = select(
        first,
        spread(gap + lax.log1p(rest), x, axis),
        select(x == peak, 0.0, peak - x) + _log1p_of_lower(second, gap, terms, rest, axis),
    )
    return select((x == peak) & (lax.abs(peak) == jnp.inf), jnp.nan, odds)


@derivative_of(_log_odds_against)
def _log_odds_against_rule(axis, primals, tangents):
    (x,) = primals
    odds = _log_odds_against(x, axis)
    return odds, combined(x, (tangents[0], lambda dx: _mean_of_others(x, dx, odds, axis) - dx))


def _log1p_of_lower(second, gap, terms, rest, axis):
    """log1p of what the others add to the maximum, for every entry but the maximum.

    The runner-up is not in `rest`, so the subtraction leaves at least half of what it is added to.
    """
    spread_rest = spread(rest, terms, axis)
    return lax.log1p(spread(lax.exp(gap), terms, axis) * lax.select(second, spread_rest, 1 + (spread_rest - terms)))


def _ranked(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """Where one maximum and one runner-up are, runner-up - maximum, and exp(x - runner-up) of the rest:
    each (0 at the first two) and their sum; then the maximum and the runner-up themselves."""
    if len(axis) != 1:
        raise ValueError(f"The sum of the others is taken along one axis, not along {axis}; reshape first.")
    maximum, first = _one_maximum(x, axis)
    others = select(first, -jnp.inf, x)
    runner_up, second = _one_maximum(others, axis)
    second = second & ~first  # only a single entry is both
    peak = spread(runner_up, x, axis)
    terms = select(first | second, 0.0, lax.exp(select(others == peak, 0.0, others - peak)))
    gap = select(maximum == runner_up, 0.0, runner_up - maximum)
    return first, second, gap, terms, lax.reduce_sum(terms, axis), maximum, runner_up


def _one_maximum(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """The maximum and where the last of those that equal it is. (lax.argmax is slow on the CPU.)"""
    maximum = lax.reduce_max(x, axis)
    position = lax.broadcasted_iota(np.int32, x.shape, axis[0])
    last = lax.reduce_max(select(x == spread(maximum, x, axis), position, -1), axis)
    return maximum, position == spread(last, x, axis)


def _mean_of_others(x: jax.Array, dx: jax.Array, value: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """For each i the mean of dx_j over j != i with weights exp(x_j); 0 where `value` is -inf.

    Shifts are constants, of which the mean does not depend: what is written here differentiates exactly.
    """
    first, second, gap, _, _, maximum, runner_up = _ranked(lax.stop_gradient(x), axis)
    shift = select(first, spread(maximum, x, axis), spread(runner_up, x, axis))
    weight = lax.exp(difference(x, shift))

    def sums(terms):
        """Of the maximum, of the runner-up, and of the rest, over the axis."""
        for rank in (first, second, ~(first | second)):
            yield spread(lax.reduce_sum(select(rank, terms, 0.0), axis), x, axis)

    def without_itself(terms):
        top, next_, rest = sums(terms)
        lower = top + spread(lax.exp(gap), x, axis) * lax.select(second, rest, next_ + (rest - terms))
        return lax.select(first, next_ + rest, lower)

    empty = value == -jnp.inf
    return select(empty, 0.0, without_itself(weight * dx) / select(empty, 1.0, without_itself(weight)))
