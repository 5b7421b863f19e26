"""Three hundred random programs against the contract, and all that were ever found to break it."""

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from trust.check import violations
from trust.found import FOUND
from trust.programs import expressions, points

TESTS, PROGRAMS, POINTS = 10, 30, 16


@pytest.mark.parametrize("seed", range(TESTS))
def test_no_random_program_breaks_the_contract(seed):
    @hypothesis.seed(seed)
    @settings(
        max_examples=PROGRAMS,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(expressions(), points(POINTS), points(POINTS))
    def run(text, x, y):
        found = list(violations(text, x, y))
        assert not found, "\n".join(map(str, found))

    run()


@pytest.mark.parametrize("text, x, y", FOUND, ids=[text for text, *_ in FOUND])
def test_what_was_found_stays_mended(text, x, y):
    found = list(violations(text, np.array([x], np.float32), np.array([y], np.float32)))
    assert not found, "\n".join(map(str, found))
