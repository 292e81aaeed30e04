"""Whole distributions, for .hgrm files: of the points of results, and of files that were read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from . import hgrm, histogram, loads, run_files
from .failure import Exit, Failure, usage
from .hgrm import Recording
from .histogram import Histogram
from .programs import PRECV
from .results import Point, Results
from .table import MISSING, Table, make, to_csv, to_markdown, to_text

LATENCY = "latency"  # what precv times, as it says in files
PERCENTS = (50, 90, 99, 99.9, 99.99)
TIMES = ("min us", *(f"p{p} us" for p in PERCENTS), "max us", "mean us")
HEADINGS = ("file", "timing", "count", *TIMES)
FORMATS: dict[str, Callable[[Table], str]] = {
    "text": to_text,
    "markdown": to_markdown,
    "csv": to_csv,
}

Named = Sequence[tuple[str, Recording]]


# ---- files that were read ----


def merged(found: Named) -> Recording:
    """All of them together; raises Failure if they are known not to be of one kind.

    What may be of any kind, from files that do not say it, makes all of it unknown.
    """
    first: dict[str | None, str] = {}  # of each kind
    for label, one in found:
        first.setdefault(one.timing, label)
    known = [f"{label} has {timing}" for timing, label in first.items() if timing]
    if len(known) > 1:
        raise usage(f"{known[0]}, and {known[1]}: they cannot be merged")
    timing = found[0][1].timing if len(first) == 1 else None
    return Recording(timing, histogram.merge([one.histogram for _, one in found]))


def report(found: Named, name: str) -> str:
    """A row for each, and one for all of them together, in a format of FORMATS."""
    rows = [*found, ("merged", merged(found))] if len(found) > 1 else list(found)
    notes = [
        f"{label}: {one.histogram.negative} values below 0 are left out, "
        f"the lowest {_us(one.histogram.lowest_ns)} us."
        for label, one in found
        if one.histogram.negative
    ]
    cells = [
        (label, one.timing or MISSING, str(one.histogram.count), *_times(one.histogram))
        for label, one in rows
    ]
    return FORMATS[name](make("Distributions", HEADINGS, cells, notes))


def _times(one: Histogram) -> list[str]:
    """Cells of TIMES."""
    percentiles = [one.percentile_ns(percent) for percent in PERCENTS]
    return [_us(value) for value in (one.min_ns, *percentiles, one.max_ns, one.mean_ns)]


def _us(value_ns: float | None) -> str:
    return MISSING if value_ns is None else f"{value_ns / 1000:.3f}"


# ---- points of results ----


def write_points(results: Sequence[Results], path: Path) -> list[Path]:
    """Latency of all good runs of each planned point that has any; the paths of what was written.

    That is PATH if there is one such point; else its name has the points' labels in it as well, and
    directories' names if there are several.
    """
    points = [
        (one, point)
        for one in results
        for point in one.plan.points
        if one.good(point.id) and not loads.is_probe(point.values)
    ]
    if not points:
        raise Failure(Exit.INTERNAL, "--hdr: there is no good run")
    paths = _paths(points, path, len(results) > 1)
    for (one, point), written in zip(points, paths):
        hgrm.write(written, of_point(one, point))
    return paths


def of_point(results: Results, point: Point) -> Recording:
    """As one precv would have recorded what all had in the point's good runs."""
    return Recording(LATENCY, run_files.merged_histogram(results, results.good(point.id), PRECV))


def _paths(points: Sequence[tuple[Results, Point]], path: Path, several: bool) -> list[Path]:
    if len(points) == 1:
        return [path]
    names = [
        "-".join(
            part
            for part in (one.directory.resolve().name if several else "", _file_name(point))
            if part
        )
        for one, point in points
    ]
    counts = Counter(names)
    unique = [
        f"{index}-{name}" if counts[name] > 1 else name for index, name in enumerate(names, 1)
    ]
    return [path.with_name(f"{path.stem}-{name}{path.suffix}") for name in unique]


def _file_name(point: Point) -> str:
    """Of its label what any file system and shell takes, without blanks."""
    return re.sub(r"[^A-Za-z0-9.,+]+", "-", point.label.replace("%", " percent")).strip("-")
