"""Families of generated programs: elementwise functions times what they stand in, losses and sums over rows.

`programs()` gives all of them. The names are `family-member-context`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spellings import jets
from spellings.binary import LOGITS_AND_TARGETS, SOFT_TARGETS, binary
from spellings.bound import Exact, exact
from spellings.branches import BRANCHES
from spellings.differences import DIFFERENCES
from spellings.elementwise import POINTS, Elementwise
from spellings.exponentials import EXPONENTIALS
from spellings.jets import Jet
from spellings.limits import LIMITS
from spellings.norms import LENGTHS, VECTORS
from spellings.powers import FACTORS, POWERS, PRODUCTS
from spellings.rows import OF_ROWS, OfRows, points
from spellings.sigmoids import FROM_SIGMOIDS

Array = jax.Array


@dataclass(frozen=True, eq=False)
class Case:
    """Arguments of a program; the first is differentiated, every float one counts for the condition number."""

    name: str
    dtype: str
    arguments: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Generated:
    """A program with what it is exactly: `exact(*lists of numbers)`, arguments flattened, integers as integers.

    `group`: programs of one group have the same cases, and may be compiled together.
    """

    name: str
    group: str
    program: Callable[..., Array]
    exact: Callable[..., Jet]
    cases_of: Callable[[str], tuple[Case, ...]]

    def cases(self, dtype: str) -> tuple[Case, ...]:
        return self.cases_of(dtype)

    def terms(self, case: Case) -> int:
        return case.arguments[0].size

    def expected(self, case: Case) -> tuple[Exact, list[Exact]]:
        return _expected(self.exact, case)


@functools.cache
def _expected(formula: Callable[..., Jet], case: Case) -> tuple[Exact, list[Exact]]:
    flat = [np.ravel(a).tolist() for a in case.arguments]
    floats = [a.dtype.kind == "f" for a in case.arguments]
    numbers = [x for column, is_float in zip(flat, floats, strict=True) if is_float for x in column]

    def of_numbers(variables: list[Jet]) -> Jet:
        left = iter(variables)
        return formula(
            *(
                [next(left) for _ in column] if is_float else column
                for column, is_float in zip(flat, floats, strict=True)
            )
        )

    return exact(of_numbers, numbers, len(flat[0]))


def _made(table: dict[str, Sequence[Any]], dtype: str) -> tuple[Case, ...]:
    """Cases from lists of numbers; what consists of whole Python numbers is an integer array."""
    return tuple(Case(name, dtype, tuple(_array(a, dtype) for a in arguments)) for name, arguments in table.items())


def _array(numbers: Any, dtype: str) -> np.ndarray:
    array = np.asarray(numbers)
    return array.astype(np.int32 if array.dtype.kind == "i" else dtype)


def cases_from(table: dict[str, Sequence[Any]]) -> Callable[[str], tuple[Case, ...]]:
    made = {dtype: _made(table, dtype) for dtype in ("float32", "float64")}
    return lambda dtype: made[dtype]


# -- what a function stands in: `apply(f, x)` is one number, `exact(f, numbers or rows)` the same exactly


@dataclass(frozen=True)
class Context:
    """`apply(f, x)` sums or averages f over the first axis of `x`; `exact(f, entries)` does so exactly."""

    name: str
    apply: Callable[[Callable[[Array], Array], Array], Array]
    exact: Callable[[Callable[[Any], Jet], list[Any]], Jet]


def _sum(f: Callable[[Any], Jet], x: list[Any]) -> Jet:
    return jets.total([f(a) for a in x])


def _moved(f: Callable[[Array], Array], x: Array) -> Array:
    """A padded batch of batches, of which a part is used."""
    padded = jnp.concatenate([x, x[:1]])[None]
    return jnp.sum(f(padded)[0, :-1])


WEIGHTS = (1.0, 0.5, 2.0)


def _weighted(f: Callable[[Array], Array], x: Array) -> Array:
    return jnp.mean(f(x) * jnp.array(WEIGHTS[: x.shape[0]], x.dtype))


def _weighted_exact(f: Callable[[Any], Jet], x: list[Any]) -> Jet:
    return jets.total([f(a) * w for a, w in zip(x, WEIGHTS, strict=False)]) / len(x)


CONTEXTS = (
    Context("sum", lambda f, x: jnp.sum(f(x)), _sum),
    Context("weighted_mean", _weighted, _weighted_exact),
    Context("vmap", lambda f, x: jnp.sum(jax.vmap(f)(x)), _sum),
    Context("jitted_helper", lambda f, x: jnp.sum(jax.jit(f)(x)), _sum),
    Context("checkpoint", lambda f, x: jnp.sum(jax.checkpoint(f)(x)), _sum),
    Context("moves", _moved, _sum),
    Context("map", lambda f, x: jnp.sum(jax.lax.map(f, x)), _sum),
)


def _elementwise(member: Elementwise, context: Context) -> Generated:
    quantity = member.name.partition(".")[0]
    return Generated(
        f"elementwise-{member.name}-{context.name}",
        f"elementwise-{quantity}-{context.name}",
        lambda x: context.apply(member.apply, x),
        _exact_in(member.exact, context),
        _elementwise_cases(member.points),
    )


@functools.cache
def _exact_in(f: Callable[[Jet], Jet], context: Context) -> Callable[..., Jet]:
    """One object per formula and context, so that expectations are worked out once."""
    return lambda x: context.exact(f, x)


@functools.cache
def _elementwise_cases(names: tuple[str, ...]) -> Callable[[str], tuple[Case, ...]]:
    return cases_from({name: (POINTS[name],) for name in names})


def _of_rows(member: OfRows, context: Context) -> Generated:
    quantity = member.name.partition(".")[0]
    return Generated(
        f"rows-{member.name}-{context.name}",
        f"rows-{quantity}-{context.name}",
        lambda x, *shared: context.apply(lambda rows: member.apply(rows, *shared), x),
        _exact_of_rows(member.exact, context, 2 if member.points in ("pairs", "data") else 3),
        _row_cases(member.points),
    )


@functools.cache
def _exact_of_rows(f: Callable[..., Jet], context: Context, width: int) -> Callable[..., Jet]:
    def exactly(x: list[Jet], *shared: list[Jet]) -> Jet:
        rows = [x[k : k + width] for k in range(0, len(x), width)]
        return context.exact(lambda row: f(row, *shared), rows)

    return exactly


@functools.cache
def _row_cases(kind: str) -> Callable[[str], tuple[Case, ...]]:
    vectors = {**VECTORS, **FACTORS}
    return cases_from(vectors[kind] if kind in vectors else points(kind))


def programs() -> Iterator[Generated]:
    """Every generated program, those of one group together."""
    for context in CONTEXTS:
        for member in (*FROM_SIGMOIDS, *EXPONENTIALS, *DIFFERENCES, *BRANCHES, *LIMITS, *POWERS):
            yield _elementwise(member, context)
        for row_member in (*OF_ROWS, *LENGTHS, *PRODUCTS):
            yield _of_rows(row_member, context)
    hard = cases_from(LOGITS_AND_TARGETS)
    soft = cases_from({name: (logits, SOFT_TARGETS) for name, (logits, _) in LOGITS_AND_TARGETS.items()})
    for loss in binary():
        yield Generated(
            f"binary-{loss.name}-mean", f"binary-{loss.group}", loss.apply, loss.exact, soft if loss.soft else hard
        )
