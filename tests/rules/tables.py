"""Tables of programs as parameters of a test. The jitted programs of a table are compiled together: far cheaper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
import pytest

from rules.harness import Answer, Program, check_rule, in_dtype

HALVES = ("float16", "bfloat16", "float64")
EXPONENTS = {"float16": 0.13, "bfloat16": 1.0, "float32": 1.0, "float64": 8.0}  # reach of exp, relative to float32
LARGE = 50.0  # an exponent from there on is moved to where exp of the dtype over- or underflows


def exponents(points: Sequence[Any], dtype: str) -> np.ndarray:
    """Points made for float32's exp, the large ones moved to where the exp of `dtype` over- and underflows."""
    array = np.asarray(points, np.float64)
    return np.where(np.abs(array) > LARGE, array * EXPONENTS[dtype], array)


def padded(points: Sequence[Any], length: int = 8) -> list[Any]:
    """The points, the last one repeated up to a common number: programs of one shape share compiled operations."""
    return [*points, *[points[-1]] * (-len(points) % length)]


@dataclass(frozen=True)
class Case:
    """A program with its arguments, the rule that it calls for, and where the plain one is wrong (see `check_rule`)."""

    f: Callable[..., Any]
    args: Sequence[Any]
    rule: str
    breaking: Any = ()
    source: Callable[..., Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class Cases(dict[str, Case]):
    """Cases by name."""

    dtype = "float32"

    def check(self, name: str, *, thorough: bool = False) -> None:
        """See `check_rule`."""
        case = self[name]
        check_rule(
            self._programs[name], case.rule, fails_plain=case.breaking, thorough=thorough, jitted=self._jitted[name],
            source=case.source,
        )  # fmt: skip

    @cached_property
    def _programs(self) -> dict[str, Program]:
        with in_dtype(self.dtype):
            return {n: Program(c.f, c.args, self.dtype, **c.options) for n, c in self.items()}

    @cached_property
    def _jitted(self) -> dict[str, Answer | None]:
        """All of them in one program; where that cannot be compiled, each test compiles its own."""

        def all_of_them(args: dict[str, Any]) -> dict[str, Any]:
            return {name: self._programs[name].value_and_gradient(*a) for name, a in args.items()}

        with in_dtype(self.dtype):
            try:
                found = jax.jit(all_of_them)({name: p.args for name, p in self._programs.items()})
            except Exception:  # the one that raises does so again in its own test
                return dict.fromkeys(self)
        return {name: Answer("jit value_and_grad", *answer) for name, answer in found.items()}


@dataclass(frozen=True)
class Family:
    """Spellings of one function, elementwise in the leading axis.

    Attributes:
        rule: the rule that each spelling calls for.
        breaking: points where each plain spelling is wrong in float32; a point of several arguments is a tuple.
        ordinary: points where it need not be.
        spellings: by what is shown in the test's name.
        dtypes: more dtypes than float32, for the first spelling.
        exponent: large numbers in the points are exponents: moved with the dtype.
        thorough: the first spelling is also tried in forward mode, vmap, scan and checkpoint.
        kinks: where there is no slope it is 0.
        meaning: of all spellings, where the exact evaluator does not know one of their operations.
    """

    rule: str
    breaking: Sequence[Any]
    ordinary: Sequence[Any]
    spellings: Mapping[str, Callable[..., Any]]
    dtypes: Sequence[str] = ()
    exponent: bool = True
    thorough: bool = False
    kinks: bool = False
    meaning: Callable[..., Any] | None = None

    def parameters(self) -> Iterator[Any]:
        """Parameters of a test: (cases, name, thorough)."""
        first = next(iter(self.spellings))
        for dtype in ("float32", *self.dtypes):
            names = self.spellings if dtype == "float32" else [first]
            cases = Cases({name: self._case(name, dtype) for name in names})
            cases.dtype = dtype
            for name in names:
                thorough = self.thorough and name == first and dtype == "float32"
                yield pytest.param(cases, name, thorough, id=f"{name}-{dtype}")

    def _case(self, name: str, dtype: str) -> Case:
        points = padded([p if isinstance(p, tuple) else (p,) for p in (*self.breaking, *self.ordinary)])
        columns = [[p[k] for p in points] for k in range(len(points[0]))]
        args = [exponents(c, dtype) if self.exponent else np.asarray(c, np.float64) for c in columns]
        breaking = [k for k in range(len(self.breaking)) if dtype == "float32" or self._moved(points[k])]
        logarithms = self.rule == "product_with_logarithm"
        options = {"meaning": self.meaning, "slope_of_log_of_zero": logarithms, "slope_of_kink": self.kinks}
        return Case(self.spellings[name], args, self.rule, breaking, options=options)

    def _moved(self, point: tuple) -> bool:
        return not self.exponent or any(abs(x) > LARGE for x in point)


def table(*families: Family) -> Any:
    """The decorator of a test of (cases, name, thorough) over all spellings of the families."""
    return pytest.mark.parametrize("cases, name, thorough", [p for f in families for p in f.parameters()])
