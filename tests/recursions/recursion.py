"""One generated recursion: a program over probabilities, the probabilities in one spelling, and what is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recursions.programs import EMISSIONS, PROGRAMS, STATES, STEPS

VALUE, GRADIENT = 2e-6, 2e-5
LOGITS = (5 * np.random.default_rng(0).normal(size=(STEPS, STATES))).astype(np.float32)
FORWARD_ONLY = ("product_by_while",)


@dataclass(frozen=True)
class Recursion:
    recursion: str
    emission: str

    def __str__(self) -> str:
        return f"{self.recursion}-{self.emission}"

    def program(self, logits: Any) -> Any:
        return PROGRAMS[self.recursion](EMISSIONS[self.emission](logits))

    def derivative(self, f: Any) -> Any:
        """Value and gradient; of a while loop, which has no other, value and derivative in one direction."""
        if self.recursion in FORWARD_ONLY:
            return lambda x: jax.jvp(f, (x,), (jnp.cos(x),))
        return jax.value_and_grad(f)

    def truth(self) -> tuple[float, np.ndarray]:
        """In float64, where every value of these programs is in range; step by step, as it is written."""
        with jax.enable_x64(True):
            value, slope = jax.jit(self.derivative(self.program))(jnp.asarray(LOGITS, "float64"))
            return float(value), np.asarray(slope)

    def errors(self, got: tuple[Any, Any]) -> tuple[float, float]:
        """Of value and slope, each by what it may be: 1 is the bound."""
        value, slope = self.truth()
        off = abs(float(got[0]) - value) / (VALUE * max(1.0, abs(value)))
        size = max(1.0, float(np.abs(slope).max()))
        return off, float(np.abs(np.asarray(got[1], np.float64) - slope).max()) / (GRADIENT * size)

    def plain_is_wrong(self) -> bool:
        found = self.errors(jax.jit(self.derivative(self.program))(LOGITS))
        return not max(found) <= 1


RECURSIONS = tuple(Recursion(recursion, emission) for recursion in PROGRAMS for emission in EMISSIONS)
