"""A responder other than precv: python-qpid-proton, answering messages as a test wants it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from proton import Delivery, Event, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

import pair


@dataclass
class Responder(MessagingHandler):
    """Connects to a psend that listens, takes its messages, and gives what ANSWERS makes of each as
    an answer."""

    url: str
    answers: Callable[[Message], Iterable[Message]]
    reject: Callable[[Message], bool] = lambda message: False
    hold: int = 1  # answers are sent when there are so many messages
    seen: list[Message] = field(default_factory=list)
    most_held: int = 0

    def __post_init__(self) -> None:
        super().__init__(auto_accept=False, prefetch=100)
        self.held: list[Message] = []
        self.sender = None

    def on_start(self, event: Event) -> None:
        """Connects."""
        host, address = self.url.split("/")
        connection = event.container.connect(host, reconnect=False)
        event.container.create_receiver(connection, address)

    def on_link_opening(self, event: Event) -> None:
        """psend asks for the link that its answers come by."""
        if event.link.is_sender:
            event.link.source.address = event.link.remote_source.address
            self.sender = event.link

    def on_message(self, event: Event) -> None:
        """One that is rejected has no answer."""
        message = event.message
        self.seen.append(message)
        refused = self.reject(message)
        event.delivery.update(Delivery.REJECTED if refused else Delivery.ACCEPTED)
        event.delivery.settle()
        if not refused:
            self.held.append(message)
        self.most_held = max(self.most_held, len(self.held))
        if len(self.held) < self.hold:
            return
        for held in self.held:
            for answer in self.answers(held):
                assert self.sender and self.sender.source.address == held.reply_to
                self.sender.send(answer)
        self.held.clear()

    def on_link_closing(self, event: Event) -> None:
        """psend has all it wants."""
        event.connection.close()

    def on_transport_closed(self, event: Event) -> None:
        """However it has come to that."""
        event.container.stop()


@dataclass
class Server(Responder):
    """The same, but that it listens at URL, and stays when connections are lost until it has
    answered."""

    def on_start(self, event: Event) -> None:
        """Listens."""
        self.acceptor = event.container.listen(self.url)

    def on_transport_closed(self, event: Event) -> None:
        """Of the last of its connections, or of one that was cut."""
        if len(self.seen) >= self.hold:
            self.acceptor.close()
            event.container.stop()


def answer(message: Message) -> list[Message]:
    """The usual one."""
    return [Message(correlation_id=message.id, body=message.body)]


@contextmanager
def serve(responder: Responder) -> Iterator[Responder]:
    """On a thread of its own, until psend has closed the connection."""
    thread = threading.Thread(target=Container(responder).run, daemon=True)
    thread.start()
    yield responder
    thread.join(pair.DEADLINE_S)
    assert not thread.is_alive()
