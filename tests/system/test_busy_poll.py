"""--busy-poll: it spins, says so, and does all that a program does that sleeps."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import certificates
import faults
import pair
import pytest
from measuring import measured

SPINS = ["--busy-poll"]
SETTLE = pytest.mark.parametrize("settle", [[], ["--presettled"]], ids=["unsettled", "presettled"])


def spun_s(result: pair.Result) -> float:
    """What the summary says; there is a line of it as well. Who never waits finds news at once."""
    found = result.summary["busy_poll"]
    assert isinstance(found["polls"], int) and found["polls"] >= (found["spun_s"] > 0)
    assert f"busy-poll: {found['polls']} polls, spinning " in result.stdout
    return float(found["spun_s"])


@SETTLE
def test_everything_arrives(settle: list[str]) -> None:
    """With as many looks as it takes."""
    messages = pair.count(20000)
    psend, precv = pair.run_pair(["-m", str(messages), *SPINS, *settle], SPINS)
    pair.assert_delivered(psend, precv, messages)
    assert spun_s(psend) >= 0 and spun_s(precv) >= 0
    for period in (psend.summary, precv.summary):
        pair.assert_time_is_whole(period)


def test_it_is_not_there_unless_asked_for() -> None:
    """Null, and no line."""
    psend, precv = pair.run_pair(["-m", "10"])
    for result in (psend, precv):
        assert result.summary["busy_poll"] is None and "busy-poll" not in result.stdout


@pytest.mark.measures
def test_waits_have_their_causes() -> None:
    """They are booked as if they had been slept through."""
    words = ["--send-rate", "100", "-d", "1s", "--interval", "200ms", *SPINS]
    psend, precv = pair.run_pair(words, ["--interval", "200ms", *SPINS])
    pair.assert_codes([psend, precv], 0, 0)
    for result, cause in ((psend, "pacing"), (precv, "idle")):
        summary = result.summary
        with measured():
            assert summary["time_s"][cause] > 0.6 * summary["wall_s"], summary["time_s"]
            assert spun_s(result) > 0.6 * summary["wall_s"]
            assert summary["limited_by"] == cause
            assert len(result.intervals) >= 4  # ticks come through
        assert sum(i["busy_poll"]["polls"] for i in result.intervals) > 0


def test_it_takes_a_processor() -> None:
    """Which a program that sleeps does not."""
    receiver, _ = pair.listen("precv", *SPINS)
    before = faults.cpu_s(receiver.pid)
    deadline_s = time.monotonic() + pair.DEADLINE_S
    while faults.cpu_s(receiver.pid) - before < 0.2:  # the machine may have other work
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(number: signal.Signals) -> None:
    """End it in order."""
    children = pair.start_endless(SPINS, SPINS)
    pair.send_signal(children["psend"], number)
    psend = pair.finish(children["psend"])
    assert psend.code == 128 + number and psend.messages["sent"] > 0
    pair.finish(children["precv"])


def test_a_silent_spell_is_survived() -> None:
    """Keep-alives are sent in time by both."""
    idle = ["--idle-timeout", "200ms", *SPINS]
    psend, precv = pair.run_pair(["-m", "3", "--send-rate", "2", *idle], idle)
    pair.assert_delivered(psend, precv, 3)


def test_a_dead_peer_is_noticed() -> None:
    """When it has been silent for long."""
    receiver, url = pair.listen("precv", "--idle-timeout", "300ms", *SPINS)
    sender = pair.start("psend", url, "--send-rate", "5", "-m", "0", *SPINS)
    pair.wait_for(sender, "ready")
    pair.send_signal(sender, signal.SIGSTOP)
    precv = pair.finish(receiver)
    assert precv.code == 2 and len(precv.lines) == 1


def test_many_peers() -> None:
    """More than are watched one by one."""
    receiver, url = pair.listen("precv", "--forever", "-m", "3000", *SPINS)
    senders = [pair.start("psend", url, "-m", "500", *SPINS) for _ in range(6)]
    pair.assert_codes([pair.finish(sender) for sender in senders], *[0] * 6)
    assert pair.finish(receiver).messages["received"] == 3000


def test_standard_input() -> None:
    """Is looked at, too."""
    words = ["-c", "for i in 1 2 3; do echo $i; sleep 0.1; done"]
    lines = pair.subprocess.Popen(["/bin/sh", *words], stdout=pair.subprocess.PIPE)
    receiver, url = pair.listen("precv", *SPINS)
    assert lines.stdout
    sender = pair.start("psend", url, "--content-stdin", *SPINS, stdin=lines.stdout.fileno())
    psend, precv = pair.finish(sender), pair.finish(receiver)
    lines.stdout.close()
    lines.wait(pair.DEADLINE_S)
    pair.assert_delivered(psend, precv, 3)


def test_tls(tmp_path: Path) -> None:
    """Of which there is something to be written that is no message."""
    authority = certificates.Authority(tmp_path, "authority")
    own = authority.issue("localhost", certificates.ADDRESSES)
    receiver, url = pair.listen("precv", "--reply", *own.options, *SPINS)
    words = ["--round-trip", "-m", "500", "--tls-ca", authority.file, *SPINS]
    psend = pair.run("psend", f"amqps://{url}", *words)
    pair.assert_delivered(psend, pair.finish(receiver), 500)
    assert psend.messages["answered"] == 500


@SETTLE
def test_round_trips(settle: list[str]) -> None:
    """What it is for."""
    words = ["--round-trip", "--max-unsettled", "1", "-m", "300", *SPINS, *settle]
    psend, precv = pair.run_pair(words, ["--reply", *SPINS])
    pair.assert_delivered(psend, precv, 300)
    assert psend.messages["answered"] == 300
    assert spun_s(psend) > 0 and spun_s(precv) > 0
