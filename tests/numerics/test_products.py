"""Products with zeros, infinities and factors beyond the range of the dtype."""

import math

import jax
import mpmath
import numpy as np
import pytest
from mpmath import exp

from numerics.reference import DTYPES, POINTS, assert_edges, assert_elementwise, grid, same
from stablegrad.numerics import jax as numerics
from stablegrad.numerics.jax.products import log_of_ratio, power_times_log

INF, NAN = math.inf, math.nan


def exponents(random):
    return np.concatenate([random.uniform(-80, 80, 40), random.uniform(-2, 2, 24), np.linspace(-171, 171, 32)])


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
        None,
        [m, e],
        dtype,
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
    ((0.0, 1000.0), 0, [INF, 0]),
    ((0.0, -1000.0), 0, [0, 0]),
    ((0.0, -INF), 0, [0, 0]),
    ((3.0, -INF), 0, [0, 0]),
    ((-INF, -INF), 0, [0, 0]),
    ((INF, -INF), 0, [0, 0]),
    ((INF, -1000.0), INF, None),
    ((-INF, 2.0), -INF, None),
    ((2.0, INF), INF, [INF, INF]),
    ((-2.0, 2000.0), -INF, [INF, -INF]),
    ((0.0, INF), NAN, None),
    ((NAN, 1.0), NAN, None),
    ((NAN, -INF), NAN, None),
    ((0.0, NAN), NAN, None),
    ((1.0, NAN), NAN, None),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_mul_exp_edges(dtype):
    assert_edges(numerics.mul_exp, MUL_EXP_EDGES, dtype)


def test_mul_exp_forward_by_the_exponent_alone():
    # exp(1000) is infinite; nobody differentiates by m, so it must not meet a zero.
    assert same(jax.jvp(lambda e: numerics.mul_exp(0.0, e), (1000.0,), (1.0,)), (0, 0))


@pytest.mark.parametrize("at", [(2.0, 88.5), (-3.0, 120.0), (1.0, 1000.0)])
def test_mul_exp_under_a_saturated_function(at):
    slopes = jax.grad(lambda m, e: jax.lax.tanh(numerics.mul_exp(m, e)), (0, 1))(*map(np.float32, at))
    assert float(slopes[1]) == 0


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


def test_times_log_edges():
    assert_edges(
        numerics.times_log,
        [
            ((0.0, -INF), 0, [0, 0]),
            ((-0.0, -INF), 0, [0, 0]),
            ((2.0, -INF), -INF, [-INF, 2]),
            ((0.0, INF), NAN, None),
            ((0.0, NAN), NAN, None),
            ((NAN, -INF), NAN, None),
            ((0.0, -3.0), 0, [-3, 0]),
        ],
    )


def signed(random):
    return random.normal(size=96) * np.exp(random.uniform(-20, 20, 96))


def positive(random):
    return np.concatenate([np.exp(random.uniform(-30, 30, 64)), random.uniform(0.5, 2, 31), [1.0]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_xlogy(dtype):
    assert_elementwise(
        numerics.xlogy,
        lambda x, y: x * mpmath.log(y),
        [lambda x, y: mpmath.log(y), lambda x, y: x / y],
        [[lambda x, y: mpmath.mpf(0), lambda x, y: 1 / y], [lambda x, y: 1 / y, lambda x, y: -x / y**2]],
        grid(dtype, signed, positive),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_xlog1py(dtype):
    def above_minus_one(random):
        small = np.exp(random.uniform(-30, 0, 48)) * random.choice([-1, 1], 48)
        return np.concatenate([np.exp(random.uniform(-10, 60, 40)), small, np.linspace(-0.9999, -0.2, 8)])

    assert_elementwise(
        numerics.xlog1py,
        lambda x, y: x * mpmath.log1p(y),
        [lambda x, y: mpmath.log1p(y), lambda x, y: x / (1 + y)],
        [
            [lambda x, y: mpmath.mpf(0), lambda x, y: 1 / (1 + y)],
            [lambda x, y: 1 / (1 + y), lambda x, y: -x / (1 + y) ** 2],
        ],
        grid(dtype, signed, above_minus_one),
        dtype,
    )


def test_xlogy_edges():
    assert_edges(
        numerics.xlogy,
        [
            ((0.0, 0.0), 0, [0, 0]),
            ((-0.0, 0.0), 0, [0, 0]),
            ((2.0, 0.0), -INF, [-INF, INF]),
            ((0.0, 3.0), 0, [float(np.log(np.float32(3))), 0]),
            ((0.0, -1.0), NAN, None),
            ((0.0, INF), NAN, None),
            ((0.0, NAN), NAN, None),
            ((NAN, 0.0), NAN, None),
        ],
    )
    assert same(jax.hessian(numerics.xlogy, (0, 1))(0.0, 0.0), np.zeros((2, 2)))


def test_xlog1py_edges():
    assert_edges(
        numerics.xlog1py,
        [
            ((0.0, -1.0), 0, [0, 0]),
            ((0.0, 0.0), 0, [0, 0]),
            ((3.0, 0.0), 0, [0, 3]),
            ((2.0, -1.0), -INF, [-INF, INF]),
            ((0.0, -2.0), NAN, None),
            ((0.0, INF), NAN, None),
            ((NAN, -1.0), NAN, None),
        ],
    )
    assert same(jax.hessian(numerics.xlog1py, (0, 1))(0.0, -1.0), np.zeros((2, 2)))


def far_apart(random):
    """Of both signs; some as large and as small as float32 goes, some of moderate size."""
    size = np.exp(np.concatenate([random.uniform(-85, 85, 60), random.uniform(-2, 2, 36)]))
    return size * random.choice([-1, 1], POINTS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_products_and_quotients(dtype):
    x, y = grid(dtype, far_apart, lambda random: np.roll(far_apart(random), 7))
    y = np.where(np.arange(len(x)) % 9 == 0, (1 + np.arange(len(x)) * 1e-4) / x, y).astype(dtype)  # products near 1
    y = np.copysign(y, x)
    for function, value, slope in (
        (numerics.log_of_product, lambda x, y: mpmath.log(x * y), 1),
        (numerics.log_of_quotient, lambda x, y: mpmath.log(x / y), -1),
    ):
        assert_elementwise(
            function,
            value,
            [lambda x, y: 1 / x, lambda x, y, k=slope: k / y],
            None,
            [x, y],
            dtype,
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_second_derivatives_of_logarithms_of_products(dtype):
    points = grid(dtype, positive, lambda random: np.roll(positive(random), 7))
    points = [np.clip(p, 1e-6, 1e6) for p in points]
    nothing = lambda x, y: mpmath.mpf(0)  # noqa: E731
    for function, value, slope in (
        (numerics.log_of_product, lambda x, y: mpmath.log(x * y), 1),
        (numerics.log_of_quotient, lambda x, y: mpmath.log(x / y), -1),
    ):
        assert_elementwise(
            function,
            value,
            [lambda x, y: 1 / x, lambda x, y, k=slope: k / y],
            [[lambda x, y: -1 / x**2, nothing], [nothing, lambda x, y, k=slope: -k / y**2]],
            points,
            dtype,
        )


def test_edges_of_logarithms_of_products():
    assert_edges(
        numerics.log_of_product,
        [
            ((0.0, 1e30), -INF, None),
            ((1e30, 0.0), -INF, None),
            ((0.0, 0.0), -INF, None),
            ((INF, 2.0), INF, [0, 0.5]),
            ((-INF, -2.0), INF, [0, -0.5]),
            ((INF, 0.0), NAN, None),
            ((-1e-30, 1e-30), NAN, None),
            ((-1e30, 1e30), NAN, None),
            ((NAN, 1.0), NAN, None),
        ],
    )
    assert_edges(
        numerics.log_of_quotient,
        [
            ((0.0, 2.0), -INF, None),
            ((2.0, 0.0), INF, None),
            ((2.0, INF), -INF, [0.5, 0]),
            ((INF, 2.0), INF, [0, -0.5]),
            ((0.0, 0.0), NAN, None),
            ((INF, INF), NAN, None),
            ((-1e-30, 1e30), NAN, None),
            ((1.0, NAN), NAN, None),
        ],
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_ratios_of_several(dtype):
    x, y, z = grid(dtype, far_apart, far_apart, lambda random: np.roll(far_apart(random), 7))
    for (above, below), value, powers in (
        ((1, 2), lambda x, y, z: mpmath.log(x / y / z), (1, -1, -1)),
        ((2, 1), lambda x, y, z: mpmath.log(x * y / z), (1, 1, -1)),
        ((3, 0), lambda x, y, z: mpmath.log(x * y * z), (1, 1, 1)),
        ((0, 3), lambda x, y, z: mpmath.log(1 / x / y / z), (-1, -1, -1)),
    ):
        assert_elementwise(
            log_of_ratio(above, below),
            value,
            [lambda *point, k=k, power=power: power / point[k] for k, power in enumerate(powers)],
            None,
            [x, np.copysign(y, x), np.abs(z)],
            dtype,
        )


def test_edges_of_logarithms_of_ratios():
    assert_edges(
        log_of_ratio(1, 2),
        [
            ((0.0, 2.0, 3.0), -INF, None),
            ((2.0, 0.0, 3.0), INF, None),
            ((2.0, INF, 3.0), -INF, None),
            ((-2.0, 3.0, -INF), -INF, None),
            ((-1.0, 2.0, 3.0), NAN, None),
            ((0.0, 0.0, 1.0), NAN, None),
            ((1.0, NAN, 1.0), NAN, None),
        ],
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [1, 2, 3, 0.5, 1.5])
def test_power_times_log(power, dtype):
    k = mpmath.mpf(power)
    assert_elementwise(
        power_times_log(power, False),
        lambda x: x**k * mpmath.log(x),
        [lambda x: x ** (k - 1) * (k * mpmath.log(x) + 1)],
        None,
        grid(dtype, lambda random: np.concatenate([np.exp(random.uniform(-20, 20, 80)), random.uniform(0.5, 2, 16)])),
        dtype,
    )
    slope = -INF if power <= 1 else 0
    assert_edges(
        power_times_log(power, False), [((0.0,), 0, [slope]), ((-1.0,), NAN, None), ((INF,), INF, None)], dtype
    )


def test_zero_over_zero_shows_in_the_slope():
    assert np.isnan(jax.grad(numerics.log_of_quotient)(0.0, 0.0))


@pytest.mark.parametrize("x", [0.0, 1e-30, 1.0, 1e30, np.inf])
@pytest.mark.parametrize("y", [0.0, 1e-30, 1.0, 1e30, np.inf])
def test_logarithms_at_zero_and_infinity(x, y):
    """As IEEE has x y and x / y; NaN in the slope, too, where that is NaN."""
    for function, term in ((numerics.log_of_product, np.multiply), (numerics.log_of_quotient, np.divide)):
        with np.errstate(all="ignore"):
            expected = np.log(term(np.float64(x), np.float64(y)))
        for wrap in (lambda f: f, jax.jit):
            got, slope = wrap(jax.value_and_grad(function))(np.float32(x), np.float32(y))
            np.testing.assert_allclose(got, expected, rtol=1e-6)
            assert np.isnan(slope) == np.isnan(expected)


def test_power_times_log_of_negative_numbers():
    f = power_times_log(1, True)
    assert f(-2.0) == pytest.approx(-2 * math.log(2.0), rel=1e-6)
    assert jax.grad(f)(-2.0) == pytest.approx(1 + math.log(2.0), rel=1e-6)
