"""Equal pure nodes are one node; literals know their exact value."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from graph.meaning import FLOAT, elementwise, leaf
from stablegrad.graph.arrange import arrange
from stablegrad.graph.node import Graph, Handle, is_float, literal_number, moved_inputs


def test_equal_nodes_are_one_node():
    graph = Graph()
    x = leaf(graph, 3)
    assert elementwise(graph, "exp", x) is elementwise(graph, "exp", x)
    assert elementwise(graph, "exp", x) is not elementwise(graph, "log", x)


@pytest.mark.parametrize("op", ["add", "mul", "max", "min", "eq", "logaddexp"])
def test_the_order_of_commutative_operands_does_not_matter(op):
    graph = Graph()
    x, y = leaf(graph, 3), leaf(graph, 3)
    assert elementwise(graph, op, x, y) is elementwise(graph, op, y, x)


@pytest.mark.parametrize("op", ["sub", "div", "pow", "atan2", "lt"])
def test_the_order_of_other_operands_matters(op):
    graph = Graph()
    x, y = leaf(graph, 3), leaf(graph, 3)
    assert elementwise(graph, op, x, y) is not elementwise(graph, op, y, x)


def test_shape_dtype_and_parameters_tell_nodes_apart():
    graph = Graph()
    x = leaf(graph, 3)
    assert elementwise(graph, "integer_pow", x, params=(2,)) is not elementwise(graph, "integer_pow", x, params=(3,))
    assert elementwise(graph, "cast", x, dtype="float32") is not elementwise(graph, "cast", x, dtype="float16")


def test_what_is_not_to_be_shared_is_not():
    graph = Graph()
    x = leaf(graph, 3)
    first, second = (graph.node("opaque", (x,), (), (3,), FLOAT, share=False) for _ in range(2))
    assert first is not second


def test_parameters_that_have_no_hash_make_a_node_of_its_own():
    graph = Graph()
    x = leaf(graph, 3)
    handle = Handle("primitive", (("options", ["a list"]),), (0,))
    assert graph.node("move", (x,), (handle,), (3,), FLOAT) is not graph.node("move", (x,), (handle,), (3,), FLOAT)


def test_inputs_come_before_the_node():
    graph = Graph()
    x = leaf(graph, 3)
    node = elementwise(graph, "exp", elementwise(graph, "neg", x))
    assert x.order < node.inputs[0].order < node.order


def test_literals_are_shared_by_bits():
    graph = Graph()
    assert graph.literal(0.0, "float32") is graph.literal(0.0, "float32")
    assert graph.literal(0.0, "float32") is not graph.literal(-0.0, "float32")
    assert graph.literal(1.0, "float32") is not graph.literal(1.0, "float64")
    assert graph.literal(np.nan, "float32") is graph.literal(np.nan, "float32")


@pytest.mark.parametrize(
    "value, dtype, number",
    [
        (3.0, "float32", 3),
        (0.1, "float32", Fraction(float(np.float32(0.1)))),
        (0.1, ml_dtypes.bfloat16, Fraction(float(ml_dtypes.bfloat16(0.1)))),
        (7, "int32", 7),
        (np.inf, "float32", None),
        (np.nan, "float64", None),
        (True, "bool", None),
    ],
)
def test_the_number_of_a_literal_is_exact(value, dtype, number):
    assert literal_number(Graph().literal(value, dtype)) == number


def test_the_number_of_a_literal_is_seen_behind_broadcasts_and_casts():
    graph = Graph()
    laid = arrange(graph, graph.literal(0.5, "float32"), (2, 3), ())
    wider = elementwise(graph, "cast", laid, dtype="float64")
    assert literal_number(wider) == Fraction(1, 2)
    assert literal_number(leaf(graph, 2)) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_floats(dtype):
    assert is_float(dtype)


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "uint8", ml_dtypes.int4])
def test_what_is_no_float(dtype):
    assert not is_float(dtype)


def test_which_inputs_are_moved():
    graph = Graph()
    x, at = leaf(graph, 3), leaf(graph, dtype="int32")
    assert moved_inputs(graph.node("move", (x, at), (Handle("slice", (), (0,)),), (2,), FLOAT)) == (0,)
    assert moved_inputs(arrange(graph, x, (2, 3), (1,))) == (0,)
    assert moved_inputs(elementwise(graph, "exp", x)) == ()
