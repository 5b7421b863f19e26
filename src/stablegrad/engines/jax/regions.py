"""Bodies of loops and branches: each is rewritten as a program of its own, and the wrapper kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.extend.core as jex

from stablegrad.engines.jax import names

Transform = Callable[[jex.ClosedJaxpr], jex.ClosedJaxpr]

# Which parameters of a loop or branch hold its bodies.
BODIES: dict[jex.Primitive, tuple[str, ...]] = {
    names.SCAN: ("jaxpr",),
    names.WHILE: ("cond_jaxpr", "body_jaxpr"),
    names.COND: ("branches",),
    names.JIT: ("jaxpr",),
}


def rewritten_bodies(equation: jex.JaxprEqn, transform: Transform) -> dict[str, Any] | None:
    """Parameters of the equation with its bodies transformed, or None where no body changed."""
    changed: dict[str, Any] = {}
    for name in BODIES.get(equation.primitive, ()):
        value = equation.params[name]
        many = isinstance(value, (tuple, list))
        new = tuple(_transformed(body, transform) for body in (value if many else (value,)))
        if any(a is not b for a, b in zip(new, value if many else (value,))):
            changed[name] = new if many else new[0]
    return dict(equation.params, **changed) if changed else None


def _transformed(body: Any, transform: Transform) -> Any:
    if not isinstance(body, jex.ClosedJaxpr):
        return body
    new = transform(body)
    return new if _same_types(body, new) else body


def _same_types(a: jex.ClosedJaxpr, b: jex.ClosedJaxpr) -> bool:
    """The wrapper checks its bodies' types; a body that would not fit is left as it was."""
    left = [v.aval for v in (*a.jaxpr.invars, *a.jaxpr.outvars)]
    right = [v.aval for v in (*b.jaxpr.invars, *b.jaxpr.outvars)]
    return left == right and a.jaxpr.effects == b.jaxpr.effects
