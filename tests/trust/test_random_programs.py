"""Three hundred random programs against the contract, and all that were ever found to break it."""

import random

import numpy as np
import pytest

from trust.check import violations
from trust.found import FOUND, OPEN
from trust.programs import expression, rows

TESTS, PROGRAMS, POINTS = 10, 30, 16
KNOWN = {text for text, *_ in OPEN}


@pytest.mark.parametrize("seed", range(TESTS))
def test_no_random_program_breaks_the_contract(seed):
    choose = random.Random(seed).choice
    found = []
    for _ in range(PROGRAMS):
        text, x, y = expression(choose), rows(choose, POINTS), rows(choose, POINTS)
        if text not in KNOWN:
            found += violations(text, x, y)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("text, x, y", FOUND, ids=[text for text, *_ in FOUND])
def test_what_was_found_stays_mended(text, x, y):
    found = list(violations(text, np.array([x], np.float32), np.array([y], np.float32)))
    assert not found, "\n".join(map(str, found))


OPEN_CASES = [pytest.param(*case, marks=pytest.mark.xfail(reason=why, strict=True), id=case[0]) for *case, why in OPEN]


@pytest.mark.parametrize("text, x, y", OPEN_CASES)
def test_what_is_open(text, x, y):
    found = list(violations(text, np.array([x], np.float32), np.array([y], np.float32)))
    assert not found, "\n".join(map(str, found))
