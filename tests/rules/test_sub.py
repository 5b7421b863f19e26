"""Rules whose root is a difference, or a sum of opposite signs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import log_softmax, logsumexp, sigmoid, softmax, softplus

from rules.tables import Case, Cases, Family, table
from rules.unchanged import Domain, assert_left_alone

INF, NAN = float("inf"), float("nan")
CANCELS = "difference_that_cancels"
ONE_MINUS_SIGMOID = Family(
    CANCELS,
    breaking=[20.0, 40.0],
    ordinary=[-200.0, -20.0, -1e-3, 0.0, 0.7, 200.0],
    spellings={
        "1 - sigmoid(x)": lambda x: 1 - sigmoid(x),
        "-sigmoid(x) + 1": lambda x: -sigmoid(x) + 1,
        "1 - 1 / (1 + exp(-x))": lambda x: 1 - 1 / (1 + jnp.exp(-x)),
        "1 - exp(x) / (1 + exp(x))": lambda x: 1 - jnp.exp(x) / (1 + jnp.exp(x)),
        "-(sigmoid(x) - 1)": lambda x: -(sigmoid(x) - 1),
        "2 - 2 sigmoid(x)": lambda x: 2 - 2 * sigmoid(x),
        "1 - sigmoid(x)[:, None]": lambda x: (1 - sigmoid(x)[:, None])[:, 0],
        "1 - 0.5 (1 + tanh(x / 2))": lambda x: 1 - 0.5 * (1 + jnp.tanh(x / 2)),
        "1 - (1 - sigmoid(-x))": lambda x: 1 - (1 - sigmoid(-x)),
    },
    dtypes=("bfloat16", "float64"),
    thorough=True,
)
EXPM1 = Family(
    CANCELS,
    breaking=[-1e-3, 2e-4],
    ordinary=[-200.0, -20.0, -3.0, 1e-6, -1e-30, 0.7, 10.0],
    spellings={
        "exp(x) - 1": lambda x: jnp.exp(x) - 1,
        "1 - exp(x)": lambda x: 1 - jnp.exp(x),
        "-1 + exp(x)": lambda x: -1 + jnp.exp(x),
        "exp(x) + -1": lambda x: jnp.exp(x) + -1.0,
        "2 - 2 exp(x)": lambda x: 2 - 2 * jnp.exp(x),
        "1 - 1 / exp(x)": lambda x: 1 - 1 / jnp.exp(x),
        "1 - exp(x) (jitted)": lambda x: jax.jit(lambda u: 1 - jnp.exp(u))(x),
        "1 - sqrt(exp(x))": lambda x: 1 - jnp.sqrt(jnp.exp(x)),
        "1 - exp(x / 2) exp(x / 2)": lambda x: 1 - jnp.exp(x / 2) * jnp.exp(x / 2),
        "1 - exp2(x)": lambda x: 1 - jnp.exp2(x),
        "1 - 10**x": lambda x: 1 - 10.0 ** (x / 4),
        "(exp(x) - 1) reshaped": lambda x: (jnp.exp(x).reshape(2, -1) - 1).ravel(),
    },
    dtypes=("float16", "bfloat16", "float64"),
    exponent=False,
)
SECH_SQUARED = Family(
    CANCELS,
    breaking=[20.0, -20.0],
    ordinary=[-200.0, -1.5, 0.7, 3.0],
    spellings={
        "1 - tanh(x)**2": lambda x: 1 - jnp.tanh(x) ** 2,
        "1 - tanh(x) tanh(x)": lambda x: 1 - jnp.tanh(x) * jnp.tanh(x),
        "1 - square(tanh(x))": lambda x: 1 - jnp.square(jnp.tanh(x)),
        "-(tanh(x)**2 - 1)": lambda x: -(jnp.tanh(x) ** 2 - 1),
    },
    dtypes=("float64",),
)
ONE_MINUS_TANH = Family(
    CANCELS,
    breaking=[20.0, 40.0],
    ordinary=[-3.0, 0.0, 0.7, 3.0],
    spellings={
        "1 - tanh(x)": lambda x: 1 - jnp.tanh(x),
        "1 + tanh(-x)": lambda x: 1 + jnp.tanh(-x),
        "1 + -tanh(x)": lambda x: 1 + -jnp.tanh(x),
    },
)
CENTRED_SIGMOID = Family(
    CANCELS,
    breaking=[1e-6, -1e-9],
    ordinary=[-200.0, -3.0, 0.0, 0.7, 20.0],
    spellings={
        "sigmoid(x) - 1 / 2": lambda x: sigmoid(x) - 0.5,
        "2 sigmoid(x) - 1": lambda x: 2 * sigmoid(x) - 1,
        "2 / (1 + exp(-2x)) - 1": lambda x: 2 / (1 + jnp.exp(-2 * x)) - 1,
    },
    exponent=False,
)
NEIGHBOURS = Family(
    "sum_with_logarithm",
    breaking=[200.0, 95.0],
    ordinary=[-20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "log(1 + exp(x)) - x": lambda x: jnp.log(1 + jnp.exp(x)) - x,
        "x - log(1 + exp(x))": lambda x: x - jnp.log(1 + jnp.exp(x)),
        "log(exp(x) - 2 + 3) - x": lambda x: jnp.log(jnp.exp(x) - 2 + 3) - x,
        "log(sigmoid(x)) - log(sigmoid(-x))": lambda x: jnp.log(sigmoid(-x)) - jnp.log(sigmoid(x)),
        "log(p) - log(1 - p)": lambda x: jnp.log(sigmoid(-x)) - jnp.log(1 - sigmoid(-x)),
        "log(1 + exp(x)) + log(1 + exp(-x))": lambda x: jnp.log(1 + jnp.exp(x)) + jnp.log(1 + jnp.exp(-x)),
    },
    thorough=True,
)


@table(ONE_MINUS_SIGMOID, EXPM1, SECH_SQUARED, ONE_MINUS_TANH, CENTRED_SIGMOID, NEIGHBOURS)
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0]])
WEIGHTS = np.array([[0.5, 0.25, 2.0, -1.0], [1.0, 0.5, -0.25, 2.0], [0.25, -1.0, 4.0, 1.0]], np.float32)
ALONG_AXES = {
    "x - log(sum(exp(x)))": (
        lambda x: WEIGHTS * (x - jnp.log(jnp.exp(x).sum(-1, keepdims=True))),
        "sum_with_logarithm",
        [0, 1],
    ),
    "log(sum(exp(x))) - x": (
        lambda x: WEIGHTS * (jnp.log(jnp.exp(x).sum(-1))[:, None] - x),
        "sum_with_logarithm",
        [0, 1],
    ),
    "x - logsumexp(x)": (
        lambda x: WEIGHTS * (x - logsumexp(x, -1, keepdims=True)),
        "sum_with_logarithm",
        [2],
    ),
    "x[:, 0] - logsumexp(x)": (lambda x: x[:, 0] - logsumexp(x, -1), "sum_with_logarithm", [2]),
    "x[:, 0] - log(sum(exp(x)))": (
        lambda x: x[:, 0] - jnp.log(jnp.exp(x).sum(-1)),
        "sum_with_logarithm",
        [0, 1, 2],
    ),
    "(t x).sum - log(sum(exp(x)))": (
        lambda x: (jnp.eye(4, dtype=x.dtype)[:3] * x).sum(-1) - jnp.log(jnp.exp(x).sum(-1)),
        "sum_with_logarithm",
        [0, 1],
    ),
    "1 - softmax(x)": (lambda x: WEIGHTS * (1 - softmax(x)), CANCELS, [2]),
    "1 - exp(x) / sum": (
        lambda x: WEIGHTS * (1 - jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)),
        CANCELS,
        [0, 1, 2],
    ),
    "1 - softmax(x)[:, 0]": (lambda x: 1 - softmax(x)[:, 0], CANCELS, [2]),
    "1 - exp(log_softmax(x))": (lambda x: 1 - jnp.exp(log_softmax(x))[:, 0], CANCELS, [2]),
    "1 - the weighted sum of softmax": (
        lambda x: 1 - (jnp.array([1.0, 0.0, 1.0, 1.0], x.dtype) * softmax(x)).sum(-1),
        CANCELS,
        [2],
    ),
}


AXES_CASES = Cases({name: Case(f, [ROWS], rule, breaking) for name, (f, rule, breaking) in ALONG_AXES.items()})


@pytest.mark.parametrize("name", AXES_CASES)
def test_along_axes(name):
    AXES_CASES.check(name, thorough=name in ("x - log(sum(exp(x)))", "1 - softmax(x)"))


DOMAIN = Domain(
    {
        "1 - sigmoid(x)": (lambda x: 1 - sigmoid(x), [-INF, 0.0, INF, NAN]),
        "exp(x) - 1": (lambda x: jnp.exp(x) - 1, [-INF, 0.0, INF, NAN]),
        "1 - tanh(x)**2": (lambda x: 1 - jnp.tanh(x) ** 2, [-INF, 0.0, INF, NAN]),
        "1 - exp(log(x))": (lambda x: 1 - jnp.exp(jnp.log(x)), [-1.0, 0.5, NAN]),
        "log(x) - log(x)": (lambda x: jnp.log(x) - jnp.log(x), [-1.0, 0.5, NAN]),
        "log(x) - log(1 - x)": (lambda x: jnp.log(x) - jnp.log(1 - x), [-1.0, 0.0, 0.5, 1.0, 2.0, NAN]),
        "x - x": (lambda x: x - x, [0.0, INF, NAN]),
        "exp(x) - exp(x)": (lambda x: jnp.exp(x) - jnp.exp(x), [0.0, 1.0, NAN]),
        "softplus(x) - x": (lambda x: jnp.log(1 + jnp.exp(x)) - x, [-1.0, 0.0, NAN]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "u - v": lambda u, v: u - v,
    "1 - u": lambda u, v: 1 - u,
    "1 - u**2": lambda u, v: 1 - u**2,
    "compensated sum": lambda u, v: ((u + v) - u) - v,
    "two sum": lambda u, v: (s := u + v, (u - (s - (s - u))) + (v - (s - u)))[1],
    "mean square error": lambda u, v: jnp.mean((u - v) ** 2),
    "3 - sigmoid(u)": lambda u, v: 3 - sigmoid(u),
    "1 + exp(u)": lambda u, v: 1 + jnp.exp(u),
    "library log_softmax": lambda u, v: log_softmax(u) - v,
    "library softplus": lambda u, v: softplus(u) - v,
    "centred": lambda u, v: u - u.mean(-1, keepdims=True),
    "sum of softmax": lambda u, v: softmax(u) + softmax(v),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)), jnp.ones((2, 4)))
