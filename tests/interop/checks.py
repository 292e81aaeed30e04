"""What holds for every exchange with a peer, whoever it is."""

from __future__ import annotations

import base64
import time
from typing import Any

import pair
import peers

MAX_LATENCY_S = 60.0
NO_LOSS = ("lost", "duplicated", "reordered", "no_sequence", "no_timestamp", "aborted")


def assert_received(precv: pair.Result, messages: int, size: int = 100) -> None:
    """All, once, in their order, of that size, and with plausible times."""
    pair.assert_codes([precv], 0)
    assert not precv.lines
    counts = precv.messages
    assert counts["received"] == messages
    assert {name: counts[name] for name in NO_LOSS} == dict.fromkeys(NO_LOSS, 0)
    assert precv.summary["content_bytes"] == messages * size
    latency = precv.summary["latency_ns"]
    assert (latency["count"], latency["negative"], latency["overflow"]) == (messages, 0, 0)
    assert 0 < latency["min"] <= latency["p50"] <= latency["max"] < 1e9 * MAX_LATENCY_S


def assert_sent(psend: pair.Result, messages: int) -> None:
    """All; each was accepted, if outcomes were asked for."""
    pair.assert_codes([psend], 0)
    assert not psend.lines
    assert psend.messages["sent"] == messages
    if psend.messages["accepted"] is not None:
        pair.assert_accounts(psend.summary)
        assert psend.messages["accepted"] == messages
        assert psend.summary["settlement_ns"]["count"] == messages


def assert_failed(result: pair.Result, code: int, *words: str) -> None:
    """With this code and one line that has these words."""
    assert result.code == result.summary["exit_code"] == code, result
    assert len(result.lines) == 1 and all(word in result.lines[0] for word in words), result.lines
    assert result.only("error")["exit_code"] == code


def assert_seen(events: list[dict[str, Any]], messages: int, body: bytes = b"X" * 100) -> None:
    """A peer has seen what psend has sent: bytes, numbers, and times that do not go back."""
    seen = peers.messages(events)
    assert [int(message["sn"]) for message in seen] == list(range(1, messages + 1))
    assert set(peers.bodies(events)) == {body}
    stamps = [int(message["ts"]) for message in seen]
    now_ns = time.time_ns()
    assert stamps == sorted(stamps) and now_ns - 1e9 * MAX_LATENCY_S < stamps[0] <= now_ns


def assert_bodies(seen: list[dict[str, Any]], expected: list[bytes]) -> None:
    """Data sections, with these bytes."""
    assert [base64.b64decode(message["body"]) for message in seen] == expected


def settle_words(presettled: bool) -> list[str]:
    """For psend and for peers."""
    return ["--presettled"] if presettled else []


def end_of(kind: str, messages: int) -> list[str]:
    """For precv, when it listens: whose end is its own. uamqp may drop its socket before what it
    has written last, its farewell, has been read."""
    return ["-m", str(messages)] if kind == "uamqp" else []
