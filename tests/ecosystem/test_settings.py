"""JAX's own settings and checks: what passes plainly passes stabilized, and an honest NaN is still caught."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecosystem.losses import LABELS, LOGITS, LOSSES
from rules.test_switches import EXAMPLES
from stablegrad import stabilize

losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@losses
@pytest.mark.parametrize("check", ["jax_debug_nans", "jax_debug_infs"])
def test_what_is_finite_raises_nothing(loss, check):
    with jax.debug_nans(check == "jax_debug_nans"), jax.debug_infs(check == "jax_debug_infs"):
        value, slope = jax.jit(jax.value_and_grad(stabilize(loss)))(LOGITS, LABELS)
    assert np.isfinite(value) and np.isfinite(slope).all()


def test_an_honest_nan_is_still_found():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        stabilize(lambda x: jnp.log(x) + jnp.log(jnp.exp(x)))(np.float32(-1.0))


@losses
def test_double_precision_switched_on_and_off(loss):
    stable = stabilize(loss)
    single = stable(LOGITS, LABELS)
    with jax.enable_x64(True):
        double = stable(LOGITS.astype(np.float64), LABELS.astype(np.float64))
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double, rtol=1e-6)
    assert stable(LOGITS, LABELS) == single


def _outcome(f, x):
    """The dtypes and shapes of value and slopes, or the class of the error."""
    try:
        out = jax.eval_shape(jax.value_and_grad(lambda x: jnp.sum(f(x))), x)
    except (TypeError, ValueError) as error:
        return type(error)
    return jax.tree.map(lambda a: (a.shape, a.dtype), out)


@pytest.mark.parametrize("rule", EXAMPLES)
def test_nothing_is_promoted_that_was_not(rule):
    f, x = EXAMPLES[rule]
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        plain = _outcome(f, x)
        assert isinstance(plain, type) or _outcome(stabilize(f), x) == plain


def test_most_examples_are_programs_under_these_settings():
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        assert sum(not isinstance(_outcome(f, x), type) for f, x in EXAMPLES.values()) >= len(EXAMPLES) - 3


@losses
def test_no_tracer_leaks(loss):
    with jax.checking_leaks():
        stable = stabilize(loss)
        jax.jit(jax.grad(stable))(LOGITS, LABELS)
        stable(LOGITS, LABELS)


@losses
def test_without_jit(loss):
    expected = jax.value_and_grad(stabilize(loss))(LOGITS, LABELS)
    with jax.disable_jit():
        found = jax.value_and_grad(stabilize(loss))(LOGITS, LABELS)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)


@losses
def test_donated_buffers(loss):
    def step(logits, labels):
        return logits - jax.grad(stabilize(loss))(logits, labels)

    expected = jax.jit(step)(jnp.asarray(LOGITS), LABELS)
    for donating in (
        jax.jit(step, donate_argnums=0),
        stabilize(jax.jit(lambda x, t: x - jax.grad(stabilize(loss))(x, t), donate_argnums=0)),
    ):
        np.testing.assert_allclose(donating(jnp.asarray(LOGITS), LABELS), expected, rtol=1e-5, atol=1e-7)
