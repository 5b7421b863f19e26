"""vmap, jit, scan, sharding; forward and reverse mode, second derivatives; dtypes."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stablegrad.losses import ctc_loss, ctc_posteriors, ctc_pseudo_cost

implementations = pytest.mark.parametrize("implementation", ["pure", "compiled"])


def inputs(rows=3, frames=12, classes=6, count=4, seed=0, scale=2.0):
    random = np.random.default_rng(seed)
    x = jnp.asarray((random.standard_normal((rows, frames, classes)) * scale).astype(np.float32))
    return x, jnp.asarray(random.integers(1, classes, (rows, count)))


@implementations
def test_vmap_of_one_row_is_the_batch(implementation):
    x, labels = inputs()
    frames, lengths = jnp.array([12, 9, 12]), jnp.array([4, 2, 0])

    def one(x, labels, frames, lengths):
        return ctc_loss(x, labels, frames, lengths, implementation=implementation)

    batch = one(x, labels, frames, lengths)
    np.testing.assert_allclose(jax.vmap(one)(x, labels, frames, lengths), batch, rtol=1e-6)
    gradients = jax.vmap(jax.grad(one))(x, labels, frames, lengths)
    whole = jax.grad(lambda x: one(x, labels, frames, lengths).sum())(x)
    np.testing.assert_allclose(gradients, whole, atol=1e-6)
    # One target for many inputs, and many targets for one input.
    same = jax.vmap(one, in_axes=(0, None, None, None))(x, labels[0], frames[0], lengths[0])
    np.testing.assert_allclose(same[0], batch[0], rtol=1e-6)
    other = jax.jit(jax.vmap(one, in_axes=(None, 0, None, 0)))(x[0], labels, frames[0], lengths)
    np.testing.assert_allclose(other[0], batch[0], rtol=1e-6)


@implementations
def test_leading_axes(implementation):
    x, labels = inputs(rows=6)
    flat = ctc_loss(x, labels, implementation=implementation)
    nested = ctc_loss(x.reshape(2, 3, 12, 6), labels.reshape(2, 3, 4), implementation=implementation)
    np.testing.assert_array_equal(nested, flat.reshape(2, 3))
    assert ctc_loss(x[0], labels[0], implementation=implementation).shape == ()


@implementations
def test_scan(implementation):
    x, labels = inputs()

    def step(total, row):
        value, gradient = jax.value_and_grad(lambda x: ctc_loss(x, row[1], implementation=implementation))(row[0])
        return total + value, gradient

    total, gradients = jax.jit(lambda x, labels: jax.lax.scan(step, 0.0, (x, labels)))(x, labels)
    np.testing.assert_allclose(total, ctc_loss(x, labels).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradients, jax.grad(lambda x: ctc_loss(x, labels).sum())(x), atol=1e-6)


@implementations
@pytest.mark.parametrize("kind", ["logits", "log_probs"])
def test_forward_mode_is_reverse_mode(implementation, kind):
    x, labels = inputs()
    x = jax.nn.log_softmax(x) if kind == "log_probs" else x
    direction = jnp.asarray(np.random.default_rng(5).standard_normal(x.shape).astype(np.float32))

    def loss(x):
        return ctc_loss(x, labels, kind=kind, implementation=implementation)

    value, slope = jax.jvp(loss, (x,), (direction,))
    np.testing.assert_allclose(value, loss(x), rtol=1e-6)
    (gradient,) = jax.vjp(loss, x)[1](jnp.ones(3))
    np.testing.assert_allclose(slope, jnp.sum(gradient * direction, axis=(1, 2)), rtol=1e-4)


@implementations
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_second_derivatives_at_500_frames(implementation, scale):
    """Against differences of the float64 gradient, along a direction."""
    from losses import reference

    x, labels = inputs(rows=1, frames=500, classes=20, count=60, seed=3, scale=scale)
    x, labels = x[0], labels[0]
    direction = np.random.default_rng(6).standard_normal(x.shape)

    def loss(x):
        return ctc_loss(x, labels, implementation=implementation)

    step = 1e-5
    ahead, behind = (np.asarray(x, np.float64) + sign * step * direction for sign in (1, -1))
    (up, slope_up), (down, slope_down) = (reference.loss_and_gradient(at, np.asarray(labels)) for at in (ahead, behind))
    tangent = jnp.asarray(direction, jnp.float32)
    _, slope = jax.jit(lambda x: jax.jvp(loss, (x,), (tangent,)))(x)
    right = (up - down) / (2 * step)
    assert abs(float(slope) - right) <= 1e-4 * max(1, abs(right))
    right = (slope_up - slope_down) / (2 * step)
    bar = 1e-4 * max(1, np.max(np.abs(right)))
    forward = jax.jit(lambda x: jax.jvp(jax.grad(loss), (x,), (tangent,))[1])(x)
    assert np.max(np.abs(forward - right)) <= bar
    reverse = jax.jit(jax.grad(lambda x: jnp.vdot(jax.grad(loss)(x), tangent)))(x)
    assert np.max(np.abs(reverse - right)) <= bar


@implementations
def test_third_derivative(implementation):
    x, labels = inputs(rows=1, frames=5, classes=3, count=2)
    x, labels, along = x[0], jnp.array([1, 2]), jnp.cos(jnp.arange(15.0).reshape(5, 3))

    def along_line(t):
        return ctc_loss(x + t * along, labels, implementation=implementation)

    second = jax.grad(jax.grad(along_line))
    difference = (second(0.05) - second(-0.05)) / 0.1
    np.testing.assert_allclose(jax.grad(second)(0.0), difference, atol=2e-3)


@implementations
def test_edges_have_finite_second_derivatives(implementation):
    x = jnp.array([[0.5, -jnp.inf, 1.0], [0.0, 1.0, 2.0], [-jnp.inf, 0.3, 0.1], [jnp.nan, jnp.nan, jnp.nan]])

    def loss(x, labels):
        return ctc_loss(x, labels, 3, implementation=implementation)

    for labels in (jnp.array([1]), jnp.array([2, 1]), jnp.array([1, 1, 1]), jnp.zeros((0,), int)):
        assert jnp.isfinite(jax.hessian(loss)(x, labels)).all()


@implementations
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_halves_compute_in_float32(implementation, dtype):
    x, labels = inputs()
    half = x.astype(dtype)

    def loss(x):
        return ctc_loss(x, labels, reduction="sum", implementation=implementation)

    value, gradient = jax.value_and_grad(loss)(half)
    right, slope = jax.value_and_grad(loss)(half.astype(jnp.float32))
    assert value.dtype == gradient.dtype == dtype
    each = ctc_loss(half, labels, implementation=implementation)
    assert (each == ctc_loss(half.astype(jnp.float32), labels, implementation=implementation).astype(dtype)).all()
    np.testing.assert_allclose(gradient.astype(jnp.float32), slope, atol=float(jnp.finfo(dtype).eps))
    assert abs(float(value) - float(right)) <= 2 * float(jnp.finfo(dtype).eps) * float(right)


@implementations
def test_no_work_is_done_twice(implementation):
    """Value and gradient together: one loop there and back, or one call of the kernel (branches aside)."""
    x, labels = inputs()
    step = jax.jit(jax.value_and_grad(lambda x: ctc_loss(x, labels, reduction="sum", implementation=implementation)))
    text = step.lower(x).compile().as_text()
    text = text[text.index("ENTRY ") :]
    assert text.count('custom_call_target="stablegrad_ctc"') == (implementation == "compiled")
    assert text.count(" while(") == (implementation == "pure")


SHARDED = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from stablegrad.losses import ctc_loss
assert len(jax.devices()) == 2
mesh = jax.make_mesh((2,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
random = np.random.default_rng(0)
x, labels = random.standard_normal((4, 9, 5)).astype(np.float32), random.integers(1, 5, (4, 3))
place = lambda a: jax.device_put(a, NamedSharding(mesh, PartitionSpec("batch")))
for implementation in ("pure", "compiled"):
    f = jax.value_and_grad(lambda x, labels: ctc_loss(x, labels, reduction="sum", implementation=implementation))
    right = f(jnp.asarray(x), jnp.asarray(labels))
    found = jax.jit(f)(place(x), place(labels))
    np.testing.assert_allclose(found[0], right[0], rtol=1e-6)
    np.testing.assert_allclose(found[1], right[1], atol=1e-6)
    each = jax.shard_map(
        lambda x, labels: jax.value_and_grad(
            lambda x: ctc_loss(x, labels, reduction="sum", implementation=implementation))(x)[1],
        mesh=mesh, in_specs=(PartitionSpec("batch"), PartitionSpec("batch")), out_specs=PartitionSpec("batch"),
    )
    np.testing.assert_allclose(jax.jit(each)(place(x), place(labels)), right[1], atol=1e-6)
print("same")
"""


def test_sharded_over_two_devices():
    source = str(Path(__file__).resolve().parents[2] / "src")
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": source}
    done = subprocess.run([sys.executable, "-c", SHARDED], env=environment, capture_output=True, text=True)
    assert done.stdout == "same\n", done.stderr[-3000:]


@implementations
def test_companions_under_jit_and_vmap(implementation):
    x, labels = inputs()
    for function in (ctc_posteriors, ctc_pseudo_cost):

        def one(x, labels, function=function):
            return function(x, labels, implementation=implementation)

        np.testing.assert_allclose(jax.jit(jax.vmap(one))(x, labels), one(x, labels), rtol=1e-5, atol=1e-6)
