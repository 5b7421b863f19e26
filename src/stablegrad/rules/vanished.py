"""What a cancellation divided out: its NaN and infinities must not be lost with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.forms import Term

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

FAR = 64  # nodes looked at to see that a value is made of others


def keep_domain(c: Companions, written: Node, before: Iterable[Term], after: Iterable[Term]) -> Node:
    """`written`, NaN wherever a part that stands in `before` but no longer in `after` is infinite or NaN."""
    left = _parts(after)
    for part in sorted(_parts(before) - left, key=lambda n: n.order):
        if c.terms_of(part) is None and not _made_of(part, left):
            written = c.build.elementwise("require_finite", written, part)
    return written


def _parts(terms: Iterable[Term]) -> set[Node]:
    return {n for t in terms for n in (*t.factors, *t.exponent.parts)}


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
