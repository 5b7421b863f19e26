"""What `explain` returns: each rewrite with the user's file and line, and what was left as it was."""

from __future__ import annotations

import html
import linecache
import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rewrite:
    """One rewrite: rule, place in the user's source, what stood there, what stands there now, and why.

    `count` is how many times the same rewrite happened at the same line (an unrolled Python loop).
    """

    rule: str
    file: str | None
    line: int | None
    source: str
    before: str
    after: str
    reason: str
    count: int = 1


@dataclass(frozen=True)
class Untouched:
    """An operation that the compiler did not look into, with its place and the reason."""

    operation: str
    file: str | None
    line: int | None
    reason: str
    count: int = 1


@dataclass(frozen=True)
class Explanation:
    """The report of `stablegrad.explain(f)(*args)`. `str` gives plain text; a notebook shows a table."""

    function: str
    rewrites: tuple[Rewrite, ...] = field(default_factory=tuple)
    untouched: tuple[Untouched, ...] = field(default_factory=tuple)

    def __str__(self) -> str:
        if self.rewrites:
            lines = [f"{self.function}: {_counted(sum(r.count for r in self.rewrites), 'rewrite')}"]
        else:
            lines = [f"{self.function}: nothing to rewrite"]
        for r in self.rewrites:
            lines.append(f"  {_place(r.file, r.line)}  {r.source}{_times(r.count)}")
            lines.append(f"      before  {r.before}")
            lines.append(f"      after   {r.after}")
            lines.append(f"      why     {r.reason}  [{r.rule}]")
        for u in self.untouched:
            lines.append(f"  {_place(u.file, u.line)}  {u.operation}{_times(u.count)}: left as it was, {u.reason}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:left'>{}</td>".format
        rows = []
        for r in self.rewrites:
            code = "<code>{}</code>".format
            values = (html.escape(_place(r.file, r.line) + _times(r.count)), code(html.escape(r.before)),
                      code(html.escape(r.after)), html.escape(r.reason))  # fmt: skip
            rows.append("<tr>" + "".join(map(cell, values)) + "</tr>")
        for u in self.untouched:
            text = html.escape(f"{u.operation}: left as it was, {u.reason}")
            rows.append(
                f"<tr>{cell(html.escape(_place(u.file, u.line) + _times(u.count)))}<td colspan=3>{text}</td></tr>"
            )
        head = "".join(f"<th>{t}</th>" for t in ("where", "before", "after", "why"))
        return f"<b>{html.escape(self.function)}</b><table><tr>{head}</tr>{''.join(rows)}</table>"


def source_line(file: str | None, line: int | None) -> str:
    """The text of a line of the user's source, stripped; empty where it cannot be read."""
    return linecache.getline(file, line).strip() if file and line else ""


def _place(file: str | None, line: int | None) -> str:
    return f"{os.path.basename(file)}:{line}" if file else "(no source)"


def _times(count: int) -> str:
    return f"  (x {count})" if count > 1 else ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
