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

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
SASL_FRAME = 1
MECHANISMS, INIT, OUTCOME = 0x40, 0x41, 0x44  # AMQP 1.0 part 5, section 3.3
OK, AUTH, SYS, TEMP = 0, 1, 2, 4
CLOSE, RESET = None, -1  # instead of an outcome


def _frame(code: int, fields: bytes, count: int) -> bytes:
    body = b"\x00\x53" + bytes([code, 0xC0, len(fields) + 1, count]) + fields
    return struct.pack(">IBBH", 8 + len(body), 2, SASL_FRAME, 0) + body


def _mechanisms(names: Sequence[str]) -> bytes:
    """An array of symbols."""
    symbols = b"".join(bytes([len(name)]) + name.encode() for name in names)
    array = bytes([0xE0, len(symbols) + 2, len(names), 0xA3]) + symbols
    return _frame(MECHANISMS, array, 1)


def _outcome(code: int) -> bytes:
    return _frame(OUTCOME, bytes([0x50, code]), 1)


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := client.recv(size - len(data))):
        data += part
    if len(data) < size:
        raise EOFError
    return data


def _init(client: socket.socket) -> tuple[str, bytes]:
    """Mechanism and initial response of a sasl-init frame with short fields."""
    size = struct.unpack(">I", _read(client, 4))[0]
    body = _read(client, size - 4)[4:]
    assert body[:3] == bytes([0, 0x53, INIT])
    assert body[3] in (0xC0, 0xD0)
    at = 6 if body[3] == 0xC0 else 12
    assert body[at] == 0xA3
    end = at + 2 + body[at + 1]
    mechanism = body[at + 2 : end].decode()
    if body[end] == 0xB0:
        length = struct.unpack(">I", body[end + 1 : end + 5])[0]
        return mechanism, body[end + 5 : end + 5 + length]
    return mechanism, body[end + 2 : end + 2 + body[end + 1]] if body[end] == 0xA0 else b""


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
        assert _read(client, 8) == SASL_HEADER
        client.sendall(SASL_HEADER + _mechanisms(mechanisms))
        self.inits.append(_init(client))
        if self.outcome is CLOSE:
            return False
        if self.outcome == RESET:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        client.sendall(_outcome(self.outcome))
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
