"""Softmax and its companions: every 1 - p is computed as the sum of the other terms, never by subtraction."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import (
    Axis,
    along_axis,
    at_most,
    combined,
    derivative_of,
    select,
    spread,
    within_range,
)

__all__ = ["log_softmax", "one_minus_softmax", "softmax"]


@along_axis
def softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """exp(x) / sum(exp(x)) along `axis` (an int or a tuple).

    Entries -inf give 0. All entries -inf: NaN, the 0/0 that it is. Entries inf share 1 among them.
    The derivative p_i ((1 - p_i) dx_i - sum of p_j dx_j over the others) holds for confident predictions too.

    >>> [float(p) for p in softmax(jax.numpy.array([1000.0, 1000.0, -jax.numpy.inf]))]
    [0.5, 0.5, 0.0]
    """
    return _exponential_shares(x, axis, jnp.nan)


@derivative_of(softmax)
def _softmax_rule(axis, primals, tangents):
    (x,) = primals
    p, q = _probabilities_and_complements(x, axis, jnp.nan)
    return p, combined(x, (tangents[0], lambda dx: p * _centred(p, q, dx, axis)))


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
    maximum, shifted, rest = maximum_and_rest(x, axis)
    log_total = select(maximum == -jnp.inf, jnp.nan, lax.log1p(rest))
    # Next to an entry inf, finite ones are -inf: `shifted` times the largest number, 0 or an infinity.
    stretch = select(maximum == jnp.inf, _largest(x), lax.full_like(maximum, 1))
    return shifted * spread(stretch, x, axis) - spread(log_total, x, axis)


@derivative_of(log_softmax)
def _log_softmax_rule(axis, primals, tangents):
    (x,) = primals

    def linear(dx):
        p, q = _probabilities_and_complements(x, axis, jnp.nan)
        return _centred(p, q, dx, axis)

    return log_softmax(x, axis), combined(x, (tangents[0], linear))


@along_axis
def one_minus_softmax(x: jax.Array, axis: Axis = -1) -> jax.Array:
    """1 - softmax(x) as the share of the other entries: accurate where the softmax rounds to 1.

    1 at entries -inf; all entries -inf: NaN.

    >>> print(f"{one_minus_softmax(jax.numpy.array([30.0, 0.0]))[0]:.4e}")
    9.3576e-14
    """
    return _shares(x, axis, jnp.nan)[1]


@derivative_of(one_minus_softmax)
def _one_minus_softmax_rule(axis, primals, tangents):
    (x,) = primals
    p, q = _probabilities_and_complements(x, axis, jnp.nan)
    return q, combined(x, (tangents[0], lambda dx: -(p * _centred(p, q, dx, axis))))


def maximum_and_rest(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """The maximum m, x - m (0 where x == m, also if m is inf), and R = sum(exp(x - m)) - 1.

    R is summed without one maximal entry rather than reduced by 1, so that a small R keeps its digits: each of
    the c maximal entries stands in the sum with (c - 1) / c, which is exactly 0 if there is one. (On XLA's CPU
    compiler, two sums that do not depend on each other become one slow loop, and so do conditionals on whole
    arrays next to an exponential; hence the count goes into the terms, and infinities are clamped away.)
    """
    maximum, shifted = _shifted(x, axis)
    tie = shifted == 0
    count = lax.reduce_sum(lax.convert_element_type(tie, x.dtype), axis)
    terms = select(tie, spread((count - 1) / count, x, axis), lax.exp(shifted))
    return maximum, shifted, lax.reduce_sum(terms, axis)


def _largest(x: jax.Array) -> float:
    return float(jnp.finfo(x.dtype).max)


def _shifted(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """The maximum m and x - m, with infinities clamped so that no two of them are subtracted."""
    maximum = lax.reduce_max(x, axis)
    return maximum, at_most(x, _largest(x)) - spread(within_range(maximum), x, axis)


def _exponential_shares(x: jax.Array, axis: tuple[int, ...], of_nothing: float) -> jax.Array:
    exponentials = lax.exp(_shifted(x, axis)[1])
    total = lax.reduce_sum(exponentials, axis)
    return exponentials * spread(select(total == 0, of_nothing, 1 / total), x, axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _probabilities_core(x, axis):
    return _exponential_shares(x, axis, 0.0)


@_probabilities_core.defjvp
def _probabilities_rule(axis, primals, tangents):
    (x,), (dx,) = primals, tangents
    p, q = _probabilities_and_complements(x, axis, 0.0)
    return p, p * _centred(p, q, dx, axis)


probabilities = jax.jit(_probabilities_core, static_argnums=1, inline=True)
"""The softmax, but 0 where all entries are -inf."""


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _shares_core(x, axis, of_nothing):
    return _shares(x, axis, of_nothing)


@_shares_core.defjvp
def _shares_rule(axis, of_nothing, primals, tangents):
    (x,), (dx,) = primals, tangents
    p, q = _probabilities_and_complements(x, axis, of_nothing)
    dp = p * _centred(p, q, dx, axis)
    return (p, q), (dp, -dp)


_probabilities_and_complements = jax.jit(_shares_core, static_argnums=(1, 2), inline=True)


def _shares(x: jax.Array, axis: tuple[int, ...], of_nothing: float) -> tuple[jax.Array, jax.Array]:
    maximum, shifted, rest = maximum_and_rest(x, axis)
    share = spread(select(maximum == -jnp.inf, of_nothing, 1 / (1 + rest)), x, axis)
    exponentials = lax.exp(shifted)
    return exponentials * share, (spread(rest, x, axis) + (1 - exponentials)) * share


def _centred(p: jax.Array, q: jax.Array, dx: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    """dx_i - sum(p dx), with 1 - p_i taken from q: transposed, an exact 1 - p for a one-hot cotangent."""
    weighted = p * dx
    return q * dx - (spread(lax.reduce_sum(weighted, axis), dx, axis) - weighted)
