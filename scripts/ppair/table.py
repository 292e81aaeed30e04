"""A table and its three forms: text, markdown and CSV. ASCII alone comes out."""

from __future__ import annotations

import csv
import io
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MISSING = "-"
FAILED = "failed"
GAP = "  "
# Headings that are longer, and longer than their cells, are broken; the second if that is too wide.
HEADING_WIDTHS = (13, 8)
WIDTH = 100  # of text that is not for a terminal
WIDTH_LEAST = 80
KEYS_MAX = 3  # first columns that tell one row from another
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


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _shaped(table: Table, room: int) -> tuple[list[list[str]], list[int]]:
    """Headings in lines, and widths of columns; in the narrower of two shapes if ROOM needs it."""
    cells = [
        max((len(row[i]) for row in table.rows), default=0) for i in range(len(table.headings))
    ]
    for longest in HEADING_WIDTHS:
        heads = [_broken(head, max(width, longest)) for head, width in zip(table.headings, cells)]
        widths = [max(width, *map(len, lines)) for width, lines in zip(cells, heads)]
        if _total(widths) <= room:
            break
    return heads, widths


def _keys(table: Table) -> int:
    """How many of the first columns it takes to tell rows apart; one if that is too many."""
    for count in range(1, KEYS_MAX + 1):
        if len({row[:count] for row in table.rows}) == len(table.rows):
            return count
    return 1


def _blocks(widths: Sequence[int], keys: int, room: int) -> list[list[int]]:
    """Columns that stand side by side; all blocks begin with the first KEYS.

    Where those alone take more than half of ROOM, such as long names of files, lines are longer.
    """
    room = max(room, 2 * _total(widths[:keys]))
    blocks: list[list[int]] = [list(range(keys))]
    for column in range(keys, len(widths)):
        if len(blocks[-1]) > keys and _total([widths[i] for i in (*blocks[-1], column)]) > room:
            blocks.append(list(range(keys)))
        blocks[-1].append(column)
    return blocks


def text_width() -> int:
    """Columns of the terminal, or of the environment's COLUMNS."""
    return max(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH_LEAST)


def to_text(table: Table, room: int | None = None) -> str:
    """Aligned columns, with the title above and the notes below.

    What is wider than ROOM, the terminal's if it is not given, stands in blocks of columns one
    below the other, in each of which the first columns tell which row is which.
    """
    room, right = room or text_width(), numeric(table)
    heads, widths = _shaped(table, room)
    lines = [table.title] if table.title else []
    for number, block in enumerate(_blocks(widths, _keys(table), room)):
        height = max(len(heads[i]) for i in block) if any(table.headings) else 0
        rows = [[([""] * height + heads[i])[j - height] for i in block] for j in range(height)]
        rows += [[row[i] for i in block] for row in table.rows]
        shape = [widths[i] for i in block], [right[i] for i in block]
        lines += [""] * (number > 0) + [_aligned(row, *shape) for row in rows]
    lines += [line for note in table.notes for line in textwrap.wrap(note, min(room, WIDTH))]
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
