"""The exact value and derivatives of a call, within a bound on the work that they take."""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from stablegrad.command_line.call import Call
from stablegrad.command_line.errors import one_line

# A loop whose number of turns the program does not tell.
ASSUMED_TURNS = 100


@dataclass(frozen=True)
class Limits:
    """How much is evaluated exactly.

    Attributes:
        entries: The number of derivative entries; of more than that, a random sample of so many is taken.
        work: The number of exact scalar operations, one for each element of each result and once more for
            each derivative entry. The sample shrinks to keep it; a value that alone takes more is left out.
        seed: Of the sample.
    """

    entries: int = 64
    work: int = 300_000
    seed: int = 0


@dataclass
class Exact:
    """What is known exactly; NaN where `decided` says that it is not.

    Attributes:
        values: By name of the result: the exact value, rounded to the result's type.
        values_decided: By name of the result: which elements are certain.
        gradients: For each float leaf of the call, flat: the derivative of the sum of all float results.
        gradients_decided: For each float leaf, flat: which of these are certain; False too where not sampled.
        notes: What was left out, and why.
    """

    values: dict[str, np.ndarray] = field(default_factory=dict)
    values_decided: dict[str, np.ndarray] = field(default_factory=dict)
    gradients: list[np.ndarray] = field(default_factory=list)
    gradients_decided: list[np.ndarray] = field(default_factory=list)
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
    floats = [call.leaves[position] for position in call.float_positions]
    total = sum(leaf.size for leaf in floats) if gradient else 0
    operations = count_operations(jax.make_jaxpr(call.program)(*call.leaves).jaxpr)
    affordable = min(limits.entries, int(limits.work // max(operations, 1)) - 1)
    result = Exact()
    if affordable < 0:
        result.notes.append(f"no exact value: about {operations:.0e} exact operations; try smaller arrays")
        return result
    number = min(total, affordable)
    chosen = np.zeros(0, dtype=int)
    if number:
        chosen = np.sort(np.random.default_rng(limits.seed).choice(total, number, replace=False))
    if number < total:
        result.notes.append(f"{number} of {total} derivative entries checked, chosen at random")

    bounds = np.cumsum([0] + [leaf.size for leaf in floats])
    picked = [chosen[(chosen >= low) & (chosen < high)] - low for low, high in itertools.pairwise(bounds)]
    whole = number == total and gradient
    arguments = (
        floats if whole else [leaf.ravel()[at] for leaf, at in zip(floats, picked, strict=True) if at.size]
    )
    program = functools.partial(_program_of_entries, call, None if whole else picked)
    try:
        truth = _truth()(program, *arguments)
    except Exception as error:
        result.notes.append(f"no exact value: {one_line(error)}")
        return result

    result.values = {name: np.asarray(value) for name, value in truth.value.items()}
    decided = _masks(truth, "value_decided", truth.value)
    result.values_decided = {name: np.asarray(mask) for name, mask in decided.items()}
    slopes = iter(zip(truth.gradient, _masks(truth, "gradient_decided", truth.gradient), strict=True))
    for leaf, at in zip(floats, picked, strict=True):
        entries = np.full(leaf.size, math.nan, dtype=leaf.dtype)
        mask = np.zeros(leaf.size, dtype=bool)
        if at.size:
            slope, certain = next(slopes)
            entries[at], mask[at] = np.ravel(slope), np.ravel(certain)
        result.gradients.append(entries)
        result.gradients_decided.append(mask)
    if truth.undecided:
        result.notes.append("some elements could not be decided exactly")
    return result


def _truth() -> Callable[..., Any]:
    from stablegrad.exact.jax_truth import truth

    return truth


def _masks(truth: Any, name: str, like: Any) -> Any:
    """The mask of decided elements; when everything is decided it may be missing."""
    masks = getattr(truth, name, None)
    if masks is None:
        return jax.tree_util.tree_map(lambda leaf: np.ones(np.shape(leaf), dtype=bool), like)
    return masks


def _program_of_entries(call: Call, picked: list[np.ndarray] | None, *arguments: Any) -> dict[str, Any]:
    """The call's program as a function of some entries of its float leaves; the others are constants."""
    if picked is None:
        return call.program_of_floats(call.program, *arguments)
    supplied = iter(arguments)
    floats = []
    for position, at in zip(call.float_positions, picked, strict=True):
        leaf = call.leaves[position]
        floats.append(_with_entries(leaf, at, next(supplied)) if at.size else leaf)
    return call.program_of_floats(call.program, *floats)


def _with_entries(leaf: jax.Array, at: np.ndarray, entries: Any) -> Any:
    """`leaf` with some of its entries, by flat index in rising order, replaced; by concatenation alone."""
    flat, pieces, start = leaf.ravel(), [], 0
    for number, index in enumerate(at):
        pieces += [flat[start:index], entries[number : number + 1]]
        start = index + 1
    return jnp.concatenate([*pieces, flat[start:]]).reshape(leaf.shape)


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
