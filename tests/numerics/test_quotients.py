"""Quotients with a removable singularity, and the one whose derivative keeps its range."""

import math

import jax
import numpy as np
import pytest
from mpmath import exp, expm1, log1p, mpf

from numerics.reference import DTYPES, assert_edges, assert_elementwise, grid, same
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan


def line(random):
    small = np.exp(random.uniform(-40, 1, 24)) * random.choice([-1, 1], 24)
    return np.concatenate(
        [
            random.uniform(-80, 80, 20),
            random.uniform(-5, 5, 36),
            small,
            [1.99, 2.0, 2.01, -1.99, -2.01, 2.99, 3.01, -2.99, -3.01, 1e-20, 1e-30, 89.0, 92.0, -1e9],
        ]
    )


def moment(x, n):
    """The integral of t**n exp(x t) over 0 < t < 1, by its recurrence in high precision."""
    value = expm1(x) / x
    for k in range(1, n + 1):
        value = (exp(x) - k * value) / x
    return value


@pytest.mark.parametrize("dtype", DTYPES)
def test_exprel(dtype):
    assert_elementwise(
        numerics.exprel,
        lambda x: moment(x, 0),
        [lambda x: moment(x, 1)],
        [[lambda x: moment(x, 2)]],
        grid(dtype, line),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_linex(dtype):
    assert_elementwise(
        numerics.linex,
        lambda x: expm1(x) - x,
        [expm1],
        [[exp]],
        grid(dtype, line),
        dtype,
    )


def test_ends_of_linex():
    for x, value, slope in ((math.inf, math.inf, math.inf), (-math.inf, math.inf, -1.0), (0.0, 0.0, 0.0)):
        assert same(numerics.linex(x), value)
        assert same(jax.grad(numerics.linex)(x), slope)


def right_of_minus_one(random):
    small = np.exp(random.uniform(-40, -0.8, 32)) * random.choice([-1, 1], 32)
    return np.concatenate(
        [
            -1 + np.exp(random.uniform(-10, -0.1, 24)),
            np.exp(random.uniform(-1, 60, 32)),
            small,
            [-0.5713, -0.5715, 1.333, 1.3334, 1.0, 2.0, 1e-20, -1e-30],
        ]
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_log1prel(dtype):
    assert_elementwise(
        numerics.log1prel,
        lambda x: log1p(x) / x,
        [lambda x: (x / (1 + x) - log1p(x)) / x**2],
        [[lambda x: (2 * log1p(x) - 2 * x / (1 + x) - (x / (1 + x)) ** 2) / x**3]],
        grid(dtype, right_of_minus_one),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_edges(dtype):
    assert_edges(
        numerics.exprel,
        [
            ((0.0,), 1, [0.5]),
            ((INF,), INF, [INF]),
            ((-INF,), 0, [0]),
            ((1e5,), INF, [INF]),
            ((NAN,), NAN, [NAN]),
        ],
        dtype,
    )
    assert_edges(
        numerics.log1prel,
        [
            ((0.0,), 1, [-0.5]),
            ((INF,), 0, [0]),
            ((-1.0,), INF, [-INF]),
            ((-2.0,), NAN, [NAN]),
            ((NAN,), NAN, [NAN]),
        ],
        dtype,
    )


def test_derivatives_of_any_order_at_the_singularity():
    derivative, expected = numerics.exprel, 1.0
    for order in range(1, 5):
        derivative = jax.grad(derivative)
        expected = 1 / (order + 1)
        assert float(derivative(0.0)) == pytest.approx(expected, rel=1e-6)
    third = jax.grad(jax.grad(jax.grad(numerics.log1prel)))
    assert float(third(0.0)) == pytest.approx(-6 / 4, rel=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_divide(dtype):
    def numerators(random):
        return random.normal(size=96) * np.exp(random.uniform(-28, 28, 96))

    def denominators(random):
        return np.cbrt(numerators(random)) * random.uniform(0.5, 2, 96)

    assert_elementwise(
        numerics.divide,
        lambda x, y: x / y,
        [lambda x, y: 1 / y, lambda x, y: -x / y**2],
        [[lambda x, y: mpf(0), lambda x, y: -1 / y**2], [lambda x, y: -1 / y**2, lambda x, y: 2 * x / y**3]],
        grid(dtype, numerators, denominators),
        dtype,
    )


def test_divide_survives_the_compiler():
    gradient = jax.grad(numerics.divide, 1)
    for run in (gradient, jax.jit(gradient)):
        assert float(run(1e-30, 1e-25)) == pytest.approx(-1e20, rel=1e-6)
    assert float(jax.grad(gradient, 1)(1e-30, 1e-18)) == pytest.approx(2e24, rel=1e-6)
