"""What exponentials, and the functions made of them, answer when asked to be a few scaled terms."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, moved_inputs
from stablegrad.graph.rational import Rational
from stablegrad.rules import companions as _companions
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.composites import with_composites
from stablegrad.rules.differences import expand, simplified_sum
from stablegrad.rules.forms import HALF, ONE, Linear, Term, collect, is_mask
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.joined import joined
from stablegrad.rules.layout import move_term
from stablegrad.rules.powers import power_of_term

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions, Scaled

LOG_2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068")


def as_scaled(terms: list[Term], *guards: frozenset[Node]) -> Scaled:
    return _companions.Scaled(tuple(terms), frozenset().union(*guards) if any(guards) else frozenset())


def exponential(c: Companions, exponent: Linear) -> Scaled:
    """exp of a formal sum: logarithms in it become factors."""
    exponent = with_composites(c, exponent)
    found_of = {part: exponential_of(c, part) for part in exponent.parts}
    if not any(found_of.values()):
        return _companions.Scaled((Term(exponent=exponent),))
    term = Term(exponent=Linear(constant=exponent.constant, logs=exponent.logs))
    guards: frozenset[Node] = frozenset()
    beside = any(found is None for found in found_of.values())
    plain = [p for p, found in found_of.items() if found is not None and _has_plain(c, found[0])]
    closed = set(_all_but_one(c, plain, found_of)) if beside and len(plain) > 1 else ()
    for part, times in exponent.parts.items():
        found = found_of[part] if part not in closed else None
        if found is None:
            term = term.times(Term(exponent=Linear({part: times})))
            continue
        raised = power_of_term(c, found[0], times)
        if raised is None or (len(exponent.parts) > 1 and leaves_range(c, raised, beside)):
            term = term.times(Term(exponent=Linear({part: times})))
        else:
            term, guards = term.times(raised), guards | found[1]
    return as_scaled([term], guards)


def _has_plain(c: Companions, term: Term) -> bool:
    return any(not is_mask(n) and not is_sum_of_exponentials(c, n) for n in term.factors)


def _all_but_one(
    c: Companions, plain: list[Node], found_of: dict[Node, tuple[Term, frozenset[Node]] | None]
) -> list[Node]:
    """Logarithms of plain values that stay in an exponent with something else beside them: a product of such values may
    leave the range where it does not. One that can be of 0, where its slope is infinite, is opened."""

    def safe(part: Node) -> bool:
        found = found_of[part]
        return found is not None and all(map(c.facts.positive, found[0].factors))

    return sorted(plain, key=safe)[1:]


def leaves_range(c: Companions, term: Term, beside: bool) -> bool:
    """A power of a plain value among the factors that leaves the range, or has a slope that does: its logarithm in the
    exponent, scaled, stays. `beside`: with an exponential beside it that is so for all powers but the first."""
    powers = (p for n, p in term.factors.items() if not is_sum_of_exponentials(c, n))
    return any(p != 1 if beside else not -1 <= p <= 1 for p in powers)


def exponential_of(c: Companions, part: Node) -> tuple[Term, frozenset[Node]] | None:
    """exp(part) as a term where `part` is a logarithm, also moved, joined with others or selected; else None."""
    argument = log_argument(c, part)
    if argument is not None:
        return _argument(c, argument)
    data = moved_inputs(part)
    if not data or part.op.name == "stop_gradient":
        return None
    answers = [_exponential_of_sum(c, part.inputs[k]) for k in data]
    if all(a is None for a in answers):
        return None
    if len(data) == 1:
        assert answers[0] is not None
        return move_term(c, part, answers[0][0], answers[0][1])
    pieces = [
        a if a is not None else (Term(exponent=c.linear(part.inputs[k])), frozenset())
        for k, a in zip(data, answers, strict=True)
    ]
    if any(guards for _, guards in pieces):
        return None
    return joined(c, part, data, [t for t, _ in pieces]), frozenset()


def _exponential_of_sum(c: Companions, node: Node) -> tuple[Term, frozenset[Node]] | None:
    """exp(node) where its formal sum holds a logarithm, else None."""
    linear = c.linear(node)
    if not any(exponential_of(c, p) is not None for p in linear.parts):
        return None
    scaled = exponential(c, linear)
    return scaled.terms[0], scaled.guards


def _argument(c: Companions, u: Node) -> tuple[Term, frozenset[Node]]:
    """u as the result of exp(log(u)): NaN where u < 0."""
    if c.facts.nonnegative(u):
        return c.single(u)
    if c.trivial(u):
        return Term(factors={c.build.elementwise("nonnegative", u): ONE}), frozenset()
    term, guards = c.single(u)
    return term, guards | {u}


def exp_answer(c: Companions, node: Node) -> Scaled:
    return exponential(c, c.linear(node.inputs[0]))


def exp2_answer(c: Companions, node: Node) -> Scaled:
    return exponential(c, c.linear(node.inputs[0]).scaled(LOG_2))


def expm1_answer(c: Companions, node: Node) -> Scaled:
    inner = exp_answer(c, node)
    return as_scaled(simplified_sum(c, [*inner.terms, Term(-ONE)], node), inner.guards)


def two_exponentials(sign: Rational) -> Callable[[Companions, Node], Scaled]:
    def answer(c: Companions, node: Node) -> Scaled:
        up = exponential(c, c.linear(node.inputs[0]))
        down = exponential(c, c.linear(node.inputs[0]).scaled(-ONE))
        return as_scaled([up.terms[0].scaled(HALF), down.terms[0].scaled(sign * HALF)], up.guards, down.guards)

    return answer


def _one_plus_exp(c: Companions, x: Linear, sign: Rational, like: Node) -> tuple[Term, frozenset[Node]]:
    """1 + sign * exp(x) as one term."""
    inner = exponential(c, x)
    return c.from_terms([Term(ONE), inner.terms[0].scaled(sign)], like), inner.guards


def logistic_answer(c: Companions, node: Node) -> Scaled:
    below, guards = _one_plus_exp(c, c.linear(node.inputs[0]).scaled(-ONE), ONE, node)
    inverse = power_of_term(c, below, -ONE)
    return as_scaled([inverse], guards) if inverse is not None else as_scaled([Term(factors={node: ONE})])


def tanh_answer(c: Companions, node: Node) -> Scaled | None:
    """(1 - exp(-2x)) / (1 + exp(-2x))."""
    minus_2x = c.linear(node.inputs[0]).scaled(-2)
    inner = exponential(c, minus_2x)
    if inner.terms[0].factors:
        return _tanh_of_logarithm(c, inner, node)
    above, guards = _one_plus_exp(c, minus_2x, -ONE, node)
    below, _ = _one_plus_exp(c, minus_2x, ONE, node)
    inverse = power_of_term(c, below, -ONE)
    return None if inverse is None else as_scaled([above.times(inverse)], guards)


def _tanh_of_logarithm(c: Companions, inner: Scaled, node: Node) -> Scaled | None:
    """tanh(log(u)) as (u^2 - 1) / (u^2 + 1), where nothing is left to subtract: u = 1 + e^x."""
    (term,) = inner.terms
    below = Term(factors={n: -p for n, p in term.factors.items() if p < 0})
    one, other = expand(c, below), expand(c, term.times(below))
    if one is None or other is None:
        return None
    above = collect([*one, *(t.scaled(-ONE) for t in other)])
    if not above or len({t.coefficient > 0 for t in above}) != 1 or any(t.factors for t in above):
        return None
    inverse = power_of_term(c, c.from_terms([*one, *other], node), -ONE)
    return None if inverse is None else as_scaled([c.from_terms(above, node).times(inverse)], inner.guards)
