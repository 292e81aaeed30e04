"""A peer that speaks AMQP 1.0 frame by frame, so that it can also speak it wrongly.

Frames are made and read here (AMQP 1.0 part 2, section 2.3 and 2.7); only the values in them are
encoded by python-qpid-proton. A `Peer` is one connection, made by us or to us; a test plays it as a
script, in the order in which things are to happen. Every wait has a deadline.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pair
from proton import Array, Data, Described, symbol, ubyte, uint, ulong, ushort

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
MECHANISMS, INIT, CHALLENGE, RESPONSE, OUTCOME = range(0x40, 0x45)
ERROR, ACCEPTED, REJECTED, SOURCE, TARGET = 0x1D, 0x24, 0x25, 0x28, 0x29
APPLICATION_PROPERTIES, BODY_DATA = 0x74, 0x75

SENDER, RECEIVER = False, True  # roles, as they stand in an attach
WINDOW = 2**31 - 1
UINT_MAX = 2**32 - 1

Fields = dict[str, Any]

# What stands where in a performative, and how it is encoded. None: as it is.
FIELDS: dict[int, list[tuple[str, Any]]] = {
    OPEN: [
        ("container", None),
        ("host", None),
        ("max_frame", uint),
        ("channel_max", ushort),
        ("idle_ms", uint),
    ],
    BEGIN: [
        ("remote_channel", ushort),
        ("next_outgoing_id", uint),
        ("incoming_window", uint),
        ("outgoing_window", uint),
        ("handle_max", uint),
    ],
    ATTACH: [
        ("name", None),
        ("handle", uint),
        ("role", None),
        ("snd_settle_mode", ubyte),
        ("rcv_settle_mode", ubyte),
        ("source", None),
        ("target", None),
        ("unsettled", None),
        ("incomplete_unsettled", None),
        ("initial_delivery_count", uint),
    ],
    FLOW: [
        ("next_incoming_id", uint),
        ("incoming_window", uint),
        ("next_outgoing_id", uint),
        ("outgoing_window", uint),
        ("handle", uint),
        ("delivery_count", uint),
        ("credit", uint),
        ("available", uint),
        ("drain", None),
        ("echo", None),
    ],
    TRANSFER: [
        ("handle", uint),
        ("delivery_id", uint),
        ("tag", None),
        ("message_format", uint),
        ("settled", None),
        ("more", None),
        ("rcv_settle_mode", ubyte),
        ("state", None),
        ("resume", None),
        ("aborted", None),
    ],
    DISPOSITION: [
        ("role", None),
        ("first", uint),
        ("last", uint),
        ("settled", None),
        ("state", None),
    ],
    DETACH: [("handle", uint), ("closed", None), ("error", None)],
    END: [("error", None)],
    CLOSE: [("error", None)],
    MECHANISMS: [("mechanisms", None)],
    OUTCOME: [("code", ubyte)],
}


# ---- encoding ----


def encode(value: object) -> bytes:
    """One AMQP value."""
    data = Data()
    data.put_object(value)
    return bytes(data.encode())


def performative(code: int, /, **fields: Any) -> bytes:
    """With its fields by name; what is left out is null."""
    values = []
    for name, kind in FIELDS[code]:
        value = fields.pop(name, None)
        values.append(value if kind is None or value is None else kind(value))
    assert not fields, f"no such fields: {fields}"
    while values and values[-1] is None:
        values.pop()
    return encode(Described(ulong(code), values))


def raw_frame(
    body: bytes, *, channel: int = 0, kind: int = 0, doff: int = 2, size: int | None = None
) -> bytes:
    """A header that says what it is told to."""
    length = 8 + len(body) if size is None else size
    return struct.pack(">IBBH", length, doff, kind, channel) + body


def frame(code: int, payload: bytes = b"", /, *, channel: int = 0, **fields: Any) -> bytes:
    """A proper frame of a performative."""
    kind = 1 if code >= MECHANISMS else 0
    return raw_frame(performative(code, **fields) + payload, channel=channel, kind=kind)


EMPTY_FRAME = raw_frame(b"")


def node(code: int, address: str | None = "test") -> Described:
    """A source or target."""
    return Described(ulong(code), [address])


def outcome(code: int = ACCEPTED) -> Described:
    """The state of a delivery that has ended."""
    return Described(ulong(code), [])


def error(condition: str, description: str) -> Described:
    """What detach, end and close may have."""
    return Described(ulong(ERROR), [symbol(condition), description])


def message(number: int | None = 1, body: bytes = b"x") -> bytes:
    """With sn if it has a number, and one data section."""
    properties = b""
    if number is not None:
        properties = encode(Described(ulong(APPLICATION_PROPERTIES), {"sn": ulong(number)}))
    return properties + encode(Described(ulong(BODY_DATA), body))


def transfer(number: int, payload: bytes | None = None, /, **fields: Any) -> bytes:
    """Message NUMBER of a link, counted from 1, as the delivery with the id before that; settled
    unless told otherwise."""
    settings = {
        "handle": 0,
        "delivery_id": number - 1,
        "tag": struct.pack(">I", number),
        "message_format": 0,
        "settled": True,
        **fields,
    }
    return frame(TRANSFER, message(number) if payload is None else payload, **settings)


# ---- reading ----


@dataclass(frozen=True)
class Frame:
    """One that has arrived."""

    code: int  # 0: an empty frame
    channel: int
    fields: Fields
    payload: bytes = b""

    def __getitem__(self, name: str) -> Any:
        return self.fields.get(name)


def parse_frame(data: bytes) -> Frame:
    """The whole of a frame."""
    _, doff, _, channel = struct.unpack(">IBBH", data[:8])
    body = data[4 * doff :]
    if not body:
        return Frame(0, channel, {})
    decoder = Data()
    used = decoder.decode(body)
    decoder.rewind()
    decoder.next()
    described = decoder.get_object()
    code = int(described.descriptor)
    names = [name for name, _ in FIELDS.get(code, [])]
    return Frame(code, channel, dict(zip(names, described.value)), body[used:])


@dataclass
class Peer:
    """One end of a connection, in the hands of a test."""

    socket: socket.socket
    role: bool = SENDER  # ours
    buffer: bytes = b""
    seen: list[Frame] = field(default_factory=list)
    link: Frame | None = None  # the program's attach

    def send(self, *parts: bytes) -> None:
        """All of it, in one write if the kernel wants it so."""
        self.socket.sendall(b"".join(parts))

    def try_send(self, *parts: bytes) -> None:
        """The same, to somebody who may already have gone."""
        try:
            self.send(*parts)
        except OSError:
            pass

    def _read(self, count: int) -> bytes | None:
        """Exactly so many bytes, or None if the end comes before."""
        while len(self.buffer) < count:
            try:
                part = self.socket.recv(1 << 16)
            except ConnectionError:
                part = b""
            if not part:
                return None
            self.buffer += part
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def read_header(self) -> bytes | None:
        """AMQP's or SASL's."""
        return self._read(8)

    def read(self) -> Frame | None:
        """The next frame, or None at the end."""
        head = self._read(4)
        if head is None:
            return None
        body = self._read(int.from_bytes(head, "big") - 4)
        if body is None:
            return None
        self.seen.append(parse_frame(head + body))
        return self.seen[-1]

    def expect(self, code: int) -> Frame:
        """The next frame of this kind; others are passed over."""
        while found := self.read():
            if found.code == code:
                return found
        raise AssertionError(f"the program has closed without {code:#x}: {self.seen}")

    def frames(self) -> Iterator[Frame]:
        """All that still come, until the program closes the connection."""
        while found := self.read():
            yield found

    def wait_for_end(self) -> None:
        """Until the program has closed the connection."""
        for _ in self.frames():
            pass

    def close(self) -> None:
        """The socket, without any frame."""
        self.socket.close()

    def reset(self) -> None:
        """The same, so that the other side gets an error."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # -- the usual way --

    def greet(self) -> None:
        """Headers, and SASL if the program begins with it."""
        if not self.accepted:
            self.send(AMQP_HEADER)
        header = self.read_header()
        if header == SASL_HEADER:
            mechanisms = Array(None, Data.SYMBOL, symbol("ANONYMOUS"))
            self.send(SASL_HEADER, frame(MECHANISMS, mechanisms=mechanisms))
            self.expect(INIT)
            self.send(frame(OUTCOME, code=0))
            header = self.read_header()
        assert header == AMQP_HEADER, header
        if self.accepted:
            self.send(AMQP_HEADER)

    accepted: bool = False  # the program has made the connection

    def open(self, **fields: Any) -> None:
        """The connection, from the header on."""
        self.greet()
        self.send(frame(OPEN, container="scripted", **fields))
        self.expect(OPEN)

    def begin(self, window: int = WINDOW, channel: int = 0) -> None:
        """A session, answered or asked for."""
        fields = {"next_outgoing_id": 0, "incoming_window": window, "outgoing_window": WINDOW}
        if self.accepted:
            fields["remote_channel"] = self.expect(BEGIN).channel
        self.send(frame(BEGIN, channel=channel, **fields))
        if not self.accepted:
            self.expect(BEGIN)

    def attach_frame(self, name: str = "scripted", **fields: Any) -> bytes:
        """Our attach of a link with this name."""
        if self.role == SENDER:
            fields = {"initial_delivery_count": 0, **fields}
        ends = {"source": node(SOURCE), "target": node(TARGET)}
        return frame(
            ATTACH, **{"name": name, "handle": 0, "role": self.role, **ends, **fields}
        )

    def attach(self, **fields: Any) -> Frame:
        """A link, answered or asked for. Returns the program's side of it."""
        if self.accepted:
            asked = self.expect(ATTACH)
            self.send(self.attach_frame(asked["name"], **fields))
            self.link = asked
        else:
            self.send(self.attach_frame(**fields))
            self.link = self.expect(ATTACH)
        return self.link

    def start(self, window: int = WINDOW, **fields: Any) -> Peer:
        """All of that."""
        self.open()
        self.begin(window)
        self.attach(**fields)
        return self

    def flow_frame(self, credit: int, delivery_count: int = 0, **fields: Any) -> bytes:
        """A grant; the session's window is as good as endless."""
        settings = {
            "next_incoming_id": 0,
            "incoming_window": WINDOW,
            "next_outgoing_id": 0,
            "outgoing_window": WINDOW,
            "handle": 0,
            "delivery_count": delivery_count,
            "credit": credit,
            **fields,
        }
        return frame(FLOW, **settings)

    def grant(self, credit: int, **fields: Any) -> None:
        """Sends that."""
        self.send(self.flow_frame(credit, **fields))

    def settle(self, first: int, last: int | None = None, code: int = ACCEPTED) -> None:
        """What the program has sent."""
        self.send(
            frame(
                DISPOSITION,
                role=RECEIVER,
                first=first,
                last=first if last is None else last,
                settled=True,
                state=outcome(code),
            )
        )

    def leave(self) -> None:
        """Detaches, ends and closes, and waits for the program to do the same."""
        self.send(frame(DETACH, handle=0, closed=True), frame(END), frame(CLOSE))
        self.wait_for_end()

    def answer_close(self) -> None:
        """Waits for the program to close the connection in order."""
        self.expect(CLOSE)
        self.try_send(frame(CLOSE))
        self.wait_for_end()


# ---- who connects to whom ----


@dataclass
class Listener:
    """A port to which a program connects."""

    server: socket.socket

    @property
    def url(self) -> str:
        """Where it can be reached."""
        return f"{pair.HOST}:{self.server.getsockname()[1]}/test"

    def accept(self, role: bool = SENDER) -> Peer:
        """The next connection."""
        client, _ = self.server.accept()
        return _prepare(client, role, accepted=True)


def _prepare(connected: socket.socket, role: bool, accepted: bool) -> Peer:
    connected.settimeout(pair.DEADLINE_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer = Peer(connected, role, accepted=accepted)
    OPEN_SOCKETS.append(connected)
    return peer


OPEN_SOCKETS: list[socket.socket] = []


def listen() -> Listener:
    """On a free port."""
    server = socket.create_server((pair.HOST, 0))
    server.settimeout(pair.DEADLINE_S)
    OPEN_SOCKETS.append(server)
    return Listener(server)


def connect(url: str, role: bool = SENDER) -> Peer:
    """To a program that listens."""
    host, port = url.split("/")[0].split(":")
    return _prepare(socket.create_connection((host, int(port))), role, accepted=False)


def close_sockets() -> None:
    """What a test has left open."""
    while OPEN_SOCKETS:
        OPEN_SOCKETS.pop().close()


SIDES = ("connects", "listens")  # the program


def opposite(program: str) -> bool:
    """The role of a scripted peer of PROGRAM."""
    return RECEIVER if program == "psend" else SENDER


def meet(program: str, side: str, *options: str) -> tuple[pair.Child, Peer]:
    """Starts PROGRAM, and a connection between it and us on which nothing was said yet."""
    if side == "listens":
        child, url = pair.listen(program, *options)
        return child, connect(url, opposite(program))
    listener = listen()
    child = pair.start(program, listener.url, *options)
    return child, listener.accept(opposite(program))
