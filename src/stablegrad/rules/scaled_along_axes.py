"""What moves, selections and sums along axes answer when asked to be a few scaled terms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stablegrad.graph.arrange import constant_along
from stablegrad.graph.node import Node, is_float, literal_number, moved_inputs
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import ONE, Linear, Term, collect, is_mask
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.joined import as_exponent, joined, sum_of_pieces
from stablegrad.rules.layout import move_term, under_moves
from stablegrad.rules.logits import joined_sigmoids, selected_sigmoid
from stablegrad.rules.masks import cast_mask, mask
from stablegrad.rules.means import is_mean, opened
from stablegrad.rules.rule import once
from stablegrad.rules.scaled_exponentials import as_scaled
from stablegrad.rules.taken_out import remember

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions, Scaled


def moved_answer(c: Companions, node: Node) -> Scaled | None:
    if len(moved_inputs(node)) > 1:
        return _joined_values(c, node)
    if moved_inputs(node) != (0,):
        return None
    if c.trivial(node.inputs[0]):
        if node.inputs[0] in c.means:
            c.means[node] = move_term(c, node, c.means[node.inputs[0]], frozenset())[0]
        return None
    inner = c.scaled(node.inputs[0])
    if not inner.terms and node.op.name == "move":
        return None
    moved = [move_term(c, node, t, inner.guards) for t in inner.terms]
    return as_scaled([t for t, _ in moved], *(g for _, g in moved))


def _joined_values(c: Companions, node: Node) -> Scaled | None:
    """Pieces joined (stack, concatenate, pad): their mantissas joined, their exponents joined."""
    data = moved_inputs(node)
    if any(not is_float(node.inputs[k].dtype) for k in data):
        return None
    if all(c.trivial(node.inputs[k]) for k in data):
        if any(node.inputs[k] in c.means for k in data):
            c.means[node] = joined(c, node, data, [opened(c, c.single(node.inputs[k])[0]) for k in data])
        return None
    sigmoids = joined_sigmoids(c, node, data)
    if sigmoids is not None:
        return as_scaled([sigmoids])
    terms = []
    for k in data:
        term, guards = c.single(node.inputs[k])
        if guards:
            return None
        terms.append(as_exponent(c, term))
    if not any(t.exponent for t in terms):
        return None
    return as_scaled([joined(c, node, data, terms)])


def cast_answer(c: Companions, node: Node) -> Scaled | None:
    from stablegrad.rules.linear_answers import widens

    summed = sum_of_halves(c, node)
    if summed is not None:
        known = not c.trivial(summed) or under_moves(c, summed) is not None
        return c.scaled(summed) if known else None
    if not widens(node) or c.trivial(node.inputs[0]):
        return None
    inner = c.scaled(node.inputs[0])

    def cast(part: Node) -> Node:
        if is_mask(part):
            return cast_mask(c, part, node)
        return c.graph.node("cast", (part,), (), node.shape, node.dtype)

    terms = []
    for t in inner.terms:
        exponent = Linear({cast(p): k for p, k in t.exponent.parts.items()}, t.exponent.constant, t.exponent.logs)
        terms.append(Term(t.coefficient, {cast(p): k for p, k in t.factors.items()}, exponent))
    return as_scaled(terms, frozenset(map(cast, inner.guards)))


def sum_of_halves(c: Companions, node: Node) -> Node | None:
    """The sum along axes that `node` stands for, where halves are summed in a wider type and the sum is cast back, as
    jnp.sum does; of one entry, that entry. None for anything else."""
    if node.inputs[0].dtype != np.float32 or not is_float(node.dtype) or node.dtype.itemsize != 2:
        return None  # a sum in double precision of single numbers is the user's own
    moves, at = [], node.inputs[0]
    while at.op.name in ("arrange", "reshape"):
        moves.append(at)
        at = at.inputs[0]
    widened = at.inputs[0] if at.op.name == "reduce_sum" else at
    if widened.op.name != "cast" or widened.inputs[0].dtype != node.dtype:
        return None
    out = widened.inputs[0]
    if at is not widened:
        out = c.build.along("reduce_sum", out, at.params[0])
    for move in reversed(moves):
        out = c.build.move_like(move, {0: out})
    return out


def select_answer(c: Companions, node: Node) -> Scaled | None:
    """A mask over a value; of two exponentials, the exponential of the selected exponent."""
    if len(node.inputs) != 3 or node.dtype is None or is_mask(node):
        return None
    which, *cases = node.inputs
    zero = tuple(literal_number(case) == 0 for case in cases)
    if any(zero) and not all(zero):
        kept = cases[zero.index(False)]
        if which.shape != node.shape or c.trivial(kept) or literal_number(kept) is not None or c.scaled(kept).guards:
            return None
        term, _ = c.single(kept)
        return as_scaled([term.times(Term(factors={mask(c, which, zero, kept, node): ONE}))])
    sigmoids = selected_sigmoid(c, which, cases, node)
    if sigmoids is not None:
        return as_scaled([sigmoids])
    both = [c.scaled(case) for case in cases]
    if any(len(s.terms) != 1 or s.guards or s.terms[0].factors for s in both):
        return None
    if not any(s.terms[0].exponent for s in both) or any(s.terms[0].coefficient <= 0 for s in both):
        return None
    exponents = [c.raw_linear(s.terms[0].exponent.with_log(s.terms[0].coefficient), node) for s in both]
    selected = c.graph.node("select", (which, *exponents), (), node.shape, node.dtype)
    return as_scaled([Term(exponent=Linear({selected: ONE}))])


# -- along axes --------------------------------------------------------------------------------------------------------


def split_along(c: Companions, term: Term, axes: tuple[int, ...]) -> tuple[Term, Term]:
    """(what is constant along `axes`, the rest); the first still has those axes."""
    still = {n: k for n, k in term.factors.items() if constant_along(n, axes)}
    moving = {n: k for n, k in term.factors.items() if n not in still}
    still_e = {n: k for n, k in term.exponent.parts.items() if constant_along(n, axes)}
    moving_e = {n: k for n, k in term.exponent.parts.items() if n not in still_e}
    constant = Linear(still_e, term.exponent.constant, term.exponent.logs)
    return Term(term.coefficient, still, constant), Term(factors=moving, exponent=Linear(moving_e))


def drop_term(c: Companions, term: Term, axes: tuple[int, ...]) -> Term:
    """A term that is constant along `axes`, without them."""
    exponent = Linear(
        {c.build.drop(n, axes): k for n, k in term.exponent.parts.items()},
        term.exponent.constant,
        term.exponent.logs,
    )
    return Term(term.coefficient, {c.build.drop(n, axes): k for n, k in term.factors.items()}, exponent)


def reduce_sum_answer(c: Companions, node: Node) -> Scaled | None:
    (axes,) = node.params
    inner = node.inputs[0]
    if node in c.reductions or c.trivial(inner):
        return None
    scaled = c.scaled(inner)
    if len(axes) == 1 and len(scaled.terms) == 1:
        pieces = sum_of_pieces(c, scaled.terms[0], inner, axes[0])
        if pieces is not None:
            return as_scaled(collect(pieces), *[frozenset()])
    signs = {t.coefficient > 0 for t in scaled.terms}
    if scaled.guards or (len(scaled.terms) > 1 and len(signs) > 1):
        return None  # a sum that cancels is better summed entry by entry
    if len(scaled.terms) == 1 and is_mean(c, scaled.terms[0], inner.shape, axes):
        c.means[node] = _reduced_term(c, scaled.terms[0], axes, inner.shape, inner.dtype)
        return None
    terms = collect(_reduced_term(c, term, axes, inner.shape, inner.dtype) for term in scaled.terms)
    return None if _nothing_gained(c, terms) else as_scaled(terms)


def _nothing_gained(c: Companions, terms: list[Term]) -> bool:
    """One sum of plain values with nothing in front: a quotient among them is better summed as it stands."""
    if len(terms) != 1 or terms[0].coefficient != 1 or terms[0].exponent or len(terms[0].factors) != 1:
        return False
    ((factor, power),) = terms[0].factors.items()
    return power == 1 and factor not in c.reductions


@once
def _reduced_term(c: Companions, term: Term, axes: tuple[int, ...], shape: tuple[int, ...], dtype: Any) -> Term:
    """The sum of a term along axes: what is constant along them in front, the sum of the rest as a factor."""
    outside, rest = split_along(c, _signed_sums_shifted(c, as_exponent(c, term, axes), axes), axes)
    inside, outside = outside, drop_term(c, outside, axes)
    if not rest.factors and not rest.exponent:
        return outside.scaled(math.prod(shape[k] for k in axes))
    like = next(iter((*rest.factors, *rest.exponent.parts)))
    virtual = c.build.along("reduce_sum", c.raw_term(rest, like), axes)
    if rest.exponent:
        c.reductions[virtual] = (rest, axes)
        remember(c, virtual, inside)
    return outside.times(Term(factors={virtual: ONE}))


def _signed_sums_shifted(c: Companions, term: Term, axes: tuple[int, ...]) -> Term:
    """Sums of exponentials of unknown sign, which cannot stand in the exponent, as mantissas and their shifts."""
    from stablegrad.rules.value import shifted

    out = term
    for node, power in term.factors.items():
        found = shifted(c, node) if is_sum_of_exponentials(c, node) and not constant_along(node, axes) else None
        if found is not None:
            mantissa, shift = found
            factors = {n: p for n, p in out.factors.items() if n is not node}
            factors[mantissa] = factors.get(mantissa, 0) + power
            out = Term(out.coefficient, factors, out.exponent.plus(Linear({shift: ONE}), power))
    return out


def reduce_prod_answer(c: Companions, node: Node) -> Scaled | None:
    """A product of exponentials is the exponential of the sum of their exponents."""
    (axes,) = node.params
    inner = node.inputs[0]
    if not c.facts.nonnegative(inner) or c.trivial(inner):
        return None
    term, guards = c.single(inner)
    from stablegrad.rules.log_of_sum import write_sum

    term = as_exponent(c, term)
    if guards or term.coefficient <= 0 or not term.exponent.parts or not all(map(c.facts.nonnegative, term.factors)):
        return None
    count = math.prod(inner.shape[k] for k in axes)
    exponent = Linear({}, term.exponent.constant * count).with_log(term.coefficient, count)
    for number, times in term.exponent.logs.items():
        exponent = exponent.with_log(number, times * count)
    summed = c.build.along("reduce_sum", write_sum(c, Linear(term.exponent.parts), inner), axes)
    factors: dict[Node, Rational] = {}
    if term.factors:
        factors[c.build.along("reduce_prod", c.raw_term(Term(factors=term.factors), inner), axes)] = ONE
    return as_scaled([Term(ONE, factors, exponent.plus(Linear({summed: ONE})))])


def dot_general_answer(c: Companions, node: Node) -> Scaled | None:
    """Rows of either operand scaled by their largest exponent, then the engine's own product."""
    from stablegrad.rules.contraction import scaled_contraction

    return scaled_contraction(c, node)
