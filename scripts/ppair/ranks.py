"""Rank tests, exact where that matters, and what goes with them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

EXACT_RUNS = 60  # of both sides; above that the rank sum is as good as normal
EXACT_PAIRS = 200


def _sign_flips(twice: NDArray[np.int64]) -> Array:
    """P(sum = k) for k = 0, 1 ... if each number is in the sum or not with probability 1/2."""
    chance = np.zeros(int(twice.sum()) + 1)
    chance[0] = 1.0
    for number in twice:
        chance[number:] += chance[: len(chance) - number].copy()
        chance /= 2
    return chance


def signed_rank_p(changes: Sequence[float] | Array, capped: bool = True) -> float:
    """Whether CHANGES, one for each pair, lie on one side of 0; two-sided, exact, ties allowed.

    Without the cap this is Wilcoxon's signed-rank test. With it no rank counts for more than the
    middle one, (n + 1) / 2: scores between Wilcoxon's and the sign test's (Policello and
    Hettmansperger, JASA 71, 1976). Pairs that straddle the edge of a slow spell have the largest
    changes and arbitrary signs; with their full ranks a few of them hide any effect. Zeros are
    left out. The distribution is that of all 2^n choices of signs, by convolution.
    """
    some = np.asarray(changes, dtype=float)
    some = some[some != 0]
    n = len(some)
    if n == 0:
        return 1.0
    ranks = stats.rankdata(np.abs(some))
    if capped:
        ranks = np.minimum(ranks, (n + 1) / 2)
    above, total = float(ranks[some > 0].sum()), float(ranks.sum())
    least = min(above, total - above)
    if n > EXACT_PAIRS:
        z = (total / 2 - least) / math.sqrt(float((ranks**2).sum()) / 4)
        return float(2 * stats.norm.sf(z))
    chance = _sign_flips(np.rint(2 * ranks).astype(np.int64))
    return min(1.0, 2 * float(chance[: round(2 * least) + 1].sum()))


def rank_sum_p(a: Sequence[float] | Array, b: Sequence[float] | Array) -> float:
    """Mann and Whitney's test (Wilcoxon's rank sum), two-sided, ties allowed.

    Exact up to 60 runs: of all ways to choose A's ranks from those of both sides, the share in
    which their sum is as far from its mean as it is here, by convolution over the ranks.
    """
    ranks = stats.rankdata(np.concatenate([np.asarray(a), np.asarray(b)]))
    n, runs = len(a), len(ranks)
    if runs > EXACT_RUNS:
        return float(stats.mannwhitneyu(a, b, method="asymptotic").pvalue)
    twice = np.rint(2 * ranks).astype(np.int64)
    ways = np.zeros((n + 1, int(twice.sum()) + 1))  # by how many were chosen, and their sum
    ways[0, 0] = 1.0
    for number in twice:
        ways[1:, number:] += ways[:-1, : ways.shape[1] - number].copy()
    mean = n * (runs + 1)  # of twice the rank sum
    far = np.abs(np.arange(ways.shape[1]) - mean) >= abs(int(twice[:n].sum()) - mean)
    return float(ways[n, far].sum() / ways[n].sum())


def inflation(a: Array, b: Array) -> float:
    """By how much dependence between neighbouring runs inflates the variance of a side's mean.

    rho is the lag 1 autocorrelation of the ranks in both sides together, corrected for its bias
    of about -(1 + 3 rho) / n (Kendall, 1954) and not below 0; runs are taken for AR(1), and then
    the factor is 1 + 2 sum (1 - k/n) rho^k. Values have to be in the order of measuring.
    """
    ranks = stats.rankdata(np.concatenate([a, b]))
    sides = [side - side.mean() for side in (ranks[: len(a)], ranks[len(a) :])]
    power = sum(float((side**2).sum()) for side in sides)
    n = len(ranks) / 2
    if n <= 5 or power == 0:
        return 1.0
    raw = sum(float((side[1:] * side[:-1]).sum()) for side in sides) / power * n / (n - 1)
    rho = min(max((n * raw + 1) / (n - 3), 0.0), 0.9)
    lags = np.arange(1, int(n))
    return 1 + 2 * float(((1 - lags / n) * rho**lags).sum())


def least_pairs(alpha: float, paired: bool = True) -> int:
    """The number of pairs, or of runs of each side, with which p can be below ALPHA at all.

    The least p is 2 / 2^n with n pairs and 2 / C(2n, n) with n runs of each side.
    """
    n = 1
    while least_p(n, n, paired) >= alpha:
        n += 1
    return n


def least_p(count_a: int, count_b: int, paired: bool) -> float:
    """The least p that so many pairs, or runs of each side, can give."""
    return 0.5 ** (count_a - 1) if paired else 2 / math.comb(count_a + count_b, count_a)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: the chance of even one false alarm among them is below alpha.

    The i-th smallest of m is multiplied by m - i + 1, and none is below a smaller one's (Holm,
    Scandinavian Journal of Statistics 6, 1979). Nothing is assumed about dependence.
    """
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = floor
    return adjusted
