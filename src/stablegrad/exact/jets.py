"""The algebra of values with first and second derivatives: forward mode, sparse in the directions.

An element is a scalar (nothing depends on the inputs) or a `Jet`. Where the calculus of derivatives says nothing (an
infinite slope, a tie, 0/0), the entry is `Undefined("singular")`, and `derivative.py` asks a limit instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flint import fmpq

from stablegrad.exact import jet_choices, powers
from stablegrad.exact import scalars as s
from stablegrad.exact.jet import SINGULAR, Element, Jet, Pairs, accumulate, finite, value_of
from stablegrad.exact.meanings import FUNCTIONS, SMOOTH
from stablegrad.exact.rounded import round_scalar
from stablegrad.exact.scalars import ONE, ZERO, Infinity, Scalar, Undefined


class JetAlgebra:
    """Operations on scalars and jets.

    order: 0 (values), 1 (gradients) or 2. rows: keep second derivatives only for pairs with one input in `rows`.
    """

    def __init__(self, order: int, rows: frozenset[int] | None = None) -> None:
        self.order = order
        self.rows = rows
        self._remembered: dict[tuple, tuple] = {}
        self._floats: dict[float, Scalar] = {}

    # -- elements ------------------------------------------------------------------------------------------------

    def from_float(self, value: float) -> Element:
        made = self._floats.get(value) if value else None
        if made is None:
            made = s.from_float(value)
            if value and s.is_finite(made):
                self._floats[value] = made
        return made

    def seed(self, value: Scalar, direction: int) -> Element:
        return Jet(value, {direction: ONE}, {}) if self.order else value

    def point(self, a: Element) -> Scalar:
        """The value alone: what comparisons see."""
        return a.value if type(a) is Jet else a

    def freeze(self, a: Element) -> Scalar:
        """What stop_gradient leaves."""
        return self.point(a)

    def rounded(self, how: str, a: Scalar) -> Scalar:
        return round_scalar(how, a)

    def undefined(self, reason: Undefined, *operands: Element) -> Element:
        """`reason` as a value that depends on whatever the operands depend on."""
        keys = {key: reason for a in operands if type(a) is Jet for key in a.grad}
        if not keys:
            return reason
        return Jet(reason, keys, dict.fromkeys(self.pairs(keys, keys), reason))

    def without_derivative(self, a: Element, reason: Undefined) -> Element:
        """The value of `a`, each of its derivatives replaced by `reason`."""
        if type(a) is not Jet:
            return a
        made = self.undefined(reason, a)
        return Jet(a.value, made.grad, made.hess)

    def pairs(self, left: Iterable[int], right: Iterable[int]) -> Iterable[tuple[int, int]]:
        if self.order < 2:
            return
        rows = self.rows
        for i in left:
            for j in right:
                if i <= j and (rows is None or i in rows or j in rows):
                    yield i, j

    def remember(self, f: Callable[..., Scalar], *numbers: Scalar) -> Scalar:
        """Equal numbers, equal objects: a tie of two results is seen although balls never prove it."""
        key = (f, *map(id, numbers))
        found = self._remembered.get(key)
        if found is None:
            found = self._remembered[key] = (f(*numbers), numbers)
        return found[0]

    # -- composition ---------------------------------------------------------------------------------------------

    def unary(self, name: str, a: Element) -> Element:
        f = FUNCTIONS[name]
        if type(a) is not Jet:
            return f(a)
        x = a.value
        y = f(x)
        if type(x) is Infinity and s.is_finite(y):
            return self.flat(y, a)
        if type(y) is Undefined:
            return self.undefined(y, a)
        if not s.is_finite(x) or not s.is_finite(y):
            return self.without_derivative(Jet(y, a.grad, a.hess), SINGULAR)
        first = s.guarded(f.first, x, y)
        second = s.guarded(f.second, x, y) if self.order > 1 else ZERO
        return self.compose(y, ((a, first),), {(0, 0): second})

    def flat(self, value: Scalar, *operands: Element) -> Element:
        """A finite limit at an infinity: slope 0, but for directions in which the infinity itself is singular."""
        keys = {i: g for a in operands if type(a) is Jet for i, g in a.grad.items() if type(g) is Undefined}
        return Jet(value, keys, dict.fromkeys(self.pairs(keys, keys), SINGULAR)) if keys else value

    def compose(
        self, y: Scalar, slopes: tuple[tuple[Element, Scalar], ...], curves: dict[tuple[int, int], Scalar]
    ) -> Element:
        """The chain rule: y with derivatives by its operands, and second ones by pairs of operands."""
        mul, add = s.mul, s.add
        grad: dict[int, Scalar] = {}
        hess: Pairs = {}
        for a, slope in slopes:
            if type(a) is Jet:
                accumulate(grad, {i: mul(slope, g) for i, g in a.grad.items()})
                if self.order > 1:
                    accumulate(hess, {pair: mul(slope, h) for pair, h in a.hess.items()})
        if self.order > 1:
            for (p, q), curve in curves.items():
                a, b = slopes[p][0], slopes[q][0]
                if type(a) is not Jet or type(b) is not Jet or s.is_zero(curve):
                    continue
                part: Pairs = {}
                for i, j in self.pairs(a.grad, b.grad):
                    part[i, j] = mul(curve, mul(a.grad[i], b.grad[j]))
                if p != q:
                    for j, i in self.pairs(b.grad, a.grad):
                        term = mul(curve, mul(a.grad[i], b.grad[j]))
                        part[j, i] = add(part[j, i], term) if (j, i) in part else term
                accumulate(hess, part)
        return Jet(y, grad, hess) if grad else y

    # -- arithmetic ----------------------------------------------------------------------------------------------

    def neg(self, a: Element) -> Element:
        if type(a) is not Jet:
            return s.neg(a)
        return Jet(s.neg(a.value), {i: s.neg(g) for i, g in a.grad.items()}, {p: s.neg(h) for p, h in a.hess.items()})

    def add(self, a: Element, b: Element) -> Element:
        if type(a) is not Jet and type(b) is not Jet:
            return self.remember(s.add, a, b)
        if s.is_zero(a):
            return b
        if s.is_zero(b):
            return a
        value = self.remember(s.add, value_of(a), value_of(b))
        if type(value) is Undefined:
            return self.undefined(value, a, b)
        return self.total(value, (a, b))

    def total(self, value: Scalar, elements: Iterable[Element]) -> Element:
        grad: dict[int, Scalar] = {}
        hess: Pairs = {}
        for a in elements:
            if type(a) is Jet:
                accumulate(grad, a.grad)
                accumulate(hess, a.hess)
        return Jet(value, grad, hess) if grad else value

    def sum(self, elements: list[Element]) -> Element:
        """The sum of a list, 0 for an empty one."""
        if len(elements) == 1:
            return elements[0]
        value: Scalar = ZERO
        for a in elements:
            value = s.add(value, value_of(a))
        if type(value) is Undefined:
            return self.undefined(value, *elements)
        return self.total(value, elements)

    def sub(self, a: Element, b: Element) -> Element:
        if a is b and type(a) is not Undefined and type(value_of(a)) is not Undefined:
            return ZERO
        if type(a) is not Jet and type(b) is not Jet:
            return self.remember(s.sub, a, b)
        if s.is_zero(b):
            return a
        value = self.remember(s.sub, value_of(a), value_of(b))
        if type(value) is Undefined:
            return self.undefined(value, a, b)
        return self.total(value, (a, self.neg(b)))

    def mul(self, a: Element, b: Element) -> Element:
        if type(a) is not Jet:
            if type(b) is not Jet:
                return self.remember(s.mul, a, b)
            a, b = b, a
        x, y = a.value, value_of(b)
        value = self.remember(s.mul, x, y)
        if type(value) is Undefined:
            return self.undefined(value, a, b)
        if type(b) is not Jet:
            if type(b) is fmpq:
                if not b:
                    return value  # a constant factor 0: value and derivatives are 0 on every path
                if b == 1:
                    return a
            mul = s.mul
            return Jet(value, {i: mul(g, b) for i, g in a.grad.items()}, {p: mul(h, b) for p, h in a.hess.items()})
        return self.compose(value, ((a, y), (b, x)), {(0, 1): ONE})

    def div(self, a: Element, b: Element) -> Element:
        if type(a) is not Jet and type(b) is not Jet:
            return self.remember(s.div, a, b)
        x, y = value_of(a), value_of(b)
        value = self.remember(s.div, x, y)
        if type(value) is Undefined:
            return self.undefined(value, a, b)
        if type(b) is not Jet:
            return a if type(b) is fmpq and b == 1 else self.mul(a, self.remember(s.div, ONE, b))
        if s.is_zero(a):
            return ZERO
        if type(y) is Infinity:
            return self.flat(value, a, b)
        if not s.is_finite(value):
            return self.without_derivative(self.total(value, (a, b)), SINGULAR)
        inverse = s.div(ONE, y)
        slope = s.neg(s.mul(value, inverse))
        if self.order < 2:
            return self.compose(value, ((a, inverse), (b, slope)), {})
        square = s.mul(inverse, inverse)
        curves = {(0, 1): s.neg(square), (1, 1): s.mul(fmpq(2), s.mul(value, square))}
        return self.compose(value, ((a, inverse), (b, slope)), curves)

    def power(self, a: Element, b: Element) -> Element:
        if type(a) is not Jet and type(b) is not Jet:
            return self.remember(powers.power, a, b)
        x, y = value_of(a), value_of(b)
        value = self.remember(powers.power, x, y)
        if type(value) is Undefined:
            return self.undefined(value, a, b)
        if type(b) is not Jet and s.is_zero(b):
            return ONE
        if not s.is_finite(value) or not s.is_finite(x) or not s.is_finite(y):
            if s.is_finite(value) and type(x) is Infinity and type(b) is not Jet:
                return self.flat(value, a)
            return self.without_derivative(self.total(value, (a, b)), SINGULAR)
        log = FUNCTIONS["log"](x) if type(b) is Jet else ZERO
        if type(log) is Infinity:
            log = SINGULAR  # a zero base: the limit decides
        slope = finite(s.mul(y, powers.power(x, s.sub(y, ONE))))
        by_exponent = s.mul(value, log)
        curves: dict[tuple[int, int], Scalar] = {}
        if self.order > 1:
            inner = s.sub(y, ONE)
            curves[0, 0] = (
                finite(s.mul(s.mul(y, inner), powers.power(x, s.sub(inner, ONE)))) if not s.is_zero(inner) else ZERO
            )
            curves[0, 1] = s.mul(finite(powers.power(x, inner)), s.add(ONE, s.mul(y, log)))
            curves[1, 1] = s.mul(by_exponent, log)
        return self.compose(value, ((a, slope), (b, by_exponent)), curves)

    def smooth(self, name: str, *operands: Element) -> Element:
        """A function of several numbers, inside its domain."""
        f = SMOOTH[name]
        points = [value_of(a) for a in operands]
        if any(type(x) is Undefined for x in points):
            return self.undefined(s.worse(*points), *operands)
        if not all(map(s.is_finite, points)):
            return self.undefined(Undefined("unsupported", f"{name} at an infinity"), *operands)
        value = s.guarded(lambda *numbers: f.value(*map(s.as_ball, numbers)), *points)
        if type(value) is Undefined:
            return self.undefined(value, *operands)
        unknown = Undefined("unsupported", f"{name} has no such derivative here")

        def number(formula: Callable | None) -> Scalar:
            return unknown if formula is None else s.guarded(formula, *points)

        count = len(operands)
        pairs = [(p, q) for q in range(count) for p in range(q + 1)] if self.order > 1 else []
        curves = {pair: number(f.curves.get(pair)) for pair in pairs}
        return self.compose(value, tuple((a, number(g)) for a, g in zip(operands, f.slopes)), curves)

    # -- choices -------------------------------------------------------------------------------------------------

    def maximum(self, a: Element, b: Element) -> Element:
        return jet_choices.maximum(self, a, b)

    def minimum(self, a: Element, b: Element) -> Element:
        return jet_choices.minimum(self, a, b)

    def absolute(self, a: Element) -> Element:
        return jet_choices.absolute(self, a)

    def atan2(self, y: Element, x: Element) -> Element:
        return jet_choices.atan2(self, y, x)

    def logaddexp(self, a: Element, b: Element) -> Element:
        return jet_choices.logaddexp(self, a, b)
