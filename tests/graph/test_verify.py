"""Each way in which a graph can be wrong is found, and named."""

import numpy as np
import pytest

from graph.meaning import FLOAT, elementwise, leaf
from stablegrad.graph.node import Graph, Handle, Node, Source
from stablegrad.graph.ops import get_op
from stablegrad.graph.verify import InvalidGraph, verify

X = (2, 3)


def raw(op, inputs, params=(), shape=X, dtype=FLOAT):
    """A node made behind the table's back."""
    return lambda graph, x: graph.node(
        op, tuple(i(graph, x) if callable(i) else i for i in inputs), params, shape, dtype
    )


def given(graph, x):
    return x


def other(*shape, dtype=FLOAT):
    return lambda graph, x: leaf(graph, *shape, dtype=dtype)


def flag(graph, x):
    return leaf(graph, *X, dtype="bool")


def move(*data):
    return (Handle("gather", (), data),)


WRONG = {
    "another shape": (raw("exp", [given], shape=(3, 2)), r"has not the shape \(3, 2\)"),
    "a scalar operand that is no literal": (raw("add", [other(), given]), "has not the shape"),
    "another dtype": (raw("exp", [given], dtype=np.dtype("float32")), "has not the dtype float32"),
    "mixed dtypes": (raw("mul", [given, other(*X, dtype="float32")]), "has not the dtype float64"),
    "a comparison that is a number": (raw("lt", [given, given]), "gives a truth value"),
    "a comparison of two dtypes": (
        raw("lt", [given, other(*X, dtype="float32")], dtype=np.dtype("bool")), "compares .* of another dtype"
    ),
    "is_finite that is a number": (raw("is_finite", [given]), "gives a truth value"),
    "a power of another dtype": (raw("pow", [given, other(*X, dtype="float32")]), "to the power of"),
    "an exponent that is no whole number": (raw("integer_pow", [given], (0.5,)), "is no whole number"),
    "a choice by a float": (raw("select", [given, given, given]), "chooses by"),
    "cases of another dtype": (raw("select", [flag, given, other(*X, dtype="float32")]), "has not its dtype"),
    "an argument that reads": (raw("input", [given]), "reads other nodes"),
    "an unit axis under an arrange": (raw("arrange", [other(1, 3)], (0, 1), (1, 3, 2)), "has an axis of length 1"),
    "an arrange that is nothing": (raw("arrange", [given], (0, 1)), "itself"),
    "an axis placed twice": (raw("arrange", [given], (1, 1), (4, 3)), "do not place each axis"),
    "an axis not placed": (raw("arrange", [given], (0,), (2, 4)), "do not place each axis"),
    "an axis that does not fit": (raw("arrange", [given], (1, 0), (2, 3)), "does not fit axis"),
    "an axis beyond the shape": (raw("arrange", [given], (0, 2), (2, 4)), "does not fit axis"),
    "a reshape to more elements": (raw("reshape", [given], shape=(7,)), "another number of elements"),
    "a stop_gradient to another shape": (raw("stop_gradient", [given], shape=(6,)), "another shape"),
    "a cast under a reshape": (raw("reshape", [given], shape=(6,), dtype=np.dtype("float32")), "has not the dtype"),
    "a move of data that is not there": (raw("move", [given], move(1)), "data input 1 is not there"),
    "a move to another dtype": (raw("move", [given], move(0), dtype=np.dtype("int32")), "has not the dtype int32"),
    "a reduction to another shape": (raw("reduce_sum", [given], ((1,),), (3,)), "has the shape"),
    "a reduction over an axis too far": (raw("reduce_sum", [given], ((2,),), X), "has not all of the axes"),
    "a reduction over an axis twice": (raw("reduce_sum", [given], ((1, 1),), (2,)), "are not one tuple of axes"),
    "a reduction without axes": (raw("reduce_sum", [given], (), ()), "are not one tuple of axes"),
    "a reduction to another dtype": (
        raw("reduce_max", [given], ((0,),), (3,), np.dtype("float32")), "has not the dtype"
    ),
    "a weight of another shape": (raw("logsumexp_weighted", [given, other(3)], ((1,),), (2,)), "has not the shape"),
    "a place that is a float": (raw("argmax", [given], ((1,),), (2,)), "is a whole number"),
    "a softmax to another shape": (raw("softmax", [given], ((1,),), (2,)), "has another shape"),
    "a cumulative sum along no axis": (raw("cumsum", [given], (2, False)), "has no axis 2"),
    "a mantissa without exponent": (raw("shift_terms", [given]), "no pairs"),
    "a pair of two shapes": (raw("log_sum_terms", [given, other(3)]), "has not the shape"),
    "a result of nothing": (raw("output", [], (0,)), "names no result"),
    "a size that is no number": (raw("iota", [], (0,), (2, -1)), "no whole number"),
}  # fmt: skip


@pytest.mark.parametrize("make, message", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_node_is_found(make, message):
    graph = Graph()
    x = leaf(graph, *X)
    graph.outputs = [elementwise(graph, "neg", make(graph, x))]
    with pytest.raises(InvalidGraph, match=message):
        verify(graph)


RIGHT = {
    "a literal beside an array": lambda g, x: elementwise(g, "add", g.literal(1.0, FLOAT), x),
    "a literal as a case": lambda g, x: g.node("select", (flag(g, x), g.literal(0.0, FLOAT), x), (), X, FLOAT),
    "a power with an integer": lambda g, x: g.node("pow", (x, leaf(g, *X, dtype="int32")), (), X, FLOAT),
    "a cast": lambda g, x: elementwise(g, "cast", x, dtype="float32"),
    "a comparison": lambda g, x: elementwise(g, "lt", x, x, dtype="bool"),
    "argmax": lambda g, x: g.node("argmax", (x,), ((1,),), (2,), np.dtype("int32")),
    "weights that are a literal": lambda g, x: g.node(
        "logsumexp_weighted", (x, g.literal(2.0, FLOAT)), ((1,),), (2,), FLOAT
    ),
    "one of several results": lambda g, x: g.node(
        "output", (g.node("opaque", (x,), (), (), None, share=False),), (1,), X, FLOAT
    ),
}  # fmt: skip


@pytest.mark.parametrize("make", RIGHT.values(), ids=RIGHT.keys())
def test_a_right_node_passes(make):
    graph = Graph()
    graph.outputs = [make(graph, leaf(graph, *X))]
    verify(graph)


def test_a_replacement_keeps_shape_and_dtype():
    graph = Graph()
    x = leaf(graph, *X)
    old = elementwise(graph, "exp", x)
    verify(graph, {old: elementwise(graph, "neg", x)})
    for new in (leaf(graph, 3), leaf(graph, *X, dtype="float32")):
        with pytest.raises(InvalidGraph, match="of another shape or dtype"):
            verify(graph, {old: new})


def test_a_replacement_must_not_need_what_it_replaces():
    graph = Graph()
    x = leaf(graph, *X)
    old = elementwise(graph, "exp", x)
    with pytest.raises(InvalidGraph, match="needs its own value"):
        verify(graph, {old: elementwise(graph, "neg", old)})
    with pytest.raises(InvalidGraph, match="by itself"):
        verify(graph, {old: old})


def test_two_replacements_must_not_need_each_other():
    graph = Graph()
    x = leaf(graph, *X)
    first, second = (elementwise(graph, op, x) for op in ("exp", "log"))
    verify(graph, {first: elementwise(graph, "neg", second)})
    with pytest.raises(InvalidGraph, match="needs its own value"):
        verify(graph, {first: elementwise(graph, "neg", second), second: elementwise(graph, "abs", first)})


def test_an_input_that_comes_after_is_found():
    graph = Graph()
    x = leaf(graph, *X)
    late = elementwise(graph, "exp", x)
    early = Node(get_op("neg"), (late,), (), X, FLOAT, order=x.order)
    with pytest.raises(InvalidGraph, match="comes after it"):
        verify(graph, roots=[early])


def test_the_line_of_the_user_is_named():
    graph = Graph()
    x = leaf(graph, *X)
    node = graph.node("exp", (x,), (), (7,), FLOAT)
    node.source = Source("loss.py", 12, "loss")
    graph.outputs = [node]
    with pytest.raises(InvalidGraph, match=r"^<exp#2 float64\[7\]> \(loss.py:12\): "):
        verify(graph)


def test_a_program_of_any_depth_is_walked():
    graph = Graph()
    node = leaf(graph, *X)
    for _ in range(20_000):
        node = elementwise(graph, "exp", node)
    graph.outputs = [node]
    verify(graph)
