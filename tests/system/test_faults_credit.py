"""Peers that grant, drain and settle as they should not."""

import faults
import pair
import pytest
import wire
from measuring import measured

both_sides = pytest.mark.parametrize("side", wire.SIDES)


# ---- credit from a receiver ----


@pytest.mark.measures
@both_sides
def test_no_credit(side: str) -> None:
    """--timeout ends it, short; the time was spent waiting for credit, and not with work."""
    child, peer = wire.meet("psend", side, "-m", "10", "--timeout", "600ms", *faults.QUICK)
    peer.start()
    pair.wait_for(child, "ready")
    faults.assert_waits(child)
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.summary["stop_reason"] == "timeout" and not result.lines
    assert result.messages["sent"] == 0
    with measured():
        assert result.summary["limited_by"] == "credit"
        assert result.summary["time_s"]["credit"] > 0.9 * result.summary["wall_s"] > 0.5
    assert result.summary["credit"]["stalls"] == 1


@both_sides
def test_credit_ends(side: str) -> None:
    """The same after some messages."""
    child, peer = wire.meet("psend", side, "-m", "10", "--timeout", "400ms", *faults.QUICK)
    peer.start()
    peer.grant(4)
    faults.receive(peer, 4)
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.messages["sent"] == result.messages["accepted"] == 4
    assert result.summary["limited_by"] == "credit"


@both_sides
def test_largest_credit(side: str) -> None:
    """As many as the library can count."""
    child, peer = wire.meet("psend", side, "-m", "100", *faults.QUICK)
    peer.start()
    peer.grant(2**31 - 1)
    faults.receive(peer, 100)
    pair.assert_codes([pair.finish(child)], 0)


@both_sides
@pytest.mark.parametrize("credit", [2**31, 2**32 - 1])
def test_credit_that_the_library_cannot_count(side: str, credit: int) -> None:
    """Said in one line, rather than waited for in vain."""
    child, peer = wire.meet("psend", side, "-m", "10", "--timeout", "500ms", *faults.QUICK)
    peer.start()
    peer.grant(credit)
    result = pair.finish(child)
    faults.assert_failed(result, "granted more than 2147483647 messages")
    assert result.messages["sent"] == 0


@both_sides
def test_credit_is_taken_back(side: str) -> None:
    """A grant of 0 after one of 100: what is left of it is void, and the next is honoured."""
    child, peer = wire.meet("psend", side, "-m", "1m", "--max-unsettled", "5", *faults.QUICK)
    peer.start()
    peer.grant(100)
    for _ in range(5):
        peer.expect(wire.TRANSFER)
    peer.grant(0, delivery_count=5, next_incoming_id=5)
    peer.settle(0, 4)
    peer.grant(2, delivery_count=5, next_incoming_id=5)
    for number in (5, 6):
        assert peer.expect(wire.TRANSFER)["delivery_id"] == number
    peer.settle(5, 6)
    peer.send(wire.frame(wire.CLOSE))
    assert not [frame for frame in peer.frames() if frame.code == wire.TRANSFER]
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.messages["sent"] == result.messages["accepted"] == 7


@both_sides
def test_drain(side: str) -> None:
    """With messages left, all credit is used; without any, it is given back."""
    child, peer = wire.meet("psend", side, "-m", "5", "--timeout", "5s", *faults.QUICK)
    peer.start()
    peer.grant(3, drain=True)
    for _ in range(3):
        last = peer.expect(wire.TRANSFER)
    peer.grant(10, delivery_count=3, next_incoming_id=3, drain=True)
    for _ in range(2):
        last = peer.expect(wire.TRANSFER)
    answer = peer.expect(wire.FLOW)
    assert last["delivery_id"] == 4
    assert answer["credit"] == 0 and answer["delivery_count"] == 13
    peer.settle(0, 4)
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["accepted"] == 5


@both_sides
def test_closed_session_window(side: str) -> None:
    """Credit, and a window of nothing: the time is the session's."""
    child, peer = wire.meet("psend", side, "-m", "10", "--timeout", "600ms", *faults.QUICK)
    peer.start(window=0)
    peer.grant(10, incoming_window=0)
    pair.wait_for(child, "ready")
    faults.assert_waits(child)
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], faults.SHORT)
    assert result.summary["limited_by"] == "session"
    pair.assert_accounts(result.summary)


# ---- settling by a receiver ----


@both_sides
def test_settles_twice(side: str) -> None:
    """Each once more, when psend has seen the first: it counts once."""
    child, peer = wire.meet("psend", side, "-m", "10", "--max-unsettled", "1", *faults.QUICK)
    peer.start()
    peer.grant(10)
    for number in range(10):
        assert peer.expect(wire.TRANSFER)["delivery_id"] == number
        if number:
            peer.settle(number - 1, code=wire.REJECTED)
        peer.settle(number)
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["accepted"] == 10 and not result.lines
    pair.assert_accounts(result.summary)
    assert result.summary["settlement_ns"]["count"] == 10


@pytest.mark.parametrize(
    "first,last", [(0, 9), (5, 5), (1000, 5000), (wire.UINT_MAX - 3, wire.UINT_MAX), (0, 2**31 - 1)]
)
@both_sides
def test_settles_what_was_never_sent(side: str, first: int, last: int) -> None:
    """It means nothing, before and after there are messages."""
    child, peer = wire.meet("psend", side, "-m", "3", *faults.QUICK)
    peer.start()
    peer.settle(first, last)
    peer.grant(3)
    for number in range(3):
        peer.expect(wire.TRANSFER)
    peer.settle(0, 2)
    peer.try_send(wire.frame(wire.DISPOSITION, role=True, first=first, last=last, settled=True))
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["accepted"] == 3 and not result.lines
    pair.assert_accounts(result.summary)


@pytest.mark.parametrize("state", [None, wire.Described(wire.ulong(0x99), []), wire.outcome(0x23)])
@both_sides
def test_settles_without_an_outcome(side: str, state: object) -> None:
    """None, an unknown one, and "received", which is none."""
    child, peer = wire.meet("psend", side, "-m", "2", *faults.QUICK)
    peer.start()
    peer.grant(2)
    for number in range(2):
        peer.expect(wire.TRANSFER)
    peer.send(
        wire.frame(wire.DISPOSITION, role=True, first=0, last=1, settled=True, state=state)
    )
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["no_outcome"] == 2
    pair.assert_accounts(result.summary)


@pytest.mark.parametrize("settle", [[], ["--presettled"]])
@pytest.mark.parametrize("settled", [True, False])
@both_sides
def test_transfers_to_a_sender(side: str, settled: bool, settle: list[str]) -> None:
    """The library takes them for messages of ours, and credit no longer comes through: the link is
    of no use."""
    child, peer = wire.meet("psend", side, "-m", "9", *settle, "--timeout", "1s", *faults.QUICK)
    peer.start()
    peer.grant(4)
    for _ in range(4):
        peer.expect(wire.TRANSFER)
    peer.send(*(wire.transfer(number, settled=settled) for number in range(1, 10)))
    peer.answer_close()
    result = pair.finish(child)
    faults.assert_failed(result, "amqp:not-allowed: the peer has sent a message to a sender")
    assert result.messages["sent"] == 4
    if not settle:
        assert result.messages["unsettled"] == 4  # they were not taken for outcomes


# ---- a sender that does not count its credit ----


@both_sides
def test_more_than_the_credit(side: str) -> None:
    """They are counted, and precv goes on: what was taken in excess is not granted again."""
    child, peer = wire.meet("precv", side, "--credit", "10", *faults.QUICK)
    peer.start()
    assert peer.expect(wire.FLOW)["credit"] == 10
    peer.send(*(wire.transfer(number) for number in range(1, 101)))
    granted = peer.expect(wire.FLOW)
    while not granted["credit"]:
        granted = peer.expect(wire.FLOW)
    assert granted["credit"] <= 10 and granted["delivery_count"] <= 100
    peer.send(*(wire.transfer(number) for number in range(101, 106)))
    peer.leave()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 105 and not result.lines
    assert result.messages["lost"] == result.messages["duplicated"] == 0
    credit = result.summary["credit"]
    assert 0 < credit["granted"] < 1000 and credit["lowest"] in (0, None)


@both_sides
def test_more_than_was_asked_for(side: str) -> None:
    """-m is a limit, whatever the sender thinks."""
    child, peer = wire.meet("precv", side, "-m", "10", "--credit", "5", *faults.QUICK)
    peer.start()
    peer.send(*(wire.transfer(number) for number in range(1, 1001)))
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 10 and not result.lines


@both_sides
def test_delivery_count_of_a_sender_jumps(side: str) -> None:
    """It says that it has used up more credit than there is, as after a drain; precv grants it
    again or not, but keeps its counters."""
    child, peer = wire.meet("precv", side, "--credit", "10", *faults.QUICK)
    peer.start()
    for count in (10, 1000, 2**31 - 2, 5):
        peer.send(peer.flow_frame(0, delivery_count=count))
    peer.send(*(wire.transfer(number) for number in range(1, 31)))
    peer.leave()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 30
    assert result.summary["credit"]["granted"] < 1000


SMALL_WINDOW = ["--max-frame", "512", "--session-window", "4Ki", "--credit", "1000"]


@both_sides
def test_more_than_the_session_window(side: str) -> None:
    """An error of the peer's, which the library finds: the connection has failed."""
    child, peer = wire.meet("precv", side, *SMALL_WINDOW, *faults.QUICK)
    peer.start()
    body = wire.message(1, b"y" * 400)
    peer.try_send(*[wire.transfer(1, body, more=True)] * 200)
    faults.end_soon(peer)
    faults.assert_failed(pair.finish(child), "session:window-violation")
