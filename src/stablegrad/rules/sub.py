"""Rules whose root is a difference (or a sum of opposite signs)."""

from __future__ import annotations

from stablegrad.facts.reach import EXPONENTIAL, LOGARITHM
from stablegrad.graph.node import Node, literal_number
from stablegrad.rules.arguments import log_argument
from stablegrad.rules.companions import Companions
from stablegrad.rules.composites import with_composites
from stablegrad.rules.forms import Linear, Term, collect
from stablegrad.rules.hazards import safely_positive
from stablegrad.rules.layout import absorbed, under_moves
from stablegrad.rules.logarithm import expanded, write_linear
from stablegrad.rules.logits import difference_of_sigmoids
from stablegrad.rules.rule import Rewritten, guarded, rule
from stablegrad.rules.value import write_difference, write_scaled
from stablegrad.rules.vanished import keep_subtracted
from stablegrad.rules.weights import only_weighs

FAR = 64  # summands looked at


@rule("sub", "add")
def difference_that_cancels(c: Companions, node: Node) -> Rewritten | None:
    """1 - sigmoid(x), exp(x) - 1, 1 - softmax, 1 - tanh(x)**2: without the subtraction."""
    if not c.facts.reach(node) & EXPONENTIAL or not any(map(_opposes, (node, *node.inputs))):
        return None
    if all(c.trivial(i) for i in node.inputs) or c.trivial(node) or only_weighs(c, node):
        return None
    scaled = c.scaled(node)
    naive = _naive_terms(c, node)
    terms = list(scaled.terms)
    if len(terms) >= len(naive) or _nothing_met(c, node, terms):
        if len(terms) != 2 or write_difference(c, terms, node) is None:
            return None
        # exp(x) - exp(x) * k has no number in it; 2 - exp(x) cancels only where exp(x) comes near
    elif _still_cancels(c, node, naive, terms):
        return None
    if not any(t.exponent or t.factors for t in naive) or any(_may_cancel(c, t) for t in terms):
        return None
    written = keep_subtracted(c, write_scaled(c, scaled, node), naive, scaled.terms)
    return None if written is node else Rewritten(written, "the subtraction loses the digits that matter; "
                                                  "what remains is computed directly")  # fmt: skip


@rule("sub", "add")
def difference_of_two_sigmoids(c: Companions, node: Node) -> Rewritten | None:
    """sigmoid(a) - sigmoid(b), tanh(a) - tanh(b): both may round to 1, or be near each other."""
    if not all(c.facts.reach(i) & EXPONENTIAL for i in node.inputs):
        return None
    scaled = c.scaled(node)
    written = None if scaled.guards else difference_of_sigmoids(c, scaled.terms, node)
    if written is None:
        return None
    return Rewritten(written, "a difference of two sigmoids loses the digits that matter; it is written as a product")


def _still_cancels(c: Companions, node: Node, naive: list[Term], terms: list[Term]) -> bool:
    """Only numbers met, a difference is left, and an operand is one that is exact as it stands: expm1(y) - (z - 1)."""
    if len({t.coefficient > 0 for t in terms}) < 2:
        return False
    if len(terms) == 2 and write_difference(c, terms, node) is not None:
        return False
    if {t.key for t in naive if not t.is_number()} != {t.key for t in terms if not t.is_number()}:
        return False
    return any(_is_exact_difference(c.scaled(i).terms) for i in node.inputs)


def _is_exact_difference(terms: tuple[Term, ...]) -> bool:
    return len(terms) == 2 and len({t.coefficient > 0 for t in terms}) == 2 and not any(t.factors for t in terms)


def _may_cancel(c: Companions, term: Term) -> bool:
    """What remains is again a sum of plain values and exponentials, whose slopes cancel: (e^y - x) / (1 + e^y)."""
    opened = [c.terms_of(n) or () for n, p in term.factors.items() if p > 0]
    return any(any(t.factors for t in inner) and any(not t.factors for t in inner) for inner in opened)


def _opposes(node: Node) -> bool:
    """A difference, a negation, or a negative number: without one of them nothing can cancel."""
    number = literal_number(node)
    if number is not None:
        return number < 0
    return node.op.name in ("sub", "neg", "tanh", "sinh", "expm1") or (
        node.op.name in ("mul", "div") and any(map(_opposes, node.inputs))
    )


def _naive_terms(c: Companions, node: Node) -> list[Term]:
    left, right = (c.scaled(i).terms for i in node.inputs)
    return collect([*left, *right]) if node.op.name == "add" else [*left, *right]


def _nothing_met(c: Companions, node: Node, terms: list[Term]) -> bool:
    """The terms are those of the operands, of which some stand for a whole operand: 1 + sinh(x) is right as it is."""
    left, right = ((c.scaled(i).terms, (c.single(i)[0],)) for i in node.inputs)
    sign = 1 if node.op.name == "add" else -1
    own = _identity(terms)
    return any(own == _identity([*a, *(t.scaled(sign) for t in b)]) for a in left for b in right)


def _identity(terms: list[Term]) -> frozenset:
    return frozenset((t.key, t.coefficient) for t in terms)


@rule("sub", "add")
def sum_with_logarithm(c: Companions, node: Node) -> Rewritten | None:
    """x - log(sum(exp(x))), max(x, 0) - x t + log1p(exp(-|x|)): logarithms merged with what stands beside them."""
    if not c.facts.reach(node) & LOGARITHM:
        return None
    linear = with_composites(c, c.linear(node))
    logs = [p for p in linear.parts if _logarithm_under(c, p) is not None]
    beside = sum(len(c.linear(i).parts) for i in node.inputs)
    read_back = linear != c.linear(node) or len(linear.parts) < beside  # also x + log(...) - x
    if not logs or (len(linear.parts) < 2 and not read_back):
        return None
    whole, guards = expanded(c, linear)
    safe = all(_safe_log(c, p) for p in logs) and not _entries_less_their_sum(c, node, linear, whole)
    if not read_back and (safe or not _merges(c, linear, whole)):
        return None
    written = write_linear(c, whole, node)
    return None if written is node else Rewritten(guarded(c, written, guards), "a logarithm and its neighbour cancel; "
                                                  "they are written as one")  # fmt: skip


def _entries_less_their_sum(c: Companions, node: Node, linear: Linear, whole: Linear) -> bool:
    """x - logsumexp(x), which rounds to 0 at a confident entry. A library's log_softmax, which subtracts the maximum
    from x before it does anything else, is left as it is."""
    for part in linear.parts:
        argument = _logarithm_under(c, part)
        while argument is not None and argument.op.name in ("arrange", "reshape", "reduce_sum", "cast"):
            argument = argument.inputs[0]
        if argument is not None and argument.op.name == "exp" and argument.inputs[0] in _summands(node):
            return False
    rest = Linear({p: k for p, k in whole.parts.items() if p.op.name != "log"})
    for part, times in whole.parts.items():
        core = under_moves(c, part.inputs[0]) if part.op.name == "log" else None
        if core is not None and not c.reductions[core][0].factors:
            if absorbed(c, core, part.inputs[0], times, rest) is not None:
                return True
    return False


def _summands(node: Node) -> set[Node]:
    """What the program adds up, step by step, to `node`, with the sums on the way."""
    found: set[Node] = set()
    waiting = [node]
    while waiting and len(found) < FAR:
        for below in waiting.pop().inputs:
            if below not in found:
                found.add(below)
                waiting += [below] if below.op.name in ("add", "sub", "neg", "cast") else []
    return found


def _logarithm_under(c: Companions, part: Node) -> Node | None:
    """u where `part` is log(u), also moved."""
    while part.op.name in ("arrange", "reshape", "move"):
        part = part.inputs[0]
    return log_argument(c, part)


def _safe_log(c: Companions, part: Node) -> bool:
    argument = _logarithm_under(c, part)
    return argument is not None and safely_positive(c, argument) and literal_number(argument) is None


def _merges(c: Companions, before: Linear, after: Linear) -> bool:
    """Something cancelled, or a remaining sum of exponentials can be written relative to a part beside it."""
    from stablegrad.graph.arrange import base_and_dims

    if len(after.parts) < len(before.parts):
        return True
    beside = {p for p in after.parts if p.op.name != "log"}
    bases = {base_and_dims(c.graph, p)[0] for p in beside}
    for part in after.parts:
        if part.op.name != "log":
            continue
        argument = part.inputs[0]
        terms = c.terms_of(argument)
        if terms is not None and any(set(t.exponent.parts) & beside for t in terms):
            return True
        while argument.op.name in ("arrange", "reshape", "move") and argument not in c.reductions:
            argument = argument.inputs[0]
        if argument in c.reductions:
            inside = {base_and_dims(c.graph, p)[0] for p in c.reductions[argument][0].exponent.parts}
            if inside & bases or any(_moved_from(p, inside) for p in beside):
                return True
    return False


def _moved_from(part: Node, inside: set[Node]) -> bool:
    while part.op.name in ("arrange", "reshape", "move"):
        part = part.inputs[0]
        if part in inside:
            return True
    return False
