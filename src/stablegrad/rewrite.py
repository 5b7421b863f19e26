"""The walk: from the outputs and effects, each captured node that is still needed is shown to its rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stablegrad.facts import Facts
from stablegrad.graph.node import Graph, Node, is_complex
from stablegrad.policy import Policy
from stablegrad.rules import RULES, Companions
from stablegrad.rules.branches import Branches
from stablegrad.rules.conventions import Conventions
from stablegrad.rules.div import softmax_of_rewritten_sum
from stablegrad.rules.fused import Fusion


@dataclass
class Rewriting:
    """What was found for one graph.

    Attributes:
        replaced: captured node -> the node that stands for it now.
        records: (rule, node, replacement, reason) in the order found.
    """

    replaced: dict[Node, Node] = field(default_factory=dict)
    records: list[tuple[str, Node, Node, str]] = field(default_factory=list)

    def resolve(self, node: Node) -> Node:
        """What stands for `node` now."""
        while node in self.replaced:
            node = self.replaced[node]
        return node

    def needed(self, roots: Iterable[Node]) -> tuple[set[Node], defaultdict[Node, list[Node]]]:
        """The nodes of the rewritten program, and which of them read each."""
        readers: defaultdict[Node, list[Node]] = defaultdict(list)
        needed: set[Node] = set()
        waiting = [self.resolve(n) for n in roots]
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                for below in map(self.resolve, node.inputs):
                    readers[below].append(node)
                    waiting.append(below)
        return needed, readers


def rewrite(
    graph: Graph, roots: Iterable[Node], disabled: frozenset[str] = frozenset(), policy: Policy | None = None
) -> Rewriting:
    """Ask the rules about every captured node that the roots need. Each node is asked once."""
    roots = list(roots)
    companions = Companions(graph, Facts(), roots)
    result = Rewriting()
    seen: set[Node] = set()
    waiting = sorted(set(roots), key=lambda n: n.order)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        found = _ask(companions, node, disabled) if node.origin is not None else None
        if found is None:
            waiting.extend(node.inputs)
            continue
        name, replacement, reason = found
        if _reaches(replacement, node, result.replaced):
            waiting.extend(node.inputs)
            continue
        result.replaced[node] = replacement
        result.records.append((name, node, replacement, reason))
        waiting.append(replacement)
    if softmax_of_rewritten_sum.__name__ not in disabled:
        _revisit_softmax(companions, result, seen)
    if "untaken_branch" not in disabled:
        _guard_branches(companions, result, seen)
    if "cross_entropy" not in disabled:
        _fuse(companions, result, roots)
    if policy is not None and policy != Policy():
        _by_policy(companions, result, roots, policy)
    return result


def _by_policy(companions: Companions, result: Rewriting, roots: Iterable[Node], policy: Policy) -> None:
    """After all rules: conventions other than the default ones."""
    conventions = Conventions(companions, policy, result.resolve)
    needed, _ = result.needed(roots)
    for node in sorted(needed, key=lambda n: n.order):
        found = conventions.of(node)
        if found is not None:
            name, replacement, reason = found
            result.replaced[node] = replacement
            result.records.append((name, node, replacement, reason))


def _fuse(companions: Companions, result: Rewriting, roots: Iterable[Node]) -> None:
    """Cross entropies in the rewritten program become one function each."""
    written = (_under_moves(replacement).op.name for _, _, replacement, _ in result.records)
    if not any(name in ("times_log", "log_softmax") for name in written):
        return
    needed, readers = result.needed(roots)
    fusion = Fusion(companions, result.resolve, readers)
    for node in needed:
        if node.op.name == "log_softmax" and fusion.only_picked_from(node):
            result.replaced[node] = companions.build.keep("log_softmax_of_picks", node.inputs[0], *node.params)
    for node in sorted(
        (n for n in needed if n.op.name in ("reduce_sum", "add", "sub") and n.origin), key=lambda n: n.order
    ):
        found = fusion.fuse(node)
        if found is not None and not _reaches(found.node, node, result.replaced):
            result.replaced[node] = found.node
            result.records.append(("cross_entropy", node, found.node, found.reason))


def _under_moves(node: Node) -> Node:
    while node.op.kind == "moving" and node.inputs:
        node = node.inputs[0]
    return node


def _revisit_softmax(companions: Companions, result: Rewriting, needed: set[Node]) -> None:
    """Softmaxes that facts had left alone, where a rewrite now works on the same sum."""
    if not companions.written:
        return
    for node in sorted((n for n in needed if n.op.name == "div" and n.origin is not None), key=lambda n: n.order):
        found = softmax_of_rewritten_sum(companions, node) if node not in result.replaced else None
        if found is not None and found.node is not node and not _reaches(found.node, node, result.replaced):
            result.replaced[node] = found.node
            result.records.append((softmax_of_rewritten_sum.__name__, node, found.node, found.reason))


def _guard_branches(companions: Companions, result: Rewriting, needed: set[Node]) -> None:
    """Second walk, over the rewritten program: branches that a select does not take are made harmless."""
    resolve = result.resolve
    guards = {"select": Branches(companions, resolve), "mul": Branches(companions, resolve, at_zero=True)}
    for node in _inner_first([n for n in needed if n.op.name in guards], resolve):
        if node in result.replaced:
            continue
        guarded = guards[node.op.name].guard(node)
        if guarded is not None and not _reaches(guarded, node, result.replaced):
            result.replaced[node] = guarded
            if node.origin is not None:  # a `where` that a rule wrote is no line of the program
                result.records.append(("untaken_branch", node, guarded, BRANCH_REASON))


def _inner_first(nodes: list[Node], resolve: Callable[[Node], Node]) -> list[Node]:
    """The nodes, each after those that it is computed from: what an outer one guards again is guarded already."""
    nodes = sorted(nodes, key=lambda n: n.order)
    if all(n.origin is not None for n in nodes):
        return nodes  # program order; what a rule writes stands under captured nodes with a smaller number
    wanted, seen = set(nodes), set()
    out: list[Node] = []
    waiting = [(node, False) for node in reversed(nodes)]
    while waiting:
        node, done = waiting.pop()
        if done:
            out.append(node)
        elif node not in seen:
            seen.add(node)
            if node in wanted:
                waiting.append((node, True))
            waiting.extend((resolve(i), False) for i in node.inputs)
    return out


SECOND_WALK = frozenset(
    {"untaken_branch", "cross_entropy", softmax_of_rewritten_sum.__name__}
)  # rules asked after all the others
BRANCH_REASON = "the branch that is not taken has an infinite slope; it is evaluated at a harmless value there"


def _ask(companions: Companions, node: Node, disabled: frozenset[str]) -> tuple[str, Node, str] | None:
    if is_complex(node.dtype) or any(is_complex(i.dtype) for i in node.inputs):
        return None  # the rules are about real numbers
    for name, rule in RULES.get(node.op.name, ()):
        if name in disabled:
            continue
        found = rule(companions, node)
        if found is not None and found.node is not node:
            if found.node.shape != node.shape or found.node.dtype != node.dtype:
                raise AssertionError(
                    f"rule {name} changed {node.dtype}{node.shape} to {found.node.dtype}{found.node.shape}"
                )
            if not _is_number(found.node):
                return name, found.node, found.reason
    return None


def _is_number(node: Node) -> bool:
    """What cancels to a number would be that number where the data are NaN or infinite, too."""
    while node.op.name in ("arrange", "reshape"):
        (node,) = node.inputs
    return node.op.name == "literal"


def _reaches(start: Node, goal: Node, replaced: dict[Node, Node]) -> bool:
    """True if emitting `start` would need `goal`: such a rewrite would be circular."""
    # What replaces a captured node is made of what stood before it; a rule's own node may stand under all of those.
    first = goal.order if goal.origin is not None else min((n.order for n in replaced), default=goal.order)
    seen: set[Node] = set()
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node is goal:
            return True
        if node in seen or (node.origin is not None and node.order < first and node not in replaced):
            continue
        seen.add(node)
        waiting.append(replaced[node]) if node in replaced else waiting.extend(node.inputs)
    return False
