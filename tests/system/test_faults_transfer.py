"""Messages that come in unusual ways."""

import faults
import pair
import pytest
import wire

both_sides = pytest.mark.parametrize("side", wire.SIDES)


def receive(side: str, *frames: bytes, options: tuple[str, ...] = ()) -> pair.Result:
    """What precv makes of these, and of an end in order."""
    child, peer = wire.meet("precv", side, *options, *faults.QUICK)
    peer.start()
    peer.send(*frames)
    peer.leave()
    return pair.finish(child)


def pieces(number: int, payload: bytes, size: int, **fields: object) -> list[bytes]:
    """A message in frames with so many bytes each."""
    starts = range(0, len(payload), size)
    return [
        wire.transfer(
            number, payload[at : at + size], more=at + size < len(payload), **fields
        )
        for at in starts
    ]


@both_sides
def test_aborted(side: str) -> None:
    """At once, in the middle, and behind a whole message: counted as such, and nothing else."""
    result = receive(
        side,
        wire.transfer(1),
        wire.transfer(2, more=True, settled=False),
        wire.transfer(2, b"", aborted=True, settled=None),
        wire.transfer(3, wire.message(2)),
        wire.transfer(4, wire.message(3), aborted=True),
        *pieces(5, wire.message(3, b"y" * 70000), 10000)[:-1],
        wire.transfer(5, b"", aborted=True),
        wire.transfer(6, wire.message(3)),
    )
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 3 and result.messages["aborted"] == 3
    assert result.messages["lost"] == result.messages["duplicated"] == 0
    assert not result.lines


@both_sides
def test_aborted_ones_do_not_use_up_the_messages_asked_for(side: str) -> None:
    """-m 2 with ten that are given up between."""
    result = receive(
        side,
        wire.transfer(1),
        *(wire.transfer(number, b"", aborted=True) for number in range(2, 12)),
        wire.transfer(12, wire.message(2)),
        options=("-m", "2", "--credit", "20"),
    )
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 2 and result.messages["aborted"] == 10


@both_sides
@pytest.mark.parametrize("settled", [True, False])
def test_ten_thousand_frames(side: str, settled: bool) -> None:
    """One message, and it is as long as it should be."""
    payload = wire.message(1, b"y" * 20000)
    frames = pieces(1, payload, 2, settled=settled)
    assert len(frames) > 10000
    result = receive(side, *frames, wire.transfer(2))
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 2 and result.messages["lost"] == 0
    assert result.summary["content_bytes"] == 20001


@both_sides
def test_interleaved(side: str) -> None:
    """Two links' messages, frame by frame: each is put together from its own."""
    child, peer = wire.meet("precv", side, *faults.QUICK)
    peer.start()
    ends = {"source": wire.node(wire.SOURCE), "target": wire.node(wire.TARGET)}
    peer.send(
        wire.frame(
            wire.ATTACH, name="b", handle=1, role=wire.SENDER, initial_delivery_count=0, **ends
        )
    )
    one = pieces(1, wire.message(1, b"a" * 3000), 100)
    two = pieces(2, wire.message(1, b"b" * 3000), 100, handle=1)
    peer.send(*(frame for both in zip(one, two) for frame in both))
    peer.send(wire.transfer(3, wire.message(2)), wire.transfer(4, wire.message(2), handle=1))
    peer.send(wire.frame(wire.DETACH, handle=1, closed=True))
    peer.leave()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 4 and result.summary["content_bytes"] == 6002
    assert result.messages["lost"] == result.messages["duplicated"] == 0


@both_sides
@pytest.mark.parametrize("later", [5, 1, 2**31])
def test_delivery_id_out_of_order(side: str, later: int) -> None:
    """The library insists on them: the connection has failed; the first message counts."""
    child, peer = wire.meet("precv", side, *faults.QUICK)
    peer.start()
    peer.send(wire.transfer(1), wire.transfer(2), wire.transfer(3, delivery_id=later))
    faults.end_soon(peer)
    result = pair.finish(child)
    faults.assert_failed(result, "sequencing error, expected delivery-id 2")
    assert result.messages["received"] == 2


@both_sides
def test_first_delivery_id_is_anything(side: str) -> None:
    """Also one that wraps around."""
    ids = [wire.UINT_MAX - 1, wire.UINT_MAX, 0, 1]
    frames = [wire.transfer(n, delivery_id=i) for n, i in zip(range(1, 5), ids)]
    result = receive(side, *frames)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 4 and result.messages["lost"] == 0


@both_sides
def test_nothing_but_what_must_be(side: str) -> None:
    """Without message-format, tag and settled; more frames without a delivery-id."""
    whole = wire.message(3)
    result = receive(
        side,
        wire.transfer(1, message_format=None, tag=None),
        wire.transfer(2, message_format=None, tag=None, settled=None),
        wire.transfer(3, whole[:5], more=True),
        wire.transfer(3, whole[5:7], more=True, delivery_id=None, tag=None, message_format=None),
        wire.transfer(3, whole[7:], delivery_id=None, tag=None, message_format=None, settled=None),
    )
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 3 and result.messages["lost"] == 0


@both_sides
def test_not_a_message(side: str) -> None:
    """Deliveries that are empty, random, or cut off: they count, without number or time."""
    whole = wire.message(1)
    payloads = [b"", b"\x00", b"\xff" * 100, whole[:7], whole[:-1], b"\x00Su\xb0\xff\xff\xff\xff"]
    frames = [wire.transfer(n, payload) for n, payload in enumerate(payloads, 1)]
    result = receive(side, *frames)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == len(payloads)
    assert result.messages["no_sequence"] >= 4
    assert result.messages["no_timestamp"] == len(payloads)


@both_sides
@pytest.mark.parametrize("end", ["detach", "close", "cut"])
def test_leaves_in_the_middle_of_a_message(side: str, end: str) -> None:
    """What has come of it is no message."""
    child, peer = wire.meet("precv", side, *faults.QUICK)
    peer.start()
    peer.send(wire.transfer(1), wire.transfer(2, more=True))
    if end == "detach":
        peer.leave()
    elif end == "close":
        peer.send(wire.frame(wire.CLOSE))
        peer.wait_for_end()
    else:
        peer.close()
    result = pair.finish(child)
    pair.assert_codes([result], faults.CONNECTION if end == "cut" else 0)
    assert result.messages["received"] == 1


@both_sides
def test_session_ends_in_the_middle_of_a_message(side: str) -> None:
    """The same, and the connection goes on to be closed by precv."""
    child, peer = wire.meet("precv", side, *faults.QUICK)
    peer.start()
    peer.send(wire.transfer(1), wire.transfer(2, more=True), wire.frame(wire.END))
    peer.answer_close()
    result = pair.finish(child)
    pair.assert_codes([result], 0)
    assert result.messages["received"] == 1


@pytest.mark.xfail(strict=True, reason="the library has an assertion for this, and is built with it")
@pytest.mark.parametrize("program", pair.PROGRAMS)
@both_sides
def test_first_frame_without_a_delivery_id(program: str, side: str) -> None:
    """Of several: an error of the peer's, not the end of the process."""
    child, peer = wire.meet(program, side, "-m", "10", *faults.QUICK)
    peer.start()
    peer.try_send(wire.transfer(1, delivery_id=None, more=True))
    peer.wait_for_end()
    faults.assert_failed(pair.finish(child), "framing-error")
