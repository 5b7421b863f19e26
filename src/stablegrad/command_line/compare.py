"""The rows of the table: where the plain and the stabilized results are furthest from the exact ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stablegrad.command_line.call import Call
from stablegrad.command_line.error_bits import bits_of_error
from stablegrad.command_line.truth import Exact

# Six bits are 63 ulp: what passes without a look at the condition number.
BITS_ALLOWED = 6.0
# What passes at a point, in ulp, is this times one more than the condition number there.
ULP_ALLOWED = 4


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


def rows_of(
    call: Call,
    plain: Results,
    stabilized: Results | None,
    exact: Exact,
    conditions: Callable[[], Results | None],
) -> list[Row]:
    """The table of a call: its float results, then the gradient by each float leaf.

    Args:
        call: The call.
        plain, stabilized: What the two programs gave; `stabilized` is None when there is none.
        exact: What is known exactly.
        conditions: Gives the condition numbers; asked only when an error needs an excuse.
    """
    rows = []
    for name, got in plain.values.items():
        better = stabilized.values[name] if stabilized else None
        right, decided = exact.values.get(name), exact.values_decided.get(name)

        def of_value(name: str = name) -> np.ndarray | None:
            found = conditions()
            return found.values[name] if found else None

        rows += _worst(f"value{name}", got, better, right, decided, of_value)
    for number, got in enumerate(plain.gradients):
        better = stabilized.gradients[number] if stabilized else None
        right = exact.gradients[number].reshape(got.shape) if exact.gradients else None
        decided = exact.gradients_decided[number].reshape(got.shape) if exact.gradients else None

        def of_gradient(number: int = number) -> np.ndarray | None:
            found = conditions()
            return found.gradients[number] if found else None

        label = f"gradient by {call.leaf_names[call.float_positions[number]]}"
        rows += _worst(label, got, better, right, decided, of_gradient)
    return rows


def _worst(
    label: str,
    plain: np.ndarray,
    stabilized: np.ndarray | None,
    exact: np.ndarray | None,
    decided: np.ndarray | None,
    condition: Callable[[], np.ndarray | None],
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
    plain_bits = np.where(decided, bits_of_error(plain, exact.astype(plain.dtype)), -1.0)
    better_bits = plain_bits
    if stabilized is not None:
        better_bits = np.where(decided, bits_of_error(stabilized, exact.astype(stabilized.dtype)), -1.0)
    allowed = np.full(plain.shape, BITS_ALLOWED)
    worst = np.maximum(plain_bits, better_bits)
    if ((worst > allowed) & np.isfinite(worst)).any():
        numbers = condition()
        if numbers is not None:
            allowed = np.maximum(allowed, np.log2(1 + ULP_ALLOWED * (1 + numbers)))
    first = np.unravel_index(np.argmax(worst), plain.shape)
    second = np.unravel_index(np.argmax(better_bits + 100 * (better_bits > allowed)), plain.shape)
    more = (
        better_bits[second] > better_bits[first] + 1
        or (better_bits > allowed)[second] > (better_bits > allowed)[first]
    )
    rows = []
    for index in [first, second] if more else [first]:
        row = Row(label + _written(index), plain[index], None, exact[index], float(plain_bits[index]))
        row.plain_wrong = bool(plain_bits[index] > allowed[index])
        if stabilized is not None:
            row.stabilized, row.stabilized_bits = stabilized[index], float(better_bits[index])
            row.stabilized_wrong = bool(better_bits[index] > allowed[index])
        rows.append(row)
    return rows


def _index_to_show(array: np.ndarray) -> tuple[Any, ...]:
    """The first element that is not finite, else the first."""
    return tuple(np.unravel_index(np.argmin(np.isfinite(array)), array.shape))


def _written(index: tuple[Any, ...]) -> str:
    return f" at [{', '.join(str(int(i)) for i in index)}]" if index else ""
