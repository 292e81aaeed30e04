"""Every exit code, and that the report is complete whatever it is."""

import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import amqp
import output
import pair
import pytest
from stranger import Stranger, refusal

LOCAL, CONNECTION, SECURITY, SHORT, VERIFY, REFUSED, USAGE = 1, 2, 3, 4, 5, 6, 64


def test_done() -> None:
    """0: nothing is missing."""
    results = pair.run_pair(["-m", "100"], ["-m", "100"])
    pair.assert_codes(results, 0, 0)
    assert [r.summary["exit_code"] for r in results] == [0, 0]
    assert all(r.summary["complete"] and not r.summary["interrupted"] for r in results)


# ---- 1: local ----


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("option", ["--output", "--hdr"])
def test_output_in_missing_directory(program: str, option: str, tmp_path: Path) -> None:
    """Refused before anything else happens."""
    file = tmp_path / "missing" / "file"
    result = pair.run(program, "-l", pair.ANY_PORT, option, str(file), events=False)
    assert result.code == LOCAL and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and str(file) in result.stderr
    assert result.seconds < 2


def test_ready_file_in_missing_directory(tmp_path: Path) -> None:
    """Whoever waits for it would wait in vain."""
    file = tmp_path / "missing" / "file"
    result = pair.run("precv", "-l", pair.ANY_PORT, "--ready-file", str(file))
    assert result.code == LOCAL and str(file) in result.stderr


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("format_name", ["text", "csv", "json"])
def test_stdout_is_full(program: str, format_name: str) -> None:
    """The run goes on, and the other reports are whole; it is said once."""
    with open("/dev/full", "wb") as full:
        options = {"stdout": full}
        receiver, url = pair.listen(
            "precv", "-f", format_name, **(options if program == "precv" else {})
        )
        psend = pair.run(
            "psend", url, "-m", "5000", "-f", format_name, **(options if program == "psend" else {})
        )
        precv = pair.finish(receiver)
    codes = {"psend": 0, "precv": 0, program: LOCAL}
    pair.assert_codes((psend, precv), codes["psend"], codes["precv"])
    assert psend.messages["accepted"] == precv.messages["received"] == 5000
    failed = psend if program == "psend" else precv
    assert len(failed.lines) == 1 and "standard output" in failed.lines[0]


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("option", ["--output", "--hdr"])
def test_output_is_full(program: str, option: str) -> None:
    """The same for a file."""
    arguments = {name: [] for name in pair.PROGRAMS} | {program: [option, "/dev/full"]}
    psend, precv = pair.run_pair(["-m", "5000", *arguments["psend"]], arguments["precv"])
    codes = {"psend": 0, "precv": 0, program: LOCAL}
    pair.assert_codes((psend, precv), codes["psend"], codes["precv"])
    assert psend.messages["accepted"] == precv.messages["received"] == 5000
    failed = psend if program == "psend" else precv
    assert len(failed.lines) == 1 and "/dev/full" in failed.lines[0]
    assert "limited by" in failed.stdout


# ---- 2: connection ----


def closed_port() -> int:
    """One on which nobody listens."""
    with socket.create_server((pair.HOST, 0)) as server:
        return int(server.getsockname()[1])


def assert_failed(result: pair.Result, within_s: float) -> None:
    """Code 2, one line, an error event, and a summary. (For a program that listens, the end of its
    only peer may be the reason.)"""
    assert result.code == CONNECTION, result
    assert len(result.lines) == 1, result.lines
    assert result.seconds < within_s
    assert result.only("error")["exit_code"] == CONNECTION
    summary = result.summary
    assert summary["exit_code"] == CONNECTION
    assert summary["stop_reason"] in ("failed", "detached")
    assert not summary["complete"] and not summary["interrupted"]


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_port_is_closed(program: str) -> None:
    """Tried for about a second, then said with the peer's name and the reason."""
    port = closed_port()
    result = pair.run(program, f"{pair.HOST}:{port}")
    assert_failed(result, 2.5)
    assert result.seconds >= 0.9
    assert f"{pair.HOST}:{port}" in result.stderr and "refused" in result.stderr
    assert result.summary["messages_per_s"] is None and result.summary["limited_by"] is None


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_host_is_unknown(program: str) -> None:
    """A name that nobody can have, for which no server is asked."""
    result = pair.run(program, "no..host")
    assert_failed(result, 2.5)
    assert "no..host" in result.stderr


@pytest.fixture(name="stranger")
def _stranger(request: pytest.FixtureRequest) -> Iterator[Stranger]:
    """Its parameter is the answer."""
    with Stranger(request.param) as server:
        yield server


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("stranger", [b"HTTP/1.1 400 Bad Request\r\n\r\n"], indirect=True)
def test_peer_is_not_amqp(program: str, stranger: Stranger) -> None:
    """Said at once, or within the second in which a peer may come up."""
    assert_failed(pair.run(program, stranger.url), 2.5)


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("stranger", [b""], indirect=True)
def test_peer_never_answers(program: str, stranger: Stranger) -> None:
    """--connect-timeout ends it."""
    result = pair.run(program, stranger.url, "--connect-timeout", "300ms")
    assert_failed(result, 1.5)
    assert result.seconds >= 0.3


def test_stranger_connects() -> None:
    """A client that does not speak AMQP is reported, and is nothing to the run."""
    receiver, url = pair.listen("precv")
    host, port = url.split("/")[0].split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert pair.wait_for(receiver, "error")["exit_code"] == 0
        psend = pair.run("psend", url, "-m", "1000")
    precv = pair.finish(receiver)
    pair.assert_codes((psend, precv), 0, 0)
    assert precv.messages["received"] == 1000


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_port_in_use(program: str) -> None:
    """Two cannot listen on one."""
    with socket.create_server((pair.HOST, 0)) as server:
        where = f"{pair.HOST}:{server.getsockname()[1]}"
        result = pair.run(program, "--listen", where)
    assert_failed(result, 2)
    assert where in result.stderr


@pytest.mark.parametrize("killed,left", [("psend", "precv"), ("precv", "psend")])
def test_peer_is_killed(killed: str, left: str) -> None:
    """Code 2, and the summary has all until then."""
    children = pair.start_endless()
    pair.send_signal(children[killed], signal.SIGKILL)
    result = pair.finish(children[left], 5)
    assert_failed(result, pair.DEADLINE_S)
    assert result.summary["messages_per_s"] > 0
    name = "sent" if left == "psend" else "received"
    assert sum(i["messages"][name] for i in result.intervals) == result.messages[name] > 0
    if left == "psend":
        pair.assert_accounts(result.summary)


def test_killed_sender_of_a_receiver_that_goes_on() -> None:
    """--forever: it is said, but the run is not spoilt by it."""
    children = pair.start_endless(precv=["--forever"])
    pair.send_signal(children["psend"], signal.SIGKILL)
    pair.wait_for(children["precv"], "error")
    pair.send_signal(children["precv"], signal.SIGTERM)
    assert pair.finish(children["precv"]).code == 128 + signal.SIGTERM


# ---- 4: short ----


def assert_short(result: pair.Result, reason: str) -> None:
    """Code 4, and not complete."""
    assert result.code == SHORT, result
    assert result.summary["stop_reason"] == reason
    assert not result.summary["complete"] and result.summary["exit_code"] == SHORT


def test_sender_leaves_early() -> None:
    """precv wanted more."""
    psend, precv = pair.run_pair(["-m", "500"], ["-m", "501"])
    assert psend.code == 0
    assert_short(precv, "detached")
    assert precv.messages["received"] == 500


def test_receiver_leaves_early() -> None:
    """psend had more."""
    psend, precv = pair.run_pair(["-m", "501"], ["-m", "500"])
    assert precv.code == 0
    assert_short(psend, "detached")
    assert psend.lines == ["psend: link detached by the peer before the end"]


def test_timeout_is_short() -> None:
    """Both, when messages were asked for."""
    start_at = str(time.time_ns() + 60 * 10**9)
    receiver, url = pair.listen("precv", "-m", "10", "--timeout", "900ms", "--start-at", start_at)
    psend = pair.run("psend", url, "-m", "10", "--timeout", "300ms")
    assert_short(psend, "timeout")
    assert psend.messages["sent"] == 0
    assert_short(pair.finish(receiver), "detached")
    precv = pair.run("precv", "-l", pair.ANY_PORT, "-m", "10", "--timeout", "100ms")
    assert_short(precv, "timeout")


def test_duration_is_short() -> None:
    """It ends before the messages do."""
    psend, _ = pair.run_pair(["-m", "1g", "-d", "200ms"])
    assert_short(psend, "duration")
    pair.assert_accounts(psend.summary)


# ---- 5: verification ----

KINDS = ("received", "lost", "duplicated", "reordered", "no_sequence")


def receive_numbers(numbers: list[int | None], *options: str) -> pair.Result:
    """Numbered messages from python; None has no number."""
    receiver, url = pair.listen("precv", *options)
    plain = amqp.Message(body=b"x", inferred=True)
    amqp.send(url, (plain if n is None else amqp.numbered(n) for n in numbers))
    return pair.finish(receiver)


@pytest.mark.parametrize(
    "numbers,counts",
    [
        ([1, 2, 3], (3, 0, 0, 0, 0)),
        ([1, 2, 5], (3, 2, 0, 0, 0)),
        ([3], (1, 2, 0, 0, 0)),
        ([1, 2, 2, 3], (4, 0, 1, 0, 0)),
        ([1, 1, 1], (3, 0, 2, 0, 0)),
        ([1, 3, 2, 4], (4, 0, 0, 1, 0)),
        ([1, 5, 3, 3, 2, 7], (6, 2, 1, 2, 0)),
        ([0, 1, 2], (3, 0, 1, 0, 0)),
        ([1, None, 2], (3, 0, 0, 0, 1)),
    ],
)
def test_verification(numbers: list[int | None], counts: tuple[int, ...]) -> None:
    """Each kind is counted exactly, and is an error only if asked for."""
    strict = receive_numbers(numbers, "--verify-sequence")
    assert tuple(strict.messages[kind] for kind in KINDS) == counts
    assert strict.code == (VERIFY if any(counts[1:]) else 0)
    assert strict.summary["complete"] == (not any(counts[1:]))
    lax = receive_numbers(numbers)
    assert tuple(lax.messages[kind] for kind in KINDS) == counts
    assert lax.code == 0


def test_loss_at_the_beginning() -> None:
    """psend begins later than precv expects."""
    psend, precv = pair.run_pair(["-m", "100", "--first-sequence", "11"], ["--verify-sequence"])
    pair.assert_codes((psend, precv), 0, VERIFY)
    assert (precv.messages["received"], precv.messages["lost"]) == (100, 10)


def test_both_begin_at_the_same_number() -> None:
    """--first-sequence of precv is what it expects."""
    options = ["--first-sequence", "1000000"]
    psend, precv = pair.run_pair(["-m", "100", *options], ["--verify-sequence", *options])
    pair.assert_codes((psend, precv), 0, 0)


def test_ignore_duplicates() -> None:
    """They are counted, but neither as received nor as an error; other errors stay."""
    options = ["--verify-sequence", "--ignore-duplicates"]
    precv = receive_numbers([1, 2, 2, 3, 1, 4], *options)
    assert tuple(precv.messages[kind] for kind in KINDS) == (4, 0, 2, 0, 0)
    assert precv.code == 0
    assert receive_numbers([1, 1, 3], *options).code == VERIFY


def test_ignored_duplicates_do_not_count_towards_messages() -> None:
    """-m is of messages received."""
    precv = receive_numbers([1, 1, 2, 2, 3], "--ignore-duplicates", "-m", "3")
    assert precv.code == 0 and precv.messages["received"] == 3


# ---- 6: refused ----


@pytest.mark.parametrize("outcome", ["rejected", "released", "modified"])
def test_refused(outcome: str) -> None:
    """By the receiver, all of them."""
    psend, precv = pair.run_pair(["-m", "1234"], ["--outcome", outcome])
    pair.assert_codes((psend, precv), REFUSED, 0)
    kinds = ("accepted", "rejected", "released", "modified", "no_outcome", "unsettled")
    expected = {kind: 1234 if kind == outcome else 0 for kind in kinds}
    assert {kind: psend.messages[kind] for kind in kinds} == expected
    assert not psend.summary["complete"]


@pytest.mark.parametrize("outcome", ["rejected", "released", "modified"])
def test_presettled_cannot_be_refused(outcome: str) -> None:
    """There is no outcome to speak of."""
    psend, precv = pair.run_pair(["-m", "1234", "--presettled"], ["--outcome", outcome])
    pair.assert_codes((psend, precv), 0, 0)
    assert psend.messages[outcome] is None


# ---- 64 and 128+n ----

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
NOT_IGNORED = ["env", "--default-signal=HUP"]  # whoever runs the tests may use nohup


def test_usage() -> None:
    """More of this in test_options.py."""
    pair.assert_codes([pair.run("psend", "-m", "x"), pair.run("precv", "-m", "x")], USAGE, USAGE)


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("number", SIGNALS)
def test_signal(program: str, number: signal.Signals) -> None:
    """Ends the run in order, with everything flushed and reported."""
    children = pair.start_endless(wrapper=NOT_IGNORED)
    pair.send_signal(children[program], number)
    psend, precv = pair.finish(children["psend"], 5), pair.finish(children["precv"], 5)
    result = psend if program == "psend" else precv
    assert result.code == result.summary["exit_code"] == 128 + number
    assert result.summary["interrupted"] and result.summary["stop_reason"] == "signal"
    assert not result.lines
    if program == "psend":
        assert precv.code == 0
        assert psend.messages["unsettled"] == 0
        assert psend.messages["accepted"] == psend.messages["sent"] == precv.messages["received"]
    else:
        assert psend.summary["stop_reason"] == "detached" and not psend.summary["interrupted"]
        assert psend.messages["accepted"] >= precv.messages["received"]
    pair.assert_accounts(psend.summary)
    pair.assert_time_is_whole(result.summary)


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("number", SIGNALS)
def test_signal_when_nothing_happens(program: str, number: signal.Signals) -> None:
    """While it waits for a peer."""
    child, _ = pair.listen(program, wrapper=NOT_IGNORED)
    pair.send_signal(child, number)
    result = pair.finish(child, 2)
    assert result.code == 128 + number
    assert result.summary["interrupted"] and result.summary["messages_per_s"] is None


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_hangup_under_nohup(program: str) -> None:
    """SIGHUP that is ignored from the start stays ignored."""
    child, _ = pair.listen(program, wrapper=["env", "--ignore-signal=HUP"])
    pair.send_signal(child, signal.SIGHUP)
    with pytest.raises(AssertionError):
        pair.finish(child, 0.3)
    pair.send_signal(child, signal.SIGINT)
    assert pair.finish(child, 2).code == 128 + signal.SIGINT


UNAUTHORIZED = refusal("amqp:unauthorized-access", "who are you")
FORBIDDEN = refusal("amqp:not-allowed", "not today")


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize(
    "stranger,code,words",
    [(UNAUTHORIZED, SECURITY, "who are you"), (FORBIDDEN, CONNECTION, "not today")],
    indirect=["stranger"],
    ids=["unauthorized", "forbidden"],
)
def test_refused_connection(program: str, stranger: Stranger, code: int, words: str) -> None:
    """3 if it is for who we are, 2 for any other reason; the peer's words are repeated."""
    result = pair.run(program, stranger.url, "--sasl-mechs", "none")
    assert result.code == code and result.summary["stop_reason"] == "failed"
    assert len(result.stderr.splitlines()) == 1 and words in result.stderr


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("stranger", [b""], indirect=True)
def test_signal_when_the_peer_never_answers(program: str, stranger: Stranger) -> None:
    """No need to wait for the connect timeout."""
    child = pair.start(program, stranger.url)
    pair.wait_for(child, "start")
    pair.send_signal(child, signal.SIGINT)
    result = pair.finish(child, 2)
    assert result.code == 128 + signal.SIGINT and result.summary["interrupted"]


@pytest.mark.parametrize("stopped,program", [("precv", "psend"), ("psend", "precv")])
def test_second_signal(program: str, stopped: str) -> None:
    """The peer is stopped: flushing and closing cannot finish, and a second signal ends that."""
    children = pair.start_endless()
    pair.send_signal(children[stopped], signal.SIGSTOP)
    pair.wait_for_more(children[program], "interval")  # what was on its way has arrived
    pair.send_signal(children[program], signal.SIGINT)
    with pytest.raises(AssertionError):
        pair.finish(children[program], 0.5)
    pair.send_signal(children[program], signal.SIGINT)
    asked_s = time.monotonic()
    result = pair.finish(children[program])
    assert time.monotonic() - asked_s < 4
    assert result.code == 128 + signal.SIGINT and result.summary["interrupted"]
    assert result.summary["messages_per_s"] > 0


@pytest.mark.parametrize("stopped,program", [("precv", "psend"), ("psend", "precv")])
def test_close_timeout(program: str, stopped: str) -> None:
    """The same peer, and a single signal: patience has an end."""
    children = pair.start_endless(["--close-timeout", "300ms"], ["--close-timeout", "300ms"])
    pair.send_signal(children[stopped], signal.SIGSTOP)
    pair.wait_for_more(children[program], "interval")  # what was on its way has arrived
    pair.send_signal(children[program], signal.SIGINT)
    asked_s = time.monotonic()
    result = pair.finish(children[program])
    assert 0.3 <= time.monotonic() - asked_s < 4
    assert result.code == 128 + signal.SIGINT and result.summary["interrupted"]
    if program == "psend":
        assert result.messages["unsettled"] > 0
        pair.assert_accounts(result.summary)


WRITE = "1"  # the system call's number


def wait_until_taken(child: pair.Child) -> None:
    """The signal that was sent."""
    status = Path(f"/proc/{child.pid}/status")
    deadline_s = time.monotonic() + pair.DEADLINE_S
    while int(re.findall(r"^ShdPnd:\s*(\w+)$", status.read_text("ascii"), re.M)[0], 16):
        assert time.monotonic() < deadline_s, "the signal is pending"
        time.sleep(0.001)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_ends_who_is_not_read(ending: signal.Signals) -> None:
    """The thread that takes signals is not that which writes."""
    with output.opened(reading=False) as unread:
        receiver, url = pair.listen("precv", "--report-every", "1", stdout=unread.file)
        sender = pair.start("psend", url, "-m", "0")
        main_thread = Path(f"/proc/{receiver.pid}/task/{receiver.pid}/syscall")
        deadline_s = time.monotonic() + pair.DEADLINE_S
        while main_thread.read_text(encoding="ascii").split()[0] != WRITE:
            assert time.monotonic() < deadline_s, "it is not blocked"
            time.sleep(0.01)
        pair.send_signal(receiver, ending)
        wait_until_taken(receiver)  # those that wait are one
        pair.send_signal(receiver, ending)
        receiver.process.wait(pair.DEADLINE_S)
        assert receiver.process.returncode == 128 + ending
    pair.send_signal(sender, signal.SIGINT)
    pair.finish(sender)
