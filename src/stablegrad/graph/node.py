"""Nodes of the graph, and the table that makes equal pure nodes one node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stablegrad.graph.ops import OPS, Op
from stablegrad.graph.rational import Rational, natural_logarithm, rational


@dataclass(frozen=True)
class Source:
    """Where the user wrote an operation: file, line (from 1), and the name of the enclosing function."""

    file: str
    line: int
    function: str


UNASKED = object()


class Node:
    """One array value: an operation applied to nodes. Immutable; compared by identity.

    Attributes:
        op: the operation.
        inputs: the nodes it reads. Elementwise inputs have the node's own shape, or are literals of shape ().
        params: hashable parameters, in the operation's own order (see `ops.py` and `arrange.py`).
        shape: tuple of ints.
        dtype: NumPy dtype (ml_dtypes' bfloat16 included).
        order: position in the program; inputs come before.
        source: where the user wrote it, or None.
        origin: the engine's own handle of the captured value, or None for a node that a rule made.
    """

    __slots__ = ("dtype", "inputs", "number", "op", "order", "origin", "params", "place", "shape", "value")

    def __init__(
        self, op: Op, inputs: tuple[Node, ...], params: tuple, shape: tuple[int, ...], dtype: Any, order: int
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.params = params
        self.shape = shape
        self.dtype = dtype
        self.order = order
        self.place: Callable[[], Source | None] | None = None  # asked for the source: few nodes ever are
        self.origin: Any = None
        self.value: Any = None  # concrete value of a literal or constant, if known
        self.number: Any = UNASKED  # the answer of `literal_number`

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def source(self) -> Source | None:
        return None if self.place is None else self.place()

    @source.setter
    def source(self, source: Source | None) -> None:
        self.place = lambda: source

    def __repr__(self) -> str:
        return f"<{self.op.name}#{self.order} {self.dtype}{list(self.shape)}>"


@functools.cache
def is_complex(dtype: object) -> bool:
    return getattr(dtype, "kind", "") == "c"


def is_float(dtype: Any) -> bool:
    """True for real floating dtypes, bfloat16 and the float8 family included; False for keys and other types."""
    try:
        known = np.dtype(dtype)
    except TypeError:  # a type of the engine's own, such as random keys
        return False
    return known.kind == "f" or known.name.startswith(("bfloat16", "float8"))


class Graph:
    """A program of nodes, with the table that shares equal ones.

    Attributes:
        inputs: nodes of the arguments and of closed-over values, in order.
        outputs: nodes of the results, in order.
    """

    def __init__(self) -> None:
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        self._table: dict[tuple, Node] = {}
        self._literals: dict[tuple, Node] = {}
        self.arranged: dict[tuple, Node] = {}  # answers of `arrange`
        self._count = 0

    def node(
        self,
        op: str,
        inputs: Iterable[Node] = (),
        params: tuple = (),
        shape: tuple[int, ...] = (),
        dtype: Any = np.float32,
        *,
        share: bool = True,
    ) -> Node:
        """The node for `op` applied to `inputs`; an equal one that exists already is returned instead.

        `share=False` makes a node that is never merged (random, effectful or opaque operations).
        """
        operation = OPS[op]
        inputs = tuple(inputs)
        if operation.commutative and inputs[0].order > inputs[1].order:
            inputs = (inputs[1], inputs[0])
        key = (op, inputs, params, shape, dtype)
        if share:
            try:
                found = self._table.get(key)
            except TypeError:  # unhashable parameters: such a node is its own
                share, found = False, None
            if found is not None:
                return found
        self._count += 1
        made = Node(operation, inputs, params, shape, dtype, self._count)
        if share:
            self._table[key] = made
        return made

    def literal(self, value: Any, dtype: Any) -> Node:
        """A scalar number of the program, of shape ()."""
        known = (value, dtype) if type(value) in (int, float) and value else None  # 0.0 and -0.0 are equal as keys
        found = self._literals.get(known) if known is not None else None
        if found is not None:
            return found
        number = np.asarray(value, dtype)
        key = number.tobytes()
        node = self.node("literal", (), (key,), (), np.dtype(dtype))
        node.value = number
        if known is not None:
            self._literals[known] = node
        return node


NUMBERS = frozenset(("literal", "arrange", "cast", "log"))


def literal_number(node: Node) -> Rational | None:
    """The exact value of a finite float literal, also behind broadcasts and float casts; None for anything else."""
    if node.op.name not in NUMBERS:
        return None
    if node.number is UNASKED:
        node.number = _literal_number(node)
    return node.number


def _literal_number(node: Node) -> Rational | None:
    while node.op.name in ("arrange", "cast") and is_float(node.dtype):
        node = node.inputs[0]
    if node.op.name == "log":  # log(2), as jnp.log2 divides by it
        inner = literal_number(node.inputs[0])
        return natural_logarithm(inner) if inner is not None and inner > 0 else None
    if node.op.name != "literal" or node.value is None:
        return None
    if is_float(node.value.dtype):
        value = float(node.value)
        return rational(value) if np.isfinite(value) else None
    if node.value.dtype.kind in "iu":
        return int(node.value)
    return None


class Handle:
    """An engine's own operation and parameters, kept whole so that it can be bound again. Immutable.

    Attributes:
        data: which inputs of a moving operation hold the elements that it copies; the others are positions.
        join: the axis along which the inputs are stacked or concatenated, for such an operation.
        slice: (first, end) position along each axis, for a slice without strides.
    """

    __slots__ = ("_hash", "data", "join", "parameters", "primitive", "slice")

    def __init__(
        self,
        primitive: Any,
        parameters: tuple[tuple[str, Any], ...],
        data: tuple[int, ...] = (),
        join: int | None = None,
        slice: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> None:
        self.primitive = primitive
        self.parameters = parameters
        self.data = data
        self.join = join
        self.slice = slice
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Handle)
            and self.primitive is other.primitive
            and self.data == other.data
            and self.parameters == other.parameters
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.primitive, self.parameters, self.data))
        return self._hash

    def __repr__(self) -> str:
        return str(self.primitive)


def moved_inputs(node: Node) -> tuple[int, ...]:
    """Which inputs of a moving node are data."""
    if node.op.name == "move":
        return node.params[0].data
    if node.op.name in ("arrange", "reshape", "stop_gradient", "barrier"):
        return (0,)
    return ()
