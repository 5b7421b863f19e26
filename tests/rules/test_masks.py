"""Masks: what a `where` did not take is no part of the result, whatever stands there; infinite data are no faults."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import sigmoid

from stablegrad import explain, stabilize

NAN, INF = np.nan, np.inf


def _same(got, expected):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-6)


def _both_ways(f, *args):
    """The stabilized value, eagerly and jitted; rewritten at all."""
    assert explain(f)(*args).rewrites
    yield stabilize(f)(*args)
    yield jax.jit(stabilize(f))(*args)


NOT_TAKEN = {
    "log(x) below 0": (
        lambda x: jnp.where(x > 0, jnp.log(x) * jnp.exp(x), 0) / (1 + jnp.exp(x)),
        [[-1.0, 0.0, 2.0]],
        [0.0, 0.0, np.log(2) / (1 + np.exp(-2))],
    ),
    "NaN": (
        lambda x: jnp.log(jnp.where(x == x, jnp.exp(x) / (1 + jnp.exp(x)), 0) + 1e-3),
        [[NAN, 0.0]],
        [np.log(1e-3), np.log(0.501)],
    ),
    "infinite data": (
        lambda x: jnp.log(jnp.where(jnp.isfinite(x), x * jnp.exp(x) / (1 + jnp.exp(x)), 0) + 1e-3),
        [[INF, -INF, 1.0]],
        [np.log(1e-3), np.log(1e-3), np.log(1 / (1 + np.exp(-1)) + 1e-3)],
    ),
    "the logarithm": (lambda x: jnp.log(jnp.where(x == x, sigmoid(x), 0)), [[NAN, 200.0]], [-INF, 0.0]),
    "a factor, divided": (
        lambda x, y: jnp.where(x > 0, jnp.exp(x) * y, 0) / jnp.exp(x),
        [[-1.0, 200.0], [NAN, 2.0]],
        [0.0, 2.0],
    ),
    "a factor, summed": (
        lambda x, y: jnp.log(jnp.where(x > 0, jnp.exp(x) * y, 0).sum(-1)),
        [[[-1.0, 200.0]], [[NAN, 2.0]]],
        [200 + np.log(2)],
    ),
    "logits, summed": (
        lambda x: jnp.log(jnp.where(x == x, jnp.exp(x), 0).sum(-1)),
        [[[NAN, 200.0, 1.0]]],
        [200.0],
    ),
    "a softmax of what is taken": (
        lambda x: (lambda e: jnp.log(e / e.sum(-1, keepdims=True)))(jnp.where(x == x, jnp.exp(x), 0)),
        [[[NAN, 200.0, 1.0]]],
        [[-INF, 0.0, -199.0]],
    ),
    "a matrix product": (
        lambda x, w: jnp.log(jnp.where(x == x, jnp.exp(x), 0) @ w),
        [[[NAN, 200.0, 1.0]], [[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]]],
        [[200 + np.log(2), 200.0]],
    ),
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_what_is_not_taken_may_be_anything(name):
    f, args, expected = NOT_TAKEN[name]
    for got in _both_ways(f, *(jnp.array(a, jnp.float32) for a in args)):
        _same(got, expected)


def test_the_gradient_of_a_masked_loss_cancels_across_the_mask():
    """stabilize of a gradient: 1 / p and p stand on the two sides of the transposed `where`."""

    def loss(x, keep):
        p = jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)
        return jnp.where(keep, -jnp.log(p), 0).sum()

    x, keep = jnp.array([[300.0, -3.0, 1.5]]), jnp.array([[False, True, False]])
    for f in (jax.grad(stabilize(loss)), stabilize(jax.grad(loss)), jax.jit(stabilize(jax.grad(loss)))):
        np.testing.assert_allclose(f(x, keep), [[1.0, -1.0, 0.0]], atol=1e-30)


def test_a_branch_under_a_sigmoid_spelled_by_exp():
    """Its exponent is masked in the gradient: no infinity of the data."""

    def f(x):
        w = jnp.where(x > 0.5, jnp.log(x + 1), jnp.exp(-x))
        return (jnp.exp(w) / (1 + jnp.exp(w))).sum()

    x = jnp.array([0.25, 1.5])
    _same(stabilize(jax.grad(f))(x), jax.grad(f)(x))


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda x: 1 - sigmoid(x), [1.0, 0.0, NAN, 0.5]),
        (lambda x: 1 - 1 / (1 + jnp.exp(-x)), [1.0, 0.0, NAN, 0.5]),
        (lambda x: (1 + jnp.exp(x)) - jnp.exp(x), [1.0, NAN, NAN, 1.0]),
        (lambda x: (1 + jnp.exp(-x)) - jnp.exp(-x), [NAN, 1.0, NAN, 1.0]),
        (lambda x: (1 + x * jnp.exp(x)) - x * jnp.exp(x), [NAN, NAN, NAN, 1.0]),
    ],
)
def test_infinite_data_under_a_difference(f, expected):
    """exp(-inf) is 0 and cancels like any number; exp(inf) and NaN do not."""
    for got in _both_ways(f, jnp.array([-INF, INF, NAN, 0.0])):
        np.testing.assert_array_equal(got, expected)


def test_a_fault_outside_the_mask_stays():
    """0 * NaN is NaN where the 0 is a mask's and the NaN other data's."""
    f = lambda x, y: jnp.exp(y) * jnp.where(x > 0, jnp.exp(x), 0)  # noqa: E731
    for got in _both_ways(f, jnp.array([-1.0, -1.0, -1.0, 1.0]), jnp.array([NAN, INF, -INF, -1.0])):
        np.testing.assert_array_equal(got, [NAN, NAN, 0.0, 1.0])
