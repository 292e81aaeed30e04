"""Event files of a run, for what its metrics do not hold: distributions, intervals, versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import events, histogram
from .events import Event
from .failure import Exit, Failure
from .histogram import Histogram
from .programs import PRECV, PSEND
from .results import Peer, Results, Run

# Which distribution is whose, and what it is called where people read it.
DISTRIBUTIONS = {PRECV: "latency_ns", PSEND: "settlement_ns"}
KINDS = ("start", "ready", "summary")  # of which a file has one each


def program_of(peer: Peer) -> str:
    """psend or precv."""
    return PSEND if peer.name.startswith(PSEND) else PRECV


def peers(run: Run, program: str) -> list[Peer]:
    """The instances of a program."""
    return [peer for peer in run.peers if program_of(peer) == program]


def path(results: Results, run: Run, peer: Peer) -> Path:
    """Its event file."""
    return results.run_folder(run) / f"{peer.name}.jsonl"


def read(results: Results, run: Run, peer: Peer) -> Iterator[Event]:
    """Its events, one at a time: a soak has many."""
    file = path(results, run, peer)
    try:
        yield from events.read(file)
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{file}: {error.strerror}") from None
    except events.BadEvent as error:
        raise Failure(Exit.INTERNAL, f"{file}: {error}") from None


def first(results: Results, run: Run, peer: Peer, kind: str) -> Event | None:
    """The first event of a kind."""
    return next((event for event in read(results, run, peer) if event["event"] == kind), None)


def by_kind(results: Results, run: Run, peer: Peer) -> dict[str, Event]:
    """The start, ready and summary that it wrote."""
    return {e["event"]: e for e in read(results, run, peer) if e["event"] in KINDS}


def distribution(
    results: Results, runs: list[Run], program: str, name: str | None = None
) -> Histogram:
    """Of all instances of a program in all RUNS, merged: its own one, or another that it has."""
    member, parts = name or DISTRIBUTIONS[program], []
    for run in runs:
        for peer in peers(run, program):
            summary = first(results, run, peer, "summary")
            if summary is not None and summary.get(member) is not None:
                parts.append(histogram.from_distribution(summary[member]))
    return histogram.merge(parts)
