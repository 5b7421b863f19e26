"""Bodies: loops are run step by step, branches taken by value, calls entered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stablegrad.exact import linear_algebra, opaque, structure
from stablegrad.exact import scalars as s
from stablegrad.exact.engine import Branches, Call, LinearSystem, Loop, While
from stablegrad.exact.scalars import Undefined
from stablegrad.graph.node import Node

MOST_STEPS = 100_000


def evaluate(evaluator: Any, node: Node, values: list[Any]) -> Any:
    """The results of a region or opaque node: a list where it has several, else an array."""
    if node.op.name == "opaque" and evaluator.engine.name(node.params[0]) in opaque.MEANINGS:
        return opaque.evaluate(evaluator, node, values)
    region = evaluator.engine.region(node.params[0])
    if region is None:
        return opaque.evaluate(evaluator, node, values)
    kinds: dict[type, Callable[..., list[Any]]] = {
        Loop: _loop,
        While: _while,
        Branches: _branches,
        Call: _call,
        LinearSystem: _linear_system,
    }
    run = kinds[type(region)]
    results = run(evaluator, region, values, node)
    return results if node.dtype is None else results[0]


def _loop(evaluator: Any, region: Loop, values: list[Any], node: Node) -> list[Any]:
    constants = values[: region.constants]
    carries = values[region.constants : region.constants + region.carries]
    stacked = values[region.constants + region.carries :]
    outputs: list[list[Any]] = []
    steps = range(region.length - 1, -1, -1) if region.reverse else range(region.length)
    for step in steps:
        slices = [_at(x, step) for x in stacked]
        results = evaluator.run(region.body, [*constants, *carries, *slices])
        carries = results[: region.carries]
        outputs.append(results[region.carries :])
    if region.reverse:
        outputs.reverse()
    made = list(carries)
    for k, out in enumerate(region.body.outputs[region.carries :]):
        made.append(_stack([row[k] for row in outputs], (region.length, *out.shape), out.dtype))
    return made


def _at(array: Any, step: int) -> Any:
    picked = array[step]
    if isinstance(array, np.ndarray) and not isinstance(picked, np.ndarray):
        picked = structure.make((), [picked]) if structure.holds_elements(array) else np.asarray(picked)
    return picked


def _stack(rows: list[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    if any(structure.holds_elements(row) for row in rows):
        return structure.make(shape, (x for row in rows for x in row.ravel()))
    return np.stack(rows) if rows else structure.make(shape, ())


def _while(evaluator: Any, region: While, values: list[Any], node: Node) -> list[Any]:
    first, second = region.condition_constants, region.body_constants
    condition_constants, body_constants = values[:first], values[first : first + second]
    carries = values[first + second :]
    for _ in range(MOST_STEPS):
        (go_on,) = evaluator.run(region.condition, [*condition_constants, *carries])
        trouble = [x for x in go_on.ravel() if type(x) is Undefined]
        if trouble:
            return [structure.filled(x.shape, s.worse(*trouble)) for x in region.body.outputs]
        if not go_on.any():
            return carries
        moved = evaluator.run(region.body, [*body_constants, *carries])
        # A condition with axes is a batch of loops: the finished ones stand still.
        carries = [_where(go_on, new, old) for new, old in zip(moved, carries)]
    reason = Undefined("unsupported", f"a while loop of more than {MOST_STEPS} steps")
    return [structure.filled(x.shape, reason) for x in region.body.outputs]


def _where(go_on: np.ndarray, new: Any, old: Any) -> Any:
    if go_on.all():
        return new
    mask = np.broadcast_to(go_on.reshape(go_on.shape + (1,) * (new.ndim - go_on.ndim)), new.shape)
    pairs = zip(mask.ravel(), new.ravel(), old.ravel())
    made = structure.make(new.shape, (a if go else b for go, a, b in pairs))
    return made if structure.holds_elements(new) or structure.holds_elements(old) else made.astype(new.dtype)


def _branches(evaluator: Any, region: Branches, values: list[Any], node: Node) -> list[Any]:
    which = values[0][()]
    if type(which) is Undefined:
        return [structure.filled(x.shape, which) for x in region.graphs[0].outputs]
    index = min(max(int(which), 0), len(region.graphs) - 1)
    return evaluator.run(region.graphs[index], values[1:])


def _call(evaluator: Any, region: Call, values: list[Any], node: Node) -> list[Any]:
    results = evaluator.run(region.body, values)
    if not region.own_derivative:
        return results
    reason = Undefined("unsupported", "user's own derivative rule")
    return [
        structure.map_elements(lambda a: evaluator.algebra.without_derivative(a, reason), [r], r.shape)
        if structure.holds_elements(r)
        else r
        for r in results
    ]


def _linear_system(evaluator: Any, region: LinearSystem, values: list[Any], node: Node) -> list[Any]:
    """The matrix is what the body makes of the unit vectors; its derivatives are those of the body."""
    constants, right = values[: region.constants], values[region.constants + region.others :]
    sizes = [x.size for x in right]
    columns = []
    for j in range(sum(sizes)):
        unit = structure.make((sum(sizes),), (s.ONE if i == j else s.ZERO for i in range(sum(sizes))))
        results = evaluator.run(region.matvec, [*constants, *_parts(unit, right)])
        columns.append(np.concatenate([np.ravel(r) for r in results]))
    matrix = np.stack(columns, axis=1)
    solved = linear_algebra.solve(evaluator.algebra, matrix, np.concatenate([np.ravel(x) for x in right]))
    return _parts(solved, right)


def _parts(flat: np.ndarray, like: list[np.ndarray]) -> list[np.ndarray]:
    ends = np.cumsum([x.size for x in like])
    return [part.reshape(x.shape) for part, x in zip(np.split(flat, ends[:-1]), like)]
