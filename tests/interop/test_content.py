"""Bodies and properties: psend's as others see them, and those of others as precv prints them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import checks
import pair
import peers
import pytest

CLIENTS = pytest.mark.parametrize("kind", peers.KINDS)


def seen_by(kind: str, messages: int, *words: str, **how: Any) -> list[dict[str, Any]]:
    """What a peer has received of psend with these words."""
    sender, url = pair.listen("psend", *words, **how)
    seen = peers.messages(peers.finish(peers.connect(kind, "receive", url, messages)))
    psend = pair.finish(sender)
    checks.assert_sent(psend, messages)
    return seen


# ---- psend's ----


@CLIENTS
def test_string(kind: str) -> None:
    """--content-string: a data section."""
    seen = seen_by(kind, 3, "-m", "3", "--content-string", "hello, world")
    checks.assert_bodies(seen, [b"hello, world"] * 3)


@CLIENTS
def test_file(kind: str, tmp_path: Path) -> None:
    """--content-file: every byte there is."""
    content = bytes(range(256)) * 100
    (tmp_path / "file").write_bytes(content)
    seen = seen_by(kind, 2, "-m", "2", "--content-file", str(tmp_path / "file"))
    checks.assert_bodies(seen, [content] * 2)


@CLIENTS
def test_lines(kind: str, tmp_path: Path) -> None:
    """--content-stdin: a message for each line."""
    lines = [f"line {number}".encode() for number in range(200)]
    (tmp_path / "lines").write_bytes(b"\n".join(lines) + b"\n")
    with open(tmp_path / "lines", "rb") as stdin:
        seen = seen_by(kind, 200, "--content-stdin", stdin=stdin.fileno())
    checks.assert_bodies(seen, lines)


@CLIENTS
def test_map(kind: str) -> None:
    """--content-map: a value."""
    words = ["--content-map", "name=x y", "--content-map", "count=3", "--content-map", "real=true"]
    (message,) = seen_by(kind, 1, "-m", "1", *words)
    assert message["body"] is None
    assert message["value"] == {"name": "x y", "count": 3, "real": True}


@CLIENTS
def test_properties(kind: str) -> None:
    """What a message says of itself, AMQP's properties and the application's."""
    stated = {
        "message_id": "id-1",
        "subject": "news",
        "reply_to": "answers",
        "correlation_id": "c-1",
        "content_type": "text/plain",
        "user_id": "me",
    }
    words = [f"--{name.replace('_', '-')}={value}" for name, value in stated.items()]
    words += ["-P", "colour=red", "-P", "size=-5", "-P", "share=0.5", "-P", "good=true"]
    seen = seen_by(kind, 2, "-m", "2", "--priority", "2", "--durable", "--ttl", "5000", *words)
    for message in seen:
        assert message["properties"] == stated
        expected = {"colour": "red", "size": -5, "share": 0.5, "good": True}
        assert message["application"] == expected
        assert message["header"] == {"durable": True, "priority": 2, "ttl_ms": 5000}
    assert [message["sn"] for message in seen] == ["1", "2"]


@CLIENTS
def test_groups(kind: str) -> None:
    """--group-size: group-id."""
    seen = seen_by(kind, 6, "-m", "6", "--group-size", "2", "--group-prefix", "G")
    groups = [message["properties"]["group_id"] for message in seen]
    assert groups[0::2] == groups[1::2] and len(set(groups)) == 3
    assert all(group.startswith("G") for group in groups)


def test_checked_content_comes_back(queue: str) -> None:
    """--check-content survives a broker."""
    psend = pair.run("psend", queue, "-m", "200", "--check-content", "--content-size", "5000")
    checks.assert_sent(psend, 200)
    precv = pair.run("precv", queue, "-m", "200", "--verify-sequence", "--check-content")
    checks.assert_received(precv, 200, 5000)


# ---- as precv prints those of others ----

PRINTED = {
    "data": "some text",
    "binary": "some text",
    "string": "some text",
    "number": "42",
    "list": '["some text", 42, true, null]',
    "map": '{"text"="some text", "number"=42, "list"=[1, 2]}',
}


def printed_of(kind: str, *words: str, option: str = "--print-content") -> str:
    """By precv, of what a peer with these words has sent."""
    receiver, url = pair.listen("precv", "--verify-sequence", option, *checks.end_of(kind, 3))
    peers.finish(peers.connect(kind, "send", url, 3, *words))
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    assert precv.messages["received"] == 3
    return precv.stdout


@CLIENTS
@pytest.mark.parametrize("body", PRINTED)
def test_body_is_printed(kind: str, body: str) -> None:
    """Whatever it is, each message in a line."""
    printed = printed_of(kind, "--kind", body, "--body", "some text")
    assert printed == f"{PRINTED[body]}\n" * 3


@CLIENTS
def test_headers_are_printed(kind: str) -> None:
    """All that rich messages say."""
    printed = printed_of(kind, "--rich", option="--print-headers")
    records = printed.split("\n\n")
    assert len(records) == 4 and records[3] == ""
    for number, record in enumerate(records[:3], 1):
        fields = dict(line.split(": ", 1) for line in record.splitlines())
        properties = fields.pop("Properties")
        del fields["GroupId"]
        fields.pop("GroupSequence", None)  # which uamqp does not send
        assert fields == {
            "Subject": "a subject",
            "ReplyTo": "answers",
            "MessageId": f"id-{number}",
            "CorrelationId": str(number),
            "UserId": "guest",
            "TTL": "60000",
            "Priority": "7",
            "Durable": "true",
            "ContentType": "a/b",
            "To": "to",
        }
        for text in ("a:sn", "tss:true", "c:-1.5", f"sn:{number}", "z:last"):
            assert text in properties


# ---- by way of a broker ----


def test_pipeline(queue: str) -> None:
    """seq | psend, broker, precv | a reader: every line, in order."""
    numbers = "".join(f"{number}\n" for number in range(1, 2001)).encode()
    words = [str(pair.BIN / "psend"), queue, "--content-stdin", "-q"]
    subprocess.run(words, input=numbers, check=True, timeout=pair.DEADLINE_S)
    precv = pair.run("precv", queue, "-m", "2000", "--print-content", "--verify-sequence")
    pair.assert_codes([precv], 0)
    assert precv.stdout.encode() == numbers


@pytest.mark.parametrize("kind", ["rhea", "proton"])
def test_map_by_way_of_a_broker(queue: str, kind: str) -> None:
    """A body that is a value, and no bytes."""
    words = ["-m", "2", "--content-map", "a=1"]
    checks.assert_sent(pair.run("psend", queue, *words), 2)
    seen = peers.messages(peers.finish(peers.connect(kind, "receive", queue, 2)))
    assert [message["value"] for message in seen] == [{"a": 1}] * 2
