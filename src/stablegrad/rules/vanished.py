"""What a cancellation removed: its NaN and infinities must not be lost with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, literal_number
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import ZERO, Term, is_mask
from stablegrad.rules.layout import moved_as, under_moves

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

FAR = 64  # nodes looked at to see that a value is made of others


def keep_divided(c: Companions, written: Node, before: Iterable[Term], after: Iterable[Term]) -> Node:
    """`written`, NaN wherever a part that was divided out, in `before` but no longer in `after`, is infinite or NaN."""
    for part in _vanished(c, before, after):
        written = c.build.elementwise("require_finite", written, _witness(c, part))
    return written


def keep_subtracted(c: Companions, written: Node, before: Iterable[Term], after: Iterable[Term]) -> Node:
    """`written`, NaN wherever a term that was subtracted from itself is infinite or NaN: exp(-inf) is 0 and is not."""
    before = list(before)
    powers = parts_of(before)
    for part in _vanished(c, before, after):
        written = finite_where_raised(c, written, part, powers[part])
    return written


def _witness(c: Companions, part: Node) -> Node:
    """What is infinite or NaN where `part` is by its data. A sum of exponentials along axes may overflow by itself: it
    is so where its largest exponent is."""
    from stablegrad.rules.log_of_sum import rest_node

    while part.op.name == "square" or (part.op.name == "integer_pow" and part.params[0] > 0):
        (part,) = part.inputs  # which may overflow by itself too
    core = under_moves(c, part)
    if core is None or c.reductions[core][0].factors:
        return part
    under, axes = c.reductions[core]
    return moved_as(c, core, part)(c.build.along("reduce_max", rest_node(c, under.exponent), axes))


def finite_where_raised(c: Companions, written: Node, part: Node, power: Rational) -> Node:
    """`written`, NaN where `part` is NaN or infinite to the side to which `power` raises it; both sides for 0."""
    part = _witness(c, part)
    if power:
        zero = c.build.number(ZERO, part.dtype)
        part = c.build.elementwise("max" if power > 0 else "min", part, zero)
    return c.build.elementwise("require_finite", written, part)


def parts_of(terms: Iterable[Term]) -> dict[Node, Rational]:
    """The nodes in the terms, each with its coefficient in an exponent; 0 for a factor, or where signs differ."""
    out: dict[Node, Rational] = {}
    for term in terms:
        for node in term.factors:
            out[node] = ZERO
        for node, times in term.exponent.parts.items():
            known = out.get(node, times)
            out[node] = times if known * times > 0 else ZERO
    return out


def _vanished(c: Companions, before: Iterable[Term], after: Iterable[Term]) -> list[Node]:
    after = list(after)
    left = {n for t in after for n in (*t.factors, *t.exponent.parts)}
    left |= {n.inputs[0] for n in left if n.op.name == "nonnegative"}
    gone = [p for p in parts_of(before) if p not in left and c.terms_of(p) is None and not is_mask(p)]
    if not gone:
        return gone
    left = _opened(c, after)
    return [part for part in sorted(gone, key=lambda n: n.order) if not _made_of(part, left)]


def _opened(c: Companions, terms: Iterable[Term]) -> set[Node]:
    """The nodes in the terms, and in the sums that stand among their factors."""
    found: set[Node] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        new = {*term.factors, *term.exponent.parts} - found
        found |= new
        for node in new:
            waiting += c.terms_of(node) or ()
    return found


def _made_of(node: Node, known: set[Node]) -> bool:
    """Every value that `node` is computed from stands among `known`: NaN in it is NaN in them."""
    waiting, seen = [node], 0
    while waiting:
        at = waiting.pop()
        seen += 1
        if at in known or at.op.name == "constant" or literal_number(at) is not None:
            continue
        if at.op.name in ("input", "opaque", "output") or seen > FAR or not at.inputs:
            return False
        waiting.extend(at.inputs)
    return True
