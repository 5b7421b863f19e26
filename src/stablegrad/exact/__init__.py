"""A graph evaluated over the exact reals, in ball arithmetic: the truth that everything else is compared with."""

from stablegrad.exact.solve import Answer, Output, solve

__all__ = ["Answer", "Output", "solve"]
