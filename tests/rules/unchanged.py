"""What a rule must not touch: domain errors, NaN, and programs in which nothing can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rules.harness import report
from rules.program_shape import names_of
from rules.tables import padded
from stablegrad import explain, stabilize


def assert_left_alone(f: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Nothing is rewritten: no report, and the same operations."""
    found = explain(f, **options)(*args)
    assert not found.rewrites, f"nothing is wrong here, but:\n{found}"
    assert names_of(stabilize(f, **options), *args) == names_of(f, *args)


class Domain(dict[str, tuple]):
    """Programs by name, (f, arguments ...), whose domain errors survive. The jitted ones are compiled together."""

    def check(self, name: str) -> None:
        """NaN and infinite values are those of the plain program, eagerly and jitted.

        And where finite arguments make the plain value and all its slopes NaN, one of the stabilized slopes is.
        """
        f, *_ = self[name]
        args = self._arguments[name]
        plain, slopes = _value_and_slopes(f)(*args)
        for way, (got, stable_slopes) in (
            ("eager", _value_and_slopes(stabilize(f))(*args)),
            ("jit", self._jitted[name]),
        ):
            plain, got = np.asarray(plain), np.asarray(got)
            same = np.where(np.isfinite(plain), np.isclose(got, plain, rtol=1e-4, atol=1e-30), got == plain)
            report(f"{way} value", got, plain, same | (np.isnan(plain) & np.isnan(got)))
            a, b = (np.isnan(np.stack([np.asarray(g) for g in s])) for s in (slopes, stable_slopes))
            given = ~np.any([np.isnan(x).reshape(len(x), -1).any(1) for x in args], axis=0)
            undefined = np.isnan(plain).reshape(len(plain), -1).any(1) & given
            lost = a.all(0) & undefined.reshape(undefined.shape + (1,) * (a.ndim - 2))
            report(f"{way} gradient has a NaN (1) or none (0),", b.any(0), a.any(0), ~lost | b.any(0))

    @cached_property
    def _arguments(self) -> dict[str, list[Any]]:
        return {
            name: [jnp.asarray(np.asarray(padded(a)), "float32") for a in args] for name, (_, *args) in self.items()
        }

    @cached_property
    def _jitted(self) -> dict[str, Any]:
        return jax.jit(lambda args: {n: _value_and_slopes(stabilize(self[n][0]))(*a) for n, a in args.items()})(
            self._arguments
        )


def _value_and_slopes(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        both = jax.value_and_grad(lambda *a: ((y := f(*a)).sum(), y), tuple(range(len(args))), has_aux=True)
        (_, value), slopes = both(*args)
        return value, slopes

    return run
