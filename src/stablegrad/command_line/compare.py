"""The rows of the table: where the plain and the stabilized results are furthest from the exact ones."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stablegrad.command_line.call import Call
from stablegrad.command_line.error_bits import bits_of_error
from stablegrad.command_line.truth import Exact

# Six bits are 63 ulp: what passes where the condition number is not known.
BITS_ALLOWED = 6.0


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
        right, decided = exact.values.get(name), exact.values_decided.get(name)
        rows += _worst(f"value{name}", got, better, right, decided, _condition(call, got, right, exact))
    for number, got in enumerate(plain.gradients):
        better = stabilized.gradients[number] if stabilized else None
        right = exact.gradients[number].reshape(got.shape) if exact.gradients else None
        decided = exact.gradients_decided[number].reshape(got.shape) if exact.gradients else None
        label = f"gradient by {call.leaf_names[call.float_positions[number]]}"
        rows += _worst(label, got, better, right, decided, 0.0)
    return rows


def _condition(call: Call, got: np.ndarray, right: np.ndarray | None, exact: Exact) -> float:
    """The condition number of a lone scalar result, sum |x df/dx| / |f|; 0 when it cannot be told."""
    if right is None or got.size != 1 or len(exact.values) != 1:
        return 0.0
    floats = [np.ravel(np.asarray(call.leaves[position], np.float64)) for position in call.float_positions]
    with np.errstate(all="ignore"):
        terms = sum(float(np.nansum(np.abs(x * g))) for x, g in zip(floats, exact.gradients, strict=False))
        condition = terms / abs(float(right.ravel()[0]))
    return condition if math.isfinite(condition) else 0.0


def _worst(
    label: str,
    plain: np.ndarray,
    stabilized: np.ndarray | None,
    exact: np.ndarray | None,
    decided: np.ndarray | None,
    condition: float,
) -> list[Row]:
    """The row of the element with the largest error; a second where the stabilized program's is another."""
    if plain.size == 0:
        return []
    if exact is None or decided is None or not decided.any():
        index = _index_to_show(plain)
        return [
            Row(
                label + _written(index), plain[index], None if stabilized is None else stabilized[index], None
            )
        ]
    allowed = max(BITS_ALLOWED, math.log2(1 + 4 * (1 + condition)))
    plain_bits = np.where(decided, bits_of_error(plain, exact), -1.0)
    better_bits = (
        plain_bits if stabilized is None else np.where(decided, bits_of_error(stabilized, exact), -1.0)
    )
    first = np.unravel_index(np.argmax(np.maximum(plain_bits, better_bits)), plain.shape)
    second = np.unravel_index(np.argmax(better_bits), plain.shape)
    rows = []
    for index in [first] if better_bits[second] <= better_bits[first] + 1 else [first, second]:
        row = Row(label + _written(index), plain[index], None, exact[index], float(plain_bits[index]))
        row.plain_wrong = bool(plain_bits[index] > allowed)
        if stabilized is not None:
            row.stabilized, row.stabilized_bits = stabilized[index], float(better_bits[index])
            row.stabilized_wrong = bool(better_bits[index] > allowed)
        rows.append(row)
    return rows


def _index_to_show(array: np.ndarray) -> tuple[Any, ...]:
    """The first element that is not finite, else the first."""
    return tuple(np.unravel_index(np.argmin(np.isfinite(array)), array.shape))


def _written(index: tuple[Any, ...]) -> str:
    return f" at [{', '.join(str(int(i)) for i in index)}]" if index else ""
