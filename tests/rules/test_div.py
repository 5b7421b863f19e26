"""Rules whose root is a quotient."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import sigmoid, softmax

from rules.harness import Program, check_rule, in_dtype
from rules.tables import HALVES, Case, Cases, Family, table
from rules.unchanged import Domain, assert_left_alone

INF, NAN = float("inf"), float("nan")
QUOTIENT = "quotient_of_exponentials"

SIGMOID = Family(
    QUOTIENT,
    breaking=[200.0, 95.0],
    ordinary=[-200.0, -20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "exp(x) / (1 + exp(x))": lambda x: jnp.exp(x) / (1 + jnp.exp(x)),
        "exp(x) / (exp(x) + 1)": lambda x: jnp.exp(x) / (jnp.exp(x) + 1),
        "1 / (1 + exp(x))": lambda x: 1 / (1 + jnp.exp(x)),
        "3 / (1 + exp(x))": lambda x: 3 / (1 + jnp.exp(x)),
        "exp2(x) / (1 + exp2(x))": lambda x: jnp.exp2(x) / (1 + jnp.exp2(x)),
        "2**x / (1 + 2**x)": lambda x: 2.0**x / (1 + 2.0**x),
        "1 / (1 + 10**x)": lambda x: 1 / (1 + 10.0**x),
        "sqrt(exp(2x)) / (1 + exp(x))": lambda x: jnp.sqrt(jnp.exp(2 * x)) / (1 + jnp.exp(x)),
        "exp(x) / (exp(0) + exp(x))": lambda x: jnp.exp(x) / (jnp.exp(0 * x) + jnp.exp(x)),
        "-exp(x) / (-1 - exp(x))": lambda x: -jnp.exp(x) / (-1 - jnp.exp(x)),
    },
    dtypes=HALVES,
    thorough=True,
)
TANH = Family(
    QUOTIENT,
    breaking=[200.0, 95.0],
    ordinary=[-20.0, -1e-3, 0.0, 1e-9, 0.7, 20.0],
    spellings={
        "(exp(x) - exp(-x)) / (exp(x) + exp(-x))": lambda x: (jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x)),
        "(exp(2x) - 1) / (exp(2x) + 1)": lambda x: (jnp.exp(2 * x) - 1) / (jnp.exp(2 * x) + 1),
        "sinh(x) / cosh(x)": lambda x: jnp.sinh(x) / jnp.cosh(x),
        "-(1 - exp(2x)) / (1 + exp(2x))": lambda x: -(1 - jnp.exp(2 * x)) / (1 + jnp.exp(2 * x)),
        "expm1(2x) / (expm1(2x) + 2)": lambda x: jnp.expm1(2 * x) / (jnp.expm1(2 * x) + 2),
    },
    dtypes=HALVES,
)
RATIO_OF_EXPONENTIALS = Family(
    QUOTIENT,
    breaking=[(200.0, 199.0), (-200.0, -199.0), (-200.0, -200.0), (95.0, 94.5)],
    ordinary=[(0.0, 0.0), (1.0, -1.0), (20.0, 0.5), (-3.0, -3.5)],
    spellings={
        "exp(a) / exp(b)": lambda a, b: jnp.exp(a) / jnp.exp(b),
        "2 exp(a) / (4 exp(b))": lambda a, b: 2 * jnp.exp(a) / (4 * jnp.exp(b)),
        "exp(a) exp(a) / exp(b) / exp(a)": lambda a, b: jnp.exp(a) * jnp.exp(a) / jnp.exp(b) / jnp.exp(a),
        "exp(a)**2 / exp(b + a)": lambda a, b: jnp.exp(a) ** 2 / jnp.exp(b + a),
    },
    dtypes=HALVES,
)
TWO_CLASSES = Family(
    QUOTIENT,
    breaking=[(200.0, 199.0), (-200.0, -199.0), (200.0, 200.0)],
    ordinary=[(0.0, 0.0), (1.0, -1.0), (20.0, 0.5), (-3.0, -3.5)],
    spellings={
        "exp(a) / (exp(a) + exp(b))": lambda a, b: jnp.exp(a) / (jnp.exp(a) + jnp.exp(b)),
        "exp(b) / (exp(a) + exp(b))": lambda a, b: jnp.exp(b) / (jnp.exp(a) + jnp.exp(b)),
        "1 - exp(b) / (exp(a) + exp(b))": lambda a, b: -(0 - jnp.exp(b) / (jnp.exp(a) + jnp.exp(b))),
        "(exp(a) - exp(b)) / (exp(a) + exp(b))": lambda a, b: (jnp.exp(a) - jnp.exp(b)) / (jnp.exp(a) + jnp.exp(b)),
    },
    thorough=True,
)
BELL = Family(
    QUOTIENT,
    breaking=[200.0, 95.0],
    ordinary=[-200.0, -20.0, -1.5, 0.7, 20.0],
    spellings={
        "exp(x) / (1 + exp(x))**2": lambda x: jnp.exp(x) / (1 + jnp.exp(x)) ** 2,
        "4 / (exp(x) + exp(-x))**2": lambda x: 4 / (jnp.exp(x) + jnp.exp(-x)) ** 2,
        "1 / cosh(x)**2": lambda x: 1 / jnp.cosh(x) ** 2,
        "1 / cosh(x)": lambda x: 1 / jnp.cosh(x),
    },
)
RELATIVE = Family(
    QUOTIENT,
    breaking=[0.0, 1e-9, -1e-6, 1e-30],
    ordinary=[-200.0, -20.0, -1e-3, 0.7, 50.0],
    spellings={
        "(exp(x) - 1) / x": lambda x: (jnp.exp(x) - 1) / x,
        "expm1(x) / x": lambda x: jnp.expm1(x) / x,
        "(1 - exp(x)) / -x": lambda x: (1 - jnp.exp(x)) / -x,
        "(exp(2x) - 1) / x": lambda x: (jnp.exp(2 * x) - 1) / x,
    },
    exponent=False,
    thorough=True,
)
RELATIVE_INVERSE = Family(
    QUOTIENT,
    breaking=[0.0, 1e-9, -1e-6, 1e-30],
    ordinary=[-200.0, -20.0, -1e-3, 0.7, 50.0],
    spellings={
        "x / (exp(x) - 1)": lambda x: x / (jnp.exp(x) - 1),
        "x / expm1(x)": lambda x: x / jnp.expm1(x),
    },
    exponent=False,
)
PLANCK = Family(
    QUOTIENT,
    breaking=[95.0],
    ordinary=[0.7, 3.0, 20.0, 80.0],
    spellings={
        "1 / (exp(x) - 1)": lambda x: 1 / (jnp.exp(x) - 1),
        "x**3 / (exp(x) - 1)": lambda x: x**3 / (jnp.exp(x) - 1),
        "1 / expm1(x)": lambda x: 1 / jnp.expm1(x),
    },
    exponent=False,
)
FERMI = Family(
    QUOTIENT,
    breaking=[(2.0, 0.1), (1.5, -0.2)],
    ordinary=[(0.5, 0.5), (0.25, 0.5), (-2.0, 1.0)],
    spellings={"1 / (exp((e - m) / 0.0078125) + 1)": lambda e, m: 1 / (jnp.exp((e - m) / 0.0078125) + 1)},
    exponent=False,
)
POSTERIOR = Family(
    QUOTIENT,
    breaking=[(14.0, 0.5), (1.0, 14.0)],
    ordinary=[(0.0, 1.0), (0.5, -0.5), (2.0, 2.0)],
    spellings={
        "density over mixture": lambda x, m: (
            jnp.exp(-((x - m) ** 2)) / (jnp.exp(-((x - m) ** 2)) + jnp.exp(-((x + m) ** 2)))
        ),
    },
    exponent=False,
)
SILU = Family(
    QUOTIENT,
    breaking=[-200.0, -95.0],
    ordinary=[-20.0, -1.0, 0.0, 0.7, 20.0],
    spellings={"x / (1 + exp(-x))": lambda x: x / (1 + jnp.exp(-x))},
)
LOG1P_RELATIVE = Family(
    "logarithm_over_its_argument",
    breaking=[0.0, 1e-9, -1e-7],
    ordinary=[-0.5, 0.25, 3.0, 1e10],
    spellings={
        "log1p(x) / x": lambda x: jnp.log1p(x) / x,
        "log(1 + x) / x": lambda x: jnp.log(1 + x) / x,
        "-log(1 + x) / (-x)": lambda x: -jnp.log(1 + x) / -x,
        "2 log1p(x) / (3 x)": lambda x: 2 * jnp.log1p(x) / (3 * x),
    },
    exponent=False,
    thorough=True,
)
CANCELS = Family(
    "quotient_that_cancels",
    breaking=[(3.0, 0.0), (-2.0, 1e-30), (1e20, 1e25)],
    ordinary=[(1.0, 2.0), (-1.5, 0.25), (0.0, 3.0)],
    spellings={
        "u v / v": lambda u, v: u * v / v,
        "v u / v": lambda u, v: v * u / v,
        "-(u v) / v": lambda u, v: -(u * v) / v,
        "u v / (2 v)": lambda u, v: u * v / (2 * v),
    },
    exponent=False,
    thorough=True,
)


@table(
    SIGMOID, TANH, RATIO_OF_EXPONENTIALS, TWO_CLASSES, BELL, RELATIVE, RELATIVE_INVERSE, PLANCK, FERMI, POSTERIOR, SILU,
    LOG1P_RELATIVE, CANCELS,
)  # fmt: skip
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [1.0, 2.0, 3.0, 4.0]])
WEIGHTS = np.array([[0.5, 0.25, 2.0, -1.0], [1.0, 0.5, -0.25, 2.0], [0.25, -1.0, 4.0, 1.0]], np.float32)
CONFIDENT = np.array([[20.0, -0.25, 0.5, -1.0], [-3.0, 1.25, 18.5, -2.0]])
ONE_HOT = np.array([[1, 0, 0, 0], [0, 0, 1, 0]], np.float32)


def x_over_sum(x):
    return jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)


SOFTMAX = {
    "exp(x) / sum": lambda x, w: w * (jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)),
    "exp(x) / sum[:, None]": lambda x, w: w * (jnp.exp(x) / jnp.sum(jnp.exp(x), -1)[:, None]),
    "exp(x) / (exp(x) @ 1)": lambda x, w: w * (jnp.exp(x) / (jnp.exp(x) @ jnp.ones(4, x.dtype))[:, None]),
    "exp(x / 2) / sum": lambda x, w: w * (jnp.exp(x / 2) / jnp.sum(jnp.exp(x / 2), -1, keepdims=True)),
    "3 exp(x) / sum(3 exp(x))": lambda x, w: w * (3 * jnp.exp(x) / jnp.sum(3 * jnp.exp(x), -1, keepdims=True)),
    "of the transpose": lambda x, w: w * (jnp.exp(x.T) / jnp.sum(jnp.exp(x.T), 0)).T,
    "renormalised": lambda x, w: (
        w * ((p := jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)) / jnp.sum(p, -1, keepdims=True))
    ),
    "exp(x) / mean / 4": lambda x, w: w * (jnp.exp(x) / jnp.mean(jnp.exp(x), -1, keepdims=True) / 4),
    "flattened": lambda x, w: w * (jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)).ravel().reshape(x.shape),
}


SOFTMAX_CASES = Cases({name: Case(f, [ROWS, WEIGHTS], QUOTIENT, [0, 1]) for name, f in SOFTMAX.items()})


@pytest.mark.parametrize("name", SOFTMAX_CASES)
def test_softmax(name):
    SOFTMAX_CASES.check(name, thorough=name == "exp(x) / sum")


HALF_SOFTMAX = {
    "softmax": lambda x, w: w * (jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)),
    "weighted mean": lambda x, w: jnp.sum(w * jnp.exp(x), -1) / jnp.sum(jnp.exp(x), -1),
    "one class": lambda x, w: w[:, :1] * jnp.exp(x[:, :1]) / jnp.exp(x[:, :1]).sum(-1, keepdims=True),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", HALF_SOFTMAX)
def test_half_softmax(name, dtype):
    """jnp.sum of halves is a sum in float32 between two casts."""
    with in_dtype(dtype):
        program = Program(HALF_SOFTMAX[name], [ROWS * {"float16": 0.13, "bfloat16": 1}[dtype], WEIGHTS], dtype)
    check_rule(program, QUOTIENT, fails_plain=[0, 1])


CONFIDENT_CASES = Cases(
    {
        "one-hot": Case(lambda x: (x_over_sum(x) * ONE_HOT).sum(-1), [CONFIDENT], QUOTIENT, [0, 1], x_over_sum),
        "weighted": Case(lambda x: x_over_sum(x) * WEIGHTS[:2], [CONFIDENT], QUOTIENT, [0, 1], x_over_sum),
        "one entry": Case(lambda x: x_over_sum(x)[:, 0], [CONFIDENT], QUOTIENT, [0], x_over_sum),
        "of the transpose": Case(
            lambda x: (ONE_HOT.T * (jnp.exp(x.T) / jnp.sum(jnp.exp(x.T), 0))).sum(0), [CONFIDENT], QUOTIENT, [0, 1]
        ),
    }
)


@pytest.mark.parametrize("name", CONFIDENT_CASES)
def test_confident_softmax(name):
    """p (1 - p), where p rounds to 1."""
    CONFIDENT_CASES.check(name)


AXES = {
    "all": None,
    "first": 0,
    "last two": (1, 2),
    "first two": (0, 1),
    "outer two": (0, 2),
    "middle": 1,
    "a negative one": -3,
}
CUBE = (np.arange(12.0).reshape(2, 2, 3) * 7 % 61 * 6 - 180) / 1.5
CUBE_WEIGHTS = np.round(np.cos(np.arange(12.0)).reshape(2, 2, 3) * 16).astype(np.float32) / 16


def weighted_softmax(axis):
    return lambda x: CUBE_WEIGHTS * (jnp.exp(x) / jnp.sum(jnp.exp(x), axis, keepdims=True))


AXES_CASES = Cases({name: Case(weighted_softmax(axis), [CUBE], QUOTIENT, [1]) for name, axis in AXES.items()})


@pytest.mark.parametrize("name", AXES_CASES)
def test_softmax_along(name):
    AXES_CASES.check(name)


WEIGHTED_MEANS = {
    "sum(w exp(x)) / sum(exp(x))": lambda x, w: jnp.sum(w * jnp.exp(x), -1) / jnp.sum(jnp.exp(x), -1),
    "sum(w softmax)": lambda x, w: jnp.sum(w * (jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True)), -1),
    "exp(x) . w / exp(x) . 1": lambda x, w: jnp.einsum("ij,ij->i", jnp.exp(x), w) / jnp.exp(x).sum(-1),
}


MEAN_CASES = Cases({name: Case(f, [ROWS, WEIGHTS], QUOTIENT, [0, 1]) for name, f in WEIGHTED_MEANS.items()})


@pytest.mark.parametrize("name", MEAN_CASES)
def test_weighted_mean(name):
    MEAN_CASES.check(name)


DOMAIN = Domain(
    {
        "exp(x) / sum": (
            lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True),
            [[1.0, 2.0], [NAN, 2.0], [-INF, 1.0], [-INF, -INF]],
        ),
        "exp(x) / (1 + exp(x))": (lambda x: jnp.exp(x) / (1 + jnp.exp(x)), [-INF, 0.0, NAN]),
        "x / (1 + exp(-x))": (lambda x: x / (1 + jnp.exp(-x)), [-1.0, 0.0, INF, NAN]),
        "tanh": (lambda x: (jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x)), [-1.0, 0.0, NAN]),
        "u v / v": (lambda u, v: u * v / v, [1.0, NAN, 1.0, INF, 0.0], [2.0, 1.0, NAN, 2.0, 1.0]),
        "1 / (exp(x) - 1)": (lambda x: 1 / (jnp.exp(x) - 1), [0.0, 1.0, -1.0, NAN]),
        "u / exp(x)": (lambda u, x: u / jnp.exp(x), [0.0, 1.0, NAN, 1.0], [1.0, 2.0, 1.0, NAN]),
        "x / x": (lambda x: x / x, [0.0, 1.0, INF, NAN]),
        "1 / x": (lambda x: 1 / x, [0.0, -0.0, INF, NAN]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "u / v": (lambda u, v: u / v),
    "u / (1 + v**2)": (lambda u, v: u / (1 + v**2)),
    "shifted softmax": (
        lambda u, v: (
            jnp.exp(u - u.max(-1, keepdims=True)) / jnp.exp(u - u.max(-1, keepdims=True)).sum(-1, keepdims=True)
        )
    ),
    "library softmax": lambda u, v: softmax(u) / 2,
    "library sigmoid": lambda u, v: sigmoid(u) / 3,
    "mean": lambda u, v: u.mean(),
    "standard score": lambda u, v: (u - u.mean(-1, keepdims=True)) / jnp.sqrt(u.var(-1, keepdims=True) + 1e-5),
    "l1 normalised": lambda u, v: u / (jnp.abs(u).sum() + 1),
    "exp of a bounded number": lambda u, v: jnp.exp(jnp.sin(u)) / (1 + jnp.exp(jnp.cos(v))),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)), jnp.ones((2, 4)))
