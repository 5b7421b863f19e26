"""Whether the program itself can make a value infinite: a literal -inf, a mask with -inf, the log of something that may
be 0. Arguments are taken to be finite here: this fact decides where guards are worth their cost, never a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablegrad.graph.node import Node, is_float, moved_inputs

PASSES = (
    "add",
    "sub",
    "neg",
    "mul",
    "max",
    "min",
    "cast",
    "log_softmax",
    "log_softmax_of_picks",
    "logsumexp",
    "stable_logaddexp",
    "logaddexp",
)
CONSTANT_SIZE = 1 << 20


class Infinities:
    def __init__(self) -> None:
        self._known: dict[Node, bool] = {}

    def __call__(self, node: Node, interval: Callable[[Node], tuple[float, float]]) -> bool:
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            inputs = self._sources(top)
            waiting = [i for i in inputs if i not in self._known]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            self._known[top] = self._own(top, interval) or any(self._known[i] for i in inputs)
        return self._known[node]

    def _sources(self, node: Node) -> tuple[Node, ...]:
        if node.op.name == "select":
            return node.inputs[1:]
        if node.op.name in PASSES or node.op.name == "concatenate":
            return node.inputs
        return tuple(node.inputs[k] for k in moved_inputs(node))

    def _own(self, node: Node, interval: Callable[[Node], tuple[float, float]]) -> bool:
        name = node.op.name
        if name == "log":
            return interval(node.inputs[0])[0] <= 0
        if name in ("literal", "constant"):
            value = node.value
            if value is None or not is_float(node.dtype) or getattr(value, "size", 0) > CONSTANT_SIZE:
                return False
            return bool(np.isinf(np.asarray(value).astype(np.float64)).any())
        return False
