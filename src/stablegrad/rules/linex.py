"""exp(x) - 1 - x, and y - 1 - log(y), which vanish to second order: divergences of Gaussian and Poisson distributions,
the estimates of a policy's divergence from another. Taken term by term they are all cancellation near 0."""

from __future__ import annotations

from stablegrad.facts.reach import EXPONENTIAL, LOGARITHM
from stablegrad.graph.node import Node, literal_number
from stablegrad.graph.rational import magnitude
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import ONE, Linear
from stablegrad.rules.log_of_sum import write_sum
from stablegrad.rules.logarithm import expanded, log_node
from stablegrad.rules.rule import Rewritten, guarded, rule


@rule("sub", "add")
def exponential_less_its_line(c: Companions, node: Node) -> Rewritten | None:
    """exp(x) - 1 - x and y - 1 - log(y), also among other terms and with numbers in front."""
    if not c.facts.reach(node) & (EXPONENTIAL | LOGARITHM) or any(literal_number(i) == 0 for i in node.inputs):
        return None
    linear = c.linear(node)
    if len(linear.parts) < 2 or linear.logs:
        return None
    if not linear.constant and not any(p.op.name == "expm1" for p in linear.parts):
        return None
    found, guards = _written(c, linear, node), frozenset[Node]()
    if found is None and any(p.op.name == "log" for p in linear.parts):
        whole, guards = expanded(c, linear)
        found = _written(c, whole, node) if not whole.logs else None
    if found is None:
        return None
    reason = "an exponential less its tangent cancels near 0; it is computed as one"
    return Rewritten(guarded(c, found, guards), reason)


def _written(c: Companions, left: Linear, like: Node) -> Node | None:
    pieces = []
    for part, times in list(left.parts.items()):
        line = _logarithm(c, part)
        if line is None or left.parts.get(part) != times:
            continue
        if any(left.parts.get(p) != -times * k for p, k in line.parts.items()):
            continue
        number = 0 if part.op.name == "expm1" else times
        rest = left.plus(line, times).plus(Linear({part: times}), -ONE).plus(Linear(constant=number))
        if number and magnitude(rest.constant) >= magnitude(left.constant):
            continue  # there is no number beside them to take it from
        pieces.append(c.build.scale(_linex(c, part, line, like), times))
        left = rest
    if not pieces:
        return None
    return c.build.total([*pieces, write_sum(c, left, like)] if left else pieces)


def _linex(c: Companions, part: Node, line: Linear, like: Node) -> Node:
    x = write_sum(c, line, like)
    if all(p.op.name == "log" for p in line.parts):
        # far from 0 as it stands: exp(log(y)) has fewer digits than y
        whole = c.build.sub(c.build.sub(part, c.build.number(1, like.dtype)), x)
        return c.build.elementwise("linex_near_0", x, whole)
    return c.build.elementwise("linex", x)


def _logarithm(c: Companions, part: Node) -> Linear | None:
    """x where `part` is exp(x), expm1(x) + 1, or any product of powers: its logarithm as a formal sum."""
    if part.op.name == "expm1":
        line = c.linear(part.inputs[0])
    else:
        term, guards = c.single(part)
        if guards or term.coefficient != 1:
            return None
        line = term.exponent.plus(Linear({log_node(c, f): p for f, p in term.factors.items()}))
    return line if line.parts and not line.constant and not line.logs else None
