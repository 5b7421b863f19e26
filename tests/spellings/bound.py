"""The contract's bound: |got - exact| <= 4 ulp(exact) * (1 + condition number), and n ulp for a sum of n terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, fmpz

from spellings.jets import Jet, derivatives

ULPS = 4


@dataclass(frozen=True)
class Exact:
    """An exact number and `sensitivity`, the sum over all float inputs x of |x * d number / dx|."""

    number: arb
    sensitivity: arb

    def __add__(self, other: Exact) -> Exact:
        return Exact(self.number + other.number, self.sensitivity + other.sensitivity)

    def scaled(self, factor: float) -> Exact:
        return Exact(self.number * factor, self.sensitivity * abs(factor))


def exact(f: Callable[[list[Jet]], Jet], numbers: Sequence[float], differentiated: int) -> tuple[Exact, list[Exact]]:
    """Value and derivatives by the first `differentiated` numbers; the others count as inputs too."""
    jet = derivatives(f, numbers)
    weights = [abs(arb(x)) for x in numbers]
    value = Exact(jet.value, _total(w * abs(g) for w, g in zip(weights, jet.gradient, strict=True)))
    partials = []
    for i in range(differentiated):
        second = (jet.hessian[max(i, j)][min(i, j)] for j in range(len(numbers)))
        partials.append(Exact(jet.gradient[i], _total(w * abs(h) for w, h in zip(weights, second, strict=True))))
    return value, partials


def _total(numbers: object) -> arb:
    out = arb(0)
    for number in numbers:  # type: ignore[attr-defined]
        out += number
    return out


def ulp(number: arb, dtype: str) -> arb:
    """The distance of neighbouring floats at `number`, not below that at the smallest normal one."""
    digits, lowest = (23, -126) if dtype == "float32" else (52, -1022)
    middle = abs(number).mid()
    if middle == 0:
        return arb(2) ** (lowest - digits)
    mantissa, power = middle.man_exp()
    exponent = int(power) + int(fmpz(mantissa).bit_length()) - 1
    return arb(2) ** (max(exponent, lowest) - digits)


def times_bound(got: float, expected: Exact, dtype: str, terms: int) -> float:
    """The error as a multiple of what is allowed: right up to 1. Not finite where `got` is not.

    A result below the smallest normal number may be zero: the engine's compiler flushes it.
    """
    if not math.isfinite(got):
        return math.inf
    largest, smallest = float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)
    if abs(expected.number) > largest:
        raise AssertionError(f"the exact result {expected.number} does not fit in {dtype}: no test of this contract")
    one = ulp(expected.number, dtype)
    relative = one / abs(expected.number) if abs(expected.number) > 0 else arb(float(np.finfo(dtype).eps))
    allowed = (ULPS + terms) * one + ULPS * expected.sensitivity * relative
    error = abs(arb(got) - expected.number)
    if abs(expected.number) < smallest:
        allowed = allowed if allowed > smallest else arb(smallest)
    return float((error / allowed).mid())
