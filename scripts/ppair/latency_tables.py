"""What latency has found, in numbers, tables and sentences.

All good runs of a step are taken together, their histograms merged. A percentile of fewer messages
than it needs (p99.9: 1000) is left out, as it would be their maximum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from . import cells, run_files, sustain, tables
from .histogram import Histogram
from .latency_search import RateSearch
from .loads import (
    AXIS,
    CLOSED,
    SEARCH,
    SLO,
    is_probe_of,
    is_within_reach,
    share_of,
    step_label,
)
from .metrics import PRIMARY
from .programs import PRECV, PSEND
from .results import GOOD, Point, Run
from .slo import Slo, messages_needed, value_ns
from .table import Column, finding_of_columns
from .units import digits

PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
HALF, NEAR = 0.5, 0.95  # steps of which a sentence tells


@dataclass(frozen=True)
class Step:
    """Of one point; times in ns, None where there is no such number."""

    label: str
    point: int
    offered_per_s: float | None  # None: closed loop
    sent_per_s: float | None
    latency_ns: dict[str, int | None]  # p50 ... max
    settlement_p99_ns: int | None
    send_delay_p99_ns: int | None
    kept_up: bool | None
    why: str | None
    limited_by: str | None


def percentiles(found: Histogram) -> dict[str, int | None]:
    """Those that it has messages for."""
    values = {name: found.percentile_ns(float(name[1:])) for name in PERCENTILES[:-1]}
    enough = {name: found.count >= messages_needed(name) for name in values}
    return {**{n: v if enough[n] else None for n, v in values.items()}, "max": found.max_ns}


def step_of(search: RateSearch, point: Point) -> Step:
    """From its good runs."""
    results, label = search.results, point.values[AXIS]
    good = results.good(point.id)
    whys = [why for run in results.of_point(point.id) if (why := _why(search, run))]
    offered = search.rates.get(label)
    sent = results.aggregate(point.id, PRIMARY if offered is None else "achieved_per_s")
    middle = tables.median_run(results, point.id)
    return Step(
        label,
        point.id,
        offered,
        sent.median if sent else None,
        percentiles(run_files.merged_histogram(results, good, PRECV)),
        _p99(run_files.merged_histogram(results, good, PSEND)),
        _p99(run_files.merged_histogram(results, good, PSEND, "send_delay_ns")),
        None if offered is None else not whys,
        whys[0] if whys else None,
        middle.metrics.get("limited_by") if middle else None,
    )


def _why(search: RateSearch, run: Run) -> str | None:
    """It was not sustained, or cannot tell."""
    known = None if run.status == GOOD else run.why or run.status
    return search.troubles.get(run.folder, known)


def _p99(found: Histogram) -> int | None:
    return percentiles(found)["p99"]


# ---- numbers ----


def findings(search: RateSearch) -> dict[str, Any]:
    """Of what there is, complete or not."""
    done = [p for p in search.results.plan.points if search.results.of_point(p.id)]
    steps = [step_of(search, p) for p in done if share_of(p.values[AXIS]) is not None]
    loop = next((step_of(search, p) for p in done if p.values[AXIS] == CLOSED), None)
    ends = sustain.bracket(search.trials)
    numbers: dict[str, Any] = {
        "closed_per_s": loop.sent_per_s if loop else None,
        "sustainable_per_s": ends.low_per_s,
        "not_sustained_per_s": ends.high_per_s,
        "certain": sustain.is_certain(search.trials, search.within),
        "steps": [asdict(step) for step in steps],
        "slo": _slo_numbers(search) if search.slo else None,
    }
    found = [step_table(loop, steps)] if steps else []
    found += [_search_table(search, SEARCH, "How the highest rate was looked for")]
    if search.slo:
        title = f"How {search.slo.name} below {time_words(search.slo.limit_ns)} was looked for"
        found += [_search_table(search, SLO, title)]
    return {
        "sentences": list(_sentences(search, loop, steps, numbers)),
        "tables": [table for table in found if table["rows"]],
        "latency": numbers,
    }


def _slo_numbers(search: RateSearch) -> dict[str, Any]:
    """`every` is true if all steps up to 100 % meet it, `per_s` the highest rate that does."""
    assert search.slo
    ends = sustain.bracket(search.slo_trials)
    certain = sustain.is_certain(search.slo_trials, search.within)
    every = bool(search.slo_trials) and ends.high_per_s is None
    return {
        "name": search.slo.name,
        "limit_ns": search.slo.limit_ns,
        "per_s": ends.low_per_s,
        "not_per_s": ends.high_per_s,
        "least_tried_per_s": min((t.rate_per_s for t in search.slo_trials), default=None),
        "every": every,
        "certain": certain or every,
    }


# ---- tables ----

def _times(heading: str, values_ns: list[int | None]) -> Column:
    shown = [None if value is None else value / 1e3 for value in values_ns]
    decimals = cells.decimals_for(shown)
    return heading, [cells.fixed(value, decimals) for value in shown]


def _rates(heading: str, values: Iterable[float | None]) -> Column:
    return heading, [digits(value, 5) for value in values]


def step_table(loop: Step | None, steps: list[Step]) -> dict[str, Any]:
    """Latency from the intended time, and beside it what is timed from the actual sending."""
    rows = ([loop] if loop else []) + steps
    columns = [
        ("load", [row.label for row in rows]),
        _rates("offered/s", (row.offered_per_s for row in rows)),
        _rates("sent/s", (row.sent_per_s for row in rows)),
        *(_times(f"lat {name} us", [row.latency_ns[name] for row in rows]) for name in PERCENTILES),
    ]
    if any(row.settlement_p99_ns is not None for row in rows):
        columns.append(_times("settle p99 us", [row.settlement_p99_ns for row in rows]))
    columns += [
        _times("delay p99 us", [row.send_delay_p99_ns for row in rows]),
        ("kept up", [KEPT_UP[row.kept_up] for row in rows]),
        (tables.LIMIT, [row.limited_by or "-" for row in rows]),
    ]
    return finding_of_columns("Latency against load", columns, _notes(loop, rows))


KEPT_UP = {True: "yes", False: "no", None: "-"}


def _notes(loop: Step | None, rows: list[Step]) -> Iterator[str]:
    text = "Latency is from when a message was due until it was received; delay, until it was sent."
    if any(row.settlement_p99_ns is not None for row in rows):
        text += (
            " Settlement is from the actual sending to the peer's disposition, as a closed loop "
            "has it: it does not see the delay."
        )
    yield text
    if loop and not loop.why:
        yield (
            "In the closed loop a message is due when the one before it has let it: its latency is "
            "from the actual sending, and a stall delays the messages that would have seen it."
        )
    whys: dict[str, list[str]] = {}
    for row in rows:
        if row.why and row.offered_per_s is not None:
            whys.setdefault(row.why, []).append(row.label)
    for why, labels in whys.items():
        yield f"Not kept up at {', '.join(labels)}: {why}."


def _search_table(search: RateSearch, kind: str, title: str) -> dict[str, Any]:
    """Every run of a search, in the order of trying."""
    found = _probes(search, kind)
    name = search.slo.name if search.slo and kind == SLO else "p99"
    whys = [_why(search, run) for _, run in found]
    columns = [
        _rates("offered/s", (rate for rate, _ in found)),
        _rates("sent/s", (run.metrics.get("achieved_per_s") for _, run in found)),
        _rates("received/s", (run.metrics.get(PRIMARY) for _, run in found)),
        _times(f"lat {name} us", [_value_ns(search, run, name) for _, run in found]),
    ]
    if search.slo and kind == SLO:
        met = [run.status == GOOD and _meets(search, run, search.slo) for _, run in found]
        columns.append((f"{name} met", ["yes" if each else "no" for each in met]))
    columns.append(("sustained", [f"no: {why}" if why else "yes" for why in whys]))
    counts = "A rate counts by the majority of its runs"
    if kind == SLO:
        counts += ", and the runs of the steps count as well"
    rule = f"In the order of trying. Sustained: {sustain.rule()}. {counts}."
    return finding_of_columns(title, columns, [rule])


def _probes(search: RateSearch, kind: str) -> list[tuple[float, Run]]:
    """Runs of a search as they were made, and the rates of all senders together."""
    labels = {point.id: point.values[AXIS] for point in search.results.plan.points}
    runs = [run for run in search.results.runs if is_probe_of(kind, labels[run.point])]
    return [(search.rates[labels[run.point]], run) for run in runs]


def _meets(search: RateSearch, run: Run, slo: Slo) -> bool:
    """Its latency alone, whether the rate is sustained or not."""
    return slo.is_met(run_files.merged_histogram(search.results, [run], PRECV))


def _value_ns(search: RateSearch, run: Run, name: str) -> int | None:
    if run.status != GOOD:
        return None
    return value_ns(run_files.merged_histogram(search.results, [run], PRECV), name)


# ---- sentences ----


def time_words(time_ns: float | None) -> str:
    """85 us, 2.1 ms, 1.3 s"""
    if time_ns is None:
        return "-"
    unit, of_unit = next((u for u in (("s", 1e9), ("ms", 1e6)) if time_ns >= u[1]), ("us", 1e3))
    return f"{digits(time_ns / of_unit, 3)} {unit}"


def _sentences(
    search: RateSearch, loop: Step | None, steps: list[Step], numbers: dict[str, Any]
) -> Iterator[str]:
    yield _rate_sentence(numbers)
    if loop and loop.why:
        yield f"The closed loop failed, and the search began lower: {loop.why}."
    missed = [s.label for s in steps if s.kept_up is False and is_within_reach(s.label)]
    if missed:
        yield (
            f"Not kept up with below it: {', '.join(missed)}. The path or the machine is not "
            "steady; a longer --probe makes it more certain."
        )
    above = [s for s in steps if s.kept_up and not is_within_reach(s.label)]
    if above:
        rates = ", ".join(f"{s.label} ({digits(s.offered_per_s)}/s)" for s in above)
        yield (
            f"Kept up with above it too: {rates}. The path is not steady, or sustains more than "
            "was found; a longer --probe makes it more certain."
        )
    told = [s for s in steps if s.kept_up and s.label in (step_label(HALF), step_label(NEAR))]
    if told:
        yield "; ".join(
            f"at {step.label} of it ({digits(step.offered_per_s)}/s), latency is p50 "
            f"{time_words(step.latency_ns['p50'])}, p99 {time_words(step.latency_ns['p99'])}, "
            f"maximum {time_words(step.latency_ns['max'])}"
            for step in told
        ).capitalize() + "."
    over = next((s for s in reversed(steps) if not is_within_reach(s.label)), None)
    if over and not over.kept_up and over.latency_ns["p99"] is not None:
        yield _overload_sentence(loop, over)
    if search.slo:
        yield _slo_sentence(search, numbers)


def _rate_sentence(numbers: dict[str, Any]) -> str:
    low, high, loop = (
        numbers[name] for name in ("sustainable_per_s", "not_sustained_per_s", "closed_per_s")
    )
    if low is None:
        return "No rate has been found that is sustained."
    text = "" if numbers["certain"] else "Not certain, a longer --budget may do: "
    text += f"{digits(low)} messages/s are sustained in open loop"
    text += f", {digits(high)} are not" if high else ""
    return text + (f"; a closed loop sends {digits(loop)}." if loop else ".")


def _overload_sentence(loop: Step | None, over: Step) -> str:
    """Both views of the same run."""
    text = (
        f"At {over.label} latency has p99 {time_words(over.latency_ns['p99'])}, from when messages "
        "were due"
    )
    if over.settlement_p99_ns is not None:
        text += (
            f"; settlement, from when they were sent, as a closed loop would have it, has p99 "
            f"{time_words(over.settlement_p99_ns)}"
        )
    shown = loop.latency_ns["p99"] if loop else None
    if shown is not None:
        text += f"; a closed loop, as fast as it can, shows p99 {time_words(shown)}"
    return f"{text}."


def _but_not_in_probes(search: RateSearch, slo: Slo, most_per_s: float) -> str:
    """Of the short runs at rates that are said to meet it, those that did not."""
    below = [
        run
        for rate, run in _probes(search, SEARCH)
        if rate <= most_per_s and run.status == GOOD and run.folder not in search.troubles
    ]
    values = [_value_ns(search, run, slo.name) for run in below if not _meets(search, run, slo)]
    over = [value for value in values if value is not None]
    if not over:
        return ""
    worst = time_words(max(over))
    return f", but not in {len(over)} of {len(below)} runs of the search ({slo.name} up to {worst})"


def _slo_sentence(search: RateSearch, numbers: dict[str, Any]) -> str:
    slo, found = search.slo, numbers["slo"]
    assert slo
    what = f"{slo.name} of the latency below {time_words(slo.limit_ns)}"
    if not search.slo_trials:
        return f"{what}: not looked for: {search.results.why or 'no step was measured'}."
    if found["every"]:
        text = f"at every step that is kept up with, up to {digits(found['per_s'])} messages/s"
        return f"{what}: {text}{_but_not_in_probes(search, slo, found['per_s'])}."
    if found["per_s"] is None:
        least = digits(found["least_tried_per_s"])
        return f"{what}: at no rate that was tried, down to {least} messages/s."
    share = 100 * found["per_s"] / numbers["sustainable_per_s"]
    text = "" if found["certain"] else "not certain, a longer --budget may do: "
    text += f"up to {digits(found['per_s'])} messages/s ({share:.0f} % of what is sustained)"
    return f"{what}: {text}; not at {digits(found['not_per_s'])}."
