"""The derivative of a pick by index: what is scattered into zeros is a value under a mask, wherever the mask is true.

`x[arange(n), label]` has a `scatter_add` of one value per row as its transpose. As `where(class == label, value, 0)` it
is what a one-hot loss has there, and the rules about masks see it.
"""

from __future__ import annotations

import math
from typing import Any

import jax.extend.core as jex
import numpy as np

from stablegrad.engines.jax import _compat, names
from stablegrad.graph.arrange import arrange, reshape
from stablegrad.graph.moves import piece
from stablegrad.graph.node import Graph, Handle, Node, literal_number

MOST_ADDED = 8  # values that may meet in one place: each is compared with every position
BOOL = np.dtype(bool)


def scattered_into_zeros(
    graph: Graph, equation: jex.JaxprEqn, inputs: tuple[Node, ...], shape: tuple[int, ...]
) -> Node | None:
    """The node for a `scatter_add` of single values per index into zeros, or None for any other."""
    base, at, values = inputs
    if not _is_zero(base) or 0 in shape or 0 in values.shape or equation.params["mode"] is None:
        return None
    return _Scatter(graph, equation.params, at, values, shape).written()


def _is_zero(node: Node) -> bool:
    return literal_number(node) == 0


class _Scatter:
    """One scatter: which axis of the result each axis of the updates lies along.

    Attributes:
        free: axes of the indices, without the last, that lie along none: the values along them are added.
        along: axis of the indices -> the axis of the result that it counts.
    """

    def __init__(self, graph: Graph, params: dict[str, Any], at: Node, values: Node, shape: tuple[int, ...]) -> None:
        self.graph, self.at, self.values, self.shape = graph, at, values, shape
        numbers = params["dimension_numbers"]
        self.clips = params["mode"] is _compat.CLIP
        self.picked: tuple[int, ...] = tuple(map(int, numbers.scatter_dims_to_operand_dims))
        self.inserted = tuple(map(int, numbers.inserted_window_dims))
        self.batch = dict(zip(map(int, numbers.scatter_indices_batching_dims), map(int, numbers.operand_batching_dims)))
        self.windows = tuple(map(int, numbers.update_window_dims))
        self.known = params["mode"] in (_compat.CLIP, _compat.PROMISE_IN_BOUNDS, _compat.FILL_OR_DROP)

    def written(self) -> Node | None:
        window_axes = [d for d in range(len(self.shape)) if d not in self.inserted and d not in self.batch.values()]
        sizes = [self.values.shape[k] for k in self.windows]
        whole = all(n == (1 if d in self.picked else self.shape[d]) for d, n in zip(window_axes, sizes))
        if not self.known or not whole or len(self.at.shape) == 0:
            return None
        along, compared = dict(self.batch), []
        for place, axis in enumerate(self.picked):
            index = self._component(place)
            counted = None if index is None else _counts_along(index)
            if counted is not None and counted not in along and self.at.shape[counted] == self.shape[axis]:
                along[counted] = axis
            elif index is not None:
                compared.append((axis, index))
            else:
                return None
        axes = range(len(self.at.shape) - 1)
        free = [k for k in axes if k not in along]
        if math.prod(self.at.shape[k] for k in free) > MOST_ADDED:
            return None
        return self._selected(along, free, compared, window_axes)

    def _selected(self, along: dict[int, int], free: list[int], compared: list, window_axes: list[int]) -> Node:
        graph = self.graph
        full = (*self.shape, *(self.at.shape[k] for k in free))
        place = along | {k: len(self.shape) + n for n, k in enumerate(free)}
        which: Node | None = None
        for axis, index in compared:
            laid = arrange(graph, index, full, tuple(place[k] for k in range(len(index.shape))))
            if self.clips:
                bounds = (graph.literal(n, index.dtype) for n in (0, self.shape[axis] - 1))
                low, high = bounds
                laid = graph.node("clamp", (low, laid, high), (), full, index.dtype)
            positions = arrange(graph, self._positions(self.shape[axis], index.dtype), full, (axis,))
            equal = graph.node("eq", (positions, laid), (), full, BOOL)
            which = equal if which is None else graph.node("and", (which, equal), (), full, BOOL)
        batch_axes = [k for k in range(len(self.values.shape)) if k not in self.windows]
        where = {axis: place[n] for n, axis in enumerate(batch_axes)}
        kept = dict(zip(self.windows, window_axes))
        values = self.values
        dropped = [k for k, d in kept.items() if d in self.picked]
        where |= {k: d for k, d in kept.items() if d not in self.picked}
        if dropped:
            values = reshape(graph, values, tuple(n for k, n in enumerate(values.shape) if k not in dropped))
        order = [where[k] for k in range(len(self.values.shape)) if k not in dropped]
        laid = arrange(graph, values, full, tuple(order))
        if which is not None:
            zero = graph.literal(0, values.dtype)
            laid = graph.node("select", (which, zero, laid), (), full, values.dtype)
        if not free:
            return laid
        summed = tuple(range(len(self.shape), len(full)))
        return graph.node("reduce_sum", (laid,), (summed,), self.shape, values.dtype)

    def _positions(self, size: int, dtype: Any) -> Node:
        handle = Handle(names.IOTA, (("dimension", 0), ("dtype", dtype), ("shape", (size,)), ("sharding", None)))
        return self.graph.node("iota", (), (handle,), (size,), dtype)

    def _component(self, place: int) -> Node | None:
        """The indices along one axis, without their last axis."""
        last = len(self.at.shape) - 1
        shape = self.at.shape[:-1]
        if self.at.shape[last] == 1:
            return reshape(self.graph, self.at, shape)
        joined = self.at
        if joined.op.name != "move" or joined.params[0].join != last:
            return None
        found = piece(self.graph, joined, last, place, place + 1)
        return None if found is None else reshape(self.graph, found, shape)


def _counts_along(node: Node) -> int | None:
    """The axis along which the node is 0, 1, 2 ... and constant along the others."""
    while node.op.name == "select" and node.inputs[0].op.name == "lt" and node.inputs[0].inputs[0] is node.inputs[1]:
        node = node.inputs[1]  # what is negative counts from the end
    if node.op.name == "iota":
        return dict(node.params[0].parameters)["dimension"]
    if node.op.name == "constant" and node.value is not None and len(node.shape) == 1:
        return 0 if np.array_equal(node.value, np.arange(node.shape[0])) else None
    if node.op.name in ("arrange", "cast"):
        inner = _counts_along(node.inputs[0])
        return node.params[inner] if inner is not None and node.op.name == "arrange" else inner
    return None
