"""Conventions by `Policy`, options by `stabilize.options`, and `keep`."""

import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import nn

from stablegrad import Policy, explain, keep, stabilize

EMPTY = jnp.array([[1.0, 2.0], [-jnp.inf, -jnp.inf], [-jnp.inf, 0.0]])
NORMS = {
    "jnp.linalg.norm": jnp.linalg.norm,
    "sqrt(sum(x**2))": lambda x: jnp.sqrt(jnp.sum(x**2)),
    "sum(x x)**0.5": lambda x: jnp.sum(x * x) ** 0.5,
    "sqrt(dot)": lambda x: jnp.sqrt(jnp.dot(x, x)),
    "jnp.hypot": lambda x: jnp.hypot(x[0], x[1]),
    "hypot by hand": lambda x: jnp.sqrt(x[0] ** 2 + x[1] ** 2),
}
SOFTMAXES = {
    "library": nn.softmax,
    "exp / sum": lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x), axis=-1, keepdims=True),
    "shifted": lambda x: jnp.exp(x - x.max(-1, keepdims=True)) / jnp.exp(x - x.max(-1, keepdims=True)).sum(-1)[:, None],
    "first axis": lambda x: nn.softmax(x.T, axis=0).T,
    "masked": lambda x: nn.softmax(jnp.where(jnp.isinf(x), -jnp.inf, x)),
}


def policy(**fields):
    return stabilize.options(policy=Policy(**fields))


def test_the_fields_are_frozen_documented_and_hashable():
    for field in dataclasses.fields(Policy):
        assert f"{field.name}:" in (Policy.__doc__ or "")
    assert hash(Policy()) == hash(Policy())
    with pytest.raises(dataclasses.FrozenInstanceError):
        Policy().empty_softmax = "zero"  # type: ignore[misc]


@pytest.mark.parametrize("name", NORMS)
def test_the_slope_of_a_norm_at_zero(name):
    f, zero = NORMS[name], jnp.zeros(2)
    assert np.array_equal(jax.grad(stabilize(f))(zero), zero)
    undefined = policy(norm_slope_at_zero="undefined")(f)
    assert undefined(zero) == 0
    assert np.isnan(jax.grad(undefined)(zero)).all()
    there = jnp.array([3e-25, 4e-25])
    np.testing.assert_allclose(jax.jit(jax.grad(undefined))(there), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("name", SOFTMAXES)
def test_a_softmax_over_nothing(name):
    f = SOFTMAXES[name]
    weights = jnp.array([1.0, -2.0])
    assert np.isnan(stabilize(f)(EMPTY)[1]).all()
    zero = policy(empty_softmax="zero")(f)
    for run in (zero, jax.jit(zero)):
        np.testing.assert_allclose(run(EMPTY)[1:], [[0, 0], [0, 1]])
        np.testing.assert_allclose(run(EMPTY)[0], nn.softmax(EMPTY[0]), rtol=1e-6)
    slopes = jax.grad(lambda x: jnp.sum(zero(x) * weights))(EMPTY)
    np.testing.assert_allclose(slopes[1], 0)
    np.testing.assert_allclose(slopes[0], [0.5898358, -0.5898358], rtol=1e-6)


def test_a_softmax_that_cannot_be_empty_is_left_alone():
    found = explain(lambda x: nn.softmax(jnp.tanh(x)), policy=Policy(empty_softmax="zero"))(EMPTY)
    assert not found.rewrites


def dice(p, t):
    return 2 * jnp.sum(p * t) / (jnp.sum(p) + jnp.sum(t))


@pytest.mark.parametrize("choice, number", [("zero", 0.0), ("one", 1.0)])
def test_zero_over_zero(choice, number):
    chosen = policy(zero_over_zero=choice)(dice)
    nothing, some = jnp.zeros(3), jnp.array([0.0, 0.5, 1.0])
    assert np.isnan(stabilize(dice)(nothing, nothing))
    assert chosen(nothing, nothing) == number
    for slopes in jax.grad(chosen, (0, 1))(nothing, nothing):
        np.testing.assert_array_equal(slopes, 0)
    np.testing.assert_allclose(chosen(some, some), dice(some, some), rtol=1e-6)
    quotient = policy(zero_over_zero=choice)(lambda a, b: a / b)
    np.testing.assert_array_equal(quotient(jnp.array([0.0, 1.0, 0.0]), jnp.array([0.0, 0.0, 2.0])), [number, np.inf, 0])


def test_the_cosine_of_a_zero_vector():
    cosine = lambda a, b: jnp.dot(a / jnp.linalg.norm(a), b / jnp.linalg.norm(b))  # noqa: E731
    a, b = jnp.zeros(2), jnp.array([1.0, 0.0])
    assert np.isnan(stabilize(cosine)(a, b))
    assert policy(zero_over_zero="zero")(cosine)(a, b) == 0


def test_explain_names_the_convention():
    (found,) = explain(lambda a, b: a / b, policy=Policy(zero_over_zero="one"))(0.0, 0.0).rewrites
    assert found.rule == "zero_over_zero" and "policy" in found.reason


@pytest.mark.parametrize(
    "field, value", [("empty_softmax", "one"), ("zero_over_zero", 0), ("norm_slope_at_zero", None)]
)
def test_a_wrong_value_is_told_what_there_is(field, value):
    with pytest.raises(ValueError, match=rf"{field} is one of 'undefined|{field} is one of 'zero'"):
        Policy(**{field: value})


def test_wrong_options_are_told_what_there_is():
    with pytest.raises(TypeError, match=r"stablegrad\.Policy.*norm_slope_at_zero, empty_softmax, zero_over_zero"):
        stabilize(jnp.sin, policy="zero")
    with pytest.raises(
        TypeError, match="no option 'polcy'; there are: static_argnums, static_argnames, disable, policy"
    ):
        stabilize.options(polcy=Policy())
    with pytest.raises(ValueError, match="no rule is named 'softmx'; there are: "):
        stabilize.options(disable="softmx")


def test_options_make_a_decorator_that_survives_pickling():
    stable = stabilize.options(policy=Policy(zero_over_zero="one"), disable=["log_of_companion"])
    f = stable(jnp.divide)
    assert f(0.0, 0.0) == 1
    assert pickle.loads(pickle.dumps(f))(0.0, 0.0) == 1


# -- keep --------------------------------------------------------------------------------------------------------------


def test_rules_do_not_look_through_keep():
    assert explain(lambda x: jnp.log(jnp.exp(x)))(1.0).rewrites
    found = explain(lambda x: jnp.log(keep(jnp.exp(x))))(1.0)
    assert not found.rewrites
    assert "barrier" in str(found)
    assert stabilize(lambda x: jnp.log(keep(jnp.exp(x))))(jnp.float32(200)) == jnp.inf
    assert stabilize(lambda x: jnp.log(jnp.exp(x)))(jnp.float32(200)) == 200


def test_keep_changes_nothing():
    tree = {"a": jnp.arange(3.0), "b": (jnp.int32(2), 1.5, None), "c": np.ones(2, np.float16)}
    kept = keep(tree)
    assert jax.tree.structure(kept) == jax.tree.structure(tree)
    for one, other in zip(jax.tree.leaves(kept), jax.tree.leaves(tree), strict=True):
        assert one.dtype == jnp.asarray(other).dtype
        np.testing.assert_array_equal(one, other)
    assert jax.grad(lambda x: keep(x) ** 2)(3.0) == 6
    assert jax.jvp(keep, (2.0,), (1.0,)) == (2.0, 1.0)
    np.testing.assert_array_equal(jax.jit(jax.vmap(keep))(jnp.arange(3.0)), jnp.arange(3.0))


def test_a_compensated_sum_survives():
    def error_of_sum(a, b):
        total = a + b
        rest = total - a
        return (a - (total - rest)) + (b - rest)

    a, b = jnp.float32(1e8), jnp.float32(1.25)
    assert jax.jit(stabilize(error_of_sum))(a, b) == error_of_sum(a, b) == 1.25


@pytest.mark.parametrize("wrong", ["text", {"a": 1.0, "b": object()}, [print]])
def test_keep_on_what_is_no_array(wrong):
    with pytest.raises(TypeError, match="keep takes arrays, numbers and pytrees of them, but was given"):
        keep(wrong)
