"""Powers and products whose derivatives are right where a factor is 0, against mpmath."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import exp, log, mpf

from numerics.reference import DTYPES, assert_edges, assert_elementwise, assert_vector, grid, same
from stablegrad.numerics import jax as numerics
from stablegrad.numerics.jax.powers import power_of_product, product_of_others

INF, NAN = math.inf, math.nan
K = range(3)


# -- x**p exp(r) -----------------------------------------------------------------------------------------------------


def bases(random):
    return np.exp(random.uniform(-8, 4, 96))


def exponents(random):
    return np.concatenate([random.uniform(-4, 6, 88), [0.0, 1.0, 2.0, -1.0, 0.5, 1.0, 2.0, 0.0]])


def factors(random):
    return np.random.default_rng(11).uniform(-20, 20, 96)


def value(x, p, r):
    return x**p * exp(r)


@pytest.mark.parametrize("dtype", DTYPES)
def test_power_exp(dtype):
    mixed = [
        lambda x, p, r: (1 + p * log(x)) * x ** (p - 1) * exp(r),
        lambda x, p, r: p * x ** (p - 1) * exp(r),
        lambda x, p, r: log(x) * value(x, p, r),
    ]
    assert_elementwise(
        numerics.power_exp,
        value,
        [mixed[1], mixed[2], value],
        [
            [lambda x, p, r: p * (p - 1) * x ** (p - 2) * exp(r), mixed[0], mixed[1]],
            [mixed[0], lambda x, p, r: log(x) ** 2 * value(x, p, r), mixed[2]],
            [mixed[1], mixed[2], value],
        ],
        grid(dtype, bases, exponents, factors),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_power_exp_edges(dtype):
    assert_edges(
        numerics.power_exp,
        [
            ((0.0, 2.0, 0.0), 0, [0, 0, 0]),
            ((-0.0, 2.0, 0.0), 0, [0, 0, 0]),
            ((0.0, 1.0, 0.0), 0, [1, 0, 0]),
            ((0.0, 0.5, 0.0), 0, [INF, 0, 0]),
            ((0.0, 0.0, 0.0), 1, [0, -INF, 1]),
            ((0.0, -1.0, 0.0), INF, [-INF, -INF, INF]),
            ((-1.0, 2.0, 0.0), NAN, [NAN, NAN, NAN]),
            ((-1.0, 0.0, 0.0), NAN, None),
            ((NAN, 2.0, 0.0), NAN, [NAN, NAN, NAN]),
            ((2.0, NAN, 0.0), NAN, [NAN, NAN, NAN]),
            ((2.0, 1.0, NAN), NAN, [NAN, NAN, NAN]),
            ((INF, 2.0, 0.0), INF, None),
            ((INF, -2.0, 0.0), 0, None),
            ((0.0, 2.0, -INF), 0, [0, 0, 0]),
            ((2.0, 2.0, -INF), 0, [0, 0, 0]),
        ],
        dtype,
    )


def test_neither_factor_of_a_power_leaves_the_range_alone():
    for run in (numerics.power_exp, jax.jit(numerics.power_exp)):
        assert float(run(1e-30, 2.0, 138.0)) == pytest.approx(math.exp(138 - 60 * math.log(10)), rel=1e-4)
        assert float(run(1e30, 2.0, -138.0)) == pytest.approx(math.exp(60 * math.log(10) - 138), rel=1e-4)


def test_the_mixed_derivative_where_the_power_is_zero():
    """d/dp (p x**(p - 1)) is 1 / x at p = 0."""
    mixed = jax.grad(jax.grad(numerics.power_exp, 0), 1)(2.0, 0.0, 0.0)
    assert float(mixed) == pytest.approx(0.5)
    assert float(jax.grad(jax.grad(numerics.power_exp, 1), 0)(2.0, 0.0, 0.0)) == pytest.approx(0.5)


def test_second_derivatives_of_a_square_at_zero():
    assert float(jax.grad(jax.grad(numerics.power_exp))(0.0, 2.0, 0.0)) == 2
    assert float(jax.grad(jax.grad(numerics.power_exp))(0.0, 1.0, 0.0)) == 0


# -- prod(x)**power --------------------------------------------------------------------------------------------------


def product(x):
    return x[0] * x[1] * x[2]


ROWS = [
    [1.0, 2.0, 3.0], [1e-20, 2e-20, 5e-20], [1e25, 2e30, 3e15], [0.5, 0.75, 0.9], [1e-30, 1e30, 7.0],
    [-2.0, -3.0, 1.5], [1e-12, 1.0, 1e10],
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [0.5, 1 / 3, 0.25, 0.7, -0.5])
def test_power_of_product(power, dtype):
    function, p = power_of_product(power), mpf(power)
    rows = ROWS if power != -0.5 else [ROWS[0], ROWS[3], ROWS[5]]

    def bends(x):
        v = product(x) ** p
        return [p * (p - (j == k)) * v / (x[j] * x[k]) for j in K for k in K]

    in_range = [ROWS[0], ROWS[3], ROWS[5]]
    slopes = lambda x: [p * product(x) ** p / one for one in x]  # noqa: E731
    assert_vector(lambda x: function(x, 0), lambda x: [product(x) ** p], slopes, None, rows, dtype)
    assert_vector(lambda x: function(x, 0), lambda x: [product(x) ** p], slopes, bends, in_range, dtype,
                  hessian_as_a_whole=True)  # fmt: skip


@pytest.mark.parametrize(
    ("x", "power", "value", "gradient"),
    [
        ([0.0, 2.0], 0.5, 0, [INF, 0]),
        ([0.0, 0.0], 0.5, 0, [0, 0]),
        ([0.0, 2.0], 1.5, 0, [0, 0]),
        ([-1.0, 2.0], 0.5, NAN, [NAN, NAN]),
        ([-2.0, -2.0], 0.5, 2, [-0.5, -0.5]),
        ([INF, 2.0], 0.5, INF, None),
        ([NAN, 2.0], 0.5, NAN, [NAN, NAN]),
        ([INF, 0.0], 0.5, NAN, None),
        ([], 0.5, 1, []),
    ],
)
def test_power_of_product_edges(x, power, value, gradient):
    function = power_of_product(power)
    for run in (lambda f: f, jax.jit):
        got = run(function)(jnp.asarray(x, "float32"))
        assert np.allclose(got, value, rtol=1e-6, equal_nan=True)
        slope = run(jax.grad(function))(jnp.asarray(x, "float32"))
        assert gradient is None or np.allclose(slope, gradient, rtol=1e-6, equal_nan=True)


def test_the_mean_of_many_factors():
    x = np.exp(np.random.default_rng(0).uniform(-30, 30, 5000)).astype("float32")
    right = math.exp(np.log(x.astype("float64")).mean())
    assert float(power_of_product(1 / 5000)(jnp.asarray(x))) == pytest.approx(right, rel=2e-6)


def test_axes_of_a_geometric_mean():
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4)).astype("float32")
    for axis in (None, 0, -1, (0, 2)):
        right = np.prod(np.float64(x), axis=axis) ** 0.25
        np.testing.assert_allclose(power_of_product(0.25)(jnp.asarray(x), axis), right, rtol=1e-6)


# -- the product of the others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_product_of_others(dtype):
    def others(x):
        return [x[(k + 1) % 3] * x[(k + 2) % 3] for k in K]

    def slopes(x):
        return [mpf(0) if k == j else x[3 - k - j] for k in K for j in K]

    def bends(x):
        return [mpf(len({i, j, k}) == 3) for i in K for j in K for k in K]

    rows = [[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [-1.5, 0.7, 2.2], [1e-18, 1e15, -3.0]]
    assert_vector(product_of_others, others, slopes, bends, rows, dtype, hessian_as_a_whole=True)


@pytest.mark.parametrize(
    ("x", "value"),
    [
        ([], []),
        ([5.0], [1]),
        ([0.0], [1]),
        ([2.0, 3.0], [3, 2]),
        ([-0.0, 3.0], [3, 0]),
        ([INF, 2.0, 3.0], [6, INF, INF]),
        ([INF, 0.0], [0, INF]),
        ([NAN, 2.0], [2, NAN]),
        ([0.0, 1e30, 1e30, 1e30], [INF, 0, 0, 0]),
    ],
)
def test_product_of_others_edges(x, value):
    for run in (product_of_others, jax.jit(product_of_others)):
        assert same(run(jnp.asarray(x, "float32")), value)


def test_products_before_and_after_may_leave_the_range():
    x = jnp.asarray([1e30, 1e30, 5.0, 1e-30, 1e-30, 1e37, 1e-23, 1e-24])
    exactly = np.asarray(x, np.float64)
    right = np.array([np.prod(np.delete(exactly, k)) for k in range(len(x))])
    value, slope = jax.value_and_grad(lambda x: product_of_others(x)[2])(x)
    np.testing.assert_allclose(value, right[2], rtol=1e-6)
    np.testing.assert_allclose(slope, np.where(np.arange(8) == 2, 0, right[2] / exactly), rtol=1e-5, atol=1e-38)


def test_other_axes_and_vmap():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    for axis in (0, 1, 2, -2):
        right = np.prod(x, axis=axis, keepdims=True) / x
        np.testing.assert_allclose(product_of_others(jnp.asarray(x), axis), right, rtol=1e-5)
    got = jax.vmap(product_of_others)(jnp.asarray(x[0]))
    np.testing.assert_allclose(got, np.prod(x[0], -1, keepdims=True) / x[0], rtol=1e-5)
