"""The message that says that no more will come."""

from __future__ import annotations

import amqp
import pair
import pytest
from proton import Message, ulong


def message(number: int, body: object = b"x", inferred: bool = True) -> Message:
    """One with a number."""
    return Message(body=body, inferred=inferred, properties={"sn": ulong(number)})


@pytest.mark.parametrize("body", [b"eos", "eos"])
@pytest.mark.parametrize("options", ["", "--ack-frequency 100", "--receive-rate 1000", "--forever"])
def test_eos_ends_the_run(body: object, options: str) -> None:
    """It is settled, neither counted nor printed; its number is seen."""
    receiver, url = pair.listen("precv", "--verify-sequence", "--print-content", *options.split())
    messages = [message(1), message(2), message(3, body, isinstance(body, bytes))]
    assert amqp.send_all(url, messages) == [amqp.ACCEPTED] * 3
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    assert precv.summary["stop_reason"] == "eos" and precv.summary["complete"]
    assert precv.messages["received"] == 2 and precv.messages["lost"] == 0
    assert precv.summary["content_bytes"] == 2
    assert precv.stdout == "x\nx\n"


def test_what_only_looks_like_it_is_a_message() -> None:
    """Longer, in another case, of another type."""
    bodies = [b"eos ", b"EOS", b"eo", b"xeos", b"", ["eos"], {"eos": 1}]
    receiver, url = pair.listen("precv")
    messages = [message(i + 1, body, isinstance(body, bytes)) for i, body in enumerate(bodies)]
    assert amqp.send_all(url, messages) == [amqp.ACCEPTED] * len(bodies)
    precv = pair.finish(receiver)
    assert precv.summary["stop_reason"] == "detached"
    assert precv.messages["received"] == len(bodies)


def test_without_any_message_there_is_none() -> None:
    """The first is the last."""
    receiver, url = pair.listen("precv")
    assert amqp.send_all(url, [Message(body=b"eos", inferred=True)]) == [amqp.ACCEPTED]
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    assert precv.messages["received"] == 0 and precv.summary["stop_reason"] == "eos"


def test_fewer_than_asked() -> None:
    """With -m, that is what it is."""
    receiver, url = pair.listen("precv", "-m", "3")
    amqp.send_all(url, [message(1), message(2, b"eos")])
    precv = pair.finish(receiver)
    assert precv.code == 4 and precv.summary["stop_reason"] == "eos"


def test_a_duplicate_is_ignored() -> None:
    """As qpid-receive does: the number decides first."""
    receiver, url = pair.listen("precv", "--ignore-duplicates")
    amqp.send_all(url, [message(1), message(1, b"eos"), message(2)])
    precv = pair.finish(receiver)
    assert precv.messages["received"] == 2 and precv.summary["stop_reason"] == "detached"


@pytest.mark.parametrize("options", ["", "--presettled", "--max-frame 512"])
def test_what_is_behind_it_is_left_alone(options: str) -> None:
    """Another sender's messages too: the first one ends the run."""
    frames = [] if options == "--presettled" else options.split()
    receiver, url = pair.listen("precv", "--interval", "50ms", *frames)
    other = pair.start("psend", url, "-m", "0", *options.split())
    pair.wait_for(receiver, "interval", 2)
    amqp.send_all(url, [message(1), message(2, b"eos"), message(3)])
    precv, psend = pair.finish(receiver), pair.finish(other)
    assert precv.code == 0 and precv.summary["stop_reason"] == "eos"
    if "--presettled" not in options:
        assert psend.messages["accepted"] + 1 == precv.messages["received"]
