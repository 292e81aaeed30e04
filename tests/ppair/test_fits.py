"""Slopes, levels in blocks, grant cost, round trip and window, on simulated noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ppair.credit_fits import fit_grant_cost, fit_round_trip, smallest_within
from ppair.fits import contrast, level_fit, slope
from scipy import signal
from test_inference import noisy, spells

# ---- slope ----


def _series(seed: int, kind: str, n: int) -> np.ndarray:
    """Rates around 1, once a second, without a trend."""
    random = np.random.default_rng(seed)
    white = random.normal(0, 0.03, n)
    if kind == "spells":
        return spells(random, n) + white
    if kind == "white":
        return 1 + white
    return 1 + math.sqrt(1 - 0.9**2) * signal.lfilter([1], [1, -0.9], [*white, *white])[n:]


@pytest.mark.parametrize(
    ("kind", "n", "found_of_100"),
    [("white", 60, 97), ("white", 300, 100), ("autocorrelated", 600, 90), ("spells", 1200, 90)],
)
def test_slopes(kind: str, n: int, found_of_100: int) -> None:
    times_s = np.arange(n)
    drift = -0.1 * times_s / n
    covered = found = 0
    for seed in range(100):
        values = _series(seed, kind, n)
        still, drifting = slope(times_s, values), slope(times_s, values + drift)
        assert still is not None and drifting is not None
        covered += still.low <= 0 <= still.high
        found += drifting.high < 0
        assert drifting.per_s == pytest.approx(still.per_s - 0.1 / n, abs=0.02 / n)
    assert covered >= 90
    assert found >= found_of_100


def test_the_slope_of_a_line() -> None:
    times_s = [0.5, *range(1, 40), 77.0]
    found = slope(times_s[::-1], [5 + 3 * t for t in times_s[::-1]])
    assert found is not None and found.count == 41
    assert (found.per_s, found.low, found.high) == pytest.approx((3, 3, 3))


def test_no_slope_at_all() -> None:
    found = slope(range(100), [4096] * 100)
    assert found is not None
    assert (found.per_s, found.low, found.high) == pytest.approx((0, 0, 0), abs=1e-12)


def test_too_short_for_a_slope() -> None:
    assert slope(range(15), range(15)) is None
    assert slope(range(20), [None] * 5 + [1.0] * 15) is None
    assert slope([1.0] * 30, range(30)) is None
    assert slope([], []) is None


def test_a_step_is_no_slope() -> None:
    found = slope(range(80), [1.0] * 75 + [9.0] * 5)
    assert found is not None and found.low <= 0 <= found.high


# ---- levels ----


def _observations(
    seed: int, levels: list, blocks: int, kind: str = "normal", some: int | None = None
) -> list:
    """Runs of SOME of the LEVELS in each block, in random order; levels are their own values."""
    random = np.random.default_rng(seed)
    size = some or len(levels)
    noise = noisy(random, blocks * size, kind, 0.015).reshape(blocks, size)
    drift = np.linspace(0, 0.3, blocks)
    return [
        (block, levels[i], levels[i] + drift[block] + noise[block, place])
        for block in range(blocks)
        for place, i in enumerate(random.permutation(len(levels))[:size])
    ]


def test_levels_without_noise() -> None:
    blocks = {0: 0.1, 1: -0.2, 2: 0.1}
    seen = [(0, "a"), (0, "b"), (1, "b"), (1, "c"), (2, "c"), (2, "a")]
    values = {"a": 1.0, "b": 3.0, "c": 4.0}
    observations = [(block, level, values[level] + blocks[block]) for block, level in seen]
    found = level_fit(observations).effects
    assert {level: one.value for level, one in found.items()} == pytest.approx(values)
    assert [one.count for one in found.values()] == [2, 2, 2]


def test_a_bad_run_counts_for_nothing() -> None:
    observations = _observations(1, [0.0, 0.05, 0.1, 0.15], 10)
    good = level_fit(observations).effects
    block, level, value = observations[5]
    changed = [*observations[:5], (block, level, value - 0.43), *observations[6:]]
    bad = level_fit(changed).effects
    for one in good:
        assert bad[one].value == pytest.approx(good[one].value, abs=0.006)


@pytest.mark.parametrize(
    ("kind", "levels", "blocks", "some"),
    [("normal", 8, 6, 8), ("skewed", 8, 15, 8), ("spells", 8, 15, 8), ("spells", 10, 20, 6)],
)
def test_standard_errors_are_honest(kind: str, levels: int, blocks: int, some: int) -> None:
    values = [0.01 * i for i in range(levels)]
    covered = total = 0
    for seed in range(40):
        fit = level_fit(_observations(seed, values, blocks, kind, some))
        for level in values[1:]:
            limits = contrast(fit, 0.0, level).interval()
            assert limits is not None
            covered += limits.low <= level <= limits.high
            total += 1
    assert covered >= 0.9 * total


def test_contrasts_know_about_covariance() -> None:
    """Of levels that are never in one block, and of a level and itself."""
    first = [(block, level, 0.0) for block in range(8) for level in ("a", "b")]
    second = [(block, level, 0.0) for block in range(8, 16) for level in ("b", "c")]
    noise = np.random.default_rng(1).normal(0, 0.01, 32)
    fit = level_fit(
        [(block, level, y) for (block, level, _), y in zip(first + second, noise, strict=True)]
    )
    near, far = contrast(fit, "a", "b"), contrast(fit, "a", "c")
    assert near.stderr is not None and far.stderr is not None
    assert far.stderr > 1.1 * near.stderr
    assert contrast(fit, "b", "a").value == pytest.approx(-near.value)
    itself = contrast(fit, "a", "a")
    assert itself.value == 0 and itself.stderr == pytest.approx(0, abs=1e-9)


def test_one_block_has_no_standard_error() -> None:
    fit = level_fit([(3, 10, 1.0), (3, 20, 2.0)])
    assert contrast(fit, 10, 20).value == pytest.approx(1)
    assert contrast(fit, 10, 20).stderr is None and contrast(fit, 10, 20).interval() is None


def test_levels_must_hang_together() -> None:
    with pytest.raises(ValueError, match="in common"):
        level_fit([(0, "a", 1.0), (0, "b", 1.0), (1, "c", 1.0), (1, "d", 1.0)])
    with pytest.raises(ValueError, match="no observations"):
        level_fit([])


# ---- grants ----

GRANTS = [1, 2, 5, 10, 20, 50, 100, 200]


def test_grant_cost_without_noise() -> None:
    found = fit_grant_cost(GRANTS, [550 + 3800 / grant for grant in GRANTS])
    assert found is not None
    assert (found.a_ns, found.b_ns) == pytest.approx((550, 3800))
    assert found.b_interval.low == pytest.approx(3800, rel=1e-3)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("worse", [1.0, 1.3])
def test_grant_cost_covers(given: bool, worse: float) -> None:
    """Also if one of the points is bad."""
    covered = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        times = (550 + 3800 / np.array(GRANTS)) * np.exp(random.normal(0, 0.01, 8))
        times[random.integers(1, 8)] *= worse
        found = fit_grant_cost(GRANTS, list(times), list(0.01 * times) if given else None)
        assert found is not None
        assert found.b_ns == pytest.approx(3800, rel=0.05)
        assert found.a_ns == pytest.approx(550, rel=0.06)
        covered += found.b_interval.low <= 3800 <= found.b_interval.high
    assert covered >= 88


def test_too_few_grant_sizes() -> None:
    assert fit_grant_cost([1, 1, 2, 2], [10, 11, 7, 7]) is None
    assert fit_grant_cost([], []) is None


# ---- windows ----

# medians of real runs, pre-settled: messages per second by credit window
MEASURED = {
    1: 25e3, 2: 50e3, 5: 72e3, 10: 208e3, 20: 358e3, 40: 557e3, 60: 1054e3, 80: 1136e3,
    100: 953e3, 150: 1294e3, 200: 1337e3, 300: 1546e3, 500: 1638e3, 1000: 1678e3, 2000: 1693e3,
    5000: 1721e3,
}  # fmt: skip
WINDOWS = [20, 50, 100, 150, 200, 280, 400, 560, 800, 1100, 1600, 2300, 3200, 5000]
SHAPES = {
    "hyperbola": lambda w: -math.log1p(40 / w),
    "steep": lambda w: -math.log1p((80 / w) ** 1.5),
    "measured": lambda w: float(np.interp(math.log(w), np.log([*MEASURED]), _log_measured())),
}


def _log_measured() -> list[float]:
    return [math.log(rate / 1721e3) for rate in MEASURED.values()]


def test_round_trip() -> None:
    found = fit_round_trip([1, 2, 4, 8, 100, 200], [1e4, 2.1e4, 3.9e4, 8.1e4, 6e5, 6.1e5])
    assert found is not None and found.windows_used == (1, 2, 4, 8)
    assert found.seconds == pytest.approx(1e-4, rel=0.03)
    assert found.interval.low < 1e-4 < found.interval.high


def test_round_trip_of_real_runs() -> None:
    found = fit_round_trip([*MEASURED], [*MEASURED.values()])
    assert found is not None and found.windows_used == (1, 2)
    assert found.seconds == pytest.approx(40e-6)
    assert found.interval.low < 40e-6 < found.interval.high


def test_no_round_trip() -> None:
    assert fit_round_trip([10, 20, 30], [1e6, 1e6, 1e6]) is None
    assert fit_round_trip([1, 2, 100], [1e4, 5e4, 1e6]) is None
    assert fit_round_trip([], []) is None


def test_the_window_of_a_hyperbola() -> None:
    """c (1 - w) / (a w), if the largest window is far away."""
    windows = [*WINDOWS, 10**9]
    found = smallest_within(windows, [-math.log1p(10 / w) for w in windows], [0.004] * 15, 0.01)
    assert found is not None
    assert found.value == pytest.approx(10 * 0.99 / 0.01, rel=1e-3)
    assert found.low < found.value < found.high
    assert found.best == pytest.approx(0, abs=1e-4)


def test_the_limit_counts() -> None:
    rates = [SHAPES["hyperbola"](w) for w in WINDOWS]
    found = [
        smallest_within(WINDOWS, rates, [0.004] * 14, within) for within in (0.005, 0.01, 0.05)
    ]
    first, second, third = (one.value for one in found if one is not None)
    assert first > 1.3 * second > 4 * third


def test_the_order_of_windows_does_not_matter() -> None:
    rates = [SHAPES["steep"](w) for w in WINDOWS]
    found = smallest_within(WINDOWS, rates, [0.004] * 14)
    assert found == smallest_within(WINDOWS[::-1], rates[::-1], [0.004] * 14)


def _answer(shape: str, seed: int, blocks: int, kind: str) -> float:
    """The window that a search with so many blocks of all WINDOWS would find."""
    law = SHAPES[shape]
    random = np.random.default_rng(seed)
    noise = noisy(random, blocks * len(WINDOWS), kind, 0.015).reshape(blocks, len(WINDOWS))
    seen = [
        (block, w, law(w) + noise[block, place])
        for block in range(blocks)
        for place, w in enumerate(random.permutation(WINDOWS))
    ]
    effects = level_fit(seen).effects
    found = smallest_within(
        [float(w) for w in effects],  # type: ignore[arg-type]
        [one.value for one in effects.values()],
        [one.stderr or 0 for one in effects.values()],
    )
    assert found is not None and found.low <= found.value <= found.high
    return found.value


@pytest.mark.parametrize("kind", ["normal", "spells"])
@pytest.mark.parametrize("shape", [*SHAPES])
def test_three_runs_find_the_same_window(shape: str, kind: str) -> None:
    found = [_answer(shape, seed, 15, kind) for seed in range(30)]
    threes = [found[i : i + 3] for i in range(0, 30, 3)]
    assert sum(max(three) <= 1.25 * min(three) for three in threes) >= 9
    best = SHAPES[shape](WINDOWS[-1])
    assert 0.98 < math.exp(SHAPES[shape](float(np.median(found))) - best) < 0.998


def test_a_curve_that_falls_again() -> None:
    rates = [SHAPES["hyperbola"](w) - (0.1 if w > 3000 else 0) for w in WINDOWS]
    found = smallest_within(WINDOWS, rates, [0.004] * 14)
    whole = smallest_within(WINDOWS[:-2], rates[:-2], [0.004] * 12)
    assert found is not None and whole is not None
    assert found.value == whole.value


def test_a_flat_curve_needs_the_smallest_window() -> None:
    found = smallest_within([10, 20, 30, 40], [0.0, 1e-3, -1e-3, 0.0], [0.004] * 4)
    assert found is not None and found.value == found.low == 10


def test_too_few_windows() -> None:
    assert smallest_within([10, 20], [0.0, 0.1], [0.01, 0.01]) is None
    assert smallest_within([], [], []) is None
