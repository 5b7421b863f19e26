"""Broadcasts, transposes and unit axes have one normal form, and it means what NumPy does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.meaning import FLOAT, elementwise, evaluate, leaf, numbers
from stablegrad.graph.arrange import arrange, base_and_dims, constant_along, drop_axes, reshape, transpose
from stablegrad.graph.node import Graph, Node
from stablegrad.graph.verify import verify

SHAPES = st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4).map(tuple)


def checked(graph: Graph, node: Node) -> Node:
    graph.outputs = [node]
    verify(graph)
    return node


@st.composite
def steps(draw: st.DrawFn) -> list[tuple]:
    """A chain of layout operations, each drawn for the shape that the one before leaves."""
    shape = start = draw(SHAPES)
    out: list[tuple] = [("start", start)]
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["transpose", "unit", "squeeze", "broadcast", "merge"]))
        if kind == "transpose":
            permutation = tuple(draw(st.permutations(range(len(shape)))))
            out.append(("transpose", permutation))
            shape = tuple(shape[k] for k in permutation)
        elif kind == "unit":
            place = draw(st.integers(0, len(shape)))
            shape = (*shape[:place], 1, *shape[place:])
            out.append(("reshape", shape))
        elif kind == "squeeze" and 1 in shape:
            place = draw(st.sampled_from([k for k, n in enumerate(shape) if n == 1]))
            shape = shape[:place] + shape[place + 1 :]
            out.append(("reshape", shape))
        elif kind == "broadcast" and len(shape) < 5:
            new = tuple(draw(st.sampled_from([2, 3])) if n == 1 and draw(st.booleans()) else n for n in shape)
            place = draw(st.integers(0, len(shape)))
            dims = tuple(k if k < place else k + 1 for k in range(len(shape)))
            shape = (*new[:place], draw(st.sampled_from([1, 2])), *new[place:])
            out.append(("broadcast", shape, dims))
        elif kind == "merge" and len(shape) > 1:
            shape = (shape[0] * shape[1], *shape[2:])
            out.append(("reshape", shape))
    return out


def build(graph: Graph, node: Node, chain: list[tuple]) -> Node:
    for kind, *what in chain:
        if kind == "transpose":
            node = transpose(graph, node, what[0])
        elif kind == "reshape":
            node = reshape(graph, node, what[0])
        elif kind == "broadcast":
            node = arrange(graph, node, *what)
    return node


def numpy_of(value: np.ndarray, chain: list[tuple]) -> np.ndarray:
    for kind, *what in chain:
        if kind == "transpose":
            value = value.transpose(what[0])
        elif kind == "reshape":
            value = value.reshape(what[0])
        elif kind == "broadcast":
            shape, dims = what
            kept = [1] * len(shape)
            for size, place in zip(value.shape, dims, strict=True):
                kept[place] = size
            value = np.broadcast_to(value.reshape(kept), shape)
    return value


@given(steps())
def test_a_chain_of_layouts_means_what_numpy_does(chain):
    graph = Graph()
    x, value = numbers(graph, *chain[0][1])
    node = checked(graph, build(graph, x, chain[1:]))
    expected = numpy_of(value, chain[1:])
    assert node.shape == expected.shape
    np.testing.assert_array_equal(evaluate(node, {x: value}), expected)


@given(steps())
def test_a_chain_without_merged_axes_is_at_most_one_reshape_and_one_arrange(chain):
    if any(kind == "reshape" and np.prod(what[0]) > 1 and _merges(before, what[0])
           for before, (kind, *what) in _with_shapes(chain)):  # fmt: skip
        return
    graph = Graph()
    x = leaf(graph, *chain[0][1])
    node, names = build(graph, x, chain[1:]), []
    while node is not x:
        names.append(node.op.name)
        (node,) = node.inputs
    assert names in ([], ["arrange"], ["reshape"], ["arrange", "reshape"])


def _with_shapes(chain):
    shape = chain[0][1]
    for step in chain[1:]:
        yield shape, step
        kind, *what = step
        shape = tuple(shape[k] for k in what[0]) if kind == "transpose" else what[0]


def _merges(before, after):
    return [n for n in before if n != 1] != [n for n in after if n != 1]


@given(SHAPES, st.data())
def test_a_permutation_and_its_inverse_cancel(shape, data):
    graph = Graph()
    x = leaf(graph, *shape)
    permutation = tuple(data.draw(st.permutations(range(len(shape)))))
    inverse = tuple(permutation.index(k) for k in range(len(shape)))
    assert transpose(graph, transpose(graph, x, permutation), inverse) is x


@given(SHAPES, st.integers(0, 4))
def test_a_unit_axis_put_in_and_taken_out_is_nothing(shape, place):
    graph = Graph()
    x = leaf(graph, *shape)
    wider = reshape(graph, x, (*shape[:place], 1, *shape[place:]))
    assert reshape(graph, wider, shape) is x


def test_two_spellings_of_one_broadcast_are_one_node():
    graph = Graph()
    x = leaf(graph, 3)
    directly = arrange(graph, x, (3, 4), (0,))
    through_axis = arrange(graph, reshape(graph, x, (3, 1)), (3, 4), (0, 1))
    through_transpose = transpose(graph, arrange(graph, x, (4, 3), (1,)), (1, 0))
    assert directly is through_axis is through_transpose
    assert directly.params == (0,)


def test_a_size_of_zero_is_no_unit_axis():
    graph = Graph()
    x = leaf(graph, 0, 3)
    node = checked(graph, reshape(graph, x, (0, 7)))
    assert (node.op.name, node.shape) == ("reshape", (0, 7))
    assert reshape(graph, x, (0, 3)) is x


def test_the_base_has_no_unit_axes():
    graph = Graph()
    x = leaf(graph, 1, 3, 1)
    base, dims = base_and_dims(graph, x)
    assert (base.op.name, base.shape, dims) == ("reshape", (3,), (1,))
    assert base_and_dims(graph, arrange(graph, x, (2, 3, 1), (0, 1, 2))) == (base, (1,))


def test_a_literal_stays_a_scalar_until_a_shape_is_asked_for():
    graph = Graph()
    two = graph.literal(2.0, FLOAT)
    assert arrange(graph, two, (), ()) is two
    full = checked(graph, arrange(graph, two, (2, 3), ()))
    assert (full.op.name, full.inputs, full.shape) == ("arrange", (two,), (2, 3))


@pytest.mark.parametrize("axes, constant", [((0,), True), ((2,), True), ((0, 2), True), ((1,), False), ((0, 1), False)])
def test_constant_along_the_axes_that_a_broadcast_made(axes, constant):
    graph = Graph()
    laid = arrange(graph, leaf(graph, 3), (2, 3, 4), (1,))
    assert constant_along(laid, axes) is constant


def test_what_is_computed_is_not_known_to_be_constant_and_a_literal_is():
    graph = Graph()
    assert not constant_along(elementwise(graph, "exp", leaf(graph, 2, 3)), (0,))
    assert constant_along(graph.literal(1.0, FLOAT), (0, 1))


def test_dropping_the_axes_of_a_broadcast_gives_what_was_broadcast():
    graph = Graph()
    x, value = numbers(graph, 3)
    laid = arrange(graph, x, (2, 3, 4), (1,))
    assert drop_axes(graph, laid, (0, 2)) is x
    partly = checked(graph, drop_axes(graph, laid, (0,)))
    np.testing.assert_array_equal(evaluate(partly, {x: value}), np.repeat(value[:, None], 4, 1))
    one = graph.literal(1.0, FLOAT)
    assert drop_axes(graph, one, (0,)) is one
