"""What is left of 1 as a weight: where only its absolute error counts, it is left as it is.

`(1 - z) * n + z * h`, the step of a gated unit, mixes two values: where 1 - z rounds to 0, the result is h. In
`x * (1 + tanh(u))`, the usual approximation of gelu, what rounds to 0 is far below the x beside it. Nothing else is
left: `x * (1 - sigmoid(x))`, `p * (1 - q) + q * (1 - p)` and all entropies are as small as that difference is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablegrad.facts.reach import EXPONENTIAL, LOGARITHM
from stablegrad.graph.node import Node, literal_number

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


FAR = 64  # nodes looked at to see that a value is made of another


def only_weighs(c: Companions, node: Node) -> bool:
    """`node`, 1 less a sigmoid or 1 and a tanh, is but the weight of a mixture, or of what the tanh is taken of."""
    of = [i for i in node.inputs if literal_number(i) is None]
    if len(of) != 1:
        return False
    if of[0].op.name == "neg":  # -z + 1
        of = list(of[0].inputs)
    name = of[0].op.name
    if name == "tanh":
        return _all_read(c, node, lambda product, beside: _scales_itself(c, beside, of[0]))
    return name == "logistic" and _all_read(c, node, lambda product, beside: _mixed(c, product, beside, of[0]))


def _all_read(c: Companions, node: Node, allowed: Callable[[Node, Node], bool]) -> bool:
    """Every reader of `node`, but for numbers in front of it, is a product allowed(product, the other factor)."""
    readers = c.readers(node)
    if not readers:
        return False
    for reader in readers:
        if reader.op.name != "mul":
            return False
        beside = reader.inputs[1] if reader.inputs[0] is node else reader.inputs[0]
        if literal_number(beside) is not None:
            if not _all_read(c, reader, allowed):
                return False
        elif beside is node or not allowed(reader, beside):
            return False
    return True


def _scales_itself(c: Companions, beside: Node, tanh: Node) -> bool:
    """The tanh is one of what `beside` is a multiple of: of a weight from elsewhere it may be all that is left."""
    if c.facts.reach(beside) & (EXPONENTIAL | LOGARITHM):
        return False
    values = c.linear(beside).parts
    waiting, seen = [tanh], 0
    while waiting and seen < FAR:
        node = waiting.pop()
        seen += 1
        if node in values:
            return True
        waiting.extend(node.inputs)
    return False


def _mixed(c: Companions, product: Node, beside: Node, z: Node) -> bool:
    """`product` is read by sums with z * h only, and neither value that is mixed can itself be a small rest."""
    readers = c.readers(product)
    if not readers or not _steady(c, beside):
        return False
    for reader in readers:
        if reader.op.name != "add":
            return False
        other = reader.inputs[1] if reader.inputs[0] is product else reader.inputs[0]
        if other.op.name != "mul" or z not in other.inputs:
            return False
        if not all(_steady(c, i) for i in other.inputs if i is not z):
            return False
    return True


def _steady(c: Companions, value: Node) -> bool:
    return not c.facts.reach(value) & LOGARITHM and not c.facts.may_vanish(value)
