"""The rule book. Importing this package registers every rule in `rule.RULES`."""

from stablegrad.rules import recursions  # isort: skip - its rules are asked first
from stablegrad.rules import div, dot_general, exp, linex, log, mul, pow, sqrt, sub, xlogy
from stablegrad.rules.companions import Companions
from stablegrad.rules.rule import RULES, Rewritten

__all__ = [
    "RULES",
    "Companions",
    "Rewritten",
    "div",
    "dot_general",
    "exp",
    "linex",
    "log",
    "mul",
    "pow",
    "recursions",
    "sqrt",
    "sub",
    "xlogy",
]
