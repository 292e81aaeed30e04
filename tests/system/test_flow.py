"""Acknowledging, credit, clocks, slow consumers, queue depth."""

import signal

import amqp
import pair
import proton
import pytest
from measuring import measured


# ---- acknowledging ----


@pytest.mark.parametrize("frequency", [1, 7, 1000])
@pytest.mark.parametrize("messages", [1, 1003, 2999])
def test_ack_frequency(frequency: int, messages: int) -> None:
    """What is held back at the end is settled."""
    psend, precv = pair.run_pair(
        ["-m", str(messages)],
        ["-m", str(messages), "--ack-frequency", str(frequency), "--credit", "2000"],
    )
    pair.assert_delivered(psend, precv, messages)


def test_ack_frequency_settles_in_groups() -> None:
    """One disposition for many, so that fewer frames come back."""
    frames = {}
    for frequency in ("1", "100"):
        limits = ["--credit", "1m", "--work", "20us"]
        psend, _ = pair.run_pair(
            ["-m", "5000"], ["-m", "5000", "--ack-frequency", frequency, *limits]
        )
        frames[frequency] = psend.summary["credit"]["frames_in"]
    assert frames["100"] < 70 < frames["1"]


@pytest.mark.parametrize("frequency", [7, 1000])
def test_ack_frequency_when_the_sender_waits(frequency: int) -> None:
    """precv does not know how many will come: it must not hold the last ones for ever."""
    receiver, url = pair.listen("precv", "--ack-frequency", str(frequency))
    sender = pair.start("psend", url, "-m", "1003")
    psend = pair.finish(sender, 3)
    pair.assert_delivered(psend, pair.finish(receiver, 3), 1003)


# ---- credit ----


def expected_grants(messages: int, window: int, low: int, add: int) -> tuple[int, int]:
    """Calls and credits: start with the window; whenever it has fallen to LOW, grant ADD."""
    level, grants, granted = window, 1, window
    for _ in range(messages):
        level -= 1
        if level <= low:
            level += add
            grants += 1
            granted += add
    return grants, granted


@pytest.mark.parametrize(
    "options,window,low,add",
    [
        ("", 1000, 500, 500),
        ("--credit 1", 1, 0, 1),
        ("--credit 2", 2, 1, 1),
        ("--credit 3", 3, 1, 2),
        ("--capacity 100", 100, 50, 50),
        ("--credit 100 --credit-low 99", 100, 99, 1),
        ("--credit 100 --credit-low 0", 100, 0, 100),
        ("--credit 10 --credit-low 5 --credit-add 1", 10, 5, 1),
        ("--credit 10 --credit-low 2 --credit-add 100", 10, 2, 100),
        ("--credit 1m", 1000000, 500000, 500000),
    ],
)
def test_grants(options: str, window: int, low: int, add: int) -> None:
    """Exactly as many as the rule makes."""
    psend, precv = pair.run_pair(["-m", "3210"], options.split())
    pair.assert_delivered(psend, precv, 3210)
    credit = precv.summary["credit"]
    assert (credit["grants"], credit["granted"]) == expected_grants(3210, window, low, add)
    assert 0 <= credit["lowest"] <= window + add
    if window == 1:
        assert psend.summary["credit"]["stalls"] > 1000
    if window == 1000000:
        assert psend.summary["credit"]["stalls"] <= 1


@pytest.mark.parametrize("batch", ["1", "10", "1000"])
def test_drain_batch(batch: str) -> None:
    """Nothing is left behind in the queue."""
    psend, precv = pair.run_pair(["-m", "20000"], ["--drain-batch", batch, "--verify-sequence"])
    pair.assert_delivered(psend, precv, 20000)
    _, precv = pair.run_pair(["-m", "20000"], ["--drain-batch", batch, "-m", "777"])
    assert precv.messages["received"] == 777


def flow_frames(batch: str, messages: int) -> int:
    """That precv sends when it grants one credit for each message."""
    credit = ["--credit", "200", "--credit-low", "199", "--credit-add", "1"]
    options = [*credit, "--drain-batch", batch]
    psend, precv = pair.run_pair(["-m", str(messages), "--presettled"], options)
    pair.assert_delivered(psend, precv, messages)
    assert precv.summary["credit"]["grants"] == messages + 1
    return int(precv.summary["credit"]["frames_out"])


def test_drain_batch_writes_each_answer() -> None:
    """One event, one message: each grant is a FLOW frame; else those of a turn share one."""
    messages = 20000
    assert flow_frames("1", messages) > 0.95 * messages
    assert flow_frames("0", messages) < 0.5 * messages


# ---- slow receivers ----


@pytest.mark.parametrize("settled", [["--presettled"], []])
@pytest.mark.parametrize("slow", [["--work", "100us"], ["--receive-rate", "5000"]])
def test_sender_gone_before_all_is_taken(slow: list[str], settled: list[str]) -> None:
    """What a sender has left behind is taken at the receiver's own pace."""
    messages = 2000
    psend, precv = pair.run_pair(["-m", str(messages), *settled], slow)
    pair.assert_delivered(psend, precv, messages)
    assert precv.summary["last_s"] - precv.summary["first_s"] > 0.9 * messages / 10000


def test_several_senders_gone() -> None:
    """Each of them has left something."""
    receiver, url = pair.listen("precv", "--receive-rate", "5000", "--forever")
    senders = [pair.start("psend", url, "-m", "500", "--presettled") for _ in range(3)]
    for sender in senders:
        pair.assert_codes([pair.finish(sender)], 0)
    while sum(i["messages"]["received"] for i in receiver.events if "messages" in i) < 1500:
        pair.wait_for_more(receiver, "interval")
    pair.send_signal(receiver, signal.SIGINT)
    assert pair.finish(receiver).messages["received"] == 1500


def test_ended_while_it_takes_what_was_left() -> None:
    """In order, with what there is."""
    receiver, url = pair.listen("precv", "--receive-rate", "100")
    pair.run("psend", url, "-m", "1000", "--presettled")
    pair.wait_for(receiver, "interval")
    pair.send_signal(receiver, signal.SIGINT)
    result = pair.finish(receiver)
    pair.assert_codes([result], 128 + signal.SIGINT)
    assert 0 < result.messages["received"] < 1000


# ---- clocks ----


def test_monotonic_clock() -> None:
    """Both on it: latencies make sense."""
    clock = ["--clock", "monotonic"]
    psend, precv = pair.run_pair(["-m", "1000", *clock], clock)
    pair.assert_delivered(psend, precv, 1000)
    latency = precv.summary["latency_ns"]
    assert latency["count"] == 1000 and 0 < latency["min"] <= latency["max"] < 5e9
    assert precv.only("start")["clock"] == "monotonic"


def test_negative_latency() -> None:
    """A stamp from the future is counted, and kept out of the percentiles."""
    _, precv = pair.run_pair(["-m", "1000"], ["--clock", "monotonic"])
    latency = precv.summary["latency_ns"]
    assert (latency["count"], latency["negative"], latency["p50"]) == (0, 1000, None)
    assert latency["lowest"] < -(10**15)


def test_latency_above_an_hour() -> None:
    """Counted, clamped in the buckets, exact in the maximum."""
    _, precv = pair.run_pair(["-m", "1000", "--clock", "monotonic"])
    latency = precv.summary["latency_ns"]
    assert (latency["count"], latency["overflow"], latency["negative"]) == (1000, 1000, 0)
    assert latency["max"] > 10**15 and len(latency["buckets"]) == 1


# ---- slow consumers ----


@pytest.mark.measures
@pytest.mark.parametrize(
    "options,messages,rate",
    [
        ("--receive-rate 1000", 700, 1000),
        ("--receive-rate 20000", 14000, 20000),
        ("--receive-rate 333.3 --credit 1", 230, 333.3),
        ("--work 1ms", 700, 1000),
        ("--work 100us", 7000, 10000),
        ("--work 1ms --receive-rate 5000", 700, 1000),
        ("--work 100us --receive-rate 1000", 700, 1000),
    ],
)
def test_receive_rate(options: str, messages: int, rate: float) -> None:
    """What the slow consumer is told to be, within 5 %; it waits for most of the time."""
    _, precv = pair.run_pair(["-m", "0"], ["-m", str(messages), *options.split()])
    pair.assert_codes([precv], 0)
    summary = precv.summary
    found = (messages - 1) / (summary["last_s"] - summary["first_s"])
    assert summary["messages_per_s"] == pytest.approx(found, rel=0.01)
    with measured():
        assert found == pytest.approx(rate, rel=0.05)
        assert summary["limited_by"] == "pacing"


def test_max_unsettled_is_a_limit() -> None:
    """A receiver that does not settle gets so many, and each settled one lets another through."""
    sender, url = pair.listen("psend", "-m", "12", "--max-unsettled", "5")
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=100)
    for expected in (5, 2, 5):
        for _ in range(expected):
            receiver.receive(timeout=amqp.TIMEOUT_S)
        with pytest.raises(proton.Timeout):
            receiver.receive(timeout=0.2)
        for _ in range(2 if expected == 5 else 5):
            receiver.accept()
    for _ in range(12 - 2 - 5 - 2):
        receiver.accept()
    connection.close()
    psend = pair.finish(sender)
    pair.assert_codes([psend], 0)
    assert psend.messages["accepted"] == 12


@pytest.mark.parametrize("depth", [1, 10])
def test_max_unsettled_bounds_what_is_under_way(depth: int) -> None:
    """Seen from the receiver, which gives a new credit for each message it has settled."""
    options = ["--credit", "1000", "--credit-low", "999"]
    psend, precv = pair.run_pair(["-m", "5000", "--max-unsettled", str(depth)], options)
    pair.assert_delivered(psend, precv, 5000)
    assert 1000 - depth <= precv.summary["credit"]["lowest"] < 1000
    _, free = pair.run_pair(["-m", "50000"], options)
    assert free.summary["credit"]["lowest"] < 1000 - depth


@pytest.mark.measures
def test_unsettled_messages_are_bounded() -> None:
    """However large the credit is, if --max-unsettled does not allow more."""
    sent = {}
    for option in ("", "--max-unsettled 20k", "--presettled"):
        receiver, url = pair.listen("precv", "--credit", "50k", "--work", "10s")
        psend = pair.run("psend", url, "-d", "1s", "--close-timeout", "0", *option.split())
        pair.send_signal(receiver, signal.SIGINT)
        pair.finish(receiver)
        sent[option] = psend.messages["sent"]
        limit = psend.summary["limited_by"]
        with measured():
            assert limit == ("credit" if option == "--presettled" else "settlement"), psend
    taken = 1  # and settled
    with measured():
        assert 7000 < sent[""] < 8192 and sent["--max-unsettled 20k"] <= 20000 + taken
        assert sent["--presettled"] > 49000
