"""Elementwise functions: what one is, at which points, and how families of spellings are put together.

Each is a function of an array, what it is in exact arithmetic, and the kinds of points at which it has a value. Names
are `quantity.spelling`; spellings of one quantity share the exact function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax

from spellings import jets
from spellings.jets import Jet

Array = jax.Array


@dataclass(frozen=True)
class Elementwise:
    """`apply` acts on arrays, `exact` on one number; `points` names kinds of points of `POINTS`."""

    name: str
    apply: Callable[[Array], Array]
    exact: Callable[[Jet], Jet]
    points: tuple[str, ...]


POINTS = {
    "ordinary": [0.3, -1.2, 2.1],
    "ordinary, positive": [0.3, 1.2, 2.1],
    "near 0": [1e-6, -3e-8, 2e-4],
    "near 0, positive": [1e-6, 3e-8, 2e-4],
    "right": [20.0, 18.5, 31.0],
    "left": [-20.0, -18.5, -31.0],
    "far right": [200.0, 150.5, 1000.0],
    "far left": [-200.0, -150.5, -1000.0],
    "both sides": [-90.0, 95.0, 0.5],
    "probabilities": [0.25, 0.5, 0.875],
    "small probabilities": [1e-6, 3e-8, 1e-12],
    "tiny": [1e-25, 3e-22, -2e-24],
    "at 0": [0.0, 0.5, -1.5],
    "at 0, not negative": [0.0, 0.5, 1.5],
    "at 0, above -1": [0.0, 0.5, -0.5],
}
EVERYWHERE = ("ordinary", "near 0", "right", "left", "far right", "far left", "both sides")
POSITIVE = ("ordinary, positive", "near 0, positive", "right", "far right")
NEGATIVE = ("left", "far left")
NOT_FAR_RIGHT = ("ordinary", "near 0", "left", "far left")
NOT_FAR_LEFT = ("ordinary", "near 0", "right", "far right")
PROBABILITIES = ("probabilities", "small probabilities")


# -- exactly --------------------------------------------------


def exact_sigmoid(x: Jet) -> Jet:
    return 1 / (1 + jets.exp(-x))


def exact_softplus(x: Jet) -> Jet:
    return jets.log(1 + jets.exp(x))


def exact_tanh(x: Jet) -> Jet:
    return (jets.exp(x * 2) - 1) / (jets.exp(x * 2) + 1)


def exact_entropy(x: Jet) -> Jet:
    s, r = exact_sigmoid(x), exact_sigmoid(-x)
    return -(s * jets.log(s) + r * jets.log(r))


def named(
    quantity: str, exact: Callable[[Jet], Jet], points: tuple[str, ...], **spellings: Callable[[Array], Array]
) -> Iterator[Elementwise]:
    for name, apply in spellings.items():
        yield Elementwise(f"{quantity}.{name}", apply, exact, points)


def made_of(
    quantity: str,
    inner: dict[str, Callable[[Array], Array]],
    outer: Callable[[Array, Array], Array],
    exact: Callable[[Jet], Jet],
    points: tuple[str, ...] = EVERYWHERE,
) -> Iterator[Elementwise]:
    """`outer(inner(x), x)` for each spelling of the inner function."""
    for name, f in inner.items():
        yield Elementwise(f"{quantity}.{name}", lambda x, f=f: outer(f(x), x), exact, points)
