"""Matrix products of exponentials under a logarithm or a quotient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import softmax

from rules.tables import Case, Cases
from rules.unchanged import Domain, assert_left_alone

INF, NAN = float("inf"), float("nan")
LOG = "log_of_companion"
ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0], [1.0, 2.0, 3.0, 4.0]])
WEIGHTS = np.array([[0.5, 0.25, 2.0, 1.0], [1.0, 0.5, 0.25, 2.0], [0.25, 1.0, 4.0, 1.0], [1.0, 0.5, 0.25, 2.0]])
BATCH = np.stack([ROWS[:2, :2], ROWS[:2, :2].T])
LOGARITHMS = {
    "log(exp(x) @ w)": (lambda x, w: jnp.log(jnp.exp(x) @ w), [ROWS, WEIGHTS], [0, 1]),
    "log(exp(x).T @ w)": (lambda x, w: jnp.log(jnp.exp(x.T).T @ w), [ROWS, WEIGHTS], [0, 1]),
    "log((w @ exp(x).T).T)": (lambda x, w: jnp.log(w @ jnp.exp(x.T)).T, [ROWS, WEIGHTS], [0, 1]),
    "log(exp(x) @ v)": (lambda x, v: jnp.log(jnp.exp(x) @ v), [ROWS, WEIGHTS[0]], ()),
    "log(v @ exp(x))": (lambda x, v: jnp.log(v @ jnp.exp(x)), [ROWS, WEIGHTS[0]], [0, 2]),
    "log(vdot(exp(x), v))": (lambda x, v: jnp.log(jnp.vdot(jnp.exp(x), v)), [ROWS[0], WEIGHTS[0]], True),
    "log(einsum ij,jk->ki)": (lambda x, w: jnp.log(jnp.einsum("ij,jk->ki", jnp.exp(x), w)).T, [ROWS, WEIGHTS], [0, 1]),
    "log(einsum bij,bjk->bik)": (
        lambda x, w: jnp.log(jnp.einsum("bij,bjk->bik", jnp.exp(x), w)),
        [BATCH, np.stack([WEIGHTS[:2, :2], WEIGHTS[2:, 2:]])],
        [0, 1],
    ),
    "log(vmap of exp(x) @ w)": (lambda x, w: jnp.log(jax.vmap(lambda r: jnp.exp(r) @ w)(x)), [ROWS, WEIGHTS], [0, 1]),
    "log(exp(x) @ exp(y))": (lambda x, y: jnp.log(jnp.exp(x) @ jnp.exp(y)), [ROWS, WEIGHTS * 30], [0, 1]),
    "log(exp(x) @ exp(y)), peaks apart": (lambda x, y: jnp.log(jnp.exp(x) @ jnp.exp(y)), [ROWS, ROWS.T], [0, 1]),
    "log(softmax(x) @ softmax(y))": (lambda x, y: jnp.log(softmax(x) @ softmax(y)), [ROWS, ROWS - 3], ()),
    "log(exp(-x**2) @ w)": (lambda x, w: jnp.log(jnp.exp(-(x**2)) @ w), [ROWS / 4 + 20, WEIGHTS], ()),
    "log(sigmoid(x) @ w)": (lambda x, w: jnp.log(jax.nn.sigmoid(x) @ w), [ROWS - 200, WEIGHTS], ()),
    "log(softmax(x).T @ w)": (lambda x, w: jnp.log(softmax(x).T @ w), [ROWS[:, ::-1], WEIGHTS], ()),
    "two steps of a chain": (lambda x, w: jnp.log((jnp.exp(x[0]) @ w * jnp.exp(x[1])) @ w), [ROWS - 150, WEIGHTS], ()),
}  # fmt: skip


LOGARITHM_CASES = Cases({name: Case(f, args, LOG, breaking) for name, (f, args, breaking) in LOGARITHMS.items()})


@pytest.mark.parametrize("name", LOGARITHM_CASES)
def test_logarithms(name):
    LOGARITHM_CASES.check(name)


QUOTIENTS = {
    "exp(x) @ w / sum": lambda x: (jnp.exp(x) @ WEIGHTS.astype(np.float32)) / jnp.exp(x).sum(-1, keepdims=True),
    "exp(x) @ w / (exp(x) @ 1)": lambda x: (
        (jnp.exp(x) @ WEIGHTS.astype(np.float32)) / (jnp.exp(x) @ np.ones((4, 1), np.float32))
    ),
    "a mean weighted by sigmoids": lambda x: (
        jax.nn.sigmoid(x - 300) @ WEIGHTS.astype(np.float32) / jnp.sum(jax.nn.sigmoid(x - 300), -1, keepdims=True)
    ),
}


QUOTIENT_CASES = Cases({name: Case(f, [ROWS[:2]], "quotient_of_exponentials", [0, 1]) for name, f in QUOTIENTS.items()})


@pytest.mark.parametrize("name", QUOTIENT_CASES)
def test_quotients(name):
    QUOTIENT_CASES.check(name)


DOMAIN = Domain(
    {
        "log(exp(x) @ w)": (
            lambda x, w: jnp.log(jnp.einsum("ij,ij->i", jnp.exp(x), w)),
            [[1.0, 2.0], [NAN, 2.0], [-INF, -INF], [1.0, 1.0], [0.0, 0.0]],
            [[1.0, 0.5], [1.0, 1.0], [1.0, 1.0], [-1.0, 0.0], [-1.0, 1.0]],
        ),
        "log(x @ w)": (lambda x: jnp.log(x @ jnp.array([1.0, -1.0])), [[1.0, 2.0], [2.0, 1.0], [NAN, 1.0]]),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)


LEFT_ALONE = {
    "a dense layer": lambda x: jnp.tanh(x @ jnp.ones((4, 3)) + 1),
    "attention": lambda x: softmax(x @ x.T) @ x,
    "attention, each row divided by its length": lambda x: softmax(x @ x.T) @ x / (1 + jnp.sum(x * x)),
    "transposed attention": lambda x: jnp.log(2 + (x.T @ softmax(x @ x.T, axis=0)) ** 2),
    "x @ x.T": lambda x: x @ x.T,
    "log of a bounded product": lambda x: jnp.log(2 + jnp.sin(x @ x.T)),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    assert_left_alone(LEFT_ALONE[name], jnp.ones((2, 4)))
