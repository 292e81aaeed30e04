"""Offsets of clocks from round trips: beside true ones, and what is said where there are none."""

from __future__ import annotations

import asyncio
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ppair import clock_error, clocks
from ppair.clock_error import OURS, ClockError, Offset, Trip
from ppair.spec import Spec

EPOCH_NS = 1_790_000_000_000_000_000
MS = 1_000_000


class Network:
    """Another host, whose clock is ahead of ours; time passes in round trips alone."""

    def __init__(self, ahead_ns: int, there_ns: int, back_ns: int, noise_ns: int = 0) -> None:
        self.now_ns = 0
        self.ahead_ns = ahead_ns
        self.ways_ns = (there_ns, back_ns)
        self.noise_ns = noise_ns
        self.chance = random.Random(ahead_ns)
        self.asked = 0

    def realtime(self) -> int:
        """Our clock."""
        return EPOCH_NS + self.now_ns

    def monotonic(self) -> int:
        """The other one, which began some time."""
        return self.now_ns + 77

    def pass_time(self, least_ns: int) -> None:
        """Seldom no more than that."""
        self.now_ns += least_ns + int(self.chance.expovariate(1) * self.noise_ns)

    async def ask(self) -> str:
        """As bash answers: microseconds, cut off."""
        self.asked += 1
        self.pass_time(self.ways_ns[0])
        there_us = (EPOCH_NS + self.now_ns + self.ahead_ns) // 1000
        self.pass_time(self.ways_ns[1])
        return f"{there_us // 10**6}.{there_us % 10**6:06d}\n"

    def offset(self) -> Offset:
        """What is found."""
        made: list[Trip] = []
        asyncio.run(clocks.make_trips(self.ask, made, self.realtime, self.monotonic))
        return clock_error.estimate(made)


@pytest.mark.parametrize("ahead_ns", [0, 1, 999, -1_234_567, 3_600 * 10**9, -5 * 10**9])
@pytest.mark.parametrize(
    ("there_ns", "back_ns", "noise_ns"),
    [(50_000, 50_000, 0), (50_000, 50_000, 400_000), (10_000, 900_000, 0), (MS, 0, 30_000)],
)
def test_true_offset_is_within_the_uncertainty(
    ahead_ns: int, there_ns: int, back_ns: int, noise_ns: int
) -> None:
    """However unlike the ways there and back are."""
    found = Network(ahead_ns, there_ns, back_ns, noise_ns).offset()
    assert found.offset_ns is not None and found.uncertainty_ns is not None
    assert abs(found.offset_ns - ahead_ns) <= found.uncertainty_ns
    assert found.round_trips == 200 and found.why is None


def test_the_shortest_trip_decides() -> None:
    """Of symmetric ones the offset is right but for what that one was delayed."""
    found = Network(777_000, 100_000, 100_000, noise_ns=500_000).offset()
    assert found.uncertainty_ns is not None and found.offset_ns is not None
    assert 101_000 <= found.uncertainty_ns < 250_000
    assert Network(777_000, 100_000, 100_000).offset().uncertainty_ns == 101_000
    long, short = Trip(0, 1000, 10**6), Trip(5000, 101, 5_000_000)
    assert clock_error.estimate([long, short]) == Offset(4_994_950, 1051, 2)


def test_slow_trips_are_fewer() -> None:
    """And do not take longer than some time."""
    network = Network(0, 40 * MS, 60 * MS)
    found = network.offset()
    assert found.round_trips == 22 and network.now_ns == 2200 * MS  # the first is the connecting


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("\n", "bash there does not know EPOCHREALTIME, which takes version 5"),
        ("Welcome!\n", 'the answer "Welcome!" is not a time'),
        ("1.5e9\n", 'the answer "1.5e9" is not a time'),
        ("17\n", 'the answer "17" is not a time'),
    ],
)
def test_what_is_not_a_time(line: str, why: str) -> None:
    async def ask() -> str:
        return line

    with pytest.raises(clocks.Unanswered) as unanswered:
        asyncio.run(clocks.make_trips(ask, []))
    assert str(unanswered.value) == why


# ---- what follows for the latency ----

N1 = Offset(100_000, 20_000, 200)
N2 = Offset(-50_000, 5_000, 200)
UNKNOWN = clock_error.unknown("there is no bash there")
Pairs = list[tuple[str | None, str | None]]


def bound(pairs: Pairs, before: dict[str, Offset], after: dict[str, Offset]) -> ClockError | None:
    return clock_error.worst(pairs, before, after)


@pytest.mark.parametrize(
    ("sender", "receiver", "expected"),
    [
        (None, "n1", (120_000, 100_000, 20_000)),
        ("n1", None, (120_000, -100_000, 20_000)),
        ("n1", "n2", (175_000, -150_000, 25_000)),
        ("n2", "n1", (175_000, 150_000, 25_000)),
    ],
)
def test_bound_is_offset_and_uncertainties(
    sender: str | None, receiver: str | None, expected: tuple[int, int, int]
) -> None:
    """A latency is the receiver's time less the sender's."""
    offsets = {"n1": N1, "n2": N2}
    error = bound([(sender, receiver)], offsets, offsets)
    assert error == ClockError(sender, receiver, *expected)


def test_a_clock_that_was_set_during_the_run() -> None:
    """Counts with the worse of both."""
    error = bound([(None, "n1")], {"n1": N1}, {"n1": Offset(-900_000, 20_000, 200)})
    assert error is not None and (error.bound_ns, error.offset_ns) == (920_000, -900_000)


def test_one_clock_has_no_error() -> None:
    assert bound([(None, None), ("n1", "n1")], {}, {}) is None
    assert OURS.offset_ns == OURS.uncertainty_ns == 0


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({"n1": UNKNOWN}, {"n1": N1}, "clock of n1: there is no bash there"),
        ({"n1": N1}, {"n1": UNKNOWN}, "clock of n1: there is no bash there"),
        ({"n1": N1}, {}, "clock of n1: it was not measured"),
    ],
)
def test_what_is_not_known_is_null(
    before: dict[str, Offset], after: dict[str, Offset], why: str
) -> None:
    """Even if it is known of another pair."""
    known = {"n2": N2}
    error = bound([(None, "n2"), (None, "n1")], before | known, after | known)
    assert error == ClockError(None, "n1", None, why=why)
    said = f"how much of the latency is clock error is not known ({why})"
    assert error is not None and clock_error.words(error) == said


@pytest.mark.parametrize(
    ("spec", "pairs"),
    [
        (Spec(), [(None, None)]),
        (Spec(precv_hosts=("a",)), [(None, "a")]),
        (Spec(senders=3, receivers=2, psend_hosts=("a", "b")), [("a", None), ("b", None)]),
        (
            Spec(senders=4, receivers=2, psend_hosts=("a", "b", "c"), precv_hosts=("d", "e")),
            [("a", "d"), ("b", "e"), ("c", "d"), ("a", "e")],
        ),
        (Spec(via="amqp://x", precv_hosts=("a",), receivers=2), [(None, "a")]),
        (
            Spec(via="amqp://x", precv_hosts=("a", "b"), receivers=2, psend_hosts=("b",)),
            [("b", "a"), ("b", "b")],
        ),
    ],
)
def test_pairs_of_hosts(spec: Spec, pairs: Pairs) -> None:
    """Direct, sender i is with receiver i mod M; by way of a broker, everybody with everybody."""
    assert clocks.pairs(spec) == pairs


def recorded(spec: Spec, before: dict[str, Offset], after: dict[str, Offset]) -> dict[str, Any]:
    facts: dict[str, Any] = {"hosts": 2}
    metrics: dict[str, Any] = {"latency_error_ns": None}
    clocks.record(spec, before, after, facts, metrics)
    return {**facts, **metrics}


def test_facts_of_a_run() -> None:
    spec = Spec(precv_hosts=("n1",))
    found = recorded(spec, {"n1": N1}, {"n1": N2})
    assert found["latency_error_ns"] == found["clock_error"]["bound_ns"] == 120_000
    assert found["clocks"] == [
        {
            "host": "n1",
            "before": {
                "offset_ns": 100_000,
                "uncertainty_ns": 20_000,
                "round_trips": 200,
                "why": None,
            },
            "after": {
                "offset_ns": -50_000,
                "uncertainty_ns": 5_000,
                "round_trips": 200,
                "why": None,
            },
        }
    ]
    error = clock_error.of_facts(found)
    assert error == ClockError(None, "n1", 120_000, 100_000, 20_000)
    ended_early = recorded(spec, {"n1": N1}, {})
    assert ended_early["clocks"][0]["after"] is None and ended_early["latency_error_ns"] is None


def test_facts_of_one_clock_are_as_they_were() -> None:
    assert recorded(Spec(), {}, {}) == {"hosts": 2, "latency_error_ns": None}
    assert clock_error.of_facts({"hosts": 1}) is None


def test_monotonic_clocks_of_two_hosts_are_nothing_to_each_other() -> None:
    spec = Spec(precv_hosts=("n1",), psend=("--clock", "monotonic"))
    found = recorded(spec, {"n1": N1}, {"n1": N1})
    assert found["latency_error_ns"] is None
    assert found["clock_error"]["why"] == "--clock monotonic is another clock on each host"


@pytest.mark.parametrize(
    "written", [{"bound_ns": "1"}, {"sender": None}, {"bound_ns": 1, "offset_ns": None}, []]
)
def test_facts_that_somebody_has_changed(written: Any) -> None:
    good = {"sender": None, "receiver": "b", "bound_ns": 5, "offset_ns": 3, "uncertainty_ns": 2}
    assert clock_error.of_facts({"clock_error": good}) is not None
    broken = {**good, **written, "more": 1} if written == {"sender": None} else written
    broken = {**good, **broken} if isinstance(written, dict) else written
    with pytest.raises((TypeError, ValueError)):
        clock_error.of_facts({"clock_error": broken})


def test_notes_tell_of_the_worst() -> None:
    spec = Spec(precv_hosts=("n1",))
    runs = [recorded(spec, {"n1": one}, {"n1": one}) for one in (N2, N1)]
    said = "Latency may be off by +- 120 us: the clock of n1 is 100 us ahead of that of this host, "
    assert clock_error.notes([{}, *runs]) == [f"{said}+- 20 us."]
    runs.append(recorded(spec, {"n1": UNKNOWN}, {"n1": N1}))
    said = "How much of the latency is clock error is not known (clock of n1: there is no bash"
    assert clock_error.notes(runs) == [f"{said} there)."]
    assert clock_error.notes([{}, {"hosts": 1}]) == []


# ---- ssh ----

Script = Callable[[str], None]


@pytest.fixture(name="ssh")
def _ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """An ssh that is this shell script, whose last argument is what it is to execute."""

    def make(script: str) -> None:
        path = tmp_path / "ssh"
        path.write_text(f'#!/bin/bash\nfor last; do :; done\n{script}\n', encoding="ascii")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def asked(host: str = "there") -> Offset:
    return asyncio.run(clocks.of_host(host))


def test_a_shell_that_answers(ssh: Script) -> None:
    """On one machine, there is no offset beyond the uncertainty."""
    ssh('eval "$last"')
    found = asked()
    assert found.offset_ns is not None and found.uncertainty_ns is not None
    assert abs(found.offset_ns) <= found.uncertainty_ns and found.round_trips >= 2


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ('echo "ssh: connect to host there port 22: Connection refused" >&2; exit 255',
         "ssh failed: ssh: connect to host there port 22: Connection refused"),
        ("PATH=/nowhere; $last", "there is no bash there"),
        ("exit 127", "there is no bash there"),
        ("echo no, no >&2; exit 3", "the shell there failed: no, no"),
        ("exit 0", "the shell there failed: exit code 0"),
        ("while read -r x; do echo; done",
         "bash there does not know EPOCHREALTIME, which takes version 5"),
        ("head -c 300000 /dev/zero", "the answer has no end"),
    ],
)  # fmt: skip
def test_a_shell_that_does_not(ssh: Script, script: str, why: str) -> None:
    ssh(script)
    found = asked()
    assert (found.offset_ns, found.uncertainty_ns) == (None, None)
    assert found.why == why


def test_a_shell_that_hangs(ssh: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is not waited for, and does not stay."""
    monkeypatch.setattr(clocks, "PATIENCE_S", 0.2)
    monkeypatch.setattr(clocks, "ENDING_S", 0.2)
    ssh("exec sleep 1000")
    assert asked() == clock_error.unknown("no answer in 0 s")
    ssh('read -r x; echo "$EPOCHREALTIME"; exec sleep 1000')
    assert asked().round_trips == 1


def test_no_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asked() == clock_error.unknown("ssh: No such file or directory")


def test_an_interrupt_ends_it(ssh: Script, tmp_path: Path) -> None:
    """With the ssh that was started."""
    ssh(f"trap '' HUP; echo $$ >{tmp_path}/pid; touch {tmp_path}/began; exec sleep 1000")

    async def interrupted() -> None:
        task = asyncio.create_task(clocks.of_host("there"))
        while not (tmp_path / "began").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_only_hosts_that_matter_are_asked(ssh: Script, tmp_path: Path) -> None:
    ssh(f'echo "$*" >>{tmp_path}/log; exit 255')
    assert asyncio.run(clocks.measure(Spec())) == {}
    assert asyncio.run(clocks.measure(Spec(precv_hosts=("a",), psend_hosts=("a",)))) == {}
    assert not (tmp_path / "log").exists()
    spec = Spec(precv_hosts=("a", "b"), receivers=2, psend_hosts=("a",), senders=2)
    assert list(asyncio.run(clocks.measure(spec))) == ["a", "b"]
    assert len((tmp_path / "log").read_text().splitlines()) == 2
    pairs = {"precv_hosts": ("a", "b"), "receivers": 2, "psend_hosts": ("a", "b"), "senders": 2}
    assert asyncio.run(clocks.measure(Spec(**pairs))) == {}  # each with the one beside it
    paced = Spec(("--send-rate", "1"), **pairs)
    assert list(asyncio.run(clocks.measure(paced))) == ["a", "b"]
