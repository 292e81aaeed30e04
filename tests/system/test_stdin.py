"""Lines of standard input as messages: all of them, in order, and none is waited for."""

import contextlib
import os
import pty
import random
import select
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

import amqp
import pair
import pytest
from measuring import measured

WINDOWS = [
    "",
    "--credit 10",
    "--credit 1",
    "--max-frame 512 --session-window 1Ki",
    "--max-frame 512 --session-window 8Ki --credit 7",
]


def temporary(content: bytes) -> IO[bytes]:
    """A file with this content, at its beginning."""
    file = tempfile.TemporaryFile()
    file.write(content)
    file.seek(0)
    return file


def received(content: bytes, *arguments: str, credit: int = 100) -> tuple[list[bytes], pair.Result]:
    """The bodies that a receiver of another make gets for CONTENT, and what psend says."""
    with temporary(content) as file:
        options = ("--content-stdin", "--send-eos", "1", *arguments)
        sender, url = pair.listen("psend", *options, stdin=file.fileno())
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=credit)
    bodies: list[bytes] = []
    while not bodies or bodies[-1] != b"eos":
        message = receiver.receive(timeout=amqp.TIMEOUT_S)
        receiver.accept()
        bodies.append(bytes(message.body))
        assert message.properties["sn"] == len(bodies)
    connection.close()
    result = pair.finish(sender)
    return bodies[:-1], result


def feed(fd: int, content: bytes, times: int = 1) -> threading.Thread:
    """Writes to a pipe and closes it, in a thread; the reader may leave."""

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(fd, "wb") as file:
            for _ in range(times):
                file.write(content)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def start_with_pipe(url: str, *arguments: str) -> tuple[pair.Child, int]:
    """psend, and the descriptor that writes its standard input."""
    read_fd, write_fd = os.pipe()
    child = pair.start("psend", url, "--content-stdin", *arguments, stdin=read_fd)
    os.close(read_fd)
    return child, write_fd


# ---- lines ----


@pytest.mark.parametrize(
    "content,lines",
    [
        (b"", []),
        (b"\n", [b""]),
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"one\n\n\nlast", [b"one", b"", b"", b"last"]),
        (b"dos\r\n\0nul\0\n\xff\xfe\n", [b"dos\r", b"\0nul\0", b"\xff\xfe"]),
        (b"a" * 255 + b"\n" + b"b" * 256 + b"\n" + b"c" * 200000 + b"\nd", None),
    ],
    ids=["none", "empty", "two", "no_newline", "bytes", "long"],
)
def test_lines(content: bytes, lines: list[bytes] | None) -> None:
    """What is between newlines; the end of the run is that of the input."""
    expected = content.split(b"\n") if lines is None else lines
    bodies, result = received(content)
    assert bodies == expected
    pair.assert_codes([result], 0)
    assert result.summary["stop_reason"] == "input" and result.summary["complete"]
    assert result.messages["sent"] == result.messages["accepted"] == len(expected)
    assert result.summary["content_bytes"] == sum(map(len, expected))


def test_properties_of_lines() -> None:
    """Groups and an id of their own, and everything else that messages have."""
    with temporary(b"1\n22\n333\n4444\n") as file:
        options = ("--message-id", "auto", "--group-size", "3", "-Pa=1", "--content-stdin")
        sender, url = pair.listen("psend", *options, stdin=file.fileno())
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=10)
    for number in range(1, 5):
        message = receiver.receive(timeout=amqp.TIMEOUT_S)
        receiver.accept()
        assert (message.id, message.properties["sn"]) == (number, number)
        assert message.properties["a"] == 1 and bytes(message.body) == b"%d" % number * number
        assert (message.group_id, message.group_sequence) == (
            f"GROUP-{(number - 1) // 3}",
            (number - 1) % 3 + 1,
        )
    connection.close()
    pair.assert_codes([pair.finish(sender)], 0)


def random_lines(count: int) -> bytes:
    """Mostly short ones, some longer than any window, frame or buffer."""
    source = random.Random(4)
    lengths = (source.choice([0, 5, 100, 300, 3000]) for _ in range(count))
    return b"".join(b"%d:" % i + b"y" * n + b"\n" for i, n in enumerate(lengths))


@pytest.mark.parametrize("presettled", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
def test_order(window: str, presettled: bool) -> None:
    """Every line once, in order, however it has to be cut, and both ends count the same bytes."""
    count = pair.count(1000)
    content = random_lines(count)
    receiver, url = pair.listen("precv", "--verify-sequence", *window.split())
    sender, fd = start_with_pipe(url, *(["--presettled"] if presettled else []))
    writer = feed(fd, content)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    writer.join(pair.DEADLINE_S)
    pair.assert_delivered(psend, precv, count)
    size = len(content) - count
    assert psend.summary["content_bytes"] == precv.summary["content_bytes"] == size


@pytest.mark.parametrize("options", ["", "--max-unsettled 3"])
@pytest.mark.parametrize("credit", [1, 7, 100])
def test_content_and_order(credit: int, options: str) -> None:
    """As seen by another implementation."""
    content = random_lines(pair.count(300))
    bodies, result = received(content, *options.split(), credit=credit)
    assert bodies == content.split(b"\n")[:-1]
    pair.assert_codes([result], 0)


def test_pipeline() -> None:
    """Many lines, from another program."""
    count = pair.count(100000)
    receiver, url = pair.listen("precv", "--verify-sequence")
    with subprocess.Popen(["seq", str(count)], stdout=subprocess.PIPE) as seq:
        assert seq.stdout
        sender = pair.start("psend", url, "--content-stdin", stdin=seq.stdout.fileno())
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_delivered(psend, precv, count)
    digits = sum(len(str(i)) for i in range(1, count + 1))
    assert psend.summary["content_bytes"] == precv.summary["content_bytes"] == digits


@pytest.mark.parametrize("window", ["", "--max-frame 512 --session-window 4Ki"])
def test_long_lines(window: str) -> None:
    """Longer than what is read, or sent, at a time."""
    content = b"".join(b"%d" % n * n + b"\n" for n in (1, 3_000_000, 2, 1_000_000, 3))
    receiver, url = pair.listen("precv", "--verify-sequence", *window.split())
    sender, fd = start_with_pipe(url)
    feed(fd, content)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_delivered(psend, precv, 5)
    assert precv.summary["content_bytes"] == len(content) - 5


def test_several_receivers() -> None:
    """Each line goes to one of them, and each of them gets its own in order."""
    count = pair.count(2000)
    with temporary(b"".join(b"%d\n" % i for i in range(count))) as file:
        start_at = time.time_ns() + 2 * 10**9
        options = ("--content-stdin", "--send-eos", "3", "--start-at", str(start_at))
        sender, url = pair.listen("psend", *options, stdin=file.fileno())
    got: list[list[int]] = [[], [], []]

    def take(numbers: list[int]) -> None:
        connection = amqp.connect(url)
        receiver = amqp.receiver(connection, credit=20)
        while (body := bytes(receiver.receive(timeout=amqp.TIMEOUT_S).body)) != b"eos":
            receiver.accept()
            numbers.append(int(body))
        receiver.accept()
        connection.close()

    amqp.run_all(take, got)
    result = pair.finish(sender)
    pair.assert_codes([result], 0)
    assert sorted(number for numbers in got for number in numbers) == list(range(count))
    assert all(numbers == sorted(numbers) and numbers for numbers in got)


# ---- the end of the run ----


def test_messages_is_a_limit() -> None:
    """At most so many lines; fewer are not too few."""
    bodies, result = received(b"a\nb\nc\nd\n", "-m", "3")
    assert bodies == [b"a", b"b", b"c"] and result.summary["stop_reason"] == "messages"
    pair.assert_codes([result], 0)
    bodies, result = received(b"a\nb\n", "-m", "3")
    assert bodies == [b"a", b"b"] and result.summary["stop_reason"] == "input"
    pair.assert_codes([result], 0)


def test_duration_is_a_limit() -> None:
    """It ends the run while input is waited for; and the input ends it before."""
    receiver, url = pair.listen("precv")
    sender, fd = start_with_pipe(url, "-d", "300ms")
    os.write(fd, b"one\ntwo\n")
    psend, precv = pair.finish(sender), pair.finish(receiver)
    os.close(fd)
    pair.assert_delivered(psend, precv, 2)
    assert psend.summary["stop_reason"] == "duration"
    started_s = time.monotonic()
    bodies, result = received(b"a\n", "-d", "20s")
    assert bodies == [b"a"] and result.summary["stop_reason"] == "input"
    assert time.monotonic() - started_s < 15


def messages_received(child: pair.Child) -> int:
    """As its intervals say."""
    with child.more:
        intervals = [event for event in child.events if event["event"] == "interval"]
    return sum(interval["messages"]["received"] for interval in intervals)


@pytest.mark.measures
def test_slow_writer() -> None:
    """Each line is sent when it comes; the time until then is idle."""
    receiver, url = pair.listen("precv", "--interval", "20ms")
    sender, fd = start_with_pipe(url, "--interval", "20ms")
    pair.wait_for(sender, "ready")
    for number in range(5):
        os.write(fd, b"begin ")
        time.sleep(0.1)  # what is measured
        os.write(fd, b"end %d\n" % number)
        deadline_s = time.monotonic() + pair.DEADLINE_S
        while messages_received(receiver) <= number:
            assert time.monotonic() < deadline_s, "a line was not sent before the next"
            time.sleep(0.005)
    os.close(fd)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_delivered(psend, precv, 5)
    time_s, cpu = psend.summary["time_s"], psend.summary["cpu"]
    with measured():
        assert time_s["idle"] >= 0.4 and time_s["idle"] >= 0.8 * psend.summary["wall_s"]
        assert cpu["user_s"] + cpu["system_s"] < 0.3
    assert psend.summary["credit"]["blocked"] == 0
    pair.assert_time_is_whole(psend.summary)


def test_no_line_is_left_until_the_next() -> None:
    """However a line's coming falls into the turn of a psend that nothing else wakes."""
    read_fd, write_fd = os.pipe()
    with os.fdopen(read_fd, "rb") as printed:
        with os.fdopen(write_fd, "wb") as out:
            receiver, url = pair.listen("precv", "--print-content", "--interval", "0", stdout=out)
        sender, fd = start_with_pipe(url, "--interval", "0")
        pair.wait_for(sender, "ready")
        chance = random.Random(1)
        for number in range(pair.count(4000)):
            time.sleep(chance.uniform(0, 0.0003))
            os.write(fd, b"%d\n" % number)
            assert select.select([printed], [], [], 10)[0], f"line {number} was left"
            assert printed.readline() == b"%d\n" % number
    os.close(fd)
    assert pair.finish(sender).code == 0
    receiver.process.kill()


def test_interrupted_while_waiting() -> None:
    """In order: what was read is sent and settled."""
    receiver, url = pair.listen("precv")
    sender, fd = start_with_pipe(url)
    os.write(fd, b"one\ntwo\npart")
    pair.wait_for(receiver, "interval")
    pair.send_signal(sender, pair.signal.SIGINT)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    os.close(fd)
    pair.assert_codes([psend, precv], 130, 0)
    assert psend.messages["sent"] == psend.messages["accepted"] == precv.messages["received"] == 2
    assert psend.summary["interrupted"] and psend.seconds < 10


def test_timeout_while_waiting() -> None:
    """No traffic ends the run; what was there to be sent was sent."""
    receiver, url = pair.listen("precv")
    sender, fd = start_with_pipe(url, "--timeout", "200ms")
    os.write(fd, b"one\n")
    psend, precv = pair.finish(sender), pair.finish(receiver)
    os.close(fd)
    pair.assert_delivered(psend, precv, 1)
    assert psend.summary["stop_reason"] == "timeout"


def test_receiver_that_leaves() -> None:
    """Lines that nobody takes any more are missing."""
    receiver, url = pair.listen("precv", "-m", "10")
    sender, fd = start_with_pipe(url)
    feed(fd, b"x\n" * 1000)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    assert precv.messages["received"] == 10 and precv.code == 0
    assert psend.code == 4 and not psend.summary["complete"]


def test_receiver_that_dies_in_the_middle_of_a_line() -> None:
    """Another one gets the whole of it."""
    line = b"m" * 20_000_000
    with temporary(line + b"\nlast\n") as file:
        options = ("--content-stdin", "--forever", "--interval", "50ms")
        sender, url = pair.listen("psend", *options, stdin=file.fileno())
    window = ("--max-frame", "512", "--session-window", "1Ki")
    first = pair.start("precv", url, *window)
    pair.wait_for(first, "ready")
    pair.send_signal(first, pair.signal.SIGSTOP)  # long before all of it has come
    pair.send_signal(first, pair.signal.SIGKILL)
    second = pair.finish(pair.start("precv", url, "-m", "2", "--verify-sequence"))
    psend = pair.finish(sender)
    pair.assert_codes([psend, second], 0, 0)
    assert psend.messages["sent"] == psend.messages["accepted"] == 2
    assert second.summary["content_bytes"] == psend.summary["content_bytes"] == len(line) + 4


# ---- kinds of input ----


def test_terminal() -> None:
    """Line by line, until its end is typed; the terminal is left as it was."""
    receiver, url = pair.listen("precv")
    master, slave = pty.openpty()
    sender = pair.start("psend", url, "--content-stdin", stdin=slave)
    pair.wait_for(sender, "ready")
    os.write(master, b"hello\nworld\n")
    assert os.get_blocking(slave)
    os.write(master, b"\x04")
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_delivered(psend, precv, 2)
    assert precv.summary["content_bytes"] == 10
    os.close(master)
    os.close(slave)


def test_descriptor_that_does_not_block() -> None:
    """As another program may have left it: nothing being there is not the end."""
    receiver, url = pair.listen("precv")
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    sender = pair.start("psend", url, "--content-stdin", stdin=read_fd)
    pair.wait_for(sender, "ready")
    os.write(write_fd, b"late\n")
    os.close(write_fd)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    assert not os.get_blocking(read_fd)
    os.close(read_fd)
    pair.assert_delivered(psend, precv, 1)


def test_no_input() -> None:
    """Nothing is to be sent, and nothing is missing."""
    psend, precv = pair.run_pair(["--content-stdin"])  # of /dev/null
    pair.assert_delivered(psend, precv, 0)
    assert psend.summary["stop_reason"] == "input"


def test_input_that_cannot_be_read() -> None:
    """One line that says so; what could be read was sent."""
    receiver, url = pair.listen("precv")
    folder = os.open("/", os.O_RDONLY)
    sender = pair.start("psend", url, "--content-stdin", "--send-eos", "1", stdin=folder)
    os.close(folder)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_codes([psend, precv], 1, 0)
    assert psend.lines == ["psend: reading standard input: Is a directory"]
    assert len(psend.of_kind("error")) == 1
    assert psend.messages["sent"] == precv.messages["received"] == 0


def test_closed_input() -> None:
    """Refused: a file that is opened later would have its place."""
    command = f"exec '{pair.BIN}/psend' --content-stdin 127.0.0.1:1 <&-"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 64
    assert ended.stderr == "psend: --content-stdin: standard input: Bad file descriptor\n"


def test_input_for_writing(tmp_path: Path) -> None:
    """Refused as well."""
    with (tmp_path / "file").open("wb") as file:
        result = pair.run("psend", "--content-stdin", events=False, stdin=file.fileno())
    assert result.code == 64
    assert result.lines == ["psend: --content-stdin: standard input is not open for reading"]


@pytest.mark.skipif(pair.SANITIZED, reason="the sanitizer's own memory is counted too")
def test_memory() -> None:
    """Input is not read ahead of what can be sent."""
    receiver, url = pair.listen("precv", "--receive-rate", "10", "--credit", "5")
    sender, fd = start_with_pipe(url, "-d", "500ms", "--close-timeout", "100ms")
    feed(fd, b"z" * 1000 + b"\n", times=50000)
    psend = pair.finish(sender)
    pair.finish(receiver)
    assert 0 < psend.messages["sent"] < 5000
    assert psend.summary["rss_peak_bytes"] < 16 << 20
