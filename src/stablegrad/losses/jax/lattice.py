"""The sums over all alignments of CTC, forwards and backwards in one loop.

A row has the states blank 0, label 0, blank 1, ..., label S - 1, blank S. Blanks and labels are held apart, S + 1 each;
the last label is a dummy of probability 0. A step is

    blank_n  = (blank_n + label_{n-1}) * y(blank)
    label_n  = (label_n + blank_n + [label n differs from n - 1] label_{n-1}) * y(label n)

Run on frames and labels in reverse, the same step sums over what is still to come. So both are one loop over twice the
rows, and no class is touched inside it. Frames that do not count are frames of certain blanks: at the beginning they
leave the row waiting in the blank that it starts in, at the end they gather both ends in the last blank. One such frame
is appended to every row.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from stablegrad.losses.jax.scaled import LOWEST, Scaled, exponential, kept, number, plain, product, sum_of, top

__all__ = [
    "INVALID",
    "Frames",
    "Prepared",
    "Row",
    "States",
    "columns",
    "forward",
    "occupancies",
    "probability_of_all",
    "there_and_back",
    "total_of_each_frame",
    "weights",
]


INVALID = -1


class Row(NamedTuple):
    """What to align: labels (N, S), and how many of the frames and of the labels count, (N,) each.

    A row with INVALID frames has no labels, and NaN for whatever is asked of it.
    """

    labels: jax.Array
    frames: jax.Array
    lengths: jax.Array


class Frames(NamedTuple):
    """The columns that the lattice needs, frames first: probabilities are exp(score - peak) / size."""

    blank: Scaled  # probability, (T, N, 1)
    label: jax.Array  # score, (T, N, S + 1), -inf where a frame or label does not count
    peak: jax.Array  # (T, N, 1)
    size: jax.Array  # (T, N, 1)


class Prepared(NamedTuple):
    """Scores (N, T, C), peak and size of their frames, (N, T), and the columns of them that the lattice needs."""

    scores: jax.Array
    peak: jax.Array
    size: jax.Array
    frames: Frames


class States(NamedTuple):
    """A sum for each blank and each label, (N, S + 1) or (T, N, S + 1) each."""

    blank: Scaled
    label: Scaled


def columns(scores: jax.Array, peak: jax.Array, size: jax.Array, row: Row, blank: int) -> Frames:
    """The columns of `scores`, (N, T, C), with the `peak` and `size` of their frames, (N, T)."""
    counts = (jnp.arange(scores.shape[1]) < row.frames[:, None])[:, :, None]
    present = (jnp.arange(row.labels.shape[1] + 1) < row.lengths[:, None])[:, None, :]
    label = jnp.take_along_axis(scores, jnp.pad(row.labels, ((0, 0), (0, 1)))[:, None, :], axis=2)
    label = jnp.where(counts & present, label, -jnp.inf)
    peak = jnp.where(counts, peak[:, :, None], 0)
    size = jnp.where(counts, size[:, :, None], 1)
    of_blank = jnp.where(counts, scores[:, :, blank : blank + 1], 0)
    of_blank, label, peak, size = (x.transpose(1, 0, 2) for x in (of_blank, label, peak, size))
    return Frames(_probability(of_blank, peak, size), label, peak, size)


def forward(frames: Frames, row: Row) -> States:
    """All ways to each state, its own frame included, after each frame."""
    return _run(_with_last(frames), _may_follow(row.labels), jnp.zeros_like(row.lengths))


def there_and_back(frames: Frames, row: Row) -> tuple[States, States]:
    """All ways to each state, and all ways on from it, its own frame included in both; frame t is entry t + 1.

    The first entry of the ways there is certainty in the first blank, that of the ways back stands for no frame.
    """
    rows, count = row.labels.shape
    order = jnp.concatenate([row.labels, row.labels[:, ::-1]])
    start = jnp.concatenate([jnp.zeros_like(row.lengths), count - row.lengths])
    both = jax.tree.map(lambda x: jnp.concatenate([x, _reversed(x)], axis=1), frames)
    states = _run(_with_last(both), _may_follow(order), start)
    there = jax.tree.map(lambda x: x[:, :rows], states)
    back = jax.tree.map(lambda x: x[:, rows:], states)
    return there, back


def probability_of_all(there: States, row: Row) -> Scaled:
    """The probability of all alignments together, (N,): those that end in the last blank or in the last label."""

    def at(x, index):
        return jnp.take_along_axis(x[-1], index[:, None], axis=1)[:, 0]

    blank = Scaled(*(at(x, row.lengths) for x in there.blank))
    label = kept(row.lengths > 0, Scaled(*(at(x, jnp.maximum(row.lengths - 1, 0)) for x in there.label)))
    total = sum_of([blank, label], jnp.maximum(top(blank), top(label)))
    return Scaled(jnp.where(row.frames == INVALID, jnp.nan, total.mantissa), total.exponent)


def weights(frames: Frames, there: States, back: States) -> States:
    """The probability of all alignments through each state at each frame, (T, N, S + 1) each."""

    def weight(there: Scaled, back: Scaled, y: Scaled) -> Scaled:
        never = y.mantissa == 0
        mantissa = there.mantissa * back.mantissa / jnp.where(never, 1, y.mantissa)
        return kept(~never, Scaled(mantissa, there.exponent + back.exponent - y.exponent))

    label = _probability(frames.label, frames.peak, frames.size)
    there = jax.tree.map(lambda x: x[1:], there)
    return States(
        weight(there.blank, jax.tree.map(lambda x: x[:0:-1, :, ::-1], back.blank), frames.blank),
        weight(there.label, jax.tree.map(lambda x: _reversed(x[1:]), back.label), label),
    )


def occupancies(through: States, total: Scaled) -> tuple[jax.Array, jax.Array]:
    """The share of alignments in a blank, (T, N), and in each label, (T, N, S + 1); total is (T, N)."""
    total = Scaled(jnp.where(total.mantissa == 0, 1, total.mantissa)[:, :, None], total.exponent[:, :, None])
    blank, label = (plain(Scaled(x.mantissa / total.mantissa, x.exponent - total.exponent)) for x in through)
    return jnp.sum(blank, axis=2), label


def total_of_each_frame(through: States) -> Scaled:
    """The probability of all alignments, frame by frame, (T, N): the same number, but for rounding, at each."""
    most = jnp.maximum(*(jnp.max(top(kept(x.mantissa != 0, x)), axis=2) for x in through))
    parts = [jnp.sum(plain(Scaled(x.mantissa, x.exponent - most[:, :, None])), axis=2) for x in through]
    return Scaled(parts[0] + parts[1], most)


def _run(frames: Frames, may_follow: jax.Array, start: jax.Array) -> States:
    """The states before each frame, from certainty in the blank `start`."""
    shape = frames.label.shape[1:]
    dtype = frames.label.dtype
    nothing = jnp.where(frames.label[0] > 0, jnp.zeros(shape, dtype), 0)  # as the frames vary over a mesh
    first = States(number(jnp.where(jnp.arange(shape[1]) == start[:, None], 1, nothing)), number(nothing))

    def step(states, frame):
        blank, label = states
        before = _shifted(label)
        jump = kept(may_follow, before)
        greatest = jnp.maximum(top(blank), top(before))
        to_blank = sum_of([blank, before], greatest)
        greatest = jnp.maximum(jnp.maximum(top(blank), top(label)), top(jump))
        to_label = sum_of([blank, label, jump], greatest)
        of_label = _probability(frame.label, frame.peak, frame.size)
        # What it hands out is the carry it was given: a copy, where new values would be computed twice. For the same
        # reason labels come as scores: their probabilities, computed before the loop, would be so twice or more.
        return States(product(to_blank, frame.blank), product(to_label, of_label)), states

    _, before = lax.scan(step, first, frames)
    return before


def _probability(score: jax.Array, peak: jax.Array, size: jax.Array) -> Scaled:
    mantissa, exponent = exponential(score, peak)
    return Scaled(mantissa / size, exponent)


def _with_last(frames: Frames) -> Frames:
    """The frames and one more, a certain blank."""

    def longer(x: jax.Array, end: float) -> jax.Array:
        return jnp.pad(x, ((0, 1), (0, 0), (0, 0)), constant_values=end)

    blank = Scaled(longer(frames.blank.mantissa, 1), longer(frames.blank.exponent, 0))
    return Frames(blank, longer(frames.label, -np.inf), longer(frames.peak, 0), longer(frames.size, 1))


def _may_follow(labels: jax.Array) -> jax.Array:
    """Whether a label may follow the one before without a blank, (N, S + 1)."""
    return jnp.pad(labels[:, 1:] != labels[:, :-1], ((0, 0), (1, 1)))[:, : labels.shape[1] + 1]


def _shifted(x: Scaled) -> Scaled:
    return Scaled(*(jnp.pad(of[:, :-1], ((0, 0), (1, 0)), constant_values=first) for of, first in zip(x, (0, LOWEST))))


def _reversed(x: jax.Array) -> jax.Array:
    """Frames and labels in reverse; the dummy label stays the last."""
    return jnp.concatenate([x[::-1, :, :-1][:, :, ::-1], x[::-1, :, -1:]], axis=2)
