"""Brokers and routers that say no, or not yet, or somewhere else: servers that are told to."""

from __future__ import annotations

from typing import Any

import checks
import pair
import pytest
import scripted
from proton import Condition, Delivery, Terminus, symbol, ushort

CONNECTION, SECURITY, REFUSED = 2, 3, 6
PROGRAMS = pytest.mark.parametrize("program", pair.PROGRAMS)
ELSEWHERE = {
    symbol("hostname"): "other",
    symbol("network-host"): "10.9.8.7",
    symbol("port"): ushort(5699),
}


# ---- no ----


class Refusing(scripted.Server):
    """Attaches links without the terminus that was asked for, and then says why."""

    def __init__(self, condition: Condition) -> None:
        super().__init__()
        self.condition = condition

    def on_link_opening(self, event: Any) -> None:
        """As the specification has it (part 2, section 2.6.3)."""
        event.link.source.type = event.link.target.type = Terminus.UNSPECIFIED
        self.close_later(event, event.link, self.condition)


@PROGRAMS
@pytest.mark.parametrize(
    "name,code",
    [
        ("amqp:not-found", CONNECTION),
        ("amqp:not-allowed", CONNECTION),
        ("amqp:resource-limit-exceeded", CONNECTION),
        ("amqp:unauthorized-access", SECURITY),
    ],
)
def test_refused_link(program: str, name: str, code: int) -> None:
    """The peer's reason is what is said."""
    with scripted.serving(Refusing(Condition(name, "no such thing here"))) as server:
        result = pair.run(program, server.url, "-m", "1")
    checks.assert_failed(result, code, name, "no such thing here")


# ---- somewhere else ----


class RedirectingConnections(scripted.Server):
    """Closes connections, and says where to go."""

    def on_connection_opening(self, event: Any) -> None:
        """At once."""
        super().on_connection_opening(event)
        condition = Condition("amqp:connection:redirect", "not here", ELSEWHERE)
        self.close_later(event, event.connection, condition)


@PROGRAMS
@pytest.mark.parametrize("kind", ["connection", "link"])
def test_redirect(program: str, kind: str) -> None:
    """It is not followed, nor tried again; where it points to is said."""
    made: scripted.Server
    where = "not here; to 10.9.8.7:5699"
    if kind == "link":
        info = {**ELSEWHERE, symbol("address"): "there"}
        made = Refusing(Condition("amqp:link:redirect", "not here", info))
        where += "/there"
    else:
        made = RedirectingConnections()
    with scripted.serving(made) as server:
        result = pair.run(program, server.url, "-m", "1", "--reconnect")
    checks.assert_failed(result, CONNECTION, f"amqp:{kind}:redirect", where)


# ---- not yet ----


class Router(scripted.Server):
    """Hands messages from a sender to a receiver, as they are, and the outcome back.

    Without a receiver the sender gets no credit; with one, it gets what the receiver grants.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sender: Any = None  # the link by which we send
        self.receiver: Any = None
        self.incoming: dict[str, Any] = {}  # by tag of the delivery that was made of it

    def on_link_opening(self, event: Any) -> None:
        """Both of them."""
        super().on_link_opening(event)
        if event.link.is_sender:
            self.sender = event.link
        else:
            self.receiver = event.link
        self.on_link_flow(event)

    def on_link_flow(self, _: Any) -> None:
        """As much as the receiver can take."""
        if self.receiver and self.sender:
            wanted = self.sender.credit - self.receiver.credit
            if wanted > 0:
                self.receiver.flow(wanted)

    def on_delivery(self, event: Any) -> None:
        """A message from the one, an outcome from the other."""
        delivery = event.delivery
        if delivery.link.is_receiver:
            if not delivery.readable or delivery.partial:
                return
            content = delivery.link.recv(delivery.pending)
            delivery.link.advance()
            copy = self.sender.delivery(delivery.tag)
            self.sender.send(content)
            self.sender.advance()
            self.incoming[copy.tag] = delivery
        elif delivery.updated and delivery.settled:
            original = self.incoming.pop(delivery.tag)
            original.update(delivery.remote_state)
            original.settle()
            delivery.settle()


def test_credit_comes_with_a_receiver() -> None:
    """Until there is one, psend waits for credit, and says that it did."""
    with scripted.serving(Router()) as server:
        sender = pair.start("psend", server.url, "-m", "100", "--interval", "50ms")
        pair.wait_for(sender, "interval", 4)
        receiver = pair.start("precv", server.url, "-m", "100", "--verify-sequence")
        psend, precv = pair.finish(sender), pair.finish(receiver)
    checks.assert_sent(psend, 100)
    checks.assert_received(precv, 100)
    assert psend.summary["limited_by"] == "credit"
    assert psend.summary["credit"]["stalled_s"] >= 0.15
    assert all(interval["messages"]["sent"] == 0 for interval in psend.intervals[:3])


@pytest.mark.parametrize("outcome", ["rejected", "released", "modified"])
def test_outcomes_go_through(outcome: str) -> None:
    """What the receiver says of a message reaches its sender."""
    with scripted.serving(Router()) as server:
        receiver = pair.start("precv", server.url, "-m", "100", "--outcome", outcome)
        pair.wait_for(receiver, "ready")
        psend = pair.run("psend", server.url, "-m", "100")
        precv = pair.finish(receiver)
    pair.assert_codes([psend, precv], REFUSED, 0)
    assert psend.messages[outcome] == psend.messages["sent"] == 100
    assert psend.messages["accepted"] == 0
    pair.assert_accounts(psend.summary)


# ---- peculiar ----


class Nameless(scripted.Server):
    """Attaches links whose ends have no address, as libqpid-proton's small examples do."""

    def on_link_opening(self, event: Any) -> None:
        """Nothing is copied."""
        if event.link.is_receiver:
            event.link.flow(10)

    def on_sendable(self, event: Any) -> None:
        """A message."""
        delivery = event.sender.delivery("1")
        event.sender.send(b"\0Sw\x40")
        delivery.settle()

    def on_delivery(self, event: Any) -> None:
        """All are welcome."""
        if event.delivery.link.is_receiver and event.delivery.readable:
            event.delivery.update(Delivery.ACCEPTED)
            event.delivery.settle()


@PROGRAMS
def test_ends_without_address(program: str) -> None:
    """That is no refusal."""
    with scripted.serving(Nameless()) as server:
        result = pair.run(program, server.url, "-m", "1")
    pair.assert_codes([result], 0)
