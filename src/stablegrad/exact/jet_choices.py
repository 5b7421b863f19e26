"""Choices between jets: maxima, sizes, angles. A tie keeps the derivatives that both sides share."""

from __future__ import annotations

from typing import Any

from flint import fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.jet import SINGULAR, Element, Jet, angle, same, value_of
from stablegrad.exact.scalars import ZERO, Infinity, Scalar, Undefined


def maximum(k: Any, a: Element, b: Element) -> Element:
    if a is b:
        return a
    x, y = value_of(a), value_of(b)
    order = s.compare(x, y)
    if type(order) is Undefined:
        hull = s.maximum(x, y)
        return k.undefined(hull, a, b) if type(hull) is Undefined else _merge(k, hull, a, b, order)
    if order:
        return a if order > 0 else b
    if type(x) is Infinity:
        return _merge(k, s.maximum(x, y), a, b, SINGULAR)
    return _merge(k, x, a, b, Undefined("singular", "a tie"))


def minimum(k: Any, a: Element, b: Element) -> Element:
    return a if a is b else k.neg(k.maximum(k.neg(a), k.neg(b)))


def _merge(k: Any, value: Scalar, a: Element, b: Element, reason: Undefined) -> Element:
    """A tie: entries that both sides share stay, the others are undefined."""
    if type(a) is not Jet and type(b) is not Jet:
        return value

    def shared(left: dict, right: dict) -> dict:
        return {
            key: left.get(key, ZERO) if same(left.get(key, ZERO), right.get(key, ZERO)) else reason
            for key in {**left, **right}
        }

    grads = [x.grad if type(x) is Jet else {} for x in (a, b)]
    pairs = [x.hess if type(x) is Jet else {} for x in (a, b)]
    grad, hess = shared(*grads), shared(*pairs)
    broken = [i for i, g in grad.items() if g is reason]
    hess.update(dict.fromkeys(k.pairs(grad, broken), reason))
    hess.update(dict.fromkeys(k.pairs(broken, grad), reason))
    return Jet(value, grad, hess)


def absolute(k: Any, a: Element) -> Element:
    if type(a) is not Jet:
        return s.absolute(a)
    order = s.sign(a.value)
    if type(order) is Undefined:
        return k.undefined(order, a) if type(a.value) is Undefined else _merge(k,
            s.absolute(a.value), a, k.neg(a), order)  # fmt: skip
    if order == 0:
        return _merge(k, ZERO, a, k.neg(a), Undefined("singular", "abs at 0"))
    return a if order > 0 else k.neg(a)


def atan2(k: Any, y: Element, x: Element) -> Element:
    p, q = value_of(y), value_of(x)
    value = k.remember(angle, p, q)
    if type(y) is not Jet and type(x) is not Jet:
        return value
    if type(value) is Undefined:
        return k.undefined(value, y, x)
    if not s.is_finite(p) or not s.is_finite(q):
        return k.flat(value, y, x)
    square = s.add(s.mul(p, p), s.mul(q, q))
    if s.is_zero(square):
        return k.without_derivative(k.total(value, (y, x)), Undefined("singular", "atan2 at the origin"))
    by_y, by_x = s.div(q, square), s.neg(s.div(p, square))
    twice = s.mul(fmpq(2), s.mul(by_y, by_x))
    across = s.sub(s.mul(by_x, by_x), s.mul(by_y, by_y))
    return k.compose(value, ((y, by_y), (x, by_x)), {(0, 0): twice, (0, 1): across, (1, 1): s.neg(twice)})


def logaddexp(k: Any, a: Element, b: Element) -> Element:
    for one, other in ((a, b), (b, a)):
        if type(value_of(one)) is Infinity and type(value_of(other)) is not Undefined:
            kept = other if value_of(one).sign < 0 else one
            lost = k.flat(value_of(kept), a, b)
            return k.total(value_of(kept), (kept, lost)) if type(lost) is Jet else kept
    return k.add(a, k.unary("softplus", k.sub(b, a)))
