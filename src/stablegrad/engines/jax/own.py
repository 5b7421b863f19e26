"""Our own functions at the border of a loop: each is one named equation, which `capture` knows again."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend.core as jex

from stablegrad.engines.jax import _compat, names
from stablegrad.numerics.jax import powers_of_two

scaled_value = jax.jit(powers_of_two.scaled_value)
without_exponent = jax.jit(powers_of_two.without_exponent)
binary_exponent = jax.jit(powers_of_two.binary_exponent)
OWN = ("scaled_value", "without_exponent", "binary_exponent")


def own_name(equation: jex.JaxprEqn) -> str | None:
    """The name of such a function that the equation is."""
    if equation.primitive is not names.JIT or equation.params.get("name") not in OWN:
        return None
    return equation.params["name"] if _compat.written_here(equation.params["jaxpr"].jaxpr) else None


def split(value: Any) -> tuple[Any, Any]:
    """(mantissa, exponent)"""
    return without_exponent(value), binary_exponent(value)


def joined(value: Any) -> Any:
    """The number of a (mantissa, exponent); anything else as it is."""
    return scaled_value(*value) if isinstance(value, (tuple, list)) else value
