"""A table and its three forms: text, markdown and CSV. ASCII alone comes out."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MISSING = "-"
FAILED = "failed"
GAP = "  "
HEADING_WIDTH = 12  # headings longer than this, and than their cells, are broken
NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*( ?%|[A-Za-z]{1,3})?(/[0-9]+)?")


Column = tuple[str, list[str]]  # heading and cells


@dataclass(frozen=True)
class Table:
    """Rows as long as the headings; notes are sentences below it."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def make(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[str] = (),
) -> Table:
    """A table of plain text, whatever the cells hold."""
    return Table(
        plain(title),
        tuple(plain(heading) for heading in headings),
        tuple(tuple(plain(cell) for cell in row) for row in rows),
        tuple(plain(note) for note in notes),
    )


def of_columns(title: str, columns: Sequence[Column], notes: Iterable[str] = ()) -> Table:
    """The same, from columns that are equally long."""
    rows = zip(*(cells for _, cells in columns))
    return make(title, [heading for heading, _ in columns], rows, notes)


def finding(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """A table among an experiment's findings, in JSON's shapes."""
    return {
        "title": title,
        "headings": list(headings),
        "rows": [list(row) for row in rows],
        "notes": list(notes),
    }


def finding_of_columns(
    title: str, columns: Sequence[Column], notes: Iterable[str] = ()
) -> dict[str, Any]:
    """The same, from columns that are equally long."""
    rows = zip(*(cells for _, cells in columns))
    return finding(title, [heading for heading, _ in columns], rows, notes)


def plain(text: object) -> str:
    """Printable ASCII on one line; the rest as Python would escape it."""
    return "".join(
        c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in str(text)
    )


def numeric(table: Table) -> list[bool]:
    """Which columns hold numbers and nothing else, and so are aligned to the right."""
    cells = [
        [row[i] for row in table.rows if row[i] not in (MISSING, FAILED, "")]
        for i in range(len(table.headings))
    ]
    return [all(NUMBER.fullmatch(cell) for cell in column) for column in cells]


# ---- text ----


def _broken(heading: str, width: int) -> list[str]:
    return textwrap.wrap(heading, width, break_long_words=False, break_on_hyphens=False) or [""]


def _aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right))
    return GAP.join(padded).rstrip()


def to_text(table: Table) -> str:
    """Aligned columns, with the title above and the notes below."""
    right = numeric(table)
    cells = [max((len(row[i]) for row in table.rows), default=0) for i in range(len(right))]
    broken = [
        _broken(heading, max(width, HEADING_WIDTH)) for heading, width in zip(table.headings, cells)
    ]
    widths = [max(width, *map(len, lines)) for width, lines in zip(cells, broken)]
    height = max(map(len, broken), default=0)
    heads = [[""] * (height - len(lines)) + lines for lines in broken]
    lines = [table.title] if table.title else []
    if any(table.headings):
        lines += [_aligned([head[i] for head in heads], widths, right) for i in range(height)]
    lines += [_aligned(row, widths, right) for row in table.rows]
    lines += [line for note in table.notes for line in textwrap.wrap(note, 100)]
    return "".join(f"{line}\n" for line in lines)


# ---- markdown ----


def escape_markdown(text: str) -> str:
    """So that nothing in it is markup."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text)


def to_markdown(table: Table) -> str:
    """A pipe table, as GitHub takes them."""
    right = numeric(table)
    lines = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    lines.append(_piped(table.headings))
    lines.append("|" + "|".join("---:" if r else "---" for r in right) + "|")
    lines += [_piped(row) for row in table.rows]
    for note in table.notes:
        lines += ["", escape_markdown(note)]
    return "".join(f"{line}\n" for line in lines)


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape_markdown(cell) for cell in cells) + " |"


# ---- CSV ----


def to_csv(table: Table) -> str:
    """Headings and rows; a number that does not exist is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.headings)
    writer.writerows([("" if cell == MISSING else cell) for cell in row] for row in table.rows)
    return out.getvalue()
