"""Every generated program in every mode: float32 and float64, jitted and eager; value, gradient and both at once.

    PYTHONPATH=src:tests python -m spellings.full [PATTERN] [--mode "jit float32"] ...

Prints what breaks the bound and is no known gap, and what is a known gap and is right; exit status 1 if there is any.
It takes about an hour on one core; the tests run a part of it.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from spellings import families, measure, softmax
from spellings.known_gaps import gap
from stablegrad import stabilize

MODES = tuple(f"{how} {dtype}" for how in ("jit", "eager") for dtype in ("float32", "float64"))
TOGETHER = 10


def groups() -> Iterator[list[Any]]:
    """Programs that have the same cases, a few at a time."""
    everything = itertools.chain(
        itertools.groupby(softmax.combinations(), key=lambda c: (c.softmax.name, c.between.name)),
        itertools.groupby(families.programs(), key=lambda p: p.group),
    )
    for _, group in everything:
        programs = list(group)
        for start in range(0, len(programs), TOGETHER):
            yield programs[start : start + TOGETHER]


def failures(program: Any, mode: str, jitted: measure.Results) -> list[str]:
    """What is wrong with a program in a mode, one line each."""
    how, dtype = mode.split()
    if how == "jit":
        results = jitted[program.name]
        if isinstance(results, Exception):
            return [repr(results)]
        found = []
        for case, (value, gradient) in zip(program.cases(dtype), results, strict=True):
            found += measure.wrong_value(program, case, value) + measure.wrong_gradient(program, case, gradient)
        return list(map(str, found))
    stabilized = stabilize(program.program)
    found = []
    try:
        for case in program.cases(dtype):
            found += measure.wrong_value(program, case, stabilized(*case.arguments))
            found += measure.wrong_gradient(program, case, jax.grad(stabilized)(*case.arguments))
            value, gradient = jax.value_and_grad(stabilized)(*case.arguments)
            found += measure.wrong_value(program, case, value) + measure.wrong_gradient(program, case, gradient)
    except Exception as error:
        return [repr(error)]
    return list(map(str, found))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="only programs whose name matches")
    parser.add_argument("--mode", action="append", choices=MODES, help="only these modes")
    options = parser.parse_args(arguments)
    modes = options.mode or MODES
    count, wrong, unexpected = 0, 0, 0
    for group in groups():
        group = [p for p in group if re.search(options.pattern, p.name)]
        if not group:
            continue
        for mode in modes:
            how, dtype = mode.split()
            jitted = measure.stabilized_together(group, dtype) if how == "jit" else {}
            with measure.in_dtype(dtype):
                for p in group:
                    found, reason = failures(p, mode, jitted), gap(p.name, mode)
                    count, wrong = count + 1, wrong + bool(found)
                    if bool(found) == bool(reason):
                        continue
                    unexpected += 1
                    print(
                        f"{p.name} ({mode}):", *(found[:3] or [f"right, and no gap any more: {reason}"]), sep="\n    "
                    )
        if sys.stderr.isatty():
            print(f"\r{count} runs, {wrong} wrong, {unexpected} unexpected", end="", file=sys.stderr, flush=True)
    print(f"{count} runs, {wrong} wrong, {unexpected} of them unexpected")
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(main())
