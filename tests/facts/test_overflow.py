"""Whether exponentials in a value can carry it out of the range of its dtype, or to 0."""

import numpy as np
import pytest

from graph.meaning import FLOAT, elementwise, leaf
from stablegrad.facts import Facts
from stablegrad.graph.node import Graph


def of(graph, name, *inputs, **more):
    return elementwise(graph, name, *inputs, **more)


def one(graph):
    return graph.literal(1.0, np.dtype(FLOAT))


# name: (a value made of x and y, it may overflow, it may vanish)
VALUES = {
    "x": (lambda g, x, y: x, False, False),
    "exp": (lambda g, x, y: of(g, "exp", x), True, True),
    "sinh": (lambda g, x, y: of(g, "sinh", x), True, False),
    "sigmoid": (lambda g, x, y: of(g, "logistic", x), False, True),
    "tanh": (lambda g, x, y: of(g, "tanh", x), False, False),
    "x sigmoid(y)": (lambda g, x, y: of(g, "mul", x, of(g, "logistic", y)), False, True),
    "x + sigmoid(y)": (lambda g, x, y: of(g, "add", x, of(g, "logistic", y)), False, True),
    "x + tanh(y)": (lambda g, x, y: of(g, "add", x, of(g, "tanh", y)), False, False),
    "sigmoid(x) exp(y)": (lambda g, x, y: of(g, "mul", of(g, "logistic", x), of(g, "exp", y)), True, True),
    "1 / exp(x)": (lambda g, x, y: of(g, "div", one(g), of(g, "exp", x)), True, True),
    "x / (1 + exp(y))": (lambda g, x, y: of(g, "div", x, of(g, "add", one(g), of(g, "exp", y))), False, True),
    "1 - tanh(x)": (lambda g, x, y: of(g, "sub", one(g), of(g, "tanh", x)), False, True),
    "sin(exp(x))": (lambda g, x, y: of(g, "sin", of(g, "exp", x)), False, False),
    "-sigmoid(x)": (lambda g, x, y: of(g, "neg", of(g, "logistic", x)), False, True),
}


@pytest.mark.parametrize("value, overflows, vanishes", VALUES.values(), ids=VALUES)
def test_what_exponentials_can_do(value, overflows, vanishes):
    graph, facts = Graph(), Facts()
    node = value(graph, leaf(graph, 3), leaf(graph, 3))
    assert (facts.may_overflow(node), facts.may_vanish(node)) == (overflows, vanishes)


def test_a_matrix_product_of_mixed_values_is_asked_nothing():
    """Only an operand that is a product with an exponential, or not negative, can need it taken out."""
    from stablegrad.facts.reach import EXPONENTIAL, Reach

    graph = Graph()
    mixed = of(graph, "add", leaf(graph, 3), of(graph, "logistic", leaf(graph, 3)))
    for operand, reaches in ((mixed, False), (of(graph, "exp", leaf(graph, 3)), True)):
        product = graph.node("dot_general", (operand, leaf(graph, 3)), (), (), np.dtype(FLOAT))
        assert bool(Facts().reach(product) & EXPONENTIAL) == reaches
        assert Reach()(product) & EXPONENTIAL


def test_a_root_of_a_positive_value_counts_for_nothing():
    from stablegrad.facts.reach import ROOT

    graph = Graph()
    x = leaf(graph, 3)
    square = of(graph, "mul", x, x)
    assert Facts().reach(of(graph, "sqrt", square)) & ROOT
    assert not Facts().reach(of(graph, "sqrt", of(graph, "add", square, one(graph)))) & ROOT


def test_a_program_of_any_depth():
    graph, facts = Graph(), Facts()
    node = of(graph, "exp", leaf(graph, 3))
    for _ in range(20_000):
        node = of(graph, "neg", node)
    assert facts.may_overflow(node) and facts.may_vanish(node)
