"""The maximum of x along some axes is recognised where it is laid back along x, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.meaning import FLOAT, elementwise, evaluate, leaf
from stablegrad.facts.peak import peak_axes
from stablegrad.graph.arrange import arrange, reshape, transpose
from stablegrad.graph.build import stop_gradient
from stablegrad.graph.node import Graph


def largest(graph, x, axes):
    return graph.node("reduce_max", (x,), (axes,), tuple(n for k, n in enumerate(x.shape) if k not in axes), FLOAT)


def laid(graph, node, x, axes):
    return arrange(graph, node, x.shape, tuple(k for k in range(len(x.shape)) if k not in axes))


def minus_infinity(graph):
    return graph.literal(-np.inf, FLOAT)


def guarded(graph, node, otherwise=0.0):
    finite = graph.node("is_finite", (node,), (), node.shape, np.dtype(bool))
    return graph.node("select", (finite, graph.literal(otherwise, FLOAT), node), (), node.shape, FLOAT)


CASES = [
    ((2, 3), (1,)),
    ((2, 3), (0,)),
    ((2, 3), (0, 1)),
    ((3, 3), (1,)),
    ((1, 3), (1,)),
    ((2, 1, 3), (2,)),
    ((3,), (0,)),
]


@pytest.mark.parametrize("shape, axes", CASES)
@pytest.mark.parametrize(
    "around",
    [
        lambda graph, m: m,
        stop_gradient,
        lambda graph, m: elementwise(graph, "max", minus_infinity(graph), m) if m.shape else m,
        guarded,
        lambda graph, m: stop_gradient(graph, guarded(graph, m)),
    ],
    ids=["bare", "held", "at least -inf", "finite", "finite and held"],
)
def test_a_maximum_laid_back_is_found(shape, axes, around):
    graph = Graph()
    x = leaf(graph, *shape)
    m = laid(graph, around(graph, largest(graph, x, axes)), x, axes)
    assert peak_axes(x, m) == tuple(k for k in axes if shape[k] != 1)


@pytest.mark.parametrize("around", [stop_gradient, guarded])
def test_guards_after_the_maximum_was_laid_back(around):
    graph = Graph()
    x = leaf(graph, 2, 3)
    m = around(graph, laid(graph, largest(graph, x, (1,)), x, (1,)))
    assert peak_axes(x, m) == (1,)


def test_kept_axes_make_no_difference():
    graph = Graph()
    x = leaf(graph, 2, 3)
    kept = reshape(graph, largest(graph, x, (1,)), (2, 1))
    assert peak_axes(x, arrange(graph, stop_gradient(graph, kept), (2, 3), (0, 1))) == (1,)


NOT_A_PEAK = {
    "the maximum along the axis of a square, laid along the other": lambda g, x: arrange(
        g, largest(g, x, (1,)), x.shape, (1,)),
    "the transposed": lambda g, x: transpose(g, laid(g, largest(g, x, (1,)), x, (1,)), (1, 0)),
    "the maximum of the transposed": lambda g, x: laid(g, largest(g, transpose(g, x, (1, 0)), (1,)), x, (1,)),
    "a sum": lambda g, x: laid(g, g.node("reduce_sum", (x,), ((1,),), (3,), FLOAT), x, (1,)),
    "the smallest": lambda g, x: laid(g, g.node("reduce_min", (x,), ((1,),), (3,), FLOAT), x, (1,)),
    "twice the maximum": lambda g, x: laid(
        g, elementwise(g, "mul", g.literal(2.0, FLOAT), largest(g, x, (1,))), x, (1,)),
    "at least another number": lambda g, x: laid(
        g, elementwise(g, "max", g.literal(0.0, FLOAT), largest(g, x, (1,))), x, (1,)),
    "at least another value": lambda g, x: laid(
        g, elementwise(g, "max", leaf(g, 3), largest(g, x, (1,))), x, (1,)),
    "a choice by something else": lambda g, x: laid(
        g, g.node("select", (leaf(g, 3, dtype="bool"), g.literal(0.0, FLOAT), largest(g, x, (1,))), (), (3,), FLOAT),
        x, (1,)),
    "not laid back": lambda g, x: largest(g, x, (1,)),
    "the value itself": lambda g, x: x,
}  # fmt: skip


@pytest.mark.parametrize("make", NOT_A_PEAK.values(), ids=NOT_A_PEAK.keys())
def test_what_is_no_maximum_of_x_along_its_axes(make):
    graph = Graph()
    x = leaf(graph, 3, 3)
    assert peak_axes(x, make(graph, x)) is None


def test_the_maximum_of_another_value():
    graph = Graph()
    x, y = leaf(graph, 3, 3), leaf(graph, 3, 3)
    m = laid(graph, largest(graph, y, (1,)), x, (1,))
    assert peak_axes(y, m) == (1,)
    assert peak_axes(x, m) is None


def test_the_value_is_laid_out_too():
    """Attention of jax.nn: the scores have a unit axis, which a batched softmax moves to the front."""
    graph = Graph()
    scores = leaf(graph, 2, 4, 1, 3)
    x = transpose(graph, scores, (2, 0, 1, 3))
    m = laid(graph, reshape(graph, largest(graph, scores, (3,)), (1, 2, 4)), x, (3,))
    assert peak_axes(x, m) == (3,)
    assert peak_axes(transpose(graph, x, (0, 2, 1, 3)), m) is None
    turned = transpose(graph, x, (0, 1, 3, 2))
    assert peak_axes(turned, laid(graph, largest(graph, x, (3,)), turned, (2,))) == (2,)


STEPS = st.lists(st.sampled_from(["hold", "guard", "least", "unit", "drop", "lay", "turn"]), max_size=5)


@given(st.sampled_from(CASES), STEPS, st.randoms(use_true_random=False))
def test_whatever_is_found_is_the_maximum(case, steps, random):
    """Any chain of layouts and guards over a maximum: if it is taken for one of x, it equals it in every element."""
    shape, axes = case
    graph = Graph()
    x = leaf(graph, *shape)
    m = largest(graph, x, axes)
    for step in [*steps, "lay"]:
        if step == "hold":
            m = stop_gradient(graph, m)
        elif step == "guard":
            m = guarded(graph, m)
        elif step == "least":
            m = graph.node("max", (minus_infinity(graph), m), (), m.shape, FLOAT)
        elif step == "unit":
            place = random.randint(0, len(m.shape))
            m = reshape(graph, m, (*m.shape[:place], 1, *m.shape[place:]))
        elif step == "drop" and 1 in m.shape:
            m = reshape(graph, m, tuple(n for n in m.shape if n != 1))
        elif step == "turn" and m.shape:
            m = transpose(graph, m, tuple(random.sample(range(len(m.shape)), len(m.shape))))
        elif step == "lay" and len(m.shape) <= len(shape):
            places = sorted(random.sample(range(len(shape)), len(m.shape)))
            if all(m.shape[k] in (1, shape[p]) for k, p in enumerate(places)):
                m = arrange(graph, m, shape, tuple(places))
    along = peak_axes(x, m)
    if along is None:
        return
    value = np.array([random.uniform(-9, 9) for _ in range(int(np.prod(shape)))]).reshape(shape)
    np.testing.assert_array_equal(evaluate(m, {x: value}), np.broadcast_to(value.max(along, keepdims=True), shape))
