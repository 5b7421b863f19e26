"""The branch that a `where` did not take contributes nothing: its hazards are evaluated at harmless values.

A zero cotangent that meets an infinite slope is NaN. So, for `where(c, f(x), g)`, f is rebuilt with a `where` in front
of each operation that can fail (`log`, division, `exp` ...), and of a softmax whose row can be all -inf. Who asks
which element is followed down through elementwise operations, moves, reductions and softmax: an element that no taken
element depends on may be anything.

A mask that multiplies is followed in the same way, but hides less: 0 * log(0) is 0, 0 * log(-1) stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablegrad.facts.interval import BOUNDS, Interval
from stablegrad.facts.peak import peak_axes
from stablegrad.graph.arrange import arrange, base_and_dims
from stablegrad.graph.build import stop_gradient
from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs
from stablegrad.rules.branch_hazards import AT_ZERO, Safe, hazards_of, safe_beside_zero
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import is_mask

LARGEST_BRANCH = 200  # nodes between a where and its hazards that are rebuilt
FAR = 8  # operations between a hazard and a guard that the program has already

Resolve = Callable[[Node], Node]
ALONG = (
    "log_softmax",
    "softmax",
    "logsumexp",
    "log_sum_others",
    "log_one_minus_softmax",
    "one_minus_softmax",
)
REDUCES = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "shift", "logsumexp", "log_abs_product")


class Branches:
    """Guards the branches of the selects of one rewritten program; with `at_zero` what its masks multiply."""

    def __init__(self, companions: Companions, resolve: Resolve, at_zero: bool = False) -> None:
        self.c = companions
        self.resolve = resolve
        self.at_zero = at_zero
        self._risky: dict[Node, bool] = {}
        self._nonzero: dict[Node, Node | None] = {}
        self._rebuilt: dict[tuple[Node, Node], Node] = {}
        self._budget = 0

    def guard(self, node: Node) -> Node | None:
        """The select, or product with a mask, with guarded operands; None where no operand can fail."""
        operands, asked = self._masked(node) if self.at_zero else self._branches(node)
        operands = [self.resolve(case) for case in operands]
        if not any(where is not None and self.risky(case) for case, where in zip(operands, asked)):
            return None
        self._budget = LARGEST_BRANCH
        new = [
            self._needed(case, where) if where is not None and self.risky(case) else case
            for case, where in zip(operands, asked)
        ]
        if self._budget <= 0 or all(a is b for a, b in zip(new, operands)):
            return None
        kept = node.inputs[: len(node.inputs) - len(operands)]
        return self.c.graph.node(node.op.name, (*kept, *new), node.params, node.shape, node.dtype)

    def _branches(self, node: Node) -> tuple[list[Node], list[Node | None]]:
        """The cases of a select, and where each is taken."""
        if node.op.name != "select" or not is_float(node.dtype) or node.inputs[0].shape != node.shape:
            return [], []
        which, *cases = node.inputs
        if which.dtype.kind == "b" and len(cases) == 2:
            return cases, [self.c.build.elementwise("not", which), which]
        return cases, [self._equal(which, k) for k in range(len(cases))]

    def _equal(self, which: Node, k: int) -> Node:
        number = self.c.graph.literal(k, which.dtype)
        return self.c.graph.node("eq", (which, number), (), which.shape, np.dtype(bool))

    def _masked(self, node: Node) -> tuple[list[Node], list[Node | None]]:
        """The operands of a product, and where the other one's mask is not 0; None for no mask."""
        if node.op.name != "mul" or not is_float(node.dtype) or any(i.shape != node.shape for i in node.inputs):
            return [], []
        return list(node.inputs), [self._where_not_zero(i) for i in reversed(node.inputs)]

    def _where_not_zero(self, node: Node, depth: int = FAR) -> Node | None:
        """Where a value with a mask as its factor is not 0; None if none is seen."""
        node = self.resolve(node)
        if depth == 0 or node in self._nonzero:
            return self._nonzero.get(node)
        found = self._nonzero[node] = self._where_mask_is_not_zero(node, depth)
        return found

    def _where_mask_is_not_zero(self, node: Node, depth: int) -> Node | None:
        build = self.c.build
        if node.op.name == "cast" and node.inputs[0].dtype.kind == "b":
            return node.inputs[0]
        if is_mask(node):
            return node.inputs[0] if literal_number(node.inputs[1]) == 0 else build.elementwise("not", node.inputs[0])
        if node.op.name == "sub" and literal_number(node.inputs[0]) == 1:
            one = self.resolve(node.inputs[1])
            known = one.op.name == "cast" and one.inputs[0].dtype.kind == "b"
            return build.elementwise("not", one.inputs[0]) if known else None
        if node.op.name not in ("mul", "neg", "div", "arrange", "cast"):
            return None
        operands = node.inputs if node.op.name == "mul" else node.inputs[:1]
        found = next((w for i in operands if (w := self._where_not_zero(i, depth - 1)) is not None), None)
        if found is not None and node.op.name == "arrange":
            return arrange(self.c.graph, found, node.shape, node.params)
        return found

    # -- what can fail ---------------------------------------------------------------------------------------------

    def risky(self, node: Node) -> bool:
        """An operation that can fail stands in the part of the branch that is followed."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._risky:
                stack.pop()
                continue
            inputs = [self.resolve(i) for i in self._followed(top)]
            if self._hazard(top):
                self._risky[top] = True
                continue
            waiting = [i for i in inputs if i not in self._risky]
            if waiting and len(stack) < LARGEST_BRANCH:
                stack.extend(waiting)
                continue
            stack.pop()
            self._risky[top] = any(self._risky.get(i, False) for i in inputs)
        return self._risky[node]

    def _followed(self, node: Node) -> tuple[Node, ...]:
        name = node.op.name
        if node.op.elementwise or name in (
            "arrange",
            "reshape",
            "stop_gradient",
            *REDUCES,
            *ALONG,
            "reduce_or",
        ):
            return tuple(i for i in node.inputs if is_float(i.dtype))
        if name == "move":
            return tuple(node.inputs[k] for k in moved_inputs(node) if is_float(node.inputs[k].dtype))
        if name == "dot_general":
            return tuple(i for i in node.inputs if self._empty_row_below(i))
        return ()

    def _empty_row_below(self, node: Node, depth: int = 12) -> bool:
        """A softmax below can have a row of -inf only, by the program's own masks."""
        node = self.resolve(node)
        if self._can_be_empty(node):
            return True
        if depth == 0 or not (node.op.elementwise or node.op.name in ("arrange", "reshape", "reduce_sum")):
            return False
        return any(self._empty_row_below(i, depth - 1) for i in node.inputs if is_float(i.dtype))

    def _can_be_empty(self, node: Node) -> bool:
        if self.at_zero:
            return False
        if node.op.name in ALONG:
            return self.c.facts.may_be_infinite(node.inputs[0])
        if node.op.name != "sub":
            return False
        return peak_axes(*node.inputs) is not None and self.c.facts.may_be_infinite(node.inputs[0])

    def _hazard(self, node: Node) -> bool:
        if self._can_be_empty(node):
            return True
        return any(
            not safe(self.c.facts.interval(self.resolve(node.inputs[k])), node) for k, safe, _ in self._hazards(node)
        )

    def _hazards(self, node: Node) -> tuple[tuple[int, Safe, float], ...]:
        return AT_ZERO.get(node.op.name, ()) if self.at_zero else hazards_of(node)

    def _safe_where_not(self, node: Node, where: Node, depth: int = FAR) -> Interval:
        """Bounds of `node` where `where` does not hold, which a guard of the program's own may narrow."""
        node = self.resolve(node)
        if node.op.name == "select" and len(node.inputs) == 3:
            which, otherwise, taken = node.inputs
            if which is where:
                return self.c.facts.interval(self.resolve(otherwise))
            if where.op.name == "not" and which is where.inputs[0]:
                return self.c.facts.interval(self.resolve(taken))
        elif depth and node.op.elementwise and node.op.name in BOUNDS and node.inputs:
            bounds = [self._safe_where_not(i, where, depth - 1) for i in node.inputs]
            low, high = BOUNDS[node.op.name](node, bounds)
            if low <= high:
                return low, high
        return self.c.facts.interval(node)

    # -- the branch again, harmless where it is not taken ------------------------------------------------------------

    def _needed(self, node: Node, where: Node) -> Node:
        """A node equal to `node` where `where` holds."""
        node = self.resolve(node)
        if not self.risky(node):
            return node
        key = (node, where)
        if key not in self._rebuilt:
            self._budget -= 1
            self._rebuilt[key] = node if self._budget <= 0 else self._rebuild(node, where)
        return self._rebuilt[key]

    def _rebuild(self, node: Node, where: Node) -> Node:
        graph, name = self.c.graph, node.op.name
        if self._can_be_empty(node):
            return self._guarded_rows(node, where)
        if node.op.elementwise:
            inputs = [self._needed(i, where) if is_float(i.dtype) else i for i in node.inputs]
            for k, safe, harmless in self._hazards(node):
                operand = node.inputs[k]
                if safe(self._safe_where_not(operand, where), node) or safe_beside_zero(safe, where, operand):
                    continue
                inputs[k] = self._chosen(where, inputs[k], harmless, node)
            return graph.node(name, inputs, node.params, node.shape, node.dtype)
        if name == "move":
            moved = [k for k in moved_inputs(node) if is_float(node.inputs[k].dtype)]
            data = {k: self._needed(node.inputs[k], self._asked_of_moved(node, k, where)) for k in moved}
            return self.c.build.move_like(node, data)
        inputs = [self._needed(i, self._asked(node, i, where)) for i in node.inputs]
        return self._again(node, inputs)

    def _again(self, node: Node, inputs: list[Node]) -> Node:
        if node.op.name == "arrange":
            return arrange(self.c.graph, inputs[0], node.shape, node.params)
        return self.c.graph.node(node.op.name, inputs, node.params, node.shape, node.dtype)

    def _guarded_rows(self, node: Node, where: Node) -> Node:
        """A softmax, or x - max(x), of rows that are 0 where no element of the row is asked for."""
        x = node.inputs[0]
        if node.op.name == "sub":
            axes = peak_axes(*node.inputs)
            assert axes is not None
            asked = self._any(where, axes)
            new = self._chosen(asked, self._needed(x, asked), 0.0, x)
            return self.c.build.sub(new, self._largest(node.inputs[1], x, new, axes))
        asked = self._asked(node, x, where)
        new = self._chosen(asked, self._needed(x, asked), 0.0, x)
        return self.c.graph.node(node.op.name, (new, *node.inputs[1:]), node.params, node.shape, node.dtype)

    def _largest(self, m: Node, x: Node, new: Node, axes: tuple[int, ...]) -> Node:
        """`m`, the maximum of x along `axes`, of `new`."""
        found = self._with(m, x, new)
        if found is not m:
            return found
        # x is a layout of what the maximum was taken of
        found = self.c.build.lay_back(self.c.build.along("reduce_max", new, axes), x.shape, axes)
        while m.inputs and m.op.name != "stop_gradient":
            m = m.inputs[-1]
        return stop_gradient(self.c.graph, found) if m.op.name == "stop_gradient" else found

    def _with(self, node: Node, old: Node, new: Node) -> Node:
        """`node` computed from `new` instead of `old`."""
        if node is old:
            return new
        inputs = [self._with(i, old, new) for i in node.inputs]
        return node if all(a is b for a, b in zip(inputs, node.inputs)) else self._again(node, inputs)

    def _chosen(self, where: Node, x: Node, harmless: float, like: Node) -> Node:
        other = self.c.graph.literal(harmless, like.dtype)
        if x.op.name == "literal":
            return x
        if self.at_zero:  # a domain error stays
            number = self.c.graph.literal(0.0, x.dtype)
            counts = self.c.graph.node("ne", (x, number), (), x.shape, np.dtype(bool))
            where = self.c.build.elementwise("or", where, counts)
        return self.c.graph.node("select", (where, other, x), (), where.shape, x.dtype)

    def _asked(self, node: Node, operand: Node, where: Node) -> Node:
        """Which elements of an operand the asked elements of `node` depend on."""
        name = node.op.name
        if name == "arrange":
            return self._dropped(where, operand.shape, node.params)
        if name == "reshape":
            return self.c.graph.node("reshape", (where,), (), operand.shape, where.dtype)
        if name == "stop_gradient":
            return where
        if name in ALONG and name != "logsumexp":
            return self._any(where, node.params[0])
        if name in REDUCES:
            return self.c.build.lay_back(where, operand.shape, node.params[0])
        return self._asked_of_product(node, operand, where)

    def _asked_of_moved(self, node: Node, k: int, where: Node) -> Node:
        data = moved_inputs(node)
        positions = [i for j, i in enumerate(node.inputs) if j not in data]
        shapes = tuple(node.inputs[j].shape for j in data)
        params = (node.params[0], data.index(k), shapes)
        return self.c.graph.node("asked", (where, *positions), params, node.inputs[k].shape, np.dtype(bool))

    def _dropped(self, where: Node, shape: tuple[int, ...], dims: tuple[int, ...]) -> Node:
        """where, any over the axes that a broadcast added, in the order of the operand's axes."""
        base, held = base_and_dims(self.c.graph, where)
        if set(held) <= set(dims):
            return arrange(self.c.graph, base, shape, tuple(dims.index(d) for d in held))
        extra = tuple(k for k in range(len(where.shape)) if k not in dims)
        kept = [k for k in range(len(where.shape)) if k in dims]
        reduced = self.c.build.along("reduce_or", where, extra) if extra else where
        return arrange(self.c.graph, reduced, shape, tuple(dims.index(k) for k in kept))

    def _any(self, where: Node, axes: tuple[int, ...]) -> Node:
        """where, spread over whole rows along `axes`."""
        held = base_and_dims(self.c.graph, where)[1]
        if not set(held) & set(axes) and where.op.name == "arrange":
            return where
        return self.c.build.lay_back(self.c.build.along("reduce_or", where, axes), where.shape, axes)

    def _asked_of_product(self, node: Node, operand: Node, where: Node) -> Node:
        (contract_a, contract_b), (batch_a, batch_b) = dict(node.params[0].parameters)["dimension_numbers"]
        a, b = node.inputs
        free_a = [k for k in range(len(a.shape)) if k not in contract_a and k not in batch_a]
        free_b = [k for k in range(len(b.shape)) if k not in contract_b and k not in batch_b]
        start = len(batch_a)
        if operand is a:
            kept, free = [*batch_a, *free_a], list(range(start, start + len(free_a)))
        else:
            kept = [*batch_b, *free_b]
            free = list(range(start + len(free_a), len(node.shape)))
        places = [*range(start), *free]
        gone = tuple(k for k in range(len(node.shape)) if k not in places)
        reduced = self.c.build.along("reduce_or", where, gone) if gone else where
        return arrange(self.c.graph, reduced, operand.shape, tuple(kept))
