"""The measuring that tune does: rounds of runs, each of one credit window and grant."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from . import experiment, store, tuning
from .failure import Exit, Failure
from .metrics import PRIMARY
from .progress import Progress
from .results import GOOD, Point, Results
from .spec import Spec
from .tuning import Credit, Observation

SCAN_ROUNDS = 4
REFINE_ROUNDS_MIN = 6
CONFIRM_ROUNDS = 6
FAILURES_MAX = 3


@dataclass
class WindowSearch:
    """For a credit window: what has been measured, (round, credit, log of the rate), and where that
    is recorded."""

    results: Results
    base: Spec
    progress: Progress
    within: float
    max_credit: int
    deadline_s: float  # monotonic
    chance: random.Random
    points: dict[Credit, int] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    rounds: int = 0
    failures: int = 0  # runs that were not good
    size: int | None = None  # the answer, when it is decided


async def steps(search: WindowSearch) -> None:
    """A scan of all windows and grants, rounds near the answer, and a few of the answer itself."""
    everything = [*tuning.windows(search.max_credit), *tuning.grants(search.max_credit)]
    for _ in range(SCAN_ROUNDS):
        await _round(search, everything)
    refined = 0
    window = tuning.answer(search.observations, search.within)
    while refined < REFINE_ROUNDS_MIN or not tuning.is_sure(window):
        if refined and time.monotonic() > search.deadline_s:
            break
        await _round(search, tuning.near(window.value, search.max_credit))
        window = tuning.answer(search.observations, search.within)
        refined += 1
    search.size = tuning.round_window(window.value)
    for _ in range(CONFIRM_ROUNDS):
        await _round(search, tuning.answers(search.size, search.max_credit))


async def _round(search: WindowSearch, credits: Iterable[Credit]) -> None:
    """Each of them once, in an order of its own."""
    order = list(credits)
    search.chance.shuffle(order)
    for credit in order:
        number = _point(search, credit)
        repetition = len(search.results.of_point(number))
        run = await experiment.measure(search.results, number, repetition, search.progress)
        if run.status == GOOD:
            rate = run.metrics[PRIMARY]
            search.observations.append((search.rounds, credit, math.log(rate)))
            continue
        search.failures += 1
        if search.failures == FAILURES_MAX:
            raise Failure(Exit(run.exit_code), f"credit {credit.window}: {run.why}")
    search.rounds += 1


def _point(search: WindowSearch, credit: Credit) -> int:
    """The number of its point, made when it is first needed."""
    if credit not in search.points:
        number = len(search.points)
        window = "twice the grant" if credit.is_halved else f"{credit.window}"
        values = {"grant": f"{credit.grant}", "window": window}
        point = Point(number, values, search.base.plus(precv=credit.words()))
        store.add_points(search.results, [point])
        search.points[credit] = number
    return search.points[credit]
