"""The search for the highest rate, on made-up paths whose limit is known."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from ppair import sustain
from ppair.sustain import Bracket, Seen, Trial

WITHIN = 0.02
KNEES = [3.0, 47.5, 1000.0, 812_345.0, 3e7]
Path = Callable[[float], Trial]


def search(path: Path, first: float, trials: list[Trial] | None = None) -> list[Trial]:
    """All trials; it ends, or this does not."""
    found = trials if trials is not None else []
    while (rate := sustain.next_rate(found, first, WITHIN)) is not None:
        found.append(path(rate))
        assert len(found) <= sustain.TRIALS_MAX
    return found


def sharp(knee: float, collapse: float = 1.0) -> Path:
    """All that is asked for up to the KNEE; beyond it, that or a part of it."""

    def path(rate: float) -> Trial:
        passed = rate <= knee
        return Trial(rate, passed, rate if passed else collapse * knee)

    return path


def noisy(knee: float, chance: random.Random, wrong: float = 0.1, blur: float = 0.02) -> Path:
    """A knee that is another each time, and answers of which some are WRONG."""

    def path(rate: float) -> Trial:
        here = knee * (1 + chance.gauss(0, blur))
        passed = (rate <= here) != (chance.random() < wrong)
        return Trial(rate, passed, min(rate, here))

    return path


# ---- the search ----


@pytest.mark.parametrize("knee", KNEES)
@pytest.mark.parametrize("over", [1.0, 1.02, 1.3, 4.0])
def test_a_knee_is_found(knee: float, over: float) -> None:
    """Within a few percent, in few runs: what was achieved shows where it is."""
    found = search(sharp(knee), over * knee)
    low, high = sustain.bracket(found).low_per_s, sustain.bracket(found).high_per_s
    assert low is not None and high is not None
    assert 0.97 * knee <= low <= knee < high <= 1.03 * knee
    assert len(found) <= 8
    assert sustain.is_certain(found, WITHIN)


@pytest.mark.parametrize("collapse", [0.9, 0.5, 0.1, 0.0])
def test_a_path_that_collapses_when_it_is_overloaded(collapse: float) -> None:
    """What it achieves then is not what it can."""
    found = search(sharp(1000.0, collapse), 1500.0)
    low = sustain.bracket(found).low_per_s
    assert low is not None and 970 <= low <= 1000
    assert len(found) <= 20


def test_more_than_the_first_rate() -> None:
    found = search(sharp(1000.0), 300.0)
    low = sustain.bracket(found).low_per_s
    assert low is not None and 970 <= low <= 1000
    assert len(found) <= 16


def test_both_ends_are_confirmed() -> None:
    found = search(sharp(1000.0), 1200.0)
    ends = sustain.bracket(found)
    tried = Counter(trial.rate_per_s for trial in found)
    assert ends.low_per_s and ends.high_per_s
    assert tried[ends.low_per_s] == 2 and tried[ends.high_per_s] == 2
    without = [t for t in found if t.rate_per_s != ends.high_per_s]
    assert not sustain.is_certain(without, WITHIN)


def test_one_hiccup_does_no_harm() -> None:
    """Whichever run it hits."""
    for hit in range(6):
        tried: list[float] = []

        def path(rate: float) -> Trial:
            tried.append(rate)
            failed = len(tried) - 1 == hit or rate > 1000
            return Trial(rate, not failed, min(rate, 1000.0))

        low = sustain.bracket(search(path, 1200.0)).low_per_s
        assert low is not None and 970 <= low <= 1000, hit


@pytest.mark.parametrize("seed", range(50))
def test_noise_does_not_keep_it_going(seed: int) -> None:
    """And the answer is still near, mostly."""
    chance = random.Random(seed)
    found = search(noisy(1000.0, chance, wrong=0.05), 1300.0)
    low = sustain.bracket(found).low_per_s
    assert low is not None and 300 < low < 1250


def test_noise_moves_the_answer_little() -> None:
    lows = []
    for seed in range(50):
        found = search(noisy(1000.0, random.Random(seed), wrong=0.05), 1300.0)
        lows.append(sustain.bracket(found).low_per_s or 0.0)
    lows.sort()
    assert 930 <= lows[len(lows) // 2] <= 1040
    assert lows[5] >= 800 and lows[-5] <= 1100


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(10))
def test_pure_noise_ends(share: float, seed: int) -> None:
    """No rate is tried more than three times, none is negative or infinite."""
    chance = random.Random(seed)
    found = search(lambda rate: Trial(rate, chance.random() < share, rate), 1e4)
    tried = Counter(trial.rate_per_s for trial in found)
    assert max(tried.values()) <= sustain.TRIES_MAX
    assert all(1 < rate < 1e8 for rate in tried)


def test_nothing_passes() -> None:
    """It goes down to a thousandth, and says so."""
    found = search(lambda rate: Trial(rate, False), 1000.0)
    assert sustain.bracket(found).low_per_s is None
    assert 1 <= min(t.rate_per_s for t in found) < 2.5
    assert not sustain.is_certain(found, WITHIN)


def test_goes_on_from_what_is_known() -> None:
    """As from the steps of a table, for another question."""
    steps = [Trial(rate, rate <= 640) for rate in (100.0, 300.0, 500.0, 700.0, 900.0)]
    found = search(sharp(640.0), 900.0, steps)
    ends = sustain.bracket(found)
    assert ends.low_per_s and 620 <= ends.low_per_s <= 640
    assert all(500 <= t.rate_per_s <= 700 for t in found[5:])


def test_a_failure_below_a_pass_is_tried_again() -> None:
    steps = [Trial(100.0, False), Trial(200.0, True), Trial(300.0, False)]
    assert sustain.next_rate(steps, 300.0, WITHIN) == 100.0
    steps.append(Trial(100.0, True))
    assert sustain.next_rate(steps, 300.0, WITHIN) == 100.0  # one to one
    steps.append(Trial(100.0, True))
    assert sustain.bracket(steps) == Bracket(200.0, 300.0)


# ---- has it kept up? ----

TIMES = [0.1 * i for i in range(1, 11)]


def seen(
    backlog: Callable[[float], float] = lambda time_s: 0.0,
    latency: Callable[[float], float] = lambda time_s: 2e-4,
    met: bool = True,
    missing: float = 0.0,
) -> Seen:
    """Of a second at 1000 messages/s."""
    backlogs = tuple((t, backlog(t)) for t in TIMES)
    return Seen(1000.0, missing, 1.0, met, (backlogs,), (tuple((t, latency(t)) for t in TIMES),))


def test_kept_up() -> None:
    assert sustain.trouble(seen()) is None
    assert sustain.trouble(Seen(1000.0, 0.0, 1.0, True, (), ())) is None


def test_a_rate_that_was_missed() -> None:
    """But for the messages of the last 10 ms, or 1 % of a short run; or what psend calls met."""
    assert sustain.trouble(seen(met=False, missing=11)) == "less was sent than was due"
    assert sustain.trouble(seen(met=False, missing=9)) is None
    assert sustain.trouble(seen(met=True, missing=11)) is None
    short = Seen(1000.0, 4.0, 0.3, False, (), ())
    assert sustain.trouble(short) == "less was sent than was due"


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_a_queue_that_grows_somewhere(share: float) -> None:
    """All is sent, and the latency is that of ever more messages ahead."""
    assert sustain.trouble(seen(latency=lambda t: 2e-4 + share * t)) == "latency grew"
    assert sustain.trouble(seen(backlog=lambda t: 1000 * share * t)) == "the sender's backlog grew"


def test_a_queue_that_stands_or_falls() -> None:
    """It was there before."""
    assert sustain.trouble(seen(latency=lambda t: 0.3, backlog=lambda t: 300)) is None
    assert sustain.trouble(seen(latency=lambda t: 0.3 - 0.2 * t)) is None


def test_growth_that_is_noise() -> None:
    """Doubling of next to nothing, and a stall that fills and empties the queue once."""
    assert sustain.trouble(seen(latency=lambda t: 1e-4 + 3e-4 * t)) is None
    for when in TIMES:
        stalled = seen(latency=lambda t: 0.05 if t == when else 2e-4)
        assert sustain.trouble(stalled) is None
    chance = random.Random(1)
    for _ in range(200):
        assert sustain.trouble(seen(latency=lambda t: 2e-4 * (1 + chance.random()))) is None


def test_median_slope() -> None:
    """Of a line with an outlier."""
    line = [(float(x), 2.0 * x + (90 if x == 4 else 0)) for x in range(10)]
    assert sustain.median_slope(line) == 2
    assert sustain.median_slope([(0, 1)]) == 0


def test_the_rule_names_the_limits_that_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GROWTH_PER_S", 0.07), ("BACKLOG_S", 0.03), ("GROWTH_LEAST_S", 40e-6)):
        monkeypatch.setattr(sustain, name, value)
    said = sustain.rule()
    assert said.count("7 %") == 2 and said.count("30 ms") == 2 and said.count("40 us") == 1
    assert "whichever is less" in said
