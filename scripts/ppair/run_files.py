"""Event files of a run, for what its metrics do not hold: distributions, intervals, versions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from . import events, histogram
from .events import Event
from .failure import Exit, Failure
from .histogram import Histogram
from .programs import PRECV, PSEND
from .results import Peer, Results, Run

# Which distribution of a program is its own.
DISTRIBUTIONS = {PRECV: "latency_ns", PSEND: "settlement_ns"}
KINDS = ("start", "ready", "summary")  # of which a file has one each
SUMMARIES = 500  # that are kept


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
    return _read(path(results, run, peer))


def _read(file: Path) -> Iterator[Event]:
    try:
        yield from events.read(file)
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{file}: {error.strerror}") from None
    except events.BadEvent as error:
        raise Failure(Exit.INTERNAL, f"{file}: {error}") from None


def first(results: Results, run: Run, peer: Peer, kind: str) -> Event | None:
    """The first event of a kind, which is soon found if it is one of the first of all."""
    return _first(path(results, run, peer), kind)


def _first(file: Path, kind: str) -> Event | None:
    return next((event for event in _read(file) if event["event"] == kind), None)


def summary(results: Results, run: Run, peer: Peer) -> Event | None:
    """What it wrote at the end, for which all of its file is read: once, however often it is asked
    for, unless SUMMARIES others were since. Not to be changed."""
    file = path(results, run, peer).absolute()
    try:
        state = file.stat()
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{file}: {error.strerror}") from None
    return _summary(file, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=SUMMARIES)
def _summary(file: Path, size: int, mtime_ns: int) -> Event | None:
    """Of a file as it was then."""
    return _first(file, "summary")


def by_kind(results: Results, run: Run, peer: Peer) -> dict[str, Event]:
    """The start, ready and summary that it wrote."""
    return {e["event"]: e for e in read(results, run, peer) if e["event"] in KINDS}


def merged_histogram(
    results: Results, runs: list[Run], program: str, name: str | None = None
) -> Histogram:
    """Of all instances of a program in all RUNS, merged: its own one, or another that it has."""
    member, parts = name or DISTRIBUTIONS[program], []
    for run in runs:
        for peer in peers(run, program):
            event = summary(results, run, peer)
            if event is not None and event.get(member) is not None:
                parts.append(histogram.from_distribution(event[member]))
    return histogram.merge(parts)
