"""Rules whose root is scipy's x * log(y) or x * log(1 + y)."""

from __future__ import annotations

import numpy as np

from stablegrad.facts.reach import EXPONENTIAL
from stablegrad.graph.node import Node
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import ONE
from stablegrad.rules.hazards import has_exponential
from stablegrad.rules.logarithm import log_of, write_linear
from stablegrad.rules.mul import product_with
from stablegrad.rules.rule import Rewritten, guarded, rule
from stablegrad.rules.structure import gains, has_structure, is_sum_of_squares


@rule("xlogy", "xlog1py")
def xlogy_of_companion(c: Companions, node: Node) -> Rewritten | None:
    """xlogy(x, y) as x times the companion logarithm of y."""
    x, y = node.inputs
    if node.op.name == "xlog1py":
        y = c.build.elementwise("add", y, c.build.number(ONE, node.dtype))
    if not gains(c, y) or c.facts.interval(y)[1] <= 0:
        return None
    linear, guards = log_of(c, y)
    if not c.facts.reach(y) & EXPONENTIAL and not has_structure(c, y) and not _divided_by_length(c, y):
        return None  # the library's own function is right
    logarithm = guarded(c, write_linear(c, linear, node), guards)
    if not c.facts.nonnegative(y):
        logarithm = _unless_zero(c, x, y, logarithm)
    return product_with(c, x, logarithm, c.build.elementwise("log", y), node)


def _divided_by_length(c: Companions, y: Node) -> bool:
    """y is v / sqrt(sum of squares), say, which can underflow where its logarithm does not."""
    return any(p < 0 and is_sum_of_squares(c, f) for f, p in c.single(y)[0].factors.items())


def _unless_zero(c: Companions, x: Node, y: Node, logarithm: Node) -> Node:
    """The logarithm, 0 where it is NaN or inf and x is 0: there the library's function is 0, but for y = NaN. A product
    of exponentials that underflows is not 0."""
    infinity, zero = (c.build.number(k, x.dtype) for k in (float("inf"), 0))
    usable = c.graph.node("lt", (logarithm, infinity), (), x.shape, np.dtype(bool))
    counts = c.graph.node("ne", (x, zero), (), x.shape, np.dtype(bool))
    if c.facts.nonnegative(x) and has_exponential(c, x):
        own, guards = log_of(c, x)
        lowest = c.build.number(float("-inf"), x.dtype)
        counts = c.graph.node("gt", (guarded(c, write_linear(c, own, x), guards), lowest), (), x.shape, np.dtype(bool))
    undefined = c.graph.node("ne", (y, y), (), x.shape, np.dtype(bool))
    which = c.build.elementwise("or", usable, c.build.elementwise("or", counts, undefined))
    return c.graph.node("select", (which, zero, logarithm), (), x.shape, x.dtype)
