"""--reconnect: connections that are lost, and what becomes of messages and reports."""

import signal
import socket
import subprocess
from pathlib import Path

import certificates
import pair
import pytest
import relay
from measuring import measured
from stranger import Stranger, refusal

CONNECTION, SECURITY, SHORT = 2, 3, 4
RECONNECT = ["--reconnect", "--interval", "50ms"]


def finish_receiver(receiver: pair.Child) -> pair.Result:
    """A receiver that would go on for ever."""
    pair.send_signal(receiver, signal.SIGINT)
    precv = pair.finish(receiver)
    assert precv.code == 128 + signal.SIGINT
    return precv


def assert_all_arrived(psend: pair.Result, precv: pair.Result) -> None:
    """Each message once, or more often if it was sent again."""
    pair.assert_accounts(psend.summary)
    sent = psend.messages["sent"]
    assert psend.messages["accepted"] == sent and psend.messages["unsettled"] == 0
    received = precv.messages
    assert received["lost"] == received["reordered"] == received["no_sequence"] == 0
    assert received["received"] == sent + received["duplicated"]
    assert received["duplicated"] <= psend.messages["resent"]


def assert_intervals_add_up(result: pair.Result) -> None:
    """To the summary, in what is about connections."""
    total = result.summary["connection"]
    parts = [interval["connection"] for interval in result.intervals]
    assert sum(part["reconnects"] for part in parts) == total["reconnects"]
    seconds = sum(part["disconnected_s"] for part in parts)
    assert seconds == pytest.approx(total["disconnected_s"], abs=1e-6)


def silent_intervals(child: pair.Child, count: int) -> None:
    """Waits for so many intervals in a row, from now on, without a message."""
    name = "sent" if child.name == "psend" else "received"
    with child.more:
        seen = sum(event["event"] == "interval" for event in child.events)
    while True:
        found = [pair.wait_for(child, "interval", seen + n + 1) for n in range(count)]
        if not any(interval["messages"][name] for interval in found):
            return
        seen += 1


def start_relayed(
    *psend: str, precv: tuple[str, ...] = ()
) -> tuple[pair.Child, pair.Child, relay.Relay]:
    """A receiver that listens, and a sender that reaches it through a relay and has sent."""
    receiver, url = pair.listen("precv", "--forever", "--interval", "50ms", *precv)
    between = relay.start(url)
    sender = pair.start("psend", between.url, *RECONNECT, *psend)
    pair.wait_for(sender, "interval", 2)
    return sender, receiver, between


@pytest.mark.parametrize("options", [[], ["--max-unsettled", "10"], ["--content-size", "100k"]])
def test_sender_goes_on(options: list[str]) -> None:
    """Through three cuts: all arrives, what was not settled is sent again, and is seen to be."""
    sender, receiver, between = start_relayed("-d", "4s", *options)
    for number in range(2, 5):
        between.cut()
        between.wait_for(number)
        pair.wait_for_more(sender, "interval")
    psend = pair.finish(sender)
    precv = finish_receiver(receiver)
    assert psend.code == 0, psend
    assert psend.summary["stop_reason"] == "duration"
    assert_all_arrived(psend, precv)
    assert psend.summary["connection"]["reconnects"] == 3
    assert 0.075 < psend.summary["connection"]["disconnected_s"] < 1.5
    assert psend.messages["resent"] > 0
    assert_intervals_add_up(psend)
    pair.assert_time_is_whole(psend.summary)
    errors = psend.of_kind("error")
    assert len(errors) == len(psend.lines) == 3
    assert all(error["exit_code"] == 0 for error in errors)
    assert all(line.endswith("connecting again") for line in psend.lines)
    assert len(psend.of_kind("ready")) == 1


def test_count_of_messages() -> None:
    """-m is of messages sent once, and the run goes on until the last of them is settled."""
    count = 200000  # some intervals, with sanitizers or without
    sender, receiver, between = start_relayed("-m", str(count))
    between.cut()
    psend, precv = pair.finish(sender), finish_receiver(receiver)
    assert psend.code == 0, psend
    assert psend.messages["sent"] == count
    assert_all_arrived(psend, precv)


def test_large_messages_through_a_small_window() -> None:
    """One that was begun is begun anew."""
    window = ("--max-frame", "1Ki", "--session-window", "8Ki")
    sender, receiver, between = start_relayed("-d", "1s", "--content-size", "100k", precv=window)
    for number in range(2, 5):
        between.cut()
        between.wait_for(number)
    psend, precv = pair.finish(sender), finish_receiver(receiver)
    assert psend.code == 0, psend
    assert_all_arrived(psend, precv)


@pytest.mark.parametrize("window", [[], ["--max-frame", "512", "--session-window", "2Ki"]])
def test_lines_are_sent_again_as_they_were(tmp_path: Path, window: list[str]) -> None:
    """Each line of standard input arrives, in order but for what comes again."""
    saved = tmp_path / "saved"
    receiver, url = pair.listen(
        *("precv", "--forever", "--print-content", "--ignore-duplicates", *window),
        stdout=saved.open("wb"),
    )
    between = relay.start(url)
    lines = [b"%d " % n * (n % 300) for n in range(pair.count(30000))]
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        assert cat.stdin and cat.stdout
        sender = pair.start(
            "psend", between.url, *RECONNECT, "--content-stdin", "--send-eos", "1",
            stdin=cat.stdout.fileno(),
        )
        half = len(lines) // 2
        cat.stdin.write(b"".join(line + b"\n" for line in lines[:half]))
        cat.stdin.flush()
        pair.wait_for(sender, "interval", 2)
        between.cut()
        cat.stdin.write(b"".join(line + b"\n" for line in lines[half:]))
        cat.stdin.close()
        psend = pair.finish(sender)
    precv = pair.finish(receiver)
    assert psend.code == precv.code == 0, (psend, precv)
    assert psend.summary["stop_reason"] == "input" and precv.summary["stop_reason"] == "eos"
    assert psend.messages["sent"] == precv.messages["received"] == len(lines)
    assert psend.summary["connection"]["reconnects"] == 1
    assert saved.read_bytes().splitlines() == lines


def test_groups_and_checked_content_are_sent_again() -> None:
    """With the heads that they had: the numbers in their bodies fit those in their properties."""
    sender, receiver, between = start_relayed(
        *["-d", "1s", "--group-size", "3", "--check-content", "--send-eos", "1"],
        precv=("--check-content", "--credit", "100"),
    )
    between.hold()
    silent_intervals(sender, 2)
    between.cut()
    psend, precv = pair.finish(sender), pair.finish(receiver)
    assert psend.code == 0 and precv.messages["corrupted"] == 0, (psend, precv)
    assert psend.messages["resent"] > 0
    assert_all_arrived(psend, precv)


def test_all_that_was_not_settled_is_sent_again() -> None:
    """Exactly that: the sender has used up its credit when the connection is cut."""
    sender, receiver, between = start_relayed("-d", "2s", precv=("--credit", "100"))
    between.hold()
    silent_intervals(sender, 3)
    with sender.more:
        before = [event["messages"] for event in sender.events if event["event"] == "interval"]
    between.cut()
    psend, precv = pair.finish(sender), finish_receiver(receiver)
    assert psend.code == 0, psend
    assert_all_arrived(psend, precv)
    unsettled = sum(messages["sent"] - messages["accepted"] for messages in before)
    assert psend.messages["resent"] == unsettled <= 100
    if unsettled:  # from the first time they were sent
        assert psend.summary["settlement_ns"]["max"] > 0.1e9


def test_duplicates_are_ignored_if_asked_for() -> None:
    """Then what is received is what was sent."""
    sender, receiver, between = start_relayed("-d", "1s", precv=("--ignore-duplicates",))
    between.cut()
    psend, precv = pair.finish(sender), finish_receiver(receiver)
    assert precv.messages["received"] == psend.messages["sent"] == psend.messages["accepted"]


@pytest.mark.parametrize("options", [[], ["--presettled"]])
def test_gap_in_the_report(options: list[str]) -> None:
    """Intervals go on while there is no connection, with zeros, and the gap has a length."""
    sender, receiver, between = start_relayed("-d", "3s", *options)
    between.refuse()
    between.cut()
    silent_intervals(sender, 8)
    between.accept()
    pair.wait_for_more(sender, "interval")
    psend, precv = pair.finish(sender), finish_receiver(receiver)
    gap_s = psend.summary["connection"]["disconnected_s"]
    assert 0.35 < gap_s < 2
    parts = [
        (i, i["connection"]["disconnected_s"], i["end_s"] - i["start_s"]) for i in psend.intervals
    ]
    assert all(part_s <= length_s + 1e-6 for _, part_s, length_s in parts)
    inside = [interval for interval, part_s, length_s in parts if part_s > length_s - 1e-6]
    assert len(inside) >= 6
    assert not any(interval["messages"]["sent"] for interval in inside)
    assert sum(i["time_s"]["idle"] for i in inside) > 0.9 * 0.05 * len(inside)
    assert_intervals_add_up(psend)
    assert f"connection: reconnects 1  disconnected {gap_s:.3f} s" in psend.stdout
    assert precv.messages["received"] > 0
    if not options:
        assert_all_arrived(psend, precv)


def test_no_line_without_a_loss() -> None:
    """The text summary does not speak of what has not happened."""
    psend, precv = pair.run_pair(["-m", "10", "--reconnect"])
    for result in (psend, precv):
        assert result.summary["connection"] == {"reconnects": 0, "disconnected_s": 0}
        assert "connection:" not in result.stdout
    assert psend.messages["resent"] == 0


def test_receiver_goes_on() -> None:
    """It attaches again, grants credit again, and knows what it has had before."""
    sender, url = pair.listen("psend", "--forever", "-m", "0")
    between = relay.start(url)
    receiver = pair.start("precv", between.url, *RECONNECT)
    for number in range(2, 4):
        pair.wait_for_more(receiver, "interval")
        between.cut()
        between.wait_for(number)
    pair.wait_for_more(receiver, "interval")
    pair.wait_for_more(receiver, "interval")
    precv = finish_receiver(receiver)
    assert precv.summary["connection"]["reconnects"] == 2
    assert_intervals_add_up(precv)
    assert all(error["exit_code"] == 0 for error in precv.of_kind("error"))
    assert precv.intervals[-2]["messages"]["received"] > 0
    assert precv.messages["duplicated"] > 0  # that sender begins at 1 with each link
    pair.send_signal(sender, signal.SIGTERM)
    assert pair.finish(sender).code == 128 + signal.SIGTERM


SAME = ("--container-id", "same", "--link-name", "same")


def test_sender_that_has_ended_begins_anew() -> None:
    """Two runs under one name are two senders."""
    receiver, url = pair.listen("precv", "--forever")
    pair.assert_codes([pair.run("psend", url, "-m", "100", *SAME) for _ in range(2)], 0, 0)
    precv = finish_receiver(receiver)
    assert precv.messages["received"] == 200 and precv.messages["duplicated"] == 0


def test_sender_that_was_killed_goes_on() -> None:
    """For all that a receiver can tell, its connection was lost."""
    receiver, url = pair.listen("precv", "--forever")
    sender = pair.start("psend", url, "-m", "0", "--interval", "50ms", *SAME)
    pair.wait_for(sender, "interval")
    pair.send_signal(sender, signal.SIGKILL)
    pair.wait_for(receiver, "error")
    pair.assert_codes([pair.run("psend", url, "-m", "10", *SAME)], 0)
    precv = finish_receiver(receiver)
    assert precv.messages["duplicated"] == 10 and precv.messages["lost"] == 0


def test_stalled_connection() -> None:
    """--idle-timeout finds it, although there is no room to say so to the peer."""
    sender, receiver, between = start_relayed(
        "-d", "2s", "--idle-timeout", "200ms", precv=("--close-timeout", "200ms")
    )
    between.hold()
    between.wait_for(2)
    psend, precv = pair.finish(sender), finish_receiver(receiver)
    assert psend.code == 0, psend
    assert psend.summary["connection"]["reconnects"] == 1
    assert_all_arrived(psend, precv)


# ---- how it ends ----


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_nobody_there(program: str) -> None:
    """N more attempts, then code 2; the first failure and the last are said."""
    with socket.create_server((pair.HOST, 0)) as server:
        where = f"{pair.HOST}:{server.getsockname()[1]}"
    result = pair.run(program, where, "--reconnect=3")
    assert result.code == CONNECTION and result.summary["stop_reason"] == "failed"
    assert [error["exit_code"] for error in result.of_kind("error")] == [0, CONNECTION]
    assert len(result.lines) == 2 and all("refused" in line for line in result.lines)
    assert 0.025 + 0.05 + 0.1 <= result.seconds < 2.5  # half of the three steps at least


def test_peer_does_not_come_back() -> None:
    """The same after a loss."""
    children = pair.start_endless(["--reconnect=2"])
    pair.send_signal(children["precv"], signal.SIGKILL)
    psend = pair.finish(children["psend"])
    assert psend.code == CONNECTION and psend.summary["stop_reason"] == "failed"
    assert [error["exit_code"] for error in psend.of_kind("error")] == [0, CONNECTION]
    assert psend.summary["connection"]["reconnects"] == 0
    assert psend.summary["connection"]["disconnected_s"] > 0.05
    pair.assert_accounts(psend.summary)
    assert_intervals_add_up(psend)


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_signal_in_the_gap(program: str) -> None:
    """Ends the run at once and in order."""
    other = "precv" if program == "psend" else "psend"
    peer, url = pair.listen(other, "--forever", *(["-m", "0"] if other == "psend" else []))
    between = relay.start(url)
    child = pair.start(program, between.url, *RECONNECT)
    pair.wait_for(child, "interval", 2)
    between.refuse()
    between.cut()
    silent_intervals(child, 3)
    pair.send_signal(child, signal.SIGINT)
    result = pair.finish(child, 1)
    assert result.code == 128 + signal.SIGINT and result.summary["interrupted"]
    assert result.summary["stop_reason"] == "signal"
    pair.send_signal(peer, signal.SIGKILL)


@pytest.mark.measures
def test_duration_in_the_gap() -> None:
    """Ends the run, which is short of what was not settled."""
    children = pair.start_endless(["--reconnect", "-d", "1s"])
    pair.send_signal(children["precv"], signal.SIGKILL)
    psend = pair.finish(children["psend"])
    assert psend.summary["stop_reason"] == "duration"
    with measured():
        assert psend.summary["wall_s"] == pytest.approx(1, abs=0.1)
    assert psend.code == (SHORT if psend.messages["unsettled"] else 0)
    pair.assert_accounts(psend.summary)
    pair.assert_time_is_whole(psend.summary)


def test_timeout_in_the_gap() -> None:
    """No traffic is no traffic."""
    sender, url = pair.listen("psend", "--forever", "-m", "0")
    between = relay.start(url)
    receiver = pair.start("precv", between.url, *RECONNECT, "--timeout", "400ms")
    pair.wait_for(receiver, "interval", 2)
    between.refuse()
    between.cut()
    precv = pair.finish(receiver)
    assert precv.code == 0 and precv.summary["stop_reason"] == "timeout"
    pair.send_signal(sender, signal.SIGKILL)


# ---- what is tried again, and what is not ----


@pytest.mark.parametrize(
    "condition,code,connections",
    [
        ("amqp:connection:forced", CONNECTION, 3),
        ("amqp:connection:framing-error", CONNECTION, 3),
        ("amqp:not-allowed", CONNECTION, 1),
        ("amqp:connection:redirect", CONNECTION, 1),
        ("amqp:unauthorized-access", SECURITY, 1),
    ],
)
def test_closed_by_the_peer(condition: str, code: int, connections: int) -> None:
    """A peer that is being shut down may come back; one that refuses us will again."""
    with Stranger(refusal(condition, "because")) as stranger:
        psend = pair.run("psend", stranger.url, "--reconnect=2", "--sasl-mechs", "none")
    assert psend.code == code and len(stranger.clients) == connections
    assert all("because" in line for line in psend.lines)


def test_connect_timeout_is_of_each_attempt() -> None:
    """A peer that says nothing is given up, and tried again."""
    with Stranger(b"") as stranger:
        psend = pair.run("psend", stranger.url, "--reconnect=2", "--connect-timeout", "100ms")
    assert psend.code == CONNECTION and len(stranger.clients) == 3
    assert 0.3 + 0.075 <= psend.seconds < 3
    assert all("no answer within the connect timeout" in line for line in psend.lines)


def test_orderly_end_is_none_to_mend() -> None:
    """A receiver that has enough detaches: no other is looked for."""
    psend, precv = pair.run_pair(["-m", "1000", "--reconnect"], ["-m", "500"])
    pair.assert_codes((psend, precv), SHORT, 0)
    assert psend.summary["stop_reason"] == "detached" and not psend.of_kind("error")


def close_one(server: socket.socket) -> None:
    """Lets one client begin, and closes in order, as a balancer does whose servers are down."""
    client, _ = server.accept()
    client.settimeout(pair.DEADLINE_S)
    client.recv(1 << 16)
    client.close()


def test_closed_in_the_handshake(tmp_path: Path) -> None:
    """Of a connection that is made again: another attempt follows, also with TLS."""
    files = certificates.Certificates(tmp_path)
    receiver = pair.start(
        "precv", "--listen", pair.ANY_PORT, "--forever", *files.server.options
    )
    between = relay.start(f"{pair.HOST}:{pair.wait_for(receiver, 'ready')['port']}")
    target = between.target
    url = f"amqps://{between.url}"
    sender = pair.start("psend", url, *RECONNECT, "-d", "2s", "--tls-ca", files.authority.file)
    pair.wait_for(sender, "interval", 2)
    with socket.create_server((pair.HOST, 0)) as closing:
        between.target = closing.getsockname()
        between.cut()
        for _ in range(2):
            close_one(closing)
        between.target = target
    psend = pair.finish(sender)
    precv = finish_receiver(receiver)
    assert psend.code == 0, psend
    assert psend.summary["connection"]["reconnects"] == 1
    assert_all_arrived(psend, precv)
