"""A server whose TLS and SASL are python's own, or by hand, before a program that listens."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import certificates
import pair
import wire
from proton import UNDESCRIBED, Array, Data, symbol

OK, AUTH, SYS, TEMP = 0, 1, 2, 4  # AMQP 1.0 part 5, section 3.3.3.6
CLOSE, RESET = None, -1  # instead of an outcome


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := client.recv(size - len(data))):
        data += part
    if len(data) < size:
        raise EOFError
    return data


def _init(client: socket.socket) -> tuple[str, bytes]:
    """Mechanism and initial response of a sasl-init frame."""
    head = _read(client, 4)
    init = wire.parse_frame(head + _read(client, int.from_bytes(head, "big") - 4))
    assert init.code == wire.INIT
    return str(init["mechanism"]), bytes(init["response"] or b"")


@dataclass
class Gate:
    """Answers each connection with TLS, then SASL, if it is given what is needed for that; then it
    passes everything on to the program that listens on port `behind`, or closes. All that happens
    is noted."""

    behind: int | None = None
    tls: ssl.SSLContext | None = None
    mechanisms: Sequence[str] | None = None
    outcome: int | None = OK
    inits: list[tuple[str, bytes]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)  # that clients have asked for (SNI)

    def __post_init__(self) -> None:
        self.server = socket.create_server((pair.HOST, 0))
        self.port = int(self.server.getsockname()[1])
        self.thread = threading.Thread(target=self._serve, daemon=True)
        if self.tls:
            self.tls.sni_callback = self._note_name
        self.thread.start()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join(pair.DEADLINE_S)
        self.server.close()

    def _note_name(self, _socket: object, name: str | None, _context: object) -> None:
        self.names.append(name)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            client.settimeout(pair.DEADLINE_S)
            with client:
                try:
                    self._answer(client)
                except (OSError, EOFError) as error:
                    self.errors.append(str(error))

    def _answer(self, client: socket.socket) -> None:
        if self.tls:
            client = self.tls.wrap_socket(client, server_side=True)
        if self.mechanisms is not None and not self._authenticate(client, self.mechanisms):
            return
        if self.behind is not None:
            with socket.create_connection((pair.HOST, self.behind)) as server:
                _relay(client, server)
        client.close()

    def _authenticate(self, client: socket.socket, mechanisms: Sequence[str]) -> bool:
        assert _read(client, 8) == wire.SASL_HEADER
        offer = Array(UNDESCRIBED, Data.SYMBOL, *map(symbol, mechanisms))
        client.sendall(wire.SASL_HEADER + wire.frame(wire.MECHANISMS, mechanisms=offer))
        self.inits.append(_init(client))
        if self.outcome is CLOSE:
            return False
        if self.outcome == RESET:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        client.sendall(wire.frame(wire.OUTCOME, code=self.outcome))
        return self.outcome == OK


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Until one of them closes."""
    others = {client: server, server: client}
    while True:
        waiting = isinstance(client, ssl.SSLSocket) and client.pending()
        ready = [client] if waiting else select.select(others, [], [], pair.DEADLINE_S)[0]
        for one in ready:
            data = one.recv(65536)
            if not data:
                return
            others[one].sendall(data)


def server_context(identity: certificates.Identity) -> ssl.SSLContext:
    """With this certificate, and no wish to see the client's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    return context
