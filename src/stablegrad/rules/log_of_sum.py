"""The logarithm of a sum of scaled terms: elementwise, and along axes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node
from stablegrad.graph.rational import Rational, quotient
from stablegrad.rules.arguments import less_one
from stablegrad.rules.forms import HALF, ONE, Linear, Term
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.joined import as_exponent
from stablegrad.rules.layout import (
    absorbed,
    axis_places,
    laid_along,
    moved_as,
    others_beside,
    reduced_core,
    under_moves,
)
from stablegrad.rules.rule import once
from stablegrad.rules.taken_out import put_back

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions

Written = tuple[Linear, Node, Rational]


def write_sum(c: Companions, linear: Linear, like: Node) -> Node:
    from stablegrad.rules.logarithm import expanded, write_linear

    key = (linear.key, like.shape, like.dtype)
    out = c.sums_written.get(key)
    if out is None:
        whole, guards = expanded(c, linear)
        out = write_linear(c, whole, like)
        for guard in guards:
            out = c.build.elementwise("require", out, guard)
        c.sums_written[key] = out
    return out


def of_terms(
    c: Companions,
    node: Node,
    terms: tuple[Term, ...],
    times: Rational,
    rest: Linear,
    beside: list[tuple[Node, Rational]],
) -> Written:
    """times * log(sum of terms) + rest, as (new rest, node, coefficient of the node). `beside`: the logarithms that are
    still to be written, with their coefficients."""
    alone = one_plus_exponential(c, terms)
    if alone is not None and alone.keys().isdisjoint(rest.parts):
        return rest, _softplus(c, terms, node), times
    inverse = inverse_hyperbolic(c, node, terms)
    if inverse is not None:
        piece, constant = inverse
        return rest.plus(constant, times), piece, times
    if not any(t.exponent.parts or any(is_sum_of_exponentials(c, f) for f in t.factors) for t in terms):
        return rest, _log_of_plain(c, node, terms), times
    if any(t.factors for t in terms):
        quotients = _over_both(c, node, terms)
        if quotients is not None:
            return rest, quotients, times
        in_exponents = tuple(as_exponent(c, t) for t in terms)
        if any(t.factors for t in in_exponents):
            return rest, weighted_terms(c, node, terms), times
        terms = in_exponents  # log(1 + sum(exp x)) is softplus(logsumexp x)
    sizes = [rest.size_with(t.log, times) for t in terms]
    for k, term in enumerate(terms if _is_difference(terms) else ()):
        # log(e^z - 1) - log(e^z + 1) relative to e^z on both sides: log of tanh near 1 keeps its digits
        if term.coefficient > 0 and term.exponent.parts:
            if any(_holds(c, n, term.exponent) and k_n == -times for n, k_n in beside):
                sizes[k] = -1
    best = lesser(sizes, terms, [len(rest.plus(t.log, times).parts) for t in terms])
    if _is_difference(terms):
        # a + log(1 - e^(b - a)) rather than b + log(e^(a - b) - 1), whose slope by b is a difference
        larger = 0 if terms[0].coefficient > 0 else 1
        best = larger if sizes[larger] <= sizes[best] else best
    if len(terms) == 2:
        return _of_two(c, node, terms, times, rest, best, sizes)
    if all(t.coefficient > 0 for t in terms) and sizes[best] <= rest.size():
        common = functools.reduce(_common, (t.log for t in terms))
        if common and rest.size_with(common, times) < sizes[best]:
            # m + log(R e^-m + S e^-m + T e^-m): relative to one of them, it would be inf - inf where that one is 0
            apart = tuple(Term(t.coefficient, t.factors, t.exponent.plus(common, -ONE)) for t in terms)
            return rest.plus(common, times), weighted_terms(c, node, apart), times
        base = terms[best].log
        shifted = tuple(
            Term(quotient(t.coefficient, terms[best].coefficient), {}, _away(t, terms[best])) for t in terms
        )
        return rest.plus(base, times), weighted_terms(c, node, shifted), times
    return rest, weighted_terms(c, node, terms), times


def _over_both(c: Companions, node: Node, terms: tuple[Term, ...]) -> Node | None:
    """log of a difference of two sigmoids, which may be masked."""
    from stablegrad.rules.differences import over_both
    from stablegrad.rules.logarithm import log_of_term, write_linear
    from stablegrad.rules.logits import without_masks

    term = over_both(c, tuple(without_masks(c, t, node) for t in terms), node)
    return None if term is None else write_linear(c, log_of_term(c, term, node), node)


def lesser(sizes: list[int], terms: tuple[Term, ...], parts: Sequence[Rational] = ()) -> int:
    """The place of the least size; of equal ones that with the fewest `parts`, then a number's, else the first."""

    def order(k: int) -> tuple[int, Rational, bool]:
        return sizes[k], parts[k] if parts else 0, not terms[k].is_number()

    return min(range(len(sizes)), key=order)


def is_difference(c: Companions, node: Node) -> bool:
    return _is_difference(c.terms_of(node) or ())


def _is_difference(terms: tuple[Term, ...]) -> bool:
    return len(terms) == 2 and (terms[0].coefficient > 0) != (terms[1].coefficient > 0)


def _holds(c: Companions, node: Node, exponent: Linear) -> bool:
    """`node` stands for a sum in which exp(exponent) is a term."""
    return any(t.exponent == exponent and not t.factors for t in c.terms_of(node) or ())


def _log_of_plain(c: Companions, node: Node, terms: tuple[Term, ...]) -> Node:
    """log of a sum without exponentials: log1p where it is 1 plus something."""
    others = [t for t in terms if not t.is_number()]
    if len(others) == len(terms) - 1 and sum(t.coefficient for t in terms if t.is_number()) == 1:
        as_it_is = less_one(c, node) if len(others) == 1 else None
        if as_it_is is not None:  # x / y, say, and not x * y**-1
            return c.build.elementwise("log1p", as_it_is)
        rest = c.raw_sum(tuple(others), node)
        # (1 + x) + y keeps its digits where x is -1, 1 + (x + y) where both are small.
        return c.build.elementwise("log1p", rest) if len(others) == 1 else c.build.elementwise("log_near_1", rest, node)
    return c.build.elementwise("log", node)


def _away(term: Term, base: Term) -> Linear:
    return term.exponent.plus(base.exponent, -ONE)


def _of_two(
    c: Companions,
    node: Node,
    terms: tuple[Term, ...],
    times: Rational,
    rest: Linear,
    best: int,
    sizes: list[int],
) -> Written:
    logs = [terms[0].log, terms[1].log]
    signs = [terms[0].coefficient > 0, terms[1].coefficient > 0]
    fits = sizes[best] <= rest.size()
    if signs[0] and signs[1]:
        common = _common(*logs)
        if common and rest.size_with(common, times) < sizes[best]:
            # m + log(S e^-m + T e^-m): nothing but the common part stands beside them
            return rest.plus(common, times), _logaddexp(c, node, [log.plus(common, -ONE) for log in logs]), times
        symmetric = _symmetric(c, terms)
        if rest.parts and _half_cancels(rest, symmetric, times) < min(*sizes, rest.size()):
            middle = rest.plus(symmetric.scaled(HALF), times)
            # z - 2 log(1 + e^z) is -2 log(2 cosh(z / 2)), which keeps its digits near 0
            half = write_sum(c, logs[0].plus(logs[1], -ONE).scaled(HALF), node)
            return middle.with_log(2, times), c.build.elementwise("log_cosh", half), times
        if not fits and terms[0].coefficient == terms[1].coefficient and not symmetric.parts:
            half = write_sum(c, logs[0].plus(logs[1], -ONE).scaled(HALF), node)
            middle = symmetric.scaled(HALF).with_log(2)
            return rest.plus(middle, times), c.build.elementwise("log_cosh", half), times
        if fits:
            difference = difference_to(c, terms, best, node)
            return rest.plus(logs[best], times), c.build.elementwise("softplus", difference), times
        return rest, _logaddexp(c, node, logs), times
    if not any(signs):
        return rest, c.build.full(float("nan"), node), times
    plus = signs.index(True)
    minus = 1 - plus
    if fits:
        base = best
        difference = difference_to(c, terms, base, node)
        far = _minus_exponential(c, difference) if base == plus else None
        if far is not None:
            return rest.plus(logs[base], times), c.build.elementwise("log1mexp_of_exp", far), times
        op = "log1mexp" if base == plus else "log_expm1"
        return rest.plus(logs[base], times), c.build.elementwise(op, difference), times
    if terms[plus].coefficient == -terms[minus].coefficient:  # the common number apart, so that small gaps keep digits
        rest = rest.plus(Linear().with_log(terms[plus].coefficient), times)
        logs = [t.exponent for t in terms]
    if not logs[0].plus(logs[1]).parts:  # e^a - e^-a
        gap = write_sum(c, logs[minus].plus(logs[plus], -ONE), node)
        return rest.plus(logs[plus], times), c.build.elementwise("log1mexp", gap), times
    ordered = (write_sum(c, logs[plus], node), write_sum(c, logs[minus], node))
    return rest, c.build.elementwise("logdiffexp", *ordered), times


def _logaddexp(c: Companions, node: Node, logs: list[Linear]) -> Node:
    return c.build.elementwise("stable_logaddexp", *(write_sum(c, log, node) for log in logs))


def _common(one: Linear, other: Linear) -> Linear:
    """The parts of two sums that are the same."""
    return Linear({p: k for p, k in one.parts.items() if other.parts.get(p) == k})


def difference_to(c: Companions, terms: tuple[Term, ...], base: int, like: Node) -> Node:
    """log |other term| - log |base term|, of two."""
    key = (terms, base)
    found = c.gaps.get(key)
    if found is None:
        found = c.gaps[key] = write_sum(c, terms[1 - base].log.plus(terms[base].log, -ONE), like)
    return found


@once
def one_plus_exponential(c: Companions, terms: tuple[Term, ...]) -> dict[Node, Rational] | None:
    """The parts of z where the terms are 1 and k exp(z), k > 0: where none of them stands beside the logarithm of the
    sum, or beside a power of the sum, nothing cancels."""
    if len(terms) != 2 or any(t.factors or t.coefficient <= 0 for t in terms):
        return None
    for number, other in (terms, terms[::-1]):
        if number.is_number() and number.coefficient == 1 and other.exponent.parts:
            return other.exponent.parts
    return None


@once
def _softplus(c: Companions, terms: tuple[Term, ...], like: Node) -> Node:
    """The logarithm of 1 and an exponential."""
    return c.build.elementwise("softplus", difference_to(c, terms, 0 if terms[0].is_number() else 1, like))


@once
def _symmetric(c: Companions, terms: tuple[Term, ...]) -> Linear:
    """The sum of the logarithms of two terms."""
    return terms[0].log.plus(terms[1].log)


def _half_cancels(rest: Linear, symmetric: Linear, times: Rational) -> int:
    """The size of rest + times * symmetric / 2."""
    if symmetric.parts and symmetric.parts.keys().isdisjoint(rest.parts):
        return len(rest.parts) + len(symmetric.parts)  # at least; and so larger than the rest
    return rest.size_with(symmetric, times * HALF)


def _minus_exponential(c: Companions, node: Node) -> Node | None:
    """y where node = -exp(y)."""
    terms = c.scaled(node).terms
    if len(terms) != 1 or terms[0].factors or terms[0].coefficient >= 0 or not terms[0].exponent.parts:
        return None
    return write_sum(c, terms[0].exponent.with_log(-terms[0].coefficient), node)


def weighted_terms(c: Companions, node: Node, terms: tuple[Term, ...]) -> Node:
    """log of a sum of m * exp(e), m of either sign: shifted by the largest e that has m != 0."""
    if all(t.coefficient > 0 and not t.factors for t in terms):
        return c.build.elementwise("log_sum_exp_terms", *(write_sum(c, t.log, node) for t in terms))
    one = next((t for t in terms if t.is_number() and t.coefficient == 1), None)
    operands: list[Node] = []
    left, place = list(terms), -1
    for term in terms:
        if term is one:
            place = len(operands)
        if term not in left or term is one:
            continue
        left.remove(term)
        opposite = next((t for t in left if _cancels(t, term)), None)
        if opposite is not None and opposite is one:
            one, place = None, -1
        if opposite is None:
            operands += mantissa_and_exponent(c, term, node)
        else:
            left.remove(opposite)
            operands += _difference(c, term, opposite, node)
    operands[::2] = map(_number_itself, operands[::2])
    return c.build.elementwise("log_sum_terms", *operands, params=(place,))


def _number_itself(mantissa: Node) -> Node:
    """A number instead of an array of it: a 1 is told by it."""
    spread = mantissa.op.name == "arrange" and mantissa.inputs[0].op.name == "literal"
    return mantissa.inputs[0] if spread else mantissa


def _cancels(one: Term, other: Term) -> bool:
    """Equal and opposite where the exponents, or their difference, are near 0."""
    return one.coefficient == -other.coefficient and not one.factors and not other.factors


def _difference(c: Companions, one: Term, other: Term, like: Node) -> tuple[Node, Node]:
    """(m, e) with m * exp(e) the sum of two terms that cancel where they are near each other."""
    from stablegrad.rules.pairs import apart

    mantissa, exponent, sign = apart(c, (one, other), ONE, Linear(), like)
    return mantissa if sign > 0 else c.build.neg(mantissa), write_sum(c, exponent, like)


def mantissa_and_exponent(c: Companions, term: Term, like: Node) -> tuple[Node, Node]:
    """(m, e) with term = m * exp(e); factors that are sums of exponentials stand in e."""
    key = (term, like.shape, like.dtype)
    found = c.pairs_written.get(key)
    if found is None:
        found = c.pairs_written[key] = _mantissa_and_exponent(c, term, like)
    return found


def _mantissa_and_exponent(c: Companions, term: Term, like: Node) -> tuple[Node, Node]:
    from stablegrad.rules.value import open_factors

    term = as_exponent(c, term)
    mantissa, exponent = open_factors(c, Term(ONE, term.factors, term.exponent), like)
    if mantissa is None:
        mantissa = c.build.full(term.coefficient, like)
    else:
        mantissa = c.build.scale(mantissa, term.coefficient)
    return mantissa, write_sum(c, exponent, like)


def inverse_hyperbolic(c: Companions, node: Node, terms: tuple[Term, ...]) -> tuple[Node, Linear] | None:
    """log(a + sqrt(a^2 + k)): asinh(a / sqrt k) + log(k)/2 for k > 0, acosh for k = -1."""
    if len(terms) != 2 or any(t.exponent for t in terms):
        return None
    for root, linear in (terms, terms[::-1]):
        if len(root.factors) != 1 or root.coefficient != 1:
            continue
        ((under, power),) = root.factors.items()
        inside = c.terms_of(under)
        if power != HALF or inside is None or len(inside) != 2:
            continue
        constants = [t for t in inside if t.is_number()]
        squares = [t for t in inside if t.key == linear.times(linear).key]
        if len(constants) != 1 or len(squares) != 1 or squares[0].coefficient != linear.coefficient**2:
            continue
        k = constants[0].coefficient
        a = c.raw_term(linear, node)
        if k == -1:
            return c.build.elementwise("stable_acosh", a), Linear()
        if k > 0:
            scaled = c.build.elementwise("div", a, c.build.number(float(k) ** 0.5, node.dtype)) if k != 1 else a
            return c.build.elementwise("stable_asinh", scaled), Linear().with_log(k, HALF)
    return None


def along_axes(
    c: Companions, node: Node, core: Node, times: Rational, rest: Linear, logs: list[Node], whole: Linear
) -> tuple[Linear, Node, Rational, set[Node]]:
    """times * log(node) + rest, `node` a moved sum along axes: (new rest, piece, its coefficient, logarithms taken)."""
    from stablegrad.rules.value import write_term

    c.written.add(core)
    under, axes = c.reductions[core]
    r = under.exponent
    pool = rest.plus(Linear({p: whole.parts[p] for p in logs}))  # logarithms beside it may be its entries
    found = absorbed(c, core, node, times, pool) if not under.factors else None
    if found is not None:
        left, place = found
        taken = {p for p in logs if p not in left.parts}
        rest = Linear({p: k for p, k in left.parts.items() if p not in logs}, left.constant, left.logs)
        return rest, place(c.build.keep("log_softmax", rest_node(c, r), axes)), -times, taken
    others = others_beside(c, core, node, times, rest) if not under.factors else None
    if others is not None:
        rest, x, place = others
        return rest, place(c.build.keep("log_one_minus_softmax", x, axes)), -times, set()
    partner = _normaliser(c, core, node, times, logs, whole)
    gone: set[Node] = set() if partner is None else {partner}
    if partner is not None:
        c.written.add(under_moves(c, partner.inputs[0]))  # type: ignore[arg-type]
        x = c.build.keep("log_softmax", rest_node(c, r), axes)
    else:
        back = put_back(c, core, node, times, pool.parts)
        if back is not None:
            r, taken = back
            rest = Linear({p: k for p, k in rest.parts.items() if p not in taken}, rest.constant, rest.logs)
            gone = taken & set(logs)
        x = rest_node(c, r)
    if under.factors:
        weights = write_term(c, Term(factors=under.factors), x)
        summed = c.build.along("logsumexp_weighted", x, axes, weights)
    else:
        summed = c.build.along("logsumexp", x, axes)
    return rest, moved_as(c, core, node)(summed), times, gone


def rest_node(c: Companions, r: Linear) -> Node:
    """The exponent under a sum, in its own shape."""
    like = next(iter(r.parts))
    return write_sum(c, r, like)


def _normaliser(c: Companions, core: Node, node: Node, times: Rational, logs: list[Node], whole: Linear) -> Node | None:
    """log(sum exp r) with coefficient -times, where this is log(sum m exp r): together log(sum m softmax(r))."""
    under, axes = c.reductions[core]
    if not under.factors:
        return None
    for part in logs:
        other = under_moves(c, part.inputs[0])
        if other is None or other is core or whole.parts[part] != -times:
            continue
        plain, plain_axes = c.reductions[other]
        if plain.factors:
            continue
        if plain_axes == axes and plain.exponent == under.exponent and moved_as(c, core, node)(other) is part.inputs[0]:
            return part
        if core is node and _in_order(c, part.inputs[0], other):
            if _same_sum(c, plain.exponent, plain_axes, under.exponent, axes):
                return part
    return None


def _in_order(c: Companions, node: Node, core: Node) -> bool:
    """`node` is the sum `core` itself, but for unit axes."""
    found = reduced_core(c, node)
    if found is None or found[0] is not core or list(found[1]) != sorted(found[1]):
        return False
    return [n for n in node.shape if n != 1] == [n for n in core.shape if n != 1]


def _same_sum(c: Companions, r: Linear, axes: tuple[int, ...], other: Linear, other_axes: tuple[int, ...]) -> bool:
    """sum(exp(other)) is sum(exp(r)) with the axes in another order; those that remain keep theirs."""
    for own in r.parts:
        for part in other.parts:
            place = axis_places(c, own, part)
            if place is None or set(map(place.get, axes)) != set(other_axes):
                continue
            kept = [place.get(k) for k, n in enumerate(own.shape) if k not in axes and n != 1]
            laid = {laid_along(c, p, part.shape, place): k for p, k in r.parts.items()}
            if laid == other.parts and kept == sorted(k for k in kept if k is not None):
                return True
    return False
