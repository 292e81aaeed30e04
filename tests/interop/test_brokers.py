"""The pair, clients of other makes, and ppair, by way of real brokers."""

from __future__ import annotations

from pathlib import Path

import brokers
import checks
import launch
import pair
import peers
import pytest
from brokers import Broker
from ppair import results

MESSAGES = 300
SETTLE = pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])
# uamqp insists on what RabbitMQ leaves out: the target of an attached receiver, the delivery-count
# in the first flow to a sender
CLIENTS = pytest.mark.parametrize(
    "broker,kind",
    [
        (name, kind)
        for name in brokers.NAMES
        for kind in peers.KINDS
        if (name, kind) != ("rabbitmq", "uamqp")
    ],
    indirect=["broker"],
)


@SETTLE
def test_backlog(queue: str, presettled: bool) -> None:
    """Everything is at the broker before it is fetched."""
    words = ["-m", str(MESSAGES), *checks.settle_words(presettled)]
    checks.assert_sent(pair.run("psend", queue, *words), MESSAGES)
    precv = pair.run("precv", queue, "-m", str(MESSAGES), "--verify-sequence")
    checks.assert_received(precv, MESSAGES)


@SETTLE
def test_together(queue: str, presettled: bool) -> None:
    """The receiver waits for what the sender sends."""
    receiver = pair.start("precv", queue, "-m", "5000", "--verify-sequence", "--credit", "100")
    pair.wait_for(receiver, "ready")
    words = ["-m", "5000", *checks.settle_words(presettled)]
    checks.assert_sent(pair.run("psend", queue, *words), 5000)
    checks.assert_received(pair.finish(receiver), 5000)


@SETTLE
@CLIENTS
def test_client_receives(queue: str, kind: str, presettled: bool) -> None:
    """What psend has sent."""
    words = ["-m", str(MESSAGES), *checks.settle_words(presettled)]
    checks.assert_sent(pair.run("psend", queue, *words), MESSAGES)
    checks.assert_seen(peers.finish(peers.connect(kind, "receive", queue, MESSAGES)), MESSAGES)


@SETTLE
@CLIENTS
def test_client_sends(queue: str, kind: str, presettled: bool) -> None:
    """What precv fetches."""
    settle = checks.settle_words(presettled)
    events = peers.finish(peers.connect(kind, "send", queue, MESSAGES, *settle))
    if not presettled:
        assert peers.outcomes(events) == {"accepted": MESSAGES}
    precv = pair.run("precv", queue, "-m", str(MESSAGES), "--verify-sequence")
    checks.assert_received(precv, MESSAGES)


@CLIENTS
def test_rich_messages(queue: str, kind: str) -> None:
    """Header, properties and annotations, as the broker hands them on: RabbitMQ writes its own
    header, and cannot parse a message with delivery annotations."""
    peers.finish(peers.connect(kind, "send", queue, MESSAGES, "--rich"))
    precv = pair.run("precv", queue, "-m", str(MESSAGES), "--verify-sequence")
    checks.assert_received(precv, MESSAGES)


@CLIENTS
def test_native_numbers(queue: str, kind: str) -> None:
    """sn and ts keep, or change, their types."""
    peers.finish(peers.connect(kind, "send", queue, MESSAGES, "--native"))
    precv = pair.run("precv", queue, "-m", str(MESSAGES), "--verify-sequence")
    checks.assert_received(precv, MESSAGES)


@CLIENTS
def test_header_is_kept(queue: str, kind: str) -> None:
    """What psend says of a message, seen behind the broker."""
    words = ["--priority", "7", "--ttl", "60000", "--durable"]
    checks.assert_sent(pair.run("psend", queue, "-m", "10", *words), 10)
    seen = peers.messages(peers.finish(peers.connect(kind, "receive", queue, 10)))
    expected = {"durable": True, "priority": 7, "ttl_ms": 60000}
    assert [message["header"] for message in seen] == [expected] * 10


def test_monotonic_clock(queue: str) -> None:
    """A clock that nobody sets: no latency is negative, however short."""
    clock = ["--clock", "monotonic"]
    receiver = pair.start("precv", queue, "-m", str(MESSAGES), "--verify-sequence", *clock)
    pair.wait_for(receiver, "ready")
    checks.assert_sent(pair.run("psend", queue, "-m", str(MESSAGES), *clock), MESSAGES)
    checks.assert_received(pair.finish(receiver), MESSAGES)


def test_two_receivers_share(queue: str) -> None:
    """Each message goes to one of them: gaps for each, nothing lost in all."""
    options = ["--timeout", "1s", "--credit", "10", "--credit-low", "0"]
    receivers = [pair.start("precv", queue, *options) for _ in range(2)]
    for receiver in receivers:
        pair.wait_for(receiver, "ready")
    checks.assert_sent(pair.run("psend", queue, "-m", "1000"), 1000)
    ended = [pair.finish(receiver) for receiver in receivers]
    pair.assert_codes(ended, 0, 0)
    counts = [precv.messages["received"] for precv in ended]
    assert sum(counts) == 1000 and min(counts) > 0
    assert all(precv.messages["duplicated"] == precv.messages["reordered"] == 0 for precv in ended)


def test_two_senders(queue: str) -> None:
    """One link, two numberings: precv cannot tell them apart, and says so."""
    for _ in range(2):
        checks.assert_sent(pair.run("psend", queue, "-m", "100"), 100)
    precv = pair.run("precv", queue, "-m", "200", "--verify-sequence")
    assert precv.code == 5 and precv.messages["duplicated"] == 100


@SETTLE
@pytest.mark.parametrize("senders,receivers", [(1, 1), (2, 1)])
def test_ppair_run(
    broker: Broker, queue: str, tmp_path: Path, presettled: bool, senders: int, receivers: int
) -> None:
    """Results are complete, accounts add up, latency is there."""
    launcher = launch.Launcher(tmp_path)
    words = ["--via", queue, "-m", "1000", "--repeat", "2", "--out", "out"]
    words += ["--senders", str(senders), "--receivers", str(receivers)]
    words += checks.settle_words(presettled)
    try:
        ended = launcher.run("run", *words)
        assert ended.code == 0 and ended.lines == ["results: out"], ended
        found = launcher.results("out")
    finally:
        launcher.close()
    assert len(found.runs) == 2
    for run in found.runs:
        assert run.status == results.GOOD
        summaries = {
            peer.name: launch.only(launch.events_of(found, run.folder, peer.name), "summary")
            for peer in run.peers
        }
        received = sum(
            s["messages"]["received"] for name, s in summaries.items() if name.startswith("precv")
        )
        assert received == 1000 * senders
        assert summaries["precv-0"]["latency_ns"]["count"] == 1000 * senders
        assert summaries["precv-0"]["latency_ns"]["negative"] == 0
