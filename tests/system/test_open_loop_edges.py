"""psend --send-rate at its edges: short runs, last batches, peers that take nothing, rates that no
machine can count."""

from __future__ import annotations

import time

import pair
import pytest
import relay
import wire
from measuring import measured

NS_PER_S = 1_000_000_000
QUIET = ("--interval", "0")


def pacing_of(psend: pair.Result) -> pair.Json:
    """The summary's."""
    found = psend.summary["pacing"]
    assert isinstance(found, dict)
    return found


# ---- what cannot be counted ----


@pytest.mark.parametrize(
    "words,named",
    [
        (["--send-rate", "1000000001"], "--send-rate"),
        (["--send-rate", "9000000000000000000"], "--send-rate"),
        (["--send-rate", "10000001", "--poisson"], "--poisson"),
        (["--send-rate", "1000000000", "--poisson=1", "--batch", "99"], "--poisson"),
    ],
)
def test_rates_that_are_refused(words: list[str], named: str) -> None:
    """A schedule that takes longer to count than to come would never be done with."""
    psend = pair.run("psend", "127.0.0.1:1/test", *words, events=False)
    assert psend.code == 64 and len(psend.lines) == 1 and named in psend.lines[0]


@pytest.mark.measures
@pytest.mark.parametrize("words", [["--batch", "1000000000"], ["--poisson=1", "--batch", "100"]])
def test_the_highest_rate_ends_on_time(words: list[str]) -> None:
    """And is missed; a part of a batch is not the batch."""
    options = ["--send-rate", "1000000000", *words, "-d", "300ms", *QUIET]
    psend, precv = pair.run_pair(options)
    pair.assert_delivered(psend, precv, psend.messages["sent"])
    assert pacing_of(psend)["rate_met"] is False
    with measured():
        assert psend.summary["wall_s"] == pytest.approx(0.3, abs=0.2)


def test_one_batch_that_is_not_sent_in_time() -> None:
    """All of it is due at the start."""
    psend, _ = pair.run_pair(["--send-rate", "1", "--batch", "1g", "-d", "200ms", *QUIET])
    assert pacing_of(psend)["due"] == 1_000_000_000
    assert pacing_of(psend)["rate_met"] is False


# ---- the last batch ----


@pytest.mark.parametrize("catch_up", ["full", "none"])
def test_no_more_is_due_than_is_asked_for(catch_up: str) -> None:
    """Of the last batch, what -m leaves of it; it has its share of the time."""
    words = ["--send-rate", "1000", "--batch", "40", "-m", "100", "--catch-up", catch_up, *QUIET]
    psend, precv = pair.run_pair(words)
    pair.assert_delivered(psend, precv, 100)
    skipped = pacing_of(psend)["skipped"]
    assert pacing_of(psend)["due"] == 100 + skipped
    if not skipped:
        assert pacing_of(psend)["achieved_per_s"] == pytest.approx(1000, rel=0.15)
    if not pacing_of(psend)["late"]:
        assert pacing_of(psend)["achieved_per_s"] == pytest.approx(1000, rel=1e-6)


# ---- a peer that takes nothing ----


def test_blocked_from_the_start() -> None:
    """The run ends on time although nothing ever happens in it; what was due and not sent is
    missed, were it one message."""
    sender, peer = wire.meet("psend", "accept", "--send-rate", "1", "-d", "400ms", *QUIET)
    peer.start()
    began_s = time.monotonic()
    peer.answer_close()
    assert time.monotonic() - began_s < 5
    psend = pair.finish(sender)
    assert 0.4 <= psend.summary["wall_s"] < 4
    assert pacing_of(psend)["due"] == 1 and psend.messages["sent"] == 0
    assert pacing_of(psend)["rate_met"] is False
    assert pacing_of(psend)["missed_for"] == psend.summary["limited_by"] == "credit"
    assert psend.summary["send_delay_ns"]["count"] == 0
    assert psend.summary["send_delay_ns"]["max"] is None


def test_a_duration_without_traffic_ends_on_time() -> None:
    """In a closed loop, too."""
    sender, peer = wire.meet("psend", "accept", "-d", "300ms", *QUIET)
    peer.start()
    began_s = time.monotonic()
    peer.answer_close()
    assert time.monotonic() - began_s < 5
    psend = pair.finish(sender)
    assert 0.3 <= psend.summary["wall_s"] < 4
    assert psend.summary["stop_reason"] == "duration"


# ---- when it starts ----


def test_the_first_message_is_due_at_the_start() -> None:
    """Who was ready by then has not missed it, if waking up has taken some time."""
    for _ in range(3):
        receiver, url = pair.listen("precv")
        start_ns = time.time_ns() + NS_PER_S
        options = ["--send-rate", "0.5", "-d", "300ms", "--start-at", str(start_ns), *QUIET]
        sender = pair.start("psend", url, *options)
        early = pair.wait_for(sender, "ready")["time_ns"] < start_ns
        psend, precv = pair.finish(sender), pair.finish(receiver)
        if early:
            break
    pair.assert_delivered(psend, precv, 1)
    assert pacing_of(psend)["due"] == 1 and pacing_of(psend)["rate_met"] is True
    assert 0.3 <= psend.summary["wall_s"] < 4


def test_a_start_that_is_long_past() -> None:
    """However long the gaps: nothing is due before the next of them."""
    options = ["--send-rate", "0.001", "--batch", "1g", "--start-at", "1", "-d", "100ms", *QUIET]
    psend, precv = pair.run_pair(options)
    pair.assert_delivered(psend, precv, 0)
    assert pacing_of(psend)["due"] == 0 and pacing_of(psend)["rate_met"] is None
    assert "rate -" in psend.stdout or "achieved -" in psend.stdout


# ---- messages that are cut off ----


def test_a_message_that_is_cut_off() -> None:
    """It is sent once, and has one delay; the place that it had is given up."""
    receiver, url = pair.listen("precv", "--forever", "--max-frame", "512", *QUIET,
                                "--session-window", "1Ki", "--ignore-duplicates")
    between = relay.start(url)
    words = ["--send-rate", "100", "-m", "40", "--content-size", "200k", "--reconnect"]
    sender = pair.start("psend", between.url, *words, "--interval", "50ms")
    for number in (4, 8, 12):
        pair.wait_for(sender, "interval", number)
        between.cut()
    psend = pair.finish(sender)
    pair.send_signal(receiver, pair.signal.SIGINT)
    precv = pair.finish(receiver)
    assert psend.code == 0, psend.stderr
    assert psend.messages["sent"] == precv.messages["received"] == 40
    assert psend.summary["send_delay_ns"]["count"] == 40
    assert pacing_of(psend)["due"] == 40 + pacing_of(psend)["skipped"]
    assert pacing_of(psend)["skipped"] <= 3
    for name in ("due", "late", "skipped"):
        assert sum(i["pacing"][name] for i in psend.intervals) == pacing_of(psend)[name]
