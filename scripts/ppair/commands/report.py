"""Tables, plots and pages from results directories, which are read and never changed.

  ppair report DIR
  ppair report DIR --html page.html
  ppair report DIR DIR --plots plots --plot-format svg
  ppair report DIR --format iperf | jq .end.sum_received.bits_per_second

Formats: text and markdown are tables; csv has a line for each run with all that was measured; iperf
(iperf3 --json) and quiver (receiver-summary.json) have a document for each good run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import advice, formats, page, plots, store, tables
from ..failure import Exit, usage
from ..results import Results

USAGE = "DIR... [OPTION...]"
REPORTS = {"text": tables.text_report, "markdown": tables.markdown_report}
FORMATS = (*REPORTS, *formats.FORMATS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone."""
    parser.add_argument("directories", metavar="DIR", nargs="+", help="a results directory")
    parser.add_argument(
        "--format", metavar="NAME", default="text", help=f"one of {', '.join(FORMATS)} [text]"
    )
    parser.add_argument("--plots", metavar="DIR", help="write plots to files in DIR")
    parser.add_argument(
        "--plot-format", metavar="LIST", default="svg", help="of --plots: svg, png or both [svg]"
    )
    parser.add_argument("--html", metavar="FILE", help="write one page with plots and tables")


def main(arguments: argparse.Namespace) -> int:
    """Prints the report, and writes what is asked for; its paths go to standard error."""
    if arguments.format not in FORMATS:
        raise usage(f'--format: "{arguments.format}" is none of {", ".join(FORMATS)}')
    picture_formats = _picture_formats(arguments.plot_format)
    with store.damage_named(arguments.directories):
        found = [_load(Path(name)) for name in arguments.directories]
        sys.stdout.write(_report(found, arguments.format))
        if arguments.plots:
            for path in _write_plots(found, Path(arguments.plots), picture_formats):
                print(f"plot: {path}", file=sys.stderr)
        if arguments.html:
            page.write_page(found, Path(arguments.html))
            print(f"page: {arguments.html}", file=sys.stderr)
    return Exit.DONE


def _picture_formats(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in plots.FORMATS]
    if unknown:
        raise usage(f'--plot-format: "{unknown[0]}" is none of {", ".join(plots.FORMATS)}')
    return names


def _load(directory: Path) -> Results:
    """With warnings as they are given today."""
    results = store.load(directory)
    results.warnings = advice.warnings(results)
    return results


def _report(results: Sequence[Results], name: str) -> str:
    if name in REPORTS:
        return "\n".join(REPORTS[name](one) for one in results)
    return formats.convert(results, name)


def _write_plots(results: Sequence[Results], folder: Path, names: Sequence[str]) -> list[Path]:
    """Files of several results are told apart by their directories' names."""
    prefixes = [""] if len(results) == 1 else [f"{_name(one)}-" for one in results]
    if len(set(prefixes)) < len(prefixes):
        prefixes = [f"{index}-{prefix}" for index, prefix in enumerate(prefixes, 1)]
    return [
        path
        for one, prefix in zip(results, prefixes)
        for path in plots.write(one, folder, names, prefix)
    ]


def _name(results: Results) -> str:
    return results.directory.resolve().name
