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
        return self._binary(node)

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
        """times_log(t, log s(x)) + times_log(1 - t, log s(-x)), also of its negative."""
        left, right = (self._signed(i) for i in node.inputs)
        if left is None or right is None or (left[0] == right[0]) != (node.op.name == "add"):
            return None
        for (_, t, logarithm), (_, rest, other) in ((left, right), (right, left)):
            x, opposite = self._logit(logarithm), self._logit(other)
            weight, t, rest = self._weighted_alike(t, rest)
            if x is None or opposite is None or not self._is_complement(rest, t):
                continue
            if self.c.linear(x) == self.c.linear(opposite).scaled(-1):
                loss = self.c.build.elementwise("sigmoid_cross_entropy", x, t)
                whole = self.c.build.neg(loss) if left[0] > 0 else loss
                whole = whole if weight is None else self.c.build.elementwise("mul", weight, whole)
                return Rewritten(whole, "a whole binary cross entropy as one function")
        return None

    def _signed(self, node: Node) -> tuple[int, Node, Node] | None:
        """(sign, t, the logarithm) where `node` is times_log(t, logarithm) or its negative, read here alone."""
        node, sign = self.resolve(node), 1
        while node.op.name == "neg" and len(self.readers[node]) <= 1:
            node, sign = self.resolve(node.inputs[0]), -sign
        if node.op.name != "times_log" or len(self.readers[node]) > 1:
            return None
        t = self._without_one(node.inputs[0])
        if t.op.name == "neg":
            t, sign = self._without_one(t.inputs[0]), -sign
        return sign, t, node.inputs[1]

    def _without_one(self, node: Node) -> Node:
        """The node resolved, without a factor 1 (a weight that is not used)."""
        node = self.resolve(node)
        while node.op.name == "mul" and 1 in map(literal_number, node.inputs):
            node = self.resolve(node.inputs[1 if literal_number(node.inputs[0]) == 1 else 0])
        return node

    def _weighted_alike(self, t: Node, rest: Node) -> tuple[Node | None, Node, Node]:
        """(w, t, rest) where the two are w * t and w * rest."""
        if t.op.name == rest.op.name == "mul":
            for k, weight in enumerate(t.inputs):
                if weight in rest.inputs:
                    other = rest.inputs[1 - rest.inputs.index(weight)]
                    return weight, self.resolve(t.inputs[1 - k]), self.resolve(other)
        return None, t, rest

    def _logit(self, node: Node) -> Node | None:
        """x where `node` is log(sigmoid(x)), read here alone."""
        node = self.resolve(node)
        if node.op.name != "neg" or len(self.readers[node]) > 1:
            return None
        inner = self._own(node.inputs[0], "softplus")
        return None if inner is None else self.c.build.neg(inner.inputs[0])

    def _is_complement(self, rest: Node, t: Node) -> bool:
        """rest is 1 - t."""
        return rest.op.name == "sub" and literal_number(rest.inputs[0]) == 1 and self.resolve(rest.inputs[1]) is t
