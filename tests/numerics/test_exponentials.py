"""expm1 and log1p."""

import math

import jax
import mpmath
import numpy as np
import pytest

from numerics.reference import DTYPES, assert_edges, assert_elementwise, grid
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", DTYPES)
def test_expm1(dtype):
    def line(random):
        small = np.exp(random.uniform(-60, 0, 40)) * random.choice([-1, 1], 40)
        return np.concatenate([random.uniform(-80, 80, 56), small])

    assert_elementwise(numerics.expm1, mpmath.expm1, [mpmath.exp], [[mpmath.exp]], grid(dtype, line), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log1p(dtype):
    def right_of_minus_one(random):
        small = np.exp(random.uniform(-60, 0, 32)) * random.choice([-1, 1], 32)
        return np.concatenate([np.exp(random.uniform(0, 60, 24)), small, np.linspace(-0.999, -0.2, 40)])

    assert_elementwise(
        numerics.log1p,
        mpmath.log1p,
        [lambda x: 1 / (1 + x)],
        [[lambda x: -1 / (1 + x) ** 2]],
        grid(dtype, right_of_minus_one),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_edges(dtype):
    assert_edges(
        numerics.expm1,
        [((0.0,), 0, [1]), ((INF,), INF, [INF]), ((-INF,), -1, [0]), ((NAN,), NAN, [NAN])],
        dtype,
    )
    assert_edges(
        numerics.log1p,
        [
            ((0.0,), 0, [1]),
            ((INF,), INF, [0]),
            ((-1.0,), -INF, [INF]),
            ((-2.0,), NAN, None),
            ((NAN,), NAN, [NAN]),
        ],
        dtype,
    )


def test_the_slope_of_expm1_does_not_round_to_zero():
    assert float(jax.grad(numerics.expm1)(-40.0)) == pytest.approx(math.exp(-40), rel=1e-6)
