"""A TCP relay between the programs that does to connections what networks do: it can cut, stall and
refuse them, take them apart, and end them after so many bytes. All are treated alike."""

from __future__ import annotations

import socket
import struct
import threading
from dataclasses import dataclass, field

import pair

ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close() resets the connection
PART_BYTES = 65536
TO_SERVER, TO_CLIENT = 0, 1


@dataclass(eq=False)
class Relayed:
    """One connection: both its ends here."""

    ends: tuple[socket.socket, socket.socket]
    flowing: threading.Event = field(default_factory=threading.Event)
    cut: bool = False
    threads: list[threading.Thread] = field(default_factory=list)


class Proxy:
    """Relays from a port of its own to TARGET, until it is closed: PIECE bytes at a time, and until
    CUT_AFTER have passed to the target."""

    def __init__(
        self, target: str, piece: int = PART_BYTES, cut_after: int | None = None
    ) -> None:
        host, port = target.split("/")[0].rsplit(":", 1)
        self.target = (host, int(port))
        self.piece = piece
        self.cut_after = cut_after
        self.passed = [0, 0]
        self.server = socket.create_server((pair.HOST, 0))
        self.port = int(self.server.getsockname()[1])
        self.url = f"{pair.HOST}:{self.port}/test"
        self.changed = threading.Condition()
        self.accepted = 0
        self.relayed: list[Relayed] = []
        self.thread = self._start()

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
                relayed = Relayed((client, socket.create_connection(self.target)))
            except OSError:
                client.close()
                continue
            for end in relayed.ends:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            relayed.flowing.set()
            relayed.threads = [
                threading.Thread(target=self._relay, args=(relayed, direction), daemon=True)
                for direction in (TO_SERVER, TO_CLIENT)
            ]
            with self.changed:
                for thread in relayed.threads:
                    thread.start()
                self.relayed.append(relayed)
                self.accepted += 1
                self.changed.notify_all()

    def _relay(self, relayed: Relayed, direction: int) -> None:
        """One direction, up to its end."""
        source, sink = relayed.ends[:: 1 if direction == TO_SERVER else -1]
        try:
            while part := source.recv(self.piece):
                if not relayed.flowing.wait(pair.DEADLINE_S) or relayed.cut:
                    return
                limited = self.cut_after is not None and direction == TO_SERVER
                if limited:
                    part = part[: self.cut_after - self.passed[TO_SERVER]]
                sink.sendall(part)
                with self.changed:
                    self.passed[direction] += len(part)
                    self.changed.notify_all()
                if limited and self.passed[TO_SERVER] >= self.cut_after:
                    self._cut_soon(relayed)
                    return
            if not relayed.cut:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            self._cut_soon(relayed)

    def wait_for(self, accepted: int) -> None:
        """Until there have been so many connections."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.accepted >= accepted, pair.DEADLINE_S)

    def wait_passed(self, count: int, direction: int = TO_SERVER) -> None:
        """Until so many bytes have passed."""
        with self.changed:
            passed = self.changed.wait_for(
                lambda: self.passed[direction] >= count, pair.DEADLINE_S
            )
            assert passed, self.passed

    def cut(self) -> None:
        """Resets all connections; what is under way here is lost."""
        with self.changed:
            relayed, self.relayed = self.relayed, []
        for connection in relayed:
            _reset(connection)

    def _cut_soon(self, relayed: Relayed) -> None:
        """Resets this one, if nobody else does: by a thread, as the one that asks is waited for."""
        with self.changed:
            if relayed not in self.relayed:
                return
            self.relayed.remove(relayed)
        threading.Thread(target=_reset, args=(relayed,), daemon=True).start()

    def stall(self) -> None:
        """Nothing moves on the connections that there are now; they stay."""
        with self.changed:
            for connection in self.relayed:
                connection.flowing.clear()

    def go_on(self) -> None:
        """And what was held back moves again."""
        with self.changed:
            for connection in self.relayed:
                connection.flowing.set()

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


def _reset(connection: Relayed) -> None:
    """Both its ends, behind its threads."""
    connection.cut = True
    for end in connection.ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
        try:
            end.shutdown(socket.SHUT_RD)  # wakes the thread
        except OSError:
            pass  # the peer was quicker
    connection.flowing.set()
    for thread in connection.threads:
        thread.join(pair.DEADLINE_S)
    for end in connection.ends:
        end.close()


PROXIES: list[Proxy] = []


def start(target: str, piece: int = PART_BYTES, cut_after: int | None = None) -> Proxy:
    """One that ends with the test."""
    PROXIES.append(Proxy(target, piece, cut_after))
    return PROXIES[-1]


def end_all() -> None:
    """After each test."""
    while PROXIES:
        PROXIES.pop().close()
