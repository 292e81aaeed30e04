"""What a soak must show, a rule for each: nothing lost, no growth, no slow-down.

A rule looks at what was observed and gives one verdict or several; the list at the end grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .units import digits, duration

if TYPE_CHECKING:
    from .fits import Slope
    from .results import Run
    from .series import Series

# A trend must be so large over the time observed, besides being certain, to be called one.
GROWTH_SHARE = 0.02  # of the memory at first
GROWTH_BYTES = 256 * 1024
SLOW_DOWN_SHARE = 0.05  # of the mean rate
SETTLING_SHARE = 0.1  # of what was observed, if nothing else is said
SETTLING_S_MAX = 60.0


@dataclass
class Observed:
    """Series by program instance, psend-0 and so on; times since the first interval began."""

    rss_bytes: dict[str, Series] = field(default_factory=dict)
    rates_per_s: dict[str, Series] = field(default_factory=dict)  # of receivers
    settling_s: float | None = None  # left out of the trends; None: a tenth, at most a minute
    run: Run | None = None


@dataclass(frozen=True)
class Verdict:
    """One line; `passed` is None where there was too little to tell."""

    rule: str
    passed: bool | None
    words: str
    numbers: dict[str, Any]


def judge(observed: Observed) -> list[Verdict]:
    """By all rules."""
    return [verdict for rule in RULES for verdict in rule(observed)]


def passed(verdicts: Sequence[Verdict]) -> bool:
    """None of them is against it."""
    return all(verdict.passed is not False for verdict in verdicts)


def _accounting(observed: Observed) -> Iterator[Verdict]:
    run = observed.run
    missing = "there are no results" if run is None else run.facts.get("missing", run.why)
    words = missing or "every message is accounted for"
    yield Verdict("accounting", missing is None, words, {})


def _trend(
    series: Series, settling_s: float | None
) -> tuple[Slope | None, list[float], list[float]]:
    from .fits import slope

    if settling_s is None:
        last_s = series.times_s[-1] if series.times_s else 0.0
        settling_s = min(SETTLING_SHARE * last_s, SETTLING_S_MAX)
    times_s, values = series.after(settling_s)
    return slope(times_s, values), times_s, values


def _against(change: float, low: float, high: float, limit: float) -> bool | None:
    """False: certainly worse, and by more than LIMIT; None: that may be, and may not."""
    if change > limit and low > 0:
        return False
    return True if high <= limit else None


def _numbers(trend: Slope, first: float, span_s: float) -> dict[str, Any]:
    return {
        "per_s": trend.per_s,
        "low_per_s": trend.low,
        "high_per_s": trend.high,
        "at_first": first,
        "span_s": span_s,
    }


# From a trend, the time that it spans in s, and the values: what a verdict has behind its rule.
Judged = tuple[bool | None, str, dict[str, Any]]
Judge = Callable[["Slope", float, Sequence[float]], Judged]


TOO_SHORT: Judged = (None, "too short to tell", {})


def _each(
    what: str, group: dict[str, Series], settling_s: float | None, judge: Judge
) -> Iterator[Verdict]:
    """Of each program's series, once it has settled."""
    for name, series in sorted(group.items()):
        trend, times_s, values = _trend(series, settling_s)
        found = judge(trend, times_s[-1] - times_s[0], values) if trend else TOO_SHORT
        yield Verdict(f"{what} {name}", *found)


def _growth(observed: Observed) -> Iterator[Verdict]:
    def judge(trend: Slope, span_s: float, values: Sequence[float]) -> Judged:
        first = values[0]
        grown, low, high = (rate * span_s for rate in (trend.per_s, trend.low, trend.high))
        limit = max(GROWTH_SHARE * first, GROWTH_BYTES)
        words = (
            f"{first / 1e6:.2f} MB at first, {grown / 1e3:+.0f} kB "
            f"({low / 1e3:+.0f} .. {high / 1e3:+.0f}) in {duration(span_s)}"
        )
        return _against(grown, low, high, limit), words, _numbers(trend, first, span_s)

    return _each("memory", observed.rss_bytes, observed.settling_s, judge)


def _slow_down(observed: Observed) -> Iterator[Verdict]:
    def judge(trend: Slope, span_s: float, values: Sequence[float]) -> Judged:
        mean = sum(values) / len(values)
        numbers = _numbers(trend, mean, span_s)
        if mean <= 0:
            return False, "nothing moved", numbers
        change, low, high = (
            100 * rate * span_s / mean for rate in (trend.per_s, trend.low, trend.high)
        )
        words = (
            f"{digits(mean)} msg/s, {change:+.1f} % ({low:+.1f} .. {high:+.1f} %) "
            f"in {duration(span_s)}"
        )
        return _against(-change, -high, -low, 100 * SLOW_DOWN_SHARE), words, numbers

    return _each("rate", observed.rates_per_s, observed.settling_s, judge)


RULES: tuple[Callable[[Observed], Iterator[Verdict]], ...] = (_accounting, _growth, _slow_down)
