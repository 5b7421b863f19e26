"""The interval that holds every value of a node, as far as its form shows it.

Bounds are those of the real-number reading; an input's are infinite. NaN is outside this fact: a node with interval
[0, 1] is in it wherever it is a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stablegrad.facts.infinite import Infinities
from stablegrad.facts.overflow import Overflow
from stablegrad.facts.peak import peak_axes
from stablegrad.facts.reach import Reach
from stablegrad.facts.underflow import Underflow
from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs

Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)
CONSTANT_SIZE = 1 << 20  # larger constants are not scanned


class Facts:
    """Facts of the nodes of one graph, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[Node, Interval] = {}
        self.reach = Reach(self._scales_rows, self.positive)
        self.may_overflow = Overflow(self.reach, self.interval)
        self.may_vanish = Underflow(self.reach, self.interval, self.may_overflow)
        self._infinities = Infinities()

    def interval(self, node: Node) -> Interval:
        """Bounds of `node`. Walks without recursion, so that deep programs are no trouble."""
        known = self._known
        found = known.get(node)
        if found is not None:
            return found
        stack = [node]
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            # Inputs whose bounds say nothing about the node are not looked at.
            waiting = [i for i in top.inputs if i not in known] if top.op.name in READING else None
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            known[top] = self._bound(top)
        return known[node]

    def within(self, node: Node, limit: float) -> bool:
        """-limit <= node <= limit. An operand without bounds answers for a sum: the others are not looked at."""
        if node not in self._known and node.op.name in ("add", "sub") and is_float(node.dtype):
            if not all(map(math.isfinite, self.interval(node.inputs[1]))):
                return False
        low, high = self.interval(node)
        return -limit <= low and high <= limit

    def _scales_rows(self, operand: Node) -> bool:
        """Whether exponentials in an operand of a matrix product may have to be taken out of it."""
        return self.nonnegative(operand) or self.may_overflow(operand)

    def may_be_infinite(self, node: Node) -> bool:
        return self._infinities(node, self.interval)

    def nonnegative(self, node: Node) -> bool:
        return self.interval(node)[0] >= 0

    def positive(self, node: Node) -> bool:
        return self.interval(node)[0] > 0

    def _bound(self, node: Node) -> Interval:
        if any(_kind(n) == "c" for n in (node, *node.inputs)):
            return EVERYTHING
        rule = BOUNDS.get(node.op.name)
        if rule is None:
            return (0.0, math.inf) if _kind(node) in ("b", "u") else EVERYTHING
        known = self._known
        bound = rule(node, [known[i] for i in node.inputs] if node.op.name in READING else [])
        low, high = bound
        if not low <= high or (_kind(node) in ("i", "u") and _wraps(node, low, high)):
            return EVERYTHING
        return bound


def _kind(node: Node) -> str:
    """NumPy's letter for the kind of a dtype; "" for a type of the engine's own, such as random keys."""
    return node.dtype.kind if isinstance(node.dtype, np.dtype) else ""


def _wraps(node: Node, low: float, high: float) -> bool:
    """Whole numbers beyond the range of their dtype come out as others."""
    limits = np.iinfo(node.dtype)
    return low < limits.min or high > limits.max


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return -math.inf if x <= 0 else math.log(x)


def _product(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _mul(node: Node, bounds: list[Interval]) -> Interval:
    (a, b), (c, d) = bounds
    if node.inputs[0] is node.inputs[1]:
        return _even_power(2, bounds[0])
    corners = [_product(x, y) for x in (a, b) for y in (c, d)]
    return min(corners), max(corners)


def _div(node: Node, bounds: list[Interval]) -> Interval:
    (a, b), (c, d) = bounds
    whole, part = node.inputs[1], node.inputs[0]
    if a >= 0 and _sums(whole, part):
        return (0.0, 1.0)
    if c > 0 or d < 0:
        corners = [_product(x, 1 / y if y else math.inf) for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)
    if c >= 0 and a >= 0:
        return (0.0, math.inf)
    return EVERYTHING


def _sums(whole: Node, part: Node) -> bool:
    """whole is the sum of `part` along some axes, laid back where it was."""
    if whole.op.name != "arrange":
        return False
    total, dims = whole.inputs[0], whole.params
    if total.op.name == "reshape" and total.inputs[0].op.name == "reduce_sum":
        total = total.inputs[0]  # without its unit axes
    if total.op.name != "reduce_sum" or total.inputs[0] is not part:
        return False
    kept = [k for k in range(len(part.shape)) if k not in total.params[0]]
    return dims == tuple(kept) or dims == tuple(k for k in kept if part.shape[k] != 1)


def _even_power(n: int, bound: Interval) -> Interval:
    a, b = bound
    ends = [_power(abs(a), n), _power(abs(b), n)]
    return (0.0 if a <= 0 <= b else min(ends)), max(ends)


def _power(x: float, n: int) -> float:
    try:
        return float(x) ** n
    except (OverflowError, ZeroDivisionError):
        return math.inf


def _integer_pow(node: Node, bounds: list[Interval]) -> Interval:
    (n,) = node.params
    a, b = bounds[0]
    if n >= 0 and n % 2 == 0:
        return _even_power(n, bounds[0])
    if n > 0:
        return math.copysign(_power(abs(a), n), a), math.copysign(_power(abs(b), n), b)
    if n < 0 and a >= 0:
        return (_power(b, n) if b < math.inf else 0.0), _power(a, n)
    return (0.0, math.inf) if n % 2 == 0 else EVERYTHING


def _sub(node: Node, bounds: list[Interval]) -> Interval:
    (a, b), (c, d) = bounds
    low, high = a - d, b - c
    if peak_axes(*node.inputs) is not None:
        high = min(high, 0.0) if not math.isnan(high) else 0.0
        low = -math.inf if math.isnan(low) else low
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def _add(node: Node, bounds: list[Interval]) -> Interval:
    (a, b), (c, d) = bounds
    return (-math.inf if math.isnan(a + c) else a + c), (math.inf if math.isnan(b + d) else b + d)


def _reduce_sum(node: Node, bounds: list[Interval]) -> Interval:
    count = _reduced(node)
    a, b = bounds[0]
    low, high = _product(a, count), _product(b, count)
    inner = node.inputs[0]
    if inner.op.name == "cast":  # halves, which jnp.sum adds in float32
        inner = inner.inputs[0]
    if inner.op.name == "exp" and inner.inputs[0].op.name == "sub":
        axes = peak_axes(*inner.inputs[0].inputs)
        if axes is not None and set(axes) <= set(node.params[0]) and count:
            low = max(low, 1.0)  # the maximal entry contributes exp(0)
    return low, high


def _reduced(node: Node) -> int:
    (axes,) = node.params
    return math.prod(node.inputs[0].shape[k] for k in axes)


def _reduce_prod(node: Node, bounds: list[Interval]) -> Interval:
    a, b = bounds[0]
    if not _reduced(node):
        return (1.0, 1.0)
    if a >= 0:
        return (0.0 if a < 1 else _power(a, _reduced(node))), _power(b, _reduced(node))
    return EVERYTHING


def _extremum(node: Node, bounds: list[Interval]) -> Interval:
    return bounds[0] if _reduced(node) else EVERYTHING  # the largest of nothing is -inf


def _cast(node: Node, bounds: list[Interval]) -> Interval:
    """A float takes the number itself; a whole number cuts off the fraction; a truth value is 0 or 1."""
    a, b = bounds[0]
    if is_float(node.dtype):
        return a, b
    if _kind(node) == "b":
        return (0.0, 1.0)
    return (math.trunc(a) if math.isfinite(a) else a), (math.trunc(b) if math.isfinite(b) else b)


def _clamp(node: Node, bounds: list[Interval]) -> Interval:
    """min(max(x, low), high)."""
    (low, low_top), (a, b), (high, high_top) = bounds
    return min(max(a, low), high), min(max(b, low_top), high_top)


def _monotone(f: Callable[[float], float]) -> Callable[[Node, list[Interval]], Interval]:
    return lambda node, bounds: (f(bounds[0][0]), f(bounds[0][1]))


def _always(low: float, high: float) -> Callable[[Node, list[Interval]], Interval]:
    return lambda node, bounds: (low, high)


def _hull(node: Node, bounds: list[Interval]) -> Interval:
    return min(a for a, _ in bounds), max(b for _, b in bounds)


def _moved(node: Node, bounds: list[Interval]) -> Interval:
    return _hull(node, [bounds[k] for k in moved_inputs(node)])


def _move(node: Node, bounds: list[Interval]) -> Interval:
    return _moved(node, bounds) if moved_inputs(node) else EVERYTHING


def _value(node: Node, bounds: list[Interval]) -> Interval:
    if node.value is None or getattr(node.value, "size", 0) == 0 or node.value.size > CONSTANT_SIZE:
        return EVERYTHING
    if not is_float(node.dtype) and _kind(node) not in ("i", "u", "b"):
        return EVERYTHING
    if node.op.name == "literal":
        number = float(node.value)
        return number, number
    try:
        array = np.asarray(node.value).astype(np.float64)
    except (TypeError, ValueError, RuntimeError):  # a deleted or distributed array
        return EVERYTHING
    return float(array.min()), float(array.max())


def _abs(node: Node, bounds: list[Interval]) -> Interval:
    a, b = bounds[0]
    return (0.0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))


def _softplus(x: float) -> float:
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(_exp(x))


def _logistic(x: float) -> float:
    return 1 / (1 + _exp(-x))


def _select(node: Node, bounds: list[Interval]) -> Interval:
    if len(node.inputs) != 3:
        return _hull(node, bounds[1:])
    which, otherwise, taken = node.inputs
    cases = [(otherwise, _where(which, otherwise, False, bounds[1])), (taken, _where(which, taken, True, bounds[2]))]
    numbers = [bound for case, bound in cases if not _is_nan(case)]
    return _hull(node, numbers) if numbers else EVERYTHING


def _is_nan(node: Node) -> bool:
    node = node.inputs[0] if node.op.name == "arrange" else node
    return node.op.name == "literal" and is_float(node.dtype) and bool(np.isnan(node.value))


def _where(which: Node, x: Node, holds: bool, bound: Interval) -> Interval:
    """Bounds of x where the comparison `which` holds (or does not), if it compares x with a number."""
    name = which.op.name
    if name not in ("gt", "ge", "lt", "le"):
        return bound
    left, right = which.inputs
    if left is x and (number := literal_number(right)) is not None:
        below = (name in ("lt", "le")) == holds
    elif right is x and (number := literal_number(left)) is not None:
        below = (name in ("gt", "ge")) == holds
    else:
        return bound
    low, high = bound
    return (low, min(high, float(number))) if below else (max(low, float(number)), high)


# Bounds whatever the input.
FIXED: dict[str, Interval] = {
    "rsqrt": (0.0, math.inf),
    "norm": (0.0, math.inf),
    "norm_of_terms": (0.0, math.inf),
    "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0),
    "acos": (0.0, math.pi),
    "acosh": (0.0, math.inf),
    "cosh": (1.0, math.inf),
    "erf": (-1.0, 1.0),
    "erfc": (0.0, 2.0),
    "sign": (-1.0, 1.0),
    "softmax": (0.0, 1.0),
    "sigmoid": (0.0, 1.0),
}

BOUNDS: dict[str, Callable[[Node, list[Interval]], Interval]] = {
    **{name: _always(*bounds) for name, bounds in FIXED.items()},
    "literal": _value,
    "constant": _value,
    "iota": lambda node, bounds: (0.0, float(max(node.shape, default=1))),
    "neg": lambda node, bounds: (-bounds[0][1], -bounds[0][0]),
    "exp": _monotone(_exp),
    "exp2": _monotone(lambda x: _exp(x * math.log(2))),
    "log": _monotone(_log),
    "log1p": _monotone(lambda x: math.log1p(x) if x > -1 else -math.inf),
    "expm1": _monotone(lambda x: math.expm1(x) if x < 700 else _exp(x)),
    "sqrt": _monotone(lambda x: math.sqrt(max(x, 0.0))),
    "tanh": _monotone(math.tanh),
    "logistic": _monotone(_logistic),
    "softplus": _monotone(_softplus),
    "logaddexp": lambda node, bounds: (
        max(bounds[0][0], bounds[1][0]),
        max(bounds[0][1], bounds[1][1]) + math.log(2),
    ),
    "abs": _abs,
    "square": lambda node, bounds: _even_power(2, bounds[0]),
    "integer_pow": _integer_pow,
    "pow": lambda node, bounds: (0.0, math.inf) if bounds[0][0] >= 0 else EVERYTHING,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "max": lambda node, bounds: (max(bounds[0][0], bounds[1][0]), max(bounds[0][1], bounds[1][1])),
    "min": lambda node, bounds: (min(bounds[0][0], bounds[1][0]), min(bounds[0][1], bounds[1][1])),
    "relu": lambda node, bounds: (max(bounds[0][0], 0.0), max(bounds[0][1], 0.0)),
    "clamp": _clamp,
    "select": _select,
    "cast": _cast,
    "reduce_sum": _reduce_sum,
    "reduce_prod": _reduce_prod,
    "reduce_max": _extremum,
    "reduce_min": _extremum,
    "cumsum": lambda node, bounds: (min(bounds[0][0], 0.0) and -math.inf, math.inf),
    "cumprod": lambda node, bounds: (0.0, 1.0 if bounds[0][1] <= 1 else math.inf) if bounds[0][0] >= 0 else EVERYTHING,
    "cummax": _monotone(lambda x: x),
    "cummin": _monotone(lambda x: x),
    "dot_general": lambda node, bounds: (0.0, math.inf) if bounds[0][0] >= 0 and bounds[1][0] >= 0 else EVERYTHING,
    "arrange": _moved,
    "reshape": _moved,
    "move": _move,
    "stop_gradient": _moved,
    "nonnegative": lambda node, bounds: (max(bounds[0][0], 0.0), max(bounds[0][1], 0.0)),
}
READING = frozenset(BOUNDS) - frozenset(FIXED)  # their bounds depend on those of the inputs
