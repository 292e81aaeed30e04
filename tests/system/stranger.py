"""A peer that is not what it should be."""

from __future__ import annotations

import socket
import threading

import pair
import wire


class Stranger:
    """A server that answers each connection with fixed bytes, or not at all."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.server = socket.create_server((pair.HOST, 0))
        self.url = f"{pair.HOST}:{self.server.getsockname()[1]}/test"
        self.clients: list[socket.socket] = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        """Until the server is shut down."""
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            self.clients.append(client)
            if self.answer:
                client.sendall(self.answer)

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the thread."""
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join(pair.DEADLINE_S)
        for client in [self.server, *self.clients]:
            client.close()


def refusal(condition: str, description: str) -> bytes:
    """All that a server writes that opens a connection and closes it with an error."""
    opened = wire.AMQP_HEADER + wire.frame(wire.OPEN, container="refusing")
    return opened + wire.frame(wire.CLOSE, error=wire.error(condition, description))
