"""Rules whose root is an exponential, a power or a root."""

from __future__ import annotations

from stablegrad.facts.reach import EXPONENTIAL, LOGARITHM
from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import HALF, ONE, Linear, Term, is_mask
from stablegrad.rules.hazards import has_exponential, is_sum_of_exponentials, made_of_nonnegative, safely_positive
from stablegrad.rules.layout import under_moves
from stablegrad.rules.logarithm import log_of, log_of_term, write_linear
from stablegrad.rules.powers import joined_signs, mantissas_apart, power_of_term
from stablegrad.rules.rule import Rewritten, guarded, rule
from stablegrad.rules.scaled_exponentials import exponential_of
from stablegrad.rules.value import write_scaled, write_term


@rule("exp", "exp2")
def exponential_of_logarithm(c: Companions, node: Node) -> Rewritten | None:
    """exp(x - logsumexp(x)) is a shifted softmax; exp(log(a) - log(b)) is a / b; exp(log(u)) is u."""
    if not c.facts.reach(node.inputs[0]) & LOGARITHM:
        return None
    if not any(exponential_of(c, part) is not None for part in c.linear(node.inputs[0]).parts):
        return None
    if c.trivial(node) or _only_sums_grow(c, c.linear(node.inputs[0])):
        return None
    written = write_scaled(c, c.scaled(node), node)
    return None if written is node else Rewritten(written, "the exponential undoes a logarithm in its argument")


def _only_sums_grow(c: Companions, exponent: Linear) -> bool:
    """exp(logsumexp(x) - c): a sum of exponentials multiplied by one that none of its terms meets is best left in the
    exponent, which the program may have shifted into range by itself."""
    beside: set[Node] = set()
    inside: set[Node] = set()
    for part, times in exponent.parts.items():
        found = exponential_of(c, part)
        if found is None:
            beside.add(part)
            continue
        factors = found[0].factors
        if times <= 0 or not factors or found[0].exponent or not all(is_sum_of_exponentials(c, f) for f in factors):
            return False
        for factor in factors:
            inside |= _exponents_in(c, factor)
    return bool(beside) and bool(inside) and beside.isdisjoint(inside)


def _exponents_in(c: Companions, factor: Node) -> set[Node]:
    """The parts of the exponents in a sum of exponentials; none if they are not to be seen."""
    core = under_moves(c, factor)
    if core is not None:
        return set(c.reductions[core][0].exponent.parts)
    return {part for term in c.terms_of(factor) or () for part in term.exponent.parts}


@rule("expm1")
def expm1_with_right_derivative(c: Companions, node: Node) -> Rewritten | None:
    """The engine's derivative of expm1 is result + 1, which rounds to 0 far left."""
    if any(exponential_of(c, part) is not None for part in c.linear(node.inputs[0]).parts):
        written = write_scaled(c, c.scaled(node), node)
        return Rewritten(written, "the exponential undoes a logarithm in its argument")
    if c.facts.interval(node.inputs[0])[0] >= -1.0:
        return None
    return Rewritten(c.build.elementwise("stable_expm1", node.inputs[0]), "its derivative is exp(x), also far left")


@rule("pow")
def power_of_scaled(c: Companions, node: Node) -> Rewritten | None:
    """(1 - p)**g with p a probability: exp(g * log(1 - p))."""
    if not c.facts.reach(node.inputs[0]) & EXPONENTIAL:
        return None
    base, power = node.inputs
    if c.trivial(base) or not has_exponential(c, base) or safely_positive(c, base) or power.dtype != node.dtype:
        return None
    if not c.facts.nonnegative(base) and not made_of_nonnegative(c, base):
        return None
    number = literal_number(power)
    if number == 0:
        return None
    term, guards = c.single(base)
    term, plain = _plain_apart(c, term)
    logarithm = write_linear(c, log_of_term(c, term, base), node)
    exponent = c.build.scale(logarithm, number) if number is not None else c.build.elementwise("mul", power, logarithm)
    if plain is None:
        written = c.build.elementwise("exp", exponent)
    else:
        times = c.build.full(number, node) if number is not None else power
        written = c.build.elementwise("power_exp", plain, times, exponent)
    return Rewritten(guarded(c, written, guards), "the base can underflow or round to 0; its logarithm is scaled")


def _plain_apart(c: Companions, term: Term) -> tuple[Term, Node | None]:
    """The term without the plain factors that may be 0, and their product: the slope of its logarithm is infinite."""
    signed = joined_signs(c, mantissas_apart(c, term))
    plain = {
        n: p
        for n, p in signed.factors.items()
        if p > 0 and not (is_mask(n) or c.facts.positive(n) or is_sum_of_exponentials(c, n))
    }
    if not plain or signed.coefficient < 0:
        return term, None
    rest = {n: p for n, p in signed.factors.items() if n not in plain}
    return Term(signed.coefficient, rest, signed.exponent), c.raw_term(Term(factors=plain), next(iter(plain)))


@rule("sqrt", "rsqrt", "integer_pow", "square")
def root_of_scaled(c: Companions, node: Node) -> Rewritten | None:
    """sqrt(exp(x)) is exp(x / 2); (1 + exp(x))**-2 is a product of sigmoids."""
    if not c.facts.reach(node.inputs[0]) & EXPONENTIAL:
        return None
    (base,) = node.inputs
    if node.op.name in ("square", "integer_pow") and (node.op.name == "square" or node.params[0] > 0):
        return None  # out of range only where the result is
    if not (c.facts.may_overflow(base) or _may_vanish(c, base)) or c.trivial(base):
        return None
    if not has_exponential(c, base) or c.trivial(node) or not has_exponential(c, node):
        return None
    from stablegrad.rules.sqrt import square_root  # later: the rules of this file come before those of that one

    if node.op.name in ("sqrt", "rsqrt") and _weighted(c, base) and square_root(c, base) is not None:
        return None  # a length: its squares are scaled, and the slopes of its entries do not meet
    inverse = _inverse_of_plain(c, node)
    if inverse is not None:
        written = c.build.elementwise("integer_pow", inverse, params=(-node.params[0],))
    else:
        written = write_scaled(c, c.scaled(node), node)
    return None if written is node else Rewritten(written, "the base can leave the range where the result does not")


def _weighted(c: Companions, base: Node) -> bool:
    """A sum along axes of exponentials with plain weights, of any sign, stands in the companion."""
    sums = (under_moves(c, f) for f in c.single(base)[0].factors)
    return any(core is not None and c.reductions[core][0].factors for core in sums)


def _inverse_of_plain(c: Companions, node: Node) -> Node | None:
    """1 / base of a power below -1 of a base with plain factors: x**2 leaves the range before (x exp(-y))**2 does."""
    if node.op.name != "integer_pow" or node.params[0] == -1:
        return None
    term, guards = c.single(node.inputs[0])
    inverse = power_of_term(c, term, -ONE)
    if guards or inverse is None or any(p.denominator != 1 for p in term.factors.values()):
        return None
    if all(is_mask(n) or is_sum_of_exponentials(c, n) for n in term.factors):
        return None
    return write_term(c, inverse, node)


def _may_vanish(c: Companions, node: Node) -> bool:
    return not c.facts.interval(node)[0] > 0


@rule("atanh")
def inverse_tangent_of_ratio(c: Companions, node: Node) -> Rewritten | None:
    """atanh(u) = (log(1 + u) - log(1 - u)) / 2, where both have companions: atanh(tanh(x)) is x."""

    (u,) = node.inputs
    if c.trivial(u) or not has_exponential(c, u):
        return None
    one = c.build.number(1, u.dtype)
    above, g = log_of(c, c.build.elementwise("add", u, one))
    below, h = log_of(c, c.build.elementwise("sub", one, u))
    half = above.plus(below, -ONE).scaled(HALF)
    written = write_linear(c, half, node)
    if any(part.op.name == "log" for part in half.parts):  # two logarithms, which cancel where u is small
        written = c.build.elementwise("atanh_or", u, written)
    return Rewritten(guarded(c, written, g | h), "the argument rounds to 1; its companion does not")
