"""Rules whose root is a square root: the length of a vector, the root of a product of squares."""

from __future__ import annotations

import functools
from fractions import Fraction

from stablegrad.facts.reach import ROOT
from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs
from stablegrad.graph.rational import Rational, quotient
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import is_mask
from stablegrad.rules.hazards import HALF as HALF_PRECISION
from stablegrad.rules.hazards import safely_positive
from stablegrad.rules.powers import raised
from stablegrad.rules.rule import Rewritten, once, rule

MOST_TERMS = 8  # of a sum of squares that is written out
NEAR = 6  # operations between a quotient and the length in its divisor


@rule("sqrt", "rsqrt", "pow")
def root_of_squares(c: Companions, node: Node) -> Rewritten | None:
    """sqrt(sum(x**2)) is the norm of x, sqrt(k x**2) is sqrt(k) |x|: no square, and no infinite slope at 0."""
    power = _power(node)
    length = _root_of_squares(c, node) if power is not None and is_float(node.dtype) else None
    if power is None or length is None:
        return None
    written = raised(c, length, 2 * power)
    return Rewritten(written, "squares leave the range before their root does, and its slope at 0 is infinite")


@rule("mul", "select")
def length_by_maximum(c: Companions, node: Node) -> Rewritten | None:
    """max(|a|, |b|) sqrt(1 + (min(|a|, |b|) / max(|a|, |b|))**2), the library's hypot: the engine's derivative of the
    quotient squares the larger one. Also where it is chosen against the maximum itself, which is 0 then."""
    length = _by_maximum(c, node) if node.op.name == "mul" else unless_maximum_is_0(c, node)
    if length is not None and any(c.facts.reach(side) & ROOT for side in length.inputs):
        return None  # the slope of a root of 0 is infinite: the length's, 0 there, must not meet it
    return None if length is None else Rewritten(length, "the square of a length leaves the range")


def unless_maximum_is_0(c: Companions, node: Node) -> Node | None:
    """The length, where `node` chooses between it and the maximum."""
    which, otherwise, taken = node.inputs if len(node.inputs) == 3 else (None, None, None)
    if which is None or otherwise is None or which.op.name != "eq" or otherwise.op.name != "mul":
        return None
    at_0 = taken in which.inputs and any(literal_number(i) == 0 for i in which.inputs)
    return _by_maximum(c, otherwise) if at_0 and taken in otherwise.inputs else None


def _by_maximum(c: Companions, node: Node) -> Node | None:
    for larger, root in (node.inputs, node.inputs[::-1]):
        sides = _of_two_magnitudes(larger, "max")
        if sides is None or root.op.name != "sqrt" or root.inputs[0].op.name != "add":
            continue
        one, square = sorted(root.inputs[0].inputs, key=lambda n: literal_number(n) != 1)
        ratio = square_root(c, square) if literal_number(one) == 1 else None
        if ratio is not None and ratio.op.name == "div" and _of_two_magnitudes(ratio.inputs[0], "min") == sides:
            below = ratio.inputs[1]
            if below is larger or (below.op.name == "select" and larger in below.inputs):
                return c.build.elementwise("norm_of_terms", *sides)
    return None


def _of_two_magnitudes(node: Node, name: str) -> list[Node] | None:
    """[a, b], in order, where `node` is the operation `name` of |a| and |b|."""
    if node.op.name != name or any(i.op.name != "abs" for i in node.inputs):
        return None
    return sorted((i.inputs[0] for i in node.inputs), key=lambda n: n.order)


@rule("div", "mul")
def quotient_by_length(c: Companions, node: Node) -> Rewritten | None:
    """x / norm(x): the engine's derivative of a quotient squares the divisor; also x times 1 / norm(x)."""
    if not c.facts.reach(node) & ROOT or not is_float(node.dtype):
        return None
    above, below = node.inputs
    if node.op.name == "mul":
        lengths = [_inverted(c, above), _inverted(c, below)]
        if (lengths[0] is None) == (lengths[1] is None):
            return None
        above, length = (below, lengths[0]) if lengths[1] is None else (above, lengths[1])
    else:
        length = below if _is_length(c, below) else None
    if length is None or literal_number(length) is not None:
        return None
    return Rewritten(c.build.elementwise("stable_div", above, length), "the square of a length leaves the range")


def _is_length(c: Companions, node: Node, depth: int = NEAR) -> bool:
    """A root of squares, also moved, or a product or a maximum of such."""
    if node.op.name in ("arrange", "reshape", "move", "cast", "mul", "max", "select", "neg", "abs"):
        floats = [i for i in node.inputs if i.dtype is not None and is_float(i.dtype)]
        return depth > 0 and any(_is_length(c, i, depth - 1) for i in floats)
    power = _power(node) if node.op.name in ("sqrt", "pow") else None
    return power is not None and power > 0 and _root_of_squares(c, node) is not None


def _inverted(c: Companions, node: Node) -> Node | None:
    """The length whose inverse `node` is."""
    if node.op.name in ("arrange", "reshape"):
        inner = _inverted(c, node.inputs[0])
        return None if inner is None else c.build.move_like(node, {0: inner})
    if node.op.name == "div":
        one = literal_number(node.inputs[0]) == 1
        return node.inputs[1] if one and _is_length(c, node.inputs[1]) else None
    power = _power(node) if node.op.name in ("rsqrt", "pow") else None
    return _root_of_squares(c, node) if power == Fraction(-1, 2) else None


def _root_of_squares(c: Companions, node: Node) -> Node | None:
    base = node.inputs[0]
    return None if base.op.name not in ROOTS or safely_positive(c, base) else length_of(c, base)


def _power(node: Node) -> Fraction | None:
    """Half an odd number below 1: beyond, the slope at 0 is finite, and nothing leaves the range before the power."""
    if node.op.name != "pow":
        return Fraction(1, 2) if node.op.name == "sqrt" else Fraction(-1, 2)
    number = literal_number(node.inputs[1])
    return Fraction(number) if number is not None and number < 1 and Fraction(number).denominator == 2 else None


def length_of(c: Companions, node: Node) -> Node | None:
    """sqrt(node) without the squares that `node` is made of."""
    root = square_root(c, node)
    if root is None or (c.facts.nonnegative(root) and root.op.name != "abs"):
        return root
    signed = root.inputs[0] if root.op.name == "abs" else root
    return c.build.along("norm", signed, ())  # the engine's slope of |x| at 0 is 1


@once
def square_root(c: Companions, node: Node) -> Node | None:
    """r, of either sign, with node = r**2; None where the node's form does not show it."""
    answer = ROOTS.get(node.op.name)
    if answer is None or (node.dtype is not None and not is_float(node.dtype)):
        return None
    return answer(c, node)


def _of_power(c: Companions, node: Node) -> Node | None:
    if node.op.name == "pow":
        power = literal_number(node.inputs[1])
    else:
        power = 2 if node.op.name == "square" else node.params[0]
    if power is None or power % 2 or power <= 0:
        return None
    return raised(c, node.inputs[0], quotient(power, 2))


def _of_product(c: Companions, node: Node) -> Node | None:
    """k x**2 y**4 / z**2 in any grouping; a factor may be a sum of squares, or one whose root is harmless."""
    if node.inputs[0] is node.inputs[-1]:
        return node.inputs[0]
    term, guards = c.single(node)
    if guards or term.exponent or term.coefficient <= 0 or node in term.factors:
        return None
    roots = {factor: _of_factor(c, factor, power) for factor, power in term.factors.items()}
    pieces = [roots[n] for n in sorted(roots, key=lambda n: n.order)]
    if any(piece is None for piece in pieces) or all(_harmless(c, n) for n in roots):
        return None
    size = float(term.coefficient) ** 0.5
    whole = functools.reduce(c.build.mul, pieces)  # type: ignore[arg-type]
    return None if size == 0 else c.build.mul(whole, c.build.number(size, node.dtype))  # type: ignore[arg-type]


def _of_factor(c: Companions, factor: Node, power: Rational) -> Node | None:
    """sqrt(factor ** power)"""
    if is_mask(factor):
        return None
    if power % 2 == 0:
        return raised(c, factor, quotient(power, 2))
    base = square_root(c, factor)
    if base is None and _harmless(c, factor):
        base = c.build.elementwise("sqrt", factor)
    return None if base is None else raised(c, base, power)


def _harmless(c: Companions, factor: Node) -> bool:
    """Its root has a finite slope, or none: positive, or no float that anything is differentiated by."""
    source = factor
    while source.op.name in ("arrange", "reshape", "cast"):
        source = source.inputs[0]
    constant = source.op.name == "constant" or not is_float(source.dtype)
    return safely_positive(c, factor) or (constant and c.facts.nonnegative(factor))


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
    """x**2 + y**2 + ... (+ 0); in half precision a positive number too, whose root is in range where it is not."""
    roots: list[Node] = []
    waiting = [node]
    while waiting:
        term = waiting.pop()
        if term.op.name == "add":
            waiting += reversed(term.inputs)
            continue
        number = literal_number(term)
        if not c.linear(term):
            continue
        if number is not None and node.dtype == HALF_PRECISION and number > 0:
            root: Node | None = c.build.full(float(number) ** 0.5, node)
        else:
            root = square_root(c, term)
        if root is None or len(roots) == MOST_TERMS:
            return None
        if literal_number(root) != 0:
            roots.append(root)
    return roots[0] if len(roots) == 1 else c.build.elementwise("norm_of_terms", *roots) if roots else None


def _of_maximum(c: Companions, node: Node) -> Node | None:
    """max(x**2, 0) is x**2."""
    sides = [i for i in node.inputs if literal_number(i) != 0]
    return square_root(c, sides[0]) if len(sides) == 1 else None


def _of_select(c: Companions, node: Node) -> Node | None:
    """where(c, x**2, 4) is where(c, x, 2)**2; NaN is its own root."""
    which, *cases = node.inputs
    numbers = {case: number for case in cases if (number := _root_of_number(c, case)) is not None}
    roots = [numbers.get(case) or square_root(c, case) for case in cases]
    if len(numbers) == len(cases) or any(root is None for root in roots):
        return None
    return c.graph.node("select", (which, *roots), node.params, node.shape, node.dtype)  # type: ignore[arg-type]


def _root_of_number(c: Companions, node: Node) -> Node | None:
    """Of a number in the program, not negative, or NaN."""
    core = node.inputs[0] if node.op.name == "arrange" else node
    if core.op.name != "literal" or core.value < 0:
        return None
    return c.build.full(float(core.value) ** 0.5, node)


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
    "pow": _of_power,
    "mul": _of_product,
    "div": _of_product,
    "reduce_sum": _of_sum_along,
    "dot_general": _of_contraction,
    "add": _of_sum,
    "max": _of_maximum,
    "select": _of_select,
    "cast": _of_cast,
    "arrange": _of_move,
    "reshape": _of_move,
    "move": _of_move,
}
