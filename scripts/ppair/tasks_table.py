"""The table of rds-stress, from the events of a run's programs.

A line is made of sums, and so is the last one, of the sums of a whole run or of all repetitions:
means are of all calls, and of all messages, never of other means, and nothing is made of
percentiles. Only the time that CPU is divided by, and an interval's messages are, is the mean of
what the programs took, which is nearly the same of each. tx/s and rx/s: requests sent and
received by all tasks. tx+rx K/s: their bodies, sent and received, in KiB. tx us/c: mean time of a
send call. rtt us: mean time from sending to the answer, or to settlement. cpu %: CPU time of all
programs as a share of all processors of their hosts. blocked: sends that found no credit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from . import comparison, facts, inference, run_files
from .cells import shown
from .events import Event
from .inference import Comparison, Verdict
from .measured import common_span_s, trip
from .metrics import BY_NAME, PRIMARY
from .programs import PRECV, PROGRAMS, PSEND
from .results import Point, Results, Run
from .table import MISSING, finding
from .units import digits, number

HEADINGS = ("tsks", "tx/s", "rx/s", "tx+rx K/s", "tx us/c", "rtt us", "cpu %", "blocked", "")
AVERAGE = "(average)"
CPU = "host_cpu_percent"
COMPARED = (
    *(PRIMARY, "call_ns", "trip_mean_ns", "trip_p50_ns", "trip_p99_ns"),
    *(CPU, "blocked"),
)
IN_WORDS = {  # and the unit
    PRIMARY: ("Rate", " msg/s"),
    "trip_mean_ns": ("Round trip", " us"),
    CPU: ("CPU", " %"),
    "blocked": ("Blocked sends", ""),
}
SHORT = 0.5  # of the longest interval: what is shorter has no line of its own


@dataclass(frozen=True)
class Totals:
    """Sums over programs, over an interval, a run or several runs."""

    tasks: int  # psends; of several runs the most
    sent: int
    received: int
    sent_bytes: int  # of bodies
    received_bytes: int
    psend_s: float  # time in which they were sent
    precv_s: float  # and received
    calls: int
    calls_ns: float
    trips: int
    trips_ns: float
    cpu_s: float
    cpu_span_s: float  # of one processor, times all
    blocked: int
    runs: int = 1  # that these are of, or of a part of one

    def __add__(self, other: Totals) -> Totals:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Totals(**{**sums, "tasks": max(self.tasks, other.tasks)})


def totals(
    psend: Sequence[Event],
    precv: Sequence[Event],
    spans_s: tuple[float, float],
    processors: int,
) -> Totals:
    """Of intervals at the same time, or of summaries; SPANS_S: of sending and of receiving."""
    both = (*psend, *precv)
    calls = [(_messages(e), e["call_ns"]) for e in psend if e["call_ns"] is not None]
    trips = [(t["count"], t["mean"]) for t in map(trip, psend) if t["mean"] is not None]
    return Totals(
        tasks=len(psend),
        sent=sum(map(_messages, psend)),
        received=sum(map(_messages, precv)),
        sent_bytes=sum(event["content_bytes"] for event in psend),
        received_bytes=sum(event["content_bytes"] for event in precv),
        psend_s=spans_s[0],
        precv_s=spans_s[1],
        calls=sum(count for count, _ in calls),
        calls_ns=math.fsum(count * mean for count, mean in calls),
        trips=sum(count for count, _ in trips),
        trips_ns=math.fsum(count * mean for count, mean in trips),
        cpu_s=math.fsum(e["cpu"]["user_s"] + e["cpu"]["system_s"] for e in both),
        cpu_span_s=processors * _mean([event["cpu"]["span_s"] for event in both]),
        blocked=sum(event["credit"]["blocked"] for event in psend),
    )


def _messages(event: Event) -> int:
    """Measured ones."""
    counts = event["messages"]
    found = event.get("measured_messages", counts["sent" if "sent" in counts else "received"])
    return int(found)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


# ---- from event files ----


@dataclass(frozen=True)
class _Programs:
    """What the programs of a run have said."""

    intervals: dict[str, list[list[Event]]]  # by program, of each instance; without the warm-up
    summaries: dict[str, list[Event]]
    processors: int


def _read(results: Results, run: Run) -> _Programs:
    intervals: dict[str, list[list[Event]]] = {program: [] for program in PROGRAMS}
    summaries: dict[str, list[Event]] = {program: [] for program in PROGRAMS}
    starts = []
    for peer in run.peers:
        program = run_files.program_of(peer)
        found = list(run_files.read(results, run, peer))
        starts += [event for event in found if event["event"] == "start"]
        summaries[program] += [event for event in found if event["event"] == "summary"]
        intervals[program].append(
            [event for event in found if event["event"] == "interval" and not event["warmup"]]
        )
    return _Programs(intervals, summaries, facts.processors(starts))


def _of_run(read: _Programs) -> Totals:
    psend, precv = (read.summaries[program] for program in (PSEND, PRECV))
    spans_s = (common_span_s(psend) or 0.0, common_span_s(precv) or 0.0)
    return totals(psend, precv, spans_s, read.processors)


def _seconds(read: _Programs) -> Iterator[tuple[str, Totals]]:
    """A line for each interval; those of several programs are put together by their order.

    Its label is the time since the warm-up.
    """
    rows = []
    columns = itertools.zip_longest(
        *(itertools.zip_longest(*read.intervals[program]) for program in (PSEND, PRECV)),
        fillvalue=(),
    )
    for psend, precv in columns:
        sides = [[event for event in side if event] for side in (psend, precv)]
        spans_s = [_mean([e["end_s"] - e["start_s"] for e in side]) for side in sides]
        rows.append((sides, (spans_s[0], spans_s[1])))
    longest_s = max((spans_s[0] for _, spans_s in rows), default=0.0)
    begins_s = [event["start_s"] for sides, _ in rows[:1] for event in sides[0]]
    for sides, spans_s in rows:
        if sides[0] and spans_s[0] >= SHORT * longest_s:
            end = f"{sides[0][0]['end_s'] - begins_s[0]:.1f} s"
            yield end, totals(sides[0], sides[1], spans_s, read.processors)


def lines(results: Results, point: int) -> list[tuple[str, Totals]]:
    """Of the intervals of a point's only good run, or of each of its good runs."""
    runs = results.good(point)
    if len(runs) == 1:
        read = _read(results, runs[0])
        return [*_seconds(read), (AVERAGE, _of_run(read))]
    found = [(f"run {run.repetition + 1}", _of_run(_read(results, run))) for run in runs]
    if found:
        whole = found[0][1]
        for _, more in found[1:]:
            whole += more
        found.append((AVERAGE, whole))
    return found


# ---- the table ----


def _share(part: float, whole: float, decimals: int) -> str:
    return f"{part / whole:.{decimals}f}" if whole else MISSING


def cells(label: str, found: Totals) -> list[str]:
    """A line; what is counted is of one run."""
    sides = ((found.sent_bytes, found.psend_s), (found.received_bytes, found.precv_s))
    bytes_per_s = math.fsum(count / span_s for count, span_s in sides if span_s)
    return [
        str(found.tasks),
        _share(found.sent, found.psend_s, 0),
        _share(found.received, found.precv_s, 0),
        f"{bytes_per_s / 1024:.2f}",
        _share(found.calls_ns, 1000 * found.calls, 2),
        _share(found.trips_ns, 1000 * found.trips, 2),
        _share(100 * found.cpu_s, found.cpu_span_s, 2),
        f"{found.blocked / found.runs:.0f}",
        label,
    ]


def table(results: Results, point: Point) -> dict[str, Any]:
    """Of one point."""
    rows = [cells(label, found) for label, found in lines(results, point.id)]
    return finding(_title(point), HEADINGS, rows, [] if rows else ["No run was good."])


def _title(point: Point) -> str:
    spec = point.spec
    credit = spec.option(PRECV, "--credit", "--capacity")
    size = number(spec.option(PSEND, "--content-size") or "")
    parts = [
        f"{spec.senders} tasks" if spec.senders > 1 else "1 task",
        f"depth {spec.option(PSEND, '--max-unsettled')}",
        f"requests of {digits(size)} bytes",
        *([f"credit {credit}"] if credit else []),
    ]
    where = f"{' '.join(point.values.values())}: " if point.values else ""
    return where + ", ".join(parts)


NOTES = (
    "tx/s, rx/s: requests sent and received by all tasks. tx+rx K/s: their bodies, sent and "
    "received, in KiB. tx us/c: mean time of a send call. rtt us: mean time from sending to the "
    "answer, or else to settlement. cpu %: CPU time of all programs, of all processors of their "
    "hosts. blocked: sends that found no credit; in the last line, of one run. Lines are without "
    "the warm-up; averages are made of sums.",
)


def findings(results: Results, axis: str) -> dict[str, Any]:
    """Tables of all points and, if there are two, what the change on AXIS did."""
    points = results.plan.points
    tables = [table(results, point) for point in points]
    tables[-1]["notes"] = [*tables[-1]["notes"], *NOTES]
    if len(points) < 2:
        return {"tables": tables}
    samples = comparison.samples_of_pairs(results, COMPARED)
    if not samples[PRIMARY][0]:
        return {"sentences": ["Nothing can be compared: no two runs were good."], "tables": tables}
    compared = comparison.compare(samples, True, comparison.MIN_EFFECT)
    before, after = (point.values[axis] for point in points)
    found = comparison.findings(compared, None, sides=(before, after))
    words = [_words(compared, name, before, after) for name in IN_WORDS if name in compared]
    return {**found, "sentences": words, "tables": [*tables, *found["tables"]]}


def _better(compared: comparison.Compared, name: str) -> int:
    """As a metric says; less of an expense is better where it is not because of a lower rate."""
    rate, metric = compared[PRIMARY], BY_NAME[name]
    kept = rate.verdict is Verdict.SAME or (rate.ratio is not None and rate.ratio.value > 1)
    return -1 if metric.expense and kept and _is_lower(compared[name]) else metric.better


def _is_lower(found: Comparison) -> bool:
    return found.ratio is not None and found.ratio.value < 1


def _words(compared: comparison.Compared, name: str, before: str, after: str) -> str:
    """What became of a metric."""
    found, (what, unit), metric = compared[name], IN_WORDS[name], BY_NAME[name]
    a, b = (shown(value, metric) for value in (found.median_a, found.median_b))
    judged = inference.words(found, after, _better(compared, name))
    if found.verdict is Verdict.DIFFERENT and found.median_b == 0:
        judged = "none is left"  # of which a share with limits beyond 100 % says less
    return f"{what}: {a}{unit} {before}, {b}{unit} {after}; {judged}."
