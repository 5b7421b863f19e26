"""stablegrad: a stability compiler for array programs."""

import importlib
import importlib.metadata
from typing import Any

from stablegrad.api import explain, keep, rule_names, stabilize
from stablegrad.losses.information import info
from stablegrad.policy import Policy
from stablegrad.report import Explanation

__version__ = importlib.metadata.version("stablegrad")
__all__ = ["Explanation", "Policy", "explain", "info", "keep", "rule_names", "stabilize"]


def __getattr__(name: str) -> Any:
    if name == "losses":  # imports nothing until it is asked for
        return importlib.import_module("stablegrad.losses")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
