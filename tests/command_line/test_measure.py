"""Three programs side by side; a stand-in for `stabilize`, so that each outcome can be had."""

import math
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablegrad
from stablegrad.command_line import truth as truth_module
from stablegrad.command_line.inputs import calls_from_examples
from stablegrad.command_line.measure import Measurement, measure
from stablegrad.command_line.truth import Limits, count_operations, plan_within
from stablegrad.command_line.user_file import load, public_functions
from stablegrad.truth import truth

SOURCE = """\
import jax.numpy as jnp


def loss(x, w):
    return {"total": jnp.sum(jnp.log(1 + jnp.exp(x)) * w), "each": x * w}


EXAMPLES = {"loss": {"x": [-30.0, 1.0, 200.0], "w": [2, 3, 4]}}
"""


def stable(f):
    def g(x, w):
        return {"['total']": jnp.sum(jax.nn.softplus(x) * w), "['each']": x * w}

    return g


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "softplus_loss.py"
    path.write_text(SOURCE)
    file = load(str(path))
    monkeypatch.setattr(stablegrad, "stabilize", stable)
    (call,) = calls_from_examples(file, public_functions(file), None)
    return call


def run(call, limits: Limits | None = None, **options) -> Measurement:
    return measure(call, limits or Limits(), progress=lambda text: None, **options)


@pytest.mark.parametrize("jit", [False, True])
def test_rows_and_verdict(call, jit: bool) -> None:
    measurement = run(call, jit=jit)
    assert [row.label for row in measurement.rows] == [
        "value['each'] at [0]",
        "value['total']",
        "gradient by x at [2]",
    ]
    each, total, by_x = measurement.rows
    assert each.plain_bits == each.stabilized_bits == 0
    assert total.plain == math.inf
    assert total.plain_bits == math.inf
    assert total.stabilized_bits is not None
    assert total.stabilized_bits <= 1
    assert math.isnan(by_x.plain)
    assert by_x.exact == 8
    assert measurement.plain_wrong
    assert not measurement.stabilized_wrong
    assert not measurement.unknown
    assert measurement.notes == []


def test_without_gradient(call) -> None:
    assert [row.label for row in run(call, gradient=False).rows] == ["value['each'] at [0]", "value['total']"]


def test_a_stabilize_that_does_nothing_is_wrong(call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stablegrad, "stabilize", lambda f: f)
    assert run(call).stabilized_wrong


def test_a_stabilize_that_fails_is_wrong(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(f):
        raise RuntimeError("no such rule")

    monkeypatch.setattr(stablegrad, "stabilize", fail)
    measurement = run(call)
    assert measurement.stabilized_wrong
    assert measurement.notes == ["stabilize failed, which is a bug of stablegrad: RuntimeError: no such rule"]
    assert measurement.rows[1].stabilized is None
    assert measurement.rows[1].plain_wrong


def test_another_element_of_the_stabilized_program_has_its_own_row(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def bad_at_zero(f):
        return lambda x, w: {"['total']": f(x, w)["['total']"], "['each']": x * w * jnp.array([1, 1.01, 1])}

    monkeypatch.setattr(stablegrad, "stabilize", bad_at_zero)
    first = run(call).rows[0]
    assert first.label == "value['each'] at [1]"
    assert first.stabilized_wrong
    assert not first.plain_wrong


def test_a_sample_of_the_derivatives(call) -> None:
    measurement = run(call, Limits(entries=2))
    assert measurement.notes == ["2 of 3 derivative entries checked, chosen at random"]
    assert len(measurement.rows) == 3
    none = run(call, Limits(entries=0))
    assert none.notes == ["0 of 3 derivative entries checked, chosen at random"]
    assert none.rows[2].exact is None
    assert none.rows[1].exact is not None


def test_what_takes_too_long_is_left_out(call) -> None:
    measurement = run(call, Limits(seconds=1e-9))
    assert measurement.notes == [
        "no exact result: it may take more than 1e-09 seconds; try smaller arrays, or raise --exact-seconds"
    ]
    assert measurement.unknown
    assert not measurement.stabilized_wrong


def test_what_cannot_be_decided_counts_neither_way(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(*arguments, **options):
        found = truth(*arguments, **options)
        decided = (np.array([True, True, False]), found.gradient_decided[1])
        nothing = {key: np.zeros(value.shape, bool) for key, value in found.value.items()}
        return replace(found, value_decided=nothing, gradient_decided=decided, reasons=("too deep",))

    monkeypatch.setattr(truth_module, "truth", undecided)
    measurement = run(call)
    assert [row.exact is None for row in measurement.rows] == [True, True, False]
    assert measurement.rows[2].label != "gradient by x at [2]"
    assert measurement.notes == ["some elements could not be decided exactly: too deep"]


def test_a_truth_that_fails_is_a_note(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments, **options):
        raise NotImplementedError("sort")

    monkeypatch.setattr(truth_module, "truth", fail)
    assert run(call).notes == ["no exact result: NotImplementedError: sort"]


@pytest.mark.parametrize(
    ("operations", "total", "expected"),
    [
        (10, 0, (0, True)),
        (100, 10, (10, True)),
        (100, 1000, (64, True)),
        (20_000, 1000, (16, True)),
        (100_000, 1000, (64, False)),
        (300_000, 1000, (16, False)),
        (900_000, 1000, (0, False)),
        (9_000_000, 1000, None),
    ],
)
def test_plan_within_the_time(operations: int, total: int, expected) -> None:
    assert plan_within(Limits(), operations, total) == expected


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (lambda x: x + 1, [(3, 4)], 12),
        (jnp.matmul, [(3, 4), (4, 5)], 60),
        (lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, None, length=10)[0], [(7,)], 70),
        (jax.jit(lambda x: x * 2), [(5,)], 5),
    ],
)
def test_count_of_operations(function, shapes: list, expected: int) -> None:
    jaxpr = jax.make_jaxpr(function)(*(np.ones(shape, np.float32) for shape in shapes))
    assert count_operations(jaxpr.jaxpr) == pytest.approx(expected)
