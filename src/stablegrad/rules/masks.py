"""Masks: where(c, v, 0) as v times a factor that is 1 or 0.

The factor is a node of its own, select(c, 1, 0), that never meets the value in a product: a term is written without
its masks and then selected, so that a value that is not taken may be anything. Under a sum along axes a mask stands in
the exponent instead, which is -inf where it gives 0: so the sum is shifted by an entry that counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stablegrad.graph.arrange import constant_along
from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import ONE, Linear, Term, is_mask

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


FAR = 64  # nodes looked at to see what a value is made of


def mask(c: Companions, which: Node, zero: tuple[bool, ...], kept: Node, like: Node) -> Node:
    """1 where `which` picks a case that is not `zero`, else 0; what is picked is `kept`."""
    cases = [c.build.number(0 if z else 1, like.dtype) for z in zero]
    made = c.graph.node("select", (which, *cases), (), like.shape, like.dtype)
    c.inside[made] = c.inside.get(made, frozenset()) | (_leaves(kept) or frozenset())
    return made


def moved_mask(c: Companions, moving: Node, old: Node) -> Node:
    """The mask moved as `moving` moves its data: still a mask."""
    which = c.build.move_like(moving, {0: old.inputs[0]})
    return _as(c, old, which, old.dtype)


def cast_mask(c: Companions, old: Node, like: Node) -> Node:
    return _as(c, old, old.inputs[0], like.dtype)


def _as(c: Companions, old: Node, which: Node, dtype: object) -> Node:
    cases = [c.build.number(float(case.value), dtype) for case in old.inputs[1:]]
    made = c.graph.node("select", (which, *cases), (), which.shape, dtype)
    c.inside[made] = c.inside.get(made, frozenset()) | c.inside.get(old, frozenset())
    return made


def _leaves(node: Node) -> frozenset[Node] | None:
    """The values that `node` is computed from; None where it is made of many nodes."""
    found, seen, waiting = set(), {node}, [node]
    while waiting:
        at = waiting.pop()
        if at.op.name in ("input", "constant", "opaque", "output") or not at.inputs:
            found.add(at)
        for n in at.inputs:
            if n not in seen:
                seen.add(n)
                waiting.append(n)
        if len(seen) > FAR:
            return None
    return frozenset(n for n in found if n.op.name != "literal")


def outside(c: Companions, masks: list[Node], node: Node) -> bool:
    """`node` is made of other data than what the masks stand over: NaN in it is no matter of a value not taken."""
    leaves = _leaves(node)
    return leaves is not None and not any(leaves <= c.inside.get(m, leaves) for m in masks)


def masks_of(term: Term) -> list[Node]:
    return sorted((n for n in term.factors if is_mask(n)), key=lambda n: n.order)


def unmasked(term: Term) -> Term:
    return Term(term.coefficient, {n: p for n, p in term.factors.items() if not is_mask(n)}, term.exponent)


def selected(c: Companions, masks: list[Node], value: Node, otherwise: float) -> Node:
    """`value` where no mask is 0, elsewhere `otherwise`."""
    for one in masks:
        which, *cases = one.inputs
        nothing = c.build.number(otherwise, value.dtype)
        taken = [nothing if float(case.value) == 0 else value for case in cases]
        value = c.graph.node("select", (which, *taken), (), value.shape, value.dtype)
    return value


def in_exponent(c: Companions, term: Term, axes: tuple[int, ...] = ()) -> Term:
    """The term with its masks in the exponent; those that are constant along `axes` are left."""
    masks = [n for n in masks_of(term) if not (axes and constant_along(n, axes))]
    for one in masks:
        term = _one_in_exponent(c, term, one, axes)
    return term


def _one_in_exponent(c: Companions, term: Term, one: Node, axes: tuple[int, ...]) -> Term:
    known = with_known_exponent(c, term, one)
    if known is not None:
        return known
    from stablegrad.rules.log_of_sum import write_sum

    still = {
        n for n in (*term.factors, *term.exponent.parts) if (axes and constant_along(n, axes)) or outside(c, [one], n)
    }
    inside = Linear({n: k for n, k in term.exponent.parts.items() if n not in still})
    left = Linear({n: k for n, k in term.exponent.parts.items() if n in still}, term.exponent.constant,
                  term.exponent.logs)  # fmt: skip
    exponent = write_sum(c, inside, one) if inside.parts else c.build.full(0, one)
    masked = selected(c, [one], exponent, -math.inf)
    if inside.parts:
        c.masked.setdefault(one, []).append((inside, masked))
    factors: dict[Node, Rational] = {}
    for node, power in term.factors.items():
        if node is not one:
            harmless = node if node in still or is_mask(node) else selected(c, [one], node, 1.0)
            factors[harmless] = factors.get(harmless, 0) + power
    return Term(term.coefficient, factors, left.plus(Linear({masked: ONE})))


def with_known_exponent(c: Companions, term: Term, one: Node) -> Term | None:
    """mask * exp(e) as exp(masked e), where a sum along axes has put the mask into that exponent before."""
    for inside, masked in c.masked.get(one, ()):
        if set(term.factors) == {one} and _holds(term.exponent, inside):
            return Term(term.coefficient, {}, term.exponent.plus(inside, -ONE).plus(Linear({masked: ONE})))
    return None


def above_own_sum(c: Companions, masks: list[Node], exponent: Linear, sums: list[Node]) -> tuple[Linear, Node] | None:
    """A softmax of masked entries: where one of `sums`, sums along axes, is of exponentials that are masked in the same
    way, the exponent with that mask put into it, and the mask."""
    for one in masks:
        for inside, masked in c.masked.get(one, ()):
            if _holds(exponent, inside) and any(masked in c.reductions[s][0].exponent.parts for s in sums):
                return exponent.plus(inside, -ONE).plus(Linear({masked: ONE})), one
    return None


def _holds(exponent: Linear, inside: Linear) -> bool:
    return all(exponent.parts.get(n) == k for n, k in inside.parts.items())
