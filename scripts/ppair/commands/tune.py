"""The smallest credit window that is nearly as good as any, and what one grant of credit costs.

  ppair tune --presettled
  ppair tune --content-size 10k --within 2% --budget 5min
  ppair tune --via amqp://broker:5672/queue --max-credit 20000

Windows are refilled when half of them is used up. All windows are measured in rounds, so that a
slow spell of the machine hits all of them alike; then rounds are spent on the windows near the
answer, until it is certain or the budget is used up. Beside it, grants of several sizes within the
largest window give the time per message = a + b / grant, of which b is the cost of one grant; and
small windows give the round trip that a window must cover.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import arrangement, experiment, output
from ..axes import Axis
from ..failure import usage
from ..metrics import PRIMARY
from ..progress import Progress
from ..programs import PRECV
from ..results import Plan, Plot
from ..units import count, percent, seconds

if TYPE_CHECKING:
    from ..credit_search import WindowSearch

USAGE = "[OPTION...] [OPTION OF psend OR precv...]"
TAKES_ARRANGEMENT = True
WITHIN = "1%"
BUDGET = "2min"
MAX_CREDIT = "4096"
RUN_DURATION = ("--duration", "200ms")
RUN_WARMUP = ("--warmup", "50ms")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone, and where results go."""
    parser.add_argument(
        "--within", metavar="P", default=WITHIN, help="of the best rate is good enough [1%%]"
    )
    parser.add_argument(
        "--max-credit", metavar="N", default=MAX_CREDIT, help=f"largest window [{MAX_CREDIT}]"
    )
    parser.add_argument(
        "--budget",
        metavar="T",
        default=BUDGET,
        help=f"time for the search, after a first scan [{BUDGET}]",
    )
    parser.add_argument("--seed", metavar="N", help="of the order [random, and recorded]")
    output.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Searches, and says what it has found."""
    from .. import credit_search, tuning  # scipy: not for --help

    search = _prepare(arguments)
    results = search.results
    try:
        with search.progress:
            experiment.conduct(results, credit_search.steps(search))
    finally:
        if search.rounds >= credit_search.SCAN_ROUNDS:
            results.findings = tuning.findings(
                search.observations, search.size, search.max_credit, search.within
            )
            experiment.save_findings(results)
    output.show(arguments, results)
    return experiment.exit_code(results)


def _prepare(arguments: argparse.Namespace) -> WindowSearch:
    from ..credit_search import WindowSearch

    base = arrangement.from_arguments(arguments)
    if base.option(PRECV, "--credit", "--capacity", "--credit-low", "--credit-add"):
        raise usage("--credit: tune looks for it; --max-credit is the largest")
    if base.messages is not None:
        raise usage("--messages: each run has the same time: give a --duration")
    base = replace(
        base,
        psend=RUN_DURATION + RUN_WARMUP + base.psend,
        precv=RUN_WARMUP + base.precv,
    )
    base.check()
    within = percent(arguments.within, "--within")
    if not within:
        raise usage("--within: more than 0")
    seed = experiment.seed_of(arguments.seed)
    max_credit = count(arguments.max_credit, "--max-credit", 4)
    plan = Plan(
        command="tune",
        title="The smallest credit window that is nearly as good as any",
        axes=(
            Axis("grant", (), "credits granted at a time", log=True),
            Axis("window", (), "credit window"),
        ),
        points=(),
        repetitions=0,
        seed=seed,
        plots=(Plot("Rate by grant", "grant", (PRIMARY,), "window"),),
    )
    return WindowSearch(
        results=output.create(arguments, plan),
        base=base,
        progress=Progress(None),
        within=within,
        max_credit=max_credit,
        deadline_s=time.monotonic() + seconds(arguments.budget, "--budget"),
        chance=random.Random(seed),
    )
