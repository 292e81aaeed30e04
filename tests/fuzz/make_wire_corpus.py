#!/usr/bin/python3
"""Records the seeds of fuzz_wire: what clients send to precv, one file for each way of sending.

make_wire_corpus.py [FOLDER]: into tests/fuzz/corpus_wire if no other is named. PPAIR_BIN says where
the programs are, as for the tests. Each file begins with the two bytes that fuzz_wire takes first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "system"))

from proton import Described, Message, ulong  # noqa: E402

import amqp  # noqa: E402
import pair  # noqa: E402
import relay  # noqa: E402
import wire  # noqa: E402

FOREVER, COUNTED, REJECTING, ONE_BY_ONE, NARROW, PACED, ANSWERING = range(7)  # fuzz_wire's variants
ALL_AT_ONCE = 0


def psend(*options: str) -> Callable[[str], None]:
    """Our own sender."""

    def send(url: str) -> None:
        assert pair.run("psend", url, "--container-id", "c", "--link-name", "l", *options).code == 0

    return send


def python_links(url: str) -> None:
    """SASL, and two links in one session, one of which is detached and attached again."""
    connection = amqp.connect(url)
    senders = [connection.create_sender("test", name=name) for name in ("a", "b")]
    for number in (1, 2):
        for sender in senders:
            sender.send(amqp.numbered(number, number))
    senders[0].close()
    connection.create_sender("test", name="a").send(amqp.numbered(3, as_ulong=False))
    connection.close()


def scripted(*frames: bytes) -> Callable[[str], None]:
    """Frames that few clients send, on a link that was attached."""

    def play(url: str) -> None:
        peer = wire.connect(url).start()
        peer.send(*frames)
        peer.leave()

    return play


def parts(number: int, payload: bytes, size: int, **fields: object) -> list[bytes]:
    """A message in frames with so many bytes each."""
    pieces = [payload[at : at + size] for at in range(0, len(payload), size)]
    last = len(pieces) - 1
    return [
        wire.transfer(number, piece, more=at < last, **fields) for at, piece in enumerate(pieces)
    ]


def _interleaved() -> list[bytes]:
    """Two links' messages, frame by frame."""
    session = wire.frame(
        wire.ATTACH,
        name="second",
        handle=1,
        role=wire.SENDER,
        source=wire.node(wire.SOURCE),
        target=wire.node(wire.TARGET),
        initial_delivery_count=0,
    )
    first = parts(1, wire.message(1, b"a" * 30), 24)
    second = parts(2, wire.message(1, b"b" * 30), 24, handle=1, settled=False)
    return [session, *(one for both in zip(first, second) for one in both)]


def _question(number: int, **fields: object) -> bytes:
    """A message that asks for an answer."""
    message = Message(id=f"id-{number}", reply_to="to", body=b"x", inferred=True, **fields)
    message.properties = {"sn": ulong(number), "ts": number}
    return bytes(message.encode())


def _answers() -> list[bytes]:
    """A link for answers with little credit, one that asks for an address, messages of several
    kinds, the end of a link."""
    settings = {"role": wire.RECEIVER, "target": wire.node(wire.TARGET)}
    dynamic = Described(ulong(wire.SOURCE), [None, None, None, None, True])
    return [
        wire.frame(
            wire.ATTACH, name="a", handle=1, source=wire.node(wire.SOURCE, "to"), **settings
        ),
        wire.frame(wire.ATTACH, name="b", handle=2, source=dynamic, **settings),
        wire.frame(
            wire.FLOW,
            next_incoming_id=0,
            incoming_window=wire.WINDOW,
            next_outgoing_id=0,
            outgoing_window=wire.WINDOW,
            handle=1,
            delivery_count=0,
            credit=2,
        ),
        wire.transfer(1, _question(1), settled=False),
        wire.transfer(2, _question(2)),
        wire.transfer(3, _question(3)),
        wire.frame(wire.DISPOSITION, role=wire.RECEIVER, first=0, settled=True),
        wire.frame(wire.DETACH, handle=1, closed=True),
        wire.transfer(4, wire.message(4)),
    ]


SEEDS: dict[str, tuple[int, int, Callable[[str], None]]] = {
    "presettled": (FOREVER, ALL_AT_ONCE, psend("-m", "3", "--presettled", "--content-size", "5")),
    "at_least_once": (COUNTED, ALL_AT_ONCE, psend("-m", "3", "--content-size", "5")),
    "held": (ONE_BY_ONE, ALL_AT_ONCE, psend("-m", "4", "--content-size", "5")),
    "multi_frame": (NARROW, ALL_AT_ONCE, psend("-m", "2", "--content-size", "900")),
    "small_pieces": (PACED, 1, psend("-m", "2", "--content-size", "5", "--durable")),
    "sasl_links": (FOREVER, ALL_AT_ONCE, python_links),
    "aborted": (
        REJECTING,
        ALL_AT_ONCE,
        scripted(
            wire.transfer(1),
            wire.transfer(2, more=True, settled=False),
            wire.transfer(2, b"", aborted=True, settled=None),
            wire.transfer(3, settled=False),
            wire.frame(wire.DISPOSITION, role=wire.SENDER, first=2, settled=True),
        ),
    ),
    "round_trip": (ANSWERING, ALL_AT_ONCE, psend("--round-trip", "-m", "3", "--content-size", "5")),
    "answers": (ANSWERING, ALL_AT_ONCE, scripted(*_answers())),
    "interleaved": (FOREVER, ALL_AT_ONCE, scripted(*_interleaved())),
    "heartbeats": (
        REJECTING,
        ALL_AT_ONCE,
        scripted(wire.EMPTY_FRAME * 3, wire.transfer(1), wire.EMPTY_FRAME),
    ),
}


def record(send: Callable[[str], None]) -> bytes:
    """All that precv gets from a client."""
    receiver, url = pair.listen("precv", "--max-frame", "512", "--reply")
    between = relay.start(url)
    between.recorded = bytearray()
    send(between.url)
    pair.finish(receiver)
    assert between.accepted == 1
    recorded = bytes(between.recorded)
    relay.end_all()
    wire.close_sockets()
    return recorded


def main() -> None:
    """One file a seed."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus_wire"
    folder.mkdir(exist_ok=True)
    for name, (variant, piece, send) in SEEDS.items():
        (folder / name).write_bytes(bytes([variant, piece]) + record(send))


if __name__ == "__main__":
    main()
