"""What held a run back, from where its programs' time went."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .events import Event

BUSY_LIMIT = 0.85  # share of its time from which a thread is called the limit
# What a sender waits for that a broker gives; receivers wait if they do for so much of their time.
BROKER_GIVES = ("credit", "session", "socket", "settlement")
WAITING_SHARE = 0.5


def busy_share(events: Sequence[Event]) -> float:
    """Of the instance that is busiest."""
    return max((e["time_s"]["busy"] / e["wall_s"] for e in events if e["wall_s"]), default=0.0)


def limited_by(
    psend: Sequence[Event], precv: Sequence[Event], by_broker: bool = False
) -> str:
    """What held the run back, in words, from both ends.

    An end that is busy nearly all the time is the limit; of two such ends, the one that is busier.
    If neither is busy, what the sender waits for most is. By way of a broker these are the broker's
    credit, window, socket or settlement; if receivers wait as well, for messages, it is the broker.
    """
    busy = {"sender cpu": busy_share(psend), "receiver cpu": busy_share(precv)}
    name = max(busy, key=lambda end: busy[end])
    if busy[name] >= BUSY_LIMIT:
        return name
    waits: dict[str, float] = {}
    for event in psend:
        for cause, value in event["time_s"].items():
            if cause != "busy":
                waits[cause] = waits.get(cause, 0.0) + value
    longest = max(waits, key=lambda cause: waits[cause])
    if longest in ("credit", "settlement"):
        pacing = sum(event["time_s"]["pacing"] for event in precv)
        if pacing > 0.5 * sum(event["wall_s"] for event in precv):
            return "receiver pacing"
    if by_broker and longest in BROKER_GIVES and waits[longest] > 0 and _wait_for_messages(precv):
        return "broker"
    return longest if waits[longest] > 0 else name


def _wait_for_messages(precv: Sequence[Event]) -> bool:
    """Whether receivers had nothing to do for most of the time."""
    idle_s = math.fsum(event["time_s"]["idle"] for event in precv)
    return idle_s > WAITING_SHARE * math.fsum(event["wall_s"] for event in precv)
