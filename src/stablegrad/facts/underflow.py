"""Whether exponentials in a value can carry it to 0 where it is not 0: by underflow, or by rounding beside a number."""

from __future__ import annotations

from collections.abc import Callable

from stablegrad.facts.overflow import away_from_zero
from stablegrad.facts.reach import EXPONENTIAL, Reach
from stablegrad.graph.node import Node, is_float

LIKE_THEIR_ARGUMENT = frozenset("tanh expm1 sinh".split())  # near 0; elsewhere away from it
COPIED = frozenset("neg abs cast arrange reshape move stop_gradient mul reduce_prod reduce_max square".split())
FAR = 64


class Underflow:
    """Each node's answer, worked out once; of what lies deeper than FAR operations, the careful one."""

    def __init__(
        self,
        reach: Reach,
        interval: Callable[[Node], tuple[float, float]],
        may_overflow: Callable[[Node], bool],
    ) -> None:
        self._reach = reach
        self._interval = interval
        self._may_overflow = may_overflow
        self._known: dict[Node, bool] = {}

    def __call__(self, node: Node, depth: int = FAR) -> bool:
        if not self._reach(node) & EXPONENTIAL:
            return False
        found = self._known.get(node)
        if found is None:
            found = not away_from_zero(self._interval, node) and (depth == 0 or self._own(node, depth - 1))
            if depth:
                self._known[node] = found
        return found

    def _own(self, node: Node, depth: int) -> bool:
        name = node.op.name
        if name in LIKE_THEIR_ARGUMENT:
            return False
        if name in COPIED:
            return any(self(i, depth) for i in node.inputs if is_float(i.dtype))
        if name == "div":
            return self(node.inputs[0], depth) or self._may_overflow(node.inputs[1])
        if name in ("add", "sub"):
            made = [i for i in node.inputs if self._reach(i) & EXPONENTIAL]
            plain = [i for i in node.inputs if i not in made and i.op.name != "literal"]
            return not (made and plain) or self(made[0], depth)
        return True
