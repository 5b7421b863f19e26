"""stablegrad: a stability compiler for array programs."""

import importlib.metadata

from stablegrad.api import explain, keep, rule_names, stabilize
from stablegrad.policy import Policy
from stablegrad.report import Explanation

__version__ = importlib.metadata.version("stablegrad")
__all__ = ["Explanation", "Policy", "explain", "keep", "rule_names", "stabilize"]
