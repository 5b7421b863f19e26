"""The walk over a graph: every node's elements, in whatever algebra (jets.py, germs.py).

Float arrays are object arrays of elements; integer and boolean ones are NumPy arrays, or object arrays when some of
their elements are undefined.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stablegrad.exact import integers, structure
from stablegrad.exact import scalars as s
from stablegrad.exact.engine import Engine
from stablegrad.exact.meanings import FUNCTIONS, PROGRAMS, SMOOTH
from stablegrad.exact.scalars import Undefined
from stablegrad.exact.structure import filled, holds_elements, make, map_elements
from stablegrad.graph.node import Graph, Handle, Node
from stablegrad.graph.node import is_float as is_float_dtype

REGIONS = ("scan", "while", "cond", "custom_jvp", "custom_vjp", "closed")
COMPARISONS = {
    "eq": lambda order: order == 0, "ne": lambda order: order != 0, "lt": lambda order: order < 0,
    "le": lambda order: order <= 0, "gt": lambda order: order > 0, "ge": lambda order: order >= 0,
}  # fmt: skip


def is_float(dtype: Any) -> bool:
    try:
        return is_float_dtype(dtype)
    except TypeError:  # a dtype of the engine's own, such as a random key
        return False


def is_complex(dtype: Any) -> bool:
    return _is_numpy(dtype) and dtype is not None and np.dtype(dtype).kind == "c"


def reachable(graph: Graph) -> list[Node]:
    """The nodes that the outputs need, inputs first."""
    seen: dict[int, Node] = {}
    waiting = list(graph.outputs)
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            waiting.extend(node.inputs)
    return sorted(seen.values(), key=lambda node: node.order)


class Evaluator:
    """Evaluates graphs in one algebra.

    Attributes:
        algebra: the operations on elements.
        engine: the framework, for moving operations, integers and bodies.
    """

    def __init__(self, algebra: Any, engine: Engine) -> None:
        self.algebra = algebra
        self.engine = engine
        self._orders: dict[int, tuple[Graph, list[Node]]] = {}

    # -- the walk ------------------------------------------------------------------------------------------------

    def run(self, graph: Graph, arguments: list[Any]) -> list[Any]:
        """The outputs of a graph; `arguments` in the order of its input nodes, closed-over constants left out."""
        found = self._orders.get(id(graph))
        if found is None:
            found = self._orders[id(graph)] = (graph, reachable(graph))
        values: dict[int, Any] = {}
        given = iter(arguments)
        for node in graph.inputs:
            if node.op.name != "constant":
                values[id(node)] = next(given)
        for node in found[1]:
            if id(node) not in values:
                values[id(node)] = self._node(node, [values[id(x)] for x in node.inputs])
        return [values[id(node)] for node in graph.outputs]

    def convert(self, value: Any, dtype: Any) -> Any:
        """An array of the engine as the evaluator holds it."""
        if not is_float(dtype):
            return np.asarray(value) if _is_numpy(dtype) else value
        array = np.asarray(value)
        return make(array.shape, map(self.algebra.from_float, array.astype(np.float64).ravel().tolist()))

    def _node(self, node: Node, values: list[Any]) -> Any:
        name = node.op.name
        if name in ("literal", "constant"):
            if node.value is None:
                return self._poison(node, values, f"the value of a {name} is not known")
            return self.convert(node.value, node.dtype)
        if name == "output":
            picked = values[0][node.params[0]] if isinstance(values[0], list) else values[0]
            return picked if hasattr(picked, "dtype") else filled(node.shape, picked)
        if name in REGIONS or name == "opaque":
            return self._region(node, values)
        if name == "barrier":
            return values if node.dtype is None else values[0]
        if any(is_complex(x.dtype) for x in (node, *node.inputs)):
            return self._poison(node, values, "complex numbers have no exact meaning here")
        if name in ("arrange", "reshape", "move", "iota"):
            return self._moving(node, values)
        if any(is_float(x.dtype) for x in (node, *node.inputs)):
            return self._float(node, values)
        return self._integer(node, values)

    def _spread(self, node: Node, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """A literal in a shape. Infinities of a literal are not one number but each their own."""
        if node.op.name == "literal" and shape and holds_elements(value) and not s.is_finite(value[()]):
            return make(shape, (self.convert(node.value, node.dtype)[()] for _ in range(int(np.prod(shape)))))
        return value

    # -- moving --------------------------------------------------------------------------------------------------

    def _moving(self, node: Node, values: list[Any]) -> Any:
        name = node.op.name
        if name == "iota":
            return self.convert(self.engine.bind(node.params[0], [])[0], node.dtype)
        if name == "reshape":
            return values[0].reshape(node.shape)
        if name == "arrange":
            if node.inputs[0].op.name == "literal":
                return np.broadcast_to(self._spread(node.inputs[0], values[0], node.shape), node.shape)
            dims = node.params
            ordered = values[0].transpose(sorted(range(len(dims)), key=lambda k: dims[k]))
            sizes = [1] * len(node.shape)
            for k, d in enumerate(dims):
                sizes[d] = values[0].shape[k]
            return np.broadcast_to(ordered.reshape(sizes), node.shape)
        return self._move(node, node.params[0], node.params[0].data, values)[0]

    def _move(self, node: Node, handle: Handle, data: tuple[int, ...], values: list[Any]) -> list[Any]:
        """Where each element goes, learnt by moving element numbers; a number below 0 is an element of no operand."""
        positions = [v for i, v in enumerate(values) if i not in data]
        if any(holds_elements(v) and any(type(x) is Undefined for x in v.ravel()) for v in positions):
            return [filled(node.shape, s.worse(*(x for v in positions for x in np.ravel(v))))]
        numbers, start = [], 0
        for i, value in enumerate(values):
            if i in data:
                numbers.append(np.arange(start, start + value.size, dtype=np.int32).reshape(value.shape))
                start += value.size
            else:
                numbers.append(value)
        if not is_float(node.inputs[data[0]].dtype) and all(not holds_elements(values[i]) for i in data):
            return [np.asarray(x) for x in self.engine.bind(handle, values)]
        places = self.engine.bind(_numbering(handle), numbers)
        pool = np.concatenate([np.ravel(values[i]) for i in data] + [make((1,), [self._fill(handle)])])
        return [pool[np.where(place < 0, start, place).ravel()].reshape(place.shape) for place in places]

    def _fill(self, handle: Handle) -> Any:
        value = dict(handle.parameters).get("fill_value")
        return s.NOT_A_NUMBER if value is None else self.algebra.from_float(float(value))

    # -- floats --------------------------------------------------------------------------------------------------

    def _float(self, node: Node, values: list[Any]) -> Any:
        name, k = node.op.name, self.algebra
        if name in ("max", "min"):
            # The smallest number of all is no infinity of the data: max(x, -inf) is x, whatever x is.
            bottom = -np.inf if name == "max" else np.inf
            for x, other in zip(node.inputs, values[::-1], strict=True):
                if x.op.name == "literal" and x.value == bottom:
                    return np.broadcast_to(other, node.shape)
        if node.op.elementwise or name == "stop_gradient":
            function = self._elementwise(node)
            if function is None:
                return self._poison(node, values, f"{name} has no exact meaning")
            spread = [self._spread(x, v, node.shape) for x, v in zip(node.inputs, values)]
            result = map_elements(function, spread, node.shape)
            return result if is_float(node.dtype) else _concrete(result, node.dtype)
        if name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
            return structure.reduce(k, name, values[0], node.params[0])
        if name in ("argmax", "argmin"):
            shape, lists = structure.rows(values[0], node.params[0])
            direction = 1 if name == "argmax" else -1
            return _concrete(make(shape, (structure.first_extreme(k, x, direction) for x in lists)), node.dtype)
        if name.startswith("cum"):
            return structure.cumulative(k, name, values[0], *node.params)
        parameters = dict(node.params[0].parameters)
        if name == "dot_general":
            left, right = (self._as_floats(x, v) for x, v in zip(node.inputs, values))
            return structure.dot_general(k, left, right, parameters["dimension_numbers"])
        if name == "conv_general_dilated":
            return structure.convolution(k, values[0], values[1], parameters)
        if name == "sort":
            from stablegrad.exact import opaque

            return opaque.MEANINGS["sort"](self, parameters, values)[0]
        if name.startswith("reduce_window"):
            return structure.reduce_window(k, name, values[0], parameters)
        if name in ("scatter_add", "scatter_mul", "scatter_max", "scatter_min"):
            if holds_elements(values[1]):
                return self._poison(node, values, "scatter to undecided places")
            to = self.engine.destinations(node.params[0], values[0].shape, values[1], values[2].shape)
            return structure.scatter(k, name, values[0], values[2], to)
        return self._poison(node, values, f"{name} has no exact meaning")

    def _as_floats(self, node: Node, value: Any) -> Any:
        return value if is_float(node.dtype) else self.convert(value.astype(np.float64), np.float64)

    def _elementwise(self, node: Node) -> Any:
        """The meaning of an elementwise node, as a function of elements."""
        name, k = node.op.name, self.algebra
        if name == "cast":
            return self._cast(node)
        if name in FUNCTIONS:
            return lambda a: k.unary(name, a)
        if name in PROGRAMS:
            program = PROGRAMS[name]
            return lambda *operands: program(k, *operands)
        if name in SMOOTH:
            return lambda *operands: k.smooth(name, *operands)
        if name in COMPARISONS:
            return lambda a, b: _ordered(name, k.point(a), k.point(b))
        if name == "integer_pow":
            exponent = s.fmpq(int(node.params[0]))
            return lambda a: k.power(a, exponent)
        if name == "round":
            how = "nearest_even" if node.params and int(node.params[0]) == 1 else "nearest_away"
            return lambda a: k.rounded(how, k.point(a))
        if name == "is_finite":
            return lambda a: _is_finite(k.point(a))
        if name == "select":
            return lambda which, *cases: which if type(which) is Undefined else cases[int(which)]
        return None

    def _cast(self, node: Node) -> Any:
        """float -> float is the identity, float -> integer drops the fraction, integer -> float is the engine's."""
        source, target, k = node.inputs[0].dtype, np.dtype(node.dtype), self.algebra
        if is_float(source) and is_float(target):
            return lambda a: a
        if not is_float(source):
            return lambda a: a if type(a) is Undefined else s.from_float(float(target.type(a)))
        if target.kind == "b":
            return lambda a: _ordered("ne", k.point(a), s.ZERO)

        def whole(a: Any) -> Any:
            value = k.rounded("trunc", k.point(a))
            if type(value) is s.Infinity or (type(value) is Undefined and value.kind == "nan"):
                return Undefined("unsupported", "an infinity or NaN cast to an integer")
            if type(value) is Undefined:
                return value
            limits = np.iinfo(target)
            return min(max(int(value.p), limits.min), limits.max)

        return whole

    # -- the rest ------------------------------------------------------------------------------------------------

    def _integer(self, node: Node, values: list[Any]) -> Any:
        undefined = [x for v in values if holds_elements(v) for x in v.ravel()]
        undefined = [x for x in undefined if type(x) is Undefined]
        if undefined and node.op.elementwise:
            return self._mixed(node, values)
        if undefined:
            return filled(node.shape, s.worse(*undefined))
        if node.params and isinstance(node.params[0], Handle):
            return self.engine.bind(node.params[0], values)[0]
        result = integers.evaluate(node.op.name, values, node.params, node.dtype)
        if result is None:
            return filled(node.shape, Undefined("unsupported", f"{node.op.name} on integers"))
        return np.broadcast_to(result, node.shape)

    def _mixed(self, node: Node, values: list[Any]) -> Any:
        """An elementwise operation where some elements are undefined."""
        short = {"and": False, "or": True}.get(node.op.name)

        def one(*operands: Any) -> Any:
            if short is not None and any(x is short or (isinstance(x, np.bool_) and x == short) for x in operands):
                return short
            if node.op.name == "select" and type(operands[0]) is not Undefined:
                return operands[1 + int(operands[0])]
            if any(type(x) is Undefined for x in operands):
                return s.worse(*operands)
            typed = [np.asarray(x, i.dtype) for x, i in zip(operands, node.inputs)]
            result = integers.evaluate(node.op.name, typed, node.params, node.dtype)
            return Undefined("unsupported", f"{node.op.name} on integers") if result is None else result.item()

        return _concrete(map_elements(one, values, node.shape), node.dtype)

    def _region(self, node: Node, values: list[Any]) -> Any:
        from stablegrad.exact import regions

        return regions.evaluate(self, node, values)

    def _poison(self, node: Node, values: list[Any], why: str) -> Any:
        where = "" if node.source is None else f" ({node.source.file}:{node.source.line})"
        reason = Undefined("unsupported", why + where)
        operands = [x for v in values if holds_elements(v) for x in v.ravel()]
        return filled(node.shape, self.algebra.undefined(reason, *operands))


def _numbering(handle: Handle) -> Handle:
    """The operation on element numbers: what it fills in is no element."""
    parameters = tuple((key, -1 if key == "fill_value" else value) for key, value in handle.parameters)
    return Handle(handle.primitive, parameters, handle.data)


def _is_numpy(dtype: Any) -> bool:
    try:
        np.dtype(dtype)
    except TypeError:
        return False
    return True


def _concrete(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A NumPy array of that dtype where every element is known."""
    if any(type(x) is Undefined for x in array.ravel()):
        return array
    return array.astype(dtype)


def _ordered(name: str, a: Any, b: Any) -> Any:
    order = s.compare(a, b)
    if type(order) is Undefined:
        return name == "ne" if order.kind == "nan" else order
    return COMPARISONS[name](order)


def _is_finite(a: Any) -> Any:
    if type(a) is Undefined:
        return False if a.kind == "nan" else a
    return s.is_finite(a)
