"""Logarithms of sums along axes: logsumexp, its weights, log-softmax and log(1 - softmax)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import log_softmax, logsumexp, softmax

from rules.harness import assert_left_alone, assert_same_kind, check_rule

INF, NAN = float("inf"), float("nan")
LOG = "log_of_companion"
ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0], [1.0, 2.0, 3.0, 4.0]])
WEIGHTS = np.array([[0.5, 0.25, 2.0, 1.0], [1.0, 0.5, 0.25, 2.0], [0.25, 1.0, 4.0, 1.0], [1.0, 0.5, 0.25, 2.0]])
SIGNED = (WEIGHTS * np.array([1.0, -1.0, 1.0, -1.0])).astype(np.float32)
SUMS = {
    "log(sum(exp(x)))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1)),
    "log(mean(exp(x)))": lambda x, w: jnp.log(jnp.mean(jnp.exp(x), -1)),
    "log(sum(exp(x), keepdims))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True)),
    "log(sum(exp(x.T), 0))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x.T), 0)),
    "log(sum(w exp(x)))": lambda x, w: jnp.log(jnp.sum(w * jnp.exp(x), -1)),
    "log(mean(exp(x) w))": lambda x, w: jnp.log(jnp.mean(jnp.exp(x) * w, -1)),
    "log(sum(exp(x) / w))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x) / w, -1)),
    "log(1 + sum(exp(x)))": lambda x, w: jnp.log(1 + jnp.sum(jnp.exp(x), -1)),
    "log1p(sum(exp(x)))": lambda x, w: jnp.log1p(jnp.sum(jnp.exp(x), -1)),
    "log(sum(exp(x)) / 3)": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1) / 3),
    "log(exp(x) @ v)": lambda x, w: jnp.log(jnp.exp(x) @ w[0]),
    "log(einsum)": lambda x, w: jnp.log(jnp.einsum("ij,ij->i", jnp.exp(x), w)),
    "log(vmap of vdot)": lambda x, w: jnp.log(jax.vmap(jnp.vdot)(jnp.exp(x), w)),
    "log(sum of a loop)": lambda x, w: jnp.log(sum(jnp.exp(x[:, k]) for k in range(4))),
    "log(sum(exp(x)[:, :2]) + rest)": lambda x, w: jnp.log(jnp.exp(x)[:, :2].sum(-1) + jnp.exp(x)[:, 2:].sum(-1)),
    "log(max(exp(x)))": lambda x, w: jnp.log(jnp.max(jnp.exp(x), -1)),
    "log(cumsum(exp(x)))": lambda x, w: jnp.log(jnp.cumsum(jnp.exp(x), -1)),
    "log(sum(exp(x)**2))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x) ** 2, -1)),
    "log(norm of exp(x))": lambda x, w: jnp.log(jnp.sqrt(jnp.sum(jnp.exp(x) ** 2, -1))),
    "log(sum(exp(x) exp(w)))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x) * jnp.exp(w), -1)),
    "log(sum(exp(x)) * sum(exp(w)))": lambda x, w: jnp.log(jnp.sum(jnp.exp(x), -1) * jnp.sum(jnp.exp(w), -1)),
    "log(sum under checkpoint)": lambda x, w: jnp.log(jax.checkpoint(lambda u: jnp.exp(u).sum(-1))(x)),
    "log(sum of a vmap)": lambda x, w: jnp.log(jax.vmap(lambda u: jnp.exp(u).sum())(x)),
    "log(sum in a jitted helper)": lambda x, w: jnp.log(jax.jit(lambda u: jnp.exp(u).sum(-1))(x)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(name):
    f = SUMS[name]
    check_rule(lambda x: f(x, WEIGHTS.astype(np.float32)), [ROWS], LOG, fails_plain=[0, 1], source=f,
               thorough=name in ("log(sum(exp(x)))", "log(exp(x) @ v)"))  # fmt: skip


@pytest.mark.parametrize("name", ["log(sum(w exp(x)))", "log(einsum)", "log(sum(exp(x) / w))"])
def test_sums_differentiated_by_weights(name):
    check_rule(SUMS[name], [ROWS / 4, WEIGHTS], LOG)


def test_sum_over_a_zero_weight():
    """A weight 0 above an exponential that overflows takes no part in value or gradient."""
    w = np.array([[0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1], [1, 1, 0, 0.0]], np.float32)
    check_rule(lambda x: jnp.log(jnp.sum(w * jnp.exp(x), -1)), [ROWS], LOG, fails_plain=[0, 1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype):
    x = ROWS * {"float16": 0.13, "bfloat16": 1, "float64": 8}[dtype]
    check_rule(lambda x: jnp.log(jnp.sum(jnp.exp(x), -1)), [x], LOG, fails_plain=[0, 1], dtype=dtype)


CUBE = (np.arange(12.0).reshape(2, 2, 3) * 7 % 61 * 6 - 180) / 1.5
CUBE_WEIGHTS = np.round(np.cos(np.arange(12.0)).reshape(2, 2, 3) * 16).astype(np.float32) / 16
AXES = {"all": None, "first": 0, "middle": 1, "last two": (1, 2), "outer two": (0, 2), "a negative one": -3}


@pytest.mark.parametrize("name", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_along(name, keepdims):
    f = lambda x: jnp.log(jnp.sum(jnp.exp(x), AXES[name], keepdims=keepdims))  # noqa: E731
    check_rule(f, [CUBE], LOG)


@pytest.mark.parametrize("name", AXES)
def test_log_softmax_along(name):
    axis = AXES[name]
    check_rule(
        lambda x: CUBE_WEIGHTS * jnp.log(jnp.exp(x) / jnp.sum(jnp.exp(x), axis, keepdims=True)),
        [CUBE], LOG, fails_plain=[0, 1],
    )  # fmt: skip


@pytest.mark.parametrize("name", AXES)
def test_log_one_minus_softmax_along(name):
    axis = AXES[name]
    check_rule(
        lambda x: CUBE_WEIGHTS * jnp.log(1 - jnp.exp(x) / jnp.sum(jnp.exp(x), axis, keepdims=True)),
        [CUBE], LOG, fails_plain=[0, 1],
    )  # fmt: skip


SHAPES = {"(1, 4)": (1, 4), "(4, 1)": (4, 1), "(1, 1)": (1, 1), "(3, 1, 2)": (3, 1, 2), "(1,)": (1,), "(4,)": (4,)}


@pytest.mark.parametrize("name", SHAPES)
def test_axes_of_length_one(name):
    size = int(np.prod(SHAPES[name]))
    x = (np.arange(size) * 37 % 11 * 60.0 - 250).reshape(SHAPES[name])
    w = 1 + np.arange(size, dtype=np.float32).reshape(SHAPES[name])
    check_rule(lambda x: jnp.log(jnp.sum(jnp.exp(x), -1)), [x], LOG)
    check_rule(lambda x: w * jnp.log(jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)), [x], LOG)


def test_zero_dimensions():
    check_rule(lambda x: jnp.log(1 + jnp.exp(x)), [np.array(200.0)], LOG, fails_plain=True)
    check_rule(lambda x: jnp.log(jnp.exp(x).sum()), [np.array(200.0)], LOG, fails_plain=True)
    f = lambda x: jnp.log(jnp.stack([jnp.exp(x), jnp.exp(2 * x)]).sum())  # noqa: E731
    check_rule(f, [np.array(200.0)], LOG, fails_plain=True)


DOMAIN = {
    "log(sum(exp(x)))": (
        lambda x: jnp.log(jnp.sum(jnp.exp(x), -1)),
        [[NAN, 2.0], [INF, 1.0], [-INF, 1.0], [-INF, -INF], [INF, INF], [INF, -INF], [NAN, INF]],
    ),
    "log(sum(-exp(x)))": (lambda x: jnp.log(jnp.sum(-jnp.exp(x), -1)), [[1.0, 2.0], [NAN, 0.0]]),
    "log(softmax(x))": (lambda x: jnp.log(softmax(x)), [[NAN, 2.0], [-INF, 1.0], [-INF, -INF]]),
    "log(exp(x) / sum)": (
        lambda x: jnp.log(jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)),
        [[NAN, 2.0], [-INF, 1.0], [-INF, -INF]],
    ),
    "log(sum(x))": (lambda x: jnp.log(jnp.sum(x, -1)), [[-1.0, -2.0], [-1.0, 1.0], [NAN, 1.0], [INF, 1.0]]),
}


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    assert_same_kind(*DOMAIN[name])


def test_negative_weights():
    f = lambda x, w: jnp.log(jnp.sum(w * jnp.exp(x), -1))  # noqa: E731
    x = [[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], [NAN, 1.0], [INF, 0.0], [-INF, -INF]]
    assert_same_kind(f, x, [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])


LEFT_ALONE = {
    "log(sum(x**2) + 3)": lambda x: jnp.log(jnp.sum(x**2) + 3),
    "log(mean(abs(x)))": lambda x: jnp.log(jnp.mean(jnp.abs(x))),
    "log(2 + sin(x))": lambda x: jnp.log(2 + jnp.sin(x)),
    "library log_softmax": lambda x: log_softmax(x),
    "library logsumexp": lambda x: logsumexp(x, -1),
    "shifted logsumexp": lambda x: jnp.log(jnp.exp(x - x.max()).sum()) + x.max(),
    "log(x)": lambda x: jnp.log(x),
    "log(det)": lambda x: jnp.log(jnp.abs(jnp.linalg.det(x @ x.T))),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)))
