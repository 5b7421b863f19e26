"""Ordinary inputs: the same as torch and optax give, and as the float64 recursion gives more exactly than either."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from losses import reference
from stablegrad.losses import ctc_loss

implementations = pytest.mark.parametrize("implementation", ["pure", "compiled"])
LENGTHS = (np.array([30, 25, 30, 12]), np.array([6, 8, 0, 3]))


def batch(seed=0, rows=4, frames=30, classes=11, count=8, scale=2.0):
    random = np.random.default_rng(seed)
    x = (random.standard_normal((rows, frames, classes)) * scale).astype(np.float32)
    return x, random.integers(1, classes, (rows, count))


@implementations
@pytest.mark.parametrize("reduction", ["none", "sum", "mean_per_label"])
def test_torch(implementation, reduction):
    x, labels = batch()
    frames, lengths = LENGTHS

    def total(x):
        found = ctc_loss(x, labels, frames, lengths, reduction=reduction, implementation=implementation)
        return jnp.sum(found), found

    (_, ours), gradient = jax.value_and_grad(total, has_aux=True)(jnp.asarray(x))
    # In float64: in float32 its gradients are off by 1e-5 here, more than ours.
    logits = torch.tensor(x.transpose(1, 0, 2).astype(np.float64), requires_grad=True)
    theirs = torch.nn.functional.ctc_loss(
        logits.log_softmax(-1),
        torch.tensor(labels),
        torch.tensor(frames),
        torch.tensor(lengths),
        reduction={"mean_per_label": "mean"}.get(reduction, reduction),
    )
    theirs.sum().backward()
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient, logits.grad.numpy().transpose(1, 0, 2), rtol=0, atol=2e-6)


@implementations
def test_optax(implementation):
    x, labels = batch(seed=1)
    frames, lengths = LENGTHS
    frame_padding = (np.arange(x.shape[1]) >= frames[:, None]).astype(np.float32)
    label_padding = (np.arange(labels.shape[1]) >= lengths[:, None]).astype(np.float32)
    ours, pull = jax.vjp(lambda x: ctc_loss(x, labels, frames, lengths, implementation=implementation), x)
    theirs, their_pull = jax.vjp(lambda x: optax.ctc_loss(x, frame_padding, labels, label_padding), x)
    weights = jnp.array([1.0, -2.0, 0.5, 3.0])
    np.testing.assert_allclose(ours, theirs, rtol=3e-6)
    np.testing.assert_allclose(pull(weights)[0], their_pull(weights)[0], rtol=0, atol=1e-4)


@implementations
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1000.0])
def test_float64_recursion(implementation, scale):
    x, labels = batch(seed=2, frames=60, scale=scale)
    frames, lengths = np.array([60, 50, 60, 20]), LENGTHS[1]
    loss, pull = jax.vjp(lambda x: ctc_loss(x, labels, frames, lengths, implementation=implementation), x)
    gradient = np.asarray(pull(jnp.ones(4))[0], np.float64)
    for n in range(4):
        right, slope = reference.loss_and_gradient(x[n, : frames[n]], labels[n, : lengths[n]])
        assert abs(loss[n] - right) <= 1e-6 * right
        assert np.max(np.abs(gradient[n, : frames[n]] - slope)) <= 2e-5
        assert not gradient[n, frames[n] :].any()


def test_float64():
    x, labels = batch(seed=3, frames=60)
    with jax.enable_x64(True):
        loss, gradient = jax.value_and_grad(lambda x: ctc_loss(x, labels[0]))(jnp.asarray(x[0], jnp.float64))
        assert loss.dtype == gradient.dtype == jnp.float64
        right, slope = reference.loss_and_gradient(x[0], labels[0])
        assert abs(loss - right) <= 1e-14 * right
        assert np.max(np.abs(gradient - slope)) <= 1e-12
