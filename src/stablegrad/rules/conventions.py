"""The last walk: what a policy other than the default one asks for, in the rewritten program."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stablegrad.graph.arrange import constant_along
from stablegrad.graph.node import Node, is_float, literal_number
from stablegrad.policy import Policy
from stablegrad.rules.companions import Companions
from stablegrad.rules.layout import under_moves
from stablegrad.rules.log_of_sum import write_sum
from stablegrad.rules.means import softmax_along

NORMS = ("norm", "norm_of_terms")
QUOTIENTS = ("div", "stable_div")
NUMBERS = {"zero": 0, "one": 1}
BOOL = np.dtype(bool)


class Conventions:
    """What `policy` puts for a node of the rewritten program; `resolve` tells what stands for a captured one."""

    def __init__(self, companions: Companions, policy: Policy, resolve: Callable[[Node], Node]) -> None:
        self.c, self.policy, self.resolve = companions, policy, resolve

    def of(self, node: Node) -> tuple[str, Node, str] | None:
        """(name of the convention, the new node, the reason that the user reads), or None."""
        if self.policy.norm_slope_at_zero == "undefined" and node.op.name in NORMS:
            new = self.c.graph.node(f"{node.op.name}_undefined_at_0", node.inputs, node.params, node.shape, node.dtype)
            return "norm_slope_at_zero", new, "by policy a length has no slope at 0"
        if self.policy.empty_softmax == "zero":
            found = self._softmax(node)
            if found is not None:
                return "empty_softmax", self._zero_where_empty(*found), "by policy a softmax over nothing is 0"
        number = NUMBERS.get(self.policy.zero_over_zero)
        if number is not None and node.op.name in QUOTIENTS and self._may_be_zero_over_zero(node):
            return "zero_over_zero", self._unless_both_zero(node, number), f"by policy 0 / 0 is {number}"
        return None

    def _softmax(self, node: Node) -> tuple[Node, tuple[int, ...]] | None:
        """(x, axes) where `node` is the softmax of x, and x may have an entry -inf."""
        if node.op.name == "softmax":
            x, (axes,) = node.inputs[0], node.params
            return (x, axes) if self._may_be_empty(x) else None
        if node.op.name != "div" or node.origin is None or not is_float(node.dtype):
            return None
        term, _ = self.c.single(node)
        for factor, power in term.factors.items():
            core = under_moves(self.c, factor) if power == -1 and len(term.factors) == 1 else None
            if core is None:
                continue
            under, axes = self.c.reductions[core]
            same = constant_along(factor, axes) and next(iter(under.exponent.parts)).shape == node.shape
            if same and softmax_along(self.c, term, node.shape, axes) is factor:
                x = write_sum(self.c, under.exponent, node)
                return (x, axes) if self._may_be_empty(x) else None
        return None

    def _may_be_empty(self, x: Node) -> bool:
        return self.c.facts.interval(self.resolve(x))[0] == -math.inf

    def _zero_where_empty(self, x: Node, axes: tuple[int, ...]) -> Node:
        build, graph = self.c.build, self.c.graph
        largest = build.along("reduce_max", x, axes)
        empty = graph.node("eq", (largest, build.number(-math.inf, x.dtype)), (), largest.shape, BOOL)
        empty = build.lay_back(empty, x.shape, axes)
        nothing = build.number(0, x.dtype)
        held = graph.node("select", (empty, x, nothing), (), x.shape, x.dtype)
        return graph.node("select", (empty, build.keep("softmax", held, axes), nothing), (), x.shape, x.dtype)

    def _may_be_zero_over_zero(self, node: Node) -> bool:
        if not is_float(node.dtype):
            return False
        bounds = [self.c.facts.interval(self.resolve(i)) for i in node.inputs]
        return literal_number(node.inputs[1]) is None and all(low <= 0 <= high for low, high in bounds)

    def _unless_both_zero(self, node: Node, number: int) -> Node:
        build, graph = self.c.build, self.c.graph
        above, below = node.inputs
        zero = build.number(0, node.dtype)
        tests = [graph.node("eq", (i, zero), (), node.shape, BOOL) for i in (above, below)]
        both = graph.node("and", tuple(tests), (), node.shape, BOOL)
        held = graph.node("select", (both, below, build.number(1, node.dtype)), (), node.shape, node.dtype)
        quotient = graph.node(node.op.name, (above, held), node.params, node.shape, node.dtype)
        return graph.node("select", (both, quotient, build.number(number, node.dtype)), (), node.shape, node.dtype)
