"""Which element is shown, and what counts as wrong."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from stablegrad.command_line.compare import Results, Row, rows_of
from stablegrad.command_line.truth import Element, Exact

CALL = SimpleNamespace(leaf_names=["x"], float_positions=[0])
NAN = math.nan


def rows(plain: list, stabilized: list | None, exact: list, sensitivity: float = NAN, decided=None) -> list[Row]:
    right = np.float32(exact)
    known = np.ones(right.shape, bool) if decided is None else np.array(decided)
    element = Element(right, known, np.full(right.shape, sensitivity))
    better = None if stabilized is None else Results({"": np.float32(stabilized)}, [])
    return rows_of(CALL, Results({"": np.float32(plain)}, []), better, Exact(values={"": element}))


@pytest.mark.parametrize(
    ("steps", "sensitivity", "wrong"),
    [
        (2**6 - 1, NAN, False),  # six bits pass where the condition number is not known
        (2**6, NAN, True),
        (4, 0, False),  # 4 ulp * (1 + 0)
        (5, 0, True),
        (4 * 11, 20, False),  # the condition number at 2 is 10
        (4 * 11 + 1, 20, True),
    ],
)
def test_what_counts_as_wrong(steps: int, sensitivity: float, wrong: bool) -> None:
    off = 2 + steps * 2.0**-22
    (row,) = rows([2], [off], [2], sensitivity)
    assert row.stabilized_wrong is wrong
    assert row.stabilized_bits == pytest.approx(math.log2(1 + steps))
    assert not row.plain_wrong
    (row,) = rows([off], [2], [2], sensitivity)
    assert row.plain_wrong is wrong


def test_an_exact_zero_is_judged_by_how_far_its_inputs_move_it() -> None:
    assert rows([0], [1e-7], [0], sensitivity=1)[0].stabilized_wrong is False
    assert rows([0], [1e-5], [0], sensitivity=1)[0].stabilized_wrong is True


@pytest.mark.parametrize("got", [NAN, math.inf, -math.inf])
def test_what_is_not_finite_is_never_excused(got: float) -> None:
    (row,) = rows([1], [got], [1], sensitivity=1e30)
    assert row.stabilized_wrong
    assert row.stabilized_bits == math.inf


def test_the_right_infinity_and_the_right_nan_are_right() -> None:
    for right in (NAN, math.inf, -math.inf):
        (row,) = rows([right], [right], [right])
        assert row.plain_bits == row.stabilized_bits == 0
        assert not row.plain_wrong


def test_the_worst_element_is_shown() -> None:
    (row,) = rows([1, 2, NAN], [1, 2, 3], [1, 2.5, 3])[:1]
    assert row.label == "value at [2]"
    _, second = rows([1, 2, NAN], [1, 2, 3], [1, 2.5, 3])
    assert second.label == "value at [1]"
    assert second.stabilized_wrong


def test_only_what_is_decided_is_judged() -> None:
    (row,) = rows([NAN, 2], [NAN, 2], [1, 2], decided=[False, True])
    assert row.label == "value at [1]"
    assert row.stabilized_bits == 0
    (row,) = rows([1, NAN], [1, 2], [1, 2], decided=[False, False])
    assert (row.label, row.exact, row.plain_bits) == ("value at [1]", None, None)


def test_without_a_stabilized_program() -> None:
    (row,) = rows([NAN], None, [1])
    assert row.stabilized is None
    assert row.plain_wrong
    assert not row.stabilized_wrong


def test_scalars_and_empty_arrays() -> None:
    assert rows(1, 1, 1)[0].label == "value"
    assert rows([], [], []) == []
