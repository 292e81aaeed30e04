"""psend --send-rate: a schedule that takes no notice of the peer, and what is said of it.

What depends on how fast this machine is, or on who else uses it, is not tested by time but by the
time stamps, which are the schedule's, and by counts.
"""

import os
import signal
import time
from collections import Counter

import amqp
import pair
import proton
import pytest
import quiet
from measuring import measured
from proton.utils import BlockingReceiver

NS_PER_S = 1_000_000_000
QUIET = ("--interval", "0")


def assert_rate(result: pair.Result, rate: float, seconds: float) -> None:
    """Achieved within 0.1 %, or one message. A busy machine may end the run some time later, and
    count or not what has become due by then."""
    pacing = result.summary["pacing"]
    expected = rate * seconds
    within = max(expected / 1000, 1)
    more = rate * max(result.summary["wall_s"] - seconds, 0)
    assert pacing["target_per_s"] == rate
    assert -within <= pacing["due"] - expected <= within + more, pacing
    assert -within <= result.messages["sent"] - expected <= within + more, result.messages
    assert abs(pacing["achieved_per_s"] - rate) <= (within + more) / seconds, pacing
    assert pacing["rate_met"] is True and pacing["missed_for"] is None


def receive(receiver: BlockingReceiver, count: int) -> list[proton.Message]:
    """The next messages."""
    return [receiver.receive(timeout=amqp.TIMEOUT_S) for _ in range(count)]


def stamps(count: int, *options: str) -> list[int]:
    """What COUNT messages have as `ts`, of a pre-settling psend that ends by itself."""
    sender, url = pair.listen("psend", "--presettled", "-m", str(count), *options, *QUIET)
    connection = amqp.connect(url)
    got = [m.properties["ts"] for m in receive(amqp.receiver(connection, count), count)]
    connection.close()
    pair.assert_codes([pair.finish(sender)], 0)
    return got


def gaps(times: list[int]) -> list[int]:
    """Between neighbours."""
    return [after - before for before, after in zip(times, times[1:])]


# ---- the schedule ----


def test_rates() -> None:
    """From one in two seconds on, in runs at the same time; also a rate that is no whole number."""
    rates = {0.5: 4, 1: 3, 7: 3, 33.3: 3, 99: 3}
    running = []
    for rate, seconds in rates.items():
        receiver, url = pair.listen("precv", *QUIET)
        options = ["--send-rate", str(rate), "-d", str(seconds), *QUIET]
        running.append((rate, seconds, receiver, pair.start("psend", url, *options)))
    for rate, seconds, receiver, sender in running:
        psend, precv = pair.finish(sender), pair.finish(receiver)
        pair.assert_delivered(psend, precv, psend.messages["sent"])
        assert_rate(psend, rate, seconds)
        assert psend.summary["wall_s"] >= seconds


@pytest.mark.measures
@pytest.mark.parametrize("rate", [1000, pair.count(100_000)])
def test_high_rates(rate: int) -> None:
    """Up to a hundred messages a millisecond; the run ends with the last one."""
    psend, precv = pair.run_pair(["--send-rate", str(rate), "-m", str(3 * rate)])
    pair.assert_delivered(psend, precv, 3 * rate)
    with measured():
        assert_rate(psend, rate, 3)
        assert psend.summary["limited_by"] == "pacing" or rate > 1000


def test_time_stamps_are_the_schedule() -> None:
    """To the nanosecond, however late a message is sent."""
    times = stamps(1000, "--send-rate", "2000", "--clock", "monotonic")
    assert set(gaps(times)) == {NS_PER_S // 2000}
    assert 0 < time.monotonic_ns() - times[0] < 60 * NS_PER_S


def test_time_stamps_of_the_realtime_clock() -> None:
    """The same, but for what this clock is slewed by."""
    times = stamps(300, "--send-rate", "1000")
    assert all(abs(gap - NS_PER_S // 1000) < 100_000 for gap in gaps(times))
    assert 0 < time.time_ns() - times[0] < 60 * NS_PER_S


def test_batches() -> None:
    """N are due at a time, N / R apart."""
    times = stamps(1000, "--send-rate", "2000", "--batch", "50", "--clock", "monotonic")
    at_a_time = Counter(times)
    assert set(at_a_time.values()) == {50} and set(gaps(sorted(at_a_time))) == {NS_PER_S // 40}


def test_poisson() -> None:
    """The same seed, the same gaps; they are of all lengths."""
    options = ["--send-rate", "2000", "--clock", "monotonic"]
    first, again, other = (gaps(stamps(400, *options, f"--poisson={n}")) for n in (7, 7, 8))
    assert first == again != other
    assert len(set(first)) > 390
    assert 350_000 < sum(first) / len(first) < 650_000  # six standard deviations
    assert min(first) < 20_000 and max(first) > 1_500_000


def test_poisson_has_a_seed() -> None:
    """Another one each time, which the start event has."""
    seeds = set()
    for _ in range(3):
        psend, _ = pair.run_pair(["--send-rate", "1000", "--poisson", "-m", "10"])
        seeds.add(psend.only("start")["options"]["poisson"])
    assert len(seeds) == 3 and all(0 < seed < 2**53 for seed in seeds)


def test_start_at_gives_the_phase() -> None:
    """Senders that are given times in even steps are never in phase."""
    gap_ns = NS_PER_S // 500
    start_ns = (time.time_ns() // gap_ns + 1) * gap_ns + NS_PER_S // 4
    phases_ns = [0, gap_ns // 4, gap_ns // 2, 3 * gap_ns // 4]
    for phase_ns in phases_ns:
        times = stamps(50, "--send-rate", "500", "--start-at", str(start_ns + phase_ns))
        for ts in times:
            off_ns = (ts - start_ns - phase_ns + gap_ns // 2) % gap_ns - gap_ns // 2
            assert abs(off_ns) < gap_ns // 16


def test_links_share_the_schedule() -> None:
    """Two receivers of one sender: none of the messages is due twice, and both get some."""
    sender, url = pair.listen("psend", "--send-rate", "200", "-m", "100", *QUIET, "--forever")
    receivers = [pair.start("precv", url, "-m", "30") for _ in range(2)]
    results = [pair.finish(receiver) for receiver in receivers]
    assert [result.messages["received"] for result in results] == [30, 30]
    pair.send_signal(sender, signal.SIGINT)
    pair.finish(sender)


def machine_spread_ns() -> int:
    """How far apart 99 % of sleeps that end at even times end, of this machine: p99 - minimum."""
    lateness_ns = []
    due_ns = time.monotonic_ns()
    for _ in range(1000):
        due_ns += 1_000_000
        time.sleep(max(due_ns - time.monotonic_ns(), 0) / NS_PER_S)
        lateness_ns.append(time.monotonic_ns() - due_ns)
    return sorted(lateness_ns)[989] - min(lateness_ns)


@pytest.mark.measures
def test_gaps_are_even_as_far_as_the_machine_is() -> None:
    """At 1000 a second, 99 % of the messages go within 100 us of each other's delay, and so of the
    millisecond that is to be between them; or within what this machine does to any sleep."""
    machine_ns = machine_spread_ns()
    options = ["--send-rate", "1000", "-d", "2s", "--percentiles", "99", "--presettled"]
    psend, _ = quiet.run_pair([*options, *QUIET], [*QUIET])
    delay = psend.summary["send_delay_ns"]
    with measured():
        assert delay["p99"] - delay["min"] <= max(100_000, 2 * machine_ns)


# ---- stalls ----


def stalled_run(*options: str, seconds: int = 2) -> tuple[pair.Result, pair.Result]:
    """1000 messages a second for four seconds more, with a receiver that is stopped for so long,
    and that grants little: the sender can neither send nor hide it."""
    receiver, url = pair.listen("precv", "--credit", "10", "--clock", "monotonic")
    sender = pair.start(
        "psend",
        url,
        *("--send-rate", "1000", "-d", f"{seconds + 4}s", "--interval", "500ms"),
        *("--clock", "monotonic", *options),
    )
    pair.wait_for(sender, "interval", 2)
    pair.send_signal(receiver, signal.SIGSTOP)
    time.sleep(seconds)
    pair.send_signal(receiver, signal.SIGCONT)
    return pair.finish(sender), pair.finish(receiver)


@pytest.mark.measures
def test_a_stall_shows_in_full() -> None:
    """Two seconds: in the latency from intended times and in the delay of sending, and hardly in
    the time from sending to settlement, where a closed loop would have looked."""
    psend, precv = stalled_run()
    pair.assert_delivered(psend, precv, psend.messages["sent"])
    with measured():
        assert_rate(psend, 1000, 6)
    latency = precv.summary["latency_ns"]
    with measured():
        assert NS_PER_S < latency["p99"] <= latency["max"] < 4 * NS_PER_S
    assert latency["negative"] == 0 and latency["count"] == psend.messages["sent"]
    delay = psend.summary["send_delay_ns"]
    assert delay["count"] == psend.messages["sent"]
    with measured():
        assert NS_PER_S < delay["p99"]
    settlement = psend.summary["settlement_ns"]
    with measured():
        assert settlement["p99"] < NS_PER_S / 2 and settlement["max"] > 1.5 * NS_PER_S
    pacing = psend.summary["pacing"]
    assert pacing["skipped"] == 0
    with measured():
        assert 1500 < pacing["late"] < 6000
        assert psend.summary["time_s"]["credit"] > 1.5
    last = psend.intervals[-2]
    with measured():
        assert abs(last["pacing"]["due"] - 500) <= 30, "the schedule has moved"
        assert last["send_delay_ns"]["p50"] < NS_PER_S / 10


@pytest.mark.measures
def test_catch_up_none() -> None:
    """What was missed is left out, and counted; what is sent is on time."""
    psend, precv = stalled_run("--catch-up", "none")
    sent, pacing = psend.messages["sent"], psend.summary["pacing"]
    pair.assert_delivered(psend, precv, sent)
    with measured():
        assert 1500 < pacing["skipped"] < 5000
    assert abs(sent + pacing["skipped"] - pacing["due"]) <= 2
    with measured():
        assert abs(pacing["due"] - 6000) <= 6
    assert pacing["rate_met"] is False
    with measured():
        assert psend.summary["send_delay_ns"]["p99"] < 20_000_000


@pytest.mark.measures
def test_counts_of_intervals_add_up() -> None:
    """Due, late and skipped, and the backlog is what is due and not sent."""
    psend, _ = stalled_run(seconds=1)
    total = psend.summary["pacing"]
    for name in ("due", "late", "skipped"):
        assert sum(i["pacing"][name] for i in psend.intervals) == total[name]
    due = sent = 0
    backlogs = []
    for interval in psend.intervals:
        due += interval["pacing"]["due"]
        sent += interval["messages"]["sent"]
        backlogs.append(due - sent)
    assert min(backlogs) >= 0 and backlogs[-1] == total["due"] - psend.messages["sent"]
    with measured():
        assert max(backlogs) > 300 and backlogs[-1] <= 1


@pytest.mark.measures
def test_out_of_reach() -> None:
    """It is said that the rate was missed, and for what; the run ends on time all the same."""
    psend, precv = pair.run_pair(["--send-rate", "10000000", "-d", "1s"])
    pacing = psend.summary["pacing"]
    pair.assert_delivered(psend, precv, psend.messages["sent"])
    assert pacing["rate_met"] is False
    assert pacing["missed_for"] in ("busy", "credit", "socket", "session", "settlement")
    with measured():
        assert pacing["due"] == pytest.approx(1e7, rel=0.1)
    assert pacing["achieved_per_s"] < 0.9 * pacing["target_per_s"]
    with measured():
        assert psend.summary["wall_s"] == pytest.approx(1, rel=0.2)
    line = next(text for text in psend.stdout.splitlines() if text.startswith("pacing:"))
    assert "rate missed for" in line


def test_out_of_reach_of_a_number_of_messages() -> None:
    """All of them are sent, and later than they should have been."""
    messages = pair.count(300_000)
    psend, precv = pair.run_pair(["--send-rate", "100000000", "-m", str(messages)])
    pair.assert_delivered(psend, precv, messages)
    pacing = psend.summary["pacing"]
    assert pacing["due"] == messages and pacing["rate_met"] is False and pacing["missed_for"]


def test_no_burst_at_first() -> None:
    """A sender that waits for its peer before it starts has nothing to catch up with."""
    sender, url = pair.listen("psend", "--send-rate", "1000", "-d", "1s", "--interval", "100ms")
    time.sleep(0.5)
    precv = pair.run("precv", url)
    psend = pair.finish(sender)
    pair.assert_delivered(psend, precv, psend.messages["sent"])
    assert 998 <= psend.summary["pacing"]["due"] <= 1000 * psend.summary["wall_s"] + 2
    assert psend.intervals[0]["pacing"]["due"] < 400  # half a second would be 500 at once


def test_warm_up_is_left_out() -> None:
    """Of the counts; the schedule goes on."""
    psend, precv = pair.run_pair(["--send-rate", "500", "--warmup", "500ms", "-d", "1s"])
    pair.assert_delivered(psend, precv, psend.messages["sent"])
    late_s = psend.summary["end_s"] - 1.5
    assert 748 <= psend.messages["sent"] <= 752 + 500 * late_s
    assert psend.summary["pacing"]["due"] < psend.messages["sent"] - 200


@pytest.mark.measures
def test_low_rates_cost_little() -> None:
    """Ten a second: no tick, no spinning."""
    psend, _ = pair.run_pair(["--send-rate", "10", "-d", "2s", *QUIET])
    cpu = psend.summary["cpu"]
    with measured():
        assert cpu["percent"] < 1
        assert cpu["switches_voluntary"] < 200, "two waits for each message, and a few"


def test_delivery_in_parts_is_paced() -> None:
    """A message that is longer than the peer's session window."""
    options = ["--send-rate", "100", "-m", "50", "--content-size", "20k"]
    psend, precv = pair.run_pair(options, ["--max-frame", "512", "--session-window", "4Ki"])
    pair.assert_delivered(psend, precv, 50)
    assert psend.summary["send_delay_ns"]["count"] == psend.summary["pacing"]["due"] == 50


def test_lines_are_paced() -> None:
    """--content-stdin: what has come waits until it is due."""
    receiver, url = pair.listen("precv", "--print-content")
    read_fd, write_fd = os.pipe()
    os.write(write_fd, "".join(f"{i}\n" for i in range(60)).encode())
    os.close(write_fd)
    options = ["--content-stdin", "--send-rate", "100", *QUIET]
    sender = pair.start("psend", url, *options, stdin=read_fd)
    os.close(read_fd)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_codes((psend, precv), 0, 0)
    assert precv.stdout.splitlines() == [str(i) for i in range(60)]
    assert psend.summary["wall_s"] > 0.58
    assert psend.summary["pacing"]["due"] == 60


def test_closed_loop_has_no_pacing() -> None:
    """What does not exist is null."""
    psend, _ = pair.run_pair(["-m", "100"])
    for period in (*psend.intervals, psend.summary):
        assert period["pacing"] is None and period["send_delay_ns"] is None
        assert period["batch"] is None and period["round_trip_ns"] is None
