"""The rule book. Importing this package registers every rule in `rule.RULES`."""

from stablegrad.rules import div, exp, log, mul, sub, xlogy
from stablegrad.rules.companions import Companions
from stablegrad.rules.rule import RULES, Rewritten

__all__ = ["RULES", "Companions", "Rewritten", "div", "exp", "log", "mul", "sub", "xlogy"]
