"""Tables, plots and pages from results directories, which are read and never changed; and
distributions from files that psend --hdr and precv --hdr write, merged exactly.

  ppair report DIR
  ppair report DIR --html page.html
  ppair report DIR DIR --plots plots --plot-format svg
  ppair report DIR --format iperf | jq .end.sum_received.bits_per_second
  ppair report DIR --hdr latency.hgrm
  ppair report a.hgrm b.hgrm --hdr both.hgrm

Formats: text and markdown are tables; csv has a line for each run with all that was measured; iperf
(iperf3 --json) and quiver (receiver-summary.json) have a document for each good run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import advice, distributions, formats, hgrm, page, plots, store, tables
from ..failure import Exit, usage
from ..results import Results

USAGE = "DIR... | FILE.hgrm... [OPTION...]"
REPORTS = {"text": tables.text_report, "markdown": tables.markdown_report}
FORMATS = (*REPORTS, *formats.FORMATS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone."""
    parser.add_argument(
        "directories", metavar="DIR", nargs="+", help="a results directory, or a .hgrm file"
    )
    parser.add_argument(
        "--format", metavar="NAME", default="text", help=f"one of {', '.join(FORMATS)} [text]"
    )
    parser.add_argument("--plots", metavar="DIR", help="write plots to files in DIR")
    parser.add_argument(
        "--plot-format", metavar="LIST", default="svg", help="of --plots: svg, png or both [svg]"
    )
    parser.add_argument("--html", metavar="FILE", help="write one page with plots and tables")
    parser.add_argument(
        "--hdr",
        metavar="FILE",
        help="write the latency distribution of all good runs, or what the .hgrm files make "
        "together, as HdrHistogram's plotters read it (.hgrm); of several points, a file each",
    )


def main(arguments: argparse.Namespace) -> int:
    """Prints the report, and writes what is asked for; its paths go to standard error."""
    if arguments.format not in FORMATS:
        raise usage(f'--format: "{arguments.format}" is none of {", ".join(FORMATS)}')
    picture_formats = _picture_formats(arguments.plot_format)
    files = [name for name in arguments.directories if _is_file(Path(name))]
    if files:
        return _report_files(arguments, files)
    with store.damage_named(arguments.directories):
        found = [_load(Path(name)) for name in arguments.directories]
        sys.stdout.write(_report(found, arguments.format))
        if arguments.plots:
            for path in _write_plots(found, Path(arguments.plots), picture_formats):
                print(f"plot: {path}", file=sys.stderr)
        if arguments.html:
            page.write_page(found, Path(arguments.html))
            print(f"page: {arguments.html}", file=sys.stderr)
        if arguments.hdr:
            for path in distributions.write_points(found, Path(arguments.hdr)):
                print(f"hdr: {path}", file=sys.stderr)
    return Exit.DONE


def _is_file(path: Path) -> bool:
    """Or a directory; one that is not there is what its name says."""
    return path.is_file() or (path.suffix == hgrm.SUFFIX and not path.is_dir())


def _report_files(arguments: argparse.Namespace, names: Sequence[str]) -> int:
    """Of distributions alone."""
    if len(names) < len(arguments.directories):
        raise usage("results directories and .hgrm files are not reported together")
    if arguments.plots or arguments.html:
        raise usage(f"{'--plots' if arguments.plots else '--html'}: needs results directories")
    if arguments.format not in distributions.FORMATS:
        raise usage(f"--format {arguments.format}: needs results directories")
    if arguments.hdr and Path(arguments.hdr).resolve() in {Path(n).resolve() for n in names}:
        raise usage(f"--hdr: {arguments.hdr} is one of those that are read")
    found = [(name, hgrm.read(Path(name))) for name in names]
    sys.stdout.write(distributions.report(found, arguments.format))
    if arguments.hdr:
        hgrm.write(Path(arguments.hdr), distributions.merged(found))
        print(f"hdr: {arguments.hdr}", file=sys.stderr)
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
