"""Each rule by name: it fires in its example, and switched off it does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import sigmoid, softmax
from jax.scipy.special import logit, xlogy

from stablegrad import explain, rule_names, stabilize

X = np.array([[-2.0, 0.5], [0.25, 1.0]], np.float32)
POSITIVE = np.array([[0.25, 0.5], [0.75, 1.5]], np.float32)
TINY = np.array([[1e-3, 2e-3], [3e-3, 1e-3]], np.float32)


def after_four_steps(x, last=lambda a: a):
    """Sums of products of sums of products ..."""
    a = jnp.ones(2)
    for _ in range(4):
        a = (a @ x) * x[0]
    return last(a)


def shares(x):
    """Sinkhorn's scaling, four times."""
    v = jnp.ones(2)
    for _ in range(4):
        u = 1 / (x @ v)
        v = 1 / (x.T @ u)
    return u[:, None] * x * v


EXAMPLES = {
    "recursion": (lambda x: after_four_steps(x, lambda a: jnp.log(a.sum())), TINY),
    "contraction_with_logarithm": (lambda x: jnp.einsum("ij,ij->i", x, jnp.log(x)), POSITIVE),
    "cross_entropy": (lambda x: -jnp.sum(jnp.array([0.25, 0.75]) * jnp.log(softmax(x)), -1), X),
    "difference_of_two_sigmoids": (lambda x: sigmoid(x) - sigmoid(2 * x), X),
    "difference_that_cancels": (lambda x: 1 - sigmoid(x), X),
    "expm1_with_right_derivative": (lambda x: jnp.expm1(x), X),
    "exponential_less_its_line": (lambda x: jnp.exp(x) - 1 - x, X),
    "exponential_of_logarithm": (lambda x: jnp.exp(jnp.log(x) / 2), POSITIVE),
    "inverse_tangent_of_ratio": (lambda x: jnp.arctanh(jnp.tanh(x)), X),
    "length_by_maximum": (lambda x: jnp.hypot(x, 2 * x + 1), X),
    "log_of_companion": (lambda x: jnp.log(1 + jnp.exp(x)), X),
    "logaddexp_of_logarithms": (lambda x: jnp.logaddexp(jnp.log(sigmoid(x)), x), X),
    "logarithm_over_its_argument": (lambda x: jnp.log1p(x) / x, POSITIVE),
    "logit_of_companion": (lambda x: logit(sigmoid(x)), X),
    "power_by_logarithm": (lambda x: jnp.exp(2.5 * x * jnp.log(x)), POSITIVE),
    "power_of_product": (lambda x: jnp.prod(x, -1) ** 0.25, POSITIVE),
    "power_of_scaled": (lambda x: (1 - sigmoid(x)) ** 2.5, X),
    "product_of_exponentials": (lambda x: jnp.exp(x) * jnp.exp(-2 * x), X),
    "power_that_undoes_root": (lambda x: jnp.sqrt(x) ** 2, POSITIVE),
    "product_over_factor": (lambda x: jnp.prod(x, -1, keepdims=True) / x, X),
    "product_that_cancels": (lambda x: (3 / x) * x, POSITIVE),
    "product_with_logarithm": (lambda x: x * jnp.log(x), POSITIVE),
    "quotient_by_length": (lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), X),
    "quotient_of_exponentials": (lambda x: 1 / (1 + jnp.exp(x)), X),
    "quotient_that_cancels": (lambda x: x * (x + 1) / x, POSITIVE),
    "root_of_squares": (lambda x: jnp.sqrt(jnp.sum(x**2, -1)), X),
    "root_of_scaled": (lambda x: jnp.sqrt(jnp.exp(x)), X),
    "softmax_of_rewritten_sum": (lambda x: softmax(x)[:, 0] * jnp.sin(jnp.log(1 - softmax(x))[:, 1]), X),
    "sum_with_logarithm": (lambda x: jnp.log(1 + jnp.exp(x)) - x, X),
    "untaken_branch": (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), X),
    "xlogy_of_companion": (lambda x: xlogy(2.0, sigmoid(x)), X),
}


def fired(f, x, **options):
    return {r.rule for r in explain(f, **options)(x).rewrites}


def test_every_rule_has_an_example():
    assert set(EXAMPLES) == set(rule_names())


RECURSIONS = {
    "a comparison": lambda x: jnp.where(after_four_steps(x) > 1e-30, x[0], 2 * x[1]),
    "a logarithm": lambda x: after_four_steps(x, lambda a: jnp.log(a.sum())),
    "a loop": lambda x: jnp.log(jnp.sum(lax.scan(lambda a, e: ((a @ x) * e, None), x[0], x)[0])),
    "a quotient": shares,
}


@pytest.mark.parametrize("kind", RECURSIONS)
def test_recursions(kind):
    f = RECURSIONS[kind]
    assert fired(f, TINY) == {"recursion"}
    assert not fired(f, TINY, disable="recursion") & {"recursion"}
    np.testing.assert_allclose(stabilize(f)(TINY), f(TINY), rtol=2e-6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_switched_off(name):
    f, x = EXAMPLES[name]
    assert name in fired(f, x)
    assert name not in fired(f, x, disable=name)
    stable = stabilize(f, disable=[name])
    np.testing.assert_allclose(stable(x), f(x), rtol=2e-6)
    got, plain = (jax.grad(lambda x, g=g: g(x).sum())(x) for g in (stable, f))
    np.testing.assert_allclose(got, plain, rtol=2e-5, atol=1e-7)


def test_all_switched_off_is_the_plain_program():
    for f, x in EXAMPLES.values():
        assert not fired(f, x, disable=rule_names())
        np.testing.assert_array_equal(stabilize(f, disable=rule_names())(x), f(x))


def test_only_that_one():
    """Another rule is not touched by the name of one."""
    f = lambda x: jnp.sin(jnp.log(sigmoid(x))) * jnp.sin(1 - sigmoid(x))  # noqa: E731
    assert fired(f, X, disable="log_of_companion") == {"difference_that_cancels"}
    assert fired(f, X, disable="difference_that_cancels") == {"log_of_companion"}
