"""The branch that a `where` did not take contributes nothing: its hazards are evaluated at harmless values.

A zero cotangent that meets an infinite slope is NaN. So, for `where(c, f(x), g)`, f is rebuilt with a `where` in front
of each operation that can fail (`log`, division, `exp` ...), and of a softmax whose row can be all -inf. Who asks
which element is followed down through elementwise operations, broadcasts, reductions and softmax: an element that no
taken element depends on may be anything.
"""

from __future__ import annotations

from collections.abc import Callable

from stablegrad.facts.peak import peak_of
from stablegrad.graph.arrange import arrange, base_and_dims
from stablegrad.graph.node import Node, is_float
from stablegrad.rules.companions import Companions

LARGEST_BRANCH = 200  # nodes between a where and its hazards that are rebuilt
EXP_LIMIT = {"float64": 700.0, "float16": 11.0}

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
    """Guards the branches of the selects of one rewritten program."""

    def __init__(self, companions: Companions, resolve: Resolve) -> None:
        self.c = companions
        self.resolve = resolve
        self._risky: dict[Node, bool] = {}
        self._rebuilt: dict[tuple[Node, Node], Node] = {}
        self._budget = 0

    def guard(self, node: Node) -> Node | None:
        """The select with guarded branches, or None where no branch can fail."""
        which, *cases = node.inputs
        if which.dtype.kind != "b" or len(cases) != 2 or not is_float(node.dtype) or which.shape != node.shape:
            return None
        cases = [self.resolve(case) for case in cases]
        if not any(self.risky(case) for case in cases):
            return None
        self._budget = LARGEST_BRANCH
        taken = [self.c.build.elementwise("not", which), which]
        new = [self._needed(case, where) if self.risky(case) else case for case, where in zip(cases, taken)]
        if self._budget <= 0 or all(a is b for a, b in zip(new, cases)):
            return None
        return self.c.graph.node("select", (which, *new), node.params, node.shape, node.dtype)

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
        if node.op.name in ALONG:
            return self.c.facts.may_be_infinite(node.inputs[0])
        if node.op.name != "sub":
            return False
        found = peak_of(node.inputs[1])
        return found is not None and found[0] is node.inputs[0] and self.c.facts.may_be_infinite(node.inputs[0])

    def _hazard(self, node: Node) -> bool:
        if self._can_be_empty(node):
            return True
        return any(not safe(self.c, self.resolve(node.inputs[k])) for k, safe, _ in hazards_of(node))

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
            for k, safe, harmless in hazards_of(node):
                if not safe(self.c, self.resolve(node.inputs[k])):
                    inputs[k] = self._chosen(where, inputs[k], harmless, node)
            return graph.node(name, inputs, node.params, node.shape, node.dtype)
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
            axes = peak_of(node.inputs[1])[1]  # type: ignore[index]
            asked = self._any(where, axes)
            new = self._chosen(asked, self._needed(x, asked), 0.0, x)
            return self.c.build.sub(new, self._with(node.inputs[1], x, new))
        asked = self._asked(node, x, where)
        new = self._chosen(asked, self._needed(x, asked), 0.0, x)
        return self.c.graph.node(node.op.name, (new, *node.inputs[1:]), node.params, node.shape, node.dtype)

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


# -- which input of an operation must be what, and a harmless value for it ---------------------------------------------

Safe = Callable[[Companions, Node], bool]


def _within(low: float, high: float) -> Safe:
    def safe(c: Companions, node: Node) -> bool:
        a, b = c.facts.interval(node)
        return low < a and b < high

    return safe


def _nonzero(c: Companions, node: Node) -> bool:
    a, b = c.facts.interval(node)
    return a > 0 or b < 0


def _exponent(c: Companions, node: Node) -> bool:
    return c.facts.interval(node)[1] <= EXP_LIMIT.get(str(node.dtype), 80.0)


_INF = float("inf")
_INSIDE = _within(-1.0, 1.0)


def _positive(c: Companions, node: Node) -> bool:
    return c.facts.interval(node)[0] > 0


def _never(c: Companions, node: Node) -> bool:
    return False


def hazards_of(node: Node) -> tuple[tuple[int, Safe, float], ...]:
    """Which inputs have to be harmless where the result is not asked for."""
    if node.op.name in ("log_sum_terms", "shift_terms"):  # mantissa, exponent, mantissa, exponent ...
        return tuple((k, _never, 1.0 - k % 2) for k in range(len(node.inputs)))
    return HAZARDS.get(node.op.name, ())


HAZARDS: dict[str, tuple[tuple[int, Safe, float], ...]] = {
    "log": ((0, _positive, 1.0),),
    "log1p": ((0, lambda c, n: c.facts.interval(n)[0] > -1, 0.0),),
    "sqrt": ((0, _positive, 1.0),),
    "rsqrt": ((0, _positive, 1.0),),
    "cbrt": ((0, _nonzero, 1.0),),
    "div": ((1, _nonzero, 1.0),),
    "pow": ((0, _positive, 1.0),),
    "rem": ((1, _nonzero, 1.0),),
    "exp": ((0, _exponent, 0.0),),
    "exp2": ((0, _exponent, 0.0),),
    "expm1": ((0, _exponent, 0.0),),
    "sinh": ((0, _exponent, 0.0),),
    "cosh": ((0, _exponent, 0.0),),
    "asin": ((0, _INSIDE, 0.0),),
    "acos": ((0, _INSIDE, 0.0),),
    "atanh": ((0, _INSIDE, 0.0),),
    "erf_inv": ((0, _INSIDE, 0.0),),
    "acosh": ((0, _within(1.0, _INF), 2.0),),
    "atan2": ((0, _nonzero, 1.0), (1, _nonzero, 1.0)),
    "lgamma": ((0, _positive, 1.0),),
    "digamma": ((0, _positive, 1.0),),
    "log1mexp": ((0, lambda c, n: c.facts.interval(n)[1] < 0, -1.0),),
    "log_expm1": ((0, _positive, 1.0),),
    "logdiffexp": ((0, lambda c, n: False, 1.0), (1, lambda c, n: False, 0.0)),
    "stable_acosh": ((0, _within(1.0, _INF), 2.0),),
    "stable_expm1": ((0, _exponent, 0.0),),
    "stable_div": ((1, _nonzero, 1.0),),
    "stable_xlogy": ((1, _positive, 1.0),),
    "inverse_expm1": ((0, _nonzero, 1.0),),
    "exprel": ((0, _exponent, 0.0),),
    "log_cosh": (),
    "mul_exp": ((1, _exponent, 0.0),),
}
