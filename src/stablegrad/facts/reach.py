"""What a value is made of, in four bits: whether exponentials, logarithms, quotients or roots stand under it, through
operations that companions look through. Rules ask this first; of most nodes nothing further has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable

from stablegrad.graph.node import Node, is_float

EXPONENTIAL, LOGARITHM, QUOTIENT, ROOT = 1, 2, 4, 8

OWN = {
    **dict.fromkeys("exp exp2 expm1 logistic tanh cosh sinh logaddexp".split(), EXPONENTIAL),
    **dict.fromkeys("log log1p logaddexp".split(), LOGARITHM),
    "div": QUOTIENT,
    "rsqrt": QUOTIENT | ROOT,
    "sqrt": ROOT,
    "pow": ROOT,
}
OWN["logaddexp"] = EXPONENTIAL | LOGARITHM
THROUGH = frozenset(
    "relu add sub neg mul div integer_pow square pow sqrt rsqrt cbrt abs max min clamp select cast arrange reshape "
    "move stop_gradient reduce_sum reduce_max reduce_min reduce_prod cumsum cumprod cummax cummin dot_general "
    "exp exp2".split()
)


class Reach:
    """The bits of each node, worked out once, without recursion.

    `scales_rows` tells of an operand of a matrix product whether exponentials in it reach through the product;
    `positive` of a value that a root is taken of whether it is never 0: such a root counts for nothing.
    """

    def __init__(
        self,
        scales_rows: Callable[[Node], bool] = lambda operand: True,
        positive: Callable[[Node], bool] = lambda base: False,
    ) -> None:
        self._known: dict[Node, int] = {}
        self._scales_rows = scales_rows
        self._positive = positive

    def __call__(self, node: Node) -> int:
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
            if top.op.name not in THROUGH:
                known[top] = OWN.get(top.op.name, 0)
                stack.pop()
                continue
            waiting = [i for i in top.inputs if i not in known]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            known[top] = self._bits(top)
        return known[node]

    def _bits(self, node: Node) -> int:
        bits = OWN.get(node.op.name, 0)
        if node.op.name == "pow" and node.inputs[0].op.name == "literal":
            bits |= EXPONENTIAL
        if node.op.name == "integer_pow" and node.params[0] < 0:
            bits |= QUOTIENT
        if bits & ROOT and self._positive(node.inputs[0]):
            bits &= ~ROOT
        for i in node.inputs:
            if i.dtype is not None and is_float(i.dtype):
                bits |= self._known[i]
        if bits & EXPONENTIAL and node.op.name == "dot_general":
            if not any(self._known[i] & EXPONENTIAL and self._scales_rows(i) for i in node.inputs):
                bits &= ~EXPONENTIAL
        return bits
