"""Nodes as a person reads them."""

import numpy as np
import pytest

from graph.meaning import FLOAT, elementwise, leaf
from stablegrad.graph.arrange import arrange
from stablegrad.graph.build import stop_gradient
from stablegrad.graph.node import Graph, Handle
from stablegrad.graph.printing import expression


def test_infix_and_functions():
    graph = Graph()
    x, one = leaf(graph, 3), graph.literal(1.0, FLOAT)
    node = elementwise(graph, "log", elementwise(graph, "add", one, elementwise(graph, "exp", x)))
    assert expression(node) == "log((exp(input) + 1))"


def test_numbers_stand_last_in_sums_and_products():
    graph = Graph()
    two, x = graph.literal(2.0, FLOAT), leaf(graph, 3)
    assert (
        expression(elementwise(graph, "mul", two, x)) == expression(elementwise(graph, "mul", x, two)) == "(input * 2)"
    )
    assert expression(elementwise(graph, "sub", two, x)) == "(2 - input)"


@pytest.mark.parametrize(
    "op, text",
    [("sub", "(input - input)"), ("div", "(input / input)"), ("pow", "(input ** input)"), ("lt", "(input < input)")],
)
def test_infix(op, text):
    graph = Graph()
    assert expression(elementwise(graph, op, leaf(graph), leaf(graph))) == text


def test_powers_signs_and_axes():
    graph = Graph()
    x = leaf(graph, 2, 3)
    assert expression(elementwise(graph, "integer_pow", x, params=(2,))) == "input**2"
    assert expression(elementwise(graph, "neg", x)) == "-input"
    assert expression(graph.node("reduce_sum", (x,), ((1,),), (2,), FLOAT)) == "reduce_sum(input, axis=(1,))"


def test_what_only_lays_numbers_out_is_not_shown():
    graph = Graph()
    x = leaf(graph, 3)
    laid = arrange(graph, stop_gradient(graph, elementwise(graph, "cast", x, dtype="float32")), (2, 3), (1,))
    assert expression(elementwise(graph, "exp", laid)) == "exp(input)"


def test_moves_are_named_by_the_engine_s_operation_and_show_their_data():
    graph = Graph()
    x, at = leaf(graph, 3), leaf(graph, dtype="int32")
    assert expression(graph.node("move", (x, at), (Handle("gather", (), (0,)),), (2,), FLOAT)) == "gather(input)"


def test_numbers_are_short_and_deep_values_are_cut():
    graph = Graph()
    assert expression(graph.literal(np.pi, FLOAT)) == "3.14159"
    assert expression(graph.literal(True, "bool")) in ("1", "True")
    node = leaf(graph, 3)
    for _ in range(10_000):
        node = elementwise(graph, "exp", node)
    assert expression(node, depth=2) == "exp(exp(...))"


def test_emitted_functions_are_told_from_the_engine_s_own():
    graph = Graph()
    assert expression(elementwise(graph, "stable_expm1", leaf(graph, 3))) == "stable expm1(input)"
    assert expression(elementwise(graph, "softplus", leaf(graph, 3))) == "softplus(input)"
