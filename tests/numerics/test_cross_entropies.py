"""Cross entropies against mpmath on a few logits, and against float64 on arrays large enough for XLA's own loops."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import exp, log, log1p

from numerics.reference import DTYPES, assert_elementwise, assert_vector, grid, in_dtype, same
from stablegrad.numerics import jax as numerics

INF, NAN = math.inf, math.nan
N = 3
K = range(N)

ROWS = [
    # logits, targets
    [0.0, 0.0, 0.0, 0.25, 0.5, 0.25],
    [30.0, 0.0, -1.0, 1.0, 0.0, 0.0],
    [-30.0, 3.0, 2.5, 1.0, 0.0, 0.0],
    [1000.0, 1000.0, 998.0, 0.5, 0.25, 0.5],
    [-1.0, -21.0, 20.0, 0.0, 0.0, 1.0],
    [80.5, 79.0, 11.0, 0.125, 0.75, 0.125],
]


def entropy(x):
    return numerics.softmax_cross_entropy(x[:N], x[N:], axis=0)


def shares(x):
    total = sum(exp(x[i]) for i in K)
    return [exp(x[i]) / total for i in K]


def gradient(x):
    p, weight = shares(x), sum(x[N:])
    return [weight * p[i] - x[N + i] for i in K] + [-log(p[i]) for i in K]


def hessian(x):
    p, weight = shares(x), sum(x[N:])
    by_x = [[weight * p[i] * ((i == j) - p[j]) for j in K] for i in K]
    mixed = [[p[i] - (i == j) for j in K] for i in K]  # by logit i and target j
    rows = [by_x[i] + mixed[i] for i in K] + [[mixed[i][j] for i in K] + [0] * N for j in K]
    return [one for row in rows for one in row]


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_cross_entropy(dtype):
    def value(x):
        return [-sum(t * log(p) for t, p in zip(x[N:], shares(x), strict=True))]

    assert_vector(
        entropy, value, gradient, hessian, ROWS, dtype, hessian_as_a_whole=True, every_mode=dtype == "float32"
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_sigmoid_cross_entropy(dtype):
    def value(x, t):
        return t * log1p(exp(-x)) + (1 - t) * log1p(exp(x))

    def sigma(x):
        return 1 / (1 + exp(-x))

    points = grid(
        dtype,
        lambda random: np.concatenate([random.uniform(-80, 80, 48), random.uniform(-4, 4, 48)]),
        lambda random: [0.0, 1.0, 0.25, 0.9, 1.0, 0.0, 0.5],
    )
    first = [lambda x, t: sigma(x) - t, lambda x, t: -x]
    second = [
        [lambda x, t: sigma(x) * sigma(-x), lambda x, t: -1 + 0 * x],
        [lambda x, t: -1 + 0 * x, lambda x, t: 0 * x],
    ]
    assert_elementwise(numerics.sigmoid_cross_entropy, value, first, second, points, dtype)


SIGMOID_EDGES = [
    (INF, 1.0, 0, 0),
    (INF, 0.0, INF, 1),
    (-INF, 0.0, 0, 0),
    (-INF, 1.0, INF, -1),
    (INF, 0.5, INF, 0.5),
    (1e38, 0.0, 1e38, 1),
    (NAN, 0.0, NAN, NAN),
]
SOFTMAX_EDGES = [
    ([-INF, 0.0], [0.0, 1.0], 0, [0, 0]),
    ([-INF, 0.0], [1e-6, 1.0], INF, None),
    ([-INF, -INF], [0.0, 1.0], NAN, None),
    ([-INF, -INF], [0.0, 0.0], NAN, None),
    ([INF, 0.0], [0.0, 1.0], NAN, [NAN, -1]),
    ([INF, 0.0], [1.0, 0.0], NAN, [NAN, 0]),
    ([INF, INF], [1.0, 0.0], NAN, [NAN, NAN]),
    ([NAN, 0.0], [0.0, 1.0], NAN, None),
    ([0.0, 0.0], [NAN, 1.0], NAN, None),
    ([1e30, 0.0], [0.0, 1.0], 1e30, [1, -1]),
    ([0.0, -1e30], [0.0, 1.0], 1e30, [1, -1]),
    ([3.0, 1.0], [0.0, 0.0], 0, [0, 0]),
]


@pytest.mark.parametrize("copies", [1, 6000])  # few are compiled in another way than many
def test_edges(copies):
    x, t, value, slope = (jnp.tile(jnp.asarray(column), copies) for column in zip(*SIGMOID_EDGES, strict=True))
    got, gradient = jax.jit(jax.vmap(jax.value_and_grad(numerics.sigmoid_cross_entropy)))(x, t)
    assert same(got, value) and same(gradient, slope)

    def loss(x, t):
        values = numerics.softmax_cross_entropy(x, t)
        return values.sum(), values

    x, t = (jnp.tile(jnp.asarray([row[k] for row in SOFTMAX_EDGES]), (copies, 1)) for k in (0, 1))
    (_, got), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(x, t)
    assert same(got, np.tile(np.float32([row[2] for row in SOFTMAX_EDGES]), copies))
    for k, (*_, slope) in enumerate(SOFTMAX_EDGES):
        assert slope is None or same(gradient[k :: len(SOFTMAX_EDGES)], [slope] * copies)


def large_rows(classes):
    """Logits of which half the rows are confident, some have ties, some are far from 0; and labels, half at the top."""
    random = np.random.default_rng(classes)
    rows = 5000
    x = random.normal(size=(rows, classes)) * random.choice([0.1, 1.0, 5.0, 30.0], (rows, 1))
    every, label = np.arange(rows), random.integers(0, classes, rows)
    sure = random.random(rows) < 0.5
    x[every[sure], label[sure]] = x[sure].max(1) + random.exponential(12, sure.sum())
    x[::10] = np.round(x[::10])
    x = x.astype("float32")
    label = np.where(random.random(rows) < 0.5, x.argmax(1), random.integers(0, classes, rows))
    return x, label


@pytest.mark.parametrize("classes", [10, 300])
def test_large_arrays_keep_their_digits(classes):
    x, label = large_rows(classes)
    every, wide = np.arange(len(x)), x.astype("longdouble")
    top = wide.argmax(1)
    e = np.exp(wide - wide.max(1, keepdims=True))
    others = e.copy()
    others[every, top] = 0
    rest = others.sum(1)
    p = e / (1 + rest)[:, None]
    gradient = p.copy()
    gradient[every, label] = -(rest[:, None] + 1 - e)[every, label] / (1 + rest)
    right = label == top
    gradient[every[right], label[right]] = -(rest / (1 + rest))[right]
    value = np.log1p(rest) - (wide - wide.max(1, keepdims=True))[every, label]
    targets = np.eye(classes, dtype="float32")[label]
    losses = {
        "cross entropy": lambda x: numerics.softmax_cross_entropy(x, targets),
        "log_softmax": lambda x: -numerics.log_softmax(x)[every, label],
        "picks": lambda x: -numerics.log_softmax_of_picks(x)[every, label],
        "logsumexp": lambda x: numerics.logsumexp(x, 1) - x[every, label],
    }
    for name, loss in losses.items():
        got, slope = jax.jit(lambda x, loss=loss: (loss(x), jax.grad(lambda x: loss(x).sum())(x)))(x)
        got, slope = np.asarray(got), np.asarray(slope)
        if name != "logsumexp":  # the difference cancels
            size = 40 + 2 * np.abs(x).max(1)
            assert (np.abs(got - value) <= size * np.spacing(value.astype("float32")) + 2e-38 * classes).all(), name
            bound = (size[:, None]) * np.spacing(np.abs(gradient).astype("float32")) + 2e-38 * classes
            assert (np.abs(slope - gradient) <= bound).all(), name


def test_axes_and_dtypes():
    random = np.random.default_rng(0)
    x, t = (jnp.asarray(random.uniform(size=(2, 3, 4)), "float32") for _ in range(2))
    for axis, dims in ((1, (1,)), ((0, -1), (0, 2)), (None, (0, 1, 2))):
        plain = -(t * jax.nn.log_softmax(x, dims)).sum(dims)
        assert np.allclose(numerics.softmax_cross_entropy(x, t, axis), plain, rtol=1e-5)
    assert numerics.softmax_cross_entropy(x, t[0, 0]).shape == (2, 3)
    assert same(numerics.softmax_cross_entropy(jnp.zeros((2, 0)), jnp.zeros((2, 0))), [0, 0])
    half = numerics.softmax_cross_entropy(x.astype("float16"), t.astype("float16"))
    assert half.dtype == "float16"
    with in_dtype("float64"):
        assert numerics.sigmoid_cross_entropy(jnp.float64(1.0), jnp.float32(0.5)).dtype == "float64"


@pytest.mark.parametrize("shape", [(3, 4), (50, 7), (4500, 4)])
def test_logits_that_are_products(shape):
    """Contracted with a subtraction they are rounded in another way than alone: the largest one is not itself."""
    random = np.random.default_rng(0)
    z = random.normal(size=shape).astype("float32")
    z[:, 0] = 15 + random.uniform(size=shape[0])
    label = jnp.zeros(shape[0], int)
    targets = jax.nn.one_hot(label, shape[1])
    losses = {
        "cross entropy": lambda z: numerics.softmax_cross_entropy(2.7 * z, targets),
        "log_softmax": lambda z: -numerics.log_softmax(2.7 * z)[jnp.arange(shape[0]), label],
        "picks": lambda z: -numerics.log_softmax_of_picks(2.7 * z)[jnp.arange(shape[0]), label],
        "logsumexp": lambda z: numerics.logsumexp(2.7 * (z - z[:, :1]), 1),
    }
    wide = np.float32(2.7).astype("float64") * z
    rest = np.exp(wide[:, 1:] - wide[:, :1]).sum(1)
    for name, loss in losses.items():
        value, slope = jax.jit(lambda z, loss=loss: (loss(z), jax.grad(lambda z: loss(z).sum())(z)))(z)
        assert np.allclose(value, rest, rtol=1e-4, atol=0), name
        assert name == "logsumexp" or np.allclose(slope[:, 0], -2.7 * rest, rtol=1e-4, atol=0), name
