"""Rules whose root is a product."""

from __future__ import annotations

from stablegrad.facts.reach import EXPONENTIAL, LOGARITHM, QUOTIENT
from stablegrad.graph.node import Node, literal_number
from stablegrad.graph.rational import Rational
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import ONE, Linear
from stablegrad.rules.hazards import bounded, has_exponential
from stablegrad.rules.known_quotients import power_of_cosh
from stablegrad.rules.logarithm import expanded, log_of, write_linear
from stablegrad.rules.rule import Rewritten, rule
from stablegrad.rules.structure import gains
from stablegrad.rules.times_logarithm import own_factors, times_logarithm
from stablegrad.rules.value import write_scaled
from stablegrad.rules.vanished import keep_divided


@rule("mul")
def product_with_logarithm(c: Companions, node: Node) -> Rewritten | None:
    """t * log(p): 0 where t is 0 and p is 0; p * log(p) has the limit 0."""
    if not c.facts.reach(node) & LOGARITHM:
        return None
    for k in (1, 0):
        logarithm, other = with_weight(c, node.inputs[k], node.inputs[1 - k])
        if literal_number(logarithm) is not None or not holds_logarithm(c, logarithm):
            continue
        number = literal_number(other)
        if number is not None and number != 0 and _reaches_minus_infinity(c, logarithm):
            return None
        found = times(c, other, logarithm, node)
        if found is not None:
            return found
    return None


def with_weight(c: Companions, logarithm: Node, t: Node) -> tuple[Node, Node]:
    """(log(p), t u) for a product t * (u * log(p)): the slope of p log(p) at 0 is infinite, that of t p log(p) not."""
    number: Rational = ONE
    node, weighted = logarithm, t
    while not holds_logarithm(c, node):
        linear = c.linear(node)
        if len(linear.parts) != 1 or linear.constant or linear.logs:
            return logarithm, t
        ((inner, k),) = linear.parts.items()
        if inner.op.name != "mul" or any(i.shape != inner.shape for i in inner.inputs):
            return logarithm, t
        at = next((i for i in (0, 1) if c.facts.reach(inner.inputs[i]) & LOGARITHM), None)
        if at is None:
            return logarithm, t
        number, node, weight = number * k, inner.inputs[at], inner.inputs[1 - at]
        weighted = c.build.mul(weighted, weight)
    if node is logarithm or not own_factors(c, weighted, node):
        return logarithm, t
    return node, c.build.scale(weighted, number)


def times(c: Companions, t: Node, logarithm: Node, node: Node) -> Rewritten | None:
    """t * logarithm, where the one can be 0 and the other -inf; `node` is the plain product."""
    found = _times_own_logarithm(c, t, logarithm, node)
    if found is not None:
        return found
    if not _reaches_minus_infinity(c, logarithm) or _is_mask(t):
        return None
    if literal_number(t) == 0:
        return Rewritten(c.build.elementwise("times_log", c.build.full(0, node), logarithm), "0 * log(0) is 0")
    return Rewritten(_times_logarithm(c, t, logarithm, node), "0 * log(0) is 0, in value and gradient")


def _times_logarithm(c: Companions, t: Node, logarithm: Node, node: Node) -> Node:
    """t * log(p): as xlogy, which has both derivatives at 0, where p itself is at hand."""
    linear = c.linear(logarithm)
    parts = list(linear.parts.items())
    if len(parts) == 1 and not linear.constant and not linear.logs:
        (part, k) = parts[0]
        u = log_argument(c, part)
        if u is not None and part.op.name == "log" and not gains(c, u) and not own_factors(c, t, logarithm):
            return c.build.scale(c.build.elementwise("stable_xlogy", t, u), k)
        v = None if u is None else _less_one(c, u)
        if v is not None:
            return c.build.scale(c.build.elementwise("stable_xlog1py", t, v), k)
    found = times_logarithm(c, t, logarithm, node)
    return found if found is not None else c.build.elementwise("times_log", t, logarithm)


def _less_one(c: Companions, u: Node) -> Node | None:
    """v where u is 1 + v, v made of plain values."""
    terms = c.scaled(u).terms
    others = tuple(t for t in terms if not t.is_number())
    if len(others) != 1 or sum(t.coefficient for t in terms if t.is_number()) != 1 or has_exponential(c, u):
        return None
    return c.raw_sum(others, u)


def _is_mask(node: Node) -> bool:
    """A truth value as a number: the engine's compiler reads its product as a `where` (`branches.py`)."""
    return node.op.name == "cast" and node.inputs[0].dtype.kind == "b"


def holds_logarithm(c: Companions, node: Node) -> bool:
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
    if not any(c.facts.may_overflow(i) for i in node.inputs):
        return _slope_of_sigmoid(c, node)
    if any(literal_number(i) is not None for i in node.inputs) or node.inputs[0] is node.inputs[1]:
        return None  # a square is out of range only where the result is
    if not any(has_exponential(c, i) and not bounded(c, i) for i in node.inputs) or c.trivial(node):
        return None
    if not _meets(c, node):
        return None
    before = [c.single(i)[0] for i in node.inputs]
    written = keep_divided(c, write_scaled(c, c.scaled(node), node), before, c.scaled(node).terms)
    return None if written is node else Rewritten(written, "a factor can overflow while the product is small; "
                                                  "exponents are added first")  # fmt: skip


def _slope_of_sigmoid(c: Companions, node: Node) -> Rewritten | None:
    """p * (1 - p) of a sigmoid p: in range, but the derivative of the product is a difference that cancels at 0."""
    term, guards = c.single(node)
    if guards or len(term.factors) != 1 or next(iter(term.factors.values())) != -2:
        return None
    found = power_of_cosh(c, term.factors, term.exponent, node)
    if found is None or found[1] or found[2].parts:
        return None
    written = write_scaled(c, c.scaled(node), node)
    return Rewritten(written, "the slopes of the factors cancel near 0; as one function its derivative is right")


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
