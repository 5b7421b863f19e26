"""Formal sums and terms under moving operations: moved part by part, and recognised however they are laid out."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from stablegrad.graph.arrange import arrange, base_and_dims
from stablegrad.graph.node import Node, moved_inputs
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import Linear, Term, is_mask
from stablegrad.rules.masks import moved_mask

Place = Callable[[Node], Node]
MOST_MOVES = 16

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def reduced_core(c: Companions, node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """(sum along axes, dims) where `node` is such a sum laid out: its axis k (unit axes aside) along `dims[k]`."""
    core, dims = base_and_dims(c.graph, node)
    if core.op.name == "reshape" and core not in c.reductions:
        core = core.inputs[0]  # a sum with unit axes, squeezed
    return (core, dims) if core in c.reductions else None


def under_moves(c: Companions, node: Node) -> Node | None:
    """The sum along axes that `node` is moved from, by any moves."""
    while node not in c.reductions:
        if moved_inputs(node) != (0,) or node.op.name == "stop_gradient":
            return None
        node = node.inputs[0]
    return node


def moved_as(c: Companions, core: Node, node: Node) -> Place:
    """The moves that lead from `core` to `node`, for other values with the axes of `core`."""
    chain = []
    while node is not core:
        chain.append(node)
        node = node.inputs[0]

    def place(value: Node) -> Node:
        for moving in reversed(chain):
            value = c.build.move_like(moving, {0: value})
        return value

    return place


def move_term(c: Companions, node: Node, term: Term, guards: frozenset[Node]) -> tuple[Term, frozenset[Node]]:
    """The term, and what must not be negative for it to hold, moved as `node` moves its input."""
    key = (node.op, node.params, node.shape, node.inputs[1:], term)
    moved = c.terms_moved.get(key)
    if moved is None:
        moved = c.terms_moved[key] = _moved_term(c, node, term)
    return moved, frozenset([c.build.move_like(node, {0: guard}) for guard in guards]) if guards else guards


def _moved_term(c: Companions, node: Node, term: Term) -> Term:
    def move(part: Node) -> Node:
        return c.build.move_like(node, {0: part})

    def all_moved(parts: dict[Node, Rational]) -> dict[Node, Rational]:
        out: dict[Node, Rational] = {}
        for part, times in parts.items():
            moved = moved_mask(c, node, part) if is_mask(part) else move(part)
            inner = c.terms_of(part)
            if inner is not None and c.terms_of(moved) is None:  # the sum that is moved is the sum of the moved terms
                c.register(moved, tuple([move_term(c, node, t, frozenset())[0] for t in inner]))
            if part in c.means:
                c.means[moved] = move_term(c, node, c.means[part], frozenset())[0]
            out[moved] = out.get(moved, 0) + times
        return {n: k for n, k in out.items() if k}

    exponent = Linear(constant=term.exponent.constant, logs=term.exponent.logs)
    for part, times in term.exponent.parts.items():
        exponent = exponent.plus(c.linear(move(part)), times)  # a slice of joined pieces is a piece: a sum, a number
    return Term(term.coefficient, all_moved(term.factors), exponent)


def inside_one_move(c: Companions, terms: list[Term]) -> tuple[Node, list[Term]] | None:
    """(a moved node, the terms before the move) where all terms are moved by one and the same operation."""
    nodes = {n for t in terms for n in (*t.factors, *t.exponent.parts)}
    if not all(n.op.name in ("move", "reshape") for n in nodes):
        return None
    keys = {(n.op.name, n.params, n.shape, n.inputs[1:], n.inputs[0].shape if n.inputs else ()) for n in nodes}
    if len(keys) != 1:
        return None
    model = next(iter(nodes))
    if moved_inputs(model) != (0,):
        return None
    if any(n in c.reductions for n in nodes):
        return None
    return model, [_inside(t) for t in terms]


def _inside(term: Term) -> Term:
    old = term.exponent
    exponent = Linear({n.inputs[0]: k for n, k in old.parts.items()}, old.constant, old.logs)
    return Term(term.coefficient, {n.inputs[0]: p for n, p in term.factors.items()}, exponent)


def absorbed(c: Companions, core: Node, node: Node, times: Rational, rest: Linear) -> tuple[Linear, Place] | None:
    """Where `node` is the sum `core` of exp(r) laid out: the rest without -times * r, r laid out in the same way; and
    that way, as a function of values with the axes of r. None where r does not stand in the rest."""
    under, _ = c.reductions[core]
    r = under.exponent
    wanted = {-times * k for k in r.parts.values()}
    for part, k in rest.parts.items():
        if k not in wanted:
            continue
        for place in itertools.chain(_permuted(c, core, node, part), _replayed(c, core, node, part)):
            laid = Linear.total((Linear({place(own): 1}), k) for own, k in r.parts.items())
            if laid.parts and all(rest.parts.get(p) == -times * k for p, k in laid.parts.items()):
                return rest.plus(laid, times), place
    return None


def _permuted(c: Companions, core: Node, node: Node, part: Node) -> Iterator[Place]:
    """Ways to lay out r that take one of its parts to `part` by a permutation of axes, and the sum to `node`."""
    under, axes = c.reductions[core]
    found = reduced_core(c, node)
    if found is None:
        return
    for own in under.exponent.parts:
        place = axis_places(c, own, part)
        if place is None:
            continue
        kept = tuple(place.get(k, -1) for k in range(len(own.shape)) if k not in axes and own.shape[k] != 1)
        if kept == found[1]:
            yield functools.partial(_laid_by, c, node.shape, place)


def axis_places(c: Companions, own: Node, part: Node) -> dict[int, int] | None:
    """Axis of `own` -> axis of `part` along which it lies, where both are layouts of one value."""
    base, permutation = base_and_dims(c.graph, part)
    own_base, own_dims = base_and_dims(c.graph, own)
    if own_base is not base or len(permutation) != len(own_dims):
        return None
    place = dict(zip(own_dims, permutation))
    if len(own.shape) == len(part.shape):  # axes along which neither varies stay where they are
        free = [k for k in range(len(part.shape)) if k not in permutation]
        left = [k for k in range(len(own.shape)) if k not in own_dims]
        place.update({k: k if k in free else f for k, f in zip(left, free)})
    return place


def _laid_by(c: Companions, shape: tuple[int, ...], place: dict[int, int], value: Node) -> Node:
    return laid_along(c, value, shape, place)


def laid_along(c: Companions, value: Node, shape: tuple[int, ...], place: dict[int, int]) -> Node:
    base, dims = base_and_dims(c.graph, value)
    return arrange(c.graph, base, shape, tuple(place.get(d, d) for d in dims))


def _replayed(c: Companions, core: Node, node: Node, part: Node) -> Iterator[Place]:
    """The moves that lead from a part of r to `part`, where the same moves lead from the sum, laid back, to `node`."""
    own = _origin(part, lambda at: at in c.reductions[core][0].exponent.parts)
    if own is not None:
        place = moved_as(c, own, part)
        if place(c.build.lay_back(core, own.shape, c.reductions[core][1])) is node:
            yield place


def others_beside(
    c: Companions, core: Node, node: Node, times: Rational, rest: Linear
) -> tuple[Linear, Node, Place] | None:
    """log_sum_others(r), laid out as the sum is, coefficient -times in the rest: (the rest without it, r, place)."""
    under, axes = c.reductions[core]
    for part, k in rest.parts.items():
        at = _origin(part, lambda at: at.op.name == "log_sum_others")
        if at is None or at.params != (axes,) or k != -times or c.others.get(at) != under.exponent:
            continue
        place = moved_as(c, at, part)
        if place(c.build.lay_back(core, at.shape, axes)) is node:
            return rest.without(part), at.inputs[0], place
    return None


def _origin(part: Node, wanted: Callable[[Node], bool]) -> Node | None:
    """The node that `part` is moved from, by any moves, which is wanted."""
    for _ in range(MOST_MOVES):
        if wanted(part):
            return part
        if moved_inputs(part) != (0,) or part.op.name == "stop_gradient":
            return None
        part = part.inputs[0]
    return None
