"""--check-content: what was damaged on the way is found."""

from __future__ import annotations

import random
import struct
import zlib

import amqp
import pair
import pytest
from proton import Message, ulong


def checked(number: int, length: int) -> bytes:
    """A body that is what it says: number, length, CRC, and what that is of."""
    payload = random.Random(length).randbytes(length - 16)
    return struct.pack(">QII", number, length, zlib.crc32(payload)) + payload


def receive(
    bodies: list[object], *arguments: str, inferred: bool = True, sequence: bool = True
) -> pair.Result:
    """The run of a precv that checks them; they are numbered from 1."""
    receiver, url = pair.listen("precv", "--check-content", *arguments)
    messages = [
        Message(
            body=body,
            inferred=inferred,
            properties={"sn": ulong(number)} if sequence else None,
        )
        for number, body in enumerate(bodies, 1)
    ]
    assert len(amqp.send_all(url, messages)) == len(bodies)
    return pair.finish(receiver)


FRAMES = pytest.mark.parametrize(
    "frames", ["", "--max-frame 512", "--max-frame 512 --receive-rate 1000"]
)
SIZES = (16, 17, 100, 1000, 70000, 300000)


@FRAMES
def test_whole_bodies_are_good(frames: str) -> None:
    """Of any length, in one frame or many."""
    bodies: list[object] = [checked(i, size) for i, size in enumerate(SIZES, 1)]
    precv = receive(bodies, *frames.split())
    pair.assert_codes([precv], 0)
    assert precv.messages["received"] == len(SIZES) and precv.messages["corrupted"] == 0


def test_other_encodings_of_the_same_bytes() -> None:
    """A broker may turn data into a value; numbers are compared if there are two."""
    assert receive([checked(1, 50)], inferred=False).messages["corrupted"] == 0
    assert receive([checked(7, 50)], sequence=False).messages["corrupted"] == 0


@FRAMES
@pytest.mark.parametrize("size", SIZES[1:])
def test_one_bit(size: int, frames: str) -> None:
    """In the number, the length, the CRC, the first and the last byte, and somewhere."""
    places = (0, 7, 8, 11, 12, 15, 16, size - 1, random.Random(size).randrange(16, size))
    bodies: list[object] = [checked(1, size)]
    for number, place in enumerate(places, 2):
        body = bytearray(checked(number, size))
        body[place] ^= 1 << place % 8
        bodies.append(bytes(body))
    precv = receive(bodies, *frames.split())
    assert precv.code == 5 and not precv.summary["complete"]
    assert precv.messages["corrupted"] == len(places)
    assert precv.messages["received"] == len(bodies)


@FRAMES
def test_lengths(frames: str) -> None:
    """Too short, too long, too short to tell, and none at all."""
    bodies: list[object] = [
        checked(1, 1000)[:-1],
        checked(2, 1000) + b"\0",
        checked(3, 1000)[:16],
        checked(4, 1000)[:15],
        b"",
        checked(6, 70000)[:-1],
        checked(7, 1000),
    ]
    precv = receive(bodies, *frames.split())
    assert (precv.code, precv.messages["corrupted"]) == (5, 6)


def test_bodies_that_have_changed_places() -> None:
    """Each is good, and that of another message."""
    precv = receive([checked(2, 100), checked(1, 100), checked(3, 100)])
    assert (precv.code, precv.messages["corrupted"]) == (5, 2)
    assert precv.messages["lost"] == precv.messages["reordered"] == 0


def test_what_has_no_bytes() -> None:
    """A list or a map is no body of ours."""
    bodies: list[object] = [None, ["x"], {"k": "v"}, 5]
    precv = receive(bodies, inferred=False)
    assert (precv.code, precv.messages["corrupted"]) == (5, len(bodies))


def test_intervals_tell() -> None:
    """And the text does."""
    precv = receive([checked(1, 20), b"x" * 20], "--interval", "20ms", "--report-every", "1")
    assert sum(interval["messages"]["corrupted"] for interval in precv.intervals) == 1
    assert "  corrupted 1" in precv.stdout


def test_without_the_option_nothing_is_known() -> None:
    """Null, and no exit code."""
    receiver, url = pair.listen("precv")
    amqp.send_all(url, [Message(body=b"x", inferred=True)])
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    assert precv.messages["corrupted"] is None and "corrupted" not in precv.stdout


def test_eos_needs_no_check() -> None:
    """It is no message."""
    precv = receive([checked(1, 20), b"eos"])
    pair.assert_codes([precv], 0)
    assert precv.messages["corrupted"] == 0 and precv.summary["stop_reason"] == "eos"


@FRAMES
@pytest.mark.parametrize("size", [16, 100, 100000])
def test_what_psend_sends_is_whole(size: int, frames: str) -> None:
    """Both sides mean the same."""
    psend, precv = pair.run_pair(
        ["-m", "500", "--check-content", "--content-size", str(size)],
        ["--check-content", *frames.split()],
    )
    pair.assert_delivered(psend, precv, 500)
    assert precv.messages["corrupted"] == 0
