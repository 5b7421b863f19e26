"""Quotients whose numerator vanishes with the denominator: the limit at 0, and digits near it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax.numpy as jnp
from flint import arb

from spellings import jets
from spellings.elementwise import Elementwise, named
from spellings.jets import Jet

ABOVE_MINUS_1 = ("ordinary, positive", "near 0", "at 0, above -1", "right")
BELOW_1 = ("near 0", "at 0, above -1", "left")


def _limit(f: Callable[[Jet], Jet], *series: tuple[int, int]) -> Callable[[Jet], Jet]:
    """f, and at 0 the value and two derivatives that are given as fractions."""

    def formula(x: Jet) -> Jet:
        if x.value != 0:
            return f(x)
        value, first, second = (arb(above) / below for above, below in series)
        return x.through(value, first, second)

    return formula


def _limits() -> Iterator[Elementwise]:
    yield from named(
        "log1prel", _limit(lambda x: jets.log(1 + x) / x, (1, 1), (-1, 2), (2, 3)), ABOVE_MINUS_1,
        log=lambda x: jnp.log(1 + x) / x,
        log1p=lambda x: jnp.log1p(x) / x,
        reversed=lambda x: jnp.log(x + 1) / x,
        negative=lambda x: -jnp.log(1 + x) / -x,
        scaled=lambda x: 2 * jnp.log(1 + x) / (2 * x),
        divided=lambda x: jnp.log1p(x) / (x / 2) / 2,
    )  # fmt: skip
    yield from named(
        "log1prel_of_half", _limit(lambda x: jets.log(1 + x * 0.5) / x, (1, 2), (-1, 8), (1, 12)), ABOVE_MINUS_1,
        log=lambda x: jnp.log(1 + 0.5 * x) / x,
        log1p=lambda x: jnp.log1p(x / 2) / x,
        of_half=lambda x: jnp.log(1 + x / 2) / (x / 2) * 0.5,
    )  # fmt: skip
    yield from named(
        "log1mrel", _limit(lambda x: jets.log(1 - x) / x, (-1, 1), (-1, 2), (-2, 3)), BELOW_1,
        log=lambda x: jnp.log(1 - x) / x,
        log1p=lambda x: jnp.log1p(-x) / x,
        reversed=lambda x: -jnp.log(1 - x) / (-x),
    )  # fmt: skip
    yield from named(
        "exprel_at_0", _limit(lambda x: (jets.exp(x) - 1) / x, (1, 1), (1, 2), (1, 3)), ("ordinary", "near 0", "at 0"),
        difference=lambda x: (jnp.exp(x) - 1) / x,
        expm1=lambda x: jnp.expm1(x) / x,
    )  # fmt: skip


LIMITS = tuple(_limits())
