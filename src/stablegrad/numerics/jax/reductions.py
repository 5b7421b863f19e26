"""Logarithms of sums of exponentials along axes."""

import functools
from collections.abc import Callable

import jax
import jax.custom_batching
import jax.numpy as jnp
from jax import lax

from stablegrad.numerics.jax.definition import (
    Axis,
    along_axis,
    at_most,
    combined,
    derivative_of,
    of_arrays,
    select,
    spread,
    within_range,
)
from stablegrad.numerics.jax.exponentials import log1p
from stablegrad.numerics.jax.quotients import divide
from stablegrad.numerics.jax.rows import in_one_pass, sums_of
from stablegrad.numerics.jax.softmaxes import centred, probabilities

__all__ = ["log_matmul_exp", "logsumexp", "logsumexp_weighted"]


@along_axis
def logsumexp(x: jax.Array, axis: Axis = None) -> jax.Array:
    """log(sum(exp(x))) over `axis` (all axes by default); the result lacks those axes.

    Accurate also where the result is near 0 or near the maximum: it is max + log1p(the sum of the others).
    All entries -inf: -inf, with zero gradient. An entry inf: inf, with gradient 1 there; NaN if there are several.
    The derivative is the softmax.

    >>> x = jax.numpy.array([0.0, -20.0])
    >>> print(f"{logsumexp(x, 0):.4e}")
    2.0612e-09
    """
    maximum, _, rest, _ = _shifted_sum(x, axis)
    return maximum + lax.log1p(rest)


@derivative_of(logsumexp)
def _logsumexp_rule(axis, primals, tangents):
    (x,) = primals
    value, p = _with_probabilities_of(x, axis)
    return value, combined(value, (tangents[0], lambda dx: lax.reduce_sum(p * dx, axis)))


def _shifted_sum(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """The maximum m, the sum of exp(x - m), the same less 1, and these exponentials.

    A small rest keeps its digits in rows whose logarithm is near 0.
    """
    maximum = lax.reduce_max(x, axis)
    exponentials = _shifted_exponentials(x, maximum, axis)
    if in_one_pass(x, axis) and (x.ndim - 1 not in axis or x.shape[-1] <= SHORT):
        total, others = sums_of(axis, exponentials, exponentials - lax.floor(exponentials))
        return maximum, total, select(total < 1.5, others, total - 1), exponentials
    total = lax.reduce_sum(exponentials, axis)
    rest = (functools.partial(_in_detail, axis=axis) if x.size < LARGE else _less_one(axis))(x, maximum, total)
    return maximum, total, rest, exponentials


def _shifted_exponentials(x, maximum, axis):
    bounded = at_most(x, float(jnp.finfo(x.dtype).max))
    return lax.exp(bounded - spread(within_range(maximum), x, axis))


SHORT = 64
"""Rows along the last dimension up to this length take both sums in one pass, whether or not the second is needed."""

LARGE = 2**14
"""Entries from which on a second pass over them costs more than to find out whether it is needed."""


def _in_detail(x: jax.Array, maximum: jax.Array, total: jax.Array, axis: tuple[int, ...]) -> jax.Array:
    exponentials = _shifted_exponentials(x, maximum, axis)
    others = lax.reduce_sum(exponentials - lax.floor(exponentials), axis)
    return select(total < 1.5, others, total - 1)


@functools.cache
def _less_one(axis: tuple[int, ...]) -> Callable[..., jax.Array]:
    """`_in_detail`, where a row needs it.

    Where the maximum is not within 1/2 of 0 its digits would be lost when it is added; and where that holds for all
    rows, as it mostly does, a second pass over x is saved. Under vmap one condition still stands for all rows.
    """

    @jax.custom_batching.custom_vmap
    def less_one(x, maximum, total):
        distance = lax.abs(maximum) + 1e30 * lax.floor(total * (2 / 3))
        far = lax.reduce_min(distance, tuple(range(distance.ndim))) >= 0.5
        detail = functools.partial(_in_detail, axis=axis)
        return lax.cond(far, lambda x, maximum, total: total - 1, detail, x, maximum, total)

    @less_one.def_vmap
    def less_one_of_many(size, batched, *arrays):
        whole = [a if b else lax.broadcast(a, (size,)) for a, b in zip(arrays, batched, strict=True)]
        return _less_one(tuple(d + 1 for d in axis))(*whole), True

    return less_one


def _with_probabilities(x: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """logsumexp, and the softmax, but 0 where all entries are -inf."""
    maximum, total, rest, exponentials = _shifted_sum(x, axis)
    value = maximum + lax.log1p(rest)
    share = 1 / select(total == 0, jnp.inf, select((maximum == jnp.inf) & (total > 1), jnp.nan, total))
    return value, exponentials * spread(share, x, axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _with_probabilities_core(x, axis):
    return _with_probabilities(x, axis)


@_with_probabilities_core.defjvp
def _with_probabilities_rule(axis, primals, tangents):
    (x,), (dx,) = primals, tangents
    value, p = _with_probabilities_of(x, axis)
    _, rest = probabilities(x, axis)
    slope = select(p == 0, 0.0, p * centred(p, rest, dx, axis))  # without entries nothing depends on them
    return (value, p), (lax.reduce_sum(p * dx, axis), slope)


_with_probabilities_of = jax.jit(_with_probabilities_core, static_argnums=1, inline=True)


@along_axis
def logsumexp_weighted(e: jax.Array, m: jax.Array, axis: Axis = None) -> jax.Array:
    """log(sum(m * exp(e))) over `axis` (all axes by default), m of either sign; the result lacks those axes.

    An entry with m == 0 is left out, even if e is huge or infinite (a NaN in e stays NaN). NaN where the sum
    is negative, -inf where it is 0. The derivative by m is exp(e - result), which may truly be infinite; by e
    it is m exp(e - result), 0 where m == 0.

    >>> print(logsumexp_weighted(jnp.array([1000.0, 999.0, jnp.inf]), jnp.array([1.0, -1.0, 0.0])))
    999.5413
    """
    peak, _, weighted, largest = _weighted_terms(e, m, axis)
    # The sum without 1, of which the c largest terms carry 1 / c each.
    count = lax.reduce_sum(lax.convert_element_type(largest, e.dtype), axis)
    rest = lax.reduce_sum(select(largest, weighted - spread(1 / count, e, axis), weighted), axis)
    return peak + log1p(rest)


@derivative_of(logsumexp_weighted)
def _logsumexp_weighted_rule(axis, primals, tangents):
    e, m = primals
    value = logsumexp_weighted(e, m, axis)
    _, exponentials, weighted, _ = _weighted_terms(e, m, axis)
    total = spread(lax.reduce_sum(weighted, axis), e, axis)
    nothing = (total == 0) & (exponentials == 0)
    slope = divide(exponentials, select(nothing, 1.0, total))
    by_e = m * select(m == 0, 0.0, slope)
    return value, combined(
        value,
        (tangents[0], lambda de: lax.reduce_sum(by_e * de, axis)),
        (tangents[1], lambda dm: lax.reduce_sum(slope * dm, axis)),
    )


def _weighted_terms(e: jax.Array, m: jax.Array, axis: tuple[int, ...]) -> tuple[jax.Array, ...]:
    """c = max(e + log|m|), exp(e - c), m exp(e - c), and where the last is largest, about 1.

    c counts as constant; infinite, it is clamped in the difference. The largest exponent is -log|m|, between
    -88.72 and 87.34 in float32: its exponential can underflow where m is huge, so m is multiplied by
    exp((e - c) / 2) twice. A largest term with m = 1 is exactly 1: the logarithm of a sum near 1 keeps
    its last digits.
    """
    magnitude = select(m == 0, -jnp.inf, e + lax.log(lax.abs(within_range(m))))
    peak = lax.reduce_max(magnitude, axis)
    shift = lax.stop_gradient(within_range(peak))
    half = lax.exp(0.5 * (e - spread(shift, e, axis)))
    kept = select(m == 0, at_most(half, 1.0), half)
    return peak, half * half, (m * kept) * kept, magnitude == spread(peak, e, axis)


@of_arrays
def log_matmul_exp(e: jax.Array, w: jax.Array) -> jax.Array:
    """log(exp(e) @ w) for e of shape (..., K) and w of shape (K, N) of either sign; shape (..., N).

    Each row of e is shifted by its maximum. -inf where a row of e is all -inf or a sum is 0 (no gradient
    flows to e there), NaN where a sum is negative. A sum that the largest entry of the row takes no part in
    (its weight is 0) is lost, -inf, where it is smaller than that entry by more than the range of the dtype.

    >>> print(log_matmul_exp(jnp.array([[1000.0, 1000.0]]), jnp.eye(2)))
    [[1000. 1000.]]
    """
    shift, exponentials = _shifted_rows(e)
    return shift + lax.log(_matmul(exponentials, w))


@derivative_of(log_matmul_exp)
def _log_matmul_exp_rule(primals, tangents):
    e, w = primals
    shift, exponentials = _shifted_rows(e)
    total = _matmul(exponentials, w)
    # A row of nothing has no slope; elsewhere a sum of 0 has an infinite one by w.
    empty = lax.broadcast_in_dim(shift, total.shape, range(total.ndim)) == -jnp.finfo(e.dtype).max
    by_w = select(empty, 0.0, divide(lax.full_like(total, 1), total))
    by_e = select(total == 0, 0.0, by_w)
    value = log_matmul_exp(e, w)
    return value, combined(
        value,
        (tangents[0], lambda de: by_e * _matmul(exponentials * de, w)),
        (tangents[1], lambda dw: by_w * _matmul(exponentials, dw)),
    )


def _shifted_rows(e: jax.Array) -> tuple[jax.Array, jax.Array]:
    shift = within_range(lax.stop_gradient(lax.reduce_max(e, (e.ndim - 1,))))
    shift = lax.expand_dims(shift, (e.ndim - 1,))
    return shift, lax.exp(e - shift)


def _matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.dot_general(a, b, (((a.ndim - 1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
