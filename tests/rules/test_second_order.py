"""Second derivatives at ordinary points, in float64: those of the plain program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import sigmoid, softmax

from rules.harness import in_dtype
from stablegrad import explain, stabilize

POINTS = np.array([-1.5, -0.25, 0.5, 2.0])
POSITIVE = np.array([0.25, 0.5, 0.75, 2.0])
NEGATIVE = -POSITIVE
ROWS = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])
T = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
PROGRAMS = {
    "log(1 + exp(x))": (lambda x: jnp.log(1 + jnp.exp(x)), POINTS),
    "log(1 - exp(x))": (lambda x: jnp.log(1 - jnp.exp(x)), NEGATIVE),
    "log(exp(x) - 1)": (lambda x: jnp.log(jnp.exp(x) - 1), POSITIVE),
    "log(exp(x) - exp(-x))": (lambda x: jnp.log(jnp.exp(x) - jnp.exp(-x)), POSITIVE),
    "log(cosh(x))": (lambda x: jnp.log(jnp.cosh(x)), POINTS),
    "log(tanh(x))": (lambda x: jnp.log(jnp.tanh(x)), POSITIVE),
    "log(1 - tanh(x)**2)": (lambda x: jnp.log(1 - jnp.tanh(x) ** 2), POINTS),
    "log(erfc(x))": (lambda x: jnp.log(jax.scipy.special.erfc(x)), POINTS),
    "log(x + sqrt(x x + 1))": (lambda x: jnp.log(x + jnp.sqrt(x * x + 1)), POINTS),
    "log(x exp(x))": (lambda x: jnp.log(x * jnp.exp(x)), POSITIVE),
    "log(prod(x))": (lambda x: jnp.log(jnp.prod(x)), POINTS),
    "log(sum(exp(x)))": (lambda x: jnp.log(jnp.exp(x).sum(-1)), ROWS),
    "log(sum(w exp(x)))": (lambda x: jnp.log((jnp.exp(x) * jnp.array([1.0, 2.0, 0.5])).sum(-1)), ROWS),
    "log(softmax(x))": (lambda x: jnp.log(softmax(x)) * T, ROWS),
    "log(1 - softmax(x))": (lambda x: jnp.log(1 - softmax(x)) * T, ROWS),
    "log(exp(x) @ w)": (lambda x: jnp.log(jnp.exp(x) @ jnp.array([[1.0], [2.0], [0.5]])), ROWS),
    "logaddexp(log, log)": (lambda x: jnp.logaddexp(jnp.log(sigmoid(x)), jnp.log(1 - sigmoid(2 * x))), POINTS),
    "exp(x) / sum": (lambda x: T * (jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)), ROWS),
    "1 / (1 + exp(x))": (lambda x: 1 / (1 + jnp.exp(x)), POINTS),
    "tanh from exp": (lambda x: (jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x)), POINTS),
    "(exp(x) - 1) / x": (lambda x: (jnp.exp(x) - 1) / x, POINTS),
    "x / (exp(x) - 1)": (lambda x: x / (jnp.exp(x) - 1), POINTS),
    "log1p(x) / x": (lambda x: jnp.log1p(x) / x, POSITIVE),
    "1 / cosh(x)**2": (lambda x: 1 / jnp.cosh(x) ** 2, POINTS),
    "x exp(x) / x": (lambda x: x * jnp.exp(x) / x, POINTS),
    "p log(p)": (lambda p: p * jnp.log(p), POSITIVE),
    "xlogy(x, sigmoid(x))": (lambda x: jax.scipy.special.xlogy(x, sigmoid(x)), POSITIVE),
    "cross entropy": (lambda x: -(T * jnp.log(softmax(x))).sum(), ROWS),
    "binary cross entropy": (lambda x: -(0.25 * jnp.log(sigmoid(x)) + 0.75 * jnp.log(1 - sigmoid(x))), POINTS),
    "entropy": (lambda x: -(softmax(x) * jnp.log(softmax(x))).sum(-1), ROWS),
    "exp(x) exp(-2x)": (lambda x: jnp.exp(x) * jnp.exp(-2 * x), POINTS),
    "1 - sigmoid(x)": (lambda x: 1 - sigmoid(x), POINTS),
    "1 - softmax(x)": (lambda x: T * (1 - softmax(x)), ROWS),
    "1 - tanh(x)**2": (lambda x: 1 - jnp.tanh(x) ** 2, POINTS),
    "exp(x) - 1": (lambda x: (jnp.exp(x) - 1) * x, POINTS),
    "softplus(x) - x": (lambda x: (jnp.log(1 + jnp.exp(x)) - x) * x, POINTS),
    "max(x, 0) + log1p(exp(-|x|))": (lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))), POINTS),
    "exp(log(x) / 2)": (lambda x: jnp.exp(jnp.log(x) / 2), POSITIVE),
    "(1 - sigmoid(x))**2.5": (lambda x: (1 - sigmoid(x)) ** 2.5, POINTS),
    "sqrt(1 + exp(x))": (lambda x: jnp.sqrt(1 + jnp.exp(x)), POINTS),
    "(1 + exp(x))**-2": (lambda x: (1 + jnp.exp(x)) ** -2, POINTS),
    "arctanh(tanh(x)) x": (lambda x: jnp.arctanh(jnp.tanh(x)) * x, POINTS),
    "expm1(x)": (lambda x: jnp.expm1(x), POINTS),
    "where(x > 0, log(x), x**2)": (lambda x: jnp.where(x > 0, jnp.log(x), x**2), POINTS),
    "focal loss": (lambda x: -(((1 - softmax(x)) ** 2) * jnp.log(softmax(x)) * T).sum(), ROWS),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_hessian(name):
    f, x = PROGRAMS[name]
    with in_dtype("float64"):
        x = jnp.asarray(x, jnp.float64)
        assert explain(f)(x).rewrites, "nothing was rewritten"
        # Not the sum: rows of a Hessian must not cancel.
        weight = 1 + jnp.arange(jax.eval_shape(f, x).size).reshape(jax.eval_shape(f, x).shape) / 8

        def total(g):
            return lambda x: (weight * g(x)).sum()

        plain, stable = (jax.jit(jax.hessian(total(g)))(x) for g in (f, stabilize(f)))
        np.testing.assert_allclose(stable, plain, rtol=1e-9, atol=1e-11)
        backwards = jax.jit(jax.jacrev(jax.jacrev(total(stabilize(f)))))(x)
        np.testing.assert_allclose(backwards, plain, rtol=1e-9, atol=1e-11)
