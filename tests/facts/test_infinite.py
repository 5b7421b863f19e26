"""Whether the program itself can make a value infinite."""

import numpy as np
import pytest

from graph.meaning import FLOAT, elementwise, leaf
from stablegrad.facts import Facts
from stablegrad.graph.arrange import arrange
from stablegrad.graph.node import Graph


def masked(graph, x):
    """where(mask, x, -inf)"""
    mask = leaf(graph, *x.shape, dtype="bool")
    return graph.node("select", (mask, graph.literal(-np.inf, FLOAT), x), (), x.shape, FLOAT)


def constant(graph, value):
    node = graph.node("constant", (), (), np.shape(value), np.asarray(value).dtype, share=False)
    node.value = value
    return node


INFINITE = {
    "a literal": lambda g, x: g.literal(np.inf, FLOAT),
    "a mask": masked,
    "a mask that is added": lambda g, x: elementwise(g, "add", x, constant(g, np.array([0.0, -np.inf, 0.0]))),
    "the log of what may be 0": lambda g, x: elementwise(g, "log", elementwise(g, "square", x)),
    "the log of anything": lambda g, x: elementwise(g, "log", x),
    "a masked value, scaled": lambda g, x: elementwise(g, "mul", masked(g, x), g.literal(2.0, FLOAT)),
    "a masked value, laid out": lambda g, x: arrange(g, masked(g, x), (2, 3), (1,)),
    "the negative of a masked value": lambda g, x: elementwise(g, "neg", masked(g, x)),
}
FINITE = {
    "an argument": lambda g, x: x,
    "a number": lambda g, x: g.literal(2.0, FLOAT),
    "the log of what is above 0": lambda g, x: elementwise(
        g, "log", elementwise(g, "add", elementwise(g, "square", x), g.literal(1.0, FLOAT))
    ),
    "the exponential of a masked value": lambda g, x: elementwise(g, "exp", masked(g, x)),
    "a constant of finite numbers": lambda g, x: constant(g, np.array([1.0, 2.0, np.nan])),
    "a constant of whole numbers": lambda g, x: constant(g, np.array([1, 2, 3])),
    "a choice whose condition is infinite": lambda g, x: g.node(
        "select", (elementwise(g, "lt", masked(g, x), x, dtype=np.bool_), x, x), (), (3,), FLOAT
    ),
}


@pytest.mark.parametrize("make", INFINITE.values(), ids=INFINITE.keys())
def test_may_be_infinite(make):
    graph = Graph()
    assert Facts().may_be_infinite(make(graph, leaf(graph, 3)))


@pytest.mark.parametrize("make", FINITE.values(), ids=FINITE.keys())
def test_is_not_made_infinite(make):
    graph = Graph()
    assert not Facts().may_be_infinite(make(graph, leaf(graph, 3)))


def test_a_program_of_any_depth():
    graph = Graph()
    node = masked(graph, leaf(graph, 3))
    for _ in range(20_000):
        node = elementwise(graph, "neg", elementwise(graph, "add", node, leaf(graph, 3)))
    assert Facts().may_be_infinite(node)
