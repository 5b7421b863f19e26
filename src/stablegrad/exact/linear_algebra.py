"""Matrix factorisations by their definitions: Cholesky, LU with partial pivoting, triangular systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablegrad.exact import scalars as s
from stablegrad.exact.scalars import ONE, ZERO, Undefined
from stablegrad.exact.structure import filled, make


def cholesky(evaluator: Any, parameters: dict[str, Any], values: list[Any]) -> list[Any]:
    """The lower factor, from the symmetrised matrix, row by row; NaN where the matrix is not positive definite."""
    k, source = evaluator.algebra, values[0]
    result = np.empty(source.shape, object)
    size = source.shape[-1]
    for place in np.ndindex(source.shape[:-2]):
        a = source[place]
        factor = filled((size, size), ZERO)
        for i in range(size):
            for j in range(i + 1):
                entry = a[i, j] if i == j else k.mul(s.HALF, k.add(a[i, j], a[j, i]))
                rest = k.sub(entry, k.sum([k.mul(factor[i, m], factor[j, m]) for m in range(j)]))
                factor[i, j] = k.unary("sqrt", rest) if i == j else k.div(rest, factor[j, j])
        result[place] = factor
    return [result]


def _pivot(k: Any, column: list[Any]) -> int | Undefined:
    """The position of the first entry of largest size."""
    sizes = [s.absolute(k.point(x)) for x in column]
    best = 0
    for position, size in enumerate(sizes[1:], 1):
        order = s.compare(size, sizes[best])
        if type(order) is Undefined:
            return order
        if order > 0:
            best = position
    return best


def _eliminate(k: Any, a: np.ndarray, order: np.ndarray, steps: int) -> list[int] | Undefined:
    """Gaussian elimination in place, rows exchanged in `order` too; the pivot of each step."""
    pivots: list[int] = []
    rows, columns = a.shape
    for j in range(steps):
        found = _pivot(k, list(a[j:, j]))
        if type(found) is Undefined:
            return found
        pivot = j + found
        pivots.append(pivot)
        a[[j, pivot]], order[[j, pivot]] = a[[pivot, j]], order[[pivot, j]]
        for i in range(j + 1, rows):
            a[i, j] = k.div(a[i, j], a[j, j])
            for m in range(j + 1, columns):
                a[i, m] = k.sub(a[i, m], k.mul(a[i, j], a[j, m]))
    return pivots


def lu(evaluator: Any, parameters: dict[str, Any], values: list[Any]) -> list[Any]:
    """The two factors in one array, the row exchanged with each row, and the permutation that they make."""
    k, source = evaluator.algebra, values[0]
    rows, columns = source.shape[-2:]
    steps = min(rows, columns)
    batch = source.shape[:-2]
    factors = np.empty(source.shape, object)
    pivots, permutations = np.zeros((*batch, steps), np.int32), np.zeros((*batch, rows), np.int32)
    for place in np.ndindex(batch):
        a, order = source[place].copy(), np.arange(rows, dtype=np.int32)
        found = _eliminate(k, a, order, steps)
        if type(found) is Undefined:
            return [filled(x.shape, found) for x in (source, pivots, permutations)]
        factors[place], permutations[place], pivots[place] = a, order, found
    return [factors, pivots, permutations]


def solve(k: Any, matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x with matrix x = right, all elements of the algebra `k`."""
    size = len(right)
    a, order = matrix.copy(), np.arange(size)
    found = _eliminate(k, a, order, size)
    if type(found) is Undefined:
        return filled((size,), k.undefined(found, *matrix.ravel(), *right))
    x = right[order]
    for i in range(size):
        x[i] = k.sub(x[i], k.sum([k.mul(a[i, m], x[m]) for m in range(i)]))
    for i in reversed(range(size)):
        rest = k.sub(x[i], k.sum([k.mul(a[i, m], x[m]) for m in range(i + 1, size)]))
        x[i] = k.div(rest, a[i, i])
    return x


def triangular_solve(evaluator: Any, parameters: dict[str, Any], values: list[Any]) -> list[Any]:
    """x with op(a) x = b, or x op(a) = b, a triangular."""
    k, (a, b) = evaluator.algebra, values
    if not parameters["left_side"]:
        a, b = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
    lower = parameters["lower"] == parameters["left_side"]
    if parameters["transpose_a"]:
        a, lower = np.swapaxes(a, -1, -2), not lower
    size = a.shape[-1]
    result = np.empty(b.shape, object)
    for place in np.ndindex(b.shape[:-2]):
        solved: list[np.ndarray] = [filled((b.shape[-1],), ZERO)] * size
        for i in range(size) if lower else reversed(range(size)):
            known = range(i) if lower else range(i + 1, size)
            corner = ONE if parameters["unit_diagonal"] else a[place][i, i]
            row = []
            for c in range(b.shape[-1]):
                done = k.sum([k.mul(a[place][i, m], solved[m][c]) for m in known])
                row.append(k.div(k.sub(b[place][i, c], done), corner))
            solved[i] = make((b.shape[-1],), row)
        result[place] = np.stack(solved) if solved else b[place]
    return [result if parameters["left_side"] else np.swapaxes(result, -1, -2)]
