"""What a node means, in NumPy: the reference for the tests of the graph and of the facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as special

from stablegrad.graph.node import Graph, Node

FLOAT = np.dtype("float64")


def leaf(graph: Graph, *shape: int, dtype: Any = FLOAT) -> Node:
    """An argument of the program."""
    return graph.node("input", (), (), shape, np.dtype(dtype), share=False)


def elementwise(graph: Graph, op: str, *inputs: Node, params: tuple = (), dtype: Any = None) -> Node:
    model = next((i for i in inputs if i.op.name != "literal"), inputs[0])
    return graph.node(op, inputs, params, model.shape, np.dtype(dtype or model.dtype))


def numbers(graph: Graph, *shape: int) -> tuple[Node, np.ndarray]:
    """An argument with the values 0, 1, 2 ..., so that every element tells where it came from."""
    return leaf(graph, *shape), np.arange(np.prod(shape, dtype=int), dtype=FLOAT).reshape(shape)


def _arrange(node: Node, x: np.ndarray) -> np.ndarray:
    dims = node.params
    order = np.argsort(dims).astype(int)
    kept = [1] * len(node.shape)
    for size, place in zip(x.shape, dims, strict=True):
        kept[place] = size
    return np.broadcast_to(x.transpose(order).reshape(kept), node.shape)


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, x: function(x, axis=node.params[0])


def _cumulative(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(node: Node, x: np.ndarray) -> np.ndarray:
        axis, reverse = node.params
        return np.flip(function(np.flip(x, axis), axis), axis) if reverse else function(x, axis)

    return call


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *operands: function(*operands)


_SAME_NAME = "exp exp2 log log1p expm1 sin cos sqrt cbrt tanh sinh cosh abs sign floor ceil square add sub mul"
_OTHER_NAME = {
    "neg": np.negative, "div": np.divide, "pow": np.power, "max": np.maximum, "min": np.minimum,
    "logaddexp": np.logaddexp,
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "acosh": np.arccosh, "asinh": np.arcsinh,
    "atanh": np.arctanh, "erf": special.erf, "erfc": special.erfc, "logistic": special.expit,
    "sigmoid": special.expit, "rsqrt": lambda x: 1 / np.sqrt(x), "softplus": lambda x: np.logaddexp(0, x),
    "relu": lambda x: np.maximum(x, 0), "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "is_finite": np.isfinite, "lt": np.less, "gt": np.greater, "stop_gradient": lambda x: x,
    "norm_of_terms": np.hypot, "nonnegative": lambda x: np.where(x < 0, np.nan, x),
}  # fmt: skip

MEANING: dict[str, Callable[..., Any]] = {
    **{name: _plain(getattr(np, name.replace("sub", "subtract").replace("mul", "multiply"))) for name in
       _SAME_NAME.split()},
    **{name: _plain(function) for name, function in _OTHER_NAME.items()},
    "select": lambda node, which, *cases: np.choose(which.astype(int), np.broadcast_arrays(*cases)),
    "integer_pow": lambda node, x: x.astype(FLOAT) ** node.params[0],
    "cast": lambda node, x: x.astype(node.dtype),
    "arrange": _arrange,
    "reshape": lambda node, x: x.reshape(node.shape),
    "iota": lambda node: np.indices(node.shape)[node.params[0]],
    "reduce_sum": _along(np.sum),
    "reduce_prod": _along(np.prod),
    "reduce_max": _along(np.max),
    "reduce_min": _along(np.min),
    "norm": _along(lambda x, axis: np.sqrt(np.sum(x * x, axis=axis))),
    "softmax": _along(special.softmax),
    "cumsum": _cumulative(np.cumsum),
    "cumprod": _cumulative(np.cumprod),
    "cummax": _cumulative(np.maximum.accumulate),
    "cummin": _cumulative(np.minimum.accumulate),
}  # fmt: skip


def evaluate(node: Node, arguments: dict[Node, np.ndarray]) -> np.ndarray:
    """The value of a node, given those of the arguments that it reads."""
    known: dict[Node, np.ndarray] = dict(arguments)

    def value(n: Node) -> np.ndarray:
        if n not in known:
            if n.op.name in ("literal", "constant"):
                known[n] = np.asarray(n.value)
            else:
                result = np.asarray(MEANING[n.op.name](n, *(value(i) for i in n.inputs)))
                known[n] = np.broadcast_to(result, n.shape) if result.shape != n.shape else result
        return known[n]

    with np.errstate(all="ignore"):
        return value(node)
