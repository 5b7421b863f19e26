"""Which values of a loop's body are proportional to what the loop carries: the carries that grow or shrink by steps.

Every value gets a `Share`: the power of the carries that it is proportional to, and whether data have multiplied it.
Sums need terms of one power; what is no product of carries, a logarithm say, has no share. A carry whose update is
proportional to it and multiplied by data leaves the range after some steps; one that is normalised at each step
(power 0), or to which something of its own is added, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

import jax.extend.core as jex
import numpy as np

from stablegrad.engines.jax import names
from stablegrad.graph.node import is_float


class Share(NamedTuple):
    """power: of the carries; touched: data have multiplied it; free: it goes with any power."""

    power: Fraction
    touched: bool
    free: bool = False


PLAIN = Share(Fraction(0), True)
NOTHING = Share(Fraction(0), False, True)  # 0 is proportional to everything
SCALED = Share(Fraction(0), True, True)  # what another loop carries scaled may have left the range as well
NONE = None  # no share
Status = Share | None
SPREADS = (names.BROADCAST, names.CONVERT, names.RESHAPE, names.STOP_GRADIENT)


def carried_scaled(
    body: jex.ClosedJaxpr, consts: int, carries: int, known: Mapping[int, Status] = MappingProxyType({})
) -> list[int]:
    """The positions of the carries of a loop body that are best carried scaled.

    `body` takes constants, carries, others; `known` are shares of those that are no carries: NOTHING, SCALED.
    """
    jaxpr = body.jaxpr
    candidates = {k for k in range(carries) if _is_number(jaxpr.invars[consts + k]) and _is_number(jaxpr.outvars[k])}
    while candidates:
        powers = {k: Fraction(1) for k in candidates}
        for _ in range(3):
            updates = _updates(jaxpr, consts, powers, known)
            lost = {k for k in candidates if not _grows(updates[k])}
            after = {k: updates[k].power for k in candidates - lost}  # type: ignore[union-attr]
            changed = {k for k, power in after.items() if power != powers[k]}
            if lost or not changed:
                break
            powers |= {k: after[k] for k in changed}
        else:
            lost = changed  # squared at each step, say
        if not lost:
            break
        candidates -= lost
    return sorted(candidates)


def _grows(update: Status) -> bool:
    return update is not None and update.power != 0 and update.touched


def _is_number(var: Any) -> bool:
    return getattr(var.aval, "dtype", None) in (np.float32, np.float64) and 0 not in var.aval.shape


def _updates(jaxpr: jex.Jaxpr, consts: int, powers: dict[int, Fraction], known: Mapping[int, Status]) -> list[Status]:
    given: list[Status] = [known.get(k, PLAIN) for k in range(len(jaxpr.invars))]
    for k, power in powers.items():
        given[consts + k] = Share(power, False)
    return shares(jaxpr, given)


def shares(jaxpr: jex.Jaxpr, given: Sequence[Status]) -> list[Status]:
    """The shares of a body's results."""
    known: dict[Any, Status] = dict.fromkeys(jaxpr.constvars, PLAIN)
    known.update(zip(jaxpr.invars, given))

    def of(atom: Any) -> Status:
        if isinstance(atom, jex.Literal):
            return NOTHING if is_zero(atom) else PLAIN
        return known[atom]

    for equation in jaxpr.eqns:
        inputs = [of(v) for v in equation.invars]
        known.update(zip(equation.outvars, _results(equation, inputs)))
    return [of(v) for v in jaxpr.outvars]


def _results(equation: jex.JaxprEqn, inputs: list[Status]) -> list[Status]:
    count = len(equation.outvars)
    body = _grouped(equation)
    if body is not None:
        return shares(body, inputs)
    if all(_plain(s) for s in inputs):
        free = any(s is not None and s.free for s in inputs)
        if not free or equation.primitive not in (*_ANSWERS, names.COND, names.SCAN):
            return [PLAIN] * count
        if not is_float(getattr(equation.outvars[0].aval, "dtype", None)):
            return [NOTHING if equation.primitive in SPREADS and inputs[0] == NOTHING else PLAIN] * count
    if equation.primitive is names.COND:
        branches = [shares(b.jaxpr, inputs[1:]) for b in equation.params["branches"]]
        return [_together(results) for results in zip(*branches)]
    if equation.primitive is names.SCAN:
        return _of_scan(equation, inputs)
    answer = _ANSWERS.get(equation.primitive)
    if answer is None or not is_float(getattr(equation.outvars[0].aval, "dtype", None)):
        return [NONE] * count
    return [answer(equation, inputs)] * count


def is_zero(atom: Any) -> bool:
    return isinstance(atom, jex.Literal) and np.size(atom.val) == 1 and bool(np.all(np.asarray(atom.val) == 0))


def _plain(status: Status) -> bool:
    return status is not None and not status.power


def _grouped(equation: jex.JaxprEqn) -> jex.Jaxpr | None:
    if equation.primitive is names.JIT:
        return equation.params["jaxpr"].jaxpr
    return equation.params["jaxpr"] if equation.primitive is names.REMAT else None


def _of_scan(equation: jex.JaxprEqn, inputs: list[Status]) -> list[Status]:
    """An inner loop: its carries keep the power they begin with, or have none."""
    body, consts, carries = (equation.params[k] for k in ("jaxpr", "num_consts", "num_carry"))
    given = list(inputs)
    for _ in range(carries + 1):
        results = shares(body.jaxpr, given)
        wrong = False
        for k in range(carries):
            before, after = given[consts + k], results[k]
            if before is NONE:
                continue
            joined = _together([before, after])
            if joined != before:
                given[consts + k] = joined
                wrong = True
        if not wrong:
            return [given[consts + k] for k in range(carries)] + results[carries:]
    return [NONE] * len(equation.outvars)


# -- the answers per primitive -----------------------------------------------------------------------------------------


def _together(statuses: Iterable[Status]) -> Status:
    """Of a sum or a choice: all of one power, but for what goes with any."""
    those = list(statuses)
    if any(s is None for s in those):
        return NONE
    bound = [s for s in those if s is not None and not s.free]
    if not bound:
        return SCALED if any(s is not None and s.touched for s in those) else NOTHING
    if len({s.power for s in bound}) > 1:
        return NONE
    return Share(bound[0].power, any(s is not None and s.touched for s in those))


def _same(equation: jex.JaxprEqn, inputs: list[Status]) -> Status:
    return inputs[0]


def _sum(equation: jex.JaxprEqn, inputs: list[Status]) -> Status:
    return _together(inputs)


def _choice(equation: jex.JaxprEqn, inputs: list[Status]) -> Status:
    return _together(inputs[1:])


def _joined(equation: jex.JaxprEqn, inputs: list[Status]) -> Status:
    data = names.MOVING[equation.primitive]
    if data is not None and any(not _plain(s) for k, s in enumerate(inputs) if k not in data):
        return NONE
    return _together(inputs if data is None else [inputs[k] for k in data])


def _product(equation: jex.JaxprEqn, inputs: list[Status]) -> Status:
    return _multiplied(equation, inputs, 1)


def _quotient(equation: jex.JaxprEqn, inputs: list[Status]) -> Status:
    return _multiplied(equation, inputs, -1)


def _multiplied(equation: jex.JaxprEqn, inputs: list[Status], sign: int) -> Status:
    left, right = inputs
    if left is None or right is None:
        return NONE
    if NOTHING in (left, right):
        return NOTHING
    power = left.power + sign * right.power
    free = (left.free or right.free) and not power
    number = any(isinstance(v, jex.Literal) for v in equation.invars)
    return Share(power, (left.touched and right.touched) if number else True, free)


def _power(equation: jex.JaxprEqn, inputs: list[Status]) -> Status:
    (one,) = inputs
    times = equation.params.get("y", 2)
    return None if one is None else Share(one.power * times, True, one.free)


_ANSWERS: dict[jex.Primitive, Callable[[jex.JaxprEqn, list[Status]], Status]] = {}
for _primitive in names.MOVING:
    _ANSWERS[_primitive] = _joined
for _primitive in (names.BROADCAST, names.TRANSPOSE, names.RESHAPE, names.SQUEEZE, names.STOP_GRADIENT, names.CONVERT,
                   names.SPLIT):  # fmt: skip
    _ANSWERS[_primitive] = _same
for _name, _answer in {
    "neg": _same, "abs": _same, "add": _sum, "sub": _sum, "max": _sum, "min": _sum, "select": _choice,
    "mul": _product, "div": _quotient, "integer_pow": _power, "square": _power,
}.items():  # fmt: skip
    for _primitive, _canonical in names.ELEMENTWISE.items():
        if _canonical == _name:
            _ANSWERS[_primitive] = _answer
for _primitive, _canonical in names.REDUCTIONS.items():
    if _canonical in ("reduce_sum", "reduce_max", "reduce_min"):
        _ANSWERS[_primitive] = _same
for _primitive, _canonical in names.HANDLED.items():
    if _canonical == "dot_general":
        _ANSWERS[_primitive] = _product

KEEPS = frozenset(_ANSWERS)
"""The primitives whose results are made of their operands by sums, products and moves."""
