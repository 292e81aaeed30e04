"""Results: what was planned, what was run, what came out. store.py keeps them in a directory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .advice import Warning
from .axes import Axis
from .metrics import BY_NAME
from .spec import Spec

GOOD = "good"
FAILED = "failed"
INTERRUPTED = "interrupted"
RUNNING = "running"
COMPLETE = "complete"


@dataclass(frozen=True)
class Point:
    """One place in the grid."""

    id: int
    values: dict[str, str]  # by axis
    spec: Spec

    @property
    def label(self) -> str:
        """low=10 taken=one"""
        return " ".join(f"{name}={value}" for name, value in self.values.items())


@dataclass(frozen=True)
class Plot:
    """A picture that report makes: metrics over an axis, or one metric over two."""

    title: str
    x: str  # axis
    y: tuple[str, ...]  # metrics, one panel each
    series: str | None = None  # axis: a line for each of its values; of a heat map, the other one
    kind: str = "line"  # or "heat", for which y has one metric
    flight_bytes: int | None = None  # heat map: draw where window x body is so much
    note: str = ""  # what is to be seen


@dataclass(frozen=True)
class Plan:
    """What is to be measured, and how it is shown."""

    command: str  # run, sweep, tune, latency, compare, soak
    title: str
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    repetitions: int
    seed: int
    plots: tuple[Plot, ...] = ()
    metrics: tuple[str, ...] = ()  # columns of the table; empty: the usual ones
    order: tuple[tuple[int, int], ...] = ()  # point and repetition, as they are to be run


@dataclass(frozen=True)
class Peer:
    """One program of a run."""

    name: str  # psend-0, and of its files: psend-0.jsonl, psend-0.stderr
    host: str | None  # None: here
    argv: tuple[str, ...]
    exit_code: int | None
    stderr: str  # its last line


@dataclass(frozen=True)
class Run:
    """One run of one point."""

    point: int
    repetition: int
    attempt: int = 0
    status: str = RUNNING  # then good, failed or interrupted
    why: str | None = None  # if not good
    exit_code: int = 0  # how ppair would exit for it
    started_ns: int = 0  # since the epoch
    wall_s: float = 0.0
    steal_percent: float | None = None
    peers: tuple[Peer, ...] = ()
    metrics: dict[str, Any] = field(default_factory=dict)  # see measured.measure()
    facts: dict[str, Any] = field(default_factory=dict)  # what warnings need, see facts.py

    @property
    def folder(self) -> str:
        """Its name."""
        again = f"-a{self.attempt}" if self.attempt else ""
        return f"p{self.point:03d}-r{self.repetition:02d}{again}"


@dataclass(frozen=True)
class Aggregate:
    """A metric over the good repetitions of a point."""

    values: tuple[float, ...]
    mean: float | None  # None for percentiles and maxima, which are never averaged
    stddev: float | None  # of a sample; None if there is one value
    median: float

    @property
    def spread_percent(self) -> float | None:
        """Standard deviation as a share of the mean."""
        return 100 * self.stddev / self.mean if self.stddev is not None and self.mean else None


def aggregate(values: Iterable[float | int | None], averaged: bool = True) -> Aggregate | None:
    """None where no value exists; without mean and deviation if it is not to be AVERAGED."""
    known = tuple(float(value) for value in values if value is not None)
    if not known:
        return None
    return Aggregate(
        values=known,
        mean=math.fsum(known) / len(known) if averaged else None,
        stddev=statistics.stdev(known) if averaged and len(known) > 1 else None,
        median=statistics.median(known),
    )


@dataclass
class Results:
    """A directory and what is known of it. `runs` has the last attempt of each run."""

    directory: Path
    plan: Plan
    argv: tuple[str, ...]
    machine: dict[str, Any]
    created_ns: int
    status: str = RUNNING
    why: str | None = None
    runs: list[Run] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    findings: dict[str, Any] = field(default_factory=dict)  # of tune, latency, compare, soak

    def of_point(self, point: int) -> list[Run]:
        """Its runs, by repetition."""
        return sorted((r for r in self.runs if r.point == point), key=lambda r: r.repetition)

    def good(self, point: int) -> list[Run]:
        """Its good runs."""
        return [run for run in self.of_point(point) if run.status == GOOD]

    def aggregate(self, point: int, metric: str) -> Aggregate | None:
        """Of the good repetitions."""
        averaged = BY_NAME[metric].averaged if metric in BY_NAME else True
        return aggregate((run.metrics.get(metric) for run in self.good(point)), averaged)

    def left(self) -> list[tuple[int, int]]:
        """What of the plan's order has not been run well, in that order."""
        done = {(run.point, run.repetition) for run in self.runs if run.status == GOOD}
        return [entry for entry in self.plan.order if entry not in done]

    def run_folder(self, run: Run) -> Path:
        """Where its files are."""
        return self.directory / "runs" / run.folder
