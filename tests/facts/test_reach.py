"""Whether exponentials, logarithms, quotients or roots stand under a value."""

import numpy as np
import pytest

from graph.meaning import FLOAT, elementwise, leaf
from stablegrad.facts.reach import EXPONENTIAL, LOGARITHM, QUOTIENT, ROOT, Reach
from stablegrad.graph.arrange import arrange
from stablegrad.graph.build import stop_gradient
from stablegrad.graph.node import Graph, Handle

OWN = {
    "exp": EXPONENTIAL, "exp2": EXPONENTIAL, "expm1": EXPONENTIAL, "logistic": EXPONENTIAL, "tanh": EXPONENTIAL,
    "log": LOGARITHM, "log1p": LOGARITHM, "rsqrt": QUOTIENT | ROOT, "sin": 0, "erf": 0, "sqrt": ROOT,
}  # fmt: skip


@pytest.mark.parametrize("op, bits", OWN.items())
def test_functions_of_an_argument(op, bits):
    graph = Graph()
    assert Reach()(elementwise(graph, op, leaf(graph, 3))) == bits


@pytest.mark.parametrize(
    "op, bits", [("div", QUOTIENT), ("logaddexp", EXPONENTIAL | LOGARITHM), ("add", 0), ("pow", ROOT)]
)
def test_functions_of_two_arguments(op, bits):
    graph = Graph()
    assert Reach()(elementwise(graph, op, leaf(graph, 3), leaf(graph, 3))) == bits


@pytest.mark.parametrize("exponent, bits", [(2, 0), (-1, QUOTIENT)])
def test_whole_powers(exponent, bits):
    graph = Graph()
    assert Reach()(elementwise(graph, "integer_pow", leaf(graph, 3), params=(exponent,))) == bits


@pytest.mark.parametrize(
    "around",
    [
        lambda g, x: elementwise(g, "add", x, leaf(g, 3)),
        lambda g, x: elementwise(g, "mul", leaf(g, 3), x),
        lambda g, x: elementwise(g, "neg", x),
        lambda g, x: elementwise(g, "sqrt", x),
        lambda g, x: elementwise(g, "cast", x, dtype="float32"),
        lambda g, x: g.node("reduce_sum", (x,), ((0,),), (), FLOAT),
        lambda g, x: g.node("cumsum", (x,), (0, False), (3,), FLOAT),
        lambda g, x: arrange(g, x, (2, 3), (1,)),
        lambda g, x: g.node("move", (x,), (Handle("slice", (), (0,)),), (2,), FLOAT),
        stop_gradient,
        lambda g, x: g.node("select", (leaf(g, 3, dtype="bool"), x, leaf(g, 3)), (), (3,), FLOAT),
    ],
    ids=range(11),
)
def test_what_is_looked_through(around):
    graph = Graph()
    e = elementwise(graph, "exp", leaf(graph, 3))
    assert Reach()(around(graph, e)) & EXPONENTIAL


@pytest.mark.parametrize("op", ["sin", "erf", "log", "lgamma"])
def test_what_is_not_looked_through(op):
    graph = Graph()
    assert not Reach()(elementwise(graph, op, elementwise(graph, "exp", leaf(graph, 3)))) & EXPONENTIAL


def test_bits_add_up():
    graph = Graph()
    x = leaf(graph, 3)
    both = elementwise(graph, "mul", elementwise(graph, "exp", x), elementwise(graph, "log", x))
    assert Reach()(both) == EXPONENTIAL | LOGARITHM
    assert Reach()(elementwise(graph, "div", both, x)) == EXPONENTIAL | LOGARITHM | QUOTIENT


def test_places_and_conditions_do_not_count():
    """Whole numbers and truth values that come from an exponential are not one."""
    graph = Graph()
    e = elementwise(graph, "exp", leaf(graph, 3))
    place = elementwise(graph, "cast", e, dtype="int32")
    moved = graph.node("move", (leaf(graph, 3), place), (Handle("gather", (), (0,)),), (3,), FLOAT)
    chosen = graph.node(
        "select",
        (elementwise(graph, "lt", e, leaf(graph, 3), dtype=np.bool_), leaf(graph, 3), leaf(graph, 3)),
        (),
        (3,),
        FLOAT,
    )
    assert Reach()(moved) == Reach()(chosen) == 0


def test_a_program_of_any_depth():
    graph = Graph()
    node = elementwise(graph, "exp", leaf(graph, 3))
    for _ in range(20_000):
        node = elementwise(graph, "neg", elementwise(graph, "abs", node))
    assert Reach()(node) == EXPONENTIAL
