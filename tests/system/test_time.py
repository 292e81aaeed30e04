"""Where the time went: each cause is brought about, and must be found and named.

Delays are the peer's, and long, so that what the system calls of this machine cost does not
matter: the share of the cause is then a ratio within one run.
"""

import os
import signal

import pair
import pytest
import quiet
from measuring import measured

pytestmark = pytest.mark.measures

SHARE = 0.6
WAITS = ("credit", "session", "socket", "settlement", "pacing", "idle")
SMALL_WINDOW = ["--max-frame", "512", "--session-window", "4Ki"]


def share(summary: pair.Json, cause: str) -> float:
    """Of the wall time."""
    pair.assert_time_is_whole(summary)
    return summary["time_s"][cause] / summary["wall_s"]


def assert_limited(result: pair.Result, cause: str) -> None:
    """Most of the time went there, and it is named, in text too."""
    summary = result.summary
    with measured():
        assert share(summary, cause) >= SHARE, summary["time_s"]
        assert summary["limited_by"] == cause
        assert result.stdout.rstrip().splitlines()[-1].endswith(f"limited by {cause}")


def assert_waits_for(result: pair.Result, cause: str) -> None:
    """The largest of the waits, whatever the work took."""
    time_s = result.summary["time_s"]
    with measured():
        assert time_s[cause] > 0 and max(WAITS, key=time_s.__getitem__) == cause, time_s


def test_credit() -> None:
    """A slow consumer that grants little."""
    psend, precv = pair.run_pair(["-m", "5000"], ["--work", "200us", "--credit", "100"])
    assert_limited(psend, "credit")
    assert_limited(precv, "pacing")
    with measured():
        assert precv.summary["credit"]["lowest"] == 0
    stalled_s, time_s = psend.summary["credit"]["stalled_s"], psend.summary["time_s"]
    with measured():
        assert 0.9 * time_s["credit"] < stalled_s < 1.1 * (time_s["credit"] + time_s["busy"])


def test_settlement() -> None:
    """One message at a time, and a slow consumer."""
    psend, _ = pair.run_pair(["-m", "4000", "--max-unsettled", "1"], ["--work", "200us"])
    assert_limited(psend, "settlement")
    assert psend.summary["credit"]["stalls"] == 0


def test_session() -> None:
    """All the credit there is, and a session window of eight frames."""
    options = [*SMALL_WINDOW, "--credit", "1m", "--work", "50us"]
    psend, _ = pair.run_pair(["-m", "16000"], options)
    assert_limited(psend, "session")
    assert psend.summary["credit"]["stalls"] == 0


@pytest.mark.parametrize("credit", ["100", "1m"])
def test_session_without_work(credit: str) -> None:
    """The window is what is waited for, also when it is opened at once."""
    psend, _ = pair.run_pair(["-m", "50000"], [*SMALL_WINDOW, "--credit", credit])
    assert_waits_for(psend, "session")


def test_settlement_without_work() -> None:
    """The round trip of each message."""
    psend, _ = pair.run_pair(["-m", "20000", "--max-unsettled", "1"])
    assert_waits_for(psend, "settlement")


def test_socket() -> None:
    """A peer that reads nothing: kernel buffers fill up, credit is left."""
    receiver, url = pair.listen("precv", "--credit", "1m")
    sender = pair.start("psend", url, "-d", "2s", "--presettled", "--interval", "100ms")
    pair.wait_for(sender, "interval")
    pair.send_signal(receiver, signal.SIGSTOP)
    last = pair.wait_for(sender, "interval", 19)
    pair.send_signal(receiver, signal.SIGCONT)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_codes((psend, precv), 0, 0)
    assert_limited(psend, "socket")
    with measured():
        assert last["messages"]["sent"] == 0 and last["limited_by"] == "socket"
        assert last["time_s"]["socket"] > 0.09
        assert psend.messages["sent"] < 1000000
    assert precv.messages["received"] == psend.messages["sent"]


def test_idle() -> None:
    """Nothing more to send, and time left."""
    psend, precv = pair.run_pair(["-m", "1000", "-d", "1s"])
    assert_limited(psend, "idle")
    assert precv.code == 0
    with measured():
        assert precv.summary["wall_s"] < 0.3  # it knows nothing of the rest


def test_pacing_before_the_start() -> None:
    """A consumer that waits for its own rate, not for messages."""
    _, precv = pair.run_pair(["-m", "1000"], ["--receive-rate", "1000"])
    assert_limited(precv, "pacing")


def test_receiver_waits_for_messages() -> None:
    """Of a sender that is slow because it waits for each settlement."""
    _, precv = pair.run_pair(
        ["-m", "2000", "--max-unsettled", "1"], ["--drain-batch", "1", "--sndbuf", "4Ki"]
    )
    assert_waits_for(precv, "idle")


@pytest.mark.skipif(os.cpu_count() == 1, reason="needs a processor for each")
@pytest.mark.parametrize("settle,sender_works", [([], True), (["--presettled"], False)])
def test_unhindered(settle: list[str], sender_works: bool) -> None:
    """Both work, each on its own processor; who does not need to settle works less to send."""
    psend, precv = quiet.run_pair(["-m", "1m", "--cpu", "0", *settle], ["--cpu", "1"])
    for worker in [psend, precv] if sender_works else [precv]:
        with measured():
            assert share(worker.summary, "busy") >= SHARE
    with measured():
        assert precv.summary["limited_by"] == "busy"
        assert precv.stdout.splitlines()[-1].endswith("limited by receiver cpu")
    if sender_works:
        with measured():
            assert psend.stdout.splitlines()[-1].endswith("limited by sender cpu")


def test_total_is_the_sum_of_intervals() -> None:
    """A cause that holds for part of the run shows in its intervals and in the total."""
    start_ns = pair.time.time_ns() + 600_000_000
    receiver, url = pair.listen("precv", "--start-at", str(start_ns), "--work", "20us")
    psend = pair.run("psend", url, "-m", "20000", "--interval", "100ms", "--max-unsettled", "1")
    pair.finish(receiver)
    with measured():
        assert psend.intervals[1]["limited_by"] == "credit"
        assert psend.intervals[-2]["limited_by"] in ("settlement", "busy")
    for cause, total_s in psend.summary["time_s"].items():
        parts_s = sum(i["time_s"][cause] for i in psend.intervals)
        assert parts_s == pytest.approx(total_s, abs=1e-7)
