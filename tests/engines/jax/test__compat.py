"""What is private in JAX does what the engine thinks it does, in this version."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from engines.jax.program import double_precision, equations, line_of
from stablegrad.engines.jax import _compat

X = jnp.array([0.5, 0.25, 0.75])


def only(function, *arguments):
    (equation,) = jax.make_jaxpr(function)(*arguments).jaxpr.eqns
    return equation


def test_primitives_are_found_by_name_or_none():
    assert _compat.primitive("exp") is only(jnp.exp, X).primitive
    assert _compat.primitive("no_such_primitive") is None


@pytest.mark.parametrize("name", ["optimization_barrier", "split", "stack", "unstack"])
def test_primitives_that_only_functions_bind(name):
    assert str(getattr(_compat, f"{name}_p")) == name


def test_the_frame_of_the_user_is_named():
    equation = only(lambda x: jnp.exp(x), X)  # written here
    file, line, function = _compat.user_frame(equation)
    assert (file, line) == (__file__, line_of("written here", __file__))
    assert "lambda" in function


def test_a_program_without_traceback_has_no_frame():
    assert _compat.user_frame(SimpleNamespace(source_info=SimpleNamespace(traceback=None))) is None


@pytest.mark.parametrize(
    "function, own",
    [(jnp.linalg.norm, True), (jax.nn.silu, True), (jax.jit(lambda x: x + 1), False)],
)  # fmt: skip
def test_whose_function_a_body_is(function, own):
    body = next(e for e in equations(jax.make_jaxpr(function)(X)) if str(e.primitive) == "jit").params["jaxpr"]
    assert _compat.written_in_jax(body.jaxpr) is own


def test_whose_rule_a_derivative_is():
    mine = jax.custom_jvp(lambda x: jnp.sin(x))
    mine.defjvp(lambda p, t: (mine(*p), t[0]))
    rule_only = jax.custom_jvp(jnp.sin)
    rule_only.defjvp(lambda p, t: (jnp.sin(*p), t[0]))

    def custom(function, *arguments):
        program = jax.make_jaxpr(function)(*arguments)
        return next(e for e in equations(program) if str(e.primitive) == "custom_jvp_call")

    assert _compat.custom_rule_is_jax_own(custom(jnp.logaddexp, X, X))
    assert _compat.custom_rule_is_jax_own(custom(jax.nn.relu, X))
    assert _compat.custom_rule_is_jax_own(custom(jax.scipy.special.xlogy, X, X))
    assert not _compat.custom_rule_is_jax_own(custom(mine, X))
    assert not _compat.custom_rule_is_jax_own(custom(rule_only, X))


MESH = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
PLACED = jax.sharding.NamedSharding(MESH, jax.P())


@pytest.mark.parametrize(
    "options, plain",
    [
        ({}, True),
        ({"inline": True}, True),
        ({"keep_unused": True}, True),
        ({"donate_argnums": 0}, False),
        ({"in_shardings": PLACED}, False),
        ({"out_shardings": PLACED}, False),
    ],
)
def test_which_jits_only_group(options, plain):
    wrapped = jax.jit(lambda x: jnp.sin(x) * 2, **options)
    equation = next(
        (e for e in equations(jax.make_jaxpr(lambda x: wrapped(x * 1.5))(X)) if "jit" in str(e.primitive)), None
    )
    assert equation is None or _compat.plain_jit(equation.params) is plain
    assert equation is not None or options == {"inline": True}


def test_a_type_on_a_mesh_with_explicit_axes_is_not_trivial():
    assert _compat.trivial_sharding(jax.typeof(X))
    explicit = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(explicit):
        placed = jax.device_put(X, jax.P("d"))
        assert not _compat.trivial_sharding(jax.typeof(placed))


def test_a_value_that_varies_over_devices_is_not_trivial():
    seen = []

    def inside(x):
        seen.append(_compat.trivial_sharding(jax.typeof(x)))
        return x

    jax.make_jaxpr(jax.shard_map(inside, mesh=MESH, in_specs=jax.P("d"), out_specs=jax.P("d")))(X)
    assert seen == [False]


def test_what_a_trace_depends_on():
    keys = {_compat.trace_context()}
    with double_precision():
        keys.add(_compat.trace_context())
    with jax.default_matmul_precision("highest"):
        keys.add(_compat.trace_context())
    with jax.numpy_rank_promotion("raise"):
        keys.add(_compat.trace_context())
    jax.vmap(lambda x: keys.add(_compat.trace_context()) or x, axis_name="i")(X)
    assert len(keys) == 5
    assert _compat.trace_context() in keys


def test_tracers():
    seen = []
    jax.jit(lambda x: seen.append(_compat.is_tracer(x)) or x)(X)
    assert seen == [True]
    assert not _compat.is_tracer(X)
    assert not _compat.is_tracer(1.0)


def _squared(x):
    with jax.named_scope("inner"):
        return jnp.exp(x) ** 2  # written in _squared


SQUARED = jax.make_jaxpr(_squared)(X)


def _staged(x):
    with jax.named_scope("outer"):
        return _compat.staged(SQUARED, [x])[0]


def test_staged_equations_keep_parameters_places_and_names():
    staged = jax.make_jaxpr(_staged)(X).jaxpr
    assert [e.primitive for e in staged.eqns] == [e.primitive for e in SQUARED.jaxpr.eqns]
    assert [e.params for e in staged.eqns] == [e.params for e in SQUARED.jaxpr.eqns]
    assert [v.aval for e in staged.eqns for v in e.outvars] == [v.aval for e in SQUARED.jaxpr.eqns for v in e.outvars]
    assert {str(e.source_info.name_stack) for e in staged.eqns} == {"outer/inner"}
    assert {_compat.user_frame(e)[1] for e in staged.eqns} == {line_of("written in _squared", __file__)}


def test_staged_results_that_are_arguments_or_numbers():
    closed = jax.make_jaxpr(lambda x, y: (y, 2.0, x))(X, X)
    program = jax.make_jaxpr(lambda x, y: _compat.staged(closed, [x, y]))(X, X).jaxpr
    assert [program.outvars[0], program.outvars[2]] == program.invars[::-1]
    assert program.outvars[1].val == 2.0


def test_staged_arrays_that_the_program_holds():
    held = jnp.arange(3.0)
    closed = jax.make_jaxpr(lambda x, y: x * held + y)(X, X)
    assert jax.jit(lambda x: _compat.staged(closed, [x, held])[0])(X).tolist() == [0.0, 1.25, 3.5]


def test_nothing_is_staged_where_equations_have_to_be_bound():
    answers = []

    def note(x, closed=SQUARED):
        answers.append(_compat.staged(closed, [x]))
        return x

    note(X)
    jax.vmap(note)(X)
    jax.jvp(note, (X,), (X,))
    jax.make_jaxpr(jax.grad(lambda x: note(x).sum()))(X)
    printed = jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(X)
    jax.make_jaxpr(lambda x: note(x, printed))(X)
    assert answers == [None] * 5
