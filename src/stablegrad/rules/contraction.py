"""Matrix products of scaled values: each row shifted by its largest exponent, the product left to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.facts.reach import EXPONENTIAL
from stablegrad.graph.arrange import arrange
from stablegrad.graph.node import Node
from stablegrad.rules import companions as _companions
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.joined import as_exponent
from stablegrad.rules.masks import in_exponent
from stablegrad.rules.means import softmax_along

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions, Scaled


def scaled_contraction(c: Companions, node: Node) -> Scaled | None:
    """dot_general(a, b) = exp(shift of a's row + shift of b's row) * dot_general of the shifted operands."""
    from stablegrad.rules.log_of_sum import write_sum
    from stablegrad.rules.scaled_along_axes import drop_term, split_along
    from stablegrad.rules.value import write_term

    parameters = dict(node.params[0].parameters)
    (contract_a, contract_b), (batch_a, batch_b) = parameters["dimension_numbers"]
    a, b = node.inputs
    if a.dtype != node.dtype or b.dtype != node.dtype or not c.facts.reach(node) & EXPONENTIAL:
        return None
    if c.trivial(a) and c.trivial(b):
        return None
    if len(contract_b) + len(batch_b) == len(b.shape):
        return _as_sum(c, node, a, (*contract_a, *batch_a), b, (*contract_b, *batch_b), len(batch_a))
    if len(contract_a) + len(batch_a) == len(a.shape):
        return _as_sum(c, node, b, (*contract_b, *batch_b), a, (*contract_a, *batch_a), len(batch_a))
    free_a = [k for k in range(len(a.shape)) if k not in contract_a and k not in batch_a]
    free_b = [k for k in range(len(b.shape)) if k not in contract_b and k not in batch_b]
    batch = len(batch_a)
    place_a = {k: i for i, k in enumerate(batch_a)} | {k: batch + i for i, k in enumerate(free_a)}
    place_b = {k: i for i, k in enumerate(batch_b)} | {k: batch + len(free_a) + i for i, k in enumerate(free_b)}
    if _with_large_entry(c, a, tuple(contract_a)) and _with_large_entry(c, b, tuple(contract_b)):
        return None  # nothing to shift
    total, operands = Term(), []
    for operand, axes, place in ((a, tuple(contract_a), place_a), (b, tuple(contract_b), place_b)):
        term, guards = c.single(operand)
        if guards:
            return None
        if _with_large_entry(c, operand, axes):
            operands.append(operand)
            continue
        term = as_exponent(c, term, axes) if _probability(c, operand) else in_exponent(c, term, axes)
        if not term.exponent and not any(is_sum_of_exponentials(c, f) for f in term.factors):
            operands.append(operand)
            continue
        outside, rest = split_along(c, term, axes)
        outside = drop_term(c, outside, axes)
        mantissa = operand
        if rest.exponent:
            exponent = write_sum(c, rest.exponent, operand)
            shift = c.build.along("shift", exponent, axes)
            down = c.build.sub(exponent, c.build.lay_back(shift, operand.shape, axes))
            mantissa = c.build.elementwise("exp", down)
            if rest.factors:
                mantissa = c.build.mul(write_term(c, Term(factors=rest.factors), operand), mantissa)
            outside = outside.times(Term(exponent=Linear({shift: ONE})))
        elif rest.factors:
            mantissa = write_term(c, rest, operand)
        else:
            return None
        operands.append(mantissa)
        total = total.times(
            _laid(c, outside, node, tuple(k for k in range(len(operand.shape)) if k not in axes), place)
        )
    product = c.graph.node("dot_general", tuple(operands), node.params, node.shape, node.dtype)
    if product is node:
        return None
    return _companions.Scaled((total.times(Term(factors={product: ONE})),))


def _probability(c: Companions, node: Node) -> bool:
    """Known to lie in [0, 1], though made of exponentials."""
    low, high = c.facts.interval(node)
    return low >= 0 and high <= 1


def _with_large_entry(c: Companions, node: Node, axes: tuple[int, ...]) -> bool:
    """Made of exponentials, none above 1 and one in each row along `axes` far from 0: a softmax along them, say."""
    if not _probability(c, node):
        return False
    if not c.facts.may_vanish(node):
        return True
    term, _ = c.single(node)
    return len(term.factors) == 1 and softmax_along(c, term, node.shape, axes) is not None


def _as_sum(
    c: Companions, node: Node, a: Node, places: tuple[int, ...], vector: Node, axes: tuple[int, ...], batch: int
) -> Scaled | None:
    """A product with a vector, or one for each element of a batch, is a sum along axes, which knows entries with
    weight 0. Axis axes[k] of the vector meets axis places[k] of a; the last `batch` of them are not summed."""
    kept = [*places[len(places) - batch :], *(k for k in range(len(a.shape)) if k not in places)]
    if kept != sorted(kept):
        return None
    dims = tuple(places[axes.index(k)] for k in range(len(vector.shape)))
    product = c.build.elementwise("mul", a, arrange(c.graph, vector, a.shape, dims))
    summed = c.build.along("reduce_sum", product, tuple(sorted(places[: len(places) - batch])))
    found = None if summed.shape != node.shape or c.trivial(summed) else c.scaled(summed)
    if summed in c.means:
        c.means[node] = c.means[summed]
    return found


def _laid(c: Companions, term: Term, node: Node, kept: tuple[int, ...], place: dict[int, int]) -> Term:
    """A term over an operand's kept axes, laid into the product's shape."""
    dims = tuple(place[k] for k in kept)

    def lay(part: Node) -> Node:
        return arrange(c.graph, part, node.shape, dims)

    exponent = Linear({lay(p): k for p, k in term.exponent.parts.items()}, term.exponent.constant, term.exponent.logs)
    return Term(term.coefficient, {lay(p): k for p, k in term.factors.items()}, exponent)
