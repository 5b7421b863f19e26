"""Derivatives at the points where the calculus of jets says nothing.

A derivative is the slope of a germ along one input, from both sides: they must agree, unless the function is not
defined on one of the sides. Second derivatives come from curves along two inputs at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import fmpq

from stablegrad.exact import scalars as s
from stablegrad.exact.germ import Germ, direction, limit, slope
from stablegrad.exact.jet import Jet, value_of
from stablegrad.exact.limits import KINK, agreed, follow, is_singular, limits, same
from stablegrad.exact.scalars import Infinity, Scalar, Undefined

MOST_CURVES = 128

JUMP = Undefined("kink", "the function jumps here")


def settle(problem: Any, elements: list[Any]) -> list[Any]:
    """The elements of the outputs, with limits in place of what was singular."""
    elements = list(elements)
    open_values = [n for n, e in enumerate(elements) if is_singular(value_of(e))]
    if open_values:
        for n, value in zip(open_values, limits(problem, open_values)):
            e = elements[n]
            if type(e) is not Jet:
                elements[n] = value
            elif type(value) is Undefined:
                elements[n] = Jet(value, dict.fromkeys(e.grad, value), dict.fromkeys(e.hess, value))
            else:
                elements[n] = Jet(value, e.grad, e.hess)
    _settle_slopes(problem, elements)
    return elements


# -- slopes ----------------------------------------------------------------------------------------------------------


def _settle_slopes(problem: Any, elements: list[Any]) -> None:
    wanted: dict[int, list[int]] = {}
    for n, e in enumerate(elements):
        if type(e) is Jet:
            for i, g in e.grad.items():
                if is_singular(g):
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
    return agreed([right, left], KINK)


def _one_sided(problem: Any, number: int, side: int, wanted: list[int], elements: list[Any]) -> list[Scalar]:
    """The derivative by one input element, from above (side 1) or below (-1)."""
    here = problem.directions[number]

    def straight(k: int, place: int) -> list[tuple[int, Scalar]]:
        return [(1, fmpq(side))] if (k, place) == here else []

    return follow(problem, straight, wanted, lambda n, germ: _slope_at(germ, value_of(elements[n]), side))


def _slope_at(germ: Any, value: Scalar, side: int) -> Scalar:
    """A slope along +t or -t as a derivative by the input, where the curve starts at the value of the program."""
    end = limit(germ)
    if type(end) is Undefined:
        return end
    here = value if type(value) is Undefined else same(end, value)
    if type(here) is Undefined:
        return here
    if not here:
        return JUMP
    if type(end) is Infinity:
        if type(germ) is not Germ or end.origin == "data":
            return Undefined("unsupported", "a derivative at an infinity")
        return Infinity(-direction(germ) * side, "pole")
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
                if is_singular(h) and any(not _vanishes(problem, i) for i in pair):
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

        sides.append(follow(problem, rate, places, lambda _, germ: _second(germ)))
    return [agreed([a, b], KINK) for a, b in zip(*sides, strict=True)]
