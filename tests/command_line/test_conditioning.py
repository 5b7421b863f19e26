"""Condition numbers, and the errors that they excuse."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad.command_line.compare import Results, rows_of
from stablegrad.command_line.conditioning import condition_numbers
from stablegrad.command_line.inputs import calls_from_options
from stablegrad.command_line.truth import Exact
from stablegrad.command_line.user_file import load, public_functions

SOURCE = """\
import jax.numpy as jnp


def difference(a, b):
    return a - b


def shifted(x):
    return jnp.exp(x)


def zero(x):
    return x * 0
"""


@pytest.fixture
def calls(tmp_path: Path):
    path = tmp_path / "conditioned.py"
    path.write_text(SOURCE)
    file = load(str(path))
    given = {"a": np.float32(1000), "b": np.float32(999), "x": np.float32([1, 300])}
    return {call.name: call for call in calls_from_options(file, public_functions(file), given, None)}


def test_of_a_difference_and_of_an_exponential(calls) -> None:
    difference = condition_numbers(calls["difference"], calls["difference"].program, gradient=True)
    assert difference.values[""] == pytest.approx(1999, rel=1e-3)
    assert [g.item() for g in difference.gradients] == [0, 0]
    shifted = condition_numbers(calls["shifted"], calls["shifted"].program, gradient=True)
    assert shifted.values[""] == pytest.approx([1, 300], rel=1e-3)
    assert shifted.gradients[0] == pytest.approx([1, 300], rel=1e-3)


def test_nothing_can_be_said_of_zero(calls) -> None:
    found = condition_numbers(calls["zero"], calls["zero"].program, gradient=False)
    assert found.values[""].tolist() == [0, 0]
    assert found.gradients == []


def test_a_program_that_does_not_run_in_float64(calls) -> None:
    def fails(x):
        if x.dtype == jnp.float64:
            raise TypeError
        return x

    assert condition_numbers(calls["zero"], fails, gradient=True) is None


def row(call, factor: float, condition: float | None):
    value = {"": np.float32([1, 2])}
    exact = Exact(values=value, values_decided={"": np.array([True, True])})
    off = Results({"": value[""] * np.float32([1, factor])}, [])
    conditions = Results({"": np.full(2, condition)}, []) if condition is not None else None
    (row,) = rows_of(call, Results(value, []), off, exact, lambda: conditions)
    return row


def test_an_error_is_excused_by_the_condition_number_alone(calls) -> None:
    small, large = 1 + 2.0**-19, 1 + 2.0**-15  # 16 and 256 ulp
    assert not row(calls["zero"], small, None).stabilized_wrong
    assert row(calls["zero"], large, None).stabilized_wrong
    assert row(calls["zero"], large, 10).stabilized_wrong
    excused = row(calls["zero"], large, 100)
    assert not excused.stabilized_wrong
    assert excused.label == "value at [1]"
    assert excused.stabilized_bits == pytest.approx(8, abs=0.01)
