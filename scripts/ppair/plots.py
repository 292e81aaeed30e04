"""Pictures of a results directory, as SVG and PNG.

A plan's plots are of kind "line" or "heat", or, of latency, "load", "percentiles" and "omission";
"distribution" and "time" are made from event files, and are there for results of one point without
being asked for.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import files, plots_heat, plots_line, plots_load, plots_style, plots_time, svg
from .failure import Exit, Failure, usage
from .metrics import PRIMARY
from .results import Plot, Results
from .table import plain
from .tables import is_single

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")
DRAW: dict[str, Callable[[Results, Plot, bool], Figure]] = {
    "line": plots_line.draw,
    "heat": plots_heat.draw,
    "distribution": plots_time.draw_distribution,
    "time": plots_time.draw_time,
    "load": plots_load.draw_load,
    "percentiles": plots_load.draw_percentiles,
    "omission": plots_load.draw_omission,
}
# Of kinds that are made from more than metrics: whether there is anything to be drawn.
HAS_DATA: dict[str, Callable[[Results], object]] = {
    "distribution": plots_time.distribution_curves,
    "load": plots_load.steps,
    "percentiles": plots_load.step_curves,
    "omission": plots_load.omission_curves,
}
OF_LOAD = ("load", "percentiles", "omission")
DISTRIBUTION = Plot(
    "Time by percentile",
    "percentile",
    (),
    kind="distribution",
    note="All good runs together. Where the line rises steeply, few messages took much longer.",
)
TIME = Plot(
    "Over time",
    "time",
    (PRIMARY, "precv_cpu_percent"),
    kind="time",
    note="Intervals without the warm-up, each at its end.",
)
TIME_OF_SOAK = replace(TIME, y=(PRIMARY, "precv_cpu_percent", "precv_rss_bytes", "psend_rss_bytes"))


@dataclass(frozen=True)
class Picture:
    """One plot of one results directory."""

    results: Results
    plot: Plot
    name: str  # of its file, without the ending; unique within the directory

    @property
    def caption(self) -> str:
        """What stands below it."""
        if self.plot.kind == "line":
            scale = plots_line.scale_for(self.results, self.plot)
            failed = plots_line.failed_at(self.results, self.plot, scale)
            return plots_line.caption(self.results, self.plot, failed)
        if self.plot.kind == "heat":
            return plots_heat.caption(self.results, self.plot)
        if self.plot.kind in OF_LOAD:
            return plots_load.caption(self.results, self.plot)
        return self.plot.note


def pictures(results: Results) -> list[Picture]:
    """Those that the plan has and for which there is anything, and those that event files give."""
    found = [plot for plot in results.plan.plots if _has_data(results, plot)]
    kinds = {plot.kind for plot in found}
    if "distribution" not in kinds and _try(lambda: plots_time.distribution_curves(results)):
        found.append(DISTRIBUTION)
    few = results.plan.command in ("run", "soak") and is_single(results)
    if few and "time" not in kinds and _try(lambda: plots_time.has_timeline(results)):
        found.append(TIME_OF_SOAK if results.plan.command == "soak" else TIME)
    return [Picture(results, plot, _name(index, plot)) for index, plot in enumerate(found, 1)]


def _has_data(results: Results, plot: Plot) -> bool:
    if plot.kind not in DRAW:
        raise Failure(Exit.INTERNAL, f'{results.directory}: plot of unknown kind "{plot.kind}"')
    if plot.kind in HAS_DATA:
        return _try(lambda: HAS_DATA[plot.kind](results))
    if plot.kind == "time":
        return _try(lambda: any(plots_time.timelines(results, y) for y in plot.y))
    return any(
        results.aggregate(point.id, metric) is not None
        for point in plots_line.points_of(results, plot)
        for metric in plot.y
    )


def _try(condition: Callable[[], object]) -> bool:
    """False where event files are missing: a directory can be shown without them."""
    try:
        return bool(condition())
    except Failure:
        return False


def _name(index: int, plot: Plot) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", plot.title.lower()).strip("-")
    return f"{index:02d}-{slug[:60].strip('-') or plot.kind}"


# ---- rendering ----


def svg_of(picture: Picture, prefix: str = "", bare: bool = False) -> str:
    """An <svg> element whose ids begin with PREFIX. BARE: without title and caption, as a page has
    them itself."""
    drawn = _render(picture, "svg", bare).decode("utf-8")
    return svg.tidy(drawn, prefix, plain(picture.plot.title))


def png_of(picture: Picture) -> bytes:
    """200 dots an inch."""
    return _render(picture, "png", False)


def _render(picture: Picture, format: str, bare: bool) -> bytes:
    out = io.BytesIO()
    # none, as a date or a version would make it another file each time
    names = ("Creator", "Date", "Format", "Type") if format == "svg" else ("Software",)
    metadata = dict.fromkeys(names)
    with plots_style.style(picture.name):
        figure = DRAW[picture.plot.kind](picture.results, picture.plot, bare)
        figure.savefig(out, format=format, metadata=metadata)
    return out.getvalue()


# ---- files ----


def write(
    results: Results, directory: Path, formats: Sequence[str], prefix: str = ""
) -> list[Path]:
    """Files for all pictures of RESULTS, in the place of earlier ones; their paths."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise usage(f'--plot-format: "{unknown[0]}" is none of {", ".join(FORMATS)}')
    written = []
    for picture in pictures(results):
        for name in formats:
            path = directory / f"{prefix}{picture.name}.{name}"
            files.write_in_folder(path, file_of(picture, name))
            written.append(path)
    return written


def file_of(picture: Picture, format: str) -> bytes:
    """What is in a file. ASCII, if it is text."""
    if format == "png":
        return png_of(picture)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    return (declaration + svg_of(picture)).encode("ascii", "xmlcharrefreplace")
