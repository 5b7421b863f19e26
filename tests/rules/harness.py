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

from rules.program_shape import still_there
from stablegrad import explain, stabilize
from stablegrad.exact.error import within_contract
from stablegrad.rules import RULES
from stablegrad.truth import Truth, truth


@contextlib.contextmanager
def in_dtype(dtype: str) -> Iterator[None]:
    """The context that a dtype needs."""
    with jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext():
        yield


@dataclass(frozen=True)
class Answer:
    """Value and gradient, of one way to run the program. A part that was not asked for is None."""

    way: str
    value: Any
    gradient: tuple[Any, ...] | None


class Program:
    """f at args: its exact answer, and the answers of the plain and the stabilized program.

    The gradient is that of the sum of f's outputs, by every argument of floats.

    Args:
        f: the program.
        args: floats are cast to `dtype`, integers and booleans are left.
        dtype: of the arguments.
        slope_of_log_of_zero: where the exact slope is infinite any number will do, but no NaN: by convention `xlogy`
            has slope 0 at 0 * log(0).
        slope_of_kink: where there is no slope, as that of |x| at 0, it is 0 by convention.
        meaning: the same mathematics, where the exact evaluator does not know an operation of f.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        dtype: str = "float32",
        *,
        slope_of_log_of_zero: bool = False,
        slope_of_kink: bool = False,
        meaning: Callable[..., Any] | None = None,
    ) -> None:
        self.f = f
        self.dtype = dtype
        self.args = tuple(a if _is_discrete(a) else jnp.asarray(np.asarray(a, np.float64), dtype) for a in args)
        self.wrt = tuple(k for k, a in enumerate(self.args) if not _is_discrete(a))
        self.slope_of_kink = slope_of_kink
        self.slope_of_log_of_zero = slope_of_log_of_zero
        self.meaning = meaning or f

    @cached_property
    def exact(self) -> Truth:
        return truth(self.meaning, *self.args, wrt=self.wrt)

    @cached_property
    def stable(self) -> Callable[..., Any]:
        return stabilize(self.f)

    def value_and_gradient(self, *args: Any) -> tuple[Any, tuple[Any, ...]]:
        """Of the stabilized program."""
        f = self.stable
        both = jax.value_and_grad(lambda *a: ((y := f(*a)).sum(), y), self.wrt, has_aux=True)
        (_, value), gradient = both(*args)
        return value, gradient

    def eager(self) -> Iterator[Answer]:
        """Value alone, gradient alone, both together."""
        yield Answer("eager value", self.stable(*self.args), None)
        yield Answer("eager gradient", None, jax.grad(total(self.stable), self.wrt)(*self.args))
        yield Answer("eager value_and_grad", *self.value_and_gradient(*self.args))

    def jitted(self) -> Iterator[Answer]:
        """The same, each a program of its own."""
        yield Answer("jit value", jax.jit(self.stable)(*self.args), None)
        yield Answer("jit gradient", None, jax.jit(jax.grad(total(self.stable), self.wrt))(*self.args))
        yield Answer("jit value_and_grad", *jax.jit(self.value_and_gradient)(*self.args))

    def transformed(self) -> Iterator[Answer]:
        """Forward mode, and stabilized bodies of vmap, scan and checkpoint; jitted in one program."""
        f, wrt, stable = self.f, self.wrt, self.stable

        def scanned(*stacked: Any) -> Any:
            return jax.lax.scan(lambda carry, a: (carry, f(*a)), 0.0, stacked)[1]

        def everything(*args: Any) -> dict[str, Any]:
            stacked = [jnp.stack([a, a]) for a in args]
            batch, loop, remat = stabilize(jax.vmap(f)), stabilize(scanned), stabilize(jax.checkpoint(f))
            return {
                "forward mode": (stable(*args), jax.jacfwd(total(stable), wrt)(*args)),
                "checkpoint": (remat(*args), jax.grad(total(remat), wrt)(*args)),
                "vmap": (batch(*stacked), jax.grad(total(batch), wrt)(*stacked)),
                "scan": (loop(*stacked), jax.grad(total(loop), wrt)(*stacked)),
            }

        for way, (value, gradient) in jax.jit(everything)(*self.args).items():
            if way in ("vmap", "scan"):
                for k in range(2):
                    yield Answer(f"{way} [{k}]", value[k], tuple(g[k] for g in gradient))
            else:
                yield Answer(way, value, gradient)

    # -- right or wrong ---------------------------------------------------------------------------------------------

    def value_right(self, got: Any) -> np.ndarray:
        """Where the value is within the contract, or the exact one is not known."""
        found = self.exact
        right = within_contract(got, found.value, found.condition, self.dtype, sensitivity=found.sensitivity)
        return right | ~np.asarray(found.value_decided)

    def gradient_right(self, got: Sequence[Any]) -> list[np.ndarray]:
        """The same of each slope."""
        found = self.exact
        out = []
        for k, g in zip(self.wrt, got):
            right = within_contract(
                g, found.gradient[k], found.gradient_condition[k], self.dtype, sensitivity=found.gradient_sensitivity[k]
            )
            if self.slope_of_log_of_zero:
                right |= np.isinf(np.asarray(found.gradient[k], np.float64)) & ~np.isnan(np.asarray(g, np.float64))
            decided = np.asarray(found.gradient_decided[k])
            unknown = np.asarray(g) == 0 if self.slope_of_kink else True
            out.append(np.where(decided, right, unknown))
        return out

    def assert_right(self, answer: Answer) -> None:
        """Value and gradient of one answer are within the contract; shape and dtype are the plain program's."""
        if answer.value is not None:
            assert answer.value.dtype == np.asarray(self.exact.value).dtype, f"{answer.way}: the dtype changed"
            report(answer.way, answer.value, self.exact.value, self.value_right(answer.value))
        if answer.gradient is not None:
            rights = self.gradient_right(answer.gradient)
            for k, g, right in zip(self.wrt, answer.gradient, rights):
                report(f"{answer.way}, by argument {k}", g, self.exact.gradient[k], right)


# -- the assertions ------------------------------------------------------------------------------------------------


def check_rule(
    program: Program,
    rule: str,
    *,
    fails_plain: Any = (),
    thorough: bool = False,
    jitted: Answer | None = None,
    source: Callable[..., Any] | None = None,
) -> None:
    """The rule named `rule` fires in the program and makes it right.

    Args:
        program: its results are elementwise in the leading axis of the arguments, or one number.
        rule: a name of `stablegrad.rule_names()`.
        fails_plain: the positions along the leading axis where the plain program is wrong; True for a single result.
        thorough: also forward mode, vmap, scan and checkpoint, and jitted value and gradient each alone.
        jitted: the jitted answer, where it is known already.
        source: the function whose lines the report should name, where it is not the program's.
    """
    with in_dtype(program.dtype):
        assert_rewritten(program, rule, source)
        assert_plain_fails(program, fails_plain)
        for answer in program.eager():
            program.assert_right(answer)
        if jitted is not None:
            program.assert_right(jitted)
        if thorough or jitted is None:
            for answer in program.jitted():
                program.assert_right(answer)
        if thorough:
            for answer in program.transformed():
                program.assert_right(answer)
        assert_never_worse(program)


def assert_rewritten(program: Program, rule: str, source: Callable[..., Any] | None = None) -> None:
    """explain names the rule at a line of the program, and an operation that it replaces is gone or fed differently."""
    found = explain(program.f)(*program.args)
    places = {(r.file, r.line) for r in found.rewrites if r.rule == rule}
    assert places, f"{rule} did not fire:\n{found}"
    assert places & _lines(source or program.f), f"{rule} is reported at {places}, no line of the program:\n{found}"
    assert not still_there(roots_of(rule), program.f, program.stable, *program.args), (
        f"{rule} fired, but the operation is still there:\n{found}"
    )


def assert_plain_fails(program: Program, where: Any) -> None:
    """The plain program is wrong at the leading positions `where`, in value or gradient, eagerly."""
    if where is not True and not len(where):
        return
    value, gradient = program.f(*program.args), jax.grad(total(program.f), program.wrt)(*program.args)
    rights = [program.value_right(value), *program.gradient_right(gradient)]
    if where is True:
        assert not all(np.all(r) for r in rights), "the plain program is right: no breaking point"
        return
    right = np.all([r.reshape(r.shape[0], -1).all(1) for r in rights], axis=0)
    places = [k for k in where if right[k]]
    assert not places, f"the plain program is right at {places}: no breaking points"


def assert_never_worse(program: Program) -> None:
    """Where the exact answer is not known, the stabilized value is the plain one, if that is finite.

    Where it is known, the contract's bound says more.
    """
    decided = np.asarray(program.exact.value_decided)
    if not decided.all():
        plain, stable = (np.asarray(f(*program.args), np.float64) for f in (program.f, program.stable))
        same = np.isclose(stable, plain, rtol=1e-4) | ~np.isfinite(plain) | decided
        report("where the exact value is not known", stable, plain, same)


def roots_of(rule: str) -> set[str]:
    """The operations that a rule replaces, as JAX names them."""
    if rule == "untaken_branch":
        return {"select_n"}
    return {root for root, rules in RULES.items() if rule in {name for name, _ in rules}}


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the outputs of f."""
    return lambda *args: jnp.sum(f(*args))


def report(way: str, got: Any, expected: Any, right: np.ndarray) -> None:
    """Raise AssertionError with the numbers that are not right."""
    right = np.asarray(right)
    if not right.all():
        got, expected = (np.broadcast_to(np.asarray(x, np.float64), right.shape) for x in (got, expected))
        rows = [
            f"at {tuple(int(k) for k in at)}: {got[tuple(at)]!r}, exactly {expected[tuple(at)]!r}"
            for at in np.argwhere(~right)[:6]
        ]
        raise AssertionError(f"{way} is wrong " + "; ".join(rows))


def _is_discrete(a: Any) -> bool:
    return np.asarray(a).dtype.kind in "biu" and hasattr(a, "dtype")


def _lines(f: Callable[..., Any]) -> set[tuple[str, int]]:
    """(file, line) of all code of f."""
    found, waiting = set(), [inspect.unwrap(f).__code__]
    while waiting:
        top = waiting.pop()
        found |= {(top.co_filename, line) for _, _, line in top.co_lines() if line is not None}
        waiting.extend(c for c in top.co_consts if isinstance(c, CodeType))
    return found
