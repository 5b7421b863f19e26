"""What a JAX program computes, as text: to see whether an operation is still there and still fed the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.extend.core as jex

CALLS = ("jit", "pjit", "closed_call", "remat", "remat2", "checkpoint")


def operations(f: Callable[..., Any], *args: Any) -> list[tuple[str, str]]:
    """(name, expression) of each operation that the outputs of f(*args) need.

    Calls are opened. A function with a derivative of its own counts as one operation with its own name.
    """
    closed = jax.make_jaxpr(f)(*args)
    names = {v: f"x{k}" for k, v in enumerate(closed.jaxpr.invars)}
    found: dict[str, tuple[str, list[str]]] = {}
    outputs = _walk(closed.jaxpr, names, found)
    needed: list[tuple[str, str]] = []
    waiting, seen = list(outputs), set()
    while waiting:
        text = waiting.pop()
        if text in found and text not in seen:
            seen.add(text)
            name, inputs = found[text]
            needed.append((name, text))
            waiting.extend(inputs)
    return needed


def names_of(f: Callable[..., Any], *args: Any) -> list[str]:
    """The names of the operations of f(*args), sorted."""
    return sorted(name for name, _ in operations(f, *args))


def still_there(roots: Iterable[str], before: Callable[..., Any], after: Callable[..., Any], *args: Any) -> bool:
    """True if `after` has every operation named in `roots` that `before` has, fed the same."""
    kept = {text for _, text in operations(after, *args)}
    asked = [text for name, text in operations(before, *args) if name in set(roots)]
    assert asked, f"the program has no operation named {sorted(roots)}"
    return all(text in kept for text in asked)


def _walk(jaxpr: Any, names: dict[Any, str], found: dict[str, tuple[str, list[str]]]) -> list[str]:
    for k, variable in enumerate(jaxpr.constvars):
        names.setdefault(variable, f"constant{k}{variable.aval}")
    for equation in jaxpr.eqns:
        inputs = [_text(v, names) for v in equation.invars]
        name = equation.primitive.name
        inner = equation.params.get("jaxpr")
        if name in CALLS and inner is not None:
            body = inner.jaxpr if isinstance(inner, jex.ClosedJaxpr) else inner
            outputs = _walk(body, dict(zip(body.invars, inputs)), found)
            names |= dict(zip(equation.outvars, outputs))
            continue
        if name.startswith("custom_"):
            name = _own_name(equation)
        parameters = {k: v for k, v in equation.params.items() if _describes(v)}
        for k, variable in enumerate(equation.outvars):
            text = f"{name}[{k},{variable.aval},{parameters}]({', '.join(inputs)})"
            if len(text) > 2000:  # texts grow with depth; equal ones stay equal
                text = f"{name}#{hash(text)}"
            names[variable] = text
            found[text] = (name, inputs)
    return [_text(v, names) for v in jaxpr.outvars]


def _own_name(equation: Any) -> str:
    """The name of the Python function that carries the derivative."""
    if "name" in equation.params:
        return str(equation.params["name"])
    return equation.params["call_jaxpr"].jaxpr.debug_info.func_src_info.split()[0]


def _describes(value: Any) -> bool:
    return isinstance(value, (int, float, str, tuple, bool, type(None)))


def _text(atom: Any, names: dict[Any, str]) -> str:
    return f"{atom.val}:{atom.aval}" if isinstance(atom, jex.Literal) else names[atom]
