"""log_erfc and log_ndtr in both tails."""

import math

import jax
import mpmath
import numpy as np
import pytest
from mpmath import erfc

from numerics.reference import DTYPES, assert_edges, assert_elementwise, grid, same
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan


def line(random):
    small = np.exp(random.uniform(-30, 0, 16)) * random.choice([-1, 1], 16)
    return np.concatenate(
        [random.uniform(-8, 12, 44), np.exp(random.uniform(1, 9, 16)), small, np.linspace(-1.6, 1.6, 20)]
    )


def hazard(x):
    return 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(x**2)) / erfc(x)


def hazard_slope(x):
    return hazard(x) * (hazard(x) - 2 * x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_erfc(dtype):
    assert_elementwise(
        numerics.log_erfc,
        lambda x: mpmath.log(erfc(x)),
        [lambda x: -hazard(x)],
        [[lambda x: -hazard_slope(x)]],
        grid(dtype, line),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_ndtr(dtype):
    def scaled(x):
        return -x / mpmath.sqrt(2)

    assert_elementwise(
        numerics.log_ndtr,
        lambda x: mpmath.log1p(-erfc(-scaled(x)) / 2) if x > 0 else mpmath.log(erfc(scaled(x)) / 2),
        [lambda x: hazard(scaled(x)) / mpmath.sqrt(2)],
        [[lambda x: -hazard_slope(scaled(x)) / 2]],
        [-column for column in grid(dtype, line)],
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_edges(dtype):
    log_2 = float(np.log(np.asarray(2, dtype)))
    assert_edges(
        numerics.log_erfc,
        [((INF,), -INF, [-INF]), ((-INF,), log_2, [0]), ((0.0,), 0, None), ((NAN,), NAN, [NAN])],
        dtype,
    )
    assert_edges(numerics.log_ndtr, [((INF,), 0, [0]), ((-INF,), -INF, [INF]), ((NAN,), NAN, [NAN])], dtype)


def test_the_curvature_tends_to_minus_two():
    curvature = jax.vmap(jax.grad(jax.grad(numerics.log_erfc)))
    assert same(curvature(np.asarray([1e6, 1e18, INF, -INF], "float32")), [-2, -2, -2, 0])
