"""The argument of a logarithm, however the logarithm is spelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.facts.reach import EXPONENTIAL
from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.forms import ONE

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def log_argument(c: Companions, part: Node) -> Node | None:
    """u where `part` is log(u): log, log1p, logaddexp; None for anything else."""
    if part.op.name == "log":
        return part.inputs[0]
    if part.op.name == "log1p":
        return c.build.elementwise("add", part.inputs[0], c.build.number(ONE, part.dtype))
    if part.op.name == "logaddexp" and not any(_scaled_logarithm(c, i) for i in part.inputs):
        return c.build.elementwise("add", *(_exponential(c, i, part) for i in part.inputs))
    return None


def _scaled_logarithm(c: Companions, node: Node) -> bool:
    """`node` holds 3 log(u), u plain: u**3 leaves the range where that does not."""
    return any(
        part.op.name in ("log", "log1p") and times not in (1, -1) and not c.facts.reach(part) & EXPONENTIAL
        for part, times in c.linear(node).parts.items()
    )


def _exponential(c: Companions, exponent: Node, like: Node) -> Node:
    number = literal_number(exponent)
    if number == 0:
        return c.build.number(ONE, like.dtype)
    return c.build.elementwise("exp", exponent if number is None else c.build.full(number, like))


def less_one(c: Companions, node: Node) -> Node | None:
    """v where `node` is 1 + v or 1 - w, v = -w."""
    if node.op.name not in ("add", "sub"):
        return None
    a, b = node.inputs
    if literal_number(a) == 1:
        return b if node.op.name == "add" else c.build.neg(b)
    return a if literal_number(b) == 1 and node.op.name == "add" else None
