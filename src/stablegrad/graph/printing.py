"""A node as a short expression, for reports."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stablegrad.graph.node import Node

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "pow": "**",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
}
QUIET = ("arrange", "reshape", "cast", "stop_gradient")  # what only lays the same numbers out


NO_NAMES: Mapping[Node, str] = {}


def expression(node: Node, depth: int = 5, names: Mapping[Node, str] = NO_NAMES) -> str:
    """Readable text of the operation and, to `depth`, of what it reads; deeper values are `...`. `names` are those of
    arguments, which are `input` without one."""
    name = node.op.name
    if name == "literal":
        return f"{float(node.value):.6g}" if node.value.dtype.kind in "fiub" else str(node.value)
    if name in ("input", "constant"):
        return names.get(node, name)
    if name in QUIET:
        return expression(node.inputs[0], depth, names)
    if depth == 0:
        return "..."
    operands = node.inputs
    if node.op.commutative:  # the number last, whichever was made first
        operands = tuple(sorted(operands, key=lambda i: i.op.name == "literal"))
    inner = [expression(i, depth - 1, names) for i in operands]
    if name in INFIX:
        return f"({inner[0]} {INFIX[name]} {inner[1]})"
    if name == "neg":
        return f"-{inner[0]}"
    if name == "integer_pow":
        return f"{inner[0]}**{node.params[0]}"
    if name == "move":
        return f"{node.params[0].primitive}({', '.join(inner[k] for k in node.params[0].data)})"
    if name == "log_sum_terms" and node.params and node.params[0] >= 0:
        inner += ["1", "0"]
    shown = name.replace("stable_", "stable ")
    axes = node.params[0] if node.params and isinstance(node.params[0], tuple) else None
    return f"{shown}({', '.join(inner)}{f', axis={axes}' if axes else ''})"


def without_leaves(text: str) -> str:
    """An expression with one sign for all that stands at its ends: inputs, constants, and what is too deep to show."""
    return re.sub(r"\b(input|constant)\b|\.\.\.", "_", text)
