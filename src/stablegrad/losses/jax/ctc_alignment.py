"""The best alignment of frames with labels: forced alignment."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from stablegrad.losses.jax.arguments import arguments
from stablegrad.losses.jax.ctc_loss import Kind
from stablegrad.losses.jax.lattice import INVALID, Row

__all__ = ["CTCAlignment", "ctc_alignment"]


class CTCAlignment(NamedTuple):
    """The most probable alignment of each row.

    score: its log-probability, (...); -inf where there is none, and then -1 everywhere else.
    classes: the class of each frame, (..., frames), -1 beyond the frames that count.
    label_index: which label the frame belongs to, (..., frames), -1 for blanks.
    starts, ends: the frames of each label, from `starts` up to but not with `ends`, (..., labels), -1 beyond the labels
      that count.
    """

    score: jax.Array
    classes: jax.Array
    label_index: jax.Array
    starts: jax.Array
    ends: jax.Array


def ctc_alignment(
    inputs: ArrayLike,
    labels: ArrayLike,
    input_lengths: ArrayLike | None = None,
    label_lengths: ArrayLike | None = None,
    *,
    kind: Kind = "logits",
    blank: int = 0,
) -> CTCAlignment:
    """The single most probable alignment (Viterbi) of frames with labels, with the frames of each label.

    Of alignments that are equally probable it is the one that moves on earliest. Arguments and errors as for
    `ctc_loss`; where invalid values are traced, the score is NaN. The score is differentiable; its gradient counts the
    classes of the best path.

    >>> x = 5 * jax.nn.one_hot(jax.numpy.array([0, 1, 1, 0, 2]), 3)
    >>> found = ctc_alignment(x, jax.numpy.array([1, 2]))
    >>> print(found.classes, found.label_index, found.starts, found.ends)
    [0 1 1 0 2] [-1  0  0 -1  1] [1 4] [3 5]
    """
    given = arguments("ctc_alignment", inputs, labels, input_lengths, label_lengths, kind, blank)
    found = _alignment(given.scores, given.row, kind, int(blank))
    found = found._replace(score=found.score.astype(given.dtype))
    return CTCAlignment(*(x.reshape(*given.batch, *x.shape[1:]) for x in found))


@functools.partial(jax.jit, static_argnums=(2, 3), inline=True)
def _alignment(scores: jax.Array, row: Row, kind: str, blank: int) -> CTCAlignment:
    rows, steps, _ = scores.shape
    count = row.labels.shape[1]
    states = jnp.full((rows, 2 * count + 1), blank).at[:, 1::2].set(row.labels)
    counts = jnp.arange(steps) < row.frames[:, None]
    fixed = lax.stop_gradient(jnp.where(counts[:, :, None], scores, 0))
    log_y = jax.nn.log_softmax(fixed, axis=2) if kind == "logits" else fixed
    back, end = _best_moves(log_y, states, blank, counts, row)
    path = _followed(back, end, counts)

    classes = jnp.take_along_axis(states, path, axis=1)
    label_index = jnp.where(path % 2 == 1, path // 2, -1)
    taken = jnp.take_along_axis(jnp.where(counts[:, :, None], scores, 0), classes[:, :, None], axis=2)[:, :, 0]
    if kind == "logits":
        taken = taken - jax.nn.logsumexp(jnp.where(counts[:, :, None], scores, 0), axis=2)
    score = jnp.sum(jnp.where(counts, taken, 0), axis=1)
    # Without an alignment the path leads through what cannot be, or starts where nothing starts.
    first = path[:, 0] if steps else end
    moves = jnp.diff(path, axis=1)
    differs = jnp.pad(states[:, 2:] != states[:, :-2], ((0, 0), (2, 0)))
    jumps = jnp.take_along_axis(differs & (states != blank), path[:, 1:], axis=1)
    legal = (moves == 0) | (moves == 1) | ((moves == 2) & jumps)
    possible = jnp.all(legal | ~counts[:, 1:], axis=1)
    possible &= jnp.where(row.frames > 0, first <= 1, row.lengths == 0)
    score = jnp.where(possible, score, -jnp.inf)
    possible &= score > -jnp.inf

    inside = counts & possible[:, None]
    label_index = jnp.where(inside, label_index, -1)
    at = jnp.arange(steps)[None, :, None]
    of = label_index[:, :, None] == jnp.arange(count)
    starts = jnp.min(jnp.where(of, at, steps), axis=1, initial=steps)
    ends = jnp.max(jnp.where(of, at + 1, -1), axis=1, initial=-1)
    return CTCAlignment(
        jnp.where(row.frames == INVALID, jnp.nan, score),
        jnp.where(inside, classes, -1),
        label_index,
        jnp.where(ends > 0, starts, -1),
        ends,
    )


def _best_moves(
    log_y: jax.Array, states: jax.Array, blank: int, counts: jax.Array, row: Row
) -> tuple[jax.Array, jax.Array]:
    """How far back the best way to each state comes from (0, 1 or 2), frames first; and where the best one ends."""
    width = states.shape[1]
    may_jump = jnp.pad(states[:, 2:] != states[:, :-2], ((0, 0), (2, 0)))[:, :width] & (states != blank)
    columns = jnp.take_along_axis(log_y, states[:, None, :], axis=2).transpose(1, 0, 2)
    # Before the first frame only blank 0 is there; the first frame may enter label 0 from it.
    best = jnp.where((jnp.arange(width) == 0) | (states < 0), 0.0, -jnp.inf).astype(log_y.dtype)

    def step(best, frame):
        column, counts = frame
        ways = jnp.stack([best, _moved(best, 1), jnp.where(may_jump, _moved(best, 2), -jnp.inf)])
        move = jnp.argmax(ways, axis=0)
        after = jnp.max(ways, axis=0) + column
        # Only differences matter: the sum stays near 0, where it has its digits.
        peak = jnp.max(after, axis=1, keepdims=True)
        after = after - jnp.where(jnp.isfinite(peak), peak, 0)
        return jnp.where(counts[:, None], after, best), move.astype(jnp.int8)

    best, back = lax.scan(step, best, (columns, counts.T))
    last = 2 * row.lengths
    ends = [jnp.take_along_axis(best, jnp.maximum(at, 0)[:, None], axis=1)[:, 0] for at in (last, last - 1)]
    return back, jnp.where((row.lengths > 0) & (ends[1] > ends[0]), last - 1, last)


def _followed(back: jax.Array, end: jax.Array, counts: jax.Array) -> jax.Array:
    """The state of each frame on the best way, (N, T)."""

    def step(state, frame):
        back, counts = frame
        move = jnp.take_along_axis(back, state[:, None], axis=1)[:, 0].astype(state.dtype)
        return jnp.maximum(jnp.where(counts, state - move, state), 0), state

    _, path = lax.scan(step, end, (back, counts.T), reverse=True)
    return path.T


def _moved(x: jax.Array, by: int) -> jax.Array:
    return jnp.pad(x, ((0, 0), (by, 0)), constant_values=-jnp.inf)[:, : x.shape[1]]
