"""What the evaluator asks of a framework: to move arrays about, and to open the bodies of its loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stablegrad.graph.node import Graph, Handle


@dataclass(frozen=True)
class Loop:
    """A loop of known length: inputs are constants, carries, then stacked arrays; results carries, then stacks."""

    body: Graph
    constants: int
    carries: int
    length: int
    reverse: bool


@dataclass(frozen=True)
class While:
    """A loop until the condition fails; inputs are the condition's constants, the body's, and the carries."""

    condition: Graph
    condition_constants: int
    body: Graph
    body_constants: int


@dataclass(frozen=True)
class Branches:
    """The first input (a number, clamped into range, or a boolean) picks the graph that the others go into."""

    graphs: tuple[Graph, ...]


@dataclass(frozen=True)
class Call:
    """A body called once. `own_derivative`: a person's derivative rule stands in place of the mathematical one."""

    body: Graph
    own_derivative: bool


@dataclass(frozen=True)
class LinearSystem:
    """x with matvec(x) = b. Inputs: constants of matvec, then others that serve to solve it, then b."""

    matvec: Graph
    constants: int
    others: int


Region = Loop | While | Branches | Call | LinearSystem


class Engine(Protocol):
    """A framework, as far as the exact evaluator needs it."""

    def bind(self, handle: Handle, arrays: list[Any]) -> list[Any]:
        """The operation applied to concrete arrays; results are NumPy arrays where NumPy has their dtype."""
        ...

    def name(self, handle: Handle) -> str:
        """A name for operations that the graph calls opaque: 'gather', 'sort', 'split', 'top_k', 'cholesky', ''."""
        ...

    def region(self, handle: Handle) -> Region | None:
        """The bodies of a loop, branch or call, or None."""
        ...

    def destinations(
        self, handle: Handle, operand: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...]
    ) -> np.ndarray:
        """For a scatter: which element of the flattened operand each update goes to, -1 where it is dropped."""
        ...
