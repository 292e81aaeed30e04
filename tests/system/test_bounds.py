"""What must stay bounded: queues, memory, descriptors."""

import os
import re
import shutil
import signal
import socket
import time

import amqp
import faults
import pair
import pytest
from measuring import measured
import wire

KIB, MIB = 1 << 10, 1 << 20
SMALL_WINDOW = ["--max-frame", "512", "--session-window", "4Ki"]
no_sanitizers = pytest.mark.skipif(pair.SANITIZED, reason="sanitizers take memory and time")


def rate(psend: list[str], precv: list[str]) -> float:
    """Of precv, in messages a second."""
    results = pair.run_pair(psend, precv)
    pair.assert_codes(results, 0, 0)
    value = results[1].summary["messages_per_s"]
    assert isinstance(value, float)
    return value


@no_sanitizers
@pytest.mark.parametrize("settle", [[], ["--presettled"]])
def test_queue_behind_a_small_window(settle: list[str]) -> None:
    """Its cost is quadratic in the library: much credit must not mean a long queue."""
    sender = ["-m", "60000", *settle]
    little = rate(sender, [*SMALL_WINDOW, "--credit", "100"])
    much = rate(sender, [*SMALL_WINDOW, "--credit", "1m"])
    assert much > little / 2


@pytest.mark.measures
@no_sanitizers
def test_large_messages_through_a_small_window() -> None:
    """The same number of bytes takes about the same time, in messages of any size."""
    many, _ = pair.run_pair(["-m", "16", "--content-size", "64Ki"], SMALL_WINDOW)
    one, _ = pair.run_pair(["-m", "1", "--content-size", "1Mi"], SMALL_WINDOW)
    with measured():
        assert one.summary["wall_s"] < 3 * many.summary["wall_s"]


@no_sanitizers
@pytest.mark.parametrize("window", ["32Ki", "64Ki", "128Ki"])
def test_queue_of_large_messages(window: str) -> None:
    """Messages as long as the window are not queued in thousands, nor forgotten at the end."""
    receiver = ["--max-frame", "4Ki", "--session-window", window]
    psend, precv = pair.run_pair(["-d", "500ms", "--content-size", "64Ki"], receiver)
    pair.assert_delivered(psend, precv, psend.messages["sent"])
    assert psend.summary["rss_peak_bytes"] < 16 * MIB
    assert psend.seconds < 4  # far below the close timeout


def peak_behind_a_stopped_receiver(credit: str) -> int:
    """rss_peak_bytes of psend, whose peer does not read for a while."""
    receiver, url = pair.listen("precv", "--credit", credit)
    sender = pair.start("psend", url, "-m", "2m", "--presettled", "--interval", "50ms")
    pair.wait_for(sender, "interval")
    pair.send_signal(receiver, signal.SIGSTOP)
    pair.wait_for(sender, "interval", 8)
    pair.send_signal(receiver, signal.SIGCONT)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_codes((psend, precv), 0, 0)
    assert precv.messages["received"] == 2000000
    peak = psend.summary["rss_peak_bytes"]
    assert isinstance(peak, int)
    return peak


@no_sanitizers
def test_memory_does_not_grow_with_credit() -> None:
    """A million credits are not a million messages in the library's buffer."""
    assert peak_behind_a_stopped_receiver("1m") <= peak_behind_a_stopped_receiver("100") + MIB


@no_sanitizers
@pytest.mark.parametrize("settle", [[], ["--presettled"]])
def test_memory_does_not_grow_with_messages(settle: list[str]) -> None:
    """The same after a hundred thousand and after a million."""
    every = ["--report-every", "100k"]
    for result in pair.run_pair(["-m", "1m", *every, *settle], every):
        after = [i["rss_bytes"] for i in result.intervals[:10]]
        assert len(after) == 10
        assert abs(after[-1] - after[0]) <= 256 * KIB, after
        assert result.summary["rss_peak_bytes"] < 8 * MIB


@no_sanitizers
def test_memory_does_not_grow_with_ranges_of_lost_numbers() -> None:
    """Each second message missing: what is remembered of them is bounded."""
    every = ["--report-every", "100"]
    receiver, url = pair.listen("precv", *every)
    amqp.send(url, (amqp.numbered(2 * n + 1) for n in range(3000)))
    precv = pair.finish(receiver)
    assert precv.messages["lost"] == 2999
    after = [i["rss_bytes"] for i in precv.intervals]
    assert after[-1] - after[10] <= 256 * KIB


@no_sanitizers
@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
@pytest.mark.parametrize("options", ["", "--presettled", "--content-size 200000"])
def test_no_leaks(options: str) -> None:
    """Of either program, in a short run."""
    wrapper = ["valgrind", "--quiet", "--leak-check=full", "--error-exitcode=99"]
    receiver, url = pair.listen("precv", "--ack-frequency", "5", "-m", "203", wrapper=wrapper)
    sender = pair.start("psend", url, "-m", "203", *options.split(), wrapper=wrapper)
    results = pair.finish(sender), pair.finish(receiver)
    pair.assert_codes(results, 0, 0)
    assert not results[0].lines and not results[1].lines


@no_sanitizers
@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
def test_no_leaks_without_a_peer() -> None:
    """Nor when the connection fails."""
    wrapper = ["valgrind", "--quiet", "--leak-check=full", "--error-exitcode=99"]
    for program in pair.PROGRAMS:
        result = pair.run(program, f"{pair.HOST}:1", wrapper=wrapper)
        pair.assert_codes([result], 2)


def instructions(batch: str, messages: int) -> int:
    """Of precv, for a whole run."""
    wrapper = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    receiver, url = pair.listen("precv", "--drain-batch", batch, wrapper=wrapper)
    pair.run("psend", url, "-m", str(messages), "--presettled")
    result = pair.finish(receiver)
    pair.assert_codes([result], 0)
    match = re.search(r"Collected : (\d+)", result.stderr)
    assert match
    return int(match[1])


@no_sanitizers
@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
def test_drain_batch_saves_dispatch() -> None:
    """One event, one message costs the reactor's dispatch each time: about 1,100 instructions."""
    messages = 5000
    one, ten, all_there_are = (instructions(batch, messages) for batch in ("1", "10", "0"))
    saved = (one - all_there_are) / messages
    assert 600 < saved < 2000
    assert one > ten > all_there_are


def short_connection() -> bytes:
    """All that a sender writes that opens a connection, a session and a link, and closes them."""
    window = {"incoming_window": wire.WINDOW, "outgoing_window": wire.WINDOW}
    ends = {"source": wire.node(wire.SOURCE), "target": wire.node(wire.TARGET)}
    link = {"name": "short", "handle": 0, "role": wire.SENDER, "initial_delivery_count": 0}
    return b"".join(
        [
            wire.AMQP_HEADER,
            wire.frame(wire.OPEN, container="short"),
            wire.frame(wire.BEGIN, next_outgoing_id=0, **window),
            wire.frame(wire.ATTACH, **link, **ends),
            wire.frame(wire.DETACH, handle=0, closed=True),
            wire.frame(wire.END),
            wire.frame(wire.CLOSE),
        ]
    )


def connect_shortly(address: tuple[str, int], script: bytes) -> None:
    """Plays a recorded conversation, and waits until the peer has closed."""
    with socket.create_connection(address, timeout=pair.DEADLINE_S) as client:
        client.sendall(script)
        answer = b""
        while part := client.recv(65536):
            answer += part
    assert answer.startswith(b"AMQP\x00\x01\x00\x00")


def test_short_connections_leave_nothing() -> None:
    """Two thousand of them: neither memory nor descriptors."""
    receiver, url = pair.listen("precv", "--forever", "--report-total")
    host, port = url.split("/")[0].split(":")
    script = short_connection()
    memory, descriptors = [], []
    for _ in range(4):
        for _ in range(pair.count(500)):
            connect_shortly((host, int(port)), script)
        memory.append(faults.resident(receiver.pid))
        descriptors.append(len(os.listdir(f"/proc/{receiver.pid}/fd")))
    psend = pair.run("psend", url, "-m", "100")
    pair.send_signal(receiver, signal.SIGINT)
    precv = pair.finish(receiver)
    pair.assert_codes((psend, precv), 0, 128 + signal.SIGINT)
    assert not precv.of_kind("error")
    assert precv.messages["received"] == 100
    assert max(descriptors) - min(descriptors) <= 1
    if not pair.SANITIZED:
        assert memory[-1] - memory[0] <= 256 * KIB, memory


def test_descriptor_limit() -> None:
    """At the limit of open files no more are accepted, it is said, and no processor is burnt."""
    wrapper = ["prlimit", "--nofile=64", "--"]
    receiver, url = pair.listen("precv", "--forever", wrapper=wrapper)
    host, port = url.split("/")[0].split(":")
    clients = [socket.create_connection((host, int(port))) for _ in range(60)]
    used_s = faults.cpu_s(receiver.pid)
    time.sleep(0.5)  # what it does meanwhile is the question
    assert faults.cpu_s(receiver.pid) - used_s < 0.2  # of 0.5
    for client in clients:
        client.close()
    psend = pair.run("psend", url, "-m", "100")
    assert psend.code == 0
    pair.send_signal(receiver, signal.SIGINT)
    precv = pair.finish(receiver)
    assert precv.messages["received"] == 100
    assert any("limit of open files" in line for line in precv.lines)


@pytest.mark.parametrize("length", [1000, 3970, 4096, 5000, 20000, 40000])
@pytest.mark.parametrize("options", ["", "--max-frame 512", "--max-frame 4096"])
def test_long_properties_hide_neither_number_nor_end(length: int, options: str) -> None:
    """What stands before and behind them is read."""
    properties = ["-P", "k=" + length * "v", "--group-prefix", length // 2 * "g"]
    psend, precv = pair.run_pair(
        ["-m", "20", "--send-eos", "1", *properties],
        ["--verify-sequence", "--forever", *options.split()],
    )
    pair.assert_delivered(psend, precv, 20)
    assert precv.messages["no_sequence"] == precv.messages["no_timestamp"] == 0
    assert precv.summary["content_bytes"] == psend.summary["content_bytes"] == 20 * 100
    assert precv.summary["stop_reason"] == "eos"
