"""The expression language of --input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablegrad.command_line.array_expression import ExpressionError, evaluate


def value(text: str, seed: int = 0):
    return evaluate(text, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        ("-2.5", -2.5),
        ("True", True),
        ("2 + 3 * 4 - 6 / 3", 12.0),
        ("2 ** -1", 0.5),
        ("-2 ** 2", -4.0),
        ("+(1 - 4)", -3),
        ("pi", math.pi),
        ("-inf", -math.inf),
        ("[1, 2, 3]", [1, 2, 3]),
        ("[[0, 1], [1, 0]] * 0.5", [[0, 0.5], [0.5, 0]]),
        ("zeros(2, 3) + 1", np.ones((2, 3))),
        ("ones((2, 3))", np.ones((2, 3))),
        ("full(3, -1e3)", [-1e3, -1e3, -1e3]),
        ("full((2, 1), 7)", [[7], [7]]),
        ("arange(3)", [0, 1, 2]),
        ("arange(1, 4)", [1, 2, 3]),
        ("arange(0, 1, 0.25)", [0, 0.25, 0.5, 0.75]),
        ("linspace(-1, 1, 5)", [-1, -0.5, 0, 0.5, 1]),
        ("one_hot(2, 0, 3)", [[0, 0, 1], [1, 0, 0]]),
        ("one_hot([1, 1], 2)", [[0, 1], [0, 1]]),
        ("one_hot(arange(2), 2)", [[1, 0], [0, 1]]),
        ("exp([0, 1])", np.exp([0, 1])),
        ("1 / zeros(1)", [math.inf]),
        ("10 ** 400", math.inf),
    ],
)
def test_value(text: str, expected) -> None:
    got = value(text)
    np.testing.assert_array_equal(got, expected)
    assert np.shape(got) == np.shape(expected)


def test_integers_stay_integers() -> None:
    assert value("arange(3) * 2").dtype == np.int64
    assert isinstance(value("3"), int)
    assert value("zeros(2)").dtype == np.float64


def test_random_numbers_follow_the_seed() -> None:
    assert np.array_equal(value("normal(4, 5)", 1), value("normal(4, 5)", 1))
    assert not np.array_equal(value("normal(4, 5)", 1), value("normal(4, 5)", 2))
    assert np.array_equal(value("normal(32, 10) * 1e3"), np.random.default_rng(0).standard_normal((32, 10)) * 1e3)
    drawn = value("uniform(1000)")
    assert drawn.min() >= 0
    assert drawn.max() < 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not an expression"),
        ("1 +", "not an expression"),
        ("x", "unknown name 'x' at column 1; known: pi"),
        ("sin(1)", "unknown function 'sin'; known: normal"),
        ("__import__('os').system('true')", "is not part of this language"),
        ("np.zeros(3)", "is not part of this language; write zeros alone, without a module"),
        ("math.pi", "write pi alone"),
        ("exp.__class__", "'exp.__class__' at column 1 is not part"),
        ("(lambda: 1)()", "is not part"),
        ("[i for i in [1]]", "is not part"),
        ("'text'", "is not part"),
        ("1 if 1 else 2", "is not part"),
        ("ones(2) @ ones(2)", "is not part"),
        ("exp(x=1)", "is not part of this language; give exp its arguments by position"),
        ("exp(*[1])", "is not part"),
        ("1 < 2", "is not part of this language; it has numbers, lists, + - * / **, pi, e, inf, nan, normal"),
        ("normal(1.5)", "1.5 is no integer"),
        ("normal(-1)", "negative size"),
        ("normal(inf)", "no integer"),
        ("normal([1, 2])", "no integer"),
        ("zeros(10**5, 10**5)", "more than 10000000 elements"),
        ("arange(1e9)", "more than 10000000 elements"),
        ("arange(1, 2, 0)", "arange does not take"),
        ("linspace(0, 1)", "linspace does not take"),
        ("ones(4000, 1) * ones(1, 4000)", "more than 10000000 elements"),
        ("one_hot(3, 3)", "an index outside 0 to 2"),
        ("exp(1, 2)", "exp does not take"),
        ("[1, [2, 3]]", "differ in shape"),
        ("[(1, 2)]", "a tuple in the list"),
        ("(1, 2) + 1", "a shape"),
        ("ones(2) + ones(3)", "do not fit together"),
        ("1" + "0" * 30, "too large"),
        ("(" * 2000 + "1" + ")" * 2000, "not an expression"),
    ],
)
def test_what_is_not_of_the_language(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)
    assert message in str(caught.value)


@given(st.text(alphabet="0123456789.e+-*/()[], xnormalhtf_", max_size=20))
def test_every_text_gives_a_number_or_one_error(text: str) -> None:
    try:
        result = value(text)
    except ExpressionError:
        return
    assert np.asarray(result).dtype.kind in "biuf"
