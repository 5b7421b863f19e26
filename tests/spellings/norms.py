"""Lengths of vectors in every spelling: norms, deviations, unit vectors, their logarithms. The slope at 0 is 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from spellings import jets
from spellings.jets import Jet
from spellings.rows import OfRows

Array = jax.Array

NONZERO = {
    "ordinary": ([[0.3, -1.2, 2.1], [-0.4, 0.9, -2.3]],),
    "huge": ([[3e22, -1e22, 2e22], [1e21, 5e22, -3e22]],),
    "tiny": ([[3e-25, -1e-25, 2e-25], [1e-24, 5e-25, -3e-25]],),
}
VECTORS: dict[str, dict[str, Sequence[Any]]] = {
    "vectors": {**NONZERO, "at 0": ([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]],)},
    "samples": {**NONZERO, "equal": ([[2.0, 2.0, 2.0], [1.0, 1.0, 2.5]],)},
    "directions": NONZERO,
}
SQUARES: dict[str, Callable[[Array], Array]] = {
    "product": lambda x: jnp.sum(x * x, -1),
    "power": lambda x: jnp.sum(x**2, -1),
    "square": lambda x: jnp.sum(jnp.square(x), -1),
    "absolute": lambda x: jnp.sum(jnp.abs(x) ** 2, -1),
    "contraction": lambda x: jnp.einsum("...i,...i->...", x, x),
    "terms": lambda x: x[..., 0] ** 2 + x[..., 1] ** 2 + x[..., 2] ** 2,
    "python": lambda x: sum(x[..., k] * x[..., k] for k in range(3)),
    "mean": lambda x: 3 * jnp.mean(x**2, -1),
}
WEIGHTS = (0.5, 1.0, 2.0)


def exact_length(row: Sequence[Jet]) -> Jet:
    if all(x.value == 0 for x in row):
        return row[0].constant(0.0)
    return jets.total([x * x for x in row]) ** 0.5


def _deviation(row: Sequence[Jet]) -> Jet:
    mean = jets.total(list(row)) / 3
    if all(x.value == row[0].value for x in row):
        return row[0].constant(0.0)
    return (jets.total([(x - mean) * (x - mean) for x in row]) / 3) ** 0.5


def _weighted(row: Sequence[Jet]) -> Jet:
    return jets.total([x * w for x, w in zip(row, WEIGHTS, strict=True)]) / exact_length(row)


def _made_of(
    quantity: str, kind: str, outer: Callable[[Array, Array], Array], exact: Callable[..., Jet]
) -> Iterator[OfRows]:
    """`outer(sum of squares, x)` for each way to write the sum."""
    for name, squares in SQUARES.items():
        yield OfRows(f"{quantity}.{name}", lambda x, f=squares: outer(f(x), x), exact, kind)


def _weights(x: Array) -> Array:
    return jnp.array(WEIGHTS, x.dtype)


def _lengths() -> Iterator[OfRows]:
    yield from _made_of("length", "vectors", lambda s, x: jnp.sqrt(s), exact_length)
    yield from _made_of("length_by_power", "vectors", lambda s, x: s**0.5, exact_length)
    yield OfRows("length.library", lambda x: jnp.linalg.norm(x, axis=-1), exact_length, "vectors")
    yield OfRows(
        "length.keepdims", lambda x: jnp.linalg.norm(x, axis=-1, keepdims=True)[..., 0], exact_length, "vectors"
    )
    for name, apply in {
        "library": lambda x: jnp.std(x, -1),
        "variance": lambda x: jnp.sqrt(jnp.var(x, -1)),
        "centred": lambda x: jnp.sqrt(jnp.mean((x - jnp.mean(x, -1, keepdims=True)) ** 2, -1)),
    }.items():
        yield OfRows(f"deviation.{name}", apply, _deviation, "samples")


def _units() -> Iterator[OfRows]:
    def quotient(s: Array, x: Array) -> Array:
        return jnp.sum(_weights(x) * (x / jnp.sqrt(s)[..., None]), -1)

    def inverse(s: Array, x: Array) -> Array:
        return jnp.sum(_weights(x) * (x * jax.lax.rsqrt(s)[..., None]), -1)

    yield from _made_of("unit", "directions", quotient, _weighted)
    yield from _made_of("unit_by_inverse", "directions", inverse, _weighted)
    yield from _made_of(
        "log_length", "directions", lambda s, x: jnp.log(jnp.sqrt(s)), lambda row: jets.log(exact_length(row))
    )


LENGTHS = (*_lengths(), *_units())
