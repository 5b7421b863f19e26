"""What a person sees: one table a call, and under it what was rewritten and why."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stablegrad.command_line.compare import Row
from stablegrad.command_line.measure import Measurement

WRONG, RIGHT, FAINT = "bold red", "green", "dim"


def show(measurement: Measurement, console: Console) -> None:
    """Print one call: its table, what could not be checked, the rewrites, and what was left untouched."""
    call = measurement.call
    place = f"{call.file.name}:{call.line}" if call.line else call.file.name
    label = f", {call.label}" if call.label else ""
    console.print(Text.assemble((call.name, "bold"), (f"  {place}{label}", FAINT)))
    if measurement.rows:
        console.print(_indented(2, _table(measurement.rows)))
    for note in measurement.notes:
        console.print(_indented(2, Text(note, style="yellow")))
    if measurement.report is not None:
        for line in [
            *_rewrites(measurement.report, call.file.path, console.width - 6),
            *_untouched(measurement.report, call.file.path),
        ]:
            console.print(line)
    console.print()


def summary(measurements: Sequence[Measurement]) -> Text:
    """One line over all calls."""
    known = [m for m in measurements if not m.unknown]
    plain = sum(m.plain_wrong for m in known)
    stabilized = sum(m.stabilized_wrong for m in measurements)
    text = Text(f"{len(measurements)} call{'s' * (len(measurements) != 1)}: plain wrong in ")
    text.append(str(plain), WRONG if plain else RIGHT)
    text.append(", stabilized wrong in ")
    text.append(str(stabilized), WRONG if stabilized else RIGHT)
    if stabilized:
        names = dict.fromkeys(_name(m) for m in measurements if m.stabilized_wrong)
        text.append(f" ({', '.join(names)})")
    unknown = len(measurements) - len(known)
    if unknown:
        text.append(f"; {unknown} without an exact result")
    return text


def _name(measurement: Measurement) -> str:
    call = measurement.call
    return f"{call.name}, {call.label}" if call.label else call.name


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for heading in ("plain", "stabilized", "exact", "bits of error: plain", "stabilized"):
        table.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        table.add_row(
            Text(row.label),
            Text(_number(row.plain), WRONG if row.plain_wrong else ""),
            Text(_number(row.stabilized), WRONG if row.stabilized_wrong else ""),
            Text(_number(row.exact)),
            _bits(row.plain_bits, row.plain, row.plain_wrong),
            _bits(row.stabilized_bits, row.stabilized, row.stabilized_wrong),
        )
    return table


def _number(number: np.generic | None) -> str:
    """Enough digits to tell neighbouring floats of the type apart; a dash for what is not known."""
    if number is None:
        return "-"
    digits = {2: 5, 4: 9}.get(number.dtype.itemsize, 17)
    return f"{float(number):.{digits}g}"


def _bits(bits: float | None, got: np.generic | None, wrong: bool) -> Text:
    if bits is None:
        return Text("-")
    if math.isinf(bits):
        return Text(_kind(got), WRONG)
    # In words too: a log has no colours, and how many bits are wrong depends on the condition number.
    return Text(f"{bits:.1f} wrong", WRONG) if wrong else Text(f"{bits:.1f}", RIGHT)


def _kind(got: np.generic | None) -> str:
    """What stands in place of a number of bits where only one of two numbers is finite."""
    if got is None or np.isfinite(got):
        return "not inf or nan"
    return "nan" if np.isnan(got) else "inf"


def _rewrites(report: Any, path: str, width: int) -> Iterator[Padding]:
    if not report.rewrites:
        yield _indented(2, Text("nothing to rewrite", FAINT))
    last = None
    for rewrite in report.rewrites:
        here = (rewrite.file, rewrite.line)
        if here != last:
            place = _place(rewrite, path)
            yield _indented(2, Text.assemble((place, "cyan"), f"  {(rewrite.source or '').strip()}"))
            last = here
        after = Text.assemble(("-> ", FAINT), (rewrite.after, "bold"), (_times(rewrite.count), FAINT))
        if len(rewrite.before) + len(after) < width:
            yield _indented(6, Text.assemble(rewrite.before, " ", after))
        else:
            yield _indented(6, Text(rewrite.before))
            yield _indented(6, after)
        yield _indented(8, Text.assemble((f"{rewrite.rule}: ", FAINT), rewrite.reason))


def _untouched(report: Any, path: str) -> Iterator[Padding]:
    for part in report.untouched:
        text = f"{part.operation}, {_place(part, path)}{_times(part.count)}: {part.reason}"
        yield _indented(2, Text.assemble(("left as it was: ", FAINT), text))


def _place(found: Any, path: str) -> str:
    """Where in the person's file, or in which other file, something stands."""
    if not found.line:
        return "no line known"
    return f"line {found.line}" if found.file in (None, path) else f"{Path(found.file).name}:{found.line}"


def _times(count: int) -> str:
    return f" (x{count})" if count > 1 else ""


def _indented(columns: int, line: Any) -> Padding:
    return Padding(line, (0, 0, 0, columns), expand=False)
