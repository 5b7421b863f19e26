"""Limits along curves through the inputs.

A curve moves input elements as rate * t**power, t going to 0 from above; the outputs along it are germs (germ.py). A
value that came out as 0/0 or inf - inf is its limit along straight and bent curves in random directions where all of
them agree, else NaN. Agreement on finitely many curves is evidence, not proof; a quotient is tried along curves on
which its denominator vanishes too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.evaluate import Evaluator, is_float
from stablegrad.exact.germ import limit
from stablegrad.exact.germs import GermAlgebra
from stablegrad.exact.scalars import Scalar, Undefined

WINDOWS = (6, 12, 24, 48)
# Curves through the inputs: two straight ones, and pairs on which some inputs move as t and the others as t**4.
CURVES = ((0, False), (1, False), (2, False), (2, True), (3, False), (3, True))
# A perturbation of all inputs by t**APART, too small to be seen in the first terms, resolves a 0/0 beside the curve.
APART = 5
MOST_CRITICAL = 4

Rate = Callable[[int, int], list[tuple[int, Scalar]]]  # (input, place) -> (power of t, rate) of its moves
Reader = Callable[[int, Any], Scalar]  # (number of the output, its germ) -> what is wanted of it

KINK = Undefined("kink", "the one-sided derivatives differ")
NO_LIMIT = Undefined("nan", "the limit depends on the direction")


def is_singular(a: Any) -> bool:
    return type(a) is Undefined and a.kind == "singular"


def run(problem: Any, rate: Rate, algebra: GermAlgebra) -> list[Any]:
    """All float outputs along a curve: input (k, place) is its value plus the sum of rate * t**power."""

    def element(k: int, place: int, value: float) -> Any:
        found = algebra.from_float(value)
        if type(found) is fmpq:
            for power, c in rate(k, place):
                found = algebra.add(found, algebra.line(s.ZERO, c, power))
        return found

    results = Evaluator(algebra, problem.engine).run(problem.graph, problem.arguments(algebra, element))
    return [x for node, r in zip(problem.graph.outputs, results) if is_float(node.dtype) for x in r.ravel()]


def along(
    problem: Any, rate: Rate, wanted: list[int], read: Reader, seed: int, *, wary: bool = False
) -> tuple[list[Scalar], GermAlgebra]:
    """`read` of the wanted outputs along a curve, with as many terms as that takes; and the algebra that it took."""
    for window in WINDOWS:
        algebra = GermAlgebra(window, np.random.default_rng(seed), wary=wary)
        results = run(problem, rate, algebra)
        found = [results[n] if type(results[n]) is Undefined else read(n, results[n]) for n in wanted]
        if not any(type(x) is Undefined and x.kind == "truncated" for x in found):
            break
    return found, algebra


def follow(problem: Any, rate: Rate, wanted: list[int], read: Reader) -> list[Scalar]:
    """The same, where a 0/0 all along the curve is resolved by curves very close to it."""
    results, _ = along(problem, rate, wanted, read, 0)
    again = [m for m, r in enumerate(results) if type(r) is Undefined and r.kind in ("singular", "nan")]
    if not any(is_singular(results[m]) for m in again):
        return results
    columns: list[list[Scalar]] = [[] for _ in again]
    for seed in (11, 12):
        generic = _generic(seed)
        for flip in (s.ONE, s.MINUS_ONE):

            def apart(k: int, place: int) -> list[tuple[int, Scalar]]:
                return [*rate(k, place), (APART, s.mul(flip, generic(k, place)))]  # noqa: B023

            ends, _ = along(problem, apart, [wanted[m] for m in again], read, seed)
            for column, end in zip(columns, ends):
                column.append(end)
    for m, column in zip(again, columns, strict=True):
        results[m] = agreed(column, KINK)
    return results


def _generic(seed: int) -> Callable[[int, int], Scalar]:
    """A random rational rate for each input element, the same one each time it is asked."""
    rates: dict[tuple[int, int], Scalar] = {}
    choice = np.random.default_rng(seed)

    def rate(k: int, place: int) -> Scalar:
        if (k, place) not in rates:
            rates[k, place] = fmpq(int(choice.integers(64, 128)) * int(choice.choice((-1, 1))), 64)
        return rates[k, place]

    return rate


def _bend(seed: int, swapped: bool) -> Callable[[int, int], int]:
    """The power of t at which each input element moves: all 1, or 1 and 4, the first two elements differing."""
    powers: dict[tuple[int, int], bool] = {}
    choice = np.random.default_rng(seed)

    def power(k: int, place: int) -> int:
        if (k, place) not in powers:
            powers[k, place] = bool(len(powers)) if len(powers) < 2 else bool(choice.integers(2))
        return 1 if seed < 2 or powers[k, place] == swapped else 4

    return power


def limits(problem: Any, wanted: list[int]) -> list[Scalar]:
    """The limits of the wanted outputs; NaN where they depend on the curve."""
    columns: list[list[Scalar]] = [[] for _ in wanted]
    vanishing = []
    for seed, swapped in CURVES:
        for side in (s.ONE, s.MINUS_ONE):
            rate = _bent_curve(seed, swapped, side)
            ends, algebra = along(problem, rate, wanted, _limit, seed)
            vanishing.append(algebra.vanishing)
            for column, end in zip(columns, ends):
                column.append(end)
    found = [agreed(column, NO_LIMIT) for column in columns]
    return [_where_denominators_vanish(problem, *pair, vanishing[0], vanishing[2]) for pair in zip(wanted, found)]


def _limit(_: int, germ: Any) -> Scalar:
    return limit(germ)


def _bent_curve(seed: int, swapped: bool, side: Scalar) -> Rate:
    generic, power = _generic(seed), _bend(seed, swapped)
    return lambda k, place: [(power(k, place), s.mul(side, generic(k, place)))]


def _where_denominators_vanish(
    problem: Any, number: int, found: Scalar, first: list[tuple[Any, Scalar]], second: list[tuple[Any, Scalar]]
) -> Scalar:
    """`found`, or NaN where a curve on which a denominator vanishes to first order leads elsewhere.

    first, second: the leading terms of the denominators along the curves 0 and 1. Where they are c t and d t, the
    denominator vanishes to first order along d * (curve 0) - c * (curve 1): for x y / (x + y), along x = -y.
    """
    if type(found) is Undefined:
        return found
    rates = _generic(0), _generic(1)
    # Only exact rates make a denominator vanish exactly.
    pairs = [(c, d) for (p, c), (q, d) in zip(first, second) if p == q == 1 and type(c) is type(d) is fmpq]
    for c, d in list(dict.fromkeys(pairs))[:MOST_CRITICAL]:

        def rate(k: int, place: int) -> list[tuple[int, Scalar]]:
            return [(1, s.sub(s.mul(d, rates[0](k, place)), s.mul(c, rates[1](k, place))))]  # noqa: B023

        (end,), _ = along(problem, rate, [number], _limit, 0, wary=True)
        if type(end) is not Undefined and same(end, found) is False:
            return NO_LIMIT
    return found


def agreed(found: list[Scalar], otherwise: Undefined) -> Scalar:
    """What all of them are; those where the function is not defined do not count, unless none is."""
    inside = [x for x in found if not (type(x) is Undefined and x.kind == "nan")]
    if not inside:
        return found[0]
    unknown = [x for x in inside if type(x) is Undefined]
    if unknown:
        worst = s.worse(*unknown)
        return Undefined("unsupported", f"no limit found: {worst.reason}") if worst.kind == "singular" else worst
    for x in inside[1:]:
        equal = same(inside[0], x)
        if equal is not True:
            return otherwise if equal is False else equal
    return inside[0]


def same(a: Scalar, b: Scalar) -> bool | Undefined:
    """Whether two scalars are one number: balls that overlap are, if they are narrow."""
    order = s.compare(a, b)
    if type(order) is not Undefined:
        return order == 0
    difference = s.absolute(s.sub(a, b))
    scale = s.mul(s.add(s.absolute(a), s.absolute(b)), fmpq(1, 2**40))
    close = s.compare(difference, s.maximum(scale, fmpq(1, 2**60)))
    return True if close == -1 else s.BEYOND
