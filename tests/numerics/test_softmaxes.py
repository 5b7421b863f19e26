"""Softmaxes and sums of the others against mpmath: ties, confident predictions, offsets, infinities."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import exp, log, mpf

from numerics.reference import DTYPES, PRECISION, assert_vector, in_dtype, same
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan
N = 4
K = range(N)

ROWS = [
    [0.0, 0.0, 0.0, 0.0],
    [1.0, 2.0, 3.0, 4.0],
    [30.0, 0.0, -1.0, 2.0],
    [-1e-3, -30.0, -40.0, -35.0],
    [80.25, 79.5, 80.25, 11.0],
    [-50.0, 3.0, 3.0, 3.0],
    [0.5, 0.5000001, 0.4999, -2.0],
    [-8.0, -0.0003354, -9.0, -60.0],
    [1000.0, 960.0, 1000.5, 999.0],
    [0.0, -1.0, -40.0, -41.0],
]


def shares(x):
    total = sum(map(exp, x))
    return [exp(one) / total for one in x]


def others(x):
    """For each i the softmax over j != i, with 0 at i."""
    for i in K:
        total = sum(exp(x[j]) for j in K if j != i)
        yield [exp(x[j]) / total if j != i else mpf(0) for j in K]


def bend(p):
    """The second derivatives of the logarithm whose gradient is the share p."""
    return [[p[j] * ((j == k) - p[k]) for k in K] for j in K]


def softmax_slopes(x):
    p = shares(x)
    return [p[i] * ((i == j) - p[j]) for i in K for j in K]


def softmax_bends(x):
    p = shares(x)
    h = bend(p)
    return [p[i] * (((i == j) - p[j]) * ((i == k) - p[k]) - h[j][k]) for i in K for j in K for k in K]


def log_sum_others(x):
    return [log(sum(exp(x[j]) for j in K if j != i)) for i in K]


TRUTH = {
    "logsumexp": (
        lambda x: [log(sum(map(exp, x)))],
        shares,
        lambda x: [h for row in bend(shares(x)) for h in row],
    ),
    "softmax": (shares, softmax_slopes, softmax_bends),
    "one_minus_softmax": (
        lambda x: [1 - p for p in shares(x)],
        lambda x: [-s for s in softmax_slopes(x)],
        lambda x: [-s for s in softmax_bends(x)],
    ),
    "log_softmax": (
        lambda x: [log(p) for p in shares(x)],
        lambda x: [(i == j) - p for i in K for j, p in enumerate(shares(x))],
        lambda x: [-h for _ in K for row in bend(shares(x)) for h in row],
    ),
    "log_sum_others": (
        log_sum_others,
        lambda x: [v for row in others(x) for v in row],
        lambda x: [h for row in others(x) for line in bend(row) for h in line],
    ),
    "log_one_minus_softmax": (
        lambda x: [log(1 - p) for p in shares(x)],
        lambda x: [v - p for row in others(x) for v, p in zip(row, shares(x), strict=True)],
        lambda x: [
            a - b
            for row in others(x)
            for one, two in zip(bend(row), bend(shares(x)), strict=True)
            for a, b in zip(one, two, strict=True)
        ],
    ),
}


def along_rows(name):
    def function(x):
        return getattr(numerics, name)(x, axis=0)

    function.__name__ = name
    return function


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TRUTH)
def test_against_mpmath(name, dtype):
    # Where one of the others dominates the rest, the second derivatives of their sum cancel.
    whole = name == "log_sum_others"
    every_mode = dtype == "float32" and name in ("logsumexp", "log_softmax", "log_sum_others")
    value, gradient, hessian = TRUTH[name]
    if dtype == "float64" and "one_minus" in name:
        hessian = None  # the rule is that of the other functions
    assert_vector(along_rows(name), value, gradient, hessian, ROWS, dtype, whole, every_mode)


# Input, value, Jacobian in either mode (None: not pinned).
EDGES = {
    "logsumexp": [
        ([-INF, -INF], -INF, [0, 0]),
        ([INF, 1.0], INF, [1, 0]),
        ([INF, INF], INF, [NAN, NAN]),
        ([2.0, -INF], 2, [1, 0]),
        ([NAN, 1.0], NAN, None),
        ([INF, NAN], NAN, None),
    ],
    "softmax": [
        ([-INF, -INF], [NAN, NAN], None),
        ([INF, 1.0], [NAN, 0], [[NAN, NAN], [NAN, NAN]]),
        ([INF, INF], [NAN, NAN], [[NAN, NAN], [NAN, NAN]]),
        ([2.0, -INF], [1, 0], [[0, 0], [0, 0]]),
        ([NAN, 1.0], [NAN, NAN], None),
    ],
    "one_minus_softmax": [
        ([-INF, -INF], [NAN, NAN], None),
        ([INF, 1.0], [NAN, 1], [[NAN, NAN], [NAN, NAN]]),
        ([INF, INF], [NAN, NAN], [[NAN, NAN], [NAN, NAN]]),
        ([2.0, -INF], [0, 1], [[0, 0], [0, 0]]),
        ([NAN, 1.0], [NAN, NAN], None),
    ],
    "log_softmax": [
        ([-INF, -INF], [NAN, NAN], None),
        ([INF, 1.0], [NAN, -INF], [[NAN, NAN], [NAN, NAN]]),
        ([INF, INF], [NAN, NAN], [[NAN, NAN], [NAN, NAN]]),
        ([2.0, -INF], [0, -INF], [[0, 0], [-1, 1]]),
        ([NAN, 1.0], [NAN, NAN], None),
    ],
    "log_sum_others": [
        ([-INF, -INF], [-INF, -INF], [[0, 0], [0, 0]]),
        ([3.0, -INF], [-INF, 3], [[0, 0], [1, 0]]),
        ([INF, 1.0], [1, INF], [[0, 1], [1, 0]]),
        ([INF, INF], [INF, INF], [[0, 1], [1, 0]]),
        ([2.0], [-INF], [[0]]),
    ],
    "log_one_minus_softmax": [
        ([-INF, -INF], [NAN, NAN], None),
        ([3.0, -INF], [-INF, 0], [[-1, 0], [0, 0]]),
        ([INF, 1.0], [NAN, 0], None),
        ([INF, INF], [NAN, NAN], None),
        ([2.0], [-INF], None),
    ],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EDGES)
def test_edges(name, dtype):
    function = along_rows(name)
    rounding = 1e-7 if name == "log_softmax" else 0
    with in_dtype(dtype):
        for width in {len(x) for x, _, _ in EDGES[name]}:
            rows = [row for row in EDGES[name] if len(row[0]) == width]
            x = jnp.asarray([row[0] for row in rows], dtype)
            modes = {"value": function, "reverse": jax.jacrev(function), "forward": jax.jacfwd(function)}
            results = jax.jit(lambda x, modes=modes: {m: jax.vmap(one)(x) for m, one in modes.items()})(x)
            results["eager"] = jax.vmap(function)(x)
            results = jax.tree.map(np.asarray, results)
            for k, (point, value, jacobian) in enumerate(rows):
                for mode, got in results.items():
                    if mode in ("value", "eager"):
                        assert np.allclose(got[k], value, rtol=rounding, atol=0, equal_nan=True), (point, got[k])
                    else:
                        assert jacobian is None or same(got[k], jacobian), (point, mode, got[k])


def test_a_confident_prediction_among_many():
    x = jnp.full(1000, -40.0).at[7].set(0.0)
    rest = 999 * math.exp(-40)
    assert float(numerics.logsumexp(x)) == pytest.approx(rest, rel=1e-5)
    loss, gradient = jax.jit(jax.value_and_grad(lambda x: -numerics.log_softmax(x)[7]))(x)
    assert float(loss) == pytest.approx(rest, rel=1e-5)
    assert float(gradient[7]) == pytest.approx(-rest, rel=1e-5)
    assert float(numerics.one_minus_softmax(x)[7]) == pytest.approx(rest, rel=1e-5)
    assert float(numerics.log_one_minus_softmax(x)[7]) == pytest.approx(math.log(rest), rel=1e-6)


WEIGHTS = [0.5, -0.1, 0.75, 1.5]
CONFIDENT = [[20.0, -0.25, 0.5, -1.0], [-20.0, 60.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0], [3.0, 3.0, -60.0, 3.0]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "one_minus_softmax"])
def test_cotangents_and_tangents_that_are_not_one_hot(name, dtype):
    """What a largest entry near 1 leaves over for the others must not be lost, in either mode."""
    function = getattr(numerics, name)
    with in_dtype(dtype):
        x, w = jnp.asarray(CONFIDENT, dtype), jnp.asarray(WEIGHTS, dtype)
        reverse = jax.jit(jax.grad(lambda x: (w * function(x)).sum()))(x)
        forward = jax.jit(lambda x: jax.jvp(function, (x,), (jnp.broadcast_to(w, x.shape),))[1])(x)
        eps = float(jnp.finfo(dtype).eps)
    weights = [mpf(float(v)) for v in w]
    with mpmath.workprec(PRECISION):
        for k, row in enumerate(CONFIDENT):
            p = shares([mpf(v) for v in row])
            mean = sum(a * b for a, b in zip(p, weights, strict=True))
            if name == "log_softmax":
                right = [v - q * sum(weights) for v, q in zip(weights, p, strict=True)]
                tangent = [v - mean for v in weights]
            else:
                sign = 1 if name == "softmax" else -1
                right = tangent = [sign * q * (v - mean) for v, q in zip(weights, p, strict=True)]
            assert np.allclose(reverse[k], np.asarray(right, float), rtol=32 * eps, atol=0), (row, reverse[k], right)
            assert np.allclose(forward[k], np.asarray(tangent, float), rtol=32 * eps, atol=0), (row, forward[k])


def test_an_entry_of_minus_infinity_gets_no_gradient_from_the_others():
    x = jnp.asarray([1.0, -INF, 2.0])
    labels = jnp.asarray([0.25, 0.0, 0.75])

    def loss(x):
        return -numerics.times_log(labels, numerics.log_softmax(x)).sum()

    value, gradient = jax.jit(jax.value_and_grad(loss))(x)
    p = 1 / (1 + math.e)
    assert float(value) == pytest.approx(-0.25 * math.log(p) - 0.75 * math.log(1 - p), rel=1e-6)
    assert np.allclose(gradient, [p - 0.25, 0, 0.25 - p], atol=1e-7)
    assert np.isfinite(jax.jit(jax.hessian(loss))(x)).all()
    assert np.isfinite(jax.jvp(loss, (x,), (jnp.ones(3),))[1])


def test_axes():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4)))
    flat = numerics.logsumexp(x.transpose(1, 0, 2).reshape(3, 8), -1)
    assert np.allclose(numerics.logsumexp(x, axis=(0, -1)), flat)
    assert np.allclose(numerics.logsumexp(x), numerics.logsumexp(x.reshape(-1), 0))
    assert np.allclose(numerics.softmax(x, (0, 2)).sum((0, 2)), 1)
    assert np.allclose(numerics.log_softmax(x, [0, 2]), jax.nn.log_softmax(x, (0, 2)), atol=1e-6)
    assert numerics.log_sum_others(x, 1).shape == x.shape
    with pytest.raises(ValueError, match="does not exist"):
        numerics.logsumexp(x, 3)
    with pytest.raises(ValueError, match="twice"):
        numerics.softmax(x, (0, -3))
    with pytest.raises(ValueError, match="one axis"):
        numerics.log_sum_others(x, (0, 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["logsumexp", "log_softmax"])
def test_half_precision_is_rounded_once(name, dtype):
    x = jnp.asarray(ROWS[1], dtype)
    function = along_rows(name)
    assert same(function(x), function(x.astype("float32")).astype(dtype))
