"""When the plain way cannot go wrong: then nothing is rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.facts.overflow import HALF, HALF_HUGE, HUGE
from stablegrad.graph.node import Node

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

TINY, HALF_TINY = 1 / HUGE, 1 / HALF_HUGE  # far inside the range of float32 and bfloat16; of float16


def limits(node: Node) -> tuple[float, float]:
    """Magnitudes of the node's dtype that no few operations lead out of range."""
    return (HALF_TINY, HALF_HUGE) if node.dtype == HALF else (TINY, HUGE)


def safely_positive(c: Companions, node: Node) -> bool:
    """The interval of `node` shows it positive and far from the ends of the dtype's range."""
    low, high = c.facts.interval(node)
    tiny, huge = limits(node)
    return tiny <= low and high <= huge


def bounded(c: Companions, node: Node) -> bool:
    """The interval of `node` shows that it cannot overflow, nor a product of a few such."""
    low, high = c.facts.interval(node)
    return -limits(node)[1] <= low and high <= limits(node)[1]


def has_exponential(c: Companions, node: Node) -> bool:
    """An exponential, or a sum of exponentials, stands in the companion of `node`."""
    return any(
        term.exponent.parts or any(is_sum_of_exponentials(c, factor) for factor in term.factors)
        for term in c.scaled(node).terms
    )


def made_of_nonnegative(c: Companions, node: Node) -> bool:
    """The companion of `node` shows that it is not negative."""
    return all(t.coefficient > 0 and all(c.facts.nonnegative(f) for f in t.factors) for t in c.scaled(node).terms)


def is_sum_of_exponentials(c: Companions, factor: Node) -> bool:
    """A factor that stands for a sum of exponentials, elementwise or along axes, also moved, or its magnitude."""
    while factor.op.name in ("arrange", "reshape", "move", "abs") and factor not in c.reductions:
        if c.terms_of(factor) is not None:
            break
        factor = factor.inputs[0]
    if factor in c.reductions:
        return True
    terms = c.terms_of(factor) or ()
    return any(t.exponent.parts or any(is_sum_of_exponentials(c, f) for f in t.factors) for t in terms)
