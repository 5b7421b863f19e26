"""A fault of the compiler's own never stops a program; warnings say what happened."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad import api, stabilize
from stablegrad.engines.jax import engine
from stablegrad.engines.jax.capture import Capture
from stablegrad.engines.jax.engine import CompilerFault, rewrite_program

X = jnp.array([0.5, 0.25, 0.75])


def hazard(x):
    return jnp.log(jax.nn.softmax(x))


def program(function=hazard):
    return jax.make_jaxpr(function)(X)


def test_what_the_rewriter_does_not_replace_stays():
    before = program()
    assert rewrite_program(before, lambda graph, roots: {}) is before


def test_the_rewriter_is_given_what_outputs_and_effects_need():
    seen = []

    def f(x):
        jax.debug.callback(lambda v: None, jnp.sin(x))
        return hazard(x), jnp.cos(x)

    rewrite_program(program(f), lambda graph, roots: seen.extend(roots) or {})
    assert [node.op.name for node in seen] == ["log", "cos", "sin"]


def test_each_body_is_a_program_of_its_own():
    seen = []

    def f(x):
        return jax.lax.map(jax.lax.log, jax.lax.map(jnp.sin, x))

    rewrite_program(program(f), lambda graph, roots: seen.append([n.op.name for n in roots]) or {})
    assert len(seen) == 3
    assert ["log"] in seen
    assert ["sin"] in seen


def test_captures_are_shown():
    seen = []
    rewrite_program(program(), lambda graph, roots: {}, seen.append)
    assert [type(c) for c in seen] == [Capture]


@pytest.mark.parametrize("error", [RuntimeError("a fault"), AssertionError("a fault"), RecursionError("a fault")])
def test_a_fault_leaves_the_program_and_says_so(error):
    def broken(graph, roots):
        raise error

    before = program()
    with pytest.warns(CompilerFault, match=rf"{type(error).__name__}: a fault"):
        assert rewrite_program(before, broken) is before


def test_a_fault_is_warned_of_at_the_user_s_line(monkeypatch):
    def broken(*arguments):
        raise RuntimeError("a fault")

    monkeypatch.setattr(api, "rewrite", broken)
    with pytest.warns(CompilerFault, match="report it") as caught:
        value = stabilize(hazard)(X)
    np.testing.assert_array_equal(value, hazard(X))
    assert caught[0].filename == __file__


def test_an_interrupt_is_no_fault():
    def interrupted(graph, roots):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rewrite_program(program(), interrupted)


def test_a_fault_in_the_emission_leaves_the_program(monkeypatch):
    def broken(*arguments):
        raise RuntimeError("no way to write")

    monkeypatch.setattr(engine, "emit", broken)
    with pytest.warns(CompilerFault, match="no way to write"):
        np.testing.assert_array_equal(stabilize(hazard)(X), hazard(X))
