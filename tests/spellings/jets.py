"""Exact second-order derivatives: values, gradients and Hessians in ball arithmetic.

A `Jet` is a number with its first and second derivatives by a fixed list of variables. Formulas are written in it as
in a textbook, without any care: precision is raised until every ball is narrow. It shares no code with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import flint
from flint import arb

FIRST_BITS, LAST_BITS = 320, 30_000
NARROW = 90  # bits that a result must have right
ZERO = arb(2) ** -10_000


class Jet:
    """`value`, `gradient[i]`, and `hessian[i][j]` for j <= i."""

    __slots__ = ("gradient", "hessian", "value")

    def __init__(self, value: arb, gradient: list[arb], hessian: list[list[arb]]) -> None:
        self.value, self.gradient, self.hessian = value, gradient, hessian

    def through(self, value: arb, first: arb, second: arb) -> Jet:
        """f(self), where f, f' and f'' at this value are given."""
        g = self.gradient
        gradient = [first * d for d in g]
        hessian = [[first * h + second * g[i] * g[j] for j, h in enumerate(row)] for i, row in enumerate(self.hessian)]
        return Jet(value, gradient, hessian)

    def constant(self, number: float) -> Jet:
        return Jet(arb(number), [arb(0)] * len(self.gradient), [[arb(0)] * (i + 1) for i in range(len(self.gradient))])

    def __add__(self, other: Jet | float) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.gradient, self.hessian)
        gradient = [a + b for a, b in zip(self.gradient, other.gradient, strict=True)]
        hessian = [[a + b for a, b in zip(r, s, strict=True)] for r, s in zip(self.hessian, other.hessian, strict=True)]
        return Jet(self.value + other.value, gradient, hessian)

    def __mul__(self, other: Jet | float) -> Jet:
        if not isinstance(other, Jet):
            number = arb(other)
            return self.through(self.value * number, number, arb(0))
        a, b, g, k = self.value, other.value, self.gradient, other.gradient
        gradient = [a * e + b * d for d, e in zip(g, k, strict=True)]
        hessian = [
            [a * s + b * r + g[i] * k[j] + g[j] * k[i] for j, (r, s) in enumerate(zip(rows, more, strict=True))]
            for i, (rows, more) in enumerate(zip(self.hessian, other.hessian, strict=True))
        ]
        return Jet(a * b, gradient, hessian)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Jet:
        return self * -1

    def __sub__(self, other: Jet | float) -> Jet:
        return self + (-other)

    def __rsub__(self, other: float) -> Jet:
        return -self + other

    def __truediv__(self, other: Jet | float) -> Jet:
        if not isinstance(other, Jet):
            return self * (1 / arb(other))
        return self * other.reciprocal()

    def __rtruediv__(self, other: float) -> Jet:
        return self.reciprocal() * other

    def reciprocal(self) -> Jet:
        inverse = 1 / self.value
        return self.through(inverse, -(inverse**2), 2 * inverse**3)

    def __pow__(self, power: float) -> Jet:
        p = arb(power)
        if power == 2:
            return self * self
        return self.through(self.value**p, p * self.value ** (p - 1), p * (p - 1) * self.value ** (p - 2))


def exp(x: Jet) -> Jet:
    e = x.value.exp()
    return x.through(e, e, e)


def log(x: Jet) -> Jet:
    inverse = 1 / x.value
    return x.through(x.value.log(), inverse, -(inverse**2))


def sin(x: Jet) -> Jet:
    s, c = x.value.sin(), x.value.cos()
    return x.through(s, c, -s)


def relu(x: Jet) -> Jet:
    return x if x.value > 0 else x.constant(0.0)


def total(jets: Sequence[Jet]) -> Jet:
    out = jets[0]
    for jet in jets[1:]:
        out = out + jet
    return out


def variables(numbers: Sequence[float]) -> list[Jet]:
    n = len(numbers)
    empty = [[arb(0)] * (i + 1) for i in range(n)]
    return [Jet(arb(x), [arb(int(i == k)) for i in range(n)], empty) for k, x in enumerate(numbers)]


def derivatives(f: Callable[[list[Jet]], Jet], numbers: Sequence[float]) -> Jet:
    """`f` at `numbers`, every value and derivative right to `NARROW` bits or zero.

    A ball never proves a zero: what still holds 0 at the last precision, within a radius of 2**-10000, is one.

    Raises:
        ArithmeticError: a ball is wide at the last precision and no zero.
    """
    bits = FIRST_BITS
    while True:
        with flint.ctx.workprec(bits):
            jet = f(variables(numbers))
            wide = [part for part in _parts(jet) if part.rad() != 0 and part.rel_accuracy_bits() < NARROW]
        if not wide:
            return jet
        if bits == LAST_BITS:
            break
        bits = min(bits * 4, LAST_BITS)
    if all(part.contains(0) and part.rad() < ZERO for part in wide):
        return jet
    raise ArithmeticError(f"undecided at {numbers} with {LAST_BITS} bits: {wide}")


def _parts(jet: Jet) -> list[arb]:
    return [jet.value, *jet.gradient, *(h for row in jet.hessian for h in row)]


def log_of(number: int | Callable[[], arb]) -> arb:
    """log of a constant at the current precision."""
    return (number() if callable(number) else arb(number)).log()


def pi() -> arb:
    """pi at the current precision."""
    return arb.pi()
