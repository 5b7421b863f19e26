"""Operations along axes, moves, bodies and factorisations: against the engine in float64, value and gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from stablegrad.truth import truth

RANDOM = np.random.default_rng(0)
U = RANDOM.uniform(0.2, 0.9, (2, 3))
V = RANDOM.uniform(1.2, 3.0, (2, 3))
M = RANDOM.normal(size=(3, 4))
B = RANDOM.normal(size=(2, 2, 3))
C = RANDOM.normal(size=(2, 3, 2))
IMAGE, KERNEL = RANDOM.normal(size=(2, 4, 4, 3)), RANDOM.normal(size=(4, 2, 2, 2))
INDEX = np.array([0, 2, 2])

AXES = {
    "sum": (lambda x: jnp.sum(x**2, 0), U),
    "product": (lambda x: jnp.prod(x, 1), U),
    "max": (lambda x: jnp.max(x, 1) ** 2, U),
    "min": (lambda x: jnp.min(x, 0) ** 2, U),
    "mean, std": (lambda x: (jnp.mean(x), jnp.std(x, 1)), U),
    "argmax": (lambda x: (jnp.argmax(x, 1), x[0][jnp.argmin(x[1])] ** 2), U),
    "cumsum": (lambda x: lax.cumsum(x, 1) ** 2, U),
    "cumprod, reversed": (lambda x: lax.cumprod(x, 1, reverse=True) ** 2, U),
    "cummax": (lambda x: lax.cummax(x, 1) ** 2, U),
    "cummin, reversed": (lambda x: lax.cummin(x, 0, reverse=True) ** 2, U),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), U),
    "matmul": (lambda x, y: x @ y, U, M),
    "einsum": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), B, C),
    "outer": (lambda x, y: jnp.einsum("i,j->ji", x[0], y[1]), U, V),
    "contract over nothing": (lambda x: x[:, :0] @ x[:, :0].T + x[0, 0], U),
    "mean pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), "SAME"), U),
    "max pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID") ** 2, U),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (2, 1), ((1, 2), (0, 1)), rhs_dilation=(1, 2), feature_group_count=2), IMAGE, KERNEL),
    "convolution, channels last": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), IMAGE[:, :3, :3, :2], KERNEL),
    "transposed convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), ((0, 1), (1, 0)), lhs_dilation=(2, 2)),
        IMAGE[:, :2], KERNEL),
    "batch groups": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", batch_group_count=2), IMAGE[:, :2], KERNEL),
}  # fmt: skip

MOVES = {
    "take": (lambda x: jnp.take(x, INDEX, axis=1) ** 2, U),
    "take with a fill": (lambda x: jnp.take(x, np.array([0, 7]), axis=1, mode="fill", fill_value=3.0) ** 2, U),
    "take, out of bounds": (lambda x: jnp.take(x, np.array([0, 7]), axis=1), U),
    "take, clipped": (lambda x: jnp.take(x, np.array([0, 7]), axis=1, mode="clip") ** 2, U),
    "along an axis": (lambda x: jnp.take_along_axis(x, np.array([[0], [2]]), 1) ** 2, U),
    "a one-hot of indices": (lambda x: jax.nn.one_hot(INDEX[:2], 3) * x, U),
    "set": (lambda x: x.at[:, 1].set(x[:, 0] ** 2), U),
    "add to one place twice": (lambda x: x.at[0, np.array([1, 1])].add(x[1, :2]) ** 2, U),
    "add out of bounds": (lambda x: x.at[np.array([0, 5])].add(x) ** 2, U),
    "multiply into": (lambda x: x.at[0, np.array([0, 1])].multiply(x[1, :2], unique_indices=True) ** 2, U),
    "max into": (lambda x: x.at[0, np.array([1, 1])].max(2 * x[1, :2]) ** 2, U),
    "dynamic slice": (lambda x: lax.dynamic_slice(x, (0, 1), (2, 2)) ** 2, U),
    "dynamic update": (lambda x: lax.dynamic_update_slice(x, x[:1, :1] ** 2, (1, 1)), U),
    "pad": (lambda x: lax.pad(x, 2.0, ((1, 0, 1), (-1, 2, 0))) ** 2, U),
    "concatenate": (lambda x, y: jnp.concatenate([x, y * x], 0) ** 2, U, V),
    "stack, tile, roll": (lambda x, y: (jnp.stack([x, y], 1) ** 2, jnp.tile(x, (2, 2)), jnp.roll(x, 1, 1) * x), U, V),
    "flip, transpose, reshape": (lambda x: (x[::-1] * x, x.T**2, x.reshape(3, 2) ** 3), U),
    "split": (lambda x: jnp.split(x, [1], axis=1), U),
    "sort": (lambda x: jnp.sort(x, 1) * jnp.arange(3.0), U),
    "sort, descending": (lambda x: jnp.sort(x, 0, descending=True) * jnp.arange(2.0)[:, None], U),
    "argsort": (lambda x: x[0][jnp.argsort(x[1])] ** 2 * jnp.arange(3.0), U),
    "top_k": (lambda x: lax.top_k(x, 2)[0] * jnp.arange(1, 3.0), U),
    "median": (lambda x: jnp.median(x, 1), U),
    "where": (lambda x: jnp.where(x > 0.5, x**2, jnp.sin(x)), U),
    "select of three": (lambda x: lax.select_n(jnp.array([[0, 1, 2], [2, 1, 0]]), x, x**2, x**3), U),
    "integers": (lambda x: x * (jnp.arange(3) // 2 % 2 * 3 - 1) + jnp.arange(3) ** 2, U),
    "rounding": (lambda x: jnp.floor(4 * x) + jnp.round(3 * x) + jnp.sign(x - 0.5) + x, U),
    "stop_gradient": (lambda x: x * lax.stop_gradient(x), U),
    "a barrier": (lambda x: lax.optimization_barrier((x, x**2))[1], U),
    "a cast of integers": (lambda x: (10 * x).astype(jnp.int32).astype(x.dtype) * x, U),
    "random bits": (lambda x: x * jax.random.uniform(jnp.array([0, 7], jnp.uint32), (2, 3)), U),
}  # fmt: skip

BODIES = {
    "scan": (lambda x: lax.scan(lambda c, a: (c * a, jnp.sin(c)), 1.0, x[0]), U),
    "scan, reversed": (lambda x: lax.scan(lambda c, a: (c * a + x[1, 0], jnp.sin(c)), 1.0, x[0], reverse=True), U),
    "scan of nothing": (lambda x: lax.scan(lambda c, a: (c * 2, a), x[0, 0], x[:0]), U),
    "scan of a product": (lambda x: lax.scan(lambda c, _: (c * x[0, 0], None), x[0, 1], None, length=5)[0], U),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + i, x), U),
    "cond": (lambda x: lax.cond(x[0, 0] > 10.0, jnp.sin, jnp.cos, x), U),
    "switch": (lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], x), U),
    "map": (lambda x: lax.map(lambda z: z**2, x), U),
    "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1), U),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), U),
    "vmap of a jit": (jax.vmap(jax.jit(lambda x: jnp.dot(x, x))), U),
    "a gradient": (lambda x: jax.grad(lambda z: jnp.sum(jnp.log(jax.nn.softmax(z)) * V))(x), U),
    "a backward scan": (
        lambda x: jax.grad(lambda z: lax.scan(lambda c, a: (c * jnp.exp(a), None), 1.0, z[0])[0])(x), U),
    "library functions": (
        lambda x: (jax.nn.softmax(x), jax.nn.gelu(x), jax.nn.silu(x), jax.nn.elu(x - 0.5), jax.nn.relu(x - 0.5)), U),
    "weighted logsumexp": (lambda x: jax.nn.logsumexp(x, axis=1, b=V), U),
    "Cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(2)), U),
    "determinant": (lambda x: jnp.linalg.det(x.T @ x + jnp.eye(3)), U),
    "log-determinant": (lambda x: jnp.linalg.slogdet(x.T @ x + jnp.eye(3))[1], U),
    "solve": (lambda x: jnp.linalg.solve(x @ x.T, jnp.ones(2)), U),
    "inverse": (lambda x: jnp.linalg.inv(x.T @ x + jnp.eye(3)), U),
    "triangular": (
        lambda x: jax.scipy.linalg.solve_triangular(x[:, :2] + jnp.eye(2), x, trans=1, lower=True), U),
}  # fmt: skip

CASES = {**AXES, **MOVES, **BODIES}


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", CASES)
def test_as_the_engine_in_float64(name):
    function, *arguments = CASES[name]
    arguments = [jnp.asarray(a) for a in arguments]

    def total(*values):
        leaves = jax.tree_util.tree_leaves(function(*values))
        return sum(jnp.sum(x) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating))

    found = truth(function, *arguments, conditions=False)
    assert not found.undecided, found.reasons
    places = tuple(range(len(arguments)))
    right, slopes = jax.jit(lambda *a: (function(*a), jax.grad(total, places)(*a)))(*arguments)
    right = jax.tree_util.tree_leaves(right)
    got = jax.tree_util.tree_leaves(found.value)
    for a, b in zip(got, right, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    for a, b in zip(found.gradient, slopes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["matmul", "product", "scan", "a gradient", "Cholesky", "library functions"])
def test_second_derivatives_as_the_engine_has_them(name):
    function, *arguments = CASES[name]
    arguments = [jnp.asarray(a) for a in arguments]

    def total(*values):
        return sum(jnp.sum(x) for x in jax.tree_util.tree_leaves(function(*values)))

    found = truth(function, *arguments)
    count = range(len(arguments))
    hessian = jax.jit(jax.hessian(total, tuple(count)))(*arguments)
    for i in count:
        size = arguments[i].size
        blocks = [np.abs(np.reshape(hessian[i][j], (size, -1))) @ np.abs(np.ravel(arguments[j])) for j in count]
        right = np.reshape(sum(blocks), arguments[i].shape)
        np.testing.assert_allclose(found.gradient_sensitivity[i], right, rtol=1e-8, atol=1e-10)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = right / np.abs(found.gradient[i])
        sound = np.abs(found.gradient[i]) > 1e-6
        np.testing.assert_allclose(found.gradient_condition[i][sound], relative[sound], rtol=1e-7, atol=1e-9)


def test_the_condition_of_each_value():
    found = truth(lambda x, y: x @ y, jnp.asarray(U), jnp.asarray(M))
    right = 2 * np.abs(U) @ np.abs(M)
    np.testing.assert_allclose(found.sensitivity, right)
    np.testing.assert_allclose(found.condition, right / np.abs(U @ M))


def test_a_batch_of_while_loops():
    def halve(x):
        return lax.while_loop(lambda c: c > 1.0, lambda c: c / 2, x)

    found = truth(jax.vmap(halve), jnp.array([0.5, 5.0, 100.0]))
    np.testing.assert_array_equal(found.value, [0.5, 0.625, 0.78125])
    np.testing.assert_array_equal(found.gradient[0], [1, 1 / 8, 1 / 128])


def test_a_persons_own_derivative_rule():
    @jax.custom_vjp
    def clipped(x):
        return jnp.sin(x)

    clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, c: (7 * c,))

    @jax.custom_jvp
    def other(x):
        return jnp.sin(x)

    other.defjvp(lambda p, t: (jnp.sin(p[0]), 7 * t[0]))
    for function in (clipped, other):
        found = truth(lambda x, f=function: f(x[0]) + x[1], jnp.array([1.0, 2.0]))
        assert found.value == np.sin(1.0) + 2
        assert found.gradient_decided[0].tolist() == [False, True]
        assert found.reasons == ("user's own derivative rule",)


def test_what_has_no_meaning_is_said_with_its_place():
    found = truth(lambda x: jnp.linalg.svd(x, compute_uv=False)[0] + x[0, 0], jnp.eye(2))
    assert found.undecided and np.isnan(found.value)
    assert "svd" in found.reasons[0] and "test_structure.py" in found.reasons[0]
    found = truth(lambda x: jnp.abs(jnp.fft.fft(x)), jnp.ones(2))
    assert found.undecided and np.all(np.isnan(found.value))


def test_an_unknown_operation_in_the_branch_not_taken():
    found = truth(lambda x: jnp.where(x[0, 0] > 0, x[0, 1], jnp.linalg.svd(x, compute_uv=False)[0]), jnp.eye(2))
    assert not found.undecided and found.value == 0


def test_bits_of_floats():
    found = truth(lambda x: lax.bitcast_convert_type(x, jnp.int32), jnp.float32(1.5))
    assert found.value == 0x3FC00000
    found = truth(lambda x: jnp.frexp(x)[1], jnp.float32(12.0))
    assert found.value == 4
