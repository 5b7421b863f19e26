"""Rules whose root is a product."""

from __future__ import annotations

from stablegrad.facts.reach import EXPONENTIAL, LOGARITHM, QUOTIENT
from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import Linear
from stablegrad.rules.hazards import bounded, has_exponential
from stablegrad.rules.logarithm import expanded, log_of, write_linear
from stablegrad.rules.rule import Rewritten, rule
from stablegrad.rules.structure import gains
from stablegrad.rules.value import write_scaled
from stablegrad.rules.vanished import keep_divided


@rule("mul")
def product_with_logarithm(c: Companions, node: Node) -> Rewritten | None:
    """t * log(p): 0 where t is 0 and p is 0; p * log(p) has the limit 0."""
    if not c.facts.reach(node) & LOGARITHM:
        return None
    for k in (1, 0):
        logarithm, other = node.inputs[k], node.inputs[1 - k]
        if literal_number(logarithm) is not None or not _holds_logarithm(c, logarithm):
            continue
        found = _times_own_logarithm(c, other, logarithm, node)
        if found is not None:
            return found
        if not _reaches_minus_infinity(c, logarithm) or _is_mask(other):
            continue
        number = literal_number(other)
        if number is not None and number != 0:
            return None
        if number == 0:
            return Rewritten(c.build.elementwise("times_log", c.build.full(number, node), logarithm),
                             "0 * log(0) is 0")  # fmt: skip
        return Rewritten(_times_logarithm(c, other, logarithm), "0 * log(0) is 0, in value and gradient")
    return None


def _times_logarithm(c: Companions, t: Node, logarithm: Node) -> Node:
    """t * log(p): as xlogy, which has both derivatives at 0, where p itself is at hand."""
    linear = c.linear(logarithm)
    parts = list(linear.parts.items())
    if len(parts) == 1 and not linear.constant and not linear.logs and parts[0][0].op.name == "log":
        (part, k) = parts[0]
        if not gains(c, part.inputs[0]):
            return c.build.scale(c.build.elementwise("stable_xlogy", t, part.inputs[0]), k)
    return c.build.elementwise("times_log", t, logarithm)


def _is_mask(node: Node) -> bool:
    """A truth value as a number: the engine's compiler reads its product as a `where` (`branches.py`)."""
    return node.op.name == "cast" and node.inputs[0].dtype.kind == "b"


def _holds_logarithm(c: Companions, node: Node) -> bool:
    return any(log_argument(c, part) is not None for part in _under_moves(c, c.linear(node)))


def _reaches_minus_infinity(c: Companions, node: Node) -> bool:
    """`node` is a sum that holds the logarithm of something that may be 0."""
    return any(
        (u := log_argument(c, part)) is not None and part.op.name != "logaddexp" and not c.facts.positive(u)
        for part in _under_moves(c, c.linear(node))
    )


def _under_moves(c: Companions, linear: Linear) -> list[Node]:
    out = []
    for part in linear.parts:
        while part.op.name in ("arrange", "reshape", "move"):
            part = part.inputs[0]
        out.append(part)
    return out


def product_with(c: Companions, x: Node, logarithm: Node, plain: Node, node: Node) -> Rewritten:
    """x * log(y): `logarithm` written stably, `plain` the log(y) that it stands for."""
    found = _times_own_logarithm(c, x, plain, node)
    if found is not None:
        return found
    return Rewritten(c.build.elementwise("times_log", x, logarithm), "0 * log(0) is 0, in value and gradient")


def _times_own_logarithm(c: Companions, other: Node, logarithm: Node, node: Node) -> Rewritten | None:
    """p * (log(p) + ...) as (log p + ...) * exp(log p)."""
    if c.trivial(other) or not has_exponential(c, other):
        return None
    own, guards = log_of(c, other)
    whole, more = expanded(c, c.linear(logarithm))
    if guards or more or not own.parts or any(whole.parts.get(n) != k for n, k in own.parts.items()):
        return None
    exponent = write_linear(c, own, node)
    factor = exponent if whole == own else logarithm
    return Rewritten(c.build.elementwise("mul_exp", factor, exponent), "p * log(p) has the limit 0 where p is 0")


@rule("mul")
def product_of_exponentials(c: Companions, node: Node) -> Rewritten | None:
    """exp(a) * exp(-b): exponents added first, where a factor can overflow."""
    if not all(c.facts.reach(i) & EXPONENTIAL for i in node.inputs) and not c.facts.reach(node) & QUOTIENT:
        return None
    if all(bounded(c, i) for i in node.inputs) or any(literal_number(i) is not None for i in node.inputs):
        return None
    if not any(has_exponential(c, i) and not bounded(c, i) for i in node.inputs) or c.trivial(node):
        return None
    if not _meets(c, node):
        return None
    before = [c.single(i)[0] for i in node.inputs]
    written = keep_divided(c, write_scaled(c, c.scaled(node), node), before, c.scaled(node).terms)
    return None if written is node else Rewritten(written, "a factor can overflow while the product is small; "
                                                  "exponents are added first")  # fmt: skip


def _meets(c: Companions, node: Node) -> bool:
    """Both operands bring exponents or sums, or share a factor with opposite powers."""
    (a, _), (b, _) = (c.single(i) for i in node.inputs)
    if any(n in b.factors and a.factors[n] * b.factors[n] < 0 for n in a.factors):
        return True
    return has_exponential(c, node.inputs[0]) and has_exponential(c, node.inputs[1])


@rule("mul")
def product_that_cancels(c: Companions, node: Node) -> Rewritten | None:
    """(t / y) * y is t."""
    if not c.facts.reach(node) & QUOTIENT:
        return None
    (a, _), (b, _) = (c.single(i) for i in node.inputs)
    shared = [n for n in a.factors if n in b.factors and a.factors[n] == -b.factors[n]]
    if not shared or any(literal_number(i) is not None for i in node.inputs):
        return None
    written = keep_divided(c, write_scaled(c, c.scaled(node), node), (a, b), c.scaled(node).terms)
    return None if written is node else Rewritten(written, "a factor is divided out and multiplied in again")
