"""Differences of sigmoids, exponentials less their tangent, and lengths of two numbers by the larger one."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp
from jax.nn import sigmoid

from spellings import jets
from spellings.elementwise import EVERYWHERE, Elementwise, exact_sigmoid, named


def _differences() -> Iterator[Elementwise]:
    yield from named(
        "sigmoid_step", lambda x: exact_sigmoid(x + 1) - exact_sigmoid(x), EVERYWHERE,
        sigmoids=lambda x: sigmoid(x + 1) - sigmoid(x),
        turned=lambda x: -sigmoid(x) + sigmoid(x + 1),
        quotients=lambda x: 1 / (1 + jnp.exp(-(x + 1))) - 1 / (1 + jnp.exp(-x)),
        mixed=lambda x: sigmoid(x + 1) - 1 / (1 + jnp.exp(-x)),
        exponentials=lambda x: jnp.exp(x + 1) / (1 + jnp.exp(x + 1)) - jnp.exp(x) / (1 + jnp.exp(x)),
        tanh=lambda x: 0.5 * (jnp.tanh((x + 1) / 2) - jnp.tanh(x / 2)),
        doubled=lambda x: 0.5 * (2 * sigmoid(x + 1) - 2 * sigmoid(x)),
        complements=lambda x: (1 - sigmoid(x)) - (1 - sigmoid(x + 1)),
        mirrored=lambda x: sigmoid(-x) - sigmoid(-x - 1),
    )  # fmt: skip


def _less_their_tangent() -> Iterator[Elementwise]:
    yield from named(
        "linex", lambda x: jets.exp(x) - 1 - x, ("ordinary", "near 0", "left", "far left"),
        minus_1=lambda x: jnp.exp(x) - 1 - x,
        line=lambda x: jnp.exp(x) - (1 + x),
        negative=lambda x: -(1 + x - jnp.exp(x)),
        expm1=lambda x: jnp.expm1(x) - x,
        halves=lambda x: 2 * (0.5 * jnp.exp(x) - 0.5 - x / 2),
        square=lambda x: jnp.exp(x / 2) ** 2 - 1 - x,
        last=lambda x: (jnp.exp(x) - x) - 1,
        product=lambda x: jnp.exp(x / 2) * jnp.exp(x / 2) - x - 1,
    )  # fmt: skip


def _lengths() -> Iterator[Elementwise]:
    def by_hand(a, b):
        larger, smaller = jnp.maximum(jnp.abs(a), jnp.abs(b)), jnp.minimum(jnp.abs(a), jnp.abs(b))
        return larger * jnp.sqrt(1 + (smaller / larger) ** 2)

    yield from named(
        "hypot", lambda x: (x * x * 5) ** 0.5, ("ordinary", "tiny"),
        library=lambda x: jnp.hypot(x, 2 * x),
        turned=lambda x: jnp.hypot(2 * x, x),
        negative=lambda x: jnp.hypot(-x, 2 * x),
        both_negative=lambda x: jnp.hypot(-2 * x, -x),
        magnitude=lambda x: jnp.hypot(jnp.abs(x), 2 * x),
        sum=lambda x: jnp.hypot(x, x + x),
        by_hand=lambda x: by_hand(x, 2 * x),
        by_hand_turned=lambda x: by_hand(-2 * x, x),
    )  # fmt: skip


DIFFERENCES = (*_differences(), *_less_their_tangent(), *_lengths())
