"""The rows of the table: where the plain and the stabilized results are furthest from the exact ones."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from stablegrad.command_line.call import Call
from stablegrad.command_line.error_bits import bits_of_error
from stablegrad.command_line.truth import Element, Exact

# Wrong is more than this, in ulp, times one more than the condition number.
ULP_ALLOWED = 4
# Where the condition number is not known, six bits (63 ulp) pass.
BITS_ALLOWED = 6.0
# A second element of a result is shown only when its error is more than this.
BITS_OF_NO_INTEREST = 3.0


@dataclass
class Results:
    """The float results of a program and the gradient of their sum, as arrays by name."""

    values: dict[str, np.ndarray]
    gradients: list[np.ndarray]


@dataclass
class Row:
    """One line of the table: the worst element of one result.

    Attributes:
        label: ``value`` or ``gradient by NAME``, and the element's index where there are several.
        plain, stabilized, exact: The numbers; `stabilized` is None when it could not be computed, `exact`
            when it is not known.
        plain_bits, stabilized_bits: log2(1 + distance in ulp) to the exact number; infinite where one is
            finite and the other is not; None where the exact number is not known.
        plain_wrong, stabilized_wrong: Whether the error is more than the arithmetic excuses.
    """

    label: str
    plain: np.generic
    stabilized: np.generic | None
    exact: np.generic | None
    plain_bits: float | None = None
    stabilized_bits: float | None = None
    plain_wrong: bool = False
    stabilized_wrong: bool = False


def rows_of(call: Call, plain: Results, stabilized: Results | None, exact: Exact) -> list[Row]:
    """The table of a call: its float results, then the gradient by each float leaf."""
    rows = []
    for name, got in plain.values.items():
        better = stabilized.values[name] if stabilized else None
        rows += _worst(f"value{name}", got, better, exact.values.get(name))
    for number, got in enumerate(plain.gradients):
        better = stabilized.gradients[number] if stabilized else None
        label = f"gradient by {call.leaf_names[call.float_positions[number]]}"
        rows += _worst(label, got, better, exact.gradients[number] if exact.gradients else None)
    return rows


def _worst(label: str, plain: np.ndarray, stabilized: np.ndarray | None, right: Element | None) -> list[Row]:
    """The row of the element with the largest error; a second where the stabilized program's is another."""
    if plain.size == 0:
        return []
    if right is None or not right.decided.any():
        index = _index_to_show(plain)
        return [Row(label + _written(index), plain[index], None if stabilized is None else stabilized[index], None)]
    plain_bits, plain_wrong = _judged(plain, right)
    better_bits, better_wrong = (plain_bits, plain_wrong) if stabilized is None else _judged(stabilized, right)
    first = np.unravel_index(np.argmax(np.maximum(plain_bits, better_bits)), plain.shape)
    second = np.unravel_index(np.argmax(np.where(better_wrong, 100 + better_bits, better_bits)), plain.shape)
    both = better_bits[second] > max(better_bits[first], BITS_OF_NO_INTEREST) or (
        better_wrong[second] > better_wrong[first]
    )
    rows = []
    for index in [first, second] if both else [first]:
        row = Row(label + _written(index), plain[index], None, right.exact[index], float(plain_bits[index]))
        row.plain_wrong = bool(plain_wrong[index])
        if stabilized is not None:
            row.stabilized, row.stabilized_bits = stabilized[index], float(better_bits[index])
            row.stabilized_wrong = bool(better_wrong[index])
        rows.append(row)
    return rows


def _judged(got: np.ndarray, right: Element) -> tuple[np.ndarray, np.ndarray]:
    """The bits of error of each element, -1 where the exact number is not known, and whether it is wrong.

    Wrong is an error of more than 4 ulp * (1 + condition number), and of more than six bits where the
    condition number is not known.
    """
    bits = np.where(right.decided, bits_of_error(got, right.exact.astype(got.dtype)), -1.0)
    epsilon = float(jnp.finfo(got.dtype).eps)
    with np.errstate(all="ignore"):
        size = np.abs(right.exact.astype(np.float64))
        distance = np.abs(got.astype(np.float64) - right.exact.astype(np.float64))
        excused = distance <= ULP_ALLOWED * epsilon * (size + right.sensitivity)
    excused = np.where(np.isnan(right.sensitivity), bits <= BITS_ALLOWED, excused)
    return bits, (bits > 0) & (np.isinf(bits) | ~excused)


def _index_to_show(array: np.ndarray) -> tuple[Any, ...]:
    """The first element that is not finite, else the first."""
    return tuple(np.unravel_index(np.argmin(np.isfinite(array)), array.shape))


def _written(index: tuple[Any, ...]) -> str:
    return f" at [{', '.join(str(int(i)) for i in index)}]" if index else ""
