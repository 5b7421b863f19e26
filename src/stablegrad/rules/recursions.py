"""Recursions over sums of products, written out or carried by a loop: an HMM, CTC, Sinkhorn's scaling.

Each step multiplies, so that values leave the range after a few; what comes of them, a logarithm or a quotient, may be
in range. They are computed as mantissa and exponent (`mantissas.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.companions import Companions
from stablegrad.rules.mantissas import split, splittable
from stablegrad.rules.rule import Rewritten, rule
from stablegrad.rules.split_answers import ANSWERS
from stablegrad.rules.split_arithmetic import Split, aligned, exponent_value, largest, normalised

FEWEST_SUMS = 3  # sums of products of sums of products of sums; what is flatter has rules of its own
FEWEST_FACTORS = 4
REASON = "the values of this recursion leave the range; they are computed as mantissa and exponent"


class Nesting(NamedTuple):
    """How deep a node is nested.

    sums: sums of products under each other. product: it is a product itself. divided: by a recursion.
    """

    sums: int = 0
    product: bool = False
    divided: bool = False


FLAT, PRODUCT, ONE_SUM = Nesting(), Nesting(product=True), Nesting(1)
POWERS = ("integer_pow", "square")


def nesting(c: Companions, node: Node) -> Nesting:
    """Counted without writing anything: most programs are flat. Walks without recursion."""
    known: dict = c.answers[nesting]
    waiting = [node]
    while waiting:
        top = waiting[-1]
        if top in known:
            waiting.pop()
        elif top.op.name not in ANSWERS or not splittable(top):
            known[waiting.pop()] = FLAT
        elif top.op.name == "scaled_value":
            known[waiting.pop()] = Nesting(FEWEST_SUMS)
        else:
            asked = [i for i in top.inputs if i not in known]
            if asked:
                waiting.extend(asked)
            else:
                known[waiting.pop()] = _nesting(top, [known[i] for i in top.inputs])
    return known[node]


def _nesting(node: Node, inputs: list[Nesting]) -> Nesting:
    name = node.op.name
    if all(i is FLAT for i in inputs):
        if name == "dot_general":
            return ONE_SUM
        return PRODUCT if name == "div" or (name == "mul" and not _scales(node)) or name in POWERS else FLAT
    sums, divided = max(i.sums for i in inputs), any(i.divided for i in inputs)
    if name == "div":
        return Nesting(sums, True, divided or inputs[1].sums >= 2)
    if name == "mul" or name in POWERS:
        product = any(i.product for i in inputs) if _scales(node) else True
        return Nesting(sums, product, divided or (name == "integer_pow" and node.params[0] < 0 and sums >= 2))
    if name == "dot_general":
        return Nesting(sums + 1, False, divided)
    if name in ("add", "sub", "reduce_sum"):
        return Nesting(sums + any(i.product for i in inputs), False, divided)
    return Nesting(sums, any(i.product for i in inputs), divided)


def _scales(node: Node) -> bool:
    """A product with a number."""
    return any(literal_number(i) is not None for i in node.inputs)


def _recursion(c: Companions, node: Node, divided: bool = False) -> Split | None:
    deep = nesting(c, node)
    if deep.sums < FEWEST_SUMS or (divided and not deep.divided):
        return None
    found = split(c, node)
    if found.growth < FEWEST_FACTORS or exponent_value(found.exponent) is not None:
        return None
    return found


def _log(c: Companions, node: Node) -> Rewritten | None:
    """log(mantissa * 2**exponent)"""
    found = _recursion(c, node.inputs[0])
    if found is None:
        return None
    mantissa, exponent = found.mantissa, found.exponent
    return Rewritten(c.graph.node("log_of_scaled", (mantissa, exponent), (), node.shape, node.dtype), REASON)


def _value(c: Companions, node: Node) -> Rewritten | None:
    """A value of a recursion that divides on its way: what it is divided by may be 0 where the value is in range."""
    found = _recursion(c, node, divided=True)
    if found is None:
        return None
    inputs = (found.mantissa, found.exponent)
    return Rewritten(c.graph.node("times_power_of_two", inputs, (), node.shape, node.dtype), REASON)


def _carried(c: Companions, node: Node) -> Rewritten | None:
    """What a loop asks for of a value that it carries scaled."""
    value = node.inputs[0]
    if math.prod(value.shape) == 0 or not splittable(value):
        return None
    found = split(c, value)
    plain = found.mantissa.inputs and found.mantissa.inputs[0] is value
    if plain or found.mantissa is value:
        return None
    found = normalised(c, found)
    out = found.mantissa if node.op.name == "without_exponent" else found.exponent
    if out.shape != node.shape:
        return None
    return Rewritten(out, REASON)


def _comparison(c: Companions, node: Node) -> Rewritten | None:
    """Both aligned to the larger exponent: as plain numbers, both may be 0 or infinite."""
    if not all(map(splittable, node.inputs)):
        return None
    found = [_recursion(c, i) for i in node.inputs]
    if not any(found):
        return None
    both = [normalised(c, s if s is not None else split(c, i)) for s, i in zip(found, node.inputs)]
    exponent = largest(c, [s.exponent for s in both])
    sides = [aligned(c, s, exponent) for s in both]
    return Rewritten(c.graph.node(node.op.name, sides, (), node.shape, node.dtype), REASON)


_ANSWERS = {
    "log": _log,
    **dict.fromkeys(("div", "mul", "reduce_sum", "dot_general", "add", "sub"), _value),
    **dict.fromkeys(("without_exponent", "binary_exponent"), _carried),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _comparison),
}


@rule(*_ANSWERS)
def recursion(c: Companions, node: Node) -> Rewritten | None:
    """Sums of products of sums of products, of which a logarithm, a quotient or a comparison is taken."""
    return _ANSWERS[node.op.name](c, node)
