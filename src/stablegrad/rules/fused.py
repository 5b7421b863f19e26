"""Whole cross entropies as one function each, asked after all the other rules.

`sum(t * log_softmax(x))` and `t * log_sigmoid(x) + (1 - t) * log_sigmoid(-x)` are right as they stand; as one function
their gradient needs no array in between, which halves the memory of a training step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from stablegrad.facts.reach import EXPONENTIAL
from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.companions import Companions
from stablegrad.rules.rule import Rewritten

Resolve = Callable[[Node], Node]


class Fusion:
    """Looks for cross entropies in a rewritten program; `readers` tells who reads a node there."""

    def __init__(self, companions: Companions, resolve: Resolve, readers: Mapping[Node, list[Node]]) -> None:
        self.c, self.resolve, self.readers = companions, resolve, readers

    def fuse(self, node: Node) -> Rewritten | None:
        if node.op.name == "reduce_sum":
            return self._categorical(node)
        return self._binary(node) if node.op.name == "add" else None

    def only_picked_from(self, node: Node) -> bool:
        """`node`, along axes, is read by operations that pick from it by indices, no more entries than it has rows."""
        entries = math.prod(node.shape[k] for k in node.params[0])
        picks = 0
        for reader in self.readers[node]:
            if reader.op.name != "move" or len(reader.inputs) != 2 or len(reader.params[0].data) != 1:
                return False
            picks += math.prod(reader.shape)
        return 0 < picks * entries <= math.prod(node.shape)

    def _own(self, node: Node, op: str) -> Node | None:
        """The node resolved, if it is of that operation and read here alone."""
        found = self.resolve(node)
        return found if found.op.name == op and len(self.readers[found]) <= 1 else None

    def _categorical(self, node: Node) -> Rewritten | None:
        """sum(times_log(t, log_softmax(x))), also of its negative."""
        (axes,) = node.params
        inner = self.resolve(node.inputs[0])
        negated = inner.op.name == "neg"
        product = self._own(inner.inputs[0] if negated else inner, "times_log")
        logarithm = self._own(product.inputs[1], "log_softmax") if product is not None else None
        if product is None or logarithm is None or not set(logarithm.params[0]) <= set(axes):
            return None
        (own,) = logarithm.params
        build, x = self.c.build, logarithm.inputs[0]
        t = product.inputs[0]
        if t.shape != x.shape or self.c.facts.reach(t) & EXPONENTIAL:
            return None  # targets that are probabilities themselves can be as confident as the prediction
        loss = build.along("softmax_cross_entropy", x, own, t)
        kept = [k for k in range(len(x.shape)) if k not in own]
        rest = tuple(kept.index(k) for k in axes if k not in own)
        loss = build.along("reduce_sum", loss, rest) if rest else loss
        return Rewritten(loss if negated else build.neg(loss), "a whole cross entropy as one function")

    def _binary(self, node: Node) -> Rewritten | None:
        """times_log(t, log s(x)) + times_log(1 - t, log s(-x))."""
        left, right = (self._own(i, "times_log") for i in node.inputs)
        if left is None or right is None:
            return None
        for first, second in ((left, right), (right, left)):
            t, rest = first.inputs[0], second.inputs[0]
            x, opposite = self._logit(first.inputs[1]), self._logit(second.inputs[1])
            if x is None or opposite is None or not self._is_complement(rest, t):
                continue
            if self.c.linear(x) == self.c.linear(opposite).scaled(-1):
                loss = self.c.build.elementwise("sigmoid_cross_entropy", x, t)
                return Rewritten(self.c.build.neg(loss), "a whole binary cross entropy as one function")
        return None

    def _logit(self, node: Node) -> Node | None:
        """x where `node` is log(sigmoid(x)), read here alone."""
        node = self.resolve(node)
        if node.op.name != "neg" or len(self.readers[node]) > 1:
            return None
        inner = self._own(node.inputs[0], "softplus")
        return None if inner is None else self.c.build.neg(inner.inputs[0])

    def _is_complement(self, rest: Node, t: Node) -> bool:
        """rest is 1 - t."""
        return rest.op.name == "sub" and literal_number(rest.inputs[0]) == 1 and rest.inputs[1] is t
