"""Round trips by way of a broker, and with a responder of another make."""

from __future__ import annotations

import checks
import pair
import pytest
from brokers import Broker
from rabbitmq import RabbitMQ

MESSAGES = 300
SETTLE = pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])


def assert_answered(psend: pair.Result, messages: int) -> None:
    """Each, once."""
    checks.assert_sent(psend, messages)
    assert psend.messages["answered"] == messages and psend.messages["unmatched"] == 0
    trips = psend.summary["round_trip_ns"]
    assert (trips["count"], trips["negative"], trips["overflow"]) == (messages, 0, 0)
    assert 0 < trips["min"] <= trips["p50"] <= trips["max"] < 1e9 * checks.MAX_LATENCY_S


@SETTLE
@pytest.mark.parametrize("depth", [1, 50])
def test_by_way_of_a_broker(queue: str, presettled: bool, depth: int) -> None:
    """The address for answers is psend's own, and made of the queue's."""
    receiver = pair.start("precv", queue, "--reply", "-m", str(MESSAGES), "--verify-sequence")
    pair.wait_for(receiver, "ready")
    words = ["--round-trip", "-m", str(MESSAGES), "--max-unsettled", str(depth)]
    psend = pair.run("psend", queue, *words, *checks.settle_words(presettled))
    precv = pair.finish(receiver)
    assert_answered(psend, MESSAGES)
    checks.assert_received(precv, MESSAGES)
    assert precv.messages["answers"] == MESSAGES and precv.messages["unanswerable"] == 0
    latency = precv.summary["latency_ns"]
    assert latency["p50"] < psend.summary["round_trip_ns"]["max"]


def test_two_senders(queue: str) -> None:
    """Their messages come mixed by one queue, and each has its own answers."""
    receiver = pair.start("precv", queue, "--reply", "-m", str(2 * MESSAGES))
    pair.wait_for(receiver, "ready")
    words = ["--round-trip", "-m", str(MESSAGES), "--max-unsettled", "10"]
    senders = [pair.start("psend", queue, *words) for _ in range(2)]
    for sender in senders:
        assert_answered(pair.finish(sender), MESSAGES)
    precv = pair.finish(receiver)
    assert precv.messages["answers"] == 2 * MESSAGES


def test_what_is_left_of_another_run(broker: Broker, queue: str, node: str) -> None:
    """Answers that wait at the same address are not taken for this run's."""
    reply_to = ["--reply-to", broker.queue(node + "-answers")]
    words = ["--round-trip", "-m", "20", *reply_to, "--presettled", "--close-timeout", "100ms"]
    assert pair.run("psend", queue, *words).code == 4
    receiver = pair.start("precv", queue, "--reply", "-m", str(20 + MESSAGES))
    pair.wait_for(receiver, "ready")
    psend = pair.run("psend", queue, "--round-trip", "-m", str(MESSAGES), *reply_to)
    pair.finish(receiver)
    checks.assert_sent(psend, MESSAGES)
    assert psend.messages["answered"] == MESSAGES
    assert psend.messages["unmatched"] == 20


def test_an_address_that_is_refused(rabbitmq: RabbitMQ, node: str) -> None:
    """RabbitMQ ends the session of a link to what is not there: messages that ask for such an
    answer are counted, and the run goes on."""
    queue = rabbitmq.url(rabbitmq.queue(node))
    receiver = pair.start("precv", queue, "--reply", "-m", "30")
    pair.wait_for(receiver, "ready")
    for _ in range(2):
        words = ["-m", "10", "--reply-to", "/exchange/not-there/key"]
        checks.assert_sent(pair.run("psend", queue, *words), 10)
    assert_answered(pair.run("psend", queue, "--round-trip", "-m", "10"), 10)
    precv = pair.finish(receiver)
    assert precv.code == 0 and precv.messages["received"] == 30
    assert precv.messages["answers"] == 10 and precv.messages["unanswerable"] == 20
    assert len(precv.lines) == 1 and "not-there" in precv.lines[0]


def test_no_address_for_answers(rabbitmq: RabbitMQ, node: str) -> None:
    """psend cannot receive from there, and says so."""
    queue = rabbitmq.url(rabbitmq.queue(node))
    words = ["--round-trip", "-m", "10", "--reply-to", "/amq/queue/not-there"]
    checks.assert_failed(pair.run("psend", queue, *words), 2, "not-found")


def test_several_addresses(rabbitmq: RabbitMQ, node: str) -> None:
    """In turn, by one link for each."""
    queue = rabbitmq.url(rabbitmq.queue(node))
    receiver = pair.start("precv", queue, "--reply", "-m", "300")
    pair.wait_for(receiver, "ready")
    addresses = [f"/queue/{node}-{number}" for number in range(3)]
    for turn in range(2):
        for address in addresses:
            words = ["-m", "50", "--reply-to", address, "--first-sequence", str(50 * turn + 1)]
            checks.assert_sent(pair.run("psend", queue, *words), 50)
    precv = pair.finish(receiver)
    assert precv.code == 0 and precv.messages["answers"] == 300
    for address in addresses:
        found = pair.run("precv", rabbitmq.url(address), "-m", "100", "--verify-sequence")
        checks.assert_received(found, 100)
