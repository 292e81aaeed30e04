"""Whether every message of a run is accounted for, from the summaries of its programs.

Directly, or by way of a broker from one sender to one receiver, the receiver knows from sequence
numbers what is lost and what came twice. Of several by way of a broker it does not: each receiver
has some numbers of each sender, on one link. There the sums alone must agree.

A sender that has connected again sends what was not settled a second time: as many messages as that
may be duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence

from .events import Event
from .spec import Spec

OUTCOMES = ("accepted", "rejected", "released", "modified", "no_outcome", "unsettled")


def what_is_missing(spec: Spec, psend: Sequence[Event], precv: Sequence[Event]) -> str | None:
    """The first thing in the accounts of all programs that does not add up, or None."""
    return (
        _of_senders(psend)
        or _came_before(spec, psend, precv)
        or (None if spec.shares_queue else _of_receivers(psend, precv))
        or _of_all(spec, psend, precv)
    )


def count(events: Sequence[Event], kind: str) -> int:
    """Messages of that kind, of all programs; 0 where it does not exist."""
    return sum(event["messages"].get(kind) or 0 for event in events)


def _of_senders(psend: Sequence[Event]) -> str | None:
    for event in psend:
        counts = event["messages"]
        if counts["accepted"] is None:
            continue
        if counts["sent"] != sum(counts[kind] for kind in OUTCOMES):
            return f"psend: {counts['sent']} sent is not the sum of the outcomes"
        if counts["unsettled"]:
            return f"psend: {counts['unsettled']} messages were never settled"
    return None


def _came_before(spec: Spec, psend: Sequence[Event], precv: Sequence[Event]) -> str | None:
    """Messages that were received before any was sent, which one machine's clock can tell."""
    sent = [event["began_time_ns"] for event in psend if event["began_time_ns"] is not None]
    received = [event["began_time_ns"] for event in precv if event["began_time_ns"] is not None]
    if not spec.via or not spec.local or not sent or not received or min(received) >= min(sent):
        return None
    return (
        "messages of an earlier run were in the queue: empty it, or let each run have its own "
        "(--via without an address, or with {} in it)"
    )


def _of_receivers(psend: Sequence[Event], precv: Sequence[Event]) -> str | None:
    for kind, allowed in (("lost", 0), ("duplicated", count(psend, "resent"))):
        found = count(precv, kind)
        if found > allowed:
            more = f", of which {allowed} were sent again" if allowed else ""
            return f"precv: {found} messages {kind}{more}"
    return None


def _of_all(spec: Spec, psend: Sequence[Event], precv: Sequence[Event]) -> str | None:
    corrupted = count(precv, "corrupted")
    if corrupted:
        return f"precv: {corrupted} messages were not as they had been sent"
    sent, received = count(psend, "sent"), count(precv, "received")
    least, most = _twice(spec, psend, precv)
    if sent + least <= received <= sent + most:
        return None
    again = f" and {most} of them perhaps twice" if most else ""
    before = spec.via and received > sent + most
    why = ": some were there before, or came from elsewhere" if before else ""
    return f"{sent} messages sent{again}, {received} received{why}"


def _twice(spec: Spec, psend: Sequence[Event], precv: Sequence[Event]) -> tuple[int, int]:
    """How many messages are counted twice by receivers, at least and at most."""
    if spec.shares_queue:
        return 0, count(psend, "resent")
    known = 0 if "--ignore-duplicates" in spec.precv else count(precv, "duplicated")
    return known, known
