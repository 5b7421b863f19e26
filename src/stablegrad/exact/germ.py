"""Germs: how a quantity behaves as t goes to 0 from above, along one curve through the inputs.

A germ is a sum of terms c * t**q * log(t)**k, q rational, k an integer, known up to o(t**order). Such sums are closed
under what programs do, also at the points where derivatives fail: sqrt(t**2) = t, log(t) * t, exp(log(t)) = t, and
(1/t) - (1/t) = 0 for an infinity written as 1/t. Limits and one-sided derivatives are read off the leading terms
(Gruntz 1996, "On computing limits in a symbolic manipulation system", treats the general case).

`Flat` is a quantity smaller than every power of t, such as exp(-1/t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, final

from flint import fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.scalars import ZERO, Infinity, Scalar, Undefined

Exponent = int | Fraction
Terms = dict[tuple[Exponent, int], Scalar]


class Stop(Exception):
    """A result that is no germ; carries the undefined value to return instead."""

    def __init__(self, kind: str | Undefined, reason: str = "") -> None:
        super().__init__(reason)
        self.value = kind if isinstance(kind, Undefined) else Undefined(kind, reason)


@final
class Flat:
    """Smaller than every power of t; `sign` is 0 where it is not known."""

    __slots__ = ("sign",)

    def __init__(self, sign: int) -> None:
        self.sign = sign


@final
class Germ:
    """terms: (q, k) -> coefficient. order: terms from t**order on are unknown (inf: none). data: see `mul`."""

    __slots__ = ("data", "order", "terms")

    def __init__(self, terms: Terms, order: float | Exponent = math.inf, data: bool = False) -> None:
        self.terms = terms
        self.order = order
        self.data = data

    def __repr__(self) -> str:
        inside = " + ".join(f"{c} t^{q} L^{k}" for (q, k), c in sorted(self.terms.items()))
        return f"Germ({inside} + o(t^{self.order}))"


def exponent(q: Exponent | fmpq) -> Exponent:
    """A rational exponent, an int where it is one."""
    fraction = Fraction(int(q.p), int(q.q)) if isinstance(q, fmpq) else q
    return int(fraction) if fraction == int(fraction) else fraction


def known(c: Scalar) -> Scalar:
    if type(c) is Undefined:
        raise Stop(c)
    return c


def made(terms: Terms, order: float | Exponent = math.inf, data: bool = False) -> Any:
    """A germ without zero terms or unknown ones; a scalar where it is one."""
    kept = {}
    for key, c in terms.items():
        if key[0] < order and not s.is_zero(c):
            if not s.is_finite(c):
                raise Stop(c if type(c) is Undefined else Undefined("singular", "an infinite coefficient"))
            kept[key] = c
    if order == math.inf and (not kept or set(kept) == {(0, 0)}):
        return kept.get((0, 0), ZERO)
    return Germ(kept, order, data)


def leading(a: Germ) -> tuple[Exponent, int, Scalar]:
    """The dominant term as t goes to 0, its coefficient known not to be 0."""
    if not a.terms:
        raise Stop("truncated", "every known term of a series vanishes")
    q, k = min(a.terms, key=lambda key: (key[0], -key[1]))
    c = a.terms[q, k]
    if type(s.sign(c)) is Undefined:
        raise Stop(s.BEYOND)
    return q, k, c


def direction(a: Germ) -> int:
    """The sign of a germ just above t = 0."""
    _, k, c = leading(a)
    return known(s.sign(c)) * (-1) ** (k % 2)


def limit(a: Any) -> Scalar:
    """The limit as t goes to 0; an infinity that came from a logarithm or from data says so."""
    if type(a) is Flat:
        return ZERO
    if type(a) is not Germ:
        return a
    large = {key: c for key, c in a.terms.items() if key[0] < 0 or (key[0] == 0 and key[1] > 0)}
    if large:
        try:
            upward = direction(Germ(large))
        except Stop as stop:
            return stop.value
        origin = "data" if a.data else "log" if min(large)[0] == 0 else "pole"
        return Infinity(upward, origin)
    if a.order <= 0:
        return Undefined("truncated", "too few terms of a series")
    return a.terms.get((0, 0), ZERO)


def without_limit(a: Any) -> Any:
    """What a quantity with a finite limit adds to it; 0 for a scalar."""
    if type(a) is not Germ:
        return ZERO
    return made({key: c for key, c in a.terms.items() if key != (0, 0)}, a.order, a.data)


def slope(a: Any) -> Scalar:
    """The one-sided derivative by t at 0 of a germ with a finite limit."""
    if type(a) is not Germ:
        return a if type(a) is Undefined else ZERO
    rest = {key: c for key, c in a.terms.items() if key != (0, 0) and key[0] <= 1}
    steep = {key: c for key, c in rest.items() if key[0] < 1 or key[1] > 0}
    if steep:
        try:
            return Infinity(direction(Germ(steep)), "pole")
        except Stop as stop:
            return stop.value
    if a.order <= 1:
        return Undefined("truncated", "too few terms of a series")
    return rest.get((1, 0), ZERO)


def terms_of(a: Any) -> Terms:
    return a.terms if type(a) is Germ else {(0, 0): known(a)}


def order_of(a: Any) -> float | Exponent:
    return a.order if type(a) is Germ else math.inf


def is_data(a: Any) -> bool:
    return type(a) is Germ and a.data


def sign_of(a: Any) -> int:
    if type(a) is Germ:
        return direction(a)
    return a.sign if type(a) is Flat else known(s.sign(a))


def stopping(f: Callable[..., Any], *operands: Any) -> Any:
    """f(*operands), where an undefined operand or a Stop gives an undefined result."""
    undefined = [a for a in operands if type(a) is Undefined]
    if undefined:
        return s.worse(*undefined)
    try:
        return f(*operands)
    except Stop as stop:
        return stop.value
