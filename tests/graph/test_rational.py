"""Coefficients are exact, and ints where they are whole."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablegrad.graph.rational import integer_power, quotient, rational


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_taken_exactly(value):
    exact = rational(value)
    assert exact == Fraction(value)
    assert isinstance(exact, int) == (Fraction(value).denominator == 1)


@given(st.fractions(), st.fractions().filter(bool))
def test_quotients_are_exact(a, b):
    assert quotient(a, b) == a / b
    assert isinstance(quotient(a, b), int) == ((a / b).denominator == 1)


@pytest.mark.parametrize(
    "a, n, power", [(2, 10, 1024), (2, -1, Fraction(1, 2)), (Fraction(1, 2), -3, 8), (-3, 3, -27), (5, 0, 1)]
)
def test_powers_are_exact(a, n, power):
    assert integer_power(a, n) == power
    assert isinstance(integer_power(a, n), type(power))


def test_no_quotient_by_zero():
    with pytest.raises(ZeroDivisionError):
        quotient(1, 0)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_no_number_has_no_exact_value(value):
    with pytest.raises((OverflowError, ValueError)):
        rational(value)


FLOATS = st.floats(-1e6, 1e6).map(Fraction)


@given(*[st.one_of(st.fractions(), FLOATS)] * 2)
def test_arithmetic_is_that_of_fractions(a, b):
    x, y = rational(a), rational(b)
    for result, right in ((x + y, a + b), (x - y, a - b), (x * y, a * b), (-x, -a), (x + b, a + b), (a * y, a * b)):
        assert result == right and hash(result) == hash(right)
    assert (x < y, x > y, x == y, bool(x)) == (a < b, a > b, a == b, bool(a))
    assert (x < 0, x > 0, x == 1) == (a < 0, a > 0, a == 1)


@given(*[st.one_of(st.fractions(), FLOATS)] * 2)
def test_whole_results_are_ints(a, b):
    x, y = rational(a), rational(b)
    assert all(isinstance(k, int) == (k.denominator == 1) for k in (x + y, x - y, x * y, -x, 2 * x, x - 1))
