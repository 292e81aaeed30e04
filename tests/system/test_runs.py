"""Arrangements of the pair, how a run begins, and how it ends."""

import re
import signal
import socket
import time
from pathlib import Path

import pair
import pytest
from measuring import measured


# ---- the pair ----


def test_defaults_meet() -> None:
    """Without URL and port: precv and psend alone are a benchmark."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((pair.HOST, 5672))
        except OSError:
            pytest.skip("port 5672 is in use")
    precv = pair.start("precv")
    assert pair.wait_for(precv, "ready")["port"] == 5672
    psend = pair.start("psend", "-m", str(pair.count(100000)))
    ready = pair.wait_for(psend, "ready")
    assert (ready["listening"], ready["address"]) == (False, "ppair")
    pair.assert_delivered(pair.finish(psend), pair.finish(precv), pair.count(100000))


def test_psend_may_start_first() -> None:
    """A refused connection is tried again for a second."""
    with socket.create_server((pair.HOST, 0)) as server:
        port = server.getsockname()[1]
    psend = pair.start("psend", f"{pair.HOST}:{port}", "-m", "100")
    time.sleep(0.2)
    precv = pair.start("precv", "--listen", f"{pair.HOST}:{port}")
    pair.assert_delivered(pair.finish(psend), pair.finish(precv), 100)


@pytest.mark.parametrize("settle", [[], ["--presettled"]])
def test_settle_modes(settle: list[str]) -> None:
    """At least once has outcomes and a round trip; at most once has none."""
    messages = pair.count(50000)
    psend, precv = pair.run_pair(["-m", str(messages), *settle])
    pair.assert_delivered(psend, precv, messages)
    outcomes = [psend.messages[k] for k in ("accepted", "rejected", "no_outcome", "unsettled")]
    if settle:
        assert outcomes == [None] * 4
        assert psend.summary["settlement_ns"]["count"] == 0
        assert psend.summary["settlement_ns"]["p50"] is None
    else:
        assert outcomes == [messages, 0, 0, 0]
        assert psend.summary["settlement_ns"]["count"] == messages
    assert precv.summary["latency_ns"]["count"] == messages
    assert (psend.summary["stop_reason"], precv.summary["stop_reason"]) == ("messages", "detached")


@pytest.mark.parametrize("messages", [1, 2, 999, 1000, 1001, 12345])
def test_messages(messages: int) -> None:
    """Exactly as many as asked for."""
    pair.assert_delivered(*pair.run_pair(["-m", str(messages)]), messages)


@pytest.mark.measures
def test_duration_of_psend() -> None:
    """No limit of messages, and the clock runs to the end of the duration."""
    psend, precv = pair.run_pair(["-d", "500ms"])
    pair.assert_delivered(psend, precv, psend.messages["sent"])
    assert psend.summary["stop_reason"] == "duration"
    with measured():
        assert psend.messages["sent"] > 1000
        assert 0.5 <= psend.summary["wall_s"] < 0.7


@pytest.mark.measures
def test_duration_of_precv() -> None:
    """From its first message on; what the sender has under way then stays unsettled."""
    psend, precv = pair.run_pair(["-m", "0"], ["-d", "500ms"])
    pair.assert_codes((psend, precv), 4 if psend.messages["unsettled"] else 0, 0)
    assert precv.summary["stop_reason"] == "duration"
    assert psend.summary["stop_reason"] == "detached"
    with measured():
        assert 0.5 <= precv.summary["wall_s"] < 0.7
    pair.assert_accounts(psend.summary)


@pytest.mark.measures
def test_messages_within_duration() -> None:
    """Sends what was asked for and is idle for the rest."""
    psend, precv = pair.run_pair(["-m", "1000", "-d", "500ms"])
    pair.assert_delivered(psend, precv, 1000)
    with measured():
        assert 0.5 <= psend.summary["wall_s"] < 0.7
        assert psend.summary["last_s"] < 0.3


# ---- warm-up and sums ----


def sum_of(periods: list[pair.Json], *path: str) -> float:
    """Of a number that all periods have."""
    total = 0.0
    for period in periods:
        value: object = period
        for name in path:
            assert isinstance(value, dict)
            value = value[name]
        assert isinstance(value, (int, float)), (path, value)
        total += value
    return total


def assert_adds_up(result: pair.Result, kind: str, distribution: str) -> None:
    """Intervals follow one another, and add up to the total."""
    summary, intervals = result.summary, result.intervals
    measured = [i for i in intervals if not i["warmup"]]
    assert [i["index"] for i in intervals] == list(range(len(intervals)))
    for earlier, later in zip(intervals, intervals[1:]):
        assert later["start_s"] == earlier["end_s"]
    assert sum_of(intervals, "messages", kind) == summary["messages"][kind]
    for name, total in summary["messages"].items():
        if total is None:
            assert all(i["messages"][name] is None for i in intervals)
        elif name != "unsettled":
            assert sum_of(intervals, "messages", name) == total
    assert sum_of(measured, "messages", kind) == summary["measured_messages"]
    for path in (
        ("content_bytes",),
        (distribution, "count"),
        (distribution, "negative"),
        ("credit", "frames_in"),
        ("credit", "frames_out"),
        ("cpu", "switches_voluntary"),
    ):
        total = summary
        for name in path:
            total = total[name]
        assert sum_of(measured, *path) == total, path
    rounding_s = 1e-8 * len(intervals)
    for cause, total_s in summary["time_s"].items():
        assert abs(sum_of(measured, "time_s", cause) - total_s) < rounding_s
    lengths_s = sum_of(measured, "end_s") - sum_of(measured, "start_s")
    assert abs(lengths_s - summary["wall_s"]) < rounding_s
    for period in [*intervals, summary]:
        pair.assert_time_is_whole(period)


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("warmup", ["0", "150ms"])
def test_intervals_add_up(program: str, warmup: str) -> None:
    """The warm-up is flagged and left out of the total, but for the accounting."""
    options = {name: ["-d", "2s"] for name in pair.PROGRAMS}
    options[program] = ["-d", "600ms", "--warmup", warmup, "--interval", "100ms"]
    psend, precv = pair.run_pair(options["psend"], options["precv"])
    result = psend if program == "psend" else precv
    assert result.code == 0
    kind, distribution = (
        ("sent", "settlement_ns") if program == "psend" else ("received", "latency_ns")
    )
    assert_adds_up(result, kind, distribution)
    early = [i for i in result.intervals if i["warmup"]]
    assert len(result.intervals) >= 6
    if warmup == "0":
        assert not early and result.summary["wall_s"] >= 0.6
        assert result.summary["measured_messages"] == result.messages[kind]
    else:
        assert early and early == result.intervals[: len(early)]
        assert early[-1]["partial"] and early[-1]["end_s"] == result.summary["start_s"]
        assert 0.15 <= result.summary["start_s"] and 0.6 < result.summary["end_s"]
        assert 0 < result.summary["measured_messages"] < result.messages[kind]


def test_warmup_longer_than_the_run() -> None:
    """Nothing was measured; everything is accounted for."""
    psend, precv = pair.run_pair(["-m", "1000", "--warmup", "1min"])
    pair.assert_delivered(psend, precv, 1000)
    assert psend.summary["measured_messages"] == 0
    assert psend.summary["messages_per_s"] is None
    assert psend.summary["settlement_ns"]["p50"] is None


# ---- the end ----


def test_timeout_without_traffic() -> None:
    """precv ends when nobody comes; it was not short of anything."""
    precv = pair.run("precv", "--listen", pair.ANY_PORT, "--timeout", "300ms")
    pair.assert_codes([precv], 0)
    assert precv.summary["stop_reason"] == "timeout"
    assert precv.messages["received"] == 0
    assert precv.summary["messages_per_s"] is None and precv.summary["latency_ns"]["min"] is None
    assert 0.3 <= precv.seconds < 10


def test_timeout_counts_from_the_last_message() -> None:
    """Traffic holds it off."""
    receiver, url = pair.listen("precv", "--timeout", "400ms", "--forever", "--report-total")
    pair.run("psend", url, "-d", "700ms")
    precv = pair.finish(receiver)
    assert precv.summary["stop_reason"] == "timeout"
    assert precv.seconds >= 1.1
    assert precv.summary["wall_s"] < 1.0


def test_detaching_ends_precv() -> None:
    """When the last of its senders is gone, not the first."""
    receiver, url = pair.listen("precv")
    slow = pair.start("psend", url, "-m", "0")
    pair.wait_for(slow, "interval", timeout_s=5)
    quick = pair.run("psend", url, "-m", "1000")
    assert quick.code == 0
    assert receiver.process.poll() is None
    pair.send_signal(slow, signal.SIGINT)
    psend, precv = pair.finish(slow), pair.finish(receiver)
    assert precv.summary["stop_reason"] == "detached"
    assert precv.messages["received"] == psend.messages["sent"] + 1000


def test_forever_takes_senders_in_a_row_and_at_once() -> None:
    """It ends by a signal alone."""
    receiver, url = pair.listen("precv", "--forever", "--verify-sequence")
    for _ in range(3):
        assert pair.run("psend", url, "-m", "500").code == 0
    at_once = [pair.start("psend", url, "-m", "5000") for _ in range(4)]
    for child in at_once:
        pair.assert_codes([pair.finish(child)], 0)
    assert receiver.process.poll() is None
    pair.send_signal(receiver, signal.SIGINT)
    precv = pair.finish(receiver)
    assert precv.code == 128 + signal.SIGINT
    assert precv.messages["received"] == 3 * 500 + 4 * 5000
    assert precv.messages["lost"] == precv.messages["duplicated"] == 0


def test_psend_listens() -> None:
    """The same pair the other way round."""
    sender, url = pair.listen("psend", "-m", "5000")
    precv = pair.run("precv", url)
    pair.assert_delivered(pair.finish(sender), precv, 5000)
    assert precv.only("ready")["address"] == "test"


def test_precv_wants_fewer() -> None:
    """It grants credit for no more, and takes no more."""
    psend, precv = pair.run_pair(["-m", "1000"], ["-m", "300", "--credit", "7"])
    pair.assert_codes((psend, precv), 4, 0)
    assert precv.messages["received"] == precv.summary["credit"]["granted"] == 300
    assert psend.messages["sent"] == psend.messages["accepted"] == 300
    assert (psend.summary["stop_reason"], precv.summary["stop_reason"]) == ("detached", "messages")


@pytest.mark.measures
def test_start_at() -> None:
    """Both sides hold traffic back, and the waiting is not measured as sending."""
    start_ns = time.time_ns() + 700_000_000
    receiver, url = pair.listen("precv")
    psend = pair.run("psend", url, "-m", "1000", "--start-at", str(start_ns))
    assert time.time_ns() >= start_ns
    with measured():
        assert psend.summary["wall_s"] < 0.4
    pair.assert_delivered(psend, pair.finish(receiver), 1000)


@pytest.mark.measures
def test_start_at_of_precv() -> None:
    """No credit before."""
    start_ns = time.time_ns() + 700_000_000
    receiver, url = pair.listen("precv", "--start-at", str(start_ns))
    psend = pair.run("psend", url, "-m", "1000", "--interval", "100ms")
    assert time.time_ns() >= start_ns
    with measured():
        assert psend.summary["time_s"]["credit"] > 0.3
        assert psend.intervals[0]["messages"]["sent"] == 0
    pair.assert_delivered(psend, pair.finish(receiver), 1000)


def test_ready_file(tmp_path: Path) -> None:
    """HOST:PORT, complete as soon as it is there."""
    file, other = tmp_path / "precv", tmp_path / "psend"
    receiver = pair.start("precv", "--listen", pair.ANY_PORT, "--ready-file", str(file))
    deadline_s = time.monotonic() + pair.DEADLINE_S
    while not file.exists():
        assert time.monotonic() < deadline_s
    text = file.read_text(encoding="ascii")
    assert text == f"{pair.HOST}:{pair.wait_for(receiver, 'ready')['port']}\n"
    pair.run("psend", text.strip(), "-m", "10", "--ready-file", str(other))
    pair.finish(receiver)
    assert other.read_text(encoding="ascii") == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precv", "psend"]


def test_names_on_the_wire() -> None:
    """--container-id and --link-name are what the library writes into its frames."""
    receiver, url = pair.listen("precv")
    names = ["--container-id", "container-of-test", "--link-name", "link-of-test"]
    psend = pair.run("psend", url, "-m", "1", *names, env={"PN_TRACE_FRM": "1"})
    pair.finish(receiver)
    assert re.search(r'-> @open\(16\) \[container-id="container-of-test"', psend.stderr)
    assert re.search(r'-> @attach\(18\) \[name="link-of-test"', psend.stderr)


def test_names_by_default() -> None:
    """The link is named after the container, which is named after host and process."""
    receiver, url = pair.listen("precv")
    child = pair.start("psend", url, "-m", "1", env={"PN_TRACE_FRM": "1"})
    psend = pair.finish(child)
    pair.finish(receiver)
    name = f"psend-{socket.gethostname()[:31]}-{child.pid}"
    assert f'container-id="{name}"' in psend.stderr
    assert f'@attach(18) [name="{name}"' in psend.stderr
    assert psend.only("start")["options"]["container_id"] == name
