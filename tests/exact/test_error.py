"""Distances in ulp and the contract's bound."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablegrad.exact.error import bits_of_error, smallest_normal, ulp, ulp_distance, within_contract

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
DTYPE_IDS = [np.dtype(d).name for d in DTYPES]


def neighbour(x, steps):
    """The float `steps` above x > 0, by counting its bit pattern."""
    width = x.dtype.itemsize
    return (x.view(f"i{width}") + np.asarray(steps, f"i{width}")).view(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=DTYPE_IDS)
@given(value=st.floats(2.0**-13, 6e4), steps=st.integers(0, 50))
def test_steps_are_counted(dtype, value, steps):
    x = np.asarray(value, np.float64).astype(dtype)
    assert ulp_distance(x, neighbour(x, steps)) == steps
    assert ulp_distance(-x, -neighbour(x, steps)) == steps
    assert bits_of_error(neighbour(x, steps), x) == np.log2(1.0 + steps)


@pytest.mark.parametrize("dtype", DTYPES, ids=DTYPE_IDS)
def test_across_zero(dtype):
    least = neighbour(np.asarray(0.0, dtype), 1)
    assert ulp_distance(least, -least) == 2
    assert ulp_distance(np.asarray(0.0, dtype), np.asarray(-0.0, dtype)) == 0


def test_the_longest_way():
    largest = np.asarray(np.finfo(np.float64).max)
    assert ulp_distance(largest, -largest) == pytest.approx(2.0**64, rel=0.01)


@pytest.mark.parametrize("dtype", DTYPES, ids=DTYPE_IDS)
def test_nan_and_infinity(dtype):
    numbers = np.asarray([np.nan, np.inf, -np.inf, 1.0], np.float64).astype(dtype)
    table = ulp_distance(numbers[:, None], numbers[None, :])
    assert np.array_equal(np.diag(table), np.zeros(4))
    assert np.all(np.isinf(table[~np.eye(4, dtype=bool)]))


def test_flushed_subnormals():
    tiny = np.float32(smallest_normal(np.float32))
    assert ulp_distance(np.float32(0), tiny / 2, flush=True) == 0
    assert ulp_distance(np.float32(0), tiny / 2) > 1e6
    assert ulp_distance(np.float32(0), tiny * 2, flush=True) > 1e6
    assert ulp_distance(tiny * 4, tiny / 2, flush=True) > 1e6


def test_two_dtypes_are_refused():
    with pytest.raises(TypeError, match="cast first"):
        ulp_distance(np.float32(1), np.float64(1))


@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_ulp_is_the_spacing(dtype, value):
    with np.errstate(over="ignore"):
        x = np.abs(np.float64(value).astype(dtype))
    if np.isfinite(x) and x < np.finfo(dtype).max:
        assert ulp(x, dtype) == float(np.spacing(x))


def test_the_bound_grows_with_the_condition():
    exact = np.float32(1.0)
    got = neighbour(exact, 40)
    assert not within_contract(got, exact, 0.0, np.float32)
    assert within_contract(got, exact, 9.0, np.float32)
    assert within_contract(got, exact, np.nan, np.float32) == within_contract(got, exact, 0.0, np.float32)
    assert within_contract(np.float32(123), exact, np.inf, np.float32)


def test_at_an_exact_zero_the_sensitivity_bounds():
    assert within_contract(np.float32(1e-7), 0.0, np.inf, np.float32, sensitivity=1.0)
    assert not within_contract(np.float32(1e-6), 0.0, np.inf, np.float32, sensitivity=1.0)


def test_below_the_smallest_normal():
    tiny = smallest_normal(np.float32)
    exact = np.asarray([tiny / 3, tiny / 3, tiny / 3, tiny * 3])
    got = np.asarray([0.0, tiny, tiny * 2, 0.0])
    assert within_contract(got, exact, 0.0, np.float32).tolist() == [True, True, False, False]


def test_the_same_kind_of_number_is_needed():
    exact = np.asarray([np.nan, np.inf, -np.inf, 1.0, np.inf])
    got = np.asarray([np.nan, np.inf, np.inf, np.nan, 3e38])
    assert within_contract(got, exact, 10.0, np.float32).tolist() == [True, True, False, False, False]


def test_an_overflow_beside_the_largest_number():
    largest = float(np.finfo(np.float32).max)
    assert within_contract(np.inf, largest, 0.0, np.float32)
    assert not within_contract(np.inf, largest / 2, 0.0, np.float32)
    assert not within_contract(-np.inf, largest, 0.0, np.float32)
