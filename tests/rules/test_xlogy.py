"""scipy's x * log(y), and logit, of companions."""

import jax.numpy as jnp
import pytest
from jax.nn import sigmoid
from jax.scipy.special import entr, logit, xlog1py, xlogy

from rules.tables import Family, table
from rules.unchanged import Domain, assert_left_alone

INF, NAN = float("inf"), float("nan")
XLOGY = Family(
    "xlogy_of_companion",
    breaking=[(0.5, -200.0), (1.0, -95.0)],
    ordinary=[(0.0, -20.0), (1.0, 0.0), (0.25, 20.0), (2.0, 0.7)],
    spellings={
        "xlogy(t, sigmoid(x))": lambda t, x: xlogy(t, sigmoid(x)),
        "xlogy(t, 1 / (1 + exp(-x)))": lambda t, x: xlogy(t, 1 / (1 + jnp.exp(-x))),
        "xlogy(t, 1 - sigmoid(-x))": lambda t, x: xlogy(t, 1 - sigmoid(-x)),
        "xlog1py(t, -sigmoid(-x))": lambda t, x: xlog1py(t, -sigmoid(-x)),
        "xlogy(t, exp(x))": lambda t, x: xlogy(t, jnp.exp(x)),
        "2 xlogy(t / 2, sigmoid(x))": lambda t, x: 2 * xlogy(t / 2, sigmoid(x)),
    },
    thorough=True,
)
LOGIT = Family(
    "logit_of_companion",
    breaking=[-200.0, 200.0],
    ordinary=[20.0, -3.0, 0.0, 0.7, 3.0],
    spellings={
        "logit(sigmoid(x))": lambda x: logit(sigmoid(x)),
        "logit(1 / (1 + exp(-x)))": lambda x: logit(1 / (1 + jnp.exp(-x))),
        "logit(1 - sigmoid(-x))": lambda x: logit(1 - sigmoid(-x)),
        "-logit(sigmoid(-x))": lambda x: -logit(sigmoid(-x)),
    },
    meaning=lambda x: x,
    thorough=True,
)


@table(XLOGY, LOGIT)
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


DOMAIN = Domain(
    {
        "xlogy(t, y)": (lambda t, y: xlogy(t, y), [0.0, 0.0, 1.0, 1.0, NAN], [0.0, -1.0, -1.0, 0.0, 1.0]),
        "xlogy(t, -exp(x))": (lambda t, x: xlogy(t, -jnp.exp(x)), [0.0, 1.0, NAN, 1.0], [0.0, 1.0, 1.0, NAN]),
        "xlog1py(t, y)": (lambda t, y: xlog1py(t, y), [0.0, 0.0, 1.0, 1.0, NAN], [-1.0, -2.0, -2.0, -1.0, 1.0]),
        "logit(p)": (lambda p, q: logit(p) * q, [-1.0, 0.0, 0.5, 1.0, 2.0, NAN], [1.0] * 6),
        "logit(2 sigmoid(x))": (lambda x, q: logit(2 * sigmoid(x)) * q, [-1.0, 1.0, NAN], [1.0] * 3),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "xlogy": lambda u, v: xlogy(u, v),
    "xlog1py": lambda u, v: xlog1py(u, v),
    "logit": lambda u, v: logit(u),
    "entr": lambda u, v: entr(u),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.full((2, 4), 0.5), jnp.ones((2, 4)))
