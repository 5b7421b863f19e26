"""Programs that once broke the contract, with the points where they did; and those that still do, with the reason.

`found.jsonl` holds one a line, as `trust.full` printed it: the expression, x and y, and why it is open if it is.
"""

import json
from pathlib import Path

_ALL = [json.loads(line) for line in Path(__file__).with_name("found.jsonl").read_text().splitlines()]

FOUND: list[tuple[str, list[float], list[float]]] = [
    (one["program"], one["x"], one["y"]) for one in _ALL if "open" not in one
]
OPEN: list[tuple[str, list[float], list[float], str]] = [
    (one["program"], one["x"], one["y"], one["open"]) for one in _ALL if "open" in one
]
