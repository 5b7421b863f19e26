"""Nodes of the graph, and the table that makes equal pure nodes one node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stablegrad.graph.ops import Op, get_op
from stablegrad.graph.rational import Rational, natural_logarithm, rational


@dataclass(frozen=True)
class Source:
    """Where the user wrote an operation: file, line (from 1), and the name of the enclosing function."""

    file: str
    line: int
    function: str


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

    __slots__ = ("dtype", "inputs", "op", "order", "origin", "params", "shape", "source", "value")

    def __init__(
        self, op: Op, inputs: tuple[Node, ...], params: tuple, shape: tuple[int, ...], dtype: Any, order: int
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.params = params
        self.shape = shape
        self.dtype = dtype
        self.order = order
        self.source: Source | None = None
        self.origin: Any = None
        self.value: Any = None  # concrete value of a literal or constant, if known

    @property
    def name(self) -> str:
        return self.op.name

    def __repr__(self) -> str:
        return f"<{self.op.name}#{self.order} {self.dtype}{list(self.shape)}>"


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
        operation = get_op(op)
        inputs = tuple(inputs)
        if operation.commutative and inputs[0].order > inputs[1].order:
            inputs = (inputs[1], inputs[0])
        key = (op, tuple(map(id, inputs)), params, shape, dtype)
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
        number = np.asarray(value, dtype)
        key = number.tobytes()
        node = self.node("literal", (), (key,), (), np.dtype(dtype))
        node.value = number
        return node


def literal_number(node: Node) -> Rational | None:
    """The exact value of a finite float literal, also behind broadcasts and float casts; None for anything else."""
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


@dataclass(frozen=True)
class Handle:
    """An engine's own operation and parameters, kept whole so that it can be bound again.

    Attributes:
        data: which inputs of a moving operation hold the elements that it copies; the others are positions.
        join: the axis along which the inputs are stacked or concatenated, for such an operation.
        slice: (first, end) position along each axis, for a slice without strides.
    """

    primitive: Any
    parameters: tuple[tuple[str, Any], ...]
    data: tuple[int, ...] = ()
    join: int | None = None
    slice: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def __repr__(self) -> str:
        return str(self.primitive)


def moved_inputs(node: Node) -> tuple[int, ...]:
    """Which inputs of a moving node are data."""
    if node.op.name == "move":
        return node.params[0].data
    if node.op.name in ("arrange", "reshape", "stop_gradient", "barrier"):
        return (0,)
    return ()
