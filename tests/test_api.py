"""The public functions: `stabilize`, `explain`, `rule_names`."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablegrad
from engines.verified import verified_rewrites
from stablegrad import Explanation, explain, rule_names, stabilize
from stablegrad.rules import RULES

GAP = jnp.array([0.0, 1.0, 2000.0])
EXACT = np.array([-2000.0, -1999.0, 0.0])


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    verified_rewrites(monkeypatch)


def loss(x):
    return jnp.log(jax.nn.softmax(x))


# -- names -----------------------------------------------------------------------------------------------------------


def test_every_public_name_exists_and_is_documented():
    for name in stablegrad.__all__:
        assert inspect.getdoc(getattr(stablegrad, name))


def test_the_names_of_rules():
    names = rule_names()
    assert list(names) == sorted(set(names))
    assert {name for rules in RULES.values() for name, _ in rules} <= set(names)
    assert all(name.isidentifier() for name in names)


# -- what is no function ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thing", [3, "loss", [loss], {"f": loss}, GAP, classmethod(loss)], ids=lambda t: type(t).__name__
)
@pytest.mark.parametrize("public", [stabilize, explain])
def test_what_is_no_function_is_named(public, thing):
    with pytest.raises(TypeError, match=rf"^stabilize takes a function, but was given {type(thing).__name__}: "):
        public(thing)


def test_a_long_thing_is_cut_short():
    with pytest.raises(TypeError) as caught:
        stabilize(["x" * 1000])
    assert len(str(caught.value)) < 200


def test_an_option_that_does_not_exist_is_python_s_own_error():
    with pytest.raises(TypeError, match="no_such_option"):
        stabilize(loss, no_such_option=1)
    with pytest.raises(TypeError, match="no_such_option"):
        explain(loss, no_such_option=1)


# -- rules by name ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disable", ["log_of_companions", ["log_of_companion", "log_of_companions"], ("",)])
@pytest.mark.parametrize("public", [stabilize, explain])
def test_a_rule_that_does_not_exist_is_named_with_those_that_do(public, disable):
    with pytest.raises(ValueError, match=r"^no rule is named '[a-z_]*'; there are: .*log_of_companion") as caught:
        public(loss, disable=disable)
    assert "'log_of_companion'" not in str(caught.value).partition(";")[0]


@pytest.mark.parametrize(
    "disable", ["log_of_companion", ["log_of_companion"], {"log_of_companion"}, ("log_of_companion",)]
)
def test_a_rule_is_switched_off(disable):
    def f(x):
        return jnp.log(1 + jnp.exp(x))

    assert stabilize(f)(1000.0) == 1000
    assert stabilize(f, disable=disable)(1000.0) == np.inf
    assert stabilize(disable=disable)(f)(1000.0) == np.inf
    assert not explain(f, disable=disable)(1.0).rewrites


def test_all_rules_switched_off_leave_the_program():
    before = jax.make_jaxpr(loss)(GAP)
    after = jax.make_jaxpr(stabilize(loss, disable=rule_names()))(GAP)
    assert str(after) == str(before)


PROGRAMS = {
    "log of a softmax": loss,
    "cross entropy": lambda x: -(jax.nn.one_hot(0, 3) * loss(x)).sum(),
    "log of one plus": lambda x: jnp.log(1 + jnp.exp(x)),
    "exp minus one": lambda x: (jnp.exp(x) - 1) / x,
    "quotient": lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x)),
    "branch": lambda x: jnp.where(x > 0, jnp.log(x), 0.0),
    "product": lambda x: jnp.log(jnp.prod(jax.nn.sigmoid(x))),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_rule_that_fires_does_not_when_it_is_switched_off(program):
    fired = {r.rule for r in explain(program)(GAP).rewrites}
    assert fired
    assert fired <= set(rule_names())
    for name in fired:
        assert name not in {r.rule for r in explain(program, disable=name)(GAP).rewrites}


# -- explain ---------------------------------------------------------------------------------------------------------


def test_explain_takes_the_arguments_of_the_function():
    def f(x, *, scale, mode):
        return loss(x) * scale if mode == "log" else x

    report = explain(f, static_argnames="mode")(GAP, scale=2.0, mode="log")
    assert isinstance(report, Explanation)
    assert report.function == "f"
    assert report.rewrites
    assert not explain(f, static_argnames="mode")(GAP, scale=2.0, mode="same").rewrites


def test_explain_has_the_name_and_the_signature_of_the_function():
    explained = explain(loss)
    assert explained.__name__ == "loss"
    assert inspect.signature(explained) == inspect.signature(loss)


@pytest.mark.parametrize(
    "argument", [GAP, np.zeros((5, 3), np.float16), jax.ShapeDtypeStruct((7, 3), jnp.bfloat16), [0.0, 1.0]]
)
def test_explain_takes_arrays_shapes_and_numbers(argument):
    assert explain(lambda x: loss(jnp.stack(x) if isinstance(x, list) else x))(argument).rewrites


def test_explain_says_what_stabilize_does():
    for program in PROGRAMS.values():
        changed = str(jax.make_jaxpr(stabilize(program))(GAP)) != str(jax.make_jaxpr(program)(GAP))
        assert changed == bool(explain(program)(GAP).rewrites)


def test_explain_of_a_callable_object_has_the_name_of_its_class():
    class Loss:
        def __call__(self, x):
            return loss(x)

    assert explain(Loss())(GAP).function == "Loss"


def test_an_error_of_the_function_comes_through():
    def fails(x):
        raise ArithmeticError("mine")

    with pytest.raises(ArithmeticError, match="mine"):
        explain(fails)(GAP)


def test_a_stabilized_function_is_explained_as_the_function_itself():
    limited = stabilize(loss, disable="cross_entropy")
    assert explain(stabilize(loss))(GAP).rewrites == explain(loss)(GAP).rewrites
    assert explain(limited)(GAP).rewrites == explain(loss, disable="cross_entropy")(GAP).rewrites


def test_a_gradient_is_explained_as_its_own_program():
    def value(x):
        return loss(x)[0]

    assert explain(value)(GAP).rewrites
    assert explain(jax.grad(value))(GAP).rewrites
    assert explain(jax.vmap(value))(jnp.stack([GAP, GAP])).rewrites


def test_version():
    assert stablegrad.__version__.count(".") >= 2
