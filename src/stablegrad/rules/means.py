"""Means under a softmax, sum(w * softmax(x)): as values they are left as they are, only a logarithm opens them.

One probability of each row is far from 0, so that nothing over- or underflows; and in roots, quotients and products the
slopes of numerator and normaliser, taken apart, would cancel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stablegrad.graph.arrange import constant_along
from stablegrad.graph.node import Node
from stablegrad.rules.forms import ONE, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.layout import absorbed, under_moves
from stablegrad.rules.powers import power_of_term

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def softmax_along(c: Companions, term: Term, shape: tuple[int, ...], axes: tuple[int, ...]) -> Node | None:
    """The normaliser of the softmax along `axes` that the term is, but for factors that are no exponentials."""
    count = math.prod(shape[k] for k in axes)
    for factor, power in term.factors.items():
        core = under_moves(c, factor) if power == -1 and constant_along(factor, axes) else None
        if core is None or c.reductions[core][0].factors:
            continue
        under, summed = c.reductions[core]
        entries = next(iter(under.exponent.parts)).shape
        if count != math.prod(entries[k] for k in summed):
            return None
        taken = absorbed(c, core, factor, -ONE, term.exponent)
        plain = not any(is_sum_of_exponentials(c, n) for n in term.factors if n is not factor)
        return factor if plain and taken is not None and not taken[0] else None
    return None


def is_mean(c: Companions, term: Term, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """The sum of the term along `axes` is a mean of something under a softmax."""
    return len(term.factors) > 1 and softmax_along(c, term, shape, axes) is not None


def opened(c: Companions, term: Term) -> Term:
    """The term with its means as quotients of sums of exponentials, for a logarithm."""
    for node, power in term.factors.items():
        inner = power_of_term(c, c.means[node], power) if node in c.means else None
        if inner is not None:
            rest = {n: p for n, p in term.factors.items() if n is not node}
            term = Term(term.coefficient, rest, term.exponent).times(inner)
    return term
