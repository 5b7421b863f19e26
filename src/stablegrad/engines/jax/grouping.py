"""Equations of an opened body gathered again under the jit or remat that they came from."""

from __future__ import annotations

from typing import Any

import jax.extend.core as jex

from stablegrad.engines.jax import _compat, names
from stablegrad.engines.jax.capture import Frame

Lines = list[tuple[tuple[Frame, ...], jex.JaxprEqn]]


def grouped(lines: Lines, outputs: list[Any]) -> list[jex.JaxprEqn]:
    """One level of equations; runs of a deeper scope become one grouping equation each."""
    if not any(scope for scope, _ in lines):
        return [equation for _, equation in lines]
    last_use: dict[Any, int] = {}
    for place, (_, equation) in enumerate(lines):
        for var in equation.invars:
            if not isinstance(var, jex.Literal):
                last_use[var] = place
    for var in outputs:
        if not isinstance(var, jex.Literal):
            last_use[var] = len(lines)
    return _level(lines, 0, len(lines), 0, last_use)


def _level(lines: Lines, start: int, stop: int, depth: int, last_use: dict[Any, int]) -> list[jex.JaxprEqn]:
    out, place = [], start
    while place < stop:
        scope, equation = lines[place]
        if len(scope) == depth:
            out.append(equation)
            place += 1
            continue
        end = place
        while end < stop and len(lines[end][0]) > depth and lines[end][0][depth] is scope[depth]:
            end += 1
        inside = _level(lines, place, end, depth + 1, last_use)
        out += inside if _is_choice(scope[depth]) else [_wrapped(scope[depth], inside, end, last_use)]
        place = end
    return out


def _is_choice(frame: Frame) -> bool:
    """A body that was written for several platforms: opened, it stands as it is."""
    assert frame.parent is not None
    outer, index = frame.parent
    return outer.jaxpr.eqns[index].primitive is names.COND


def _wrapped(frame: Frame, equations: list[jex.JaxprEqn], end: int, last_use: dict[Any, int]) -> jex.JaxprEqn:
    """The run of equations under the wrapper of `frame`: free variables in, whatever is used later out."""
    assert frame.parent is not None
    outer, index = frame.parent
    model = outer.jaxpr.eqns[index]
    defined: dict[Any, None] = {}
    free: dict[Any, None] = {}
    for equation in equations:
        for var in equation.invars:
            if not isinstance(var, jex.Literal) and var not in defined:
                free[var] = None
        for var in equation.outvars:
            defined[var] = None
    results = [v for v in defined if last_use.get(v, -1) >= end]
    effects = frozenset().union(*(e.effects for e in equations)) if equations else frozenset()
    inner_in = {v: jex.Var(v.aval) for v in free}
    inner = [_renamed(e, inner_in) for e in equations]
    inner_out = {v: jex.Var(v.aval) for v in results}
    inner = [_renamed_outputs(e, inner_out) for e in inner]
    body = jex.Jaxpr((), list(inner_in.values()), [inner_out[v] for v in results], inner, effects,
                     _compat.debug_info(frame.jaxpr, len(free), len(results)))  # fmt: skip
    if model.primitive is names.JIT:
        params = _compat.regrouped_jit_parameters(model.params, jex.ClosedJaxpr(body, ()))
    else:
        params = dict(model.params, jaxpr=body)
    return model.replace(invars=list(free), outvars=results, params=params, effects=effects)


def _renamed(equation: jex.JaxprEqn, new: dict[Any, Any]) -> jex.JaxprEqn:
    if not any(v in new for v in equation.invars if not isinstance(v, jex.Literal)):
        return equation
    inputs = [v if isinstance(v, jex.Literal) else new.get(v, v) for v in equation.invars]
    return equation.replace(invars=inputs)


def _renamed_outputs(equation: jex.JaxprEqn, new: dict[Any, Any]) -> jex.JaxprEqn:
    inputs = [v if isinstance(v, jex.Literal) else new.get(v, v) for v in equation.invars]
    return equation.replace(invars=inputs, outvars=[new.get(v, v) for v in equation.outvars])
