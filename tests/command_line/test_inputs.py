"""Inputs become arguments: types, structure, and which functions get them."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad.command_line.inputs import (
    calls_from_examples,
    calls_from_options,
    converted,
    read_expressions,
)
from stablegrad.command_line.user_file import load, public_functions


class Pair(NamedTuple):
    a: object
    b: object


def test_floats_and_lists_become_arrays_and_settings_stay() -> None:
    for value in (1.5, [1.5, 2], [[1], [2]], np.float64(2), np.ones(3), jnp.ones(3)):
        assert isinstance(converted(value, None), np.ndarray | np.generic)
    for value in (3, True, "mean", None, jnp.exp):
        assert converted(value, None) is value


def test_types() -> None:
    assert converted(1.5, None).dtype == np.float32
    assert converted(np.ones(2), None).dtype == np.float32
    assert converted(np.ones(2, np.float16), None).dtype == np.float16
    assert converted(jnp.ones(2, jnp.bfloat16), None).dtype == jnp.bfloat16
    assert converted([1, 2], None).dtype == np.int32
    assert converted(np.array([True]), np.dtype("float32")).dtype == bool
    assert converted(np.ones(2, np.float16), np.dtype("float32")).dtype == np.float32
    assert converted(jax.random.key(0), None).dtype == jax.random.key(0).dtype
    with jax.enable_x64(True):
        assert converted(np.ones(2, np.float32), np.dtype("float64")).dtype == np.float64
        assert converted([1, 2], None).dtype == np.int64


def test_structure_stays() -> None:
    got = converted({"layers": [([1.0], 2), Pair([3.0], "x")], "ragged": [[1.0], [1.0, 2.0]]}, None)
    assert isinstance(got["layers"], list)
    assert got["layers"][0][1] == 2
    assert isinstance(got["layers"][1], Pair)
    assert got["layers"][1].b == "x"
    assert [part.shape for part in got["ragged"]] == [(1,), (2,)]


SOURCE = """\
def loss(x, y, *, scale=1.0, mode="mean"):
    return x


def only(x, /):
    return x


def no_arguments():
    return 1.0


EXAMPLES = {
    "loss": [{"x": 1.0, "y": [2, 3]}, (1.0, 2.0)],
    "only": (1.0,),
    "no_arguments": (),
}
"""


@pytest.fixture
def file(tmp_path: Path):
    path = tmp_path / "inputs_to_fit.py"
    path.write_text(SOURCE)
    return load(str(path))


def test_examples(file) -> None:
    calls = calls_from_examples(file, public_functions(file), None)
    assert [(call.name, call.label) for call in calls] == [
        ("loss", "example 1 of 2"),
        ("loss", "example 2 of 2"),
        ("only", ""),
        ("no_arguments", ""),
    ]
    assert calls[0].leaf_names == ["x", "y"]
    assert calls[0].float_positions == [0]
    assert calls[0].check() == [""]


def test_options_go_to_each_function_that_they_suffice_for(file) -> None:
    functions = public_functions(file)
    assert [c.name for c in calls_from_options(file, functions, {"x": 1.0}, None)] == ["only"]
    both = calls_from_options(file, functions, {"x": 1.0, "y": 2.0, "scale": np.ones(2), "extra": 1.0}, None)
    assert [c.name for c in both] == ["loss", "only"]
    assert both[0].leaf_names == ["x", "y", "scale"]


def test_expressions() -> None:
    given = read_expressions(["x = normal(2, 3) * 1e3", "n=3"], seed=5)
    assert np.array_equal(given["x"], np.random.default_rng(5).standard_normal((2, 3)) * 1e3)
    assert given["n"] == 3
