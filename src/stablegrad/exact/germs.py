"""The algebra of germs: the operations of a program on one-sided expansions (germ.py)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq

from stablegrad.exact import germ_choices, powers
from stablegrad.exact import scalars as s
from stablegrad.exact.germ import (
    Exponent,
    Flat,
    Germ,
    Stop,
    Terms,
    direction,
    exponent,
    is_data,
    known,
    leading,
    limit,
    made,
    order_of,
    stopping,
    terms_of,
    without_limit,
)
from stablegrad.exact.meanings import FUNCTIONS
from stablegrad.exact.scalars import ONE, ZERO, Infinity, Scalar, Undefined

MOST_TERMS = 400


class GermAlgebra:
    """Operations on scalars and germs.

    window: how many powers of t a series is followed beyond its leading one.
    choice: draws the rate at which each infinity of the data goes to infinity.
    vanishing: the leading terms (q, c) of the denominators that vanished, in the order of the program.
    wary: a logarithm of an exact infinity is singular, not infinite.
    """

    def __init__(self, window: int, choice: np.random.Generator, *, wary: bool = False) -> None:
        self.window = window
        self.choice = choice
        self.wary = wary
        self.vanishing: list[tuple[Exponent, Scalar]] = []

    # -- elements ------------------------------------------------------------------------------------------------

    def from_float(self, value: float) -> Any:
        exact = s.from_float(value)
        if type(exact) is Infinity:
            rate = fmpq(exact.sign * int(self.choice.integers(64, 256)), 64)
            return Germ({(-1, 0): rate}, math.inf, True)
        return exact

    def line(self, value: Scalar, rate: Scalar, power: int = 1) -> Any:
        """value + rate * t**power."""
        return made({(0, 0): value, (power, 0): rate}) if s.is_finite(value) else value

    def point(self, a: Any) -> Scalar:
        return limit(a)

    def freeze(self, a: Any) -> Any:
        """The limit; where that is infinite the germ itself, so that inf - inf still knows which."""
        end = limit(a)
        return a if type(end) is Infinity else end

    def rounded(self, how: str, a: Scalar) -> Scalar:
        from stablegrad.exact.rounded import round_scalar

        return round_scalar(how, a)

    def undefined(self, reason: Undefined, *operands: Any) -> Any:
        return reason

    def without_derivative(self, a: Any, reason: Undefined) -> Any:
        """The limit, where `a` moves at all `reason`."""
        return reason if type(a) in (Germ, Flat) else a

    def _cut(self, terms: Terms, order: float | Exponent, data: bool) -> Any:
        """A germ cut to the window after its first power."""
        if terms:
            order = min(order, min(q for q, _ in terms) + self.window)
        return made(terms, order, data)

    # -- arithmetic ----------------------------------------------------------------------------------------------

    def neg(self, a: Any) -> Any:
        if type(a) is Germ:
            return Germ({key: -c for key, c in a.terms.items()}, a.order, a.data)
        return Flat(-a.sign) if type(a) is Flat else s.neg(a)

    def add(self, a: Any, b: Any) -> Any:
        return stopping(self._add, a, b)

    def _add(self, a: Any, b: Any) -> Any:
        if type(a) is Flat or type(b) is Flat:
            if type(a) is Flat and type(b) is Flat:
                return Flat(a.sign if a.sign == b.sign else 0)
            flat, other = (a, b) if type(a) is Flat else (b, a)
            if s.is_zero(other) or type(other) is Infinity:
                return flat if s.is_zero(other) else other
            return made(terms_of(other), min(order_of(other), self.window), is_data(other))
        if type(a) is not Germ and type(b) is not Germ:
            return s.add(a, b)
        for one, other in ((a, b), (b, a)):
            if type(one) is Infinity:
                end = limit(other)
                if type(end) is Infinity and end.sign != one.sign:
                    raise Stop("singular", "inf - inf")
                return one
        terms = dict(terms_of(a))
        for key, c in terms_of(b).items():
            terms[key] = s.add(terms[key], c) if key in terms else c
        return made(terms, min(order_of(a), order_of(b)), is_data(a) or is_data(b))

    def sub(self, a: Any, b: Any) -> Any:
        if a is b and type(a) is not Undefined:
            return ZERO
        if type(a) is Germ or type(b) is Germ:
            return stopping(self._subtract, a, b)
        return self.add(a, self.neg(b))

    def _subtract(self, a: Any, b: Any) -> Any:
        """Term by term, so that one and the same coefficient cancels."""
        if type(a) not in (Germ, arb, fmpq) or type(b) not in (Germ, arb, fmpq):
            return self._add(a, self.neg(b))
        terms = dict(terms_of(a))
        for key, c in terms_of(b).items():
            terms[key] = s.sub(terms[key], c) if key in terms else s.neg(c)
        return made(terms, min(order_of(a), order_of(b)), is_data(a) or is_data(b))

    def sum(self, elements: list[Any]) -> Any:
        total: Any = ZERO
        for a in elements:
            total = self.add(total, a)
        return total

    def mul(self, a: Any, b: Any) -> Any:
        return stopping(self._mul, a, b)

    def _mul(self, a: Any, b: Any) -> Any:
        if type(a) in (Germ, Flat) and type(b) not in (Germ, Flat):
            a, b = b, a
        if type(b) not in (Germ, Flat):
            return self._mul_scalars(a, b)
        if type(a) is Undefined:
            return a
        if s.is_zero(a):
            if type(b) is Germ and b.data and type(limit(b)) is Infinity:
                raise Stop("nan", "0 times an infinity of the data")
            return ZERO
        if type(a) is Flat or type(b) is Flat:
            return self._mul_flat(a, b)
        if type(a) is Infinity:
            return Infinity(a.sign * direction(b), a.origin)  # at every t > 0
        left, right = terms_of(a), terms_of(b)
        if type(a) is not Germ:
            return Germ({key: s.mul(a, c) for key, c in right.items()}, b.order, b.data)
        low_a, low_b = (min((q for q, _ in x.terms), default=x.order) for x in (a, b))
        order = min(a.order + low_b, b.order + low_a)
        order = min(order, low_a + low_b + self.window)
        terms: Terms = {}
        for (p, i), c in left.items():
            for (q, j), d in right.items():
                if p + q < order:
                    key = (exponent(p + q), i + j)
                    product = s.mul(c, d)
                    terms[key] = s.add(terms[key], product) if key in terms else product
        exact = a.order == math.inf and b.order == math.inf
        cut = exact and all(p + q < order for p, _ in left for q, _ in right)
        return made(terms, math.inf if cut else order, a.data or b.data)

    def _mul_scalars(self, a: Scalar, b: Scalar) -> Scalar:
        """0 times an infinity that is none of the data is 0 all along the curve."""
        infinite = b if s.is_zero(a) else a if s.is_zero(b) else None
        if type(infinite) is Infinity and infinite.origin in ("exp", "data"):
            if infinite.origin == "data":
                raise Stop("nan", "0 times an infinity of the data")
            return ZERO
        return s.mul(a, b)

    def _mul_flat(self, a: Any, b: Any) -> Any:
        flat, other = (a, b) if type(a) is Flat else (b, a)
        if type(other) is Flat:
            return Flat(flat.sign * other.sign)
        if type(other) is Infinity and other.origin != "log":
            raise Stop("singular", "a vanishing exponential times an infinite one")
        if type(other) is Germ:
            return Flat(flat.sign * direction(other))
        known_sign = s.sign(other)
        return Flat(flat.sign * known_sign if type(known_sign) is int else 0)

    def div(self, a: Any, b: Any) -> Any:
        return stopping(self._div, a, b)

    def _div(self, a: Any, b: Any) -> Any:
        if type(b) is Flat:
            if type(a) is Flat or not b.sign:
                raise Stop("singular", "a quotient of vanishing exponentials")
            toward = direction(a) if type(a) is Germ else s.sign(a)
            if toward == 0:
                return ZERO
            return Infinity(known(toward) * b.sign, "exp")
        if type(b) is Germ:
            q, _, c = leading(b)
            if q > 0:
                self.vanishing.append((q, c))
            return self._mul(a, self._power(b, s.MINUS_ONE))
        if type(a) is Germ or type(a) is Flat:
            if type(b) is Infinity:
                if type(a) is Germ and type(limit(a)) is Infinity:
                    raise Stop("singular", "inf / inf")
                return Flat(0) if b.origin in ("exp", "data") else ZERO
            inverse = s.div(ONE, b)
            if type(inverse) is Infinity:
                return Infinity(direction(a), "pole") if type(a) is Germ else Undefined("singular", "0 / 0")
            return self._mul(a, inverse)
        if type(b) is Infinity and b.origin in ("exp", "data") and s.is_finite(a) and not s.is_zero(a):
            return Flat(known(s.sign(a)) * b.sign)
        return s.div(a, b)

    def power(self, a: Any, b: Any) -> Any:
        return stopping(self._power, a, b)

    def _power(self, a: Any, b: Any) -> Any:
        if type(b) in (Germ, Flat):
            # a ** b = a ** limit(b) * exp((b - limit(b)) * log(a)), the first factor exactly.
            end, rest, log = limit(b), without_limit(b), known(self.unary("log", a))
            if not s.is_finite(end):
                return self.unary("exp", self._mul(b, log))
            return self._mul(self._power(a, end), known(self.unary("exp", self._mul(rest, log))))
        if s.is_zero(b):
            return ONE
        if type(a) is Flat:
            s_b = s.sign(b)
            if s_b == 1:
                return Flat(1 if a.sign > 0 else 0)
            raise Stop("singular", "a vanishing exponential to a power")
        if type(a) is not Germ:
            return powers.power(a, b)
        if type(b) is fmpq and b.q == 1 and 0 < b <= 4:
            result = a
            for _ in range(int(b.p) - 1):
                result = self._mul(result, a)
            return result
        q, k, c = leading(a)
        if type(b) is not fmpq:
            if q == 0 and k == 0:
                return self.unary("exp", self._mul(b, self.unary("log", a)))
            raise Stop("unsupported", "t to a power that is not rational")
        order_k = exponent(Fraction(k) * Fraction(int(b.p), int(b.q)))
        if type(order_k) is not int:
            raise Stop("unsupported", "a root of a logarithm")
        coefficient = known(powers.power(c, b))
        binomial, coefficients = ONE, []
        for n in range(MOST_TERMS):
            coefficients.append(binomial)
            binomial = s.mul(binomial, s.div(s.sub(b, fmpq(n)), fmpq(n + 1)))
        series = self._series(coefficients, self._ratio(a, q, k, c))
        shift = Germ({(exponent(Fraction(q) * Fraction(int(b.p), int(b.q))), order_k): coefficient}, math.inf, a.data)
        return self._mul(shift if shift.terms.keys() != {(0, 0)} else coefficient, series)

    def _ratio(self, a: Germ, q: Exponent, k: int, c: Scalar) -> Any:
        """a / (its leading term) - 1: what is small against 1."""
        terms = {(exponent(p - q), i - k): known(s.div(d, c)) for (p, i), d in a.terms.items() if (p, i) != (q, k)}
        if any(p == 0 for p, _ in terms):
            raise Stop("unsupported", "a sum of powers of a logarithm inside a function")
        return made(terms, a.order - q)

    def _series(self, coefficients: list[Scalar], small: Any) -> Any:
        """sum_n coefficients[n] * small**n for a germ `small` that vanishes with t."""
        if type(small) is not Germ:
            return coefficients[0]
        first = min((q for q, _ in small.terms), default=small.order)
        if first <= 0:
            raise Stop("truncated", "too few terms of a series")
        count = min(math.ceil(self.window / first) + 1, len(coefficients))
        if first * count < self.window and len(coefficients) == MOST_TERMS:
            raise Stop("unsupported", "a series in a very small power of t")
        total: Any = coefficients[count - 1]
        for c in reversed(coefficients[: count - 1]):
            total = self._add(self._mul(total, small), c)
        bound = min(first * count, small.order)
        if type(total) is Germ:
            return made(total.terms, min(total.order, bound), total.data)
        return made({(0, 0): total}, bound)

    # -- functions -----------------------------------------------------------------------------------------------

    def unary(self, name: str, a: Any) -> Any:
        if type(a) is Germ or type(a) is Flat:
            from stablegrad.exact import germ_functions

            return stopping(germ_functions.apply, self, name, a)
        if self.wary and type(a) is Infinity and name in ("log", "log1p"):
            return Undefined("singular", "the log of an infinity")
        return FUNCTIONS[name](a)

    def smooth(self, name: str, *operands: Any) -> Any:
        from stablegrad.exact.jets import JetAlgebra

        if any(type(a) in (Germ, Flat) for a in operands):
            return Undefined("unsupported", f"{name} has no series here")
        return JetAlgebra(0).smooth(name, *operands)

    # -- choices -------------------------------------------------------------------------------------------------

    def maximum(self, a: Any, b: Any) -> Any:
        return germ_choices.maximum(self, a, b)

    def minimum(self, a: Any, b: Any) -> Any:
        return germ_choices.minimum(self, a, b)

    def absolute(self, a: Any) -> Any:
        return germ_choices.absolute(self, a)

    def atan2(self, y: Any, x: Any) -> Any:
        return germ_choices.atan2(self, y, x)

    def logaddexp(self, a: Any, b: Any) -> Any:
        return germ_choices.logaddexp(self, a, b)
