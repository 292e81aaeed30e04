"""The measuring that latency does: a closed loop, the highest rate that is sustained, and steps.

Points are labelled as loads.py has it. A search has points of its own, whose runs are short; a rate
that it tries again is another repetition of its point.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from . import experiment, measured, run_files, store, sustain
from .failure import Exit, Failure
from .loads import AXIS, CLOSED, SEARCH, SLO, is_within_reach, probe_label, step_label
from .metrics import PRIMARY
from .programs import PRECV, PSEND
from .progress import Progress
from .results import GOOD, Point, Results, Run
from .slo import Slo
from .spec import Spec
from .sustain import Samples, Seen, Trial
from .units import digits

FAILURES_MAX = 3  # runs of a search that are not good, one after another
LOWEST_SHARE = 0.01  # of the sustainable rate, below which no objective is looked for
# What a closed loop does not take.
OPEN_LOOP = {"--poisson": False, "--catch-up": True, "--batch": True, "--send-rate": True}


@dataclass
class RateSearch:
    """For rates that a path sustains, with the steps below them: what is to be measured, what has
    been, and where it is recorded."""

    results: Results
    base: Spec
    progress: Progress
    within: float
    probe: tuple[str, ...]  # psend's words for a short run
    steps: tuple[float, ...]  # shares of the sustainable rate
    repetitions: int  # of each step
    settle_s: float
    budget_s: float  # of each search
    slo: Slo | None = None
    trials: list[Trial] = field(default_factory=list)
    slo_trials: list[Trial] = field(default_factory=list)
    troubles: dict[str, str] = field(default_factory=dict)  # by run folder: why not sustained
    rates: dict[str, float] = field(default_factory=dict)  # offered, by point's label
    failures: int = 0

    @property
    def sustainable_per_s(self) -> float | None:
        """As far as it is known."""
        return sustain.bracket(self.trials).low_per_s


async def measure(search: RateSearch) -> None:
    """All of it, in this order."""
    closed = await _run(search, CLOSED, None, search.probe)
    first = closed.metrics[PRIMARY] if closed.status == GOOD else _received_per_s(search, closed)
    if first is None:
        raise Failure(Exit(closed.exit_code), f"in a closed loop: {closed.why}")
    await _find_sustainable(search, first)
    if search.sustainable_per_s is None:
        worst = min(search.trials, key=lambda trial: trial.rate_per_s)
        raise Failure(Exit.SHORT, f"no rate is sustained, not even {digits(worst.rate_per_s)}/s")
    for _ in range(search.repetitions):
        for share in search.steps:
            await _run(search, step_label(share), share * search.sustainable_per_s, ())
    if search.slo:
        await _find_slo(search, search.slo)


# ---- runs ----


async def _run(search: RateSearch, label: str, rate: float | None, words: Sequence[str]) -> Run:
    """One more run of the point with that label; RATE of all senders together."""
    results = search.results
    point = next((p for p in results.plan.points if p.values[AXIS] == label), None)
    if point is None:
        spec = closed(search.base) if rate is None else paced(search.base, rate)
        point = Point(len(results.plan.points), {AXIS: label}, spec.plus(psend=tuple(words)))
        store.add_points(results, [point])
    if rate is not None:
        search.rates[label] = rate
    if results.runs:
        await experiment.settle(search.settle_s)
    repetition = len(results.of_point(point.id))
    run = await experiment.measure(results, point.id, repetition, search.progress)
    if rate is not None:
        why = trouble(results, run)
        if why:
            search.troubles[run.folder] = why
    return run


def _received_per_s(search: RateSearch, run: Run) -> float | None:
    """Where so many messages were on their way that they were not all settled in time: a path that
    is slow, but for which there are rates. None if the run failed otherwise, or nothing came."""
    if run.exit_code != Exit.SHORT:
        return None
    peers = run_files.peers(run, PRECV)
    found = [run_files.summary(search.results, run, peer) for peer in peers]
    return math.fsum(summary["messages_per_s"] or 0.0 for summary in found if summary) or None


def paced(base: Spec, rate_per_s: float) -> Spec:
    """In open loop, each sender with its share of the rate."""
    each = f"{Decimal(f'{rate_per_s / base.senders:.9g}'):f}"
    return base.plus(psend=("--send-rate", each))


def closed(base: Spec) -> Spec:
    """As fast as the path lets it: without what needs a rate."""
    kept, rest = [], iter(base.psend)
    for word in rest:
        name = word.partition("=")[0]
        if name not in OPEN_LOOP:
            kept.append(word)
        elif OPEN_LOOP[name]:
            next(rest, None)
    return replace(base, psend=tuple(kept))


def trouble(results: Results, run: Run) -> str | None:
    """Why the rate of a run was not sustained; None if it was."""
    if run.status != GOOD:
        return run.why or run.status
    return sustain.trouble(seen(results, run))


def seen(results: Results, run: Run) -> Seen:
    """From its event files."""
    numbers = run.metrics
    spans = [_span_s(results, run, peer) for peer in run_files.peers(run, PSEND)]
    return Seen(
        numbers["target_per_s"] or 0.0,
        (numbers["backlog"] or 0) + (numbers["skipped"] or 0),
        max(spans, default=0.0),
        numbers["rate_met"] == 1,
        tuple(_backlogs(results, run, peer) for peer in run_files.peers(run, PSEND)),
        tuple(_latencies(results, run, peer) for peer in run_files.peers(run, PRECV)),
    )


def _span_s(results: Results, run: Run, peer: run_files.Peer) -> float:
    summary = run_files.summary(results, run, peer)
    return float(summary["wall_s"]) if summary else 0.0


def _backlogs(results: Results, run: Run, peer: run_files.Peer) -> Samples:
    """Warm-up included, as what was not sent then is still to be sent."""
    found, backlog = [], 0
    for event in run_files.read(results, run, peer):
        if event["event"] == "interval" and event.get("pacing"):
            backlog += measured.backlog(event)
            if not event["warmup"]:
                found.append((float(event["end_s"]), float(backlog)))
    return tuple(found)


def _latencies(results: Results, run: Run, peer: run_files.Peer) -> Samples:
    return tuple(
        (float(event["end_s"]), event["latency_ns"]["p50"] / 1e9)
        for event in run_files.read(results, run, peer)
        if event["event"] == "interval"
        and not (event["warmup"] or event["partial"])
        and event["latency_ns"].get("p50") is not None
    )


# ---- searches ----


async def _find_sustainable(search: RateSearch, first: float) -> None:
    """Beyond its budget while no rate is sustained: then it goes down, and that comes to an end."""
    deadline_s = time.monotonic() + search.budget_s
    while True:
        rate = sustain.next_rate(search.trials, first, search.within)
        if rate is None:
            return
        if search.sustainable_per_s is not None and time.monotonic() > deadline_s:
            return
        run = await _probe(search, SEARCH, rate)
        passed = run.folder not in search.troubles
        search.trials.append(Trial(rate, passed, run.metrics.get(PRIMARY)))


async def _find_slo(search: RateSearch, slo: Slo) -> None:
    """Between the steps; not at all if all that are sustained meet it."""
    sustainable = search.sustainable_per_s
    assert sustainable
    for point in search.results.plan.points:
        label = point.values[AXIS]
        for run in search.results.of_point(point.id) if is_within_reach(label) else ():
            search.slo_trials.append(Trial(search.rates[label], is_met(search, run, slo)))
    if sustain.bracket(search.slo_trials).high_per_s is None:
        return
    deadline_s = time.monotonic() + search.budget_s
    while True:
        rate = sustain.next_rate(search.slo_trials, sustainable, search.within)
        if rate is None or time.monotonic() > deadline_s or rate < LOWEST_SHARE * sustainable:
            return
        if rate > sustainable:  # a step was below its limit at last
            return
        run = await _probe(search, SLO, rate)
        search.slo_trials.append(Trial(rate, is_met(search, run, slo)))


def is_met(search: RateSearch, run: Run, slo: Slo) -> bool:
    """By a rate that is sustained."""
    if run.status != GOOD or run.folder in search.troubles:
        return False
    return slo.is_met(run_files.merged_histogram(search.results, [run], PRECV))


async def _probe(search: RateSearch, kind: str, rate: float) -> Run:
    """A short run, of the search's point that has the rate already, or of a new one: never of a
    step, whose runs are longer, and as many as were asked for."""
    label = probe_label(kind, rate)
    if search.rates.get(label, rate) != rate:
        label = probe_label(kind, rate, exact=True)
    run = await _run(search, label, rate, search.probe)
    search.failures = 0 if run.status == GOOD else search.failures + 1
    if search.failures == FAILURES_MAX:
        raise Failure(Exit(run.exit_code), f"{digits(rate)} messages/s: {run.why}")
    return run
