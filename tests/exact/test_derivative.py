"""Limits and one-sided derivatives: at the points where the derivatives of an engine are NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import special

from stablegrad.truth import truth

INF = np.inf


def check(function, arguments, value, *gradients):
    """The whole answer is certain, and is this."""
    found = truth(function, *map(jnp.float32, arguments))
    assert not found.undecided, found.reasons
    np.testing.assert_array_equal(found.value, np.float32(value))
    for got, right in zip(found.gradient, gradients, strict=True):
        np.testing.assert_array_equal(got, np.float32(right))


# Quotients that vanish above and below, at 0: value and derivative from their power series.
REMOVABLE = {
    "sin(x)/x": (lambda x: jnp.sin(x) / x, 1, 0),
    "sinc": (jnp.sinc, 1, 0),
    "expm1": (lambda x: (jnp.exp(x) - 1) / x, 1, 0.5),
    "x/expm1": (lambda x: x / jnp.expm1(x), 1, -0.5),
    "exp to second order": (lambda x: (jnp.exp(x) - 1 - x) / x**2, 0.5, 1 / 6),
    "log1p": (lambda x: jnp.log1p(x) / x, 1, -0.5),
    "log(1+x)": (lambda x: jnp.log(1 + x) / x, 1, -0.5),
    "cosine": (lambda x: (1 - jnp.cos(x)) / x**2, 0.5, 0),
    "tanh": (lambda x: jnp.tanh(x) / x, 1, 0),
    "sinh": (lambda x: jnp.sinh(x) / x, 1, 0),
    "atan": (lambda x: jnp.arctan(x) / x, 1, 0),
    "asinh": (lambda x: jnp.arcsinh(x) / x, 1, 0),
    "asin": (lambda x: jnp.arcsin(x) / x, 1, 0),
    "atanh": (lambda x: jnp.arctanh(x) / x, 1, 0),
    "tan": (lambda x: jnp.tan(x) / x, 1, 0),
    "erf": (lambda x: special.erf(x) / x, 2 / np.sqrt(np.pi), 0),
    "sigmoid": (lambda x: (jax.nn.sigmoid(x) - 0.5) / x, 0.25, 0),
    "softplus": (lambda x: (jax.nn.softplus(x) - jax.nn.softplus(0.0)) / x, 0.5, 0.125),
    "sqrt": (lambda x: (jnp.sqrt(1 + x) - 1) / x, 0.5, -0.125),
    "Box-Cox": (lambda x: (jnp.float32(3) ** x - 1) / x, np.log(3), np.log(3) ** 2 / 2),
    "power mean": (lambda x: jnp.mean(jnp.float32([1, 2]) ** x) ** (1 / x), np.sqrt(2), None),
    "Langevin": (lambda x: 1 / jnp.tanh(x) - 1 / x, 0, 1 / 3),
    "geometric series": (lambda x: (1 - (1 + x) ** 5) / -x, 5, 10),
    "cube": (lambda x: x**3 / x, 0, 0),
    "0/x": (lambda x: 0 * x / x, 0, 0),
}


@pytest.mark.parametrize("name", REMOVABLE)
def test_removable_singularities(name):
    function, value, slope = REMOVABLE[name]
    if slope is None:  # sqrt(2) log(2)**2 / 8, by expanding the logarithm
        slope = np.sqrt(2) * np.log(2) ** 2 / 8
    check(function, [0.0], value, slope)


# Infinite slopes, kinks and infinities inside, of which the whole shows nothing.
HIDDEN = {
    "norm squared": (lambda x: jnp.linalg.norm(x) ** 2, [[0, 0]], 0, [0, 0]),
    "Gauss of a norm": (lambda x: jnp.exp(-(jnp.linalg.norm(x) ** 2)), [[0, 0]], 1, [0, 0]),
    "cosine of a norm": (lambda x: jnp.cos(jnp.linalg.norm(x)), [[0, 0]], 1, [0, 0]),
    "x |x|": (lambda x: x * jnp.abs(x), [0], 0, 0),
    "relu squared": (lambda x: jax.nn.relu(x) ** 2, [0], 0, 0),
    "fourth power of a root": (lambda x: jnp.sqrt(x) ** 4, [0], 0, 0),
    "cube root cubed": (lambda x: jnp.cbrt(x) ** 3, [0], 0, 1),
    "square of acos": (lambda x: jnp.arccos(x) ** 2, [1], 0, -2),
    "square of acosh": (lambda x: jnp.arccosh(x) ** 2, [1], 0, 2),
    "log under exp": (lambda x: jnp.exp(2 * jnp.log(x)), [0], 0, 0),
    "logsumexp of log": (lambda x: jax.nn.logsumexp(jnp.stack([jnp.log(x), 0 * x])), [0], 0, 1),
    "ties of a maximum": (lambda x: jax.nn.logsumexp(x), [[1, 1]], 1 + np.log(2), [0.5, 0.5]),
    "a max that cancels": (
        lambda x: jnp.log(jnp.sum(jnp.exp(x - jnp.max(x)))) + jnp.max(x), [[1, 1]], 1 + np.log(2), [0.5, 0.5]),
    "product without each": (
        lambda x: jnp.sum(jnp.prod(x) / x * jnp.float32([1, 10, 100])), [[0, 3, 4]], 12, [340, 4, 3]),
    "rotation": (
        lambda w: jnp.sin(jnp.linalg.norm(w)) / jnp.linalg.norm(w) * w[1], [[0, 0]], 0, [0, 1]),
    "median of ties": (lambda x: jnp.sum(jnp.sort(x)), [[1, 1, 1]], 3, [1, 1, 1]),
    "lgamma at its pole": (lambda x: x**3 * jnp.exp(2 * jax.lax.lgamma(x)), [0], 0, 1),
    "exponentials of one number": (lambda x, y: (jnp.exp(x) - jnp.exp(y)) / (x - y), [2, 2], np.exp(2), np.exp(2) / 2,
                                   np.exp(2) / 2),
    "logs of one number": (lambda x, y: (jnp.log(x) - jnp.log(y)) / (x - y), [2, 2], 0.5, -0.125, -0.125),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_what_the_whole_does_not_show(name):
    function, *rest = HIDDEN[name]
    check(function, *rest)


# An infinity of the data: exp of it is a zero that wins over every power.
INFINITE = {
    "BCE": (lambda x: jnp.maximum(x, 0) - x * 1.0 + jnp.log1p(jnp.exp(-jnp.abs(x))), [INF], 0, 0),
    "sigmoid": (jax.nn.sigmoid, [-INF], 0, 0),
    "x exp(x)": (lambda x: x * jnp.exp(x), [-INF], 0, 0),
    "entropy": (lambda x: jnp.sum(jnp.exp(jax.nn.log_softmax(x)) * jax.nn.log_softmax(x)), [[0, 0, -INF]],
                -np.log(2), [0, 0, 0]),
    "logaddexp": (jnp.logaddexp, [-INF, 2], 2, 0, 1),
    "softmax": (lambda x: jax.nn.softmax(x)[0], [[0, -INF, 0]], 0.5, [0.25, 0, -0.25]),
    "tanh": (jnp.tanh, [INF], 1, 0),
    "1/x": (lambda x: 1 / x, [-INF], 0, 0),
    "silu": (jax.nn.silu, [-INF], 0, 0),
    "mish": (lambda x: x * jnp.tanh(jnp.log(1 + jnp.exp(x))), [-INF], 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", INFINITE)
def test_infinite_inputs(name):
    check(INFINITE[name][0], *INFINITE[name][1:])


# What is infinite or NaN stays so.
HONEST = {
    "log(0)": (jnp.log, [0], -INF, INF),
    "sqrt(0)": (jnp.sqrt, [0], 0, INF),
    "log(-1)": (jnp.log, [-1], np.nan, np.nan),
    "1/0": (lambda x: 1 / x, [0], INF, -INF),
    "1/-0": (lambda x: 1 / x, [-0.0], -INF, -INF),
    "x/y": (lambda x, y: x / y, [0, 0], np.nan, np.nan, np.nan),
    "x y/(x + y)": (lambda x, y: x * y / (x + y), [0, 0], np.nan, np.nan, np.nan),
    "Dice": (
        lambda p, t: 2 * jnp.sum(p * t) / (jnp.sum(p) + jnp.sum(t)),
        [[0, 0], [0, 0]],
        np.nan,
        [np.nan, np.nan],
        [np.nan, np.nan],
    ),
    "m/sqrt(v)": (lambda m, v: m / jnp.sqrt(v), [0, 0], np.nan, np.nan, np.nan),
    "0 * log(0)": (lambda x: 0 * jnp.log(x), [0], 0, 0),
    "y * log(0)": (lambda y, x: y * jnp.log(x), [0, 0], 0, -INF, 0),
    "0 * log(-1)": (lambda x: 0 * jnp.log(x), [-1], np.nan, np.nan),
    "0 * inf": (lambda x: 0 * x, [INF], np.nan, np.nan),
    "0 * nan": (lambda x: 0 * x, [np.nan], np.nan, np.nan),
    "all masked": (jax.nn.softmax, [[-INF, -INF]], [np.nan, np.nan], [np.nan, np.nan]),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_is_undefined_is_said_to_be(name):
    check(HONEST[name][0], *HONEST[name][1:])


@pytest.mark.parametrize(
    ("function", "point"),
    [
        (jnp.abs, 0),
        (jax.nn.relu, 0),
        (jnp.linalg.norm, [0, 0]),
        (jnp.max, [1, 1]),
        (lambda x: jnp.clip(x, 0, 1), 1),
        (lambda x: jnp.sqrt(jnp.mean((x - 1) ** 2)), [1, 1]),
    ],
)
def test_kinks_have_a_value_and_no_derivative(function, point):
    found = truth(function, jnp.float32(point))
    assert np.all(found.value_decided)
    assert not np.any(found.gradient_decided[0])
    assert found.reasons == ("the one-sided derivatives differ",)


def test_second_derivatives_beside_a_kink():
    # (x - 1) |x - 1| has the second derivative 2 sign(x - 1): none at 1.
    found = truth(lambda x: (x - 1) * jnp.abs(x - 1), jnp.float32(1))
    assert found.gradient[0] == 0 and np.isnan(found.gradient_sensitivity[0])
    # |x - 1|**3 has 0, arccosh(x)**2 has -2/3.
    found = truth(lambda x: jnp.abs(x - 1) ** 3, jnp.float32(1))
    assert found.gradient_sensitivity[0] == 0
    found = truth(lambda x: jnp.arccosh(x) ** 2, jnp.float32(1))
    assert found.gradient_sensitivity[0] == pytest.approx(2 / 3)


def test_second_derivatives_at_a_removable_singularity():
    # d2/dadb of sin(a - b)/(a - b) at a = b is 1/3, in both diagonal entries -1/3.
    found = truth(lambda a, b: jnp.sin(a - b) / (a - b), jnp.float32(2), jnp.float32(2))
    assert found.gradient == (0, 0)
    np.testing.assert_allclose(found.gradient_sensitivity, [4 / 3, 4 / 3])
