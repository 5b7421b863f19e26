"""Powers that undo roots, powers spelled by a logarithm, geometric means, the product of all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from spellings import jets
from spellings.elementwise import Elementwise, named
from spellings.jets import Jet
from spellings.rows import OfRows

Array = jax.Array

NOT_NEGATIVE = ("ordinary, positive", "near 0, positive", "at 0, not negative")
FAR_FROM_ROUNDING = ("ordinary, positive", "at 0, not negative")  # near 0, x + p rounds before log(x) multiplies it
FACTORS: dict[str, dict[str, Sequence[Any]]] = {
    "factors": {
        "ordinary": ([[0.3, 1.2, 2.1], [0.4, 0.9, 2.3]],),
        "huge": ([[3e20, 1e15, 2e10], [1e18, 5e9, 3e14]],),
        "tiny": ([[3e-20, 1e-15, 2e-10], [1e-18, 5e-9, 3e-14]],),
    },
    "with zeros": {
        "ordinary": ([[0.3, -1.2, 2.1], [0.4, 0.9, -2.3]],),
        "one 0": ([[0.0, 1.2, 2.1], [0.4, 0.0, 2.3]],),
        "two": ([[0.0, 0.0, 2.1], [0.0, 0.5, 0.0]],),
    },
}
WEIGHTS = (0.5, 1.0, 2.0)


def _roots() -> Iterator[Elementwise]:
    yield from named(
        "root_undone", lambda x: x * 1, NOT_NEGATIVE,
        square=lambda x: jnp.sqrt(x) ** 2,
        product=lambda x: jnp.sqrt(x) * jnp.sqrt(x),
        library=lambda x: jnp.square(jnp.sqrt(x)),
        power=lambda x: (x**0.5) ** 2,
        powers=lambda x: x**0.25 * x**0.75,
        fourth=lambda x: jnp.sqrt(jnp.sqrt(x)) ** 4,
        negative=lambda x: (-jnp.sqrt(x)) ** 2,
        mixed=lambda x: x**0.5 * jnp.sqrt(x),
    )  # fmt: skip
    yield from named(
        "root_to_the_fourth", lambda x: x * x, NOT_NEGATIVE,
        power=lambda x: jnp.sqrt(x) ** 4,
        eighth=lambda x: (x**0.25) ** 8,
        times=lambda x: jnp.sqrt(x) ** 2 * x,
    )  # fmt: skip


def _by_logarithms() -> Iterator[Elementwise]:
    def exact(p: float, r: float) -> Callable[[Jet], Jet]:
        return lambda x: jets.exp(jets.log(x) * (x + p) + x * r) if x.value > 0 else x.constant(0.0)

    for p in (2.0, 3.5):
        yield from named(
            f"power_by_logarithm_{p:.0f}", exact(p, 0), FAR_FROM_ROUNDING,
            exp=lambda x, p=p: jnp.exp((x + p) * jnp.log(x)),
            reversed=lambda x, p=p: jnp.exp(jnp.log(x) * (p + x)),
            halves=lambda x, p=p: jnp.exp(2 * (x + p) * jnp.log(x) / 2),
        )  # fmt: skip
        yield from named(
            f"density_by_logarithm_{p:.0f}", exact(p, -1), FAR_FROM_ROUNDING,
            exp=lambda x, p=p: jnp.exp((x + p) * jnp.log(x) - x),
            reversed=lambda x, p=p: jnp.exp(-x + jnp.log(x) * (p + x)),
        )  # fmt: skip


POWERS = (*_roots(), *_by_logarithms())

# -- of rows ---------------------------------------------------------------------------------------------------------

PRODUCT_SPELLINGS: dict[str, Callable[[Array], Array]] = {
    "axis": lambda x: jnp.prod(x, -1),
    "keepdims": lambda x: jnp.prod(x, -1, keepdims=True)[..., 0],
    "moved": lambda x: jnp.prod(jnp.moveaxis(x, -1, 0), 0),
}


def _power_of_row(power: float) -> Callable[[Sequence[Jet]], Jet]:
    return lambda row: (row[0] * row[1] * row[2]) ** power


EXACT = {power: _power_of_row(power) for power in (0.5, 0.25)}


def _geometric_means() -> Iterator[OfRows]:
    for name, product in PRODUCT_SPELLINGS.items():
        for spelling, power, outer in (
            ("sqrt", 0.5, jnp.sqrt),
            ("half", 0.5, lambda s: s**0.5),
            ("quarter", 0.25, lambda s: s**0.25),
        ):
            yield OfRows(
                f"root_of_product_{spelling}.{name}", lambda x, f=product, g=outer: g(f(x)), EXACT[power], "factors"
            )


def _others() -> Iterator[OfRows]:
    def exact(row: Sequence[Jet]) -> Jet:
        a, b, c = row
        return b * c * WEIGHTS[0] + a * c * WEIGHTS[1] + a * b * WEIGHTS[2]

    quotients: dict[str, Callable[[Array], Array]] = {
        "keepdims": lambda x: jnp.prod(x, -1, keepdims=True) / x,
        "axis": lambda x: jnp.prod(x, -1)[..., None] / x,
        "moved": lambda x: jnp.moveaxis(jnp.prod(y := jnp.moveaxis(x, -1, 0), 0) / y, 0, -1),
    }
    sums: dict[str, Callable[[Array], Array]] = {
        "sum": lambda y: jnp.sum(y * jnp.array(WEIGHTS, y.dtype), -1),
        "contraction": lambda y: y @ jnp.array(WEIGHTS, y.dtype),
        "terms": lambda y: WEIGHTS[0] * y[..., 0] + WEIGHTS[1] * y[..., 1] + WEIGHTS[2] * y[..., 2],
    }
    for name, quotient in quotients.items():
        for way, weighted in sums.items():
            yield OfRows(f"others.{name}_{way}", lambda x, f=quotient, g=weighted: g(f(x)), exact, "with zeros")


PRODUCTS = (*_geometric_means(), *_others())
