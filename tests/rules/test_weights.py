"""What is left of 1 as a weight: left as it is where only its absolute error counts, and written by its companion where
it is all that there is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad import explain, stabilize

X = np.array([-10.0, -12.0, -15.0], np.float32)
WEIGHTS = np.array([0.5, 2.0, 1.0], np.float32)


@pytest.mark.parametrize("sign", [1, -1])
def test_of_a_weight_from_elsewhere_the_rest_is_all_there_is(sign):
    stable = stabilize(lambda x: jnp.sum(WEIGHTS * (1 + sign * jnp.tanh(sign * x))))
    probability = 1 / (1 + np.exp(-2 * X.astype(np.float64)))  # (1 + tanh(x)) / 2
    assert float(stable(X)) == pytest.approx(np.sum(2 * WEIGHTS * probability), rel=1e-6)
    slopes = 4 * WEIGHTS * probability * (1 - probability)
    np.testing.assert_allclose(jax.grad(stable)(X), slopes, rtol=2e-6)


def test_a_value_scaled_by_its_own_tanh_is_left():
    assert not explain(lambda x: 0.5 * x * (1 + jnp.tanh(0.8 * (x + 0.04 * x**3))))(X).rewrites
