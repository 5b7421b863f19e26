"""The logarithm of a node, not going through the node; and formal sums that hold logarithms, written out stably.

`log_of` answers with a formal sum in which log(u) stands for logarithms that have to be taken. `write_linear` writes a
formal sum as nodes and decides for each log(u) how: the logarithm of a sum of terms is written relative to the term
that cancels best against the rest (`log(e^a + e^b) - a` is softplus(b - a)), a sum along axes as logsumexp, and
`x - logsumexp(x)` as log_softmax.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stablegrad.graph.node import Node, moved_inputs
from stablegrad.graph.rational import Rational, magnitude, quotient
from stablegrad.rules import log_of_product, log_of_sum, structure
from stablegrad.rules.companions import constant_value
from stablegrad.rules.forms import ONE, Linear, Term, is_mask
from stablegrad.rules.hazards import is_sum_of_exponentials
from stablegrad.rules.layout import under_moves
from stablegrad.rules.masks import above_own_sum, outside, selected
from stablegrad.rules.means import opened
from stablegrad.rules.powers import _is_even, joined_signs
from stablegrad.rules.rule import once
from stablegrad.rules.vanished import finite_where_raised

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


def exponential_of(c: Companions, part: Node) -> tuple[Term, frozenset[Node]] | None:
    from stablegrad.rules import scaled_exponentials

    return scaled_exponentials.exponential_of(c, part)


def log_of(c: Companions, node: Node) -> tuple[Linear, frozenset[Node]]:
    """log(node) as a formal sum, and what must not be negative for it to hold."""
    term, guards = c.single(node)
    return log_of_term(c, term, node), guards


def log_of_term(c: Companions, term: Term, like: Node) -> Linear:
    if not term.coefficient:
        return Linear({log_node(c, c.build.full(0, like)): ONE})
    term, shares = _shares_of_one(c, opened(c, term) if c.means else term, like)
    term = joined_signs(c, differences_apart(c, term, like), lambda factor: _holds_no_exponential(c, factor))
    out = term.exponent.plus(shares)
    if term.coefficient < 0:  # every factor is known to be nonnegative: log of a negative number
        out = out.plus(Linear({log_node(c, c.build.full(-ONE, like)): ONE})).with_log(-term.coefficient)
    else:
        out = out.with_log(term.coefficient)
    for node, power in term.factors.items():
        if _is_even(power) and not c.facts.nonnegative(node):
            node = c.build.elementwise("abs", node)
        elif power.denominator != 1 and not c.facts.nonnegative(node) and is_plain(c, node):
            node = c.build.elementwise("nonnegative", node)  # the slope of a root of a negative number is NaN too
        out = out.plus(Linear({log_node(c, node): power}))
    return out


def _shares_of_one(c: Companions, term: Term, like: Node) -> tuple[Term, Linear]:
    """(T - 1) / T, T a product of factors, as 1 - 1/T: (the term without it, its logarithm)."""
    out = Linear()
    for node, power in term.factors.items():
        terms = c.terms_of(node) or ()
        if len(terms) != 2 or not any(t.factors for t in terms):
            continue
        whole, number = sorted(terms, key=lambda t: t.is_number())
        if not number.is_number() or number.coefficient > 0 or whole.coefficient < 0:
            continue
        exponent = term.exponent.plus(Linear(whole.exponent.parts), power)
        divided = all(term.factors.get(n) == -power * p and c.facts.nonnegative(n) for n, p in whole.factors.items())
        if not divided or any(part in exponent.parts for part in whole.exponent.parts):
            continue
        rest = {n: p for n, p in term.factors.items() if n is not node and n not in whole.factors}
        gap = log_of_term(c, whole, like).scaled(-ONE).with_log(magnitude(number.coefficient))
        share = c.build.elementwise("log1mexp", write_linear(c, expanded(c, gap)[0], like))
        term = Term(term.coefficient, rest, exponent.with_log(whole.coefficient, power))
        return term, out.plus(Linear({share: power}))
    return term, out


def differences_apart(c: Companions, term: Term, like: Node) -> Term:
    """Several factors of unknown sign, whose product is one logarithm's argument: where one is e^a - e^b, every sum of
    two exponentials as its mantissa. The larger exponentials join the exponent, where they cancel."""
    from stablegrad.rules.pairs import is_pair, mantissa_of_pair

    unknown = [n for n, p in term.factors.items() if not _is_even(p) and not c.facts.nonnegative(n)]
    if len(unknown) < 2 or not any(is_pair(c, n) for n in unknown):
        return term
    exponent, factors = term.exponent, {n: p for n, p in term.factors.items() if not is_pair(c, n)}
    for node, power in sorted(term.factors.items(), key=lambda item: item[0].order):
        if node not in factors:
            mantissa, exponent = mantissa_of_pair(c, node, power, exponent, like)
            factors[mantissa] = factors.get(mantissa, 0) + power
    return Term(term.coefficient, factors, exponent)


def log_node(c: Companions, node: Node) -> Node:
    return c.build.elementwise("log", node)


def expanded(c: Companions, linear: Linear) -> tuple[Linear, frozenset[Node]]:
    """Every logarithm in the sum replaced by the companion of its argument."""
    guards: frozenset[Node] = frozenset()
    answers = []
    for part, times in linear.parts.items():
        inner, more = _companion_of_part(c, part)
        answers.append((inner, times))
        if more:
            guards |= more
    return Linear.total(answers, linear.constant, linear.logs), guards


@once
def _companion_of_part(c: Companions, part: Node) -> tuple[Linear, frozenset[Node]]:
    """A part of a formal sum, as the companion of its argument where it is a logarithm."""
    found = exponential_of(c, part) if len(moved_inputs(part)) < 2 else None
    if found is None or _next_to_1(c, part, found[0]):
        return Linear({part: ONE}), frozenset()
    return log_of_term(c, found[0], part), found[1]


def _next_to_1(c: Companions, part: Node, term: Term) -> bool:
    """log1p of a small value as the logarithm of a number over a sum: log(2) - softplus(z) cancels where z is small."""
    if part.op.name != "log1p" or term.coefficient == 1 or c.trivial(part.inputs[0]):
        return False
    return any(p < 0 for p in term.factors.values())


def write_log(c: Companions, node: Node) -> tuple[Node, frozenset[Node]]:
    """log(node) as nodes."""
    linear, guards = log_of(c, node)
    return write_linear(c, linear, node), guards


def write_linear(c: Companions, linear: Linear, like: Node) -> Node:
    """A formal sum as nodes of the shape and dtype of `like`; its logarithms are companions already (`expanded`)."""
    masked = {p.inputs[0]: k for p, k in linear.parts.items() if p.op.name == "log" and is_mask(p.inputs[0])}
    if masked:
        return _write_masked(c, linear, masked, like)
    pieces: list[Node] = []
    linear = _grouped_moves(c, linear, pieces, like)
    linear, products = log_of_product.together(c, linear, lambda part: is_plain(c, part.inputs[0]))
    pieces += [c.build.scale(piece, times) for piece, times in products]
    logs = [p for p in linear.parts if p.op.name == "log"]
    rest = Linear({p: k for p, k in linear.parts.items() if p.op.name != "log"}, linear.constant, linear.logs)
    # Sums along axes first: they absorb whole parts (x - logsumexp(x)); then the others, which choose a base.
    logs.sort(key=lambda p: (*_rank(c, p.inputs[0]), p.order))
    while logs:
        part = logs.pop(0)
        rest, piece, times, absorbed = _write_one_log(c, part, linear.parts[part], rest, logs, linear, like)
        if absorbed:
            logs = [p for p in logs if p not in absorbed]
        pieces.append(c.build.scale(piece, times))
        if not logs and any(_is_sum(c, p) for p in rest.parts):
            # the sum was written relative to one that is itself a sum: log(S + T) = log S + softplus(log T - log S)
            logs = [p for p in rest.parts if _is_sum(c, p)]
            linear, rest = (
                rest,
                Linear({p: k for p, k in rest.parts.items() if p not in logs}, rest.constant, rest.logs),
            )
    return _written_sum(c, rest, pieces, like)


def _is_sum(c: Companions, part: Node) -> bool:
    return part.op.name == "log" and is_sum_of_exponentials(c, part.inputs[0])


def is_plain(c: Companions, node: Node) -> bool:
    """Nothing better than the logarithm itself is known for `node`."""
    from stablegrad.rules.value import shifted

    inner = node.inputs[0] if node.op.name == "abs" else node
    if under_moves(c, inner) is not None or log_of_product.holds_exponentials(c, inner):
        return False
    return c.terms_of(node) is None and shifted(c, inner) is None and structure.log_by_structure(c, node) is None


def _holds_no_exponential(c: Companions, node: Node) -> bool:
    return is_plain(c, node) or (c.terms_of(node) is not None and not is_sum_of_exponentials(c, node))


def _write_masked(c: Companions, linear: Linear, masked: dict[Node, Rational], like: Node) -> Node:
    """The sum without the logarithms of masks, then -inf where a mask is 0; where the exponent under one of its sums is
    masked already, that one."""
    logs = {p for p in linear.parts if p.op.name == "log" and p.inputs[0] in masked}
    rest = Linear({p: k for p, k in linear.parts.items() if p not in logs}, linear.constant, linear.logs)
    sums = [core for p in rest.parts if p.op.name == "log" and (core := under_moves(c, p.inputs[0])) is not None]
    own = above_own_sum(c, [m for m, k in masked.items() if k == 1], rest, sums)
    if own is not None:
        rest, one = own
        masked = {m: k for m, k in masked.items() if m is not one}
    out = write_linear(c, rest, like)
    if not masked:
        return out
    for one, times in masked.items():
        out = selected(c, [one], out, -math.inf if times > 0 else math.inf)
    for part, times in sorted(rest.parts.items(), key=lambda item: item[0].order):
        node = part.inputs[0] if part.op.name == "log" else part
        if outside(c, list(masked), node):
            out = finite_where_raised(c, out, node, 1 if part is not node else times)
    return out


@once
def _rank(c: Companions, node: Node) -> tuple[int, bool, bool]:
    core = under_moves(c, node)
    takes_sums = core is not None and any(p.op.name == "log" for t in c.taken_out.get(core, ()) for p in t.parts)
    return _kind(c, node), not takes_sums, not log_of_sum.is_difference(c, node)


def _kind(c: Companions, node: Node) -> int:
    """Weighted sums along axes before plain ones, which they take with them; other logarithms last."""
    core = under_moves(c, node)
    if core is None:
        return 2
    return 0 if c.reductions[core][0].factors else 1


def _write_one_log(
    c: Companions, part: Node, times: Rational, rest: Linear, logs: list[Node], whole: Linear, like: Node
) -> tuple[Linear, Node, Rational, set[Node]]:
    """(what remains of the sum, a node, its coefficient, other logarithms that it took with it)."""
    node = part.inputs[0]
    from stablegrad.rules.value import shifted

    core = under_moves(c, node)
    if core is not None:
        return log_of_sum.along_axes(c, node, core, times, rest, logs, whole)
    terms = c.terms_of(node)
    if terms is not None:
        beside = [(p.inputs[0], whole.parts[p]) for p in logs] if log_of_sum.is_difference(c, node) else []
        rest, piece, times = log_of_sum.of_terms(c, node, terms, times, rest, beside)
        return rest, piece, times, set()
    if node.op.name == "abs" and (scaled := shifted(c, node.inputs[0])) is not None:
        mantissa, shift = scaled
        piece = log_node(c, c.build.elementwise("abs", mantissa))
        return rest.plus(Linear({shift: ONE}), times), piece, times, set()
    other = structure.log_by_structure(c, node) or structure.log_of_squares(c, node)
    if other is None:
        other = log_of_product.of_joined(c, node)
    return rest, (other if other is not None else part), times, set()


def _grouped_moves(c: Companions, linear: Linear, pieces: list[Node], like: Node) -> Linear:
    """Parts under the same moving operation are written under it once, where a logarithm is among them."""
    groups: dict[tuple, list[tuple[Node, Node, Rational, bool]]] = {}
    for part, times in linear.parts.items():
        is_log = part.op.name == "log"
        outer = part.inputs[0] if is_log else part
        if outer.op.name in ("move", "reshape") and moved_inputs(outer) == (0,) and outer not in c.reductions:
            if is_log and structure.drops_errors(c, outer):
                continue
            key = (outer.op.name, outer.params, outer.inputs[1:], outer.inputs[0].shape)
            groups.setdefault(key, []).append((part, outer, times, is_log))
    taken: set[Node] = set()
    for members in groups.values():
        if not any(m[3] and _worth_moving(c, m[1].inputs[0]) for m in members):
            continue
        if len(members) == 1 and members[0][3] and under_moves(c, members[0][1]) is not None:
            continue  # a moved sum along axes: what it meets beside it may be its own entries
        if _meets_others(c, [m[1] for m in members], linear):
            continue
        inner = Linear()
        for part, outer, times, is_log in members:
            source = outer.inputs[0]
            inner = inner.plus(log_of(c, source)[0] if is_log else c.linear(source), times)
            taken.add(part)
        model = members[0][1]
        pieces.append(c.build.move_like(model, {0: write_linear(c, inner, model.inputs[0])}))
    if not taken:
        return linear
    return Linear({p: k for p, k in linear.parts.items() if p not in taken}, linear.constant, linear.logs)


def _meets_others(c: Companions, group: list[Node], linear: Linear) -> bool:
    """A moved sum has an exponent that stands beside it, or in another sum there, not moved alike."""
    own = {part for node in group for t in c.terms_of(node) or () for part in t.exponent.parts}
    if not own:
        return False
    for part in linear.parts:
        node = part.inputs[0] if part.op.name == "log" else part
        if node not in group and (node in own or any(own & t.exponent.parts.keys() for t in c.terms_of(node) or ())):
            return True
    return False


def _worth_moving(c: Companions, source: Node) -> bool:
    return not c.trivial(source) or c.terms_of(source) is not None or structure.has_structure(c, source)


def _written_sum(c: Companions, rest: Linear, pieces: list[Node], like: Node) -> Node:
    """The remaining parts, reusing sums that the program has already, then the pieces."""
    build, parts = c.build, dict(rest.parts)
    out = _below_own_peaks(c, parts, like) if len(parts) > 2 else []
    if len(parts) > 1 or any(k not in (1, -1) for k in parts.values()):
        for part in sorted(rest.parts, key=lambda n: n.order):
            found = _known_sum(c, part, parts, like) if part in parts else None
            if found is not None:
                known, node, ratio = found
                out.append(build.scale(node, ratio))
                for n in known.parts:
                    del parts[n]
    out += [build.scale(n, k) for n, k in sorted(parts.items(), key=lambda item: item[0].order)]
    out += pieces
    number = constant_value(rest)
    out.sort(key=lambda n: n.op.name == "neg")  # a - b rather than -b + a
    if not out:
        return build.full(number, like)
    total = build.total(out)
    return build.add(total, build.number(number, like.dtype)) if number else total


PEAKS = frozenset(["shift", "shift_weighted", "reduce_max", "reduce_min"])


def _below_own_peaks(c: Companions, parts: dict[Node, Rational], like: Node) -> list[Node]:
    """k (x - max(x)) for each x of which both stand among the parts, which it takes: small where both are large."""
    out = []
    for part, times in list(parts.items()):
        peak = part
        while peak.op.name in ("arrange", "reshape", "stop_gradient"):
            peak = peak.inputs[0]
        if part not in parts or peak.op.name not in PEAKS or peak.inputs[0].shape != like.shape:
            continue
        below = c.linear(peak.inputs[0])
        if below.parts and all(parts.get(n) == -times * k for n, k in below.parts.items()):
            out.append(c.build.scale(c.build.elementwise("sub", peak.inputs[0], part), -times))
            for n in (part, *below.parts):
                del parts[n]
    return out


def _known_sum(
    c: Companions, part: Node, parts: dict[Node, Rational], like: Node
) -> tuple[Linear, Node, Rational] | None:
    """A captured node that is a multiple of some of the parts, `part` among them."""
    for known, node in c.known_sums(part):
        if node.shape != like.shape or not known.parts.keys() <= parts.keys():
            continue
        ratio = quotient(parts[part], known.parts[part])
        if len(known.parts) == 1 and ratio not in (1, -1):
            continue
        if all(parts[n] == ratio * k for n, k in known.parts.items()):
            return known, node, ratio
    return None
