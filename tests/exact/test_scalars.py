"""Scalars: exact rationals stay exact, and infinities follow IEEE but for 0 * log(0)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from stablegrad.exact import powers
from stablegrad.exact import scalars as s
from stablegrad.exact.scalars import Infinity, Undefined

floats = st.floats(width=32)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(192):
        yield


def as_float(a):
    if type(a) is Undefined:
        return math.nan
    if type(a) is Infinity:
        return a.sign * math.inf
    return float(Fraction(int(a.p), int(a.q))) if type(a) is fmpq else float(a)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@given(floats, floats)
def test_special_values_are_those_of_ieee(name, x, y):
    """Where IEEE gives NaN or an infinity without overflow, so do we; finite results are exact."""
    a, b = s.from_float(x), s.from_float(y)
    with np.errstate(all="ignore"):
        right = float({"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](x, y))
    found = getattr(s, name)(a, b)
    if math.isnan(right):
        assert type(found) is Undefined
    elif math.isinf(right):
        assert found.sign == math.copysign(1, right) if type(found) is Infinity else abs(as_float(found)) > 1e300
    else:
        assert as_float(found) == pytest.approx(right, rel=1e-12, abs=1e-300)


def test_cancellation_is_exact():
    a, b = s.from_float(0.1), s.from_float(1e300)
    assert s.sub(s.sub(s.add(a, b), b), a) == 0
    assert s.is_zero(s.mul(s.ZERO, arb.pi()))


def test_zero_times_log_of_zero():
    assert s.mul(s.ZERO, s.LOG_ZERO) == 0
    assert s.mul(s.ZERO, s.add(s.LOG_ZERO, fmpq(3))) == 0
    assert s.mul(s.ZERO, Infinity(1, "data")).kind == "singular"


def test_the_sign_of_zero():
    minus = s.from_float(-0.0)
    assert minus is s.NEGATIVE_ZERO and s.neg(minus) is s.ZERO
    assert s.div(s.ONE, minus).sign == -1 and s.div(s.ONE, s.mul(minus, fmpq(-2))).sign == 1


def test_one_and_the_same_number():
    x = arb.pi()
    assert s.sub(x, x) is s.ZERO and s.div(x, x) is s.ONE and s.compare(x, x) == 0
    assert type(s.compare(arb(1).exp().log(), s.ONE)) is Undefined


def test_powers():
    assert powers.power(s.ZERO, s.ZERO) == 1 and powers.power(s.ZERO, s.HALF) == 0
    assert powers.power(s.ZERO, s.MINUS_ONE).sign == 1
    assert powers.power(fmpq(4, 9), s.HALF) == fmpq(2, 3)
    assert powers.power(fmpq(-2), fmpq(3)) == -8
    assert powers.power(fmpq(-2), s.HALF).kind == "nan"
    assert powers.power(Infinity(-1, "data"), fmpq(3)).sign == -1
    assert powers.power(fmpq(1, 2), Infinity(1, "data")) == 0
    assert powers.power(fmpq(2), Infinity(1, "data")).sign == 1


@given(st.integers(0, 10**30), st.integers(1, 10**30), st.sampled_from([2, 3, 5]))
def test_rational_roots(p, q, n):
    root = powers.rational_root(fmpq(p, q) ** n, n)
    assert root == fmpq(p, q)
    assert powers.rational_root(fmpq(p, q) ** n + 1, n) is None or p == 0


def test_huge_rationals_become_balls():
    x = fmpq(2**10_000 + 1)
    assert type(s.mul(x, x)) is arb


def test_an_undefined_value_is_no_truth_value():
    with pytest.raises(TypeError, match="truth value"):
        bool(s.BEYOND)
    assert s.add(s.BEYOND, s.NOT_A_NUMBER).kind == "nan"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_taken_exactly(x):
    assert as_float(s.from_float(x)) == x
