"""Pictures of `ppair latency`: latency against load, and the percentiles of each step.

Steps are as findings have them, see latency_tables.py; curves are made from event files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import plots_style as style, plots_time, run_files
from .loads import AXIS, CLOSED
from .plots_scale import decimal
from .plots_time import Curve
from .programs import PRECV, PSEND
from .results import Plot, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LATENCIES = ("p50", "p90", "p99", "p99.9", "max")
SETTLED = ("settlement_p99_ns", "p99 from sending")
MARGIN = 1.04  # of the x axis, beyond the last step
RAMP = ("#9ecae1", "#4292c6", "#08519c", "#041f4a")  # light to dark: more load
OVERLOAD = ("#D55E00", "#7f2704")  # steps that the path did not keep up with
OMISSION = (
    "The same overload by two clocks, and what a closed loop shows that is as fast as it can: "
    "it delays the messages that would have had to wait, and does not count their wait."
)

Step = dict[str, Any]


# ---- what there is ----


def found(results: Results) -> dict[str, Any]:
    """What latency has found; empty if it was ended before that."""
    value = results.findings.get("latency")
    return dict(value) if value else {}


def steps(results: Results) -> list[Step]:
    """Those that have been measured, by rate."""
    measured = [s for s in found(results).get("steps", ()) if s["latency_ns"]["max"] is not None]
    return sorted(measured, key=lambda step: float(step["offered_per_s"]))


def _curve(results: Results, label: str, point: int, program: str) -> Curve:
    merged = run_files.merged_histogram(results, results.good(point), program)
    return plots_time.curve(label, merged)


def step_curves(results: Results) -> list[Curve]:
    """Latency of each step."""
    made = [_curve(results, s["label"], s["point"], PRECV) for s in steps(results)]
    return [one for one in made if one.points]


def _overloaded(results: Results) -> Step | None:
    """The highest step that the path has not kept up with."""
    return next((s for s in reversed(steps(results)) if not s["kept_up"]), None)


def omission_curves(results: Results) -> list[Curve]:
    """Of an overloaded step, as it was and as a closed loop would see it; and a closed loop."""
    over = _overloaded(results)
    if over is None:
        return []
    loop = next((p.id for p in results.plan.points if p.values.get(AXIS) == CLOSED), None)
    label, point = over["label"], over["point"]
    made = [
        _curve(results, f"open loop, {label}: from when due to received", point, PRECV),
        _curve(results, "the same run: from sent to settled", point, PSEND),
    ]
    if loop is not None:
        made.append(_curve(results, "closed loop: from sent to received", loop, PRECV))
        made.append(_curve(results, "closed loop: from sent to settled", loop, PSEND))
    return [one for one in made if one.points]


def caption(results: Results, plot: Plot) -> str:
    """What stands below a plot, in its file or on a page."""
    return {"load": _load_caption, "percentiles": _percentiles_caption}.get(
        plot.kind, lambda _: OMISSION
    )(results)


# ---- latency against load ----


def draw_load(results: Results, plot: Plot, bare: bool) -> Figure:
    """Percentiles on a logarithmic axis over the offered rate, and its share of the highest."""
    from matplotlib.lines import Line2D

    shown = steps(results)
    rows = [(name, [s["latency_ns"][name] for s in shown]) for name in LATENCIES]
    member, label = SETTLED
    rows.append((label, [s[member] for s in shown]))
    rows = [(name, values) for name, values in rows if any(v is not None for v in values)]
    looks = [style.look(index) for index in range(len(rows))]
    handles = [
        Line2D([], [], color=each.color, marker=each.marker, linestyle=each.dashes)
        for each in looks
    ]
    words = style.Words("", "") if bare else style.Words(plot.title, caption(results, plot))
    legend = style.Legend(handles, [name for name, _ in rows])
    figure, (axes,) = style.canvas(words, 1, 3.2, legend)
    rates = [s["offered_per_s"] for s in shown]
    for each, (_, values) in zip(looks, rows):
        _line(axes, shown, values, each)
    known = [v / 1e3 for _, values in rows for v in values if v]
    style.y_axis(axes, min(known), max(known), True)
    axes.set_xlim(0, MARGIN * max(rates))
    axes.xaxis.set_major_formatter(lambda x, _: decimal(x) if x else "0")
    axes.set_xlabel("offered rate, messages per second")
    style.panel_label(axes, "latency, us")
    _limits(axes, results)
    return figure


def _line(
    axes: Axes, shown: Sequence[Step], values: Sequence[int | None], each: style.Look
) -> None:
    """Marks are hollow where the path did not keep up."""
    places = [(s, v / 1e3) for s, v in zip(shown, values) if v is not None]
    xs, ys = [s["offered_per_s"] for s, _ in places], [v for _, v in places]
    axes.plot(xs, ys, color=each.color, linestyle=each.dashes, zorder=3)
    for kept_up in (True, False):
        some = [(s["offered_per_s"], v) for s, v in places if bool(s["kept_up"]) == kept_up]
        if some:
            axes.plot(
                *zip(*some),
                each.marker,
                color=each.color,
                markerfacecolor=each.color if kept_up else "white",
                zorder=4,
            )


def _limits(axes: Axes, results: Results) -> None:
    """The highest rate, shares of it above the panel, and what was asked of the latency."""
    numbers = found(results)
    most = numbers.get("sustainable_per_s")
    if not most:
        return
    axes.axvline(most, color="#555555", lw=1.0, ls=(0, (4, 2)), zorder=1)
    percent = (lambda x: 100 * x / most, lambda p: p * most / 100)
    above = axes.secondary_xaxis("top", functions=percent)
    above.set_xticks(range(0, 1001, 20))
    above.xaxis.set_major_formatter(lambda x, _: f"{x:.0f} %")
    above.spines["top"].set_visible(False)
    above.tick_params(length=0, pad=1, labelcolor="#555555")
    axes.set_title(axes.get_title("left"), loc="left", pad=16)
    slo = numbers.get("slo")
    if slo:
        axes.axhline(slo["limit_ns"] / 1e3, color="#B00000", lw=1.0, ls=":", zorder=1)
        if slo["per_s"] and not slo["every"]:
            axes.axvline(slo["per_s"], color="#B00000", lw=1.0, ls=":", zorder=1)


def _load_caption(results: Results) -> str:
    numbers, shown = found(results), steps(results)
    parts = ["Latency is from when a message was due. Dashed: the highest rate that is sustained."]
    if any(not step["kept_up"] for step in shown):
        parts.append("Hollow: not kept up; the longer that lasts, the higher they are.")
    if any(step[SETTLED[0]] is not None for step in shown):
        parts.append("From sending: settlement, which leaves out the wait before a send.")
    if numbers.get("slo"):
        parts.append(f"Dotted: what was asked for, of {numbers['slo']['name']}.")
    return " ".join(parts)


# ---- percentiles ----


def draw_percentiles(results: Results, plot: Plot, bare: bool) -> Figure:
    """All steps, the darker the more load."""
    curves = step_curves(results)
    kept = {step["label"]: bool(step["kept_up"]) for step in steps(results)}
    good = [one.label for one in curves if kept[one.label]]
    bad = [one.label for one in curves if not kept[one.label]]
    looks = [
        style.Look(_shade(RAMP, good.index(one.label), len(good)), "", "-")
        if kept[one.label]
        else style.Look(_shade(OVERLOAD, bad.index(one.label), len(bad)), "", (0, (5, 2)))
        for one in curves
    ]
    words = style.Words("", "") if bare else style.Words(plot.title, caption(results, plot))
    return plots_time.draw_curves(curves, looks, words, "load", 3.0)


def _percentiles_caption(results: Results) -> str:
    drawn = {one.label for one in step_curves(results)}
    bad = any(not step["kept_up"] for step in steps(results) if step["label"] in drawn)
    return "Latency from when a message was due, at shares of the highest rate sustained." + (
        " Dashed: the path did not keep up." if bad else ""
    )


def _shade(ramp: Sequence[str], index: int, count: int) -> str:
    """Along the RAMP."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    place = index / (count - 1) if count > 1 else 1.0
    return str(to_hex(LinearSegmentedColormap.from_list("load", list(ramp))(place)))


def draw_omission(results: Results, plot: Plot, bare: bool) -> Figure:
    """What is measured from the actual sending leaves out the wait before it."""
    curves = omission_curves(results)
    looks = [style.look(index) for index in range(len(curves))]
    words = style.Words("", "") if bare else style.Words(plot.title, caption(results, plot))
    return plots_time.draw_curves(curves, looks, words)
