"""A third companion, `split`: a node as mantissa * 2**exponent, for sums of products of sums that leave the range.

A formal product cannot pass through a sum, and a recursion over probabilities is sums of products of sums. Here each
operation of the program stands as it was, between numbers of unlimited exponent: terms of a sum are aligned to the
largest exponent, products add exponents. Scaling by a power of two rounds nothing, so that the result is the
program's own, digit for digit, where nothing leaves the range.

The answers per operation stand in `split_answers.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stablegrad.graph.arrange import arrange
from stablegrad.graph.node import Node, is_float, literal_number
from stablegrad.graph.rational import magnitude
from stablegrad.rules.log_of_sum import write_sum
from stablegrad.rules.split_answers import ANSWERS, Answer
from stablegrad.rules.split_arithmetic import (
    MODERATE,
    OF_ZERO,
    Split,
    exponent_number,
    plain_leaf,
    product,
    raised,
)

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

INT = np.dtype(np.int32)
SPLITTABLE = frozenset((np.dtype("float32"), np.dtype("float64")))


def split(c: Companions, node: Node) -> Split:
    """`node` as mantissa and exponent. Walks without recursion: a loop written out is a deep program."""
    known: dict[Any, Split] = c.answers[split]
    waiting = [node]
    while waiting:
        top = waiting[-1]
        if top in known:
            waiting.pop()
            continue
        answer = _answer(c, top)
        asked = [i for i in _operands(top) if i not in known] if answer else []
        if asked:
            waiting.extend(asked)
            continue
        waiting.pop()
        found = answer(c, top, [known[i] for i in _operands(top)]) if answer else None
        known[top] = found if found is not None else leaf(c, top)
    return known[node]


def _answer(c: Companions, node: Node) -> Answer | None:
    if not splittable(node) or literal_number(node) is not None or _is_exponential(c, node):
        return None
    return ANSWERS.get(node.op.name)


def _operands(node: Node) -> tuple[Node, ...]:
    """The inputs that are numbers to be split."""
    if node.op.name == "scaled_value":
        return ()
    return tuple(i for i in node.inputs if is_float(i.dtype))


def splittable(node: Node) -> bool:
    return node.dtype in SPLITTABLE


def _is_exponential(c: Companions, node: Node) -> bool:
    """A number times the exponential of something: its exponent is at hand."""
    if c.trivial(node):
        return False
    term, guards = c.single(node)
    return bool(term.exponent.parts) and not term.factors and not guards


# -- what is not taken apart -------------------------------------------------------------------------------------------


def leaf(c: Companions, node: Node) -> Split:
    """A value that is split as it stands: a number, an exponential, or what the program computed in some other way."""
    number = literal_number(node)
    if number is not None:
        return _number(c, node, float(number))
    if splittable(node) and not c.trivial(node):
        found = _exponential(c, node)
        if found is not None:
            return found
    low, high = c.facts.interval(node)
    if 2.0**-MODERATE <= low and high <= 2.0**MODERATE:
        return Split(node, exponent_number(c, 0), -MODERATE, MODERATE, True)
    return plain_leaf(c, node)


def _number(c: Companions, node: Node, value: float) -> Split:
    if value == 0:
        return Split(node, exponent_number(c, OF_ZERO), 0, 0, True)
    mantissa, exponent = np.frexp(value)
    if abs(exponent) <= MODERATE:
        return Split(node, exponent_number(c, 0), int(exponent) - 1, int(exponent), True)
    scaled = c.build.number(float(mantissa), node.dtype)
    return Split(_like(c, scaled, node), exponent_number(c, int(exponent)), -1, 0, True)


def _like(c: Companions, number: Node, node: Node) -> Node:
    return number if node.op.name == "literal" else arrange(c.graph, number, node.shape, ())


def _exponential(c: Companions, node: Node) -> Split | None:
    """coefficient * factors * exp(formal sum): the integer part of the exponent in base 2 is taken out."""
    term, guards = c.single(node)
    if guards or not term.exponent.parts or any(p.denominator != 1 or magnitude(p) > 4 for p in term.factors.values()):
        return None
    if node in term.factors or any(f.shape != node.shape or not splittable(f) for f in term.factors):
        return None
    z = write_sum(c, term.exponent, node)
    if z.shape != node.shape or z.dtype != node.dtype:
        return None
    mantissa = c.build.elementwise("mantissa_of_exp", z)
    exponent = c.graph.node("exponent_of_exp", (z,), (), node.shape, INT)
    out = Split(mantissa, exponent, -1, 1, True, growth=1)
    for factor, power in term.factors.items():
        of_factor = split(c, factor)
        out = product(c, out, of_factor if power == 1 else raised(c, of_factor, int(power)))
    if term.coefficient == 1:
        return out
    return product(c, out, _number(c, c.build.number(term.coefficient, node.dtype), float(term.coefficient)))
