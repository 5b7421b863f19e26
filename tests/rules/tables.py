"""Tables of spellings: programs of one meaning at common points, as parameters of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rules.harness import check_rule, exponents, padded

HALVES = ("float16", "bfloat16", "float64")
LARGE = 50.0  # an exponent from there on is moved to where exp of the dtype over- or underflows


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
    """

    rule: str
    breaking: Sequence[Any]
    ordinary: Sequence[Any]
    spellings: Mapping[str, Callable[..., Any]]
    dtypes: Sequence[str] = ()
    exponent: bool = True
    thorough: bool = False

    def check(self, name: str, dtype: str) -> None:
        """Run one spelling in one dtype."""
        points = padded([p if isinstance(p, tuple) else (p,) for p in (*self.breaking, *self.ordinary)])
        columns = [[p[k] for p in points] for k in range(len(points[0]))]
        args = [exponents(c, dtype) if self.exponent else np.asarray(c, np.float64) for c in columns]
        first = name == next(iter(self.spellings)) and dtype == "float32"
        breaking = [k for k in range(len(self.breaking)) if dtype == "float32" or self._moved(points[k])]
        check_rule(
            self.spellings[name],
            args,
            self.rule,
            fails_plain=breaking,
            dtype=dtype,
            thorough=first and self.thorough,
            slope_of_log_of_zero=self.rule == "product_with_logarithm",
        )

    def _moved(self, point: tuple) -> bool:
        return not self.exponent or any(abs(x) > LARGE for x in point)

    def cases(self) -> Iterator[Any]:
        """Parameters of a test: (family, name, dtype)."""
        first = next(iter(self.spellings))
        for name in self.spellings:
            for dtype in ("float32", *(self.dtypes if name == first else ())):
                yield pytest.param(self, name, dtype, id=f"{name}-{dtype}")


def table(*families: Family) -> Any:
    """The decorator of a test of (family, name, dtype) over all spellings of the families."""
    return pytest.mark.parametrize("family, name, dtype", [case for f in families for case in f.cases()])
