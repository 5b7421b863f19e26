"""Limits and one-sided derivatives at the points where the calculus of jets says nothing.

A value that came out as 0/0 or inf - inf is its limit along curves through the inputs in several random directions,
where all of them agree, else NaN. A derivative is the slope along one input, from both sides: they must agree, unless
the function is not defined on one of the sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.evaluate import Evaluator, is_float
from stablegrad.exact.germ import Germ, direction, limit, slope
from stablegrad.exact.germs import GermAlgebra
from stablegrad.exact.jet import Jet, value_of
from stablegrad.exact.scalars import Infinity, Scalar, Undefined

WINDOWS = (6, 12, 24, 48)
# Curves through the inputs: two straight ones, and pairs on which some inputs move as t and the others as t**4.
CURVES = ((0, False), (1, False), (2, False), (2, True), (3, False), (3, True))
# A perturbation of all inputs by t**APART, too small to be seen in the first terms, resolves a 0/0 beside the curve.
APART = 5
MOST_CURVES = 128

Rate = Callable[[int, int], list[tuple[int, Scalar]]]  # (input, place) -> (power of t, rate) of its moves
Reader = Callable[[int, Any], Scalar]  # (number of the output, its germ) -> what is wanted of it

KINK = Undefined("kink", "the one-sided derivatives differ")
JUMP = Undefined("kink", "the function jumps here")
NO_LIMIT = Undefined("nan", "the limit depends on the direction")


def _is_singular(a: Any) -> bool:
    return type(a) is Undefined and a.kind == "singular"


def settle(problem: Any, elements: list[Any]) -> list[Any]:
    """The elements of the outputs, with limits in place of what was singular."""
    elements = list(elements)
    open_values = [n for n, e in enumerate(elements) if _is_singular(value_of(e))]
    if open_values:
        limits = _limits(problem, open_values)
        for n, value in zip(open_values, limits):
            e = elements[n]
            if type(e) is not Jet:
                elements[n] = value
            elif type(value) is Undefined:
                elements[n] = Jet(value, dict.fromkeys(e.grad, value), dict.fromkeys(e.hess, value))
            else:
                elements[n] = Jet(value, e.grad, e.hess)
    _settle_slopes(problem, elements)
    return elements


# -- curves ----------------------------------------------------------------------------------------------------------


def _run(problem: Any, rate: Callable[[int, int], list[tuple[int, Scalar]]], window: int, seed: int) -> list[Any]:
    """All float outputs along a curve: input (k, place) is its value plus the sum of rate * t**power."""
    algebra = GermAlgebra(window, np.random.default_rng(seed))

    def element(k: int, place: int, value: float) -> Any:
        found = algebra.from_float(value)
        if type(found) is fmpq:
            for power, c in rate(k, place):
                found = algebra.add(found, algebra.line(s.ZERO, c, power))
        return found

    results = Evaluator(algebra, problem.engine).run(problem.graph, problem.arguments(algebra, element))
    return [x for node, r in zip(problem.graph.outputs, results) if is_float(node.dtype) for x in r.ravel()]


def _along(problem: Any, rate: Rate, wanted: list[int], read: Reader, seed: int) -> list[Scalar]:
    """`read` of the wanted outputs along a curve, with as many terms as that takes."""
    found: list[Scalar] = []
    for window in WINDOWS:
        results = _run(problem, rate, window, seed)
        found = [results[n] if type(results[n]) is Undefined else read(n, results[n]) for n in wanted]
        if not any(type(x) is Undefined and x.kind == "truncated" for x in found):
            break
    return found


def _follow(problem: Any, rate: Rate, wanted: list[int], read: Reader) -> list[Scalar]:
    """The same, where a 0/0 all along the curve is resolved by curves very close to it."""
    results = _along(problem, rate, wanted, read, 0)
    again = [m for m, r in enumerate(results) if type(r) is Undefined and r.kind in ("singular", "nan")]
    if not any(_is_singular(results[m]) for m in again):
        return results
    columns: list[list[Scalar]] = [[] for _ in again]
    for seed in (11, 12):
        generic = _generic(seed)
        for flip in (s.ONE, s.MINUS_ONE):

            def apart(k: int, place: int) -> list[tuple[int, Scalar]]:
                return [*rate(k, place), (APART, s.mul(flip, generic(k, place)))]  # noqa: B023

            along = _along(problem, apart, [wanted[m] for m in again], read, seed)
            for column, found in zip(columns, along, strict=True):
                column.append(found)
    for m, column in zip(again, columns, strict=True):
        results[m] = _agreed(column, KINK)
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


def _limits(problem: Any, wanted: list[int]) -> list[Scalar]:
    columns: list[list[Scalar]] = [[] for _ in wanted]
    for seed, swapped in CURVES:
        for side in (s.ONE, s.MINUS_ONE):
            rate = _bent_curve(seed, swapped, side)
            for column, end in zip(columns, _along(problem, rate, wanted, lambda _, germ: limit(germ), seed)):
                column.append(end)
    return [_agreed(column, NO_LIMIT) for column in columns]


def _bent_curve(seed: int, swapped: bool, side: Scalar) -> Rate:
    generic, power = _generic(seed), _bend(seed, swapped)
    return lambda k, place: [(power(k, place), s.mul(side, generic(k, place)))]


def _agreed(found: list[Scalar], otherwise: Undefined) -> Scalar:
    """What all of them are; those where the function is not defined do not count, unless none is."""
    inside = [x for x in found if not (type(x) is Undefined and x.kind == "nan")]
    if not inside:
        return found[0]
    open_ = [x for x in inside if type(x) is Undefined]
    if open_:
        worst = s.worse(*open_)
        return Undefined("unsupported", f"no limit found: {worst.reason}") if worst.kind == "singular" else worst
    first = inside[0]
    for x in inside[1:]:
        same = _same(first, x)
        if type(same) is Undefined:
            return same
        if not same:
            return otherwise
    return first


def _same(a: Scalar, b: Scalar) -> bool | Undefined:
    order = s.compare(a, b)
    if type(order) is not Undefined:
        return order == 0
    # Overlapping balls: the same number, if they are narrow.
    difference = s.absolute(s.sub(a, b))
    scale = s.mul(s.add(s.absolute(a), s.absolute(b)), fmpq(1, 2**40))
    close = s.compare(difference, s.maximum(scale, fmpq(1, 2**60)))
    return True if close == -1 else s.BEYOND


# -- slopes ----------------------------------------------------------------------------------------------------------


def _settle_slopes(problem: Any, elements: list[Any]) -> None:
    wanted: dict[int, list[int]] = {}
    for n, e in enumerate(elements):
        if type(e) is Jet:
            for i, g in e.grad.items():
                if _is_singular(g):
                    if _infinite_input(problem, i) and s.is_finite(e.value):
                        e.grad[i] = s.ZERO  # a finite limit at an infinite input
                    else:
                        wanted.setdefault(i, []).append(n)
    if len(wanted) > MOST_CURVES:
        reason = Undefined("unsupported", f"more than {MOST_CURVES} directions need a limit")
        for i, places in wanted.items():
            for n in places:
                elements[n].grad[i] = reason
        return
    for i, places in wanted.items():
        sides = [_one_sided(problem, i, side, places, elements) for side in (1, -1)]
        for n, right, left in zip(places, *sides):
            elements[n].grad[i] = _two_sided(right, left)
    _settle_curves(problem, elements)


def _infinite_input(problem: Any, number: int) -> bool:
    k, place = problem.directions[number]
    return bool(np.isinf(np.asarray(problem.inputs[k]).astype(np.float64).ravel()[place]))


def _two_sided(right: Scalar, left: Scalar) -> Scalar:
    if right is JUMP or left is JUMP:
        other = left if right is JUMP else right
        return other if type(other) is not Undefined or other is JUMP else KINK
    return _agreed([right, left], KINK)


def _one_sided(problem: Any, number: int, side: int, wanted: list[int], elements: list[Any]) -> list[Scalar]:
    """The derivative by one input element, from above (side 1) or below (-1)."""
    here = problem.directions[number]

    def straight(k: int, place: int) -> list[tuple[int, Scalar]]:
        return [(1, fmpq(side))] if (k, place) == here else []

    return _follow(problem, straight, wanted, lambda n, germ: _slope_at(germ, value_of(elements[n]), side))


def _slope_at(germ: Any, value: Scalar, side: int) -> Scalar:
    """A slope along +t or -t as a derivative by the input, where the curve starts at the value of the program."""
    end = limit(germ)
    if type(end) is Undefined:
        return end
    same = value if type(value) is Undefined else _same(end, value)
    if type(same) is Undefined:
        return same
    if not same:
        return JUMP
    if type(end) is Infinity:
        return Infinity(-direction(germ) * side, "pole") if type(germ) is Germ else s.ZERO
    found = slope(germ)
    return found if side > 0 else s.neg(found)


# -- curvatures ------------------------------------------------------------------------------------------------------


def _second(a: Any) -> Scalar:
    """Twice the coefficient of t**2 of a germ."""
    if type(a) is not Germ:
        return a if type(a) is Undefined else s.ZERO
    if any((0 < q < 2 and q != 1) or (q in (0, 1, 2) and k != 0) for q, k in a.terms):
        return Undefined("kink", "no second derivative")
    if a.order <= 2:
        return Undefined("truncated", "too few terms of a series")
    return s.mul(fmpq(2), a.terms.get((2, 0), s.ZERO))


def _settle_curves(problem: Any, elements: list[Any]) -> None:
    """Second derivatives that condition numbers need, by polarisation: d_ij = (d_(i+j) - d_i - d_j) / 2."""
    wanted: dict[tuple[int, int], list[int]] = {}
    for n, e in enumerate(elements):
        if type(e) is Jet:
            for pair, h in e.hess.items():
                if _is_singular(h) and any(not _vanishes(problem, i) for i in pair):
                    wanted.setdefault(pair, []).append(n)
    curves = {(i,) for pair in wanted for i in pair} | {pair for pair in wanted if pair[0] != pair[1]}
    if not wanted or len(curves) > MOST_CURVES:
        return
    places = sorted({n for found in wanted.values() for n in found})
    bent = {curve: _curvature(problem, curve, places) for curve in curves}
    for (i, j), found in wanted.items():
        for n in found:
            m = places.index(n)
            if i == j:
                elements[n].hess[i, j] = bent[i,][m]
            else:
                mixed = s.sub(bent[i, j][m], s.add(bent[i,][m], bent[j,][m]))
                elements[n].hess[i, j] = s.mul(s.HALF, mixed)


def _vanishes(problem: Any, number: int) -> bool:
    k, place = problem.directions[number]
    return float(np.asarray(problem.inputs[k]).ravel()[place]) == 0.0


def _curvature(problem: Any, curve: tuple[int, ...], places: list[int]) -> list[Scalar]:
    moving = {problem.directions[i] for i in curve}
    sides = []
    for sign in (s.ONE, s.MINUS_ONE):

        def rate(k: int, place: int) -> list[tuple[int, Scalar]]:
            return [(1, sign)] if (k, place) in moving else []  # noqa: B023

        sides.append(_follow(problem, rate, places, lambda _, germ: _second(germ)))
    return [_agreed([a, b], KINK) for a, b in zip(*sides, strict=True)]
