"""Whole cross entropies as one function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import log_softmax, sigmoid, softmax

from rules.harness import Program, check_rule
from rules.tables import Case, Cases
from rules.unchanged import assert_left_alone
from stablegrad import explain, stabilize

ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0], [1.0, 2.0, 3.0, 4.0]])
TARGETS = np.array([[0, 1.0, 0, 0], [0.25, 0.25, 0.5, 0], [1.0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4]])
CATEGORICAL = {
    "-sum(t log(softmax(x)))": lambda x, t: -jnp.sum(t * jnp.log(softmax(x)), -1),
    "-sum(t log(exp / sum))": lambda x, t: -jnp.sum(t * jnp.log(jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)), -1),
    "sum(-t log(softmax(x)))": lambda x, t: jnp.sum(-t * jnp.log(softmax(x)), -1),
    "sum(t (-log(softmax(x))))": lambda x, t: jnp.sum(t * -jnp.log(softmax(x)), -1),
    "-sum(log(softmax(x)) t)": lambda x, t: -jnp.sum(jnp.log(softmax(x)) * t, -1),
    "-mean(t log(softmax(x))) 4": lambda x, t: -jnp.mean(t * jnp.log(softmax(x)), -1) * 4,
    "of the transpose": lambda x, t: -jnp.sum(t.T * jnp.log(softmax(x.T, 0)), 0),
    "-dot(t, log(softmax(x)))": lambda x, t: -jnp.einsum("ij,ij->i", t, jnp.log(softmax(x))),
}


LOG = "log_of_companion"
CATEGORICAL_CASES = Cases({name: Case(f, [ROWS, TARGETS], LOG, [0, 1]) for name, f in CATEGORICAL.items()})


@pytest.mark.parametrize("name", CATEGORICAL_CASES)
def test_categorical(name):
    CATEGORICAL_CASES.check(name)


@pytest.mark.parametrize("reduce", [jnp.sum, jnp.mean], ids=["sum", "mean"])
def test_of_a_batch(reduce):
    program = Program(lambda x, t: -reduce(t * jnp.log(softmax(x))), [ROWS, TARGETS])
    check_rule(program, LOG, fails_plain=True, thorough=True)


LOGITS = np.array([[-200.0, -20.0, -0.5], [0.0, 0.7, 20.0], [200.0, 1.0, -1.0], [95.0, -95.0, 3.0]])
LABELS = np.array([[1.0, 0.25, 0.5], [0.5, 1.0, 0.0], [0.0, 0.75, 0.25], [0.125, 0.5, 1.0]])
BINARY = {
    "-(t log(s) + (1 - t) log(1 - s))": lambda x, t: -(t * jnp.log(sigmoid(x)) + (1 - t) * jnp.log(1 - sigmoid(x))),
    "-t log(s) - (1 - t) log(1 - s)": lambda x, t: -t * jnp.log(sigmoid(x)) - (1 - t) * jnp.log(1 - sigmoid(x)),
    "-(1 - t) log(1 - s) - t log(s)": lambda x, t: -(1 - t) * jnp.log(1 - sigmoid(x)) - t * jnp.log(sigmoid(x)),
    "log1p(-s)": lambda x, t: -(t * jnp.log(sigmoid(x)) + (1 - t) * jnp.log1p(-sigmoid(x))),
    "s from exp": lambda x, t: -(t * jnp.log(1 / (1 + jnp.exp(-x))) + (1 - t) * jnp.log(1 - 1 / (1 + jnp.exp(-x)))),
    "where(t, log(s), log(1 - s))": lambda x, t: -jnp.log(jnp.where(t > 0.5, sigmoid(x), 1 - sigmoid(x))),
}


BINARY_CASES = Cases({name: Case(f, [LOGITS, LABELS], LOG, [0, 2, 3]) for name, f in BINARY.items()})


@pytest.mark.parametrize("name", BINARY_CASES)
def test_binary(name):
    BINARY_CASES.check(name)


def test_reported_by_name():
    report = explain(lambda x, t: -jnp.sum(t * jnp.log(softmax(x))))(jnp.ones((2, 4)), jnp.ones((2, 4)))
    assert {r.rule for r in report.rewrites} == {"log_of_companion", "product_with_logarithm", "cross_entropy"}
    report = explain(BINARY["-(t log(s) + (1 - t) log(1 - s))"])(jnp.ones(3), jnp.ones(3))
    assert "cross_entropy" in {r.rule for r in report.rewrites}


def test_switched_off_it_is_as_accurate():
    """Only memory depends on it."""
    x, t = jnp.asarray(ROWS, jnp.float32), jnp.asarray(TARGETS, jnp.float32)
    f = CATEGORICAL["-sum(t log(softmax(x)))"]
    whole, apart = stabilize(f), stabilize(f, disable="cross_entropy")
    np.testing.assert_allclose(whole(x, t), apart(x, t), rtol=1e-6)
    np.testing.assert_allclose(
        *(jax.jit(jax.grad(lambda x, g=g: g(x, t).sum()))(x) for g in (whole, apart)), rtol=1e-5, atol=1e-30
    )


def test_log_probabilities_in_use_elsewhere_are_kept():
    def f(x, t):
        logs = jnp.log(softmax(x))
        return -(t * logs).sum(-1) + logs[:, 0]

    check_rule(Program(f, [ROWS, TARGETS]), LOG, fails_plain=[1])


def test_library_functions_are_left_alone():
    assert_left_alone(lambda x: -log_softmax(x)[:, 0], jnp.ones((2, 4)))
