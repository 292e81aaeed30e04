"""Soaks: the rules of the verdict on made-up series, and short soaks of the real pair."""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Callable

import launch
import pytest
from launch import Launcher, Tap
from measuring import measured
from ppair import series, store, verdicts
from ppair import results as outcomes
from ppair.results import Run
from ppair.series import BINS_MAX, Series
from ppair.verdicts import Observed, Verdict

# ---- series ----


@pytest.mark.parametrize("count", [1, BINS_MAX - 1, BINS_MAX, 10 * BINS_MAX, 16 * BINS_MAX])
def test_series_is_bounded_and_its_means_are_exact(count: int) -> None:
    """Every bin is the mean of as many values as any other; at most one bin is being filled."""
    kept = Series()
    for i in range(count):
        kept.add(float(i), 3.0 * i)
        assert len(kept.values) == len(kept.times_s) < BINS_MAX
    assert 0 <= count - len(kept.values) * kept.values_per_bin < kept.values_per_bin
    for i, (time_s, value) in enumerate(zip(kept.times_s, kept.values)):
        assert time_s == i * kept.values_per_bin + (kept.values_per_bin - 1) / 2
        assert value == 3 * time_s


def test_series_after_a_time() -> None:
    """Of what is kept."""
    kept = Series()
    for i in range(5):
        kept.add(float(i), 10.0 * i)
    assert kept.after(3.0) == ([3.0, 4.0], [30.0, 40.0])
    assert kept.after(4.5) == ([], [])
    assert series.Series().after(0.0) == ([], [])


# ---- rules ----

COUNT = 400
SPAN_S = 400.0
MEMORY = 5_000_000.0
RATE = 100_000.0
GOOD = Run(0, 0, status=outcomes.GOOD, facts={"missing": None})


def made_up(shape: Callable[[float], float], noise: float, count: int = COUNT) -> Series:
    """Values of SHAPE, whose argument goes from 0 to 1, with so much noise."""
    chance = random.Random(7)
    kept = Series()
    for i in range(count):
        share = i / max(count - 1, 1)
        kept.add(SPAN_S * share, shape(share) + chance.gauss(0, noise))
    return kept


def of_memory(shape: Callable[[float], float], noise: float = 10_000, **more: object) -> Observed:
    """What a good soak observes whose psend has so much memory."""
    memory = {"psend-0": made_up(shape, noise)}
    more = {"settling_s": 0.0, **more}
    return Observed(rss_bytes=memory, run=GOOD, **more)  # type: ignore[arg-type]


def of_rate(shape: Callable[[float], float], noise: float = 0.01 * RATE) -> Observed:
    """The same of precv's rate."""
    return Observed(rates_per_s={"precv-0": made_up(shape, noise)}, run=GOOD)


def verdict_of(observed: Observed, rule: str) -> Verdict:
    """Of one rule; those of the others are not against it."""
    found = {verdict.rule: verdict for verdict in verdicts.judge(observed)}
    others = [verdict for name, verdict in found.items() if name != rule]
    assert verdicts.passed(others)
    assert verdicts.passed(list(found.values())) == (found[rule].passed is not False)
    return found[rule]


MEMORY_SHAPES: dict[str, tuple[Callable[[float], float], float, bool | None]] = {  # passes?
    "flat": (lambda share: MEMORY, 10_000, True),
    "grows": (lambda share: MEMORY + 1e6 * share, 10_000, False),
    "grows by little": (lambda share: MEMORY + 200_000 * share, 10_000, True),
    "grows by a small share": (lambda share: 100e6 + 1e6 * share, 10_000, True),
    "grows by a large share": (lambda share: 100e6 + 4e6 * share, 10_000, False),
    "grows perhaps": (lambda share: MEMORY + 400_000 * share, 4_000_000, None),
    "shrinks": (lambda share: MEMORY - 1e6 * share, 10_000, True),
    "leaks at last": (lambda share: MEMORY + max(share - 0.5, 0) * 4e6, 10_000, False),
}


@pytest.mark.parametrize("name", MEMORY_SHAPES)
def test_growth(name: str) -> None:
    """Must be certain, more than a share, and more than some pages."""
    shape, noise, passes = MEMORY_SHAPES[name]
    verdict = verdict_of(of_memory(shape, noise), "memory psend-0")
    assert verdict.passed is passes, verdict
    assert "MB at first" in verdict.words and "kB" in verdict.words
    numbers = verdict.numbers
    assert numbers["low_per_s"] < numbers["per_s"] < numbers["high_per_s"]
    assert numbers["span_s"] == pytest.approx(SPAN_S)


def test_growth_while_it_settles() -> None:
    """Does not count, but does if it is not left out."""

    def shape(share: float) -> float:
        return MEMORY + min(share, 0.5) * 10e6

    assert verdict_of(of_memory(shape), "memory psend-0").passed is False
    settled = of_memory(shape, settling_s=0.5 * SPAN_S)
    assert verdict_of(settled, "memory psend-0").passed is True


RATE_SHAPES: dict[str, tuple[Callable[[float], float], float, bool | None]] = {  # passes?
    "flat": (lambda share: RATE, 0.01 * RATE, True),
    "slows down": (lambda share: RATE * (1 - 0.1 * share), 0.01 * RATE, False),
    "slows down by little": (lambda share: RATE * (1 - 0.03 * share), 0.01 * RATE, True),
    "slows down perhaps": (lambda share: RATE * (1 - 0.1 * share), 1.5 * RATE, None),
    "gets faster": (lambda share: RATE * (1 + 0.3 * share), 0.01 * RATE, True),
    "goes up and down": (lambda share: RATE * (1 + 0.1 * math.cos(40 * share)), 1.0, None),
    "never moves": (lambda share: 0.0, 0.0, False),
}


@pytest.mark.parametrize("name", RATE_SHAPES)
def test_slow_down(name: str) -> None:
    """Must be certain and large."""
    shape, noise, passes = RATE_SHAPES[name]
    verdict = verdict_of(of_rate(shape, noise), "rate precv-0")
    assert verdict.passed is passes, verdict
    assert verdict.words == "nothing moved" or "msg/s" in verdict.words


@pytest.mark.parametrize("count", [0, 1, 15])
def test_too_short(count: int) -> None:
    """To tell, which is not to fail."""
    short = made_up(lambda share: MEMORY * (1 + share), 0, count)
    observed = Observed(rss_bytes={"psend-0": short}, rates_per_s={"precv-0": short}, run=GOOD)
    found = verdicts.judge(observed)
    assert [verdict.passed for verdict in found] == [True, None, None]
    assert all(verdict.words == "too short to tell" for verdict in found[1:])
    assert verdicts.passed(found)


RUNS = {  # with why the accounting is against it, or None
    "good": (GOOD, None),
    "interrupted": (Run(0, 0, status="interrupted", why="x", facts={"missing": None}), None),
    "loses": (Run(0, 0, status="failed", facts={"missing": "2 messages lost"}), "2 messages lost"),
    "died": (Run(0, 0, status="failed", why="psend-0: was ended"), "psend-0: was ended"),
    "none": (None, "there are no results"),
}


@pytest.mark.parametrize("name", RUNS)
def test_accounting(name: str) -> None:
    """Of a soak that was interrupted too."""
    run, why = RUNS[name]
    verdict = verdict_of(Observed(run=run), "accounting")
    assert verdict.passed is (why is None)
    assert verdict.words == (why or "every message is accounted for")


def test_every_instance_is_judged() -> None:
    """The one that is well does not hide the other."""
    observed = of_memory(lambda share: MEMORY)
    observed.rss_bytes["precv-0"] = made_up(lambda share: MEMORY * (1 + share), 10_000)
    found = {verdict.rule: verdict.passed for verdict in verdicts.judge(observed)}
    assert found == {"accounting": True, "memory psend-0": True, "memory precv-0": False}


# ---- the real pair ----

PACED = (
    "--precv",
    "--receive-rate 500 --credit 100",
    "--out",
    "out",
)  # so that noise is no slow-down
RULES = ["accounting", "memory precv-0", "memory psend-0", "rate precv-0"]


def verdicts_in(ppair: Launcher) -> dict[str, bool | None]:
    """Of the results, by rule."""
    found = ppair.results("out").findings["verdicts"]
    return {verdict["rule"]: verdict["passed"] for verdict in found}


PASSED = ("The soak passed.", "Nothing is wrong; too short or too noisy to tell: ")


def assert_table(stdout: str, *sentences: str) -> None:
    """One of the sentences, and a line for each rule."""
    lines = stdout.splitlines()
    assert lines[0].startswith(sentences)
    shown = [rule for rule in RULES for line in lines if line.startswith(f"{rule}  ")]
    assert shown == RULES
    assert stdout.isascii()


@pytest.mark.measures
def test_soak(ppair: Launcher) -> None:
    """Nothing happens, and it says so."""
    ended = ppair.run("soak", "--duration", "3s", *PACED)
    with measured():
        assert ended.code == 0, ended
    assert ended.lines == ["results: out"]
    assert_table(ended.stdout, *PASSED)
    found = verdicts_in(ppair)
    assert list(found) == RULES and found["accounting"] is True
    assert False not in found.values()  # what cannot be told depends on the machine's noise
    results = ppair.results("out")
    (run,) = results.runs
    for name in ("psend-0", "precv-0"):
        start = launch.only(launch.events_of(results, run.folder, name), "start")
        assert start["options"]["interval_ns"] == 100_000_000  # the least


@pytest.mark.measures
def test_json(ppair: Launcher) -> None:
    """The verdicts with their numbers, for scripts."""
    ended = ppair.run("soak", "--duration", "3s", *PACED, "--json")
    with measured():
        assert ended.code == 0, ended
    found = {verdict["rule"]: verdict for verdict in ended.json["findings"]["verdicts"]}
    assert sorted(found) == sorted(RULES)
    numbers = found["rate precv-0"]["numbers"]
    assert numbers["low_per_s"] <= numbers["per_s"] <= numbers["high_per_s"]
    assert 1 < numbers["span_s"] <= 3


def test_number_of_messages(ppair: Launcher) -> None:
    """Ends it; several of each program are judged each for itself."""
    words = ["--messages", "200", "--senders", "2", "--receivers", "2"]
    ended = ppair.run("soak", *words, *PACED)
    assert ended.code == 0, ended
    assert ended.stdout.startswith("Nothing is wrong; too short or too noisy to tell: memory")
    rules = [f"memory {program}-{i}" for program in ("precv", "psend") for i in (0, 1)]
    found = verdicts_in(ppair)
    assert list(found) == ["accounting", *rules, "rate precv-0", "rate precv-1"]
    assert found.pop("accounting") is True and set(found.values()) == {None}
    (run,) = ppair.results("out").runs
    assert run.status == outcomes.GOOD


def test_interrupted(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """The verdict is on what there is; no message is unaccounted for."""
    taps = launch.tapped(heard)
    process = ppair.start("soak", "--duration", "8h", "--settling", "0", *taps, "--out", "out")
    for tap in heard.values():
        tap.wait_for("interval", 50)
    process.send_signal(signal.SIGINT)
    ended = launch.finish(process)
    found = verdicts_in(ppair)
    assert ended.code == (130 if found["rate precv-0"] is not False else 7), ended
    assert list(found) == RULES
    assert found["accounting"] is True
    assert_table(ended.stdout, *(PASSED if ended.code == 130 else ["The soak FAILED."]))
    results = ppair.results("out")
    assert results.status == outcomes.INTERRUPTED and not ppair.left()
    (run,) = results.runs
    counts = [
        launch.only(launch.events_of(results, run.folder, name), "summary")["messages"]
        for name in ("psend-0", "precv-0")
    ]
    assert counts[0]["accepted"] == counts[1]["received"] > 0


def test_growth_is_found(ppair: Launcher) -> None:
    """Of both, as the receiver settles nothing and what is unsettled is kept."""
    words = ["--ack-frequency 1m", "--credit 1m", "--receive-rate 50000"]
    # what is left is received and settled within --close-timeout
    unbounded = ["--max-unsettled", "1m", "--send-rate", "60000"]
    ended = ppair.run(
        *("soak", "--duration", "3s", *unbounded, "--precv", " ".join(words), "--out", "out")
    )
    assert ended.code == 7, ended
    assert_table(ended.stdout, "The soak FAILED.")
    found = verdicts_in(ppair)
    assert found["accounting"] is True
    assert found["memory psend-0"] is found["memory precv-0"] is False
    assert ppair.results("out").status == outcomes.COMPLETE


def test_loss_is_found(ppair: Launcher) -> None:
    """With the exit code for it."""
    words = ["--psend", "--first-sequence 3", *PACED]
    ended = ppair.run("soak", "--messages", "200", *words)
    assert ended.code == 4, ended
    assert ended.stdout.startswith("The soak FAILED.")
    assert verdicts_in(ppair)["accounting"] is False and "2 messages lost" in ended.stdout


def test_it_must_end_some_time(ppair: Launcher) -> None:
    """Or be told to go on for a very long one."""
    ended = ppair.run("soak", "--presettled")
    assert ended.code == 64 and len(ended.lines) == 1 and "--duration" in ended.stderr
