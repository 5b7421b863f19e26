"""One program at many points, plainly and stabilized, against exact arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stablegrad import explain, stabilize
from stablegrad.exact.error import within_contract
from stablegrad.truth import truth
from trust import rounding
from trust.programs import SIZE, program

TINY = float(np.finfo(np.float32).tiny)
CLOSE = 3e-6  # relative difference from float64 up to which a plain number may well be right
WORSE = 2  # how often the plain program's error
ROUNDING = 8 * float(np.finfo(np.float32).eps)
MOST_EXACT = 6  # suspicious points of one program that are looked at exactly


@dataclass(frozen=True)
class Violation:
    """A point where the stabilized program breaks the contract."""

    text: str
    kind: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    plain: Any = None
    stabilized: Any = None
    exact: Any = None

    def __str__(self) -> str:
        numbers = f"plain {self.plain}, stabilized {self.stabilized}, exactly {self.exact}"
        return f"{self.kind}: {self.text} at x={list(self.x)}, y={list(self.y)}: {numbers}"


@dataclass
class Tally:
    """What was seen over many programs."""

    programs: int = 0
    rewritten: int = 0
    points: int = 0
    plain_wrong: int = 0
    stabilized_wrong: int = 0
    rules: Counter[str] = field(default_factory=Counter)


def violations(text: str, x: np.ndarray, y: np.ndarray, tally: Tally | None = None) -> Iterator[Violation]:
    """Where the stabilized program is worse than the plain one, hides a domain error, or fails."""
    tally = tally or Tally()
    f = program(text)
    try:
        plain = _answers(f, x, y)
    except (TypeError, ValueError):
        return  # the expression is no program: shapes do not fit
    stable = stabilize(f)
    tally.programs += 1
    tally.points += len(x)
    first = tuple(map(float, x[0])), tuple(map(float, y[0]))
    try:
        rules = {r.rule for r in explain(f)(jnp.asarray(x[0]), jnp.asarray(y[0])).rewrites}
        got = _answers(stable, x, y)
    except Exception as error:
        yield Violation(text, f"raises {type(error).__name__}: {error}", *first)
        return
    tally.rules.update(rules)
    tally.rewritten += bool(rules)
    if any((a.dtype, a.shape) != (b.dtype, b.shape) for a, b in zip(plain, got, strict=True)):
        yield Violation(text, "changes a dtype or a shape", *first)
        return
    if not rules:
        return
    looked_at = 0
    for k in _suspicious(f, plain, got, x, y, tally):
        if looked_at == MOST_EXACT:
            return
        looked_at += 1
        found = _judged(text, f, [a[k] for a in plain], [a[k] for a in got], x[k], y[k])
        if found is not None:
            yield found
            return


def _answers(f: Any, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Value, slopes by x and by y, at each point."""
    return [np.asarray(a) for a in jax.vmap(_all_of(f))(jnp.asarray(x), jnp.asarray(y))]


def _all_of(f: Any) -> Any:
    def all_of(x: Any, y: Any) -> Any:
        (_, value), slopes = jax.value_and_grad(lambda x, y: ((v := f(x, y)).sum(), v), (0, 1), has_aux=True)(x, y)
        return value, *slopes

    return all_of


def _suspicious(
    f: Any, plain: list[np.ndarray], got: list[np.ndarray], x: np.ndarray, y: np.ndarray, tally: Tally
) -> Iterator[int]:
    """Points where the stabilized numbers differ from the plain ones, and from float64 or where that is undefined."""
    with jax.enable_x64(True), np.errstate(all="ignore"):
        reference = _answers(f, x.astype(np.float64), y.astype(np.float64))
    suspicious = np.zeros(len(x), bool)
    for a, b, r in zip(plain, got, reference, strict=True):
        a, b, r = (np.asarray(one, np.float64).reshape(len(x), -1) for one in (a, b, r))
        with np.errstate(all="ignore"):
            r32 = r.astype(np.float32).astype(np.float64)
            off_plain, off_got = (_relative(one, r32) for one in (a, b))
        known = np.isfinite(r32) & (np.abs(r32) >= TINY)  # elsewhere float64 may be as wrong as any
        tally.plain_wrong += int(np.any((off_plain > 1e-3) & known, axis=1).sum())
        tally.stabilized_wrong += int(np.any((off_got > 1e-3) & known, axis=1).sum())
        worse = (off_got > CLOSE) & (off_got > 2 * off_plain)
        hides = np.isnan(a) & np.isnan(r) & ~np.isnan(b)
        suspicious |= np.any(worse | hides, axis=1)
    yield from np.flatnonzero(suspicious)


def _relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    off = np.where(same, 0, np.abs(a - b) / np.maximum(np.abs(b), TINY))
    return np.where(np.isnan(off), np.inf, off)


def _wrong(a: Any, right: Any) -> bool:
    """Off by more than a thousandth."""
    a, right = np.asarray(a, np.float64), np.asarray(right, np.float64)
    with np.errstate(all="ignore"):
        return not np.all((np.abs(a - right) <= 1e-3 * np.abs(right) + TINY) | np.isnan(right) | (a == right))


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array), initial=0, where=np.isfinite(array)))


def _worst(runs: list[np.ndarray], exact: np.ndarray) -> np.ndarray:
    """The largest error of the plain program's number over runs that round at random; infinite where it is one of 1/0,
    whose sign rounding decides."""
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(runs, np.float64) - exact)
    either = np.isinf(exact) & np.any(np.asarray(runs) > 0, axis=0) & np.any(np.asarray(runs) < 0, axis=0)
    return np.where(either, np.inf, np.max(np.where(np.isfinite(off), off, 0), axis=0))


def _judged(text: str, f: Any, plain: list, got: list, x: np.ndarray, y: np.ndarray) -> Violation | None:
    exact = truth(f, jnp.asarray(x), jnp.asarray(y), max_precision=2048)
    numbers = [
        ("value", exact.value, exact.value_decided, exact.condition, exact.sensitivity),
        *(
            (f"slope by {'xy'[k]}", exact.gradient[k], exact.gradient_decided[k], exact.gradient_condition[k],
             exact.gradient_sensitivity[k])
            for k in range(2)
        ),
    ]  # fmt: skip
    at = tuple(map(float, x)), tuple(map(float, y))
    undefined = np.isnan(np.asarray(exact.value, np.float64)) & np.asarray(exact.value_decided)
    # The CPU's arithmetic takes a subnormal number for 0: what the exact program does there is not for it to say.
    subnormal = any(np.any((one != 0) & (np.abs(one) < TINY)) for one in (x, y))
    runs = rounding.results(_all_of(f), (jnp.asarray(x), jnp.asarray(y)))
    for k, (what, right, decided, condition, sensitivity) in enumerate(numbers):
        a, b, r = (np.asarray(one, np.float64) for one in (plain[k], got[k], right))
        decided = np.asarray(decided)
        # xlogy(x, y) is 0 where x is 0 as a number of its dtype, whatever y: the library's own convention.
        hidden = undefined & np.isnan(a) & ~np.isnan(b)
        if k == 0 and not subnormal and "xlogy" not in text and hidden.any():
            (in_domain,) = rounding.without_own_nan(f, (jnp.asarray(x), jnp.asarray(y)))
            if np.any(hidden & np.isnan(in_domain)):
                return Violation(text, "hides a domain error", *at, a, b, r)
        if subnormal or (k and (undefined.any() or np.isinf(np.asarray(exact.value, np.float64)).any())):
            continue  # what slope there is where there is no value, or none in range, nobody can say
        if k and _wrong(plain[0], exact.value):
            continue  # a right slope beside a wrong value is chance
        fine = within_contract(got[k], right, condition, "float32", sensitivity=sensitivity) | ~decided | np.isnan(r)
        with np.errstate(all="ignore"):
            no_worse = (np.abs(b - r) <= WORSE * np.abs(a - r) + TINY) | (a == b) | np.isnan(a)
            no_worse |= np.isinf(a) & np.isfinite(r)
            no_worse |= np.abs(b - r) <= WORSE * _worst([run[k] for run in runs], r)
            if k:
                # Reverse mode adds up what comes from all entries: a rounding of the largest is no fault of a rule,
                # nor is it one that another entry than in the plain program has the larger error, nor a slope that
                # no relative change of its argument by a rounding would show.
                no_worse |= np.abs(b - r) <= ROUNDING * _largest(r)
                at_argument = np.maximum(np.abs(np.asarray((x, y)[k - 1], np.float64)), TINY)
                no_worse |= np.abs(b - r) * at_argument <= ROUNDING * _largest(np.asarray(exact.value, np.float64))
                no_worse |= np.abs(b - r) <= 4 * _largest(a - r)
                no_worse |= np.isinf(r) & np.isfinite(b)  # the slope of 0 * log(0) is 0 by convention
                no_worse |= np.isnan(b) & (np.abs(a - r) >= np.abs(r) / 2) & (r != 0)  # no worse than a wrong number
        if not np.all(fine | no_worse):
            return Violation(text, f"worse {what}", *at, a, b, r)
    return None


__all__ = ["SIZE", "Tally", "Violation", "violations"]
