"""Two functions measured in turn: paired ratios, so that what else the machine does meets both."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Times of a candidate and of a baseline, taken in turn, in seconds."""

    candidate: tuple[float, ...]
    baseline: tuple[float, ...]

    @property
    def paired(self) -> list[float]:
        return sorted(c / b for c, b in zip(self.candidate, self.baseline, strict=True))

    @property
    def median(self) -> float:
        return statistics.median(self.paired)

    @property
    def of_minima(self) -> float:
        return min(self.candidate) / min(self.baseline)

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.candidate + other.candidate, self.baseline + other.baseline)

    def __str__(self) -> str:
        """The median, and between which ratios half of the pairs lie."""
        n = len(self.paired)
        return f"{self.median:.2f} [{self.paired[n // 4]:.2f}, {self.paired[(3 * n) // 4]:.2f}]"


def in_turn(candidate: Callable[[], object], baseline: Callable[[], object], rounds: int, warm: int = 1) -> Ratio:
    """Each round runs both, every other round in the other order. Garbage is not collected meanwhile."""
    for _ in range(warm):
        candidate(), baseline()
    times: dict[Callable[[], object], list[float]] = {candidate: [], baseline: []}
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            for function in (candidate, baseline) if number % 2 else (baseline, candidate):
                start = time.perf_counter()
                function()
                times[function].append(time.perf_counter() - start)
    finally:
        gc.enable()
    return Ratio(tuple(times[candidate]), tuple(times[baseline]))


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The exponent k of the least-squares fit time ~ size**k."""
    from math import log

    x, y = [log(s) for s in sizes], [log(t) for t in times]
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)
