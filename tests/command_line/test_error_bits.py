"""Distances in bits."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablegrad.command_line.error_bits import bits_of_error


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32, np.float64])
def test_one_step_is_one_bit(dtype) -> None:
    x = np.array([1, 1.5, -3, 100], dtype)
    assert bits_of_error(x, x).tolist() == [0, 0, 0, 0]
    assert bits_of_error(np.nextafter(x, np.array(1e4, dtype)), x).tolist() == [1, 1, 1, 1]


def test_what_is_not_finite() -> None:
    inf, nan = np.inf, np.nan
    got = np.float32([nan, inf, -inf, nan, 1, inf, inf, nan])
    exact = np.float32([nan, inf, -inf, 1, nan, -inf, 3e38, inf])
    assert bits_of_error(got, exact).tolist() == [0, 0, 0, inf, inf, inf, inf, inf]


def test_what_is_below_the_normal_numbers_is_no_error() -> None:
    got, exact = np.float32([0, -0.0, 1e-40, 0]), np.float32([1e-40, 0, -1e-39, 1e-37])
    bits = bits_of_error(got, exact)
    assert bits[:3].tolist() == [0, 0, 0]
    assert bits[3] > 20


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_symmetric_and_bounded(a: float, b: float) -> None:
    x, y = np.float32([a]), np.float32([b])
    assert bits_of_error(x, y) == bits_of_error(y, x)
    assert bits_of_error(x, y)[0] <= 32 or not np.isfinite([a, b]).all()
    assert (bits_of_error(x, y)[0] == 0) == (a == b or abs(a - b) <= np.finfo(np.float32).tiny)
