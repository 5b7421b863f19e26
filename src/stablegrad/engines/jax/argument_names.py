"""How the arguments of a function are called in reports: x, params['w'], args[0]."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax


def argument_names(f: Any, args: tuple, kwargs: dict[str, Any], traced: Callable[[Any], bool]) -> list[str]:
    """The names of the leaves that are traced, positional arguments first, as the program takes them.

    >>> argument_names(lambda x, p: None, (1.0, {"w": 2.0}), {"scale": 3.0}, lambda leaf: True)
    ['x', "p['w']", 'scale']
    """
    names = [*_positional(f, len(args)), *sorted(kwargs)]
    values = [*args, *(kwargs[name] for name in sorted(kwargs))]
    out = []
    for name, value in zip(names, values, strict=True):
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]:
            if traced(leaf):
                out.append(name + jax.tree_util.keystr(path))
    return out


def _positional(f: Any, count: int) -> list[str]:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # a built-in function, say
        return [f"args[{k}]" for k in range(count)]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [names[k] if k < len(names) else f"{rest}[{k - len(names)}]" for k in range(count)]
