"""Thousands of random programs against the contract.

    PYTHONPATH=src:tests python -m trust.full [--programs 10000] [--seed 0]

Prints each violation, how often each rule fired and how often the plain and the stabilized program were wrong; exit
status 1 if there was a violation. Ten thousand programs take about an hour on one core.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from trust.check import Tally, violations
from trust.programs import drawn

POINTS = 32


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    tally, seen, found = Tally(), set(), 0

    @hypothesis.seed(chosen.seed)
    @settings(
        max_examples=chosen.programs, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(drawn(POINTS))
    def run(example: Any) -> None:
        nonlocal found
        text, x, y = example
        if text in seen:
            return
        seen.add(text)
        for violation in violations(text, x, y, tally):
            found += 1
            print(violation, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", message="overflow|invalid|divide", category=RuntimeWarning)
        run()
    print(f"\n{tally.programs} programs, {tally.rewritten} rewritten, at {tally.points} points; {found} violations")
    print(f"off by more than 1e-3 from float64: plain {tally.plain_wrong}, stabilized {tally.stabilized_wrong}")
    for rule, times in tally.rules.most_common():
        print(f"{times:6d} {rule}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
