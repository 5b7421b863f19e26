"""What each operation answers when asked to be a formal sum. None: the node itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs
from stablegrad.graph.rational import Rational, quotient
from stablegrad.rules.forms import ONE, Linear

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def _add(c: Companions, node: Node) -> Linear:
    return c.linear(node.inputs[0]).plus(c.linear(node.inputs[1]))


def _sub(c: Companions, node: Node) -> Linear:
    return c.linear(node.inputs[0]).plus(c.linear(node.inputs[1]), -ONE)


def _neg(c: Companions, node: Node) -> Linear:
    return c.linear(node.inputs[0]).scaled(-ONE)


def _mul(c: Companions, node: Node) -> Linear | None:
    for number, other in ((0, 1), (1, 0)):
        value = literal_number(node.inputs[number])
        if value:
            return c.linear(node.inputs[other]).scaled(value)
    return None


def _div(c: Companions, node: Node) -> Linear | None:
    value = literal_number(node.inputs[1])
    return c.linear(node.inputs[0]).scaled(quotient(1, value)) if value else None


def widens(node: Node) -> bool:
    """A cast between floats that loses nothing."""
    source = node.inputs[0].dtype
    return is_float(node.dtype) and is_float(source) and node.dtype.itemsize > source.itemsize


def _cast(c: Companions, node: Node) -> Linear | None:
    if not widens(node):
        return None
    inner = c.linear(node.inputs[0])
    if inner.parts == {node.inputs[0]: ONE}:
        return None
    return _each(inner, lambda part: c.graph.node("cast", (part,), (), node.shape, node.dtype))


def _moved(c: Companions, node: Node) -> Linear | None:
    """A moving operation of one operand moves each part."""
    if len(moved_inputs(node)) != 1 or moved_inputs(node) != (0,):
        return None
    inner = c.linear(node.inputs[0])
    if inner.parts == {node.inputs[0]: ONE} or not inner.parts:
        return None
    return _each(inner, lambda part: c.build.move_like(node, {0: part}))


def _each(inner: Linear, change: Callable[[Node], Node]) -> Linear:
    parts: dict[Node, Rational] = {}
    for part, coefficient in inner.parts.items():
        moved = change(part)
        parts[moved] = parts.get(moved, 0) + coefficient
    return Linear({n: k for n, k in parts.items() if k}, inner.constant, inner.logs)


LINEAR_ANSWERS: dict[str, Callable[[Companions, Node], Linear | None]] = {
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _mul,
    "div": _div,
    "cast": _cast,
    "arrange": _moved,
    "reshape": _moved,
    "move": _moved,
    "stop_gradient": _moved,
}
