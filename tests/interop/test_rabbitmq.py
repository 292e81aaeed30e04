"""What RabbitMQ does its own way: who may come in, what it refuses, what becomes of outcomes."""

from __future__ import annotations

import signal

import checks
import pair
import pytest
import rabbitmq as rabbit
from rabbitmq import RabbitMQ

CONNECTION, SECURITY, SHORT, VERIFY = 2, 3, 4, 5
PROGRAMS = pytest.mark.parametrize("program", pair.PROGRAMS)


# ---- who may come in ----


def exchange(psend: list[str], precv: list[str]) -> None:
    """100 messages by way of a queue."""
    sender = pair.run("psend", *psend, "-m", "100")
    checks.assert_sent(sender, 100)
    receiver = pair.run("precv", *precv, "-m", "100", "--verify-sequence")
    checks.assert_received(receiver, 100)


def test_anonymous(rabbitmq: RabbitMQ, node: str) -> None:
    """With SASL, or without; the default_user of its configuration is who they are."""
    url = rabbitmq.url(rabbitmq.queue(node))
    exchange([url], [url, "--sasl-mechs", "none"])


def test_plain(rabbitmq: RabbitMQ, node: str) -> None:
    """A password in the URL, over a connection that is not encrypted."""
    words = [rabbitmq.url(rabbitmq.queue(node), rabbit.USER), "--sasl-insecure"]
    exchange(words, words)


def test_plain_with_tls(rabbitmq: RabbitMQ, node: str) -> None:
    """And over one that is."""
    words = [rabbitmq.tls_url(rabbitmq.queue(node), rabbit.USER), "--tls-ca", rabbitmq.ca]
    exchange(words, words)


@PROGRAMS
def test_wrong_password(rabbitmq: RabbitMQ, node: str, program: str) -> None:
    """RabbitMQ refuses it."""
    url = rabbitmq.tls_url(rabbitmq.queue(node), "guest:secret")
    result = pair.run(program, url, "--tls-ca", rabbitmq.ca, "-m", "1")
    checks.assert_failed(result, SECURITY, "guest")
    assert "secret" not in result.stderr


@PROGRAMS
def test_unknown_authority(rabbitmq: RabbitMQ, node: str, program: str) -> None:
    """Its certificate is not signed by anybody whom the system knows."""
    result = pair.run(program, rabbitmq.tls_url(rabbitmq.queue(node), rabbit.USER), "-m", "1")
    checks.assert_failed(result, SECURITY, "certificate")


# ---- what it refuses ----


REFUSED = [
    ("/exchange/none/key", ("amqp:not-found", "none")),
    ("/no/such/kind", ("amqp:invalid-field", "unknown_destination")),
]


@PROGRAMS
@pytest.mark.parametrize("address,words", REFUSED, ids=["exchange", "address"])
def test_refused_attach(
    rabbitmq: RabbitMQ, program: str, address: str, words: tuple[str, ...]
) -> None:
    """It ends the session with its reason."""
    checks.assert_failed(pair.run(program, rabbitmq.url(address), "-m", "1"), CONNECTION, *words)


def test_unknown_queue(rabbitmq: RabbitMQ) -> None:
    """Nothing can be fetched from it. What is sent there is accepted, and gone: RabbitMQ's default
    exchange asks nobody whether there is such a queue."""
    url = rabbitmq.url("/amq/queue/none")
    checks.assert_failed(pair.run("precv", url, "-m", "1"), CONNECTION, "amqp:not-found", "none")
    checks.assert_sent(pair.run("psend", url, "-m", "10"), 10)


def test_unroutable(rabbitmq: RabbitMQ, node: str) -> None:
    """The same for a key that no queue is bound to; whoever attaches later binds one."""
    url = rabbitmq.url(f"/exchange/amq.direct/{node}")
    checks.assert_sent(pair.run("psend", url, "-m", "10"), 10)
    precv = pair.run("precv", url, "-m", "10", "--timeout", "300ms")
    assert precv.code == SHORT and precv.messages["received"] == 0


def test_exchange(rabbitmq: RabbitMQ, node: str) -> None:
    """Several receivers, a queue for each: all have all messages."""
    url = rabbitmq.url(f"/exchange/amq.direct/{node}")
    receivers = [pair.start("precv", url, "-m", "100", "--verify-sequence") for _ in range(2)]
    for receiver in receivers:
        pair.wait_for(receiver, "ready")
    checks.assert_sent(pair.run("psend", url, "-m", "100"), 100)
    for receiver in receivers:
        checks.assert_received(pair.finish(receiver), 100)


# ---- what becomes of outcomes ----


def fetch_again(url: str, *options: str) -> pair.Result:
    """Whatever there is."""
    result = pair.run("precv", url, "--timeout", "500ms", *options)
    pair.assert_codes([result], 0)
    return result


@pytest.mark.parametrize("ack", ["1", "10"])
def test_rejected(rabbitmq: RabbitMQ, node: str, ack: str) -> None:
    """They are gone."""
    url = rabbitmq.url(rabbitmq.queue(node))
    checks.assert_sent(pair.run("psend", url, "-m", "100"), 100)
    words = ["--outcome", "rejected", "--ack-frequency", ack]
    checks.assert_received(pair.run("precv", url, "-m", "100", *words), 100)
    assert fetch_again(url).messages["received"] == 0


@pytest.mark.parametrize("ack", ["1", "10"])
def test_released(rabbitmq: RabbitMQ, node: str, ack: str) -> None:
    """They go to the next receiver, in their order, as redelivered."""
    url = rabbitmq.url(rabbitmq.queue(node))
    checks.assert_sent(pair.run("psend", url, "-m", "100"), 100)
    words = ["--outcome", "released", "--ack-frequency", ack]
    first = pair.run("precv", url, "-m", "100", "--verify-sequence", *words)
    checks.assert_received(first, 100)
    assert first.messages["redelivered"] == 0
    again = fetch_again(url, "--verify-sequence")
    checks.assert_received(again, 100)
    assert again.messages["redelivered"] == 100


def test_modified(rabbitmq: RabbitMQ, node: str) -> None:
    """It does not know this outcome, and ends the session; nothing is lost."""
    url = rabbitmq.url(rabbitmq.queue(node))
    checks.assert_sent(pair.run("psend", url, "-m", "100"), 100)
    precv = pair.run("precv", url, "--outcome", "modified")
    checks.assert_failed(precv, CONNECTION, "amqp:invalid-field", "modified")
    checks.assert_received(fetch_again(url, "--verify-sequence"), 100)


def test_killed_receiver(rabbitmq: RabbitMQ, node: str) -> None:
    """What it had not settled comes again, and is counted as redelivered."""
    url = rabbitmq.url(rabbitmq.queue(node))
    checks.assert_sent(pair.run("psend", url, "-m", "100"), 100)
    receiver = pair.start("precv", url, "--ack-frequency", "1000", "--receive-rate", "1")
    pair.wait_for(receiver, "interval")
    pair.send_signal(receiver, signal.SIGKILL)
    receiver.process.wait(pair.DEADLINE_S)
    again = fetch_again(url).messages
    assert again["redelivered"] == again["received"] >= 90


def test_credit_is_large(rabbitmq: RabbitMQ, node: str) -> None:
    """It grants 65,536 and never withholds: a sender without a receiver is not blocked."""
    psend = pair.run("psend", rabbitmq.url(rabbitmq.queue(node)), "-m", "2000")
    checks.assert_sent(psend, 2000)
    assert psend.summary["credit"]["stalls"] == 0


@pytest.mark.parametrize("size", ["0", "1", "100000", "3Mi"])
def test_sizes(rabbitmq: RabbitMQ, node: str, size: str) -> None:
    """Frames are cut at both sides of the broker."""
    url = rabbitmq.url(rabbitmq.queue(node))
    psend = pair.run("psend", url, "-m", "5", "--content-size", size, "--max-frame", "16Ki")
    checks.assert_sent(psend, 5)
    precv = pair.run("precv", url, "-m", "5", "--verify-sequence", "--max-frame", "16Ki")
    assert precv.summary["content_bytes"] == psend.summary["content_bytes"]
    checks.assert_received(precv, 5, precv.summary["content_bytes"] // 5)
