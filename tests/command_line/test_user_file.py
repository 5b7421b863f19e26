"""Finding functions, and lines, in a person's file."""

import functools
from pathlib import Path

import pytest

from stablegrad.command_line.errors import InputError
from stablegrad.command_line.user_file import load, named_function, public_functions

SOURCE = """\
import functools
from math import sqrt

import jax
import jax.numpy as jnp


@jax.jit
def jitted(x):
    return x


def later(x):
    return helper(x)


def _private(x):
    return x


class Model:
    @staticmethod
    def loss(x):
        return x


short = lambda x: x
bound = functools.partial(later)
log = jnp.log
number = 3

EXAMPLES = {
    "later": (1.0,),
    "short": (2.0,),
}
"""


@pytest.fixture
def file(tmp_path: Path):
    path = tmp_path / "several_functions.py"
    path.write_text(SOURCE)
    return load(str(path))


def test_public_functions_are_those_of_the_file(file) -> None:
    assert list(public_functions(file)) == ["jitted", "later", "short", "bound"]


def test_named_function(file) -> None:
    assert named_function(file, "Model.loss")(3) == 3
    assert isinstance(named_function(file, "bound"), functools.partial)
    assert named_function(file, "_private")(1) == 1


def test_lines(file) -> None:
    assert file.line_of("later") == 13
    assert file.line_of("number") == 30
    assert file.line_of("missing") is None
    assert file.line_in_mapping("EXAMPLES", "short") == 34
    assert file.line_in_mapping("EXAMPLES", "missing") == 32


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no function 'missing' here; the functions are: jitted, later, short, bound"),
        ("Model", "'Model' is a class, not a function"),
        ("number", "'number' is of type int, not a function"),
    ],
)
def test_what_is_no_function(file, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        named_function(file, name)
    assert caught.value.message == message
    assert caught.value.file == file.name


def test_a_file_can_import_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "stablegrad_test_neighbour.py").write_text("def f(x):\n    return x\n")
    path = tmp_path / "imports_neighbour.py"
    path.write_text("from stablegrad_test_neighbour import f\n\n\ndef g(x):\n    return f(x)\n")
    assert list(public_functions(load(str(path)))) == ["g"]


def test_a_line_is_found_through_a_neighbour_and_a_cause(tmp_path: Path) -> None:
    path = tmp_path / "raises_from.py"
    path.write_text(
        """\
def f():
    try:
        int("x")
    except ValueError as error:
        raise KeyError from error
"""
    )
    file = load(str(path))
    with pytest.raises(KeyError) as caught:
        file.module.f()
    assert file.line_of_error(caught.value) == 5
