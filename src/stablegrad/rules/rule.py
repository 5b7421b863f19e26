"""What a rule is: a function of the companions and one captured node, listed under its root operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from stablegrad.graph.node import Node

if TYPE_CHECKING:
    from stablegrad.rules.companions import Companions


@dataclass(frozen=True)
class Rewritten:
    """A rule's answer: the better node, of the same shape and dtype, and the reason that the user reads."""

    node: Node
    reason: str


Rule = Callable[["Companions", Node], "Rewritten | None"]
RULES: dict[str, list[tuple[str, Rule]]] = {}


def rule(*roots: str) -> Callable[[Rule], Rule]:
    """Register a function as a rule for these root operations; its name is the name to switch it off by."""

    def register(function: Rule) -> Rule:
        for root in roots:
            RULES.setdefault(root, []).append((function.__name__, function))
        return function

    return register


Asked = TypeVar("Asked", bound=Callable[..., Any])


def once(function: Asked) -> Asked:
    """A question about nodes and terms whose answer is kept: function(companions, *question) is worked out once."""

    @functools.wraps(function)
    def ask(c: Companions, *question: Any) -> Any:
        answers = c.answers[function]
        answer = answers.get(question, answers)
        if answer is answers:
            answer = answers[question] = function(c, *question)
        return answer

    return ask  # type: ignore[return-value]


def guarded(c: Companions, node: Node, guards: frozenset[Node]) -> Node:
    """`node`, NaN wherever one of `guards` is negative."""
    for guard in sorted(guards, key=lambda n: n.order):
        node = c.build.elementwise("require", node, guard)
    return node
