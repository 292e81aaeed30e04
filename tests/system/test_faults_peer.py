"""Peers that stop half-way, leave, come back, or never answer."""

import signal
import socket
import time

import faults
import pair
import pytest
import wire

both_programs = pytest.mark.parametrize("program", pair.PROGRAMS)
both_sides = pytest.mark.parametrize("side", wire.SIDES)

STAGES = ["connects", "greets", "opens", "begins"]


def advance(peer: wire.Peer, stage: str) -> None:
    """Up to there, and no further."""
    steps = STAGES.index(stage)
    if steps >= 1:
        peer.greet()
    if steps >= 2:
        peer.send(wire.frame(wire.OPEN, container="scripted"))
        peer.expect(wire.OPEN)
    if steps >= 3:
        peer.begin()


# ---- silence ----


@both_programs
@pytest.mark.parametrize("stage", STAGES)
def test_server_that_does_no_more(program: str, stage: str) -> None:
    """--connect-timeout ends it, and it was waited for without working."""
    child, peer = wire.meet(program, "connects", "--connect-timeout", "500ms")
    advance(peer, stage)
    faults.assert_waits(child, 0.2)
    result = pair.finish(child)
    reason = "no attached link" if stage in ("opens", "begins") else "no answer"
    faults.assert_failed(result, f"{reason} within the connect timeout")
    assert 0.5 <= result.seconds < 0.5 + faults.PATIENCE_S


@both_programs
@pytest.mark.parametrize("stage", STAGES)
def test_client_that_does_no_more(program: str, stage: str) -> None:
    """It is nothing to others, and not waited for longer than --close-timeout."""
    child, peer = wire.meet(program, "listens", "-m", "10", *faults.QUICK)
    advance(peer, stage)
    faults.assert_waits(child, 0.2)
    result, _ = faults.serve(child, 10)
    assert not result.lines


@both_programs
@pytest.mark.parametrize("stage", [*STAGES, "says_little"])
def test_client_that_stays(program: str, stage: str) -> None:
    """--connect-timeout is for those that are accepted, too. It does not fail the run, and whoever
    had a link stays."""
    timeout = ["--connect-timeout", "500ms", "--forever", "-m", "0"]
    child, url = pair.listen(program, *timeout, *faults.QUICK)
    peer, linked, silent = (wire.connect(url, wire.opposite(program)) for _ in range(3))
    linked.start()
    if stage == "says_little":
        peer.send(b"AM")
    else:
        advance(peer, stage)
    error = pair.wait_for(child, "error")
    faults.end_soon(peer)
    assert error["exit_code"] == 0
    faults.end_soon(silent)
    if stage in ("opens", "begins"):
        assert any(frame.code == wire.CLOSE for frame in peer.seen)
    linked.leave()
    pair.send_signal(child, signal.SIGINT)
    result = pair.finish(child)
    pair.assert_codes([result], 128 + signal.SIGINT)
    assert len(result.lines) == 2
    for line in result.lines:
        assert faults.why([line]) == "no attached link within the connect timeout"


@both_programs
@both_sides
def test_close_is_never_answered(program: str, side: str) -> None:
    """All is sent and settled: the run was a success, after --close-timeout."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.start()
    if program == "psend":
        peer.grant(10)
        for _ in range(10):
            peer.settle(peer.expect(wire.TRANSFER)["delivery_id"])
    else:
        peer.send(*(wire.transfer(number) for number in range(1, 11)))
    peer.expect(wire.CLOSE)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert not result.lines and result.seconds < 0.3 + faults.PATIENCE_S


@pytest.mark.parametrize("end", ["close", "end", "detach"])
@both_sides
def test_goes_on_after_the_end_was_asked_for(side: str, end: str) -> None:
    """A sender does not care that precv has had enough, and closes nothing: precv leaves."""
    child, peer = wire.meet("precv", side, "-m", "10", *faults.QUICK)
    peer.start()
    peer.send(*(wire.transfer(number) for number in range(1, 11)))
    code = {"close": wire.CLOSE, "end": wire.END, "detach": wire.DETACH}[end]
    peer.expect(wire.DETACH if code == wire.END else code)
    peer.try_send(*(wire.transfer(number) for number in range(11, 1000)))
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 10 and not result.lines


# ---- links that end ----


def use(peer: wire.Peer) -> None:
    """One message passes, whatever the direction."""
    if peer.role == wire.RECEIVER:
        peer.grant(1)
        peer.settle(peer.expect(wire.TRANSFER)["delivery_id"])
    else:
        peer.send(wire.transfer(1))


MOVED = {"psend": "sent", "precv": "received"}
TOO_MUCH = wire.error("amqp:resource-limit-exceeded", "too much")


@both_programs
@both_sides
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
def test_peer_detaches(program: str, side: str, closed: bool) -> None:
    """In order, but before all was done: short."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.start()
    use(peer)
    peer.send(wire.frame(wire.DETACH, handle=0, closed=closed))
    peer.expect(wire.DETACH)
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.summary["stop_reason"] == "detached"
    assert result.messages[MOVED[program]] == 1


ENDS = {
    "detach": (wire.frame(wire.DETACH, handle=0, closed=True, error=TOO_MUCH), "link of "),
    "end": (wire.frame(wire.END, error=TOO_MUCH), "session of "),
    "close": (wire.frame(wire.CLOSE, error=TOO_MUCH), ""),
}


@both_programs
@both_sides
@pytest.mark.parametrize("end", ENDS)
def test_peer_ends_with_an_error(program: str, side: str, end: str) -> None:
    """Link, session or connection: named, with the peer's reason."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.start()
    use(peer)
    frame, what = ENDS[end]
    peer.send(frame)
    peer.answer_close()
    result = pair.finish(child)
    faults.assert_failed(result, "amqp:resource-limit-exceeded: too much")
    assert result.lines[0].startswith(f"{program}: {what}connection ")
    assert result.messages[MOVED[program]] == 1


@both_programs
@both_sides
def test_peer_ends_the_session_only(program: str, side: str) -> None:
    """The connection stays, and is closed by the program."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.start()
    use(peer)
    peer.send(wire.frame(wire.END))
    peer.expect(wire.END)
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.messages[MOVED[program]] == 1


# ---- links that come back ----


@pytest.mark.parametrize("again", ["same_name", "other_name", "new_session"])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
def test_sender_comes_back(again: str, closed: bool) -> None:
    """To a precv that listens --forever, on one connection: all is counted. A link that was not
    closed goes on with its numbers, any other begins its own."""
    child, peer = wire.meet("precv", "listens", "-m", "20", "--forever", *faults.QUICK)
    peer.start()
    peer.send(*(wire.transfer(number) for number in range(1, 11)))
    peer.send(wire.frame(wire.DETACH, handle=0, closed=closed))
    peer.expect(wire.DETACH)
    first = 10  # the next delivery's id
    if again == "new_session":
        peer.send(wire.frame(wire.END))
        peer.expect(wire.END)
        peer.begin()
        first = 0
    peer.attach(name="other" if again == "other_name" else "scripted")
    assert peer.expect(wire.FLOW)["credit"] == 10
    numbers_before = 0 if closed or again == "other_name" else 10
    for number in range(10):
        payload = wire.message(numbers_before + number + 1)
        peer.send(wire.transfer(number + 1, payload, delivery_id=first + number))
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 20 and not result.lines
    assert result.messages["lost"] == result.messages["duplicated"] == 0


@pytest.mark.parametrize("name", ["scripted", "other"])
@pytest.mark.parametrize("end", ["leaves", "is_cut"])
def test_sender_comes_back_before_all_is_taken(name: str, end: str) -> None:
    """A slow precv still has messages of a link when the same sender attaches the next: both are
    taken to the end, at its own pace."""
    options = ["-m", "20", "--forever", "--receive-rate", "100", "--credit", "20"]
    child, peer = wire.meet("precv", "listens", *options, *faults.QUICK)
    peer.start()
    peer.send(*(wire.transfer(number) for number in range(1, 11)))
    peer.send(wire.frame(wire.DETACH, handle=0, closed=True), peer.attach_frame(name))
    peer.expect(wire.ATTACH)
    peer.send(*(wire.transfer(number) for number in range(11, 21)))
    if end == "is_cut":
        peer.socket.shutdown(socket.SHUT_WR)
        peer.wait_for_end()
    else:
        peer.send(wire.frame(wire.CLOSE))
        peer.wait_for_end()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 20


@pytest.mark.parametrize("again", ["same_name", "other_name", "new_session"])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
def test_receiver_comes_back(again: str, closed: bool) -> None:
    """To a psend that listens --forever: it gets the rest; what it had not settled stays so."""
    child, peer = wire.meet("psend", "listens", "-m", "10", "--forever", *faults.QUICK)
    peer.start()
    peer.grant(4)
    for _ in range(4):
        delivery_id = peer.expect(wire.TRANSFER)["delivery_id"]
    peer.settle(0, 2)
    peer.send(wire.frame(wire.DETACH, handle=0, closed=closed))
    peer.expect(wire.DETACH)
    assert delivery_id == 3
    first = 4
    if again == "new_session":
        peer.send(wire.frame(wire.END))
        peer.expect(wire.END)
        peer.begin()
        first = 0
    link = peer.attach(name="other" if again == "other_name" else "scripted")
    peer.grant(6, delivery_count=link["initial_delivery_count"] or 0, next_incoming_id=first)
    for number in range(6):
        assert peer.expect(wire.TRANSFER)["delivery_id"] == first + number
    peer.settle(first, first + 5)
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.messages["sent"] == 10 and not result.lines
    assert result.messages["accepted"] == 9 and result.messages["unsettled"] == 1
    pair.assert_accounts(result.summary)


@both_programs
def test_attaches_twice(program: str) -> None:
    """The same name on another handle, while the first is attached."""
    child, peer = wire.meet(program, "listens", "-m", "10", *faults.QUICK)
    peer.start()
    peer.send(peer.attach_frame(handle=1))
    faults.end_soon(peer)
    faults.assert_failed(pair.finish(child), "link name already attached")


@both_programs
def test_attaches_the_wrong_way_round(program: str) -> None:
    """A sender to a sender, a receiver to a receiver: refused, with advice; the next is served."""
    child, url = pair.listen(program, "-m", "10", *faults.QUICK)
    peer = wire.connect(url, not wire.opposite(program))
    peer.start()
    refusal = peer.expect(wire.DETACH)
    assert "attach a" in str(refusal["error"])
    peer.close()
    faults.serve(child, 10)


def test_a_receiver_that_goes_before_the_eos() -> None:
    """There is no credit for it, and nobody who could grant some: nothing is waited for."""
    words = "-m 0 -d 100ms --send-eos 1 --close-timeout 300s"
    psend, peer = wire.meet("psend", "connects", *words.split())
    peer.start()
    peer.grant(1)
    peer.settle(peer.expect(wire.TRANSFER)["delivery_id"])
    time.sleep(0.5)
    peer.send(wire.frame(wire.DETACH, handle=0, closed=True))
    peer.answer_close()
    assert pair.finish(psend).code == faults.SHORT
