"""The probability of all outputs but the target, as a sum: no 1 - p.

Reading frame after frame, an output follows the target until its first symbol that cannot: from blank n anything but
blank and label n, from label n anything but blank, itself and label n + 1. What leaves at that frame, over all frames,
and what is still on the way at the end, is what is not the target; every term is positive.
"""

import jax
import jax.numpy as jnp
from jax import lax

from stablegrad.losses.jax.lattice import Prepared, Row, States
from stablegrad.losses.jax.scaled import plain

__all__ = ["probability_of_others"]


def probability_of_others(prepared: Prepared, row: Row, there: States, blank: int) -> jax.Array:
    """1 - the probability of the target, (N,), accurate where it is small; for frames whose probabilities sum to 1."""
    count = row.labels.shape[1]
    at = jnp.arange(count + 1)
    counts = jnp.arange(prepared.scores.shape[1])[:, None] < row.frames
    on_blank, on_label = plain(there.blank), plain(there.label)

    foreign = _foreign(prepared, row, blank).T * (jnp.sum(on_blank, axis=2) + jnp.sum(on_label, axis=2))[:-1]
    leaving = jnp.sum(jnp.where(counts, foreign, 0), axis=0)

    if count:
        present = jnp.arange(count) < row.lengths[:, None]
        same = (row.labels[:, :, None] == row.labels[:, None, :]) & present[:, None, :]
        distinct = (jnp.argmax(same, axis=2) == jnp.arange(count)) & present
        differs = ~(same & present[:, :, None])
        following = jnp.pad(differs, ((0, 0), (0, 2), (0, 0)), constant_values=True)
        from_blank = (following[:, :-1] & distinct[:, None, :]).astype(on_blank.dtype)
        from_label = (following[:, :-1] & following[:, 1:] & distinct[:, None, :]).astype(on_blank.dtype)
        frames = prepared.frames
        y = jnp.exp(frames.label[:, :, :count] - frames.peak) / frames.size
        for states, may_not in ((on_blank, from_blank), (on_label, from_label)):
            astray = jnp.einsum("tns,nsd->tnd", states[:-1], may_not, precision=lax.Precision.HIGHEST)
            leaving = leaving + jnp.sum(jnp.where(counts[:, :, None], astray * y, 0), axis=(0, 2))

    unfinished = jnp.where(at == row.lengths[:, None], 0, on_blank[-1])
    unfinished = unfinished + jnp.where(at == row.lengths[:, None] - 1, 0, on_label[-1])
    return leaving + jnp.sum(unfinished, axis=1)


def _foreign(prepared: Prepared, row: Row, blank: int) -> jax.Array:
    """The probability of classes that the target does not contain, (N, T)."""
    rows, _, classes = prepared.scores.shape
    present = jnp.arange(row.labels.shape[1]) < row.lengths[:, None]
    contained = jnp.zeros((rows, classes), bool).at[:, blank].set(True)
    contained = contained.at[jnp.arange(rows)[:, None], jnp.where(present, row.labels, classes)].set(True, mode="drop")
    scores = jnp.where(contained[:, None, :], -jnp.inf, prepared.scores)
    return jnp.sum(jnp.exp(scores - prepared.peak[:, :, None]), axis=2) / prepared.size
