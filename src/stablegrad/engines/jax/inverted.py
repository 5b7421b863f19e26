"""Which values of a program are taken the logarithm of, or divided by: there a 0 or an infinity in between does harm.

A product that only shrinks to 0, or grows to inf, is what it is: its correctly rounded value is 0 or inf.
"""

from __future__ import annotations

from typing import Any

import jax.extend.core as jex

from stablegrad.engines.jax import names
from stablegrad.engines.jax.own import own_name
from stablegrad.engines.jax.proportional import KEEPS

_LOGARITHMS = {p for p, n in names.ELEMENTWISE.items() if n in ("log", "log1p", "rsqrt", "logit")}
_DIVISIONS = {p for p, n in names.ELEMENTWISE.items() if n == "div"}
_POWERS = {p for p, n in names.ELEMENTWISE.items() if n in ("integer_pow", "pow")}


def inverted(jaxpr: jex.Jaxpr, results: set[int] = frozenset()) -> set[Any]:  # type: ignore[assignment]
    """Variables of `jaxpr` that reach a logarithm or a division through sums, products and moves.

    `results` are the positions of its results that do so outside.
    """
    found = {v for k, v in enumerate(jaxpr.outvars) if k in results and not isinstance(v, jex.Literal)}
    for equation in reversed(jaxpr.eqns):
        asked = {k for k, v in enumerate(equation.outvars) if v in found}
        found.update(v for v in _of(equation, asked) if not isinstance(v, jex.Literal))
    return found


def _of(equation: jex.JaxprEqn, asked: set[int]) -> list[Any]:
    """The inputs of the equation that do, where these of its results do."""
    primitive, inputs = equation.primitive, equation.invars
    own = own_name(equation)
    if own is not None:
        return list(inputs) if own != "scaled_value" or asked else []
    if primitive in _LOGARITHMS:
        return list(inputs)
    if primitive in _POWERS and not (primitive is _integer_pow and equation.params["y"] > 0):
        return list(inputs)
    if primitive in _DIVISIONS:
        return list(inputs) if asked else [inputs[1]]
    if primitive is names.SCAN:
        return _of_loop(equation, equation.params["jaxpr"].jaxpr, equation.params["num_consts"], 0, asked)
    if primitive is names.WHILE:
        tested = equation.params["cond_nconsts"]
        return _of_loop(equation, equation.params["body_jaxpr"].jaxpr, equation.params["body_nconsts"], tested, asked)
    if primitive is names.COND:
        bodies = [b.jaxpr for b in equation.params["branches"]]
        return [v for body in bodies for v in _through(body, inputs[1:], asked)]
    for body in _bodies(equation):
        return _through(body, inputs[len(inputs) - len(body.invars) :], asked)
    return list(inputs) if asked and primitive in KEEPS else []


_integer_pow = next(p for p, n in names.ELEMENTWISE.items() if n == "integer_pow")


def _bodies(equation: jex.JaxprEqn) -> list[jex.Jaxpr]:
    found = []
    for value in equation.params.values():
        body = getattr(value, "jaxpr", value)
        if isinstance(body, jex.Jaxpr):
            found.append(body)
    return found


def _through(body: jex.Jaxpr, inputs: list[Any], asked: set[int]) -> list[Any]:
    inner = inverted(body, asked)
    return [outer for var, outer in zip(body.invars, inputs) if var in inner]


def _of_loop(equation: jex.JaxprEqn, body: jex.Jaxpr, consts: int, tested: int, asked: set[int]) -> list[Any]:
    carries = inverted_carries(equation, asked)
    inner = inverted(body, carries | {k for k in asked if k >= len(body.invars) - consts})
    given = equation.invars[tested:]
    return [outer for var, outer in zip(body.invars, given) if var in inner] + [given[consts + k] for k in carries]


def inverted_carries(equation: jex.JaxprEqn, asked: set[int]) -> set[int]:
    """The carries of a loop that do, inside its body or by a result outside."""
    if equation.primitive is names.SCAN:
        body, consts = equation.params["jaxpr"].jaxpr, equation.params["num_consts"]
        count = equation.params["num_carry"]
    else:
        body, consts = equation.params["body_jaxpr"].jaxpr, equation.params["body_nconsts"]
        count = len(body.outvars)
    carries = {k for k in asked if k < count}
    results = {k for k in asked if k >= count}
    while True:
        inner = inverted(body, carries | results)
        more = {k for k in range(count) if body.invars[consts + k] in inner}
        if more <= carries:
            return carries
        carries |= more
