"""Senders in step: when each begins, on whatever clock, and what is said if that means nothing."""

from __future__ import annotations

from typing import Any

import pytest
from ppair import clock_error, clocks, phases
from ppair.clock_error import Offset, Offsets
from ppair.spec import Spec

START_NS = 10**18
AHEAD = Offset(7_000_000, 20_000, 200)
BEHIND = Offset(-3_000_000_000, 50_000, 200)
UNKNOWN = clock_error.unknown("there is no bash there")
HOSTS = {"psend_hosts": ("a", "b"), "listen": "::1"}


def paced(*words: str, rate: str = "50", **more: Any) -> Spec:
    """Four senders, with a gap of 20 ms."""
    given = ("--send-rate", rate, "--start-at", str(START_NS), *words)
    return Spec(given, **{"senders": 4, **more})


def starts(spec: Spec, offsets: Offsets) -> list[int]:
    """Since the common one."""
    found = phases.words(spec, offsets)
    assert all(words[0] == "--start-at" for words in found)
    return [int(words[1]) - START_NS for words in found]


def told(spec: Spec, before: Offsets, after: Offsets) -> list[str]:
    """What is below the table of a run with these offsets."""
    facts: dict[str, Any] = {}
    clocks.record(spec, before, after, facts, {"messages_per_s": 1.0})
    return phases.notes([{}, facts])


# ---- one clock ----


def test_no_two_senders_are_in_phase() -> None:
    """A quarter of the gap of 20 ms apart."""
    assert starts(paced(), {}) == [0, 5_000_000, 10_000_000, 15_000_000]


def test_batches_have_longer_gaps() -> None:
    assert starts(paced("--batch", "10"), {})[1] == 50_000_000


def test_one_seed_is_not_one_schedule_for_all() -> None:
    found = [words[2:] for words in phases.words(paced("--poisson=7"), {})]
    assert found == [("--poisson=7",), ("--poisson=8",), ("--poisson=9",), ("--poisson=10",)]
    assert {len(words) for words in phases.words(paced("--poisson"), {})} == {2}


def test_the_start_is_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """If none was given."""
    monkeypatch.setattr(phases.time, "time_ns", lambda: 1000)
    spec = Spec(("--send-rate", "50"), senders=2)
    assert phases.common_start_ns(spec) == 1000 + phases.LEAD_NS + 2 * phases.LEAD_OF_EACH_NS


@pytest.mark.parametrize("spec", [Spec(("--send-rate", "50")), Spec(senders=4), Spec()])
def test_who_is_not_put_in_step(spec: Spec) -> None:
    """One alone, or without a rate."""
    assert phases.words(spec, {}) == [()] * spec.senders
    assert phases.hosts(spec) == [] and told(spec, {}, {}) == []


# ---- clocks of other hosts ----


def test_each_host_is_told_the_time_of_its_own_clock() -> None:
    """One that is ahead is given a later one."""
    spec = paced(**HOSTS)
    found = starts(spec, {"a": AHEAD, "b": BEHIND})
    assert [ns - index * 5_000_000 for index, ns in enumerate(found)] == [
        *(AHEAD.offset_ns, BEHIND.offset_ns, AHEAD.offset_ns, BEHIND.offset_ns)
    ]


def test_where_a_clock_is_not_known_nobody_waits_for_it() -> None:
    """It may be an hour behind."""
    spec = paced(**HOSTS)
    for offsets in ({"a": AHEAD, "b": UNKNOWN}, {"a": AHEAD}):
        assert phases.words(spec, offsets) == [()] * 4
    why = "clock of b: there is no bash there"
    said = f"Senders are not in step ({why}): how their messages meet is by chance."
    assert told(spec, {"a": AHEAD, "b": UNKNOWN}, {}) == [said]


def test_seeds_need_no_clocks() -> None:
    """On hosts they were all the same."""
    found = phases.words(paced("--poisson=7", **HOSTS), {"a": UNKNOWN, "b": UNKNOWN})
    assert found == [(f"--poisson={seed}",) for seed in (7, 8, 9, 10)]
    assert told(paced("--poisson=7", **HOSTS), {"a": UNKNOWN}, {}) == []


def test_small_errors_are_not_spoken_of() -> None:
    """70 us of 5 ms; nor that of one host, whose senders have one clock."""
    known = {"a": AHEAD, "b": BEHIND}
    facts = phases.to_facts(paced(**HOSTS), known, known)
    assert facts == {"phases": {"apart_ns": 5_000_000, "error_ns": 70_000, "why": None}}
    assert told(paced(**HOSTS), known, known) == []
    alone = phases.to_facts(paced(rate="1000000", psend_hosts=("b",)), known, known)
    assert alone["phases"]["error_ns"] == 0


@pytest.mark.parametrize("rate,seen", [("1700", False), ("1900", True), ("100000", True)])
def test_phases_that_clocks_do_not_carry(rate: str, seen: bool) -> None:
    """An error of 70 us, beside a distance of two senders of 147, 132 and 2.5 us."""
    known = {"a": AHEAD, "b": BEHIND}
    said = " ".join(told(paced(rate=rate, **HOSTS), known, known))
    assert ("Senders' phases mean nothing" in said) == seen
    assert not seen or "clocks are known to +- 70 us." in said


def test_a_clock_that_drifts_is_seen_in_the_end() -> None:
    """By 5 ms while the run lasted."""
    before = {"a": AHEAD, "b": BEHIND}
    after = {"a": AHEAD, "b": Offset((BEHIND.offset_ns or 0) + 5_000_000, 50_000, 200)}
    facts = phases.to_facts(paced(**HOSTS), before, after)
    assert facts["phases"]["error_ns"] == 5_070_000
    assert "+- 5070 us" in told(paced(**HOSTS), before, after)[0]
    failed = phases.to_facts(paced(**HOSTS), before, {})
    assert failed["phases"]["error_ns"] == 70_000


def test_the_worst_run_is_told_of() -> None:
    runs = [
        {"phases": {"apart_ns": 1000, "error_ns": error_ns, "why": None}}
        for error_ns in (400, 9000, 2000)
    ]
    assert "1 us apart, and their hosts' clocks are known to +- 9 us." in phases.notes(runs)[0]
    assert phases.notes(runs[:1]) == []


@pytest.mark.parametrize(
    "written",
    [
        {"apart_ns": 1, "error_ns": None, "why": None},
        {"apart_ns": None, "error_ns": None, "why": None},
        {"apart_ns": "1", "error_ns": "2", "why": None},
        {"apart_ns": 1},
        [1, 2, 3],
        "x",
    ],
)
def test_facts_that_somebody_has_changed(written: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        phases.of_facts({"phases": written})
