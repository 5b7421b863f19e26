"""CTC's loss, gradient and posteriors in JAX alone: for every device, every dtype and every derivative.

What is rarely needed stands in branches that compute anew from the scores: XLA copies what a branch reads of loops, and
that took longer than all the rest.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from stablegrad.losses.jax.confident import probability_of_others
from stablegrad.losses.jax.lattice import (
    INVALID,
    Prepared,
    Row,
    States,
    columns,
    forward,
    occupancies,
    probability_of_all,
    there_and_back,
    total_of_each_frame,
    weights,
)
from stablegrad.losses.jax.scaled import Scaled, logarithm

__all__ = ["gradient_of", "loss_and_gradient", "loss_only", "posteriors", "posteriors_of"]

FAR = 2.0**22  # exponents from here on are not all whole floats, so that differences of their sums do not hold


def rows_under_vmap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Under vmap the rows of all are computed as one batch: its branches stay branches, taken where one row asks."""

    @functools.wraps(function)
    def public(scores: jax.Array, row: Row, kind: str, blank: int) -> Any:
        @jax.custom_batching.custom_vmap
        def of_rows(scores: jax.Array, row: Row) -> Any:
            return function(scores, row, kind, blank)

        @of_rows.def_vmap
        def of_batch(size: int, batched: Any, scores: jax.Array, row: Row) -> Any:
            def flat(x: jax.Array, batched: bool) -> jax.Array:
                x = x if batched else jnp.broadcast_to(x, (size, *x.shape))
                return x.reshape(-1, *x.shape[2:])

            rows = scores.shape[1 if batched[0] else 0]
            found = of_rows(*jax.tree.map(flat, (scores, row), tuple(batched)))
            nested = jax.tree.map(lambda x: x.reshape(size, rows, *x.shape[1:]), found)
            return nested, jax.tree.map(lambda _: True, nested)

        return of_rows(scores, row)

    return public


@rows_under_vmap
def loss_only(scores: jax.Array, row: Row, kind: str, blank: int) -> jax.Array:
    """The loss of each row, (N,), from scores (N, T, C)."""
    prepared = _prepared(scores, row, kind, blank)
    return _loss(scores, row, probability_of_all(forward(prepared.frames, row), row), kind, blank)


@rows_under_vmap
def loss_and_gradient(scores: jax.Array, row: Row, kind: str, blank: int) -> tuple[jax.Array, jax.Array]:
    """The loss of each row, (N,), and its derivative by each score, (N, T, C)."""
    prepared = _prepared(scores, row, kind, blank)
    there, back = there_and_back(prepared.frames, row)
    total = probability_of_all(there, row)
    return _loss(scores, row, total, kind, blank), _gradient(prepared, row, there, back, total, kind, blank)


def gradient_of(scores: jax.Array, row: Row, kind: str, blank: int) -> jax.Array:
    """The derivative alone; JAX differentiates it further."""
    prepared = _prepared(scores, row, kind, blank)
    there, back = there_and_back(prepared.frames, row)
    return _gradient(prepared, row, there, back, probability_of_all(there, row), kind, blank)


@rows_under_vmap
def posteriors(scores: jax.Array, row: Row, kind: str, blank: int) -> jax.Array:
    """The share of alignments that give each class at each frame, (N, T, C)."""
    return posteriors_of(scores, row, kind, blank)


def posteriors_of(scores: jax.Array, row: Row, kind: str, blank: int) -> jax.Array:
    """The same; JAX differentiates it further."""
    prepared = _prepared(scores, row, kind, blank)
    there, back = there_and_back(prepared.frames, row)
    return _per_class(prepared, row, there, back, probability_of_all(there, row), kind, blank)


def _prepared(scores: jax.Array, row: Row, kind: str, blank: int) -> Prepared:
    counts = jnp.arange(scores.shape[1]) < row.frames[:, None]
    if kind == "logits":
        peak = lax.stop_gradient(jnp.max(scores, axis=2))
        size = jnp.sum(jnp.exp(scores - peak[:, :, None]), axis=2)
        peak, size = jnp.where(counts, peak, 0), jnp.where(counts, size, 1)
    else:
        peak, size = jnp.zeros(counts.shape, scores.dtype), jnp.ones(counts.shape, scores.dtype)
    return Prepared(scores, peak, size, columns(scores, peak, size, row, blank))


def _loss(scores: jax.Array, row: Row, total: Scaled, kind: str, blank: int) -> jax.Array:
    loss = -logarithm(total)
    if kind != "logits":
        return loss
    # Where nearly all alignments are right, the loss is taken from those that are not, or it would be what the
    # products have rounded: a loss of 1e-15 would be 0 or 1e-7.
    near = loss < np.log(2)

    def from_others(scores: jax.Array, row: Row, loss: jax.Array) -> jax.Array:
        prepared = _prepared(scores, row, kind, blank)
        others = probability_of_others(prepared, row, forward(prepared.frames, row), blank)
        return jnp.where(near, -jnp.log1p(-others), loss)

    return lax.cond(jnp.any(near), from_others, lambda scores, row, loss: loss, scores, row, loss)


def _total_at_frames(prepared: Prepared, row: Row, total: Scaled, kind: str, blank: int) -> Scaled:
    """The probability of all alignments, as what shares are taken of, (T, N); far out, of each frame for itself."""
    far = jnp.any((total.mantissa != 0) & (jnp.abs(total.exponent) > FAR))

    def of_frames(scores: jax.Array, row: Row, total: Scaled) -> Scaled:
        again = _prepared(scores, row, kind, blank)
        return total_of_each_frame(weights(again.frames, *there_and_back(again.frames, row)))

    def of_all(scores: jax.Array, row: Row, total: Scaled) -> Scaled:
        shape = (scores.shape[1], scores.shape[0])
        return Scaled(jnp.broadcast_to(total.mantissa, shape), jnp.broadcast_to(total.exponent, shape))

    return lax.cond(far, of_frames, of_all, prepared.scores, row, total)


def _gradient(
    prepared: Prepared, row: Row, there: States, back: States, total: Scaled, kind: str, blank: int
) -> jax.Array:
    """softmax - posterior by logits, -posterior by log-probabilities; 0 where no alignment is possible."""
    share = _per_class(prepared, row, there, back, total, kind, blank)
    if kind != "logits":
        return -share
    counts = (jnp.arange(share.shape[1]) < row.frames[:, None]) & (total.mantissa != 0)[:, None]
    scores = jnp.where(counts[:, :, None], prepared.scores, -jnp.inf)
    peak, size = (x[:, :, None] for x in (prepared.peak, prepared.size))
    return jnp.exp(scores - peak) * (1 / size) - share


def _per_class(
    prepared: Prepared, row: Row, there: States, back: States, total: Scaled, kind: str, blank: int
) -> jax.Array:
    """What the states hold, put together for each class.

    Labels that occur more than once are first added up at their first place; then each class looks up its place, which
    is quicker than adding into the classes.
    """
    rows, count = row.labels.shape
    at_frames = _total_at_frames(prepared, row, total, kind, blank)
    of_blank, of_label = occupancies(weights(prepared.frames, there, back), at_frames)
    counts = jnp.arange(prepared.scores.shape[1]) < row.frames[:, None]
    unasked = jnp.where(row.frames == INVALID, jnp.nan, 0).astype(of_blank.dtype)[:, None, None]
    blanks = jnp.where(counts[:, :, None], of_blank.T[:, :, None], unasked)
    label = of_label[:, :, :count].transpose(1, 0, 2)
    present = jnp.arange(count) < row.lengths[:, None]
    same = (row.labels[:, :, None] == row.labels[:, None, :]) & present[:, None, :]
    first = jnp.argmax(same, axis=2) if count else row.labels
    merge = ((first[:, :, None] == jnp.arange(count)) & present[:, :, None]).astype(label.dtype)
    merged = jnp.einsum("nts,nsk->ntk", label, merge, precision=lax.Precision.HIGHEST)
    table = jnp.concatenate([merged, blanks, jnp.broadcast_to(unasked, blanks.shape)], axis=2)
    place = jnp.full((rows, prepared.scores.shape[2]), count + 1)
    place = place.at[jnp.arange(rows)[:, None], jnp.where(present, row.labels, place.shape[1])].set(first, mode="drop")
    place = place.at[:, blank].set(count)
    return jnp.take_along_axis(table, place[:, None, :], axis=2)
