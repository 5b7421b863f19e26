"""Rules whose root is a quotient."""

from __future__ import annotations

from stablegrad.facts.reach import EXPONENTIAL
from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.companions import Companions
from stablegrad.rules.hazards import bounded, has_exponential, safely_positive
from stablegrad.rules.layout import reduced_core
from stablegrad.rules.rule import Rewritten, rule
from stablegrad.rules.value import write_scaled


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
    if c.trivial(node) or not (has_exponential(c, above) or has_exponential(c, below)):
        return None
    written = write_scaled(c, c.scaled(node), node)
    return None if written is node else Rewritten(written, "numerator and denominator can overflow or both vanish; "
                                                  "their exponents are subtracted first")  # fmt: skip


def softmax_of_rewritten_sum(c: Companions, node: Node) -> Rewritten | None:
    """A softmax left alone at first, whose sum another rewrite has taken apart: its derivative p (1 - p) right too."""
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
    written = write_scaled(c, c.scaled(node), node)
    return None if written is node else Rewritten(written, "a factor of the numerator is divided out again")


def _products(node: Node) -> bool:
    """A numerator that is made of factors."""
    while node.op.name in ("neg", "cast", "arrange", "reshape", "move"):
        node = node.inputs[0]
    return node.op.name in ("mul", "div", "integer_pow", "square", "pow", "sqrt", "reduce_prod")
