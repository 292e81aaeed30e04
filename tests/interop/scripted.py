"""A server made of python-qpid-proton that does as a test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from proton import Condition, Endpoint
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector
from server import HOST

DEADLINE_S = 60.0


class Server(MessagingHandler):
    """One that lets everything happen, but for what a subclass does differently."""

    def __init__(self) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self.port = 0
        self.listening = threading.Event()
        self.injector = EventInjector()
        self.acceptor: Any = None
        self.connections: list[Any] = []

    @property
    def url(self) -> str:
        """Of a node there."""
        return f"{HOST}:{self.port}/test"

    def on_start(self, event: Any) -> None:
        """Listens."""
        self.acceptor = event.container.listen(f"{HOST}:0")
        self.port = self.acceptor._selectable._delegate.getsockname()[1]
        event.container.selectable(self.injector)
        self.listening.set()

    def on_connection_opening(self, event: Any) -> None:
        """Remembered: they are closed at the end."""
        self.connections.append(event.connection)

    def on_link_opening(self, event: Any) -> None:
        """What the peer wants."""
        event.link.source.copy(event.link.remote_source)
        event.link.target.copy(event.link.remote_target)

    def close_later(self, event: Any, endpoint: Any, condition: Condition) -> None:
        """Not in the event by which the peer opens it: the library opens it behind that."""

        class Close:
            """A task."""

            def on_timer_task(self, _: Any) -> None:
                """It is time."""
                endpoint.condition = condition
                endpoint.close()

        event.container.schedule(0, Close())

    def on_end(self, _: Any) -> None:
        """Closes what there is."""
        self.injector.close()
        self.acceptor.close()
        for connection in self.connections:
            if connection.state & Endpoint.LOCAL_ACTIVE:
                connection.close()


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """In a thread of its own."""
    container = Container(server)
    thread = threading.Thread(target=container.run, daemon=True)
    thread.start()
    assert server.listening.wait(DEADLINE_S)
    try:
        yield server
    finally:
        server.injector.trigger(ApplicationEvent("end"))
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
