"""Choices between germs, by what holds just above t = 0: maxima, sizes, angles."""

from __future__ import annotations

from typing import Any

from flint import arb, fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.germ import Flat, Germ, Stop, direction, known, sign_of, stopping
from stablegrad.exact.jet import angle
from stablegrad.exact.scalars import ZERO, Infinity, Undefined


def maximum(k: Any, a: Any, b: Any) -> Any:
    return stopping(_maximum, k, a, b)


def _maximum(k: Any, a: Any, b: Any) -> Any:
    if a is b:
        return a
    if type(a) not in (Germ, Flat) and type(b) not in (Germ, Flat):
        return s.maximum(a, b)
    for one, other in ((a, b), (b, a)):
        if type(one) is Undefined:
            return one
        if type(one) is Infinity:
            return one if one.sign > 0 else other
    difference = k.sub(a, b)
    if type(difference) is Undefined:
        raise Stop(difference)
    if type(difference) is Flat:
        if not difference.sign:
            raise Stop("unsupported", "a tie of vanishing exponentials")
        return a if difference.sign > 0 else b
    order = direction(difference) if type(difference) is Germ else known(s.sign(difference))
    return a if order >= 0 else b


def minimum(k: Any, a: Any, b: Any) -> Any:
    return k.neg(k.maximum(k.neg(a), k.neg(b)))


def absolute(k: Any, a: Any) -> Any:
    return k.maximum(a, k.neg(a)) if type(a) in (Germ, Flat) else s.absolute(a)


def atan2(k: Any, y: Any, x: Any) -> Any:
    return stopping(_atan2, k, y, x)


def _atan2(k: Any, y: Any, x: Any) -> Any:
    if type(y) not in (Germ, Flat) and type(x) not in (Germ, Flat):
        return angle(y, x)
    below, right = (sign_of(v) for v in (y, x))
    pi = arb.pi()
    if below == 0:
        return ZERO if right > 0 else pi
    height = known(k.absolute(y))
    if _maximum(k, height, known(k.absolute(x))) is height:
        quotient = k.unary("atan", k._div(x, y))
        return k._add(k._mul(fmpq(below, 2), pi), k.neg(quotient))
    quotient = k.unary("atan", k._div(y, x))
    return quotient if right > 0 else k._add(k._mul(fmpq(below), pi), quotient)


def logaddexp(k: Any, a: Any, b: Any) -> Any:
    top = k.maximum(a, b)
    if type(top) is Undefined or (type(top) is Infinity and top.sign < 0):
        return top
    low = k.minimum(a, b)
    if type(top) is Infinity or (type(low) is Infinity and low.sign < 0):
        return top
    return k.add(top, k.unary("softplus", k.sub(low, top)))
