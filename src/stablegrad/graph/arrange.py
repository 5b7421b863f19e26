"""The normal form of broadcasts, transposes and unit axes: one operation, `arrange`.

`arrange(s, shape, dims)` copies `s`, which has no axis of length 1, into `shape`: axis k of `s` becomes axis `dims[k]`
of the result, and the result is constant along every other axis. Any chain of broadcast_in_dim, transpose, squeeze and
reshapes that only add or drop unit axes is one `arrange` of the value under it, so that two spellings of a broadcast
are one node. `s` itself is a value without unit axes; where the value has some, `s` is `reshape` of it.
"""

from __future__ import annotations

from stablegrad.graph.node import Graph, Node


def base_and_dims(graph: Graph, node: Node) -> tuple[Node, tuple[int, ...]]:
    """`node` as (s, dims) with s free of unit axes: node = arrange(s, node.shape, dims)."""
    if node.op.name == "arrange":
        return node.inputs[0], node.params
    if 1 not in node.shape:
        return node, tuple(range(len(node.shape)))
    kept = tuple(k for k, n in enumerate(node.shape) if n != 1)
    shape = tuple(node.shape[k] for k in kept)
    return graph.node("reshape", (node,), (), shape, node.dtype), kept


def arrange(graph: Graph, node: Node, shape: tuple[int, ...], dims: tuple[int, ...]) -> Node:
    """`node` laid into `shape`, its axis k along axis `dims[k]` (broadcast_in_dim; dims in any order).

    A unit axis of `node` may lie along a longer axis of `shape`: it is broadcast.
    """
    key = (node, shape, dims)
    found = graph.arranged.get(key)
    if found is None:
        found = graph.arranged[key] = _arrange(graph, node, shape, dims)
    return found


def _arrange(graph: Graph, node: Node, shape: tuple[int, ...], dims: tuple[int, ...]) -> Node:
    if node.op.name == "literal" and node.shape == ():
        # A broadcast literal stays a literal where an elementwise operation reads it; elsewhere it needs its shape.
        return node if shape == () else graph.node("arrange", (node,), (), shape, node.dtype)
    base, inner = base_and_dims(graph, node)
    outer = tuple(dims[k] for k in inner)
    if shape == base.shape and outer == tuple(range(len(shape))):
        return base
    if base.op.name == "reshape" and base.inputs[0].shape == shape:
        kept = tuple(k for k, n in enumerate(shape) if n != 1)
        if kept == outer:
            return base.inputs[0]  # the unit axes were dropped and put back
    return graph.node("arrange", (base,), outer, shape, node.dtype)


def transpose(graph: Graph, node: Node, permutation: tuple[int, ...]) -> Node:
    shape = tuple(node.shape[k] for k in permutation)
    dims = tuple(permutation.index(k) for k in range(len(permutation)))
    return arrange(graph, node, shape, dims)


def reshape(graph: Graph, node: Node, shape: tuple[int, ...]) -> Node:
    """A row-major reshape; an `arrange` where only unit axes come and go."""
    if node.shape == shape:
        return node
    before = [n for n in node.shape if n != 1]
    after = [n for n in shape if n != 1]
    if before == after and 0 not in before:
        kept_before = [k for k, n in enumerate(node.shape) if n != 1]
        kept_after = [k for k, n in enumerate(shape) if n != 1]
        target = dict(zip(kept_before, kept_after))
        base, inner = base_and_dims(graph, node)
        dims = tuple(target.get(k, -1) for k in inner)
        if -1 not in dims:
            if shape == base.shape and dims == tuple(range(len(shape))):
                return base
            if base.op.name == "reshape" and base.inputs[0].shape == shape and tuple(kept_after) == dims:
                return base.inputs[0]
            return graph.node("arrange", (base,), dims, shape, node.dtype)
    if node.op.name == "reshape":
        return reshape(graph, node.inputs[0], shape)
    return graph.node("reshape", (node,), (), shape, node.dtype)


def constant_along(node: Node, axes: tuple[int, ...]) -> bool:
    """True if the form of `node` shows that it does not vary along `axes`."""
    if node.op.name == "literal":
        return True
    return node.op.name == "arrange" and not set(node.params) & set(axes)


def drop_axes(graph: Graph, node: Node, axes: tuple[int, ...]) -> Node:
    """The value of a node that is constant along `axes`, without them."""
    shape = tuple(n for k, n in enumerate(node.shape) if k not in axes)
    if node.op.name == "literal":
        return node
    position = {k: i for i, k in enumerate(k for k in range(len(node.shape)) if k not in axes)}
    base, dims = base_and_dims(graph, node)
    return arrange(graph, base, shape, tuple(position[d] for d in dims))
