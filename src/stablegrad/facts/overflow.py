"""Whether exponentials in a value can carry it out of its dtype's range.

`x * sigmoid(z)` cannot be: it is too large only where x is. What is divided by something that is not small cannot be
either, so that rules need not combine exponents there: an underflow of the numerator is then one of the quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stablegrad.facts.reach import EXPONENTIAL, THROUGH, Reach
from stablegrad.graph.node import Node, is_float

HALF = np.dtype("float16")
HUGE, HALF_HUGE = 2.0**60, 2.0**10  # no product of a few such overflows float32 and bfloat16; float16


class Overflow:
    """Each node's answer, worked out once, without recursion."""

    def __init__(self, reach: Reach, interval: Callable[[Node], tuple[float, float]]) -> None:
        self._reach = reach
        self._interval = interval
        self._known: dict[Node, bool] = {}

    def __call__(self, node: Node) -> bool:
        known = self._known
        found = known.get(node)
        if found is not None:
            return found
        stack = [node]
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            if not self._reach(top) & EXPONENTIAL or self._bounded(top):
                known[top] = False
            elif top.op.name not in THROUGH or top.op.name in ("exp", "exp2"):
                known[top] = True
            else:
                asked = _asked(top, self._interval)
                waiting = [] if asked is None else [i for i in asked if i not in known]
                if waiting:
                    stack.extend(waiting)
                    continue
                known[top] = asked is None or any(known[i] for i in asked)
            stack.pop()
        return known[node]

    def _bounded(self, node: Node) -> bool:
        low, high = self._interval(node)
        limit = HALF_HUGE if node.dtype == HALF else HUGE
        return -limit <= low and high <= limit


def _asked(node: Node, interval: Callable[[Node], tuple[float, float]]) -> list[Node] | None:
    """The inputs that an overflow can come from; None where a small divisor can be one."""
    inputs = [i for i in node.inputs if i.dtype is not None and is_float(i.dtype)]
    if node.op.name == "div":
        return inputs[:1] if away_from_zero(interval, inputs[1]) else None
    if node.op.name == "rsqrt" or (node.op.name == "integer_pow" and node.params[0] < 0):
        return [] if away_from_zero(interval, inputs[0]) else None
    if node.op.name == "pow":
        low, high = interval(node.inputs[1])  # perhaps a whole number
        return inputs[:1] if 0 <= low and math.isfinite(high) else None
    return inputs


def away_from_zero(interval: Callable[[Node], tuple[float, float]], node: Node) -> bool:
    """Dividing by `node` brings nothing back into range that was too small, and takes nothing out of it."""
    low, high = interval(node)
    return low >= 1 / HALF_HUGE or high <= -1 / HALF_HUGE
