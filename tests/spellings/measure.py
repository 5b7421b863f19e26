"""Programs run plainly and stabilized, and what is wrong with the results."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np

from spellings.bound import Exact, times_bound
from stablegrad import stabilize


class Program(Protocol):
    """A generated program: `program(*case.arguments)` is a number, differentiated by its first argument."""

    @property
    def name(self) -> str: ...
    def program(self, *arguments: Any) -> Any: ...
    def cases(self, dtype: str) -> Sequence[Any]: ...
    def terms(self, case: Any) -> int: ...
    def expected(self, case: Any) -> tuple[Exact, list[Exact]]: ...


@dataclass(frozen=True)
class Failure:
    """A number that breaks the bound, and by how many times."""

    case: str
    what: str
    got: float
    exact: str
    times: float

    def __str__(self) -> str:
        return f"{self.case}: {self.what} is {self.got!r}, exactly {self.exact}: {self.times:.3g} times the bound"


def in_dtype(dtype: str) -> contextlib.AbstractContextManager:
    """The context that a dtype needs."""
    return jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()


def wrong_value(program: Program, case: Any, value: Any) -> list[Failure]:
    expected, _ = program.expected(case)
    return _wrong(program, case, [("value", float(value), expected)])


def wrong_gradient(program: Program, case: Any, gradient: Any) -> list[Failure]:
    _, expected = program.expected(case)
    flat = np.ravel(np.asarray(gradient)).tolist()
    return _wrong(
        program, case, [(f"gradient[{i}]", g, e) for i, (g, e) in enumerate(zip(flat, expected, strict=True))]
    )


def _wrong(program: Program, case: Any, results: list[tuple[str, float, Exact]]) -> list[Failure]:
    found = []
    for what, got, expected in results:
        times = times_bound(got, expected, case.dtype, program.terms(case))
        if not times <= 1:
            found.append(Failure(case.name, what, got, expected.number.str(10, radius=False), times))
    return found


def plain_is_wrong(program: Program, dtype: str) -> bool:
    """The plain program breaks the bound at one of its points, in value or gradient."""
    with in_dtype(dtype):
        for case in reversed(program.cases(dtype)):  # those that break most stand last
            value, gradient = jax.value_and_grad(program.program)(*case.arguments)
            if wrong_value(program, case, value) or wrong_gradient(program, case, gradient):
                return True
    return False


Results = dict[str, "list[tuple[Any, Any]] | Exception"]


def stabilized_together(programs: Sequence[Program], dtype: str) -> Results:
    """Jitted values and gradients at all cases, by program name; compiled as one program, at half the cost.

    The programs must have the same cases. One that raises gives its error instead.
    """

    def all_of_them(*arguments: Any) -> list[Any]:
        return [_value_and_gradient(p)(*arguments) for p in programs]

    with in_dtype(dtype):
        try:
            compiled = jax.jit(all_of_them)
            rows = [jax.device_get(compiled(*case.arguments)) for case in programs[0].cases(dtype)]
        except Exception as error:
            if len(programs) == 1:
                return {programs[0].name: error}
            apart: Results = {}
            for p in programs:
                apart |= stabilized_together([p], dtype)
            return apart
    return {p.name: [row[k] for row in rows] for k, p in enumerate(programs)}


def _value_and_gradient(program: Program) -> Any:
    return jax.value_and_grad(stabilize(program.program))
