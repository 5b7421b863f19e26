"""Every generated program of the families: within the contract's bound, and every rule at work in many of them."""

import functools
import itertools
import math

import jax
import pytest

import stablegrad
from recursions.recursion import LOGITS, RECURSIONS, Recursion
from spellings import measure
from spellings.families import CONTEXTS, Generated, programs
from spellings.known_gaps import gap
from spellings.softmax import Combination, combinations
from stablegrad import explain, stabilize

PROGRAMS = tuple(programs())


def _chosen():
    """Each function in one context, the spellings of a quantity in two; each binary loss. `full.py` runs all."""
    names = [c.name for c in CONTEXTS]
    quantities, members = {}, {}
    for p in PROGRAMS:
        family, member, context = p.name.split("-")
        quantity = quantities.setdefault(member.partition(".")[0], len(quantities))
        turn = members.setdefault((family, member), len(members))
        if context == "mean" or context == names[(quantity + 3 * (turn % 2)) % len(names)]:
            yield p


CHOSEN = tuple(_chosen())


def _marked(mode, chosen):
    for p in chosen:
        reason = gap(p.name, mode)
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        yield pytest.param(p, id=p.name, marks=marks)


@functools.cache
def _together(group):
    """The chosen programs of a group, compiled at once."""
    return measure.stabilized_together([p for p in CHOSEN if p.group == group], "float32")


def _assert_right(p, results, dtype):
    if isinstance(results, Exception):
        raise results
    for what, wrong in (("value", measure.wrong_value), ("gradient", measure.wrong_gradient)):
        k = 0 if what == "value" else 1
        failures = [f for case, r in zip(p.cases(dtype), results, strict=True) for f in wrong(p, case, r[k])]
        assert not failures, f"{what} of value_and_grad\n" + "\n".join(map(str, failures))


@pytest.mark.parametrize("p", list(_marked("jit float32", CHOSEN)))
def test_value_and_gradient(p: Generated):
    """Jitted, float32, at every point: within the contract's bound of the exact result."""
    _assert_right(p, _together(p.group)[p.name], "float32")


@pytest.mark.parametrize("p", list(_marked("jit float64", CHOSEN[::12])))
def test_float64(p: Generated):
    """The same in float64, for a twelfth; `full.py` runs all."""
    _assert_right(p, measure.stabilized_together([p], "float64")[p.name], "float64")


@pytest.mark.parametrize("p", list(_marked("eager float32", CHOSEN[5::12])))
def test_eager(p: Generated):
    """Without jit: the value of a plain call, and the gradient of `jax.grad`, for a twelfth; `full.py` runs all."""
    stabilized = stabilize(p.program)
    for case in p.cases("float32"):
        value = measure.wrong_value(p, case, stabilized(*case.arguments))
        assert not value, "value of a plain call\n" + "\n".join(map(str, value))
        gradient = measure.wrong_gradient(p, case, jax.grad(stabilized)(*case.arguments))
        assert not gradient, "gradient of grad\n" + "\n".join(map(str, gradient))


ENOUGH, SHARE = 50, 0.25


def test_every_rule_fires_in_many_programs_that_are_wrong_when_plain():
    """Each rule in 50 generated programs at least, a quarter of them wrong when plain."""
    fired: dict[str, list[Generated | Combination]] = {name: [] for name in stablegrad.rule_names()}
    for p in (*PROGRAMS, *itertools.islice(combinations(), 0, None, 3)):  # and a third of the softmax losses
        for name in {r.rule for r in explain(p.program)(*p.cases("float32")[0].arguments).rewrites}:
            fired.setdefault(name, []).append(p)
    fired["recursion"] += recursions_that_fire(ENOUGH)
    wrong = {name: _wrong_ones(ps) for name, ps in fired.items()}
    table = "\n".join(f"{name:40} fires in {len(ps):5}, wrong when plain {wrong[name]:5}" for name, ps in fired.items())
    lacking = [n for n, ps in fired.items() if len(ps) < ENOUGH or wrong[n] < SHARE * len(ps)]
    assert not lacking, f"{', '.join(lacking)}\n{table}"
    assert set(fired) == set(stablegrad.rule_names()), "a rule that `explain` names cannot be switched off"


def _wrong_ones(ps):
    """How many of the programs are wrong when plain, counted no further than the share that is asked for."""
    enough = math.ceil(SHARE * len(ps))
    return sum(1 for _ in itertools.islice((p for p in ps if _plain_is_wrong(p)), enough))


def recursions_that_fire(enough):
    """Generated recursions (`tests/recursions`) in which their rule fires, no more than are asked for."""
    return list(itertools.islice((r for r in RECURSIONS if "recursion" in fired_in(r.program, LOGITS)), enough))


def fired_in(program, *arguments):
    return {r.rule for r in explain(program)(*arguments).rewrites}


@functools.cache
def _plain_is_wrong(p):
    return p.plain_is_wrong() if isinstance(p, Recursion) else measure.plain_is_wrong(p, "float32")
