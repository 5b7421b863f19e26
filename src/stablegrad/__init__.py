"""stablegrad: a stability compiler for array programs."""

from stablegrad.api import explain, rule_names, stabilize
from stablegrad.report import Explanation

__all__ = ["Explanation", "explain", "rule_names", "stabilize"]
