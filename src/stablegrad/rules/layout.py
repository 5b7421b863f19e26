"""Formal sums and terms under moving operations: moved part by part, and recognised however they are laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.graph.arrange import arrange, base_and_dims
from stablegrad.graph.node import Node, moved_inputs
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import Linear, Term

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def reduced_core(c: Companions, node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """(sum along axes, dims) where `node` is such a sum laid out: its axis k (unit axes aside) along `dims[k]`."""
    core, dims = base_and_dims(c.graph, node)
    if core.op.name == "reshape" and core not in c.reductions:
        core = core.inputs[0]  # a sum with unit axes, squeezed
    return (core, dims) if core in c.reductions else None


def lay(c: Companions, reduced: Node, shape: tuple[int, ...], dims: tuple[int, ...]) -> Node:
    """A value with the axes of a sum, laid out as the sum is (`reduced_core`)."""
    return arrange(c.graph, base_and_dims(c.graph, reduced)[0], shape, dims)


def move_term(c: Companions, node: Node, term: Term, guards: frozenset[Node]) -> tuple[Term, frozenset[Node]]:
    def move(part: Node) -> Node:
        return c.build.move_like(node, {0: part})

    def all_moved(parts: dict[Node, Rational]) -> dict[Node, Rational]:
        out: dict[Node, Rational] = {}
        for part, times in parts.items():
            moved = move(part)
            out[moved] = out.get(moved, 0) + times
        return {n: k for n, k in out.items() if k}

    exponent = Linear(all_moved(term.exponent.parts), term.exponent.constant, term.exponent.logs)
    return Term(term.coefficient, all_moved(term.factors), exponent), frozenset(map(move, guards))


def inside_one_move(c: Companions, terms: list[Term]) -> tuple[Node, list[Term]] | None:
    """(a moved node, the terms before the move) where all terms are moved by one and the same operation."""
    nodes = {n for t in terms for n in (*t.factors, *t.exponent.parts)}
    keys = {(n.op.name, n.params, n.shape, n.inputs[1:], n.inputs[0].shape if n.inputs else ()) for n in nodes}
    if len(keys) != 1:
        return None
    model = next(iter(nodes))
    if model.op.name not in ("move", "reshape") or moved_inputs(model) != (0,):
        return None
    if any(n in c.reductions for n in nodes):
        return None
    return model, [_inside(t) for t in terms]


def _inside(term: Term) -> Term:
    old = term.exponent
    exponent = Linear({n.inputs[0]: k for n, k in old.parts.items()}, old.constant, old.logs)
    return Term(term.coefficient, {n.inputs[0]: p for n, p in term.factors.items()}, exponent)


def absorbed(
    c: Companions,
    r: Linear,
    axes: tuple[int, ...],
    dims: tuple[int, ...],
    node: Node,
    times: Rational,
    rest: Linear,
) -> tuple[Linear, tuple[int, ...]] | None:
    """The rest without -times * r, where r stands in it laid as the sum is; and how it is laid."""
    for part in rest.parts:
        base, permutation = base_and_dims(c.graph, part)
        for own in r.parts:
            own_base, own_dims = base_and_dims(c.graph, own)
            if own_base is not base or len(permutation) != len(own_dims):
                continue
            place = dict(zip(own_dims, permutation))
            if len(place) != len(own.shape):
                place = {k: place.get(k, k) for k in range(len(own.shape))} if len(own.shape) == len(node.shape) else {}
            if len(place) != len(own.shape):
                continue
            full = tuple(place[k] for k in range(len(own.shape)))
            kept = tuple(full[k] for k in range(len(full)) if k not in axes and own.shape[k] != 1)
            if kept != dims:
                continue
            laid = Linear({arrange(c.graph, p, node.shape, full): k for p, k in r.parts.items()})
            if all(rest.parts.get(p) == -times * k for p, k in laid.parts.items()):
                return rest.plus(laid, times), full
    return None
