"""What is in a message, as the pair and a peer of another make see it."""

import time

import amqp
import pair
import proton
import pytest

SIZES = [("0", 0), ("1", 1), ("255", 255), ("256", 256), ("1000", 1000), ("100000", 100000)]
FRAMES = ["", "--max-frame 512", "--max-frame 512 --session-window 4Ki"]


@pytest.mark.parametrize("frames", [*FRAMES, "--max-frame 512 --session-window 1Mi"])
@pytest.mark.parametrize("text,size", [*SIZES, ("5Mi", 5 << 20)])
def test_content_size(text: str, size: int, frames: str) -> None:
    """Any size arrives whole, in one frame or many."""
    messages = 1 if size > 100000 else 20
    psend, precv = pair.run_pair(["-m", str(messages), "--content-size", text], frames.split())
    pair.assert_delivered(psend, precv, messages)
    assert psend.summary["content_bytes"] == precv.summary["content_bytes"] == messages * size
    assert precv.summary["latency_ns"]["count"] == messages
    assert precv.messages["no_sequence"] == 0
    if frames:
        assert precv.summary["credit"]["frames_in"] >= messages * size / 512


def received(count: int, *arguments: str) -> list[proton.Message]:
    """What a receiver of another make gets from psend."""
    sender, url = pair.listen("psend", "-m", str(count), *arguments)
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=count)
    messages = []
    for _ in range(count):
        messages.append(receiver.receive(timeout=amqp.TIMEOUT_S))
        receiver.accept()
    connection.close()
    pair.assert_codes([pair.finish(sender)], 0)
    return messages


def test_content() -> None:
    """A data section."""
    assert [m.body for m in received(3)] == [b"X" * 100] * 3
    assert [m.body for m in received(2, "--content-string", "hello")] == [b"hello"] * 2
    assert [m.body for m in received(1, "--content-size", "0")] == [b""]
    assert all(m.inferred for m in received(1))


def test_content_string_is_counted() -> None:
    """Its length is the content's size."""
    psend, precv = pair.run_pair(["-m", "10", "--content-string", "hello"])
    assert psend.summary["content_bytes"] == precv.summary["content_bytes"] == 50


def test_header() -> None:
    """--ttl, --priority and --durable arrive; without them there is no header."""
    plain = received(1)[0]
    assert (plain.ttl, plain.priority, plain.durable) == (0, 4, False)
    full = received(1, "--ttl", "60000", "--priority", "7", "--durable")[0]
    assert (full.ttl, full.priority, full.durable) == (60, 7, True)
    assert received(1, "--priority", "0")[0].priority == 0


def test_stamp_types() -> None:
    """sn is a ulong that counts from the first number, ts a long of ns since the epoch."""
    before_ns = time.time_ns()
    messages = received(300)
    numbers = [m.properties["sn"] for m in messages]
    stamps = [m.properties["ts"] for m in messages]
    assert numbers == list(range(1, 301))
    assert {type(n) for n in numbers} == {proton.ulong}
    assert {type(s) for s in stamps} == {int}  # an AMQP long
    assert before_ns <= stamps[0] and stamps == sorted(stamps) and stamps[-1] <= time.time_ns()
    assert list(messages[0].properties) == ["sn", "ts"]


def test_stamps_can_be_left_out() -> None:
    """And numbers begin where they are told to."""
    assert list(received(1, "--sequence", "no")[0].properties) == ["ts"]
    assert list(received(1, "--timestamp", "no")[0].properties) == ["sn"]
    assert not received(1, "--timestamp", "no", "--sequence", "no")[0].properties
    numbers = [m.properties["sn"] for m in received(3, "--first-sequence", "254")]
    assert numbers == [254, 255, 256]


def test_no_sequence() -> None:
    """Counted as such; latency is there."""
    psend, precv = pair.run_pair(["-m", "1000", "--sequence", "no"])
    pair.assert_delivered(psend, precv, 1000)
    assert precv.messages["no_sequence"] == 1000
    assert precv.summary["latency_ns"]["count"] == 1000


def test_no_timestamp() -> None:
    """Counted as such; there is no latency, not one of 0."""
    psend, precv = pair.run_pair(["-m", "1000", "--timestamp", "no"])
    pair.assert_delivered(psend, precv, 1000)
    assert precv.messages["no_timestamp"] == 1000
    latency = precv.summary["latency_ns"]
    assert latency["count"] == 0 and latency["buckets"] == []
    for name in ("min", "mean", "stddev", "max", *pair.percentile_names(latency)):
        assert latency[name] is None


@pytest.mark.parametrize("as_ulong", [True, False])
def test_python_sends(as_ulong: bool) -> None:
    """Numbers and stamps in whatever integer type another library chooses."""
    receiver, url = pair.listen("precv", "--verify-sequence")
    messages = (amqp.numbered(n, time.time_ns(), as_ulong) for n in range(1, 401))
    assert set(amqp.send(url, messages)) == {amqp.ACCEPTED}
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    counts = precv.messages
    assert (counts["received"], counts["no_sequence"], counts["no_timestamp"]) == (400, 0, 0)
    latency = precv.summary["latency_ns"]
    assert latency["count"] == 400 and 0 < latency["min"] <= latency["max"] < 5e9
