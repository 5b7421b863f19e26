"""Binary cross entropy: sigmoid in five spellings, targets, the complement and the weights in several each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from spellings import jets
from spellings.jets import Jet
from spellings.sigmoids import SIGMOIDS

POSITIVE_WEIGHT = 2.5
LABEL_WEIGHTS = (1.0, 0.5, 2.0, 0.25)
CONSTANT = (1.0, 0.0, 0.0, 1.0)
SMOOTHING = 0.125


@dataclass(frozen=True)
class Binary:
    """`apply(x, y)`: the mean loss of logits and targets; `exact` of lists; `soft`: `y` lies between 0 and 1."""

    name: str
    group: str
    apply: Callable[[Array, Array], Array]
    exact: Callable[[Sequence[Jet], Sequence[Jet]], Jet]
    soft: bool


@dataclass(frozen=True)
class Target:
    """What the loss uses for the targets `y`, and the same exactly, element by element."""

    name: str
    apply: Callable[[Array], Array]
    exact: Callable[[int, Jet], Jet]
    hard: bool


@dataclass(frozen=True)
class Weight:
    """Weights of the positive and of the negative term, by element and target."""

    name: str
    apply: Callable[[Array], tuple[Array | float, Array | float]]
    exact: Callable[[int], tuple[float, float]]


TARGETS = (
    Target("argument", lambda y: y, lambda k, y: y, hard=True),
    Target("constant", lambda y: jnp.array(CONSTANT, y.dtype), lambda k, y: y.constant(CONSTANT[k]), hard=True),
    Target(
        "smoothed",
        lambda y: (1 - SMOOTHING) * y + SMOOTHING / 2,
        lambda k, y: y * (1 - SMOOTHING) + SMOOTHING / 2,
        hard=False,
    ),
    Target("soft", lambda y: y, lambda k, y: y, hard=False),
)
WEIGHTS = (
    Weight("unweighted", lambda y: (1.0, 1.0), lambda k: (1.0, 1.0)),
    Weight(
        "label_weights",
        lambda y: (jnp.array(LABEL_WEIGHTS, y.dtype), jnp.array(LABEL_WEIGHTS, y.dtype)),
        lambda k: (LABEL_WEIGHTS[k], LABEL_WEIGHTS[k]),
    ),
    Weight("positive_weight", lambda y: (POSITIVE_WEIGHT, 1.0), lambda k: (POSITIVE_WEIGHT, 1.0)),
)

Loss = Callable[[Array, Array, "Array | float", "Array | float"], Array]
COMPLEMENTS: dict[str, tuple[Loss, bool]] = {
    # name: (loss of p, y and the two weights; whether the targets must be 0 or 1)
    "one_minus": (lambda p, y, a, b: -(a * y * jnp.log(p) + b * (1 - y) * jnp.log(1 - p)), False),
    "log1p": (lambda p, y, a, b: -(a * y * jnp.log(p) + b * (1 - y) * jnp.log1p(-p)), False),
    "product": (lambda p, y, a, b: -jnp.log(p ** (a * y) * (1 - p) ** (b * (1 - y))), False),
    "where": (
        lambda p, y, a, b: -jnp.where(y > 0.5, a, b) * jnp.log(jnp.where(y > 0.5, p, 1 - p)),
        True,
    ),
}


def binary() -> Iterator[Binary]:
    """Every loss; targets that lie between 0 and 1 are left out where the spelling chooses one of two probabilities."""
    for target in TARGETS:
        for weight in WEIGHTS:
            exact = _exact(target, weight)
            for complement, (loss, needs_hard) in COMPLEMENTS.items():
                if needs_hard and not target.hard:
                    continue
                for name, sigmoid in SIGMOIDS.items():
                    apply = _program(sigmoid, target, weight, loss)
                    kind = f"{target.name}_{weight.name}"
                    yield Binary(
                        f"{name}_{complement}_{kind}", f"{complement}_{kind}", apply, exact, target.name == "soft"
                    )


def _program(
    sigmoid: Callable[[Array], Array], target: Target, weight: Weight, loss: Loss
) -> Callable[[Array, Array], Array]:
    def program(x: Array, y: Array) -> Array:
        a, b = weight.apply(y)
        return jnp.mean(loss(sigmoid(x), target.apply(y), a, b))

    return program


def _exact(target: Target, weight: Weight) -> Callable[[Sequence[Jet], Sequence[Jet]], Jet]:
    def exact(x: Sequence[Jet], y: Sequence[Jet]) -> Jet:
        terms = []
        for k, (logit, label) in enumerate(zip(x, y, strict=True)):
            t, (a, b) = target.exact(k, label), weight.exact(k)
            terms.append(t * jets.log(1 + jets.exp(-logit)) * a + (1 - t) * jets.log(1 + jets.exp(logit)) * b)
        return jets.total(terms) / len(x)

    return exact


SOFT_TARGETS = [0.75, 0.25, 0.0625, 0.9]
LOGITS_AND_TARGETS = {
    "ordinary": ([0.3, -1.2, 2.1, 0.9], [1.0, 0.0, 0.0, 1.0]),
    "near 0": ([1e-6, -3e-8, 2e-4, -1e-3], [1.0, 0.0, 1.0, 0.0]),
    "confident, right": ([20.0, -18.5, -31.0, 25.0], [1.0, 0.0, 0.0, 1.0]),
    "confident, wrong": ([-20.0, 18.5, 31.0, -25.0], [1.0, 0.0, 0.0, 1.0]),
    "far, right": ([200.0, -150.0, -1000.0, 120.0], [1.0, 0.0, 0.0, 1.0]),
    "far, wrong": ([-200.0, 150.0, 1000.0, -120.0], [1.0, 0.0, 0.0, 1.0]),
}
