"""Operations along axes, on object arrays of elements of any algebra: reductions, contractions, windows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stablegrad.exact import scalars as s
from stablegrad.exact.scalars import ONE, ZERO, Undefined

Elements = np.ndarray  # of dtype object


def holds_elements(value: Any) -> bool:
    """True for an object array: floats, or numbers of which some are undefined."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "O"


def make(shape: tuple[int, ...], items: Any) -> Elements:
    """An object array of that shape; `items` in row-major order."""
    array = np.empty(int(np.prod(shape, dtype=int)), object)
    for k, item in enumerate(items):
        array[k] = item
    return array.reshape(shape)


def filled(shape: tuple[int, ...], item: Any) -> Elements:
    array = np.empty(shape, object)
    array[...] = item
    return array


def map_elements(f: Callable[..., Any], arrays: list[np.ndarray], shape: tuple[int, ...]) -> Elements:
    """f element by element; equal operands (the same objects) give the same object."""
    columns = [np.broadcast_to(a, shape).ravel().tolist() for a in arrays]
    done: dict[tuple[int, ...], Any] = {}
    results = []
    for operands in zip(*columns):
        key = tuple(map(id, operands))
        if key not in done:
            done[key] = f(*operands)
        results.append(done[key])
    return make(shape, results)


def rows(array: np.ndarray, axes: tuple[int, ...]) -> tuple[tuple[int, ...], list[list[Any]]]:
    """The shape that is left without `axes`, and for each of its places the list of elements along them."""
    kept = tuple(k for k in range(array.ndim) if k not in axes)
    shape = tuple(array.shape[k] for k in kept)
    length = int(np.prod([array.shape[k] for k in axes], dtype=int))
    moved = array.transpose(kept + tuple(axes)).reshape(int(np.prod(shape, dtype=int)), length)
    return shape, [list(row) for row in moved]


def fold(f: Callable[[Any, Any], Any], items: list[Any], empty: Any) -> Any:
    if not items:
        return empty
    total = items[0]
    for item in items[1:]:
        total = f(total, item)
    return total


def reduce(k: Any, name: str, array: Elements, axes: tuple[int, ...]) -> Elements:
    shape, lists = rows(array, axes)
    one = {
        "reduce_sum": lambda items: k.sum(items),
        "reduce_prod": lambda items: product(k, items),
        "reduce_max": lambda items: fold(k.maximum, items, s.MINUS_INF),
        "reduce_min": lambda items: fold(k.minimum, items, s.INF),
    }[name]
    return make(shape, map(one, lists))


def product(k: Any, items: list[Any]) -> Any:
    """The product, by halves: derivatives then meet few at a time."""
    if len(items) < 3:
        return fold(k.mul, items, ONE)
    middle = len(items) // 2
    return k.mul(product(k, items[:middle]), product(k, items[middle:]))


def first_extreme(k: Any, items: list[Any], direction: int) -> int | Undefined:
    """Position of the first largest (direction 1) or smallest (-1) element; the first NaN where there is one."""
    points = [k.point(item) for item in items]
    best = 0
    for position, x in enumerate(points):
        if type(x) is Undefined:
            return position if x.kind == "nan" else x
        order = s.compare(x, points[best])
        if type(order) is Undefined:
            return order
        if order == direction:
            best = position
    return best


def cumulative(k: Any, name: str, array: Elements, axis: int, reverse: bool) -> Elements:
    step = {
        "cumsum": k.add,
        "cumprod": k.mul,
        "cummax": k.maximum,
        "cummin": k.minimum,
        "cumlogsumexp": k.logaddexp,
    }[name]
    source = np.flip(array, axis) if reverse else array
    moved = np.moveaxis(source, axis, -1)
    result = np.empty(moved.shape, object)
    for place in np.ndindex(moved.shape[:-1]):
        result[place] = list(itertools.accumulate(moved[place], step))
    result = np.moveaxis(result, -1, axis)
    return np.flip(result, axis) if reverse else result


def dot_general(k: Any, a: Elements, b: Elements, numbers: Any) -> Elements:
    """Result axes: batch, what is left of `a`, what is left of `b`."""
    (contract_a, contract_b), (batch_a, batch_b) = numbers
    left = [x for x in range(a.ndim) if x not in (*contract_a, *batch_a)]
    right = [x for x in range(b.ndim) if x not in (*contract_b, *batch_b)]
    batch = tuple(a.shape[x] for x in batch_a)
    rows_shape, columns_shape = tuple(a.shape[x] for x in left), tuple(b.shape[x] for x in right)
    depth = int(np.prod([a.shape[x] for x in contract_a], dtype=int))
    count = int(np.prod(batch, dtype=int))
    first = a.transpose(*batch_a, *left, *contract_a).reshape(count, -1 if depth else 0, depth)
    second = b.transpose(*batch_b, *right, *contract_b).reshape(count, -1 if depth else 0, depth)
    shape = batch + rows_shape + columns_shape
    if not depth:
        return filled(shape, ZERO)
    results = (
        k.sum([k.mul(x, y) for x, y in zip(row, column)])
        for group in range(count)
        for row in first[group]
        for column in second[group]
    )
    return make(shape, results)


def windows(
    shape: tuple[int, ...],
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Any,
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> tuple[tuple[int, ...], list[list[tuple[tuple[int, ...], tuple[int, ...]]]]]:
    """Shape of the result, and for each place of it the (place in the window, place in the array) pairs inside."""
    dilated = [(n - 1) * d + 1 if n else 0 for n, d in zip(shape, base_dilation)]
    reach = [(n - 1) * d + 1 for n, d in zip(sizes, window_dilation)]
    result = tuple(
        max(0, (n + low + high - r) // step + 1) for n, (low, high), r, step in zip(dilated, padding, reach, strides)
    )

    def inside(place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for offset in np.ndindex(*sizes):
            spot = [
                p * step + o * wide - low
                for p, step, o, wide, (low, _) in zip(place, strides, offset, window_dilation, padding)
            ]
            if all(0 <= x < n and x % d == 0 for x, n, d in zip(spot, dilated, base_dilation)):
                yield offset, tuple(x // d for x, d in zip(spot, base_dilation))

    return result, [list(inside(place)) for place in np.ndindex(*result)]


def reduce_window(k: Any, name: str, array: Elements, parameters: dict[str, Any]) -> Elements:
    shape, places = windows(
        array.shape,
        parameters["window_dimensions"],
        parameters["window_strides"],
        parameters["padding"],
        parameters["base_dilation"],
        parameters["window_dilation"],
    )
    one = {
        "reduce_window_sum": lambda items: k.sum(items),
        "reduce_window_max": lambda items: fold(k.maximum, items, s.MINUS_INF),
        "reduce_window_min": lambda items: fold(k.minimum, items, s.INF),
    }[name]
    return make(shape, (one([array[spot] for _, spot in inside]) for inside in places))


def convolution(k: Any, image: Elements, kernel: Elements, parameters: dict[str, Any]) -> Elements:
    """A convolution as XLA defines it (a correlation), with groups, strides and both dilations."""
    numbers = parameters["dimension_numbers"]
    groups, batch_groups = parameters["feature_group_count"], parameters["batch_group_count"]
    image, kernel = image.transpose(numbers.lhs_spec), kernel.transpose(numbers.rhs_spec)
    batch = image.shape[0]
    features, depth = kernel.shape[:2]
    space, places = windows(
        image.shape[2:],
        kernel.shape[2:],
        parameters["window_strides"],
        parameters["padding"],
        parameters["lhs_dilation"],
        parameters["rhs_dilation"],
    )
    rows_out = batch // batch_groups

    def one(row: int, feature: int, inside: list) -> Any:
        first = (feature * groups // features) * depth
        source = row + (feature * batch_groups // features) * rows_out
        return k.sum(
            [
                k.mul(image[(source, first + channel, *spot)], kernel[(feature, channel, *offset)])
                for channel in range(depth)
                for offset, spot in inside
            ]
        )

    results = (one(r, f, inside) for r in range(rows_out) for f in range(features) for inside in places)
    flat = make((rows_out, features, *space), results)
    return flat.transpose(np.argsort(numbers.out_spec))


def scatter(k: Any, name: str, operand: Elements, updates: Elements, destinations: np.ndarray) -> Elements:
    step = {
        "scatter_add": k.add,
        "scatter_mul": k.mul,
        "scatter_max": k.maximum,
        "scatter_min": k.minimum,
    }[name]
    result = operand.ravel().copy()
    for update, destination in zip(updates.ravel(), destinations.ravel()):
        if destination >= 0:
            result[destination] = step(result[destination], update)
    return result.reshape(operand.shape)
