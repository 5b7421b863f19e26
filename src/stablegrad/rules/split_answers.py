"""What each operation answers when asked for mantissa and exponent, given those of its inputs. None: as it stands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stablegrad.graph.node import Node, moved_inputs
from stablegrad.rules.split_arithmetic import (
    DIGITS,
    INT,
    OF_ZERO,
    Split,
    aligned,
    bounded,
    exponent_number,
    exponent_value,
    largest,
    marked,
    normalised,
    product,
    quotient,
    raised,
    spread,
    total,
)

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

Answer = Callable[["Companions", Node, list[Split]], "Split | None"]
CARRIED = 100  # the growth of what a loop carries
HIGHEST_POWER = 8
BOOL = np.dtype(bool)


def _nonnegative(c: Companions, *nodes: Node) -> bool:
    return all(c.facts.nonnegative(n) for n in nodes)


def _scaled_value(c: Companions, node: Node, inputs: list[Split]) -> Split:
    mantissa, exponent = node.inputs
    return Split(mantissa, exponent, -1, 0, True, CARRIED, CARRIED)


def _mul(c: Companions, node: Node, inputs: list[Split]) -> Split:
    return product(c, *inputs)


def _div(c: Companions, node: Node, inputs: list[Split]) -> Split:
    return quotient(c, *inputs)


def _integer_pow(c: Companions, node: Node, inputs: list[Split]) -> Split | None:
    power = node.params[0] if node.op.name == "integer_pow" else 2
    return raised(c, inputs[0], power) if 0 < abs(power) <= HIGHEST_POWER else None


def _added(sign: int) -> Answer:
    def answer(c: Companions, node: Node, inputs: list[Split]) -> Split:
        return total(c, [(inputs[0], 1), (inputs[1], sign)], sign > 0 and _nonnegative(c, *node.inputs))

    return answer


def _neg(c: Companions, node: Node, inputs: list[Split]) -> Split:
    return replace(inputs[0], mantissa=c.build.neg(inputs[0].mantissa))


def _abs(c: Companions, node: Node, inputs: list[Split]) -> Split:
    return replace(inputs[0], mantissa=c.build.elementwise("abs", inputs[0].mantissa))


def _select(c: Companions, node: Node, inputs: list[Split]) -> Split:
    inputs = [bounded(c, marked(c, s)) for s in inputs]
    which = node.inputs[0]
    exponents = [s.exponent for s in inputs]
    if len({exponent_value(e) if exponent_value(e) is not None else e for e in exponents}) > 1:
        exponent = c.graph.node("select", (which, *exponents), (), node.shape, INT)
    else:
        exponent = exponents[0]
    mantissa = c.graph.node("select", (which, *(s.mantissa for s in inputs)), (), node.shape, node.dtype)
    return _of_all(inputs, mantissa, exponent)


def _of_all(inputs: list[Split], mantissa: Node, exponent: Node) -> Split:
    """What holds elements of all of them."""
    return Split(
        mantissa,
        exponent,
        min(s.low for s in inputs),
        max(s.high for s in inputs),
        all(s.marked for s in inputs),
        max(s.sums for s in inputs),
        max(s.growth for s in inputs),
        any(s.divided for s in inputs),
        max(s.width for s in inputs),
    )


def _moved(c: Companions, node: Node, inputs: list[Split]) -> Split | None:
    data = moved_inputs(node)
    if not data or len(inputs) != len(data) or _fills(node):
        return None
    inputs = [bounded(c, marked(c, s)) for s in inputs] if len(data) > 1 else inputs
    exponents = [s.exponent for s in inputs]
    known = {exponent_value(e) for e in exponents}
    mantissa = c.build.move_like(node, {k: s.mantissa for k, s in zip(data, inputs)})
    if len(known) == 1 and None not in known:
        exponent = exponents[0]
    else:
        laid = {k: spread(c, e, node.inputs[k].shape) for k, e in zip(data, exponents)}
        exponent = c.build.move_like(node, laid)
    return _of_all(inputs, mantissa, exponent)


def _fills(node: Node) -> bool:
    """A gather with a number of its own for what lies outside: a NaN has no place among integers."""
    return node.op.name == "move" and dict(node.params[0].parameters).get("fill_value") is not None


def _reduce_sum(c: Companions, node: Node, inputs: list[Split]) -> Split:
    return _summed(c, inputs[0], node.params[0], node.inputs[0].shape, _nonnegative(c, *node.inputs))


def _extreme(c: Companions, node: Node, inputs: list[Split]) -> Split:
    """Of two, aligned to the larger exponent; where they are not positive, as the program has it."""
    inputs = [normalised(c, s) for s in inputs]
    exponent = largest(c, [s.exponent for s in inputs])
    left, right = (aligned(c, s, exponent) for s in inputs)
    if node.op.name == "max":
        chosen = Split(c.build.elementwise("max", left, right), exponent, -1, 0, True)
        positive = _truth(c, "gt", chosen.mantissa)
    else:
        smaller = c.graph.node("le", (left, right), (), node.shape, BOOL)
        chosen = _chosen(c, smaller, inputs[0], inputs[1])
        positive = _truth(c, "gt", c.build.elementwise("min", left, right))
    return _as_program_has_it(c, node, positive, replace(_of_all(inputs, chosen.mantissa, chosen.exponent), low=-30))


def _reduce_extreme(c: Companions, node: Node, inputs: list[Split]) -> Split | None:
    """The largest of those that are positive; where none is, as the program has it."""
    (axes,) = node.params
    one, shape = normalised(c, inputs[0]), node.inputs[0].shape
    positive = _truth(c, "gt", one.mantissa)
    lowest = exponent_number(c, OF_ZERO)
    exponents = c.graph.node("select", (positive, lowest, spread(c, one.exponent, shape)), (), shape, INT)
    exponent = c.build.along("reduce_max", exponents, axes)
    zero = c.build.number(0, node.dtype)
    mantissas = c.graph.node("select", (positive, zero, one.mantissa), (), shape, node.dtype)
    laid = c.build.lay_back(exponent, shape, axes)
    largest_one = c.build.along(
        "reduce_max", aligned(c, replace(one, mantissa=mantissas, exponent=exponents), laid), axes
    )
    found = replace(one, mantissa=largest_one, exponent=exponent)
    return _as_program_has_it(c, node, _truth(c, "gt", largest_one), found)


def _truth(c: Companions, comparison: str, node: Node) -> Node:
    return c.graph.node(comparison, (node, c.build.number(0, node.dtype)), (), node.shape, BOOL)


def _chosen(c: Companions, which: Node, true: Split, false: Split) -> Split:
    exponents = (spread(c, s.exponent, which.shape) for s in (false, true))
    mantissa = c.graph.node("select", (which, false.mantissa, true.mantissa), (), which.shape, false.mantissa.dtype)
    exponent = c.graph.node("select", (which, *exponents), (), which.shape, INT)
    return _of_all([true, false], mantissa, exponent)


def _as_program_has_it(c: Companions, node: Node, known: Node, found: Split) -> Split:
    """`found` where `known`, elsewhere the value of the node itself."""
    # Not scaled yet: that very node is what is to be replaced, where a loop asks for it.
    return _chosen(c, known, found, Split(node, exponent_number(c, 0), -200, 200, False))


def _dot_general(c: Companions, node: Node, inputs: list[Split]) -> Split | None:
    """Each product of elements aligned to the largest of its own sum."""
    (contract, _), _ = dict(node.params[0].parameters)["dimension_numbers"]
    a, b = node.inputs
    if node.dtype != a.dtype or node.dtype != b.dtype:
        return None
    left, right = (bounded(c, marked(c, s)) for s in inputs)
    k_a, k_b = spread(c, left.exponent, a.shape), spread(c, right.exponent, b.shape)
    one_sign = _nonnegative(c, a, b)
    terms = (left.mantissa, k_a, right.mantissa, k_b)
    return Split(
        c.graph.node("scaled_dot", terms, node.params, node.shape, node.dtype),
        c.graph.node("scaled_dot_exponent", (k_a, k_b), node.params, node.shape, INT),
        left.low + right.low - (0 if one_sign else DIGITS),
        left.high + right.high + _digits_of(math.prod(a.shape[k] for k in contract)),
        one_sign,
        max(left.sums, right.sums) + 1,
        left.growth + right.growth,
        left.divided or right.divided,
        2,
    )


def _digits_of(count: int) -> int:
    """Binary digits that a sum of so many may have more than its terms."""
    return math.ceil(math.log2(count + 1))


def _summed(c: Companions, one: Split, axes: tuple[int, ...], shape: tuple[int, ...], one_sign: bool) -> Split:
    one = bounded(c, marked(c, one))
    if exponent_value(one.exponent) is not None:
        mantissa, exponent = c.build.along("reduce_sum", one.mantissa, axes), one.exponent
    else:
        exponent = c.build.along("reduce_max", one.exponent, axes)
        mantissa = c.build.along("reduce_sum", aligned(c, one, c.build.lay_back(exponent, shape, axes)), axes)
    return replace(
        one,
        mantissa=mantissa,
        exponent=exponent,
        low=one.low - (0 if one_sign else DIGITS),
        high=one.high + _digits_of(math.prod(shape[k] for k in axes)),
        marked=one_sign,
        sums=one.sums + 1,
    )


ANSWERS: dict[str, Answer] = {
    "scaled_value": _scaled_value,
    "mul": _mul,
    "div": _div,
    "integer_pow": _integer_pow,
    "square": _integer_pow,
    "add": _added(1),
    "sub": _added(-1),
    "neg": _neg,
    "abs": _abs,
    "select": _select,
    "arrange": _moved,
    "reshape": _moved,
    "move": _moved,
    "stop_gradient": _moved,
    "reduce_sum": _reduce_sum,
    "reduce_max": _reduce_extreme,
    "max": _extreme,
    "min": _extreme,
    "dot_general": _dot_general,
}
