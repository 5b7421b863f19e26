"""The check that tests run on a graph after every rewrite: every node is what its operation says.

What a node's inputs, parameters, shape and dtype must be is written down once, here; `arrange.py` and `ops.py` say what
the parameters mean. `verify` walks without recursion, once over every node that the program or its rewriting reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

import numpy as np

from stablegrad.graph.node import Graph, Node, moved_inputs


class InvalidGraph(ValueError):
    """A node that breaks the graph's rules: which node, where the user wrote it, and what is wrong with it."""


def verify(graph: Graph, replaced: Mapping[Node, Node] | None = None, roots: Iterable[Node] = ()) -> None:
    """Check every node of a program and of its rewriting.

    Args:
        graph: the program; nodes are checked from its inputs and outputs.
        replaced: node -> the node that stands for it, as `stablegrad.rewrite.rewrite` returns it.
        roots: more nodes to start from (what effects read).

    Raises:
        InvalidGraph: an input does not come before the node that reads it; an elementwise operand has neither the
            node's shape nor is a scalar literal; an `arrange` has a base with unit axes or axes that do not fit; a
            shape or dtype is not what the operation gives; a replacement has another shape or dtype, or needs the node
            that it replaces.

    >>> from stablegrad.graph.node import Graph
    >>> graph = Graph()
    >>> x = graph.node("input", shape=(3,), dtype=np.dtype("float32"), share=False)
    >>> graph.outputs = [graph.node("exp", (x,), (), (4,), x.dtype)]
    >>> verify(graph)
    Traceback (most recent call last):
    stablegrad.graph.verify.InvalidGraph: <exp#2 float32[4]>: input 0, <input#1 float32[3]>, has not the shape (4,)
    """
    replaced = replaced or {}
    for old, new in replaced.items():
        _check_replacement(old, new)
    start = [*graph.inputs, *graph.outputs, *roots, *replaced, *replaced.values()]
    for node in _reachable(start, lambda n: n.inputs):
        _check(node)
    _check_acyclic(start, replaced)


def _fail(node: Node, problem: str) -> NoReturn:
    place = "" if node.source is None else f" ({node.source.file}:{node.source.line})"
    raise InvalidGraph(f"{node!r}{place}: {problem}")


def _reachable(start: Iterable[Node], reads: Callable[[Node], Iterable[Node]]) -> list[Node]:
    found: dict[Node, None] = {}
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting.extend(reads(node))
    return list(found)


def _check_replacement(old: Node, new: Node) -> None:
    if new is old:
        _fail(old, "is replaced by itself")
    if new.shape != old.shape or new.dtype != old.dtype:
        _fail(old, f"is replaced by {new!r}, of another shape or dtype")


def _check_acyclic(start: list[Node], replaced: Mapping[Node, Node]) -> None:
    """No node needs itself, when each replaced node is read through to its replacement."""
    done: set[Node] = set()
    for root in start:
        path: list[tuple[Node, bool]] = [(root, False)]
        open_nodes: set[Node] = set()
        while path:
            node, left = path.pop()
            if left:
                open_nodes.discard(node)
                done.add(node)
            elif node not in done:
                if node in open_nodes:
                    _fail(node, "needs its own value, through what replaces it")
                open_nodes.add(node)
                path.append((node, True))
                reads = (replaced[node],) if node in replaced else node.inputs
                for read in reads:
                    if read in open_nodes:
                        _fail(read, "needs its own value, through what replaces it")
                    path.append((read, False))


def _check(node: Node) -> None:
    for k, read in enumerate(node.inputs):
        if read.order >= node.order:
            _fail(node, f"input {k}, {read!r}, comes after it")
    if any(not isinstance(n, int) or n < 0 for n in node.shape):
        _fail(node, f"the shape {node.shape} has a size that is no whole number")
    if node.op.elementwise:
        _elementwise(node, node.inputs)
    check = CHECKS.get(node.op.name)
    if check is not None:
        check(node)


def _elementwise(node: Node, inputs: Iterable[Node]) -> None:
    for k, read in enumerate(inputs):
        if read.shape != node.shape and read.op.name != "literal":
            _fail(node, f"input {k}, {read!r}, has not the shape {node.shape}")
    checked = DTYPES.get(node.op.name)
    if checked is not None:
        checked(node)
    elif node.op.name not in ANY_DTYPE:
        _same_dtype(node)


def _same_dtype(node: Node) -> None:
    for k, read in enumerate(node.inputs):
        if read.dtype != node.dtype:
            _fail(node, f"input {k}, {read!r}, has not the dtype {node.dtype}")


def _comparison(node: Node) -> None:
    _truth(node)
    if len({read.dtype for read in node.inputs}) > 1:
        _fail(node, f"compares {node.inputs[0]!r} with {node.inputs[1]!r}, of another dtype")


def _truth(node: Node) -> None:
    if node.dtype != np.bool_:
        _fail(node, "gives a truth value")


def _pow(node: Node) -> None:
    base, exponent = node.inputs
    whole = exponent.dtype is not None and np.dtype(exponent.dtype).kind in "iu"
    if base.dtype != node.dtype or (exponent.dtype != node.dtype and not whole):
        _fail(node, f"{base!r} to the power of {exponent!r} has another dtype")


def _select(node: Node) -> None:
    which, *cases = node.inputs
    if np.dtype(which.dtype) not in (np.bool_, np.int32):
        _fail(node, f"chooses by {which!r}, which is neither a truth value nor an index")
    for case in cases:
        if case.dtype != node.dtype:
            _fail(node, f"the case {case!r} has not its dtype")


def _whole_power(node: Node) -> None:
    _same_dtype(node)
    if len(node.params) != 1 or not isinstance(node.params[0], int):
        _fail(node, f"the exponent {node.params} is no whole number")


def _leaf(node: Node) -> None:
    if node.inputs:
        _fail(node, "reads other nodes")


def _literal(node: Node) -> None:
    _leaf(node)
    if node.shape != () or node.value is None or np.shape(node.value) != () or node.value.dtype != node.dtype:
        _fail(node, f"{node.value!r} is no scalar of its dtype")


def _one_data(node: Node) -> Node:
    if len(node.inputs) != 1:
        _fail(node, f"has {len(node.inputs)} inputs, not one")
    _same_dtype(node)
    return node.inputs[0]


def _arrange(node: Node) -> None:
    base, dims = _one_data(node), node.params
    if 1 in base.shape:
        _fail(node, f"its base {base!r} has an axis of length 1")
    if len(dims) != len(base.shape) or len(set(dims)) != len(dims):
        _fail(node, f"the axes {dims} do not place each axis of {base!r} once")
    for size, place in zip(base.shape, dims, strict=True):
        if not 0 <= place < len(node.shape) or node.shape[place] != size:
            _fail(node, f"an axis of length {size} of {base!r} does not fit axis {place}")
    if node.shape == base.shape and dims == tuple(range(len(dims))):
        _fail(node, f"is {base!r} itself")


def _reshape(node: Node) -> None:
    if math.prod(_one_data(node).shape) != math.prod(node.shape):
        _fail(node, f"{node.inputs[0]!r} has another number of elements")


def _same(node: Node) -> None:
    if _one_data(node).shape != node.shape:
        _fail(node, f"{node.inputs[0]!r} has another shape")


def _move(node: Node) -> None:
    for k in moved_inputs(node):
        if not 0 <= k < len(node.inputs):
            _fail(node, f"its data input {k} is not there")
        if node.inputs[k].dtype != node.dtype:
            _fail(node, f"its data input {k}, {node.inputs[k]!r}, has not the dtype {node.dtype}")


def _axes(node: Node) -> tuple[int, ...]:
    whole = node.inputs[0]
    (axes,) = node.params if len(node.params) == 1 else (None,)
    if not isinstance(axes, tuple) or len(set(axes)) != len(axes):
        _fail(node, f"the parameters {node.params} are not one tuple of axes")
    if any(not 0 <= k < len(whole.shape) for k in axes):
        _fail(node, f"{whole!r} has not all of the axes {axes}")
    for k, other in enumerate(node.inputs):
        if other.shape != whole.shape and other.op.name != "literal":
            _fail(node, f"input {k}, {other!r}, has not the shape {whole.shape}")
    return axes


def _reduces(node: Node) -> None:
    axes = _axes(node)
    left = tuple(n for k, n in enumerate(node.inputs[0].shape) if k not in axes)
    if node.shape != left:
        _fail(node, f"{node.inputs[0]!r} without the axes {axes} has the shape {left}")


def _reduction(node: Node) -> None:
    _reduces(node)
    _same_dtype(node)


def _index_reduction(node: Node) -> None:
    _reduces(node)
    if np.dtype(node.dtype).kind not in "iu":
        _fail(node, "a place is a whole number")


def _along(node: Node) -> None:
    _axes(node)
    _same_dtype(node)
    if node.shape != node.inputs[0].shape:
        _fail(node, f"{node.inputs[0]!r} has another shape")


def _cumulative(node: Node) -> None:
    _same(node)
    axis, _ = node.params
    if not 0 <= axis < len(node.shape):
        _fail(node, f"has no axis {axis}")


def _pairs(node: Node) -> None:
    if not node.inputs or len(node.inputs) % 2:
        _fail(node, "its inputs are no pairs of mantissa and exponent")
    _elementwise(node, node.inputs)
    _same_dtype(node)


def _exponent(node: Node) -> None:
    if node.dtype != np.int32:
        _fail(node, "gives an exponent, int32")


def _with_exponent(node: Node) -> None:
    mantissa, exponent = node.inputs
    if mantissa.dtype != node.dtype or exponent.dtype != np.int32:
        _fail(node, f"takes a mantissa of its own dtype and an exponent, int32, not {mantissa!r} and {exponent!r}")


def _output(node: Node) -> None:
    if len(node.inputs) != 1 or len(node.params) != 1 or not isinstance(node.params[0], int):
        _fail(node, "names no result of one node")


def _table(check: Callable[[Node], None], names: str) -> dict[str, Callable[[Node], None]]:
    return dict.fromkeys(names.split(), check)


ANY_DTYPE = frozenset(("cast", "complex", "real", "imag", "abs"))  # abs of a complex number is real
DTYPES = {
    **_table(_comparison, "eq ne lt le gt ge"),
    "is_finite": _truth,
    "pow": _pow,
    "select": _select,
    "integer_pow": _whole_power,
    **_table(_exponent, "binary_exponent exponent_of_exp"),
    **_table(_with_exponent, "aligned times_power_of_two scaled_value log_of_scaled"),
}
CHECKS: dict[str, Callable[[Node], None]] = {
    **_table(_leaf, "input constant iota"),
    "literal": _literal,
    "arrange": _arrange,
    "reshape": _reshape,
    "stop_gradient": _same,
    "move": _move,
    **_table(_reduction, "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor"),
    **_table(_reduction, "norm logsumexp logsumexp_weighted shift shift_weighted log_abs_product"),
    **_table(_index_reduction, "argmax argmin"),
    **_table(_along, "product_of_others log_softmax softmax log_sum_others log_one_minus_softmax one_minus_softmax"),
    **_table(_cumulative, "cumsum cumprod cummax cummin cumlogsumexp"),
    **_table(_pairs, "shift_terms log_sum_terms"),
    "output": _output,
}
