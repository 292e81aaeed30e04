"""Models of credit: what a grant costs, the round trip, the smallest window that is good enough.

They take rates or times by window or grant, such as the levels of fits.level_fit, and are robust
against a few that are off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .fits import Array, line
from .inference import Interval

# ---- cost of a grant, and the round trip ----

PLATEAU_SHARE = 0.5  # of the best rate: below it a window may be what limits
TRIP_SPREAD = 1.15  # largest / smallest of round trips that are called the same
TRIP_NOISE = 0.005  # least relative noise of one of them


@dataclass(frozen=True)
class GrantCost:
    """Time per message = a + b / grant size; b is what one grant costs."""

    a_ns: float
    b_ns: float
    a_interval: Interval
    b_interval: Interval


def fit_grant_cost(
    grant_sizes: Sequence[float],
    ns_per_message: Sequence[float],
    stderr_ns: Sequence[float] | None = None,
    confidence: float = 0.95,
) -> GrantCost | None:
    """The line through (1 / grant, time per message); None below 3 different sizes."""
    found = line([1 / size for size in grant_sizes], ns_per_message, stderr_ns, confidence)
    if found is None:
        return None
    return GrantCost(found.at_0.value, found.by.value, found.at_0, found.by)


@dataclass(frozen=True)
class RoundTrip:
    """What the window has to cover."""

    seconds: float
    interval: Interval
    windows_used: tuple[float, ...]


def fit_round_trip(
    windows: Sequence[float], messages_per_s: Sequence[float], confidence: float = 0.95
) -> RoundTrip | None:
    """The round trip from the stall regime, where rate = window / round trip.

    Of the windows with at most half the best rate, the longest row of neighbours whose window /
    rate is the same within 15 %; of several, that of the smallest windows. The geometric mean, with
    Student's t. None if no two windows agree.
    """
    limit = PLATEAU_SHARE * max(messages_per_s, default=0.0)
    slow = sorted((w, r) for w, r in zip(windows, messages_per_s) if 0 < r <= limit)
    best: list[tuple[float, float]] = []
    for first in range(len(slow)):
        for end in range(first + 2, len(slow) + 1):
            trips = [w / r for w, r in slow[first:end]]
            if max(trips) <= TRIP_SPREAD * min(trips) and len(trips) > len(best):
                best = slow[first:end]
    if not best:
        return None
    logs = np.log([w / r for w, r in best])
    spread = max(float(logs.std(ddof=1)), TRIP_NOISE)
    half = float(stats.t.ppf((1 + confidence) / 2, len(best) - 1)) * spread / math.sqrt(len(best))
    mean = float(logs.mean())
    seconds, low, high = (math.exp(value) for value in (mean, mean - half, mean + half))
    return RoundTrip(seconds, Interval(seconds, low, high, len(best)), tuple(w for w, _ in best))


# ---- the smallest window that is good enough ----

UPPER_SHARE = 0.8  # of the best rate: where the law is looked for first
LAW_ERROR = 0.15  # of the excess, how far the law can be off near the best rate
LAW_RANGE = 0.1  # excess at which that has doubled
DRAWS = 400


@dataclass(frozen=True)
class Window:
    """In messages, not rounded; and the log rate of the best that it is compared with."""

    value: float
    low: float
    high: float
    best: float


def smallest_within(
    windows: Sequence[float],
    log_rates: Sequence[float],
    stderrs: Sequence[float],
    within: float = 0.01,
    seed: int = 0,
    confidence: float = 0.95,
) -> Window | None:
    """The window from which on the rate is within WITHIN of the best; None below 3 windows.

    Near the plateau a curve is so flat (1 % between a window and its double) that it is chance
    where measured rates cross the limit. So the law t(W) = a + c / W is fitted to the times per
    message and solved for W. The law is only roughly true: its error is taken for 15 % of the
    excess c / W over a, and for more farther down (times 1 + excess / 10 %), and added to the
    standard errors, so that windows fade out of the fit and do not drop out. Something freer
    where the law does not fit (more powers of 1 / W, monotone curves) was tried: the answer then
    jumps from run to run. If the curve has another shape this one is wrong by a factor of up to
    1.8, but the rate that it leads to is not: 98.4 to 99.6 % where 99 % is meant. The interval, a
    parametric bootstrap, has the law's error in it, but not the choice of the law.

    "Best" is the fitted rate at the largest window, not the asymptote, which nobody has measured.
    Windows beyond the fastest one whose rates have fallen again say nothing about the rise and are
    left out.

    Three simulated runs (noise 1.5 %, 14 to 16 windows) agree within 25 % with a probability of
    0.92 (6 blocks), 0.98 (10), 0.99 (15); with spells 0.67, 0.84, 0.96: the worst of five shapes.
    """
    if len(windows) < 3:
        return None
    order = np.argsort(windows)
    size, rate = np.array(windows, dtype=float)[order], np.array(log_rates, dtype=float)[order]
    noise = np.maximum(np.array(stderrs, dtype=float)[order], 1e-4)
    top = int(np.argmax(rate - 2 * noise))
    fallen = (np.arange(len(size)) > top) & (rate < rate[top] - within - 3 * noise)
    size, rate, noise = size[~fallen], rate[~fallen], noise[~fallen]
    if len(size) < 3:
        return None
    times = np.exp(rate[top] - rate)  # in units of the fastest one, windows below it being kept
    a, c, error, weights = _law(size, times, noise)
    if a <= 0:
        return None
    fitted = a + c / size
    draws = fitted + error * np.random.default_rng(seed).normal(size=(DRAWS, len(size)))
    again = _crossing(*_line(1 / size, draws, weights), size, within)
    value = float(_crossing(a, c, size, within))
    low, high = np.quantile(again, [(1 - confidence) / 2, (1 + confidence) / 2])
    best = float(rate[top] - np.log(fitted[-1]))
    return Window(value, min(float(low), value), max(float(high), value), best)


def _crossing(a: Array, c: Array, size: Array, within: float) -> Array:
    """Where the law reaches the best time / (1 - WITHIN), among the windows that were measured."""
    limit = (a + c / size[-1]) / (1 - within)
    return np.clip(np.where(c > 0, c / np.maximum(limit - a, 1e-12), 0), size[0], size[-1])


def _law(size: Array, times: Array, noise: Array) -> tuple[Array, Array, Array, Array]:
    """a, c, and the error and weight of each time; NOISE is relative."""
    upper = (times <= 1 / UPPER_SHARE) | (times <= np.sort(times)[2])
    weights = np.where(upper, 1 / (noise * times) ** 2, 0)
    a, c = _line(1 / size, times, weights)
    for _ in range(30):
        fitted = a + np.maximum(c, 0) / size
        excess = fitted / a - 1
        error = np.hypot(noise * fitted, LAW_ERROR * excess * (1 + excess / LAW_RANGE) * a)
        off = np.abs(times - fitted) / error
        weights = np.minimum(1, 2 / np.maximum(off, 1e-9)) / error**2
        a, c = _line(1 / size, times, weights)
    return a, c, error, weights


def _line(x: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Intercept and slope by weighted least squares, for each row of Y and WEIGHTS."""
    total = weights.sum(axis=-1, keepdims=True)
    middle_x = (weights * x).sum(axis=-1, keepdims=True) / total
    middle_y = (weights * y).sum(axis=-1, keepdims=True) / total
    steep = (weights * (x - middle_x) * (y - middle_y)).sum(axis=-1)
    steep = steep / (weights * (x - middle_x) ** 2).sum(axis=-1)
    return middle_y[..., 0] - steep * middle_x[..., 0], steep
