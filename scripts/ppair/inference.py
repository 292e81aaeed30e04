"""Comparisons: intervals, rank tests, verdicts in words.

What it is made for: runs of a second or so on a shared machine. Most of them lie within some
percent of each other, and now and then there is a slow spell, at two thirds of the rate, that
lasts several seconds, so that neighbouring runs share their fate. All choices below were made by
simulating that (spells of 4 s every 20 s, runs of 1.3 s, noise of 3 %, A/A and a change of 10 %,
some thousand comparisons each; tests/ppair/test_inference.py has the simulation).

Pairs, A beside B, are what fights the spells: only pairs in which one begins or ends are hurt.
The order within a pair should be drawn by lot. Then the signs of the log ratios are fair coins
if A and B are the same, whatever the noise does, and the test below is exact; with ABBA, in which
the two B are neighbours, it flags 1.5 % instead of 1 % when there are spells.

Pairs:

- Estimate: the mean of the middle half of the log ratios. Its error is 1.45 % for n = 10 (normal
  noise) and 2.1 % (spells), where the mean has 1.35 and 3.4 %, Hodges and Lehmann's estimator 1.38
  and 2.3 %, the median 1.55 and 2.0 %. Blocks of four (ABBA) halve n and gain nothing: a spell that
  covers BB hurts the whole block.
- Test: Wilcoxon's signed-rank test with ranks capped at the middle one, see ranks.py. It
  finds a change of 10 % in spite of spells in 80 % (12 pairs) and 94 % (20 pairs) of the cases,
  Wilcoxon's own in 64 and 89 %; in normal noise there is no difference to speak of.

Without pairs there is the Mann-Whitney test, which takes runs for independent. They are not: two
sides measured one after the other, n = 10, with spells, are flagged in 13 % of A/A comparisons.
Its p and the interval are therefore widened by the autocorrelation that the sides show, see
ranks.inflation; 5 % remain. A whole side that lay in a slow spell cannot be told from a slow
program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from . import ranks

Array = NDArray[np.float64]
Values = Sequence[float | int | None]

RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence limits."""

    value: float
    low: float
    high: float
    count: int  # values that it was made from; of two sides, of the smaller one


class Verdict(Enum):
    """Of a comparison."""

    DIFFERENT = "different"
    SAME = "same"
    TOO_FEW = "too few"


@dataclass(frozen=True)
class Comparison:
    """B against A, in one metric.

    One of `ratio` and `difference` is there if both sides have values: B / A, or B - A in the
    metric's unit where A is typically 0 and no ratio exists, or where values are 0 and the interval
    of a ratio would reach below that.
    """

    verdict: Verdict
    paired: bool
    count_a: int
    count_b: int
    least: int  # pairs, or runs of each side, below which nothing can be told
    median_a: float | None
    median_b: float | None
    ratio: Interval | None
    difference: Interval | None
    p: float | None  # two-sided; adjusted if several metrics share one alpha
    min_effect: float = 0.0  # of a ratio: a difference that is smaller does not count


# ---- intervals ----


def _known(values: Values) -> Array:
    return np.array([value for value in values if value is not None], dtype=float)


# ---- comparing ----


def _midmean(values: Array) -> Array:
    """Mean of the middle half along the last axis; values on its edges count in part."""
    n = values.shape[-1]
    whole = n // 4
    weights = np.ones(n)
    weights[:whole] = weights[n - whole :] = 0
    weights[whole] -= n / 4 - whole
    weights[n - 1 - whole] -= n / 4 - whole
    return np.asarray(np.sort(values, axis=-1) @ (weights / weights.sum()))


def _resample(values: Array, random: np.random.Generator) -> Array:
    """RESAMPLES x n values, drawn with replacement; fewer rows if n is large."""
    rows = max(500, min(RESAMPLES, 4_000_000 // len(values)))
    return np.asarray(values[random.integers(0, len(values), (rows, len(values)))])


def _sides(a: Values, b: Values, paired: bool) -> tuple[Array, Array]:
    """Without missing values; of pairs, without the other half."""
    if not paired:
        return _known(a), _known(b)
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values and {len(b)} are not pairs")
    both = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    return np.array([x for x, _ in both], dtype=float), np.array([y for _, y in both], dtype=float)


def _change(
    a: Array, b: Array, paired: bool, log: bool, random: np.random.Generator
) -> tuple[float, float, Array]:
    """p, the change from A to B, and the deviations from it that resampling gives."""
    if paired:
        changes = np.log(b / a) if log else b - a
        value = float(_midmean(changes))
        return ranks.signed_rank_p(changes), value, _midmean(_resample(changes, random)) - value

    def location(values: Array) -> Array:
        middle = np.median(values, axis=-1)
        return np.asarray(np.log(middle) if log else middle)

    value = float(location(b) - location(a))
    rows = [location(_resample(side, random)) for side in (a, b)]
    size = min(len(row) for row in rows)
    inflation = ranks.inflation(a, b)
    p = ranks.rank_sum_p(a, b)
    if inflation > 1:
        p = float(2 * stats.norm.sf(stats.norm.isf(p / 2) / math.sqrt(inflation)))
    return p, value, (rows[1][:size] - rows[0][:size] - value) * math.sqrt(inflation)


def compare(
    a: Values,
    b: Values,
    *,
    paired: bool,
    alpha: float,
    seed: int,
    min_effect: float = 0.01,
    confidence: float = 0.95,
) -> Comparison:
    """B against A, one metric; a[i] and b[i] are a pair, or values are in the order of measuring.

    Values that are None are left out, of pairs both. The ratio is that of the pairs, or of the
    medians, with a percentile bootstrap interval. Where a value is 0 or less logarithms do not
    exist: then differences are tested and estimated, and given as a share of A's median unless
    that is 0, or the interval would reach beyond it. DIFFERENT needs p < ALPHA, an interval without
    1 (or 0), and MIN_EFFECT.
    """
    return _judge(_measure(a, b, paired, alpha, seed, confidence), alpha, min_effect)


def _measure(
    a: Values, b: Values, paired: bool, alpha: float, seed: int, confidence: float
) -> Comparison:
    """All but the verdict, which is TOO_FEW."""
    x, y = _sides(a, b, paired)
    found = Comparison(
        verdict=Verdict.TOO_FEW,
        paired=paired,
        count_a=len(x),
        count_b=len(y),
        least=ranks.least_pairs(alpha, paired),
        median_a=float(np.median(x)) if len(x) else None,
        median_b=float(np.median(y)) if len(y) else None,
        ratio=None,
        difference=None,
        p=None,
    )
    if not len(x) or not len(y):
        return found
    log = bool(x.min() > 0 and y.min() > 0)
    p, value, spread = _change(x, y, paired, log, np.random.default_rng(seed))
    tails = np.quantile(spread, [(1 - confidence) / 2, (1 + confidence) / 2])
    limits = (value, value + float(tails[0]), value + float(tails[1]))
    count, middle = min(len(x), len(y)), float(np.median(x))
    if not log and (middle <= 0 or middle + min(limits) < 0):  # no share, or one beyond all of it
        return replace(found, p=p, difference=Interval(*limits, count))
    value, low, high = (math.exp(part) if log else 1 + part / middle for part in limits)
    return replace(found, p=p, ratio=Interval(value, low, high, count))


def _judge(comparison: Comparison, alpha: float, min_effect: float, shared: int = 1) -> Comparison:
    """With a verdict, from a p that has been adjusted for SHARED tests."""
    ratio, difference, p = comparison.ratio, comparison.difference, comparison.p
    comparison = replace(comparison, min_effect=min_effect)
    if p is None:
        return comparison
    if shared * ranks.least_p(comparison.count_a, comparison.count_b, comparison.paired) >= alpha:
        return comparison
    if ratio is not None:
        apart = not ratio.low <= 1 <= ratio.high and abs(ratio.value - 1) >= min_effect
    else:
        apart = difference is not None and not difference.low <= 0 <= difference.high
    return replace(comparison, verdict=Verdict.DIFFERENT if apart and p < alpha else Verdict.SAME)


def compare_all(
    metrics: Mapping[str, tuple[Values, Values]],
    primary: str,
    *,
    paired: bool,
    seed: int,
    alpha: float = 0.01,
    min_effect: float = 0.01,
    confidence: float = 0.95,
) -> dict[str, Comparison]:
    """Every metric by name, as (values of A, values of B).

    The primary one is tested by itself; the others share ALPHA (Holm), so that comparing a program
    with itself says anything but "no difference" in at most 2 ALPHA of all cases.
    """
    shared = [
        name
        for name, (a, b) in metrics.items()
        if name != primary and all(len(side) for side in _sides(a, b, paired))
    ]
    tests = {name: len(shared) if name in shared else 1 for name in metrics}
    found = {
        name: _measure(a, b, paired, alpha / tests[name], seed, confidence)
        for name, (a, b) in metrics.items()
    }
    for name, p in zip(shared, ranks.holm([found[name].p or 0.0 for name in shared])):
        found[name] = replace(found[name], p=p)
    return {name: _judge(one, alpha, min_effect, tests[name]) for name, one in found.items()}


def exceeds(comparison: Comparison, limit: float, better: int) -> bool:
    """Whether B is worse than A by more than LIMIT (0.05: 5 %), for certain; for gates.

    BETTER is 1 if higher is better, -1 if lower is, 0 if neither, and then nothing is worse. The
    verdict has to be DIFFERENT and the whole interval beyond the limit: below 1 - LIMIT, or above
    1 + LIMIT. So a change of just LIMIT passes in 97 % of the cases, and none at all practically
    always. Where A is 0, any increase is beyond any share of it.
    """
    if comparison.verdict is not Verdict.DIFFERENT or better == 0:
        return False
    ratio, difference = comparison.ratio, comparison.difference
    if ratio is not None:
        return ratio.high < 1 - limit if better > 0 else ratio.low > 1 + limit
    if difference is not None:
        return difference.high < 0 if better > 0 else difference.low > 0
    return False


def words(comparison: Comparison, name: str = "B", better: int = 0) -> str:
    """The result in words; NAME is the subject, "B" or the metric; BETTER as for `exceeds`."""
    change = comparison.ratio or comparison.difference
    if change is None:
        return "not measured"
    if comparison.verdict is Verdict.TOO_FEW:
        what = "pairs" if comparison.paired else "runs of each"
        return f"too few repetitions to tell ({comparison.least} {what} needed at least)"
    none = 0.0 if comparison.ratio is None else 1.0  # what no change would be
    size, low, high = (value - none for value in (change.value, change.low, change.high))
    if comparison.verdict is Verdict.SAME:
        return _words_of_none(comparison, size, low, high)
    direction = "higher" if size > 0 else "lower"
    low, high = sorted((abs(low), abs(high)))
    if comparison.ratio is None:
        text = f"{abs(size):.4g} {direction} ({low:.4g} .. {high:.4g})"
    elif size >= 1:
        text = f"{change.value:.3g} times as high ({change.low:.3g} .. {change.high:.3g})"
    else:
        text = f"{100 * abs(size):.1f} % {direction} ({100 * low:.1f} .. {100 * high:.1f} %)"
    judged = ", better" if (size > 0) == (better > 0) else ", worse"
    return f"{name} is {text}{judged if better else ''}"


def _words_of_none(comparison: Comparison, size: float, low: float, high: float) -> str:
    """Of what is not called a difference: as there is none to be seen; it is too small to count; or
    it is not certain, as the interval leaves out no change and the rank test does not."""
    is_share = comparison.ratio is not None
    if low == high == 0:
        return "no difference (equal)" if is_share else "no difference (both 0)"
    limits = f"{low:+.4g} .. {high:+.4g}"
    if is_share:
        limits = f"{100 * low:+.1f} % .. {100 * high:+.1f} %"
    if low <= 0 <= high:
        return f"no difference (within {limits})"
    if is_share and abs(size) < comparison.min_effect:
        return (
            f"{100 * size:+.2g} % ({100 * low:+.2g} % .. {100 * high:+.2g} %), and less than "
            f"{100 * comparison.min_effect:g} % does not count"
        )
    return f"not certain: {limits} by the interval, but by the rank test it may be chance"
