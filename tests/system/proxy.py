"""A TCP relay between the programs that can cut, stall and refuse connections."""

from __future__ import annotations

import socket
import struct
import threading
from dataclasses import dataclass, field

import pair

ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close() resets the connection
PART_BYTES = 65536


@dataclass
class Relayed:
    """One connection: both its ends here."""

    ends: tuple[socket.socket, socket.socket]
    flowing: threading.Event = field(default_factory=threading.Event)
    cut: bool = False
    threads: list[threading.Thread] = field(default_factory=list)


class Proxy:
    """Relays from a port of its own to TARGET, until it is closed."""

    def __init__(self, target: str) -> None:
        host, port = target.split("/")[0].rsplit(":", 1)
        self.target = (host, int(port))
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
                threading.Thread(target=_relay, args=(relayed, *ends), daemon=True)
                for ends in (relayed.ends, relayed.ends[::-1])
            ]
            for thread in relayed.threads:
                thread.start()
            with self.changed:
                self.relayed.append(relayed)
                self.accepted += 1
                self.changed.notify_all()

    def wait_for(self, accepted: int) -> None:
        """Until there have been so many connections."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.accepted >= accepted, pair.DEADLINE_S)

    def cut(self) -> None:
        """Resets all connections; what is under way here is lost."""
        with self.changed:
            relayed, self.relayed = self.relayed, []
        for connection in relayed:
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

    def stall(self) -> None:
        """Nothing moves on the connections that there are now; they stay."""
        with self.changed:
            for connection in self.relayed:
                connection.flowing.clear()

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


def _relay(relayed: Relayed, source: socket.socket, sink: socket.socket) -> None:
    """One direction, up to its end."""
    try:
        while part := source.recv(PART_BYTES):
            if not relayed.flowing.wait(pair.DEADLINE_S) or relayed.cut:
                return
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
