"""The constructors that rules write with do the trivial simplifications, and nothing that changes a value."""

from fractions import Fraction

import numpy as np
import pytest

from graph.meaning import FLOAT, elementwise, evaluate, leaf, numbers
from stablegrad.graph.arrange import arrange, reshape
from stablegrad.graph.build import Builder, stop_gradient
from stablegrad.graph.node import Graph, Handle
from stablegrad.graph.verify import verify


@pytest.fixture
def build():
    return Builder(Graph())


def number(build, value):
    return build.number(value, FLOAT)


def test_nothing_added_or_multiplied_is_nothing_done(build):
    x = leaf(build.graph, 3)
    assert build.add(x, number(build, 0)) is x is build.add(number(build, 0), x)
    assert build.sub(x, number(build, 0)) is x
    assert build.mul(x, number(build, 1)) is x is build.mul(number(build, 1), x)
    assert build.scale(x, 1) is x


def test_signs(build):
    x = leaf(build.graph, 3)
    assert build.neg(build.neg(x)) is x
    assert build.sub(number(build, 0), x) is build.neg(x) is build.scale(x, -1)


def test_a_product_with_zero_stays_because_the_other_may_be_infinite(build):
    x = leaf(build.graph, 3)
    assert build.mul(x, number(build, 0)).op.name == "mul"


@pytest.mark.parametrize(
    "times, op, literal",
    [
        (Fraction(1, 3), "div", 3.0),
        (Fraction(1, 2), "mul", 0.5),
        (7, "mul", 7.0),
        (Fraction(2, 3), "mul", 2 / 3),
    ],
)
def test_a_third_is_a_division_by_three(build, times, op, literal):
    x = leaf(build.graph, 3)
    node = build.scale(x, times)
    assert node.op.name == op
    assert literal in [float(i.value) for i in node.inputs if i.op.name == "literal"]
    np.testing.assert_array_equal(
        evaluate(node, {x: np.array([3.0, 6.0, 0.5])}), np.array([3.0, 6.0, 0.5]) * float(times)
    )


def test_minus_a_third(build):
    x = leaf(build.graph, 3)
    node = build.scale(x, Fraction(-1, 3))
    assert (node.op.name, node.inputs[0].op.name) == ("neg", "div")


def test_coefficients_beyond_the_range_of_floats_are_infinite(build):
    assert number(build, 10**400).value == np.inf
    assert number(build, -(10**400)).value == -np.inf


def test_sums_of_several(build):
    x, y = leaf(build.graph, 3), leaf(build.graph, 3)
    assert build.total([x, build.neg(y)]) is build.sub(x, y)
    assert build.total([x]) is x
    assert build.total([x, y]) is build.add(x, y)


def test_a_full_array_takes_the_shape_and_dtype_of_its_model(build):
    x = leaf(build.graph, 2, 3, dtype="float32")
    full = build.full(2, x)
    assert (full.shape, full.dtype) == ((2, 3), x.dtype)


def test_reductions_and_what_lays_them_back(build):
    x, value = numbers(build.graph, 2, 3)
    total = build.along("reduce_sum", x, (1,))
    kept = build.keep("softmax", x, (1,))
    laid = build.lay_back(total, (2, 3), (1,))
    build.graph.outputs = [total, kept, laid]
    verify(build.graph)
    np.testing.assert_array_equal(evaluate(laid, {x: value}), np.broadcast_to(value.sum(1, keepdims=True), (2, 3)))
    assert build.drop(laid, (1,)) is total


def test_a_move_of_other_data_is_the_same_move(build):
    graph = build.graph
    x, y, at = leaf(graph, 3), leaf(graph, 3, dtype="float32"), leaf(graph, dtype="int32")
    handle = Handle("dynamic_slice", (("slice_sizes", (2,)),), (0,))
    moved = graph.node("move", (x, at), (handle,), (2,), FLOAT)
    other = build.move_like(moved, {0: y})
    assert (other.inputs, other.params, other.shape, other.dtype) == ((y, at), (handle,), (2,), y.dtype)
    laid = arrange(graph, x, (2, 3), (1,))
    assert build.move_like(laid, {0: y}) is arrange(graph, y, (2, 3), (1,))
    flat = reshape(graph, leaf(graph, 2, 3), (6,))
    z = leaf(graph, 2, 3)
    assert build.move_like(flat, {0: z}) is reshape(graph, z, (6,))
    assert build.move_like(stop_gradient(graph, x), {0: y}) is stop_gradient(graph, y)


def test_stop_gradient_stands_under_the_layout(build):
    graph = build.graph
    x = leaf(graph, 2, 3)
    held = stop_gradient(graph, x)
    assert stop_gradient(graph, held) is held
    laid = arrange(graph, x, (3, 2, 4), (1, 0))
    assert stop_gradient(graph, laid) is arrange(graph, held, (3, 2, 4), (1, 0))
    assert stop_gradient(graph, reshape(graph, x, (6,))) is reshape(graph, held, (6,))
    two = graph.literal(2.0, FLOAT)
    assert stop_gradient(graph, two) is two


def test_elementwise_takes_the_shape_of_what_is_no_literal(build):
    x = leaf(build.graph, 2, 3)
    two = number(build, 2)
    assert build.elementwise("div", two, x).shape == (2, 3)
    assert build.elementwise("div", x, two) is elementwise(build.graph, "div", x, two)
