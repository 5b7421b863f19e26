"""The exact results of the generators are those of `stablegrad.truth`: found twice, once by formula, once by graph."""

import itertools

import numpy as np
import pytest

from spellings.families import programs
from spellings.softmax import combinations
from stablegrad.truth import truth

EVERY, START = 97, 40
KINK = "the one-sided derivatives differ"
CHOSEN = [*itertools.islice(combinations(), 5, None, EVERY), *itertools.islice(programs(), START, None, EVERY)]


@pytest.mark.parametrize("p", CHOSEN, ids=lambda p: p.name)
def test_formula_and_graph_agree(p):
    """To the last digit but one of float32, at the first and at the last point."""
    for case in (p.cases("float32")[0], p.cases("float32")[-1]):
        found = truth(p.program, *case.arguments, conditions=False)
        value, gradient = p.expected(case)
        np.testing.assert_allclose(found.value, _float(value), rtol=2e-7, atol=1e-38)
        slopes, decided = np.array(list(map(_float, gradient))), np.ravel(found.gradient_decided[0])
        np.testing.assert_allclose(np.ravel(found.gradient[0])[decided], slopes[decided], rtol=2e-7, atol=1e-38)
        if found.undecided:  # a kink, where the formula has the convention
            assert set(found.reasons) == {KINK} and not slopes[~decided].any(), found.reasons


def _float(exact):
    return float(exact.number)
