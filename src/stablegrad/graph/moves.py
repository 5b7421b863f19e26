"""Moves of moves that are simpler than they look: a slice of joined pieces, a slice of a broadcast."""

from __future__ import annotations

from stablegrad.graph.arrange import arrange, reshape
from stablegrad.graph.node import Graph, Handle, Node


def moved(graph: Graph, handle: Handle, inputs: tuple[Node, ...], shape: tuple[int, ...], dtype: object) -> Node:
    """The moving operation of `handle` applied to `inputs`, or a simpler node that holds the same elements."""
    simpler = _sliced(graph, handle, inputs[0], shape) if handle.slice is not None else None
    return simpler if simpler is not None else graph.node("move", inputs, (handle,), shape, dtype)


def _sliced(graph: Graph, handle: Handle, whole: Node, shape: tuple[int, ...]) -> Node | None:
    start, stop = handle.slice  # type: ignore[misc]
    cut = [k for k, n in enumerate(whole.shape) if (start[k], stop[k]) != (0, n)]
    if not cut:
        return whole
    if whole.op.name == "arrange" and not set(cut) & set(whole.params):
        return arrange(graph, whole.inputs[0], shape, whole.params)
    if len(cut) == 1 and whole.op.name == "move" and whole.params[0].join == cut[0]:
        return piece(graph, whole, cut[0], start[cut[0]], stop[cut[0]])
    return None


def piece(graph: Graph, joined: Node, axis: int, start: int, stop: int) -> Node | None:
    """The one input of a stack or concatenation that fills positions start to stop along its axis, with that axis."""
    at = 0
    for node in joined.inputs:
        stacked = len(node.shape) < len(joined.shape)
        size = 1 if stacked else node.shape[axis]
        if (at, at + size) == (start, stop):
            shape = (*joined.shape[:axis], size, *joined.shape[axis + 1 :])
            return reshape(graph, node, shape) if stacked else node
        at += size
    return None
