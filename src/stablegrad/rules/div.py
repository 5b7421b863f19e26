"""Rules whose root is a quotient."""

from __future__ import annotations

from stablegrad.facts.overflow import away_from_zero
from stablegrad.facts.reach import EXPONENTIAL
from stablegrad.graph.node import Node, literal_number
from stablegrad.graph.rational import quotient
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import ONE, Term
from stablegrad.rules.hazards import bounded, has_exponential, is_sum_of_exponentials, safely_positive
from stablegrad.rules.known_quotients import exponential_minus_number
from stablegrad.rules.layout import reduced_core
from stablegrad.rules.powers import power_of_term
from stablegrad.rules.rule import Rewritten, once, rule
from stablegrad.rules.value import write_scaled, write_term
from stablegrad.rules.vanished import keep_divided


@rule("div")
def quotient_of_exponentials(c: Companions, node: Node) -> Rewritten | None:
    """a / b with exponentials in it: opposite parts cancel before anything is rounded (softmax, sigmoid, tanh)."""
    if not c.facts.reach(node) & EXPONENTIAL:
        return None
    above, below = node.inputs
    if literal_number(below) is not None:
        return None
    if bounded(c, above) and safely_positive(c, below):
        return None
    if not any(c.facts.may_overflow(i) or c.facts.may_vanish(i) for i in node.inputs):
        return None
    if not c.facts.may_overflow(above) and away_from_zero(c.facts.interval, below):
        if not c.facts.may_overflow(below):
            return None
        found = _times_inverse(c, above, below, node)
        if found is not None:
            return found
    if c.trivial(node) or not (has_exponential(c, above) or has_exponential(c, below)):
        return None
    if not has_exponential(c, below) and (bounded(c, above) or not _one_exponential(c, above)):
        return None  # a plain divisor brings nothing back into range
    before = [c.single(i)[0] for i in node.inputs]
    written = keep_divided(c, write_scaled(c, c.scaled(node), node), before, c.scaled(node).terms)
    return None if written is node else Rewritten(written, "numerator and denominator can overflow or both vanish; "
                                                  "their exponents are subtracted first")  # fmt: skip


def _times_inverse(c: Companions, above: Node, below: Node, node: Node) -> Rewritten | None:
    """a / (1 + exp(z)) as a * sigmoid(-z), where nothing in a could cancel against the divisor."""
    (divided, _), (divisor, guards) = c.single(above), c.single(below)
    inverse = power_of_term(c, divisor, -ONE)
    if inverse is None or guards or _exponents(c, divided) & _exponents(c, divisor):
        return None
    written = write_term(c, inverse, below)
    if written.shape != node.shape or written.dtype != node.dtype:
        return None
    return Rewritten(c.build.mul(above, written), "the divisor can overflow; its inverse is written without it")


@once
def _exponents(c: Companions, term: Term) -> frozenset[Node]:
    """What stands in the exponents of a term and of the sums among its factors."""
    found = set(term.exponent.parts)
    for factor in term.factors:
        core = reduced_core(c, factor)
        inner = (c.reductions[core[0]][0],) if core is not None else c.terms_of(factor) or ()
        for one in inner:
            found |= _exponents(c, one)
    return frozenset(found)


def _one_exponential(c: Companions, node: Node) -> bool:
    """A single exponential, or exp(z) - 1, which a divisor may cancel."""
    term = c.single(node)[0]
    sums = [f for f in term.factors if is_sum_of_exponentials(c, f)]
    return not sums or (len(sums) == 1 and not term.exponent and exponential_minus_number(c, sums[0]) is not None)


@rule("div")
def logarithm_over_its_argument(c: Companions, node: Node) -> Rewritten | None:
    """log(1 + k x) / x is k * log1prel(k x), 1 at 0 with its derivatives."""
    above = c.linear(node.inputs[0])
    if len(above.parts) != 1 or above.constant or above.logs:
        return None
    ((logarithm, times),) = above.parts.items()
    argument = log_argument(c, logarithm)
    if argument is None or logarithm.op.name == "logaddexp":
        return None
    linear = c.linear(argument)
    below = node.inputs[1]
    if linear.constant != 1 or linear.logs or set(linear.parts) != set(c.linear(below).parts) or len(linear.parts) != 1:
        return None
    other = c.linear(below)
    if other.constant or other.logs:
        return None
    ((part, k),) = linear.parts.items()
    written = c.build.elementwise("log1prel", c.build.scale(part, k))
    factor = times * quotient(k, other.parts[part])
    return Rewritten(c.build.scale(written, factor), "0 / 0 at 0; the quotient has the limit 1")


def softmax_of_rewritten_sum(c: Companions, node: Node) -> Rewritten | None:
    """A softmax left alone at first, whose sum another rewrite has taken apart: its derivative p (1 - p) right too."""
    if not c.facts.reach(node) & EXPONENTIAL or not c.facts.nonnegative(node):
        return None
    cores = {found[0] for f in c.single(node)[0].factors if (found := reduced_core(c, f)) is not None}
    if not cores & c.written:
        return None
    written = write_scaled(c, c.scaled(node), node)
    return None if written.op.name != "softmax" else Rewritten(written, "its sum is part of another rewrite; "
                                                  "the derivative p (1 - p) is right near p = 1")  # fmt: skip


@rule("div")
def quotient_that_cancels(c: Companions, node: Node) -> Rewritten | None:
    """(a b) / b is a, also where b is 0 or out of range."""
    if literal_number(node.inputs[1]) is not None or not _products(node.inputs[0]):
        return None
    above, _ = c.single(node.inputs[0])
    below, _ = c.single(node.inputs[1])
    shared = [n for n in below.factors if n in above.factors and above.factors[n] > 0]
    if not shared or not below.coefficient or c.trivial(node):
        return None
    if node.inputs[0] is node.inputs[1] or below.factors.keys() == {node.inputs[0]}:
        return None
    if all(below.factors[n] != above.factors[n] for n in shared):
        return None
    written = keep_divided(c, write_scaled(c, c.scaled(node), node), (above, below), c.scaled(node).terms)
    return None if written is node else Rewritten(written, "a factor of the numerator is divided out again")


def _products(node: Node) -> bool:
    """A numerator that is made of factors."""
    while node.op.name in ("neg", "cast", "arrange", "reshape", "move"):
        node = node.inputs[0]
    return node.op.name in ("mul", "div", "integer_pow", "square", "pow", "sqrt", "reduce_prod")
