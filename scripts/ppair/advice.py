"""Warnings: a closed list of rules, each of which says what was seen and what to do about it.

Rules look at results alone, so that `report` gives the same warnings again. See facts.py for what a
run's `facts` has.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import clock_error
from .metrics import PRIMARY

if TYPE_CHECKING:
    from .results import Results, Run

SPREAD_PERCENT = 10.0
FIRST_SLOWER = 0.95  # of the slowest of the others
FIRST_NEEDS = 4  # repetitions, so that it is no coincidence
STEAL_PERCENT = 2.0
BUSY = 0.9
CONTENDED_PERCENT = 20.0
TRIP = "settlement_p50_ns"
BACKLOG_RATIO = 4.0  # of latency and TRIP
MISSED_PERCENT = 1.0  # of a rate
CLOCK_ERROR_SHARE = 0.1  # of the latency's p50


@dataclass(frozen=True)
class Warning:
    """`code` is for scripts; the rest for people. Points that it is about; none: all."""

    code: str
    seen: str
    advice: str
    points: tuple[int, ...] = ()


def warnings(results: Results) -> list[Warning]:
    """Of all rules, in their order, but for those of which the command tells itself."""
    told = TOLD_BY.get(results.plan.command, ())
    return [found for code, rule in RULES.items() if code not in told for found in rule(results)]


def _runs(results: Results) -> list[Run]:
    return [run for point in results.plan.points for run in results.good(point.id)]


def _about(results: Results, points: list[int]) -> str:
    """Which of the points, in words."""
    total = len(results.plan.points)
    if total == 1:
        return ""
    if len(points) > 1:
        return f" at {len(points)} of {total} points"
    return " at " + next(point.label for point in results.plan.points if point.id == points[0])


Seen = Callable[[list["Run"]], float | None]  # in the good runs of a point, of which there are some


def _at_points(
    results: Results, code: str, seen: Seen, words: str, advice: str
) -> Iterator[Warning]:
    """One warning for all points at which something is seen; WORDS takes the largest value."""
    found: dict[int, float] = {}
    for point in results.plan.points:
        runs = results.good(point.id)
        value = seen(runs) if runs else None
        if value is not None:
            found[point.id] = value
    if found:
        text = words.format(max(found.values())) + _about(results, list(found))
        yield Warning(code, text, advice, tuple(found))


def _spread(results: Results) -> Iterator[Warning]:
    def seen(runs: list[Run]) -> float | None:
        rate = results.aggregate(runs[0].point, PRIMARY)
        percent = rate.spread_percent if rate else None
        return percent if percent is not None and percent > SPREAD_PERCENT else None

    yield from _at_points(
        results,
        "spread",
        seen,
        "repetitions differ: standard deviation up to {:.0f} % of the mean",
        "close other programs, give each its processor (--cpu), run longer or repeat more",
    )


def _contended(results: Results) -> Iterator[Warning]:
    """A thread that is not waiting and does not run either: others have the processors."""

    def seen(runs: list[Run]) -> float | None:
        lost = [max(_not_run_percent(run, end) for end in ("psend", "precv")) for run in runs]
        percent = statistics.median(lost)
        return percent if percent > CONTENDED_PERCENT else None

    yield from _at_points(
        results,
        "contended",
        seen,
        "a program had to wait for a processor for up to {:.0f} % of the time",
        "end what else runs here, or give each program a processor of its own (--cpu)",
    )


def _not_run_percent(run: Run, end: str) -> float:
    """Of the time; 0 where several instances cannot be told apart."""
    percent: float | None = run.metrics.get(f"{end}_cpu_percent")
    instances = sum(program == end for program, _ in run.facts["cpus"])
    busy: float = run.facts[f"{end}_busy"]
    return 0.0 if percent is None or instances != 1 else 100 * busy - percent


def _busy(results: Results, code: str, end: str, limit: str, other: str) -> Iterator[Warning]:
    def seen(runs: list[Run]) -> float | None:
        share = statistics.median(run.facts[f"{end}_busy"] for run in runs)
        lost = statistics.median(_not_run_percent(run, end) for run in runs)
        held = share > BUSY and {run.metrics["limited_by"] for run in runs} == {limit}
        return 100 * share if held and lost <= CONTENDED_PERCENT else None

    yield from _at_points(
        results,
        code,
        seen,
        f"{end} was busy up to {{:.0f}} % of the time",
        f"the rate is that of {end}'s processor: {other}",
    )


def _sender_cpu(results: Results) -> Iterator[Warning]:
    other = "more senders (--senders 2) could do more"
    return _busy(results, "sender-cpu", "psend", "sender cpu", other)


def _receiver_cpu(results: Results) -> Iterator[Warning]:
    other = "with two receivers (--senders 2 --receivers 2) there is more"
    return _busy(results, "receiver-cpu", "precv", "receiver cpu", other)


def _first_slower(results: Results) -> Iterator[Warning]:
    """The first is below all others by more than these differ, so that it is no coincidence."""

    def seen(runs: list[Run]) -> float | None:
        if len(runs) < FIRST_NEEDS or runs[0].repetition != 0:
            return None
        first, *others = (run.metrics[PRIMARY] for run in runs)
        slowest, fastest = min(others), max(others)
        least = max((1 - FIRST_SLOWER) * slowest, fastest - slowest)
        return 100 * (slowest - first) / slowest if slowest - first > least else None

    yield from _at_points(
        results,
        "first-slower",
        seen,
        "the first repetition was {:.0f} % slower than the slowest of the others",
        "something had to be loaded or woken up: use a longer --warmup",
    )


def _shared_cpu(results: Results) -> Iterator[Warning]:
    for run in _runs(results):
        if run.facts["hosts"] > 1:
            continue
        bound = [cpus for _, cpus in run.facts["cpus"] if cpus is not None]
        single = [cpus for cpus in bound if cpus.isdigit()]
        if len(single) != len(set(single)):
            cpu = max(single, key=single.count)
            yield Warning(
                "shared-cpu",
                f"two programs were bound to processor {cpu}",
                "give each a processor of its own (--psend '--cpu 0' --precv '--cpu 1')",
            )
            return
        if len(run.facts["cpus"]) > run.facts["cpu_count"]:
            yield Warning(
                "shared-cpu",
                f"{len(run.facts['cpus'])} programs had {run.facts['cpu_count']} processors",
                "rates are those of programs that wait for each other's processor",
            )
            return


def _powersave(results: Results) -> Iterator[Warning]:
    if results.machine.get("governor") in ("powersave", "conservative", "ondemand"):
        yield Warning(
            "powersave",
            f"the processors' frequency governor is {results.machine['governor']}",
            "cpupower frequency-set -g performance, as root, makes runs comparable",
        )


def _steal(results: Results) -> Iterator[Warning]:
    worst = max((run.steal_percent or 0.0 for run in _runs(results)), default=0.0)
    if worst > STEAL_PERCENT:
        yield Warning(
            "steal",
            f"the hypervisor gave up to {worst:.0f} % of the processors to others",
            "compare only interleaved runs (ppair compare), or find a quieter machine",
        )


def _credit_unbound(results: Results) -> Iterator[Warning]:
    def seen(runs: list[Run]) -> float | None:
        flight, bound = runs[0].facts["flight_bytes"], runs[0].facts["bound_bytes"]
        return flight / 1e6 if bound is not None and flight > bound else None

    yield from _at_points(
        results,
        "credit-unbound",
        seen,
        "the credit window is larger (up to {:.1f} MB of bodies) than psend's queue and the "
        "socket buffers together",
        "there, the sockets limit what is on its way, not credit",
    )


def _reconnects(results: Results) -> Iterator[Warning]:
    def seen(runs: list[Run]) -> float | None:
        return max(run.metrics.get("reconnects") or 0 for run in runs) or None

    yield from _at_points(
        results,
        "reconnects",
        seen,
        "connections were lost and made again, up to {:.0f} times in a run",
        "rates and latencies have the gaps in them; what was not settled was sent again",
    )


def _broker(results: Results) -> Iterator[Warning]:
    def seen(runs: list[Run]) -> float | None:
        held = {run.metrics["limited_by"] for run in runs} == {"broker"}
        return max(100 * run.facts["precv_busy"] for run in runs) if held else None

    yield from _at_points(
        results,
        "broker",
        seen,
        "neither end was busy (receivers up to {:.0f} %): senders waited for the broker to take "
        "messages, receivers for it to give some",
        "the rate is the broker's; a larger --credit or more senders and receivers may get more "
        "out of it",
    )


def _backlog(results: Results) -> Iterator[Warning]:
    """Messages that wait in a broker's queue have been settled long ago."""
    by_broker = {point.id for point in results.plan.points if point.spec.via is not None}

    def seen(runs: list[Run]) -> float | None:
        pairs = [(run.metrics.get("latency_p50_ns"), run.metrics.get(TRIP)) for run in runs]
        times = [latency / trip for latency, trip in pairs if latency and trip]
        ratio = statistics.median(times) if times and runs[0].point in by_broker else 0.0
        return ratio if ratio > BACKLOG_RATIO else None

    yield from _at_points(
        results,
        "backlog",
        seen,
        "messages waited at the broker: the latency's p50 was up to {:.0f} times that of the "
        "broker's settlement",
        "receivers were slower than senders, and this is the latency of a queue that grew: send "
        "less (--max-unsettled) or receive more (--credit, --receivers)",
    )


def _rate_missed(results: Results) -> Iterator[Warning]:
    def seen(runs: list[Run]) -> float | None:  # in most of them: any may lack those of a moment
        percent = statistics.median_low([_missed_percent(run) for run in runs])
        return percent if percent > MISSED_PERCENT else None

    yield from _at_points(
        results,
        "rate-missed",
        seen,
        "less was sent than was due, by up to {:.1f} %",
        "the path, or psend itself, is slower than --send-rate: the longer it lasts, the higher "
        "the latency; ppair latency finds what is sustained",
    )


def _missed_percent(run: Run) -> float:
    target, achieved = run.metrics.get("target_per_s"), run.metrics.get("achieved_per_s")
    missed = target and run.metrics.get("rate_met") == 0
    return 100 * (1 - (achieved or 0.0) / target) if missed else 0.0


def _clock_error(results: Results) -> Iterator[Warning]:
    """Of latencies between hosts; said of the run in which it is worst."""
    runs = [run for run in _runs(results) if _clock_error_share(run) > CLOCK_ERROR_SHARE]
    if not runs:
        return
    worst = max(runs, key=_clock_error_share)
    error = clock_error.of_facts(worst.facts)
    points = list(dict.fromkeys(run.point for run in runs))
    if error is not None:
        yield Warning(
            "clock-error",
            f"{clock_error.words(error)}; that is {100 * _clock_error_share(worst):.0f} % of its "
            f"p50{_about(results, points)}",
            "have both hosts keep one time (chronyd, ptp4l); what is measured on one clock, as "
            "settlement and round trips are, has no such error",
            tuple(points),
        )


def _clock_error_share(run: Run) -> float:  # of p50; 0 where there is no error, or no latency
    error_ns, p50_ns = (run.metrics.get(name) for name in ("latency_error_ns", "latency_p50_ns"))
    return error_ns / max(p50_ns, 1) if error_ns is not None and p50_ns is not None else 0.0


def _negative_latency(results: Results) -> Iterator[Warning]:
    def seen(runs: list[Run]) -> float | None:
        return max(run.metrics.get("latency_negative") or 0 for run in runs) or None

    yield from _at_points(
        results,
        "negative-latency",
        seen,
        "up to {:.0f} messages of a run came before they were sent, by the clocks",
        "the receivers' clock is behind, or one was set during the run; these are in no "
        "percentile, and the others are too small: have the hosts keep one time, and measure again",
    )


RULES: dict[str, Callable[[Results], Iterator[Warning]]] = {
    "spread": _spread,
    "contended": _contended,
    "sender-cpu": _sender_cpu,
    "receiver-cpu": _receiver_cpu,
    "first-slower": _first_slower,
    "shared-cpu": _shared_cpu,
    "powersave": _powersave,
    "steal": _steal,
    "credit-unbound": _credit_unbound,
    "reconnects": _reconnects,
    "broker": _broker,
    "backlog": _backlog,
    "rate-missed": _rate_missed,
    "clock-error": _clock_error,
    "negative-latency": _negative_latency,
}
TOLD_BY = {"latency": ("backlog", "rate-missed")}  # a command tells of these in its own words
