"""What each operation answers when asked to be a few scaled terms. None: the node itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stablegrad.facts.reach import EXPONENTIAL
from stablegrad.graph.node import Node, is_float, literal_number
from stablegrad.graph.rational import Rational, magnitude, natural_logarithm, quotient
from stablegrad.rules import companions as _companions
from stablegrad.rules import scaled_along_axes as along_axes
from stablegrad.rules import scaled_exponentials as exponentials
from stablegrad.rules.differences import simplified_sum
from stablegrad.rules.forms import HALF, ONE, Linear, Term, collect
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.powers import power_of_term, product_of_terms
from stablegrad.rules.scaled_exponentials import as_scaled

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions, Scaled


def _neg(c: Companions, node: Node) -> Scaled:
    inner = c.scaled(node.inputs[0])
    return as_scaled([t.scaled(-ONE) for t in inner.terms], inner.guards)


def _added(sign: Rational) -> Callable[[Companions, Node], Scaled | None]:
    def answer(c: Companions, node: Node) -> Scaled | None:
        if sign < 0 and literal_number(node.inputs[0]) == 1 and _is_one_minus(node.inputs[1]):
            return c.scaled(node.inputs[1].inputs[1])
        left, right = c.scaled(node.inputs[0]), c.scaled(node.inputs[1])
        terms = [*left.terms, *(t.scaled(sign) for t in right.terms)]
        if not any(t.exponent or t.is_number() or len(t.factors) > 1 or not _plain(c, t) for t in terms):
            merged = collect(terms)
            if len(merged) >= len(terms):
                return None  # a sum of plain values: one value
        if len(terms) > 2 and len(collect(terms)) == len(terms):
            terms = [*_closed(c, left, right, node.inputs[0]), *(
                t.scaled(sign) for t in _closed(c, right, left, node.inputs[1]))]  # fmt: skip
        terms = simplified_sum(c, _flattened(c, terms), node)
        return as_scaled(terms, left.guards, right.guards)

    return answer


def _is_one_minus(node: Node) -> bool:
    return node.op.name == "sub" and literal_number(node.inputs[0]) == 1


def _closed(c: Companions, scaled: Scaled, beside: Scaled, node: Node) -> tuple[Term, ...]:
    """The terms of an operand of a longer sum. What is exact as it stands is one term: a difference such as expm1(y)
    would cancel against itself among others, and so would the slopes of cosh(x) beside plain values."""
    if _is_difference(scaled.terms) or (
        _is_even(scaled.terms) and not any(t.exponent or t.is_number() for t in beside.terms)
    ):
        return (c.single(node)[0],)
    return scaled.terms


def _is_difference(terms: tuple[Term, ...]) -> bool:
    return len({t.coefficient > 0 for t in terms}) == 2


def _is_even(terms: tuple[Term, ...]) -> bool:
    """e^x + e^-x"""
    return len(terms) == 2 and bool(terms[0].exponent.parts) and not terms[0].log.plus(terms[1].log).parts


def _flattened(c: Companions, terms: list[Term]) -> list[Term]:
    """A sum that is one of the terms opened, where few remain: (e^a + e^b) + e^d is one sum of three."""
    out: list[Term] = []
    for term in terms:
        ((node, power),) = term.factors.items() if len(term.factors) == 1 else ((None, 0),)
        inner = c.terms_of(node) if node is not None and power == 1 else None
        beside = Term(term.coefficient, {}, term.exponent)
        closed = inner is None or _is_difference(inner) or _is_even(inner)
        out += [term] if closed else [t.times(beside) for t in inner or ()]
    return out if len(out) <= _companions.MAX_TERMS else terms


def _plain(c: Companions, term: Term) -> bool:
    return all(c.trivial(f) and c.terms_of(f) is None for f in term.factors)


def _mul(c: Companions, node: Node) -> Scaled:
    for number, other in ((0, 1), (1, 0)):
        value = literal_number(node.inputs[number])
        if value is not None:
            inner = c.scaled(node.inputs[other])
            return as_scaled([t.scaled(value) for t in inner.terms] if value else [], inner.guards)
    (left, g), (right, h) = c.single(node.inputs[0]), c.single(node.inputs[1])
    product, roots = product_of_terms(c, left, right)
    return as_scaled([product], g, h, roots)


def _div(c: Companions, node: Node) -> Scaled | None:
    value = literal_number(node.inputs[1])
    if value:
        inner = c.scaled(node.inputs[0])
        return as_scaled([t.scaled(quotient(1, value)) for t in inner.terms], inner.guards)
    (above, g), (below, h) = c.single(node.inputs[0]), c.single(node.inputs[1])
    if not below.coefficient:
        return None
    inverse = power_of_term(c, below, -ONE)
    if inverse is None:
        return None
    quotient_of_both, roots = product_of_terms(c, above, inverse)
    gone = above.factors if quotient_of_both.is_number() else ()
    kept = frozenset(_finite(c, f) for f in gone if not is_sum_of_exponentials(c, f))
    return as_scaled([quotient_of_both], g, h, roots, kept)


def _finite(c: Companions, node: Node) -> Node:
    """1, or -1 where `node` is infinite or NaN: a guard of what was divided by itself."""
    usable = c.graph.node("is_finite", (node,), (), node.shape, np.dtype(bool))
    one, less = (c.build.number(k, node.dtype) for k in (ONE, -ONE))
    return c.graph.node("select", (usable, less, one), (), node.shape, node.dtype)


def _power(number: Rational | None) -> Callable[[Companions, Node], Scaled | None]:
    def answer(c: Companions, node: Node) -> Scaled | None:
        power = node.params[0] if number is None else number
        term, guards = c.single(node.inputs[0])
        raised = power_of_term(c, term, power)
        return None if raised is None else as_scaled([raised], guards)

    return answer


def _pow(c: Companions, node: Node) -> Scaled | None:
    power = literal_number(node.inputs[1])
    if power is not None:
        return _power(power)(c, node)
    base = literal_number(node.inputs[0])
    if base is None or base <= 0 or not is_float(node.inputs[1].dtype):
        return None
    return exponentials.exponential(c, c.linear(node.inputs[1]).scaled(natural_logarithm(base)))


def _abs(c: Companions, node: Node) -> Scaled | None:
    inner = c.scaled(node.inputs[0])
    if c.facts.nonnegative(node.inputs[0]):
        return inner
    if len(inner.terms) != 1:
        return None
    term = inner.terms[0]
    if not term.exponent:
        return None
    factors: dict[Node, Rational] = {}
    for factor, power in term.factors.items():
        even = power.denominator == 1 and power.numerator % 2 == 0
        known = even or power.denominator != 1 or c.facts.nonnegative(factor)
        factors[factor if known else c.build.elementwise("abs", factor)] = power
    return as_scaled([Term(magnitude(term.coefficient), factors, term.exponent)], inner.guards)


def _guard_of_nonnegative(c: Companions, node: Node) -> Scaled | None:
    """max(p, 0), relu(p) and clip(p, 0, 1) of a p that is in the range anyway: p."""
    x = node.inputs[0] if node.op.name == "relu" else node.inputs[1 if node.op.name == "clamp" else 0]
    if node.op.name == "max" and literal_number(x) is not None:
        x = node.inputs[1]
    low, high = c.facts.interval(x)
    below = c.facts.interval(node.inputs[0])[1] if node.op.name == "clamp" else 0.0
    if node.op.name == "max":
        below = max((float(k) for i in node.inputs if (k := literal_number(i)) is not None), default=math.inf)
    above = c.facts.interval(node.inputs[2])[0] if node.op.name == "clamp" else math.inf
    if not (low >= below and high <= above) or c.trivial(x):
        return None
    return c.scaled(x)


def _extreme(c: Companions, node: Node) -> Scaled | None:
    """max(e^a, e^b) is e^max(a, b), numbers among them; max(p, k) of a p that is never less than k is p."""
    guarded = _guard_of_nonnegative(c, node) if node.op.name == "max" else None
    if guarded is not None or not c.facts.reach(node) & EXPONENTIAL:
        return guarded
    terms = []
    for one in node.inputs:
        answer = c.scaled(one)
        term = answer.single()
        if term is None or answer.guards or term.factors or term.coefficient <= 0:
            return None
        terms.append(term)
    from stablegrad.rules.log_of_sum import write_sum

    exponents = [write_sum(c, t.log, node) for t in terms]
    return as_scaled([Term(exponent=Linear({c.build.elementwise(node.op.name, *exponents): ONE}))])


SCALED_ANSWERS: dict[str, Callable[[Companions, Node], Scaled | None]] = {
    "exp": exponentials.exp_answer,
    "exp2": exponentials.exp2_answer,
    "expm1": exponentials.expm1_answer,
    "cosh": exponentials.two_exponentials(ONE),
    "sinh": exponentials.two_exponentials(-ONE),
    "logistic": exponentials.logistic_answer,
    "tanh": exponentials.tanh_answer,
    "neg": _neg,
    "add": _added(ONE),
    "sub": _added(-ONE),
    "mul": _mul,
    "div": _div,
    "integer_pow": _power(None),
    "square": _power(2),
    "sqrt": _power(HALF),
    "rsqrt": _power(-HALF),
    "pow": _pow,
    "abs": _abs,
    "max": _extreme,
    "min": _extreme,
    "relu": _guard_of_nonnegative,
    "clamp": _guard_of_nonnegative,
    "cast": along_axes.cast_answer,
    "select": along_axes.select_answer,
    "reduce_sum": along_axes.reduce_sum_answer,
    "reduce_prod": along_axes.reduce_prod_answer,
    "dot_general": along_axes.dot_general_answer,
    "arrange": along_axes.moved_answer,
    "reshape": along_axes.moved_answer,
    "move": along_axes.moved_answer,
    "stop_gradient": along_axes.moved_answer,
}
