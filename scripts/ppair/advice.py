"""Warnings: a closed list of rules, each of which says what was seen and what to do about it.

Rules look at results alone, so that `report` gives the same warnings again. See facts.py for what a
run's `facts` has.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .metrics import PRIMARY

if TYPE_CHECKING:
    from .results import Results, Run

SPREAD_PERCENT = 10.0
FIRST_SLOWER = 0.95  # of the slowest of the others
FIRST_NEEDS = 4  # repetitions, so that it is no coincidence
STEAL_PERCENT = 2.0
BUSY = 0.9
CONTENDED_PERCENT = 20.0


@dataclass(frozen=True)
class Warning:
    """`code` is for scripts; the rest for people. Points that it is about; none: all."""

    code: str
    seen: str
    advice: str
    points: tuple[int, ...] = ()


def warnings(results: Results) -> list[Warning]:
    """Of all rules, in their order."""
    return [warning for rule in RULES for warning in rule(results)]


def _runs(results: Results) -> list[Run]:
    return [run for point in results.plan.points for run in results.good(point.id)]


def _about(results: Results, points: list[int]) -> str:
    """Which of the points, in words."""
    total = len(results.plan.points)
    if total == 1:
        return ""
    if len(points) > 1:
        return f" at {len(points)} of {total} points"
    values = next(point.values for point in results.plan.points if point.id == points[0])
    return " at " + " ".join(f"{name}={value}" for name, value in values.items())


def _at_points(
    results: Results, code: str, found: list[tuple[int, float]], seen: str, advice: str
) -> Iterator[Warning]:
    """One warning for all points at which something was seen; SEEN takes the largest value."""
    if found:
        points = [point for point, _ in found]
        text = seen.format(max(value for _, value in found)) + _about(results, points)
        yield Warning(code, text, advice, tuple(points))


def _spread(results: Results) -> Iterator[Warning]:
    found = []
    for point in results.plan.points:
        rate = results.aggregate(point.id, PRIMARY)
        if rate and rate.spread_percent is not None and rate.spread_percent > SPREAD_PERCENT:
            found.append((point.id, rate.spread_percent))
    yield from _at_points(
        results,
        "spread",
        found,
        "repetitions differ: standard deviation up to {:.0f} % of the mean",
        "close other programs, give each its processor (--cpu), run longer or repeat more",
    )


def _busy(results: Results, code: str, end: str, other: str) -> Iterator[Warning]:
    found = []
    for point in results.plan.points:
        shares = [run.facts[f"{end}_busy"] for run in results.good(point.id)]
        limits = {run.metrics["limited_by"] for run in results.good(point.id)}
        name = {"psend": "sender cpu", "precv": "receiver cpu"}[end]
        lost = [_not_run_percent(run, end) for run in results.good(point.id)]
        held = shares and statistics.median(shares) > BUSY and limits == {name}
        if held and statistics.median(lost) <= CONTENDED_PERCENT:
            found.append((point.id, 100 * statistics.median(shares)))
    yield from _at_points(
        results,
        code,
        found,
        f"{end} was busy up to {{:.0f}} % of the time",
        f"the rate is that of {end}'s processor: {other}",
    )


def _contended(results: Results) -> Iterator[Warning]:
    """A thread that is not waiting and does not run either: others have the processors."""
    found = []
    for point in results.plan.points:
        runs = results.good(point.id)
        lost = [max(_not_run_percent(run, end) for end in ("psend", "precv")) for run in runs]
        if lost and statistics.median(lost) > CONTENDED_PERCENT:
            found.append((point.id, statistics.median(lost)))
    yield from _at_points(
        results,
        "contended",
        found,
        "a program had to wait for a processor for up to {:.0f} % of the time",
        "end what else runs here, or give each program a processor of its own (--cpu)",
    )


def _not_run_percent(run: Run, end: str) -> float:
    """Of the time; 0 where several instances cannot be told apart."""
    percent = run.metrics.get(f"{end}_cpu_percent")
    instances = sum(program == end for program, _ in run.facts["cpus"])
    return 0.0 if percent is None or instances != 1 else 100 * run.facts[f"{end}_busy"] - percent


def _sender_cpu(results: Results) -> Iterator[Warning]:
    return _busy(results, "sender-cpu", "psend", "more senders (--senders 2) could do more")


def _receiver_cpu(results: Results) -> Iterator[Warning]:
    return _busy(
        results,
        "receiver-cpu",
        "precv",
        "with two receivers (--senders 2 --receivers 2) there is more",
    )


def _first_slower(results: Results) -> Iterator[Warning]:
    """The first is below all others by more than these differ, so that it is no coincidence."""
    found = []
    for point in results.plan.points:
        runs = results.good(point.id)
        rates = [run.metrics[PRIMARY] for run in runs]
        if len(rates) >= FIRST_NEEDS and runs[0].repetition == 0:
            slowest, fastest = min(rates[1:]), max(rates[1:])
            below = slowest - rates[0]
            if below > max((1 - FIRST_SLOWER) * slowest, fastest - slowest):
                found.append((point.id, 100 * below / slowest))
    yield from _at_points(
        results,
        "first-slower",
        found,
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
    found = []
    for point in results.plan.points:
        for run in results.good(point.id)[:1]:
            flight, bound = run.facts["flight_bytes"], run.facts["bound_bytes"]
            if bound is not None and flight > bound:
                found.append((point.id, flight / 1e6))
    yield from _at_points(
        results,
        "credit-unbound",
        found,
        "the credit window is larger (up to {:.1f} MB of bodies) than psend's queue and the "
        "socket buffers together",
        "there, the sockets limit what is on its way, not credit",
    )


RULES: tuple[Callable[[Results], Iterator[Warning]], ...] = (
    _spread,
    _contended,
    _sender_cpu,
    _receiver_cpu,
    _first_slower,
    _shared_cpu,
    _powersave,
    _steal,
    _credit_unbound,
)
CODES = (
    "spread",
    "contended",
    "sender-cpu",
    "receiver-cpu",
    "first-slower",
    "shared-cpu",
    "powersave",
    "steal",
    "credit-unbound",
)
