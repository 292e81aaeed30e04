"""Line plots: metrics over one axis, a line for each value of another."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import plots_style as style
from .cells import metric_of
from .metrics import Metric
from .plots_scale import (
    CATEGORY,
    LINEAR,
    LOG,
    LOG_RATIO,
    SYMLOG,
    Scale,
    decimal,
    is_time,
    scale_of,
    short_time,
    ticks,
)
from .results import Plot, Point, Results
from .tables import axis_by_name, has_failed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT_ALONE, HEIGHT_OF_SEVERAL = 2.6, 1.75
CATEGORIES_MAX = 12  # of which each has a label
MARGIN = 0.03  # of the x axis, at either end


@dataclass(frozen=True)
class Mark:
    """A point of a line: x as the scale has it, y in the metric's shown unit."""

    x: float
    median: float
    values: tuple[float, ...]  # of all good repetitions


@dataclass(frozen=True)
class Line:
    """Marks by ascending x."""

    label: str
    marks: tuple[Mark, ...]


def points_of(results: Results, plot: Plot) -> list[Point]:
    """Those that have a place on the x axis."""
    return [point for point in results.plan.points if plot.x in point.values]


def other_axes(results: Results, plot: Plot) -> list[str]:
    """Axes that make lines: the series, and all others but x that have several values."""
    names = [axis.name for axis in results.plan.axes if axis.name not in (plot.x, plot.series)]
    several = [
        name for name in names if len({point.values.get(name) for point in results.plan.points}) > 1
    ]
    return ([plot.series] if plot.series else []) + several


def label_of(point: Point, names: Sequence[str]) -> str:
    """Of the line that a point is on."""
    if len(names) == 1:
        return point.values.get(names[0], "-")
    return ", ".join(f"{name} {point.values.get(name, '-')}" for name in names)


def scale_for(results: Results, plot: Plot) -> Scale:
    """Of the x axis."""
    values = dict.fromkeys(point.values[plot.x] for point in points_of(results, plot))
    return scale_of(axis_by_name(results, plot.x), list(values))


def lines(results: Results, plot: Plot, metric: Metric, scale: Scale) -> list[Line]:
    """Lines of the points at which the metric exists, in the order of the points."""
    names = other_axes(results, plot)
    found: dict[str, list[Mark]] = {}
    for point in points_of(results, plot):
        marks = found.setdefault(label_of(point, names), [])
        value = results.aggregate(point.id, metric.name)
        if value is not None:
            shown = tuple(v * metric.scale for v in value.values)
            marks.append(
                Mark(scale.positions[point.values[plot.x]], value.median * metric.scale, shown)
            )
    return [
        Line(label, tuple(sorted(marks, key=lambda mark: mark.x))) for label, marks in found.items()
    ]


def failed_at(results: Results, plot: Plot, scale: Scale) -> list[float]:
    """Positions of the points at which no run was good and one failed, each point once."""
    return [
        scale.positions[point.values[plot.x]]
        for point in points_of(results, plot)
        if has_failed(results, point.id)
    ]


def is_log(found: Sequence[Line], scale: Scale) -> bool:
    """Whether y is better logarithmic; never where bars stand on it."""
    values = [value for line in found for mark in line.marks for value in mark.values]
    if not values or min(values) <= 0 or scale.kind == CATEGORY:
        return False
    return max(values) >= LOG_RATIO * min(values)


def caption(results: Results, plot: Plot, failed: Sequence[float]) -> str:
    """The plot's note, and what its marks mean."""
    runs = max((len(results.good(p.id)) for p in points_of(results, plot)), default=0)
    parts = [plot.note] if plot.note else []
    empty = [metric.label for metric in map(metric_of, plot.y) if not _exists(results, metric)]
    if empty:
        parts.append(f"There is no value of: {'; '.join(empty)}.")
    if runs > 1:
        dots = "; dots are the others" if runs > 3 else ""
        parts.append(f"Medians of {runs} runs; bars reach from the least to the greatest{dots}.")
    if failed:
        parts.append(style.failed_note(len(failed)))
    return " ".join(parts)


def tick_places(scale: Scale) -> list[tuple[float, str]]:
    """Positions of ticks that are at values, and their labels; those of categories are broken."""
    width = style.WIDTH - style.LEFT - style.RIGHT
    if scale.kind == CATEGORY and len(scale.positions) <= CATEGORIES_MAX:
        room = max(int(width / len(scale.positions) / style.CHARACTER) - 1, 4)
        labels = {value: "\n".join(textwrap.wrap(value, room)) for value in scale.positions}
        return [(position, labels[value]) for value, position in scale.positions.items()]
    return ticks(scale, width, style.CHARACTER)


def x_limits(scale: Scale) -> tuple[float, float]:
    """A little beyond the outer positions, as the scale has it."""
    positions = list(scale.positions.values())
    low, high = min(positions), max(positions)
    if scale.kind == CATEGORY:
        return low - 0.6, high + 0.6
    if low == high:
        return (low / 2, low * 2) if scale.kind == LOG else (low - 1, low + 1)
    if scale.kind == LINEAR:
        return low - MARGIN * (high - low), high + MARGIN * (high - low)
    least = scale.least_positive
    ratio = (high / least) ** MARGIN
    return (low / ratio if scale.kind == LOG else -0.3 * least), high * ratio


def _exists(results: Results, metric: Metric) -> bool:
    return any(results.aggregate(p.id, metric.name) is not None for p in results.plan.points)


# ---- drawing ----


def draw(results: Results, plot: Plot, bare: bool) -> Figure:
    """The picture; BARE without title and caption."""
    scale = scale_for(results, plot)
    metrics = [metric for metric in map(metric_of, plot.y) if _exists(results, metric)]
    failed = failed_at(results, plot, scale)
    panels = [(metric, lines(results, plot, metric, scale)) for metric in metrics]
    words = style.Words("", "") if bare else style.Words(plot.title, caption(results, plot, failed))
    height = HEIGHT_ALONE if len(panels) == 1 else HEIGHT_OF_SEVERAL
    legend = _legend(results, plot, [line.label for line in panels[0][1]], failed, scale)
    places = tick_places(scale)
    lines_of_ticks = 1 + max(label.count("\n") for _, label in places)
    figure, boxes = style.canvas(words, len(panels), height, legend, tick_lines=lines_of_ticks)
    for axes, (metric, found) in zip(boxes, panels):
        _panel(axes, metric, found, scale)
        _mark_failed(axes, failed)
    _x_axis(boxes[-1], scale, axis_by_name(results, plot.x).label)
    return figure


def _legend(
    results: Results, plot: Plot, labels: Sequence[str], failed: Sequence[float], scale: Scale
) -> style.Legend:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = other_axes(results, plot)
    handles: list[Any] = []
    for index in range(len(labels) if names else 0):
        look = style.look(index)
        handles.append(
            Patch(facecolor=look.color, edgecolor="black", hatch=_hatch(index))
            if scale.kind == CATEGORY
            else Line2D([], [], color=look.color, marker=look.marker, linestyle=look.dashes)
        )
    title = axis_by_name(results, names[0]).label if len(names) == 1 else ", ".join(names)
    shown = list(labels) if names else []
    if failed:
        handles.append(Line2D([], [], color="black", marker="x", linestyle="", markersize=6))
        shown.append("failed")
    return style.Legend(handles, shown, title if names else "")


def _panel(axes: Axes, metric: Metric, found: Sequence[Line], scale: Scale) -> None:
    for index, line in enumerate(found):
        if scale.kind == CATEGORY:
            _bars(axes, line, index, len(found))
        else:
            _line(axes, line, index)
    style.panel_label(axes, metric.label)
    values = [value for line in found for mark in line.marks for value in mark.values]
    style.y_axis(axes, min(values, default=0.0), max(values, default=0.0), is_log(found, scale))
    if scale.kind == CATEGORY:
        axes.grid(False, axis="x")


def _line(axes: Axes, line: Line, index: int) -> None:
    look = style.look(index)
    xs, medians = [m.x for m in line.marks], [m.median for m in line.marks]
    below = [m.median - min(m.values) for m in line.marks]
    above = [max(m.values) - m.median for m in line.marks]
    axes.errorbar(
        xs,
        medians,
        yerr=[below, above] if any(below) or any(above) else None,
        color=look.color,
        marker=look.marker,
        linestyle=look.dashes,
        markeredgecolor="white",
        markeredgewidth=0.5,
        elinewidth=1.1,
        zorder=3,
    )
    _dots(axes, [(m.x, value) for m in line.marks for value in _shown(m)], look)


def _shown(mark: Mark) -> tuple[float, ...]:
    """Repetitions that bar and median do not show already."""
    return tuple(sorted(mark.values)[1:-1]) if len(mark.values) > 3 else ()


def _dots(axes: Axes, dots: Sequence[tuple[float, float]], look: style.Look) -> None:
    """One for each."""
    if dots:
        xs, ys = zip(*dots)
        axes.plot(xs, ys, ".", color=look.color, markersize=3, alpha=0.4, zorder=2, mew=0)


def _hatch(index: int) -> str:
    return ("", "///", "xxx", "---", "\\\\\\", "|||", "+++")[index % 7]


def _bars(axes: Axes, line: Line, index: int, count: int) -> None:
    """Of one series: beside those of the others, at each category."""
    look = style.look(index)
    width = 0.7 / count
    shift = (index - (count - 1) / 2) * width
    for mark in line.marks:
        place = mark.x + shift
        errors = [[mark.median - min(mark.values)], [max(mark.values) - mark.median]]
        axes.bar(
            place,
            mark.median,
            0.92 * width,
            color=look.color,
            alpha=0.75,
            hatch=_hatch(index),
            edgecolor="black",
            linewidth=0.6,
            yerr=errors if any(e[0] for e in errors) else None,
            error_kw={"elinewidth": 1.0, "capsize": 3},
        )
    dots = [(m.x + shift, value) for m in line.marks for value in _shown(m)]
    _dots(axes, dots, style.Look("#000000", "o", "-"))


def _mark_failed(axes: Axes, failed: Sequence[float]) -> None:
    if failed:
        axes.plot(
            failed,
            [0.035] * len(failed),
            "x",
            color="black",
            markersize=6,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            zorder=4,
        )


def _x_axis(axes: Axes, scale: Scale, label: str) -> None:
    """Its scale, ticks and label; axes above share it."""
    from matplotlib.ticker import MaxNLocator

    positions = list(scale.positions.values())
    if scale.kind == LOG:
        axes.set_xscale("log")
    elif scale.kind == SYMLOG:
        axes.set_xscale("symlog", linthresh=scale.least_positive, linscale=1.0)
    if scale.kind == LINEAR and len(positions) > 6:
        time = all(is_time(value) or position == 0 for value, position in scale.positions.items())
        axes.xaxis.set_major_locator(MaxNLocator(12, steps=(1, 2, 5, 10)))
        axes.xaxis.set_major_formatter(lambda x, _: short_time(x) if time else decimal(x))
    else:
        places = tick_places(scale)
        axes.set_xticks([position for position, _ in places], [text for _, text in places])
        axes.set_xticks([], minor=True)
    axes.set_xlim(*x_limits(scale))
    axes.set_xlabel(label)
