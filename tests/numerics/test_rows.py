"""Rows summed in one pass and rows summed in several give the same: only the length, or the axis, tells which.

The other tests of this folder have short rows. Here the same entries stand in longer rows, among entries of no weight.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad.numerics import jax as numerics
from stablegrad.numerics.jax import reductions, rows

ENTRIES = np.array(
    [
        [0.0, 0.0, 0.0],
        [30.0, 0.0, -1.0],
        [1000.0, 1000.0, 998.0],
        [-30.0, 3.0, 2.5],
        [0.0, -20.0, -21.0],
        [5.0, -np.inf, 5.0],
        [-np.inf, -np.inf, -np.inf],
        [np.inf, 0.0, -np.inf],
    ]
)
TARGETS = np.array(
    [[0.25, 0.5, 0.25], [1, 0, 0], [0.5, 0.25, 0.5], [0, 0, 1], [1, 0, 0], [0.5, 0, 0.5], [1, 0, 0], [1, 0, 0]]
)

FUNCTIONS = {
    "softmax_cross_entropy": lambda x, t, axis: numerics.softmax_cross_entropy(x, t, axis),
    "log_softmax": lambda x, t, axis: jnp.sum(jnp.where(t > 0, t * numerics.log_softmax(x, axis), 0), axis),
    "one_minus_softmax": lambda x, t, axis: jnp.sum(jnp.where(t > 0, t * numerics.one_minus_softmax(x, axis), 0), axis),
    "logsumexp": lambda x, t, axis: numerics.logsumexp(x, axis),
}


def widened(array, length, value):
    return np.concatenate([array, np.full((len(array), length - array.shape[1]), value)], axis=1)


def value_and_slopes(function, x, t, axis):
    x, t = jnp.asarray(np.moveaxis(x, 1, axis)), jnp.asarray(np.moveaxis(t, 1, axis))
    value, pullback = jax.vjp(lambda x: function(x, t, axis), x)
    (slopes,) = pullback(jnp.ones_like(value))
    return np.asarray(value), np.moveaxis(np.asarray(slopes), axis, 1)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("length", [reductions.SHORT, reductions.SHORT + 1, rows.SHORT, rows.SHORT + 1, 3000])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_length_of_a_row_makes_no_difference(name, length, axis):
    x, t = ENTRIES.astype("float32"), TARGETS.astype("float32")
    expected = value_and_slopes(FUNCTIONS[name], x, t, 1)
    long = widened(x, length, -np.inf), widened(t, length, 0)
    value, slopes = value_and_slopes(FUNCTIONS[name], *(a.astype("float32") for a in long), axis)
    np.testing.assert_allclose(value, expected[0], rtol=5e-7)
    np.testing.assert_allclose(slopes[:, :3], expected[1], rtol=5e-7)


def test_one_pass_is_one_equation():
    def equations(length):
        jaxpr = jax.make_jaxpr(lambda x: rows.sums_of((1,), x, x))(jnp.ones((2, length)))
        return [equation.primitive.name for equation in jaxpr.eqns]

    assert equations(rows.SHORT) == ["reduce"]
    assert equations(rows.SHORT + 1) == ["reduce_sum", "reduce_sum"]
