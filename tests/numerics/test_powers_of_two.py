"""Mantissas and exponents: exact, at every size, and linear where they are differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from stablegrad.numerics.jax import powers_of_two as numbers
from stablegrad.numerics.jax.scaled_products import scaled_dot, scaled_dot_exponent

EDGES = [0.0, -0.0, 1.0, -2.0, 0.5, 3e38, -1.2e-38, np.inf, -np.inf, np.nan]
NORMAL = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)


def split(x):
    return numbers.without_exponent(x), numbers.binary_exponent(x)


@given(st.lists(NORMAL, min_size=1, max_size=5))
def test_the_parts_are_those_of_frexp(values):
    x = np.array(values, np.float32)
    mantissa, exponent = split(jnp.asarray(x))
    m, e = np.frexp(x)
    np.testing.assert_array_equal(mantissa, m)
    np.testing.assert_array_equal(np.where(x == 0, 0, exponent), e)
    np.testing.assert_array_equal(numbers.times_power_of_two(mantissa, exponent), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges(dtype):
    with jax.enable_x64(dtype == "float64"):
        x = jnp.array(EDGES, dtype)
        mantissa, exponent = split(x)
        assert mantissa.dtype == x.dtype and exponent.dtype == jnp.int32
        np.testing.assert_array_equal(numbers.times_power_of_two(mantissa, exponent), x)
        np.testing.assert_array_equal(exponent[:2], numbers.OF_ZERO)
        np.testing.assert_array_equal(exponent[-3:], -numbers.OF_ZERO)


def test_beyond_the_range():
    m = jnp.float32(0.75)
    assert [float(numbers.times_power_of_two(m, jnp.int32(k))) for k in (2000, -2000, 2**30, -(2**30))] == [
        np.inf, 0, np.inf, 0]  # fmt: skip
    assert float(numbers.times_power_of_two(jnp.float32(2.0**100), jnp.int32(-200))) == 2.0**-100
    assert float(numbers.log_of_scaled(m, jnp.int32(-(10**6)))) == pytest.approx(
        np.log(0.75) - 1e6 * np.log(2), rel=1e-7
    )


def test_logarithms_next_to_one_and_of_nothing():
    near = jnp.array([1 - 2.0**-24, 1 + 2.0**-23], "float32")
    np.testing.assert_allclose(numbers.log_of_scaled(*split(near)), [-(2.0**-24), 2.0**-23], rtol=1e-6)
    edges = jnp.array([0.0, np.inf, -1.0, np.nan], "float32")
    np.testing.assert_array_equal(numbers.log_of_scaled(*split(edges)), [-np.inf, np.inf, np.nan, np.nan])


@given(st.floats(-1e6, 1e6, width=32))
def test_exponentials_in_two_parts(z):
    z = jnp.float32(z)
    mantissa, exponent = numbers.mantissa_of_exp(z), numbers.exponent_of_exp(z)
    assert 0.5 < float(mantissa) < 2
    assert np.log(np.float64(mantissa)) + int(exponent) * np.log(2) == pytest.approx(float(z), rel=2e-7, abs=2e-7)


def test_exponentials_at_the_edges():
    z = jnp.array([-np.inf, np.inf, np.nan], "float32")
    mantissa, exponent = numbers.mantissa_of_exp(z), numbers.exponent_of_exp(z)
    np.testing.assert_array_equal(numbers.times_power_of_two(mantissa, exponent), [0, np.inf, np.nan])


def test_derivatives():
    x = jnp.float32(12.0)
    assert float(jax.grad(numbers.without_exponent)(x)) == 2.0**-4
    assert float(jax.grad(numbers.times_power_of_two)(x, jnp.int32(5))) == 32
    assert float(jax.grad(lambda x: numbers.log_of_scaled(*split(x)))(x)) == pytest.approx(1 / 12)
    second = jax.grad(jax.grad(lambda x: numbers.log_of_scaled(*split(x))))(x)
    assert float(second) == pytest.approx(-1 / 144)
    slope = jax.grad(numbers.mantissa_of_exp)(jnp.float32(100.0))
    assert float(slope) == float(numbers.mantissa_of_exp(100.0))


DIMENSIONS = {
    "ij,jk->ik": (((1,), (0,)), ((), ())),
    "bij,bkj->bik": (((2,), (2,)), ((0,), (0,))),
    "ij,ij->": (((0, 1), (0, 1)), ((), ())),
    "i,j->ij": (((), ()), ((), ())),
}


@pytest.mark.parametrize("form", DIMENSIONS)
@pytest.mark.parametrize("shift", [0, -300])
def test_matrix_products(form, shift):
    """As einsum gives them, wherever the exponents are moved to."""
    random = np.random.default_rng(0)
    left, right = form.split("->")[0].split(",")
    sizes = dict(zip("bijk", (2, 3, 4, 5), strict=True))
    a, b = (jnp.asarray(random.normal(size=[sizes[c] for c in term]), "float32") for term in (left, right))

    def product(a, b):
        (m_a, k_a), (m_b, k_b) = split(a), split(b)
        k_a = k_a + shift
        mantissa = scaled_dot(DIMENSIONS[form], m_a, k_a, m_b, k_b)
        return numbers.times_power_of_two(mantissa, scaled_dot_exponent(DIMENSIONS[form], k_a, k_b) - shift)

    expected = lambda a, b: jnp.einsum(form, a, b)  # noqa: E731
    np.testing.assert_allclose(product(a, b), expected(a, b), rtol=2e-6, atol=1e-6)
    got, right_ones = (jax.grad(lambda a, b, f=f: jnp.sum(jnp.sin(f(a, b))), (0, 1))(a, b) for f in (product, expected))
    for one, other in zip(got, right_ones, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_zero_does_not_hide_what_counts():
    """The largest of a row meets a zero: the rest is 2**-1000 of it, and the whole sum."""
    m, k = jnp.array([0.5, 0.5]), jnp.array([0, -1000], jnp.int32)
    n, j = split(jnp.array([0.0, 1.0]))
    dimensions = (((0,), (0,)), ((), ()))
    assert float(scaled_dot(dimensions, m, k, n, j)) == 0.25
    assert int(scaled_dot_exponent(dimensions, k, j)) == -999


def test_under_transformations():
    x = jnp.array([1e-30, 3.0, 2e30])
    f = lambda x: numbers.log_of_scaled(*split(x))  # noqa: E731
    plain = jnp.log(x)
    for run in (jax.jit(f), jax.vmap(f), jax.checkpoint(f), lambda x: lax.map(f, x)):
        np.testing.assert_allclose(run(x), plain, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x), 1 / x, rtol=1e-6)
    _, tangent = jax.jvp(f, (x,), (x,))
    np.testing.assert_allclose(tangent, 1, rtol=1e-6)
