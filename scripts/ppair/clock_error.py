"""How far the clocks of two hosts are apart, and so how much of a latency may be their error.

A host is asked for its time many times. Of a round trip one knows that the answer was made between
its two ends: the host's offset is its time less the middle of the shortest trip, give or take half
of that trip. Latencies are never corrected by it. Where programs run on several hosts, a run's
facts have the offsets, as `clocks`, and what follows for its latencies, as `clock_error`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .units import digits

RESOLUTION_NS = 1000  # of the time that a host tells, which has microseconds

Host = str | None  # an ssh destination; None: this machine


@dataclass(frozen=True)
class Trip:
    """One question and its answer."""

    sent_ns: int  # our clock
    took_ns: int
    there_ns: int  # the host's clock, in between


@dataclass(frozen=True)
class Offset:
    """Of a host's clock from ours; positive: it is ahead."""

    offset_ns: int | None
    uncertainty_ns: int | None
    round_trips: int = 0
    why: str | None = None  # if it is not known


OURS = Offset(0, 0)


@dataclass(frozen=True)
class ClockError:
    """Of the latency between two hosts: those for which it may be largest."""

    sender: Host
    receiver: Host
    bound_ns: int | None  # either way; None: it is not known
    offset_ns: int | None = None  # of the receiver's clock from the sender's
    uncertainty_ns: int | None = None
    why: str | None = None  # if it is not known


def unknown(why: str) -> Offset:
    """For a reason."""
    return Offset(None, None, 0, why)


def estimate(trips: Sequence[Trip]) -> Offset:
    """From the shortest of some round trips."""
    best = min(trips, key=lambda trip: trip.took_ns)
    half_ns = (best.took_ns + 1) // 2
    offset_ns = best.there_ns - best.sent_ns - best.took_ns // 2
    return Offset(offset_ns, half_ns + RESOLUTION_NS, len(trips))


Offsets = Mapping[str, Offset]


def worst(
    pairs: Iterable[tuple[Host, Host]], before: Offsets, after: Offsets
) -> ClockError | None:
    """Of pairs of a sender's and a receiver's host; None if they have one clock.

    It is the larger one of those before and after a run, as a clock may drift or be set in between.
    """
    return larger(
        _between(sender, receiver, offsets)
        for sender, receiver in pairs
        if sender != receiver
        for offsets in (before, after)
    )


def larger(errors: Iterable[ClockError]) -> ClockError | None:
    """The one with the largest bound, where one that is not known is larger than all."""
    return max(errors, key=lambda e: math.inf if e.bound_ns is None else e.bound_ns, default=None)


def _between(sender: Host, receiver: Host, offsets: Offsets) -> ClockError:
    ends = [OURS if host is None else offsets.get(host) for host in (sender, receiver)]
    known = []
    for host, end in zip((sender, receiver), ends):
        if end is None or end.offset_ns is None or end.uncertainty_ns is None:
            why = end.why if end else "it was not measured"
            return ClockError(sender, receiver, None, why=f"clock of {host}: {why}")
        known.append((end.offset_ns, end.uncertainty_ns))
    offset_ns = known[1][0] - known[0][0]
    uncertainty_ns = known[0][1] + known[1][1]
    return ClockError(sender, receiver, abs(offset_ns) + uncertainty_ns, offset_ns, uncertainty_ns)


# ---- in a run's facts ----


def to_facts(before: Offsets, after: Offsets) -> list[dict[str, Any]]:
    """The member `clocks`, in JSON's shapes."""
    hosts = list(dict.fromkeys([*before, *after]))
    return [
        {"host": host, "before": _json(before.get(host)), "after": _json(after.get(host))}
        for host in hosts
    ]


def _json(offset: Offset | None) -> dict[str, Any] | None:
    return asdict(offset) if offset else None


def of_facts(facts: Mapping[str, Any]) -> ClockError | None:
    """The member `clock_error`; None if all programs had one clock, or nobody looked.

    Raises TypeError or ValueError if it is not as it was written.
    """
    written = facts.get("clock_error")
    if written is None:
        return None
    error = ClockError(**written)
    numbers = (error.bound_ns, error.offset_ns, error.uncertainty_ns)
    if not all(type(n) is int for n in numbers) and (any(n is not None for n in numbers)):
        raise ValueError("clock_error is not a number")
    return error


def words(error: ClockError) -> str:
    """What is known, without a full stop."""
    if error.bound_ns is None or error.offset_ns is None or error.uncertainty_ns is None:
        return f"how much of the latency is clock error is not known ({error.why})"
    ahead, behind = error.receiver, error.sender
    if error.offset_ns < 0:
        ahead, behind = behind, ahead
    return (
        f"latency may be off by +- {_us(error.bound_ns)} us: the clock of {_name(ahead)} is "
        f"{_us(abs(error.offset_ns))} us ahead of that of {_name(behind)}, +- "
        f"{_us(error.uncertainty_ns)} us"
    )


def notes(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence on the worst of RUNS, of which these are the facts, if any had several clocks."""
    worst_one = larger(error for error in map(of_facts, runs) if error)
    said = words(worst_one) if worst_one else ""
    return [f"{said[0].upper()}{said[1:]}."] if said else []


def _name(host: Host) -> str:
    return "this host" if host is None else host


def _us(value_ns: int) -> str:
    return digits(value_ns / 1000, 3)
