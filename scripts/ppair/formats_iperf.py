"""A run as iperf3 writes one with --json: member names are those of iperf 3.21, TCP.

A sender is iperf3's client, a receiver its server; streams are pairs of them. Bytes are those of
message bodies. What the kernel knows of TCP (retransmits, windows, round trips) is null. Intervals
of the warm-up are `omitted`, as with iperf3's --omit, and their times begin at 0 as its do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from . import facts, measured, run_files
from .events import Event
from .programs import PRECV, PSEND
from .results import Peer, Point, Results, Run

TCP_OF_INTERVAL = ("retransmits", "snd_cwnd", "snd_wnd", "rtt", "rttvar", "pmtu", "reorder")
TCP_OF_SENDER = (
    "retransmits",
    "reorder",
    "max_snd_cwnd",
    "max_snd_wnd",
    "max_rtt",
    "min_rtt",
    "mean_rtt",
)
Document = dict[str, Any]


def iperf(results: Results, point: Point, run: Run) -> Document:
    """One document."""
    senders = run_files.peers(run, PSEND)
    receivers = run_files.peers(run, PRECV)
    sent = [run_files.by_kind(results, run, peer) for peer in senders]
    received = [run_files.by_kind(results, run, peer) for peer in receivers]
    title = f"{point.label} repetition={run.repetition}".lstrip()
    return {
        "start": _start(run, sent, received),
        "intervals": _intervals(results, run, senders),
        "end": _end([e["summary"] for e in sent], [e["summary"] for e in received]),
        "title": title,
        "extra_data": str(results.run_folder(run)),
    }


# ---- start ----


def _start(
    run: Run, sent: Sequence[dict[str, Event]], received: Sequence[dict[str, Event]]
) -> Document:
    start, ready = sent[0]["start"], sent[0].get("ready", {})
    options = start["options"]
    millis = run.started_ns // 1_000_000
    return {
        "connected": [_connected(index, events) for index, events in enumerate(sent)],
        "version": f"{start['program']} {start['version']}",
        "system_info": f"{start['kernel']} {start['host']}",
        "timestamp": {
            "time": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(millis // 1000)),
            "timesecs": millis // 1000,
            "timemillisecs": millis,
        },
        "connecting_to": {"host": ready.get("host"), "port": ready.get("port")},
        "cookie": None,
        "tcp_mss_default": None,
        "target_bitrate": 0,
        "fq_rate": 0,
        "sock_bufsize": options.get("sndbuf_bytes") or 0,
        "sndbuf_actual": None,
        "rcvbuf_actual": None,
        "test_start": {
            "protocol": "TCP",
            "num_streams": max(len(sent), len(received)),
            "blksize": facts.body_bytes(options),
            "omit": _whole_seconds(options.get("warmup_ns")),
            "duration": _whole_seconds(options.get("duration_ns")),
            "bytes": 0,
            "blocks": options.get("messages") or 0,
            "reverse": 0,
            "tos": 0,
            "target_bitrate": 0,
            "bidir": 0,
            "fqrate": 0,
            "interval": (options.get("interval_ns") or 0) / 1e9,
            "gso": 0,
            "gro": 0,
        },
    }


def _connected(index: int, events: dict[str, Event]) -> Document:
    ready = events.get("ready", {})
    return {
        "socket": index,
        "local_host": events["start"]["host"],
        "local_port": None,
        "remote_host": ready.get("host"),
        "remote_port": ready.get("port"),
    }


def _whole_seconds(value_ns: int | None) -> int:
    """iperf3 has no fractions there; rounded up, and 0 for none."""
    return math.ceil((value_ns or 0) / 1e9)


# ---- intervals ----


def _intervals(results: Results, run: Run, senders: Sequence[Peer]) -> list[Document]:
    """Of all senders, put together by their order."""
    each = [
        [e for e in run_files.read(results, run, peer) if e["event"] == "interval"]
        for peer in senders
    ]
    found = []
    for events in zip(*each):
        zero_s = 0.0 if events[0]["warmup"] else _measured_from(each[0])
        streams = [_interval(index, event, zero_s) for index, event in enumerate(events)]
        found.append({"streams": streams, "sum": _sum_of_interval(streams)})
    return found


def _measured_from(events: Sequence[Event]) -> float:
    return next((event["start_s"] for event in events if not event["warmup"]), 0.0)


def _interval(index: int, event: Event, zero_s: float) -> Document:
    return {
        "socket": index,
        **_amount(event["start_s"] - zero_s, event["end_s"] - zero_s, event["content_bytes"]),
        **dict.fromkeys(TCP_OF_INTERVAL),
        "omitted": event["warmup"],
        "sender": True,
    }


def _sum_of_interval(streams: Sequence[Document]) -> Document:
    """Times are those of the first stream, as iperf3 has it."""
    first = streams[0]
    total = sum(stream["bytes"] for stream in streams)
    return {
        **_amount(first["start"], first["end"], total),
        "retransmits": None,
        "omitted": first["omitted"],
        "sender": True,
    }


def _amount(start_s: float, end_s: float, bytes_: int) -> Document:
    seconds = end_s - start_s
    return {
        "start": start_s,
        "end": end_s,
        "seconds": seconds,
        "bytes": bytes_,
        "bits_per_second": 8 * bytes_ / seconds if seconds > 0 else None,
    }


# ---- end ----


def _end(sent: Sequence[Event], received: Sequence[Event]) -> Document:
    pairs = enumerate(zip_longest(sent, received))
    return {
        "streams": [
            {
                "sender": {"socket": i, **_total([psend] if psend else []), **_no_tcp()},
                "receiver": {"socket": i, **_total([precv] if precv else [])},
            }
            for i, (psend, precv) in pairs
        ],
        "sum_sent": {**_total(sent), "retransmits": None},
        "sum_received": _total(received),
        "cpu_utilization_percent": {
            **_cpu("host", sent),
            **_cpu("remote", received),
        },
        "sender_tcp_congestion": None,
        "receiver_tcp_congestion": None,
    }


def _no_tcp() -> Document:
    return dict.fromkeys(TCP_OF_SENDER)


def _total(summaries: Sequence[Event]) -> Document:
    """From the first message to the last: as ppair's own rates are."""
    if not summaries:
        names = ("start", "end", "seconds", "bytes", "bits_per_second")
        return {**dict.fromkeys(names), "sender": True}
    span_s = measured.common_span_s(summaries) or 0.0
    content = sum(summary["content_bytes"] for summary in summaries)
    return {**_amount(0.0, span_s, content), "sender": True}


def _cpu(name: str, summaries: Sequence[Event]) -> Document:
    """Percent of one processor, all instances together."""
    user, system = (
        [_percent(s["cpu"][key], s["cpu"]["span_s"]) for s in summaries]
        for key in ("user_s", "system_s")
    )
    return {
        f"{name}_total": _sum([*user, *system]),
        f"{name}_user": _sum(user),
        f"{name}_system": _sum(system),
    }


def _percent(part_s: float, span_s: float | None) -> float | None:
    return 100 * part_s / span_s if span_s else None


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None
