"""Rules whose root is a square root: the length of a vector, the root of a product of squares."""

from __future__ import annotations

from fractions import Fraction

from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs
from stablegrad.graph.rational import quotient, rational
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import is_mask
from stablegrad.rules.hazards import HALF as HALF_PRECISION
from stablegrad.rules.hazards import safely_positive
from stablegrad.rules.powers import raised
from stablegrad.rules.rule import Rewritten, once, rule

MOST_TERMS = 8  # of a sum of squares that is written out
SQUARED = frozenset("square integer_pow mul div reduce_sum dot_general add select cast arrange reshape move".split())


@rule("sqrt", "rsqrt", "pow")
def root_of_squares(c: Companions, node: Node) -> Rewritten | None:
    """sqrt(sum(x**2)) is the norm of x, sqrt(k x**2) is sqrt(k) |x|: no square, and no infinite slope at 0."""
    power = _power(node)
    base = node.inputs[0]
    if power is None or base.op.name not in SQUARED or not is_float(node.dtype) or safely_positive(c, base):
        return None
    root = square_root(c, base)
    if root is None:
        return None
    length = root if c.facts.nonnegative(root) else c.build.elementwise("abs", root)
    written = raised(c, length, 2 * power)
    return Rewritten(written, "squares leave the range before their root does, and its slope at 0 is infinite")


def _power(node: Node) -> Fraction | None:
    """Half an odd number."""
    if node.op.name != "pow":
        return Fraction(1, 2) if node.op.name == "sqrt" else Fraction(-1, 2)
    number = literal_number(node.inputs[1])
    return Fraction(number) if number is not None and Fraction(number).denominator == 2 else None


@once
def square_root(c: Companions, node: Node) -> Node | None:
    """r, of either sign, with node = r**2; None where the node's form does not show it."""
    answer = ROOTS.get(node.op.name)
    if answer is None or (node.dtype is not None and not is_float(node.dtype)):
        return None
    return answer(c, node)


def _of_power(c: Companions, node: Node) -> Node | None:
    power = 2 if node.op.name == "square" else node.params[0]
    if power % 2 or power <= 0:
        return None
    return raised(c, node.inputs[0], rational(power / 2))


def _of_product(c: Companions, node: Node) -> Node | None:
    """k x**2 y**4 / z**2 in any grouping; a factor may be a sum of squares."""
    if node.inputs[0] is node.inputs[-1]:
        return node.inputs[0]
    term, guards = c.single(node)
    if guards or term.exponent or term.coefficient <= 0 or node in term.factors:
        return None
    root: Node | None = None
    for factor, power in sorted(term.factors.items(), key=lambda item: item[0].order):
        base, half = (factor, quotient(power, 2)) if power % 2 == 0 else (square_root(c, factor), power)
        if base is None or is_mask(factor):
            return None
        piece = raised(c, base, half)
        root = piece if root is None else c.build.mul(root, piece)
    size = float(term.coefficient) ** 0.5
    return None if root is None or size == 0 else c.build.mul(root, c.build.number(size, node.dtype))


def _of_sum_along(c: Companions, node: Node) -> Node | None:
    inner = square_root(c, node.inputs[0])
    return None if inner is None else c.build.along("norm", inner, *node.params)


def _of_contraction(c: Companions, node: Node) -> Node | None:
    """x @ x, and row by row."""
    (contract, other), (batch, other_batch) = dict(node.params[0].parameters)["dimension_numbers"]
    x, y = node.inputs
    if x is not y or set(contract) != set(other) or tuple(batch) != tuple(other_batch) or x.dtype != node.dtype:
        return None
    if len(contract) + len(batch) != len(x.shape) or tuple(contract) != tuple(other):
        return None
    if list(batch) != sorted(batch):
        return None
    return c.build.along("norm", x, tuple(sorted(contract)))


def _of_sum(c: Companions, node: Node) -> Node | None:
    """x**2 + y**2 + ...; in half precision a positive number too, whose root is in range where it is not."""
    roots: list[Node] = []
    waiting = [node]
    while waiting:
        term = waiting.pop()
        if term.op.name == "add":
            waiting += reversed(term.inputs)
            continue
        number = literal_number(term)
        if number is not None and node.dtype == HALF_PRECISION and number > 0:
            root: Node | None = c.build.full(float(number) ** 0.5, node)
        else:
            root = square_root(c, term)
        if root is None or len(roots) == MOST_TERMS:
            return None
        roots.append(root)
    return c.build.elementwise("norm_of_terms", *roots)


def _of_select(c: Companions, node: Node) -> Node | None:
    """where(c, x**2, 0) is where(c, x, 0)**2."""
    which, *cases = node.inputs
    roots = [case if literal_number(case) == 0 else square_root(c, case) for case in cases]
    found = tuple(root for root in roots if root is not None)
    if len(found) < len(roots):
        return None
    return c.graph.node("select", (which, *found), node.params, node.shape, node.dtype)


def _of_move(c: Companions, node: Node) -> Node | None:
    if moved_inputs(node) != (0,):
        return None
    inner = square_root(c, node.inputs[0])
    return None if inner is None else c.build.move_like(node, {0: inner})


def _of_cast(c: Companions, node: Node) -> Node | None:
    source = node.inputs[0]
    if not is_float(source.dtype):
        return None
    inner = square_root(c, source)
    return None if inner is None else c.graph.node("cast", (inner,), node.params, node.shape, node.dtype)


ROOTS = {
    "square": _of_power,
    "integer_pow": _of_power,
    "mul": _of_product,
    "div": _of_product,
    "reduce_sum": _of_sum_along,
    "dot_general": _of_contraction,
    "add": _of_sum,
    "select": _of_select,
    "cast": _of_cast,
    "arrange": _of_move,
    "reshape": _of_move,
    "move": _of_move,
}
