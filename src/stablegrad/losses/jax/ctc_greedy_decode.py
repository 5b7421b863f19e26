"""The labels of the most probable class of each frame."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from stablegrad.losses.jax.arguments import arguments
from stablegrad.losses.jax.ctc_loss import Kind
from stablegrad.losses.jax.lattice import INVALID

__all__ = ["CTCDecoded", "ctc_greedy_decode"]


class CTCDecoded(NamedTuple):
    """labels: (..., frames), -1 behind the last; lengths: how many; score: log-probability of the path, (...) both."""

    labels: jax.Array
    lengths: jax.Array
    score: jax.Array


def ctc_greedy_decode(
    inputs: ArrayLike, input_lengths: ArrayLike | None = None, *, kind: Kind = "logits", blank: int = 0
) -> CTCDecoded:
    """Best-path decoding: the most probable class of each frame, runs merged, blanks dropped.

    The best path is not always that of the best labels, of which several paths are the sum. Frames beyond the length
    may hold anything. Of equally probable classes the first counts; a frame with NaN makes the score NaN. A length out
    of range raises ValueError where it is known; where traced, that row has no labels and score NaN.

    >>> found = ctc_greedy_decode(jax.nn.one_hot(jax.numpy.array([1, 1, 0, 1, 2, 2]), 3))
    >>> print(found.labels, found.lengths)
    [ 1  1  2 -1 -1 -1] 3
    """
    none = jnp.zeros((*jnp.shape(inputs)[:-2], 0), jnp.int32)
    given = arguments("ctc_greedy_decode", inputs, none, input_lengths, None, kind, blank)
    labels, lengths, score = _decoded(given.scores, given.row.frames, kind, int(blank))
    steps = given.scores.shape[1]
    return CTCDecoded(
        labels.reshape(*given.batch, steps),
        lengths.reshape(given.batch),
        score.astype(given.dtype).reshape(given.batch),
    )


@functools.partial(jax.jit, static_argnums=(2, 3), inline=True)
def _decoded(scores: jax.Array, frames: jax.Array, kind: str, blank: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    rows, steps, _ = scores.shape
    counts = jnp.arange(steps) < frames[:, None]
    inside = jnp.where(counts[:, :, None], scores, 0)
    best = jnp.argmax(inside, axis=2)
    before = jnp.pad(best[:, :-1], ((0, 0), (1, 0)), constant_values=blank)
    before = before if steps else best
    kept = counts & (best != blank) & (best != before)
    place = jnp.where(kept, jnp.cumsum(kept, axis=1) - 1, steps)
    labels = jnp.full((rows, steps), -1).at[jnp.arange(rows)[:, None], place].set(best, mode="drop")
    log_y = jax.nn.log_softmax(inside, axis=2) if kind == "logits" else inside
    score = jnp.sum(jnp.where(counts, jnp.max(log_y, axis=2), 0), axis=1)
    return labels, jnp.sum(kept, axis=1), jnp.where(frames == INVALID, jnp.nan, score)
