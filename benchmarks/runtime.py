"""Stabilized losses against those written by hand: time, peak memory and compile time of value_and_grad under jit.

python benchmarks/runtime.py [--quick] [--only TEXT] [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from paired import Ratio, in_turn
from rich.console import Console
from rich.progress import track
from rich.table import Table

from losses import Case, cases
from stablegrad import stabilize

BARS = {"time": 1.05, "memory": 1.1, "compile": 1.1}
LONG_ENOUGH = 0.010  # seconds of work


@dataclass(frozen=True)
class Result:
    case: Case
    time: Ratio
    memory: float
    compile: Ratio

    def ratios(self) -> dict[str, float]:
        return {"time": self.time.median, "memory": self.memory, "compile": self.compile.of_minima}

    def over(self) -> list[str]:
        return [name for name, ratio in self.ratios().items() if ratio > BARS[name]]


def compiled(loss: Callable[..., Any], case: Case, arguments: tuple[Any, ...]) -> Any:
    """Compiled anew at each call: the function that jit sees is a new one."""
    return lowered(loss, case, arguments).compile()


def lowered(loss: Callable[..., Any], case: Case, arguments: tuple[Any, ...]) -> Any:
    return jax.jit(jax.value_and_grad(lambda *x: loss(*x), case.by)).lower(*arguments)


def peak(program: Any) -> int:
    memory = program.memory_analysis()
    return memory.temp_size_in_bytes + memory.output_size_in_bytes


def long_enough(case: Case, quick: bool) -> tuple[Any, ...]:
    """Arguments for which the loss by hand works long enough."""
    rows = case.rows
    while True:
        arguments = case.arguments(rows)
        program = compiled(case.by_hand, case, arguments)
        run = lambda: jax.block_until_ready(program(*arguments))  # noqa: B023, E731
        if quick or min(in_turn(run, lambda: None, 5).candidate) >= LONG_ENOUGH:
            return arguments
        rows *= 2


def measure(case: Case, rounds: int, compilations: int, quick: bool) -> Result:
    arguments = long_enough(case, quick)
    losses = stabilize(case.naive), case.by_hand
    programs = [compiled(loss, case, arguments) for loss in losses]
    time = in_turn(*(lambda p=p: jax.block_until_ready(p(*arguments)) for p in programs), rounds, warm=2)
    return Result(
        case, time, peak(programs[0]) / peak(programs[1]), compile_times(losses, case, arguments, compilations)
    )


def compile_times(losses: tuple, case: Case, arguments: tuple, rounds: int) -> Ratio:
    """XLA's part alone; tracing has a benchmark of its own. Each is lowered beforehand."""
    ready = [[lowered(loss, case, arguments) for _ in range(rounds + 1)] for loss in losses]
    return in_turn(*(lambda r=r: r.pop().compile() for r in ready), rounds, warm=1)


def table(results: list[Result]) -> Table:
    out = Table(title="Stabilized over written by hand", caption="time: median and middle half of the paired ratios")
    for name in ("loss", "by hand", "time", "of the minima", "memory", "compile time"):
        out.add_column(name, justify="left" if name == "loss" else "right", no_wrap=True)
    for result in results:
        over = result.over()

        def marked(name: str, text: str, over: list[str] = over) -> str:
            return f"[red]{text}[/red]" if name in over else text

        out.add_row(
            result.case.name,
            f"{1e3 * min(result.time.baseline):.1f} ms",
            marked("time", str(result.time)),
            f"{result.time.of_minima:.2f}",
            marked("memory", f"{result.memory:.2f}"),
            marked("compile", f"{result.compile.of_minima:.2f}"),
        )
    return out


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, one pass")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains TEXT")
    parser.add_argument("--check", action="store_true", help=f"exit with 1 where a ratio is over its bar: {BARS}")
    options = parser.parse_args(arguments)
    rounds, compilations = (7, 2) if options.quick else (31, 5)
    chosen = [case for case in cases() if options.only in case.name]
    if not chosen:
        parser.error(f"no case has {options.only!r} in its name; there are: " + "; ".join(c.name for c in cases()))
    console = Console(width=None if sys.stdout.isatty() else 120)
    results = [
        measure(case, rounds, compilations, options.quick)
        for case in track(chosen, "measuring", console=Console(stderr=True), transient=True)
    ]
    console.print(table(results))
    failed = [result for result in results if result.over()]
    for result in failed:
        names = ", ".join(f"{name} {result.ratios()[name]:.2f} > {BARS[name]}" for name in result.over())
        console.print(f"over the bar: {result.case.name}: {names}", highlight=False)
    return 1 if failed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
