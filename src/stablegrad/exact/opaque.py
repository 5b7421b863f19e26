"""Operations that the graph does not name, but whose exact meaning is plain: split, sort, top_k, factorisations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from stablegrad.exact import linear_algebra
from stablegrad.exact import scalars as s
from stablegrad.exact.germ import Flat, Germ
from stablegrad.exact.rounded import to_float
from stablegrad.exact.scalars import Undefined
from stablegrad.exact.structure import filled, holds_elements
from stablegrad.graph.node import Handle, Node


def evaluate(evaluator: Any, node: Node, values: list[Any]) -> Any:
    """The results of an opaque node: a list where it has several, else an array."""
    from stablegrad.exact.evaluate import is_float

    handle: Handle = node.params[0]
    name = evaluator.engine.name(handle)
    if name in ("gather", "dynamic_slice"):
        return evaluator._move(node, handle, (0,), values)[0]
    if name == "split":
        return evaluator._move(node, handle, (0,), values)
    if name in MEANINGS:
        results = MEANINGS[name](evaluator, dict(handle.parameters), values)
        return results if node.dtype is None else results[0]
    arrays = [_concrete(x, i.dtype) if is_float(i.dtype) else x for x, i in zip(values, node.inputs, strict=True)]
    bits_only = not any(is_float(i.dtype) for i in node.inputs)
    if (bits_only or not (node.dtype is None or is_float(node.dtype))) and all(_known(x) for x in arrays):
        # Bits in, or bits out of floats: what the engine does, on the floats as held.
        results = [evaluator.convert(r, r.dtype) for r in evaluator.engine.bind(handle, arrays)]
        return results if node.dtype is None else results[0]
    where = "" if node.source is None else f" ({node.source.file}:{node.source.line})"
    reason = Undefined("unsupported", f"{name or handle.primitive} has no exact meaning{where}")
    operands = [x for v in values if holds_elements(v) for x in v.ravel()]
    poison = evaluator.algebra.undefined(reason, *operands)
    if node.dtype is not None:
        return filled(node.shape, poison)
    return _Anything(poison)


def _known(array: Any) -> bool:
    return array is not None and not holds_elements(array)


def _concrete(array: Any, dtype: Any) -> np.ndarray | None:
    """Elements rounded to their dtype, or None where one is not certain."""
    from stablegrad.exact.jet import value_of

    numbers = [to_float(value_of(x), dtype) for x in array.ravel() if not isinstance(x, (Germ, Flat))]
    if len(numbers) < array.size or not all(certain for _, certain in numbers):
        return None
    return np.array([number for number, _ in numbers], np.float64).astype(dtype).reshape(array.shape)


class _Anything(list):
    """The results of an operation nobody knows: whichever is asked for is poison, of any shape."""

    def __init__(self, poison: Any) -> None:
        super().__init__()
        self.poison = poison

    def __getitem__(self, index: Any) -> Any:
        return self.poison


def order_of(k: Any, items: list[Any]) -> list[int] | Undefined:
    """The positions in ascending order, NaN last, equal ones in their places."""
    trouble: list[Undefined] = []

    def compare(i: int, j: int) -> int:
        a, b = points[i], points[j]
        order = s.compare(a, b)
        if type(order) is Undefined:
            last = [type(x) is Undefined and x.kind == "nan" for x in (a, b)]
            if any(last):
                return last[0] - last[1]
            trouble.append(order)
            return 0
        return order

    points = [k.point(item) for item in items]
    positions = sorted(range(len(items)), key=functools.cmp_to_key(compare))
    return trouble[0] if trouble else positions


def _sort(evaluator: Any, parameters: dict[str, Any], values: list[Any]) -> list[Any]:
    axis = parameters["dimension"]
    if parameters["num_keys"] != 1:
        poison = Undefined("unsupported", "a sort by several keys")
        return [filled(v.shape, poison) for v in values]
    moved = [np.moveaxis(v, axis, -1) for v in values]
    results = [np.empty(m.shape, m.dtype) for m in moved]
    for place in np.ndindex(moved[0].shape[:-1]):
        if holds_elements(moved[0]):
            positions = order_of(evaluator.algebra, list(moved[0][place]))
        else:
            positions = list(np.argsort(moved[0][place], kind="stable"))
        for m, result in zip(moved, results):
            if type(positions) is Undefined:
                result[place] = [evaluator.algebra.undefined(positions, *m[place])] * m.shape[-1]
            else:
                result[place] = m[place][positions]
    return [np.moveaxis(r, -1, axis) for r in results]


def _top_k(evaluator: Any, parameters: dict[str, Any], values: list[Any]) -> list[Any]:
    k, count, source = evaluator.algebra, parameters["k"], values[0]
    shape = (*source.shape[:-1], count)
    tops, indices = np.empty(shape, object), np.empty(shape, object)
    for place in np.ndindex(source.shape[:-1]):
        row = list(source[place])
        positions = order_of(k, [k.neg(x) for x in row])
        if type(positions) is Undefined:
            tops[place] = [k.undefined(positions, *row)] * count
            indices[place] = [positions] * count
        else:
            tops[place] = [row[p] for p in positions[:count]]
            indices[place] = positions[:count]
    known = not any(type(x) is Undefined for x in indices.ravel())
    return [tops, indices.astype(np.int32) if known else indices]


MEANINGS: dict[str, Callable[[Any, dict[str, Any], list[Any]], list[Any]]] = {
    "sort": _sort,
    "top_k": _top_k,
    "cholesky": linear_algebra.cholesky,
    "lu": linear_algebra.lu,
    "triangular_solve": linear_algebra.triangular_solve,
}
