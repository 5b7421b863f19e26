"""The points at which every program runs: ordinary ones, and those that break a plain program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Case:
    """Logits `x`, labels `y` and soft targets `t` of two rows; `x` and `t` as rounded to the dtype."""

    name: str
    dtype: str
    x: np.ndarray
    y: np.ndarray
    t: np.ndarray

    @property
    def arguments(self) -> tuple[np.ndarray, ...]:
        return self.x, self.y, self.t

    def rows(self) -> list[list[float]]:
        return self.x.reshape(len(self.y), -1).tolist()


def _rows(*rows: tuple[list[float] | float, int, list[float]]) -> tuple:
    return tuple(list(column) for column in zip(*rows, strict=True))


# The point that breaks most programs stands last. No logit is exactly 0, where relu has no derivative.
FOUR_CLASSES = {
    "ordinary": _rows(
        ([0.3, -1.2, 2.1, 0.7], 1, [0.1, 0.2, 0.3, 0.4]),
        ([-0.4, 0.9, -2.3, 1.6], 3, [0.05, 0.15, 0.7, 0.1]),
    ),
    "wider": _rows(
        ([4.2, -3.1, 6.6, -0.3], 0, [0.25, 0.25, 0.25, 0.25]),
        ([-7.9, 5.4, 2.2, 8.1], 1, [0.0, 0.6, 0.0, 0.4]),
    ),
    "gap 200, probable label": _rows(
        ([200.0, -3.0, 1.5, 0.5], 0, [1.0, 0.0, 0.0, 0.0]),
        ([-100.0, 0.25, 100.0, 99.5], 2, [0.0, 0.0, 0.75, 0.25]),
    ),
    "gap 2000": _rows(
        ([-1000.0, 1000.0, 3.5, -0.5], 0, [0.3, 0.3, 0.2, 0.2]),
        ([2000.0, 1.0, 1999.0, -2.0], 1, [0.0, 1.0, 0.0, 0.0]),
    ),
    "ties": _rows(
        ([1.5, 1.5, 1.5, 1.5], 2, [0.1, 0.2, 0.3, 0.4]),
        ([300.0, 300.0, -300.0, 300.0], 1, [0.5, 0.5, 0.0, 0.0]),
    ),
    "confident": _rows(
        ([20.0, -0.25, 0.5, -1.0], 0, [1.0, 0.0, 0.0, 0.0]),
        ([-3.0, 1.25, 18.5, -2.0], 2, [0.0, 0.0, 1.0, 0.0]),
    ),
    "all far left": _rows(
        ([-1000.0, -1001.5, -999.25, -1003.0], 1, [0.1, 0.2, 0.3, 0.4]),
        ([-120.0, -119.0, -118.5, -125.0], 3, [0.0, 0.25, 0.25, 0.5]),
    ),
    "all far right": _rows(
        ([1000.0, 1001.5, 999.25, 1003.0], 1, [0.1, 0.2, 0.3, 0.4]),
        ([90.0, 89.0, 88.5, 95.0], 3, [0.0, 0.25, 0.25, 0.5]),
    ),
    "gap 200, improbable label": _rows(
        ([200.0, -3.0, 1.5, 0.5], 2, [0.1, 0.2, 0.3, 0.4]),
        ([-100.0, 0.25, 100.0, 99.5], 0, [0.5, 0.5, 0.0, 0.0]),
    ),
}
ONE_LOGIT = {
    "ordinary": _rows((0.3, 1, [0.4, 0.6]), (-1.7, 1, [0.9, 0.1])),
    "wider": _rows((-6.5, 0, [0.5, 0.5]), (7.25, 0, [1.0, 0.0])),
    "gap 200, probable label": _rows((200.0, 1, [0.0, 1.0]), (-199.0, 0, [1.0, 0.0])),
    "gap 2000": _rows((2000.0, 0, [0.25, 0.75]), (-2000.0, 1, [0.0, 1.0])),
    "confident": _rows((20.0, 1, [0.0, 1.0]), (-18.5, 0, [1.0, 0.0])),
    "near 0": _rows((1e-6, 1, [0.5, 0.5]), (-1e-12, 0, [0.25, 0.75])),
    "gap 200, improbable label": _rows((200.0, 0, [0.3, 0.7]), (-200.0, 1, [0.0, 1.0])),
}


def cases(binary: bool, dtype: str) -> tuple[Case, ...]:
    """The points for one logit per row, or for one per class."""
    return _CASES[binary, dtype]


def _made(table: dict[str, tuple], dtype: str) -> tuple[Case, ...]:
    return tuple(
        Case(name, dtype, np.asarray(x, dtype), np.asarray(y, np.int32), np.asarray(t, dtype))
        for name, (x, y, t) in table.items()
    )


_CASES = {
    (binary, dtype): _made(table, dtype)
    for binary, table in ((False, FOUR_CLASSES), (True, ONE_LOGIT))
    for dtype in ("float32", "float64")
}
