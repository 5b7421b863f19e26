"""Have every graph verified before and after it is rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from stablegrad import api
from stablegrad.graph.node import Graph, Node
from stablegrad.graph.verify import verify
from stablegrad.rewrite import Rewriting, rewrite


def verified_rewrite(graph: Graph, roots: Iterable[Node], *options: Any) -> Rewriting:
    roots = list(roots)
    verify(graph, roots=roots)
    found = rewrite(graph, roots, *options)
    verify(graph, found.replaced, roots)
    return found


def verified_rewrites(monkeypatch: pytest.MonkeyPatch) -> None:
    """`stabilize` and `explain` verify each graph until the test is over."""
    monkeypatch.setattr(api, "rewrite", verified_rewrite)
