"""What `stabilize` adds to `jax.make_jaxpr`, on programs of 100 to 30,000 equations.

    python benchmarks/tracing.py [--quick] [--only TEXT] [--check]

Added is the time of `make_jaxpr` of the stabilized function less that of the function itself, both traced anew.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import jax
from paired import Ratio, exponent, in_turn
from programs import PROGRAMS, Program, arguments
from rich.console import Console
from rich.progress import track
from rich.table import Table

from stablegrad import stabilize

BARS = {"added": 2.0, "exponent": 1.15}
SIZES = (100, 1000, 10_000, 30_000)


@dataclass(frozen=True)
class Result:
    name: str
    equations: int
    times: Ratio

    @property
    def added(self) -> float:
        return self.times.median - 1

    @property
    def seconds_added(self) -> float:
        return statistics.median(c - b for c, b in zip(self.times.candidate, self.times.baseline, strict=True))


def equations(jaxpr) -> int:
    """Those of inner jaxprs that only group (jit) are counted in the place of the call."""
    inner = (e.params.get("jaxpr") for e in jaxpr.eqns)
    return sum(equations(i.jaxpr) if hasattr(i, "jaxpr") else 1 for i in inner)


def of_size(name: str, size: int) -> tuple[Program, int]:
    """The program of about that many equations."""
    few, more = (equations(jax.make_jaxpr(PROGRAMS[name](n))(*arguments()).jaxpr) for n in (2, 4))
    repetitions = max(1, round((size - few) / (more - few) * 2) + 2)
    program = PROGRAMS[name](repetitions)
    return program, equations(jax.make_jaxpr(program)(*arguments()).jaxpr)


def measure(name: str, size: int, rounds: int) -> Result:
    program, count = of_size(name, size)
    given = arguments()
    # A new function each time: neither JAX nor `stabilize` has seen it.
    plain = lambda: jax.make_jaxpr(lambda *x: program(*x))(*given)  # noqa: E731
    stabilized = lambda: jax.make_jaxpr(stabilize(lambda *x: program(*x)))(*given)  # noqa: E731
    return Result(name, count, in_turn(stabilized, plain, rounds, warm=1))


def growth(results: list[Result]) -> Iterator[tuple[str, float]]:
    for name in dict.fromkeys(r.name for r in results):
        own = [r for r in results if r.name == name and r.equations >= 500]
        if len(own) > 1:
            yield name, exponent([r.equations for r in own], [r.seconds_added for r in own])


def table(results: list[Result]) -> Table:
    exponents = dict(growth(results))
    out = Table(title="Added to make_jaxpr", caption="ratios: median and middle half; exponent: from 500 equations on")
    for column in ("program", "equations", "make_jaxpr", "stabilized over plain", "added", "exponent"):
        out.add_column(column, justify="left" if column == "program" else "right", no_wrap=True)
    for r in results:
        last = r is [one for one in results if one.name == r.name][-1] and r.name in exponents
        added = f"{r.added:.2f}"
        out.add_row(
            r.name,
            str(r.equations),
            f"{1e3 * statistics.median(r.times.baseline):.0f} ms",
            str(r.times),
            f"[red]{added}[/red]" if r.added > BARS["added"] else added,
            f"{exponents[r.name]:.2f}" if last else "",
        )
    return out


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 1000 equations, few rounds")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name contains TEXT")
    parser.add_argument("--check", action="store_true", help=f"exit with 1 where something is over its bar: {BARS}")
    options = parser.parse_args(given)
    chosen = [name for name in PROGRAMS if options.only in name]
    if not chosen:
        parser.error(f"no program has {options.only!r} in its name; there are: {', '.join(PROGRAMS)}")
    sizes = SIZES[:2] if options.quick else SIZES
    plan = [(name, size) for name in chosen for size in sizes]
    progress = Console(stderr=True)
    results = [
        measure(name, size, 3 if options.quick or size > 5000 else 9)
        for name, size in track(plan, "tracing", console=progress, transient=True)
    ]
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table(results))
    failed = [f"{r.name}, {r.equations} equations: added {r.added:.2f}" for r in results if r.added > BARS["added"]]
    failed += [f"{n}: exponent {k:.2f}" for n, k in growth(results) if k > BARS["exponent"]]
    for line in failed:
        console.print(f"over the bar: {line}", highlight=False)
    return 1 if failed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
