"""log(v) where v is made by an operation that a logarithm passes through: max, products, joined or selected pieces."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from stablegrad.facts.reach import LOGARITHM
from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.composites import with_composites
from stablegrad.rules.forms import is_mask
from stablegrad.rules.hazards import is_sum_of_exponentials, made_of_nonnegative, safely_positive

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def log_by_structure(c: Companions, node: Node) -> Node | None:
    """log(node) written through the operation of `node`, or None where that gains nothing."""
    rule = BY_STRUCTURE.get(node.op.name)
    return rule(c, node) if rule is not None else None


def has_structure(c: Companions, node: Node) -> bool:
    """True if the logarithm of `node` can be written without computing `node`."""
    return log_of_squares(c, node) is not None or log_by_structure(c, node) is not None


def log_of_squares(c: Companions, node: Node) -> Node | None:
    """log(sum(x**2)) is 2 log(norm(x)). Not for two such sums in a ratio near 1: one logarithm keeps its digits."""
    from stablegrad.rules.sqrt import length_of

    node = node.inputs[0] if node.op.name == "nonnegative" else node
    length = length_of(c, node) if is_sum_of_squares(c, node) else None
    return None if length is None else c.build.scale(c.build.elementwise("log", length), 2)


def is_sum_of_squares(c: Companions, node: Node) -> bool:
    """`node` may be the square of a length, and may leave the range where the length does not."""
    return node.op.name in ("reduce_sum", "dot_general", "add") and not safely_positive(c, node)


def gains(c: Companions, node: Node) -> bool:
    """True if something better than log(node) is known."""
    if literal_number(node) is not None:
        return False
    terms = c.scaled(node).terms
    if len(terms) == 1 and not terms[0].exponent and list(terms[0].factors.values()) == [1]:
        (factor,) = terms[0].factors  # a number times a value: log(2 x)
        if factor is not node and c.linear(node).parts.keys() == {factor}:
            return gains(c, factor) or has_structure(c, node)
    return not c.trivial(node) or node in c.means or c.terms_of(node) is not None or has_structure(c, node)


def _log(c: Companions, node: Node) -> Node | None:
    """log(node) without a guard, or None."""
    from stablegrad.rules.logarithm import write_log

    number = literal_number(node)
    if number is not None:
        return c.build.full(_log_number(float(number)), node)
    written, guards = write_log(c, node)
    for guard in guards:
        written = c.build.elementwise("require", written, guard)
    return written


def _log_number(x: float) -> float:
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


def _monotone(c: Companions, node: Node) -> Node | None:
    """log max(a, b) = max(log a, log b), also min and clamp, where every operand is nonnegative or the larger one."""
    operands = node.inputs
    if not any(gains(c, i) and not _is_length(c, i) for i in operands) or not all(
        c.facts.nonnegative(i) for i in operands
    ):
        return None
    logs = [_log(c, i) for i in operands]
    if any(log is None for log in logs):
        return None
    if node.op.name in ("max", "min") and len(logs) == 2:
        logs = [*_apart_where_not_taken(c, node, [log for log in logs if log is not None])]
    return c.graph.node(node.op.name, logs, node.params, node.shape, node.dtype)  # type: ignore[arg-type]


def _is_length(c: Companions, node: Node) -> bool:
    """The root of a sum of squares, or the library's hypot: it is in range by itself, and so is its logarithm."""
    from stablegrad.rules.sqrt import unless_maximum_is_0

    while node.op.name in ("arrange", "reshape"):
        node = node.inputs[0]
    if node.op.name == "select":
        return unless_maximum_is_0(c, node) is not None
    return node.op.name == "sqrt" and log_of_squares(c, node.inputs[0]) is not None


def _apart_where_not_taken(c: Companions, node: Node, logs: list[Node]) -> list[Node]:
    """The logarithms of two values, each -inf (inf for a minimum) where the other one is taken and its own value may
    be 0: a slope of 1 / 0 must not meet the 0 that the maximum has for it."""
    end = c.build.number(-math.inf if node.op.name == "max" else math.inf, node.dtype)
    out = []
    for k, value in enumerate(node.inputs):
        own, other = logs[k], logs[1 - k]
        if c.facts.positive(value) or own.op.name == "literal":
            out.append(own)
            continue
        order = (own, other) if node.op.name == "max" else (other, own)
        passed = c.graph.node("lt", order, (), node.shape, np.dtype(bool))
        out.append(c.graph.node("select", (passed, own, end), (), node.shape, node.dtype))
    return out


def _clamp(c: Companions, node: Node) -> Node | None:
    low, x, high = node.inputs
    if not gains(c, x) or not c.facts.nonnegative(x) or not c.facts.positive(high):
        return None
    if not c.facts.nonnegative(low):
        return None
    logs = [_log(c, i) for i in (low, x, high)]
    return c.graph.node("clamp", logs, node.params, node.shape, node.dtype)  # type: ignore[arg-type]


def _extreme(c: Companions, node: Node) -> Node | None:
    (inner,) = node.inputs
    if not gains(c, inner) or not c.facts.nonnegative(inner):
        return None
    return c.graph.node(node.op.name, (_log(c, inner),), node.params, node.shape, node.dtype)  # type: ignore[arg-type]


def _product(c: Companions, node: Node) -> Node | None:
    """log of a product along axes is the sum of logs; of plain values, with the signs multiplied out."""
    (inner,) = node.inputs
    if c.facts.nonnegative(inner):
        return c.build.along("reduce_sum", _log(c, inner), node.params[0])  # type: ignore[arg-type]
    if gains(c, inner):
        return None
    return c.build.along("log_abs_product", inner, node.params[0])


def _cumulative_product(c: Companions, node: Node) -> Node | None:
    (inner,) = node.inputs
    if not c.facts.nonnegative(inner):
        return None
    return c.graph.node("cumsum", (_log(c, inner),), node.params, node.shape, node.dtype)  # type: ignore[arg-type]


def _cumulative_sum(c: Companions, node: Node) -> Node | None:
    (inner,) = node.inputs
    if not gains(c, inner) or not c.facts.nonnegative(inner):
        return None
    return c.graph.node("cumlogsumexp", (_log(c, inner),), node.params, node.shape, node.dtype)  # type: ignore[arg-type]


def _select(c: Companions, node: Node) -> Node | None:
    which, *cases = node.inputs
    if not any(gains(c, i) and not _is_length(c, i) for i in cases):
        return None
    logs = [_log(c, i) for i in cases]
    if all(literal_number(i) is not None or log is None or log.inputs == (i,) for i, log in zip(cases, logs)):
        return None  # the plain logarithm of each: nothing gained, and a guard of the user's lost
    return c.graph.node("select", (which, *logs), node.params, node.shape, node.dtype)  # type: ignore[arg-type]


def drops_errors(c: Companions, move: Node) -> bool:
    """The move leaves out elements whose logarithm may be infinite or NaN: taken before the move, their slopes would be
    0 * inf."""
    source = move.inputs[0]
    if math.prod(move.shape) >= math.prod(source.shape) or safely_positive(c, source):
        return False
    terms = c.terms_of(source) or c.scaled(source).terms
    plain = [f for t in terms for f in t.factors if not is_sum_of_exponentials(c, f) and not is_mask(f)]
    return any(t.coefficient < 0 for t in terms) or not all(safely_positive(c, f) for f in plain)


def _move(c: Companions, node: Node) -> Node | None:
    data = moved_inputs(node)
    if not data or not any(gains(c, node.inputs[k]) for k in data):
        return None
    if any(not is_float(node.inputs[k].dtype) for k in data) or (data == (0,) and drops_errors(c, node)):
        return None
    return c.build.move_like(node, {k: _log(c, node.inputs[k]) for k in data})  # type: ignore[misc]


def _cast(c: Companions, node: Node) -> Node | None:
    (inner,) = node.inputs
    if not is_float(inner.dtype) or not gains(c, inner):
        return None
    return c.graph.node("cast", (_log(c, inner),), (), node.shape, node.dtype)  # type: ignore[arg-type]


def _power(c: Companions, node: Node) -> Node | None:
    """log(p ** y) = y log(p)."""
    base, power = node.inputs
    if not gains(c, base) or not (c.facts.nonnegative(base) or made_of_nonnegative(c, base)):
        return None
    return c.build.elementwise("times_log", power, _log(c, base))  # type: ignore[arg-type]


def _sort(c: Companions, node: Node) -> Node | None:
    """A logarithm keeps the order."""
    (inner,) = node.inputs
    if not gains(c, inner) or not c.facts.nonnegative(inner):
        return None
    return c.build.handle("sort", node, (_log(c, inner),))  # type: ignore[arg-type]


def _erfc(c: Companions, node: Node) -> Node:
    return c.build.elementwise("log_erfc", node.inputs[0])


def _log_of_log(c: Companions, node: Node) -> Node | None:
    """log(log(1 + e^y)): the inner logarithm underflows far left. Also log(-log(sigmoid(-y))) and other spellings."""
    if not c.facts.reach(node) & LOGARITHM:
        return None
    from stablegrad.rules.logarithm import expanded, write_linear

    linear = with_composites(c, c.linear(node))
    if not any(log_argument(c, part) is not None for part in linear.parts):
        return None
    whole, guards = expanded(c, linear)
    if guards:
        return None
    written = write_linear(c, whole, node)
    return c.build.elementwise("log_softplus", written.inputs[0]) if written.op.name == "softplus" else None


BY_STRUCTURE: dict[str, Callable[[Companions, Node], Node | None]] = {
    "max": _monotone,
    "min": _monotone,
    "clamp": _clamp,
    "reduce_max": _extreme,
    "reduce_min": _extreme,
    "cummax": _extreme,
    "cummin": _extreme,
    "reduce_prod": _product,
    "cumprod": _cumulative_product,
    "cumsum": _cumulative_sum,
    "select": _select,
    "move": _move,
    "arrange": _move,
    "reshape": _move,
    "cast": _cast,
    "erfc": _erfc,
    "sort": _sort,
    "pow": _power,
    "log": _log_of_log,
    "log1p": _log_of_log,
    "logaddexp": _log_of_log,
    "neg": _log_of_log,
    "add": _log_of_log,
    "sub": _log_of_log,
}
