"""Rules whose root is a product."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import log_softmax, sigmoid, softmax
from jax.scipy.special import entr, xlog1py, xlogy

from rules.tables import Case, Cases, Family, table
from rules.unchanged import Domain, assert_left_alone
from stablegrad import stabilize

INF, NAN = float("inf"), float("nan")
ENTROPY = Family(
    "product_with_logarithm",
    breaking=[0.0],
    ordinary=[1e-30, 1e-8, 0.25, 0.5, 1.0, 3.0],
    spellings={
        "p log(p)": lambda p: p * jnp.log(p),
        "log(p) p": lambda p: jnp.log(p) * p,
        "-p log(p)": lambda p: -p * jnp.log(p),
        "-(p log(p))": lambda p: -(p * jnp.log(p)),
        "p (-log(p))": lambda p: p * (-jnp.log(p)),
        "2 p log(p)": lambda p: 2 * p * jnp.log(p),
        "p (2 log(p))": lambda p: p * (2 * jnp.log(p)),
        "p log2(p)": lambda p: p * jnp.log2(p),
        "p log(p) / 2": lambda p: p * jnp.log(p) / 2,
        "p (log(p) + 1)": lambda p: p * (jnp.log(p) + 1),
        "p log(2 p)": lambda p: p * jnp.log(2 * p),
        "p log(p**2)": lambda p: p * jnp.log(p**2),
        "p log(sqrt(p))": lambda p: p * jnp.log(jnp.sqrt(p)),
    },
    dtypes=("float16", "bfloat16", "float64"),
    exponent=False,
    thorough=True,
)
POWER_TIMES_LOG = Family(
    "product_with_logarithm",
    breaking=[0.0],
    ordinary=[1e-8, 0.25, 0.5, 1.0, 3.0],
    spellings={
        "p**2 log(p)": lambda p: p**2 * jnp.log(p),
        "p p log(p)": lambda p: p * p * jnp.log(p),
        "p (p log(p))": lambda p: p * (p * jnp.log(p)),
        "p (-2 p log(p))": lambda p: p * (-2 * p * jnp.log(p)),
        "p**3 log(p)": lambda p: p**3 * jnp.log(p),
        "p**1.5 log(p)": lambda p: p * jnp.sqrt(p) * jnp.log(p),
        "sqrt(p) log(p)": lambda p: jnp.sqrt(p) * jnp.log(p),
    },
    exponent=False,
)
TARGET_TIMES_LOG = Family(
    "product_with_logarithm",
    breaking=[(0.0, 0.0), (0.0, 0.0)],
    ordinary=[(0.0, 0.25), (1.0, 0.5), (0.5, 1e-30), (3.0, 2.0)],
    spellings={
        "t log(p)": lambda t, p: t * jnp.log(p),
        "-t log(p)": lambda t, p: -t * jnp.log(p),
        "t (-log(p))": lambda t, p: t * -jnp.log(p),
        "0.5 t log(p)": lambda t, p: 0.5 * t * jnp.log(p),
        "t**2 log(p)": lambda t, p: t**2 * jnp.log(p),
    },
    exponent=False,
)
RELATIVE_ENTROPY = Family(
    "product_with_logarithm",
    breaking=[(0.0, 0.25), (0.0, 1.0)],
    ordinary=[(0.25, 0.25), (1.0, 0.5), (0.5, 1e-30), (1e-30, 0.5)],
    spellings={
        "p log(p / q)": lambda p, q: p * jnp.log(p / q),
        "p (log(p) - log(q))": lambda p, q: p * (jnp.log(p) - jnp.log(q)),
        "-p log(q / p)": lambda p, q: -p * jnp.log(q / p),
        "p log(p) - p log(q)": lambda p, q: p * jnp.log(p) - p * jnp.log(q),
    },
    exponent=False,
)
BINARY = Family(
    "product_with_logarithm",
    breaking=[(0.0, 0.0), (1.0, 1.0)],
    ordinary=[(0.25, 0.5), (0.5, 0.0), (0.5, 1.0), (1e-8, 1e-3)],
    spellings={
        "-(t log(p) + (1 - t) log(1 - p))": lambda p, t: -(t * jnp.log(p) + (1 - t) * jnp.log(1 - p)),
        "-t log(p) - (1 - t) log1p(-p)": lambda p, t: -t * jnp.log(p) - (1 - t) * jnp.log1p(-p),
    },
    exponent=False,
)
PRODUCT_OF_EXPONENTIALS = Family(
    "product_of_exponentials",
    breaking=[(200.0, -199.0), (-200.0, 199.5), (95.0, -95.0)],
    ordinary=[(0.0, 0.0), (1.0, -1.0), (20.0, 3.0), (-3.0, -4.0)],
    spellings={
        "exp(a) exp(b)": lambda a, b: jnp.exp(a) * jnp.exp(b),
        "exp(b) (exp(a) / 2)": lambda a, b: jnp.exp(b) * (jnp.exp(a) / 2),
        "exp(a) / exp(-b)": lambda a, b: jnp.exp(a) * (1 / jnp.exp(-b)),
        "exp(a) exp(b / 2)**2": lambda a, b: jnp.exp(a) * jnp.exp(b / 2) ** 2,
    },
    dtypes=("float16", "bfloat16", "float64"),
    thorough=True,
)
CANCELLING_EXPONENTIALS = Family(
    "product_of_exponentials",
    breaking=[200.0, 95.0],
    ordinary=[-20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "exp(x) exp(-x)": lambda x: jnp.exp(x) * jnp.exp(-x),
        "exp(x) sigmoid(-x)": lambda x: jnp.exp(x) * sigmoid(-x),
        "cosh(x) exp(-x)": lambda x: jnp.cosh(x) * jnp.exp(-x),
        "(1 + exp(x)) exp(-x)": lambda x: (1 + jnp.exp(x)) * jnp.exp(-x),
        "exp(x) (1 / (1 + exp(x)))": lambda x: jnp.exp(x) * (1 / (1 + jnp.exp(x))),
        "exp(x) (1 + exp(x))**-1": lambda x: jnp.exp(x) * (1 + jnp.exp(x)) ** -1,
        "3 exp(x) (exp(-x) / 4)": lambda x: 3 * jnp.exp(x) * (jnp.exp(-x) / 4),
    },
)
SIGMOID_SLOPES = Family(
    "product_of_exponentials",
    breaking=[1e-6, -3e-8],
    ordinary=[-20.0, -1.0, 0.0, 0.7, 20.0, 200.0],
    spellings={
        "p (1 - p)": lambda x: sigmoid(x) * (1 - sigmoid(x)),
        "(1 - p) p": lambda x: (1 - 1 / (1 + jnp.exp(-x))) * (1 / (1 + jnp.exp(-x))),
        "p * sigmoid(-x)": lambda x: sigmoid(x) * sigmoid(-x),
        "(1 - tanh(x)) (1 + tanh(x))": lambda x: (1 - jnp.tanh(x)) * (1 + jnp.tanh(x)),
    },
)
CANCELS = Family(
    "product_that_cancels",
    breaking=[(3.0, 0.0), (1e20, 1e-30)],
    ordinary=[(1.0, 2.0), (-1.5, 0.25), (0.0, 3.0)],
    spellings={
        "(t / y) y": lambda t, y: (t / y) * y,
        "y (t / y)": lambda t, y: y * (t / y),
        "(-t / y) y": lambda t, y: (-t / y) * y,
        "(1 / y) (t y)": lambda t, y: (1 / y) * (t * y),
        "(t / (2 y)) y": lambda t, y: (t / (2 * y)) * y,
    },
    exponent=False,
    thorough=True,
)
ROOTS = Family(
    "power_that_undoes_root",
    breaking=[0.0],
    ordinary=[1e-30, 1.0, 2.0, 1e30],
    spellings={
        "sqrt(x) sqrt(x)": lambda x: jnp.sqrt(x) * jnp.sqrt(x),
        "sqrt(x)**2": lambda x: jnp.sqrt(x) ** 2,
    },
    exponent=False,
)


@table(
    ENTROPY, POWER_TIMES_LOG, TARGET_TIMES_LOG, RELATIVE_ENTROPY, BINARY, PRODUCT_OF_EXPONENTIALS,
    CANCELLING_EXPONENTIALS, SIGMOID_SLOPES, CANCELS, ROOTS,
)  # fmt: skip
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


P = np.array([[0.0, 0.5, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
LOGITS = np.array(
    [[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0], [1.0, 2.0, 3.0, 4.0]]
)
ALLOWED = np.array([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 1, 0]], bool)
TARGETS = np.array([[0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
OVER_ROWS = {
    "sum of p log(p)": (lambda p: -jnp.sum(p * jnp.log(p), -1), [P], "product_with_logarithm", [0, 1]),
    "p . log(p)": (lambda p: -jnp.einsum("ij,ij->i", p, jnp.log(p)), [P], "contraction_with_logarithm", [0, 1]),
    "t . log(p)": (
        lambda p, t: -jnp.einsum("ij,ij->i", t, jnp.log(p)),
        [P, TARGETS[:3]],
        "contraction_with_logarithm",
        [0, 1],
    ),
    "t @ log(p)": (lambda p, t: t @ jnp.log(p[0]), [P, TARGETS[:3]], "contraction_with_logarithm", True),
    "a sum of dot products": (
        lambda p, t: jnp.vdot(t, -jnp.log(p)),
        [P, TARGETS[:3]],
        "contraction_with_logarithm",
        True,
    ),
    "entropy of softmax": (
        lambda x: -jnp.sum(softmax(x) * jnp.log(softmax(x)), -1),
        [LOGITS],
        "product_with_logarithm",
        [0, 1],
    ),
    "entropy of exp over sum": (
        lambda x: -jnp.sum((p := jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)) * jnp.log(p), -1),
        [LOGITS],
        "product_with_logarithm",
        [0, 1],
    ),
    "entropy of masked actions": (
        lambda x: (lambda z: -jnp.sum(softmax(z) * log_softmax(z), -1))(jnp.where(ALLOWED, x, -jnp.inf)),
        [LOGITS],
        "product_with_logarithm",
        True,
    ),
    "entropy of masked actions, by their logarithms": (
        lambda x: (lambda lp: -jnp.sum(jnp.exp(lp) * lp, -1))(log_softmax(jnp.where(ALLOWED, x, -jnp.inf))),
        [LOGITS],
        "product_with_logarithm",
        True,
    ),
    "cross entropy": (
        lambda x, t: -jnp.sum(t * jnp.log(softmax(x)), -1),
        [LOGITS, TARGETS],
        "log_of_companion",
        [0, 1],
    ),
    "relative entropy of softmaxes": (
        lambda x, y: jnp.sum(softmax(x) * jnp.log(softmax(x) / softmax(y)), -1),
        [LOGITS, LOGITS[:, ::-1]],
        "product_with_logarithm",
        [0, 1],
    ),
}


def test_the_slope_of_p_log_p_at_zero():
    """-inf, for that is the derivative; 0 for p**2 log(p), and for r p log(p) where r is 0."""
    for f, slope in (
        (lambda p: p * jnp.log(p), -INF),
        (lambda p: -2 * p * jnp.log(p), INF),
        (lambda p: p * (jnp.log(p) + 1), -INF),
        (lambda p: p * jnp.log(p / 3), -INF),
        (lambda p: jnp.sqrt(p) * jnp.log(p), -INF),
        (lambda p: p**2 * jnp.log(p), 0.0),
        (lambda p: p * (p * jnp.log(p)), 0.0),
    ):
        for wrap in (lambda g: g, jax.jit):
            value, got = wrap(jax.value_and_grad(stabilize(f)))(0.0)
            assert (value, got) == (0.0, slope)
    weighted = stabilize(lambda r, p: r * (p * jnp.log(p)))
    assert tuple(map(float, jax.grad(weighted, (0, 1))(0.0, 0.0))) == (0.0, 0.0)


OVER_ROWS_CASES = Cases({name: Case(*case, options={"slope_of_log_of_zero": True}) for name, case in OVER_ROWS.items()})


@pytest.mark.parametrize("name", OVER_ROWS_CASES)
def test_over_rows(name):
    OVER_ROWS_CASES.check(name)


DOMAIN = Domain(
    {
        "p log(p)": (lambda p: p * jnp.log(p), [-1.0, 0.5, INF, NAN]),
        "0 log(p)": (lambda p: 0.0 * jnp.log(p), [-1.0, 0.5, NAN]),
        "p log(-p)": (lambda p: p * jnp.log(-p), [-1.0, 0.5, NAN]),
        "exp(x) exp(-x)": (lambda x: jnp.exp(x) * jnp.exp(-x), [0.0, 1.0, NAN]),
        "sqrt(x) sqrt(x)": (lambda x: jnp.sqrt(x) * jnp.sqrt(x), [-1.0, 1.0, NAN]),
        "sqrt(x)**2": (lambda x: jnp.sqrt(x) ** 2, [-1.0, 1.0, NAN]),
    }
)
PAIRS = [0.0, 0.0, 1.0, -1.0, NAN, NAN, 0.5], [-1.0, NAN, -1.0, -1.0, 0.0, 1.0, 0.0]
DOMAIN_OF_TWO = Domain(
    {
        "t log(p)": (lambda t, p: t * jnp.log(p), *PAIRS),
        "log(p) t": (lambda t, p: jnp.log(p) * t, *PAIRS),
        "t log(p + p)": (lambda t, p: t * jnp.log(p + p), *PAIRS),
        "t log(p**3)": (lambda t, p: t * jnp.log(p**3), *PAIRS),
        "t log(p q)": (lambda t, p: t * jnp.log(p * (p + 2)), *PAIRS),
        "p log(p / q)": (lambda p, q: p * jnp.log(p / q), [0.5, -0.5, 0.5, -0.5, NAN], [0.0, 0.5, -0.5, -0.5, 1.0]),
        "(t / y) y": (lambda t, y: (t / y) * y, [1.0, NAN, 1.0, INF], [2.0, 1.0, NAN, 2.0]),
        "u v": (lambda u, v: u * v, [0.0, 0.0, INF, NAN], [INF, NAN, 0.0, 0.0]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


@pytest.mark.parametrize("name", DOMAIN_OF_TWO)
def test_domain_errors_of_two_arguments_survive(name):
    DOMAIN_OF_TWO.check(name)


LEFT_ALONE = {
    "u v": lambda u, v: u * v,
    "u log(1 + v**2)": lambda u, v: u * jnp.log1p(v**2),
    "u log(2 + sin(v))": lambda u, v: u * jnp.log(2 + jnp.sin(v)),
    "exp(sin(u)) exp(cos(v))": lambda u, v: jnp.exp(jnp.sin(u)) * jnp.exp(jnp.cos(v)),
    "swish": lambda u, v: u * sigmoid(v),
    "gate": lambda u, v: jnp.tanh(u) * sigmoid(v),
    "x rsqrt(1 + x x)": lambda u, v: u * lax.rsqrt(1 + v * v),
    "xlogy": lambda u, v: xlogy(u, v),
    "xlog1py": lambda u, v: xlog1py(u, v),
    "entr": lambda u, v: entr(u),
    "sum of log_softmax": lambda u, v: -jnp.sum(v * jax.nn.log_softmax(u)),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)), jnp.ones((2, 4)))
