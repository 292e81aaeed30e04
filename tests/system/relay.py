"""A TCP relay between two programs, which can do to connections what networks do.

Two threads forward each connection, one for each direction; what is to happen is said by methods,
or by a limit on the bytes that pass.
"""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

import pair

ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close() resets the connection
PIECE_BYTES = 1 << 16


@dataclass
class Pipe:
    """One connection through the relay."""

    client: socket.socket
    server: socket.socket
    flowing: threading.Event = field(default_factory=threading.Event)
    cut: bool = False
    threads: list[threading.Thread] = field(default_factory=list)

    def reset(self) -> None:
        """Both sides get a connection reset, once the threads, which this wakes, have ended."""
        self.cut = True
        for end in (self.client, self.server):
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                end.shutdown(socket.SHUT_RD)
            except OSError:
                pass  # it has ended already
        self.flowing.set()


class Relay:
    """Listens, and forwards to TARGET, until it is closed."""

    def __init__(self, target: str, piece: int, cut_after: int | None, delay_s: float) -> None:
        host, port = target.split("/")[0].rsplit(":", 1)
        self.target = (host, int(port))
        self.piece = piece
        self.cut_after = cut_after
        self.delay_s = delay_s
        self.server = socket.create_server((pair.HOST, 0))
        self.port = int(self.server.getsockname()[1])
        self.url = f"{pair.HOST}:{self.port}/test"
        self.changed = threading.Condition()
        self.accepted = 0  # connections
        self.passed = 0  # bytes from clients
        self.recorded: bytearray | None = None  # those bytes, if somebody makes it a bytearray
        self.pipes: list[Pipe] = []
        self.thread = self._start()

    # ---- what tests do ----

    def wait_for(self, accepted: int) -> None:
        """Until there have been so many connections."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.accepted >= accepted, pair.DEADLINE_S)

    def wait_passed(self, count: int) -> None:
        """Until so many bytes from clients have passed."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.passed >= count, pair.DEADLINE_S)

    def cut(self) -> None:
        """Resets all connections; what is under way here is lost."""
        with self.changed:
            pipes, self.pipes = self.pipes, []
        for pipe in pipes:
            pipe.reset()
            for thread in pipe.threads:
                thread.join(pair.DEADLINE_S)

    def hold(self) -> None:
        """Nothing moves on the connections that there are now; nobody is told."""
        with self.changed:
            for pipe in self.pipes:
                pipe.flowing.clear()

    def release(self) -> None:
        """What was held back goes on."""
        with self.changed:
            for pipe in self.pipes:
                pipe.flowing.set()

    def refuse(self) -> None:
        """New connections are refused from now on."""
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join(pair.DEADLINE_S)
        self.server.close()

    def accept(self) -> None:
        """And taken again, on the same port."""
        self.server = socket.create_server((pair.HOST, self.port))
        self.thread = self._start()

    def close(self) -> None:
        """Ends all of it."""
        if self.server.fileno() >= 0:
            self.refuse()
        self.cut()

    # ---- the threads ----

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._accept, args=(self.server,), daemon=True)
        thread.start()
        return thread

    def _accept(self, server: socket.socket) -> None:
        """Until the socket is shut down."""
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            try:
                pipe = Pipe(client, socket.create_connection(self.target))
            except OSError:
                client.close()
                continue
            for end in (pipe.client, pipe.server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pipe.flowing.set()
            forward = self._delay if self.delay_s else self._forward
            here, there = (
                threading.Thread(target=forward, args=(pipe, *ends), daemon=True)
                for ends in ((pipe.client, pipe.server), (pipe.server, pipe.client))
            )
            closing = threading.Thread(target=_close, args=(pipe, here, there), daemon=True)
            pipe.threads = [here, there, closing]
            with self.changed:  # nothing passes of a connection that cannot be held yet
                for thread in pipe.threads:
                    thread.start()
                self.pipes.append(pipe)
                self.accepted += 1
                self.changed.notify_all()

    def _forward(self, pipe: Pipe, source: socket.socket, sink: socket.socket) -> None:
        """One direction, up to its end."""
        try:
            while part := source.recv(self.piece):
                if not pipe.flowing.wait(pair.DEADLINE_S) or pipe.cut:
                    return
                sink.sendall(self._count(part) if source is pipe.client else part)
                if source is pipe.client and self.passed == self.cut_after:
                    pipe.reset()
            if not pipe.cut:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            pipe.reset()

    def _delay(self, pipe: Pipe, source: socket.socket, sink: socket.socket) -> None:
        """One direction: each piece, and the end, is sent so long after it has come, whatever comes
        meanwhile."""
        pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

        def read() -> None:
            part = b"x"
            while part:
                try:
                    part = source.recv(self.piece)
                except OSError:
                    part = b""
                pieces.put((time.monotonic() + self.delay_s, part))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        part = b"x"
        try:
            while part:
                due_s, part = pieces.get()
                time.sleep(max(due_s - time.monotonic(), 0))
                if part:
                    sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pipe.reset()
        reader.join()

    def _count(self, part: bytes) -> bytes:
        """What passes of it."""
        with self.changed:
            if self.cut_after is not None:
                part = part[: self.cut_after - self.passed]
            self.passed += len(part)
            if self.recorded is not None:
                self.recorded += part
            self.changed.notify_all()
        return part


def _close(pipe: Pipe, *forwarding: threading.Thread) -> None:
    """Behind both directions, each of which uses both sockets."""
    for thread in forwarding:
        thread.join()
    pipe.client.close()
    pipe.server.close()


RELAYS: list[Relay] = []


def start(
    url: str, piece: int = PIECE_BYTES, cut_after: int | None = None, delay_s: float = 0
) -> Relay:
    """Between a client that is yet to come, and what listens at URL. Each piece is delayed for so
    long in either direction."""
    RELAYS.append(Relay(url, piece, cut_after, delay_s))
    return RELAYS[-1]


def end_all() -> None:
    """After each test."""
    while RELAYS:
        RELAYS.pop().close()
