"""A term raised to a rational power, with the sign of its factors respected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, integer_power, magnitude
from stablegrad.rules.forms import HALF, ONE, Term, is_mask
from stablegrad.rules.hazards import is_sum_of_exponentials, safely_positive

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def power_of_term(c: Companions, term: Term, power: Rational) -> Term | None:
    """term ** power, or None where no formal answer is safe.

    (u**2)**0.5 is |u|, and (u v)**0.5 with u and v both negative is finite: factors of unknown sign are joined into
    one before a root is taken.
    """
    if power == 1:
        return term
    if not term.coefficient:
        return None
    masked = [n for n in term.factors if is_mask(n)]
    if masked and power < 0:
        return None
    if power.denominator == 1:
        factors = {n: p * power for n, p in term.factors.items()} | dict.fromkeys(masked, ONE)
        factors = _roots_kept(c, term.factors, factors)
        return Term(integer_power(term.coefficient, int(power)), factors, term.exponent.scaled(power))
    term = joined_signs(c, mantissas_apart(c, term))
    if term.coefficient < 0:
        return None
    factors = {}
    for node, p in term.factors.items():
        base = node
        if _is_even(p) and not _is_even(p * power) and not c.facts.nonnegative(node):
            base = c.build.elementwise("abs", node)
        factors[base] = factors.get(base, 0) + p * power
    exponent = term.exponent.scaled(power).with_log(term.coefficient, power)
    return Term(ONE, factors | dict.fromkeys(masked, ONE), exponent)


def product_of_terms(c: Companions, left: Term, right: Term) -> tuple[Term, frozenset[Node]]:
    """left * right, and what must not be negative for it to hold: sqrt(u) / sqrt(u) is 1 for no negative u."""
    out = left.times(right)
    roots = [n for n, p in left.factors.items() if p.denominator != 1 and n in right.factors]
    if not roots:
        return out, frozenset()
    kept = _roots_kept(c, {n: left.factors[n] for n in roots}, out.factors)
    gone = frozenset(n for n in roots if n not in out.factors and not c.facts.nonnegative(n))
    return Term(out.coefficient, kept, out.exponent), gone


def _roots_kept(c: Companions, before: dict[Node, Rational], after: dict[Node, Rational]) -> dict[Node, Rational]:
    """The factors `after` of what was made of roots; whole powers u ** k that were roots `before` as
    nonnegative(u) ** k, for sqrt(u) ** 2 is u for no negative u."""
    whole = [n for n, p in before.items() if p.denominator != 1 and n in after and after[n].denominator == 1]
    if not whole:
        return after
    out = dict(after)
    for node in whole:
        if not c.facts.nonnegative(node):
            guarded = c.build.elementwise("nonnegative", node)
            out[guarded] = out.get(guarded, 0) + out.pop(node)
    return out


def mantissas_apart(c: Companions, term: Term) -> Term:
    """e^y - 1 beside other factors of unknown sign: its mantissa is joined with them, which cannot overflow."""
    from stablegrad.rules.logarithm import differences_apart

    unknown = [n for n, p in term.factors.items() if not _sign_known(c, n, p)]
    return differences_apart(c, term, unknown[0]) if len(unknown) > 1 else term


def joined_signs(c: Companions, term: Term, plain: Callable[[Node], bool] | None = None) -> Term:
    """The same term with at most one factor of unknown sign, and the sign of the coefficient in it. Under a logarithm,
    of factors that are `plain`, those that may be 0 are joined to it: a negative number times 0 has a logarithm, part
    by part it has not."""
    unknown = {n: p for n, p in term.factors.items() if not _sign_known(c, n, p)}
    if unknown and plain is not None:
        zeros = {n: p for n, p in term.factors.items() if n not in unknown and _can_vanish(c, n, p) and plain(n)}
        if zeros and all(map(plain, unknown)):
            unknown |= zeros
    if not unknown or (len(unknown) == 1 and term.coefficient > 0):
        return term
    folded = _into_weights(c, term, unknown)
    if folded is not None:
        return folded
    known = {n: p for n, p in term.factors.items() if n not in unknown}
    like: Node = next(iter(unknown))
    product = Term(ONE if term.coefficient > 0 else -ONE, unknown)
    joined = c.raw_term(product, like)
    c.joined[joined] = product
    known[joined] = ONE
    return Term(magnitude(term.coefficient), known, term.exponent)


def _into_weights(c: Companions, term: Term, unknown: dict[Node, Rational]) -> Term | None:
    """sum(w e^x) / s, the signs of w and s unknown, as sum((w / h) e^x) / (s / h): one factor of unknown sign, still a
    sum of exponentials. h, the power of two nearest to s with its sign, is constant for the derivative: where w is 0
    the slope by the weight may be infinite, and must not meet a slope by s that is 0."""
    cores = [n for n, p in unknown.items() if n in c.reductions and p == 1]
    if len(cores) != 1 or term.coefficient < 0:
        return None
    under, axes = c.reductions[cores[0]]
    shape = next(iter(under.exponent.parts)).shape
    weights: dict[Node, Rational] = {}
    known = {n: p for n, p in term.factors.items() if n not in unknown}
    for node, power in unknown.items():
        if node is not cores[0]:
            size = c.build.elementwise("held_size", node)
            weights[c.build.lay_back(size, shape, axes)] = power
            known[c.build.elementwise("div", node, size)] = power
    rest = under.times(Term(factors=weights))
    virtual = c.build.along("reduce_sum", c.raw_term(rest, next(iter(under.exponent.parts))), axes)
    c.reductions[virtual] = (rest, axes)
    return Term(term.coefficient, {**known, virtual: ONE}, term.exponent)


def _sign_known(c: Companions, node: Node, power: Rational) -> bool:
    return c.facts.nonnegative(node) or _is_even(power) or power.denominator != 1


def _can_vanish(c: Companions, node: Node, power: Rational) -> bool:
    whole = power > 0 and power.denominator == 1
    return whole and not c.facts.positive(node) and not is_mask(node) and not is_sum_of_exponentials(c, node)


def _is_even(power: Rational) -> bool:
    return power.denominator == 1 and power.numerator % 2 == 0


def divided(c: Companions, above: Node, below: Node) -> Node:
    """A quotient; the engine's derivative squares the divisor, which may leave the range."""
    return c.build.elementwise("div" if safely_positive(c, below) else "stable_div", above, below)


def raised(c: Companions, node: Node, power: Rational) -> Node:
    if power == -1:
        return divided(c, c.build.number(ONE, node.dtype), node)
    if power == HALF:
        return c.build.elementwise("sqrt", node)
    if -1 < power < 0:  # the slope of x**-0.5 leaves the range before what stands beside it brings it back
        return divided(c, c.build.number(ONE, node.dtype), raised(c, node, -power))
    return c.raw_power(node, power)


def less(c: Companions, node: Node) -> Node:
    """0 - node: 0 where that is 0, for the root of -0 has a slope of the other sign."""
    return c.build.elementwise("sub", c.build.number(0, node.dtype), node)
