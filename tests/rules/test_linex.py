"""exp(x) - 1 - x and y - 1 - log(y): what vanishes to second order."""

import jax.numpy as jnp

from rules.tables import Family, table
from rules.unchanged import assert_left_alone

LINE = "exponential_less_its_line"
OF_EXPONENT = Family(
    LINE,
    breaking=[1e-4, -1e-3],
    ordinary=[-200.0, -3.0, 0.0, 0.7, 5.0, 20.0, 1e-30, -1e-9],
    spellings={
        "exp(x) - 1 - x": lambda x: jnp.exp(x) - 1 - x,
        "exp(x) - (1 + x)": lambda x: jnp.exp(x) - (1 + x),
        "-(1 + x - exp(x))": lambda x: -(1 + x - jnp.exp(x)),
        "expm1(x) - x": lambda x: jnp.expm1(x) - x,
        "0.5 exp(x) - 0.5 - x / 2": lambda x: 0.5 * jnp.exp(x) - 0.5 - x / 2,
        "exp(x / 2)**2 - 1 - x": lambda x: jnp.exp(x / 2) ** 2 - 1 - x,
        "exp(2 (x / 2)) - 1 - log(exp(x))": lambda x: jnp.exp(2 * (x / 2)) - 1 - jnp.log(jnp.exp(x)),
        "KL of a Gaussian": lambda x: -0.5 * (1 + x - jnp.square(x * 1e-4) - jnp.exp(x)),
        "two at once": lambda x: (jnp.exp(x) - 1 - x) + (jnp.exp(2 * x) - 1 - 2 * x),
        "reshaped": lambda x: (jnp.exp(x).reshape(2, -1) - 1).ravel() - x,
    },
    dtypes=("bfloat16", "float64"),
    exponent=False,
    thorough=True,
)
OF_VALUE = Family(
    LINE,
    breaking=[1.0001, 0.9995],
    ordinary=[1e-30, 0.25, 0.7, 3.0, 1e20],
    spellings={
        "y - log(y) - 1": lambda y: y - jnp.log(y) - 1,
        "-(log(y) + 1 - y)": lambda y: -(jnp.log(y) + 1 - y),
        "y / 2 - log(y) / 2 - 0.5": lambda y: y / 2 - jnp.log(y) / 2 - 0.5,
    },
    exponent=False,
)
ORDERED = Family(
    LINE,
    breaking=[],
    ordinary=[1.0001, 0.9995, 1e-30, 0.25, 0.7, 3.0, 1e18],
    spellings={
        "(y - 1) - log(y)": lambda y: y - 1 - jnp.log(y),
        "(y**2 - 1) / 2 - log(y)": lambda y: (y**2 - 1) / 2 - jnp.log(y),
    },
    exponent=False,
)


@table(OF_EXPONENT, OF_VALUE, ORDERED)
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


LEFT_ALONE = {
    "exp(x) - x": lambda x: jnp.exp(x) - x,
    "exp(x) + 1 - x": lambda x: jnp.exp(x) + 1 - x,
    "y - log(y)": lambda x: x - jnp.log(x),
}


def test_left_alone():
    for f in LEFT_ALONE.values():
        assert_left_alone(f, jnp.ones(4))
