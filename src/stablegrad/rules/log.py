"""Rules whose root is a logarithm."""

from __future__ import annotations

from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.arguments import less_one, log_argument
from stablegrad.rules.companions import Companions
from stablegrad.rules.forms import Term
from stablegrad.rules.hazards import is_sum_of_exponentials, safely_positive
from stablegrad.rules.logarithm import log_of, write_linear
from stablegrad.rules.rule import Rewritten, guarded, rule
from stablegrad.rules.structure import gains
from stablegrad.rules.value import write_scaled
from stablegrad.rules.vanished import keep_divided


@rule("log", "log1p")
def log_of_companion(c: Companions, node: Node) -> Rewritten | None:
    """log(v) written from the companion of v: log-softmax, logsumexp, softplus, log1mexp, sums of logs."""
    argument = log_argument(c, node)
    assert argument is not None
    if not gains(c, argument) or _cannot_fail(c, argument) or _never_positive(c, argument):
        return None
    linear, guards = log_of(c, argument)
    written = write_linear(c, linear, node)
    if written is node:
        return None
    written = _near_1(c, node, argument, written)
    written = keep_divided(c, written, _plain_factors(c, argument), c.scaled(argument).terms)
    return Rewritten(guarded(c, written, guards), "the logarithm is taken without computing its argument, "
                     "which can underflow to 0, overflow, or round to 1")  # fmt: skip


def _plain_factors(c: Companions, argument: Node) -> list[Term]:
    """What stands among the factors of the argument's own operands: NaN in it is NaN in the logarithm."""
    if argument.op.name not in ("mul", "div"):
        return []
    return [Term(factors=c.single(i)[0].factors) for i in argument.inputs if literal_number(i) is None]


def _near_1(c: Companions, node: Node, argument: Node, written: Node) -> Node:
    """log(1 + v), v a quotient with plain values in it, that was written as one of a numerator and a denominator:
    their logarithms cancel where v is small, and log1p(v) is right there."""
    rest = node.inputs[0] if node.op.name == "log1p" else less_one(c, argument)
    if rest is None or c.trivial(rest):
        return written
    scaled, whole = c.scaled(rest), c.single(argument)[0]
    term = scaled.single()
    if term is None or scaled.guards or not any(p < 0 for p in whole.factors.values()):
        return written
    # 2 / (1 + e^z) is 1 + something small, too: log 2 cancels against the logarithm of the sum
    if not _number_added(written) and not any(
        _plain(c, f) for t in (term, whole) for f, p in t.factors.items() if p > 0
    ):
        return written
    return c.build.elementwise("log_of_1_and", write_scaled(c, scaled, node), written)


def _number_added(written: Node) -> bool:
    return written.op.name in ("add", "sub") and any(literal_number(i) for i in written.inputs)


def _plain(c: Companions, factor: Node) -> bool:
    """A factor that no exponential stands in, or a sum with such a term."""
    terms = c.terms_of(factor)
    return not is_sum_of_exponentials(c, factor) or any(t.factors for t in terms or ())


def _cannot_fail(c: Companions, argument: Node) -> bool:
    """In range, and not a number plus something that may be rounded away."""
    if not safely_positive(c, argument):
        return False
    terms = c.terms_of(argument) or c.scaled(argument).terms
    if argument.op.name in ("max", "min", "clamp"):
        return False
    return not any(t.is_number() for t in terms) or all(t.is_number() for t in terms)


def _never_positive(c: Companions, argument: Node) -> bool:
    """The logarithm is NaN, or -inf where the argument is 0."""
    return c.facts.interval(argument)[1] <= 0


@rule("logit")
def logit_of_companion(c: Companions, node: Node) -> Rewritten | None:
    """logit(u) = log(u) - log(1 - u), where u has a companion: logit(sigmoid(x)) is x."""
    (u,) = node.inputs
    if not gains(c, u):
        return None
    (above, g), (below, h) = log_of(c, u), log_of(c, c.build.elementwise("sub", c.build.number(1, u.dtype), u))
    written = write_linear(c, above.plus(below, -1), node)
    return Rewritten(guarded(c, written, g | h), "the argument rounds to 0 or 1; its companions do not")


@rule("logaddexp")
def logaddexp_of_logarithms(c: Companions, node: Node) -> Rewritten | None:
    """logaddexp(log u, b): one logarithm of a sum, with a right gradient where an operand is -inf."""
    if not any(_is_logarithm(c, i) for i in node.inputs if literal_number(i) is None):
        return None
    argument = log_argument(c, node)
    if argument is None:
        return None
    if c.trivial(argument):  # log(a + b) of plain values
        a, b = (write_scaled(c, c.scaled(i), node) for i in argument.inputs)
        linear, guards = log_of(c, c.build.elementwise("add", a, b))
    else:
        linear, guards = log_of(c, argument)
    written = write_linear(c, linear, node)
    return Rewritten(guarded(c, written, guards), "an operand is itself a logarithm: one logarithm of one sum")


def _is_logarithm(c: Companions, node: Node) -> bool:
    return any(log_argument(c, part) is not None for part in c.linear(node).parts)
