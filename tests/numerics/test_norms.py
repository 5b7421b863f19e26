"""Lengths of vectors, against mpmath: in range, at its ends, and at 0."""

import math

import hypothesis.extra.numpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf, sqrt

from numerics.reference import DTYPES, assert_vector, in_dtype, same
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan
K = range(3)


def length(x):
    return sqrt(sum(one**2 for one in x))


def unit(x):
    return [one / length(x) for one in x]


def bends(x):
    return [((i == j) - unit(x)[i] * unit(x)[j]) / length(x) for i in K for j in K]


def rows(dtype):
    """Ordinary rows, and rows whose squares leave the range on either side, or of which one entry outweighs all."""
    most = np.finfo(dtype).maxexp
    shapes = np.array([[1.0, 2.0, -3.0], [0.5, 0.5, 0.5], [3.0, 0.0, -4.0], [1.0, 1e-3, -1e-6]])
    powers = [0, 2, most // 2 - 3, -(most // 2) + 3, most - 6, 30 - most, int(most * 0.4), -int(most * 0.4)]
    return np.concatenate([*(shapes * 2.0**power for power in powers), shapes[:3] * 2.0 ** (5 - most)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_norm(dtype):
    def norm(x):
        return numerics.norm(x, axis=0)

    within = [row for row in rows(dtype) if 1e-30 < np.abs(row).max() < 1e30]  # 1 / norm and its parts in range
    assert_vector(norm, lambda x: [length(x)], unit, None, rows(dtype), dtype)
    assert_vector(
        norm, lambda x: [length(x)], unit, bends, within, dtype,
        hessian_as_a_whole=True, every_mode=dtype == "float32",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("x", "value", "gradient"),
    [
        ([0.0, 0.0], 0, [0, 0]),
        ([-0.0, 0.0], 0, [0, 0]),
        ([-3.0, 0.0], 3, [-1, 0]),
        ([0.0, -0.0, 2.0], 2, [0, 0, 1]),
        ([1e-45, 0.0], 0, [0, 0]),  # subnormal numbers are zeros to XLA
        ([INF, 1.0], INF, None),
        ([-INF, INF], INF, [NAN, NAN]),
        ([NAN, 1.0], NAN, [NAN, NAN]),
        ([3e38, 3e38], INF, None),
        ([3e38, 0.0], np.float32(3e38), [1, 0]),
        ([], 0, []),
    ],
)
def test_edges(x, value, gradient):
    x = jnp.asarray(x, "float32")
    for run in (lambda f: f, jax.jit):
        assert same(run(numerics.norm)(x), value)
        for slope in (jax.grad, jax.jacfwd):
            assert gradient is None or same(run(slope(numerics.norm))(x), gradient)


@pytest.mark.parametrize("order", [2, 3])
def test_every_higher_derivative_at_zero_is_zero(order):
    """The slope of |x| at 0 is taken as 0, and so are the further ones."""
    for modes in ([jax.jacfwd] * order, [jax.jacrev] * order, [jax.jacrev, *[jax.jacfwd] * (order - 1)]):
        derivative = numerics.norm
        for mode in modes:
            derivative = mode(derivative)
        assert not np.any(derivative(jnp.zeros(3)))


def test_third_derivative():
    def plain(x):
        return jnp.sqrt(jnp.sum(x * x))

    x = jnp.asarray([1.0, 2.0, -3.0])
    got, right = (jax.jacfwd(jax.jacfwd(jax.jacrev(f)))(x) for f in (numerics.norm, plain))
    np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), [1], (0, 2), ()])
def test_axes(axis):
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    axes = tuple(axis) if isinstance(axis, list) else axis
    right = np.sqrt(np.sum(np.float64(x) ** 2, axis=axes))
    np.testing.assert_allclose(numerics.norm(jnp.asarray(x), axis), right, rtol=1e-6)


def test_rows_of_different_sizes_do_not_meet():
    x = jnp.asarray([[3e-25, 4e-25], [3e25, -4e25], [0.0, 0.0], [3.0, 4.0]])
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(numerics.norm)))(x)
    np.testing.assert_allclose(value, [5e-25, 5e25, 0, 5], rtol=1e-6)
    np.testing.assert_allclose(slope, [[0.6, 0.8], [0.6, -0.8], [0, 0], [0.6, 0.8]], rtol=1e-6)


def test_of_nothing_and_of_a_number():
    assert same(numerics.norm(jnp.zeros((2, 0)), 1), [0, 0])
    assert jax.grad(lambda x: numerics.norm(x, 1).sum())(jnp.zeros((2, 0))).shape == (2, 0)
    assert float(numerics.norm(-2.0)) == 2 and float(jax.grad(numerics.norm)(-2.0)) == -1
    assert float(jax.grad(numerics.norm)(0.0)) == 0


@pytest.mark.parametrize(("dtype", "size"), [("float16", 6e4), ("float16", 1e-4), ("bfloat16", 1e38)])
def test_half_precision(dtype, size):
    x = jnp.asarray([0.6 * size, -0.8 * size], dtype)
    value, slope = jax.value_and_grad(numerics.norm)(x)
    assert value.dtype == slope.dtype == dtype
    exactly = np.asarray(x, np.float64)
    np.testing.assert_allclose(np.float64(value), np.hypot(*exactly), rtol=1e-2)
    np.testing.assert_allclose(np.asarray(slope, np.float64), exactly / np.hypot(*exactly), rtol=1e-2)


def test_a_long_vector():
    x = np.random.default_rng(2).normal(size=100_000).astype("float32")
    for scale in (1.0, 2.0**-100, 2.0**100):
        right = np.sqrt(np.sum(np.float64(x) ** 2)) * scale
        assert float(numerics.norm(jnp.asarray(x * np.float32(scale)))) == pytest.approx(right, rel=1e-6)


SIZES = st.floats(-124, 120).map(lambda power: 2.0**power)
SIGNED = st.one_of(st.just(0.0), st.builds(lambda size, sign: size * sign, SIZES, st.sampled_from([-1.0, 1.0])))


@given(hypothesis.extra.numpy.arrays(np.float32, 4, elements=SIGNED.map(lambda x: float(np.float32(x)))))
def test_any_vector_as_math_hypot(x):
    """Value and slopes, whatever the sizes of the entries."""
    value, slope = jax.value_and_grad(numerics.norm)(jnp.asarray(x))
    right = math.hypot(*x.tolist())
    assert float(value) == pytest.approx(right, rel=5e-7)
    units = [one / right if right else 0.0 for one in x.tolist()]
    np.testing.assert_allclose(slope, units, rtol=1e-6, atol=2e-38)


@given(hypothesis.extra.numpy.arrays(np.float64, 3, elements=st.floats(-1e300, 1e300)))
def test_any_vector_of_doubles(x):
    with in_dtype("float64"):
        value = float(numerics.norm(jnp.asarray(x)))
    right = length([mpf(one) for one in x.tolist()])
    assert abs(value - right) <= 4 * 2.0**-52 * right + np.finfo(np.float64).tiny
