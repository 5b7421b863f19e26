"""Sigmoids against mpmath, on both tails and around 0."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from numerics.reference import DTYPES, assert_edges, assert_elementwise, grid, same
from stablegrad.numerics import jax as numerics


def sigma(x):
    return 1 / (1 + mpmath.exp(-x))


def slope(x):
    return sigma(x) * sigma(-x)


def line(random):
    return np.concatenate(
        [
            random.uniform(-80, 80, 28),
            random.uniform(-4, 4, 28),
            np.exp(random.uniform(-30, 1, 28)) * random.choice([-1, 1], 28),
            [0.0, 1.0, -1.0, 18.98, -18.98, 9.01, 36.0, -87.0, 87.0, 0.999, 1.001, 40.0],
        ]
    )


TRUTH = {
    "sigmoid": (sigma, slope, lambda x: -slope(x) * mpmath.tanh(x / 2)),
    "tanh": (mpmath.tanh, lambda x: mpmath.sech(x) ** 2, lambda x: -2 * mpmath.tanh(x) * mpmath.sech(x) ** 2),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), sigma, slope),
    "log_sigmoid": (lambda x: -mpmath.log1p(mpmath.exp(-x)), lambda x: sigma(-x), lambda x: -slope(x)),
    "log_cosh": (lambda x: mpmath.log(mpmath.cosh(x)), mpmath.tanh, lambda x: mpmath.sech(x) ** 2),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TRUTH)
def test_against_mpmath(name, dtype):
    value, first, second = TRUTH[name]
    assert_elementwise(getattr(numerics, name), value, [first], [[second]], grid(dtype, line), dtype)


INF, NAN = math.inf, math.nan
EDGES = {
    "sigmoid": [((INF,), 1, [0]), ((-INF,), 0, [0]), ((NAN,), NAN, [NAN])],
    "tanh": [((INF,), 1, [0]), ((-INF,), -1, [0]), ((NAN,), NAN, [NAN])],
    "softplus": [((INF,), INF, [1]), ((-INF,), 0, [0]), ((NAN,), NAN, [NAN])],
    "log_sigmoid": [((INF,), 0, [0]), ((-INF,), -INF, [1]), ((NAN,), NAN, [NAN])],
    "log_cosh": [((INF,), INF, [1]), ((-INF,), INF, [-1]), ((0.0,), 0, [0]), ((NAN,), NAN, [NAN])],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TRUTH)
def test_edges(name, dtype):
    assert_edges(getattr(numerics, name), EDGES[name], dtype)


@pytest.mark.parametrize("name", TRUTH)
def test_second_derivatives_vanish_at_infinity(name):
    function = jax.vmap(jax.grad(jax.grad(getattr(numerics, name))))
    assert same(function(jnp.asarray([INF, -INF])), [0, 0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", TRUTH)
def test_half_precision_is_rounded_once(name, dtype):
    x = jnp.asarray([-9.0, -0.5, 0.25, 7.0], dtype)
    function = getattr(numerics, name)
    assert function(x).dtype == x.dtype
    assert same(function(x), function(x.astype("float32")).astype(dtype))


def test_weak_types_and_integers():
    assert jax.jit(numerics.softplus).eval_shape(1.0).weak_type
    assert numerics.softplus(jnp.arange(3)).dtype == jnp.result_type(float)
    with pytest.raises(TypeError, match="real numbers"):
        numerics.softplus(1j)
    assert float(numerics.sigmoid(x=0.0)) == 0.5


def pairs(random):
    base = np.concatenate([random.uniform(-80, 80, 40), random.uniform(-4, 4, 40), [0.0, 30.0, 3.0]])
    return base, np.concatenate(
        [np.exp(random.uniform(-12, 3, 40)), np.exp(random.uniform(-5, 3, 40)), [1.0, 8.0, 0.0]]
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_sigmoid_difference(dtype):
    base, gap = pairs(np.random.default_rng(5))
    a = base.astype(dtype)
    b = (a - gap.astype(dtype)).astype(dtype)

    def bend(x):
        return -slope(x) * mpmath.tanh(x / 2)

    assert_elementwise(
        numerics.sigmoid_difference,
        lambda a, b: -mpmath.expm1(b - a) * sigma(a) * sigma(-b),
        [lambda a, b: slope(a), lambda a, b: -slope(b)],
        [[lambda a, b: bend(a), lambda a, b: mpmath.mpf(0)], [lambda a, b: mpmath.mpf(0), lambda a, b: -bend(b)]],
        [np.concatenate([a, b]), np.concatenate([b, a])],
        dtype,
    )


@pytest.mark.parametrize(
    "a, b, value",
    [(INF, INF, 0), (-INF, -INF, 0), (INF, -INF, 1), (-INF, INF, -1), (INF, 0, 0.5), (0, INF, -0.5), (NAN, 0, NAN)],
)
def test_ends_of_a_sigmoid_difference(a, b, value):
    assert same(numerics.sigmoid_difference(a, b), value)
    slopes = jax.grad(numerics.sigmoid_difference, (0, 1))(float(a), float(b))
    assert same(slopes, [NAN if np.isnan(a) else 0.25 * (a == 0), -0.25 * (b == 0)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sigmoid_step(dtype):
    """The derivative at a fixed gap: one number, to second order."""
    from stablegrad.numerics.jax.sigmoids import sigmoid_step

    base = np.random.default_rng(6).uniform(-60, 60, 40).astype(dtype)
    for gap in (0.125, 3.0):
        step = mpmath.mpf(gap)
        assert_elementwise(
            lambda b, gap=gap: sigmoid_step(b + gap, b, gap),
            lambda b, step=step: -mpmath.expm1(-step) * sigma(b + step) * sigma(-b),
            [lambda b, step=step: slope(b + step) - slope(b)],
            [[lambda b, step=step: slope(b) * mpmath.tanh(b / 2) - slope(b + step) * mpmath.tanh((b + step) / 2)]],
            [base],
            dtype,
        )
