"""Equations of an opened body stand under the jit or remat that they came from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engines.jax.program import bodies, emitted, equations, jits, primitives, programs, run

X = jnp.array([[0.5, 0.25, 0.75], [1.0, 2.0, 3.0]])
GAP = jnp.array([[0.0, 1.0, 2000.0], [3.0, 2.0, 1.0]])
EXACT = np.array([[-2000, -1999, 0], np.log([np.e**2, np.e, 1]) - np.log(np.e**2 + np.e + 1)])


def outer_names(program):
    return [e.params.get("name", str(e.primitive)) for e in equations(program, inside=False)]


def body(program, name):
    (equation,) = jits(program, name)
    return equation.params["jaxpr"]


@jax.jit
def probabilities(x):
    return jnp.exp(x) / jnp.sum(jnp.exp(x), axis=-1, keepdims=True)


@jax.jit
def logarithms(x):
    return jnp.log(jax.nn.softmax(jnp.sin(x))) * 2


@jax.jit
def of_probabilities(x):
    return jnp.log(probabilities(x)) + 1


def test_a_jit_with_a_hazard_inside_keeps_its_name():
    after = emitted(lambda x: jnp.cos(logarithms(x)), X)
    assert outer_names(after) == ["logarithms", "cos"]
    assert primitives(body(after, "logarithms"), inside=False)[0] == "sin"
    assert "div" not in primitives(body(after, "logarithms"), inside=False)


def test_nested_jits_keep_both_names_where_both_still_do_something():
    @jax.jit
    def inner(x):
        return jax.nn.softmax(jnp.sin(x)), jnp.sin(x) * 3

    @jax.jit
    def outer(x):
        p, y = inner(x)
        return jnp.log(p) + y * y

    after = emitted(lambda x: outer(x) * 2, X)
    assert outer_names(after) == ["outer", "mul"]
    assert "inner" in outer_names(body(after, "outer"))
    assert "sin" in primitives(body(after, "inner"), inside=False)


def test_a_jit_of_which_nothing_is_left_goes():
    after = emitted(lambda x: of_probabilities(x), GAP)
    assert outer_names(after) == ["of_probabilities"]
    assert not jits(after, "probabilities")
    np.testing.assert_allclose(run(after, GAP), EXACT + 1, rtol=1e-6)


def test_a_hazard_across_two_jits_is_written_where_the_logarithm_stands():
    after = emitted(lambda x: jnp.log(probabilities(x)), GAP)
    assert "log" not in primitives(after, inside=False)
    np.testing.assert_allclose(run(after, GAP), EXACT, rtol=1e-6)


def test_a_jit_whose_result_others_need_too():
    def f(x):
        p = probabilities(x)
        return jnp.log(p), p

    after = emitted(f, GAP)
    logarithm, p = run(after, GAP)
    np.testing.assert_allclose(logarithm, EXACT, rtol=1e-6)
    np.testing.assert_allclose(p, np.exp(EXACT), rtol=1e-6)


def test_inputs_of_a_grouped_body_are_what_it_reads_and_results_what_is_read():
    @jax.jit
    def helper(x, unused):
        return jnp.log(jax.nn.softmax(x)), jnp.sin(unused), jnp.cos(x)

    after = emitted(lambda x, y: helper(x, y)[0], X, X)
    (equation,) = jits(after, "helper")
    assert len(equation.invars) == 1
    assert len(equation.outvars) == 1
    assert len(equation.params["in_shardings"]) == len(equation.params["donated_invars"]) == 1
    assert len(equation.params["out_shardings"]) == len(equation.params["out_layouts"]) == 1


def test_the_other_parameters_of_a_jit_are_kept():
    quick = jax.jit(lambda x: jnp.log(jax.nn.softmax(x)), keep_unused=True, inline=False)
    before, after = programs(lambda x: quick(x) * 2, X)
    (old,), (new,) = jits(before, "<lambda>"), jits(after, "<lambda>")
    changed = {"jaxpr", "in_shardings", "out_shardings", "in_layouts", "out_layouts", "donated_invars"}
    assert {k: v for k, v in new.params.items() if k not in changed} == {
        k: v for k, v in old.params.items() if k not in changed
    }
    assert new.source_info is old.source_info


def test_a_jit_called_twice_is_grouped_twice():
    after = emitted(lambda x: (logarithms(x), logarithms(2 * x)), X)
    assert outer_names(after).count("logarithms") == 2


def test_the_body_of_a_jit_says_whose_it_is():
    after = emitted(lambda x: logarithms(x) + 1, X)
    info = body(after, "logarithms").jaxpr.debug_info
    assert info.func_src_info.startswith("logarithms at ")


# -- remat ---------------------------------------------------------------------------------------------------------


def test_a_remat_is_grouped_again():
    layer = jax.checkpoint(lambda x: jnp.log(jax.nn.softmax(jnp.sin(x))))
    before, after = programs(lambda x: layer(x) * 2, X)
    (old,), (new,) = ([e for e in equations(p, inside=False) if "remat" in str(e.primitive)] for p in (before, after))
    assert new.primitive is old.primitive
    assert {k: v for k, v in new.params.items() if k != "jaxpr"} == {
        k: v for k, v in old.params.items() if k != "jaxpr"
    }
    assert "log" not in [str(e.primitive) for e in bodies(new)[0].eqns]


def test_a_remat_in_a_jit_in_a_remat():
    inner = jax.checkpoint(lambda x: jnp.log(jax.nn.softmax(jnp.sin(x))))
    middle = jax.jit(lambda x: inner(x) + x)
    outer = jax.checkpoint(lambda x: middle(jnp.cos(x)))
    after = emitted(lambda x: outer(x) * 2, X)
    first = equations(after, inside=False)[0]
    (second,) = [e for e in bodies(first)[0].eqns if str(e.primitive) == "jit"]
    assert [str(e.primitive) for e in bodies(second)[0].eqns if "remat" in str(e.primitive)]


def test_the_gradient_of_a_checkpointed_jit():
    f = jax.jit(jax.checkpoint(lambda x: -jnp.log(jax.nn.softmax(x))[0, 2]))
    after = emitted(jax.value_and_grad(f), GAP)
    value, slope = run(after, GAP)
    assert value == 0
    np.testing.assert_allclose(slope, np.zeros_like(GAP), atol=1e-6)


# -- names that profilers show -------------------------------------------------------------------------------------


def test_named_scopes_are_kept_on_what_is_written_new():
    def f(x):
        with jax.named_scope("the_loss"):
            return jnp.log(jax.nn.softmax(x))

    after = emitted(f, X)
    assert "the_loss" in jax.jit(lambda x: run(after, x)).lower(X).as_text(debug_info=True)


@pytest.mark.parametrize("inside", [False, True])
def test_what_is_written_new_has_the_place_of_what_it_replaces(inside):
    f = jax.jit(lambda x: jnp.log(jax.nn.softmax(x)) + 1) if inside else lambda x: jnp.log(jax.nn.softmax(x)) + 1
    before, after = programs(lambda x: f(x), X)
    places = {str(e.source_info.traceback) for e in equations(before) if str(e.primitive) == "log"}
    new = [e for e in equations(after) if e.params.get("name") == "log_softmax"]
    assert {str(e.source_info.traceback) for e in new} <= places
