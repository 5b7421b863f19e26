"""Every spelling of softmax, times what stands between, times every spelling of cross entropy."""

import functools
import itertools

import jax
import pytest

from spellings import measure
from spellings.known_gaps import gap
from spellings.softmax import BETWEEN, LOSSES, SOFTMAXES, Combination, combinations, excluded
from stablegrad import explain, stabilize

COMBINATIONS = tuple(combinations())
POSITION = {c.name: k for k, c in enumerate(COMBINATIONS)}


def _marked(mode, chosen):
    """The combinations as parameters, those with a known gap as strict xfails."""
    for c in chosen:
        reason = gap(c.name, mode)
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        yield pytest.param(c, id=c.name, marks=marks)


def _spread(start):
    """Every tenth combination, along the diagonals: each pair of spellings is there."""
    of = itertools.product(range(len(SOFTMAXES)), range(len(BETWEEN)), range(len(LOSSES)))
    return [c for c, (i, j, k) in zip(COMBINATIONS, of, strict=True) if (i + j + k) % 10 == start]


@functools.cache
def _together(softmax, between, dtype):
    """All losses of one softmax and one in-between are compiled at once."""
    group = [c for c in COMBINATIONS if (c.softmax, c.between) == (softmax, between)]
    return measure.stabilized_together(group, dtype)


def _failures(c, results):
    if isinstance(results, Exception):
        raise results
    values, gradients = [], []
    for case, (value, gradient) in zip(c.cases(results_dtype(results)), results, strict=True):
        values += measure.wrong_value(c, case, value)
        gradients += measure.wrong_gradient(c, case, gradient)
    return values, gradients


def results_dtype(results):
    return str(results[0][0].dtype)


def _assert_right(c, results):
    values, gradients = _failures(c, results)
    assert not values, "value of value_and_grad\n" + "\n".join(map(str, values))
    assert not gradients, "gradient of value_and_grad\n" + "\n".join(map(str, gradients))


def test_number_of_combinations():
    """6 softmaxes, 13 things between, 10 losses; a combination without meaning is excluded with its reason."""
    reasons = [excluded(*parts) for parts in itertools.product(SOFTMAXES, BETWEEN, LOSSES)]
    assert (len(SOFTMAXES), len(BETWEEN), len(LOSSES)) == (6, 13, 10)
    assert len(COMBINATIONS) == len(POSITION) == reasons.count(None) == 780


@pytest.mark.parametrize("c", list(_marked("jit float32", COMBINATIONS)))
def test_value_and_gradient(c: Combination):
    """Jitted, float32, at every point: within the contract's bound of the exact result."""
    _assert_right(c, _together(c.softmax, c.between, "float32")[c.name])


@pytest.mark.parametrize("c", list(_marked("jit float64", _spread(0))))
def test_float64(c: Combination):
    """The same in float64, for a tenth; `full.py` runs all."""
    _assert_right(c, measure.stabilized_together([c], "float64")[c.name])


@pytest.mark.parametrize("c", list(_marked("eager float32", _spread(5))))
def test_eager(c: Combination):
    """Without jit: the value of a plain call, and the gradient of `jax.grad`, for a tenth; `full.py` runs all."""
    stabilized = stabilize(c.program)
    for case in c.cases("float32"):
        value = measure.wrong_value(c, case, stabilized(*case.arguments))
        assert not value, "value of a plain call\n" + "\n".join(map(str, value))
        gradient = measure.wrong_gradient(c, case, jax.grad(stabilized)(*case.arguments))
        assert not gradient, "gradient of grad\n" + "\n".join(map(str, gradient))


def test_plain_programs_are_wrong_and_explained():
    """The points break what they should break, and `explain` names a rewrite wherever the plain program is wrong."""
    wrong = [c for c in COMBINATIONS if measure.plain_is_wrong(c, "float32")]
    assert len(wrong) >= 0.95 * len(COMBINATIONS)
    silent = [c.name for c in wrong if not explain(c.program)(*c.cases("float32")[0].arguments).rewrites]
    assert not silent
