"""What is known of a node: intervals, signs, max-shifts."""

from stablegrad.facts.interval import Facts

__all__ = ["Facts"]
