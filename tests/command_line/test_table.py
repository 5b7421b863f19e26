"""What is printed."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from stablegrad.command_line.compare import Row
from stablegrad.command_line.measure import Measurement
from stablegrad.command_line.table import show, summary


def row(label: str, plain: float, stabilized: float | None, exact: float | None, **more) -> Row:
    number = lambda x: None if x is None else np.float32(x)  # noqa: E731
    return Row(label, np.float32(plain), number(stabilized), number(exact), **more)


@pytest.fixture
def measurement() -> Measurement:
    call = SimpleNamespace(
        name="loss", line=7, label="example 1 of 2", file=SimpleNamespace(name="losses.py", path="losses.py")
    )
    rewrite = SimpleNamespace(
        rule="log_of_product", file="losses.py", line=9, source="    return jnp.log(p)",
        before="log(a / b)", after="log a - log b", reason="the quotient underflows", count=2,
    )  # fmt: skip
    report = SimpleNamespace(
        rewrites=(rewrite, SimpleNamespace(**{**vars(rewrite), "rule": "second", "count": 1})),
        untouched=(SimpleNamespace(operation="[sort]", file="/a/helpers.py", line=12, reason="opaque", count=3),),
    )
    rows = [
        row("value", math.nan, 1.5, 1.5, plain_bits=math.inf, stabilized_bits=0.0, plain_wrong=True),
        row("gradient by x at [0, 2]", 1, 2, 1.1, plain_bits=12.34, stabilized_bits=None, plain_wrong=True),
        row("gradient by y", math.inf, None, None),
    ]
    return Measurement(call, rows, report, ["2 of 3 derivative entries checked"])


def printed(measurement: Measurement) -> list[str]:
    console = Console(width=140)
    with console.capture() as capture:
        show(measurement, console)
    return capture.get().splitlines()


def test_one_call(measurement: Measurement) -> None:
    lines = printed(measurement)
    assert lines[0] == "loss  losses.py:7, example 1 of 2"
    assert lines[1].split() == "plain stabilized exact bits of error: plain stabilized".split()
    assert lines[2].split() == ["value", "nan", "1.5", "1.5", "nan", "0.0"]
    assert lines[3].split() == ["gradient", "by", "x", "at", "[0,", "2]", "1", "2", "1.10000002", "12.3", "wrong", "-"]
    assert lines[4].split() == ["gradient", "by", "y", "inf", "-", "-", "-", "-"]
    assert [line.strip() for line in lines[5:]] == [
        "2 of 3 derivative entries checked",
        "line 9  return jnp.log(p)",
        "log(a / b) -> log a - log b (x2)",
        "log_of_product: the quotient underflows",
        "log(a / b) -> log a - log b",
        "second: the quotient underflows",
        "left as it was: [sort], helpers.py:12 (x3): opaque",
        "",
    ]


def test_a_long_rewrite_takes_two_lines(measurement: Measurement) -> None:
    measurement.report.rewrites[0].before = "a" * 120
    lines = printed(measurement)
    assert lines[7:9] == [" " * 6 + "a" * 120, " " * 6 + "-> log a - log b (x2)"]


def test_nothing_to_rewrite(measurement: Measurement) -> None:
    measurement.report = SimpleNamespace(rewrites=(), untouched=())
    assert "  nothing to rewrite" in printed(measurement)


def test_summary(measurement: Measurement) -> None:
    unknown = Measurement(measurement.call, [row("value", 1, 1, None)])
    failed = Measurement(measurement.call, measurement.rows, failed=True)
    text = summary([measurement, unknown, failed]).plain
    assert text == "3 calls: plain wrong in 2, stabilized wrong in 1 (loss, example 1 of 2); 1 without an exact result"
    assert summary([measurement]).plain == "1 call: plain wrong in 1, stabilized wrong in 0"
