"""Inputs at which CTC is infinite, undefined or wrong, and what the padding holds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from losses import reference
from stablegrad.losses import ctc_alignment, ctc_greedy_decode, ctc_loss, ctc_posteriors, ctc_pseudo_cost

implementations = pytest.mark.parametrize("implementation", ["pure", "compiled"])
LOSSES = (ctc_loss, ctc_pseudo_cost)


def value_and_gradient(function, x, *rest, **options):
    value, pull = jax.vjp(lambda x: function(x, *rest, **options), jnp.asarray(x, jnp.float32))
    return np.asarray(value), np.asarray(pull(jnp.ones_like(value))[0])


@implementations
@pytest.mark.parametrize("function", LOSSES)
def test_padding_may_hold_anything(function, implementation):
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 8, 5)).astype(np.float32)
    labels = random.integers(1, 5, (3, 4))
    frames, lengths = np.array([8, 5, 6]), np.array([4, 2, 0])
    right, slope = value_and_gradient(function, x, labels, frames, lengths, implementation=implementation)
    for filling in (np.nan, np.inf, -np.inf, 3e38):
        filled, other = x.copy(), labels.copy()
        filled[np.arange(8) >= frames[:, None]] = filling
        other[np.arange(4) >= lengths[:, None]] = random.choice([-7, 99, 0])
        found, gradient = value_and_gradient(function, filled, other, frames, lengths, implementation=implementation)
        np.testing.assert_array_equal(found, right)
        np.testing.assert_array_equal(gradient, slope)


@implementations
@pytest.mark.parametrize("function", LOSSES)
@pytest.mark.parametrize("kind", ["logits", "log_probs"])
def test_traced_invalid_rows_alone_are_nan(function, implementation, kind):
    x = jnp.log(jnp.full((7, 4, 3), 1 / 3))
    labels = jnp.array([[1, 2], [1, 7], [0, 1], [1, 1], [1, 2], [1, -3], [1, 2]])
    frames, lengths = jnp.array([4, 4, 4, 5, 4, 4, -1]), jnp.array([2, 2, 2, 2, 3, 1, 2])
    invalid = [False, True, True, True, True, False, True]

    @jax.jit
    def run(x, labels, frames, lengths):
        def total(x):
            each = function(x, labels, frames, lengths, kind=kind, implementation=implementation)
            return each.sum(), each

        return jax.grad(total, has_aux=True)(x)

    gradient, each = run(x, labels, frames, lengths)
    np.testing.assert_array_equal(np.isnan(each), invalid)
    np.testing.assert_array_equal(np.isnan(gradient).all(axis=(1, 2)), invalid)
    np.testing.assert_array_equal(np.isnan(gradient).any(axis=(1, 2)), invalid)
    share = jax.jit(lambda *a: ctc_posteriors(*a, kind=kind, implementation=implementation))(x, labels, frames, lengths)
    np.testing.assert_array_equal(np.isnan(share).any(axis=(1, 2)), invalid)
    score = jax.jit(lambda *a: ctc_alignment(*a, kind=kind).score)(x, labels, frames, lengths)
    np.testing.assert_array_equal(np.isnan(score), invalid)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [[1, 5], [1, 2]]}, r"labels\[0, 1\] = 5 is none of the 3 classes, 0 to 2"),
        ({"labels": [[1, 2], [-1, 2]]}, r"labels\[1, 0\] = -1 is none"),
        ({"labels": [[1, 2], [1, 0]]}, r"labels\[1, 1\] = 0 is the blank"),
        ({"input_lengths": [4, 5]}, r"input_lengths\[1\] is 5, but there are 4 frames"),
        ({"input_lengths": [-1, 4]}, r"input_lengths\[0\] is -1"),
        ({"label_lengths": [3, 0]}, r"label_lengths\[0\] is 3, but there are 2 labels"),
        ({"blank": 3}, "blank must be one of the 3 classes, 0 to 2, not 3"),
        ({"blank": -1}, "blank must be one of the 3 classes"),
        ({"kind": "probs"}, "kind must be 'logits' or 'log_probs', not 'probs'"),
        ({"labels": [1, 2]}, "must have the same leading axes"),
        ({"labels": [[1, 2]]}, "their leading axes must be"),
        ({"input_lengths": [4, 4, 4]}, "one number is needed for each"),
    ],
)
@pytest.mark.parametrize("function", [ctc_loss, ctc_pseudo_cost, ctc_posteriors, ctc_alignment])
def test_known_invalid_values_raise(function, change, message):
    arguments = {"inputs": jnp.zeros((2, 4, 3)), "labels": [[1, 2], [2, 1]]} | change
    arguments = {k: np.array(v) if isinstance(v, list) else v for k, v in arguments.items()}
    with pytest.raises(ValueError, match=message):
        function(**arguments)


def test_other_mistakes():
    x, labels = jnp.zeros((4, 3)), np.array([1])
    with pytest.raises(TypeError, match="labels must be integers, not float32"):
        ctc_loss(x, jnp.array([1.0]))
    with pytest.raises(TypeError, match="real"):
        ctc_loss(x + 1j, labels)
    with pytest.raises(ValueError, match="reduction must be"):
        ctc_loss(x, labels, reduction="average")
    with pytest.raises(ValueError, match="implementation must be"):
        ctc_loss(x, labels, implementation="fast")
    with jax.enable_x64(True), pytest.raises(ValueError, match="float32, not in float64"):
        ctc_loss(jnp.zeros((4, 3), jnp.float64), labels, implementation="compiled")
    with pytest.raises(ValueError, match=r"input_lengths is 9, but there are 4 frames"):
        ctc_greedy_decode(x, 9)


@implementations
def test_closed_over_labels_are_checked_under_jit(implementation):
    with pytest.raises(ValueError, match="is none of the 3 classes"):
        jax.jit(lambda x: ctc_loss(x, np.array([7]), implementation=implementation))(jnp.zeros((4, 3)))


@implementations
@pytest.mark.parametrize("function", LOSSES)
def test_impossible_targets(function, implementation):
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    labels = np.array([[1, 1, 2], [1, 2, 3]])  # the first needs four frames
    value, gradient = value_and_gradient(function, x, labels, implementation=implementation)
    assert value[0] == np.inf
    assert np.isfinite(value[1])
    assert not gradient[0].any()
    assert gradient[1].any()


@implementations
def test_zero_infinity(implementation):
    x = np.random.default_rng(0).standard_normal((3, 3, 4))
    labels = np.array([[1, 1, 2], [1, 2, 3], [1, 2, 2]])
    options = {"zero_infinity": True, "implementation": implementation}
    value, gradient = value_and_gradient(ctc_loss, x, labels, **options)
    assert value[0] == value[2] == 0
    assert value[1] > 0
    assert not gradient[[0, 2]].any()
    mean, slope = value_and_gradient(ctc_loss, x, labels, reduction="mean", **options)
    np.testing.assert_allclose(mean, value[1] / 3, rtol=1e-6)
    np.testing.assert_allclose(slope, gradient / 3, rtol=1e-6)


@implementations
def test_undefined_stays_undefined(implementation):
    labels = np.array([1])
    for bad in (np.nan, np.inf):
        x = np.zeros((2, 4, 3))
        x[0, 1, 2] = bad
        value, gradient = value_and_gradient(ctc_loss, x, np.array([[1], [1]]), implementation=implementation)
        assert np.isnan(value[0])
        assert np.isfinite(value[1])
        assert np.isfinite(gradient[1]).all()
    x = np.zeros((4, 3))
    x[2] = -np.inf  # a softmax over nothing
    assert np.isnan(value_and_gradient(ctc_loss, x, labels, implementation=implementation)[0])


@implementations
def test_empty_shapes(implementation):
    options = {"implementation": implementation}
    assert ctc_loss(jnp.zeros((0, 3)), jnp.zeros((0,), int), **options) == 0
    assert ctc_loss(jnp.zeros((0, 3)), jnp.array([1]), **options) == jnp.inf
    assert ctc_loss(jnp.zeros((4, 1)), jnp.zeros((0,)), **options) == 0
    assert ctc_loss(jnp.zeros((0, 5, 3)), jnp.zeros((0, 2), int), **options).shape == (0,)
    np.testing.assert_allclose(ctc_loss(jnp.zeros((5, 3)), jnp.zeros((0,), int), **options), 5 * np.log(3), rtol=1e-6)
    assert jax.grad(lambda x: ctc_loss(x, jnp.zeros((0,), int), **options))(jnp.zeros((0, 3))).shape == (0, 3)


@implementations
def test_losses_of_certain_targets_keep_their_digits(implementation):
    """1 - p in float32 would be a multiple of 6e-8."""
    labels = np.array([1, 2, 2, 3])
    path = np.array([0, 1, 1, 0, 2, 0, 0, 2, 3, 3])
    for height in (2.0, 6.0, 12.0, 20.0, 40.0):
        x = height * np.eye(5)[path] + 0.3 * np.random.default_rng(0).standard_normal((10, 5))
        value, _ = value_and_gradient(ctc_loss, x, labels, implementation=implementation)
        x = np.float64(np.float32(x))
        y = np.exp(reference.log_softmax(x))
        others = probability_of_others(y, labels)
        right = -np.log1p(-others) if others < 0.9 else reference.loss_and_gradient(x, labels)[0]
        assert abs(value - right) <= 2e-6 * right


def probability_of_others(y, labels, blank=0):
    """By following every output symbol by symbol, without any difference; float64."""
    ways, lost = {(0, None): 1.0}, 0.0
    for frame in y:
        after = {}
        for (done, last), weight in ways.items():
            for symbol, p in enumerate(frame):
                if symbol == blank:
                    key = (done, None)
                elif symbol == last:
                    key = (done, last)
                elif done < len(labels) and symbol == labels[done]:
                    key = (done + 1, symbol)
                else:
                    lost += weight * p
                    continue
                after[key] = after.get(key, 0.0) + weight * p
        ways = after
    return lost + sum(weight for (done, _), weight in ways.items() if done < len(labels))


@implementations
@pytest.mark.parametrize("scale", [1e5, 1e7, 1e9, 1e20])
def test_far_out(implementation, scale):
    """Masks such as -1e9 in a target: the loss is right, the gradient a difference of distributions."""
    random = np.random.default_rng(4)
    x = (random.standard_normal((12, 6)) * scale).astype(np.float32)
    labels = np.array([1, 2, 5])
    value, gradient = value_and_gradient(ctc_loss, x, labels, implementation=implementation)
    right, _ = reference.loss_and_gradient(x, labels)
    assert abs(value - right) <= 1e-6 * right
    assert np.max(np.abs(gradient.sum(axis=1))) <= 1e-5
    assert np.max(np.abs(gradient)) <= 1 + 1e-6


@implementations
@given(data=st.data())
def test_small_problems_against_enumeration(implementation, data):
    frames, classes = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 3))
    blank = data.draw(st.integers(0, classes - 1))
    others = [c for c in range(classes) if c != blank]
    labels = data.draw(st.lists(st.sampled_from(others), max_size=3))
    scores = st.one_of(st.floats(-8, 8, width=32), st.sampled_from([-90.0, 90.0, -300.0, 300.0]))
    x = np.array(data.draw(st.lists(scores, min_size=frames * classes, max_size=frames * classes)))
    x = np.float32(x).reshape(frames, classes)
    padded = np.concatenate([x, np.full((4 - frames, classes), np.nan, np.float32)])
    target = np.array(labels + [99] * (3 - len(labels)), int)
    rest = (target, frames, len(labels))
    value, gradient = value_and_gradient(ctc_loss, padded, *rest, blank=blank, implementation=implementation)
    log_y = reference.log_softmax(x)
    if not reference.paths(frames, classes, labels, blank):
        assert value == np.inf
        assert not gradient.any()
        return
    right, share, _ = reference.enumerated(log_y, labels, blank)
    if np.isfinite(right):
        assert abs(value - right) <= 1e-6 * abs(right) + 1e-15
        assert np.max(np.abs(gradient[:frames] - (np.exp(log_y) - share))) <= 2e-6
    assert value >= 0
    assert not gradient[frames:].any()
