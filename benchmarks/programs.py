"""Programs of a given number of repetitions, for the benchmark of tracing."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

Program = Callable[[jax.Array, jax.Array], jax.Array]


def layers(repetitions: int) -> Program:
    """A multilayer perceptron with one cross entropy at its end."""

    def program(x, w):
        for _ in range(repetitions):
            x = jnp.maximum(x @ w + 0.1, 0.0)
        return -jnp.mean(jnp.log(jax.nn.softmax(x))[:, 0])

    return program


def attention(repetitions: int) -> Program:
    """Blocks of a transformer: attention, normalisation, a gated layer; one cross entropy at the end."""

    def normalised(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    def program(x, w):
        for _ in range(repetitions):
            h = normalised(x)
            scores = (h @ w) @ (h @ w).T / 2.0
            weights = jnp.exp(scores - scores.max(-1, keepdims=True))
            x = x + (weights / weights.sum(-1, keepdims=True)) @ (h @ w)
            h = normalised(x)
            x = x + (h @ w) * (1 / (1 + jnp.exp(-(h @ w))))
        return -jnp.mean(jnp.log(jax.nn.softmax(x))[:, 0])

    return program


def losses(repetitions: int) -> Program:
    """Nothing but hazards: each step adds the logarithm of a softmax."""

    def program(x, w):
        for _ in range(repetitions):
            x = x * 0.9 + jnp.log(jax.nn.softmax(x, axis=-1))
        return x.sum()

    return program


def probabilities(repetitions: int) -> Program:
    """A long product of sigmoids in two spellings."""

    def program(x, w):
        y = x @ w
        for k in range(repetitions):
            x = x * jax.nn.sigmoid(y + k) / (1.0 + jnp.exp(x))
        return x.sum()

    return program


def mixtures(repetitions: int) -> Program:
    """A sum of negative log-likelihoods of mixtures of gaussians."""

    def program(x, w):
        total = 0.0
        for k in range(repetitions):
            density = jnp.exp(-0.5 * (x[:, None, :] - w - 0.1 * k) ** 2).sum(-1)
            total = total - jnp.log((jax.nn.softmax(w[0]) * density).sum(-1)).sum()
        return total

    return program


PROGRAMS: dict[str, Callable[[int], Program]] = {
    "layers": layers,
    "attention": attention,
    "losses": losses,
    "probabilities": probabilities,
    "mixtures": mixtures,
}


def arguments() -> tuple[jax.Array, jax.Array]:
    return jnp.ones((4, 5)), jnp.full((5, 5), 0.2)
