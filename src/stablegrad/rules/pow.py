"""Rules about powers: one that undoes a root, one spelled by a logarithm, one of a product."""

from __future__ import annotations

from stablegrad.facts.peak import peak_axes
from stablegrad.facts.reach import LOGARITHM, QUOTIENT, ROOT
from stablegrad.graph.node import Node, literal_number
from stablegrad.graph.rational import rational
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import Linear, Term
from stablegrad.rules.hazards import safely_positive
from stablegrad.rules.log_of_sum import write_sum
from stablegrad.rules.rule import Rewritten, rule
from stablegrad.rules.value import write_scaled, write_term
from stablegrad.rules.vanished import keep_divided

NEAR = 8  # products and quotients between a quotient and the product along axes in it


@rule("integer_pow", "square", "pow", "mul", "div")
def power_that_undoes_root(c: Companions, node: Node) -> Rewritten | None:
    """sqrt(x)**2 is x, (x**0.25)**8 is x**2, NaN where x is negative: the slope of a root is infinite at 0."""
    if not c.facts.reach(node) & ROOT or c.trivial(node):
        return None
    before = [c.single(i)[0] for i in node.inputs if literal_number(i) is None]
    rooted = {n for t in before for n, p in t.factors.items() if p.denominator != 1 and not safely_positive(c, n)}
    scaled = c.scaled(node)
    after = {_unguarded(n): p for t in scaled.terms for n, p in t.factors.items()}
    if all(after.get(n, rational(1)).denominator != 1 for n in rooted):
        return None
    written = keep_divided(c, write_scaled(c, scaled, node), before, scaled.terms)
    return None if written is node else Rewritten(written, "a root is undone; its slope at 0 is infinite")


def _unguarded(factor: Node) -> Node:
    return factor.inputs[0] if factor.op.name == "nonnegative" else factor


@rule("exp")
def power_by_logarithm(c: Companions, node: Node) -> Rewritten | None:
    """exp(p log(x) + r) is x**p exp(r): its slopes are finite at x = 0."""
    (exponent,) = node.inputs
    if not c.facts.reach(exponent) & LOGARITHM:
        return None
    if exponent.op.name == "sub" and peak_axes(*exponent.inputs) is not None:
        return None  # shifted by its maximum: it is exactly 0 there
    linear = c.linear(exponent)
    for part, times in linear.parts.items():
        if part.op.name != "mul":
            continue
        for p, logarithm in (part.inputs, part.inputs[::-1]):
            inner = c.linear(logarithm)
            if len(inner.parts) != 1 or inner.constant or inner.logs:
                continue
            ((log, k),) = inner.parts.items()
            x = log_argument(c, log)
            if x is None or log.op.name == "logaddexp" or c.facts.positive(x) or x.shape != node.shape:
                continue
            rest = Linear({n: t for n, t in linear.parts.items() if n is not part}, linear.constant, linear.logs)
            beside = write_sum(c, rest, node) if rest else c.build.full(0, node)
            written = c.build.elementwise("power_exp", x, c.build.scale(p, times * k), beside)
            return Rewritten(written, "a power spelled by a logarithm; the slopes of x**p are finite where x is 0")
    return None


@rule("pow", "sqrt")
def power_of_product(c: Companions, node: Node) -> Rewritten | None:
    """prod(x)**(1 / n), a geometric mean: the product leaves the range before its root does."""
    base, power = node.inputs[0], 0.5 if node.op.name == "sqrt" else literal_number(node.inputs[1])
    if power is None or power <= 0 or float(power).is_integer() or safely_positive(c, base):
        return None
    written = _powered(c, base, float(power))
    return None if written is None else Rewritten(written, "the product can leave the range where its root does not")


def _powered(c: Companions, node: Node, power: float) -> Node | None:
    """node ** power for a product along axes, also laid out in another way."""
    if node.op.name in ("arrange", "reshape"):
        inner = _powered(c, node.inputs[0], power)
        return None if inner is None else c.build.move_like(node, {0: inner})
    if node.op.name != "reduce_prod":
        return None
    return c.graph.node("power_of_product", node.inputs, (*node.params, power), node.shape, node.dtype)


@rule("div", "mul")
def product_over_factor(c: Companions, node: Node) -> Rewritten | None:
    """prod(x) / x is the product of the others, also where a factor is 0; anything may stand beside it."""
    if not c.facts.reach(node) & QUOTIENT or not _holds_product(node) or c.trivial(node):
        return None
    term, guards = c.single(node)
    for above, up in term.factors.items():
        found = _product_along(c, above) if up == 1 and not guards else None
        if found is None or term.factors.get(found[0]) != -1:
            continue
        x, axes = found
        rest = Term(term.coefficient, {n: p for n, p in term.factors.items() if n not in (above, x)}, term.exponent)
        # An infinity that is divided by itself stays NaN.
        others = c.build.elementwise("require_finite", c.build.keep("product_of_others", x, axes), x)
        if not rest.is_number() or rest.coefficient != 1:
            others = c.build.mul(others, write_term(c, rest, node))
        return Rewritten(others, "0 / 0 where a factor is 0; the product of the others is what remains")
    return None


def _holds_product(node: Node, depth: int = NEAR) -> bool:
    """A product along axes is among the factors of `node`: all others are asked nothing more."""
    if node.op.name == "reduce_prod":
        return True
    if depth == 0 or node.op.name not in ("mul", "div", "neg", "arrange", "reshape", "cast"):
        return False
    return any(_holds_product(i, depth - 1) for i in node.inputs)


def _product_along(c: Companions, node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """(x, axis) where `node` is prod(x) laid back along its axis, perhaps without unit axes, and x may be 0."""
    core = node
    while core.op.name in ("arrange", "reshape"):
        core = core.inputs[0]
    if core.op.name != "reduce_prod" or len(core.params[0]) != 1 or c.facts.positive(core.inputs[0]):
        return None
    x, axes = core.inputs[0], core.params[0]
    return (x, axes) if c.build.lay_back(core, x.shape, axes) is node else None
