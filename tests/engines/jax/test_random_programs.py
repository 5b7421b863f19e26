"""Random programs of jits, remats, loops and branches: rewritten without a fault, the same at ordinary inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engines.jax.program import double_precision, programs, run
from engines.jax.random_programs import program

X = np.array([[0.5, 0.25, 0.75], [1.0, 2.0, 1.5]])
Y = np.array([[1.5, 0.3, 0.8], [0.6, 0.9, 1.1]])
OPTIONS = {"xla_backend_optimization_level": 0}  # these programs are compiled once and run once


def agree(function):
    """The program, as emitted and checked, gives what the plain one gives."""
    with double_precision():
        before, after = programs(function, jnp.array(X), jnp.array(Y))
        plain, stable = (jax.jit(lambda *a, p=p: run(p, *a), compiler_options=OPTIONS)(X, Y) for p in (before, after))
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(stable), strict=True):
        finite = np.isfinite(a)
        np.testing.assert_allclose(np.asarray(b)[finite], np.asarray(a)[finite], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_values(seed):
    agree(program(seed, reverse_mode=False))


@pytest.mark.parametrize("seed", [*range(10, 16), 129])
def test_values_and_gradients(seed):
    f = program(seed)
    total = jax.grad(lambda x, y: sum(v.sum() for v in f(x, y)), argnums=(0, 1))
    agree(lambda x, y: (f(x, y), total(x, y)))
