"""Recognise "the maximum of x along some axes", however both are laid out, through guards that people put around it."""

from __future__ import annotations

from stablegrad.graph.node import Node

Places = dict[int, int]
"""Axis of a value, its unit axes left out -> the axis that it lies along."""


def peak_axes(x: Node, m: Node) -> tuple[int, ...] | None:
    """The axes of x along which m, of the same shape, is the maximum of x; None where it is not seen to be one.

    Guards for a maximum that is not finite are seen through.
    """
    if x.shape != m.shape:
        return None
    largest, place = _laid_out(m, through_guards=True)
    if largest.op.name != "reduce_max":
        return None
    (reduced,) = largest.params
    base, place_of_base = _laid_out(x)
    under, place_under = _laid_out(largest.inputs[0])
    if base is not under:
        return None
    found = []
    for axis, n in enumerate(base.shape):
        if n == 1:
            continue
        if axis not in place_of_base or axis not in place_under:
            return None
        before = place_under[axis]
        if before in reduced:
            found.append(place_of_base[axis])
        elif place.get(before - sum(k < before for k in reduced)) != place_of_base[axis]:
            return None
    return tuple(sorted(found))


def _laid_out(node: Node, through_guards: bool = False) -> tuple[Node, Places]:
    """What `node` is a layout of, and where the axes of that, longer than 1, lie in `node`."""
    place = {k: k for k, n in enumerate(node.shape) if n != 1}
    while True:
        name = node.op.name
        inner = node.inputs[0] if node.inputs else node
        if name == "arrange":
            lies = {j: place[k] for j, k in enumerate(node.params) if inner.shape[j] != 1 and k in place}
        elif name == "reshape" and _lengths(inner) == _lengths(node):
            along = [k for k, n in enumerate(node.shape) if n != 1]
            kept = [k for k, n in enumerate(inner.shape) if n != 1]
            lies = {j: place[k] for j, k in zip(kept, along, strict=True) if k in place}
        elif through_guards and (found := _guarded(node)) is not None:
            inner, lies = found, place
        else:
            return node, place
        node, place = inner, lies


def _lengths(node: Node) -> list[int]:
    return [n for n in node.shape if n != 1]


def _guarded(node: Node) -> Node | None:
    """What stands in stop_gradient(m), max(m, -inf) or where(isfinite(m), m, 0)."""
    if node.op.name == "stop_gradient":
        return node.inputs[0]
    if node.op.name == "max" and _is_minus_infinity(node.inputs):
        return next(i for i in node.inputs if i.op.name != "literal")
    if node.op.name == "select" and _guards_finite(node):
        return node.inputs[2]
    return None


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
