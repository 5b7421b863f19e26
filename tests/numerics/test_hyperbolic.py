"""Inverse hyperbolic functions, near the points where the textbook forms cancel and far out."""

import math

import mpmath
import numpy as np
import pytest

from numerics.reference import DTYPES, assert_edges, assert_elementwise, grid
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan


def line(random):
    size = np.concatenate([np.exp(random.uniform(-80, 40, 48)), random.uniform(0, 4, 44), [1.0, 0.4, 1e38, 3e38]])
    return size * random.choice([-1, 1], 96)


@pytest.mark.parametrize("dtype", DTYPES)
def test_asinh(dtype):
    assert_elementwise(
        numerics.asinh,
        mpmath.asinh,
        [lambda x: 1 / mpmath.sqrt(1 + x**2)],
        [[lambda x: -x / (1 + x**2) ** 1.5]],
        grid(dtype, line),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_acosh(dtype):
    def right_of_one(random):
        smallest = 2.0 ** -(22 if dtype == "float32" else 50)
        near = 1 + np.exp(random.uniform(math.log(smallest), 1, 60))
        return np.concatenate([near, np.exp(random.uniform(0.1, 80, 34)), [1e38, 3e38]])

    assert_elementwise(
        numerics.acosh,
        mpmath.acosh,
        [lambda x: 1 / mpmath.sqrt(x**2 - 1)],
        [[lambda x: -x / (x**2 - 1) ** 1.5]],
        grid(dtype, right_of_one),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_atanh(dtype):
    def inside(random):
        small = np.exp(random.uniform(-60, 0, 40))
        near = 1 - np.exp(random.uniform(-12, -1, 32))
        return np.concatenate([small, near, np.linspace(0.25, 0.45, 24)]) * random.choice([-1, 1], 96)

    assert_elementwise(
        numerics.atanh,
        mpmath.atanh,
        [lambda x: 1 / (1 - x**2)],
        [[lambda x: 2 * x / (1 - x**2) ** 2]],
        grid(dtype, inside),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_edges(dtype):
    assert_edges(
        numerics.asinh,
        [((0.0,), 0, [1]), ((INF,), INF, [0]), ((-INF,), -INF, [0]), ((NAN,), NAN, [NAN])],
        dtype,
    )
    assert_edges(
        numerics.acosh,
        [((1.0,), 0, [INF]), ((INF,), INF, [0]), ((0.5,), NAN, [NAN]), ((NAN,), NAN, [NAN])],
        dtype,
    )
    assert_edges(
        numerics.atanh,
        [
            ((0.0,), 0, [1]),
            ((1.0,), INF, [INF]),
            ((-1.0,), -INF, [INF]),
            ((2.0,), NAN, [NAN]),
            ((NAN,), NAN, [NAN]),
        ],
        dtype,
    )
