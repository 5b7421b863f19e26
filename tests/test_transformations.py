"""Stabilized functions under and over the transformations of JAX.

`ORDINARY`: at ordinary inputs plain and stabilized agree in value, shape, dtype and weak type. `EXTREME`: at logits
2000 apart the plain program fails and the stabilized one is right. `S` stands for the place of `stabilize`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engines.verified import verified_rewrites
from stablegrad import stabilize

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (4, 5))
TWO = jnp.stack([X, 2 * X])


@pytest.fixture(autouse=True)
def _verified(monkeypatch):
    verified_rewrites(monkeypatch)


def cross_entropy(x):
    return -jnp.log(jax.nn.softmax(x))[..., 0].mean()


def log_softmax(x):
    return jnp.log(jax.nn.softmax(x))


def log_sigmoid(x):
    return jnp.log(jax.nn.sigmoid(x))


def softplus(x):
    return jnp.log(1 + jnp.exp(x))


@jax.custom_jvp
def three_times(x):
    return log_sigmoid(x)


three_times.defjvp(lambda p, t: (three_times(p[0]), 3.0 * t[0]))


@jax.custom_vjp
def five_times(x):
    return log_sigmoid(x)


five_times.defvjp(lambda x: (five_times(x), x), lambda x, g: (5.0 * g,))


class Model:
    def __init__(self, scale):
        self.scale = scale

    def method(self, x):
        return log_softmax(x * self.scale)


MESH = jax.make_mesh((1,), ("d",))
AUTO = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
PLACED = jax.device_put(X, jax.sharding.NamedSharding(MESH, jax.P("d")))
shard = functools.partial(jax.shard_map, in_specs=jax.P("d"), out_specs=jax.P("d"))


def trees(S, x):
    def f(tree, *, k, flag=True):
        return {"a": [tree["x"] + 1, (tree["y"],)], "b": None, "c": k if flag else 0.0}

    return S(f)({"x": x, "y": 2}, k=3.0, flag=True)


def add_one_and_trace(x):
    jax.debug.callback(lambda v: None, x)
    return log_sigmoid(x)


def from_callback(x):
    return log_sigmoid(jax.pure_callback(lambda v: np.asarray(v) * 2, x, x, vmap_method="sequential"))


# name: (what is called, its arguments)
ORDINARY = {
    # derivatives
    "grad": (lambda S: jax.grad(S(cross_entropy)), X),
    "jit of grad": (lambda S: jax.jit(jax.grad(S(cross_entropy))), X),
    "value_and_grad": (lambda S: jax.value_and_grad(S(cross_entropy)), X),
    "over grad": (lambda S: S(jax.grad(cross_entropy)), X),
    "over value_and_grad": (lambda S: S(jax.value_and_grad(cross_entropy)), X),
    "over jit of value_and_grad": (lambda S: S(jax.jit(jax.value_and_grad(cross_entropy))), X),
    "between": (lambda S: jax.jit(S(jax.grad(S(cross_entropy)))), X),
    "jvp": (lambda S: jax.jit(lambda x: jax.jvp(S(log_softmax), (x,), (x,))), X),
    "jacfwd": (lambda S: jax.jit(jax.jacfwd(S(cross_entropy))), X),
    "jacrev": (lambda S: jax.jit(jax.jacrev(S(log_softmax))), X[0]),
    "over jacfwd": (lambda S: jax.jit(S(jax.jacfwd(log_softmax))), X[0]),
    "hessian": (lambda S: jax.jit(jax.hessian(S(cross_entropy))), X),
    "over hessian": (lambda S: jax.jit(S(jax.hessian(cross_entropy))), X[:2, :3]),
    "linearize": (lambda S: lambda x: jax.linearize(S(cross_entropy), x)[1](x), X),
    "vjp": (lambda S: lambda x: jax.vjp(S(cross_entropy), x)[1](1.0), X),
    "product with the hessian": (lambda S: jax.jit(lambda x: jax.jvp(jax.grad(S(cross_entropy)), (x,), (x,))), X),
    "of two arguments": (lambda S: jax.grad(S(lambda a, b: cross_entropy(a * b)), argnums=(0, 1)), X, 2.0),
    "with an auxiliary result": (lambda S: jax.grad(S(lambda x: (cross_entropy(x), x)), has_aux=True), X),
    # jit, vmap, checkpoint
    "jit": (lambda S: jax.jit(S(log_softmax)), X),
    "over jit": (lambda S: S(jax.jit(log_softmax)), X),
    "vmap": (lambda S: jax.vmap(S(cross_entropy)), TWO),
    "over vmap": (lambda S: S(jax.vmap(cross_entropy)), TWO),
    "vmap of grad": (lambda S: jax.jit(jax.vmap(jax.grad(S(cross_entropy)))), TWO),
    "over vmap of grad": (lambda S: jax.jit(S(jax.vmap(jax.grad(cross_entropy)))), TWO),
    "vmap along other axes": (lambda S: jax.vmap(S(log_softmax), in_axes=1, out_axes=-1), X),
    "checkpoint around": (lambda S: jax.grad(jax.checkpoint(S(cross_entropy))), X),
    "checkpoint inside": (lambda S: jax.grad(S(jax.checkpoint(cross_entropy))), X),
    "named call": (lambda S: S(jax.named_call(cross_entropy, name="loss")), X),
    "donation": (lambda S: lambda x: jax.jit(S(log_softmax), donate_argnums=0)(x * 1.0), X),
    "donation inside": (lambda S: S(lambda x: jax.jit(log_sigmoid, donate_argnums=0)(x * 1.0)), X),
    "the name of an axis": (
        lambda S: jax.vmap(S(lambda y: lax.psum(log_sigmoid(y), "i")), axis_name="i"), X),
    "over the name of an axis": (
        lambda S: S(jax.vmap(lambda y: lax.pmean(log_sigmoid(y), "i"), axis_name="i")), X),
    "a closed-over tracer": (
        lambda S: jax.grad(lambda w: S(lambda x: log_sigmoid(w * x).sum())(X)), 2.0),
    # loops and branches
    "scan": (lambda S: S(lambda x: lax.scan(lambda c, r: (c + log_softmax(r)[0], c), 0.0, x)), X),
    "grad of scan": (lambda S: jax.grad(S(lambda x: lax.scan(lambda c, r: (c + log_softmax(r)[0], c), 0.0, x)[0])), X),
    "inside scan": (lambda S: lambda x: lax.scan(lambda c, r: (c + S(log_softmax)(r)[0], c), 0.0, x), X),
    "scan of checkpoint": (lambda S: jax.grad(S(lambda x: lax.scan(jax.checkpoint(
        lambda c, r: (jnp.log(jnp.exp(c) + jnp.exp(r)), None)), x[0], x)[0].sum())), X),
    "while": (lambda S: S(lambda x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.log(jnp.sum(jnp.exp(c[1]))) + x[0]), (0, x[0]))), X),
    "jacfwd of while": (lambda S: jax.jacfwd(S(lambda x: lax.while_loop(
        lambda c: c.sum() < 30, lambda c: c + softplus(c), x))), X[0]),
    "fori": (lambda S: S(lambda x: lax.fori_loop(0, 3, lambda i, c: softplus(c), x)), X),
    "grad of fori": (lambda S: jax.grad(S(lambda x: lax.fori_loop(0, 3, lambda i, c: softplus(c), x).sum())), X),
    "cond": (lambda S: S(lambda x: lax.cond(x[0, 0] > 0, log_softmax, softplus, x)), X),
    "grad of cond": (lambda S: jax.grad(S(lambda x: lax.cond(x[0, 0] > 0, log_softmax, softplus, x)[:, 0].sum())), X),
    "switch": (lambda S: S(lambda i, x: lax.switch(i, [jnp.sin, softplus, jnp.cos], x)), jnp.int32(1), X),
    "map": (lambda S: S(lambda x: lax.map(cross_entropy, x[None])), X),
    "associative scan": (lambda S: S(lambda x: lax.associative_scan(jnp.add, log_sigmoid(x))), X),
    # derivatives of the user's own
    "custom_jvp": (lambda S: jax.value_and_grad(S(lambda x: three_times(x).sum())), X),
    "custom_vjp": (lambda S: jax.value_and_grad(S(lambda x: five_times(x).sum())), X),
    "over custom_jvp": (lambda S: S(jax.grad(lambda x: three_times(x).sum())), X),
    "over custom_vjp": (lambda S: S(jax.grad(lambda x: five_times(x).sum())), X),
    "inside custom_jvp": (lambda S: jax.grad(lambda x: _wrapped(S)(x).sum()), X),
    # several devices
    "shard_map": (lambda S: S(shard(log_sigmoid, mesh=MESH)), PLACED),
    "shard_map with automatic axes": (lambda S: S(shard(log_sigmoid, mesh=AUTO)), X),
    "grad of shard_map": (lambda S: jax.grad(S(lambda x: shard(log_sigmoid, mesh=MESH)(x).sum())), PLACED),
    "grad of shard_map with automatic axes": (
        lambda S: jax.jit(jax.grad(S(lambda x: shard(log_sigmoid, mesh=AUTO)(x).sum()))), X),
    "inside shard_map": (lambda S: shard(S(log_sigmoid), mesh=MESH), PLACED),
    "inside shard_map with automatic axes": (lambda S: shard(S(log_sigmoid), mesh=AUTO), X),
    "grad, inside shard_map with automatic axes": (
        lambda S: jax.jit(jax.grad(lambda x: shard(S(log_softmax), mesh=AUTO)(x)[0, 0])), X),
    # arguments and results
    "trees": (lambda S: functools.partial(trees, S), X),
    "whole numbers": (lambda S: S(lambda x: (x.argmax(-1), x.astype(int), x > 0)), X),
    "random numbers": (lambda S: S(lambda k: jax.random.normal(k, (3,))), KEY),
    "static arguments": (lambda S: lambda x: S(lambda x, n: log_softmax(x) * n)(x, 3), X),
    "a method": (lambda S: lambda x: S(Model(2.0).method)(x), X),
    "a Python number": (lambda S: S(softplus), 1.5),
    "a weak type": (lambda S: S(lambda x: jnp.log(1 - jnp.exp(-x)) + jnp.float16(1)), 1.5),
    "a NumPy array": (lambda S: S(softplus), np.ones((2, 3), np.float32)),
    "no elements": (lambda S: S(log_softmax), jnp.zeros((0, 3))),
    "a sum over no elements": (lambda S: S(lambda x: jnp.log(jnp.sum(jnp.exp(x), 0))), jnp.zeros((0, 3))),
    "one number": (lambda S: S(lambda x: jnp.log(jnp.sum(jnp.exp(x)))), 1.0),
    # what is not understood
    "a callback": (lambda S: S(add_one_and_trace), X),
    "a callback with a result": (lambda S: S(from_callback), X),
    "linear algebra": (lambda S: S(lambda x: (
        jnp.linalg.svd(x)[1], jnp.linalg.inv(x[:4, :4]), jnp.linalg.slogdet(x[:, :4]), jnp.linalg.norm(x))), X),
    "a transform of Fourier": (lambda S: S(lambda x: jnp.abs(jnp.fft.fft(x))), X),
    "complex numbers": (lambda S: S(lambda x: jnp.log(jnp.exp(1j * x)).real), X),
    "a sort": (lambda S: S(lambda x: jnp.sort(log_softmax(x))), X),
    "a linear solve": (lambda S: jax.grad(S(lambda x: jax.scipy.sparse.linalg.cg(lambda v: 2 * v, x)[0].sum())), X[0]),
    "a dynamic slice": (lambda S: S(lambda i, x: lax.dynamic_slice(log_softmax(x), (i, 0), (1, 5))), jnp.int32(1), X),
    "an element set": (lambda S: S(lambda x: log_softmax(x).at[0].set(0.5)), X),
    "an element added to": (lambda S: S(lambda x: log_softmax(x).at[0].add(0.5)), X),
    "a convolution": (lambda S: S(lambda x: log_softmax(jnp.convolve(x[0], x[1]))), X),
}  # fmt: skip


def _wrapped(S):
    """A function with a derivative rule of the user's whose body is stabilized."""
    f = jax.custom_jvp(lambda x: S(log_sigmoid)(x))
    f.defjvp(lambda p, t: (f(p[0]), 3.0 * t[0]))
    return f


def plain(f):
    return f


def alike(left, right, tolerance=1e-5):
    """The same trees of arrays, of the same types, with close values."""
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        a, b = jnp.asarray(a), jnp.asarray(b)
        assert (a.shape, a.dtype, a.weak_type, a.sharding) == (b.shape, b.dtype, b.weak_type, b.sharding)
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ORDINARY)
def test_plain_and_stabilized_agree(name):
    make, *arguments = ORDINARY[name]
    alike(make(stabilize)(*arguments), make(plain)(*arguments))


@pytest.mark.parametrize("dtype, tolerance", [(jnp.float16, 3e-3), (jnp.bfloat16, 3e-2)])
@pytest.mark.parametrize("function", [log_softmax, jax.grad(cross_entropy)], ids=["value", "grad"])
def test_plain_and_stabilized_agree_in_narrow_types(function, dtype, tolerance):
    narrow = X.astype(dtype)
    alike(jax.jit(stabilize(function))(narrow), jax.jit(function)(narrow), tolerance)


def test_shapes_are_found_without_values():
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    for function in (cross_entropy, log_softmax):
        assert jax.eval_shape(stabilize(function), shape) == jax.eval_shape(function, shape)
        jacobian = jax.eval_shape(jax.jacrev(stabilize(function)), shape)
        assert jacobian == jax.eval_shape(jax.jacrev(function), shape)


# -- where the plain program fails -----------------------------------------------------------------------------------

GAP = jnp.array([0.0, 1.0, 2000.0])
ROWS = jnp.stack([GAP, GAP[::-1]])
V = jnp.array([1.0, 2.0, -1.0])
VALUE = np.array([-2000.0, -1999.0, 0.0])
P = np.array([0.0, 0.0, 1.0])
JACOBIAN = np.eye(3) - P  # d log p_i / d x_j
HESSIAN = np.zeros((3, 3))  # of log p_0: -(diag p - p p')
GRADIENT = JACOBIAN[0]


def first(x):
    return log_softmax(x)[0]


def scanned(S):
    def f(x):
        return lax.scan(lambda c, r: (c + S(log_softmax)(r), None), jnp.zeros(3), x)[0]

    return f


EXTREME = {
    "eager": (lambda S: S(log_softmax), (GAP,), VALUE),
    "jit": (lambda S: jax.jit(S(log_softmax)), (GAP,), VALUE),
    "over jit": (lambda S: S(jax.jit(log_softmax)), (GAP,), VALUE),
    "grad": (lambda S: jax.grad(S(first)), (GAP,), GRADIENT),
    "jit of grad": (lambda S: jax.jit(jax.grad(S(first))), (GAP,), GRADIENT),
    "grad of jit": (lambda S: jax.grad(jax.jit(S(first))), (GAP,), GRADIENT),
    "over grad": (lambda S: S(jax.grad(first)), (GAP,), GRADIENT),
    "value_and_grad": (lambda S: jax.value_and_grad(S(first)), (GAP,), (VALUE[0], GRADIENT)),
    "over value_and_grad": (lambda S: S(jax.value_and_grad(first)), (GAP,), (VALUE[0], GRADIENT)),
    "jvp": (lambda S: lambda x: jax.jvp(S(log_softmax), (x,), (V,)), (GAP,), (VALUE, JACOBIAN @ V)),
    "over jvp": (lambda S: S(lambda x: jax.jvp(log_softmax, (x,), (V,))), (GAP,), (VALUE, JACOBIAN @ V)),
    "jacfwd": (lambda S: jax.jacfwd(S(log_softmax)), (GAP,), JACOBIAN),
    "jacrev": (lambda S: jax.jit(jax.jacrev(S(log_softmax))), (GAP,), JACOBIAN),
    "hessian": (lambda S: jax.jit(jax.hessian(S(first))), (GAP,), HESSIAN),
    "jacrev of jacfwd": (lambda S: jax.jit(jax.jacrev(jax.jacfwd(S(first)))), (GAP,), HESSIAN),
    "jacfwd of jacrev": (lambda S: jax.jit(jax.jacfwd(jax.jacrev(S(first)))), (GAP,), HESSIAN),
    "vmap": (lambda S: jax.vmap(S(log_softmax)), (ROWS,), np.stack([VALUE, VALUE[::-1]])),
    "over vmap": (lambda S: S(jax.vmap(log_softmax)), (ROWS,), np.stack([VALUE, VALUE[::-1]])),
    "vmap of grad": (lambda S: jax.vmap(jax.grad(S(first))), (ROWS,), np.stack([GRADIENT, 0 * GRADIENT])),
    "grad of vmap": (
        lambda S: jax.grad(lambda x: jax.vmap(S(first))(x).sum()), (ROWS,), np.stack([GRADIENT, 0 * GRADIENT])),
    "checkpoint around": (lambda S: jax.grad(jax.checkpoint(S(first))), (GAP,), GRADIENT),
    "checkpoint inside": (lambda S: jax.grad(S(jax.checkpoint(first))), (GAP,), GRADIENT),
    "linearize": (lambda S: lambda x: jax.linearize(S(log_softmax), x)[1](V), (GAP,), JACOBIAN @ V),
    "vjp": (lambda S: lambda x: jax.vjp(S(log_softmax), x)[1](V)[0], (GAP,), V @ JACOBIAN),
    "product with the hessian": (
        lambda S: jax.jit(lambda x: jax.jvp(jax.grad(S(first)), (x,), (V,))[1]), (GAP,), HESSIAN @ V),
    "reverse of the product": (
        lambda S: jax.jit(jax.grad(lambda x: jax.grad(S(first))(x) @ V)), (GAP,), HESSIAN @ V),
    "inside scan": (lambda S: scanned(S), (ROWS,), VALUE + VALUE[::-1]),
    "over scan": (lambda S: S(scanned(plain)), (ROWS,), VALUE + VALUE[::-1]),
    "grad inside scan": (
        lambda S: jax.grad(lambda x: scanned(S)(x)[0]), (ROWS,), np.stack([GRADIENT, JACOBIAN[2][::-1]])),
    "grad over scan": (
        lambda S: jax.grad(lambda x: S(scanned(plain))(x)[0]), (ROWS,), np.stack([GRADIENT, JACOBIAN[2][::-1]])),
    "inside fori": (
        lambda S: lambda x: lax.fori_loop(0, 2, lambda i, c: c + S(log_softmax)(x), jnp.zeros(3)), (GAP,), 2 * VALUE),
    "grad over fori": (
        lambda S: jax.grad(S(lambda x: lax.fori_loop(0, 2, lambda i, c: c + first(x), 0.0))), (GAP,), 2 * GRADIENT),
    "inside while": (
        lambda S: lambda x: lax.while_loop(lambda c: c[1] > -3000, lambda c: (c[0] + 1, c[1] + S(first)(x)), (0, 0.0)),
        (GAP,), (2, -4000.0)),
    "over while": (
        lambda S: S(lambda x: lax.while_loop(
            lambda c: c[1] > -3000, lambda c: (c[0] + 1, c[1] + first(x)), (0, 0.0))), (GAP,), (2, -4000.0)),
    "jvp over while": (
        lambda S: lambda x: jax.jvp(S(lambda x: lax.while_loop(
            lambda c: c[1] > -3000, lambda c: (c[0] + 1, c[1] + first(x)), (0, 0.0))[1]), (x,), (V,)),
        (GAP,), (-4000.0, 2 * GRADIENT @ V)),
    "inside cond": (lambda S: lambda x: lax.cond(x[0] == 0, S(log_softmax), jnp.sin, x), (GAP,), VALUE),
    "over cond": (lambda S: S(lambda x: lax.cond(x[0] == 0, log_softmax, jnp.sin, x)), (GAP,), VALUE),
    "grad over cond": (
        lambda S: jax.grad(S(lambda x: lax.cond(x[0] == 0, first, lambda y: y[1], x))), (GAP,), GRADIENT),
    "grad of a closed-over value": (
        lambda S: jax.grad(lambda w: S(lambda x: first(w * x))(GAP)), (1.0,), GRADIENT @ np.asarray(GAP)),
}  # fmt: skip


def right(result, expected):
    leaves, wanted = jax.tree.leaves(result), jax.tree.leaves(expected)
    return len(leaves) == len(wanted) and all(
        np.allclose(np.asarray(a, np.float64), b, rtol=1e-6, atol=1e-6) for a, b in zip(leaves, wanted, strict=True)
    )


@pytest.mark.parametrize("name", EXTREME)
def test_plain_fails_and_stabilized_is_right(name):
    make, arguments, expected = EXTREME[name]
    assert not right(make(plain)(*arguments), expected)
    assert right(make(stabilize)(*arguments), expected)
