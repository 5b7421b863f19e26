"""The exact value and derivatives of a call, within a bound on the time that they take."""

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend import core

from stablegrad.command_line.call import Call
from stablegrad.command_line.errors import one_line
from stablegrad.truth import truth

# A loop whose number of turns the program does not tell.
ASSUMED_TURNS = 100
# Seconds for one exact scalar operation, and more for each first and each second derivative that it carries
# along, where every number depends on every input.
SECONDS = (2e-5, 2e-6, 1.2e-6)
# Second derivatives are taken of at most so many entries with all the others.
ROWS = 24
NOT_SAMPLED = "not in the sample"


@dataclass(frozen=True)
class Limits:
    """How much is evaluated exactly.

    Attributes:
        entries: The number of derivative entries; of more than that, a random sample of so many is taken.
        seconds: What one call may take, by an estimate from above. To keep it, the sample shrinks, then the
            condition numbers are left out, then the derivatives, then the value.
        seed: Of the sample.
    """

    entries: int = 64
    seconds: float = 20
    seed: int = 0


@dataclass
class Element:
    """What is known exactly of one array.

    Attributes:
        exact: The numbers, rounded to their type; NaN where they are undefined or not known.
        decided: Where they are known.
        sensitivity: How far each moves, to first order, when each input moves by its own size: its condition
            number times its own size. NaN where it is not known.
    """

    exact: np.ndarray
    decided: np.ndarray
    sensitivity: np.ndarray


@dataclass
class Exact:
    """What is known exactly of a call.

    Attributes:
        values: By name of the float result.
        gradients: For each float leaf: of the derivative of the sum of all float results.
        notes: What was left out, and why.
    """

    values: dict[str, Element] = field(default_factory=dict)
    gradients: list[Element] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def exact_results(call: Call, limits: Limits, gradient: bool = True) -> Exact:
    """Evaluate a call in ball arithmetic.

    Args:
        call: The function and its arguments.
        limits: How much work may be done.
        gradient: Whether the derivatives are wanted.

    Returns:
        What could be decided. A program that cannot be evaluated exactly raises nothing: a note says so.
    """
    result = Exact()
    total = sum(call.leaves[position].size for position in call.float_positions) if gradient else 0
    operations = count_operations(jax.make_jaxpr(call.program)(*call.leaves).jaxpr)
    plan = plan_within(limits, operations, total)
    if plan is None:
        result.notes.append(
            f"no exact result: it may take more than {limits.seconds:g} seconds; "
            "try smaller arrays, or raise --exact-seconds"
        )
        return result
    entries, conditions = plan
    if entries < total:
        result.notes.append(f"{entries} of {total} derivative entries checked, chosen at random")
    try:
        found = truth(
            call.program,
            *call.leaves,
            gradient=entries > 0,
            conditions=conditions,
            sample=entries if entries < total else None,
            seed=limits.seed,
        )
    except Exception as error:
        result.notes.append(f"no exact result: {one_line(error)}")
        return result
    for name, value in found.value.items():
        result.values[name] = _element(value, found.value_decided[name], found.sensitivity[name])
    for position in call.float_positions if entries else []:
        columns = found.gradient, found.gradient_decided, found.gradient_sensitivity
        result.gradients.append(_element(*(column[position] for column in columns)))
    reasons = [reason for reason in found.reasons if reason != NOT_SAMPLED]
    if reasons:
        result.notes.append(f"some elements could not be decided exactly: {'; '.join(reasons)}")
    return result


def _element(exact: Any, decided: Any, sensitivity: Any) -> Element:
    unknown = np.full(np.shape(exact), math.nan)
    return Element(np.asarray(exact), np.asarray(decided), unknown if sensitivity is None else np.asarray(sensitivity))


def plan_within(limits: Limits, operations: float, total: int) -> tuple[int, bool] | None:
    """How many derivative entries, and whether condition numbers, fit into the time; None when nothing does.

    >>> plan_within(Limits(), operations=1000, total=100)
    (64, True)
    >>> plan_within(Limits(), operations=100_000, total=100)
    (64, False)
    >>> plan_within(Limits(), operations=1e9, total=100)
    """
    most = min(limits.entries, total)
    plans = [(most, True), (min(most, 16), True), (most, False), (min(most, 16), False), (0, False)]
    for entries, conditions in plans:
        value, first, second = SECONDS
        pairs = min(entries, ROWS) * entries if conditions else 0
        if operations * (value + first * entries + second * pairs) <= limits.seconds:
            return entries, conditions
    return None


def count_operations(jaxpr: Any) -> float:
    """About how many scalar operations one evaluation of a program takes."""
    return sum(_operations_of(equation) for equation in jaxpr.eqns)


def _operations_of(equation: Any) -> float:
    bodies = [
        body.jaxpr if isinstance(body, core.ClosedJaxpr) else body
        for parameter in equation.params.values()
        for body in (parameter if isinstance(parameter, tuple | list) else [parameter])
        if isinstance(body, core.ClosedJaxpr | core.Jaxpr)
    ]
    if bodies:
        turns = equation.params.get("length", ASSUMED_TURNS if "cond_jaxpr" in equation.params else 1)
        return turns * sum(count_operations(body) for body in bodies)
    sizes = [math.prod(getattr(v.aval, "shape", ())) for v in (*equation.invars, *equation.outvars)]
    if "dimension_numbers" in equation.params and len(equation.invars) == 2:
        return _size_of_product(equation)
    return max(sizes, default=0)


def _size_of_product(equation: Any) -> float:
    """Multiplications in a matrix product or a convolution: results times the terms of each."""
    left, right = (math.prod(v.aval.shape) for v in equation.invars)
    out = math.prod(equation.outvars[0].aval.shape)
    # In a product of (b, m, k) and (b, k, n) the three sizes multiply to (b m n k)^2 b; b is left in.
    return math.sqrt(left * right * out)
