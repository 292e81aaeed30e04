"""psend --round-trip: what counts as an answer, what is waited for, and when the run is short."""

from __future__ import annotations

import socket
import uuid

import pair
import pytest
import relay
from proton import Message, ulong
from responder import Responder, Server, answer, serve

SETTLE = pytest.mark.parametrize("settle", [[], ["--presettled"]], ids=["unsettled", "presettled"])
QUICK = ["--close-timeout", "300ms"]


def round_trips(psend: pair.Result) -> pair.Json:
    """Their distribution."""
    found = psend.summary["round_trip_ns"]
    assert isinstance(found, dict)
    return found


@SETTLE
@pytest.mark.parametrize("listener", ["precv", "psend"])
def test_every_message_is_answered(settle: list[str], listener: str) -> None:
    """And timed, whoever connects; answers are messages for neither count."""
    messages = pair.count(5000)
    words = {"psend": ["--round-trip", "-m", str(messages), *settle], "precv": ["--reply"]}
    first, url = pair.listen(listener, *words[listener])
    other = "psend" if listener == "precv" else "precv"
    second = pair.finish(pair.start(other, url, *words[other]))
    ended = {first.name: pair.finish(first), other: second}
    psend, precv = ended["psend"], ended["precv"]
    pair.assert_delivered(psend, precv, messages)
    assert psend.messages["answered"] == precv.messages["answers"] == messages
    assert psend.messages["unmatched"] == precv.messages["unanswerable"] == 0
    assert round_trips(psend)["count"] == messages
    assert round_trips(psend)["min"] > 0 and round_trips(psend)["negative"] == 0
    if not settle:
        assert psend.summary["settlement_ns"]["count"] == messages
    for period in (*psend.intervals, psend.summary, *precv.intervals, precv.summary):
        pair.assert_time_is_whole(period)


def test_intervals_add_up() -> None:
    """Answers and round trips of intervals are those of the total."""
    psend, _ = pair.run_pair(
        ["--round-trip", "-d", "600ms", "--interval", "100ms"], ["--reply", "--interval", "100ms"]
    )
    assert psend.code == 0
    assert sum(i["messages"]["answered"] for i in psend.intervals) == psend.messages["answered"]
    assert sum(i["round_trip_ns"]["count"] for i in psend.intervals) == round_trips(psend)["count"]
    assert psend.messages["answered"] == psend.messages["sent"] > 0


def test_nothing_is_said_of_answers_that_nobody_asks_for() -> None:
    """Numbers that do not exist are null."""
    psend, precv = pair.run_pair(["-m", "10"])
    assert psend.summary["round_trip_ns"] is None
    assert psend.messages["answered"] is psend.messages["unmatched"] is None
    assert precv.messages["answers"] is precv.messages["unanswerable"] is None


@SETTLE
@pytest.mark.parametrize("depth", [1, 3])
def test_depth(settle: list[str], depth: int) -> None:
    """So many are unanswered at a time, no more and no fewer: one of them is a ping-pong."""
    words = ["--max-unsettled", str(depth), "-m", "300", *settle]
    sender, url = pair.listen("psend", "--round-trip", *words)
    with serve(Responder(url, answer, hold=depth)) as responder:
        psend = pair.finish(sender)
    pair.assert_codes([psend], 0)
    assert psend.messages["answered"] == len(responder.seen) == 300
    assert responder.most_held == depth
    numbers = [message.properties["sn"] for message in responder.seen]
    assert numbers == list(range(1, 301))
    assert len({message.id for message in responder.seen}) == 300


@SETTLE
def test_missing_answers(settle: list[str]) -> None:
    """They are waited for, and the run is short."""
    sender, url = pair.listen("psend", "--round-trip", "-m", "20", *settle, *QUICK)
    with serve(Responder(url, lambda m: answer(m) if m.properties["sn"] % 5 else [])) as responder:
        psend = pair.finish(sender)
    assert psend.code == 4 and not psend.summary["complete"]
    assert len(responder.seen) == 20
    assert psend.messages["answered"] == round_trips(psend)["count"] == 16


def test_depth_is_not_made_up_of_missing_answers() -> None:
    """What is missing keeps its place: with all places taken nothing more is sent."""
    words = ["--max-unsettled", "2", "-d", "300ms", *QUICK]
    sender, url = pair.listen("psend", "--round-trip", *words)
    with serve(Responder(url, lambda m: answer(m) if m.properties["sn"] <= 5 else [])):
        psend = pair.finish(sender)
    assert psend.code == 4
    assert psend.messages["answered"] == 5 and psend.messages["sent"] == 7
    assert psend.summary["limited_by"] == "settlement"


def other_answers(message: Message) -> list[Message]:
    """One that is right, and whatever else a peer might send."""
    ids = [message.id, ulong(1), uuid.uuid4(), b"\0" * 25, "x" * 25, None, message.id[:-1], "-"]
    nobody = message.id[:-16] + "f" * 16
    return [
        *answer(message),
        *(Message(correlation_id=i) for i in ids),
        Message(id=nobody),
        Message(correlation_id=nobody),
    ]


def test_answers_to_nothing_are_counted_apart() -> None:
    """Duplicates, too; no round trip is made of them."""
    sender, url = pair.listen("psend", "--round-trip", "-m", "50")
    with serve(Responder(url, other_answers)):
        psend = pair.finish(sender)
    pair.assert_codes([psend], 0)
    assert psend.messages["answered"] == round_trips(psend)["count"] == 50
    # those to the last message may come when the run is over
    assert 10 * 49 <= psend.messages["unmatched"] <= 10 * 50


def test_late_answers_are_waited_for() -> None:
    """As long as they go on coming, however many are missing when the last message is settled."""
    words = ["--round-trip", "--presettled", "-m", "30", "--close-timeout", "600ms"]
    psend, precv = pair.run_pair(words, ["--reply", "--work", "50ms"])
    pair.assert_delivered(psend, precv, 30)
    assert psend.messages["answered"] == 30 and psend.summary["wall_s"] > 1


def test_refused_messages_have_no_answer() -> None:
    """None is waited for."""
    sender, url = pair.listen("psend", "--round-trip", "-m", "20", "--close-timeout", "20s")
    with serve(Responder(url, answer, reject=lambda m: m.properties["sn"] % 5 == 0)):
        psend = pair.finish(sender, timeout_s=15)
    assert psend.code == 6
    assert psend.messages["rejected"] == 4 and psend.messages["answered"] == 16


@pytest.mark.parametrize("body", [0, 100, 100_000])
def test_long_answers(body: int) -> None:
    """Of many frames, of which the first has the id."""
    words = ["--content-size", str(body), "-m", "200", "--max-frame", "4Ki"]
    psend, precv = pair.run_pair(["--round-trip", *words], ["--reply", "--max-frame", "4Ki"])
    pair.assert_delivered(psend, precv, 200)
    assert psend.messages["answered"] == 200


@SETTLE
def test_each_sender_has_its_own_answers(settle: list[str]) -> None:
    """Three at once, to one receiver."""
    receiver, url = pair.listen("precv", "--reply", "--forever", "-m", "3000")
    words = ["--round-trip", "-m", "1000", *settle]
    senders = [pair.start("psend", url, *words) for _ in range(3)]
    ended = [pair.finish(sender) for sender in senders]
    precv = pair.finish(receiver)
    pair.assert_codes([*ended, precv], 0, 0, 0, 0)
    assert [psend.messages["answered"] for psend in ended] == [1000] * 3
    assert [psend.messages["unmatched"] for psend in ended] == [0] * 3
    assert precv.messages["answers"] == 3000


def test_one_address_for_two_senders() -> None:
    """Each has the answers on its own connection."""
    receiver, url = pair.listen("precv", "--reply", "--forever", "-m", "1000")
    words = ["--round-trip", "-m", "500", "--reply-to", "answers"]
    senders = [pair.start("psend", url, *words) for _ in range(2)]
    ended = [pair.finish(sender) for sender in senders]
    pair.assert_codes([*ended, pair.finish(receiver)], 0, 0, 0)
    assert [psend.messages["answered"] for psend in ended] == [500] * 2


def test_a_receiver_that_does_not_answer() -> None:
    """It refuses the link for answers, and nothing is sent."""
    receiver, url = pair.listen("precv")
    psend = pair.run("psend", url, "--round-trip", "-m", "10")
    assert psend.code == 2 and len(psend.lines) == 1 and "not-implemented" in psend.lines[0]
    assert psend.messages["sent"] == 0
    pair.finish(receiver)


@pytest.mark.parametrize(
    "words",
    [
        ["--drain-batch", "1"],
        ["--ack-frequency", "30"],
        ["--print-content", "--print-headers", "--quiet"],
        ["--receive-rate", "2000"],
        ["--credit", "1"],
        ["--max-frame", "512", "--session-window", "1Ki"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("depth", ["0", "1", "7"])
def test_other_options_of_a_receiver_that_answers(words: list[str], depth: str) -> None:
    """They go together."""
    asks = ["--round-trip", "-m", "200", "--max-unsettled", depth, "--content-size", "600"]
    psend, precv = pair.run_pair(asks, ["--reply", "--verify-sequence", *words])
    pair.assert_delivered(psend, precv, 200)
    assert psend.messages["answered"] == precv.messages["answers"] == 200


@pytest.mark.parametrize(
    "words",
    [
        ["--max-frame", "512", "--session-window", "1Ki"],
        ["--batch", "5", "--max-unsettled", "10"],
        ["--check-content"],
        ["--group-size", "7", "--durable"],
        ["--reconnect"],
        ["--sequence", "no", "--timestamp", "no"],
        ["--first-sequence", "1000000"],
        ["--content-map", "a=1"],
    ],
    ids=lambda words: words[0],
)
@SETTLE
def test_other_options_of_a_sender_that_asks(words: list[str], settle: list[str]) -> None:
    """They go together, too."""
    asks = ["--round-trip", "-m", "200", *words, *settle]
    psend, precv = pair.run_pair(asks, ["--reply"])
    pair.assert_codes((psend, precv), 0, 0)
    assert psend.messages["answered"] == precv.messages["answers"] == 200
    assert psend.messages["unmatched"] == 0 and round_trips(psend)["count"] == 200


def test_lines() -> None:
    """As many answers as there are lines."""
    lines = pair.tempfile.TemporaryFile()
    lines.write(b"line\n" * 300)
    lines.seek(0)
    receiver, url = pair.listen("precv", "--reply")
    sender = pair.start("psend", url, "--round-trip", "--content-stdin", stdin=lines.fileno())
    psend, precv = pair.finish(sender), pair.finish(receiver)
    lines.close()
    pair.assert_delivered(psend, precv, 300)
    assert psend.messages["answered"] == 300


def test_open_loop() -> None:
    """The schedule goes on however long an answer takes, and its delay is in the round trip."""
    words = ["--round-trip", "--send-rate", "1000", "-m", "300"]
    psend, precv = pair.run_pair(words, ["--reply"])
    pair.assert_delivered(psend, precv, 300)
    assert psend.messages["answered"] == 300
    assert round_trips(psend)["mean"] >= psend.summary["send_delay_ns"]["mean"]


def test_eos_is_not_answered() -> None:
    """It is no message of the run."""
    psend, precv = pair.run_pair(["--round-trip", "-m", "10", "--send-eos", "1"], ["--reply"])
    pair.assert_delivered(psend, precv, 10)
    assert precv.messages["answers"] == psend.messages["answered"] == 10


@SETTLE
def test_a_lost_connection(settle: list[str]) -> None:
    """The run ends, whatever was lost with it; what has no answer makes it short."""
    receiver, url = pair.listen("precv", "--reply", "--forever")
    between = relay.start(url)
    words = ["--round-trip", "--reconnect", "--max-unsettled", "10", "-m", "0", "-d", "1s"]
    sender = pair.start("psend", between.url, *words, "--interval", "100ms", *settle, *QUICK)
    pair.wait_for(sender, "interval", 2)
    between.cut()
    psend = pair.finish(sender)
    pair.send_signal(receiver, pair.signal.SIGINT)
    pair.finish(receiver)
    messages = psend.messages
    assert psend.summary["connection"]["reconnects"] == 1
    assert 0 <= messages["sent"] - messages["answered"] <= 10
    assert psend.code == (0 if messages["answered"] == messages["sent"] else 4)
    later = [i for i in psend.intervals if i["start_s"] > 0.5]
    assert sum(i["messages"]["answered"] for i in later) > 0


def wait_until_sent(sender: pair.Child, messages: int, settle: list[str]) -> None:
    """And settled, as its intervals say."""
    name = "sent" if settle else "accepted"
    number = done = 0
    while done < messages:
        number += 1
        done += pair.wait_for(sender, "interval", number)["messages"][name]
    assert done == messages


@SETTLE
@pytest.mark.parametrize("losses", [1, 4])
def test_answers_that_come_by_a_later_link(settle: list[str], losses: int) -> None:
    """As from a broker: those of the last loss count, those before it were forgotten."""
    depth = 5
    messages = depth * (losses + 1)
    with socket.create_server((pair.HOST, 0)) as probe:
        where = f"{pair.HOST}:{probe.getsockname()[1]}"
    with serve(Server(where, answer, hold=messages)) as server:
        between = relay.start(where)
        words = ["--round-trip", "--max-unsettled", str(depth), "-m", str(messages), *settle]
        sender = pair.start("psend", between.url, "--reconnect", "--interval", "50ms", *words)
        for loss in range(1, losses + 1):
            wait_until_sent(sender, depth * loss, settle)
            while len(server.seen) < depth * loss:
                pair.wait_for_more(sender, "interval")
            between.cut()
        psend = pair.finish(sender)
    assert len(server.seen) == messages
    assert psend.summary["connection"]["reconnects"] == losses
    assert psend.messages["sent"] == messages
    assert psend.messages["answered"] == round_trips(psend)["count"] == 2 * depth
    assert psend.messages["unmatched"] == messages - 2 * depth
    assert psend.code == (0 if losses == 1 else 4)


@pytest.mark.parametrize(
    "words,named",
    [
        (["--round-trip", "--message-id", "x"], "--message-id"),
        (["--presettled", "--max-unsettled", "1"], "--max-unsettled"),
    ],
)
def test_impossible_combinations(words: list[str], named: str) -> None:
    """Refused before there is a connection."""
    psend = pair.run("psend", "127.0.0.1:1/test", *words, events=False)
    assert psend.code == 64 and len(psend.lines) == 1 and named in psend.lines[0]
