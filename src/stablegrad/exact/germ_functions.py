"""Functions of one germ: at regular points their power series, elsewhere by way of exp, log and roots."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
from flint import arb, arb_series, fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.germ import (
    Flat,
    Germ,
    Stop,
    Terms,
    direction,
    exponent,
    known,
    leading,
    limit,
    made,
    without_limit,
)
from stablegrad.exact.germs import MOST_TERMS
from stablegrad.exact.meanings import FUNCTIONS
from stablegrad.exact.scalars import HALF, LOG_ZERO, ONE, ZERO, Infinity, Scalar, Undefined

TWO = fmpq(2)


def apply(k: Any, name: str, a: Germ | Flat) -> Any:
    """The function `name` of a germ, in the germ algebra `k`."""
    if type(a) is Flat and name not in THROUGH_ZERO:
        value = FUNCTIONS[name](ZERO)
        return Flat(a.sign) if s.is_zero(value) else made({(0, 0): known(value)}, k.window)
    if name in SPECIAL:
        return SPECIAL[name](k, a)
    end = limit(a)
    if type(end) is Undefined:
        raise Stop(end)
    if type(end) is Infinity:
        return _at_infinity(k, name, a, end)
    if name not in ANALYTIC:
        raise Stop("unsupported", f"{name} has no series here")
    value = FUNCTIONS[name](end)
    if type(value) is Undefined:
        raise Stop(value)
    if type(value) is Infinity or (name == "lgamma" and type(end) is fmpq and end <= 0):
        raise Stop("unsupported", f"{name} at a pole")
    return k._series(_taylor(name, end, value, k.window * 4 + 4), without_limit(a))


def _taylor(name: str, x: Scalar, value: Scalar, count: int) -> list[Scalar]:
    """Power series coefficients of an analytic function at a regular point."""
    cap = flint.ctx.cap
    try:
        flint.ctx.cap = count
        series = ANALYTIC[name](arb_series([s.as_ball(x), 1], count))
        found = [s.exactly(arb(series[n])) for n in range(count)]
    finally:
        flint.ctx.cap = cap
    found[0] = value
    return [known(c) for c in found]


# A vanishing exponential goes through these as through a power; through any other function f as f(0).
THROUGH_ZERO = ("log", "sqrt", "rsqrt", "cbrt")

ANALYTIC: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "tan": lambda x: x.tan(),
    "atan": lambda x: x.atan(),
    "asin": lambda x: x.asin(),
    "acos": lambda x: x.acos(),
    "erf": lambda x: x.erf(),
    "erfc": lambda x: x.erfc(),
    "asinh": lambda x: (x * x + 1).rsqrt().integral(),
    "lgamma": lambda x: x.lgamma(),
}


def _at_infinity(k: Any, name: str, a: Any, end: Infinity) -> Any:
    """Functions with finite limits: the distance from the limit is flat, or (atan) a series in 1 / a."""
    if name == "atan":
        quarter = k._mul(fmpq(end.sign, 2), arb.pi())
        return k._add(quarter, k.neg(k.unary("atan", k._div(ONE, a))))
    value = FUNCTIONS[name](end)
    if name in ("erf", "erfc") and s.is_finite(value):
        return value if value else Flat(1)
    if type(value) is Infinity:
        return value
    raise Stop(value if type(value) is Undefined else Undefined("unsupported", f"{name} at an infinity"))


# -- exp and log ---------------------------------------------------------------------------------------------------

_EXPONENTIAL = [fmpq(1, math.factorial(n)) for n in range(MOST_TERMS)]
_LOGARITHM = [ZERO] + [fmpq((-1) ** (n + 1), n) for n in range(1, MOST_TERMS)]


def _exp(k: Any, a: Germ) -> Any:
    large = {key: c for key, c in a.terms.items() if key[0] < 0 or (key[0] == 0 and key[1] != 0)}
    shift: Any = ONE
    if large:
        q, power, c = leading(Germ(large))
        if q < 0 or power > 1:
            return Flat(1) if direction(Germ(large)) < 0 else Infinity(1, "data" if a.data else "exp")
        if len(large) > 1 or power < 1 or type(c) is not fmpq:
            raise Stop("unsupported", "the exponential of such a logarithm")
        shift = Germ({(exponent(c), 0): ONE})
    if a.order <= 0:
        raise Stop("truncated", "too few terms of a series")
    constant = FUNCTIONS["exp"](a.terms.get((0, 0), ZERO))
    small = made({key: c for key, c in a.terms.items() if key[0] > 0}, a.order)
    return k._mul(k._mul(known(constant), k._series(_EXPONENTIAL, small)), shift)


def _log(k: Any, a: Germ | Flat) -> Any:
    if type(a) is Flat:
        if a.sign < 0:
            raise Stop("nan", "the logarithm of a negative number")
        return LOG_ZERO
    q, power, c = leading(a)
    if direction(a) < 0:
        raise Stop("nan", "the logarithm of a negative number")
    if power:
        raise Stop("unsupported", "the logarithm of a logarithm")
    rate = Fraction(q)
    constant: Terms = {(0, 0): FUNCTIONS["log"](c), (0, 1): fmpq(rate.numerator, rate.denominator)}
    return k._add(made(constant, math.inf, a.data), k._series(_LOGARITHM, k._ratio(a, q, 0, c)))


# -- what follows from them ----------------------------------------------------------------------------------------


def _logistic(k: Any, a: Any) -> Any:
    return k.div(ONE, k.add(ONE, k.unary("exp", k.neg(a))))


def _tanh(k: Any, a: Any) -> Any:
    # Of -|a|, so that the exponential does not grow.
    if type(a) is Germ and a.terms and direction(a) > 0:
        return k.neg(_tanh(k, k.neg(a)))
    twice = k.unary("exp", k.mul(TWO, a))
    return k.div(k.sub(twice, ONE), k.add(twice, ONE))


def _softplus(k: Any, a: Any) -> Any:
    end = limit(a)
    if type(end) is Infinity and end.sign > 0:
        return k.add(a, k.unary("log", k.add(ONE, k.unary("exp", k.neg(a)))))
    return k.unary("log", k.add(ONE, k.unary("exp", a)))


def _hyperbolic(sign: int) -> Callable[[Any, Any], Any]:
    def of(k: Any, a: Any) -> Any:
        up, down = k.unary("exp", a), k.unary("exp", k.neg(a))
        return k.mul(HALF, k.add(up, down) if sign > 0 else k.sub(up, down))

    return of


def _root(n: int, sign: int) -> Callable[[Any, Any], Any]:
    def of(k: Any, a: Any) -> Any:
        if n == 3 and type(a) is Germ and direction(a) < 0:
            return k.neg(k.power(k.neg(a), fmpq(sign, n)))
        return k.power(a, fmpq(sign, n))

    return of


def _asinh(k: Any, a: Any) -> Any:
    if s.is_finite(limit(a)):
        return _regular(k, "asinh", a)
    if direction(a) < 0:
        return k.neg(_asinh(k, k.neg(a)))
    return k.unary("log", k.add(a, k.power(k.add(ONE, k.mul(a, a)), HALF)))


def _acos(k: Any, a: Any) -> Any:
    """acos(x) = 2 asin(sqrt((1 - x) / 2)), regular at x = 1; by reflection at -1."""
    end = limit(a)
    if type(end) is fmpq and end == 1:
        return k.mul(TWO, k.unary("asin", k.power(k.mul(HALF, k.sub(ONE, a)), HALF)))
    if type(end) is fmpq and end == -1:
        return k.sub(arb.pi(), _acos(k, k.neg(a)))
    return _regular(k, "acos", a)


def _asin(k: Any, a: Any) -> Any:
    end = limit(a)
    if type(end) is fmpq and abs(end) == 1:
        return k.sub(k.mul(HALF, arb.pi()), _acos(k, a))
    return _regular(k, "asin", a)


def _acosh(k: Any, a: Any) -> Any:
    end = limit(a)
    if type(end) is fmpq and end == 1:
        return k.mul(TWO, k.unary("asinh", k.power(k.mul(HALF, k.sub(a, ONE)), HALF)))
    return k.unary("log", k.add(a, k.power(k.sub(k.mul(a, a), ONE), HALF)))


def _atanh(k: Any, a: Any) -> Any:
    return k.mul(HALF, k.sub(k.unary("log", k.add(ONE, a)), k.unary("log", k.sub(ONE, a))))


def _regular(k: Any, name: str, a: Any) -> Any:
    end = limit(a)
    value = FUNCTIONS[name](end)
    if not s.is_finite(value):
        raise Stop(value if type(value) is Undefined else Undefined("unsupported", f"{name} at an infinity"))
    return k._series(_taylor(name, end, value, k.window * 4 + 4), without_limit(a))


def _lgamma(k: Any, a: Any) -> Any:
    """At a pole -n by log|G(x)| = log|G(x + n + 1)| - sum log|x + m|."""
    end = limit(a)
    if type(end) is fmpq and end.q == 1 and -64 <= end <= 0:
        top = k.add(a, ONE - end)
        below = k.sum([k.unary("log", k.absolute(k.add(a, fmpq(m)))) for m in range(int(1 - end))])
        return k.sub(_regular(k, "lgamma", top), below)
    if s.is_finite(end) and end < 0:
        raise Stop("unsupported", "the series of lgamma at a negative number")
    return _regular(k, "lgamma", a)


SPECIAL: dict[str, Callable[[Any, Any], Any]] = {
    "exp": _exp,
    "log": _log,
    "exp2": lambda k, a: k.unary("exp", k.mul(arb.const_log2(), a)),
    "expm1": lambda k, a: k.sub(k.unary("exp", a), ONE),
    "log1p": lambda k, a: k.unary("log", k.add(ONE, a)),
    "logistic": _logistic,
    "softplus": _softplus,
    "tanh": _tanh,
    "sinh": _hyperbolic(-1),
    "cosh": _hyperbolic(1),
    "sqrt": _root(2, 1),
    "rsqrt": _root(2, -1),
    "cbrt": _root(3, 1),
    "asinh": _asinh,
    "asin": _asin,
    "acos": _acos,
    "acosh": _acosh,
    "atanh": _atanh,
    "lgamma": _lgamma,
}
