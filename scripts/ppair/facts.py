"""What of a run warnings need to know beside its metrics, from its programs' own words.

Members, of `Run.facts`: `psend_busy`, `precv_busy`: share of wall time in which the busiest one was
busy; `cpus`: pairs of a program and the list of processors it was bound to, None if to none;
`hosts`: how many machines; `cpu_count`: of the smallest of them; `flight_bytes`: message bodies
that the credit window lets be on their way; `bound_bytes`: what psend's queue and the socket
buffers hold, None if the kernel does not say; `missing`: what does not add up in the accounts, None
if they do; of programs on several hosts `clocks` and `clock_error`, which clocks.py measures, and
`phases`, of senders in open loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .events import Event
from .limits import busy_share

QUEUE_BYTES = 32 * 1024  # that psend hands to the library at a time


def of_run(
    psend_starts: Sequence[Event],
    precv_starts: Sequence[Event],
    psend: Sequence[Event],
    precv: Sequence[Event],
) -> dict[str, Any]:
    """From start events and summaries."""
    starts = [*psend_starts, *precv_starts]
    options = [event["options"] for event in starts]
    return {
        "psend_busy": busy_share(psend),
        "precv_busy": busy_share(precv),
        "cpus": [[event["program"], event["options"]["cpu"]] for event in starts],
        "hosts": len({event["host"] for event in starts}),
        "cpu_count": min(event["cpu"]["count"] for event in starts),
        "flight_bytes": _flight_bytes(options),
        "bound_bytes": _bound_bytes(options),
    }


def processors(starts: Sequence[Event]) -> int:
    """Of all hosts together."""
    return sum({event["host"]: int(event["cpu"]["count"]) for event in starts}.values())


def _flight_bytes(options: Sequence[dict[str, Any]]) -> int:
    credit = max(o["credit"] for o in options if "credit" in o)
    sizes = [body_bytes(o) for o in options if "content_size_bytes" in o]
    return int(credit * max(size for size in sizes if size is not None))


def body_bytes(options: dict[str, Any]) -> int | None:
    """Of each message, as psend's start event says."""
    given = options.get("content_string")
    return len(given) if given else options.get("content_size_bytes")


def _bound_bytes(options: Sequence[dict[str, Any]]) -> int | None:
    buffers = (
        _buffer([o["sndbuf_bytes"] for o in options if "content_size_bytes" in o], "tcp_wmem"),
        _buffer([o["rcvbuf_bytes"] for o in options if "credit" in o], "tcp_rmem"),
    )
    return None if None in buffers else QUEUE_BYTES + sum(b for b in buffers if b is not None)


def _buffer(given: Sequence[int | None], setting: str) -> int | None:
    """As given, twice of which the kernel takes; or the largest that it grows to by itself."""
    if all(given):
        return max(2 * bytes_ for bytes_ in given if bytes_ is not None)
    try:
        return int(Path(f"/proc/sys/net/ipv4/{setting}").read_text(encoding="ascii").split()[2])
    except (OSError, ValueError, IndexError):
        return None
