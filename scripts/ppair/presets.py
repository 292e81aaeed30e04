"""Published experiments, to be repeated on one's own machine with one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .axes import Axis
from .preset import Preset, Values, Words
from .preset_batch import BATCHES
from .preset_tasks import TASKS
from .results import Plot, Results

FLIGHT_BYTES = 64 * 1024


def _steps(*values: int | str) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


CREDIT_METRICS = (
    "messages_per_s",
    "flow_frames_per_1000",
    "precv_cpu_per_message_ns",
    "blocked",
    "stalled_percent",
)
BANDWIDTH_METRICS = ("messages_per_s", "bytes_per_s", "psend_cpu_percent", "precv_cpu_percent")
TAKEN = Axis("taken", ("one", "all"), "messages taken before credit is written")
DRAIN_BATCH = {"one": "1", "all": "0"}


def _stall(values: Values) -> tuple[Words, Words]:
    credit = ("--credit", "200", "--credit-low", values["low"], "--credit-add", "100")
    return (), (*credit, "--drain-batch", DRAIN_BATCH[values["taken"]])


def _amortization(values: Values) -> tuple[Words, Words]:
    grant = int(values["grant"])
    credit = ("--credit", "200", "--credit-low", str(200 - grant), "--credit-add", str(grant))
    return (), (*credit, "--drain-batch", DRAIN_BATCH[values["taken"]])


CREDIT_STALL = Preset(
    title="Credit stall: 200 credits, 100 more whenever they have fallen to X",
    expected="Near 0 the sender is out of credit before more comes: the rate falls off a cliff.",
    axes=(
        TAKEN,
        Axis("low", _steps(*range(0, 191, 10)), "X: credit at which 100 more are granted"),
    ),
    words=_stall,
    psend=("--presettled",),
    plots=(
        Plot(
            "Credit stall",
            "low",
            ("messages_per_s", "flow_frames_per_1000", "stalled_percent"),
            "taken",
            note="200 credits at first; 100 more are granted whenever credit has fallen to X.",
        ),
    ),
    metrics=CREDIT_METRICS,
)

CREDIT_AMORTIZATION = Preset(
    title="Credit amortization: 200 credits, X more whenever X have been used",
    expected="A grant costs something; with small X there are many of them, and the rate is low.",
    axes=(
        TAKEN,
        Axis(
            "grant",
            _steps(1, 2, 3, 5, 7, 10, 14, 20, 30, 40, 60, 80, 100, 120, 140, 160, 180, 200),
            "X: credits granted at a time",
            log=True,
        ),
    ),
    words=_amortization,
    psend=("--presettled",),
    plots=(
        Plot(
            "Credit amortization",
            "grant",
            ("messages_per_s", "flow_frames_per_1000", "precv_cpu_per_message_ns"),
            "taken",
            note="200 credits at first; X more are granted whenever X have been used.",
        ),
    ),
    metrics=CREDIT_METRICS,
)

SIZES = _steps(0, 16, 64, 256, "1Ki", "4Ki", "16Ki", "64Ki", "256Ki", "1Mi")

MESSAGE_SIZE = Preset(
    title="Message size: bodies from 0 bytes to 1 MiB",
    expected="Small messages cost the same each; from some size on, bandwidth takes over.",
    axes=(Axis("content-size", SIZES, "body, bytes", log=True),),
    words=lambda values: (("--content-size", values["content-size"]), ()),
    plots=(
        Plot(
            "Message size",
            "content-size",
            ("messages_per_s", "bytes_per_s"),
            note="Where the rate begins to fall, bandwidth takes over from the cost per message.",
        ),
    ),
    metrics=BANDWIDTH_METRICS,
)

CREDIT_BY_SIZE = Preset(
    title="Credit by size: rate over credit window and body size",
    expected="If the window in bytes explained the knee, it would lie along the drawn line.",
    axes=(
        Axis("credit", _steps(1, 3, 10, 30, 100, 300, 1000, 3000), "credit window, messages", True),
        Axis("content-size", _steps(10, 100, "1k", "10k", "100k"), "body, bytes", True),
    ),
    words=lambda values: (
        ("--content-size", values["content-size"]),
        ("--credit", values["credit"]),
    ),
    plots=(
        Plot(
            "Rate, msg/s",
            "credit",
            ("messages_per_s",),
            "content-size",
            kind="heat",
            flight_bytes=FLIGHT_BYTES,
        ),
        Plot(
            "Body bytes, MB/s",
            "credit",
            ("bytes_per_s",),
            "content-size",
            kind="heat",
            flight_bytes=FLIGHT_BYTES,
        ),
    ),
    metrics=("messages_per_s", "bytes_per_s", "stalled_percent"),
)

FRAME_SIZE = Preset(
    title="Frame size: 256 KiB messages in frames of 512 bytes to 1 MiB",
    expected="Each frame has a cost of its own; small frames make many of them.",
    axes=(
        Axis(
            "max-frame",
            _steps(512, "1Ki", "2Ki", "4Ki", "8Ki", "16Ki", "32Ki", "64Ki", "256Ki", "1Mi"),
            "largest frame, bytes",
            log=True,
        ),
    ),
    words=lambda values: ((), ("--max-frame", values["max-frame"])),
    psend=("--content-size", "256Ki"),
    precv=("--credit", "20"),
    plots=(Plot("Frame size", "max-frame", ("messages_per_s", "bytes_per_s")),),
    metrics=BANDWIDTH_METRICS,
)

SESSION_WINDOW = Preset(
    title="Session window: 64 KiB messages in frames of 4 KiB, windows of 4 KiB to 1 MiB",
    expected="While the window is small the sender waits for it to be opened again.",
    axes=(
        Axis(
            "session-window",
            _steps("4Ki", "8Ki", "16Ki", "32Ki", "64Ki", "128Ki", "256Ki", "512Ki", "1Mi"),
            "session window, bytes",
            log=True,
        ),
    ),
    words=lambda values: ((), ("--session-window", values["session-window"])),
    psend=("--content-size", "64Ki"),
    precv=("--max-frame", "4Ki"),
    plots=(Plot("Session window", "session-window", ("messages_per_s", "bytes_per_s")),),
    metrics=BANDWIDTH_METRICS,
)

ACKS = _steps(1, 3, 10, 30, 100, 300, 1000)
DEPTHS = _steps(1, 4, 16, 64, 256, 1024)


def _settle_points() -> Iterator[Values]:
    """Two of the ways have nothing to vary: they are measured at both ends of the axis."""
    for settle in ("pre-settled", "at least once"):
        yield {"settle": settle, "n": "1"}
        yield {"settle": settle, "n": "1024"}
    for n in ACKS:
        yield {"settle": "ack frequency", "n": n}
    for n in DEPTHS:
        yield {"settle": "queue depth", "n": n}


def _settle(values: Values) -> tuple[Words, Words]:
    match values["settle"]:
        case "pre-settled":
            return ("--presettled",), ()
        case "ack frequency":
            return (), ("--ack-frequency", values["n"])
        case "queue depth":
            return ("--max-unsettled", values["n"]), ()
    return (), ()


SETTLE = Preset(
    title="Settling: pre-settled, at least once, every N-th, and N at a time",
    expected="A round trip for each message is dear; settling many at once is nearly free.",
    axes=(
        Axis(
            "settle",
            ("pre-settled", "at least once", "ack frequency", "queue depth"),
            "how messages are settled",
        ),
        Axis("n", tuple(dict.fromkeys(sorted((*ACKS, *DEPTHS), key=int))), "N, messages", log=True),
    ),
    words=_settle,
    points=_settle_points,
    precv=("--credit", "2000"),  # more than any N: the receiver waits for N messages
    plots=(
        Plot(
            "Settling",
            "n",
            ("messages_per_s", "settlement_p50_ns"),
            "settle",
            note="N: every N-th message is settled (ack frequency), or at most N are unsettled "
            "(queue depth). The other two have no N.",
        ),
    ),
    metrics=(
        "messages_per_s",
        "settlement_p50_ns",
        "settlement_p99_ns",
        "psend_cpu_per_message_ns",
        "precv_cpu_per_message_ns",
    ),
)

SOAK_100 = Preset(
    title="The classic soak, short: 100-byte messages, 600 credits, 300 more whenever below 300",
    expected="408,500 messages a second on a machine of 2007, its receiver at 74 % of a CPU.",
    axes=(Axis("settle", ("pre-settled", "at least once"), "how messages are settled"),),
    words=lambda values: (("--presettled",) if values["settle"] == "pre-settled" else (), ()),
    psend=("--content-size", "100", "--duration", "10s", "--warmup", "1s"),
    precv=("--credit", "600", "--credit-low", "300", "--credit-add", "300", "--warmup", "1s"),
    plots=(Plot("The classic soak", "settle", ("messages_per_s", "precv_cpu_percent")),),
    metrics=(
        "messages_per_s",
        "precv_cpu_percent",
        "psend_cpu_percent",
        "precv_cpu_per_message_ns",
        "precv_rss_bytes",
    ),
)


def _tls_findings(results: Results) -> dict[str, Any]:
    from . import size_cost  # numpy: not for --help

    return size_cost.findings(results, "content-size", "connection")


TLS = Preset(
    title="What TLS costs: bodies from 10 bytes to 64 KiB, plain and encrypted",
    expected="Encryption costs by the byte, and something for each record: with small messages "
    "little is seen of it.",
    axes=(
        Axis("connection", ("plain", "TLS"), "connection"),
        Axis("content-size", _steps(10, 100, "1Ki", "4Ki", "16Ki", "64Ki"), "body, bytes", True),
    ),
    words=lambda values: (("--content-size", values["content-size"]), ()),
    options=lambda values: "--tls" if values["connection"] == "TLS" else "",
    findings=_tls_findings,
    plots=(
        Plot("Rate", "content-size", ("messages_per_s", "bytes_per_s"), "connection"),
        Plot(
            "CPU time per message",
            "content-size",
            ("psend_cpu_per_message_ns", "precv_cpu_per_message_ns"),
            "connection",
        ),
    ),
    metrics=(
        "messages_per_s",
        "bytes_per_s",
        "psend_cpu_per_message_ns",
        "precv_cpu_per_message_ns",
        "psend_cpu_percent",
        "precv_cpu_percent",
    ),
)

PRESETS = {
    "credit-stall": CREDIT_STALL,
    "credit-amortization": CREDIT_AMORTIZATION,
    "message-size": MESSAGE_SIZE,
    "credit-by-size": CREDIT_BY_SIZE,
    "frame-size": FRAME_SIZE,
    "session-window": SESSION_WINDOW,
    "settle": SETTLE,
    "soak-100": SOAK_100,
    "tls": TLS,
    "tasks": TASKS,
    "batch": BATCHES,
}
