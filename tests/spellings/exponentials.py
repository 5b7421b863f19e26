"""Differences, powers, products and logarithms of sums of exponentials, in every spelling."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax.scipy import special

from spellings import jets
from spellings.elementwise import (
    EVERYWHERE,
    NOT_FAR_LEFT,
    NOT_FAR_RIGHT,
    POSITIVE,
    PROBABILITIES,
    Elementwise,
    exact_sigmoid,
    named,
)
from spellings.jets import Jet


def _differences_of_exponentials() -> Iterator[Elementwise]:
    yield from named(
        "log1mexp", lambda x: jets.log(1 - jets.exp(-x)), POSITIVE,
        log=lambda x: jnp.log(1 - jnp.exp(-x)),
        log1p=lambda x: jnp.log1p(-jnp.exp(-x)),
        expm1=lambda x: jnp.log(-jnp.expm1(-x)),
        over_exp=lambda x: jnp.log(1 - 1 / jnp.exp(x)),
        quotient=lambda x: jnp.log((jnp.exp(x) - 1) / jnp.exp(x)),
        difference=lambda x: jnp.log(jnp.exp(x) - 1) - x,
        logs=lambda x: jnp.log(jnp.exp(x) - 1) - jnp.log(jnp.exp(x)),
        survival=lambda x: jnp.log1p(-jnp.exp(jnp.log(1.0) - x)),
    )  # fmt: skip
    yield from named(
        "log_expm1", lambda x: jets.log(jets.exp(x) - 1), POSITIVE,
        log=lambda x: jnp.log(jnp.exp(x) - 1),
        expm1=lambda x: jnp.log(jnp.expm1(x)),
        difference=lambda x: x + jnp.log(1 - jnp.exp(-x)),
        log1p=lambda x: x + jnp.log1p(-jnp.exp(-x)),
    )  # fmt: skip
    yield from named(
        "expm1", lambda x: jets.exp(x) - 1, NOT_FAR_RIGHT,
        difference=lambda x: jnp.exp(x) - 1,
        library=jnp.expm1,
        reversed=lambda x: -(1 - jnp.exp(x)),
        quotient=lambda x: (1 - jnp.exp(-x)) / jnp.exp(-x),
        product=lambda x: (1 - jnp.exp(-x)) * jnp.exp(x),
    )  # fmt: skip
    yield from named(
        "exprel", lambda x: (jets.exp(x) - 1) / x, NOT_FAR_RIGHT,
        difference=lambda x: (jnp.exp(x) - 1) / x,
        expm1=lambda x: jnp.expm1(x) / x,
        reversed=lambda x: (1 - jnp.exp(x)) / -x,
    )  # fmt: skip
    yield from named(
        "cloglog", lambda x: jets.log(1 - jets.exp(-jets.exp(x))), NOT_FAR_RIGHT,
        log=lambda x: jnp.log(1 - jnp.exp(-jnp.exp(x))),
        log1p=lambda x: jnp.log1p(-jnp.exp(-jnp.exp(x))),
        expm1=lambda x: jnp.log(-jnp.expm1(-jnp.exp(x))),
    )  # fmt: skip
    yield from named(
        "saturation", lambda x: 1 - jets.exp(-x), ("ordinary", "near 0", "right", "far right"),
        difference=lambda x: 1 - jnp.exp(-x),
        expm1=lambda x: -jnp.expm1(-x),
        over_exp=lambda x: 1 - 1 / jnp.exp(x),
        quotient=lambda x: (jnp.exp(x) - 1) / jnp.exp(x),
    )  # fmt: skip


def _powers_and_roots() -> Iterator[Elementwise]:
    def one_plus(x: Jet) -> Jet:
        return 1 + jets.exp(x)

    yield from named(
        "root_of_quotient", lambda x: jets.exp(x * -0.5), ("ordinary", "near 0", "right", "far right", "both sides"),
        quotient=lambda x: jnp.sqrt(jnp.exp(x)) / jnp.sqrt(jnp.exp(2 * x)),
        product=lambda x: jnp.sqrt(jnp.exp(x)) * jax.lax.rsqrt(jnp.exp(2 * x)),
        power=lambda x: jnp.exp(x) ** 0.5 * jnp.exp(2 * x) ** -0.5,
    )  # fmt: skip
    yield from named(
        "half_exp", lambda x: jets.exp(x * 0.5), ("ordinary", "near 0", "left", "far left", "both sides"),
        sqrt=lambda x: jnp.sqrt(jnp.exp(x)),
        power=lambda x: jnp.exp(x) ** 0.5,
        log=lambda x: jnp.exp(0.5 * jnp.log(jnp.exp(x))),
    )  # fmt: skip
    yield from named(
        "deviation", lambda x: one_plus(x) ** -0.5, EVERYWHERE,
        rsqrt=lambda x: jax.lax.rsqrt(1 + jnp.exp(x)),
        over_sqrt=lambda x: 1 / jnp.sqrt(1 + jnp.exp(x)),
        power=lambda x: (1 + jnp.exp(x)) ** -0.5,
        sqrt_of_sigmoid=lambda x: jnp.sqrt(jax.nn.sigmoid(-x)),
    )  # fmt: skip
    yield from named(
        "inverse_square", lambda x: one_plus(x) ** -2, EVERYWHERE,
        power=lambda x: (1 + jnp.exp(x)) ** -2,
        square=lambda x: 1 / (1 + jnp.exp(x)) ** 2,
        product=lambda x: 1 / ((1 + jnp.exp(x)) * (1 + jnp.exp(x))),
    )  # fmt: skip
    yield from named(
        "hypotenuse", lambda x: (1 + jets.exp(x * 2)) ** 0.5 * jets.exp(-x), NOT_FAR_LEFT,
        quotient=lambda x: jnp.sqrt(1 + jnp.exp(2 * x)) / jnp.exp(x),
        product=lambda x: jnp.sqrt(1 + jnp.exp(2 * x)) * jnp.exp(-x),
        power=lambda x: (1 + jnp.exp(2 * x)) ** 0.5 / jnp.exp(x),
    )  # fmt: skip
    yield from named(
        "sech", lambda x: 2 / (jets.exp(x) + jets.exp(-x)), EVERYWHERE,
        cosh=lambda x: 1 / jnp.cosh(x),
        exponentials=lambda x: 2 / (jnp.exp(x) + jnp.exp(-x)),
        power=lambda x: jnp.cosh(x) ** -1,
        root=lambda x: jax.lax.rsqrt(jnp.cosh(x) ** 2),
    )  # fmt: skip


def _products_and_quotients() -> Iterator[Elementwise]:
    def hazard(x: Jet) -> Jet:
        return exact_sigmoid(x)

    yield from named(
        "exponents_added", lambda x: jets.exp(x * 0.25) * 3, ("ordinary", "near 0", "both sides", "left", "far left"),
        product=lambda x: 3 * jnp.exp(4 * x) * jnp.exp(-3.75 * x),
        quotient=lambda x: 3 * jnp.exp(4 * x) / jnp.exp(3.75 * x),
        through_inverse=lambda x: jnp.exp(4 * x) * (3 / jnp.exp(3.75 * x)),
    )  # fmt: skip
    yield from named(
        "logistic_density", lambda x: exact_sigmoid(x) * exact_sigmoid(-x), EVERYWHERE,
        plain=lambda x: jnp.exp(-x) / (1 + jnp.exp(-x)) ** 2,
        mirrored=lambda x: jnp.exp(x) / (1 + jnp.exp(x)) ** 2,
        product=lambda x: jnp.exp(x) * (1 + jnp.exp(x)) ** -2,
        symmetric=lambda x: 1 / (jnp.exp(x) + 2 + jnp.exp(-x)),
    )  # fmt: skip
    yield from named(
        "hazard", hazard, EVERYWHERE,
        product=lambda x: jnp.exp(x) * (1 / (1 + jnp.exp(x))),
        density_over_survival=lambda x: (jnp.exp(x) / (1 + jnp.exp(x)) ** 2) / (1 / (1 + jnp.exp(x))),
    )  # fmt: skip
    yield from named(
        "cancelled", lambda x: x * 1, EVERYWHERE,
        divided_then_multiplied=lambda x: (x / jnp.exp(x)) * jnp.exp(x),
        multiplied_then_divided=lambda x: (x * jnp.exp(x)) / jnp.exp(x),
        over_density=lambda x: (x * jnp.exp(-(x**2))) / jnp.exp(-(x**2)),
        times_density=lambda x: (x / jnp.exp(-(x**2))) * jnp.exp(-(x**2)),
        score=lambda x: -(-x * jnp.exp(-(x**2) / 2)) / jnp.exp(-(x**2) / 2),
        log_of_exp=lambda x: jnp.log(jnp.exp(x)),
        log_of_quotient=lambda x: jnp.log(jnp.exp(2 * x) / jnp.exp(x)),
    )  # fmt: skip
    yield from named(
        "self_normalised", lambda x: x * x * 0.5, ("ordinary", "left", "both sides", "far right"),
        square=lambda x: (x * (x * jnp.exp(x)) / jnp.exp(x)) * 0.5,
        plain=lambda x: (x**2 * x) / (2 * x),
        tiny=lambda x: x**3 * 1e-30 / (2e-30 * x),
    )  # fmt: skip


def _sums_of_logarithms() -> Iterator[Elementwise]:
    def log_cosh(x: Jet) -> Jet:
        return jets.log((jets.exp(x) + jets.exp(-x)) * 0.5)

    def three(x: Jet) -> Jet:
        return jets.log(jets.exp(x) + jets.exp(x * 2) + 1)

    yield from named(
        "log_cosh", log_cosh, EVERYWHERE,
        cosh=lambda x: jnp.log(jnp.cosh(x)),
        exponentials=lambda x: jnp.log((jnp.exp(x) + jnp.exp(-x)) / 2),
        minus_log_2=lambda x: jnp.log(jnp.exp(x) + jnp.exp(-x)) - jnp.log(2.0),
        logaddexp=lambda x: jnp.logaddexp(x, -x) - jnp.log(2.0),
        softplus=lambda x: jnp.log(1 + jnp.exp(-2 * x)) + x - jnp.log(2.0),
    )  # fmt: skip
    yield from named(
        "log_three", three, EVERYWHERE,
        log=lambda x: jnp.log(1 + jnp.exp(x) + jnp.exp(2 * x)),
        logaddexp=lambda x: jnp.logaddexp(jnp.log(1 + jnp.exp(x)), 2 * x),
        logaddexp_of_logs=lambda x: jnp.logaddexp(jnp.log(jnp.exp(x) + jnp.exp(2 * x)), 0.0),
        nested=lambda x: jnp.logaddexp(jnp.log(1.0), jnp.logaddexp(x, jnp.log(jnp.exp(2 * x)))),
        log1p=lambda x: jnp.log1p(jnp.exp(x) * (1 + jnp.exp(x))),
    )  # fmt: skip
    yield from named(
        "logaddexp", lambda x: jets.log(jets.exp(-x) + jets.exp(x) * 3), EVERYWHERE,
        of_logs=lambda x: jnp.logaddexp(jnp.log(jnp.exp(-x)), jnp.log(3 * jnp.exp(x))),
        of_log_and_plain=lambda x: jnp.logaddexp(-x, jnp.log(3 * jnp.exp(x))),
        log=lambda x: jnp.log(jnp.exp(-x) + 3 * jnp.exp(x)),
        logsumexp=lambda x: special.logsumexp(jnp.stack([-x, jnp.log(3.0) + x]), axis=0),
    )  # fmt: skip
    yield from named(
        "union", lambda x: jets.log(1 - (1 - exact_sigmoid(x)) * (1 - exact_sigmoid(2 * x))), EVERYWHERE,
        logaddexp=lambda x: jnp.logaddexp(
            jnp.log(jax.nn.sigmoid(x)), jnp.log(jax.nn.sigmoid(2 * x)) + jnp.log(1 - jax.nn.sigmoid(x))
        ),
        sum=lambda x: jnp.log(jax.nn.sigmoid(x) + jax.nn.sigmoid(2 * x) * (1 - jax.nn.sigmoid(x))),
        complement=lambda x: jnp.log(1 - (1 - jax.nn.sigmoid(x)) * (1 - jax.nn.sigmoid(2 * x))),
    )  # fmt: skip
    yield from named(
        "raw_logit", lambda p: jets.log(p / (1 - p)), PROBABILITIES,
        quotient=lambda p: jnp.log(p / (1 - p)),
        difference=lambda p: jnp.log(p) - jnp.log(1 - p),
        log1p=lambda p: jnp.log(p) - jnp.log1p(-p),
        library=special.logit,
    )  # fmt: skip


EXPONENTIALS = (
    *_differences_of_exponentials(),
    *_powers_and_roots(),
    *_products_and_quotients(),
    *_sums_of_logarithms(),
)
