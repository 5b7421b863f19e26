"""A program plainly and stabilized, in every mode, against exact arithmetic.

`check_rule` is what the tables call; each of its assertions stands alone, so that a failure says what broke.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rules.program_shape import names_of, still_there
from stablegrad import explain, stabilize
from stablegrad.exact.error import within_contract
from stablegrad.rules import RULES
from stablegrad.truth import Truth, truth

EXPONENTS = {"float16": 0.13, "bfloat16": 1.0, "float32": 1.0, "float64": 8.0}  # reach of exp, relative to float32


@contextlib.contextmanager
def in_dtype(dtype: str) -> Iterator[None]:
    """The context that a dtype needs."""
    with jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext():
        yield


def exponents(points: Sequence[Any], dtype: str) -> np.ndarray:
    """Points made for float32's exp, moved to where the exp of `dtype` over- and underflows: those above 50."""
    array = np.asarray(points, np.float64)
    return np.where(np.abs(array) > 50, array * EXPONENTS[dtype], array)


def padded(points: Sequence[Any], length: int = 8) -> list[Any]:
    """The points, the last one repeated up to a common number: programs of one shape share compiled operations."""
    return [*points, *[points[-1]] * (-len(points) % length)]


@dataclass(frozen=True)
class Answer:
    """Value and gradient, of one way to run the program. A part that was not asked for is None."""

    way: str
    value: Any
    gradient: tuple[Any, ...] | None


class Program:
    """f at args: its exact answer, and the answers of the plain and the stabilized program.

    The gradient is that of the sum of f's outputs, by every argument of floats.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        dtype: str = "float32",
        *,
        slope_of_log_of_zero: bool = False,
        **options: Any,
    ) -> None:
        self.slope_of_log_of_zero = slope_of_log_of_zero
        self.f = f
        self.dtype = dtype
        self.args = tuple(a if _is_discrete(a) else jnp.asarray(np.asarray(a, np.float64), dtype) for a in args)
        self.wrt = tuple(k for k, a in enumerate(self.args) if not _is_discrete(a))
        self.options = options

    @cached_property
    def exact(self) -> Truth:
        return truth(self.f, *self.args, wrt=self.wrt)

    @cached_property
    def stable(self) -> Callable[..., Any]:
        return stabilize(self.f, **self.options)

    def answers(self, thorough: bool) -> Iterator[Answer]:
        """Eager and jitted: value alone, gradient alone, both together; jitted alone only if `thorough`."""
        f, loss = self.stable, _total(self.stable)
        both = jax.value_and_grad(lambda *a: ((y := f(*a)).sum(), y), self.wrt, has_aux=True)
        for way, wrap in (("eager", lambda g: g), ("jit", jax.jit)):
            if thorough or way == "eager":
                yield Answer(f"{way} value", wrap(f)(*self.args), None)
                yield Answer(f"{way} gradient", None, wrap(jax.grad(loss, self.wrt))(*self.args))
            (_, value), gradient = wrap(both)(*self.args)
            yield Answer(f"{way} value_and_grad", value, gradient)

    def transformed(self) -> Iterator[Answer]:
        """Forward mode, and stabilized bodies of vmap, scan and checkpoint; jitted in one program."""
        f, wrt, stable = self.f, self.wrt, self.stable

        def twice(step: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *stacked: step(*stacked)

        def scanned(*stacked: Any) -> Any:
            return jax.lax.scan(lambda carry, a: (carry, f(*a)), 0.0, stacked)[1]

        def everything(*args: Any) -> dict[str, Any]:
            stacked = [jnp.stack([a, a]) for a in args]
            batch = stabilize(jax.vmap(f), **self.options)
            loop = stabilize(twice(scanned), **self.options)
            remat = stabilize(jax.checkpoint(f), **self.options)
            return {
                "forward mode": (stable(*args), jax.jacfwd(_total(stable), wrt)(*args)),
                "checkpoint": (remat(*args), jax.grad(_total(remat), wrt)(*args)),
                "vmap": (batch(*stacked), jax.grad(_total(batch), wrt)(*stacked)),
                "scan": (loop(*stacked), jax.grad(_total(loop), wrt)(*stacked)),
            }

        for way, (value, gradient) in jax.jit(everything)(*self.args).items():
            if way in ("vmap", "scan"):
                for k in range(2):
                    yield Answer(f"{way} [{k}]", value[k], tuple(g[k] for g in gradient))
            else:
                yield Answer(way, value, gradient)

    # -- right or wrong ---------------------------------------------------------------------------------------------

    def value_right(self, got: Any) -> np.ndarray:
        found = self.exact
        right = within_contract(got, found.value, found.condition, self.dtype, sensitivity=found.sensitivity)
        return right | ~np.asarray(found.value_decided)

    def gradient_right(self, got: Sequence[Any]) -> list[np.ndarray]:
        """An infinite exact slope may come out as another number under the convention for 0 * log(0)."""
        found = self.exact
        out = []
        for k, g in zip(self.wrt, got):
            right = within_contract(
                g, found.gradient[k], found.gradient_condition[k], self.dtype, sensitivity=found.gradient_sensitivity[k]
            )
            if self.slope_of_log_of_zero:
                right |= np.isinf(np.asarray(found.gradient[k], np.float64)) & ~np.isnan(np.asarray(g, np.float64))
            out.append(right | ~np.asarray(found.gradient_decided[k]))
        return out

    def assert_right(self, answer: Answer) -> None:
        """Value and gradient of one answer are within the contract; shapes and dtypes are the plain program's."""
        if answer.value is not None:
            assert answer.value.dtype == np.asarray(self.exact.value).dtype, f"{answer.way}: the dtype changed"
            _report(answer.way, answer.value, self.exact.value, self.value_right(answer.value))
        if answer.gradient is not None:
            rights = self.gradient_right(answer.gradient)
            for k, g, right in zip(self.wrt, answer.gradient, rights):
                _report(f"{answer.way}, by argument {k}", g, self.exact.gradient[k], right)


# -- the assertions ------------------------------------------------------------------------------------------------


def check_rule(
    f: Callable[..., Any],
    args: Sequence[Any],
    rule: str,
    *,
    fails_plain: Any = (),
    dtype: str = "float32",
    thorough: bool = False,
    slope_of_log_of_zero: bool = False,
    source: Callable[..., Any] | None = None,
) -> None:
    """The rule named `rule` fires in f and makes it right at args.

    Args:
        f: a program; its results are elementwise in the leading axis of the arguments, or one number.
        args: floats are cast to `dtype`, integers and booleans are left.
        rule: a name of `stablegrad.rule_names()`.
        fails_plain: the positions along the leading axis where the plain program is wrong; True for a single result.
        dtype: of the arguments.
        thorough: also forward mode, vmap, scan and checkpoint, and jitted value and gradient each alone.
        slope_of_log_of_zero: where the exact slope is infinite any number will do, but no NaN: `xlogy` has slope 0
            at 0 * log(0) by convention.
        source: the function whose lines the report should name, where it is not f.
    """
    with in_dtype(dtype):
        program = Program(f, args, dtype, slope_of_log_of_zero=slope_of_log_of_zero)
        assert_rewritten(program, rule, source)
        assert_plain_fails(program, fails_plain)
        for answer in program.answers(thorough):
            program.assert_right(answer)
        assert_never_worse(program)
        if thorough:
            for answer in program.transformed():
                program.assert_right(answer)


def assert_rewritten(program: Program, rule: str, source: Callable[..., Any] | None = None) -> None:
    """explain names the rule at a line of f, and an operation that it replaces is gone or fed differently."""
    report = explain(program.f, **program.options)(*program.args)
    places = {(r.file, r.line) for r in report.rewrites if r.rule == rule}
    assert places, f"{rule} did not fire:\n{report}"
    assert places & _lines(source or program.f), (
        f"{rule} is reported at {places}, not at a line of the program:\n{report}"
    )
    assert not still_there(roots_of(rule), program.f, program.stable, *program.args), (
        f"{rule} fired, but the operation is still there:\n{report}"
    )


def assert_plain_fails(program: Program, where: Any) -> None:
    """The plain program is wrong at the leading positions `where`, in value or gradient, eagerly."""
    if where is True or len(where):
        value, gradient = program.f(*program.args), jax.grad(_total(program.f), program.wrt)(*program.args)
        right = _leading(program.value_right(value), program.args)
        for g in program.gradient_right(gradient):
            right &= _leading(g, program.args)
        places = [k for k in (range(right.size) if where is True else where) if right[k]]
        assert not places, f"the plain program is right at {places}: no breaking points"


def assert_never_worse(program: Program) -> None:
    """Where the exact answer is not known, the stabilized value is the plain one, if that is finite."""
    decided = np.asarray(program.exact.value_decided)
    if not decided.all():
        plain, stable = (np.asarray(f(*program.args), np.float64) for f in (program.f, program.stable))
        same = np.isclose(stable, plain, rtol=1e-4) | ~np.isfinite(plain) | decided
        _report("where the exact value is not known", stable, plain, same)


def assert_left_alone(f: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Nothing is rewritten: no report, and the same operations."""
    report = explain(f, **options)(*args)
    assert not report.rewrites, f"nothing is wrong here, but:\n{report}"
    assert names_of(stabilize(f, **options), *args) == names_of(f, *args)


def assert_same_kind(f: Callable[..., Any], *args: Any) -> None:
    """Domain errors survive: NaN and infinite values are those of the plain program, eagerly and jitted.

    And where the plain value and all its slopes are NaN, one of the stabilized slopes is.
    """
    arrays = tuple(jnp.asarray(np.asarray(padded(a)), "float32") for a in args)
    wrt = tuple(range(len(arrays)))

    def both(g: Callable[..., Any]) -> Callable[..., Any]:
        return jax.value_and_grad(lambda *a: ((y := g(*a)).sum(), y), wrt, has_aux=True)

    (_, plain), slopes = both(f)(*arrays)
    plain = np.asarray(plain)
    stable = stabilize(f)
    for way, wrap in (("eager", lambda g: g), ("jit", jax.jit)):
        (_, got), stable_slopes = wrap(both(stable))(*arrays)
        got = np.asarray(got)
        same = np.where(np.isfinite(plain), np.isclose(got, plain, rtol=1e-4, atol=1e-30), got == plain)
        _report(f"{way} value", got, plain, same | (np.isnan(plain) & np.isnan(got)))
        a, b = (np.isnan(np.stack([np.asarray(g) for g in slope])) for slope in (slopes, stable_slopes))
        undefined = np.isnan(plain).reshape(plain.shape + (1,) * (a.ndim - 1 - plain.ndim))
        lost = a.all(0) & undefined
        _report(f"{way} gradient has a NaN (1) or none (0),", b.any(0), a.any(0), ~lost | b.any(0))


def roots_of(rule: str) -> set[str]:
    """The operations that a rule replaces, as JAX names them."""
    if rule == "untaken_branch":
        return {"select_n"}
    return {root for root, rules in RULES.items() if rule in {name for name, _ in rules}}


def _total(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jnp.sum(f(*args))


def _is_discrete(a: Any) -> bool:
    return np.asarray(a).dtype.kind in "biu" and hasattr(a, "dtype")


def _leading(right: np.ndarray, args: Sequence[Any]) -> np.ndarray:
    """Along the leading axis alone; a single result counts for the whole."""
    return right.reshape(right.shape[0], -1).all(1) if right.ndim else right.reshape(1)


def _lines(f: Callable[..., Any]) -> set[tuple[str, int]]:
    """(file, line) of all code of f."""
    code = inspect.unwrap(f).__code__
    found, waiting = set(), [code]
    while waiting:
        top = waiting.pop()
        found |= {(top.co_filename, line) for _, _, line in top.co_lines() if line is not None}
        waiting.extend(c for c in top.co_consts if isinstance(c, CodeType))
    return found


def _report(way: str, got: Any, expected: Any, right: np.ndarray) -> None:
    right = np.asarray(right)
    if not right.all():
        got, expected = (np.broadcast_to(np.asarray(x, np.float64), right.shape) for x in (got, expected))
        rows = [
            f"at {tuple(int(k) for k in at)}: {got[tuple(at)]!r}, exactly {expected[tuple(at)]!r}"
            for at in np.argwhere(~right)[:6]
        ]
        raise AssertionError(f"{way} is wrong " + "; ".join(rows))
