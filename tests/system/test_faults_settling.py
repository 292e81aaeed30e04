"""Peers that settle messages in their middle, and what they have settled once more.

While the session's window is closed, the library goes on having a message that is half sent, also
when both sides have settled it."""

import sys

import pair
import pytest
import wire

WHOLE, PARTS = "10000", "40000"  # bytes that psend hands to the library at once, and not at once
CREDIT = 100
REFUSED = 6  # exit code
RELEASED, MODIFIED = 0x26, 0x27


class Slow:
    """A receiver that has psend send frame by frame, each as short as may be."""

    def __init__(self, peer: wire.Peer) -> None:
        self.peer = peer
        self.frames = self.sessions = 0
        peer.open(max_frame=512)
        peer.begin(window=1)
        peer.attach()
        peer.grant(CREDIT, incoming_window=1)

    def grant(self, window: int = 1, **fields: object) -> None:
        """So many frames more."""
        self.peer.grant(
            CREDIT, next_incoming_id=self.frames, incoming_window=window, **fields
        )

    def take(self, delivery: int, more: bool) -> wire.Frame:
        """Up to the first frame of this delivery, or its last one: no other is let through."""
        current = -1
        while True:
            frame = self.peer.expect(wire.TRANSFER)
            self.frames += 1
            if frame["delivery_id"] is not None:
                current = int(frame["delivery_id"])
            if current == delivery and bool(frame["more"]) == more:
                return frame
            assert current <= delivery, self.peer.seen
            self.grant()

    def tell(self, delivery: int, settled: bool, code: int = wire.ACCEPTED) -> None:
        """Psend knows when this returns."""
        state = wire.outcome(code)
        news = {"role": wire.RECEIVER, "first": delivery, "last": delivery, "settled": settled}
        self.peer.send(wire.frame(wire.DISPOSITION, state=state, **news))
        self.ask()

    def ask(self) -> None:
        """For a session, which psend opens when it has handled all that was said before."""
        self.sessions += 1
        window = {"incoming_window": 0, "outgoing_window": 0}
        self.peer.send(
            wire.frame(wire.BEGIN, channel=self.sessions, next_outgoing_id=0, **window)
        )
        self.peer.expect(wire.BEGIN)

    def finish(self, last: int) -> None:
        """Lets all the rest come, up to this delivery, and settles it."""
        self.grant(wire.WINDOW)
        self.take(last, more=False)
        self.peer.settle(0, last)
        self.peer.answer_close()


def meet(*options: str) -> tuple[pair.Child, Slow]:
    """With psend."""
    child, peer = wire.meet("psend", "connects", *options)
    return child, Slow(peer)


# ---- once more ----


@pytest.mark.parametrize("size", [WHOLE, PARTS])
@pytest.mark.parametrize("options", [[], ["--reconnect"], ["--batch", "2"]])
@pytest.mark.parametrize(
    "news",
    [
        [(False, wire.ACCEPTED), (True, wire.ACCEPTED)],
        [(False, wire.ACCEPTED), (False, wire.REJECTED), (True, RELEASED)],
        [(True, wire.ACCEPTED), (True, MODIFIED)],
    ],
)
def test_counts_once(size: str, options: list[str], news: list[tuple[bool, int]]) -> None:
    """The first that is said of it."""
    child, slow = meet("-m", "3", "--content-size", size, *options)
    slow.take(0, more=True)
    for settled, code in news:
        slow.tell(0, settled, code)
    slow.finish(2)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["sent"] == result.messages["accepted"] == 3
    assert result.messages["unsettled"] == 0
    pair.assert_accounts(result.summary)


def test_end_of_stream_counts_once() -> None:
    """--send-eos with a message that is in several frames."""
    child, slow = meet("-m", "1", "--send-eos", "1", "--property", "long=" + "x" * 2000)
    slow.take(0, more=False)
    slow.tell(0, True)
    slow.grant()
    slow.take(1, more=True)
    slow.tell(1, False)
    slow.tell(1, True, wire.REJECTED)
    slow.finish(1)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["sent"] == result.messages["accepted"] == 1


@pytest.mark.parametrize("size", [WHOLE, PARTS])
def test_sent_settled(size: str) -> None:
    """Nobody waits for news of it, and they do no harm."""
    child, slow = meet("-m", "3", "--content-size", size, "--presettled")
    slow.take(0, more=True)
    slow.tell(0, True)
    slow.tell(0, True, wire.REJECTED)
    slow.finish(2)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["sent"] == 3 and not result.messages["unsettled"]


def test_sent_settled_and_handed_over() -> None:
    """The same when psend has handed over the last part, and two frames are left to be sent."""
    child, slow = meet("-m", "3", "--content-size", PARTS, "--presettled")
    got = len(slow.take(0, more=True).payload)
    while got < int(PARTS) - 900:
        slow.grant()
        got += len(slow.take(0, more=True).payload)
    slow.tell(0, True)
    slow.finish(2)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["sent"] == 3


# ---- in the middle of a message ----


def numbers(frames: list[wire.Frame]) -> list[int]:
    """Those of the messages that these frames are of."""
    tags = dict.fromkeys(frame["tag"] for frame in frames if frame.code == wire.TRANSFER)
    return [int.from_bytes(tag, sys.byteorder) for tag in tags]


def test_number_is_used_up() -> None:
    """--reconnect: the others are kept, each with its number, and sent again."""
    listener = wire.listen()
    child = pair.start("psend", listener.url, "-m", "5", "--content-size", PARTS, "--reconnect")
    slow = Slow(listener.accept(wire.RECEIVER))
    slow.take(0, more=False)
    slow.grant()
    slow.take(1, more=True)
    slow.tell(1, True)
    slow.grant()
    slow.take(2, more=False)
    first = numbers(slow.peer.seen)
    slow.peer.close()
    again = Slow(listener.accept(wire.RECEIVER))
    again.finish(3)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert first == [1, 2, 3] and numbers(again.peer.seen) == [1, 3, 4, 5]
    assert result.messages["sent"] == result.messages["accepted"] == 5
    assert result.messages["resent"] == 2
    pair.assert_accounts(result.summary)


def test_report_is_in_time() -> None:
    """--report-every counts it, also if it is the last."""
    child, slow = meet(
        *("-m", "4", "--content-size", PARTS, "--report-every", "2", "--interval", "0")
    )
    slow.take(3, more=True)
    slow.tell(3, True, wire.REJECTED)
    slow.peer.settle(0, 2)
    slow.grant(wire.WINDOW)
    slow.peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], REFUSED)
    intervals = [(i["messages"]["sent"], i["partial"]) for i in result.intervals]
    assert intervals[:2] == [(2, False), (2, False)]
    assert result.messages["sent"] == 4 and result.messages["rejected"] == 1
    pair.assert_accounts(result.summary)


def test_batch_is_one_shorter() -> None:
    """It is one of its batch: the next one waits for the others."""
    child, slow = meet(
        *("-m", "6", "--content-size", PARTS, "--batch", "3", "--max-unsettled", "3")
    )
    slow.take(1, more=True)
    slow.tell(1, True)
    slow.grant()
    slow.take(2, more=False)
    seen = len(slow.peer.seen)
    slow.grant(wire.WINDOW)
    slow.ask()
    assert not [f for f in slow.peer.seen[seen:] if f.code == wire.TRANSFER]
    slow.peer.settle(0, 2)
    slow.finish(5)
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["accepted"] == 6
