"""A TCP relay between two programs, which can do to a connection what networks do.

A thread forwards; what is to happen is said by methods, or by a limit on the bytes that pass. All
connections are treated alike.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from dataclasses import dataclass, field

import pair

TO_SERVER, TO_CLIENT = 0, 1
TICK_S = 0.02  # within which the thread notices what it is told


@dataclass
class Pipe:
    """One connection through the relay: its two sockets, and what has passed in either direction."""

    client: socket.socket
    server: socket.socket
    open: bool = True
    recorded: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))


@dataclass
class Relay:
    """Listens, and forwards to HOST:PORT of `url`."""

    target: tuple[str, int]
    server: socket.socket
    piece: int = 1 << 16  # bytes forwarded at a time
    cut_after: int | None = None  # bytes to the server; then the connection is reset
    pipes: list[Pipe] = field(default_factory=list)
    held: bool = False  # nothing is forwarded, the sockets stay
    resetting: bool = False
    stopping: bool = False
    more: threading.Condition = field(default_factory=threading.Condition)
    thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """For the client."""
        return f"{pair.HOST}:{self.server.getsockname()[1]}/test"

    def hold(self) -> None:
        """Half-open: from now on nothing arrives anywhere, and nobody is told."""
        self.held = True

    def release(self) -> None:
        """What was held back goes on."""
        self.held = False

    def reset(self) -> None:
        """Both sides of all connections get a connection reset, soon."""
        self.resetting = True

    def passed(self, direction: int = TO_SERVER) -> int:
        """Bytes so far."""
        return sum(len(pipe.recorded[direction]) for pipe in self.pipes)

    def wait_passed(self, count: int, direction: int = TO_SERVER) -> None:
        """Until so many bytes have passed."""
        with self.more:
            assert self.more.wait_for(lambda: self.passed(direction) >= count, pair.DEADLINE_S)

    # -- the thread --

    def run(self) -> None:
        """Until end_all()."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.server, selectors.EVENT_READ)
            while not self.stopping:
                if self.resetting:
                    self.resetting = False
                    for pipe in self.pipes:
                        self._drop(selector, pipe)
                if self.held:
                    with self.more:
                        self.more.wait(TICK_S)
                    continue
                for key, _ in selector.select(TICK_S):
                    if key.fileobj is self.server:
                        self._accept(selector)
                    elif key.fd >= 0 and key.data[0].open:
                        self._forward(selector, *key.data)

    def _drop(self, selector: selectors.BaseSelector, pipe: Pipe) -> None:
        """Ends a connection with a reset on both sides."""
        if not pipe.open:
            return
        pipe.open = False
        for end in (pipe.client, pipe.server):
            if end in {key.fileobj for key in selector.get_map().values()}:
                selector.unregister(end)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        client, _ = self.server.accept()
        try:
            pipe = Pipe(client, socket.create_connection(self.target))
        except OSError:
            client.close()
            return
        self.pipes.append(pipe)
        for end in (pipe.client, pipe.server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(pipe.client, selectors.EVENT_READ, (pipe, TO_SERVER))
        selector.register(pipe.server, selectors.EVENT_READ, (pipe, TO_CLIENT))

    def _forward(self, selector: selectors.BaseSelector, pipe: Pipe, direction: int) -> None:
        source, target = (pipe.client, pipe.server)[:: 1 if direction == TO_SERVER else -1]
        try:
            part = source.recv(self.piece)
            if self.cut_after is not None and direction == TO_SERVER:
                part = part[: self.cut_after - self.passed()]
            if part:
                target.sendall(part)
            else:
                selector.unregister(source)
                target.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(selector, pipe)
            return
        with self.more:
            pipe.recorded[direction].extend(part)
            self.more.notify_all()
        if self.cut_after is not None and self.passed() >= self.cut_after:
            self._drop(selector, pipe)

    def end(self) -> None:
        """Stops the thread, closes all."""
        self.stopping = True
        if self.thread:
            self.thread.join(pair.DEADLINE_S)
        for pipe in self.pipes:
            pipe.client.close()
            pipe.server.close()
        self.server.close()


RELAYS: list[Relay] = []


def start(url: str, **settings: int) -> Relay:
    """Between a client that is yet to come, and what listens at URL."""
    host, port = url.split("/")[0].split(":")
    relay = Relay((host, int(port)), socket.create_server((pair.HOST, 0)), **settings)
    relay.thread = threading.Thread(target=relay.run, daemon=True)
    relay.thread.start()
    RELAYS.append(relay)
    return relay


def end_all() -> None:
    """After each test."""
    while RELAYS:
        RELAYS.pop().end()
