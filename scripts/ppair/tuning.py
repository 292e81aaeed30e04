"""What tune looks for: which credit windows to measure next, the smallest that is good enough, what
a grant costs, and how that is said.

Observations are (round, credit, log of the rate in messages/s); a round is a block in the sense of
fits.level_fit.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from . import credit_fits, fits
from .credit_fits import GrantCost, RoundTrip, Window
from .failure import Exit, Failure
from .fits import Effect, LevelFit
from .table import finding

GRANTS = (1, 2, 4, 8, 16, 64, 256)
# Windows that are measured again when the answer is near: twelve in each decade, so that rounds
# come back to the same ones.
STEPS = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2)
NEAR = (0.4, 0.65, 1.0, 1.55, 2.5)  # of the answer so far
REFILLS = (0.25, 0.75)  # other shares of the window, at which the answer is refilled
REFILL_CONFIDENCE = 0.99  # that another refill point is better
SURE_RATIO = 1.25  # of the interval's ends: then it is certain


@dataclass(frozen=True)
class Credit:
    """A window, and how much is granted at a time."""

    window: int
    grant: int

    @property
    def is_halved(self) -> bool:
        """Whether it is refilled when half of it is used up."""
        return self == halved(self.window)

    def words(self) -> tuple[str, ...]:
        """For precv."""
        size, low, add = self.window, self.window - self.grant, self.grant
        return ("--credit", f"{size}", "--credit-low", f"{low}", "--credit-add", f"{add}")


Observation = tuple[int, Credit, float]


def halved(window: int) -> Credit:
    """Refilled when half of it is used up."""
    return Credit(window, max(window // 2, 1))


# ---- what to measure ----


def windows(max_credit: int) -> list[Credit]:
    """Powers of two up to the largest window."""
    powers = range(int(math.log2(max_credit)) + 1)
    return [halved(size) for size in sorted({*(2**power for power in powers), max_credit})]


def grants(max_credit: int) -> list[Credit]:
    """Within the largest window, so that credit runs out as little as it can."""
    return [Credit(max_credit, grant) for grant in GRANTS if grant < max_credit // 2]


def near(value: float, max_credit: int) -> list[Credit]:
    """The answer so far and its neighbours, on a grid, and the best."""
    sizes = {min(_on_grid(value * ratio), max_credit) for ratio in NEAR}
    return [halved(size) for size in sorted(sizes | {max_credit})]


def answers(size: int, max_credit: int) -> list[Credit]:
    """The answer, refilled at other points too, and the best."""
    sizes = sorted({max(round(size * share), 1) for share in REFILLS})
    others = [Credit(size, grant) for grant in sizes if grant < size]
    return list(dict.fromkeys([halved(size), *others, halved(max_credit)]))


def _on_grid(value: float) -> int:
    """The nearest of STEPS times a power of ten, at least 1."""
    size = max(value, 1.0)
    decade = 10 ** math.floor(math.log10(size))
    nearest = min([*STEPS, 10.0], key=lambda step: abs(math.log(step * decade / size)))
    return int(max(round(nearest * decade), 1))


# ---- deciding ----


def answer(observations: Sequence[Observation], within: float) -> Window:
    """The window that is good enough, from all that was measured."""
    fit = fits.level_fit(observations)
    found = [
        (c.window, e.value, e.stderr, e.count)
        for c, e in fit.effects.items()
        if isinstance(c, Credit) and c.is_halved and e.stderr is not None
    ]
    # of a few runs that agree by chance, the error is not less than what is usual
    usual = statistics.median(e * math.sqrt(n) for _, _, e, n in found) if found else 0.0
    window = credit_fits.smallest_within(
        [size for size, _, _, _ in found],
        [value for _, value, _, _ in found],
        [max(error, usual / math.sqrt(n)) for _, _, error, n in found],
        within,
    )
    if window is None:
        raise Failure(
            Exit.SHORT,
            "the rate does not level off: try a larger --max-credit, or a longer --duration",
        )
    return window


def is_sure(window: Window) -> bool:
    """Whether more rounds would change little."""
    return window.high <= SURE_RATIO * window.low


def round_window(value: float) -> int:
    """To two digits, as people would set it."""
    size = max(round(value), 1)
    step = 10 ** max(len(str(size)) - 2, 0)
    return int(max(round(value / step) * step, 1))


def _best_refill(fit: LevelFit, size: int) -> Credit:
    """Half of the window, unless another share of it is better for certain."""
    half = best = halved(size)
    most = 0.0
    for credit in [c for c in fit.effects if isinstance(c, Credit) and c.window == size]:
        gain = fits.contrast(fit, half, credit) if half in fit.effects else None
        limits = gain.interval(REFILL_CONFIDENCE) if gain else None
        if gain and limits and limits.low > 0 and gain.value > most:
            best, most = credit, gain.value
    return best


# ---- saying it ----


def findings(
    observations: Sequence[Observation], size: int | None, max_credit: int, within: float
) -> dict[str, Any]:
    """Of a search; SIZE is the answer if it was decided, else it is made of what there is."""
    fit, window = fits.level_fit(observations), answer(observations, within)
    credits = sorted((c for c in fit.effects if isinstance(c, Credit)), key=_in_order)
    credit = _best_refill(fit, size or round_window(window.value))
    best = halved(max_credit)
    loss = fits.contrast(fit, best, credit) if credit in fit.effects else None
    granting = [c for c in credits if c.window == max_credit]
    times_ns = [1e9 * math.exp(-fit.effects[c].value) for c in granting]
    cost = credit_fits.fit_grant_cost([c.grant for c in granting], times_ns)
    halves = [c for c in credits if c.is_halved]
    rates = [math.exp(fit.effects[c].value) for c in halves]
    trip = credit_fits.fit_round_trip([c.window for c in halves], rates)
    return {
        "sentences": [
            _window_sentence(credit, loss, window, max_credit),
            _grant_sentence(cost),
            _trip_sentence(trip),
        ],
        "tables": [
            _table("Windows, refilled when half of them is used up", fit, halves, best),
            _table(f"Grants within {max_credit} credits", fit, granting, best),
        ],
        "tuning": {
            "window": credit.window,
            "grant": credit.grant,
            "window_low": window.low,
            "window_high": window.high,
            "share_of_best": None if loss is None else math.exp(loss.value),
            "within": within,
            "certain": is_sure(window),
            "grant_cost": cost and asdict(cost),
            "round_trip": trip and asdict(trip),
        },
    }


def _in_order(credit: Credit) -> tuple[int, int]:
    return credit.window, credit.grant


def _window_sentence(
    credit: Credit, loss: Effect | None, window: Window, max_credit: int
) -> str:
    text = "" if is_sure(window) else "Not certain yet, a longer --budget may do: "
    text += f"{credit.window} credits, {credit.grant} at a time"
    limits = loss.interval() if loss else None
    if loss and limits:
        half = 50 * (math.exp(limits.high) - math.exp(limits.low))
        text += f": {100 * math.exp(loss.value):.1f} % +- {half:.1f} % of the best rate"
    text += f" (the window is between {window.low:.0f} and {window.high:.0f})."
    if window.high >= max_credit:
        text += f" The largest window measured was {max_credit}: --max-credit says how large."
    return text


def _grant_sentence(cost: GrantCost | None) -> str:
    if cost is None:
        return "Too few grant sizes to say what a grant costs."
    b = cost.b_interval
    if b.low <= 0:
        return f"What a grant costs is lost in the noise: at most {max(b.high, 0) / 1e3:.2f} us."
    return (
        f"One grant costs {b.value / 1e3:.2f} us ({b.low / 1e3:.2f} .. {b.high / 1e3:.2f}): time "
        f"per message = {cost.a_ns:.0f} ns + {cost.b_ns:.0f} ns / grant."
    )


def _trip_sentence(trip: RoundTrip | None) -> str:
    if trip is None:
        return "No window is so small that the round trip alone limits the rate."
    limits = trip.interval
    used = ", ".join(f"{window:.0f}" for window in trip.windows_used)
    return (
        f"The window must cover a round trip of {1e6 * limits.value:.0f} us "
        f"({1e6 * limits.low:.0f} .. {1e6 * limits.high:.0f}), as windows of {used} show."
    )


def _table(title: str, fit: LevelFit, credits: Sequence[Credit], best: Credit) -> dict[str, Any]:
    return finding(
        title,
        ["credits", "at a time", "msg/s", "% of best", "+- %", "runs"],
        [_row(fit, credit, best) for credit in credits],
        [f"Rates are those of an average round; the best is that of {best.window} credits."],
    )


def _row(fit: LevelFit, credit: Credit, best: Credit) -> list[str]:
    effect, against = fit.effects[credit], fits.contrast(fit, best, credit)
    limits = against.interval() if credit != best else None
    half = None if limits is None else 50 * (math.exp(limits.high) - math.exp(limits.low))
    return [
        f"{credit.window}",
        f"{credit.grant}",
        f"{math.exp(effect.value):.0f}",
        f"{100 * math.exp(against.value):.1f}",
        "-" if half is None else f"{half:.1f}",
        f"{effect.count}",
    ]
