"""cos(x) - 1."""

import math

import mpmath
import numpy as np
import pytest

from numerics.reference import DTYPES, assert_edges, assert_elementwise, grid
from stablegrad.numerics import jax as numerics


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosm1(dtype):
    def line(random):
        size = np.concatenate([np.exp(random.uniform(-18, 1, 48)), random.uniform(0, 40, 48)])
        return size * random.choice([-1, 1], 96)

    assert_elementwise(
        numerics.cosm1,
        lambda x: -2 * mpmath.sin(x / 2) ** 2,
        [lambda x: -mpmath.sin(x)],
        [[lambda x: -mpmath.cos(x)]],
        grid(dtype, line),
        dtype,
    )


def test_edges():
    nan = math.nan
    assert_edges(numerics.cosm1, [((0.0,), 0, [0]), ((math.inf,), nan, [nan]), ((nan,), nan, [nan])])
