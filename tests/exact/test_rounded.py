"""Rounding to a dtype, against NumPy and ml_dtypes; functions with jumps."""

import math

import ml_dtypes
import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from stablegrad.exact import scalars as s
from stablegrad.exact.rounded import ends, float_format, round_scalar, to_float

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite)
def test_a_float64_rounds_as_numpy_does(value):
    exact = s.from_float(value)
    for dtype in DTYPES:
        with np.errstate(over="ignore"):
            right = float(np.float64(value).astype(dtype))
        assert to_float(exact, dtype) == (right, True)


@given(finite, finite)
def test_a_quotient_rounds_as_ieee_does(a, b):
    if b:
        with np.errstate(over="ignore", under="ignore"):
            right = float(np.float64(a) / np.float64(b))
        assert to_float(fmpq(*a.as_integer_ratio()) / fmpq(*b.as_integer_ratio()), np.float64)[0] == right


@given(finite, st.integers(30, 200))
def test_a_ball_is_decided_only_where_its_ends_agree(value, bits):
    with ctx.workprec(256):
        middle = arb(fmpq(*value.as_integer_ratio()))
        ball = middle + arb(0, abs(middle.upper()) * arb(2) ** -bits)
        low, high = ends(ball)
        for dtype in DTYPES:
            number, certain = to_float(ball, dtype)
            agree = to_float(low, dtype)[0] == to_float(high, dtype)[0]
            assert certain or not agree
            if certain and bits < float_format(dtype).digits + 20:
                assert agree and number == to_float(low, dtype)[0]


def test_ties_go_to_even():
    one = fmpq(1)
    assert to_float(one + fmpq(1, 2**24), np.float32)[0] == 1.0
    assert to_float(one + fmpq(3, 2**24), np.float32)[0] == float(np.float32(1 + 2**-22))


def test_the_ends_of_the_range():
    largest = float(np.finfo(np.float32).max)
    half = fmpq(2) ** 103
    assert to_float(s.from_float(largest) + half, np.float32)[0] == math.inf
    assert to_float(s.from_float(largest) + half - 1, np.float32)[0] == largest
    assert to_float(fmpq(1, 2**150), np.float32)[0] == 0.0
    assert to_float(fmpq(3, 2**151), np.float32)[0] == 2.0**-149
    with ctx.workprec(100):
        assert to_float(arb(10).exp().exp(), np.float32) == (math.inf, True)
        assert to_float(arb(0, 1e-60), np.float32) == (0.0, True)
        assert to_float(arb(0, 1e-30), np.float32)[1] is False


def test_undefined_values():
    number, certain = to_float(s.NOT_A_NUMBER, np.float32)
    assert math.isnan(number) and certain
    number, certain = to_float(s.BEYOND, np.float32)
    assert math.isnan(number) and not certain


@given(st.floats(-1e6, 1e6), st.sampled_from(["floor", "ceil", "trunc", "nearest_even", "sign"]))
def test_jumps_as_numpy_has_them(value, how):
    right = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "nearest_even": np.rint, "sign": np.sign}[how]
    assert round_scalar(how, s.from_float(value)) == fmpq(int(right(value)))


def test_half_away_from_zero():
    assert [round_scalar("nearest_away", fmpq(n, 2)) for n in (-3, -1, 1, 3)] == [-2, -1, 1, 2]


@pytest.mark.parametrize("how", ["floor", "sign"])
def test_a_ball_over_a_jump_is_not_decided(how):
    with ctx.workprec(100):
        assert round_scalar(how, arb(0, 1e-20)) is s.BEYOND
        assert round_scalar(how, arb(1.5)) == 1


def test_a_ball_far_out_of_range():
    """Its ends are not written as rationals of 10^13 digits; and it is undecided only where it must be."""
    far = arb(2) ** (arb(2) ** 40)
    around = arb(0, 1) * far  # from -far to far
    value, certain = to_float(around, np.float32)
    assert not certain and np.isfinite(value)
    assert to_float(far, np.float32) == (np.inf, True)
    assert to_float(1 / far, np.float32) == (0.0, True)
