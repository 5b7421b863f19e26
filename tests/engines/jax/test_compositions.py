"""The small functions that only emitted programs need, against NumPy in double precision."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from engines.jax.program import double_precision
from stablegrad.engines.jax import compositions

INF, NAN = np.inf, np.nan


def floats(*values):
    return jnp.array(values, jnp.float32)


def each(function):
    """The slope of an elementwise function at each point."""
    return jax.vmap(jax.grad(function))


# -- guards ----------------------------------------------------------------------------------------------------------


def test_nonnegative():
    np.testing.assert_array_equal(
        compositions.nonnegative(floats(0, 2, INF, -1, -INF, NAN)), [0, 2, INF, NAN, NAN, NAN]
    )
    np.testing.assert_array_equal(each(compositions.nonnegative)(floats(0, 2, -1)), [1, 1, NAN])


def test_require():
    value, guard = floats(1, 2, 3, 4), floats(0, 5, -1, NAN)
    np.testing.assert_array_equal(compositions.require(value, guard), [1, 2, NAN, 4])
    by_value, by_guard = jax.vmap(jax.grad(compositions.require, argnums=(0, 1)))(value, guard)
    np.testing.assert_array_equal(by_value, [1, 1, NAN, 1])
    np.testing.assert_array_equal(by_guard, [0, 0, 0, 0])


def test_require_finite():
    value, guard = floats(1, 2, 3, 4), floats(0, -5, INF, NAN)
    np.testing.assert_array_equal(compositions.require_finite(value, guard), [1, 2, NAN, NAN])


# -- shifts ----------------------------------------------------------------------------------------------------------

ROWS = floats([1, 2, 3], [-INF, -INF, -INF], [INF, 0, 0], [NAN, 0, 0], [-INF, 5, -1])


def test_the_shift_is_the_largest_exponent_where_that_is_a_number():
    np.testing.assert_array_equal(compositions.shift(ROWS, (1,)), [3, 0, 0, 0, 5])
    assert not np.any(jax.grad(lambda e: compositions.shift(e, (1,)).sum())(ROWS[:1]))


def test_exponents_with_mantissa_zero_do_not_count():
    weights = floats([1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 1, 1], [1, 0, 1])
    np.testing.assert_array_equal(compositions.shift_weighted(ROWS, weights, (1,)), [2, 0, 0, 0, -1])
    np.testing.assert_array_equal(compositions.shift_weighted(ROWS, np.float32(2)[()], (1,)), [3, 0, 0, 0, 5])


def test_the_shift_of_a_few_terms():
    one, zero = np.asarray(1, np.float32), np.asarray(0, np.float32)
    e = floats(-5, 3, 700, -INF)
    np.testing.assert_array_equal(compositions.shift_terms(one, zero, one, e), [0, 3, 700, 0])
    np.testing.assert_array_equal(compositions.shift_terms(floats(1, 0, 0, 1), e, one, zero), [0, 0, 0, 0])
    np.testing.assert_array_equal(compositions.shift_terms(floats(1, 1, 0, 1), e, zero, zero), [-5, 3, 0, 0])


# -- sums of few terms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [-700.0, -20.0, 0.0, 3.0, 80.0, 700.0])
def test_the_logarithm_of_one_plus_a_multiple(e):
    one, zero = np.asarray(1, np.float32), np.asarray(0, np.float32)
    value = compositions.log_sum_terms(one, zero, floats(3.0), floats(e))
    exact = float(mpmath.log(1 + 3 * mpmath.exp(e)))
    np.testing.assert_allclose(value, [exact], rtol=1e-6, atol=1e-7)


def test_a_sum_that_is_zero_or_negative():
    m, e = (floats(1.0, 1.0), floats(700.0, 700.0)), floats(700.0, 700.0)
    np.testing.assert_array_equal(compositions.log_sum_terms(m[0], e, floats(-1.0, -2.0), e), [-INF, NAN])
    np.testing.assert_array_equal(
        compositions.log_sum_terms(floats(0.0), floats(700.0), floats(0.0), floats(3.0)), [-INF]
    )


@pytest.mark.parametrize(
    "terms", [(1.0, 2.0), (700.0, -700.0, 0.0), (-900.0, -901.0), (-INF, 3.0), (800.0, 800.0, 800.0)]
)
def test_the_logarithm_of_a_few_exponentials(terms):
    exact = float(mpmath.log(sum(mpmath.exp(t) for t in terms if t > -INF)))
    np.testing.assert_allclose(compositions.log_sum_exp_terms(*map(floats, terms)), [exact], rtol=1e-6)
    slopes = jax.grad(lambda ts: compositions.log_sum_exp_terms(*ts)[0])(list(map(floats, terms)))
    shares = [float(mpmath.exp(t - exact)) if t > -INF else 0.0 for t in terms]
    np.testing.assert_allclose(np.ravel(slopes), shares, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("terms", [(3e-25, -4e-25), (3e25, 4e25, 0.0), (0.0, 0.0), (1.0, 2.0, 2.0)])
def test_the_length_of_a_few_terms(terms):
    length = float(mpmath.norm(terms))
    np.testing.assert_allclose(compositions.norm_of_terms(*map(floats, terms)), [length], rtol=1e-6)
    slopes = jax.grad(lambda ts: compositions.norm_of_terms(*ts)[0])(list(map(floats, terms)))
    np.testing.assert_allclose(np.ravel(slopes), [t / length if length else 0.0 for t in terms], rtol=1e-6)


# -- functions of one value ------------------------------------------------------------------------------------------

POINTS = np.array([-600, -90, -30, -3, -1.0, -0.5, -1e-3, -1e-8, 1e-8, 1e-3, 0.5, 1.0, 3, 5, 30, 80], np.float64)
FUNCTIONS = {
    "log_softplus": lambda x: mpmath.log(mpmath.log1p(mpmath.exp(x))),
    "log1mexp_of_exp": lambda x: mpmath.log(-mpmath.expm1(-mpmath.exp(x))),
    "inverse_expm1": lambda x: 1 / mpmath.expm1(x),
    "inverse_exprel": lambda x: x / mpmath.expm1(x),
    "sigmoid_slope": lambda x: 1 / (2 + mpmath.exp(x) + mpmath.exp(-x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_slopes(name):
    """In float64, where every result is a normal number: within a few last digits of the condition of the function."""
    function, exact = getattr(compositions, name), FUNCTIONS[name]
    points = POINTS[np.abs(POINTS) < 300] if name != "log_softplus" else POINTS
    if name == "log1mexp_of_exp":
        points = points[points < 6]  # further right it underflows to 0
    with double_precision(), mpmath.workdps(150):
        values, reverse, forward = jax.jit(
            lambda x: (function(x), jax.vmap(jax.grad(function))(x), jax.vmap(jax.jacfwd(function))(x))
        )(points)
        np.testing.assert_allclose(reverse, forward, rtol=1e-14)
        for x, value, slope in zip(points, np.asarray(values), np.asarray(reverse), strict=True):
            wanted, steep, bent = (
                mpmath.diff(exact, mpmath.mpf(float(x)), n) if n else exact(mpmath.mpf(float(x))) for n in range(3)
            )
            assert abs(value - wanted) <= 8 * 2**-52 * (abs(wanted) + abs(x * steep))
            assert abs(slope - steep) <= 32 * 2**-52 * (abs(steep) + abs(x * bent))


@pytest.mark.parametrize(
    "name, x, value",
    [
        ("log_softplus", -INF, -INF), ("log_softplus", INF, INF), ("log1mexp_of_exp", -INF, -INF),
        ("log1mexp_of_exp", INF, 0.0), ("inverse_expm1", 0.0, INF), ("inverse_expm1", INF, 0.0),
        ("inverse_expm1", -INF, -1.0), ("inverse_exprel", 0.0, 1.0), ("inverse_exprel", INF, 0.0),
        ("inverse_exprel", -INF, INF), ("sigmoid_slope", 0.0, 0.25), ("sigmoid_slope", INF, 0.0),
        ("sigmoid_slope", -INF, 0.0),
    ],
)  # fmt: skip
def test_edges(name, x, value):
    function = getattr(compositions, name)
    np.testing.assert_array_equal(function(floats(x)), [value])
    assert np.isnan(function(floats(NAN)))[0]


# -- pairs of exponentials -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "sign"), [("sum_of_pair", 1), ("difference_of_pair", -1)])
def test_mantissa_and_shift_of_a_pair(name, sign):
    """e^z + sign, and its slope e^z, also at the tie."""
    z = floats(0, 1e-6, -1e-6, 1, -1, 20, -20, 60, -60)

    def whole(z):
        return getattr(compositions, name)(z) * jnp.exp(compositions.pair_shift(z))

    wide = np.asarray(z, np.float64)
    right = np.expm1(wide) if sign < 0 else np.exp(wide) + 1
    np.testing.assert_allclose(whole(z), right, rtol=1e-5)
    np.testing.assert_allclose(each(whole)(z), np.exp(wide), rtol=1e-5)


def test_mantissa_and_shift_of_a_hyperbolic_cosine():
    """The slope at a constant shift is the scaled sine, to the last digits also at 0 and at the border."""
    h = floats(0, 1e-12, -1e-3, 1, -15.9, 16, 17, -40, 88, 3e38, -3e38)
    slope = each(compositions.scaled_cosh)(h)
    near, wide = h[:8], np.asarray(h[:8], np.float64)
    scale = jnp.exp(compositions.cosh_shift(near))
    np.testing.assert_allclose(compositions.scaled_cosh(near) * scale, 2 * np.cosh(wide), rtol=2e-6)
    np.testing.assert_allclose(slope[:8] * scale, 2 * np.sinh(wide), rtol=2e-6)
    np.testing.assert_array_equal(slope[8:], [1, 1, -1])
    np.testing.assert_array_equal(compositions.scaled_cosh(h[8:]), [1, 1, 1])
    assert np.isnan(compositions.scaled_cosh(floats(NAN)))[0]


def test_a_pair_of_unequal_terms():
    z = floats(0, 1e-6, -1, 1, 30, -30)
    for ratio in (4.0, 0.25):
        whole = compositions.sum_of_pair(z, ratio) * jnp.exp(compositions.pair_shift(z))
        np.testing.assert_allclose(whole, 1 + ratio * np.exp(np.asarray(z, np.float64)), rtol=1e-5)


def test_the_size_of_a_number():
    s = floats(1, -3, 1000, 0.1, 0, INF, 1e-30)
    np.testing.assert_allclose(compositions.held_size(s), [1, -4, 1024, 0.125, 1, 1, 2.0**-100], rtol=1e-5)
    assert not each(compositions.held_size)(s).any()


def test_a_logarithm_near_1():
    """(x + (1 + y)) is exact where x + y is -1, 1 + (x + y) where both are small."""
    x, y = floats(1e-12, 1e-12, 3, -2), floats(-1, 1e-10, 5, -2)
    value = compositions.log_near_1(x + y, x + (1 + y))
    np.testing.assert_allclose(value, [np.log(1e-12), 1.01e-10, np.log(9), NAN], rtol=1e-6)
    slope = each(lambda x, y: compositions.log_near_1(x + y, x + (1 + y)))(x, y)
    np.testing.assert_allclose(slope[:3], [1e12, 1, 1 / 9], rtol=1e-6)


def test_a_pair_at_the_ends():
    ends = floats(INF, -INF, NAN)
    np.testing.assert_array_equal(compositions.pair_shift(ends)[:2], [INF, 0])
    np.testing.assert_array_equal(compositions.sum_of_pair(ends), [1, 1, NAN])
    np.testing.assert_array_equal(compositions.difference_of_pair(ends), [1, -1, NAN])


def test_the_logarithm_of_one_and_a_small_number():
    m, e = floats(1e-10, -1e-10, 1e-10, 1, 0), floats(0.5, 0, 200, 200, 3)
    value = compositions.log_sum_terms(m, e, one=0)
    np.testing.assert_allclose(value, np.log1p(np.float64(m) * np.exp(np.float64(e))), rtol=1e-6)
    slope = jax.vmap(jax.grad(lambda m, e: compositions.log_sum_terms(m, e, one=0)))(m[:4], e[:4])
    small = np.exp(np.float64(e[:4]))
    np.testing.assert_allclose(slope, small / (1 + np.float64(m[:4]) * small), rtol=1e-5)


def test_the_logarithm_of_one_and_a_number_that_cancels_it():
    """The side that is not taken is the logarithm of 0: no NaN comes from there."""
    value, slopes = jax.value_and_grad(lambda m, e: compositions.log_sum_terms(m, e, one=0), (0, 1))(-1.0, 0.0)
    assert (float(value), *map(float, slopes)) == (-INF, INF, -INF)

    def two(m, e):
        return compositions.log_sum_terms(np.float32(-2), np.float32(0), m, e, one=0)  # 1 - 2 + m e^e

    value, slopes = jax.value_and_grad(two, (0, 1))(1.0, 2.0)
    right = [np.log(np.exp(2) - 1), np.exp(2) / (np.exp(2) - 1), np.exp(2) / (np.exp(2) - 1)]
    np.testing.assert_allclose([value, *slopes], right, rtol=1e-6)
