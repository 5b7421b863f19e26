"""Sigmoids beside the ends 0 and 1, and their differences: cumulative links, discretised distributions."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import sigmoid, softmax

from rules.tables import Case, Cases

CUTS = np.array([-2.0, -0.5, 1.0, 2.5], np.float32)
LABEL = np.array([0, 4, 0, 3, 1, 2])
ROWS = np.arange(6)
AT = np.array([0.0, 30.0, -30.0, 200.0, -200.0, 3.0])
LOG, DIFFERENCE = "log_of_companion", "difference_of_two_sigmoids"


def cumulative(x):
    return sigmoid(CUTS.astype(x.dtype) - x[:, None])


def between_ends(x):
    zeros = jnp.zeros((len(x), 1), x.dtype)
    return jnp.concatenate([zeros, cumulative(x), zeros + 1], axis=-1)


def padded(x):
    return jnp.pad(jnp.pad(cumulative(x), ((0, 0), (1, 0))), ((0, 0), (0, 1)), constant_values=1)


def chosen(x):
    cuts = jnp.asarray(CUTS, x.dtype)
    upper = jnp.where(LABEL == 4, 1.0, sigmoid(cuts[jnp.minimum(LABEL, 3)] - x))
    lower = jnp.where(LABEL == 0, 0.0, sigmoid(cuts[jnp.maximum(LABEL - 1, 0)] - x))
    return jnp.log(upper - lower)


def infinite_cuts(x):
    cuts = jnp.concatenate([jnp.array([-jnp.inf], x.dtype), jnp.asarray(CUTS, x.dtype), jnp.array([jnp.inf], x.dtype)])
    return jnp.log(sigmoid(cuts[LABEL + 1] - x) - sigmoid(cuts[LABEL] - x))


def sliced(x):
    ends = between_ends(x)
    return jnp.log((ends[:, 1:] - ends[:, :-1])[ROWS, LABEL])


ORDINAL = {
    "slices of concatenate([0, s, 1])": sliced,
    "diff of padded": lambda x: jnp.log(jnp.take_along_axis(jnp.diff(padded(x)), LABEL[:, None], 1)[:, 0]),
    "two picks": lambda x: jnp.log(between_ends(x)[ROWS, LABEL + 1] - between_ends(x)[ROWS, LABEL]),
    "where": chosen,
    "infinite cuts": infinite_cuts,
}  # fmt: skip
ORDINAL_CASES = Cases({name: Case(f, [AT], LOG, [2, 4]) for name, f in ORDINAL.items()})


@pytest.mark.parametrize("name", ORDINAL_CASES)
def test_ordinal_regression(name):
    ORDINAL_CASES.check(name)


A = np.array([20.0, 0.5, -3.0, 30.0, 9.0, -60.0])
B = np.array([19.0, 0.4375, 4.0, -30.0, 8.0, -61.0])
VALUES = {
    "sigmoid(a) - sigmoid(b)": lambda a, b: sigmoid(a) - sigmoid(b),
    "-sigmoid(b) + sigmoid(a)": lambda a, b: -sigmoid(b) + sigmoid(a),
    "2 sigmoid(a) - 2 sigmoid(b)": lambda a, b: 2 * sigmoid(a) - 2 * sigmoid(b),
    "1 / (1 + exp(-a)) - 1 / (1 + exp(-b))": lambda a, b: 1 / (1 + jnp.exp(-a)) - 1 / (1 + jnp.exp(-b)),
    "tanh(a) - tanh(b)": lambda a, b: jnp.tanh(a) - jnp.tanh(b),
    "e^a / (1 + e^a) - s(b)": lambda a, b: jnp.exp(a) / (1 + jnp.exp(a)) - sigmoid(b),
    "s(b + d) - s(b)": lambda a, b: sigmoid(b + 0.125) - sigmoid(b),
}
VALUE_CASES = Cases({name: Case(f, [A, B], DIFFERENCE, [0]) for name, f in VALUES.items()})


@pytest.mark.parametrize("name", VALUE_CASES)
def test_differences(name):
    VALUE_CASES.check(name)


def discretised(x, mean):
    """The probability of a pixel between two edges, the outer ones open, under a mixture of logistic distributions."""
    edge = jnp.asarray(0.25, x.dtype)
    upper, lower = sigmoid(x[:, None] - mean + edge), sigmoid(x[:, None] - mean - edge)
    inside = jnp.where(x[:, None] < -25, upper, jnp.where(x[:, None] > 25, 1 - lower, upper - lower))
    return jnp.log(jnp.sum(softmax(mean / 8) * inside, axis=-1))


def differences(x):
    weights = softmax(jnp.array([0.1, 0.2], x.dtype))
    return jnp.log(jnp.sum(weights * (sigmoid(x[:, None] + 1) - sigmoid(x[:, None] - 1)), axis=-1))


MIXTURES = Cases(
    {
        "mixture of differences": Case(differences, [np.array([0.0, 30.0, -30.0, 3.0])], LOG, [1]),
        "discretised mixture": Case(discretised, [AT[[0, 1, 2, 5]], np.array([-1.0, 2.0, 9.0])], LOG, ()),
    }
)


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures(name):
    MIXTURES.check(name)
