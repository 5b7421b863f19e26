"""Logarithms that pass through an operation: moves, extremes, products, selections, casts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import sigmoid, softmax

from rules.tables import Case, Cases
from rules.unchanged import Domain

INF, NAN = float("inf"), float("nan")
LOG = "log_of_companion"
ROWS = np.array([[200.0, -3.0, 1.5, 0.5], [-100.0, 0.25, 100.0, 99.5], [20.0, -0.25, 0.5, -1.0], [1.0, 2.0, 3.0, 4.0]])
MASK = np.array([[1, 0, 1, 0]] * 4, bool)

MOVES = {
    "nothing": lambda p: p,
    "transpose": lambda p: p.T.T * 1.0,
    "reshape": lambda p: p.reshape(2, 8).reshape(4, 4),
    "flat": lambda p: p.ravel().reshape(4, 4),
    "a new axis": lambda p: p[:, None, :][:, 0],
    "moved axes": lambda p: jnp.moveaxis(p[:, None, :], 2, 0)[:, :, 0].T,
    "slice of rows": lambda p: p[1:],
    "strided columns": lambda p: p[:, ::2],
    "one column": lambda p: p[:, 0],
    "one row": lambda p: p[1],
    "one entry": lambda p: p[1, 0],
    "reversed": lambda p: p[:, ::-1],
    "rolled": lambda p: jnp.roll(p, 1, 1),
    "take": lambda p: jnp.take(p, jnp.array([3, 2, 1, 0]), axis=1),
    "take_along_axis": lambda p: jnp.take_along_axis(p, jnp.array([[0], [1], [0], [3]]), 1),
    "index arrays": lambda p: p[jnp.arange(4), jnp.array([1, 0, 0, 0])],
    "dynamic_slice": lambda p: lax.dynamic_slice(p, (1, 0), (2, 3)),
    "dynamic index": lambda p: lax.dynamic_index_in_dim(p, 1, 0, keepdims=False),
    "padded": lambda p: jnp.pad(p, 1, constant_values=1.0),
    "concatenated": lambda p: jnp.concatenate([p, p[::-1]], 0),
    "stacked": lambda p: jnp.stack([p[:, 0], p[:, 1]], 1),
    "split": lambda p: jnp.split(p, 2, 1)[1],
    "broadcast": lambda p: jnp.broadcast_to(p[:, :1], (4, 3)),
    "repeated": lambda p: jnp.repeat(p, 2, 0),
    "tiled": lambda p: jnp.tile(p, (2, 1)),
    "squeezed": lambda p: jnp.squeeze(p[:, :1], 1),
    "diagonal": lambda p: jnp.diag(p),
    "masked": lambda p: jnp.where(MASK, p, 1.0),
    "indexed update": lambda p: p.at[0].set(1.0),
    "a jitted identity": lambda p: jax.jit(lambda q: q[:, ::-1])(p),
    "checkpoint": lambda p: jax.checkpoint(lambda q: q[1:])(p),
    "clipped to [0, 1]": lambda p: jnp.clip(p, 0.0, 1.0),
    "max with a small number": lambda p: jnp.maximum(p, 1e-37),
    "relu": lambda p: jax.nn.relu(p),
    "abs": lambda p: jnp.abs(p),
    "scaled": lambda p: 0.25 * p,
    "power": lambda p: p**3,
    "square root": lambda p: jnp.sqrt(p),
    "product of columns": lambda p: p[:, 0] * p[:, 1],
    "quotient of columns": lambda p: p[:, 1] / p[:, 0],
    "product along": lambda p: jnp.prod(p, -1),
    "cumulative product": lambda p: jnp.cumprod(p, -1),
    "sum of two": lambda p: p[:, 1] + p[:, 2],
    "sum of three": lambda p: p[:, 1:].sum(-1),
    "minimum": lambda p: jnp.min(p, -1),
    "sorted": lambda p: jnp.sort(p, -1),
}


MOVE_CASES = Cases(
    {name: Case(lambda x, move=move: jnp.log(move(softmax(x))), [ROWS], LOG) for name, move in MOVES.items()}
)


@pytest.mark.parametrize("name", MOVE_CASES)
def test_moves(name):
    """log(move(softmax(x))) where entries of the softmax underflow, and where one is close to 1."""
    MOVE_CASES.check(name)


PRODUCTS = {
    "log(prod(x)), tiny and huge": (
        lambda x: jnp.log(jnp.prod(x, -1)),
        np.array([[1e-20, 1e-20, 2.0, 3.0], [1e20, 1e20, 1.0, 2.0], [-1.0, -2.0, 3.0, 4.0], [0.5, 0.5, -0.5, -3.0]]),
        [0, 1],
    ),
    "log(prod(x)) over both axes": (lambda x: jnp.log(jnp.prod(x)), np.full((4, 4), 1e-10), True),
    "log(prod(sigmoid(x)))": (lambda x: jnp.log(jnp.prod(sigmoid(x), -1)), ROWS - 50, [1]),
    "log(prod(softmax(x)))": (lambda x: jnp.log(jnp.prod(softmax(x), -1)), ROWS, [0, 1]),
    "log(cumprod(sigmoid(x)))": (lambda x: jnp.log(jnp.cumprod(sigmoid(x), -1)), ROWS - 50, [0, 1]),
    "log(reversed cumprod)": (
        lambda x: jnp.log(jnp.cumprod(sigmoid(x)[:, ::-1], -1)[:, ::-1]), ROWS - 50, [1]),
    "-log(prod(1 - softmax(x)[:, 1:]))": (lambda x: -jnp.log(jnp.prod(1 - softmax(x)[:, 1:], -1)), ROWS, ()),
    "-log(1 - prod(1 - sigmoid(x)))": (lambda x: -jnp.log(1 - jnp.prod(1 - sigmoid(x), -1)), ROWS - 300, [0, 1]),
    "log of a product in a loop": (
        lambda x: jnp.log(sigmoid(x[:, 0]) * sigmoid(x[:, 1]) * sigmoid(x[:, 2]) * sigmoid(x[:, 3])), ROWS - 50, [1]),
    "log of a cast": (lambda x: jnp.log(softmax(x.astype(jnp.float32)).astype(x.dtype)), ROWS, [0, 1]),
    "log of max of columns": (lambda x: jnp.log(jnp.maximum(jnp.exp(x[:, 0]), jnp.exp(x[:, 1]))), ROWS - 120, [1]),
    "log of where": (
        lambda x: jnp.log(jnp.where(MASK, jnp.exp(x), jnp.exp(-x))), ROWS, [0, 1]),
}  # fmt: skip


PRODUCT_CASES = Cases({name: Case(f, [x], LOG, breaking) for name, (f, x, breaking) in PRODUCTS.items()})


@pytest.mark.parametrize("name", PRODUCT_CASES)
def test_products(name):
    PRODUCT_CASES.check(name)


DOMAIN = Domain(
    {
        "log(prod(x))": (
            lambda x: jnp.log(jnp.prod(x, -1)),
            [
                [-1.0, -2.0, 3.0],
                [-1.0, 2.0, 3.0],
                [-1.0, -1.0, -1.0],
                [1.0, 2.0, NAN],
                [0.0, 1.0, 2.0],
                [INF, -1.0, -1.0],
            ],
        ),
        "log(prod(-exp(x))), two": (lambda x: jnp.log(jnp.prod(-jnp.exp(x), -1)), [[1.0, 2.0], [0.0, 0.0]]),
        "log(prod(-exp(x))), three": (lambda x: jnp.log(jnp.prod(-jnp.exp(x), -1)), [[1.0, 2.0, 3.0]]),
        "log(cumprod(x))": (
            lambda x: jnp.log(jnp.cumprod(x, -1)),
            [[-1.0, -2.0, 3.0], [1.0, 2.0, NAN], [0.0, 1.0, 2.0]],
        ),
        "log(max(exp(x)))": (lambda x: jnp.log(jnp.max(jnp.exp(x), -1)), [[NAN, 2.0], [-INF, 1.0], [-INF, -INF]]),
        "log(max(-exp(x)))": (lambda x: jnp.log(jnp.max(-jnp.exp(x), -1)), [[1.0, 2.0], [NAN, 1.0]]),
        "log(softmax(x)[:, ::-1])": (lambda x: jnp.log(softmax(x)[:, ::-1]), [[NAN, 2.0], [-INF, 1.0], [-INF, -INF]]),
        "log(where)": (lambda x: jnp.log(jnp.where(x > 0, jnp.exp(x), x)), [[-1.0, 2.0], [NAN, 0.0]]),
        "log(clip(sigmoid(x) - 1, -1, 1))": (
            lambda x: jnp.log(jnp.clip(sigmoid(x) - 1, -1, 1)),
            [[-1.0, 2.0], [NAN, 0.0]],
        ),
        "log(stack of signs)": (
            lambda x: jnp.log(jnp.stack([jnp.exp(x[:, 0]), -jnp.exp(x[:, 1])], 1)),
            [[-1.0, 2.0], [NAN, 0.0]],
        ),
    }
)


@pytest.mark.parametrize("name", DOMAIN)
def test_domain_errors_survive(name):
    DOMAIN.check(name)
