"""Results directories out of made-up numbers, with event files as psend and precv write them."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ppair import advice, limits, measured, metrics, store
from ppair import results as outcomes
from ppair.axes import Axis, grid
from ppair.results import Peer, Plan, Plot, Point, Results, Run
from ppair.spec import Spec
from sample_events import DURATION_S, EPOCH_NS, MACHINE, WARMUP_S, events

__all__ = ["DURATION_S", "EPOCH_NS", "MACHINE", "WARMUP_S", "events", "make", "in_memory"]

Values = dict[str, str]


def make(
    directory: Path,
    *,
    command: str = "sweep",
    title: str = "A made-up experiment",
    axes: Sequence[Axis] = (),
    repetitions: int = 3,
    rate: Callable[[Values], float] = lambda values: 1e6,
    latency_ns: Callable[[Values], float] = lambda values: 200_000.0,
    plots: Sequence[Plot] = (),
    shown: Sequence[str] = (),
    fails: Callable[[Values, int], str | None] = lambda values, repetition: None,
    noise: float = 0.02,
    senders: int = 1,
    receivers: int = 1,
    status: str = outcomes.COMPLETE,
    interval_s: float = 0.5,
) -> Results:
    """A results directory: messages/s from RATE, give or take NOISE; FAILS says why a run did."""
    points = tuple(
        Point(id, values, Spec(("--content-size", "100"), senders=senders, receivers=receivers))
        for id, values in enumerate(grid(axes))
    )
    order = tuple((p.id, r) for r in range(repetitions) for p in points)
    plan = Plan(
        command, title, tuple(axes), points, repetitions, 7, tuple(plots), tuple(shown), order
    )
    argv = ("ppair", command, "--out", str(directory))
    results = store.create(directory, plan, argv, MACHINE)
    for point_id, repetition in order:
        point = points[point_id]
        why = fails(point.values, repetition)
        run = Run(point_id, repetition, started_ns=EPOCH_NS, wall_s=3.0)
        chance = random.Random(f"{point_id} {repetition}")
        written: dict[str, list[dict[str, Any]]] = {}
        if why is None:
            actual = rate(point.values) * (1 + chance.gauss(0, noise))
            written = _written(
                chance, actual, latency_ns(point.values), senders, receivers, interval_s
            )
        record(results, run, written, why)
    results.status = status
    results.warnings = advice.warnings(results)
    store.save_manifest(results)
    store.save_summary(results)
    return results


def _written(
    chance: random.Random,
    rate: float,
    latency_ns: float,
    senders: int,
    receivers: int,
    interval_s: float,
) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for program, count, busy in (("precv", receivers, 0.9), ("psend", senders, 0.7)):
        for index in range(count):
            found[f"{program}-{index}"] = events(
                program,
                chance,
                rate / count,
                latency_ns=latency_ns,
                busy=busy,
                interval_s=interval_s,
            )
    return found


def record(
    results: Results, run: Run, written: dict[str, list[dict[str, Any]]], why: str | None = None
) -> None:
    """One run, whose programs have WRITTEN these events; WHY it is not good."""
    scratch = results.directory / "runs" / f".{run.folder}"
    scratch.mkdir()
    for name, lines in written.items():
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (scratch / f"{name}.jsonl").write_text(text, encoding="ascii")
    psend, precv = (
        [lines[-1] for name, lines in written.items() if name.startswith(program)]
        for program in ("psend", "precv")
    )
    names = list(written) or ["precv-0", "psend-0"]
    peers = tuple(
        Peer(
            name, None, (f"/opt/bin/{name[:5]}", "--format", "json"), 0 if written else 2, why or ""
        )
        for name in names
    )
    good = why is None
    facts = {
        "psend_busy": limits.busy_share(psend),
        "precv_busy": limits.busy_share(precv),
        "cpus": [[name[:5], None] for name in names],
        "hosts": 1,
        "cpu_count": 4,
        "flight_bytes": 100_000,
        "bound_bytes": 4_000_000,
    }
    whole = Run(
        run.point,
        run.repetition,
        status=outcomes.GOOD if good else outcomes.FAILED,
        why=why,
        exit_code=0 if good else 2,
        started_ns=run.started_ns,
        wall_s=run.wall_s,
        peers=peers,
        metrics=measured.measure(psend, precv, processors=4) if good else {},
        facts=facts if good else {},
    )
    store.record(results, whole, scratch)


# ---- experiments that look like the real ones ----

STALL_AXES = (
    Axis("taken", ("one", "all"), "messages taken in one event"),
    Axis(
        "low", tuple(str(x) for x in range(0, 191, 10)), "X: credit at which 100 more are granted"
    ),
)


def stall_rate(values: Values) -> float:
    """A cliff near 0."""
    best = 1.1e6 if values["taken"] == "one" else 1.75e6
    return best * (1 - 0.85 * math.exp(-float(values["low"]) / 15))


def stall(directory: Path, **more: Any) -> Results:
    """The credit-stall preset's shape."""
    given = {
        "title": "Credit stall: 200 credits, 100 more whenever they have fallen to X",
        "axes": STALL_AXES,
        "rate": stall_rate,
        "plots": (
            Plot(
                "Credit stall",
                "low",
                ("messages_per_s", "latency_p99_ns"),
                "taken",
                note="200 credits at first; 100 more are granted whenever credit has fallen to X.",
            ),
        ),
        "shown": ("messages_per_s", "latency_p99_ns", "precv_cpu_percent"),
        **more,
    }
    return make(directory, **given)


HEAT_AXES = (
    Axis("credit", ("1", "3", "10", "30", "100", "300", "1000", "3000"), "credit, messages", True),
    Axis("content-size", ("10", "100", "1k", "10k", "100k"), "body, bytes", True),
)


def heat(directory: Path, **more: Any) -> Results:
    """The credit-by-size preset's shape."""
    from ppair.units import number

    def rate(values: Values) -> float:
        credit, size = (number(values[name]) or 0 for name in ("credit", "content-size"))
        return 1.8e6 * credit / (credit + 30) / (1 + size / 3000)

    plot = Plot(
        "Rate, msg/s", "credit", ("messages_per_s",), "content-size", "heat", flight_bytes=65536
    )
    given = {"title": "Credit by size", "axes": HEAT_AXES, "rate": rate, "plots": (plot,), **more}
    return make(directory, **given)


def single(directory: Path, **more: Any) -> Results:
    """What `ppair run` leaves."""
    given = {"command": "run", "title": "psend and precv", "repetitions": 5, **more}
    return make(directory, **given)


def in_memory(
    rates: dict[str, Sequence[float | None]], *, command: str = "sweep", **plan: Any
) -> Results:
    """Results without a directory: points by the value of the axis "x", and what each run measured.

    None is a run that failed. Of each rate r, latency p99 is 1e9 / r and `limited_by` "r <rate>".
    """
    points = tuple(Point(i, {"x": x} if x else {}, Spec()) for i, x in enumerate(rates))
    axes = (Axis("x", tuple(rates), "x, things"),) if "" not in rates else ()
    given = {"title": "T", "axes": axes, "points": points, "repetitions": 3, "seed": 1, **plan}
    runs = [
        Run(
            point.id,
            repetition,
            status=outcomes.FAILED if rate is None else outcomes.GOOD,
            why="psend-0: no | \u00e9" if rate is None else None,
            metrics=_metrics(rate) if rate is not None else {},
        )
        for point, of_point in zip(points, rates.values())
        for repetition, rate in enumerate(of_point)
    ]
    found = Results(Path("nowhere"), Plan(command, **given), ("ppair",), MACHINE, EPOCH_NS)
    found.status, found.runs = outcomes.COMPLETE, runs
    return found


def _metrics(rate: float) -> dict[str, Any]:
    empty = dict.fromkeys(metric.name for metric in metrics.METRICS)
    numbers = {"messages_per_s": rate, "latency_p99_ns": 1e9 / rate if rate else None}
    return {**empty, **numbers, "limited_by": f"r {rate:g}"}
