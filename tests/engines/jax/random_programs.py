"""Programs drawn at random: positive values of one shape, made of each other, in every kind of body."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

SHAPE = (2, 3)
Values = list[Any]


def _softmax(x: Any) -> Any:
    return jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)


# Functions of positive values that are positive and of moderate size.
ONE: list[Callable[[Any], Any]] = [
    lambda x: jnp.exp(-x),
    lambda x: jnp.log(1 + jnp.exp(x)),
    lambda x: -jnp.log(_softmax(x)),
    lambda x: -jnp.log(jax.nn.softmax(x)),
    _softmax,
    lambda x: jax.nn.softmax(x, axis=0),
    lambda x: jnp.sqrt(x),
    lambda x: x / (1 + x),
    lambda x: jax.nn.sigmoid(x),
    lambda x: -jnp.log(jax.nn.sigmoid(x)),
    lambda x: jnp.exp(x) / (1 + jnp.exp(x)),
    lambda x: 1 - jnp.exp(-x),
    lambda x: -jnp.log(1 - jnp.exp(-x)) + 0.5,
    lambda x: jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True)) + 0 * x,
    lambda x: jnp.broadcast_to(jnp.exp(x).mean(0), x.shape),
    lambda x: jnp.where(x > 0.5, jnp.log(x + 1), jnp.exp(-x)),
    lambda x: (jnp.exp(x) - 1) / x,
    lambda x: jnp.cumsum(x, 1) / 3,
    lambda x: jnp.concatenate([x[:1], 1 / (1 + x[1:])]),
    lambda x: jnp.tanh(x) ** 2,
    lambda x: x.T.reshape(x.shape),
    lambda x: lax.optimization_barrier(x) + 1,
    lambda x: jnp.prod(jnp.exp(-x), -1, keepdims=True) + x,
    lambda x: jnp.log1p(jnp.expm1(x)),
]
TWO: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * y / (1 + x * y),
    lambda x, y: x / (x + y),
    lambda x, y: jnp.log(jnp.exp(x) + jnp.exp(y)),
    lambda x, y: -x * jnp.log(_softmax(y)),
    lambda x, y: jnp.where(x > y, x, y),
    lambda x, y: jnp.maximum(x, 2 * y) / 2,
    lambda x, y: jnp.exp(x - y) / (1 + jnp.exp(x - y)),
    lambda x, y: jnp.exp(x) * jnp.exp(-y) / (jnp.exp(x) * jnp.exp(-y) + 1),
    lambda x, y: jnp.logaddexp(x, y),
    lambda x, y: jnp.exp(-x) @ jnp.exp(-y).T @ y,
]


def _bodies(step: Callable[[Values], Values]) -> list[Callable[[Values], Values]]:
    """The same step in every kind of body."""

    def scanned(values: Values) -> Values:
        rows, _ = lax.scan(lambda c, _: (step(c), None), values, None, length=1)
        return rows

    def looped(values: Values) -> Values:
        return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, step(c[1])), (0, values))[1]

    def branched(values: Values) -> Values:
        return lax.cond(values[0][0, 0] < 1e9, step, lambda v: v, values)

    def mapped(values: Values) -> Values:
        return jax.tree.map(lambda x: x[0], jax.vmap(step)(jax.tree.map(lambda x: x[None], values)))

    return [
        step,
        jax.jit(step),
        jax.jit(lambda v: jax.jit(step)(v)),
        jax.checkpoint(step),
        jax.jit(jax.checkpoint(step)),
        jax.checkpoint(jax.jit(step)),
        scanned,
        branched,
        mapped,
        looped,
    ]


def program(seed: int, reverse_mode: bool = True) -> Callable[[Any, Any], list[Any]]:
    """A program of two arguments (SHAPE, positive) with several results; without while loops for `reverse_mode`."""
    choose = random.Random(seed)
    layers = []
    for _ in range(choose.randint(1, 5)):
        layers.append((_layer(choose), choose.randrange(9 if reverse_mode else 10)))
    kept = [choose.random() for _ in range(40)]

    def run(x: Any, y: Any) -> list[Any]:
        values = [x, y]
        for step, body in layers:
            values = _bodies(step)[body](values)
        return [v for v, weight in zip(values, kept, strict=False) if weight < 0.7] or values[:1]

    return run


def _layer(choose: random.Random) -> Callable[[Values], Values]:
    """A step that keeps the number of values: some are replaced by functions of the others."""
    moves = []
    for _ in range(choose.randint(1, 4)):
        functions = choose.choice([ONE, TWO])
        moves.append((choose.choice(functions), [choose.randrange(2) for _ in range(1 if functions is ONE else 2)],
                      choose.randrange(2)))  # fmt: skip

    def step(values: Values) -> Values:
        values = list(values)
        for function, places, target in moves:
            values[target] = function(*(values[k] for k in places))
        return values

    return step
