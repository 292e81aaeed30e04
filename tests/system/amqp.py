"""Peers made of python-qpid-proton, an implementation of AMQP other than the programs' own code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from proton import Delivery, Event, Message, ulong
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

TIMEOUT_S = 60.0
T = TypeVar("T")


def connect(url: str) -> BlockingConnection:
    """To HOST:PORT/ADDRESS."""
    return BlockingConnection(url.split("/")[0], timeout=TIMEOUT_S)


def receiver(connection: BlockingConnection, credit: int) -> BlockingReceiver:
    """A link with so much credit, which is not renewed before a message is received."""
    return connection.create_receiver("test", credit=credit)


def numbered(number: int, stamp_ns: int | None = None, as_ulong: bool = True) -> Message:
    """A message with sn and ts; without as_ulong, sn is whatever python makes of an int."""
    properties: dict[str, object] = {"sn": ulong(number) if as_ulong else number}
    if stamp_ns is not None:
        properties["ts"] = stamp_ns
    return Message(body=b"x", inferred=True, properties=properties)


def send(url: str, messages: Iterable[Message]) -> list[object]:
    """Sends one after the other, each settled before the next, as far as the receiver wants them.
    Returns their outcomes."""
    connection = connect(url)
    outcomes: list[object] = []
    try:
        sender = connection.create_sender("test")
        for message in messages:
            outcomes.append(sender.send(message).remote_state)
    except LinkDetached:
        pass
    finally:
        connection.close()
    return outcomes


class _SendAll(MessagingHandler):
    """Sends as credit allows, and goes when all is settled or the receiver has gone."""

    def __init__(self, url: str, messages: Iterable[Message]) -> None:
        super().__init__(auto_settle=False)
        self.url = url
        self.left = list(messages)
        self.sent: list[Delivery] = []
        self.settled: list[object] = []

    def on_start(self, event: Event) -> None:
        host, address = self.url.split("/")
        self.connection = event.container.connect(host, reconnect=False)
        event.container.create_sender(self.connection, address)
        event.container.schedule(TIMEOUT_S, self)

    def on_sendable(self, event: Event) -> None:
        while event.sender.credit and self.left:
            self.sent.append(event.sender.send(self.left.pop(0)))

    def on_settled(self, event: Event) -> None:
        self.settled.append(event.delivery.remote_state)
        if not self.left and len(self.settled) == len(self.sent):
            self.connection.close()

    def on_link_closed(self, event: Event) -> None:
        self.connection.close()

    def on_transport_closed(self, event: Event) -> None:
        event.container.stop()  # which else waits for its timer

    def on_timer_task(self, event: Event) -> None:
        event.container.stop()


def send_all(url: str, messages: Iterable[Message]) -> list[object]:
    """Sends them as fast as they are wanted, to a receiver that may go away. Returns the outcomes
    of those that were settled, in the order in which that came."""
    handler = _SendAll(url, messages)
    Container(handler).run()
    return handler.settled


ACCEPTED = Delivery.ACCEPTED


def run_all(function: Callable[[T], None], arguments: Sequence[T]) -> None:
    """Calls it once for each argument, all at the same time. Raises what the first of them has."""
    with ThreadPoolExecutor(len(arguments)) as threads:
        list(threads.map(function, arguments))
