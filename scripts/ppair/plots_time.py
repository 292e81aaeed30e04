"""Pictures from a run's own event files: distributions by percentile, and numbers over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import plots_style as style, run_files
from .cells import metric_of
from .events import Event
from .histogram import Histogram, bucket_width
from .metrics import PRIMARY
from .plots_scale import LOG_RATIO
from .programs import PRECV, PSEND
from .results import Plot, Results, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_POINTS_MAX = 300  # of a distribution
NINES_MAX = 1e6  # where its axis ends: 99.9999
BINS_MAX = 400  # of a time line
RUNS_MAX = 6  # lines in a time line
POINTS_MAX = 3  # of a result, if distributions are to be shown
INTERVALS_LEAST = 5
CURVES = (
    (PRECV, "latency_ns", "latency"),
    (PSEND, "settlement_ns", "settlement"),
    (PSEND, "round_trip_ns", "round trip"),  # of --round-trip alone
)


# ---- distributions ----


@dataclass(frozen=True)
class Curve:
    """Pairs of 1 / (1 - share of the values at or below) and a value in us, ascending."""

    label: str
    points: tuple[tuple[float, float], ...]


def curve(label: str, found: Histogram) -> Curve:
    """Up to the maximum, which stands at as many values as there are."""
    if not found.counts or found.max_ns is None or found.min_ns is None:
        return Curve(label, ())
    count, seen = found.count, 0
    points = [(1.0, found.min_ns / 1e3)]
    for lowest in sorted(found.counts):
        seen += found.counts[lowest]
        value = min(lowest + bucket_width(lowest) - 1, found.max_ns)
        points.append((count / max(count - seen, 1), value / 1e3))
    return Curve(label, tuple(_thinned(points)))


def _thinned(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """No two closer than the eye can tell on the logarithmic axis; first and last are kept."""
    step = math.log(points[-1][0]) / CURVE_POINTS_MAX
    last = -math.inf
    for index, (inverse, value) in enumerate(points):
        if math.log(inverse) - last >= step or index == len(points) - 1:
            last = math.log(inverse)
            yield inverse, value


def distribution_curves(results: Results) -> list[Curve]:
    """Of each point, over all good runs together: latency, settlement and round trips."""
    found = []
    for point in results.plan.points if len(results.plan.points) <= POINTS_MAX else ():
        where = f", {point.label}" if len(results.plan.points) > 1 else ""
        for program, member, name in CURVES:
            merged = run_files.merged_histogram(results, results.good(point.id), program, member)
            found.append(curve(name + where, merged))
    return [one for one in found if one.points]


def draw_distribution(results: Results, plot: Plot, bare: bool) -> Figure:
    """Percentiles on a logarithmic axis of 1 / (1 - p)."""
    words = style.Words("", "") if bare else style.Words(plot.title, plot.note)
    curves = distribution_curves(results)
    looks = [style.look(index) for index in range(len(curves))]
    return draw_curves(curves, looks, words)


def draw_curves(
    curves: Sequence[Curve],
    looks: Sequence[style.Look],
    words: style.Words,
    title: str = "",
    height: float = 2.6,
) -> Figure:
    """Each in its look; TITLE is that of the legend."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=look.color, linestyle=look.dashes) for look in looks]
    legend = style.Legend(handles, [one.label for one in curves], title)
    figure, (axes,) = style.canvas(words, 1, height, legend, right=0.35)
    for one, look in zip(curves, looks):
        xs, ys = zip(*one.points)
        # all values of a bucket are shown as its highest
        axes.plot(xs, ys, color=look.color, linestyle=look.dashes, drawstyle="steps-pre")
    _percentile_axis(axes, max(one.points[-1][0] for one in curves))
    values = [value for one in curves for _, value in one.points if value > 0]
    style.y_axis(axes, 0.0, max(values), max(values) >= LOG_RATIO * min(values))
    style.panel_label(axes, "time, us")
    return figure


def _percentile_axis(axes: Axes, last: float) -> None:
    nines = int(math.log10(max(min(last, NINES_MAX), 10.0)) + 1e-9)
    places = [1.0, 2.0, *(10.0**n for n in range(1, nines + 1))]
    shares = [(100 * (1 - 10.0**-n), max(n - 2, 0)) for n in range(1, nines + 1)]
    labels = ["0", "50", *(f"{share:.{decimals}f}" for share, decimals in shares)]
    axes.set_xscale("log")
    axes.set_xlim(1, max(min(last, NINES_MAX), 10.0))
    axes.set_xticks(places, labels)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("percentile")


# ---- time ----


@dataclass(frozen=True)
class Source:
    """How a metric is read from intervals: whose, and how several of them make one number."""

    program: str
    value: Callable[[Event], float | None]
    greatest: bool = False  # of intervals in a bin, and of instances; else their mean, and sum


def _member(*names: str) -> Callable[[Event], float | None]:
    def value(event: Event) -> float | None:
        found: Any = event
        for name in names:
            found = found[name]
        return None if found is None else float(found)

    return value


SOURCES = {
    PRIMARY: Source(PRECV, _member("messages_per_s")),
    "bytes_per_s": Source(PRECV, _member("bytes_per_s")),
    "psend_cpu_percent": Source(PSEND, _member("cpu", "percent")),
    "precv_cpu_percent": Source(PRECV, _member("cpu", "percent")),
    "psend_rss_bytes": Source(PSEND, _member("rss_bytes"), True),
    "precv_rss_bytes": Source(PRECV, _member("rss_bytes"), True),
    "latency_p50_ns": Source(PRECV, _member("latency_ns", "p50"), True),
    "latency_p99_ns": Source(PRECV, _member("latency_ns", "p99"), True),
    "latency_max_ns": Source(PRECV, _member("latency_ns", "max"), True),
    "settlement_p99_ns": Source(PSEND, _member("settlement_ns", "p99"), True),
}


def timeline(results: Results, run: Run, name: str) -> list[tuple[float, float]]:
    """An end of an interval in s since measuring began, and the metric in its shown unit.

    The warm-up is left out, and what was cut short. Intervals of several instances are put together
    by their order, and several to a bin if there are very many.
    """
    source, scale = SOURCES[name], metric_of(name).scale
    instances = [
        _binned(list(_samples(run_files.read(results, run, peer), source)), source.greatest)
        for peer in run_files.peers(run, source.program)
    ]
    found = []
    for samples in zip(*instances):
        values = [value for _, _, value in samples]
        found.append(
            (samples[0][1], scale * (max(values) if source.greatest else math.fsum(values)))
        )
    return found


Sample = tuple[float, float, float]  # start, end, value


def _samples(found: Iterator[Event], source: Source) -> Iterator[Sample]:
    for event in found:
        if event["event"] == "interval" and not event["warmup"] and not event["partial"]:
            value = source.value(event)
            if value is not None:
                yield event["start_s"], event["end_s"], value


def _binned(samples: Sequence[Sample], greatest: bool) -> list[Sample]:
    """At most BINS_MAX."""
    size = -(-len(samples) // BINS_MAX) or 1
    return [_bin(samples[i : i + size], greatest) for i in range(0, len(samples), size)]


def _bin(samples: Sequence[Sample], greatest: bool) -> Sample:
    start, end = samples[0][0], samples[-1][1]
    if greatest:
        return start, end, max(value for _, _, value in samples)
    whole = math.fsum(stop - begin for begin, stop, _ in samples)
    return start, end, math.fsum((stop - begin) * v for begin, stop, v in samples) / whole


def timelines(results: Results, name: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Of the first good runs, by their name."""
    good = [run for point in results.plan.points for run in results.good(point.id)][:RUNS_MAX]
    points = {point.id: point.label for point in results.plan.points}
    found = []
    for run in good:
        number = f"repetition {run.repetition + 1}"
        label = f"{points[run.point]}, {number}" if points[run.point] else number
        found.append((label, timeline(results, run, name)))
    return [(label, line) for label, line in found if line]


def has_timeline(results: Results) -> bool:
    """Whether there are intervals enough for a picture."""
    good = [run for point in results.plan.points for run in results.good(point.id)]
    return any(len(timeline(results, run, PRIMARY)) >= INTERVALS_LEAST for run in good[:1])


def draw_time(results: Results, plot: Plot, bare: bool) -> Figure:
    """Metrics over time, one panel each."""
    from matplotlib.lines import Line2D

    panels = [(metric_of(name), timelines(results, name)) for name in plot.y if name in SOURCES]
    end_s = max((line[-1][0] for _, found in panels for _, line in found), default=1.0)
    unit, unit_s = next(((n, s) for n, s in (("h", 3600), ("min", 60)) if end_s >= 5 * s), ("s", 1))
    labels = [label for label, _ in panels[0][1]] if panels else []
    looks = [style.look(index) for index in range(len(labels))]
    handles = [Line2D([], [], color=look.color, linestyle=look.dashes) for look in looks]
    legend = style.Legend(handles, labels) if len(labels) > 1 else style.Legend([], [])
    words = style.Words("", "") if bare else style.Words(plot.title, plot.note)
    figure, boxes = style.canvas(words, len(panels), 1.6 if len(panels) > 1 else 2.4, legend)
    for axes, (metric, found) in zip(boxes, panels):
        for look, (_, line) in zip(looks, found):
            xs = [time_s / unit_s for time_s, _ in line]
            axes.plot(xs, [v for _, v in line], color=look.color, linestyle=look.dashes, lw=1.2)
        style.panel_label(axes, metric.label)
        style.y_axis(axes, 0.0, max((v for _, line in found for _, v in line), default=0.0), False)
    boxes[-1].set_xlabel(f"time since measuring began, {unit}")
    return figure
