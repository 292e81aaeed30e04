"""A run as quiver 0.4's arrows leave it in receiver-summary.json and sender-summary.json.

Times are milliseconds since the epoch, latencies milliseconds; quiver's are whole, ours are not,
for most would be 0. The last send time is that of the last message sent or settled. Distributions
are merged over all instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import facts, measured, run_files
from .events import Event
from .histogram import Histogram
from .programs import PRECV, PSEND
from .results import Point, Results, Run

QUARTILES = (0, 25, 50, 75, 100)
NINES = (90, 99, 99.9, 99.99, 99.999)
Document = dict[str, Any]


def quiver(results: Results, point: Point, run: Run) -> Document:
    """The receiver's summary, with the times of sending; `sender` is the sender's."""
    sent = [run_files.by_kind(results, run, peer) for peer in run_files.peers(run, PSEND)]
    received = [run_files.by_kind(results, run, peer) for peer in run_files.peers(run, PRECV)]
    latency = run_files.merged_histogram(results, [run], PRECV)
    first_sent, last_sent = _times_ms(sent)
    first_received, last_received = _times_ms(received)
    send_times = {"first_send_time": first_sent, "last_send_time": last_sent}
    receive_times = {"first_receive_time": first_received, "last_receive_time": last_received}
    return {
        "config": _config(results, point, run, "receive", sent, received),
        "results": {**send_times, **receive_times, **_count(received), **_latency(latency)},
        "sender": {
            "config": _config(results, point, run, "send", sent, received),
            "results": {
                **send_times,
                **dict.fromkeys(receive_times),
                **_count(sent),
                **_latency(Histogram()),
            },
        },
    }


def _config(
    results: Results,
    point: Point,
    run: Run,
    operation: str,
    sent: Sequence[dict[str, Event]],
    received: Sequence[dict[str, Event]],
) -> Document:
    psend, precv = sent[0]["start"], received[0]["start"]
    ours = psend if operation == "send" else precv
    ready = sent[0].get("ready", {})
    host, port, path = (ready.get(name) for name in ("host", "port", "address"))
    server = point.spec.via is None and operation == "receive"
    options = psend["options"]
    return {
        "impl": ours["program"],
        "url": point.spec.via or f"amqp://{host}:{port}/{path}",
        "output_dir": str(results.run_folder(run)),
        "timeout": _seconds(ours["options"].get("timeout_ns")),
        "connection_mode": "server" if server else "client",
        "channel_mode": "passive" if server else "active",
        "operation": operation,
        "id": ours["options"].get("container_id"),
        "host": host,
        "port": None if port is None else str(port),
        "path": path,
        "duration": _seconds(options.get("duration_ns")) or 0,
        "count": options.get("messages") or 0,
        "rate": 0,
        "body_size": facts.body_bytes(options),
        "credit_window": precv["options"].get("credit"),
        "transaction_size": 0,
        "durable": options.get("durable"),
    }


def _seconds(value_ns: int | None) -> float | int | None:
    """Whole if it is."""
    if value_ns is None:
        return None
    return value_ns // 10**9 if value_ns % 10**9 == 0 else value_ns / 1e9


def _times_ms(events: Sequence[dict[str, Event]]) -> tuple[int | None, int | None]:
    """Of the first message and the last of all instances, without the warm-up."""
    summaries = [e["summary"] for e in events if e["summary"]["first_s"] is not None]
    if not summaries:
        return None, None
    first, last = (
        [s["began_time_ns"] / 1e6 + 1e3 * s[name] for s in summaries]
        for name in ("first_s", "last_s")
    )
    return round(min(first)), round(max(last))


def _count(events: Sequence[dict[str, Event]]) -> Document:
    summaries = [e["summary"] for e in events]
    count = sum(summary["measured_messages"] for summary in summaries)
    span_s = measured.common_span_s(summaries)
    return {"message_count": count, "message_rate": round(count / span_s) if span_s else None}


def _latency(found: Histogram) -> Document:
    if not found.counts:
        return dict.fromkeys(("latency_average", "latency_quartiles", "latency_nines"))
    return {
        "latency_average": _ms(found.mean_ns),
        "latency_quartiles": [_ms(_at(found, percent)) for percent in QUARTILES],
        "latency_nines": [_ms(found.percentile_ns(percent)) for percent in NINES],
    }


def _at(found: Histogram, percent: float) -> int | None:
    """0 % is the least value, which is exact."""
    return found.min_ns if percent == 0 else found.percentile_ns(percent)


def _ms(value_ns: float | int | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1e6, 6)
