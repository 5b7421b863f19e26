"""Complex numbers: the rules are about real ones, and leave these alone."""

import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad import explain, stabilize

Z = jnp.array([1 + 1j, 2, -0.5j])
PROGRAMS = {
    "log of a square": lambda z: jnp.log(z * z),
    "log of a power": lambda z: jnp.log(z**2),
    "half a logarithm": lambda z: jnp.exp(0.5 * jnp.log(z * z)),
    "log-sum-exp": lambda z: jnp.log(jnp.sum(jnp.exp(z))),
    "log of a product": lambda z: jnp.log(jnp.prod(z)),
    "softplus": lambda z: jnp.log(1 + jnp.exp(z)),
    "exp of log": lambda z: jnp.exp(jnp.log(z)),
    "log of a root": lambda z: jnp.log(jnp.sqrt(z)),
    "softmax": lambda z: jnp.exp(z) / jnp.exp(z).sum(),
    "magnitude": lambda z: jnp.log(jnp.abs(jnp.exp(z))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_left_alone(name):
    f = PROGRAMS[name]
    np.testing.assert_array_equal(stabilize(f)(Z), f(Z))
    assert not explain(f)(Z).rewrites
