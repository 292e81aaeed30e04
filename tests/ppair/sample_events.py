"""Events of psend and precv out of made-up numbers."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ppair.histogram import BITS

EPOCH_NS = 1_790_000_000_000_000_000
DURATION_S = 2.0
WARMUP_S = 0.5
MACHINE = {
    "host": "bench",
    "cpu_model": "Example CPU 3000",
    "cpu_count": 4,
    "kernel": "Linux 6.1.0 x86_64",
    "system": "Debian GNU/Linux 12 (bookworm)",
    "governor": None,
    "python": "3.11.2",
}


def bucket(value: int) -> int:
    """The lowest value of the bucket of VALUE, as include/histogram.h has them."""
    shift = max(value.bit_length() - 1 - BITS, 0)
    return value >> shift << shift


def distribution(values_ns: Sequence[int], count: int | None = None) -> dict[str, Any]:
    """A summary's distribution of these values, each as often as makes COUNT of them."""
    if not values_ns:
        empty = dict.fromkeys(("min", "mean", "stddev", "p50", "p99", "max", "lowest"))
        return {"count": 0, **empty, "negative": 0, "overflow": 0, "buckets": []}
    counts = Counter(bucket(value) for value in values_ns)
    each, rest = divmod(count or len(values_ns), len(values_ns))
    weights = {lowest: n * each for lowest, n in counts.items()}
    weights[sorted(counts)[len(counts) // 2]] += rest
    ordered = sorted(values_ns)
    return {
        "count": sum(weights.values()),
        "min": ordered[0],
        "mean": math.fsum(values_ns) / len(values_ns),
        "stddev": 0.0,
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[len(ordered) * 99 // 100],
        "max": ordered[-1],
        "negative": 0,
        "lowest": None,
        "overflow": 0,
        "buckets": [[lowest, n] for lowest, n in sorted(weights.items()) if n],
    }


def latencies(chance: random.Random, median_ns: float, count: int = 400) -> list[int]:
    """Log-normal, with a tail."""
    return [
        int(median_ns * math.exp(chance.gauss(0, 0.25)) * (8 if chance.random() < 0.005 else 1))
        for _ in range(count)
    ]


def _start(program: str, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "event": "start",
        "schema": "ppair/1",
        "program": program,
        "version": "0.1.0",
        "libraries": {"libqpid-proton": "0.37.0", "jansson": "2.14"},
        "argv": [f"/opt/bin/{program}"],
        "options": options,
        "host": "bench",
        "cpu": {"model": MACHINE["cpu_model"], "count": MACHINE["cpu_count"]},
        "kernel": MACHINE["kernel"],
        "pid": 4711,
        "clock": "monotonic",
        "time": "2026-09-21T14:13:20.000000000Z",
        "time_ns": EPOCH_NS,
    }


def _options(program: str, size: int, credit: int) -> dict[str, Any]:
    if program == "precv":
        return {"listen": "127.0.0.1:0", "credit": credit, "cpu": None, "rcvbuf_bytes": None}
    return {
        "broker": "amqp://127.0.0.1:40000",
        "address": "ppair",
        "messages": 0,
        "duration_ns": int(DURATION_S * 1e9),
        "warmup_ns": int(WARMUP_S * 1e9),
        "content_size_bytes": size,
        "content_string": None,
        "durable": False,
        "presettled": False,
        "timeout_ns": None,
        "interval_ns": 500_000_000,
        "cpu": None,
        "sndbuf_bytes": None,
    }


def _ready(program: str) -> dict[str, Any]:
    listening = program == "precv"
    address = {"host": "127.0.0.1", "port": 40000, "address": None if listening else "ppair"}
    return {"event": "ready", "listening": listening, **address, "time_ns": EPOCH_NS}


def _common(program: str, count: int, span_s: float, size: int, busy: float) -> dict[str, Any]:
    """Members that intervals and summaries share, but for the distribution."""
    psend = {"blocked": 12, "stalls": 12, "stalled_s": (1 - busy) * span_s}
    credit = (
        psend if program == "psend" else {"grants": count // 500, "granted": count, "lowest": 9}
    )
    wait = "credit" if program == "psend" else "idle"
    causes = ("busy", "credit", "session", "socket", "settlement", "pacing", "idle")
    cpu_s = busy * span_s
    return {
        "messages_per_s": count / span_s,
        "bytes_per_s": count * size / span_s,
        "content_bytes": count * size,
        "credit": {**credit, "frames_in": count, "frames_out": 3 + count // 500},
        "time_s": {**dict.fromkeys(causes, 0.0), "busy": cpu_s, wait: span_s - cpu_s},
        "limited_by": "busy" if busy > 0.5 else wait,
        "call_ns": 200.0 if program == "psend" else None,
        "cpu": {
            "user_s": 0.8 * cpu_s,
            "system_s": 0.2 * cpu_s,
            "span_s": span_s,
            "percent": 100 * busy,
            "switches_voluntary": 10,
            "switches_involuntary": 1,
        },
        "rss_bytes": 5_300_000,
        "rss_peak_bytes": 5_400_000,
    }


def _messages(program: str, count: int) -> dict[str, Any]:
    if program == "precv":
        return {"received": count, "lost": 0, "duplicated": 0, "reordered": 0, "redelivered": 0}
    return {"sent": count, "accepted": count, "rejected": 0, "released": 0, "modified": 0}


def events(
    program: str,
    chance: random.Random,
    rate: float,
    *,
    size: int = 100,
    credit: int = 1000,
    latency_ns: float = 200_000.0,
    busy: float = 0.7,
    interval_s: float = 0.5,
) -> list[dict[str, Any]]:
    """What one instance writes: a warm-up, then DURATION_S of measuring."""
    name = {"psend": "settlement_ns", "precv": "latency_ns"}[program]
    found = [_start(program, _options(program, size, credit)), _ready(program)]
    total, count_of_all = 0, 0
    warmups = round(WARMUP_S / interval_s)
    for index in range(warmups + round(DURATION_S / interval_s)):
        count = int(rate * interval_s * (1 + chance.gauss(0, 0.01)))
        count_of_all += count
        total += count if index >= warmups else 0
        begin_s = index * interval_s
        spread = distribution(latencies(chance, latency_ns, 50))
        found.append(
            {
                "event": "interval",
                "index": index,
                "partial": False,
                "warmup": index < warmups,
                "messages": _messages(program, count),
                "start_s": begin_s,
                "end_s": begin_s + interval_s,
                name: {key: value for key, value in spread.items() if key != "buckets"},
                **_common(program, count, interval_s, size, busy * chance.uniform(0.97, 1.0)),
            }
        )
    found.append(
        {
            "event": "summary",
            "stop_reason": "duration" if program == "psend" else "detached",
            "interrupted": False,
            "complete": True,
            "exit_code": 0,
            "messages": _messages(program, count_of_all),
            "measured_messages": total,
            "began_time_ns": EPOCH_NS,
            "first_s": WARMUP_S,
            "last_s": WARMUP_S + DURATION_S,
            "wall_s": DURATION_S,
            "start_s": WARMUP_S,
            "end_s": WARMUP_S + DURATION_S,
            name: distribution(latencies(chance, latency_ns), total),
            **_common(program, total, DURATION_S, size, busy),
        }
    )
    return found
