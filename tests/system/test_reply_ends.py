"""precv --reply: messages and answers that are under way when a link or a connection ends."""

from __future__ import annotations

from collections.abc import Callable

import faults
import pair
import pytest
import wire
from proton import Message, ulong

REFUSED = wire.error("amqp:not-found", "there is no such node")
FORCED = wire.error("amqp:connection:forced", "bye")
LONG = b"long" * 50_000  # more than precv hands over at a time
BROKER = 1  # the channel of a broker's session for answers


def request(number: int, body: bytes = b"body") -> bytes:
    """Which asks for an answer."""
    settings = {"id": f"id-{number}", "reply_to": "answers", "body": body, "inferred": True}
    return bytes(Message(properties={"sn": ulong(number)}, **settings).encode())


def read_answer(peer: wire.Peer, encoded: bytes = b"") -> Message:
    """The next one, or what is left of one, all of it."""
    more = True
    while more:
        frame = peer.expect(wire.TRANSFER)
        more = frame["more"]
        assert not frame["aborted"]
        encoded += frame.payload
    answer = Message()
    answer.decode(encoded)
    return answer


def wait_until_it_waits(precv: pair.Child, cause: str) -> None:
    """As an interval says."""
    number = 1
    while not pair.wait_for(precv, "interval", number)["time_s"][cause] > 0:
        number += 1


# ---- by way of a broker, which goes ----


def start_precv(*options: str) -> tuple[pair.Child, wire.Listener]:
    """It connects to us."""
    broker = wire.listen()
    words = ("--reply", "--interval", "50ms", *faults.QUICK, *options)
    return pair.start("precv", broker.url, *words), broker


def accept(broker: wire.Listener) -> wire.Peer:
    """A connection with a link on which there is credit for messages."""
    peer = broker.accept(wire.SENDER)
    peer.open(max_frame=512)
    peer.begin()
    peer.attach()
    peer.expect(wire.FLOW)
    return peer


def begin_session(peer: wire.Peer, window: int = wire.WINDOW) -> wire.Frame:
    """The one for answers. Returns the attach of its link."""
    peer.begin(window, channel=BROKER)
    return peer.expect(wire.ATTACH)


def attach_answers(peer: wire.Peer, window: int = wire.WINDOW) -> None:
    """As precv asks; there is no credit yet."""
    asked = begin_session(peer, window)
    settings = {"role": wire.RECEIVER, "initial_delivery_count": None, "channel": BROKER}
    frame = {"name": asked["name"], "handle": 0, "target": wire.node(wire.TARGET, "answers")}
    peer.send(wire.frame(wire.ATTACH, source=wire.node(wire.SOURCE), **frame, **settings))


def grant(peer: wire.Peer, window: int = wire.WINDOW) -> None:
    """For answers."""
    peer.grant(10, channel=BROKER, incoming_window=window)


def wait_opening(precv: pair.Child, peer: wire.Peer) -> None:
    """The broker says nothing about the link."""
    peer.expect(wire.ATTACH)
    wait_until_it_waits(precv, "credit")


def wait_for_credit(precv: pair.Child, peer: wire.Peer) -> None:
    """The link is attached, and that is all."""
    attach_answers(peer)
    wait_until_it_waits(precv, "credit")


def wait_for_window(precv: pair.Child, peer: wire.Peer) -> None:
    """The answer is begun."""
    attach_answers(peer, window=2)
    grant(peer, window=2)
    for _ in range(2):
        assert peer.expect(wire.TRANSFER)["more"]
    wait_until_it_waits(precv, "session")


def close(peer: wire.Peer) -> None:
    """In order."""
    peer.send(wire.frame(wire.CLOSE))


def force(peer: wire.Peer) -> None:
    """As a broker that is shut down."""
    peer.send(wire.frame(wire.CLOSE, error=FORCED))


WAITS = {"opening": wait_opening, "credit": wait_for_credit, "window": wait_for_window}
ENDS: dict[str, Callable[[wire.Peer], None]] = {
    "close": close,
    "forced": force,
    "reset": wire.Peer.reset,
    "fin": wire.Peer.close,
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("end", ENDS)
def test_a_broker_that_goes_while_a_message_waits(end: str, wait: str) -> None:
    """Its answer cannot be sent any more, and nothing else is tried: the run ends as any does."""
    precv, broker = start_precv("--connect-timeout", "300s")
    peer = accept(broker)
    peer.send(wire.transfer(1, request(1, LONG), settled=False))
    WAITS[wait](precv, peer)
    ENDS[end](peer)
    result = pair.finish(precv)
    assert result.code == (0 if end == "close" else faults.CONNECTION)
    assert (result.messages["received"], result.messages["unanswerable"]) == (1, 1)
    assert result.messages["answers"] == 0 and "refused" not in result.stderr
    assert "connection is gone" in result.lines[-1]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@pytest.mark.parametrize("end", ENDS)
def test_a_broker_that_comes_back(end: str, settled: bool) -> None:
    """By the next connection a new link is opened. A message that is not settled is brought again,
    and has its answer then; the other one has none."""
    precv, broker = start_precv("--reconnect", "--connect-timeout", "300s", "-m", "2")
    peer = accept(broker)
    peer.send(wire.transfer(1, request(1), settled=settled))
    wait_for_credit(precv, peer)
    ENDS[end](peer)
    again = accept(broker)
    numbers = [2] if settled else [1, 2]
    for at, number in enumerate(numbers, 1):
        again.send(wire.transfer(at, request(number)))
    attach_answers(again)
    grant(again)
    assert [read_answer(again).correlation_id for _ in numbers] == [f"id-{n}" for n in numbers]
    again.answer_close()
    result = pair.finish(precv)
    pair.assert_codes([result], 0)
    unanswerable = 1 if settled else 0
    assert result.messages["answers"] == len(numbers)
    assert result.messages["unanswerable"] == unanswerable


def test_a_refusal_is_of_its_connection() -> None:
    """The next may lead to another host, where there is such an address."""
    precv, broker = start_precv("--reconnect", "-m", "2")
    peer = accept(broker)
    peer.send(wire.transfer(1, request(1), settled=False))
    begin_session(peer)
    peer.send(wire.frame(wire.END, channel=BROKER, error=REFUSED))
    peer.expect(wire.DISPOSITION)
    peer.reset()
    again = accept(broker)
    again.send(wire.transfer(1, request(2)))
    attach_answers(again)
    grant(again)
    assert read_answer(again).correlation_id == "id-2"
    again.answer_close()
    result = pair.finish(precv)
    assert (result.messages["answers"], result.messages["unanswerable"]) == (1, 1)


# ---- an asker that sends no more, and stays for its answers ----


def ask_and_detach(url: str, settled: bool) -> wire.Peer:
    """Its window lets two frames through, of the answer's many; all of it is precv's to send."""
    peer = wire.connect(url, wire.SENDER)
    peer.open(max_frame=512)
    peer.begin(window=2)
    peer.attach()
    source, target = wire.node(wire.SOURCE, "answers"), wire.node(wire.TARGET)
    fields = {"name": "answers", "handle": 1, "role": wire.RECEIVER}
    peer.send(wire.frame(wire.ATTACH, source=source, target=target, **fields))
    peer.expect(wire.ATTACH)
    peer.grant(10, handle=1, incoming_window=2)
    peer.send(wire.transfer(1, request(1, LONG[:20_000]), settled=settled))
    peer.send(wire.frame(wire.DETACH, handle=0, closed=True))
    return peer


def take_rest(peer: wire.Peer) -> Message:
    """Opens the window when precv has left its link as well, and takes the answer."""
    first = [peer.expect(wire.TRANSFER) for _ in range(2)]
    assert peer.expect(wire.DETACH)["handle"] == 0
    peer.grant(10, handle=1, next_incoming_id=2)
    return read_answer(peer, b"".join(frame.payload for frame in first))


def test_an_asker_that_detaches_and_stays() -> None:
    """Gets all of its answer before the run ends."""
    precv, url = pair.listen("precv", "--reply", "--close-timeout", "60s")
    peer = ask_and_detach(url, settled=True)
    assert bytes(take_rest(peer).body) == LONG[:20_000]
    peer.answer_close()
    result = pair.finish(precv)
    assert result.code == 0 and result.messages["answers"] == 1
    assert result.summary["stop_reason"] == "detached"


def test_an_asker_that_detaches_and_settles_late() -> None:
    """The run ends when it has."""
    precv, url = pair.listen("precv", "--reply", "--close-timeout", "60s")
    peer = ask_and_detach(url, settled=False)
    assert bytes(take_rest(peer).body) == LONG[:20_000]
    peer.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        peer.read()
    peer.socket.settimeout(pair.DEADLINE_S)
    peer.settle(0)
    peer.answer_close()
    result = pair.finish(precv)
    assert result.code == 0 and result.messages["answers"] == 1


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_an_asker_that_detaches_and_takes_nothing(settled: bool) -> None:
    """It is waited for as long as the close timeout says."""
    precv, url = pair.listen("precv", "--reply", *faults.QUICK)
    peer = ask_and_detach(url, settled)
    peer.answer_close()
    result = pair.finish(precv)
    assert result.code == 0 and result.messages["answers"] == 1


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_an_asker_that_detaches_and_goes(settled: bool) -> None:
    """There is nobody to wait for."""
    precv, url = pair.listen("precv", "--reply", "--close-timeout", "300s")
    peer = ask_and_detach(url, settled)
    peer.expect(wire.DETACH)
    peer.send(wire.frame(wire.CLOSE))
    peer.wait_for_end()
    assert pair.finish(precv).code == 0
