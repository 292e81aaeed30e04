"""What psend puts into messages, as a peer of another make reads it."""

import contextlib
import struct
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import amqp
import pair
import proton
import pytest
from proton.utils import BlockingReceiver


@dataclass(frozen=True)
class Message:
    """A copy of what a receiver has got; the receiver's own object is used again."""

    body: object
    properties: dict[str, object]
    message: proton.Message


def accept(receiver: BlockingReceiver) -> None:
    """The message received last, if it is not settled already."""
    with contextlib.suppress(IndexError):
        receiver.accept()


def receive(receiver: BlockingReceiver, count: int) -> Iterator[Message]:
    """The next messages, each of them accepted."""
    for _ in range(count):
        message = receiver.receive(timeout=amqp.TIMEOUT_S)
        accept(receiver)
        body = bytes(message.body) if isinstance(message.body, memoryview) else message.body
        yield Message(body, dict(message.properties or {}), message)


def received(count: int, *arguments: str, messages: int | None = None) -> list[Message]:
    """COUNT messages from a psend that is to send MESSAGES and ends by itself."""
    sender, url = pair.listen("psend", "-m", str(messages or count), *arguments)
    connection = amqp.connect(url)
    got = list(receive(amqp.receiver(connection, credit=count), count))
    connection.close()
    result = pair.finish(sender)
    pair.assert_codes([result], 0)
    assert result.messages["sent"] == result.messages["accepted"] == (messages or count)
    return got


# ---- properties ----


def test_properties() -> None:
    """Each one arrives as it was given."""
    options = "--subject s --message-id m --correlation-id c --user-id u --reply-to r"
    for got in received(3, *options.split(), "--content-type", "t/p"):
        m = got.message
        assert (m.subject, m.id, m.correlation_id) == ("s", "m", "c")
        assert (bytes(m.user_id), m.reply_to, m.content_type) == (b"u", "r", "t/p")
        assert (m.group_id, m.group_sequence, m.address) == (None, 0, None)


def test_without_properties() -> None:
    """None of them has a value if it was not given."""
    m = received(1)[0].message
    assert (m.subject, m.id, m.correlation_id, m.reply_to) == (None, None, None, None)
    assert (m.group_id, bytes(m.user_id or b"")) == (None, b"")
    assert str(m.content_type) == "None"  # the binding's way to say that there is none


def test_automatic_message_id() -> None:
    """It is the message's number, whether or not that is a property as well."""
    for sequence in ("yes", "no"):
        options = ("--message-id", "auto", "--first-sequence", "254", "--sequence", sequence)
        messages = [got.message for got in received(4, *options)]
        assert [m.id for m in messages] == [254, 255, 256, 257]
        assert {type(m.id) for m in messages} == {int}  # a string is a str


VALUES: list[tuple[str, object, type]] = [
    ("true", True, bool),
    ("false", False, bool),
    ("0", 0, int),
    ("-7", -7, int),
    ("9223372036854775807", 2**63 - 1, int),
    ("9223372036854775808", 2**63, proton.ulong),
    ("1.5", 1.5, float),
    ("1e3", 1000.0, float),
    ("text", "text", str),
    ("a=b", "a=b", str),
    ("", "", str),
    ("18446744073709551616", "18446744073709551616", str),
]


def test_application_properties() -> None:
    """Values have the type that they look like."""
    options = [f"-Pk{i}={text}" for i, (text, _, _) in enumerate(VALUES)]
    for got in received(2, *options):
        assert list(got.properties)[:2] == ["sn", "ts"]
        found = list(got.properties.values())[2:]
        assert [(v, type(v)) for v in found] == [(value, kind) for _, value, kind in VALUES]


# ---- body ----


def test_map() -> None:
    """A map with values of the same types; both ends count the same bytes."""
    options = [f"--content-map=k{i}={text}" for i, (text, _, _) in enumerate(VALUES)]
    for got in received(2, *options):
        assert isinstance(got.body, dict)
        assert [(v, type(v)) for v in got.body.values()] == [(v, kind) for _, v, kind in VALUES]
        assert list(got.body) == [f"k{i}" for i in range(len(VALUES))]
    psend, precv = pair.run_pair(["-m", "100", *options])
    pair.assert_delivered(psend, precv, 100)
    assert psend.summary["content_bytes"] == precv.summary["content_bytes"] > 100 * len(VALUES)


FILES = {"empty": b"", "lines": b"line\nand\0more\xff\n", "large": bytes(range(256)) * 4096}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_file(content: bytes) -> None:
    """All bytes of it, whatever they are."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        assert [got.body for got in received(2, "--content-file", file.name)] == [content] * 2
        psend, precv = pair.run_pair(["-m", "7", "--content-file", file.name])
    pair.assert_delivered(psend, precv, 7)
    assert psend.summary["content_bytes"] == precv.summary["content_bytes"] == 7 * len(content)


@pytest.mark.parametrize("window", ["", "--max-frame 512 --session-window 1Ki"])
@pytest.mark.parametrize("size", [16, 100, 300, 70000])
def test_checked_content(size: int, window: str) -> None:
    """Number, length and CRC-32, and what the CRC is of."""
    options = ("--check-content", "--content-size", str(size))
    for number, got in enumerate(received(3, *options), start=1):
        assert isinstance(got.body, bytes) and len(got.body) == size
        assert struct.unpack(">QII", got.body[:16]) == (number, size, zlib.crc32(got.body[16:]))
    psend, precv = pair.run_pair(["-m", "20", *options], window.split())
    pair.assert_delivered(psend, precv, 20)
    assert psend.summary["content_bytes"] == precv.summary["content_bytes"] == 20 * size


# ---- groups ----


def groups_of(messages: list[Message]) -> list[tuple[object, object]]:
    """Group id and place in the group of each."""
    return [(got.message.group_id, got.message.group_sequence) for got in messages]


def test_groups() -> None:
    """One after the other, numbered from 0 as qpid-send does; places from 1 on."""
    expected = [(f"GROUP-{i // 3}", i % 3 + 1) for i in range(40)]
    assert groups_of(received(40, "--group-size", "3")) == expected
    prefixed = received(3, "--group-size", "1", "--group-prefix", "x")
    assert groups_of(prefixed) == [("x0", 1), ("x1", 1), ("x2", 1)]
    assert all(got.body == b"X" * 100 for got in prefixed)


def test_group_key() -> None:
    """In a property of the application instead; groups of ten if nothing is said."""
    messages = received(25, "--group-key", "g", "-Pp=1")
    assert groups_of(messages) == [(None, 0)] * 25
    assert [got.properties["g"] for got in messages] == [f"GROUP-{i // 10}" for i in range(25)]
    assert [got.properties["sn"] for got in messages] == list(range(1, 26))
    assert all(got.properties["p"] == 1 for got in messages)


def test_interleaved_groups() -> None:
    """A message for each in turn; a new group where one is full."""
    messages = received(24, "--group-size", "2", "--group-interleave", "4")
    expected = [(f"GROUP-{4 * r + g}", f) for r in range(3) for f in (1, 2) for g in range(4)]
    assert groups_of(messages) == expected


def test_random_groups() -> None:
    """All sizes there may be; the same in each run."""
    options = ("--group-size", "4", "--group-randomize-size")
    first, second = (groups_of(received(200, *options)) for _ in range(2))
    assert first == second
    sizes = Counter(name for name, _ in first)
    del sizes[first[-1][0]]  # not full
    assert set(sizes.values()) == {1, 2, 3, 4}
    assert len(sizes) == len(set(sizes)) and first[0][0] == "GROUP-0"


def test_groups_of_large_messages_in_parts() -> None:
    """A body that all share goes with the head of its own group, through small windows."""
    precv = ["--max-frame", "512", "--session-window", "1Ki", "--verify-sequence"]
    options = ["-m", "30", "--content-size", "10k", "--group-size", "2", "--check-content"]
    pair.assert_delivered(*pair.run_pair(options, precv), 30)


# ---- the end ----


def test_eos() -> None:
    """Behind the last message, with the next numbers, and in no count."""
    options = ("--send-eos", "2", "-Pa=b", "--subject", "s", "--group-size", "2", "--durable")
    messages = received(7, *options, messages=5)
    assert [got.properties["sn"] for got in messages] == list(range(1, 8))
    assert [got.body for got in messages] == [b"X" * 100] * 5 + [b"eos"] * 2
    for got in messages[5:]:
        assert got.message.inferred and got.message.durable
        assert (got.properties["a"], got.message.subject) == ("b", "s")
        assert isinstance(got.properties["ts"], int) and got.message.group_id is None


def test_eos_counts_as_nothing() -> None:
    """Neither in messages and bytes, nor in latency."""
    receiver, url = pair.listen("precv", "--ignore-duplicates")
    psend = pair.run("psend", url, "-m", "10", "--send-eos", "1")
    pair.finish(receiver)
    pair.assert_codes([psend], 0)
    assert psend.messages["sent"] == psend.messages["accepted"] == 10
    assert psend.summary["content_bytes"] == 1000
    assert psend.summary["settlement_ns"]["count"] == 10
    assert psend.summary["complete"] and psend.summary["stop_reason"] == "messages"


def test_eos_after_a_duration() -> None:
    """One more than what was counted, and nothing behind it."""
    sender, url = pair.listen("psend", "-d", "300ms", "--max-unsettled", "50", "--send-eos", "1")
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=100)
    count = 0
    while (got := next(receive(receiver, 1))).body != b"eos":
        count += 1
        assert got.properties["sn"] == count
    connection.close()
    result = pair.finish(sender)
    pair.assert_codes([result], 0)
    assert result.messages["sent"] == result.messages["accepted"] == count
    assert got.properties["sn"] == count + 1
    assert result.summary["stop_reason"] == "duration"


def test_eos_without_acknowledgements() -> None:
    """Who acknowledges at the end only, as qpid-receive may, is told that it has come."""
    sender, url = pair.listen("psend", "-m", "3", "--send-eos", "1")
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=10)
    bodies = [receiver.receive(timeout=amqp.TIMEOUT_S).body for _ in range(4)]
    for _ in range(4):
        receiver.accept()
    connection.close()
    result = pair.finish(sender)
    pair.assert_codes([result], 0)
    assert [bytes(body) for body in bodies] == [b"X" * 100] * 3 + [b"eos"]


@pytest.mark.parametrize("extra", ["", "--presettled"])
def test_eos_to_several_receivers(extra: str) -> None:
    """To each in turn, behind the messages of all."""
    start_at = str(time.time_ns() + 2 * 10**9)  # when all are attached
    options = ("-m", "8", "--send-eos", "6", "--start-at", start_at, *extra.split())
    sender, url = pair.listen("psend", *options)
    got: list[list[object]] = [[], [], []]

    def take(bodies: list[object]) -> None:
        connection = amqp.connect(url)
        receiver = amqp.receiver(connection, credit=20)
        while bodies.count(b"eos") < 2:
            bodies.append(next(receive(receiver, 1)).body)
        connection.close()

    amqp.run_all(take, got)
    result = pair.finish(sender)
    pair.assert_codes([result], 0)
    assert result.messages["sent"] == 8 == sum(len(bodies) - 2 for bodies in got)
    assert all(bodies[-2:] == [b"eos"] * 2 for bodies in got)


def test_eos_that_is_refused() -> None:
    """Not hidden: the exit code is that of refused messages, the counters are not."""
    sender, url = pair.listen("psend", "-m", "1", "--send-eos", "1")
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=2)
    receiver.receive(timeout=amqp.TIMEOUT_S)
    receiver.accept()
    receiver.receive(timeout=amqp.TIMEOUT_S)
    receiver.reject()
    connection.close()
    result = pair.finish(sender)
    pair.assert_codes([result], 6)
    assert (result.messages["accepted"], result.messages["rejected"]) == (1, 0)


def test_eos_that_cannot_be_sent() -> None:
    """There is no credit for it: the run was not all that was asked for."""
    options = ("-m", "1", "--send-eos", "1", "-d", "200ms", "--close-timeout", "200ms")
    sender, url = pair.listen("psend", *options)
    connection = amqp.connect(url)
    list(receive(amqp.receiver(connection, credit=1), 1))
    connection.close()
    result = pair.finish(sender)
    pair.assert_codes([result], 4)
    assert result.messages["accepted"] == 1 and result.messages["unsettled"] == 0


def test_no_eos_when_interrupted() -> None:
    """An end that nobody has planned is none."""
    options = ("--max-unsettled", "10", "--send-eos", "1", "--close-timeout", "500ms")
    sender, url = pair.listen("psend", "-m", "0", *options)
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=10)
    assert all(got.body == b"X" * 100 for got in receive(receiver, 5))
    pair.send_signal(sender, pair.signal.SIGINT)
    bodies = []
    try:
        while True:
            bodies.append(next(receive(receiver, 1)).body)
    except (proton.ProtonException, proton.Timeout):
        pass
    result = pair.finish(sender)
    pair.assert_codes([result], 130)
    assert b"eos" not in bodies and result.messages["sent"] == 5 + len(bodies)
