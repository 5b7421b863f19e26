"""Recognise "the maximum of x along some axes", through the guards that people put around it."""

from __future__ import annotations

from stablegrad.graph.node import Node


def peak_of(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """(x, axes) if `node`, laid back along x, is max(x, axes); a guard for non-finite maxima is seen through."""
    dims: tuple[int, ...] | None = None
    while True:
        name = node.op.name
        if name == "arrange":
            if dims is None:
                dims = node.params
            elif node.params != tuple(range(len(node.params))) or len(node.shape) != len(node.params):
                return None
            node = node.inputs[0]
        elif name == "stop_gradient":
            node = node.inputs[0]
        elif name == "reshape" and 1 in node.inputs[0].shape and 1 not in node.shape:
            # unit axes dropped: the axes that remain are the ones `dims` speaks of
            kept = tuple(k for k, n in enumerate(node.inputs[0].shape) if n != 1)
            node = node.inputs[0]
            if node.op.name == "arrange":
                if node.params != kept:
                    return None
                node = node.inputs[0]
        elif name == "max" and _is_minus_infinity(node.inputs):
            node = next(i for i in node.inputs if i.op.name != "literal")
        elif name == "select" and _guards_finite(node):
            node = node.inputs[2]
        else:
            break
    if node.op.name != "reduce_max":
        return None
    (axes,) = node.params
    x = node.inputs[0]
    kept = tuple(k for k in range(len(x.shape)) if k not in axes)
    squeezed = tuple(k for k in kept if x.shape[k] != 1)
    if dims is not None and dims not in (kept, squeezed):
        return None
    if dims is None and kept:
        return None
    return x, axes


def _is_minus_infinity(inputs: tuple[Node, ...]) -> bool:
    return any(i.op.name == "literal" and i.value == -float("inf") for i in inputs) and any(
        i.op.name != "literal" for i in inputs
    )


def _guards_finite(node: Node) -> bool:
    """select(is_finite(m), 0, m): m where it is finite."""
    which, other, taken = node.inputs[0], node.inputs[1], node.inputs[-1]
    return (
        len(node.inputs) == 3
        and which.op.name == "is_finite"
        and which.inputs[0] is taken
        and other.op.name == "literal"
    )
