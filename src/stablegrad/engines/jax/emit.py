"""From the rewritten graph back to a jaxpr, with everything untouched left as it was captured.

Two passes. `_Needs` finds which captured equations are still needed, and which grouping bodies (jit, remat) have to be
opened because something inside changed or is read from outside. `_Writer` writes the equations in program order; those
of an opened body are grouped again under its own jit or remat. A program in which nothing changed is returned itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax.extend.core as jex

from stablegrad.engines.jax import _compat, names
from stablegrad.engines.jax.capture import Capture, Frame
from stablegrad.engines.jax.grouping import grouped
from stablegrad.engines.jax.templates import template
from stablegrad.graph.node import Node

Bodies = Callable[[jex.JaxprEqn], "dict[str, Any] | None"]


def emit(capture: Capture, replaced: dict[Node, Node], bodies: Bodies) -> jex.ClosedJaxpr:
    """The program with `replaced` nodes; `bodies(equation)` gives new parameters where a loop's body changed."""
    needs = _Needs(capture, replaced, bodies)
    writer = _Writer(capture, replaced, needs, bodies)
    return writer.program()


class _Needs:
    """What is needed: equations by (frame, index), and the frames that are opened."""

    def __init__(self, capture: Capture, replaced: dict[Node, Node], bodies: Bodies) -> None:
        self.capture, self.replaced = capture, replaced
        self._changed_loops = {id(e) for e in capture.loops if bodies(e) is not None}
        self.opened: set[Frame] = {f for f in _frames(capture.top) if self._changes(f)}
        while True:
            before = len(self.opened)
            self.equations: set[tuple[Frame, int]] = set()
            self.rewritten: set[Node] = set()  # replaced nodes that are needed, by their captured node
            self._seen: dict[Any, int] = {}
            self._mark()
            if len(self.opened) == before:
                break

    def _changes(self, frame: Frame) -> bool:
        if any(n in self.replaced for n in frame.nodes.values()):
            return True
        if self._changed_loops and any(id(e) in self._changed_loops for e in frame.jaxpr.eqns):
            return True
        return any(map(self._changes, frame.children.values()))

    def _mark(self) -> None:
        top = self.capture.top
        waiting: list[tuple[Any, ...]] = [(top, v) for v in top.jaxpr.outvars]
        for frame in _frames(top):
            for index, equation in enumerate(frame.jaxpr.eqns):
                if equation.effects:
                    waiting.append((frame, index, "effect"))
        while waiting:
            item = waiting.pop()
            if len(item) == 3:
                frame, index, _ = item
                child = frame.children.get(index)
                if child is not None and child in self.opened:
                    continue  # the effects inside stand in the list themselves
                if self._reachable(frame):
                    self._keep(frame, index, waiting)
            elif isinstance(item[0], Frame):
                self._variable(item[0], item[1], waiting)
            else:
                self._node(item[0], item[1], waiting)

    def _reachable(self, frame: Frame) -> bool:
        """False for a body that is written whole by an equation outside."""
        while frame.parent is not None:
            if frame not in self.opened:
                return False
            frame = frame.parent[0]
        return True

    def _keep(self, frame: Frame, index: int, waiting: list) -> None:
        if (frame, index) not in self.equations:
            self.equations.add((frame, index))
            waiting.extend((frame, v) for v in frame.jaxpr.eqns[index].invars)

    def _variable(self, frame: Frame, var: Any, waiting: list) -> None:
        if isinstance(var, jex.Literal) or (frame, var) in self._seen:
            return
        self._seen[(frame, var)] = 1
        node = frame.nodes[var]
        if node in self.replaced:
            self.rewritten.add(node)
            waiting.append((self.replaced[node], node.order))
            return
        index = frame.defined_by.get(var)
        if index is None:
            if frame.parent is not None and var in frame.jaxpr.invars:
                waiting.append((frame.parent[0], frame.given(var)))
            return
        child = frame.children.get(index)
        if child is not None and child in self.opened:
            position = frame.jaxpr.eqns[index].outvars.index(var)
            waiting.append((child, child.jaxpr.outvars[position]))
            return
        self._keep(frame, index, waiting)

    def _node(self, node: Node, limit: int, waiting: list) -> None:
        """A node that a new one reads; `limit`: captured nodes after this place are written anew."""
        replaced, seen, nodes = self.replaced, self._seen, [node]
        while nodes:
            node = nodes.pop()
            while node in replaced:
                self.rewritten.add(node)
                node = replaced[node]
            if seen.get(node, limit + 1) <= limit:
                continue
            seen[node] = limit
            if node.origin is not None and node.order <= limit:
                frame, var = _through_results(node, self.opened)
                self._open(frame)
                waiting.append((frame, var))
            else:
                nodes.extend(node.inputs)

    def _open(self, frame: Frame) -> None:
        while frame.parent is not None:
            self.opened.add(frame)
            frame = frame.parent[0]


def _through_results(node: Node, opened: set[Frame]) -> tuple[Frame, Any]:
    """Where a captured node stands; inside a body that is not opened, as a result of the body's equation."""
    frame, var = node.origin
    while frame.parent is not None and frame not in opened and var in frame.jaxpr.outvars:
        outer, index = frame.parent
        result = outer.jaxpr.eqns[index].outvars[frame.jaxpr.outvars.index(var)]
        if isinstance(result, jex.DropVar):
            break
        frame, var = outer, result
    return frame, var


def _frames(frame: Frame) -> list[Frame]:
    out = [frame]
    for child in frame.children.values():
        out += _frames(child)
    return out


class _Writer:
    def __init__(self, capture: Capture, replaced: dict[Node, Node], needs: _Needs, bodies: Bodies) -> None:
        self.capture, self.replaced, self.needs, self.bodies = capture, replaced, needs, bodies
        self.lines: list[tuple[tuple[Frame, ...], jex.JaxprEqn]] = []
        self.atoms: dict[tuple[Frame, Any], Any] = {}
        self.node_atoms: dict[Node, Any] = {}
        self.constants: list[tuple[Any, Any]] = []
        self.scope: tuple[Frame, ...] = ()
        self.context = _compat.trace_context()
        self.model: jex.JaxprEqn | None = None  # the equation whose place in the source new ones take

    def program(self) -> jex.ClosedJaxpr:
        closed, top = self.capture.closed, self.capture.top
        for var in (*closed.jaxpr.constvars, *closed.jaxpr.invars):
            self._define(top, var, var)
        self._frame(top)
        outputs = [self._typed(self._atom(top, v), v.aval) for v in closed.jaxpr.outvars]
        equations = grouped(self.lines, outputs)
        constvars = [*closed.jaxpr.constvars, *(v for v, _ in self.constants)]
        effects = frozenset().union(*(e.effects for e in equations)) if equations else frozenset()
        jaxpr = jex.Jaxpr(constvars, closed.jaxpr.invars, outputs, equations, effects, closed.jaxpr.debug_info)
        return jex.ClosedJaxpr(jaxpr, [*closed.consts, *(value for _, value in self.constants)])

    def _define(self, frame: Frame, var: Any, atom: Any) -> None:
        self.atoms[(frame, var)] = atom
        node = frame.nodes[var]
        if node.origin is not None and node.origin == (frame, var):
            self.node_atoms.setdefault(node, atom)

    def _frame(self, frame: Frame) -> None:
        for index, equation in enumerate(frame.jaxpr.eqns):
            child = frame.children.get(index)
            if child is not None and child in self.needs.opened:
                self._body(frame, equation, child)
            elif (frame, index) in self.needs.equations:
                self._equation(frame, equation)
            for var in equation.outvars:
                # Written where the original stood, so that chains of replaced values nest no deeper than one.
                node = frame.nodes[var]
                if node in self.needs.rewritten and node.origin == (frame, var):
                    self.model = equation
                    self._node(node)

    def _equation(self, frame: Frame, equation: jex.JaxprEqn) -> None:
        self.model = equation
        inputs = [self._atom(frame, v) for v in equation.invars]
        changed = self.bodies(equation)
        if frame.parent is None and changed is None and all(map(operator.is_, inputs, equation.invars)):
            self.lines.append((self.scope, equation))  # of the top, where each stands once
            for var in equation.outvars:
                self._define(frame, var, var)
            return
        outputs = [jex.Var(v.aval) for v in equation.outvars]
        params = equation.params if changed is None else changed
        self.lines.append((self.scope, equation.replace(invars=inputs, outvars=outputs, params=params)))
        for var, new in zip(equation.outvars, outputs):
            self._define(frame, var, new)

    def _body(self, frame: Frame, equation: jex.JaxprEqn, child: Frame) -> None:
        for var, value in self._constants_of(equation, child):
            new = jex.Var(var.aval)
            self.constants.append((new, value))
            self._define(child, var, new)
        outer, self.scope = self.scope, (*self.scope, child)
        self._frame(child)
        self.scope = outer

    def _constants_of(self, equation: jex.JaxprEqn, child: Frame) -> list[tuple[Any, Any]]:
        if equation.primitive is not names.JIT:
            return []
        return list(zip(child.jaxpr.constvars, equation.params["jaxpr"].consts))

    def _atom(self, frame: Frame, var: Any) -> Any:
        """What an occurrence of a variable is now."""
        while not isinstance(var, jex.Literal):
            node = frame.nodes[var]
            if node in self.replaced:
                return self._typed(self._node(self.replaced[node]), var.aval)
            found = self.atoms.get((frame, var))
            if found is not None:
                return found
            index = frame.defined_by.get(var)
            if index is None:
                assert frame.parent is not None
                var, frame = frame.given(var), frame.parent[0]
            else:
                child = frame.children[index]
                var, frame = child.jaxpr.outvars[frame.jaxpr.eqns[index].outvars.index(var)], child
        return var

    def _node(self, node: Node) -> Any:
        while node in self.replaced:
            node = self.replaced[node]
        found = self.node_atoms.get(node)
        if found is not None:
            return found
        if node.origin is not None and self._available(node):
            atom = self._atom(*_through_results(node, self.needs.opened))
        elif node.op.name == "literal":
            atom = jex.Literal(node.value[()], _compat.abstract(node.value[()]))
        else:
            atom = self._write(node)
        self.node_atoms[node] = atom
        return atom

    def _available(self, node: Node) -> bool:
        frame, var = _through_results(node, self.needs.opened)
        while True:
            if (frame, var) in self.atoms:
                return True
            index = frame.defined_by.get(var)
            if index is None:
                if frame.parent is None:
                    return False
                outer, _ = frame.parent
                if var not in frame.jaxpr.invars:
                    return False
                var, frame = frame.given(var), outer
            elif index in frame.children and frame.children[index] in self.needs.opened:
                child = frame.children[index]
                var, frame = child.jaxpr.outvars[frame.jaxpr.eqns[index].outvars.index(var)], child
            else:
                return False
            if isinstance(var, jex.Literal):
                return True
            if frame.nodes[var] in self.replaced:
                return False

    def _write(self, node: Node) -> Any:
        """The equations of a new node."""
        closed, reads = template(node, self.context)
        jaxpr, model = closed.jaxpr, self.model
        given = [self._node(i) for i in reads]
        equations = jaxpr.eqns
        if len(equations) == 1 and not closed.consts:
            (e,) = equations
            if e.invars == jaxpr.invars and e.outvars == jaxpr.outvars:  # one equation of all the operands: most are
                out = jex.Var(e.outvars[0].aval)
                source = e.source_info if model is None else model.source_info
                self.lines.append(
                    (self.scope, jex.JaxprEqn(given, [out], e.primitive, e.params, e.effects, source, e.ctx))
                )
                return out
        env: dict[Any, Any] = dict(zip(jaxpr.invars, given))
        for var, value in zip(jaxpr.constvars, closed.consts):
            env[var] = jex.Var(var.aval)
            self.constants.append((env[var], value))
        for e in equations:
            inputs = [v if isinstance(v, jex.Literal) else env[v] for v in e.invars]
            outputs = [jex.Var(v.aval) for v in e.outvars]
            env.update(zip(e.outvars, outputs))
            source = e.source_info if model is None else model.source_info
            written = jex.JaxprEqn(inputs, outputs, e.primitive, e.params, e.effects, source, e.ctx)
            self.lines.append((self.scope, written))
        (out,) = jaxpr.outvars
        return out if isinstance(out, jex.Literal) else env[out]

    def _typed(self, atom: Any, aval: Any) -> Any:
        """The atom with the weak type that the user's value had."""
        if getattr(atom.aval, "weak_type", None) == getattr(aval, "weak_type", None):
            return atom
        converted = jex.Var(aval)
        params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type, "sharding": None}
        equation = jex.new_jaxpr_eqn([atom], [converted], names.CONVERT, params, frozenset())
        self.lines.append((self.scope, equation))
        return converted
