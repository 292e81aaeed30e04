"""What precv prints and saves: nothing is lost, nothing is out of order, nothing waits."""

from __future__ import annotations

import re
import signal
import tempfile
import uuid
from pathlib import Path
from typing import Any

import amqp
import output
import pair
import pytest
from proton import Message, symbol, ulong

NUMBER = re.compile(rb"^Properties: \{sn:(\d+), ts:\d+\}\n\n", re.M)


def numbers(printed: bytes) -> list[int]:
    """Of the messages whose headers were printed, which must be all there is."""
    assert not NUMBER.sub(b"", printed)
    return [int(number) for number in NUMBER.findall(printed)]


def print_messages(messages: list[Message], *arguments: str) -> tuple[pair.Result, bytes]:
    """What precv prints of messages that another library sends."""
    with output.opened() as printed:
        child, url = pair.listen("precv", *arguments, stdout=printed.file)
        outcomes = amqp.send_all(url, messages)
        assert len(outcomes) == len(messages) and set(outcomes) <= {amqp.ACCEPTED}
        precv = pair.finish(child)
        return precv, printed.all()


# ---- content ----

LARGE = bytes(range(256)) * 2000

BODIES: list[tuple[str, Message, bytes]] = [
    ("data", Message(body=b"some bytes", inferred=True), b"some bytes"),
    ("empty data", Message(body=b"", inferred=True), b""),
    ("any bytes", Message(body=bytes(range(256)), inferred=True), bytes(range(256))),
    ("long data", Message(body=LARGE, inferred=True), LARGE),
    ("string", Message(body="text"), b"text"),
    ("long string", Message(body="text" * 50000), b"text" * 50000),
    ("string of others", Message(body="\u00e4\u20ac"), "\u00e4\u20ac".encode()),
    ("newlines", Message(body="a\nb\n"), b"a\nb\n"),
    ("binary", Message(body=b"\0\1\2", inferred=False), b"\0\1\2"),
    ("symbol", Message(body=symbol("word")), b"word"),
    ("nothing", Message(), b""),
    ("true", Message(body=True), b"true"),
    ("number", Message(body=-5), b"-5"),
    ("unsigned", Message(body=ulong(1 << 63)), b"9223372036854775808"),
    ("floating", Message(body=2.5), b"2.5"),
    (
        "uuid",
        Message(body=uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")),
        b"00010203-0405-0607-0809-0a0b0c0d0e0f",
    ),
    ("list", Message(body=["a", 1, None]), b'["a", 1, null]'),
    ("sequence", Message(body=["a", 1, None], inferred=True), b'["a", 1, null]'),
    ("map", Message(body={"k": [1, {"x": True}]}), b'{"k"=[1, {"x"=true}]}'),
    (
        "long map",
        Message(body={"k": ["v\n"] * 20000}),
        b'{"k"=[' + b'"v\\x0a", ' * 19999 + b'"v\\x0a"]}',
    ),
    ("headers and all", Message(body=b"x", inferred=True, subject="s", durable=True), b"x"),
]


@pytest.mark.parametrize("frames", ["", "--max-frame 512"])
def test_any_body_is_printed(frames: str) -> None:
    """Each followed by a newline, in one frame or many."""
    bodies = [body for _, _, body in BODIES]
    messages = [message for _, message, _ in BODIES]
    precv, printed = print_messages(messages, "--print-content", *frames.split())
    pair.assert_codes([precv], 0)
    assert printed == b"".join(body + b"\n" for body in bodies)
    assert precv.messages["received"] == len(bodies)


def test_content_is_saved(tmp_path: Path) -> None:
    """Behind what is there, with nothing in between; standard output is not used for it."""
    saved = tmp_path / "saved"
    saved.write_bytes(b"before ")
    messages = [message for _, message, _ in BODIES]
    precv, printed = print_messages(messages, "--save-content", str(saved), "--format", "csv")
    pair.assert_codes([precv], 0)
    assert saved.read_bytes() == b"before " + b"".join(body for _, _, body in BODIES)
    assert printed.startswith(b"event,")


# ---- headers ----


def test_headers_are_printed() -> None:
    """As qpid-receive names them, an empty line, and the content behind it."""
    message = Message(
        body=b"x",
        inferred=True,
        subject="news",
        id="first",
        correlation_id=ulong(7),
        user_id=b"me",
        reply_to="answers",
        content_type="text/plain",
        ttl=60,
        priority=7,
        durable=True,
        delivery_count=1,
        group_id="g",
        group_sequence=3,
        address="queue",
        properties={"sn": ulong(1), "k\n": "v\x1b"},
    )
    precv, printed = print_messages([message], "--print-headers", "--print-content")
    pair.assert_codes([precv], 0)
    lines = printed.decode("ascii").splitlines()
    assert lines == [
        "Subject: news",
        "ReplyTo: answers",
        "MessageId: first",
        "CorrelationId: 7",
        "UserId: me",
        "TTL: 60000",
        "Priority: 7",
        "Durable: true",
        "Redelivered: true",
        "Properties: {sn:1, k\\x0a:v\\x1b}",
        "ContentType: text/plain",
        "To: queue",
        "GroupId: g",
        "GroupSequence: 3",
        "",
        "x",
    ]


def test_headers_beyond_what_a_stamp_is_looked_for_in() -> None:
    """All of a message is kept when it is printed."""
    message = Message(body=b"x", inferred=True, properties={"long": "v" * 100000, "last": "l"})
    _, printed = print_messages([message], "--print-headers", "--max-frame", "512")
    assert printed == b"Properties: {long:" + b"v" * 100000 + b", last:l}\n\n"


# ---- the report ----


@pytest.mark.parametrize("option", ["--print-content", "--print-headers"])
def test_the_report_goes_to_standard_error(option: str) -> None:
    """And can be parsed there: nothing else is in it."""
    child, url = pair.listen("precv", option, "--format", "json", "-m", "10")
    psend = pair.run("psend", url, "-m", "10", "--content-string", "abc")
    precv = pair.finish(child)
    pair.assert_codes((psend, precv), 0, 0)
    kinds = [event["event"] for event in pair.parse_lines(precv.stderr)]
    assert kinds[:2] == ["start", "ready"] and kinds[-1] == "summary"
    assert "event" not in precv.stdout
    assert precv.stdout.count("abc\n") == (10 if option == "--print-content" else 0)


def test_the_report_of_another_format_goes_there_too() -> None:
    """With the line that says where precv listens; --quiet leaves nothing."""
    for arguments, lines in ((("--report-total",), 8), (("--quiet",), 0)):
        child, url = pair.listen("precv", "--print-content", *arguments)
        pair.run("psend", url, "-m", "3", "--content-string", "abc")
        precv = pair.finish(child)
        assert precv.stdout == "abc\n" * 3
        assert len(precv.stderr.splitlines()) == lines, precv.stderr


# ---- who reads slowly ----


def start_blocked(
    printed: output.Output, psend: list[str], *precv: str
) -> tuple[pair.Child, pair.Child]:
    """A pair whose receiver's output nobody reads, until it can do nothing."""
    receiver, url = pair.listen(
        "precv", "-q", "--print-headers", "--interval", "50ms", *precv, stdout=printed.file
    )
    sender = pair.start("psend", url, "--interval", "50ms", *psend)
    interval = output.wait_until_blocked(receiver)
    assert interval["limited_by"] == "socket"
    return sender, receiver


@pytest.mark.parametrize("options", ["", "--presettled", "--max-frame 512 --content-size 2000"])
def test_nothing_is_lost_when_the_reader_is_slow(options: str) -> None:
    """The sender waits for credit, or is gone, until all is read."""
    messages = pair.count(100000)
    with output.opened(reading=False) as printed:
        sender, receiver = start_blocked(printed, ["-m", str(messages), *options.split()])
        printed.read_on()
        psend, precv = pair.finish(sender), pair.finish(receiver)
        pair.assert_delivered(psend, precv, messages)
        assert numbers(printed.all()) == list(range(1, messages + 1))
    assert precv.summary["stop_reason"] == "detached"
    assert precv.summary["rss_peak_bytes"] < 16 << 20 or pair.SANITIZED


def test_a_sender_that_has_gone_is_not_forgotten() -> None:
    """Its messages wait in the library's queue."""
    messages = 20000
    with output.opened(reading=False) as printed:
        arguments = ["-m", str(messages), "--presettled"]
        sender, receiver = start_blocked(printed, arguments, "--credit", str(messages))
        psend = pair.finish(sender)
        printed.read_on()
        precv = pair.finish(receiver)
        pair.assert_delivered(psend, precv, messages)
        assert numbers(printed.all()) == list(range(1, messages + 1))


def test_a_limit_counts_what_is_printed() -> None:
    """With -m, though more is there."""
    with output.opened(reading=False) as printed:
        sender, receiver = start_blocked(printed, ["-m", "0"], "-m", "30000")
        printed.read_on()
        precv = pair.finish(receiver)
        pair.finish(sender)
        pair.assert_codes([precv], 0)
        assert precv.messages["received"] == 30000
        assert numbers(printed.all()) == list(range(1, 30001))


def test_what_was_taken_is_printed_before_a_signal_ends_the_run() -> None:
    """Also what nobody has read yet."""
    with output.opened(reading=False) as printed:
        sender, receiver = start_blocked(printed, ["-m", "0"])
        pair.send_signal(receiver, signal.SIGINT)
        psend = pair.finish(sender)  # it does not wait for who reads
        printed.read_on()
        precv = pair.finish(receiver)
        pair.assert_codes([precv], 130)
        received = precv.messages["received"]
        assert numbers(printed.all()) == list(range(1, received + 1))
        assert received > 1000 and psend.messages["accepted"] == received


def test_a_signal_in_full_flow() -> None:
    """The same when somebody reads."""
    with output.opened() as printed:
        receiver, url = pair.listen(
            "precv", "--print-headers", "--interval", "50ms", stdout=printed.file
        )
        sender = pair.start("psend", url, "-m", "0")
        pair.wait_for(receiver, "interval", 3)
        pair.send_signal(receiver, signal.SIGINT)
        precv, psend = pair.finish(receiver), pair.finish(sender)
        pair.assert_codes([precv], 130)
        received = precv.messages["received"]
        assert numbers(printed.all()) == list(range(1, received + 1))
        assert psend.messages["accepted"] == received > 0


def test_a_second_signal_does_not_wait() -> None:
    """Whoever reads."""
    with output.opened(reading=False) as printed:
        _, receiver = start_blocked(printed, ["-m", "0"])
        pair.send_signal(receiver, signal.SIGINT)
        pair.send_signal(receiver, signal.SIGTERM)
        precv = pair.finish(receiver, timeout_s=5)
        pair.assert_codes([precv], 130)


def test_a_rate_and_a_slow_reader() -> None:
    """Both have a say in when a message may be taken."""
    with output.opened(reading=False) as printed:
        arguments = ["-m", "20000"]
        sender, receiver = start_blocked(printed, arguments, "--receive-rate", "40000")
        printed.read_on()
        pair.assert_delivered(pair.finish(sender), pair.finish(receiver), 20000)
        assert numbers(printed.all()) == list(range(1, 20001))


def test_several_senders() -> None:
    """What each has sent is in its order."""
    with output.opened(reading=False) as printed:
        receiver, url = pair.listen(
            "precv", "--print-headers", "--interval", "50ms", stdout=printed.file
        )
        senders = [pair.start("psend", url, "-m", "20000") for _ in range(3)]
        output.wait_until_blocked(receiver)
        printed.read_on()
        results = [pair.finish(child) for child in (*senders, receiver)]
        pair.assert_codes(results, 0, 0, 0, 0)
        found = numbers(printed.all())
        assert sorted(found) == sorted([*range(1, 20001)] * 3)
        assert results[-1].messages["lost"] == results[-1].messages["duplicated"] == 0


# ---- errors ----


def test_closed_output_ends_the_run() -> None:
    """As `head -1` closes it: one line, no death by SIGPIPE."""
    with output.opened(reading=False) as printed:
        printed.close_reading()
        receiver, url = pair.listen("precv", "--print-content", "--forever", stdout=printed.file)
        sender = pair.start("psend", url, "-m", "0")
        precv = pair.finish(receiver)
        pair.finish(sender)
    assert precv.code == 1
    assert "precv: standard output: Broken pipe" in precv.lines
    assert precv.only("error")["what"] == "standard output"
    assert precv.summary["stop_reason"] == "failed" and not precv.summary["complete"]
    assert precv.messages["received"] < 5000


def test_output_that_is_closed_while_it_blocks() -> None:
    """Nobody will ever read it."""
    with output.opened(reading=False) as printed:
        sender, receiver = start_blocked(printed, ["-m", "0"])
        printed.close_reading()
        precv = pair.finish(receiver)
        pair.finish(sender)
    assert precv.code == 1 and "precv: standard output: Broken pipe" in precv.lines


def test_output_that_is_closed_at_the_end() -> None:
    """The counts were right, and yet the run has failed."""
    with output.opened(reading=False) as printed:
        sender, receiver = start_blocked(printed, ["-m", "0"])
        pair.send_signal(receiver, signal.SIGINT)
        pair.finish(sender)
        printed.close_reading()
        precv = pair.finish(receiver)
    assert precv.code == 1 and "precv: standard output: Broken pipe" in precv.lines


@pytest.mark.parametrize("messages", [1, 100000])
def test_full_disk(messages: int) -> None:
    """One line, whether it shows at once or at the end."""
    child, url = pair.listen("precv", "--save-content", "/dev/full", "--quiet")
    sender = pair.start("psend", url, "-m", str(messages))
    precv = pair.finish(child)
    pair.finish(sender)
    assert precv.code == 1
    assert precv.stderr == "precv: /dev/full: No space left on device\n"


def test_a_file_that_cannot_be_opened() -> None:
    """Is said before anything else happens."""
    result = pair.run("precv", "--save-content", "/nonexistent/file", "--listen", pair.ANY_PORT)
    assert result.code == 1 and not result.events
    assert result.stderr == "precv: /nonexistent/file: No such file or directory\n"


def test_full_standard_output() -> None:
    """As for a file."""
    with open("/dev/full", "wb") as full:
        child, url = pair.listen("precv", "--print-content", "--quiet", stdout=full)
        pair.run("psend", url, "-m", "5")
        precv = pair.finish(child)
    assert precv.code == 1
    assert precv.stderr == "precv: standard output: No space left on device\n"


def test_one_that_fails_at_the_end_leaves_the_other_whole(tmp_path: Path) -> None:
    """What cannot be printed is saved."""
    saved = tmp_path / "saved"
    options = ["--quiet", "-m", "5", "--print-content", "--save-content", str(saved)]
    with open("/dev/full", "wb") as full:
        child, url = pair.listen("precv", *options, stdout=full)
        pair.run("psend", url, "-m", "5", "--content-string", "abc")
        precv = pair.finish(child)
    assert precv.code == 1
    assert precv.stderr == "precv: standard output: No space left on device\n"
    assert saved.read_bytes() == b"abc" * 5


def test_printing_into_a_file() -> None:
    """Which always takes, behind what is there."""
    with tempfile.NamedTemporaryFile("ab") as file:
        file.write(b"first\n")
        file.flush()
        child, url = pair.listen("precv", "-q", "--print-content", stdout=file)
        psend = pair.run("psend", url, "-m", "100000", "--content-string", "abcdefg")
        precv = pair.finish(child)
        pair.assert_delivered(psend, precv, 100000)
        assert Path(file.name).read_bytes() == b"first\n" + b"abcdefg\n" * 100000


def test_ignored_duplicates_are_not_printed() -> None:
    """They are not received."""
    messages = [amqp.numbered(number) for number in (1, 2, 2, 1, 3)]
    options: list[Any] = ["--print-content", "--ignore-duplicates"]
    precv, printed = print_messages(messages, *options)
    assert printed == b"x\n" * 3 and precv.messages["received"] == 3


# ---- a pipeline ----


@pytest.mark.parametrize("options", ["", "--presettled", "--send-eos 1"])
def test_lines_go_through(options: str) -> None:
    """What is put into psend comes out of precv: all lines, in their order."""
    lines = b"".join(b"line %d\n" % number for number in range(pair.count(100000)))
    with tempfile.TemporaryFile() as file, output.opened() as printed:
        file.write(lines)
        file.seek(0)
        receiver, url = pair.listen("precv", "-q", "--print-content", stdout=printed.file)
        sender = pair.start("psend", url, "--content-stdin", *options.split(), stdin=file.fileno())
        psend, precv = pair.finish(sender), pair.finish(receiver)
        pair.assert_delivered(psend, precv, pair.count(100000))
        assert printed.all() == lines
    assert precv.summary["stop_reason"] == ("eos" if "eos" in options else "detached")
