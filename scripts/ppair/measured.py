"""What one run has measured: numbers by name, made from its programs' summaries.

Rates are of all receivers together: messages / (last - first), on the time line that the programs'
`began_time_ns` gives. Distributions are merged. A number that does not exist is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import histogram
from .events import Event
from .limits import limited_by

Value = float | int | None

HANDSHAKE_FRAMES = 3  # open, begin, attach


def measure(
    psend: Sequence[Event],
    precv: Sequence[Event],
    by_broker: bool = False,
    processors: int | None = None,
) -> dict[str, Any]:
    """All metrics, and `limited_by`, from the summaries of one run.

    PROCESSORS is how many there are on all hosts together.
    """
    span_s = common_span_s(precv)
    received = sum(event["measured_messages"] for event in precv)
    content = sum(event["content_bytes"] for event in precv)
    stalled = [_share(event["credit"]["stalled_s"], event["wall_s"]) for event in psend]
    return {
        "messages_per_s": _share(received, span_s),
        "bytes_per_s": _share(content, span_s),
        **_percentiles("latency", precv, (50, 90, 99, 99.9)),
        "latency_error_ns": None,  # clocks.py knows it, if there are several
        "latency_negative": merged(precv, "latency_ns").negative,
        **_percentiles("settlement", psend),
        **_percentiles("round_trip", psend),
        "unmatched": _count(psend, "messages", "unmatched"),
        "unanswerable": _count(precv, "messages", "unanswerable"),
        **_percentiles("send_delay", psend),
        **pacing(psend),
        "call_ns": _weighted(psend, "call_ns"),
        **_cpu("psend", psend),
        **_cpu("precv", precv),
        "psend_spinning_percent": _spinning(psend),
        "precv_spinning_percent": _spinning(precv),
        "blocked": sum(event["credit"]["blocked"] for event in psend),
        "stalled_percent": _mean([100 * share for share in stalled if share is not None]),
        "resent": _count(psend, "messages", "resent"),
        "duplicated": _count(precv, "messages", "duplicated"),
        "reconnects": _count([*psend, *precv], "connection", "reconnects"),
        "disconnected_s": _longest_gap_s([*psend, *precv]),
        "flow_frames_per_1000": _flow_frames(psend, precv),
        "psend_rss_bytes": _greatest(psend, "rss_peak_bytes"),
        "precv_rss_bytes": _greatest(precv, "rss_peak_bytes"),
        "limited_by": limited_by(psend, precv, by_broker),
        **_tasks(psend, precv, processors),
        **_batches(psend),
    }


def trip(event: Event) -> Event:
    """The distribution of psend's round trips: to the answers, if it has asked for such, or else
    to settlement."""
    return dict(event.get("round_trip_ns") or event["settlement_ns"])


def _tasks(
    psend: Sequence[Event], precv: Sequence[Event], processors: int | None
) -> dict[str, Value]:
    """What rds-stress shows, beside other metrics."""
    trips = histogram.merge([histogram.from_distribution(trip(event)) for event in psend])
    percents = [event["cpu"]["percent"] for event in (*psend, *precv)]
    used = None if None in percents else math.fsum(percents)
    return {
        "sent_per_s": _share(sum(e["measured_messages"] for e in psend), common_span_s(psend)),
        "trip_mean_ns": trips.mean_ns,
        "trip_p50_ns": trips.percentile_ns(50),
        "trip_p99_ns": trips.percentile_ns(99),
        "host_cpu_percent": _share(used, processors),
    }


def batch_times(psend: Sequence[Event], name: str) -> histogram.Histogram:
    """Of all senders: NAME is first_ns, last_ns, or last_ticks, which are in ticks."""
    known = [event["batch"][name] for event in psend if event.get("batch")]
    return histogram.merge([histogram.from_distribution(found) for found in known if found])


def _batches(psend: Sequence[Event]) -> dict[str, Value]:
    """Of --batch: until the first and the last message of a batch were settled."""
    last, size = batch_times(psend, "last_ns"), None
    if last.counts:
        size = max(event["batch"]["size"] for event in psend if event.get("batch"))
    return {
        "batches": last.count if size else None,
        "batch_first_p50_ns": batch_times(psend, "first_ns").percentile_ns(50),
        "batch_p50_ns": last.percentile_ns(50),
        "batch_p99_ns": last.percentile_ns(99),
        "batch_max_ns": last.max_ns,
        "batch_per_message_ns": _share(last.percentile_ns(50), size),
        "batch_p50_ticks": batch_times(psend, "last_ticks").percentile_ns(50),
    }


def common_span_s(events: Sequence[Event]) -> float | None:
    """From the first message to the last, of all receivers, or of all senders."""
    some = [event for event in events if event["first_s"] is not None]
    if not some:
        return None
    zero_ns = min(event["began_time_ns"] for event in some)
    began_s = [(event["began_time_ns"] - zero_ns) / 1e9 for event in some]
    first_s = min(began + event["first_s"] for began, event in zip(began_s, some))
    return max(began + event["last_s"] for began, event in zip(began_s, some)) - first_s


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _greatest(events: Sequence[Event], key: str) -> Value:
    return max((event[key] for event in events if event[key] is not None), default=None)


def _count(events: Sequence[Event], member: str, kind: str) -> int | None:
    """Of all that have such a count."""
    counts = [(event.get(member) or {}).get(kind) for event in events]
    known = [value for value in counts if value is not None]
    return sum(known) if known else None


def _longest_gap_s(events: Sequence[Event]) -> float | None:
    """Time without a connection, of the program that was without one for longest."""
    gaps_s = [(event.get("connection") or {}).get("disconnected_s") for event in events]
    return max((gap_s for gap_s in gaps_s if gap_s is not None), default=None)


def _spinning(events: Sequence[Event]) -> float | None:
    """Percent of the time, of all that look for news again and again (--busy-poll).

    They do so a little longer than a run's wall time, as they use their processors.
    """
    polled = [event for event in events if event.get("busy_poll")]
    shares = [_share(event["busy_poll"]["spun_s"], event["cpu"]["span_s"]) for event in polled]
    return _mean([100 * share for share in shares if share is not None])


def _weighted(events: Sequence[Event], key: str) -> float | None:
    """Mean over all messages of a mean per message."""
    known = [(event[key], event["measured_messages"]) for event in events if event[key] is not None]
    return _share(math.fsum(value * count for value, count in known), sum(n for _, n in known))


OF_ALL = ("latency_ns", "settlement_ns")  # distributions that every program of its kind has


def merged(events: Sequence[Event], name: str) -> histogram.Histogram:
    """The distribution of that name, of all that have it; of none it is empty."""
    found = [event[name] for event in events if name in OF_ALL or event.get(name)]
    return histogram.merge([histogram.from_distribution(one) for one in found])


def _percentiles(
    name: str, events: Sequence[Event], percents: Sequence[float] = (50, 99)
) -> dict[str, Value]:
    """Of p99.9 the name is p999."""
    found = merged(events, f"{name}_ns")
    values: dict[str, Value] = {
        f"{name}_p{percent:g}_ns".replace(".", ""): found.percentile_ns(percent)
        for percent in percents
    }
    return {**values, f"{name}_max_ns": found.max_ns}


PACING = ("target_per_s", "achieved_per_s", "late", "skipped", "backlog", "rate_met")


def pacing(psend: Sequence[Event]) -> dict[str, Value]:
    """Of all senders in open loop together; `rate_met` is 1 if each has held its rate, 0 if one has
    not, else it is not known."""
    paced = [event["pacing"] for event in psend if event.get("pacing")]
    if not paced:
        return dict.fromkeys(PACING)
    return {
        "target_per_s": math.fsum(each["target_per_s"] for each in paced),
        "achieved_per_s": _sum([each["achieved_per_s"] for each in paced]),
        "late": sum(each["late"] for each in paced),
        "skipped": sum(each["skipped"] for each in paced),
        "backlog": sum(max(backlog(event), 0) for event in psend if event.get("pacing")),
        "rate_met": _all_met([each["rate_met"] for each in paced]),
    }


def _all_met(each: Sequence[bool | None]) -> int | None:
    """Of one that had nothing to send yet, nothing is known."""
    if False in each:
        return 0
    return None if None in each else 1


def backlog(event: Event) -> int:
    """Messages that were due in an event's period, and were neither sent in it nor given up; below
    0 where what was due before it was sent in it, so that those of several periods add up."""
    sent = event.get("measured_messages", event["messages"]["sent"])
    return int(event["pacing"]["due"] - sent - event["pacing"]["skipped"])


def _sum(values: Sequence[float | None]) -> float | None:
    """None if one of them is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _cpu(program: str, events: Sequence[Event]) -> dict[str, Value]:
    """Percent of one processor, all instances together, and CPU time per message."""
    used_s = math.fsum(event["cpu"]["user_s"] + event["cpu"]["system_s"] for event in events)
    percents = [event["cpu"]["percent"] for event in events]
    messages = sum(event["measured_messages"] for event in events)
    return {
        f"{program}_cpu_percent": None if None in percents else math.fsum(percents),
        f"{program}_cpu_per_message_ns": _share(used_s * 1e9, messages),
    }


def _flow_frames(psend: Sequence[Event], precv: Sequence[Event]) -> float | None:
    """FLOW frames per 1000 messages: what receivers of settled messages send after attaching.

    None where dispositions are among the frames, which cannot be told apart. The frames with which
    a connection is opened come before a warm-up, if there is one, and are not counted then.
    """
    if any(event["messages"]["accepted"] is not None for event in psend):
        return None
    warmed_up = all(event["start_s"] > 0 for event in precv)
    opening = 0 if warmed_up else HANDSHAKE_FRAMES * len(psend)  # a connection for each sender
    frames = sum(event["credit"]["frames_out"] for event in precv) - opening
    return _share(1000 * frames, sum(event["measured_messages"] for event in precv))
