"""Programs as captured and as emitted, and what stands in them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np

from engines.verified import verified_rewrite
from stablegrad.engines.jax.capture import Capture, Frame
from stablegrad.engines.jax.engine import rewrite_program
from stablegrad.graph.node import Graph, Node


def captured(function: Callable[..., Any], *arguments: Any) -> Capture:
    return Capture(jax.make_jaxpr(function)(*arguments))


def rewriter(disabled: frozenset[str] = frozenset()) -> Callable[[Graph, list[Node]], dict[Node, Node]]:
    """The rule book as the engine calls it, each graph verified."""
    return lambda graph, roots: verified_rewrite(graph, roots, disabled).replaced


def programs(function: Callable[..., Any], *arguments: Any) -> tuple[jex.ClosedJaxpr, jex.ClosedJaxpr]:
    """The program as traced, and as emitted; the latter checked by JAX, and of the same type."""
    before = jax.make_jaxpr(function)(*arguments)
    after = rewrite_program(before, rewriter())
    jex.check_jaxpr(after.jaxpr)
    assert after.in_avals == before.in_avals
    assert types(after) == types(before)
    assert after.effects == before.effects
    return before, after


def types(program: jex.ClosedJaxpr) -> list[tuple[Any, ...]]:
    """Shape, dtype and weak type of each result."""
    return [(a.shape, a.dtype, getattr(a, "weak_type", None)) for a in program.out_avals]


def emitted(function: Callable[..., Any], *arguments: Any) -> jex.ClosedJaxpr:
    return programs(function, *arguments)[1]


def bodies(equation: jex.JaxprEqn) -> list[jex.Jaxpr]:
    return [getattr(body, "jaxpr", body) for body in jex.jaxprs_in_params(equation.params)]


def equations(program: jex.ClosedJaxpr | jex.Jaxpr, inside: bool = True) -> list[jex.JaxprEqn]:
    """The equations in order; with `inside`, those of bodies after the equation that holds them."""
    found = []
    for equation in getattr(program, "jaxpr", program).eqns:
        found.append(equation)
        if inside:
            for body in bodies(equation):
                found += equations(body)
    return found


def primitives(program: jex.ClosedJaxpr | jex.Jaxpr, inside: bool = True) -> list[str]:
    return [str(equation.primitive) for equation in equations(program, inside)]


def jits(program: jex.ClosedJaxpr | jex.Jaxpr, name: str) -> list[jex.JaxprEqn]:
    """The jit equations of that name."""
    return [e for e in equations(program) if str(e.primitive) == "jit" and e.params["name"] == name]


def run(program: jex.ClosedJaxpr, *arguments: Any) -> Any:
    """The results of a program: one, or a tuple."""
    results = jex.jaxpr_as_fun(program)(*jax.tree.leaves(arguments))
    return results[0] if len(results) == 1 else tuple(results)


def lines(capture: Capture) -> Iterator[tuple[str, Node]]:
    """(primitive, node) of each equation, bodies that are read through included."""
    yield from _lines(capture.top)


def _lines(frame: Frame) -> Iterator[tuple[str, Node]]:
    for index, equation in enumerate(frame.jaxpr.eqns):
        if index in frame.children:
            yield from _lines(frame.children[index])
        elif equation.outvars:
            yield str(equation.primitive), frame.nodes[equation.outvars[0]]


def nodes(capture: Capture, op: str) -> list[Node]:
    """The distinct nodes of an operation, in program order."""
    found = dict.fromkeys(node for _, node in lines(capture) if node.op.name == op)
    return sorted(found, key=lambda node: node.order)


def line_of(needle: str, file: str) -> int:
    """The number of the one line of a file that ends with the comment `# needle`."""
    with open(file) as text:
        (number,) = [k for k, line in enumerate(text, 1) if line.rstrip().endswith(f"# {needle}")]
    return number


def same(left: Any, right: Any) -> None:
    """Two results with the same structure, shapes, dtypes, weak types and bits."""
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert jax.typeof(a) == jax.typeof(b)
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield
