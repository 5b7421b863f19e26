"""The interval of a node holds every value that it can take."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.meaning import FLOAT, elementwise, evaluate, leaf
from stablegrad.facts import Facts
from stablegrad.facts.interval import BOUNDS, EVERYTHING
from stablegrad.graph.arrange import arrange, reshape, transpose
from stablegrad.graph.build import stop_gradient
from stablegrad.graph.node import Graph, Handle

some = settings(max_examples=40)  # of each operation
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, 1e-20, -1e-20, 1e-300, 1e20, -700.0, 710.0]),
    st.floats(-10, 10),
    st.floats(-1e30, 1e30),
)
SHAPE = (2, 3)


@st.composite
def bounded(draw, count=6):
    """Bounds, some of them infinite, and values inside: the bounds themselves, and numbers of every size between."""
    low, high = sorted([draw(NUMBERS), draw(NUMBERS)])
    open_below, open_above = draw(st.sampled_from([(False, False), (False, False), (True, False), (False, True)]))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    sizes = 10 ** random.uniform(-20, 20, 4)
    spread = np.concatenate([[low, high, 0.0], random.normal(size=4), sizes, -sizes, random.uniform(low, high, 4)])
    low, high = -math.inf if open_below else low, math.inf if open_above else high
    return (low, high), random.choice(np.clip(spread, low, high), count) + 0.0  # no -0: the number 0 has no sign


def known(facts, node, bounds):
    facts._known[node] = bounds
    return node


def holds(claimed, values):
    """Every number lies in the bounds, up to a few last digits of NumPy's function."""
    low, high = claimed
    values = np.asarray(values, FLOAT)
    values = values[~np.isnan(values)]
    slack = 1e-13
    assert np.all(values >= low - slack * abs(low) if math.isfinite(low) else values >= low)
    assert np.all(values <= high + slack * abs(high) if math.isfinite(high) else values <= high)


UNARY = """
    neg exp exp2 log log1p expm1 sqrt rsqrt tanh logistic softplus sin cos acos acosh cosh erf erfc abs sign square relu
    nonnegative sigmoid stop_gradient
""".split()
BINARY = "pow add sub mul div max min logaddexp norm_of_terms".split()
ALONG = "reduce_sum reduce_prod reduce_max reduce_min norm softmax".split()
CUMULATIVE = "cumsum cumprod cummax cummin".split()
LAYOUT = "arrange reshape move".split()
OTHER = "literal constant iota integer_pow clamp select cast dot_general".split()


def test_every_bound_is_tested():
    assert set(BOUNDS) == {*UNARY, *BINARY, *ALONG, *CUMULATIVE, *LAYOUT, *OTHER}


@pytest.mark.parametrize("op", UNARY)
@some
@given(case=bounded())
def test_functions_of_one_value(op, case):
    bounds, values = case
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, *SHAPE), bounds)
    node = elementwise(graph, op, x)
    holds(facts.interval(node), evaluate(node, {x: values.reshape(SHAPE)}))


@pytest.mark.parametrize("op", BINARY)
@some
@given(left=bounded(), right=bounded())
def test_functions_of_two_values(op, left, right):
    graph, facts = Graph(), Facts()
    x, y = (known(facts, leaf(graph, *SHAPE), bounds) for bounds, _ in (left, right))
    node = elementwise(graph, op, x, y)
    holds(facts.interval(node), evaluate(node, {x: left[1].reshape(SHAPE), y: right[1].reshape(SHAPE)}))


@some
@given(case=bounded(), n=st.integers(-5, 5))
def test_whole_powers(case, n):
    bounds, values = case
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, *SHAPE), bounds)
    node = elementwise(graph, "integer_pow", x, params=(n,))
    holds(facts.interval(node), evaluate(node, {x: values.reshape(SHAPE)}))


@some
@given(low=bounded(), case=bounded(), high=bounded())
def test_clamps(low, case, high):
    graph, facts = Graph(), Facts()
    inputs = [known(facts, leaf(graph, *SHAPE), bounds) for bounds, _ in (low, case, high)]
    node = elementwise(graph, "clamp", *inputs)
    values = {x: v.reshape(SHAPE) for x, (_, v) in zip(inputs, (low, case, high), strict=True)}
    holds(facts.interval(node), evaluate(node, values))


@pytest.mark.parametrize("op", ALONG)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@some
@given(case=bounded())
def test_reductions(op, axes, case):
    bounds, values = case
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, *SHAPE), bounds)
    shape = SHAPE if op == "softmax" else tuple(n for k, n in enumerate(SHAPE) if k not in axes)
    node = graph.node(op, (x,), (axes,), shape, FLOAT)
    holds(facts.interval(node), evaluate(node, {x: values.reshape(SHAPE)}))


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_prod"])
@some
@given(case=bounded())
def test_reductions_over_nothing(op, case):
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, 2, 0), case[0])
    node = graph.node(op, (x,), ((1,),), (2,), FLOAT)
    holds(facts.interval(node), evaluate(node, {x: np.zeros((2, 0))}))


@pytest.mark.parametrize("op, value", [("reduce_max", -np.inf), ("reduce_min", np.inf)])
def test_the_largest_of_nothing(op, value):
    """What the engine gives there."""
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, 2, 0), (0.0, 1.0))
    holds(facts.interval(graph.node(op, (x,), ((1,),), (2,), FLOAT)), [value])


@pytest.mark.parametrize("op", CUMULATIVE)
@pytest.mark.parametrize("reverse", [False, True])
@some
@given(case=bounded())
def test_cumulative_operations(op, reverse, case):
    bounds, values = case
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, *SHAPE), bounds)
    node = graph.node(op, (x,), (1, reverse), SHAPE, FLOAT)
    holds(facts.interval(node), evaluate(node, {x: values.reshape(SHAPE)}))


COMPARISON = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("comparison", COMPARISON)
@pytest.mark.parametrize("number_first", [False, True])
@some
@given(case=bounded(), other=bounded(), number=NUMBERS, taken=st.booleans())
def test_a_choice_by_comparison_with_a_number(comparison, number_first, case, other, number, taken):
    """where(x > 1, x, y): x is above 1 where it is taken."""
    graph, facts = Graph(), Facts()
    x, y = (known(facts, leaf(graph, *SHAPE), bounds) for bounds, _ in (case, other))
    operands = (graph.literal(number, FLOAT), x) if number_first else (x, graph.literal(number, FLOAT))
    which = graph.node(comparison, operands, (), SHAPE, np.dtype(bool))
    node = graph.node("select", (which, y, x) if taken else (which, x, y), (), SHAPE, FLOAT)
    a, b = case[1].reshape(SHAPE), other[1].reshape(SHAPE)
    holds_there = COMPARISON[comparison](number, a) if number_first else COMPARISON[comparison](a, number)
    holds(facts.interval(node), np.where(holds_there, *((a, b) if taken else (b, a))))


@some
@given(cases=st.lists(bounded(), min_size=2, max_size=4), data=st.data())
def test_a_choice_by_index(cases, data):
    graph, facts = Graph(), Facts()
    which = leaf(graph, *SHAPE, dtype="int32")
    inputs = [known(facts, leaf(graph, *SHAPE), bounds) for bounds, _ in cases]
    node = graph.node("select", (which, *inputs), (), SHAPE, FLOAT)
    index = np.array(data.draw(st.lists(st.integers(0, len(cases) - 1), min_size=6, max_size=6)))
    holds(facts.interval(node), np.choose(index, [v for _, v in cases]))


CASTS = ["float64", "float32", "float16", "int32", "int8", "uint8", "bool"]


@pytest.mark.parametrize("source", ["float64", "int32", "bool"])
@pytest.mark.parametrize("target", CASTS)
@some
@given(case=bounded())
def test_casts(source, target, case):
    """Whole numbers beyond the target are the engine's business; what fits must be inside."""
    (low, high), values = case
    if source != "float64":
        limits = (0, 1) if source == "bool" else (-(2**31), 2**31 - 1)
        values = np.clip(values, *limits).astype(source)
        low, high = float(values.min()), float(values.max())
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, *SHAPE, dtype=source), (low, high))
    node = elementwise(graph, "cast", x, dtype=target)
    with np.errstate(all="ignore"):
        result = values.astype(target).astype(FLOAT)
    if np.dtype(target).kind == "f":  # a narrower float means the number itself
        result = values.astype(FLOAT)
    elif np.dtype(target).kind in "iu":
        limits = np.iinfo(target)
        result = result[(np.trunc(values.astype(FLOAT)) >= limits.min) & (np.trunc(values.astype(FLOAT)) <= limits.max)]
    holds(facts.interval(node), result)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "neg"])
@some
@given(data=st.data())
def test_whole_numbers_wrap_around(op, dtype, data):
    limits = np.iinfo(dtype)
    graph, facts, inputs, values = Graph(), Facts(), [], {}
    for _ in range(1 if op == "neg" else 2):
        drawn = np.array(
            data.draw(st.lists(st.integers(int(limits.min), int(limits.max)), min_size=6, max_size=6)), dtype
        )
        x = leaf(graph, *SHAPE, dtype=dtype)
        facts._known[x] = (float(drawn.min()), float(drawn.max()))
        inputs.append(x)
        values[x] = drawn.reshape(SHAPE)
    node = elementwise(graph, op, *inputs)
    holds(facts.interval(node), evaluate(node, values))


# -- layouts ---------------------------------------------------------------------------------------------------------


@some
@given(case=bounded())
def test_layouts_keep_the_bounds(case):
    bounds, _ = case
    graph, facts = Graph(), Facts()
    x = known(facts, leaf(graph, *SHAPE), bounds)
    for node in (
        arrange(graph, x, (4, 2, 3), (1, 2)),
        transpose(graph, x, (1, 0)),
        reshape(graph, x, (6,)),
        stop_gradient(graph, x),
    ):
        assert facts.interval(node) == bounds


def test_a_move_has_the_bounds_of_its_data_and_not_of_its_places():
    graph, facts = Graph(), Facts()
    x, y, at = (
        known(facts, leaf(graph, 3), (0.0, 1.0)),
        known(facts, leaf(graph, 3), (5.0, 6.0)),
        leaf(graph, dtype="int32"),
    )
    joined = graph.node("move", (x, y), (Handle("concatenate", (), (0, 1)),), (6,), FLOAT)
    sliced = graph.node("move", (x, at), (Handle("dynamic_slice", (), (0,)),), (2,), FLOAT)
    assert facts.interval(joined) == (0.0, 6.0)
    assert facts.interval(sliced) == (0.0, 1.0)


def test_a_product_of_matrices_without_negative_entries_has_none():
    graph, facts = Graph(), Facts()
    x, y = (known(facts, leaf(graph, 3, 3), (0.0, 2.0)) for _ in range(2))
    z = known(facts, leaf(graph, 3, 3), (-1.0, 2.0))
    assert facts.interval(graph.node("dot_general", (x, y), (Handle("dot_general", ()),), (3, 3), FLOAT)) == (
        0,
        math.inf,
    )
    assert facts.interval(graph.node("dot_general", (x, z), (Handle("dot_general", ()),), (3, 3), FLOAT)) == EVERYTHING


# -- numbers of the program ------------------------------------------------------------------------------------------


@some
@given(st.floats(allow_nan=False))
def test_literals(number):
    assert Facts().interval(Graph().literal(number, FLOAT)) == (number, number)


def constant(graph, value):
    node = leaf(graph, *np.shape(value), dtype=np.asarray(value).dtype)
    node = graph.node("constant", (), (), node.shape, node.dtype, share=False)
    node.value = value
    return node


@pytest.mark.parametrize(
    "value, bounds",
    [
        (np.array([1.0, -2.0, 3.0]), (-2.0, 3.0)),
        (np.array([1, 2], np.int32), (1.0, 2.0)),
        (np.array([True, False]), (0.0, 1.0)),
        (np.array([1.0, np.inf]), (1.0, math.inf)),
        (np.array([1.0, np.nan]), EVERYTHING),
        (np.zeros((0, 3)), EVERYTHING),
        (np.array([1j]), EVERYTHING),
    ],
)
def test_constants(value, bounds):
    assert Facts().interval(constant(Graph(), value)) == bounds


def test_a_constant_whose_value_is_not_known():
    graph = Graph()
    assert Facts().interval(graph.node("constant", (), (), (3,), FLOAT, share=False)) == EVERYTHING


def test_positions():
    graph = Graph()
    node = graph.node("iota", (), (1,), SHAPE, np.dtype("int32"))
    holds(Facts().interval(node), evaluate(node, {}))


def test_arguments_may_be_anything():
    graph = Graph()
    assert Facts().interval(leaf(graph, 3)) == EVERYTHING
    assert Facts().interval(leaf(graph, 3, dtype="uint8")) == (0.0, math.inf)
    assert Facts().interval(leaf(graph, 3, dtype="bool"))[0] == 0


# -- forms that say more than their parts ----------------------------------------------------------------------------


def test_a_product_with_itself_is_not_negative():
    graph, facts = Graph(), Facts()
    x = leaf(graph, 3)
    assert facts.nonnegative(elementwise(graph, "mul", x, x))
    assert not facts.nonnegative(elementwise(graph, "mul", x, leaf(graph, 3)))


@pytest.mark.parametrize(
    "shape, axes", [((2, 3), (1,)), ((3, 3), (1,)), ((3, 3), (0,)), ((1, 3), (1,)), ((2, 3), (0, 1))]
)
def test_a_part_of_a_sum_of_positive_numbers_is_at_most_one(shape, axes):
    graph, facts = Graph(), Facts()
    e = elementwise(graph, "exp", leaf(graph, *shape))
    kept = tuple(k for k in range(len(shape)) if k not in axes)
    total = graph.node("reduce_sum", (e,), (axes,), tuple(shape[k] for k in kept), FLOAT)
    whole = arrange(graph, total, shape, kept)
    assert facts.interval(elementwise(graph, "div", e, whole)) == (0.0, 1.0)
    assert facts.interval(elementwise(graph, "div", leaf(graph, *shape), whole)) == EVERYTHING


@pytest.mark.parametrize("axis", [0, 1])
def test_a_sum_laid_along_the_wrong_axis_says_nothing(axis):
    """p / p.sum(1) of a square matrix, the keepdims forgotten: an entry is divided by the sum of another row."""
    graph, facts = Graph(), Facts()
    x = leaf(graph, 3, 3)
    e = elementwise(graph, "exp", x)
    total = graph.node("reduce_sum", (e,), ((axis,),), (3,), FLOAT)
    quotient = elementwise(graph, "div", e, arrange(graph, total, (3, 3), (axis,)))
    holds(
        facts.interval(quotient),
        evaluate(
            quotient, {x: np.outer([5.0, 0.0, -5.0], [1, 1, 1]) if axis else np.outer([1, 1, 1], [5.0, 0.0, -5.0])}
        ),
    )


@pytest.mark.parametrize("axes", [(1,), (0,), (0, 1)])
def test_differences_to_the_maximum(axes):
    graph, facts = Graph(), Facts()
    x = leaf(graph, 2, 3)
    kept = tuple(k for k in (0, 1) if k not in axes)
    largest = graph.node("reduce_max", (x,), (axes,), tuple(x.shape[k] for k in kept), FLOAT)
    shifted = elementwise(graph, "sub", x, arrange(graph, largest, x.shape, kept))
    assert facts.interval(shifted) == (-math.inf, 0.0)
    e = elementwise(graph, "exp", shifted)
    assert facts.interval(e) == (0.0, 1.0)
    total = graph.node("reduce_sum", (e,), (axes,), largest.shape, FLOAT)
    assert facts.interval(total) == (1.0, math.prod(x.shape[k] for k in axes))
    assert facts.positive(total)


def test_the_sum_over_other_axes_than_those_of_the_maximum_may_be_small():
    graph, facts = Graph(), Facts()
    x = leaf(graph, 2, 3)
    largest = graph.node("reduce_max", (x,), ((1,),), (2,), FLOAT)
    e = elementwise(graph, "exp", elementwise(graph, "sub", x, arrange(graph, largest, (2, 3), (0,))))
    assert not facts.positive(graph.node("reduce_sum", (e,), ((0,),), (3,), FLOAT))
    assert facts.positive(graph.node("reduce_sum", (e,), ((0, 1),), (), FLOAT))


def test_a_program_of_any_depth():
    graph, facts = Graph(), Facts()
    node = known(facts, leaf(graph, 3), (0.0, 1.0))
    for _ in range(20_000):
        node = elementwise(graph, "sin", node)
    assert facts.interval(node) == (-1.0, 1.0)


def test_within_limits_and_what_is_not_looked_at():
    graph = Graph()
    x = leaf(graph, 3)
    bounded_sum = graph.node("add", (graph.node("tanh", (x,), (), (3,), FLOAT),) * 2, (), (3,), FLOAT)
    unbounded = graph.node("sub", (bounded_sum, x), (), (3,), FLOAT)
    facts = Facts()
    assert not facts.within(unbounded, 60.0)
    assert bounded_sum not in facts._known
    assert facts.within(bounded_sum, 2.0) and not facts.within(bounded_sum, 1.0)
    assert facts.interval(unbounded) == EVERYTHING
