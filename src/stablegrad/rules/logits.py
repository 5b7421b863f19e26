"""Sigmoids joined with the numbers 0 and 1, or chosen against them: sigmoids of logits that may be infinite.

Cumulative probabilities, `concatenate([0, sigmoid(cuts - x), 1])` or `where(last, 1, sigmoid(cut - x))`: their
differences are differences of sigmoids throughout, which the logarithm knows how to write.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, rational
from stablegrad.rules import known_quotients
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.log_of_sum import write_sum
from stablegrad.rules.masks import masks_of, selected, unmasked
from stablegrad.rules.powers import power_of_term

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

ENDS = {0: -math.inf, 1: math.inf}  # a probability and its logit


def joined_sigmoids(c: Companions, like: Node, data: tuple[int, ...]) -> Term | None:
    """Pieces that the moving operation of `like` joins, some a number 0 or 1, the others sigmoids: else None."""
    pieces = [like.inputs[k] for k in data]
    if all(_end(c, piece) is None for piece in pieces):
        return None
    logits = _logits(c, pieces)
    return None if logits is None else sigmoid(c, c.build.move_like(like, dict(zip(data, logits, strict=True))))


def selected_sigmoid(c: Companions, which: Node, cases: list[Node], like: Node) -> Term | None:
    """A choice between 1 and a sigmoid. (One against 0 is a mask.)"""
    if all(_end(c, case) is None for case in cases):
        return None
    logits = _logits(c, cases)
    if logits is None:
        return None
    return sigmoid(c, c.graph.node("select", (which, *logits), (), like.shape, like.dtype))


def sigmoid(c: Companions, logit: Node) -> Term | None:
    """1 / (1 + exp(-logit)) as a term."""
    total = c.from_terms([Term(), Term(exponent=Linear({logit: -ONE}))], logit)
    return power_of_term(c, total, -ONE)


def without_masks(c: Companions, term: Term, like: Node) -> Term:
    """where(c, sigmoid(z), 0) as the sigmoid of a logit that is -inf where it is 0; other terms as they are."""
    masks = masks_of(term)
    logit = _logit_of_term(c, unmasked(term), like) if masks else None
    found = sigmoid(c, selected(c, masks, logit, -math.inf)) if logit is not None else None
    return term if found is None else found.scaled(term.coefficient)


def difference_of_sigmoids(c: Companions, terms: tuple[Term, ...], like: Node) -> Node | None:
    """k s(x) - k s(y), or k tanh(x) - k tanh(y), where they are two terms that do not cancel formally."""
    if len(terms) != 2 or terms[0].coefficient != -terms[1].coefficient:
        return None
    found = [one for t in terms if (one := _of_sigmoid(c, without_masks(c, t, like), like)) is not None]
    if len(found) != 2 or found[0][1] != -found[1][1]:
        return None
    (a, scale), (b, _) = sorted(found, key=lambda one: -one[1])
    gap, base = c.linear(a).plus(c.linear(b), -ONE), c.linear(b)
    if len(gap.parts) == len(c.linear(a).parts) + len(base.parts):
        op, between = "sigmoid_gap", c.build.sub(a, b)
    else:
        op, between = "sigmoid_gap", write_sum(c, gap, like)
        if base.parts.keys().isdisjoint(gap.parts):
            op = "sigmoid_step"
    return c.build.scale(c.build.elementwise(op, a, b, between), scale)


def _of_sigmoid(c: Companions, term: Term, like: Node) -> tuple[Node, Rational] | None:
    """(z, k) where the term is k s(z) but for a number: k tanh(x) is 2 k s(2 x) - k."""
    logit = _logit_of_term(c, term, like)
    if logit is not None:
        return logit, term.coefficient
    found = known_quotients.tanh(c, term.factors, term.exponent, like)
    if found is None or found[1] or found[2]:
        return None
    return c.build.scale(found[0].inputs[0], rational(2)), 2 * term.coefficient * found[3]


def _logits(c: Companions, pieces: list[Node]) -> list[Node] | None:
    found = [z for piece in pieces if (z := _logit(c, piece)) is not None]
    return found if len(found) == len(pieces) else None


def _logit(c: Companions, piece: Node) -> Node | None:
    """z where `piece` is sigmoid(z), in any spelling, or 0 or 1."""
    end = _end(c, piece)
    if end is not None:
        return c.build.full(end, piece)
    term, guards = c.single(piece)
    return None if guards or term.coefficient != 1 else _logit_of_term(c, term, piece)


def _end(c: Companions, piece: Node) -> float | None:
    """The logit of the number 0 or 1."""
    term, guards = c.single(piece)
    return ENDS.get(int(term.coefficient)) if not guards and term.is_number() and term.coefficient in ENDS else None


def _logit_of_term(c: Companions, term: Term, like: Node) -> Node | None:
    """z where the term is a multiple of sigmoid(z): e^x / (e^x + e^y) is sigmoid(x - y)."""
    if len(term.factors) != 1:
        return None
    ((factor, power),) = term.factors.items()
    pair = c.terms_of(factor) or ()
    if power != -1 or len(pair) != 2 or any(t.factors or t.coefficient != 1 for t in pair):
        return None
    for own, other in (pair, pair[::-1]):
        if term.exponent == own.exponent:
            return write_sum(c, own.exponent.plus(other.exponent, -ONE), like)
    return None
