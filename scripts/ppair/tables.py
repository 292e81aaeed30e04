"""The tables of a results directory: points, repetitions, warnings, environment.

A point's number is the median over its good repetitions. That holds for percentiles too, which are
never averaged; mean and spread are given for rates and the like alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from . import clock_error, phases
from .axes import Axis
from .cells import decimals_of, fixed, metric_of, percent, shown, shown_column
from .metrics import KNOWN, METRICS, NOT_ZERO, PRIMARY, Metric
from .provenance import environment_table
from .results import COMPLETE, FAILED, GOOD, Aggregate, Results, Run
from .table import FAILED as FAILED_CELL
from .table import (
    MISSING,
    Column,
    Table,
    escape_markdown,
    make,
    of_columns,
    plain,
    to_csv,
    to_markdown,
    to_text,
)
from .units import digits

__all__ = ["Table", "make", "plain", "to_csv", "to_markdown", "to_text"]

LIMIT = "limited by"
STATISTICS = ("median", "mean", "stddev", "spread %")
MEDIAN_NOTE = "Every number is the median of a point's good runs"
SPREAD_NOTE = "mean and spread (standard deviation / mean) are those of msg/s"
WHYS_MAX = 8


# ---- which columns ----


def columns(results: Results) -> list[Metric]:
    """The plan's metrics; or the rate, and all of which a run has something to show."""
    if results.plan.metrics:
        return [metric_of(name) for name in results.plan.metrics]
    good = [run.metrics for run in results.runs if run.status == GOOD]
    return [metric for metric in METRICS if metric.name == PRIMARY or _is_seen(metric, good)]


def _is_seen(metric: Metric, runs: Sequence[Mapping[str, Any]]) -> bool:
    values = [run.get(metric.name) for run in runs]
    if metric.seen is KNOWN:
        return any(value is not None for value in values)
    return metric.seen is NOT_ZERO and any(values)


def median_run(results: Results, point: int) -> Run | None:
    """The good run with the median rate; the lower of two in the middle."""
    runs = sorted(results.good(point), key=lambda run: run.metrics.get(PRIMARY) or 0.0)
    return runs[(len(runs) - 1) // 2] if runs else None


# ---- points ----


def wanted(results: Results, point: int) -> int:
    """How many runs of a point were planned, or else begun."""
    planned = sum(1 for entry in results.plan.order if entry[0] == point)
    return max(planned, len(results.of_point(point)))


def is_single(results: Results) -> bool:
    """Whether nothing was varied, as by `run`."""
    return len(results.plan.points) == 1 and not results.plan.axes


def main_table(results: Results) -> Table:
    """One row a point; of a single one, one row a repetition, and what they have in common."""
    if is_single(results):
        return _run_table(results)
    metrics = columns(results)
    named = _value_columns(results) + _metric_columns(results, metrics)
    notes = [_note(metrics), *_notes(results)]
    return of_columns(_title(results), named, notes)


def _title(results: Results) -> str:
    state = "" if results.status == COMPLETE else f" ({results.status})"
    return results.plan.title + state


def _note(metrics: Sequence[Metric]) -> str:
    percentiles = "" if all(metric.averaged for metric in metrics) else ", percentiles included"
    spread = f"; {SPREAD_NOTE}" if any(m.name == PRIMARY for m in metrics) else ""
    return f"{MEDIAN_NOTE}{percentiles}{spread}."


def _value_columns(results: Results) -> list[Column]:
    points = results.plan.points
    return [
        (axis.label, [point.values.get(axis.name, MISSING) for point in points])
        for axis in results.plan.axes
    ]


def _metric_columns(results: Results, metrics: Sequence[Metric]) -> list[Column]:
    """A cell for each point; `failed` in the first column where no run was good."""
    points = results.plan.points
    found: list[Column] = []
    for metric in metrics:
        of_points = [results.aggregate(point.id, metric.name) for point in points]
        medians = [a.median if a else None for a in of_points]
        found.append((metric.heading, shown_column(medians, metric)))
        if metric.name == PRIMARY and any(a and len(a.values) > 1 for a in of_points):
            means = [a.mean if a else None for a in of_points]
            found.append(("mean", shown_column(means, metric)))
            spreads = [a.spread_percent if a else None for a in of_points]
            found.append(("spread %", [percent(spread) for spread in spreads]))
    for row, point in enumerate(points):
        if has_failed(results, point.id):
            found[0][1][row] = FAILED_CELL
    if any(len(results.good(p.id)) != wanted(results, p.id) for p in points):
        counts = [f"{len(results.good(p.id))}/{wanted(results, p.id)}" for p in points]
        found.append(("good runs", counts))
    return [*found, (LIMIT, [_limit(results, p.id) for p in points])]


def has_failed(results: Results, point: int) -> bool:
    """Whether no run of it was good, and one failed."""
    return not results.good(point) and any(r.status == FAILED for r in results.of_point(point))


def _limit(results: Results, point: int) -> str:
    middle = median_run(results, point)
    return middle.metrics.get("limited_by") or MISSING if middle else MISSING


def _notes(results: Results) -> list[str]:
    """Of what all good runs share, and of those that are not good."""
    good = [run.facts for run in results.runs if run.status == GOOD]
    return [*clock_error.notes(good), *phases.notes(good), *failure_notes(results)]


def failure_notes(results: Results) -> list[str]:
    """What failed and why, the same reasons together; and what is still to be run."""
    whys: dict[str, list[str]] = {}
    for point in results.plan.points:
        runs = results.of_point(point.id)
        counts = Counter((r.status, r.why or "no reason given") for r in runs if r.status != GOOD)
        for (status, why), count in counts.items():
            where = f"{point.label}: " if point.values else ""
            whys.setdefault(f"{status}: {why}", []).append(f"{where}{count} of {len(runs)} runs")
    notes = [_why_note(reason, places) for reason, places in whys.items()]
    if len(notes) > WHYS_MAX:
        notes[WHYS_MAX:] = [f"... and {len(notes) - WHYS_MAX} more reasons"]
    left = len(results.left())
    if left and results.status != COMPLETE:
        notes.append(f"{left} of {len(results.plan.order)} runs have not been done.")
    return notes


def _why_note(reason: str, places: Sequence[str]) -> str:
    some = "; ".join(places[:3])
    more = f"; and {len(places) - 3} more points" if len(places) > 3 else ""
    return f"{reason} ({some}{more})"


# ---- repetitions ----


def repetitions_table(results: Results) -> Table:
    """Every run of every point."""
    axes, metrics = results.plan.axes, columns(results)
    pairs = [(point, run) for point in results.plan.points for run in results.of_point(point.id)]
    named: list[Column] = [
        (axis.label, [point.values.get(axis.name, MISSING) for point, _ in pairs]) for axis in axes
    ]
    named.append(("run", [run.folder for _, run in pairs]))
    named += _run_columns([run for _, run in pairs], metrics)
    return of_columns("Every run", named)


def _run_columns(runs: Sequence[Run], metrics: Sequence[Metric]) -> list[Column]:
    """A cell for each run; those that are not good have nothing but their status."""
    found: list[Column] = [
        (m.heading, shown_column([run.metrics.get(m.name) for run in runs], m)) for m in metrics
    ]
    for row, run in enumerate(runs):
        if run.status != GOOD:
            for index, (_, cells) in enumerate(found):
                cells[row] = run.status if index == 0 else MISSING
    limits = [run.metrics.get("limited_by") or MISSING for run in runs]
    return [*found, (LIMIT, limits)]


def _run_table(results: Results) -> Table:
    """Of one point: its repetitions, then median, mean, standard deviation and spread."""
    point, metrics = results.plan.points[0], columns(results)
    runs = results.of_point(point.id)
    named: list[Column] = [("repetition", [str(run.repetition + 1) for run in runs])]
    named += _run_columns(runs, metrics)
    notes = _notes(results)
    if len(results.good(point.id)) > 1:
        found = [results.aggregate(point.id, metric.name) for metric in metrics]
        below = [list(STATISTICS), *(map(_statistics, found, metrics)), [""] * len(STATISTICS)]
        named = [(name, cells + more) for (name, cells), more in zip(named, below)]
        if not all(metric.averaged for metric in metrics):
            notes.insert(0, "Percentiles and maxima are not averaged: of those, read the median.")
    return of_columns(_title(results), named, notes)


def _statistics(found: Aggregate | None, metric: Metric) -> list[str]:
    """Cells of the rows that STATISTICS names; of percentiles the median alone."""
    if found is None:
        return [MISSING] * len(STATISTICS)
    decimals = decimals_of((value * metric.scale for value in found.values), metric)
    median, mean, stddev = (
        fixed(None if value is None else value * metric.scale, decimals)
        for value in (found.median, found.mean, found.stddev)
    )
    rest = [mean, stddev, percent(found.spread_percent)]
    return [median, *(rest if metric.averaged else [MISSING] * 3)]


# ---- findings and warnings ----


def finding_tables(results: Results) -> list[Table]:
    """What tune, latency, compare and soak have to show."""
    return [finding_table(found) for found in results.findings.get("tables", ())]


def finding_table(found: Mapping[str, Any]) -> Table:
    """As findings have one."""
    return make(found["title"], found["headings"], found["rows"], found.get("notes", ()))


def sentences(results: Results) -> list[str]:
    """The result in words: as found by the experiment, or else the range of the rate."""
    found = results.findings.get("sentences")
    return [plain(sentence) for sentence in found] if found else _headline(results)


def _headline(results: Results) -> list[str]:
    rates = [
        (rate.median, point)
        for point in results.plan.points
        if (rate := results.aggregate(point.id, PRIMARY)) is not None
    ]
    if not rates:
        return ["No run was good."]
    if len(results.plan.points) == 1:
        return [_run_sentence(results, results.plan.points[0].id)]
    (least, at_least), (most, at_most) = (f(rates, key=lambda r: r[0]) for f in (min, max))
    return [
        f"{len(rates)} of {len(results.plan.points)} points measured: from {digits(least)} "
        f"messages/s ({plain(at_least.label)}) to {digits(most)} "
        f"({plain(at_most.label)})."
    ]


def _run_sentence(results: Results, point: int) -> str:
    rate, latency = (results.aggregate(point, name) for name in (PRIMARY, "latency_p50_ns"))
    middle = median_run(results, point)
    assert rate is not None and middle is not None
    runs = f"median of {len(rate.values)} runs" if len(rate.values) > 1 else "one run"
    text = f"{digits(rate.median)} messages/s ({runs})"
    if latency:
        text += f", latency p50 {shown(latency.median, metric_of('latency_p50_ns'))} us"
    limit = middle.metrics.get("limited_by")
    return text + (f", limited by {limit}." if limit else ".")


def warning_lines(results: Results) -> list[str]:
    """What was seen, and what to do about it."""
    return [plain(f"{warning.seen}; {warning.advice}") for warning in results.warnings]


def all_tables(results: Results) -> list[Table]:
    """Those of the text report, the most important first.

    What tune and latency have measured is in their findings; points in the order of a search are
    not for people.
    """
    searched = results.plan.command in ("tune", "latency") and results.findings
    measured = [] if searched else [main_table(results)]
    return [*finding_tables(results), *measured, environment_table(results)]


def axis_by_name(results: Results, name: str) -> Axis:
    """The plan's axis, or one made of the points' values."""
    for axis in results.plan.axes:
        if axis.name == name:
            return axis
    values = dict.fromkeys(p.values[name] for p in results.plan.points if name in p.values)
    return Axis(name, tuple(values), name)


# ---- the report ----


def text_report(results: Results, environment: bool = True) -> str:
    """All of it, for a terminal; without the ENVIRONMENT for those who have just made it."""
    parts = ["".join(f"{sentence}\n" for sentence in sentences(results))]
    tables = all_tables(results)
    parts += [to_text(table) for table in tables[:-1]]
    parts.append("".join(f"warning: {line}\n" for line in warning_lines(results)))
    if environment:
        parts.append(to_text(tables[-1]))
    return "\n".join(part for part in parts if part)


def markdown_report(results: Results) -> str:
    """All of it, for a document."""
    parts = [f"## {escape_markdown(plain(results.plan.title))}\n"]
    parts += [f"{escape_markdown(sentence)}\n" for sentence in sentences(results)]
    tables = all_tables(results)
    parts += [to_markdown(table) for table in tables[:-1]]
    parts += [f"- Warning: {escape_markdown(line)}\n" for line in warning_lines(results)]
    parts.append(to_markdown(tables[-1]))
    return "\n".join(parts)
