"""One program that listens --forever meets all that others of these tests do, again and again, and
then serves a proper peer as if nothing had been."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import faults
import pair
import pytest
import wire
from measuring import measured

KIB = 1 << 10
REPETITIONS = pair.count(20)


@dataclass(frozen=True)
class Fault:
    """What a peer does on a connection on which nothing was said yet, and how many whole messages
    pass."""

    play: Callable[[wire.Peer], None]
    messages: int = 0


def before_open(data: bytes) -> Fault:
    """Behind the headers."""

    def play(peer: wire.Peer) -> None:
        peer.greet()
        peer.try_send(data)

    return Fault(play)


def on_a_link(*frames: bytes, messages: int = 0) -> Fault:
    """Behind an attach."""

    def play(peer: wire.Peer) -> None:
        peer.start()
        peer.try_send(*frames)

    return Fault(play, messages)


def said(data: bytes) -> Fault:
    """In place of all that should be said."""
    return Fault(lambda peer: peer.try_send(data))


def reset(peer: wire.Peer) -> None:
    """With a link."""
    peer.start()
    peer.reset()


def comes_back(peer: wire.Peer) -> None:
    """A link that ends, and another of its name in a new session."""
    peer.start()
    peer.send(wire.frame(wire.DETACH, handle=0, closed=True), wire.frame(wire.END))
    peer.expect(wire.END)
    peer.begin()
    peer.attach()


def wrong_way_round(peer: wire.Peer) -> None:
    """A link that is refused."""
    peer.role = not peer.role
    peer.start()
    peer.expect(wire.DETACH)


def receives(count: int, *frames: bytes) -> Fault:
    """Of psend's messages, which are not settled; then something else."""

    def play(peer: wire.Peer) -> None:
        peer.start()
        peer.grant(count)
        for _ in range(count):
            peer.expect(wire.TRANSFER)
        peer.try_send(*frames)

    return Fault(play, count)


TO_BOTH = [
    said(b""),
    said(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n"),
    said(b"AM"),
    said(bytes(range(256)) * 20),
    said(wire.AMQP_HEADER),
    said(wire.SASL_HEADER),
    said(wire.SASL_HEADER + wire.frame(wire.INIT)),
    said(wire.AMQP_HEADER + wire.frame(wire.OPEN, container="x")[:-2]),
    said(wire.AMQP_HEADER + wire.frame(wire.OPEN, container="x") + wire.frame(wire.CLOSE)),
    before_open(bytes(16)),
    before_open(wire.raw_frame(b"abc", size=5)),
    before_open(wire.raw_frame(b"abcd", doff=255)),
    before_open(wire.raw_frame(b"abcd", size=2**31)),
    before_open(wire.raw_frame(wire.performative(wire.FLOW), kind=7)),
    before_open(wire.raw_frame(wire.encode(wire.Described(wire.ulong(0x99), [])))),
    before_open(wire.frame(wire.TRANSFER, handle=0)),
    on_a_link(),
    on_a_link(bytes(16)),
    on_a_link(b"\xde\xad\xbe\xef" * 100),
    on_a_link(wire.raw_frame(wire.encode("a string"))),
    on_a_link(wire.frame(wire.FLOW, channel=9)),
    on_a_link(wire.frame(wire.FLOW, handle=9)),
    on_a_link(wire.transfer(1, handle=9)),
    on_a_link(wire.transfer(1, delivery_id=None, more=True)),
    on_a_link(wire.frame(wire.DISPOSITION, role=True, first=9, last=2)),
    on_a_link(wire.frame(wire.DISPOSITION, role=True, first=0, last=2**31 - 1, settled=True)),
    on_a_link(wire.frame(wire.DETACH, handle=0, closed=False)),
    on_a_link(wire.frame(wire.END)),
    on_a_link(wire.frame(wire.CLOSE)),
    on_a_link(wire.frame(wire.CLOSE, error=wire.error("amqp:internal-error", "oh"))),
    on_a_link(wire.EMPTY_FRAME * 1000),
    Fault(reset),
    Fault(comes_back),
    Fault(wrong_way_round),
]

TO_PRECV = [
    on_a_link(*(wire.transfer(number) for number in range(1, 200)), messages=199),
    on_a_link(wire.transfer(1), wire.transfer(2, more=True), messages=1),
    on_a_link(wire.transfer(1), wire.transfer(2, more=True), wire.frame(wire.END), messages=1),
    on_a_link(wire.transfer(1), wire.transfer(2)[:-3], messages=1),
    on_a_link(wire.transfer(1), wire.transfer(2, delivery_id=7), messages=1),
    on_a_link(wire.transfer(1, b"", aborted=True), wire.transfer(2), messages=1),
    on_a_link(
        *(wire.transfer(1, b"y", more=number < 499) for number in range(500)),
        wire.transfer(2),
        messages=2,
    ),
    on_a_link(wire.transfer(1, b"\xff" * 99), wire.transfer(2, b""), messages=2),
]

TO_PSEND = [
    receives(3),
    receives(3, wire.frame(wire.END)),
    receives(3, wire.frame(wire.DETACH, handle=0, closed=True)),
    receives(3, wire.frame(wire.CLOSE)),
    receives(3, wire.raw_frame(b"abc", size=5)),
    receives(3, wire.transfer(1)),
    receives(3, *[wire.frame(wire.DISPOSITION, role=True, first=0, last=2)] * 3),
]


def suffer(url: str, role: bool, all_faults: list[Fault]) -> None:
    """One after the other; the program has seen the end of each before the next begins."""
    for fault in all_faults:
        peer = wire.connect(url, role)
        fault.play(peer)
        if peer.socket.fileno() >= 0:
            peer.socket.shutdown(socket.SHUT_WR)
            faults.end_soon(peer)
            peer.close()
        wire.OPEN_SOCKETS.clear()


@pytest.mark.parametrize(
    "program,all_faults", [("precv", TO_BOTH + TO_PRECV), ("psend", TO_BOTH + TO_PSEND)]
)
def test_survives_all(program: str, all_faults: list[Fault]) -> None:
    """Hundreds of them leave neither memory nor descriptors behind; what came by them is counted,
    and a proper peer gets all that it should."""
    child, url = pair.listen(program, "-m", "0", "--forever", "-q")
    memory, descriptors = [], []
    for _ in range(REPETITIONS):
        suffer(url, wire.opposite(program), all_faults)
        memory.append(faults.resident(child.pid))
        descriptors.append(len(os.listdir(f"/proc/{child.pid}/fd")))
    peer = pair.run(faults.other(program), url, "-m", "1000")
    faults.assert_waits(child)
    pair.send_signal(child, signal.SIGINT)
    result = pair.finish(child)
    pair.assert_codes((peer, result), 0, 128 + signal.SIGINT)
    passed = REPETITIONS * sum(fault.messages for fault in all_faults)
    if program == "precv":
        assert result.messages["received"] == passed + 1000
    else:
        assert peer.messages["received"] == 1000 and peer.messages["lost"] == 0
        assert result.messages["sent"] >= passed + 1000
        pair.assert_accounts(result.summary)
    assert max(descriptors) - min(descriptors) <= 1, descriptors
    if not pair.SANITIZED:
        assert memory[-1] - memory[REPETITIONS // 4] <= 256 * KIB, memory


# ---- many at once ----

CROWD = 300
FEW = 8  # descriptors
GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n",
    wire.AMQP_HEADER + wire.frame(wire.OPEN, container="x") + bytes(16),
    wire.AMQP_HEADER + b"\xff" * 500,
    b"AM",
]


def crowd(url: str) -> list[wire.Peer]:
    """So many connections, which say something and stay as long as they may."""
    peers = []
    for number in range(CROWD):
        peers.append(wire.connect(url))
        peers[-1].try_send(GARBAGE[number % len(GARBAGE)])
    return peers


def come_and_go(url: str) -> None:
    """The same, and each leaves."""
    for peer in crowd(url):
        peer.close()


def settle_down(pid: int) -> float:
    """Waits until a process uses no more processor time, and returns how much it has."""
    deadline_s = time.monotonic() + pair.DEADLINE_S
    before = -1.0
    while (now := faults.cpu_s(pid)) != before:
        assert time.monotonic() < deadline_s
        before = now
        time.sleep(0.05)  # the time in which nothing is to happen
    return now


def polled(child: pair.Child) -> int:
    """How many descriptors its reactor gives to poll() while it waits: what each message costs
    grows with them, and with nothing else that others do."""
    deadline_s = time.monotonic() + pair.DEADLINE_S
    for task in Path(f"/proc/{child.pid}/task").iterdir():
        while (task / "comm").read_text(encoding="ascii") == "reactor\n":
            called = (task / "syscall").read_text(encoding="ascii").split()
            if len(called) > 3:  # its number, and its arguments; else the thread runs
                return int(called[2], 16)
            assert time.monotonic() < deadline_s
    raise AssertionError("no such thread")


BUSY = 5000  # messages: some hundred turns, if there is credit for
SMALL_CREDIT = ["--credit", "20"]


@pytest.mark.parametrize("program", ["precv", "psend"])
def test_a_crowd_takes_no_rate(program: str) -> None:
    """Connections on which nothing happens cost those nothing on which something does: that is
    exact in the number of descriptors, where a time would depend on other processes."""
    credit = {"psend": [], "precv": SMALL_CREDIT}
    child, url = pair.listen(program, "-m", "0", "--forever", "-q", *credit[program])
    peers = crowd(url)
    settle_down(child.pid)
    assert len(os.listdir(f"/proc/{child.pid}/fd")) > CROWD / 4
    other = faults.other(program)
    assert pair.run(other, url, "-m", str(BUSY), *credit[other]).code == 0
    assert polled(child) <= FEW
    assert len(peers) == CROWD


def test_the_quiet_come_back() -> None:
    """When others have been busy, a peer that was quiet is heard as before; and those that stay
    quiet are ended by the idle time-out."""
    options = ["--forever", "-q", "--idle-timeout", "5s", *SMALL_CREDIT, *faults.QUICK]
    receiver, url = pair.listen("precv", *options)
    peers = [wire.connect(url).start() for _ in range(20)]
    assert pair.run("psend", url, "-m", str(BUSY)).code == 0
    assert polled(receiver) <= FEW
    for peer in peers:
        peer.send(wire.transfer(1), wire.transfer(2))
    for peer in peers[:10]:
        peer.leave()
    for peer in peers[10:]:
        peer.wait_for_end()
        assert any(frame.code == wire.CLOSE for frame in peer.seen)
    pair.send_signal(receiver, signal.SIGINT)
    result = pair.finish(receiver)
    assert result.messages["received"] == BUSY + 2 * len(peers)
    assert sum("timeout" in line for line in result.lines) == 10, result.lines


@pytest.mark.measures
def test_garbage_costs_little() -> None:
    """To refuse 300 takes less than a tenth of a second of the processor: of any second, nine
    tenths are left for messages."""
    receiver, url = pair.listen("precv", "--forever", "-q")
    peers = crowd(url)
    with measured():
        assert settle_down(receiver.pid) < 0.1
    assert len(peers) == CROWD


def test_garbage_beside_a_sender() -> None:
    """While one sends, 300 come and go: no message is lost, and each of them is told of."""
    receiver, url = pair.listen("precv", "--forever", "--interval", "50ms", "--verify-sequence")
    sender = pair.start("psend", url, "-m", "0", "--interval", "50ms", *faults.QUICK)
    pair.wait_for(sender, "interval", 2)
    others = threading.Thread(target=come_and_go, args=(url,))
    others.start()
    others.join(pair.DEADLINE_S)
    pair.wait_for_more(sender, "interval")
    pair.send_signal(sender, signal.SIGINT)
    psend = pair.finish(sender)
    pair.send_signal(receiver, signal.SIGINT)
    precv = pair.finish(receiver)
    pair.assert_codes((psend, precv), 128 + signal.SIGINT, 128 + signal.SIGINT)
    assert psend.messages["sent"] == psend.messages["accepted"] == precv.messages["received"] > 0
    assert precv.messages["lost"] == precv.messages["duplicated"] == 0
    assert all(faults.WHERE.fullmatch(line) for line in precv.lines)
    assert 0 < len(precv.lines) <= CROWD
