"""From a traced function to the graph."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engines.jax.program import captured, line_of, lines, nodes
from stablegrad.graph.node import literal_number

X = jnp.array([[0.5, 0.25, 0.75], [1.0, 2.0, 3.0]])
ROW = jnp.array([1.0, 2.0, 3.0])


# -- equal nodes ---------------------------------------------------------------------------------------------------


def test_equal_values_are_one_node():
    a, b = captured(lambda x: (jnp.exp(x), jnp.exp(x)), X).graph.outputs
    assert a is b


def test_operands_of_sums_and_products_may_be_exchanged():
    a, b = captured(lambda x: (x * jnp.exp(x), jnp.exp(x) * x), X).graph.outputs
    assert a is b
    a, b = captured(lambda x: (x - jnp.exp(x), jnp.exp(x) - x), X).graph.outputs
    assert a is not b


def test_equal_values_in_two_calls_of_a_jitted_function_are_one_node():
    helper = jax.jit(lambda x: jnp.exp(x))
    a, b, c = captured(lambda x: (helper(x), helper(x), jnp.exp(x)), X).graph.outputs
    assert a is b is c


@pytest.mark.parametrize("of", [lambda k: jax.random.split(k), lambda k: jax.random.key_data(k)])
def test_random_operations_are_never_merged(of):
    a, b = captured(lambda k: (of(k), of(k)), jax.random.key(0)).graph.outputs
    assert a is not b


def test_operations_that_are_not_understood_are_never_merged():
    a, b = captured(lambda x: (jnp.linalg.cholesky(x), jnp.linalg.cholesky(x)), jnp.eye(3)).graph.outputs
    assert a is not b


def test_values_on_two_sides_of_a_barrier_are_not_merged():
    a, b = captured(lambda x: (jnp.exp(x), jnp.exp(lax.optimization_barrier(x))), X).graph.outputs
    assert a is not b
    assert b.inputs[0].op.name == "barrier"


def test_a_number_of_another_dtype_is_another_node():
    capture = captured(lambda x: (x + 1, x.astype(jnp.float16) + 1), X)
    first, second = capture.graph.outputs
    assert [literal_number(i) for i in first.inputs if i.op.name == "literal"] == [1]
    assert first.dtype != second.dtype


# -- bodies that only group ----------------------------------------------------------------------------------------


def test_a_jitted_function_is_read_through_and_has_a_frame():
    capture = captured(lambda x: jax.jit(jnp.exp)(x) + 1, X)
    assert [name for name, _ in lines(capture)] == ["exp", "add"]
    (index,) = capture.top.children
    frame = capture.top.children[index]
    assert frame.parent == (capture.top, index)
    assert frame.nodes[frame.jaxpr.invars[0]] is capture.graph.inputs[0]


def test_remat_is_read_through():
    capture = captured(jax.checkpoint(lambda x: jnp.exp(x) + 1), X)
    assert capture.graph.outputs[0].op.name == "add"
    assert len(capture.top.children) == 1


def test_jits_with_a_wish_of_their_own_are_not_read_through():
    capture = captured(lambda x: jax.jit(jnp.exp, donate_argnums=0)(x * 1.5), X)
    assert capture.graph.outputs[0].op.kind == "opaque"
    assert not capture.top.children


def test_nested_jits_have_nested_frames():
    inner = jax.jit(lambda x: jnp.exp(x))
    outer = jax.jit(lambda x: inner(x) * 2)
    capture = captured(lambda x: outer(x), X)
    (frame,) = capture.top.children.values()
    (deeper,) = frame.children.values()
    assert deeper.parent[0] is frame
    assert [name for name, _ in lines(capture)] == ["exp", "mul"]


# -- the normal form of layouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling",
    [
        lambda r: jnp.broadcast_to(r, (2, 3)),
        lambda r: jnp.broadcast_to(r[None], (2, 3)),
        lambda r: jnp.broadcast_to(r[:, None], (3, 2)).T,
        lambda r: jnp.broadcast_to(r.reshape(1, 3), (2, 3)),
        lambda r: lax.broadcast_in_dim(r, (2, 3), (1,)),
        lambda r: jnp.squeeze(jnp.broadcast_to(r[:, None, None], (3, 1, 2)), 1).T,
        lambda r: jnp.expand_dims(jnp.broadcast_to(r[:, None], (3, 2)), 2)[:, :, 0].transpose(1, 0),
    ],
)
def test_every_spelling_of_a_broadcast_is_one_node(spelling):
    capture = captured(lambda r: (spelling(r), jnp.broadcast_to(r, (2, 3))), ROW)
    a, b = capture.graph.outputs
    assert a is b
    assert (a.op.name, a.params) == ("arrange", (1,))


def test_a_reduction_with_kept_axes_is_that_without():
    capture = captured(lambda x: (jnp.sum(x, 1, keepdims=True) * x, jnp.sum(x, 1)[:, None] * x), X)
    a, b = capture.graph.outputs
    assert a is b


def test_a_reshape_that_merges_axes_is_a_reshape():
    (node,) = captured(lambda x: x.reshape(6), X).graph.outputs
    assert node.op.name == "reshape"
    (back,) = captured(lambda x: x.reshape(6).reshape(3, 2), X).graph.outputs
    assert (back.op.name, back.inputs[0].op.name) == ("reshape", "input")
    (same,) = captured(lambda x: x.reshape(6).reshape(2, 3), X).graph.outputs
    assert same.op.name == "input"


@pytest.mark.parametrize("of", [lambda x: jnp.ravel(x, order="F"), lambda x: lax.reshape(x, (6,), (1, 0))])
def test_a_reshape_that_permutes_axes_is_a_transpose_and_a_reshape(of):
    capture = captured(lambda x: (of(x), x.T.reshape(6)), X)
    a, b = capture.graph.outputs
    assert a is b


def test_operands_are_laid_out_and_numbers_stay_scalars():
    capture = captured(lambda x, r, s: (x + r, x * s, x - 2.0), X, ROW, 1.5)
    added, scaled, less = capture.graph.outputs
    assert {i.shape for i in added.inputs} == {i.shape for i in scaled.inputs} == {(2, 3)}
    assert [(i.op.name, i.shape) for i in less.inputs] == [("input", (2, 3)), ("literal", ())]


def test_scalar_operands_of_clamp_and_select_are_laid_out():
    capture = captured(lambda s, x: (lax.clamp(0.25, x, s), lax.select_n(s > 0, x, 2 * x)), 0.75, X)
    clamped, chosen = capture.graph.outputs
    assert [i.shape for i in clamped.inputs] == [(), (2, 3), (2, 3)]
    assert {i.shape for i in chosen.inputs} == {(2, 3)}


def test_a_cast_to_the_same_dtype_is_nothing():
    (node,) = captured(lambda x: lax.convert_element_type(x, jnp.float32), X).graph.outputs
    assert node.op.name == "input"
    (node,) = captured(lambda x: x.astype(jnp.float16), X).graph.outputs
    assert node.op.name == "cast"


def test_pieces_of_a_split_are_moves_of_the_whole():
    capture = captured(lambda x: jnp.split(x, 3, axis=1), X)
    for piece in capture.graph.outputs:
        assert (piece.op.name, piece.inputs[0]) == ("move", capture.graph.inputs[0])


def test_pieces_of_an_unstacked_array_are_moves_of_the_whole():
    capture = captured(lambda x: (*jnp.unstack(x, axis=1), x[:, 2]), X)
    assert {piece.op.kind for piece in capture.graph.outputs} == {"moving"}
    assert capture.graph.outputs[2] is capture.graph.outputs[3]


def test_a_subtraction_at_places_is_the_addition_of_the_negative():
    capture = captured(lambda x, k: (x.at[k].subtract(2 * x[:2]), x.at[k].add(-(2 * x[:2]))), ROW, jnp.array([0, 2]))
    a, b = capture.graph.outputs
    assert (a.op.name, a.inputs) == ("scatter_add", b.inputs)


# -- what is not understood ----------------------------------------------------------------------------------------


def test_what_was_not_understood_is_noted_with_place_and_reason():
    capture = captured(lambda x: lax.linalg.cholesky(x), jnp.eye(3))
    assert [(name, reason) for name, _, reason in capture.opaque] == [("cholesky", "no rule knows this operation")]
    assert capture.opaque[0][1].file == __file__


def test_whole_numbers_random_bits_and_loops_are_not_noted():
    def f(key, x):
        return jax.random.split(key), lax.scan(lambda c, r: (c + r, c), 0.0, x), x.argmax()

    assert captured(f, jax.random.key(0), ROW).opaque == []


def test_effects_need_what_they_read():
    capture = captured(lambda x: jax.debug.callback(lambda v: None, jnp.exp(x)), X)
    assert [node.op.name for node in capture.effects] == ["exp"]
    assert [(name, reason) for name, _, reason in capture.opaque] == [("debug_callback", "it has an effect")]


def test_an_accuracy_that_was_asked_for_is_left_to_the_engine():
    (node,) = captured(lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST), X).graph.outputs
    assert node.op.kind == "opaque"


def test_elements_that_are_none_of_the_operand_s_are_not_a_move():
    (node,) = captured(lambda x: x.at[5].get(mode="fill", fill_value=7.0), ROW).graph.outputs
    assert "move" not in {n.op.name for n in _under(node)}
    (node,) = captured(lambda x: x.at[5].get(mode="clip"), ROW).graph.outputs
    assert "move" in {n.op.name for n in _under(node)}


def _under(node):
    yield node
    for i in node.inputs:
        yield from _under(i)


def test_values_on_a_mesh_with_explicit_axes_are_left_alone():
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        x = jax.device_put(X, jax.P("d"))
        (node,) = captured(lambda x: jnp.exp(x), x).graph.outputs
    assert node.op.kind == "opaque"


def test_constants_have_their_values_and_tracers_have_none():
    held = np.array([1.0, 2.0, 4.0], np.float32)
    capture = captured(lambda x: x * held, ROW)
    (constant,) = [i for i in capture.graph.inputs if i.op.name == "constant"]
    np.testing.assert_array_equal(constant.value, held)

    def outer(w):
        capture = captured(lambda x: x * w, ROW)
        (constant,) = [i for i in capture.graph.inputs if i.op.name == "constant"]
        assert constant.value is None
        return w

    jax.jit(outer)(ROW)


# -- custom derivatives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function, op",
    [
        (lambda x: jnp.logaddexp(x, 2 * x), "logaddexp"),
        (lambda x: jax.scipy.special.xlogy(x, 2 * x), "xlogy"),
        (lambda x: jax.scipy.special.xlog1py(x, 2 * x), "xlog1py"),
        (lambda x: jax.nn.relu(x), "relu"),
    ],
)
def test_jax_s_own_custom_derivatives_are_known_by_name(function, op):
    assert nodes(captured(function, X), op)


def test_a_function_of_the_user_s_of_the_same_name_is_not_taken_for_jax_s():
    @jax.custom_jvp
    def logaddexp(a, b):
        return jnp.logaddexp(a, b)

    logaddexp.defjvp(lambda p, t: (logaddexp(*p), 5.0 * t[0]))
    (node,) = captured(lambda x: logaddexp(x, 2 * x), X).graph.outputs
    assert node.op.name == "custom_jvp"

    @jax.custom_jvp
    def relu(a):
        return jnp.maximum(a, 0)

    relu.defjvp(lambda p, t: (relu(*p), 5.0 * t[0]))
    (node,) = captured(lambda x: relu(x), X).graph.outputs
    assert node.op.name == "custom_jvp"


def test_a_derivative_of_the_user_s_on_a_function_of_jax_s_is_not_taken_for_jax_s():
    own = jax.custom_jvp(jax.nn.relu.__wrapped__ if hasattr(jax.nn.relu, "__wrapped__") else jax.nn.relu)
    own.defjvp(lambda p, t: (jax.nn.relu(*p), 5.0 * t[0]))
    (node,) = captured(lambda x: own(x), X).graph.outputs
    assert node.op.name == "custom_jvp"


# -- where the user wrote it ---------------------------------------------------------------------------------------


def sources(capture, op):
    return [(node.source.file, node.source.line) for node in nodes(capture, op)]


def test_lines_of_a_function_of_several_lines():
    def f(x):
        a = jnp.exp(x)  # first exponential
        return a + jnp.log(  # logarithm
            a + jnp.exp(2 * x)  # second exponential
        )

    capture = captured(f, X)
    assert sources(capture, "exp") == [
        (__file__, line_of("first exponential", __file__)),
        (__file__, line_of("second exponential", __file__)),
    ]
    assert sources(capture, "log") == [(__file__, line_of("logarithm", __file__))]
    assert {node.source.function.rpartition(".")[2] for node in nodes(capture, "exp")} == {"f"}


@jax.jit
def jitted_helper(x):
    return jnp.exp(x)  # inside the helper


def test_values_inside_a_jitted_helper_have_its_lines():
    def f(x):
        return jitted_helper(x) + jitted_helper(2 * x)

    inside = line_of("inside the helper", __file__)
    assert sources(captured(f, X), "exp") == [(__file__, inside), (__file__, inside)]


def test_jax_s_own_function_called_twice_has_the_line_of_each_call():
    """JAX traces it once and uses the program again; the lines in it are those of the first call."""

    def f(x):
        a = jax.nn.log_sigmoid(x)  # first call
        b = jnp.linalg.norm(x)
        return a + b + jax.nn.log_sigmoid(2 * x)  # second call

    capture = captured(f, X)
    places = [line for _, line in sources(capture, "neg")]
    assert {line_of("first call", __file__), line_of("second call", __file__)} <= set(places)


def test_the_same_across_two_functions():
    def first(x):
        return jax.nn.silu(x)  # silu of the first

    def second(x):
        return jax.nn.silu(x)  # silu of the second

    captured(first, X)
    assert sources(captured(second, X), "logistic") == [(__file__, line_of("silu of the second", __file__))]


def test_values_of_a_gradient_have_the_lines_of_the_function():
    def f(x):
        return jnp.sum(jnp.log(x))  # logarithm to differentiate

    capture = captured(jax.grad(f), X)
    assert set(sources(capture, "div")) == {(__file__, line_of("logarithm to differentiate", __file__))}
