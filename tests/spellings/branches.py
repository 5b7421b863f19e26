"""Branches that a `where` does not take, factors that cancel, and expm1 far left."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp

from spellings import jets
from spellings.elementwise import NOT_FAR_RIGHT, POSITIVE, Elementwise, exact_sigmoid, exact_softplus, named
from spellings.jets import Jet

Array = jax.Array

BOTH_SIGNS = ("ordinary", "at 0", "right", "left")
WITH_FAR = (*BOTH_SIGNS, "far right", "far left")


def _positive_part(f: Callable[[Jet], Jet], otherwise: float = 0.0) -> Callable[[Jet], Jet]:
    """f where x > 0, a constant elsewhere."""
    return lambda x: f(x) if x.value > 0 else x.constant(otherwise)


def _untaken() -> Iterator[Elementwise]:
    yield from named(
        "guarded_log", _positive_part(jets.log), BOTH_SIGNS,
        where=lambda x: jnp.where(x > 0, jnp.log(x), 0.0),
        reversed=lambda x: jnp.where(x <= 0, 0.0, jnp.log(x)),
        select=lambda x: jax.lax.select(x > 0, jnp.log(x), jnp.zeros_like(x)),
        mask=lambda x: jnp.where(x > 0, 1.0, 0.0) * jnp.where(x > 0, jnp.log(x), 0.0),
    )  # fmt: skip
    yield from named(
        "guarded_root", _positive_part(lambda x: x**0.5), BOTH_SIGNS,
        sqrt=lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0),
        power=lambda x: jnp.where(x > 0, x**0.5, 0.0),
    )  # fmt: skip
    yield from named(
        "guarded_inverse", _positive_part(lambda x: 1 / x), BOTH_SIGNS,
        quotient=lambda x: jnp.where(x > 0, 1 / x, 0.0),
        power=lambda x: jnp.where(x > 0, x**-1.0, 0.0),
    )  # fmt: skip
    yield from named(
        "guarded_entropy", _positive_part(lambda x: -x * jets.log(x)), BOTH_SIGNS,
        where=lambda x: jnp.where(x > 0, -x * jnp.log(x), 0.0),
    )  # fmt: skip
    yield from named(
        "sinc", lambda x: jets.sin(x) / x if x.value != 0 else x.constant(1.0), ("ordinary", "at 0", "near 0"),
        where=lambda x: jnp.where(x != 0, jnp.sin(x) / x, 1.0),
    )  # fmt: skip
    yield from named(
        "softplus_with_threshold", lambda x: exact_softplus(x) if x.value < 30 else x, WITH_FAR,
        where=lambda x: jnp.where(x < 30, jnp.log(1 + jnp.exp(x)), x),
        log1p=lambda x: jnp.where(x < 30, jnp.log1p(jnp.exp(x)), x),
        reversed=lambda x: jnp.where(x >= 30, x, jnp.log1p(jnp.exp(x))),
    )  # fmt: skip
    yield from named(
        "sigmoid_in_two_halves", exact_sigmoid, WITH_FAR,
        where=lambda x: jnp.where(x >= 0, 1 / (1 + jnp.exp(-x)), jnp.exp(x) / (1 + jnp.exp(x))),
        absolute=lambda x: jnp.where(x >= 0, 1.0, jnp.exp(x)) / (1 + jnp.exp(-jnp.abs(x))),
    )  # fmt: skip
    yield from named(
        "log1mexp_in_two_parts", lambda x: jets.log(1 - jets.exp(-x)), POSITIVE,
        where=lambda x: jnp.where(x < 0.6931472, jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x))),
    )  # fmt: skip


def _expm1() -> Iterator[Elementwise]:
    def elu(x: Jet) -> Jet:
        return x if x.value > 0 else jets.exp(x) - 1

    yield from named(
        "elu", elu, ("ordinary", "near 0", "right", "left", "far right", "far left"),
        where=lambda x: jnp.where(x > 0, x, jnp.expm1(x)),
        difference=lambda x: jnp.where(x > 0, x, jnp.exp(x) - 1),
        halves=lambda x: jnp.maximum(x, 0) + jnp.expm1(jnp.minimum(x, 0)),
        library=jax.nn.elu,
        relu=lambda x: jax.nn.relu(x) - jax.nn.relu(-jnp.expm1(x)),
    )  # fmt: skip
    yield from named(
        "growth", lambda x: (jets.exp(x) - 1) * x, NOT_FAR_RIGHT,
        product=lambda x: x * jnp.expm1(x),
        difference=lambda x: x * (jnp.exp(x) - 1),
    )  # fmt: skip
    yield from named(
        "interest", lambda x: (jets.exp(x * 0.125) - 1) * 8, NOT_FAR_RIGHT,
        expm1=lambda x: 8 * jnp.expm1(x / 8),
        difference=lambda x: (jnp.exp(x / 8) - 1) / 0.125,
        root=lambda x: (jnp.sqrt(jnp.exp(x / 4)) - 1) * 8,
    )  # fmt: skip


# Functions that vanish at 0 with slope 1: x * y underflows where y does not.
VANISHING: dict[str, Callable[[Array], Array]] = {
    "sin": jnp.sin,
    "arctan": jnp.arctan,
    "arcsinh": jnp.arcsinh,
    "erf": jax.scipy.special.erf,
}


def _cancelling() -> Iterator[Elementwise]:
    spellings: dict[str, Callable[[Array, Array], Array]] = {
        "quotient": lambda x, y: (x * y) / y,
        "reversed": lambda x, y: (y * x) / y,
        "of_square": lambda x, y: (x * y**2) / y**2,
        "product": lambda x, y: (x / y**2) * y**2,
        "product_reversed": lambda x, y: y**2 * (x / y**2),
        "by_inverse": lambda x, y: x * y**2 * (1 / y**2),
    }
    for name, vanishing in VANISHING.items():
        for spelling, apply in spellings.items():
            yield Elementwise(
                f"cancelled_factor.{spelling}_{name}",
                lambda x, apply=apply, vanishing=vanishing: apply(x, vanishing(x)),
                lambda x: x * 1,
                ("ordinary", "tiny", "at 0"),
            )


BRANCHES = (*_untaken(), *_expm1(), *_cancelling())
