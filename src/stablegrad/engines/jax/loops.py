"""Loops that carry products of probabilities carry them as mantissa and exponent: done before anything is rewritten.

Only the border of the loop changes here: what is carried, stacked or read by each step becomes two arrays, split
outside by `without_exponent` and `binary_exponent` and put together inside by `scaled_value`, and the other way round
for results. That alone gains nothing; the rules `recursion` see these operations
and compute what stands between them without leaving the range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np
from jax import lax

from stablegrad.engines.jax import _compat, names
from stablegrad.engines.jax.inverted import inverted, inverted_carries
from stablegrad.engines.jax.own import joined, own_name, split
from stablegrad.engines.jax.proportional import KEEPS, NOTHING, SCALED, SPREADS, Status, carried_scaled, is_zero
from stablegrad.engines.jax.regions import BODIES


def with_scaled_carries(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
    """The program with such loops in it, jitted functions included; the same object where there are none."""
    if not _has_loop(closed.jaxpr):
        return closed
    return _Walk(closed, inverted(closed.jaxpr)).result()


def _has_loop(jaxpr: jex.Jaxpr) -> bool:
    return any(
        e.primitive in (names.SCAN, names.WHILE, names.COND)
        or (e.primitive in (names.JIT, names.REMAT) and _has_loop(_grouped(e).jaxpr))
        for e in jaxpr.eqns
    )


def _grouped(equation: jex.JaxprEqn) -> jex.ClosedJaxpr:
    """The body of a jit, or of a remat, which has no constants of its own."""
    body = equation.params["jaxpr"]
    return body if equation.primitive is names.JIT else jex.ClosedJaxpr(body, ())


class _Walk:
    """One jaxpr: which values hold exponentials or are carried scaled, and the loops replaced.

    Attributes:
        wide: variables whose exponent is worth keeping: what is made of exponentials, and of what loops carry scaled.
        scaled: those of the second kind.
        zeros: those that are 0.
        inverted: those that reach a logarithm or a division; where nothing does, a loop stays as it is.
    """

    def __init__(self, closed: jex.ClosedJaxpr, inverted: set[Any]) -> None:
        self.closed = closed
        self.inverted = inverted
        self.wide: set[Any] = set()
        self.scaled: set[Any] = set()
        self.zeros: set[Any] = {v for v, value in zip(closed.jaxpr.constvars, closed.consts) if _is_zero(value)}
        self.equations: list[jex.JaxprEqn] = []
        self.renamed: dict[Any, Any] = {}
        self.constants: list[tuple[Any, Any]] = []
        self.changed = False

    def result(self) -> jex.ClosedJaxpr:
        jaxpr = self.closed.jaxpr
        for equation in jaxpr.eqns:
            self._read(equation)
        if not self.changed:
            return self.closed
        outputs = [v if isinstance(v, jex.Literal) else self.renamed.get(v, v) for v in jaxpr.outvars]
        constvars = [*jaxpr.constvars, *(v for v, _ in self.constants)]
        new = jex.Jaxpr(constvars, jaxpr.invars, outputs, self.equations, jaxpr.effects, jaxpr.debug_info)
        return jex.ClosedJaxpr(new, [*self.closed.consts, *(value for _, value in self.constants)])

    def _read(self, equation: jex.JaxprEqn) -> None:
        if equation.primitive in (names.JIT, names.REMAT) and own_name(equation) is None:
            equation = self._inside(equation)
        rewrite = {names.SCAN: self._scan, names.WHILE: self._while, names.COND: self._cond}.get(equation.primitive)
        replacement = rewrite(equation) if rewrite is not None and not equation.effects else None
        self._mark(equation, replacement is not None)
        if replacement is None:
            self.equations.append(self._with_names(equation))
        else:
            self.changed = True
            self._splice(equation, replacement)

    def _inside(self, equation: jex.JaxprEqn) -> jex.JaxprEqn:
        """A jitted function, with the loops in it replaced; its own results are marked as the equation's."""
        body = _grouped(equation)
        asked = {k for k, v in enumerate(equation.outvars) if v in self.inverted}
        inner = _Walk(body, inverted(body.jaxpr, asked))
        kinds = ((self.wide, inner.wide), (self.scaled, inner.scaled), (self.zeros, inner.zeros))
        for own, within in kinds:
            within.update(i for i, v in zip(body.jaxpr.invars, equation.invars) if _among(v, own))
        inner.zeros.update(i for i, v in zip(body.jaxpr.invars, equation.invars) if is_zero(v))
        new = inner.result()
        for own, within in kinds:
            own.update(v for v, out in zip(equation.outvars, body.jaxpr.outvars) if _among(out, within))
        if new is body:
            return equation
        if equation.primitive is names.REMAT and new.consts:
            return equation
        self.changed = True
        changed = new if equation.primitive is names.JIT else new.jaxpr
        return equation.replace(params=dict(equation.params, jaxpr=changed))

    def _mark(self, equation: jex.JaxprEqn, lifted: bool) -> None:
        """Whether the results hold exponentials, or what a loop carries scaled."""
        scaled = lifted or own_name(equation) == "scaled_value"
        wide = scaled or _holds_exponential(equation)
        if equation.primitive in KEEPS:
            scaled |= any(_among(v, self.scaled) for v in equation.invars)
            wide |= any(_among(v, self.wide) for v in equation.invars)
        for kind, marked in ((self.scaled, scaled), (self.wide, wide)):
            if marked:
                kind.update(v for v in equation.outvars if _number(v))
        if equation.primitive in SPREADS and (is_zero(equation.invars[0]) or _among(equation.invars[0], self.zeros)):
            self.zeros.add(equation.outvars[0])

    def _with_names(self, equation: jex.JaxprEqn) -> jex.JaxprEqn:
        if not self.renamed:
            return equation
        inputs = [v if isinstance(v, jex.Literal) else self.renamed.get(v, v) for v in equation.invars]
        return equation.replace(invars=inputs)

    def _splice(self, equation: jex.JaxprEqn, new: jex.ClosedJaxpr) -> None:
        """The equations of `new`, a function of the equation's inputs, in its place."""
        given = self._with_names(equation).invars
        env: dict[Any, Any] = dict(zip(new.jaxpr.invars, given))
        for var, value in zip(new.jaxpr.constvars, new.consts):
            env[var] = jex.Var(var.aval)
            self.constants.append((env[var], value))
        for e in new.jaxpr.eqns:
            inputs = [v if isinstance(v, jex.Literal) else env[v] for v in e.invars]
            outputs = [jex.Var(v.aval) for v in e.outvars]
            env.update(zip(e.outvars, outputs))
            e = e.replace(invars=inputs, outvars=outputs, params=_attributed(e, equation))
            self.equations.append(e.replace(source_info=equation.source_info))
        for var, out in zip(equation.outvars, new.jaxpr.outvars):
            self.renamed[var] = out if isinstance(out, jex.Literal) else env[out]

    # -- the loops -----------------------------------------------------------------------------------------------------

    def _scan(self, equation: jex.JaxprEqn) -> jex.ClosedJaxpr | None:
        params = equation.params
        body, consts, carries = params["jaxpr"], params["num_consts"], params["num_carry"]
        if set(params) - _SCAN_PARAMETERS or params.get("_split_transpose") or not _plain(equation):
            return None
        carried = range(consts, consts + carries)
        known = self._shares(equation.invars, carried)
        lifted = carried_scaled(body, consts, carries, known)
        if not lifted or not self._matters(equation):
            return None
        read = {k for k, v in enumerate(equation.invars) if k not in carried and _among(v, self.wide) and _number(v)}
        split_in = read | {consts + k for k in lifted}
        results = {k for k, v in enumerate(body.jaxpr.outvars) if k >= carries and _number(v)}
        split_out = set(lifted) | results
        evaluate = jex.jaxpr_as_fun(body)

        def whole(*values: Any) -> list[Any]:
            parts: list[Any] = [split(v) if k in split_in else v for k, v in enumerate(values)]
            fixed, init, stacked = parts[:consts], parts[consts : consts + carries], parts[consts + carries :]

            def step(carry: Any, sliced: Any) -> Any:
                out = evaluate(*map(joined, (*fixed, *carry, *sliced)))
                out = [split(v) if k in split_out else v for k, v in enumerate(out)]
                return out[:carries], out[carries:]

            last, ys = lax.scan(
                step, init, stacked, length=params["length"], reverse=params["reverse"], unroll=params["unroll"]
            )
            return [joined(v) for v in (*last, *ys)]

        return _traced(whole, equation)

    def _while(self, equation: jex.JaxprEqn) -> jex.ClosedJaxpr | None:
        params = equation.params
        condition, body = params["cond_jaxpr"], params["body_jaxpr"]
        tested, consts = params["cond_nconsts"], params["body_nconsts"]
        carries = len(body.jaxpr.outvars)
        fixed = equation.invars[tested : tested + consts]
        lifted = set(carried_scaled(body, consts, carries, self._shares(fixed))) if _plain(equation) else set()
        if not lifted or not self._matters(equation):
            return None
        goes_on, update = jex.jaxpr_as_fun(condition), jex.jaxpr_as_fun(body)

        def whole(*values: Any) -> list[Any]:
            first, fixed, init = values[:tested], values[tested : tested + consts], values[tested + consts :]
            begin = [split(v) if k in lifted else v for k, v in enumerate(init)]

            def step(carry: Any) -> Any:
                out = update(*fixed, *map(joined, carry))
                return [split(v) if k in lifted else v for k, v in enumerate(out)]

            last = lax.while_loop(lambda carry: goes_on(*first, *map(joined, carry))[0], step, begin)
            return [joined(v) for v in last]

        return _traced(whole, equation)

    def _shares(self, given: Sequence[Any], carried: range = range(0)) -> dict[int, Status]:
        """What is known of the values that a loop only reads."""
        found: dict[int, Status] = {}
        for k, var in enumerate(given):
            if k not in carried:
                if is_zero(var) or _among(var, self.zeros):
                    found[k] = NOTHING
                elif _among(var, self.scaled):
                    found[k] = SCALED
        return found

    def _matters(self, equation: jex.JaxprEqn) -> bool:
        """Something of the loop is inverted, or meets what another loop carries scaled: a gradient on its way back."""
        asked = {k for k, v in enumerate(equation.outvars) if v in self.inverted}
        return bool(asked or inverted_carries(equation, asked)) or any(_among(v, self.scaled) for v in equation.invars)

    def _cond(self, equation: jex.JaxprEqn) -> jex.ClosedJaxpr | None:
        """A branch inside such a loop: what is scaled is handed in and out as it is."""
        split_in = {k for k, v in enumerate(equation.invars) if k and _among(v, self.scaled) and _number(v)}
        if not split_in or not _plain(equation) or _compat.branch_for_any_platform(equation) is not None:
            return None
        branches = [jex.jaxpr_as_fun(b) for b in equation.params["branches"]]
        split_out = {k for k, v in enumerate(equation.outvars) if _number(v)}

        def whole(which: Any, *values: Any) -> list[Any]:
            parts = [split(v) if k in split_in else v for k, v in enumerate(values, 1)]

            def taken(branch: Callable[..., Any]) -> Callable[..., Any]:
                def call(*operands: Any) -> list[Any]:
                    out = branch(*map(joined, operands))
                    return [split(v) if k in split_out else v for k, v in enumerate(out)]

                return call

            return [joined(v) for v in lax.switch(which, [taken(b) for b in branches], *parts)]

        return _traced(whole, equation)


_SCAN_PARAMETERS = {"jaxpr", "length", "reverse", "unroll", "num_consts", "num_carry", "linear", "_split_transpose"}
_EXPONENTIALS = {p for p, n in names.ELEMENTWISE.items() if n in ("exp", "exp2", "logistic", "expm1")}


def _among(var: Any, kind: set[Any]) -> bool:
    return not isinstance(var, jex.Literal) and var in kind


def _is_zero(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size <= 1 << 16 and not value.any()


def _number(var: Any) -> bool:
    return getattr(var.aval, "dtype", None) in (np.float32, np.float64) and 0 not in var.aval.shape


def _plain(equation: jex.JaxprEqn) -> bool:
    """Known shapes on one device: a type that says more is left to JAX."""
    return all(
        all(isinstance(n, int) for n in getattr(v.aval, "shape", ())) and _compat.trivial_sharding(v.aval)
        for v in (*equation.invars, *equation.outvars)
    )


def _holds_exponential(equation: jex.JaxprEqn) -> bool:
    if equation.primitive in _EXPONENTIALS:
        return True
    for value in equation.params.values():
        for body in value if isinstance(value, (tuple, list)) else (value,):
            jaxpr = getattr(body, "jaxpr", body)
            if isinstance(jaxpr, jex.Jaxpr) and any(map(_holds_exponential, jaxpr.eqns)):
                return True
    return False


def _traced(function: Callable[..., Any], equation: jex.JaxprEqn) -> jex.ClosedJaxpr | None:
    def typed(*values: Any) -> list[Any]:
        return [_with_type(v, out.aval) for v, out in zip(function(*values), equation.outvars)]

    new = jax.make_jaxpr(typed)(*(v.aval for v in equation.invars))
    same = [v.aval for v in new.jaxpr.outvars] == [v.aval for v in equation.outvars]
    return new if same else None


def _attributed(new: jex.JaxprEqn, equation: jex.JaxprEqn) -> dict[str, Any]:
    """The parameters of a loop in which our own equations stand at the line of the loop that it was."""

    def body(closed: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
        equations = [
            e if own_name(e) is None else e.replace(source_info=equation.source_info) for e in closed.jaxpr.eqns
        ]
        return jex.ClosedJaxpr(closed.jaxpr.replace(eqns=equations), closed.consts)

    params = dict(new.params)
    for name in BODIES.get(new.primitive, ()) if new.primitive is not names.JIT else ():
        value = params[name]
        params[name] = tuple(map(body, value)) if isinstance(value, (tuple, list)) else body(value)
    return params


def _with_type(value: Any, aval: Any) -> Any:
    """The value with the weak type that the loop gave it."""
    if getattr(value.aval, "weak_type", None) == getattr(aval, "weak_type", None):
        return value
    return names.CONVERT.bind(value, new_dtype=aval.dtype, weak_type=aval.weak_type, sharding=None)
