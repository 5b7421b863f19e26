"""stablegrad: a stability compiler for array programs."""

import importlib.metadata

from stablegrad.api import explain, rule_names, stabilize
from stablegrad.report import Explanation

__version__ = importlib.metadata.version("stablegrad")
__all__ = ["Explanation", "explain", "rule_names", "stabilize"]
