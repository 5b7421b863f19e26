"""From a traced function to the graph.

Every value of the jaxpr gets a node; equal pure ones share it. Bodies that only group (jit, remat) are read through:
their values are nodes of the same graph, and a `Frame` remembers which equation they came from, so that `emit.py` can
leave an untouched body as it was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax.extend.core as jex
import numpy as np

from stablegrad.engines.jax import _compat, names
from stablegrad.engines.jax.own import own_name
from stablegrad.engines.jax.picks import scattered_into_zeros
from stablegrad.engines.jax.regions import BODIES
from stablegrad.graph.arrange import arrange, reshape, transpose
from stablegrad.graph.build import stop_gradient
from stablegrad.graph.moves import moved
from stablegrad.graph.node import Graph, Handle, Node, Source, is_complex, is_float

Place = Callable[[], Source | None]  # finding it takes longer than making the node, and few are asked for theirs


class Frame:
    """One instance of a jaxpr that was read: which node each of its variables is.

    Attributes:
        jaxpr: the jaxpr of this instance.
        nodes: variable -> node.
        children: index of a grouping equation -> the frame of its body.
        parent: (frame, equation index) that holds this body, or None at the top.
        defined_by: variable -> index of the equation that defines it.
    """

    def __init__(self, jaxpr: jex.Jaxpr, parent: tuple[Frame, int] | None) -> None:
        self.jaxpr = jaxpr
        self.parent = parent
        self.nodes: dict[jex.Var, Node] = {}
        self.children: dict[int, Frame] = {}
        self.defined_by: dict[jex.Var, int] = {}

    def given(self, var: jex.Var) -> Any:
        """What the equation outside passes for an argument of this body (a branch's first is the choice of branch)."""
        assert self.parent is not None
        outer, index = self.parent
        passed = outer.jaxpr.eqns[index].invars
        return passed[self.jaxpr.invars.index(var) + len(passed) - len(self.jaxpr.invars)]

    def node(self, graph: Graph, atom: Any) -> Node:
        if isinstance(atom, jex.Literal):
            return graph.literal(atom.val, _compat.dtype(atom.aval))
        return self.nodes[atom]


class Capture:
    """A captured program: its graph, the frames of its bodies, and the jaxpr itself.

    Attributes:
        closed: the jaxpr that was read.
        traced: the jaxpr as it was traced, before loops were made to carry scaled values.
        graph: the nodes.
        top: the outermost frame.
        names: argument -> how the user calls it, for reports; filled by who knows it.
        opaque: (operation, source, reason) for each equation that was not understood.
        effects: nodes of what equations with an effect read; they are needed whatever the outputs are.
        loops: equations whose bodies are programs of their own.
    """

    def __init__(self, closed: jex.ClosedJaxpr, traced: jex.ClosedJaxpr | None = None) -> None:
        self.closed = closed
        self.traced = closed if traced is None else traced
        self.graph = Graph()
        self.names: dict[Node, str] = {}  # of arguments, for reports
        self.opaque: list[tuple[str, Source | None, str]] = []
        self.effects: list[Node] = []
        self.loops: list[jex.JaxprEqn] = []
        self._plain_types: dict[int, bool] = {}
        self.top = Frame(closed.jaxpr, None)
        for var, value in zip(closed.jaxpr.constvars, closed.consts):
            self._constant(self.top, var, value)
        for var in closed.jaxpr.invars:
            node = self._fresh("input", (), var)
            self._define(self.top, var, node)
            self.graph.inputs.append(node)
        self._read(self.top, None)
        self.graph.outputs = [self.top.node(self.graph, v) for v in closed.jaxpr.outvars]

    def release(self) -> None:
        """Part frames and nodes, which hold each other: then all of it goes at once, and no collector looks for it."""
        waiting = [self.top]
        while waiting:
            frame = waiting.pop()
            waiting.extend(frame.children.values())
            frame.nodes, frame.children, frame.parent = {}, {}, None

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _fresh(self, op: str, inputs: tuple[Node, ...], var: jex.Var, params: tuple = ()) -> Node:
        aval = var.aval
        shape = tuple(getattr(aval, "shape", ()))
        return self.graph.node(op, inputs, params, shape, getattr(aval, "dtype", None), share=False)

    def _define(self, frame: Frame, var: jex.Var, node: Node, place: Place | None = None) -> None:
        frame.nodes[var] = node
        if node.origin is None and node.op.name != "literal":
            node.origin = (frame, var)
        if node.place is None:
            node.place = place

    def _constant(self, frame: Frame, var: jex.Var, value: Any) -> None:
        node = self._fresh("constant", (), var)
        if not _compat.is_tracer(value) and hasattr(value, "dtype") and hasattr(value, "shape"):
            node.value = value
        self._define(frame, var, node)
        self.graph.inputs.append(node)

    def _plain(self, aval: Any) -> bool:
        """An array of known shape whose type says nothing of a mesh."""
        key = id(aval)  # the program holds it
        found = self._plain_types.get(key)
        if found is None:
            known = hasattr(aval, "shape") and all(isinstance(n, int) for n in aval.shape)
            found = self._plain_types[key] = known and _compat.trivial_sharding(aval)
        return found

    # -- equations -----------------------------------------------------------------------------------------------

    def _read(self, frame: Frame, outer: Place | None) -> None:
        """Read every equation of a frame. `outer`: where the user called JAX's own function whose body this is."""
        graph, known, defined_by = self.graph, frame.nodes, frame.defined_by
        for index, equation in enumerate(frame.jaxpr.eqns):
            for var in equation.outvars:
                defined_by[var] = index
            place = functools.partial(_source, equation, outer)
            inputs = tuple([frame.node(graph, v) if isinstance(v, jex.Literal) else known[v] for v in equation.invars])
            body = _grouped_body(equation)
            if body is not None:
                self._read_body(frame, index, equation, body, inputs, place)
                continue
            nodes = self._translate(equation, inputs, place)
            for var, node in zip(equation.outvars, nodes):
                self._define(frame, var, node, place)

    def _read_body(
        self,
        frame: Frame,
        index: int,
        equation: jex.JaxprEqn,
        body: jex.ClosedJaxpr,
        inputs: tuple[Node, ...],
        place: Place,
    ) -> None:
        child = Frame(body.jaxpr, (frame, index))
        frame.children[index] = child
        for var, value in zip(body.jaxpr.constvars, body.consts):
            self._constant(child, var, value)
        for var, node in zip(body.jaxpr.invars, inputs[len(inputs) - len(body.jaxpr.invars) :]):
            child.nodes[var] = node
        self._read(child, place if _compat.written_in_jax(body.jaxpr) else None)
        for var, inner in zip(equation.outvars, body.jaxpr.outvars):
            self._define(frame, var, child.node(self.graph, inner), place)

    def _translate(self, equation: jex.JaxprEqn, inputs: tuple[Node, ...], place: Place) -> list[Node]:
        if not equation.effects and len(equation.outvars) == 1:
            node = self._pure(equation, inputs, equation.outvars[0])
            if node is not None:
                return [node]
        if equation.primitive is names.SPLIT:
            return self._pieces(inputs[0], equation.params["axis"], equation.params["sizes"])
        if equation.primitive is _compat.unstack_p:
            axis = equation.params["axis"]
            pieces = self._pieces(inputs[0], axis, [1] * len(equation.outvars))
            return [reshape(self.graph, piece, piece.shape[:axis] + piece.shape[axis + 1 :]) for piece in pieces]
        self._note_opaque(equation, place)
        if equation.effects:
            self.effects.extend(inputs)
        if equation.primitive in BODIES:
            self.loops.append(equation)
        region = {names.SCAN: "scan", names.WHILE: "while", names.COND: "cond", names.CUSTOM_JVP: "custom_jvp",
                  names.CUSTOM_VJP: "custom_vjp"}.get(equation.primitive, "opaque")  # fmt: skip
        if equation.primitive is names.BARRIER:
            region = "barrier"
        handle = Handle(equation.primitive, tuple(sorted(equation.params.items(), key=lambda kv: kv[0])))
        if len(equation.outvars) == 1:
            return [self._fresh(region, inputs, equation.outvars[0], (handle,))]
        whole = self.graph.node(region, inputs, (handle,), (), None, share=False)
        return [self._fresh("output", (whole,), var, (k,)) for k, var in enumerate(equation.outvars)]

    def _pieces(self, whole: Node, axis: int, sizes: Iterable[int]) -> list[Node]:
        """Consecutive pieces along an axis, each as a slice."""
        start, pieces = 0, []
        for size in map(int, sizes):
            begin, end = [0] * len(whole.shape), list(whole.shape)
            begin[axis], end[axis] = start, start + size
            parameters = (("limit_indices", tuple(end)), ("start_indices", tuple(begin)), ("strides", None))
            shape = (*whole.shape[:axis], size, *whole.shape[axis + 1 :])
            pieces.append(moved(self.graph, _move(names.SLICE, parameters, (0,)), (whole,), shape, whole.dtype))
            start += size
        return pieces

    def _note_opaque(self, equation: jex.JaxprEqn, place: Place) -> None:
        if equation.effects:
            reason = "it has an effect"
        elif equation.primitive is names.BARRIER:
            reason = "a barrier, as of `keep`: no rule looks through it"
        elif equation.primitive in (names.CUSTOM_JVP, names.CUSTOM_VJP):
            reason = "it carries a derivative rule of its own"
        elif equation.primitive in (names.SCAN, names.WHILE, names.COND):
            return
        elif any(is_float(t) or is_complex(t) for t in map(_dtype, equation.outvars) if isinstance(t, np.dtype)):
            reason = "no rule knows this operation"
        else:
            return
        self.opaque.append((str(equation.params.get("name", equation.primitive)), place(), reason))

    def _pure(self, equation: jex.JaxprEqn, inputs: tuple[Node, ...], var: jex.Var) -> Node | None:
        """The node of a primitive that the compiler knows, or None."""
        aval: Any = var.aval
        primitive, params = equation.primitive, equation.params
        if not self._plain(aval):
            return None
        own = own_name(equation)
        if own is not None:
            return self.graph.node(own, inputs, (), tuple(aval.shape), aval.dtype)
        shape, dtype, graph = tuple(aval.shape), aval.dtype, self.graph
        elementwise = names.ELEMENTWISE.get(primitive)
        if elementwise is not None:
            if params.get("accuracy") is not None:
                return None
            extra = tuple([params[k] for k in sorted(params) if k != "accuracy"]) if params else ()
            return graph.node(elementwise, [_fit(graph, node, shape) for node in inputs], extra, shape, dtype)
        if primitive in names.REDUCTIONS:
            return graph.node(names.REDUCTIONS[primitive], inputs, (tuple(params["axes"]),), shape, dtype)
        if primitive in names.ARG_REDUCTIONS:
            return graph.node(names.ARG_REDUCTIONS[primitive], inputs, (tuple(params["axes"]),), shape, dtype)
        if primitive in names.CUMULATIVE:
            extra = (params["axis"], params["reverse"])
            return graph.node(names.CUMULATIVE[primitive], inputs, extra, shape, dtype)
        handle = Handle(primitive, tuple(sorted(params.items(), key=lambda kv: kv[0])))
        if primitive is _compat.scatter_sub_p:
            base, at, less = inputs
            added = Handle(_compat.scatter_add_p, handle.parameters)
            return graph.node("scatter_add", (base, at, _negative(graph, less)), (added,), shape, dtype)
        if primitive is _compat.scatter_add_p:
            masked = scattered_into_zeros(graph, equation, inputs, shape)
            if masked is not None:
                return masked
        if primitive is names.SORT and len(inputs) == 1:
            return graph.node("sort", inputs, (handle,), shape, dtype)
        if primitive in names.HANDLED:
            return graph.node(names.HANDLED[primitive], inputs, (handle,), shape, dtype)
        if primitive is names.CUSTOM_JVP and _compat.custom_rule_is_jax_own(equation):
            own = names.OWN_CUSTOM_JVP.get(_body_name(params["call_jaxpr"].jaxpr))
            if own is None:
                return None
            operands = inputs * 2 if len(inputs) == 1 and own == "xlogy" else inputs  # x log x
            return graph.node(own, tuple(_fit(graph, node, shape) for node in operands), (), shape, dtype)
        return self._moving(equation, inputs, shape, dtype, handle)

    def _moving(
        self,
        equation: jex.JaxprEqn,
        inputs: tuple[Node, ...],
        shape: tuple[int, ...],
        dtype: Any,
        handle: Handle,
    ) -> Node | None:
        primitive, params, graph = equation.primitive, equation.params, self.graph
        if primitive is names.CONVERT:
            if inputs[0].dtype == dtype:
                return inputs[0]
            return graph.node("cast", inputs, (), shape, dtype)
        if primitive is names.BROADCAST and len(inputs) == 1:
            return arrange(graph, inputs[0], shape, tuple(params["broadcast_dimensions"]))
        if primitive is names.TRANSPOSE:
            return transpose(graph, inputs[0], tuple(params["permutation"]))
        if primitive in (names.SQUEEZE, names.RESHAPE) and len(inputs) == 1:
            order = params.get("dimensions") if primitive is names.RESHAPE else None
            return reshape(graph, inputs[0] if order is None else transpose(graph, inputs[0], tuple(order)), shape)
        if primitive is names.STOP_GRADIENT:
            return stop_gradient(graph, inputs[0])
        if primitive is names.IOTA and not inputs:
            return graph.node("iota", (), (handle,), shape, dtype)
        if primitive in names.MOVING:
            data = names.MOVING[primitive]
            data = tuple(range(len(inputs))) if data is None else data
            if primitive is names.GATHER and not _is_nan_or_none(params["fill_value"]):
                return None  # elements that are none of the operand's; NaN is NaN under every operation
            return moved(graph, _move(primitive, handle.parameters, data), inputs, shape, dtype)
        return None


def _move(primitive: Any, parameters: tuple[tuple[str, Any], ...], data: tuple[int, ...]) -> Handle:
    """A moving operation, with what the graph can use of its parameters."""
    known = dict(parameters)
    join = part = None
    if primitive in (names.CONCATENATE, names.STACK):
        join = known["dimension" if primitive is names.CONCATENATE else "axis"]
    if primitive is names.SLICE and (known["strides"] is None or set(known["strides"]) == {1}):
        part = (tuple(known["start_indices"]), tuple(known["limit_indices"]))
    return Handle(primitive, parameters, data, join, part)


def _negative(graph: Graph, node: Node) -> Node:
    return graph.node("neg", (node,), (), node.shape, node.dtype)


def _is_nan_or_none(value: Any) -> bool:
    return value is None or bool(value != value)


def _fit(graph: Graph, node: Node, shape: tuple[int, ...]) -> Node:
    """An operand of an elementwise operation in the result's shape; literals stay scalars."""
    while node.op.name == "arrange" and node.inputs[0].op.name == "literal":
        node = node.inputs[0]
    if node.shape == shape or node.op.name == "literal":
        return node
    if node.shape == ():
        return arrange(graph, node, shape, ())
    return arrange(graph, node, shape, tuple(range(len(shape) - len(node.shape), len(shape))))


def _grouped_body(equation: jex.JaxprEqn) -> jex.ClosedJaxpr | None:
    """The body of an equation that only groups others (a plain jit, a remat, a choice of platform), or None."""
    if own_name(equation) is not None:
        return None
    if equation.primitive is names.JIT and _compat.plain_jit(equation.params):
        return equation.params["jaxpr"]
    if equation.primitive is names.REMAT:
        return jex.ClosedJaxpr(equation.params["jaxpr"], ())
    if equation.primitive is names.COND:
        # The same computation written for several platforms: the one for any platform says what it is.
        return _compat.branch_for_any_platform(equation)
    return None


def _dtype(var: jex.Var) -> Any:
    """The dtype of a variable; a random key's is none that NumPy knows."""
    return getattr(var.aval, "dtype", None)


def _body_name(jaxpr: jex.Jaxpr) -> str:
    info = jaxpr.debug_info
    return (info.func_src_info or "").split(" ")[0] if info is not None else ""


def _source(equation: jex.JaxprEqn, outer: Place | None) -> Source | None:
    """Where the user wrote an equation: where JAX's own function was called, for one in its body."""
    called = outer() if outer is not None else None
    if called is not None:
        return called
    frame = _compat.user_frame(equation)
    return None if frame is None else Source(*frame)
