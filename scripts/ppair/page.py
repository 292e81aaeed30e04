"""One HTML file with all there is to a result: nothing beside it is needed, and no script."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from . import files, plots, tables
from .plots import Picture
from .provenance import commands_table, environment_table
from .results import COMPLETE, Results
from .table import Table, numeric

ROWS_OPEN_MAX = 12  # of a table that is not folded
COLUMNS_MAX = 10  # of a table in the usual size of letters
OPTION = re.compile(r"--[a-z][a-z.-]*")
CSS = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --soft: #666; --rule: #ccc;
  --band: #f4f4f4; --warn: #fff4d6; --fail: #b00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --paper: #181818; --soft: #999; --rule: #444; --band: #222; --warn: #3a3014;
    --fail: #f77; }
}
body { font: 16px/1.5 "DejaVu Sans", Verdana, sans-serif; color: var(--ink);
  background: var(--paper); margin: 0; }
main { max-width: 56rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 1.5rem 0 .5rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
section + section { border-top: 2px solid var(--rule); margin-top: 3rem; }
.lead { font-size: 1.1rem; }
.soft, figcaption, .note { color: var(--soft); font-size: .875rem; }
figure { margin: 1rem 0; }
.box { overflow-x: auto; }
.box svg { display: block; width: 100%; min-width: 30rem; max-width: 52rem; height: auto;
  background: #fff; }
.warning { background: var(--warn); padding: .25rem .75rem; margin: .25rem 0;
  border-left: 4px solid #d90; }
table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: left; vertical-align: bottom; }
th { max-width: 9rem; }
td { vertical-align: top; white-space: nowrap; border-top: 1px solid var(--rule); }
.n { text-align: right; }
.wide { font-size: .6875rem; }
.wide th, .wide td { padding: .2rem .3rem; }
.option { white-space: nowrap; }
tbody tr:nth-child(even) { background: var(--band); }
.failed { color: var(--fail); font-weight: bold; }
.code td:last-child { white-space: normal; overflow-wrap: anywhere;
  font-family: "DejaVu Sans Mono", monospace; font-size: .75rem; }
summary { cursor: pointer; margin: 1rem 0 .5rem; }
@media print {
  :root { --ink: #000; --paper: #fff; --soft: #333; --rule: #999; --band: #f4f4f4; --warn: #fff; }
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  .box { overflow: visible; }
  .box svg { min-width: 0; width: 6.5in; }
  table { font-size: 8pt; }
  .wide { font-size: 6pt; }
}
"""


def write_page(results: Sequence[Results], path: Path) -> None:
    """Writes it in the place of an earlier one."""
    files.write_in_folder(path, render(results).encode("ascii", "xmlcharrefreplace"))


def render(results: Sequence[Results]) -> str:
    """The page, a section for each of RESULTS."""
    title = " / ".join(dict.fromkeys(one.plan.title for one in results))
    sections = [line for index, one in enumerate(results) for line in _section(one, f"r{index}-")]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title>",
            f"<style>{CSS}</style>",
            "</head>",
            "<body>",
            "<main>",
            *(_contents(results) if len(results) > 1 else ()),
            *sections,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _contents(results: Sequence[Results]) -> Iterator[str]:
    yield "<nav><ul>"
    for index, one in enumerate(results):
        yield f'<li><a href="#r{index}">{text(one.plan.title)}</a></li>'
    yield "</ul></nav>"


def text(value: str) -> str:
    """As text, and in the value of an attribute."""
    return html.escape(tables.plain(value), quote=True)


def unbroken(value: str) -> str:
    """As text, in which no line ends within the name of an option."""
    return OPTION.sub(r'<span class="option">\g<0></span>', text(value))


def _section(results: Results, prefix: str) -> Iterator[str]:
    yield f'<section id="{prefix.rstrip("-")}">'
    yield f"<h1>{unbroken(results.plan.title)}</h1>"
    if results.status != COMPLETE:
        why = f": {results.why}" if results.why else ""
        yield f'<p class="warning">{text(results.status + why)}</p>'
    for sentence in tables.sentences(results):
        yield f'<p class="lead">{unbroken(sentence)}</p>'
    yield from (f'<p class="warning">{text(line)}</p>' for line in tables.warning_lines(results))
    pictures = plots.pictures(results)
    for index, picture in enumerate(pictures):
        yield from _figure(picture, f"{prefix}f{index}-")
    drawn = {tables.plain(picture.plot.title) for picture in pictures}
    for table in tables.finding_tables(results):
        title = f"{table.title}, in numbers" if table.title in drawn else table.title
        yield from _titled(replace(table, title=title))
    title = "Repetitions" if tables.is_single(results) else "Points"
    main = replace(tables.main_table(results), title=title)
    yield from _folded(main) if len(main.rows) > ROWS_OPEN_MAX else _titled(main)
    if not tables.is_single(results):
        yield from _folded(tables.repetitions_table(results))
    yield from _folded(environment_table(results), "code")
    yield from _folded(commands_table(results), "code")
    yield "</section>"


def _figure(picture: Picture, prefix: str) -> Iterator[str]:
    yield f"<h2>{unbroken(picture.plot.title)}</h2>"
    yield '<figure><div class="box">'
    yield plots.svg_of(picture, prefix, bare=True)
    yield "</div>"
    if picture.caption:
        yield f"<figcaption>{text(picture.caption)}</figcaption>"
    yield "</figure>"


def _titled(table: Table, kind: str = "") -> Iterator[str]:
    yield f"<h2>{unbroken(table.title)}</h2>"
    yield from _table(table, kind)


def _folded(table: Table, kind: str = "") -> Iterator[str]:
    yield "<details>"
    yield f"<summary>{text(table.title)}</summary>"
    yield from _table(table, kind)
    yield "</details>"


def _table(table: Table, kind: str) -> Iterator[str]:
    right = numeric(table)
    kinds = [kind] if kind else ["wide"] if len(table.headings) > COLUMNS_MAX else []
    attribute = f' class="{kinds[0]}"' if kinds else ""
    yield f'<div class="box"><table{attribute}>'
    if any(table.headings):
        heads = "".join(
            _cell("th", cell, is_right) for cell, is_right in zip(table.headings, right)
        )
        yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        yield "<tr>" + "".join(
            _cell("td", c, is_right) for c, is_right in zip(row, right)
        ) + "</tr>"
    yield "</tbody></table></div>"
    yield from (f'<p class="note">{text(note)}</p>' for note in table.notes)


def _cell(tag: str, value: str, is_right: bool) -> str:
    kinds = (["n"] if is_right else []) + (["failed"] if value == "failed" else [])
    attribute = f' class="{" ".join(kinds)}"' if kinds else ""
    return f"<{tag}{attribute}>{text(value)}</{tag}>"
