"""Clients of other makes and the pair, without a broker between them."""

from __future__ import annotations

import certificates
import checks
import pair
import peers
import pytest

MESSAGES = 300
LARGE = 100_000
SETTLE = pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])
CLIENTS = pytest.mark.parametrize("kind", peers.KINDS)
LISTENERS = pytest.mark.parametrize("kind", peers.LISTENERS)


@SETTLE
@CLIENTS
def test_psend_listens(kind: str, presettled: bool) -> None:
    """The peer connects and receives."""
    settle = checks.settle_words(presettled)
    sender, url = pair.listen("psend", "-m", str(MESSAGES), *settle)
    seen = peers.finish(peers.connect(kind, "receive", url, MESSAGES, *settle))
    checks.assert_sent(pair.finish(sender), MESSAGES)
    checks.assert_seen(seen, MESSAGES)


@SETTLE
@CLIENTS
def test_precv_listens(kind: str, presettled: bool) -> None:
    """The peer connects and sends."""
    receiver, url = pair.listen("precv", "--verify-sequence", *checks.end_of(kind, MESSAGES))
    peer = peers.connect(kind, "send", url, MESSAGES, *checks.settle_words(presettled))
    events = peers.finish(peer)
    checks.assert_received(pair.finish(receiver), MESSAGES)
    if not presettled:
        assert peers.outcomes(events) == {"accepted": MESSAGES}


@SETTLE
@LISTENERS
def test_psend_connects(kind: str, presettled: bool) -> None:
    """The peer listens and receives."""
    peer, url = peers.listen(kind, "receive", MESSAGES)
    psend = pair.run("psend", url, "-m", str(MESSAGES), *checks.settle_words(presettled))
    checks.assert_sent(psend, MESSAGES)
    checks.assert_seen(peers.finish(peer), MESSAGES)


@SETTLE
@LISTENERS
def test_precv_connects(kind: str, presettled: bool) -> None:
    """The peer listens and sends."""
    settle = checks.settle_words(presettled)
    peer, url = peers.listen(kind, "send", MESSAGES, *settle)
    precv = pair.run("precv", url, "-m", str(MESSAGES), "--verify-sequence")
    checks.assert_received(precv, MESSAGES)
    events = peers.finish(peer)
    if not presettled:
        assert peers.outcomes(events) == {"accepted": MESSAGES}


@CLIENTS
def test_rich_messages(kind: str) -> None:
    """Every section there is; properties on both sides of sn and ts, some of them look-alikes."""
    receiver, url = pair.listen("precv", "--verify-sequence", *checks.end_of(kind, MESSAGES))
    peers.finish(peers.connect(kind, "send", url, MESSAGES, "--rich", "--hop"))
    checks.assert_received(pair.finish(receiver), MESSAGES)


@CLIENTS
def test_native_numbers(kind: str) -> None:
    """sn is of the type that the peer's library makes of its language's numbers."""
    receiver, url = pair.listen("precv", "--verify-sequence", *checks.end_of(kind, MESSAGES))
    peers.finish(peers.connect(kind, "send", url, MESSAGES, "--native"))
    checks.assert_received(pair.finish(receiver), MESSAGES)


@CLIENTS
@pytest.mark.parametrize("frame", ["4Ki", "64Ki"])
def test_large_messages_come(kind: str, frame: str) -> None:
    """Each of many frames, as the peer's library cuts them. (uamqp cannot make a larger frame than
    64 KiB, nor a smaller one than a peer allows.)"""
    words = ["--max-frame", frame, *checks.end_of(kind, 20)]
    receiver, url = pair.listen("precv", "--verify-sequence", *words)
    peers.finish(peers.connect(kind, "send", url, 20, "--body", "X" * LARGE))
    checks.assert_received(pair.finish(receiver), 20, LARGE)


@CLIENTS
def test_large_messages_go(kind: str) -> None:
    """The peer puts them together again."""
    sender, url = pair.listen("psend", "-m", "20", "--content-size", str(LARGE))
    seen = peers.finish(peers.connect(kind, "receive", url, 20))
    checks.assert_sent(pair.finish(sender), 20)
    checks.assert_seen(seen, 20, b"X" * LARGE)


@pytest.mark.parametrize("kind", ["rhea", "proton"])
@pytest.mark.parametrize("outcome", ["rejected", "released", "modified"])
def test_outcomes(kind: str, outcome: str) -> None:
    """The peer learns what has become of its messages. (uamqp fails without a reason for it.)"""
    receiver, url = pair.listen("precv", "--outcome", outcome)
    events = peers.finish(peers.connect(kind, "send", url, 10))
    pair.assert_codes([pair.finish(receiver)], 0)
    assert peers.outcomes(events) == {outcome: 10}


@CLIENTS
def test_sasl_anonymous(kind: str) -> None:
    """A client that begins with SASL is served like one that does not."""
    receiver, url = pair.listen("precv", "--verify-sequence", *checks.end_of(kind, MESSAGES))
    peers.finish(peers.connect(kind, "send", url, MESSAGES, "--sasl"))
    checks.assert_received(pair.finish(receiver), MESSAGES)


# ---- TLS: the programs' own; uamqp needs no relay here ----


@pytest.fixture(scope="module", name="authority")
def _authority(tmp_path_factory: pytest.TempPathFactory) -> certificates.Authority:
    """Whom the peers trust."""
    return certificates.Authority(tmp_path_factory.mktemp("tls"), "authority")


@pytest.fixture(scope="module", name="own")
def _own(authority: certificates.Authority) -> certificates.Identity:
    """Of the program that listens."""
    return authority.issue("localhost", certificates.ADDRESSES)


@CLIENTS
def test_psend_listens_with_tls(
    kind: str, authority: certificates.Authority, own: certificates.Identity
) -> None:
    """The peer verifies it."""
    sender, url = pair.listen("psend", "-m", str(MESSAGES), *own.options)
    seen = peers.finish(peers.connect(kind, "receive", url, MESSAGES, "--ca", authority.file))
    checks.assert_sent(pair.finish(sender), MESSAGES)
    checks.assert_seen(seen, MESSAGES)


@CLIENTS
def test_precv_listens_with_tls(
    kind: str, authority: certificates.Authority, own: certificates.Identity
) -> None:
    """The peer verifies it."""
    words = [*own.options, *checks.end_of(kind, MESSAGES)]
    receiver, url = pair.listen("precv", "--verify-sequence", *words)
    peers.finish(peers.connect(kind, "send", url, MESSAGES, "--ca", authority.file))
    checks.assert_received(pair.finish(receiver), MESSAGES)
