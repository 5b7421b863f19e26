"""The JAX engine as the rest of the package sees it: trace a function, rewrite its jaxpr, run the result."""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import jax
import jax.extend.core as jex

from stablegrad.engines.jax import _compat
from stablegrad.engines.jax.capture import Capture
from stablegrad.engines.jax.emit import emit
from stablegrad.engines.jax.loops import with_scaled_carries
from stablegrad.engines.jax.regions import rewritten_bodies
from stablegrad.graph.node import Graph, Node


class Rewriter(Protocol):
    """What the engine needs of the rule book: which nodes stand for which, given what is needed."""

    def __call__(self, graph: Graph, roots: list[Node]) -> dict[Node, Node]: ...


def rewrite_program(
    closed: jex.ClosedJaxpr, rewriter: Rewriter, on_capture: Callable[[Capture], None] | None = None
) -> jex.ClosedJaxpr:
    """The program with everything that `rewriter` replaces, bodies of loops and branches included.

    A program in which nothing changes is returned itself, the same object; so is, with a warning, one on which the
    compiler itself fails: a fault of ours must not stop a person's program.
    """
    try:
        with _no_collection():
            return _rewritten(closed, rewriter, on_capture)
    except Exception as error:
        warnings.warn(
            f"stablegrad failed on this program and leaves it as it is; please report it: "
            f"{type(error).__name__}: {error}",
            CompilerFault,
            stacklevel=_users_level(),
        )
        return closed


class CompilerFault(RuntimeWarning):
    """The compiler met a fault of its own; the user's program runs as it was written."""


def _users_level() -> int:
    """How many calls above the function that warns the user's own code stands."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_compat.PACKAGE_ROOT, _compat.JAX_ROOT)):
        level, frame = level + 1, frame.f_back
    return level


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Cyclic garbage collection off: a large graph is made, and scanning it again and again doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _rewritten(
    closed: jex.ClosedJaxpr, rewriter: Rewriter, on_capture: Callable[[Capture], None] | None
) -> jex.ClosedJaxpr:
    if _compat.has_references(closed.jaxpr):
        return closed  # reads and writes of a reference name its variable; such a program is left as it is
    traced = closed
    if getattr(rewriter, "carries_scaled", True):
        closed = with_scaled_carries(closed)
    capture = Capture(closed, traced)
    if on_capture is not None:
        on_capture(capture)
    replaced = rewriter(capture.graph, [*capture.graph.outputs, *capture.effects])
    loops = {id(e) for e in capture.loops}
    changed_bodies: dict[int, dict[str, Any] | None] = {}

    def bodies(equation: jex.JaxprEqn) -> dict[str, Any] | None:
        key = id(equation)
        if key not in loops:
            return None  # also a jit that was read through: its values are nodes of this very graph
        if key not in changed_bodies:
            changed_bodies[key] = rewritten_bodies(equation, lambda body: _rewritten(body, rewriter, on_capture))
        return changed_bodies[key]

    changed = bool(replaced) or any(bodies(e) is not None for e in capture.loops)
    rewritten = emit(capture, replaced, bodies) if changed else traced
    if on_capture is None:
        capture.release()
    return rewritten


def run(closed: jex.ClosedJaxpr, arguments: list[Any]) -> list[Any]:
    """Evaluate equation by equation, under whatever transformation is active."""
    with _no_collection():
        staged = _compat.staged(closed, arguments)
    if staged is not None:
        return staged
    evaluate = jex.jaxpr_as_fun(closed)
    if _compat.looks_for_nan():
        evaluate = jax.jit(evaluate)  # JAX looks at the results of a jit, not at those of single equations
    return evaluate(*arguments)
