"""Sigmoid, tanh and softplus in every spelling, and what people make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jax.scipy import special

from spellings import jets
from spellings.elementwise import (
    NOT_FAR_RIGHT,
    Elementwise,
    exact_entropy,
    exact_sigmoid,
    exact_softplus,
    exact_tanh,
    made_of,
)
from spellings.jets import Jet

Array = jax.Array

# -- spellings that others are made of --------------------------------------------------

SIGMOIDS: dict[str, Callable[[Array], Array]] = {
    "library": jax.nn.sigmoid,
    "over_one_plus": lambda x: 1 / (1 + jnp.exp(-x)),
    "exp_over": lambda x: jnp.exp(x) / (1 + jnp.exp(x)),
    "tanh": lambda x: 0.5 * (1 + jnp.tanh(0.5 * x)),
    "softmax": lambda x: jax.nn.softmax(jnp.stack([jnp.zeros_like(x), x]), axis=0)[1],
}
TANHS: dict[str, Callable[[Array], Array]] = {
    "library": jnp.tanh,
    "exponentials": lambda x: (jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x)),
    "doubled": lambda x: (jnp.exp(2 * x) - 1) / (jnp.exp(2 * x) + 1),
    "one_minus": lambda x: 1 - 2 / (jnp.exp(2 * x) + 1),
    "sigmoid": lambda x: 2 * jax.nn.sigmoid(2 * x) - 1,
    "sinh_over_cosh": lambda x: jnp.sinh(x) / jnp.cosh(x),
    "expm1": lambda x: jnp.expm1(2 * x) / (jnp.expm1(2 * x) + 2),
}
SOFTPLUSES: dict[str, Callable[[Array], Array]] = {
    "log": lambda x: jnp.log(1 + jnp.exp(x)),
    "log1p": lambda x: jnp.log1p(jnp.exp(x)),
    "sigmoid": lambda x: -jnp.log(jax.nn.sigmoid(-x)),
    "one_minus_sigmoid": lambda x: -jnp.log(1 - jax.nn.sigmoid(x)),
    "by_inverse": lambda x: x + jnp.log(1 + jnp.exp(-x)),
    "two_exponentials": lambda x: jnp.log(jnp.exp(-x) + 1) - jnp.log(jnp.exp(-x)),
    "shifted": lambda x: jnp.maximum(x, 0) + jnp.log(1 + jnp.exp(-jnp.abs(x))),
    "logaddexp": lambda x: jnp.logaddexp(x, 0.0),
    "sum_of_stack": lambda x: jnp.log(jnp.sum(jnp.exp(jnp.stack([jnp.zeros_like(x), x])), axis=0)),
}


# -- the families --------------------------------------------------


def _from_sigmoid() -> Iterator[Elementwise]:
    yield from made_of("sigmoid", SIGMOIDS, lambda s, x: s, exact_sigmoid)
    yield from made_of("one_minus_sigmoid", SIGMOIDS, lambda s, x: 1 - s, lambda x: exact_sigmoid(-x))
    yield from made_of("log_sigmoid", SIGMOIDS, lambda s, x: jnp.log(s), lambda x: -exact_softplus(-x))
    yield from made_of("log_one_minus_sigmoid", SIGMOIDS, lambda s, x: jnp.log(1 - s), lambda x: -exact_softplus(x))
    yield from made_of("log1p_minus_sigmoid", SIGMOIDS, lambda s, x: jnp.log1p(-s), lambda x: -exact_softplus(x))
    yield from made_of("slope", SIGMOIDS, lambda s, x: s * (1 - s), lambda x: exact_sigmoid(x) * exact_sigmoid(-x))
    yield from made_of("swish", SIGMOIDS, lambda s, x: x * s, lambda x: x * exact_sigmoid(x))
    yield from made_of("logit", SIGMOIDS, lambda s, x: jnp.log(s / (1 - s)), lambda x: x)
    yield from made_of("log_odds", SIGMOIDS, lambda s, x: jnp.log(s) - jnp.log(1 - s), lambda x: x)
    yield from made_of("library_logit", SIGMOIDS, lambda s, x: special.logit(s), lambda x: x)
    yield from made_of("logit_of_rest", SIGMOIDS, lambda s, x: special.logit(1 - s), lambda x: -x)
    yield from made_of("odds", SIGMOIDS, lambda s, x: s / (1 - s), jets.exp, NOT_FAR_RIGHT)
    yield from made_of("atanh_logit", SIGMOIDS, lambda s, x: 2 * jnp.arctanh(2 * s - 1), lambda x: x)
    yield from made_of("entropy", SIGMOIDS, lambda s, x: -(s * jnp.log(s) + (1 - s) * jnp.log(1 - s)), exact_entropy)
    yield from made_of(
        "entropy_xlogy", SIGMOIDS, lambda s, x: -special.xlogy(s, s) - special.xlog1py(1 - s, -s), exact_entropy
    )
    yield from made_of(
        "focal",
        SIGMOIDS,
        lambda s, x: -((1 - s) ** 2) * jnp.log(s),
        lambda x: exact_sigmoid(-x) ** 2 * exact_softplus(-x),
    )
    yield from made_of(
        "focal_power",
        SIGMOIDS,
        lambda s, x: -((1 - s) ** 1.5) * jnp.log(s),
        lambda x: exact_sigmoid(-x) ** 1.5 * exact_softplus(-x),
    )
    yield from made_of("power", SIGMOIDS, lambda s, x: s**0.25, lambda x: exact_sigmoid(x) ** 0.25)
    yield from made_of("power_of_rest", SIGMOIDS, lambda s, x: (1 - s) ** 0.75, lambda x: exact_sigmoid(-x) ** 0.75)
    yield from made_of("root", SIGMOIDS, lambda s, x: jnp.sqrt(s), lambda x: exact_sigmoid(x) ** 0.5)


def _from_tanh() -> Iterator[Elementwise]:
    def square(x: Jet) -> Jet:
        return 4 * exact_sigmoid(2 * x) * exact_sigmoid(-2 * x)

    yield from made_of("tanh", TANHS, lambda t, x: t, exact_tanh)
    yield from made_of("one_minus_tanh", TANHS, lambda t, x: 1 - t, lambda x: 2 * exact_sigmoid(-2 * x))
    yield from made_of("slope_of_tanh", TANHS, lambda t, x: 1 - t**2, square)
    yield from made_of("log_slope_of_tanh", TANHS, lambda t, x: jnp.log(1 - t**2), lambda x: jets.log(square(x)))
    yield from made_of("log1p_tanh", TANHS, lambda t, x: jnp.log1p(-(t**2)), lambda x: jets.log(square(x)))
    yield from made_of("atanh_tanh", TANHS, lambda t, x: jnp.arctanh(t), lambda x: x)
    yield from made_of("log_ratio_tanh", TANHS, lambda t, x: 0.5 * jnp.log((1 + t) / (1 - t)), lambda x: x)
    yield from made_of("root_of_slope", TANHS, lambda t, x: jnp.sqrt(1 - t**2), lambda x: square(x) ** 0.5)


def _from_softplus() -> Iterator[Elementwise]:
    yield from made_of("softplus", SOFTPLUSES, lambda s, x: s, exact_softplus)
    yield from made_of("softplus_minus", SOFTPLUSES, lambda s, x: s - x, lambda x: exact_softplus(-x))
    yield from made_of("bernoulli", SOFTPLUSES, lambda s, x: s - 0.25 * x, lambda x: exact_softplus(x) - x * 0.25)
    yield from made_of("mish", SOFTPLUSES, lambda s, x: x * jnp.tanh(s), lambda x: x * exact_tanh(exact_softplus(x)))
    yield from made_of("exp_softplus", SOFTPLUSES, lambda s, x: jnp.exp(-s), lambda x: exact_sigmoid(-x))
    yield from made_of("exp_difference", SOFTPLUSES, lambda s, x: jnp.exp(x - s), exact_sigmoid)
    yield from made_of("log_softplus", SOFTPLUSES, lambda s, x: jnp.log(s), lambda x: jets.log(exact_softplus(x)))
    yield from made_of("inverse_softplus", SOFTPLUSES, lambda s, x: jnp.log(jnp.exp(s) - 1), lambda x: x)
    yield from made_of("inverse_softplus_expm1", SOFTPLUSES, lambda s, x: jnp.log(jnp.expm1(s)), lambda x: x)


FROM_SIGMOIDS = (*_from_sigmoid(), *_from_tanh(), *_from_softplus())
