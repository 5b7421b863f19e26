"""Sums and differences in the log domain against mpmath."""

import math

import jax
import numpy as np
import pytest
from mpmath import exp, expm1, log

from numerics.reference import DTYPES, assert_edges, assert_elementwise, grid, same
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan


def positive(random):
    return np.concatenate(
        [
            random.uniform(0.01, 80, 32),
            random.uniform(0.01, 3, 32),
            np.exp(random.uniform(-30, 0, 24)),
            [0.6931, 0.69314718056, 0.6932, 1.0, 0.999, 1.001, 2.0, 87.0],
        ]
    )


def negative(random):
    return -positive(random)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log1mexp(dtype):
    assert_elementwise(
        numerics.log1mexp,
        lambda x: log(-expm1(x)),
        [lambda x: -1 / expm1(-x)],
        [[lambda x: -exp(-x) / expm1(-x) ** 2]],
        grid(dtype, negative),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_expm1(dtype):
    assert_elementwise(
        numerics.log_expm1,
        lambda x: log(expm1(x)),
        [lambda x: -1 / expm1(-x)],
        [[lambda x: -exp(x) / expm1(x) ** 2]],
        grid(dtype, positive),
        dtype,
    )


def pairs(random):
    """The first of each pair; ties, near ties and far pairs come from `partners`."""
    return np.concatenate([random.uniform(-60, 60, 64), np.full(16, -0.7), np.full(16, 0.0)])


def partners(random):
    a = pairs(random)
    other = np.random.default_rng(3)
    b = a - np.concatenate(
        [np.exp(other.uniform(-12, 4, 48)), np.zeros(8), np.full(8, 80.0), np.exp(other.uniform(-16, 4, 32))]
    )
    return b


def weight(a, b):
    return 1 / (1 + exp(b - a))


def curve(a, b):
    return weight(a, b) * weight(b, a)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_logaddexp(dtype, swapped):
    points = grid(dtype, pairs, partners)
    assert_elementwise(
        numerics.logaddexp,
        lambda a, b: log(exp(a) + exp(b)),
        [weight, lambda a, b: weight(b, a)],
        [[curve, lambda a, b: -curve(a, b)], [lambda a, b: -curve(a, b), curve]],
        points[::-1] if swapped else points,
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_logdiffexp(dtype):
    a, b = grid(dtype, pairs, partners)
    b = np.where(a == b, a - 1, b)

    def curved(a, b):
        return exp(a - b) / expm1(a - b) ** 2

    assert_elementwise(
        numerics.logdiffexp,
        lambda a, b: a + log(-expm1(b - a)),
        [lambda a, b: 1 / -expm1(b - a), lambda a, b: -1 / expm1(a - b)],
        [[lambda a, b: -curved(a, b), curved], [curved, lambda a, b: -curved(a, b)]],
        [a, b],
        dtype,
    )


# Arguments, value, gradient (None: not pinned).
EDGES = {
    "log1mexp": [
        ((0.0,), -INF, [-INF]),
        ((-0.0,), -INF, [-INF]),
        ((-INF,), 0, [0]),
        ((0.5,), NAN, [NAN]),
    ],
    "log_expm1": [
        ((0.0,), -INF, [INF]),
        ((-0.0,), -INF, [INF]),
        ((INF,), INF, [1]),
        ((-1.0,), NAN, [NAN]),
    ],
    "logaddexp": [
        ((-INF, -INF), -INF, [0.5, 0.5]),
        ((INF, INF), INF, [0.5, 0.5]),
        ((INF, 3.0), INF, [1, 0]),
        ((-INF, 3.0), 3, [0, 1]),
        ((-INF, INF), INF, [0, 1]),
        ((NAN, 1.0), NAN, None),
        ((1.0, NAN), NAN, None),
    ],
    "logdiffexp": [
        ((2.0, 2.0), -INF, [INF, -INF]),
        ((-INF, -INF), -INF, [INF, -INF]),
        ((3.0, -INF), 3, [1, 0]),
        ((INF, 3.0), INF, [1, 0]),
        ((INF, INF), NAN, None),
        ((1.0, 2.0), NAN, None),
        ((1.0, INF), NAN, None),
        ((NAN, 2.0), NAN, None),
    ],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EDGES)
def test_edges(name, dtype):
    assert_edges(getattr(numerics, name), EDGES[name], dtype)


def test_second_derivative_of_a_sum_of_nothing_is_finite():
    hessian = jax.hessian(numerics.logaddexp, (0, 1))(-INF, -INF)
    assert same(hessian, [[0.25, -0.25], [-0.25, 0.25]])
