"""A broker in one process: queues in memory, made when named; messages go through as bytes.

Started as a program it prints the port that it listens on, and ends with its standard input.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from proton import Delivery, Event, Handler, Link
from proton.handlers import FlowController, Handshaker
from proton.reactor import ApplicationEvent, Container, EventInjector

CREDIT = 500
TAGS = itertools.count()


@dataclass
class Queue:
    """Messages that nobody has taken, and links to those who take them, in turn."""

    messages: deque[bytes] = field(default_factory=deque)
    takers: deque[Link] = field(default_factory=deque)

    def move(self) -> None:
        """What can be moved."""
        while self.messages and any(link.credit > 0 for link in self.takers):
            link = self.takers[0]
            self.takers.rotate(-1)
            if link.credit > 0:
                link.delivery(str(next(TAGS)))
                link.stream(self.messages.popleft())
                link.advance()


class Broker(Handler):
    """Accepts everything; what it has accepted it does not take back when a taker goes."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers = [Handshaker(), FlowController(CREDIT)]
        self.queues: dict[str, Queue] = {}

    def on_reactor_init(self, event: Event) -> None:
        """Says where it is."""
        acceptor = event.reactor.acceptor("127.0.0.1", 0)
        with socket.socket(fileno=os.dup(acceptor._selectable.fileno())) as listening:
            print(listening.getsockname()[1], flush=True)

    def on_link_remote_open(self, event: Event) -> None:
        """With the addresses that were asked for."""
        event.link.source.copy(event.link.remote_source)
        event.link.target.copy(event.link.remote_target)
        if event.link.is_sender:
            self.queue(event.link.remote_source.address).takers.append(event.link)

    def queue(self, name: str) -> Queue:
        """By its name."""
        return self.queues.setdefault(name, Queue())

    def on_link_flow(self, event: Event) -> None:
        """There may be credit."""
        if event.link.is_sender:
            self.queue(event.link.remote_source.address).move()

    def on_delivery(self, event: Event) -> None:
        """One that has come whole is kept and settled; one that was taken is forgotten."""
        delivery, link = event.delivery, event.link
        if link.is_receiver and delivery.readable and not delivery.partial:
            queue = self.queue(link.remote_target.address)
            queue.messages.append(link.recv(delivery.pending))
            link.advance()
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
            queue.move()
        elif link.is_sender and delivery.updated:
            delivery.settle()

    def on_link_remote_close(self, event: Event) -> None:
        """It takes no more."""
        self.forget(lambda link: link == event.link)

    def on_transport_closed(self, event: Event) -> None:
        """However it has ended."""
        self.forget(lambda link: link.connection == event.connection)

    def forget(self, is_gone: Any) -> None:
        """Those who take."""
        for queue in self.queues.values():
            queue.takers = deque(link for link in queue.takers if not is_gone(link))

    def on_end(self, event: Event) -> None:
        """Nobody needs us any more."""
        event.reactor.stop()


@contextmanager
def running() -> Iterator[str]:
    """A broker, at host:port."""
    process = subprocess.Popen(
        ["/usr/bin/python3", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    try:
        yield f"127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Until the end of standard input."""
    container, injector = Container(Broker()), EventInjector()
    container.selectable(injector)

    def wait() -> None:
        sys.stdin.read()
        injector.trigger(ApplicationEvent("end"))

    threading.Thread(target=wait, daemon=True).start()
    container.run()


if __name__ == "__main__":
    main()
