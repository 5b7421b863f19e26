"""Terms whose factors are sums of exponentials, with those factors in the exponent; and terms of joined pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablegrad.graph.arrange import constant_along
from stablegrad.graph.node import Node, literal_number
from stablegrad.graph.rational import Rational
from stablegrad.rules.forms import ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def as_exponent(c: Companions, term: Term, axes: tuple[int, ...] = ()) -> Term:
    """The term with each positive sum of exponentials v ** p among its factors as p * log(v) in the exponent.

    Such a factor may overflow where the term does not; under a sum along `axes` it has to be shifted with the rest.
    Factors that are constant along `axes` are left: they go in front of the sum.
    """
    factors: dict[Node, Rational] = {}
    exponent = term.exponent
    for node, power in term.factors.items():
        inside = is_sum_of_exponentials(c, node) and c.facts.nonnegative(node)
        if inside and not (axes and constant_along(node, axes)):
            exponent = exponent.plus(Linear({c.build.elementwise("log", node): power}))
        else:
            factors[node] = power
    return Term(term.coefficient, factors, exponent)


def joined(c: Companions, like: Node, data: tuple[int, ...], terms: list[Term]) -> Term:
    """One term for pieces that the moving operation of `like` joins; `data` says which inputs they are."""
    from stablegrad.rules.log_of_sum import write_sum

    mantissas, exponents = {}, {}
    for k, term in zip(data, terms, strict=True):
        piece = like.inputs[k]
        term = as_exponent(c, term)
        mantissas[k] = c.raw_term(Term(term.coefficient, term.factors), piece)
        exponents[k] = write_sum(c, term.exponent, piece)
    out = Term()
    if any(literal_number(m) != 1 for m in mantissas.values()):
        out = Term(factors={c.build.move_like(like, mantissas): ONE})
    if any(literal_number(e) != 0 for e in exponents.values()):
        out = out.times(Term(exponent=Linear({c.build.move_like(like, exponents): ONE})))
    return out
