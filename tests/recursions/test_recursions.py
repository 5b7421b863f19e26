"""Recursions in float32 against the same program in float64, which holds them: value, gradient, both routes."""

import os

import jax
import numpy as np
import pytest

from recursions.recursion import LOGITS, RECURSIONS
from stablegrad import stabilize

CHOSEN = RECURSIONS if os.environ.get("STABLEGRAD_ALL_RECURSIONS") else RECURSIONS[::16]  # 16 and 7 share no factor


@pytest.mark.parametrize("recursion", CHOSEN, ids=str)
def test_value_and_gradient(recursion):
    f, derivative = recursion.program, recursion.derivative
    value, slope = recursion.truth()
    assert np.isfinite(value) and np.isfinite(slope).all()
    for route, got in {
        "value": (jax.jit(stabilize(f))(LOGITS), slope),
        "differentiated": jax.jit(derivative(stabilize(f)))(LOGITS),
        "stabilized as differentiated": jax.jit(stabilize(derivative(f)))(LOGITS),
    }.items():
        assert max(recursion.errors(got)) <= 1, (route, got[0], value)
