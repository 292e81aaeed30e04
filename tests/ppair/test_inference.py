"""Intervals, rank tests and verdicts: against scipy, by enumeration, and on simulated noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from ppair import inference
from ppair.inference import Comparison, Interval, Verdict, compare, compare_all, exceeds, words
from ppair.ranks import holm, least_pairs, rank_sum_p, signed_rank_p
from scipy import stats

ALPHA = 0.01
NOISE = 0.03  # standard deviation of the log rate of a run
RUN_S = 1.3
SPELL_RATE = 0.65


def spells(random: np.random.Generator, runs: int, every_s: float = 20, long_s: float = 4) -> list:
    """Rates of RUNS consecutive runs, 1 if fast: slow spells come and last at random."""
    rates, time_s = np.ones(runs), -60.0
    starts = RUN_S * np.arange(runs)
    while time_s < RUN_S * runs:
        begin = time_s + random.exponential(every_s)
        time_s = begin + random.exponential(long_s)
        overlap = np.minimum(starts + RUN_S, time_s) - np.maximum(starts, begin)
        rates -= (1 - SPELL_RATE) * np.clip(overlap, 0, None) / RUN_S
    return list(rates)


def noisy(random: np.random.Generator, runs: int, kind: str, sd: float = NOISE) -> np.ndarray:
    """Log rates of RUNS consecutive runs of the same program."""
    if kind == "skewed":
        return sd * (2 - random.gamma(2, size=runs)) / math.sqrt(2)
    log_rates = random.normal(0, sd, runs)
    if kind == "spells":
        log_rates += np.log(spells(random, runs))
    return log_rates


def sides(seed: int, n: int, kind: str, layout: str, effect: float = 1.0) -> tuple[list, list]:
    """Rates of A and B: in pairs, in an order drawn by lot, or all of A and much later all of B."""
    random = np.random.default_rng(seed)
    if layout == "apart":
        a, b = noisy(random, n, kind), noisy(random, n, kind)
    else:
        both = noisy(random, 2 * n, kind).reshape(n, 2)
        a, b = random.permuted(both, axis=1).T
    return list(1e6 * np.exp(a)), list(1e6 * effect * np.exp(b))


def flagged(
    n: int, kind: str, layout: str, effect: float = 1.0, cases: int = 200, paired: bool = True
) -> int:
    """In how many of CASES comparisons B is said to be different."""
    found = (
        compare(*sides(seed, n, kind, layout, effect), paired=paired, alpha=ALPHA, seed=seed)
        for seed in range(cases)
    )
    return sum(one.verdict is Verdict.DIFFERENT for one in found)


# ---- rank tests ----


@pytest.mark.parametrize("n", [3, 8, 15, 40])
def test_without_the_cap_it_is_wilcoxons(n: int) -> None:
    changes = np.random.default_rng(n).normal(0.3, 1, n)
    expected = stats.wilcoxon(changes, mode="exact").pvalue
    assert signed_rank_p(changes, capped=False) == pytest.approx(expected)


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("changes", [[1, 2, 2, -3, 5, 5, 5, 9], [0, 0, 1, -1, 4, 6, 7], [2, 3, 9]])
def test_signed_ranks_by_enumeration(changes: list, capped: bool) -> None:
    some = np.array([change for change in changes if change], dtype=float)
    ranks = stats.rankdata(abs(some))
    if capped:
        ranks = np.minimum(ranks, (len(some) + 1) / 2)
    sums = [np.dot(signs, ranks) for signs in itertools.product((-1, 1), repeat=len(some))]
    share = np.mean(np.abs(sums) >= abs(np.dot(np.sign(some), ranks)))
    assert signed_rank_p(changes, capped) == pytest.approx(share)
    assert signed_rank_p(-np.array(changes), capped) == pytest.approx(share)


def test_many_pairs_are_normal() -> None:
    changes = np.random.default_rng(3).normal(0.1, 1, 300)
    expected = stats.wilcoxon(changes, mode="approx").pvalue
    assert signed_rank_p(changes, capped=False) == pytest.approx(expected)
    few, many = (signed_rank_p(changes[:n]) for n in (200, 201))
    assert few == pytest.approx(many, rel=0.3)


def test_no_change_at_all() -> None:
    assert signed_rank_p([0, 0, 0]) == 1
    assert signed_rank_p([]) == 1


@pytest.mark.parametrize(("n", "m"), [(3, 4), (8, 8), (10, 25), (30, 30)])
def test_rank_sum_is_mann_and_whitneys(n: int, m: int) -> None:
    random = np.random.default_rng(n)
    a, b = random.normal(0, 1, n), random.normal(0.5, 1, m)
    expected = stats.mannwhitneyu(a, b, method="exact").pvalue
    assert rank_sum_p(a, b) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("a", "b"), [([1, 2, 2, 3], [2, 3, 4, 4, 9]), ([0, 0, 5], [0, 0, 0, 0]), ([1, 1], [1, 1])]
)
def test_rank_sum_with_ties_by_enumeration(a: list, b: list) -> None:
    ranks = stats.rankdata(a + b)
    mean = len(a) * ranks.mean()
    sums = [sum(some) - mean for some in itertools.combinations(ranks, len(a))]
    share = np.mean(np.abs(sums) >= abs(ranks[: len(a)].sum() - mean))
    assert rank_sum_p(a, b) == pytest.approx(share)


@pytest.mark.parametrize(
    ("alpha", "paired", "least"),
    [(0.05, True, 6), (0.01, True, 8), (0.05, False, 4), (0.01, False, 5), (1e-3, True, 11)],
)
def test_least_pairs(alpha: float, paired: bool, least: int) -> None:
    assert least_pairs(alpha, paired) == least
    for n in (least - 1, least):
        a, b = [1 + 0.001 * i for i in range(n)], [9 + 0.01 * i for i in range(n)]
        found = compare(a, b, paired=paired, alpha=alpha, seed=1)
        assert found.verdict is (Verdict.DIFFERENT if n == least else Verdict.TOO_FEW)
        assert (found.p < alpha) == (n == least)


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.6]) == [1, 1]
    assert holm([]) == []


# ---- the program with itself, and a slower one ----


@pytest.mark.parametrize("kind", ["normal", "skewed", "spells"])
def test_a_program_does_not_differ_from_itself(kind: str) -> None:
    assert flagged(10, kind, "pairs") <= 10
    assert flagged(10, kind, "pairs", paired=False) <= 10


def test_sides_apart() -> None:
    """Half of one side in a slow spell looks like a slow program: see the module's text."""
    assert flagged(10, "normal", "apart", paired=False) <= 10
    assert flagged(10, "spells", "apart", paired=False) <= 20  # 25 if runs were independent


@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_ten_percent_are_found(kind: str) -> None:
    assert flagged(10, kind, "pairs", 0.9, cases=60) >= 57
    assert flagged(10, kind, "apart", 0.9, cases=60, paired=False) >= 54


def test_ten_percent_are_found_in_spite_of_spells() -> None:
    assert flagged(12, "spells", "pairs", 0.9, cases=100) >= 68
    assert flagged(20, "spells", "pairs", 0.9, cases=100) >= 90


def test_one_percent_is_the_least_effect() -> None:
    a = [1000.0 + i for i in range(20)]
    found = compare(a, [1.005 * x for x in a], paired=True, alpha=ALPHA, seed=1)
    assert found.p < ALPHA and found.ratio.low > 1 and found.verdict is Verdict.SAME
    found = compare(a, [1.02 * x for x in a], paired=True, alpha=ALPHA, seed=1)
    assert found.verdict is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("kind", "paired"), [("normal", True), ("spells", True), ("normal", False)]
)
def test_the_ratios_interval_covers(kind: str, paired: bool) -> None:
    found = [
        compare(*sides(seed, 12, kind, "pairs", 0.9), paired=paired, alpha=ALPHA, seed=seed).ratio
        for seed in range(200)
    ]
    assert sum(one.low <= 0.9 <= one.high for one in found) >= 0.91 * 200


def test_pairs_straddling_a_spell_do_not_move_the_ratio() -> None:
    a, b = [1000.0] * 8 + [650, 1000], [900.0, 901, 899, 902, 898, 900, 901, 899, 900, 590]
    found = compare(a, b, paired=True, alpha=ALPHA, seed=1)
    assert found.ratio.value == pytest.approx(0.9, rel=0.002)


# ---- what is not there ----


def test_zeros_on_both_sides() -> None:
    found = compare([0] * 12, [0] * 12, paired=True, alpha=ALPHA, seed=1)
    assert found.verdict is Verdict.SAME and found.ratio is None
    assert found.difference == Interval(0, 0, 0, 12)
    assert words(found, "B", -1) == "no difference (both 0)"


@pytest.mark.parametrize("paired", [True, False])
def test_zeros_in_a(paired: bool) -> None:
    b = [9, 12, 5, 14, 10, 7, 16, 6, 13, 8, 15, 11]
    found = compare([0] * 12, b, paired=paired, alpha=ALPHA, seed=1)
    assert found.verdict is Verdict.DIFFERENT and found.ratio is None
    assert words(found, "B", -1).startswith("B is 10.5 higher (")
    assert words(found, "B", -1).endswith("), worse")
    assert exceeds(found, 0.05, -1) and not exceeds(found, 0.05, 1)


def test_some_zeros() -> None:
    """No log ratios, but a share of A's median."""
    found = compare([10, 0, 10, 10] * 3, [0] * 12, paired=True, alpha=ALPHA, seed=1)
    assert found.ratio is not None and found.ratio.value == pytest.approx(0)
    assert found.verdict is Verdict.DIFFERENT


def test_none_is_left() -> None:
    """Not a ratio below 0, nor a fall by more than there was."""
    a = [3679, 3242, 2694, 3735, 3729, 3213, 3532, 3193, 3492, 2609, 2668, 3036]
    found = compare(a, [0] * 12, paired=True, alpha=ALPHA, seed=1)
    assert found.verdict is Verdict.DIFFERENT and found.ratio is None
    assert found.difference is not None and -3735 < found.difference.low < found.difference.high < 0
    assert words(found, "B", -1).endswith("), better") and "%" not in words(found, "B", -1)


def test_missing_values_take_their_pair_along() -> None:
    a, b = [1.0, None, 3, 4], [2.0, 2, None, 8]
    found = compare(a, b, paired=True, alpha=ALPHA, seed=1)
    assert (found.count_a, found.count_b, found.median_a, found.median_b) == (2, 2, 2.5, 5)
    found = compare(a, b, paired=False, alpha=ALPHA, seed=1)
    assert (found.count_a, found.count_b, found.median_a, found.median_b) == (3, 3, 3, 2)


@pytest.mark.parametrize("paired", [True, False])
def test_nothing_measured(paired: bool) -> None:
    found = compare([None] * 3, [1, 2, 3], paired=paired, alpha=ALPHA, seed=1)
    assert found.verdict is Verdict.TOO_FEW and found.p is None and found.median_a is None
    assert words(found) == "not measured" and not exceeds(found, 0.05, 1)


def test_pairs_need_two() -> None:
    with pytest.raises(ValueError, match="not pairs"):
        compare([1, 2], [1], paired=True, alpha=ALPHA, seed=1)


@pytest.mark.parametrize("n", [1, 2, 1500])
def test_any_number_of_runs(n: int) -> None:
    for paired in (True, False):
        found = compare([2.0] * n, [2.0] * n, paired=paired, alpha=ALPHA, seed=1)
        assert found.ratio == Interval(1, 1, 1, n) and found.p == 1


def test_the_seed_decides() -> None:
    a, b = sides(5, 10, "normal", "pairs")
    first, second, other = (
        compare(a, b, paired=True, alpha=ALPHA, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != other


# ---- several metrics ----


def _metrics(seed: int, n: int, effect: float = 1.0) -> dict:
    names = ["rate", *(f"other {i}" for i in range(11))]
    return {
        name: sides(100 * seed + i, n, "normal", "pairs", effect) for i, name in enumerate(names)
    }


def test_the_primary_metric_is_tested_by_itself() -> None:
    metrics = _metrics(1, 12, 0.8)
    found = compare_all(metrics, "rate", paired=True, seed=1)
    alone = compare(*metrics["rate"], paired=True, alpha=ALPHA, seed=1)
    assert found["rate"] == alone
    other = compare(*metrics["other 3"], paired=True, alpha=ALPHA, seed=1)
    assert found["other 3"].p == pytest.approx(11 * other.p)
    assert {one.verdict for one in found.values()} == {Verdict.DIFFERENT}
    assert list(found) == list(metrics)


def test_more_metrics_need_more_pairs() -> None:
    found = compare_all(_metrics(1, 8, 0.8), "rate", paired=True, seed=1)
    assert found["rate"].verdict is Verdict.DIFFERENT
    assert found["other 0"].verdict is Verdict.TOO_FEW
    assert words(found["other 0"]) == "too few repetitions to tell (12 pairs needed at least)"


def test_metrics_without_values_do_not_count() -> None:
    metrics = {**_metrics(1, 12, 0.8), "none": ([None] * 12, [1.0] * 12)}
    found = compare_all(metrics, "rate", paired=True, seed=1)
    assert words(found.pop("none")) == "not measured"
    assert found == compare_all(_metrics(1, 12, 0.8), "rate", paired=True, seed=1)


def test_all_metrics_of_a_program_and_itself() -> None:
    flags = 0
    for seed in range(40):
        found = compare_all(_metrics(seed, 12), "rate", paired=True, seed=seed)
        flags += any(one.verdict is Verdict.DIFFERENT for one in found.values())
    assert flags <= 2


# ---- gates, and words ----


def test_a_gate_is_sure() -> None:
    def crossed(kind: str, effect: float, limit: float, n: int = 12) -> int:
        return sum(
            exceeds(
                compare(*sides(s, n, kind, "pairs", effect), paired=True, alpha=ALPHA, seed=s),
                limit,
                1,
            )
            for s in range(100)
        )

    assert crossed("normal", 1.0, 0.05) == crossed("spells", 1.0, 0.05) == 0
    assert crossed("normal", 0.95, 0.05) <= 5
    assert crossed("normal", 0.9, 0.05) >= 90
    assert crossed("spells", 0.85, 0.05, 20) >= 80


def _made(verdict: Verdict, ratio: tuple | None, difference: tuple | None = None) -> Comparison:
    def interval(three: tuple | None) -> Interval | None:
        return Interval(*three, 10) if three else None

    return Comparison(
        verdict, True, 10, 10, 6, 1.0, 1.0, interval(ratio), interval(difference), 0.001, 0.01
    )


@pytest.mark.parametrize(
    ("verdict", "ratio", "limit", "better", "crossed"),
    [
        (Verdict.DIFFERENT, (0.9, 0.88, 0.92), 0.05, 1, True),
        (Verdict.DIFFERENT, (0.9, 0.88, 0.92), 0.09, 1, False),
        (Verdict.DIFFERENT, (0.9, 0.88, 0.92), 0.05, -1, False),
        (Verdict.DIFFERENT, (0.9, 0.88, 0.92), 0.05, 0, False),
        (Verdict.DIFFERENT, (1.1, 1.06, 1.2), 0.05, -1, True),
        (Verdict.DIFFERENT, (1.1, 1.06, 1.2), 0.0, 1, False),
        (Verdict.SAME, (0.9, 0.88, 0.92), 0.05, 1, False),
        (Verdict.TOO_FEW, (0.9, 0.88, 0.92), 0.05, 1, False),
    ],
)
def test_gates(verdict: Verdict, ratio: tuple, limit: float, better: int, crossed: bool) -> None:
    assert exceeds(_made(verdict, ratio), limit, better) == crossed


@pytest.mark.parametrize(
    ("verdict", "ratio", "difference", "better", "text"),
    [
        (
            Verdict.SAME,
            (1.001, 0.992, 1.011),
            None,
            1,
            "no difference (within -0.8 % .. +1.1 %)",
        ),
        (Verdict.DIFFERENT, (0.902, 0.893, 0.911), None, 0, "B is 9.8 % lower (8.9 .. 10.7 %)"),
        (
            Verdict.DIFFERENT,
            (0.902, 0.893, 0.911),
            None,
            1,
            "B is 9.8 % lower (8.9 .. 10.7 %), worse",
        ),
        (
            Verdict.DIFFERENT,
            (0.902, 0.893, 0.911),
            None,
            -1,
            "B is 9.8 % lower (8.9 .. 10.7 %), better",
        ),
        (
            Verdict.DIFFERENT,
            (1.2, 1.1, 1.3),
            None,
            1,
            "B is 20.0 % higher (10.0 .. 30.0 %), better",
        ),
        (Verdict.DIFFERENT, (25.2, 20, 30), None, 0, "B is 25.2 times as high (20 .. 30)"),
        (Verdict.DIFFERENT, None, (-7, -9, -4), -1, "B is 7 lower (4 .. 9), better"),
        (Verdict.SAME, None, (0, 0, 3.5), -1, "no difference (within +0 .. +3.5)"),
        (Verdict.SAME, (1, 1, 1), None, 0, "no difference (equal)"),
        (Verdict.SAME, None, (0, 0, 0), 0, "no difference (both 0)"),
        (
            Verdict.SAME,
            (1.001, 1.0002, 1.012),
            None,
            1,
            "+0.1 % (+0.02 % .. +1.2 %), and less than 1 % does not count",
        ),
        (
            Verdict.SAME,
            (0.97, 0.95, 0.99),
            None,
            1,
            "not certain: -5.0 % .. -1.0 % by the interval, but by the rank test it may be chance",
        ),
        (
            Verdict.SAME,
            None,
            (3, 1, 5),
            0,
            "not certain: +1 .. +5 by the interval, but by the rank test it may be chance",
        ),
        (
            Verdict.TOO_FEW,
            (1, 1, 1),
            None,
            0,
            "too few repetitions to tell (6 pairs needed at least)",
        ),
    ],
)
def test_words(
    verdict: Verdict, ratio: tuple | None, difference: tuple | None, better: int, text: str
) -> None:
    assert words(_made(verdict, ratio, difference), "B", better) == text


def test_no_difference_is_said_only_where_the_interval_has_no_change_in_it() -> None:
    """Whatever the values and the reason; so nobody can read it as the contrary of its interval."""
    random = np.random.default_rng(5)
    said = set()
    for _ in range(300):
        shift = random.choice([0.0, 0.004, 0.008, 0.02])
        a = list(random.normal(1000, 15, 12))
        b = list(random.normal(1000 * (1 + shift), 15, 12))
        found = compare(a, b, paired=True, alpha=0.01, seed=0)
        assert found.ratio
        text = words(found)
        kind = next(k for k in ("no difference", "not count", "not certain", "B is") if k in text)
        said.add(kind)
        within = found.ratio.low <= 1 <= found.ratio.high
        assert (kind == "no difference") == within, text
    assert said == {"no difference", "not count", "not certain", "B is"}
