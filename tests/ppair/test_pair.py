"""One run: who is started when and connects to whom, what counts as good, who is blamed if not."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_peer import EPOCH_NS, WELL, merged, summary_event, told
from ppair import accounting, metrics, pair, peer as peers
from ppair.events import Event
from ppair.failure import Exit
from ppair.pair import Outcome
from ppair.peer import Peer
from ppair.spec import Spec

Fakes = Callable[..., Path]
Steps = list[Any]

FAR_S = 20.0  # no test takes so long, unless it fails
QUICK_LADDER = ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.2), (signal.SIGKILL, FAR_S))
IDLE_SENDER = ["start", "ready", "interval", "summary"]  # which does not connect
VIA = "amqp://broker:5672/queue"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "SHORT_LADDER", QUICK_LADDER)
    monkeypatch.setattr(pair, "AFTERMATH_S", FAR_S)  # what is waited for must come


def _nothing(peer: Peer, event: Event) -> None:
    pass


def _run(folder: Path, observer: peers.Observer = _nothing, **fields: Any) -> Outcome:
    """One run of the programs in FOLDER, with their files in FOLDER/work."""

    async def body() -> Outcome:
        work = folder / "work"
        work.mkdir(exist_ok=True)
        outcome = Outcome()
        async with asyncio.timeout(FAR_S):
            await pair.run(Spec(bin=str(folder), **fields), work, outcome, observer, {})
        return outcome

    outcome = asyncio.run(body())
    assert all(peer.exit_code is not None for peer in outcome.peers)
    assert outcome.good == (outcome.why is None) == (outcome.exit_code == Exit.DONE)
    return outcome


def _why(folder: Path, **fields: Any) -> tuple[str | None, int]:
    outcome = _run(folder, **fields)
    return outcome.why, outcome.exit_code


def _fifo(tmp_path: Path, name: str = "fifo") -> str:
    os.mkfifo(tmp_path / name)
    return str(tmp_path / name)


def _argvs(folder: Path, program: str) -> list[list[str]]:
    return [each["argv"] for each in told(folder, program)]


def _kinds(folder: Path, name: str) -> list[str]:
    lines = (folder / "work" / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line)["event"] for line in lines]


# ---- as it should be ----


def test_good_run(fakes: Fakes) -> None:
    outcome = _run(fakes(), psend=("--messages", "500"))
    assert outcome.good, outcome.why
    assert [(p.name, p.exit_code) for p in outcome.peers] == [("precv-0", 0), ("psend-0", 0)]
    assert outcome.metrics["messages_per_s"] == 500
    assert outcome.facts["cpu_count"] == 64


def test_words_of_both(fakes: Fakes) -> None:
    """Ours come last, so that nothing replaces them; the clock can be chosen."""
    folder = fakes()
    _run(folder, psend=("--messages", "5"), precv=("--clock", "realtime"))
    (psend,), (precv,) = _argvs(folder, "psend"), _argvs(folder, "precv")
    ours = ["--format", "json", "--parent-fd", "0"]
    assert psend[:-1] == ["--clock", "monotonic", "--messages", "5", *ours]
    first = ["--clock", "monotonic", "--clock", "realtime"]
    assert precv == [*first, *ours, "--listen", "127.0.0.1:0"]


def test_listen_address(fakes: Fakes) -> None:
    folder = fakes()
    assert _run(folder, listen="127.0.0.2").good
    assert _argvs(folder, "precv")[0][-1] == "127.0.0.2:0"
    assert _argvs(folder, "psend")[0][-1].startswith("amqp://127.0.0.2:")


@pytest.mark.parametrize(
    ("address", "port", "joined"),
    [("127.0.0.1", 0, "127.0.0.1:0"), ("::1", 5, "[::1]:5"), ("host", 5672, "host:5672")],
)
def test_addresses_with_colons_are_put_in_brackets(address: str, port: int, joined: str) -> None:
    assert pair._join(address, port) == joined


@pytest.mark.parametrize(("senders", "receivers"), [(2, 2), (3, 1), (5, 2)])
def test_sender_i_connects_to_receiver_i_mod_m(
    fakes: Fakes, senders: int, receivers: int
) -> None:
    folder = fakes()
    outcome = _run(folder, senders=senders, receivers=receivers, psend=("--messages", "100"))
    assert outcome.good, outcome.why
    started = [p.name for p in outcome.peers]
    assert started == [f"precv-{i}" for i in range(receivers)] + [
        f"psend-{i}" for i in range(senders)
    ]
    ports = [p.ready["port"] for p in outcome.peers[:receivers] if p.ready]
    urls = [p.argv[-1] for p in outcome.peers[receivers:]]
    expected = [f"amqp://127.0.0.1:{port}/ppair" for port in ports]
    assert urls == list(itertools.islice(itertools.cycle(expected), senders))
    received = [p.summary["messages"]["received"] for p in outcome.peers[:receivers] if p.summary]
    assert received == [100 * urls.count(url) for url in expected]


def test_receivers_of_several_senders_are_told_to_end(fakes: Fakes) -> None:
    """The first sender may have gone before the last has come."""
    folder = fakes()
    outcome = _run(folder, senders=3)
    assert outcome.good, outcome.why
    assert "--forever" in _argvs(folder, "precv")[0]
    assert outcome.peers[0].exit_code == 128 + signal.SIGINT


def test_a_receiver_of_one_sender_ends_by_itself(fakes: Fakes) -> None:
    folder = fakes()
    outcome = _run(folder, senders=2, receivers=2)
    assert "--forever" not in _argvs(folder, "precv")[0]
    assert [p.exit_code for p in outcome.peers[:2]] == [0, 0]


def test_senders_start_when_all_receivers_are_ready(fakes: Fakes, tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)
    late = ["start", ["await", fifo], *WELL[1:]]
    folder = fakes(precv={0: WELL, 1: late})

    def observer(peer: Peer, event: Event) -> None:
        if peer.name == "precv-0" and event["event"] == "ready":
            assert not told(folder, "psend")
            with open(fifo, "w") as writer:
                writer.write(".")

    outcome = _run(folder, observer, senders=2, receivers=2)
    assert outcome.good, outcome.why


def test_two_runs_at_once(fakes: Fakes, tmp_path: Path) -> None:
    folder = fakes()

    async def body() -> list[Outcome]:
        outcomes = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            outcomes.append(Outcome())
        runs = zip(("a", "b"), outcomes)
        spec = Spec(bin=str(folder), senders=2)
        await asyncio.gather(*(pair.run(spec, tmp_path / n, o, _nothing, {}) for n, o in runs))
        return outcomes

    outcomes = asyncio.run(body())
    assert [outcome.why for outcome in outcomes] == [None, None]
    ports = {outcome.peers[0].ready["port"] for outcome in outcomes if outcome.peers[0].ready}
    assert len(ports) == 2
    assert all((tmp_path / n / "psend-1.jsonl").exists() for n in ("a", "b"))


# ---- starting fails ----


def test_receiver_is_never_ready(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "READY_DEADLINE_S", 0.3)
    folder = fakes(precv=[["start", ["stderr", "precv: still here"], "hang"]])
    why = 'precv-0: was not ready in time; it said "precv: still here"'
    monkeypatch.setattr(pair, "AFTERMATH_S", 0.1)
    assert _why(folder) == (why, Exit.CONNECTION)
    assert not told(folder, "psend")


def test_the_deadline_is_one_for_all_receivers(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "READY_DEADLINE_S", 2.0)
    monkeypatch.setattr(pair, "AFTERMATH_S", 0.1)
    began_s = time.monotonic()
    why, _ = _why(fakes(precv=[["start", "hang"]]), senders=8, receivers=8)
    assert why == "precv-0: was not ready in time"
    assert time.monotonic() - began_s < 10


def test_a_receiver_dies_while_another_is_not_ready_yet(fakes: Fakes) -> None:
    dead = [["stderr", "precv: cannot listen"], ["exit", 2]]
    folder = fakes(precv={0: ["start", "hang"], 1: dead})
    began_s = time.monotonic()
    assert _why_without_aftermath(folder, senders=2, receivers=2) == (
        'precv-1: ended with exit code 2 before it was ready; it said "precv: cannot listen"'
    )
    assert time.monotonic() - began_s < pair.READY_DEADLINE_S / 2


def _why_without_aftermath(folder: Path, **fields: Any) -> str | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair, "AFTERMATH_S", 0.1)
        return _why(folder, **fields)[0]


@pytest.mark.parametrize("program", ["psend", "precv"])
def test_a_program_is_missing(fakes: Fakes, program: str) -> None:
    folder = fakes()
    (folder / program).unlink()
    why = f"{program}-0: {folder / program}: No such file or directory"
    assert _why(folder) == (why, Exit.INTERNAL)


def test_a_program_is_not_executable(fakes: Fakes) -> None:
    folder = fakes()
    (folder / "psend").unlink()
    (folder / "psend").write_text("")
    assert _why(folder) == (f"psend-0: {folder / 'psend'}: Permission denied", Exit.INTERNAL)


def test_ready_without_a_port(fakes: Fakes) -> None:
    folder = fakes(precv=[["start", ["ready", {"port": None}], "hang"]])
    assert _why(folder) == ("precv-0: does not say on which port it listens", Exit.INTERNAL)


def test_a_value_that_the_program_refuses(fakes: Fakes) -> None:
    refuse = [["stderr", "precv: --credit: no number"], ["exit", 64]]
    why, code = _why(fakes(precv=[refuse]))
    assert why and why.endswith('it said "precv: --credit: no number"')
    assert code == Exit.USAGE


# ---- the end is bad ----


def test_a_sender_that_fails_is_named_and_the_receiver_ended(fakes: Fakes) -> None:
    dying = ["start", ["stderr", "psend: refused"], ["exit", 3]]
    folder = fakes(psend=[dying])
    why = 'psend-0: ended with exit code 3; it said "psend: refused"'
    outcome = _run(folder)
    assert (outcome.why, outcome.exit_code) == (why, Exit.AUTHENTICATION)
    assert outcome.peers[0].exit_code == 128 + signal.SIGINT


def test_what_the_others_say_at_the_end_is_kept(fakes: Fakes) -> None:
    folder = fakes(psend=[["start", ["exit", 1]]])
    _run(folder)
    assert _kinds(folder, "precv-0") == ["start", "ready", "summary"]


@pytest.mark.parametrize("first", ["psend", "precv"])
def test_the_dead_is_named_not_the_one_who_lost_it(
    fakes: Fakes, tmp_path: Path, first: str
) -> None:
    """Whichever of both is noticed first."""
    fifo = _fifo(tmp_path)
    dies = [["die", "SIGKILL"]]
    fails = [["stderr", "psend: connection lost"], ["exit", 2]]
    wait, tell = [["await", fifo]], [["tell", fifo]]
    folder = fakes(
        precv=[["start", "ready", *(tell if first == "precv" else wait), *dies]],
        psend=[["start", *(tell if first == "psend" else wait), *fails]],
    )
    assert _why(folder) == ("precv-0: was ended by SIGKILL", Exit.CONNECTION)


def test_one_that_failed_by_itself_is_named_too(fakes: Fakes, tmp_path: Path) -> None:
    fifo = _fifo(tmp_path)
    folder = fakes(
        precv=[["start", "ready", ["await", fifo], ["stderr", "precv: disk full"], ["exit", 1]]],
        psend=[["start", ["tell", fifo], ["exit", 2]]],
    )
    why = 'precv-0: ended with exit code 1; it said "precv: disk full"'
    assert _why(folder) == (why, Exit.INTERNAL)


def test_garbage_is_a_failed_run(fakes: Fakes) -> None:
    folder = fakes(psend=[["start", ["raw", "Segmentation fault\n"], "hang"]])
    assert _why(folder) == ('psend-0: "Segmentation fault" is not an event', Exit.INTERNAL)


def test_no_summary(fakes: Fakes) -> None:
    folder = fakes(psend=[["start", "ready", "talk", ["exit", 0]]])
    assert _why(folder) == ("psend-0: ended without a summary", Exit.INTERNAL)


def test_a_sender_hangs(fakes: Fakes) -> None:
    folder = fakes(psend=[["start", "ready", "hang"]])
    why = _why_without_aftermath(folder, deadline_s=2.0)
    assert why == "psend-0: has not ended 2 s after the start"


def test_a_receiver_hangs(fakes: Fakes) -> None:
    folder = fakes(precv=[["start", "ready", "talk", "summary", "hang"]])
    why = _why_without_aftermath(folder, deadline_s=2.0)
    assert why == "precv-0: has not ended 2 s after the start"


def test_one_that_closes_its_output_and_lives_on(fakes: Fakes) -> None:
    folder = fakes(psend=[["start", "ready", "talk", "summary", "close", "hang"]])
    why = _why_without_aftermath(folder, deadline_s=2.0)
    assert why == "psend-0: has not ended 2 s after the start"


def test_one_that_nothing_but_sigkill_ends(fakes: Fakes) -> None:
    steps = [["ignore", "SIGINT", "SIGTERM", "PARENT"], "start", "ready", "hang"]
    folder = fakes(psend=[steps])
    began_s = time.monotonic()
    why = _why_without_aftermath(folder, deadline_s=2.0)
    assert why == "psend-0: has not ended 2 s after the start"
    assert time.monotonic() - began_s < FAR_S / 2


def test_the_disk_is_full(fakes: Fakes) -> None:
    folder = fakes()
    (folder / "work").mkdir()
    (folder / "work" / "psend-0.jsonl").symlink_to("/dev/full")
    why = "psend-0: psend-0.jsonl: No space left on device"
    assert _why(folder) == (why, Exit.INTERNAL)


# ---- accounting ----


def _summing(program: str, **messages: Any) -> dict[str, list[Steps]]:
    """Behaviours of one whose counts are not as they should be."""
    return {program: [[*WELL[:-1], ["summary", {"messages": messages}]]]}


@pytest.mark.parametrize(
    ("behaviours", "why"),
    [
        (_summing("precv", received=999), "1000 messages sent, 999 received"),
        (_summing("psend", accepted=990), "psend: 1000 sent is not the sum of the outcomes"),
    ],
)
def test_what_does_not_add_up_is_a_failed_run(
    fakes: Fakes, behaviours: dict[str, list[Steps]], why: str
) -> None:
    outcome = _run(fakes(**behaviours))
    assert (outcome.why, outcome.exit_code) == (why, Exit.SHORT)
    assert outcome.facts["missing"] == why
    assert outcome.metrics["messages_per_s"] == 1000  # was measured all the same


def _said(program: str, presettled: bool = False, **messages: int) -> Event:
    event = summary_event(program, 1000, presettled=presettled)
    return merged(event, {"messages": messages})


@pytest.mark.parametrize(
    ("psend", "precv", "why"),
    [
        ([{}], [{}], None),
        ([{}], [{"received": 1001}], "1000 messages sent, 1001 received"),
        ([{}], [{"lost": 3}], "precv: 3 messages lost"),
        ([{}], [{"duplicated": 2}], "precv: 2 messages duplicated"),
        ([{}], [{"reordered": 2, "redelivered": 2, "no_sequence": 1000}], None),
        ([{"accepted": 990, "unsettled": 10}], [{}], "psend: 10 messages were never settled"),
        ([{"sent": 900, "accepted": 900}], [{}], "900 messages sent, 1000 received"),
        ([{"accepted": 400, "rejected": 300, "released": 200, "modified": 100}], [{}], None),
        ([{"accepted": 0, "no_outcome": 1000}], [{}], None),
        ([{"presettled": True}], [{}], None),
        ([{"presettled": True}], [{"received": 999}], "1000 messages sent, 999 received"),
        ([{}, {}], [{"received": 900}, {"received": 1100}], None),
        ([{}, {}], [{"received": 900}, {"received": 900}], "2000 messages sent, 1800 received"),
        ([{}, {"unsettled": 1, "accepted": 999}], [{}, {}], "psend: 1 messages were never settled"),
        ([{}, {}], [{}, {"lost": 1}], "precv: 1 messages lost"),
        ([{}], [{"duplicated": 1}], "precv: 1 messages duplicated"),
        ([{"resent": 5}], [{}], None),
        ([{"resent": 5}], [{"duplicated": 3, "received": 1003}], None),
        (
            [{"resent": 5}],
            [{"duplicated": 6, "received": 1006}],
            "precv: 6 messages duplicated, of which 5 were sent again",
        ),
        (
            [{"resent": 5}],
            [{"duplicated": 3, "received": 1002}],
            "1000 messages sent and 3 of them perhaps twice, 1002 received",
        ),
        ([{"resent": 0}], [{"corrupted": 2}], "precv: 2 messages were not as they had been sent"),
        ([{}], [{"corrupted": None}], None),
    ],
)
def test_what_is_missing(
    psend: list[dict[str, Any]], precv: list[dict[str, Any]], why: str | None
) -> None:
    said = [_said("psend", **each) for each in psend], [_said("precv", **each) for each in precv]
    assert accounting.what_is_missing(Spec(), *said) == why


@pytest.mark.parametrize(
    ("resent", "received", "good"),
    [(0, 2000, True), (0, 2001, False), (5, 2000, True), (5, 2005, True), (5, 2006, False)],
)
def test_of_several_at_one_queue_sums_are_judged(resent: int, received: int, good: bool) -> None:
    psend = [_said("psend", resent=resent), _said("psend")]
    precv = [_said("precv", lost=7, duplicated=7), _said("precv", received=received - 1000)]
    spec = Spec(via=VIA, senders=2, receivers=2)
    assert (accounting.what_is_missing(spec, psend, precv) is None) == good


def test_duplicates_that_are_ignored_are_not_among_those_received() -> None:
    said = [_said("psend", resent=5)], [_said("precv", duplicated=3)]
    spec = Spec(precv=("--ignore-duplicates",))
    assert accounting.what_is_missing(spec, *said) is None


def test_pre_settled_ones_have_no_outcome(fakes: Fakes) -> None:
    assert _run(fakes(), psend=("--presettled",)).good


def test_nothing_measured_is_a_failed_run(fakes: Fakes) -> None:
    steps = [*WELL[:-1], ["summary", {"first_s": 0.5, "last_s": 0.5, "measured_messages": 1}]]
    why = "nothing was measured: fewer than two messages after the warm-up"
    assert _why(fakes(precv=[steps])) == (why, Exit.SHORT)


@pytest.mark.parametrize(
    ("program", "step"),
    [
        ("precv", ["summary", {"latency_ns": ""}]),
        ("precv", ["summary", {"began_time_ns": "soon"}]),
        ("psend", ["summary", {"time_s": None}]),
    ],
)
def test_a_summary_that_lacks_something_is_a_failed_run(
    fakes: Fakes, program: str, step: Steps
) -> None:
    outcome = _run(fakes(**{program: [[*WELL[:-1], step]]}))
    assert outcome.why and outcome.why.startswith("start and summary are not as ppair/1 has them")
    assert outcome.exit_code == Exit.INTERNAL


def test_a_start_event_that_is_missing_is_a_failed_run(fakes: Fakes) -> None:
    outcome = _run(fakes(psend=[WELL[1:]], precv=[WELL[1:]]))
    assert outcome.why and outcome.why.startswith("start and summary are not as ppair/1 has them")


# ---- by way of a broker ----


def _receiving(*steps: Any) -> Steps:
    return ["start", "ready", *steps, "hang"]


def test_receivers_are_ended_when_all_has_arrived(fakes: Fakes, tmp_path: Path) -> None:
    """And no earlier: the last messages come when the sender has long ended."""
    sent, going = _fifo(tmp_path, "sent"), _fifo(tmp_path, "going")
    late = _receiving(["await", sent], ["receive", 400], ["await", going], ["receive", 600])
    seen: list[int] = []

    def observer(peer: Peer, event: Event) -> None:
        if peer.name == "precv-0" and event["event"] == "interval":
            seen.append(event["messages"]["received"])
            if len(seen) == 1:
                with open(going, "w") as writer:
                    writer.write(".")

    folder = fakes(psend=[["start", "ready", "summary", ["tell", sent]]], precv=[late])
    outcome = _run(folder, observer, via=VIA)
    assert outcome.good, outcome.why
    assert seen == [400, 600]
    assert outcome.peers[0].exit_code == 128 + signal.SIGINT
    assert [argv[-1] for argv in (*_argvs(folder, "psend"), *_argvs(folder, "precv"))] == [VIA, VIA]
    assert "--forever" not in _argvs(folder, "precv")[0]


def test_a_receiver_without_messages_does_not_end_the_others(
    fakes: Fakes, tmp_path: Path
) -> None:
    """It says every second that it has none, which is not that none come any more."""
    ended, fifo = _fifo(tmp_path, "ended"), _fifo(tmp_path)
    none = ["repeat", 10, ["receive", 0], ["sleep", 0.03]]
    idle = _receiving(["await", ended], none, ["tell", fifo])
    busy = _receiving(["receive", 500], ["await", fifo], ["receive", 500])
    folder = fakes(psend=[[*IDLE_SENDER, ["tell", ended]]], precv={0: idle, 1: busy})
    outcome = _run(folder, via=VIA, receivers=2)
    assert outcome.good, outcome.why


def test_more_receivers_than_senders(fakes: Fakes) -> None:
    half = _receiving(["receive", 500])
    outcome = _run(fakes(psend=[IDLE_SENDER], precv=[half]), via=VIA, receivers=2)
    assert outcome.good, outcome.why
    assert outcome.metrics["messages_per_s"] == 1000


def test_what_is_left_at_the_broker_is_a_failed_run(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "DRAIN_S", 0.1)
    folder = fakes(psend=[IDLE_SENDER], precv=[_receiving(["receive", 900])])
    why = "1000 messages sent, 900 received"
    assert _why(folder, via=VIA, precv=("--interval", "10ms")) == (why, Exit.SHORT)


def test_what_was_there_before_is_a_failed_run(fakes: Fakes) -> None:
    folder = fakes(psend=[IDLE_SENDER], precv=[_receiving(["receive", 1010])])
    why = "1000 messages sent, 1010 received: some were there before, or came from elsewhere"
    assert _why(folder, via=VIA) == (why, Exit.SHORT)


def test_what_came_before_anything_was_sent_is_a_failed_run(fakes: Fakes) -> None:
    """Although the sums agree: as much has been left for the next run."""
    early = ["start", "ready", ["receive", 1000], "hang"]
    later = ["summary", {"began_time_ns": EPOCH_NS + 1}]
    folder = fakes(psend=[["start", "ready", later]], precv=[early])
    why, code = _why(folder, via=VIA)
    assert why and why.startswith("messages of an earlier run were in the queue: empty it, or")
    assert code == Exit.SHORT


def test_nothing_sent_for_lack_of_credit_is_said(fakes: Fakes) -> None:
    none = {"messages": {"sent": 0, "accepted": 0}, "time_s": {"busy": 0.0, "credit": 1.0}}
    sender = ["start", "ready", ["summary", none]]
    why = "nothing was sent: the senders were never given credit"
    folder = fakes(psend=[sender], precv=[_receiving()])
    assert _why(folder, via=VIA) == (why, Exit.SHORT)


def test_a_broker_that_does_not_settle_is_said(fakes: Fakes) -> None:
    short = {"exit_code": 4, "messages": {"accepted": 990, "unsettled": 10}}
    folder = fakes(psend=[["start", "ready", ["summary", short]]], precv=[_receiving()])
    why, code = _why(folder, via=VIA)
    assert why and why.startswith("psend-0: ended with 10 messages not settled")
    assert code == Exit.SHORT


def test_numbers_of_several_at_one_queue_are_not_judged(fakes: Fakes) -> None:
    """Each of two receivers has gaps that the other fills."""
    half = {"messages": {"received": 1000, "lost": 400, "duplicated": 300}}
    steps = ["start", "ready", ["receive", 1000], ["ignore", "SIGINT"], ["summary", half]]
    folder = fakes(psend=[IDLE_SENDER], precv=[steps])
    outcome = _run(folder, via=VIA, senders=2, receivers=2)
    assert outcome.good, outcome.why
    assert outcome.metrics["duplicated"] is None


# ---- TLS ----


def test_a_receiver_with_a_certificate_is_connected_to_with_tls(fakes: Fakes) -> None:
    folder = fakes(psend=[IDLE_SENDER], precv=[["start", "ready", ["receive", 1000], "summary"]])
    assert _run(folder, precv=("--tls-cert", "c.pem", "--tls-key", "k.pem")).good
    assert _argvs(folder, "psend")[0][-1].startswith("amqps://127.0.0.1:")


# ---- passwords ----


def test_a_password_is_in_the_environment_alone(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPAIR_PASSWORD", "s3cret")
    folder = fakes(psend=[IDLE_SENDER], precv=[_receiving(["receive", 1000])])
    assert _run(folder, via="amqp://bob@broker/q").good
    for program in ("psend", "precv"):
        (said,) = told(folder, program)
        assert said["password"] == "s3cret" and "s3cret" not in str(said["argv"])


def test_a_password_of_two_lines_stays_here(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPAIR_PASSWORD", "a\nb")
    why, code = _why(fakes(), via="amqp://bob@broker/q", precv_hosts=("far",))
    assert (why, code) == (
        "far: a password with a line end cannot be sent there; use --password-file",
        Exit.USAGE,
    )


def test_receivers_that_report_seldom_are_given_time(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "DRAIN_S", 0.0)
    ended = _fifo(tmp_path)
    slow = _receiving(["receive", 500], ["await", ended], ["sleep", 0.3], ["receive", 500])
    folder = fakes(psend=[[*IDLE_SENDER, ["tell", ended]]], precv=[slow])
    assert _run(folder, via=VIA, precv=("--interval", "10s")).good


def test_what_the_broker_has_not_taken_is_not_waited_for(fakes: Fakes) -> None:
    released = ["summary", {"messages": {"accepted": 700, "released": 300}}]
    folder = fakes(
        psend=[["start", "ready", released]], precv=[_receiving(["receive", 700])]
    )
    assert _why(folder, via=VIA)[0] == "1000 messages sent, 700 received"


def test_a_receiver_that_dies_while_the_rest_arrives_is_named_at_once(
    fakes: Fakes, tmp_path: Path
) -> None:
    fifo = _fifo(tmp_path)
    dying = ["start", "ready", ["await", fifo], ["sleep", 0.3], ["die", "SIGKILL"]]
    folder = fakes(
        psend=[["start", "ready", "summary", ["tell", fifo]]],
        precv={0: _receiving(["receive", 10]), 1: dying},
    )
    began_s = time.monotonic()
    assert _why(folder, via=VIA, receivers=2)[0] == "precv-1: was ended by SIGKILL"
    assert time.monotonic() - began_s < pair.DRAIN_S / 2


def test_receivers_that_end_by_themselves_are_not_waited_for(fakes: Fakes) -> None:
    ended = ["start", "ready", ["receive", 10], "summary"]
    began_s = time.monotonic()
    why, _ = _why(fakes(psend=[IDLE_SENDER], precv=[ended]), via=VIA)
    assert why == "1000 messages sent, 10 received"
    assert time.monotonic() - began_s < pair.DRAIN_S / 2


def test_pre_settled_ones_to_one_receiver_are_waited_for(fakes: Fakes, tmp_path: Path) -> None:
    """Of several senders, which may have gone before their messages have been taken."""
    sent = _fifo(tmp_path)
    steps = _receiving(["await", sent], ["receive", 400], ["sleep", 0.1], ["receive", 1600])
    gone = ["start", "ready", "summary"]
    folder = fakes(psend={0: gone, 1: [*gone, ["tell", sent]]}, precv=[steps])
    outcome = _run(folder, senders=2, psend=("--presettled",))
    assert outcome.good, outcome.why


def test_what_a_receiver_has_accepted_is_not_waited_for(fakes: Fakes) -> None:
    """Although it has not reported it yet."""
    folder = fakes(psend=[IDLE_SENDER], precv=[_receiving(["receive", 2000, "quiet"])])
    began_s = time.monotonic()
    outcome = _run(folder, senders=2)
    assert outcome.good, outcome.why
    assert time.monotonic() - began_s < pair.DRAIN_S / 2


# ---- interrupted ----


def _interrupted(
    folder: Path, name: str, kind: str, times: int = 1, **fields: Any
) -> tuple[Outcome, float]:
    """A run that is cancelled when NAME says KIND, and how long it took from then."""

    async def body() -> tuple[Outcome, float]:
        loop = asyncio.get_running_loop()
        work, outcome, began_s = folder / "work", Outcome(), 0.0
        work.mkdir()

        def observer(peer: Peer, event: Event) -> None:
            nonlocal began_s
            if (peer.name, event["event"]) == (name, kind):
                began_s = time.monotonic()
                for number in range(times):
                    loop.call_later(0.1 * number, task.cancel)

        spec = Spec(bin=str(folder), **fields)
        task = loop.create_task(pair.run(spec, work, outcome, observer, {}))
        with pytest.raises(asyncio.CancelledError):
            await task
        return outcome, time.monotonic() - began_s

    outcome, took_s = asyncio.run(body())
    assert all(peer.exit_code is not None for peer in outcome.peers)
    return outcome, took_s


def test_interrupted_it_has_what_there_is(fakes: Fakes) -> None:
    folder = fakes(psend=[["start", "ready", "talk", "interval", "hang"]])
    outcome, _ = _interrupted(folder, "psend-0", "interval")
    assert {p.name: p.exit_code for p in outcome.peers} == {"precv-0": 0, "psend-0": 130}
    assert outcome.metrics[metrics.PRIMARY] == 1000
    assert outcome.facts["missing"] is None
    assert _kinds(folder, "psend-0")[-1] == _kinds(folder, "precv-0")[-1] == "summary"


def test_interrupted_with_several_senders(fakes: Fakes, tmp_path: Path) -> None:
    """The receiver would not end by itself."""
    fifo = _fifo(tmp_path)
    first = ["start", "ready", "talk", ["tell", fifo], "hang"]
    second = ["start", "ready", "talk", ["await", fifo], "interval", "hang"]
    folder = fakes(psend={0: first, 1: second})
    outcome, took_s = _interrupted(folder, "psend-1", "interval", senders=2)
    assert outcome.facts["missing"] is None and took_s < FAR_S / 4


def test_interrupted_by_way_of_a_broker(fakes: Fakes) -> None:
    folder = fakes(
        psend=[["start", "ready", "interval", "hang"]], precv=[_receiving(["receive", 1000])]
    )
    outcome, _ = _interrupted(folder, "psend-0", "interval", via=VIA)
    assert [p.exit_code for p in outcome.peers] == [130, 130]
    assert outcome.metrics[metrics.PRIMARY] == 1000 and outcome.facts["missing"] is None


def test_interrupted_before_it_is_ready(fakes: Fakes) -> None:
    folder = fakes(precv=[["start", "hang"]])
    outcome, _ = _interrupted(folder, "precv-0", "start")
    assert outcome.why == "ended before there were results"
    assert not told(folder, "psend") and not outcome.metrics


STUBBORN: Steps = [["ignore", "SIGINT", "SIGTERM", "PARENT"], "start", "ready", "interval", "hang"]


def test_interrupted_while_nothing_but_sigkill_ends_them(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "LADDER", QUICK_LADDER)
    folder = fakes(psend=[STUBBORN], precv=[STUBBORN])
    outcome, took_s = _interrupted(folder, "psend-0", "interval")
    assert {p.exit_code for p in outcome.peers} == {137}
    assert took_s < FAR_S / 2


def test_interrupted_again_it_ends_them_at_once(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = tuple((number, FAR_S) for number, _ in QUICK_LADDER)
    monkeypatch.setattr(peers, "LADDER", patient)
    monkeypatch.setattr(peers, "SHORT_LADDER", patient)
    folder = fakes(psend=[STUBBORN], precv=[STUBBORN])
    outcome, took_s = _interrupted(folder, "psend-0", "interval", times=2)
    assert {p.exit_code for p in outcome.peers} == {137}
    assert took_s < FAR_S / 4


@pytest.mark.parametrize(
    ("name", "kind"), [("precv-0", "ready"), ("psend-0", "start"), ("psend-0", "ready")]
)
def test_interrupted_at_any_time_nobody_is_left(fakes: Fakes, name: str, kind: str) -> None:
    """The fixture that looks for children is what tests this."""
    outcome, _ = _interrupted(fakes(), name, kind)
    assert len(outcome.peers) >= 1
