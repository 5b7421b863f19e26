"""Products with zeros, infinities and factors beyond the range of the dtype."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import exp

from numerics.reference import DTYPES, assert_elementwise, everywhere, grid, in_dtype, same
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan


def exponents(random):
    return np.concatenate(
        [random.uniform(-80, 80, 40), random.uniform(-2, 2, 24), np.linspace(-171, 171, 32)]
    )


def multipliers(random):
    """Such that m * exp(e) is in the range of float32, also where exp(e) is not."""
    e = exponents(random)
    other = np.random.default_rng(5)
    m = np.exp(np.clip(other.uniform(-60, 60, e.size) - e, -85, 85)) * other.choice([-1, 1], e.size)
    return np.where(np.arange(e.size) % 17 == 3, 0.0, m)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mul_exp(dtype):
    m, e = grid(dtype, multipliers, exponents)

    def product(m, e):
        return m * exp(e)

    def factor(m, e):
        return exp(e)

    assert_elementwise(
        numerics.mul_exp,
        product,
        [factor, product],
        [[None, None], [None, None]],
        [m, e],
        dtype,
        curvature=False,
    )
    near = np.clip(e, -80, 80)
    assert_elementwise(
        numerics.mul_exp,
        product,
        [factor, product],
        [[lambda m, e: mpmath.mpf(0), factor], [factor, product]],
        [m, near],
        dtype,
    )


MUL_EXP_EDGES = [
    (0.0, 1000.0, 0, [INF, 0]),
    (0.0, -1000.0, 0, [0, 0]),
    (0.0, -INF, 0, [0, 0]),
    (3.0, -INF, 0, [0, 0]),
    (-INF, -INF, 0, [0, 0]),
    (INF, -INF, 0, [0, 0]),
    (INF, -1000.0, INF, None),
    (-INF, 2.0, -INF, None),
    (2.0, INF, INF, [INF, INF]),
    (-2.0, 2000.0, -INF, [INF, -INF]),
    (0.0, INF, NAN, None),
    (NAN, 1.0, NAN, None),
    (NAN, -INF, NAN, None),
    (0.0, NAN, NAN, None),
    (1.0, NAN, NAN, None),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "e", "value", "gradient"), MUL_EXP_EDGES)
def test_mul_exp_edges(m, e, value, gradient, dtype):
    with in_dtype(dtype):
        for got, slopes, _ in everywhere(numerics.mul_exp, jnp.asarray(m, dtype), jnp.asarray(e, dtype)):
            assert same(got, value)
            assert gradient is None or same(slopes, gradient)


def test_mul_exp_forward_by_the_exponent_alone():
    # exp(1000) is infinite; nobody differentiates by m, so it must not meet a zero.
    assert same(jax.jvp(lambda e: numerics.mul_exp(0.0, e), (1000.0,), (1.0,)), (0, 0))


def test_mul_exp_a_small_tangent_meets_a_large_slope():
    (value, tangent) = jax.jvp(numerics.mul_exp, (1e-30, 100.0), (1e-30, 0.0))
    assert float(tangent) == pytest.approx(float(value), rel=1e-5) == pytest.approx(2.6881171e13, rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_times_log(dtype):
    zero, one = (lambda t, log: mpmath.mpf(0)), (lambda t, log: mpmath.mpf(1))
    assert_elementwise(
        numerics.times_log,
        lambda t, log: t * log,
        [lambda t, log: log, lambda t, log: t],
        [[zero, one], [one, zero]],
        grid(dtype, lambda r: r.normal(size=96), lambda r: -r.uniform(-90, 90, 96)),
        dtype,
    )


@pytest.mark.parametrize(
    ("t", "log", "value", "gradient"),
    [
        (0.0, -INF, 0, [0, 0]),
        (-0.0, -INF, 0, [0, 0]),
        (2.0, -INF, -INF, [-INF, 2]),
        (0.0, INF, NAN, None),
        (0.0, NAN, NAN, None),
        (NAN, -INF, NAN, None),
        (0.0, -3.0, 0, [-3, 0]),
    ],
)
def test_times_log_edges(t, log, value, gradient):
    for got, slopes, _ in everywhere(numerics.times_log, t, log):
        assert same(got, value)
        assert gradient is None or same(slopes, gradient)
