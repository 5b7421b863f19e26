"""Bodies: loops are run step by step, branches taken by value, calls entered."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablegrad.exact import opaque, structure
from stablegrad.exact.engine import Branches, Call, Loop, While
from stablegrad.exact.scalars import Undefined
from stablegrad.graph.node import Node

MOST_STEPS = 100_000


def evaluate(evaluator: Any, node: Node, values: list[Any]) -> Any:
    """The results of a region or opaque node: a list where it has several, else an array."""
    region = evaluator.engine.region(node.params[0])
    if region is None:
        return opaque.evaluate(evaluator, node, values)
    run = {Loop: _loop, While: _while, Branches: _branches, Call: _call}[type(region)]
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
        picked = structure.make((), [picked]) if array.dtype == object else np.asarray(picked)
    return picked


def _stack(rows: list[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    if any(row.dtype == object for row in rows):
        return structure.make(shape, (x for row in rows for x in row.ravel()))
    return np.stack(rows) if rows else structure.make(shape, ())


def _while(evaluator: Any, region: While, values: list[Any], node: Node) -> list[Any]:
    first, second = region.condition_constants, region.body_constants
    condition_constants, body_constants = values[:first], values[first : first + second]
    carries = values[first + second :]
    for _ in range(MOST_STEPS):
        (go_on,) = evaluator.run(region.condition, [*condition_constants, *carries])
        go_on = go_on[()]
        if type(go_on) is Undefined:
            return [structure.filled(x.shape, go_on) for x in region.body.outputs]
        if not go_on:
            return carries
        carries = evaluator.run(region.body, [*body_constants, *carries])
    reason = Undefined("unsupported", f"a while loop of more than {MOST_STEPS} steps")
    return [structure.filled(x.shape, reason) for x in region.body.outputs]


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
        if r.dtype == object
        else r
        for r in results
    ]


