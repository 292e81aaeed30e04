"""Heat maps: one metric over two axes, whose values are cells at equal distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from . import plots_style as style
from .cells import metric_of
from .metrics import Metric
from .plots_scale import (
    CATEGORY,
    LINEAR,
    PLAIN_BELOW,
    Scale,
    decimal,
    product_line,
    scale_of,
    short,
    ticks,
)
from .results import Plot, Point, Results
from .tables import axis_by_name, has_failed
from .units import digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL_HEIGHT, CELL_HEIGHT_LEAST, HEIGHT_MOST = 0.42, 0.25, 5.0
BAR_WIDTH, BAR_GAP, BAR_LABELS = 0.14, 0.12, 0.45
RIGHT = BAR_GAP + BAR_WIDTH + BAR_LABELS
ANNOTATED_COLUMNS_MAX = 14
NO_LEGEND = style.Legend([], [])


@dataclass(frozen=True)
class Map:
    """Cells by row (the series axis) and column (x), ascending; None where there is no value."""

    label: str  # values of other axes, if there are any
    x: Scale
    y: Scale
    cells: list[list[float | None]]
    failed: list[tuple[int, int]]  # rows and columns


def maps(results: Results, plot: Plot, metric: Metric) -> list[Map]:
    """The metric's medians in its shown unit; one map for each combination of the other axes."""
    assert plot.series is not None
    names = (plot.x, plot.series)
    points = [p for p in results.plan.points if all(name in p.values for name in names)]
    x, y = (
        scale_of(axis_by_name(results, name), list(dict.fromkeys(p.values[name] for p in points)))
        for name in names
    )
    groups: dict[str, list[Point]] = {}
    for point in points:
        others = {name: value for name, value in point.values.items() if name not in names}
        label = ", ".join(f"{name} {value}" for name, value in others.items())
        groups.setdefault(label, []).append(point)
    empty = {label: Map(label, x, y, [], []) for label in groups}
    return [_map(results, plot, metric, empty[label], groups[label]) for label in groups]


def _map(results: Results, plot: Plot, metric: Metric, empty: Map, points: list[Point]) -> Map:
    columns, rows = ({value: i for i, value in enumerate(s.positions)} for s in (empty.x, empty.y))
    found = replace(empty, cells=[[None] * len(columns) for _ in rows], failed=[])
    for point in points:
        row, column = rows[point.values[plot.series or ""]], columns[point.values[plot.x]]
        value = results.aggregate(point.id, metric.name)
        if value is not None:
            found.cells[row][column] = value.median * metric.scale
        elif has_failed(results, point.id):
            found.failed.append((row, column))
    return found


def flight_line(found: Map, flight_bytes: int) -> list[tuple[float, float]]:
    """Where window x body is FLIGHT_BYTES, in columns and rows; empty if axes are not numbers."""
    if CATEGORY in (found.x.kind, found.y.kind):
        return []
    xs, ys = (list(scale.positions.values()) for scale in (found.x, found.y))
    return product_line(xs, ys, flight_bytes)


def flight_label(flight_bytes: int) -> str:
    """bytes in flight = 64 KiB"""
    text = short(float(flight_bytes))
    number = text.rstrip("KMGik")
    return f"bytes in flight = {number} {text[len(number):]}B"


def caption(results: Results, plot: Plot) -> str:
    """The plot's note and what the cells are."""
    failed = sum(len(found.failed) for found in maps(results, plot, metric_of(plot.y[0])))
    parts = [plot.note] if plot.note else []
    runs = max((len(results.good(point.id)) for point in results.plan.points), default=0)
    if runs > 1:
        parts.append(f"Medians of {runs} runs.")
    if failed:
        parts.append(style.failed_note(failed))
    return " ".join(parts)


# ---- drawing ----


def draw(results: Results, plot: Plot, bare: bool) -> Figure:
    """The picture; BARE without title and caption."""
    metric = metric_of(plot.y[0])
    found = maps(results, plot, metric)
    words = style.Words("", "") if bare else style.Words(plot.title, caption(results, plot))
    line = flight_line(found[0], plot.flight_bytes) if plot.flight_bytes else []
    rows = found[0].y.labels
    height = min(max(CELL_HEIGHT * len(rows), 1.5), max(HEIGHT_MOST, CELL_HEIGHT_LEAST * len(rows)))
    legend = _legend(flight_label(plot.flight_bytes)) if line and plot.flight_bytes else NO_LEGEND
    figure, boxes = style.canvas(words, len(found), height, legend, left_of(found[0].y), RIGHT)
    known = [cell for one in found for row in one.cells for cell in row if cell is not None]
    top = max(known, default=0.0) or 1.0
    for axes, one in zip(boxes, found):
        image = _cells(axes, one, top)
        for x, y, color, width in _line_layers(line):
            axes.plot(x, y, color=color, linewidth=width, solid_capstyle="round")
        _axes(axes, one, _label(results, plot))
        style.panel_label(axes, f"{metric.label}; {one.label}" if one.label else metric.label)
        _bar(figure, axes, image, top)
    boxes[-1].set_xlabel(axis_by_name(results, plot.x).label)
    return figure


def left_of(scale: Scale) -> float:
    """Room for the labels of the rows and of their axis."""
    return 0.45 + style.CHARACTER * max(map(len, scale.labels.values()), default=1)


def axes_width(scale: Scale) -> float:
    """What is left for the cells."""
    return style.WIDTH - left_of(scale) - RIGHT


def _label(results: Results, plot: Plot) -> str:
    assert plot.series is not None
    return axis_by_name(results, plot.series).label


def _line_layers(line: list[tuple[float, float]]) -> list[tuple[Any, Any, str, float]]:
    """White below black: seen on dark cells and on bright ones."""
    if not line:
        return []
    x, y = zip(*line)
    return [(x, y, "white", 3.4), (x, y, "black", 1.5)]


def _legend(label: str) -> style.Legend:
    from matplotlib.lines import Line2D

    return style.Legend([Line2D([], [], color="black", linewidth=1.5)], [label])


def _cells(axes: Axes, found: Map, top: float) -> Any:
    """Draws and annotates them, with colours from 0 to TOP; the image is for the colour bar."""
    import numpy as np

    values = np.array([[np.nan if c is None else c for c in row] for row in found.cells], float)
    columns, rows = values.shape[1], values.shape[0]
    edges = (np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5)
    image = axes.pcolormesh(*edges, values, cmap="viridis", vmin=0.0, vmax=top, linewidth=0)
    if columns <= ANNOTATED_COLUMNS_MAX:
        _annotate(axes, found, top)
    for row, column in found.failed:
        axes.plot(column, row, "x", color="black", markersize=7)
    return image


def _annotate(axes: Axes, found: Map, top: float) -> None:
    for row, cells in enumerate(found.cells):
        for column, value in enumerate(cells):
            if value is not None:
                color = "white" if value < 0.6 * top else "black"
                text = _number(value, top)
                axes.text(column, row, text, ha="center", va="center", size=7, color=color)


def _number(value: float, top: float) -> str:
    """Three digits; all of a map alike."""
    return digits(value, 3) if top < PLAIN_BELOW else decimal(value)


def _axes(axes: Axes, found: Map, y_label: str) -> None:
    axes.grid(False)
    axes.set_xlim(-0.5, len(found.x.positions) - 0.5)
    axes.set_ylim(-0.5, len(found.y.positions) - 0.5)
    columns = {value: float(index) for index, value in enumerate(found.x.positions)}
    places = ticks(Scale(LINEAR, columns, found.x.labels), axes_width(found.y), style.CHARACTER)
    axes.set_xticks([place for place, _ in places], [label for _, label in places])
    axes.set_yticks(range(len(found.y.labels)), list(found.y.labels.values()))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_ylabel(y_label, labelpad=6)


def _bar(figure: Figure, axes: Axes, image: Any, top: float) -> None:
    box = axes.get_position()
    place = (box.x1 + BAR_GAP / style.WIDTH, box.y0, BAR_WIDTH / style.WIDTH, box.height)
    bar = figure.colorbar(
        image, cax=figure.add_axes(place), format=lambda value, _: _number(value, top)
    )
    bar.outline.set_visible(False)
    bar.ax.grid(False)
