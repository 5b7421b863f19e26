"""Loops at whose border values become mantissa and exponent, and all those that stay as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from stablegrad import explain, stabilize
from stablegrad.engines.jax.loops import with_scaled_carries

X = jnp.array([[0.2, 0.3, 0.5], [0.1, 0.7, 0.2], [0.6, 0.2, 0.2], [0.3, 0.3, 0.4]])
W = jnp.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])


def gated(h, e):
    z = jax.nn.sigmoid(h @ W + e)
    return (1 - z) * jnp.tanh(h @ W + e) + z * h, None


LEFT_ALONE = {
    "a gated unit": lambda x: jnp.log(lax.scan(gated, x[0], x)[0].sum()),
    "a linear unit with an input": lambda x: jnp.log(lax.scan(lambda h, e: (h @ W + e, None), x[0], x)[0].sum()),
    "a power nothing is inverted of": lambda x: lax.fori_loop(0, 9, lambda _, h: h @ W, x[0]).sum(),
    "a power iteration": lambda x: jnp.log(lax.fori_loop(0, 9, lambda _, h: (h @ W) / jnp.sum(h @ W), x[0]).sum()),
    "a running mean": lambda x: jnp.log(lax.scan(lambda v, e: (0.9 * v + 0.1 * e**2, None), x[0], x)[0].sum()),
    "a sum": lambda x: jnp.log(lax.scan(lambda v, e: (v + e, v), x[0], x)[1].sum()),
    "a rate that decays": lambda x: jnp.log(lax.fori_loop(0, 9, lambda _, v: 0.9 * v, x[0]).sum()),
    "Newton's square root": lambda x: jnp.log(lax.fori_loop(0, 9, lambda _, v: 0.5 * (v + x[0] / v), x[0]).sum()),
    "whole numbers": lambda x: jnp.log(1.0 * lax.fori_loop(0, 9, lambda _, v: v * 2, jnp.ones(3, int)).sum()) * x,
    "log-probabilities": lambda x: lax.scan(lambda a, e: (jnp.logaddexp(a, a[::-1]) + e, None), x[0], x)[0],
    "halves": lambda x: jnp.log(lax.scan(lambda a, e: (a * e, None), x[0], x)[0]).sum(),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name):
    x = X.astype(jnp.float16) if name == "halves" else X
    closed = jax.make_jaxpr(LEFT_ALONE[name])(x)
    assert with_scaled_carries(closed) is closed


def test_random_keys_are_carried_as_they_are():
    f = lambda key: jnp.log(jax.random.normal(lax.fori_loop(0, 3, lambda _, k: jax.random.split(k)[0], key)))  # noqa: E731
    closed = jax.make_jaxpr(f)(jax.random.key(0))
    assert with_scaled_carries(closed) is closed


def product(x, **options):
    q, seen = lax.scan(lambda q, e: (q * e, q), jnp.ones(3), x, **options)
    return jnp.log(q), seen


def test_only_what_grows_is_split():
    closed = with_scaled_carries(jax.make_jaxpr(product)(X))
    (scan,) = (e for e in closed.jaxpr.eqns if str(e.primitive) == "scan")
    assert [str(v.aval.dtype) for v in scan.outvars] == ["float32", "int32", "float32", "int32"]


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 3}, {"unroll": True}])
def test_digit_for_digit_where_nothing_leaves_the_range(options):
    for got, plain in zip(stabilize(product)(X, **options), product(X, **options), strict=True):
        np.testing.assert_array_equal(got, plain)


def test_types_are_those_of_the_program():
    """A weak carry, an integer beside it, a stacked truth value."""

    def f(x):
        step = lambda c, e: ((c[0] * e[0], c[1] + 1), e > 0.5)  # noqa: E731
        (q, n), flags = lax.scan(step, (1.0, 0), x)
        return jnp.log(q), q, n, flags

    got, plain = (jax.eval_shape(g, X) for g in (stabilize(f), f))
    assert [(a.shape, a.dtype, a.weak_type) for a in got] == [(a.shape, a.dtype, a.weak_type) for a in plain]
    for a, b in zip(stabilize(f)(X), f(X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("x", [jnp.zeros((0, 3)), jnp.zeros((4, 0))], ids=["no steps", "no elements"])
def test_empty_loops(x):
    f = lambda x: jnp.log(lax.scan(lambda q, e: (q * e, None), jnp.ones(x.shape[1]), x)[0])  # noqa: E731
    np.testing.assert_array_equal(stabilize(f)(x), f(x))


def test_a_carry_that_changes_its_type_is_jax_s_error():
    f = lambda x: lax.scan(lambda q, e: ((q * e).astype(jnp.float16), None), jnp.ones(3), x)  # noqa: E731
    with pytest.raises(TypeError) as plain:
        f(X)
    with pytest.raises(TypeError) as ours:
        stabilize(f)(X)
    assert str(ours.value).splitlines()[0] == str(plain.value).splitlines()[0]


def test_a_while_loop_in_reverse_is_jax_s_error():
    f = lambda x: jnp.log(lax.while_loop(lambda q: jnp.all(q > 1e-3), lambda q: q * x[0], x[1])).sum()  # noqa: E731
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(stabilize(f))(X)
    np.testing.assert_allclose(stabilize(f)(X), f(X), rtol=1e-6)


EDGES = {
    "a zero": [0.5, 0.0, 1.0],
    "a negative one": [-0.5, 0.5, 1.0],
    "infinity": [np.inf, 0.5, 1.0],
    "infinity times zero": [np.inf, 0.0, np.nan],
}


@pytest.mark.parametrize("name", EDGES)
def test_what_the_data_do_is_kept(name):
    """Logarithms of 0, of what is negative, infinite, undefined."""
    x = jnp.stack([X[0], jnp.array(EDGES[name]), X[2]])
    f = lambda x: jnp.log(lax.scan(lambda q, e: (q * e, None), jnp.ones(3), x)[0])  # noqa: E731
    np.testing.assert_array_equal(stabilize(f)(x), f(x))
    x = x.at[0].set(jnp.array([1.0, jnp.inf, 1.0]) * X[0])
    np.testing.assert_array_equal(stabilize(f)(x), f(x))


def forward(x):
    p = jax.nn.softmax(x)
    a, _ = lax.scan(lambda a, e: ((a @ W) * e, None), jnp.ones(3) / 3, p)
    return jnp.log(a.sum())


LOGITS = 30 * np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)


def expected(g):
    with jax.enable_x64(True):
        return np.asarray(g(forward)(jnp.asarray(LOGITS, "float64")))


TRANSFORMED = {
    "jacfwd": jax.jacfwd,
    "jacrev of jit": lambda f: jax.jacrev(jax.jit(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x[::-1]])),
    "map": lambda f: lambda x: lax.map(f, jnp.stack([x, x[::-1]])),
    "a product with the Hessian": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (jnp.ones_like(x).at[1].set(2.0),))[1],
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](jnp.cos(x)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_under_transformations(name):
    transformed = TRANSFORMED[name]
    right = expected(transformed)
    assert np.isfinite(right).all() and not np.isfinite(forward(LOGITS))
    for route in (transformed(stabilize(forward)), stabilize(transformed(forward))):
        np.testing.assert_allclose(jax.jit(route)(LOGITS), right, rtol=2e-5, atol=2e-5)


def test_the_report_names_the_line_of_the_loop():
    found = [r for r in explain(forward)(LOGITS).rewrites if r.rule == "recursion"]
    assert found and all(r.file == __file__ for r in found)
    assert any("lax.scan" in r.source for r in found)
