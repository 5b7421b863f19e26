"""Recursions in float32 against the same program in float64, which holds them: value, gradient, both routes."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recursions.programs import EMISSIONS, PROGRAMS, STATES, STEPS
from stablegrad import stabilize

VALUE, GRADIENT = 2e-6, 2e-5
LOGITS = (5 * np.random.default_rng(0).normal(size=(STEPS, STATES))).astype(np.float32)
ALL = [(program, emission) for program in PROGRAMS for emission in EMISSIONS]
CASES = ALL[::1] if os.environ.get("STABLEGRAD_ALL_RECURSIONS") else ALL[::3]  # 3 and 7 share no factor


FORWARD_ONLY = ("product_by_while",)


def forward_mode(f):
    """Value and derivative in one direction: a while loop has no other."""
    return lambda x: jax.jvp(f, (x,), (jnp.cos(x),))


def loss(program, emission):
    return lambda x: PROGRAMS[program](EMISSIONS[emission](x))


def truth(program, emission):
    """In float64, where every value of these programs is in range; stepwise, as it is written."""
    with jax.enable_x64(True):
        derivative = forward_mode if program in FORWARD_ONLY else jax.value_and_grad
        value, slope = jax.jit(derivative(loss(program, emission)))(jnp.asarray(LOGITS, "float64"))
        return float(value), np.asarray(slope)


@pytest.mark.parametrize("program, emission", CASES)
def test_value_and_gradient(program, emission):
    value, slope = truth(program, emission)
    assert np.isfinite(value) and np.isfinite(slope).all()
    size = max(1.0, np.abs(slope).max())
    f = loss(program, emission)
    derivative = forward_mode if program in FORWARD_ONLY else jax.value_and_grad
    for way, got in {
        "value": (jax.jit(stabilize(f))(LOGITS), slope),
        "outside": jax.jit(derivative(stabilize(f)))(LOGITS),
        "inside": jax.jit(stabilize(derivative(f)))(LOGITS),
    }.items():
        assert abs(float(got[0]) - value) <= VALUE * max(1.0, abs(value)), (way, float(got[0]), value)
        error = np.abs(np.asarray(got[1]) - slope).max()
        assert error <= GRADIENT * size, (way, error, size)
