"""The numbers that a run may have: their names, and how they are shown. measured.py makes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Seen(Enum):
    """When a metric is a column of a table of which the plan does not choose the columns."""

    KNOWN = "if a run has it: always, or because an option has it measured"
    NOT_ZERO = "if it is not 0 in a good run: trouble"
    CHOSEN = "never"


KNOWN, NOT_ZERO, CHOSEN = Seen


@dataclass(frozen=True)
class Metric:
    """A number of a run: its name, and how it is shown."""

    name: str
    heading: str  # of a column, with its unit
    label: str  # of an axis, with its unit
    better: int  # 1: higher is better, -1: lower is, 0: neither
    scale: float = 1.0  # shown = value * scale
    averaged: bool = True  # whether a mean over runs means something: of percentiles it does not
    compared: bool = True  # by compare; not what others say as well
    seen: Seen = CHOSEN
    expense: bool = False  # it rises with the rate; less is better unless the rate is lower too

    @property
    def counted(self) -> bool:
        """Whether it is a whole number of things."""
        return self.name in COUNTED


COUNTED = frozenset(
    "latency_negative unmatched unanswerable late skipped backlog rate_met blocked resent "
    "duplicated reconnects batches".split()
)
_US = 1e-3  # of ns
_MEGA = 1e-6

METRICS: tuple[Metric, ...] = (
    Metric("messages_per_s", "msg/s", "messages per second", 1, seen=KNOWN),
    Metric("bytes_per_s", "MB/s", "body bytes, MB/s", 1, _MEGA, seen=KNOWN),
    Metric("latency_p50_ns", "lat p50 us", "latency p50, us", -1, _US, False, seen=KNOWN),
    Metric("latency_p90_ns", "lat p90 us", "latency p90, us", -1, _US, False),
    Metric("latency_p99_ns", "lat p99 us", "latency p99, us", -1, _US, False, seen=KNOWN),
    Metric("latency_p999_ns", "lat p99.9 us", "latency p99.9, us", -1, _US, False),
    Metric("latency_max_ns", "lat max us", "latency maximum, us", -1, _US, False),
    Metric(
        *("latency_error_ns", "lat +- us", "clock error of the latency, us", -1, _US, False),
        seen=NOT_ZERO,
    ),
    Metric("latency_negative", "lat < 0", "latencies below 0", -1, seen=NOT_ZERO),
    Metric("settlement_p50_ns", "settle p50 us", "settlement p50, us", -1, _US, False, seen=KNOWN),
    Metric("settlement_p99_ns", "settle p99 us", "settlement p99, us", -1, _US, False, seen=KNOWN),
    Metric("settlement_max_ns", "settle max us", "settlement maximum, us", -1, _US, False),
    # with --round-trip
    Metric("round_trip_p50_ns", "rtt p50 us", "round trip p50, us", -1, _US, False, seen=KNOWN),
    Metric("round_trip_p99_ns", "rtt p99 us", "round trip p99, us", -1, _US, False, seen=KNOWN),
    Metric("round_trip_max_ns", "rtt max us", "round trip maximum, us", -1, _US, False, seen=KNOWN),
    Metric("unmatched", "unmatched", "answers to nothing", -1, compared=False, seen=NOT_ZERO),
    Metric(
        *("unanswerable", "unanswerable", "messages that could not be answered", -1),
        compared=False,
        seen=NOT_ZERO,
    ),
    # with --send-rate
    Metric(
        *("target_per_s", "target/s", "messages per second, as asked for", 0),
        compared=False,
        seen=KNOWN,
    ),
    Metric("achieved_per_s", "sent/s", "messages per second, as sent", 1, seen=KNOWN),
    Metric("send_delay_p50_ns", "delay p50 us", "send delay p50, us", -1, _US, False, seen=KNOWN),
    Metric("send_delay_p99_ns", "delay p99 us", "send delay p99, us", -1, _US, False, seen=KNOWN),
    Metric(
        "send_delay_max_ns", "delay max us", "send delay maximum, us", -1, _US, False, seen=KNOWN
    ),
    Metric("late", "late", "messages sent late", -1, compared=False, seen=KNOWN),
    Metric("skipped", "skipped", "messages given up", -1, compared=False, seen=KNOWN),
    Metric(
        *("backlog", "backlog", "messages due and not sent at the end", -1),
        compared=False,
        seen=KNOWN,
    ),
    Metric("rate_met", "rate met", "whether the rate was held", 1, compared=False),  # or a warning
    # with --batch, and --tsc
    Metric("batches", "batches", "batches settled", 0, compared=False, seen=KNOWN),
    Metric("batch_first_p50_ns", "first p50 ns", "first settled p50, ns", -1, 1, False, seen=KNOWN),
    Metric("batch_p50_ns", "batch p50 ns", "time of a batch p50, ns", -1, 1, False, seen=KNOWN),
    Metric("batch_p99_ns", "batch p99 ns", "time of a batch p99, ns", -1, 1, False, seen=KNOWN),
    Metric(
        *("batch_max_ns", "batch max ns", "time of a batch, maximum, ns", -1, 1, False, False),
        seen=KNOWN,
    ),
    Metric(
        *("batch_per_message_ns", "ns/msg", "batch's time per message, ns", -1, 1, False, False),
        seen=KNOWN,
    ),
    Metric(
        *("batch_p50_ticks", "batch p50 ticks", "time of a batch p50, ticks", -1, 1, False, False),
        seen=KNOWN,
    ),
    Metric("call_ns", "call ns", "one send call, ns", -1),
    Metric("psend_cpu_percent", "psend cpu %", "CPU of the senders, %", 0, seen=KNOWN),
    Metric("precv_cpu_percent", "precv cpu %", "CPU of the receivers, %", 0, seen=KNOWN),
    # with --busy-poll
    Metric(
        *("psend_spinning_percent", "psend spin %", "time that senders have spun, %", 0),
        compared=False,
        seen=KNOWN,
    ),
    Metric(
        *("precv_spinning_percent", "precv spin %", "time that receivers have spun, %", 0),
        compared=False,
        seen=KNOWN,
    ),
    Metric("psend_cpu_per_message_ns", "psend cpu us/msg", "sender's CPU per message, us", -1, _US),
    Metric(
        "precv_cpu_per_message_ns", "precv cpu us/msg", "receiver's CPU per message, us", -1, _US
    ),
    Metric("blocked", "blocked", "sends that found no credit", -1),
    Metric("stalled_percent", "stalled %", "time without credit, %", -1, seen=KNOWN),
    Metric("reconnects", "reconnects", "connections made again", 0, seen=NOT_ZERO),
    Metric("disconnected_s", "gap s", "time without a connection, s", -1, seen=NOT_ZERO),
    Metric("resent", "resent", "messages sent again", 0, seen=NOT_ZERO),
    Metric("duplicated", "duplicates", "messages received twice", 0, seen=NOT_ZERO),
    Metric("flow_frames_per_1000", "flow/1000", "FLOW frames per 1000 messages", 0),
    Metric("psend_rss_bytes", "psend MB", "sender's memory, MB", -1, _MEGA),
    Metric("precv_rss_bytes", "precv MB", "receiver's memory, MB", -1, _MEGA),
    # tasks
    Metric("sent_per_s", "tx/s", "messages sent per second", 1, compared=False),
    Metric("trip_mean_ns", "rtt mean us", "round trip, mean, us", -1, _US, compared=False),
    Metric("trip_p50_ns", "rtt p50 us", "round trip p50, us", -1, _US, False, False),
    Metric("trip_p99_ns", "rtt p99 us", "round trip p99, us", -1, _US, False, False),
    Metric(
        *("host_cpu_percent", "cpu %", "CPU of all programs, % of the host", 0),
        compared=False,
        expense=True,
    ),
)
COMPARED = tuple(metric.name for metric in METRICS if metric.compared)
BY_NAME = {metric.name: metric for metric in METRICS}
PRIMARY = "messages_per_s"
