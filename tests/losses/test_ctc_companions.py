"""Posteriors, pseudo cost, alignment and greedy decoding against enumeration of every path."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from losses import reference
from stablegrad.losses import ctc_alignment, ctc_greedy_decode, ctc_loss, ctc_posteriors, ctc_pseudo_cost

implementations = pytest.mark.parametrize("implementation", ["pure", "compiled"])


def problem(seed, frames=5, classes=3, count=2, scale=2.0):
    random = np.random.default_rng(seed)
    x = (random.standard_normal((frames, classes)) * scale).astype(np.float32)
    return x, random.integers(1, classes, count)


@implementations
@pytest.mark.parametrize("kind", ["logits", "log_probs"])
@pytest.mark.parametrize("seed", range(4))
def test_posteriors(implementation, kind, seed):
    x, labels = problem(seed)
    log_y = reference.log_softmax(x)
    given = x if kind == "logits" else jnp.asarray(log_y, jnp.float32)
    share = ctc_posteriors(given, labels, kind=kind, implementation=implementation)
    np.testing.assert_allclose(share, reference.enumerated(log_y, labels, 0)[1], atol=1e-6)
    np.testing.assert_allclose(share.sum(axis=1), 1, atol=1e-6)


@implementations
def test_posteriors_have_derivatives(implementation):
    x, labels = problem(0)

    def from_loss(x):
        return jax.nn.softmax(x) - jax.grad(lambda x: ctc_loss(x, labels))(x)

    found = jax.jacrev(lambda x: ctc_posteriors(x, labels, implementation=implementation))(jnp.asarray(x))
    np.testing.assert_allclose(found, jax.jacfwd(from_loss)(jnp.asarray(x)), atol=2e-6)


@implementations
@pytest.mark.parametrize("kind", ["logits", "log_probs"])
def test_pseudo_cost_has_the_gradient_of_the_loss_and_bounds_it(implementation, kind):
    x, labels = problem(1, frames=20, classes=6, count=5)
    x = jax.nn.log_softmax(x) if kind == "log_probs" else jnp.asarray(x)
    options = {"kind": kind, "implementation": implementation}
    for reduction in ("none", "sum", "mean", "mean_per_label"):
        loss, gradient = jax.value_and_grad(functools.partial(ctc_loss, reduction=reduction, **options))(x, labels)
        cost, slope = jax.value_and_grad(functools.partial(ctc_pseudo_cost, reduction=reduction, **options))(x, labels)
        np.testing.assert_allclose(slope, gradient, atol=1e-6)
        assert cost > loss
    tangent = jnp.cos(jnp.arange(x.size, dtype=float)).reshape(x.shape)
    forward = jax.jvp(lambda x: ctc_pseudo_cost(x, labels, **options), (x,), (tangent,))[1]
    np.testing.assert_allclose(
        forward, jnp.vdot(jax.grad(lambda x: ctc_loss(x, labels, **options))(x), tangent), rtol=1e-4
    )


def test_pseudo_cost_at_infinite_logits():
    x = jnp.array([[0.5, -jnp.inf, 1.0], [0.0, 1.0, 2.0], [-jnp.inf, 0.3, 0.1]])
    labels = jnp.array([1])
    cost, slope = jax.value_and_grad(lambda x: ctc_pseudo_cost(x, labels))(x)
    assert jnp.isfinite(cost)
    np.testing.assert_allclose(slope, jax.grad(lambda x: ctc_loss(x, labels))(x), atol=1e-6)


def ranges(classes, labels, blank):
    """The frames of each label on a path, by hand."""
    found, last = [], blank
    for t, c in enumerate(classes):
        if c != blank:
            if c == last:
                found[-1][1] = t + 1
            else:
                found.append([t, t + 1])
        last = c
    return found


@given(seed=st.integers(0, 10**6), frames=st.integers(1, 5), labels=st.lists(st.integers(1, 2), max_size=3))
def test_alignment(seed, frames, labels):
    x, _ = problem(seed, frames=frames)
    padded = np.concatenate([x, np.full((5 - frames, 3), np.nan, np.float32)])
    target = np.array(labels + [0] * (3 - len(labels)), int)
    found = ctc_alignment(padded, target, frames, len(labels))
    log_y = reference.log_softmax(x)
    assert (found.classes[frames:] == -1).all()
    assert (found.starts[len(labels) :] == -1).all()
    if not reference.paths(frames, 3, labels, 0):
        assert found.score == -np.inf
        for part in found[1:]:
            assert (part == -1).all()
        return
    path = np.asarray(found.classes)[:frames]
    assert reference.collapse(path, 0) == labels
    assert abs(found.score - reference.enumerated(log_y, labels, 0)[2]) <= 1e-5
    assert abs(found.score - log_y[np.arange(frames), path].sum()) <= 1e-5
    spans = np.stack([found.starts, found.ends], axis=1)[: len(labels)].tolist()
    assert spans == ranges(path, labels, 0)
    for n, (start, end) in enumerate(spans):
        assert (found.label_index[start:end] == n).all()
    assert ((np.asarray(found.label_index)[:frames] >= 0) == (path != 0)).all()


def test_alignment_of_a_batch_under_jit_and_vmap():
    random = np.random.default_rng(0)
    x, labels = random.standard_normal((3, 10, 4)).astype(np.float32), random.integers(1, 4, (3, 3))
    batch = ctc_alignment(x, labels)
    for found in (jax.jit(ctc_alignment)(x, labels), jax.vmap(ctc_alignment)(x, labels)):
        for one, other in zip(found, batch, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    gradient = jax.grad(lambda x: ctc_alignment(x, labels).score.sum())(jnp.asarray(x))
    right = jax.nn.one_hot(batch.classes, 4) - jax.nn.softmax(x)
    np.testing.assert_allclose(gradient, right, atol=1e-6)


def test_alignment_of_many_frames():
    """2000 confident frames: the path that the inputs were made of."""
    random = np.random.default_rng(1)
    labels = random.integers(1, 20, 100)
    path = np.zeros(2000, int)
    for n, label in enumerate(labels):
        path[20 * n + 5 : 20 * n + 12] = label
    x = 30 * np.eye(20, dtype=np.float32)[path] + random.standard_normal((2000, 20)).astype(np.float32)
    found = ctc_alignment(x, labels)
    np.testing.assert_array_equal(found.classes, path)
    np.testing.assert_array_equal(found.starts, 20 * np.arange(100) + 5)
    np.testing.assert_array_equal(found.ends, 20 * np.arange(100) + 12)


@given(seed=st.integers(0, 10**6), frames=st.integers(0, 6), blank=st.integers(0, 2))
def test_greedy_decode(seed, frames, blank):
    x, _ = problem(seed, frames=6)
    x[frames:] = np.nan
    found = ctc_greedy_decode(x, frames, blank=blank)
    log_y = reference.log_softmax(x[:frames]) if frames else np.zeros((0, 3))
    right = reference.collapse(log_y.argmax(axis=1), blank)
    assert found.lengths == len(right)
    assert found.labels.tolist() == right + [-1] * (6 - len(right))
    assert abs(found.score - log_y.max(axis=1, initial=-np.inf).sum() if frames else found.score) <= 1e-5


def test_greedy_decode_where_it_is_traced():
    x = jnp.zeros((2, 3, 4)).at[:, :, 2].set(1)
    found = jax.jit(ctc_greedy_decode)(x, jnp.array([3, 9]))
    assert found.lengths.tolist() == [1, 0]
    np.testing.assert_array_equal(np.isnan(found.score), [False, True])
