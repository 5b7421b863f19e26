"""Limits, where the calculus of jets says nothing."""
from __future__ import annotations
from typing import Any
def settle(problem: Any, elements: list[Any]) -> list[Any]:
    return elements
