"""What the functions of CTC accept, and what they say where it is wrong."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from stablegrad.losses.jax.lattice import INVALID, Row

__all__ = ["Arguments", "arguments"]

KINDS = ("logits", "log_probs")


class Arguments(NamedTuple):
    """Scores (N, T, C) in the dtype that is computed in, and rows; those with invalid entries have INVALID frames."""

    scores: jax.Array
    row: Row
    batch: tuple[int, ...]
    dtype: Any


def arguments(
    name: str,
    inputs: ArrayLike,
    labels: ArrayLike,
    input_lengths: ArrayLike | None,
    label_lengths: ArrayLike | None,
    kind: str,
    blank: int,
) -> Arguments:
    """Check and flatten. Invalid values raise ValueError where they are known; where traced, their rows are marked."""
    if kind not in KINDS:
        raise ValueError(f"{name}: kind must be 'logits' or 'log_probs', not {kind!r}.")
    scores = jnp.asarray(inputs)
    targets: Any = _integers(name, "labels", labels)
    if scores.ndim < 2 or targets.ndim != scores.ndim - 1:
        raise ValueError(
            f"{name}: inputs (..., frames, classes) and labels (..., labels) must have the same leading axes, "
            f"but have shapes {scores.shape} and {targets.shape}."
        )
    batch: tuple[int, ...] = scores.shape[:-2]
    steps, classes = scores.shape[-2:]
    if targets.shape[:-1] != batch:
        raise ValueError(f"{name}: labels have shape {targets.shape}; their leading axes must be {batch}.")
    if not isinstance(blank, (int, np.integer)) or not 0 <= blank < classes:
        raise ValueError(f"{name}: blank must be one of the {classes} classes, 0 to {classes - 1}, not {blank}.")
    frames = _lengths(name, "input_lengths", input_lengths, batch, steps)
    lengths = _lengths(name, "label_lengths", label_lengths, batch, targets.shape[-1])
    _raise_for_values(name, targets, frames, lengths, steps, classes, int(blank))

    dtype = scores.dtype
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise TypeError(f"{name} is a function of real scores, but was given {dtype}.")
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    working = jnp.float32 if jnp.finfo(dtype).bits < 32 else dtype
    rows = int(np.prod(batch))
    count = targets.shape[-1]
    targets, frames, lengths = targets.reshape(rows, count), frames.reshape(rows), lengths.reshape(rows)
    scores = scores.astype(working).reshape(rows, steps, classes)
    present = jnp.arange(count) < lengths[:, None]
    wrong = present & ((targets < 0) | (targets >= classes) | (targets == blank))
    valid = ~jnp.any(wrong, axis=1)
    valid &= (frames >= 0) & (frames <= steps) & (lengths >= 0) & (lengths <= count)
    somewhere = int(blank == 0) if classes > 1 else 0
    targets = jnp.where(present & ~wrong, targets, somewhere)
    row = Row(targets, jnp.where(valid, frames, INVALID), jnp.where(valid, lengths, 0))
    return Arguments(scores, row, batch, dtype)


def _integers(name: str, what: str, value: ArrayLike) -> Any:
    # What is known stays in NumPy, or under a trace it would not be known any more.
    array = jnp.asarray(value) if isinstance(value, jax.core.Tracer) else np.asarray(value)
    if array.size == 0 and not jnp.issubdtype(array.dtype, jnp.integer):
        array = array.astype(np.int32)  # zeros((4, 0)) holds no number that could be wrong
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"{name}: {what} must be integers, not {array.dtype}.")
    if array.dtype.itemsize > 4 or array.dtype == np.uint32:
        array = array.clip(-(2**31) if array.dtype.kind == "i" else 0, 2**31 - 1)  # what is too large stays so
    array = array.astype(np.int32)
    return array if isinstance(array, jax.core.Tracer) else np.asarray(array)  # clip makes a scalar of no axes


def _lengths(name: str, what: str, value: ArrayLike | None, batch: tuple[int, ...], default: int) -> Any:
    if value is None:
        return np.full(batch, default, np.int32)
    array = _integers(name, what, value)
    if array.shape not in (batch, ()):
        raise ValueError(f"{name}: {what} has shape {array.shape}, but one number is needed for each of {batch}.")
    return np.broadcast_to(array, batch) if isinstance(array, np.ndarray) else jnp.broadcast_to(array, batch)


def _raise_for_values(
    name: str,
    labels: Any,
    frames: Any,
    lengths: Any,
    steps: int,
    classes: int,
    blank: int,
) -> None:
    """ValueError for the first entry that is wrong, of those whose values are known."""
    for what, value, most in (
        ("input_lengths", frames, f"{steps} frames"),
        ("label_lengths", lengths, f"{labels.shape[-1]} labels"),
    ):
        known = _known(value)
        limit = int(most.split()[0])
        if known is not None and known.size and not (0 <= known.min() and known.max() <= limit):
            place = np.argwhere((known < 0) | (known > limit))[0]
            raise ValueError(f"{name}: {what}{_index(place)} is {known[tuple(place)]}, but there are {most}.")
    known, counts = _known(labels), _known(lengths)
    if known is None or counts is None:
        return
    present = np.arange(known.shape[-1]) < counts[..., None]
    for wrong, why in (
        ((known < 0) | (known >= classes), f"is none of the {classes} classes, 0 to {classes - 1}"),
        (known == blank, "is the blank, which no target contains"),
    ):
        if (wrong & present).any():
            place = np.argwhere(wrong & present)[0]
            raise ValueError(f"{name}: labels{_index(place)} = {known[tuple(place)]} {why}.")


def _known(array: Any) -> np.ndarray | None:
    return array if isinstance(array, np.ndarray) else None


def _index(place: np.ndarray) -> str:
    return "[" + ", ".join(str(int(i)) for i in place) + "]" if len(place) else ""
