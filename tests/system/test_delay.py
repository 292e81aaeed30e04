"""A network that takes a known time: what the reports say of it is that time.

The delay is long, so that what this machine adds to it is little.
"""

from __future__ import annotations

import pair
import pytest
import relay
from measuring import measured

pytestmark = pytest.mark.measures

DELAY_NS = 50_000_000  # in each direction
WITHIN = 0.05
PERCENTILES = ("p50", "p90")
SETTLE = pytest.mark.parametrize("settle", [[], ["--presettled"]], ids=["unsettled", "presettled"])


def measure(psend: list[str], precv: list[str]) -> tuple[pair.Result, pair.Result]:
    """With that network between them."""
    receiver, url = pair.listen("precv", *precv)
    between = relay.start(url, delay_s=DELAY_NS / 1e9)
    sender = pair.run("psend", between.url, *psend)
    return sender, pair.finish(receiver)


def errors(distribution: pair.Json, expected_ns: int) -> list[float]:
    """Of its percentiles, as a part of what they should be."""
    return [distribution[name] / expected_ns - 1 for name in PERCENTILES]


def assert_matches(psend: list[str], precv: list[str], **expected_ns: int) -> None:
    """Each of these distributions is of that time."""
    sender, receiver = measure(psend, precv)
    pair.assert_codes([sender, receiver], 0, 0)
    all_of_them = {**receiver.summary, **sender.summary}
    found = {name: errors(all_of_them[name], ns) for name, ns in expected_ns.items()}
    seen = [error for these in found.values() for error in these]
    assert min(seen) > -0.005, found  # nothing is faster than the network
    with measured():
        assert max(seen) <= WITHIN, found


@SETTLE
def test_one_at_a_time(settle: list[str]) -> None:
    """A round trip is both directions; a message's latency is one of them."""
    words = ["--round-trip", "--max-unsettled", "1", "-m", "16", *settle]
    also = {} if settle else {"settlement_ns": 2 * DELAY_NS}
    assert_matches(words, ["--reply"], round_trip_ns=2 * DELAY_NS, latency_ns=DELAY_NS, **also)


def test_on_a_schedule() -> None:
    """Several are on their way at a time."""
    words = ["--round-trip", "--send-rate", "100", "-m", "100"]
    assert_matches(
        words,
        ["--reply"],
        round_trip_ns=2 * DELAY_NS,
        settlement_ns=2 * DELAY_NS,
        latency_ns=DELAY_NS,
    )


def test_busy_polling() -> None:
    """The same."""
    words = ["--round-trip", "--max-unsettled", "1", "-m", "16", "--busy-poll"]
    assert_matches(words, ["--reply"], round_trip_ns=2 * DELAY_NS, latency_ns=DELAY_NS)
