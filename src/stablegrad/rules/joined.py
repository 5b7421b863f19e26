"""Terms whose factors are sums of exponentials, with those factors in the exponent; and terms of joined pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.graph.arrange import constant_along, reshape
from stablegrad.graph.moves import piece
from stablegrad.graph.node import Node, literal_number
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.masks import in_exponent
from stablegrad.rules.powers import power_of_term

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def as_exponent(c: Companions, term: Term, axes: tuple[int, ...] = ()) -> Term:
    """The term with each positive sum of exponentials v ** p among its factors as p * log(v) in the exponent.

    Such a factor, or a high inverse power, may overflow where the term does not; under a sum along `axes` it has to be
    shifted with the rest. Masks stand in the exponent too. Factors that are constant along `axes` are left: they go in
    front of the sum.
    """
    factors: dict[Node, Rational] = {}
    exponent = term.exponent
    for node, power in term.factors.items():
        inside = (power < -1 or is_sum_of_exponentials(c, node)) and c.facts.nonnegative(node)
        if axes and any(t.coefficient < 0 for t in c.terms_of(node) or ()):
            inside = False  # a difference may be 0, where the slope of its logarithm is infinite
        if inside and not (axes and constant_along(node, axes)):
            exponent = exponent.plus(Linear({c.build.elementwise("log", node): power}))
        else:
            factors[node] = power
    return in_exponent(c, Term(term.coefficient, factors, exponent), axes)


def joined(c: Companions, like: Node, data: tuple[int, ...], terms: list[Term]) -> Term:
    """One term for pieces that the moving operation of `like` joins; `data` says which inputs they are."""
    from stablegrad.rules.log_of_sum import write_sum
    from stablegrad.rules.value import write_term

    mantissas, exponents = {}, {}
    for k, term in zip(data, terms, strict=True):
        piece = like.inputs[k]
        term = as_exponent(c, term)
        mantissas[k] = write_term(c, Term(term.coefficient, term.factors), piece)
        exponents[k] = write_sum(c, term.exponent, piece)
    out = Term()
    if any(literal_number(m) != 1 for m in mantissas.values()):
        out = Term(factors={c.build.move_like(like, mantissas): ONE})
    if any(literal_number(e) != 0 for e in exponents.values()):
        out = out.times(Term(exponent=Linear({c.build.move_like(like, exponents): ONE})))
    return out


FEW = 8  # pieces that a sum along the axis they are stacked on is opened into


def sum_of_pieces(c: Companions, term: Term, like: Node, axis: int) -> list[Term] | None:
    """sum over `axis` of a term whose parts are stacked along it: one term for each piece. None where they are not."""
    parts = [*term.factors, *term.exponent.parts]
    if like.shape[axis] > FEW or not any(_stacked(p, axis) for p in parts):
        return None
    out = []
    for place in range(like.shape[axis]):
        found = {p: _piece(c, p, axis, place) for p in parts}
        if any(n is None for n in found.values()):
            return None
        exponent = Linear(constant=term.exponent.constant, logs=term.exponent.logs)
        product = Term(term.coefficient)
        for part, times in term.exponent.parts.items():
            exponent = exponent.plus(c.linear(found[part]), times)  # type: ignore[arg-type]
        for node, power in term.factors.items():
            raised = power_of_term(c, c.single(found[node])[0], power)  # type: ignore[arg-type]
            if raised is None:
                return None
            product = product.times(raised)
        out.append(product.times(exponential(c, exponent)))
    return out


def exponential(c: Companions, exponent: Linear) -> Term:
    from stablegrad.rules import scaled_exponentials

    return scaled_exponentials.exponential(c, exponent).terms[0]


def _stacked(node: Node, axis: int) -> bool:
    return node.op.name == "move" and node.params[0].join == axis


def _piece(c: Companions, node: Node, axis: int, place: int) -> Node | None:
    """The elements of `node` at `place` along `axis`, without that axis."""
    if constant_along(node, (axis,)):
        return c.build.drop(node, (axis,))
    if not _stacked(node, axis):
        return None
    found = piece(c.graph, node, axis, place, place + 1)
    shape = (*node.shape[:axis], *node.shape[axis + 1 :])
    return None if found is None else reshape(c.graph, found, shape)
