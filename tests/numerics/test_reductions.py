"""Weighted sums, products and matrix products in the log domain."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import exp, log, mpf

from numerics.reference import DTYPES, assert_vector, in_dtype, same
from stablegrad.numerics import jax as numerics
from stablegrad.numerics.jax.reductions import LARGE

INF, NAN = math.inf, math.nan
N = 3
K = range(N)


def weighted(x):
    return numerics.logsumexp_weighted(x[:N], x[N:], axis=0)


def total(x):
    return sum(x[N + i] * exp(x[i]) for i in K)


def weighted_slopes(x):
    s = total(x)
    return [x[N + i] * exp(x[i]) / s for i in K] + [exp(x[i]) / s for i in K]


def weighted_bends(x):
    first = weighted_slopes(x)
    own = [[mpf(0)] * (2 * N) for _ in range(2 * N)]
    for i in K:
        own[i][i] = first[i]
        own[i][N + i] = own[N + i][i] = first[N + i]
    return [own[i][j] - first[i] * first[j] for i in range(2 * N) for j in range(2 * N)]


WEIGHTED = [
    # exponents, weights
    [0.0, 1.0, -1.0, 1.0, 1.0, 1.0],
    [1000.0, 999.0, 998.0, 1.0, -1.0, 2.0],
    [-500.0, -503.0, -499.0, 1.5, 3.0, -0.25],
    [80.25, 80.5, 79.0, 2.0, -0.5, 0.125],
    [-80.25, 3.0, 0.0, 1e30, 1e-5, 1e-4],
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_logsumexp_weighted(dtype):
    assert_vector(
        weighted,
        lambda x: [log(total(x))],
        weighted_slopes,
        weighted_bends,
        WEIGHTED,
        dtype,
        hessian_as_a_whole=True,
        every_mode=dtype == "float32",
    )


@pytest.mark.parametrize(
    ("e", "m", "value", "by_e", "by_m"),
    [
        ([1000.0, 0.0], [0.0, 1.0], 0, [0, 1], [INF, 1]),
        ([INF, 0.0], [0.0, 1.0], 0, [0, 1], [INF, 1]),
        ([-INF, 0.0], [0.0, 1.0], 0, [0, 1], [0, 1]),
        ([NAN, 0.0], [0.0, 1.0], NAN, None, None),
        ([0.0, 0.0], [1.0, NAN], NAN, None, None),
        ([5.0, 3.0], [0.0, 0.0], -INF, [0, 0], [INF, INF]),
        ([-INF, -INF], [1.0, 2.0], -INF, [0, 0], [0, 0]),
        ([0.0, 1.0], [1.0, -1.0], NAN, None, None),
        ([INF, 1.0], [2.0, -1.0], INF, None, None),
        ([INF, 1.0], [-2.0, 1.0], NAN, None, None),
        ([0.0, 1.0], [INF, 1.0], INF, None, None),
        ([88.0, 0.0], [3e38, 1.0], 88 + math.log(3e38), None, None),
        ([-100.0, 88.0], [3e38, 1e-38], math.log(3e38) - 100, None, None),
    ],
)
def test_logsumexp_weighted_edges(e, m, value, by_e, by_m):
    e, m = jnp.asarray(e), jnp.asarray(m)
    both = jax.value_and_grad(numerics.logsumexp_weighted, (0, 1))
    for run in (both, jax.jit(both)):
        got, (slope_e, slope_m) = run(e, m)
        assert np.allclose(got, value, rtol=1e-6, atol=0, equal_nan=True)
        assert by_e is None or same(slope_e, by_e)
        assert by_m is None or same(slope_m, by_m)
    forward = jax.jacfwd(numerics.logsumexp_weighted, 0)(e, m)
    assert by_e is None or same(forward, by_e)


def test_a_weighted_sum_near_one_keeps_its_digits():
    e, m = jnp.asarray([0.0, -40.0]), jnp.asarray([1.0, -1.0])
    for run in (numerics.logsumexp_weighted, jax.jit(numerics.logsumexp_weighted)):
        assert float(run(e, m)) == pytest.approx(-math.exp(-40), rel=1e-5)
        assert float(run(e, m * m)) == pytest.approx(math.exp(-40), rel=1e-5)
        assert float(run(jnp.asarray([3.25]), jnp.ones(1))) == 3.25


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_matmul_exp(dtype):
    w = [[1.0, 0.5], [2.0, -0.25], [0.0, 1.0]]

    def function(x):
        return numerics.log_matmul_exp(x, jnp.asarray(w, x.dtype))

    def sums(x):
        return [sum(exp(x[k]) * mpf(w[k][n]) for k in K) for n in range(2)]

    def shares(x):
        return [[exp(x[k]) * mpf(w[k][n]) / s for k in K] for n, s in enumerate(sums(x))]

    assert_vector(
        function,
        lambda x: [log(s) for s in sums(x)],
        lambda x: [p for row in shares(x) for p in row],
        lambda x: [row[j] * ((j == k) - row[k]) for row in shares(x) for j in K for k in K],
        [[0.0, 0.5, 1.0], [1000.0, 999.0, 1000.0], [-300.0, -302.0, -301.0], [20.0, 3.0, 17.0]],
        dtype,
        hessian_as_a_whole=True,
        every_mode=dtype == "float32",
    )


def test_log_matmul_exp_by_the_matrix():
    e, w = jnp.asarray([[1000.0, 999.0], [-INF, -INF]]), jnp.asarray([[1.0, 0.0], [2.0, 0.0]])
    for run in (numerics.log_matmul_exp, jax.jit(numerics.log_matmul_exp)):
        value = run(e, w)
        assert np.allclose(value, [[1000 + math.log(1 + 2 / math.e), -INF], [-INF, -INF]])
    gradient = jax.grad(lambda e: numerics.log_matmul_exp(e, w)[0].sum())(e)
    assert numerics.log_matmul_exp(jnp.ones((2, 3, 2)), w).shape == (2, 3, 2)
    p = 1 / (1 + 2 / math.e)
    assert np.allclose(gradient, [[p, 1 - p], [0, 0]], rtol=1e-6)
    by_matrix = jax.grad(lambda w: numerics.log_matmul_exp(e, w)[0, 0])(w[:, :1])
    assert np.allclose(by_matrix, [[p], [p / math.e]], rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_abs_product(dtype):
    def function(x):
        return numerics.log_abs_product(x, axis=0)

    def product(x):
        return x[0] * x[1] * x[2]

    assert_vector(
        function,
        lambda x: [log(product(x))],
        lambda x: [1 / one for one in x],
        lambda x: [-(j == k) / x[j] ** 2 for j in K for k in K],
        [[1.0, 2.0, 3.0], [-1e-15, -2e-10, 3.0], [1e15, 1e12, 1e14], [1.5, 0.75, 0.9], [-7.0, 1e-9, -1e9]],
        dtype,
    )


@pytest.mark.parametrize(
    ("x", "value"),
    [
        ([2.0, -3.0], NAN),
        ([0.0, -3.0], -INF),
        ([0.0, NAN], NAN),
        ([0.0, INF], NAN),
        ([2.0, INF], INF),
        ([-2.0, INF], NAN),
        ([-INF, -2.0], INF),
        ([-2.0, -0.5], 0.0),
        ([], 0.0),
    ],
)
def test_log_abs_product_edges(x, value):
    for run in (numerics.log_abs_product, jax.jit(numerics.log_abs_product)):
        assert same(run(jnp.asarray(x)), value)


def test_a_long_product_keeps_its_digits():
    with in_dtype("float32"):
        x = np.exp(np.random.default_rng(1).uniform(-60, -20, 50_000)).astype("float32")
        expected = np.log(x.astype("float64")).sum()
        assert float(numerics.log_abs_product(jnp.asarray(x))) == pytest.approx(expected, rel=4e-7)


def test_of_nothing():
    nothing = jnp.zeros((2, 0))
    assert same(numerics.logsumexp(nothing, 1), [-INF, -INF])
    assert same(numerics.logsumexp_weighted(nothing, nothing, 1), [-INF, -INF])


@pytest.mark.parametrize("far", [False, True])
def test_large_arrays_near_zero(far):
    """There the digits of a small rest are looked after only if a row needs them; under vmap too."""
    rows, width = 600, 32
    random = np.random.default_rng(3)
    x = -20 - 5 * random.random((rows, width)).astype("float32")
    x[:, 5] = 0 if not far else 3
    if not far:
        x[: rows // 2] += 40  # half of the rows do not
        x[: rows // 2, 5] = 40
    wide = x.astype("float64")
    top = wide.max(1)
    exact = top + np.log1p(np.exp(wide - top[:, None]).sum(1) - 1)
    if not far:
        others = np.delete(wide[rows // 2 :], 5, axis=1)
        exact[rows // 2 :] = np.log1p(np.exp(others).sum(1))
    assert x.size > LARGE
    for function in (numerics.logsumexp, lambda x, axis: jax.vmap(lambda row: numerics.logsumexp(row, 0))(x)):
        value = jax.jit(lambda x, function=function: function(x, 1))(x)
        np.testing.assert_allclose(value, exact, rtol=1e-6)
        gradient = jax.grad(lambda x, function=function: function(x, 1).sum())(jnp.asarray(x))
        np.testing.assert_allclose(gradient, np.exp(wide - exact[:, None]), rtol=2e-5)
