"""Stable spellings that people write by hand: their values are right, their slopes at ties are not."""

import jax
import jax.numpy as jnp
import pytest

from rules.tables import Family, table
from rules.unchanged import Domain

INF, NAN = float("inf"), float("nan")
HAND_WRITTEN = Family(
    "sum_with_logarithm",
    breaking=[0.0],
    ordinary=[-200.0, -20.0, -1e-3, 0.7, 20.0, 200.0],
    spellings={
        "max(x, 0) + log1p(exp(-|x|))": lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))),
        "max(x, 0) + log(1 + exp(-|x|))": lambda x: jnp.maximum(x, 0) + jnp.log(1 + jnp.exp(-jnp.abs(x))),
        "relu(x) + log1p(exp(-|x|))": lambda x: jax.nn.relu(x) + jnp.log1p(jnp.exp(-jnp.abs(x))),
        "log1p(exp(-|x|)) - min(-x, 0)": lambda x: jnp.log1p(jnp.exp(-jnp.abs(x))) - jnp.minimum(-x, 0),
    },
)
HAND_WRITTEN_BCE = Family(
    "sum_with_logarithm",
    breaking=[(0.0, 1.0), (0.0, 0.25)],
    ordinary=[(-200.0, 1.0), (-20.0, 0.5), (0.7, 0.25), (20.0, 1.0), (200.0, 0.0)],
    spellings={
        "max(x, 0) - x t + log1p(exp(-|x|))": lambda x, t: jnp.maximum(x, 0) - x * t + jnp.log1p(jnp.exp(-jnp.abs(x))),
        "relu(x) - t x + log(1 + exp(-|x|))": lambda x, t: jax.nn.relu(x) - t * x + jnp.log(1 + jnp.exp(-jnp.abs(x))),
    },
    exponent=False,
)
HAND_WRITTEN_LOGADDEXP = Family(
    "sum_with_logarithm",
    breaking=[(0.0, 0.0), (-3.0, -3.0)],
    ordinary=[(200.0, 199.0), (-200.0, 200.0), (1.0, -1.0), (0.5, 20.0)],
    spellings={
        "max(a, b) + log1p(exp(-|a - b|))": lambda a, b: jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.abs(a - b))),
        "max(a, b) + log1p(exp(-|b - a|))": lambda a, b: jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.abs(b - a))),
    },
    exponent=False,
)


@table(HAND_WRITTEN, HAND_WRITTEN_BCE, HAND_WRITTEN_LOGADDEXP)
def test_spellings(cases, name, thorough):
    cases.check(name, thorough=thorough)


POINTS = [-200.0, -3.0, -0.5, 0.25, 3.0, 200.0, NAN]
NO_SOFTPLUS = Domain(
    {
        "max(x, 0) + log1p(exp(-|2x|))": (lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(2 * x))), POINTS),
        "max(x, 1) + log1p(exp(-|x|))": (lambda x: jnp.maximum(x, 1) + jnp.log1p(jnp.exp(-jnp.abs(x))), POINTS),
        "min(x, 0) + log1p(exp(-|x|))": (lambda x: jnp.minimum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))), POINTS),
        "max(x, 0) + log1p(2 exp(-|x|))": (lambda x: jnp.maximum(x, 0) + jnp.log1p(2 * jnp.exp(-jnp.abs(x))), POINTS),
        "max(x, 0) + 2 log1p(exp(-|x|))": (lambda x: jnp.maximum(x, 0) + 2 * jnp.log1p(jnp.exp(-jnp.abs(x))), POINTS),
        "max(x, 0) - log1p(exp(-|x|))": (lambda x: jnp.maximum(x, 0) - jnp.log1p(jnp.exp(-jnp.abs(x))), POINTS),
    }
)


@pytest.mark.parametrize("name", NO_SOFTPLUS)
def test_only_alike(name):
    """One number changed, and it is no softplus: values stay what they were."""
    NO_SOFTPLUS.check(name)
