"""Bytes that are not what they should be: headers, frames, and the ends of connections."""

import signal
import socket

import faults
import pair
import proxy
import pytest
import wire

both_programs = pytest.mark.parametrize("program", pair.PROGRAMS)
both_sides = pytest.mark.parametrize("side", wire.SIDES)

MALFORMED = "amqp:connection:framing-error: malformed frame"

BROKEN = [
    pytest.param(wire.raw_frame(b"abc", size=5), MALFORMED, id="shorter_than_a_header"),
    pytest.param(bytes(16), MALFORMED, id="without_a_size"),
    pytest.param(wire.raw_frame(b"abcd", doff=1), MALFORMED, id="body_within_header"),
    pytest.param(wire.raw_frame(b"abcd", doff=255), MALFORMED, id="body_beyond_end"),
    pytest.param(
        wire.raw_frame(wire.performative(wire.FLOW), kind=7),
        "framing-error",
        id="unknown_type"
    ),
    pytest.param(
        wire.raw_frame(wire.encode(wire.Described(wire.ulong(0x99), []))),
        "framing-error",
        id="unknown_performative"
    ),
    pytest.param(
        wire.raw_frame(wire.performative(wire.OUTCOME, code=0)),
        "framing-error",
        id="sasl_in_amqp"
    ),
    pytest.param(
        wire.raw_frame(wire.encode("a string")), "framing-error", id="string"
    ),
    pytest.param(wire.frame(wire.FLOW, channel=9), "no such channel: 9", id="unknown_channel"),
]

BROKEN_ON_LINK = [
    pytest.param(wire.transfer(1, handle=77), "no such handle: 77", id="transfer_on_no_link"),
    pytest.param(wire.frame(wire.FLOW, handle=77), "no such handle: 77", id="flow_on_no_link"),
    pytest.param(wire.frame(wire.DETACH, handle=77), "no such handle: 77", id="detach_of_no_link"),
    pytest.param(
        wire.frame(wire.DISPOSITION, role=True, first=9, last=2), "range", id="range_backwards"
    ),
]


@both_programs
@both_sides
@pytest.mark.parametrize("data,reason", BROKEN)
def test_frame_before_open(program: str, side: str, data: bytes, reason: str) -> None:
    """Who connects fails; who listens says so, and waits for somebody else."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.greet()
    peer.send(data)
    faults.end_soon(peer)
    if side == "connects":
        faults.assert_failed(pair.finish(child), reason)
        return
    assert pair.wait_for(child, "error")["exit_code"] == 0
    result, _ = faults.serve(child, 10)
    assert reason in faults.why(result.lines)


@both_programs
@both_sides
@pytest.mark.parametrize("data,reason", BROKEN + BROKEN_ON_LINK)
def test_frame_on_a_link(program: str, side: str, data: bytes, reason: str) -> None:
    """The run has failed, whoever has connected."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.start()
    peer.send(data)
    faults.end_soon(peer)
    faults.assert_failed(pair.finish(child), reason)


@both_programs
@both_sides
def test_frame_larger_than_announced(program: str, side: str) -> None:
    """Refused by its size alone."""
    child, peer = wire.meet(program, side, "-m", "10", "--max-frame", "512", *faults.QUICK)
    peer.start()
    peer.send(wire.raw_frame(b"", size=513))
    faults.end_soon(peer)
    faults.assert_failed(pair.finish(child), MALFORMED)


@both_programs
def test_endless_frame(program: str) -> None:
    """What has come of it is not kept for ever, whoever sends it."""
    child, url = pair.listen(program, "-m", "10", *faults.QUICK)
    peer = wire.connect(url, wire.opposite(program)).start()
    before = faults.resident(child.pid)
    peer.send(wire.raw_frame(b"", size=2**31 - 1))
    for _ in range(48):
        peer.try_send(bytes(1 << 20))
    assert faults.resident(child.pid) - before < 24 << 20


@both_programs
@both_sides
def test_what_the_library_warns_of(program: str, side: str) -> None:
    """It is not ours to print: a frame size that is not allowed is made one that is."""
    child, peer = wire.meet(program, side, "-m", "0", *faults.QUICK)
    peer.open(max_frame=100)
    peer.begin()
    peer.attach()
    pair.send_signal(child, signal.SIGINT)
    peer.wait_for_end()
    result = pair.finish(child)
    pair.assert_codes([result], 128 + signal.SIGINT)
    assert not result.lines


HEADERS = {
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "amqp_0_9_1": b"AMQP\x00\x00\x09\x01",
    "version_2": b"AMQP\x00\x02\x00\x00",
    "unknown_id": b"AMQP\x07\x01\x00\x00",
    "binary": bytes(range(1, 64)),
}


@both_programs
@both_sides
@pytest.mark.parametrize("header", HEADERS)
def test_header(program: str, side: str, header: str) -> None:
    """Something else than AMQP 1.0."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.send(HEADERS[header])
    faults.end_soon(peer)
    if side == "connects":
        faults.assert_failed(pair.finish(child), "")
    else:
        result, _ = faults.serve(child, 10)
        assert faults.why(result.lines)


def sasl(code: int, *fields: object) -> bytes:
    """A frame of SASL's, with its fields in order."""
    body = wire.encode(wire.Described(wire.ulong(code), list(fields)))
    return wire.raw_frame(body, kind=1)


ANONYMOUS = wire.symbol("ANONYMOUS")
WRONG_SASL = {
    "no_mechanism": sasl(wire.INIT),
    "null_mechanism": sasl(wire.INIT, None, b"x"),
    "mechanism_of_another_type": sasl(wire.INIT, 7),
    "empty_mechanism": sasl(wire.INIT, wire.symbol("")),
    "unknown_mechanism": sasl(wire.INIT, wire.symbol("SECRET")),
    "long_mechanism": sasl(wire.INIT, wire.symbol("A" * 10000)),
    "response": sasl(wire.RESPONSE, b"x"),
    "response_without_challenge": sasl(wire.INIT, ANONYMOUS) + sasl(wire.RESPONSE, b"x"),
    "outcome_from_a_client": sasl(wire.OUTCOME, wire.ubyte(0)),
    "mechanisms_from_a_client": sasl(wire.MECHANISMS, ANONYMOUS),
    "amqp_frame": wire.frame(wire.OPEN, container="x"),
    "garbage": b"\xff" * 3 + b"\x00" * 100,
    "another_header": wire.SASL_HEADER,
}


@both_programs
@pytest.mark.parametrize("frames", WRONG_SASL)
def test_sasl(program: str, frames: str) -> None:
    """Whatever a client says before it is known, the next one is served."""
    child, url = pair.listen(program, "-m", "10", *faults.QUICK)
    peer = wire.connect(url)
    peer.send(wire.SASL_HEADER + WRONG_SASL[frames])
    peer.socket.shutdown(socket.SHUT_WR)
    faults.end_soon(peer)
    result, _ = faults.serve(child, 10)
    assert faults.why(result.lines)


# ---- connections that end ----


@both_programs
@both_sides
@pytest.mark.parametrize("end", ["close", "cut", "reset"])
def test_peer_is_gone(program: str, side: str, end: str) -> None:
    """The socket is closed between frames or within one, or reset."""
    child, peer = wire.meet(program, side, "-m", "10", "--timeout", "2s", *faults.QUICK)
    peer.start()
    if program == "psend":
        peer.grant(1)
        peer.expect(wire.TRANSFER)
    if end == "cut":
        peer.send(wire.EMPTY_FRAME[:-2])
    if end == "reset":
        peer.reset()
    else:
        peer.socket.shutdown(socket.SHUT_WR)
        faults.end_soon(peer)
    faults.assert_failed(pair.finish(child), "reset" if end == "reset" else "")


@both_programs
def test_killed_in_the_middle_of_a_message(program: str) -> None:
    """A large message is on its way when one side dies; that it was not the only one can be seen
    from the counts."""
    receiver, url = pair.listen("precv", "--timeout", "5s", *faults.QUICK)
    between = proxy.start(url)
    options = ["--content-size", "4Mi", "--timeout", "5s", *faults.QUICK]
    sender = pair.start("psend", between.url, "-m", "0", *options)
    between.wait_passed(10 << 20)
    victim, left = (sender, receiver) if program == "precv" else (receiver, sender)
    pair.send_signal(victim, signal.SIGKILL)
    result = pair.finish(left)
    faults.assert_failed(result, "")
    assert result.messages["received" if program == "precv" else "sent"] >= 2


@pytest.mark.parametrize("after", [1, 7, 8, 9, 100, 333, 1000, 5000])
def test_reset_anywhere(after: int) -> None:
    """After so many bytes from psend, be it in a header, a frame or between two."""
    receiver, url = pair.listen("precv", *faults.QUICK)
    between = proxy.start(url, cut_after=after)
    sender = pair.start("psend", between.url, "-m", "1m", *faults.QUICK)
    psend = pair.finish(sender)
    faults.assert_failed(psend, "")
    if psend.events[1]["event"] == "ready":  # the link was attached: precv's run is over as well
        faults.assert_failed(pair.finish(receiver), "")
    else:
        faults.serve(receiver, 10)


@both_programs
def test_half_open(program: str) -> None:
    """Nothing arrives any more, and nobody says so: --idle-timeout ends it, without a busy wait."""
    options = {name: [*faults.QUICK] for name in pair.PROGRAMS}
    options[program] += ["--idle-timeout", "600ms"]
    receiver, url = pair.listen("precv", *options["precv"])
    between = proxy.start(url)
    sender = pair.start("psend", between.url, "-m", "0", *options["psend"])
    between.wait_passed(100000)
    between.stall()
    child = sender if program == "psend" else receiver
    faults.assert_waits(child)
    faults.assert_failed(pair.finish(child, 5), "idle-timeout expired")


@both_programs
def test_stalled_for_a_while(program: str) -> None:
    """The network stops and goes on again: nothing is lost, and nothing has failed."""
    receiver, url = pair.listen("precv", "--idle-timeout", "10s")
    between = proxy.start(url)
    sender = pair.start("psend", between.url, "-m", "0", "-d", "1s", "--idle-timeout", "10s")
    between.wait_passed(100000)
    between.stall()
    faults.assert_waits({"psend": sender, "precv": receiver}[program])
    between.go_on()
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_delivered(psend, precv, psend.messages["sent"])


# ---- slow and empty ----


@pytest.mark.parametrize("settle", [[], ["--presettled"]])
def test_byte_at_a_time(settle: list[str]) -> None:
    """Frames arrive in as many pieces as they can."""
    receiver, url = pair.listen("precv")
    between = proxy.start(url, piece=1)
    psend = pair.run("psend", between.url, "-m", str(pair.count(200)), *settle)
    pair.assert_delivered(psend, pair.finish(receiver), pair.count(200))


@both_programs
@both_sides
def test_flood_of_empty_frames(program: str, side: str) -> None:
    """Heartbeats are nothing: they count as no traffic, and cost little."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.start()
    for _ in range(10):
        peer.send(wire.EMPTY_FRAME * pair.count(20000))
    exchange(peer, 10)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert not result.lines
    assert result.summary["messages"]["sent" if program == "psend" else "received"] == 10


@both_programs
def test_heartbeats_are_no_traffic(program: str) -> None:
    """--timeout is for messages, --idle-timeout for connections."""
    options = ["--timeout", "500ms", "--idle-timeout", "300ms"]
    child, peer = wire.meet(program, "listens", "-m", "10", *options, *faults.QUICK)
    peer.start()
    while child.process.poll() is None:
        peer.try_send(wire.EMPTY_FRAME)
        with child.more:
            child.more.wait(0.05)
        if len(child.events) and child.events[-1]["event"] == "summary":
            peer.close()
            break
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.summary["stop_reason"] == "timeout" and not result.lines


def exchange(peer: wire.Peer, count: int) -> None:
    """So many messages between the program and us, all of them settled, then an end in order."""
    if peer.role == wire.RECEIVER:
        peer.grant(count)
        for _ in range(count):
            peer.settle(peer.expect(wire.TRANSFER)["delivery_id"])
    else:
        peer.send(*(wire.transfer(number) for number in range(1, count + 1)))
    peer.answer_close()
