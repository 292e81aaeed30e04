"""Whether a path has kept up with a rate, and which rate to try next. Arithmetic alone.

A path keeps up with an open loop if all that was due was sent, all that was sent was received, and
neither the sender's backlog nor the latency grew. What waits elsewhere, in sockets or in a broker's
queue, is seen in the latency alone: if the path is slower by a share x, latency grows by x seconds
a second. A share of 1 % is noticed; the messages of the last 10 ms may always be on their way.

The search is for the highest rate of which a yes-or-no question says yes. It halves the ratio of
the highest rate that has passed to the lowest that has not, or tries what was achieved where more
was asked for. A short run can be hit by something else, so a rate counts by the majority of its
runs, both ends are confirmed before the search ends, and each is tried three times at most: it
ends whatever the answers are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

GROWTH_PER_S = 0.01  # of latency, s a second: the path is so much slower than the rate
GROWTH_LEAST_S = 500e-6  # of latency, over the whole run: below it, that is no growth
BACKLOG_S = 0.01  # of messages: so many may be due and not sent for the moment
SAMPLES_LEAST = 5  # of intervals, to see growth
CONFIRMATIONS = 2  # passes of the answer, failures of the next rate
TRIES_MAX = 3  # of one rate
TRIALS_MAX = 30  # of a search
STEP_UP = 1.25  # while nothing has failed
STEP_DOWN = 0.5  # while nothing has passed
LEAST_SHARE = 1e-3  # of the first rate: below it, nothing passes


# ---- has it kept up? ----

Samples = tuple[tuple[float, float], ...]  # a time in s and a value


@dataclass(frozen=True)
class Seen:
    """Of one run: what was asked for, and series over its intervals."""

    target_per_s: float
    missing: float  # messages that were due while measuring, and were not sent
    span_s: float  # of measuring
    rate_met: bool  # as psend has it: but for 0.1 %, or a message
    backlogs: tuple[Samples, ...]  # of each sender: messages, at the end of each interval
    latencies_s: tuple[Samples, ...]  # of each receiver: p50 of each interval


def trouble(seen: Seen) -> str | None:
    """Why it is not sustained, in words; None if it is."""
    enough = seen.target_per_s * min(BACKLOG_S, GROWTH_PER_S * seen.span_s)
    if not seen.rate_met and seen.missing > enough:
        return "less was sent than was due"
    rate = seen.target_per_s / max(len(seen.backlogs), 1)
    if any(_grows(each, GROWTH_PER_S * rate, BACKLOG_S * rate) for each in seen.backlogs):
        return "the sender's backlog grew"
    if any(_grows(each, GROWTH_PER_S, GROWTH_LEAST_S) for each in seen.latencies_s):
        return "latency grew"
    return None


def rule() -> str:
    """What trouble() goes by, in words."""
    share, backlog = f"{100 * GROWTH_PER_S:g} %", f"{1e3 * BACKLOG_S:g} ms"
    return (
        f"all was sent that was due, but for the messages of {backlog} or of {share} of the run, "
        "whichever is less, and neither a sender's backlog nor a receiver's latency (p50) grew by "
        f"more than {share} of the time, and by more than {backlog} of messages, or "
        f"{1e6 * GROWTH_LEAST_S:g} us, and by more than it was at first"
    )


def _grows(samples: Samples, per_s: float, least: float) -> bool:
    """Faster than that and by more than LEAST, and what there was at first has at least doubled."""
    if len(samples) < SAMPLES_LEAST:
        return False
    slope = median_slope(samples)
    grown = slope * (samples[-1][0] - samples[0][0])
    first = statistics.median(value for _, value in samples[: len(samples) // 3 + 1])
    return slope > per_s and grown > max(least, first)


def median_slope(samples: Sequence[tuple[float, float]]) -> float:
    """Of the lines through any two of them (Theil and Sen): a third of outliers does no harm."""
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for index, earlier in enumerate(samples)
        for later in samples[index + 1 :]
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) if slopes else 0.0


# ---- the search ----


@dataclass(frozen=True)
class Trial:
    """One run at a rate, and what was achieved if that says where the limit may be."""

    rate_per_s: float
    passed: bool
    achieved_per_s: float | None = None


@dataclass(frozen=True)
class Bracket:
    """The highest rate that passes and the lowest that does not, None if there is none."""

    low_per_s: float | None
    high_per_s: float | None


def _score(trials: Sequence[Trial], rate_per_s: float) -> tuple[int, int]:
    """Passes and failures of a rate."""
    found = [trial.passed for trial in trials if trial.rate_per_s == rate_per_s]
    return sum(found), len(found) - sum(found)


def bracket(trials: Sequence[Trial]) -> Bracket:
    """By majority; a rate with as many failures as passes is neither."""
    scores = {t.rate_per_s: _score(trials, t.rate_per_s) for t in trials}
    high = min((rate for rate, (yes, no) in scores.items() if no > yes), default=math.inf)
    low = max((rate for rate, (yes, no) in scores.items() if yes > no and rate < high), default=0.0)
    return Bracket(low or None, None if high == math.inf else high)


def next_rate(trials: Sequence[Trial], first: float, within: float) -> float | None:
    """What to try next, beginning with FIRST; None: there is nothing more to be found out.

    The answer is then bracket(). WITHIN is the share by which its ends may be apart.
    """
    if not trials:
        return first
    if len(trials) >= TRIALS_MAX:
        return None
    doubtful = _doubtful(trials)
    if doubtful is not None:
        return doubtful
    found = bracket(trials)
    low, high = found.low_per_s, found.high_per_s
    if high is None:
        return max(trial.rate_per_s for trial in trials) * STEP_UP
    if low is not None and high <= low * (1 + within):
        return _unconfirmed(trials, low, high)
    guess = _guess(trials, high, within)
    if low is None:
        at_most = high * STEP_DOWN
        below = guess if guess is not None and guess < high else at_most
        return below if below >= LEAST_SHARE * first else None
    return _between(low, high, guess, within)


def _between(low: float, high: float, guess: float | None, within: float) -> float:
    """The GUESS; just above it, if it has passed; or half way, as ratios go."""
    near = 1 + within / 2
    if guess is not None and low * near < guess < high / near:
        return guess
    if guess is not None and low / near <= guess <= low * near:
        return low * (1 + within)
    return math.sqrt(low * high)


def _doubtful(trials: Sequence[Trial]) -> float | None:
    """The lowest rate whose runs do not agree, or that alone has failed below one that passed."""
    most = max((t.rate_per_s for t in trials if t.passed), default=0.0)
    for rate in sorted({trial.rate_per_s for trial in trials}):
        yes, no = _score(trials, rate)
        if yes + no < TRIES_MAX and (yes == no or (no == 1 and yes == 0 and rate < most)):
            return rate
    return None


def _unconfirmed(trials: Sequence[Trial], low: float, high: float) -> float | None:
    if _score(trials, low)[0] < CONFIRMATIONS:
        return low
    return high if _score(trials, high)[1] < CONFIRMATIONS else None


def _guess(trials: Sequence[Trial], high: float, within: float) -> float | None:
    """A little below what was achieved when HIGH was asked for, if that was less."""
    achieved = [
        trial.achieved_per_s
        for trial in trials
        if trial.rate_per_s == high and not trial.passed and trial.achieved_per_s is not None
    ]
    best = max(achieved, default=0.0) * (1 - within / 2)
    return best if 0 < best <= high / (1 + within) else None


def is_certain(trials: Sequence[Trial], within: float) -> bool:
    """Whether the search has come to its end, and was not broken off."""
    found = bracket(trials)
    if found.low_per_s is None or found.high_per_s is None:
        return False
    close = found.high_per_s <= found.low_per_s * (1 + within)
    return close and _unconfirmed(trials, found.low_per_s, found.high_per_s) is None
