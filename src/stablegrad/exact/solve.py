"""Precision raised until the answer is certain: values, gradients and condition numbers of a graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np

from stablegrad.exact import derivative
from stablegrad.exact import scalars as s
from stablegrad.exact.engine import Engine
from stablegrad.exact.evaluate import Evaluator, is_float
from stablegrad.exact.jet import Jet, value_of
from stablegrad.exact.jets import JetAlgebra
from stablegrad.exact.rounded import float_format, to_float
from stablegrad.exact.scalars import Scalar, Undefined
from stablegrad.exact.structure import holds_elements, make
from stablegrad.graph.node import Graph

# Second derivatives by all pairs of inputs up to this many inputs; beyond, by this many of them with all others.
MOST_ROWS = 24
EXTRA_BITS = 128


@dataclass
class Output:
    """One result: elements (scalars) and their dtype, or a NumPy array and None for one that is no float."""

    value: Any
    dtype: Any
    condition: np.ndarray | None = None
    sensitivity: np.ndarray | None = None


@dataclass
class Answer:
    """What `solve` found; the lists of gradients are aligned with the inputs, None where not asked for."""

    outputs: list[Output]
    gradients: list[np.ndarray | None]
    gradient_conditions: list[np.ndarray | None]
    gradient_sensitivities: list[np.ndarray | None]
    precision: int


@dataclass(frozen=True)
class Problem:
    """A graph at concrete inputs. `directions`: (input, place) of each element to differentiate by."""

    graph: Graph
    inputs: list[Any]
    engine: Engine
    directions: tuple[tuple[int, int], ...]
    rows: frozenset[int]

    def arguments(self, algebra: Any, element: Any) -> list[Any]:
        """The inputs as elements; `element(k, place, value)` makes each float."""
        nodes = [node for node in self.graph.inputs if node.op.name != "constant"]
        found = []
        for k, (node, value) in enumerate(zip(nodes, self.inputs)):
            if not is_float(node.dtype):
                found.append(value)
                continue
            array = np.asarray(value).astype(np.float64)
            found.append(make(array.shape, (element(k, p, x) for p, x in enumerate(array.ravel().tolist()))))
        return found


def solve(
    graph: Graph,
    inputs: list[Any],
    engine: Engine,
    *,
    differentiated: list[bool],
    conditions: bool = True,
    sample: int | None = None,
    seed: int = 0,
    max_precision: int = 8192,
) -> Answer:
    """Value, gradient of the sum of the float outputs, and condition numbers, certain to each dtype or undecided.

    Args:
        graph: a captured program.
        inputs: concrete arrays, in the order of the graph's inputs.
        engine: the framework.
        differentiated: for each input, whether to differentiate by it.
        conditions: whether to compute condition numbers (second derivatives).
        sample: differentiate only by that many elements, chosen at random.
        seed: of that choice.
        max_precision: in bits; the working precision starts 128 bits above the widest output's and doubles.
    """
    choice = np.random.default_rng(seed)
    directions = [
        (k, place) for k, wanted in enumerate(differentiated) if wanted for place in range(np.size(inputs[k]))
    ]
    total = len(directions)
    if sample is not None and sample < total:
        directions = [directions[i] for i in sorted(choice.choice(total, sample, replace=False))]
    rows = range(len(directions))
    if len(directions) > MOST_ROWS:
        rows = choice.choice(len(directions), MOST_ROWS, replace=False)  # type: ignore[assignment]
    problem = Problem(graph, inputs, engine, tuple(directions), frozenset(int(r) for r in rows))
    widest = max([float_format(n.dtype).digits for n in graph.outputs if is_float(n.dtype)], default=24)
    precision = widest + EXTRA_BITS
    while True:
        with flint.ctx.workprec(precision):
            answer, certain = _attempt(problem, differentiated, conditions, total)
        answer.precision = precision
        if certain or precision >= max_precision:
            return answer
        precision = min(2 * precision, max_precision)


def _attempt(problem: Problem, differentiated: list[bool], conditions: bool, total: int) -> tuple[Answer, bool]:
    order = (2 if conditions else 1) if problem.directions else 0
    algebra = JetAlgebra(order, None if len(problem.rows) == len(problem.directions) else problem.rows)
    numbers = {direction: i for i, direction in enumerate(problem.directions)}

    def element(k: int, place: int, value: float) -> Any:
        number = numbers.get((k, place))
        exact = algebra.from_float(value)
        return exact if number is None else algebra.seed(exact, number)

    results = Evaluator(algebra, problem.engine).run(problem.graph, problem.arguments(algebra, element))
    elements: list[Any] = []
    outputs: list[Output] = []
    for node, result in zip(problem.graph.outputs, results):
        if is_float(node.dtype):
            elements += list(result.ravel())
        outputs.append(Output(result, node.dtype if is_float(node.dtype) else None))
    elements = derivative.settle(problem, elements)
    position = 0
    for out in outputs:
        if out.dtype is not None:
            size = out.value.size
            block = make(out.value.shape, elements[position : position + size])
            position += size
            out.value = make(block.shape, map(value_of, block.ravel()))
            out.sensitivity, out.condition = _value_conditions(problem, block, total, conditions)
    answer = _gradients(problem, outputs, elements, differentiated, conditions)
    return answer, _certain(problem, answer)


def _inputs_size(problem: Problem, number: int) -> float:
    k, place = problem.directions[number]
    return abs(float(np.asarray(problem.inputs[k]).ravel()[place]))


def _upper(a: Scalar) -> float:
    """A float64 of the size of |a|, NaN where undefined."""
    if type(a) is Undefined:
        return math.nan
    return abs(to_float(a, np.float64)[0])


def _weighted(problem: Problem, parts: list[tuple[int, Scalar]]) -> Scalar:
    """sum_j |x_j| |part_j|; inputs that are 0 or infinite do not count."""
    total: Scalar = s.ZERO
    for number, part in parts:
        size = _inputs_size(problem, number)
        if size and math.isfinite(size):
            total = s.add(total, s.mul(s.from_float(size), s.absolute(part)))
    return total


def _relative(total: Scalar, by: Scalar) -> float:
    if s.is_zero(total):
        return 0.0
    if type(by) is not Undefined and type(s.sign(by)) is Undefined:
        return math.inf  # a ball around 0
    return _upper(s.div(total, s.absolute(by)))


def _value_conditions(
    problem: Problem, block: np.ndarray, total: int, conditions: bool
) -> tuple[np.ndarray, np.ndarray]:
    absolute, relative = [], []
    scale = s.fmpq(total, max(1, len(problem.directions)))
    for element in block.ravel():
        if not conditions or not problem.directions:
            absolute.append(math.nan)
            relative.append(math.nan)
            continue
        weight = _weighted(problem, list(element.grad.items()) if type(element) is Jet else [])
        weight = s.mul(scale, weight)
        absolute.append(_upper(weight))
        relative.append(_relative(weight, value_of(element)))
    return np.array(absolute).reshape(block.shape), np.array(relative).reshape(block.shape)


def _gradients(
    problem: Problem, outputs: list[Output], elements: list[Any], differentiated: list[bool], conditions: bool
) -> Answer:
    missing = Undefined("unsupported", "not in the sample")
    gradients: list[Any] = [None] * len(differentiated)
    relative: list[Any] = [None] * len(differentiated)
    absolute: list[Any] = [None] * len(differentiated)
    for k, wanted in enumerate(differentiated):
        if wanted:
            shape = np.shape(problem.inputs[k])
            gradients[k] = make(shape, [missing] * int(np.prod(shape, dtype=int)))
            relative[k], absolute[k] = np.full(shape, math.nan), np.full(shape, math.nan)
    slopes: dict[int, Scalar] = {}
    curves: dict[int, list[tuple[int, Scalar]]] = {}
    pairs: dict[tuple[int, int], Scalar] = {}
    for element in elements:
        if type(element) is Jet:
            for i, g in element.grad.items():
                slopes[i] = s.add(slopes[i], g) if i in slopes else g
            for pair, h in element.hess.items():
                pairs[pair] = s.add(pairs[pair], h) if pair in pairs else h
    for (i, j), h in pairs.items():
        curves.setdefault(i, []).append((j, h))
        if i != j:
            curves.setdefault(j, []).append((i, h))
    for number, (k, place) in enumerate(problem.directions):
        slope = slopes.get(number, s.ZERO)
        gradients[k].reshape(-1)[place] = slope
        if conditions and number in problem.rows:
            weight = _weighted(problem, curves.get(number, []))
            absolute[k].reshape(-1)[place] = _upper(weight)
            relative[k].reshape(-1)[place] = _relative(weight, slope)
    return Answer(outputs, gradients, relative, absolute, 0)


def _certain(problem: Problem, answer: Answer) -> bool:
    """False where more precision could make something certain."""
    for out in answer.outputs:
        if out.dtype is not None and not all(_settled(x, out.dtype) for x in out.value.ravel()):
            return False
        if out.dtype is None and holds_elements(out.value):
            if not all(_settled(x, np.float64) for x in out.value.ravel() if type(x) is Undefined):
                return False
    for value, found in zip(problem.inputs, answer.gradients):
        if found is not None and not all(_settled(x, np.asarray(value).dtype) for x in found.ravel()):
            return False
    return True


def _settled(a: Scalar, dtype: Any) -> bool:
    if type(a) is Undefined:
        return a.kind != "imprecise"
    return to_float(a, dtype)[1]
