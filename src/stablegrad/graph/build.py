"""Small constructors that rules use to write new nodes, with the trivial simplifications done."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from stablegrad.graph.arrange import arrange, drop_axes, reshape
from stablegrad.graph.moves import moved
from stablegrad.graph.node import Graph, Handle, Node, literal_number
from stablegrad.graph.rational import Rational


class Builder:
    """Writes nodes into a graph. Elementwise operands have one shape, or are literals of shape ()."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def number(self, value: Rational | float, dtype: Any) -> Node:
        return self.graph.literal(_nearest(value), dtype)

    def elementwise(self, op: str, *inputs: Node, params: tuple = ()) -> Node:
        model = inputs[0]
        if model.op.name == "literal":
            model = next((i for i in inputs if i.op.name != "literal"), model)
        return self.graph.node(op, inputs, params, model.shape, model.dtype)

    def add(self, a: Node, b: Node) -> Node:
        if literal_number(a) == 0:
            return b
        if literal_number(b) == 0:
            return a
        return self.elementwise("add", a, b)

    def sub(self, a: Node, b: Node) -> Node:
        if literal_number(b) == 0:
            return a
        if literal_number(a) == 0:
            return self.neg(b)
        return self.elementwise("sub", a, b)

    def neg(self, a: Node) -> Node:
        return a.inputs[0] if a.op.name == "neg" else self.elementwise("neg", a)

    def mul(self, a: Node, b: Node) -> Node:
        if literal_number(a) == 1:
            return b
        if literal_number(b) == 1:
            return a
        return self.elementwise("mul", a, b)

    def scale(self, a: Node, times: Rational) -> Node:
        """times * a, as a division where that is the exact form (a / 3)."""
        if times == 1:
            return a
        if times == -1:
            return self.neg(a)
        if times.numerator in (1, -1) and Fraction(_nearest(times)) != times:
            divided = self.elementwise("div", a, self.number(times.denominator, a.dtype))
            return divided if times > 0 else self.neg(divided)
        return self.elementwise("mul", a, self.number(times, a.dtype))

    def full(self, value: Rational | float, like: Node) -> Node:
        """A literal broadcast to the shape of `like`."""
        return arrange(self.graph, self.number(value, like.dtype), like.shape, ())

    def along(self, op: str, node: Node, axes: tuple[int, ...], *others: Node) -> Node:
        """A reduction of `node` (and operands of its shape) over `axes`."""
        shape = tuple(n for k, n in enumerate(node.shape) if k not in axes)
        return self.graph.node(op, (node, *others), (axes,), shape, node.dtype)

    def keep(self, op: str, node: Node, axes: tuple[int, ...], *others: Node) -> Node:
        """An operation along `axes` that keeps the shape (softmax and its kin)."""
        return self.graph.node(op, (node, *others), (axes,), node.shape, node.dtype)

    def lay_back(self, reduced: Node, shape: tuple[int, ...], axes: tuple[int, ...]) -> Node:
        """A reduction's result broadcast again over the axes that it lost."""
        dims = tuple(k for k in range(len(shape)) if k not in axes)
        return arrange(self.graph, reduced, shape, dims)

    def drop(self, node: Node, axes: tuple[int, ...]) -> Node:
        return drop_axes(self.graph, node, axes)

    def move_like(self, moving: Node, data: dict[int, Node]) -> Node:
        """The moving operation of `moving` applied to other data: input position -> new data."""
        inputs = tuple([data.get(k, node) for k, node in enumerate(moving.inputs)])
        dtype = next(iter(data.values())).dtype
        if moving.op.name == "arrange":
            return arrange(self.graph, inputs[0], moving.shape, moving.params)
        if moving.op.name == "reshape":
            return reshape(self.graph, inputs[0], moving.shape)
        if moving.op.name == "stop_gradient":
            return stop_gradient(self.graph, inputs[0])
        if moving.op.name != "move":
            return self.graph.node(moving.op.name, inputs, moving.params, moving.shape, dtype)
        return moved(self.graph, moving.params[0], inputs, moving.shape, dtype)

    def handle(self, op: str, like: Node, inputs: tuple[Node, ...]) -> Node:
        """The operation of `like` (a matrix product, say), its parameters kept, on other inputs."""
        assert isinstance(like.params[0], Handle)
        return self.graph.node(op, inputs, like.params, like.shape, like.dtype)

    def total(self, parts: list[Node]) -> Node:
        out = parts[0]
        for part in parts[1:]:
            out = self.sub(out, part.inputs[0]) if part.op.name == "neg" else self.add(out, part)
        return out


def stop_gradient(graph: Graph, node: Node) -> Node:
    """stop_gradient under the broadcast, so that its place does not matter."""
    if node.op.name in ("stop_gradient", "literal"):
        return node
    if node.op.name in ("arrange", "reshape"):
        inner = stop_gradient(graph, node.inputs[0])
        if node.op.name == "arrange":
            return arrange(graph, inner, node.shape, node.params)
        return reshape(graph, inner, node.shape)
    return graph.node("stop_gradient", (node,), (), node.shape, node.dtype)


def _nearest(value: Rational | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
