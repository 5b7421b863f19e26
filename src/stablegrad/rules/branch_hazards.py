"""Which input of an operation must be what, so that neither value nor slope is infinite; a harmless value for it."""

from __future__ import annotations

from collections.abc import Callable

from stablegrad.facts.interval import Interval
from stablegrad.graph.node import Node, literal_number

Safe = Callable[[Interval, Node], bool]
EXP_LIMIT = {"float64": 700.0, "float16": 11.0}


def _within(low: float, high: float) -> Safe:
    return lambda bounds, node: low < bounds[0] and bounds[1] < high


def _nonzero(bounds: Interval, node: Node) -> bool:
    return bounds[0] > 0 or bounds[1] < 0


def _not_zero(bounds: Interval, node: Node) -> bool:
    """As _positive; where nothing but 0 is in the way, a negative number is the user's own fault."""
    return bounds[0] > 0


def _exponent(bounds: Interval, node: Node) -> bool:
    return bounds[1] <= EXP_LIMIT.get(str(node.dtype), 80.0)


def _exponent_of_either_sign(bounds: Interval, node: Node) -> bool:
    return _exponent((-bounds[1], -bounds[0]), node) and _exponent(bounds, node)


def _positive(bounds: Interval, node: Node) -> bool:
    return bounds[0] > 0


def _above_minus_1(bounds: Interval, node: Node) -> bool:
    return bounds[0] > -1


def _nonnegative(bounds: Interval, node: Node) -> bool:
    return bounds[0] >= 0


def _never(bounds: Interval, node: Node) -> bool:
    return False


_INF = float("inf")
_INSIDE = _within(-1.0, 1.0)


def hazards_of(node: Node) -> tuple[tuple[int, Safe, float], ...]:
    """(position, test, harmless value) of the inputs that have to be harmless where the result is not asked for."""
    if node.op.name in ("log_sum_terms", "shift_terms"):  # mantissa, exponent, mantissa, exponent ...
        return tuple((k, _never, 1.0 - k % 2) for k in range(len(node.inputs)))
    if node.op.name == "log_of_ratio":
        return tuple((k, _positive, 1.0) for k in range(len(node.inputs)))
    return HAZARDS.get(node.op.name, ())


def safe_beside_zero(safe: Safe, where: Node, node: Node) -> bool:
    """`where` says that `node` is 0: where it does not hold, what is safe for all but 0 is safe."""
    at_zero = where.op.name == "eq" and where.inputs[0] is node and literal_number(where.inputs[1]) == 0
    return at_zero and safe in (_nonzero, _not_zero)


HAZARDS: dict[str, tuple[tuple[int, Safe, float], ...]] = {
    "log": ((0, _positive, 1.0),),
    "log1p": ((0, _above_minus_1, 0.0),),
    "sqrt": ((0, _positive, 1.0),),
    "rsqrt": ((0, _positive, 1.0),),
    "cbrt": ((0, _nonzero, 1.0),),
    "div": ((1, _nonzero, 1.0),),
    "pow": ((0, _positive, 1.0),),
    "rem": ((1, _nonzero, 1.0),),
    "exp": ((0, _exponent, 0.0),),
    "exp2": ((0, _exponent, 0.0),),
    "expm1": ((0, _exponent, 0.0),),
    "sinh": ((0, _exponent_of_either_sign, 0.0),),
    "cosh": ((0, _exponent_of_either_sign, 0.0),),
    "asin": ((0, _INSIDE, 0.0),),
    "acos": ((0, _INSIDE, 0.0),),
    "atanh": ((0, _INSIDE, 0.0),),
    "erf_inv": ((0, _INSIDE, 0.0),),
    "acosh": ((0, _within(1.0, _INF), 2.0),),
    "atan2": ((0, _nonzero, 1.0), (1, _nonzero, 1.0)),
    "lgamma": ((0, _positive, 1.0),),
    "digamma": ((0, _positive, 1.0),),
    "logit": ((0, _within(0.0, 1.0), 0.5),),
    "log1mexp": ((0, lambda bounds, node: bounds[1] < 0, -1.0),),
    "log1mexp_of_exp": ((0, _exponent, 0.0),),
    "log_erfc": ((0, lambda bounds, node: bounds[1] < _INF, 0.0),),
    "log1prel": ((0, _above_minus_1, 0.0),),
    "log_expm1": ((0, _positive, 1.0),),
    "logdiffexp": ((0, _never, 1.0), (1, _never, 0.0)),
    "stable_atanh": ((0, _INSIDE, 0.0),),
    "stable_acosh": ((0, _within(1.0, _INF), 2.0),),
    "stable_expm1": ((0, _exponent, 0.0),),
    "stable_div": ((1, _nonzero, 1.0),),
    "stable_xlogy": ((1, _positive, 1.0),),
    "stable_xlog1py": ((1, _above_minus_1, 0.0),),
    "power_times_log": ((0, _not_zero, 1.0),),
    "log_of_product": ((0, _positive, 1.0), (1, _positive, 1.0)),
    "log_of_quotient": ((0, _positive, 1.0), (1, _positive, 1.0)),
    "inverse_expm1": ((0, _nonzero, 1.0),),
    "exprel": ((0, _exponent, 0.0),),
    "mul_exp": ((1, _exponent, 0.0),),
    "require": ((1, _nonnegative, 1.0),),
    "nonnegative": ((0, _nonnegative, 1.0),),
    "require_finite": ((1, _never, 1.0),),
}

AT_ZERO: dict[str, tuple[tuple[int, Safe, float], ...]] = {
    "log": ((0, _nonzero, 1.0),),
    "sqrt": ((0, _nonzero, 1.0),),
    "cbrt": ((0, _nonzero, 1.0),),
    "pow": ((0, _nonzero, 1.0),),
}
"""What a mask that multiplies hides: 0 * log(0) and 0 * (the slope of sqrt at 0), but no domain error."""
