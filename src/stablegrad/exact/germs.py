"""The algebra of germs: how a quantity behaves as t goes to 0 from above, along one curve through the inputs.

A germ is a sum of terms c * t**q * log(t)**k, q rational, k an integer, known up to o(t**order). Such sums are closed
under what programs do, also at the points where derivatives fail: sqrt(t**2) = t, log(t) * t, exp(log(t)) = t, and
(1/t) - (1/t) = 0 for an infinity written as 1/t. Limits and one-sided derivatives are read off the leading terms
(Gruntz 1996, "On computing limits in a symbolic manipulation system", treats the general case).

`Flat` is a quantity smaller than every power of t, such as exp(-1/t).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Callable

import numpy as np
from flint import arb, fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.meanings import FUNCTIONS
from stablegrad.exact.scalars import ONE, ZERO, Infinity, Scalar, Undefined

Exponent = int | Fraction
Terms = dict[tuple[Exponent, int], Scalar]

MOST_TERMS = 400


class Stop(Exception):
    """A result that is no germ; carries the undefined value to return instead."""

    def __init__(self, kind: str | Undefined, reason: str = "") -> None:
        super().__init__(reason)
        self.value = kind if type(kind) is Undefined else Undefined(kind, reason)  # type: ignore[arg-type]


class Flat:
    """Smaller than every power of t; `sign` is 0 where it is not known."""

    __slots__ = ("sign",)

    def __init__(self, sign: int) -> None:
        self.sign = sign


class Germ:
    """terms: (q, k) -> coefficient. order: terms from t**order on are unknown (inf: none). data: see `mul`."""

    __slots__ = ("terms", "order", "data")

    def __init__(self, terms: Terms, order: float | Exponent = math.inf, data: bool = False) -> None:
        self.terms = terms
        self.order = order
        self.data = data

    def __repr__(self) -> str:
        inside = " + ".join(f"{c} t^{q} L^{k}" for (q, k), c in sorted(self.terms.items()))
        return f"Germ({inside} + o(t^{self.order}))"


def exponent(q: Exponent | fmpq) -> Exponent:
    """A rational exponent, an int where it is one."""
    if type(q) is fmpq:
        q = Fraction(int(q.p), int(q.q))
    return int(q) if q == int(q) else q  # type: ignore[arg-type, return-value]


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
    return int(s.sign(c)) * (-1) ** (k % 2)


def limit(a: Any) -> Scalar:
    """The limit as t goes to 0; an infinity that came from a logarithm or from data says so."""
    if type(a) is Flat:
        return ZERO
    if type(a) is not Germ:
        return a
    large = {key: c for key, c in a.terms.items() if key[0] < 0 or (key[0] == 0 and key[1] > 0)}
    if large:
        try:
            found = leading(Germ(large))
        except Stop as stop:
            return stop.value
        origin = "data" if a.data else "log" if found[0] == 0 else "pole"
        return Infinity(int(s.sign(found[2])) * (-1) ** (found[1] % 2), origin)
    if a.order <= 0:
        return Undefined("truncated", "too few terms of a series")
    return a.terms.get((0, 0), ZERO)


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


class GermAlgebra:
    """Operations on scalars and germs.

    window: how many powers of t a series is followed beyond its leading one.
    choice: draws the rate at which each infinity of the data goes to infinity.
    """

    def __init__(self, window: int, choice: np.random.Generator) -> None:
        self.window = window
        self.choice = choice

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
        return _stopping(self._add, a, b)

    def _add(self, a: Any, b: Any) -> Any:
        if type(a) is Flat or type(b) is Flat:
            if type(a) is Flat and type(b) is Flat:
                return Flat(a.sign if a.sign == b.sign else 0)
            flat, other = (a, b) if type(a) is Flat else (b, a)
            return flat if s.is_zero(other) else other
        if type(a) is not Germ and type(b) is not Germ:
            return s.add(a, b)
        for one, other in ((a, b), (b, a)):
            if type(one) is Infinity:
                end = limit(other)
                if type(end) is Infinity and end.sign != one.sign:
                    raise Stop("singular", "inf - inf")
                return one
        terms = dict(_terms(a))
        for key, c in _terms(b).items():
            terms[key] = s.add(terms[key], c) if key in terms else c
        return made(terms, min(_order(a), _order(b)), _data(a) or _data(b))

    def sub(self, a: Any, b: Any) -> Any:
        if a is b and type(a) is not Undefined:
            return ZERO
        return self.add(a, self.neg(b))

    def sum(self, elements: list[Any]) -> Any:
        total: Any = ZERO
        for a in elements:
            total = self.add(total, a)
        return total

    def mul(self, a: Any, b: Any) -> Any:
        return _stopping(self._mul, a, b)

    def _mul(self, a: Any, b: Any) -> Any:
        if type(a) in (Germ, Flat) and type(b) not in (Germ, Flat):
            a, b = b, a
        if type(b) not in (Germ, Flat):
            return s.mul(a, b)
        if type(a) is Undefined:
            return a
        if s.is_zero(a):
            if type(b) is Germ and b.data and type(limit(b)) is Infinity:
                raise Stop("nan", "0 times an infinity of the data")
            return ZERO
        if type(a) is Flat or type(b) is Flat:
            return self._mul_flat(a, b)
        if type(a) is Infinity:
            end = limit(b)
            return s.mul(a, end if not s.is_zero(end) else Undefined("singular", "0 * inf"))
        left, right = _terms(a), _terms(b)
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
        return _stopping(self._div, a, b)

    def _div(self, a: Any, b: Any) -> Any:
        if type(b) is Flat:
            if type(a) is Flat or not b.sign:
                raise Stop("singular", "a quotient of vanishing exponentials")
            toward = direction(a) if type(a) is Germ else s.sign(a)
            if toward == 0:
                return ZERO
            return known(toward) and Infinity(int(toward) * b.sign, "pole")
        if type(b) is Germ:
            return self._mul(a, self._power(b, s.MINUS_ONE))
        if type(a) is Germ or type(a) is Flat:
            if type(b) is Infinity:
                if type(a) is Germ and type(limit(a)) is Infinity:
                    raise Stop("singular", "inf / inf")
                return Flat(0) if b.origin == "pole" else ZERO
            inverse = s.div(ONE, b)
            if type(inverse) is Infinity:
                return Infinity(direction(a), "pole") if type(a) is Germ else Undefined("singular", "0 / 0")
            return self._mul(a, inverse)
        return s.div(a, b)

    def power(self, a: Any, b: Any) -> Any:
        return _stopping(self._power, a, b)

    def _power(self, a: Any, b: Any) -> Any:
        if type(b) in (Germ, Flat):
            return self.unary("exp", self._mul(b, self.unary("log", a)))
        if s.is_zero(b):
            return ONE
        if type(a) is Flat:
            s_b = s.sign(b)
            if s_b == 1:
                return Flat(1 if a.sign > 0 else 0)
            raise Stop("singular", "a vanishing exponential to a power")
        if type(a) is not Germ:
            return s.power(a, b)
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
        coefficient = known(s.power(c, b))
        binomial, coefficients = ONE, []
        for n in range(MOST_TERMS):
            coefficients.append(binomial)
            binomial = s.mul(binomial, s.div(s.sub(b, fmpq(n)), fmpq(n + 1)))
        series = self._series(coefficients, self._ratio(a, q, k, c))
        shift = Germ({(exponent(Fraction(q) * Fraction(int(b.p), int(b.q))), order_k): coefficient}, math.inf, a.data)
        return self._mul(shift if shift.terms.keys() != {(0, 0)} else coefficient, series)

    def _ratio(self, a: Germ, q: Exponent, k: int, c: Scalar) -> Any:
        """a / (its leading term) - 1: what is small against 1."""
        terms = {
            (exponent(p - q), i - k): known(s.div(d, c)) for (p, i), d in a.terms.items() if (p, i) != (q, k)
        }
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
        count = min(int(math.ceil(self.window / first)) + 1, len(coefficients))
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

            return _stopping(germ_functions.apply, self, name, a)
        return FUNCTIONS[name](a)

    def smooth(self, name: str, *operands: Any) -> Any:
        from stablegrad.exact.jets import JetAlgebra

        if any(type(a) in (Germ, Flat) for a in operands):
            return Undefined("unsupported", f"{name} has no series here")
        return JetAlgebra(0).smooth(name, *operands)

    def maximum(self, a: Any, b: Any) -> Any:
        return _stopping(self._maximum, a, b)

    def _maximum(self, a: Any, b: Any) -> Any:
        if a is b:
            return a
        if type(a) not in (Germ, Flat) and type(b) not in (Germ, Flat):
            return s.maximum(a, b)
        for one, other in ((a, b), (b, a)):
            if type(one) is Undefined:
                return one
            if type(one) is Infinity:
                return one if one.sign > 0 else other
        difference = self._add(a, self.neg(b))
        if type(difference) is Flat:
            if not difference.sign:
                raise Stop("unsupported", "a tie of vanishing exponentials")
            return a if difference.sign > 0 else b
        order = direction(difference) if type(difference) is Germ else known(s.sign(difference))
        return a if order >= 0 else b

    def minimum(self, a: Any, b: Any) -> Any:
        return self.neg(self.maximum(self.neg(a), self.neg(b)))

    def absolute(self, a: Any) -> Any:
        return self.maximum(a, self.neg(a)) if type(a) in (Germ, Flat) else s.absolute(a)

    def atan2(self, y: Any, x: Any) -> Any:
        return _stopping(self._atan2, y, x)

    def _atan2(self, y: Any, x: Any) -> Any:
        from stablegrad.exact.jets import angle

        if type(y) not in (Germ, Flat) and type(x) not in (Germ, Flat):
            return angle(y, x)
        below, right = (_direction(v) for v in (y, x))
        pi = arb.pi()
        if below == 0:
            return ZERO if right > 0 else pi
        height = known(self.absolute(y))
        if self._maximum(height, known(self.absolute(x))) is height:
            quotient = self.unary("atan", self._div(x, y))
            return self._add(self._mul(fmpq(below, 2), pi), self.neg(quotient))
        quotient = self.unary("atan", self._div(y, x))
        return quotient if right > 0 else self._add(self._mul(fmpq(below), pi), quotient)

    def logaddexp(self, a: Any, b: Any) -> Any:
        top = self.maximum(a, b)
        if type(top) is Undefined or (type(top) is Infinity and top.sign < 0):
            return top
        low = self.minimum(a, b)
        if type(top) is Infinity or (type(low) is Infinity and low.sign < 0):
            return top
        return self.add(top, self.unary("softplus", self.sub(low, top)))


def _terms(a: Any) -> Terms:
    return a.terms if type(a) is Germ else {(0, 0): known(a)}


def _order(a: Any) -> float | Exponent:
    return a.order if type(a) is Germ else math.inf


def _data(a: Any) -> bool:
    return type(a) is Germ and a.data


def _direction(a: Any) -> int:
    if type(a) is Germ:
        return direction(a)
    return a.sign if type(a) is Flat else known(s.sign(a))


def _stopping(f: Callable[..., Any], *operands: Any) -> Any:
    """f(*operands), where an undefined operand or a Stop gives an undefined result."""
    undefined = [a for a in operands if type(a) is Undefined]
    if undefined:
        return s.worse(*undefined)
    try:
        return f(*operands)
    except Stop as stop:
        return stop.value
