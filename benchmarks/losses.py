"""Losses as a textbook writes them, each next to the stable form that one writes by hand.

`cases(scale)` gives arguments of `scale` million logits; `by` says which of them the gradient is taken by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Loss = Callable[..., jax.Array]


@dataclass(frozen=True)
class Case:
    name: str
    naive: Loss
    by_hand: Loss
    arguments: Callable[[int], tuple[Any, ...]]
    """Arguments from a number of rows."""
    rows: int
    """Rows for which the loss by hand takes some 10 ms on two cores."""
    by: tuple[int, ...] = (0,)


def logits(rows: int, classes: int) -> jax.Array:
    return 5 * jax.random.normal(jax.random.key(0), (rows, classes))


def labels(rows: int, classes: int) -> jax.Array:
    return jax.random.randint(jax.random.key(1), (rows,), 0, classes)


def one_hot(rows: int, classes: int) -> jax.Array:
    return jax.nn.one_hot(labels(rows, classes), classes)


def soft(rows: int, classes: int) -> jax.Array:
    return jax.nn.softmax(jax.random.normal(jax.random.key(2), (rows, classes)))


# -- several classes ---------------------------------------------------------------------------------------------------


def from_exponentials(x, t):
    e = jnp.exp(x)
    return -jnp.mean(jnp.sum(t * jnp.log(e / jnp.sum(e, axis=-1, keepdims=True)), axis=-1))


def from_softmax(x, t):
    return -jnp.mean(jnp.sum(t * jnp.log(jax.nn.softmax(x)), axis=-1))


def from_log_softmax(x, t):
    return -jnp.mean(jnp.sum(t * jax.nn.log_softmax(x), axis=-1))


def picked_from_softmax(x, label):
    return -jnp.mean(jnp.log(jax.nn.softmax(x))[jnp.arange(len(label)), label])


def picked_probability(x, label):
    return -jnp.mean(jnp.log(jax.nn.softmax(x)[jnp.arange(len(label)), label]))


def picked_from_log_softmax(x, label):
    return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(len(label)), label])


def log_of_sum(x):
    return jnp.mean(jnp.log(jnp.sum(jnp.exp(x), axis=-1)))


def logsumexp(x):
    return jnp.mean(jax.nn.logsumexp(x, axis=-1))


# -- two classes ---------------------------------------------------------------------------------------------------


def _of_probability(p, t):
    return -jnp.mean(t * jnp.log(p) + (1 - t) * jnp.log(1 - p))


def from_sigmoid(x, t):
    return _of_probability(jax.nn.sigmoid(x), t)


def from_one_exponential(x, t):
    return _of_probability(1 / (1 + jnp.exp(-x)), t)


def binary_by_hand(x, t):
    return jnp.mean(jnp.maximum(x, 0) - x * t + jnp.log1p(jnp.exp(-jnp.abs(x))))


# -- a density -----------------------------------------------------------------------------------------------------


def mixture(logit, mean, y):
    density = jnp.exp(-0.5 * (y[:, None] - mean) ** 2) / jnp.sqrt(2 * jnp.pi)
    return -jnp.mean(jnp.log(jnp.sum(jax.nn.softmax(logit) * density, axis=-1)))


def mixture_by_hand(logit, mean, y):
    log_density = -0.5 * (y[:, None] - mean) ** 2 - 0.5 * jnp.log(2 * jnp.pi)
    return -jnp.mean(jax.nn.logsumexp(jax.nn.log_softmax(logit) + log_density, axis=-1))


def cases() -> Iterator[Case]:
    for classes, rows in ((1000, 8000), (100, 80_000), (10, 400_000)):
        name, shape = f"{classes} classes", classes
        one = lambda n, c=shape: (logits(n, c), one_hot(n, c))  # noqa: E731
        other = lambda n, c=shape: (logits(n, c), soft(n, c))  # noqa: E731
        index = lambda n, c=shape: (logits(n, c), labels(n, c))  # noqa: E731
        yield Case(f"one-hot, exp / sum, {name}", from_exponentials, from_log_softmax, one, rows)
        yield Case(f"one-hot, softmax, {name}", from_softmax, from_log_softmax, one, rows)
        yield Case(f"soft targets, {name}", from_softmax, from_log_softmax, other, rows)
        yield Case(f"index after log, {name}", picked_from_softmax, picked_from_log_softmax, index, rows)
        yield Case(f"index before log, {name}", picked_probability, picked_from_log_softmax, index, rows)
        yield Case(f"logsumexp, {name}", log_of_sum, logsumexp, lambda n, c=shape: (logits(n, c),), 2 * rows)
    pair = lambda n: (logits(n, 1)[:, 0], labels(n, 2).astype("float32"))  # noqa: E731
    yield Case("binary, sigmoid", from_sigmoid, binary_by_hand, pair, 4_000_000)
    yield Case("binary, 1 / (1 + exp)", from_one_exponential, binary_by_hand, pair, 4_000_000)
    components = jax.random.normal(jax.random.key(3), (64,))
    points = lambda n: (0.5 * components, components, 3 * logits(n, 1)[:, 0] / 5)  # noqa: E731
    yield Case("mixture of 64 gaussians", mixture, mixture_by_hand, points, 60_000, by=(0, 1))
