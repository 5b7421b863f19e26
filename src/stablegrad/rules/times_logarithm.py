"""t * (log(p) + ...) where t and p may both be 0: the limit 0, and slopes that are no 0 * inf.

Where t is made of p itself, t = r p**k, the product near p = 0 is r times p**k log p, whose slope there is -inf for k
up to 1 and 0 for a larger one. Elsewhere 0 * log(0) is 0 because t is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.hazards import has_exponential, is_sum_of_exponentials
from stablegrad.rules.logarithm import expanded, is_plain, log_node, log_of, write_linear
from stablegrad.rules.rule import guarded
from stablegrad.rules.structure import gains
from stablegrad.rules.value import write_term

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def times_logarithm(c: Companions, t: Node, logarithm: Node, node: Node) -> Node | None:
    """t * logarithm, of the shape of `node`; None where no factor of t or of an argument of a logarithm is plain."""
    whole, guards = _whole(c, logarithm)
    term, more = c.single(t)
    if more or has_exponential(c, t) or t.shape != node.shape or logarithm.shape != node.shape:
        return None
    own = [(f, k) for f, k in term.factors.items() if k > 0 and _weight(c, whole, f)]
    written = _of_own_power(c, term, own, whole, node) if len(own) == 1 else None
    if written is None:
        written = _with_limits(c, t, term, [f for f, _ in own], whole, node)
    if written is None:
        return None
    lost = [g for g in guards if not log_of(c, g)[0].parts.keys() <= whole.parts.keys()]  # others are NaN by themselves
    return guarded(c, written, frozenset(lost))


def own_factors(c: Companions, t: Node, logarithm: Node) -> bool:
    """A factor of t is the argument of a logarithm, or a factor of it."""
    whole, _ = _whole(c, logarithm)
    return any(k > 0 and _weight(c, whole, f) for f, k in c.single(t)[0].factors.items())


def _whole(c: Companions, logarithm: Node) -> tuple[Linear, frozenset[Node]]:
    """The formal sum, its logarithms as companions but for those that are best left as they are: log(p / 3)."""
    linear = c.linear(logarithm)
    kept = {p: k for p, k in linear.parts.items() if p.op.name == "log" and not gains(c, p.inputs[0])}
    others = {p: k for p, k in linear.parts.items() if p not in kept}
    whole, guards = expanded(c, Linear(others, linear.constant, linear.logs))
    return whole.plus(Linear(kept)), guards


def _of_own_power(
    c: Companions, term: Term, own: list[tuple[Node, Rational]], whole: Linear, node: Node
) -> Node | None:
    """r p**k * m log(p), with nothing else beside the logarithm."""
    ((p, k),) = own
    if len(whole.parts) != 1 or whole.constant or whole.logs:
        return None
    ((part, m),) = whole.parts.items()
    u = part.inputs[0]
    return _power_times_log(c, term, p, k, m, node, absolute=u.op.name == "abs") if _base(u) is p else None


def _power_times_log(c: Companions, term: Term, p: Node, k: Rational, m: Rational, node: Node, absolute: bool) -> Node:
    rest = Term(term.coefficient * m, {n: j for n, j in term.factors.items() if n is not p}, term.exponent)
    if rest.is_number():
        return c.build.scale(c.build.elementwise("power_times_log", p, params=(k, absolute)), rest.coefficient)
    other = write_term(c, rest, node)
    both = c.build.elementwise("and", _is_zero(c, p), _is_zero(c, other))
    inside = _select(c, both, c.build.number(ONE, p.dtype), p)  # a slope of -inf must not meet a 0
    return c.build.mul(other, c.build.elementwise("power_times_log", inside, params=(k, absolute)))


def _with_limits(c: Companions, t: Node, term: Term, own: list[Node], whole: Linear, node: Node) -> Node | None:
    """The product computed at harmless values where a factor p of a logarithm's argument is 0 and t is: 0 there."""
    factors = _plain_factors(c, whole)
    if not factors:
        return None
    own = [p for p in own if p in factors]
    where = {p: _is_zero(c, p) for p in factors}
    apart = {p: zero if p in own else c.build.elementwise("and", zero, _is_zero(c, t)) for p, zero in where.items()}
    safe = {p: _select(c, apart[p], c.build.number(ONE, p.dtype), p) for p in factors}
    inside = Term(term.coefficient, {safe[f] if f in own else f: k for f, k in term.factors.items()}, term.exponent)
    replaced = Linear(constant=whole.constant, logs=whole.logs)
    for part, times in whole.parts.items():
        replaced = replaced.plus(Linear({_replaced(c, part, safe): ONE}), times)
    factor = write_term(c, inside, node) if own else t
    out = c.build.elementwise("times_log", factor, write_linear(c, replaced, node))
    for p in factors:
        limit = c.build.number(0, node.dtype)
        if p in own:
            limit = _power_times_log(c, term, p, term.factors[p], _weight(c, whole, p), node, absolute=True)
            out = _select(c, apart[p], limit, out)
    return out


def _select(c: Companions, which: Node, yes: Node, no: Node) -> Node:
    return c.graph.node("select", (which, no, yes), (), which.shape, no.dtype)


def _is_zero(c: Companions, node: Node) -> Node:
    return c.graph.node("eq", (node, c.build.number(0, node.dtype)), (), node.shape, np.dtype(bool))


def _base(node: Node) -> Node:
    return node.inputs[0] if node.op.name in ("abs", "nonnegative") else node


def _arguments(c: Companions, part: Node) -> dict[Node, Rational]:
    """The factors of u, with their powers, where `part` is log(u) of plain values."""
    if part.op.name != "log" or not is_plain(c, part.inputs[0]):
        return {}
    u = _base(part.inputs[0])
    return {_base(n): k for n, k in _factored(c, u).factors.items()}


def _factored(c: Companions, u: Node) -> Term:
    """u as a number times factors."""
    joined = c.joined.get(u)
    if joined is not None:
        return joined
    term, guards = c.single(u)
    whole = term.exponent or guards or not term.coefficient or any(is_sum_of_exponentials(c, f) for f in term.factors)
    return Term(factors={u: ONE}) if whole else term


def _weight(c: Companions, whole: Linear, p: Node) -> Rational:
    """m, where the sum of logarithms holds m log(p)."""
    return sum((times * _arguments(c, part).get(p, 0) for part, times in whole.parts.items()), start=0)


def _plain_factors(c: Companions, whole: Linear) -> list[Node]:
    found = {p for part in whole.parts for p in _arguments(c, part) if not c.facts.positive(p)}
    return sorted(found, key=lambda n: n.order)


def _replaced(c: Companions, part: Node, safe: dict[Node, Node]) -> Node:
    """log(u) with factors of u replaced."""
    if not _arguments(c, part).keys() & safe.keys():
        return part
    u = part.inputs[0]
    base = _base(u)
    term = _factored(c, base)
    new_term = Term(term.coefficient, {_under(c, n, safe): k for n, k in term.factors.items()})
    new = c.raw_term(new_term, u)
    if base in c.joined:
        c.joined[new] = new_term
    return log_node(c, c.build.elementwise("abs", new) if u.op.name == "abs" else new)


def _under(c: Companions, node: Node, safe: dict[Node, Node]) -> Node:
    base = _base(node)
    if base not in safe:
        return node
    return c.build.elementwise("abs", safe[base]) if node.op.name == "abs" else safe[base]
