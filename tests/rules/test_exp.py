"""Rules whose root is an exponential, a power or a root."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import log_sigmoid, log_softmax, logsumexp, sigmoid, softmax

from rules.tables import HALVES, Case, Cases, Family, table
from rules.unchanged import Domain, assert_left_alone
from stablegrad import stabilize

INF, NAN = float("inf"), float("nan")
UNDOES = "exponential_of_logarithm"
IDENTITY = Family(
    UNDOES,
    breaking=[0.0],
    ordinary=[1e-30, 0.25, 1.0, 3.0, 1e30],
    spellings={
        "exp(log(x))": lambda x: jnp.exp(jnp.log(x)),
        "exp(-log(1 / x))": lambda x: jnp.exp(-jnp.log(1 / x)),
        "exp(log(x) + 1 - 1)": lambda x: jnp.exp(jnp.log(x) + 1 - 1),
        "exp(2 log(sqrt(x)))": lambda x: jnp.exp(2 * jnp.log(jnp.sqrt(x))),
        "exp(log(x) / 2 + log(x) / 2)": lambda x: jnp.exp(jnp.log(x) / 2 + jnp.log(x) / 2),
    },
    dtypes=("bfloat16", "float64"),
    exponent=False,
    thorough=True,
)
SQUARE = Family(
    UNDOES,
    breaking=[0.0],
    ordinary=[1e-10, 0.25, 1.0, 3.0, 1e18],
    spellings={
        "exp(2 log(x))": lambda x: jnp.exp(2 * jnp.log(x)),
        "exp(log(x) + log(x))": lambda x: jnp.exp(jnp.log(x) + jnp.log(x)),
        "exp(log(x**2))": lambda x: jnp.exp(jnp.log(x**2)),
    },
    exponent=False,
)
RATIO = Family(
    UNDOES,
    breaking=[(0.0, 2.0)],
    ordinary=[(1.0, 3.0), (2.5, 0.5), (3e9, 1e-5), (1e-30, 1e-20)],
    spellings={
        "exp(log(a) - log(b))": lambda a, b: jnp.exp(jnp.log(a) - jnp.log(b)),
        "exp(log(a / b))": lambda a, b: jnp.exp(jnp.log(a / b)),
        "exp(log(a) + log(1 / b))": lambda a, b: jnp.exp(jnp.log(a) + jnp.log(1 / b)),
    },
    exponent=False,
)
PRODUCT = Family(
    UNDOES,
    breaking=[(0.0, 2.0), (3.0, 0.0)],
    ordinary=[(1.0, 3.0), (2.5, 0.5), (1e-30, 1e20)],
    spellings={"exp(log(a) + log(b))": lambda a, b: jnp.exp(jnp.log(a) + jnp.log(b))},
    exponent=False,
)
SIGMOIDS = Family(
    UNDOES,
    breaking=[120.0, 200.0],
    ordinary=[-95.0, -20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "exp(-log(1 + exp(x)))": lambda x: jnp.exp(-jnp.log(1 + jnp.exp(x))),
        "exp(x - log(1 + exp(x)))": lambda x: jnp.exp(x - jnp.log(1 + jnp.exp(x))),
        "exp(log(1 / (1 + exp(x))))": lambda x: jnp.exp(jnp.log(1 / (1 + jnp.exp(x)))),
    },
)
EXPM1 = Family(
    "expm1_with_right_derivative",
    breaking=[-20.0, -40.0],
    ordinary=[-200.0, -3.0, -1e-3, 0.0, 1e-9, 0.7, 50.0],
    spellings={
        "expm1(x)": lambda x: jnp.expm1(x),
        "expm1(x) + 1": lambda x: jnp.expm1(2 * x) * 3,
        "elu": lambda x: jax.nn.elu(x),
        "expm1(min(x, 0))": lambda x: jnp.expm1(jnp.minimum(x, 0.5)),
    },
    dtypes=("float64",),
    thorough=True,
)
ODDS = Family(
    "expm1_with_right_derivative",
    breaking=[1e-30],
    ordinary=[0.25, 0.5, 2.0, 3.0],
    spellings={"expm1(log(x))": lambda x: jnp.expm1(jnp.log(x) - jnp.log(1 + x))},
    exponent=False,
)
FOCAL = Family(
    "power_of_scaled",
    breaking=[20.0, 25.0],
    ordinary=[-60.0, -3.0, 0.0, 0.7, 3.0],
    spellings={
        "(1 - sigmoid(x))**2.5": lambda x: (1 - sigmoid(x)) ** 2.5,
        "(1 / (1 + exp(x)))**1.5": lambda x: (1 - 1 / (1 + jnp.exp(-x))) ** 1.5,
        "(1 - sigmoid(x))**0.5": lambda x: (1 - sigmoid(x)) ** 0.5,
    },
    exponent=False,
    thorough=True,
)
FOCAL_OF_TWO = Family(
    "power_of_scaled",
    breaking=[(20.0, 2.5), (20.0, 0.5)],
    ordinary=[(0.0, 0.0), (0.7, 1.0), (-3.0, 2.0), (-20.0, 3.0)],
    spellings={"(1 - sigmoid(x))**g": lambda x, g: (1 - sigmoid(x)) ** g},
    exponent=False,
)
ROOTS = Family(
    "root_of_scaled",
    breaking=[-170.0, 170.0],
    ordinary=[-20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "sqrt(exp(x))": lambda x: jnp.sqrt(jnp.exp(x)),
        "rsqrt(exp(x))": lambda x: lax.rsqrt(jnp.exp(x)),
        "sqrt(exp(-x))": lambda x: jnp.sqrt(jnp.exp(-x)),
        "sqrt(2 exp(x))": lambda x: jnp.sqrt(2 * jnp.exp(x)),
        "sqrt(sqrt(exp(2x)))": lambda x: jnp.sqrt(jnp.sqrt(jnp.exp(2 * x))),
        "sqrt(sum of exp)": lambda x: jnp.sqrt(jnp.exp(x) + jnp.exp(x - 1)),
    },
    dtypes=HALVES,
    thorough=True,
)
POWERS = Family(
    "power_of_scaled",
    breaking=[-95.0, 95.0],
    ordinary=[-20.0, -1e-3, 0.0, 0.7, 20.0],
    spellings={
        "exp(x)**0.5": lambda x: jnp.exp(x) ** 0.5,
        "exp(x)**0.25": lambda x: jnp.exp(x) ** 0.25,
        "exp(x)**-0.75": lambda x: jnp.exp(x) ** -0.75,
        "(3 exp(x))**0.5": lambda x: (3 * jnp.exp(x)) ** 0.5,
    },
)
SMALL_ROOTS = Family(
    "root_of_scaled",
    breaking=[-95.0, -120.0],
    ordinary=[-20.0, -1e-3, 0.0, 0.7],
    spellings={
        "sqrt(sigmoid(x))": lambda x: jnp.sqrt(sigmoid(x)),
        "sqrt(1 - sigmoid(-x))": lambda x: jnp.sqrt(1 - sigmoid(-x)),
        "rsqrt(1 + exp(-x))": lambda x: lax.rsqrt(1 + jnp.exp(-x)),
    },
)
INVERSE_POWERS = Family(
    "root_of_scaled",
    breaking=[95.0, 200.0],
    ordinary=[-95.0, -3.0, 0.0, 0.7, 20.0],
    spellings={
        "(1 + exp(x))**-2": lambda x: (1 + jnp.exp(x)) ** -2,
        "(1 + exp(x))**-1": lambda x: (1 + jnp.exp(x)) ** -1,
        "(1 + exp(x))**-3": lambda x: (1 + jnp.exp(x)) ** -3,
    },
    exponent=False,
)
ARTANH = Family(
    "inverse_tangent_of_ratio",
    breaking=[-20.0, 20.0, 200.0],
    ordinary=[-3.0, -1e-3, 0.0, 0.7],
    spellings={
        "arctanh(tanh(x))": lambda x: jnp.arctanh(jnp.tanh(x)),
        "arctanh(2 sigmoid(2x) - 1)": lambda x: jnp.arctanh(2 * sigmoid(2 * x) - 1),
        "arctanh(ratio)": lambda x: jnp.arctanh((jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x))),
        "arctanh(1 - 2 sigmoid(-2x))": lambda x: jnp.arctanh(1 - 2 * sigmoid(-2 * x)),
    },
    thorough=True,
)


@table(
    IDENTITY, SQUARE, RATIO, PRODUCT, SIGMOIDS, EXPM1, FOCAL, FOCAL_OF_TWO, ROOTS, POWERS, SMALL_ROOTS, INVERSE_POWERS,
    ARTANH,
)  # fmt: skip
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0]])
ONE_HOT = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]], np.float32)
ALONG_AXES = {
    "exp(x - log(sum(exp(x))))": (
        lambda x: ONE_HOT * jnp.exp(x - jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True))), UNDOES, [0, 1, 2]),
    "exp(x - logsumexp(x))": (lambda x: ONE_HOT * jnp.exp(x - logsumexp(x, -1, keepdims=True)), UNDOES, [2]),
    "exp(log(softmax(x)))": (lambda x: ONE_HOT * jnp.exp(jnp.log(softmax(x))), UNDOES, [0, 1, 2]),
    "exp(2 log(softmax(x)))": (lambda x: ONE_HOT * jnp.exp(2 * jnp.log(softmax(x))), UNDOES, [0, 1, 2]),
    "exp(log_softmax(x) / 2)": (lambda x: ONE_HOT * jnp.exp(log_softmax(x) / 2), UNDOES, [2]),
    "sqrt(sum(exp(x)**2))": (lambda x: jnp.sqrt(jnp.sum(jnp.exp(x / 3) ** 2, -1)), "root_of_scaled", [0]),
    "sum(exp(x)**2)**0.5": (lambda x: jnp.sum(jnp.exp(x / 3) ** 2, -1) ** 0.5, "power_of_scaled", [0]),
    "softmax(x)**0.5": (lambda x: ONE_HOT * softmax(x) ** 0.5, "power_of_scaled", [2]),
}  # fmt: skip


AXES_CASES = Cases({name: Case(f, [ROWS], rule, breaking) for name, (f, rule, breaking) in ALONG_AXES.items()})


@pytest.mark.parametrize("name", AXES_CASES)
def test_along_axes(name):
    AXES_CASES.check(name)


DOMAIN = Domain(
    {
        "exp(log(x))": (lambda x: jnp.exp(jnp.log(x)), [-INF, -1.0, 0.5, INF, NAN]),
        "exp(2 log(x))": (lambda x: jnp.exp(2 * jnp.log(x)), [-1.0, 0.5, INF, NAN]),
        "exp(log(x) / 2)": (lambda x: jnp.exp(jnp.log(x) / 2), [-1.0, 0.5, INF, NAN]),
        "exp(-log(x))": (lambda x: jnp.exp(-jnp.log(x)), [-1.0, 0.0, 0.5, INF, NAN]),
        "exp(log(x) - log(x))": (lambda x: jnp.exp(jnp.log(x) - jnp.log(x)), [-1.0, 0.5, NAN]),
        "exp(log(-exp(x)))": (lambda x: jnp.exp(jnp.log(-jnp.exp(x))), [-1.0, 0.0, NAN]),
        "sqrt(exp(x))": (lambda x: jnp.sqrt(jnp.exp(x)), [-INF, 0.0, INF, NAN]),
        "sqrt(-exp(x))": (lambda x: jnp.sqrt(-jnp.exp(x)), [0.0, 1.0, NAN]),
        "sqrt(1 - exp(x))": (lambda x: jnp.sqrt(1 - jnp.exp(x)), [-1.0, 0.0, 1.0, NAN]),
        "(sigmoid(x) - 1)**2.5": (lambda x: (sigmoid(x) - 1) ** 2.5, [-1.0, 0.0, NAN]),
        "(sigmoid(x) - 0.5)**2.5": (lambda x: (sigmoid(x) - 0.5) ** 2.5, [-1.0, 0.0, 1.0, NAN]),
        "(u**2)**0.5": (lambda u: (u**2) ** 0.5, [-3.0, 2.0, INF, NAN]),
        "sqrt(u u)": (lambda u: jnp.sqrt(u * u), [-3.0, 2.0, INF, NAN]),
        "(u**3)**(1 / 3)": (lambda u: (u**3) ** (1 / 3), [-3.0, 2.0, INF, NAN]),
        "arctanh(2 exp(x) - 1)": (lambda x: jnp.arctanh(2 * jnp.exp(x) - 1), [-1.0, 0.0, 1.0, NAN]),
        "expm1(log(x))": (lambda x: jnp.expm1(jnp.log(x)), [-1.0, 0.0, 0.5, INF, NAN]),
    }
)
DOMAIN_OF_TWO = Domain(
    {
        "exp(log(a) - log(b))": (
            lambda a, b: jnp.exp(jnp.log(a) - jnp.log(b)),
            [-1.0, -1.0, 1.0, 0.0, 2.0, NAN, 1.0],
            [-1.0, 1.0, -1.0, 0.0, 0.0, 1.0, NAN],
        ),
        "exp(log(a) + log(b))": (
            lambda a, b: jnp.exp(jnp.log(a) + jnp.log(b)),
            [-1.0, -1.0, 1.0, 0.0, NAN, 1.0],
            [-1.0, 1.0, -1.0, INF, 1.0, NAN],
        ),
        "(1 - sigmoid(x))**g": (lambda x, g: (1 - sigmoid(x)) ** g, [0.0, NAN, 1.0], [1.0, -1.0, NAN]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


@pytest.mark.parametrize("name", DOMAIN_OF_TWO)
def test_domain_errors_of_two_arguments_survive(name):
    DOMAIN_OF_TWO.check(name)


LEFT_ALONE = {
    "exp(u)": lambda u, v: jnp.exp(u),
    "exp(u - v)": lambda u, v: jnp.exp(u - v),
    "sqrt(u u + 1)": lambda u, v: jnp.sqrt(u * u + 1),
    "u**2.5": lambda u, v: jnp.abs(u) ** 2.5,
    "expm1 of a probability": lambda u, v: jnp.expm1(sigmoid(u)),
    "exp of log_softmax, bounded": lambda u, v: jnp.sin(log_softmax(u)),
    "gaussian": lambda u, v: jnp.exp(-(u**2)),
    "library log_sigmoid": lambda u, v: log_sigmoid(u),
    "arctanh": lambda u, v: jnp.arctanh(u / (2 + v * v)),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)), jnp.ones((2, 4)))


def test_the_root_of_a_difference_that_is_zero():
    """sqrt(1 - exp(x)) has the slope -inf at 0: what is under the root must not be -0."""
    for wrap in (lambda g: g, jax.jit):
        value, slope = wrap(jax.value_and_grad(stabilize(lambda x: jnp.sqrt(1 - jnp.exp(x)))))(0.0)
        assert (value, slope) == (0.0, -INF)
