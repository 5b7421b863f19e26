"""What a sum along axes has in front of it, put back inside where nothing cancelled it.

A sum of exp(x - c), c constant along the axes, is exp(-c) times the sum of exp(x), so that c can cancel against what
stands beside the sum. Where it does not, x - c is what the program computed, and may be small where x and c are large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.layout import Place, moved_as

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def remember(c: Companions, core: Node, term: Term) -> None:
    """`term`, constant along the axes of the sum `core` and still with these axes, stands in front of it."""
    out = Linear(term.exponent.parts)
    for node, power in term.factors.items():
        if is_sum_of_exponentials(c, node):
            out = out.plus(Linear({c.build.elementwise("log", node): power}))
    if out.parts:
        known = c.taken_out.setdefault(core, [])
        if out not in known:
            known.append(out)


def put_back(
    c: Companions, core: Node, node: Node, times: Rational, beside: dict[Node, Rational]
) -> tuple[Linear, set[Node]] | None:
    """(the exponent under the sum with what was in front of it, the parts of `beside` that this takes), where all of
    that stands beside times * log(node), `node` the sum `core` moved; else None."""
    under, axes = c.reductions[core]
    for taken in c.taken_out.get(core, ()):
        place = moved_as(c, core, node)
        parts = {_placed(c, part, axes, place): k for part, k in taken.parts.items()}
        if all(beside.get(part) == times * k for part, k in parts.items()):
            return under.exponent.plus(taken, ONE), set(parts)
    return None


def _placed(c: Companions, part: Node, axes: tuple[int, ...], place: Place) -> Node:
    if part.op.name == "log":
        return c.build.elementwise("log", place(c.build.drop(part.inputs[0], axes)))
    return place(c.build.drop(part, axes))
