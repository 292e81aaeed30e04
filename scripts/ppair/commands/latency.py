"""Latency against load, in open loop: messages are due on a schedule, whatever the path does.

  ppair latency
  ppair latency --slo p99=2ms --content-size 1k
  ppair latency --via amqp://broker:5672//queue/{} --senders 4 --receivers 4 --poisson

First a closed loop, as fast as the path lets it; then a search for the highest rate that the path
sustains: all that is due is sent and received, and neither the sender's backlog nor the latency
grows. Then that rate's steps, each for --duration [2s] after --warmup [300ms]. Latency is from when
a message was due. Beside it is what a closed loop would see: settlement, from when a message was
sent, which leaves out the time that it had to wait before that.

--slo asks for the highest rate at which a percentile of the latency is below a limit: p50, p99,
p99.9, p99.99 or any other, or max. It lies between two steps, and is narrowed down by further runs.

Several senders share the rate evenly, and their schedules are out of phase by as much as they can.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from .. import arrangement, experiment, latency_search, latency_tables, output, slo
from ..axes import Axis
from ..failure import Exit, Failure, usage
from ..latency_search import RateSearch
from ..loads import AXIS, is_within_reach
from ..progress import Progress
from ..programs import PSEND
from ..results import FAILED, INTERRUPTED, Plan, Plot, Results
from ..spec import REPETITIONS_MAX, Spec
from ..units import count, number, percent, seconds

USAGE = "[OPTION...] [OPTION OF psend OR precv...]"
TAKES_ARRANGEMENT = True
DURATION = "2s"
WARMUP = "300ms"
PROBE = "1s"
SETTLE = "100ms"
WITHIN = "2%"
BUDGET = "20s"
STEPS = "10,20,30,40,50,60,70,80,90,95,99,110,130"
STEP_MAX = 1000.0  # %
STEPS_MAX = 100
INTERVALS = 10  # of a run, to see growth
INTERVAL_LEAST_S = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone, and where results go."""
    parser.add_argument(
        "--slo", metavar="P=T", help="find the highest rate at which P stays below T: p99=2ms"
    )
    parser.add_argument(
        "--steps",
        metavar="LIST",
        default=STEPS,
        help=f"percent of the sustainable rate [{STEPS}]",
    )
    parser.add_argument("--repeat", metavar="N", default="1", help="of each step [1]")
    parser.add_argument(
        "--probe", metavar="T", default=PROBE, help=f"duration of a run in a search [{PROBE}]"
    )
    parser.add_argument(
        "--settle", metavar="T", default=SETTLE, help=f"rest between runs [{SETTLE}]"
    )
    parser.add_argument(
        "--within",
        metavar="P",
        default=WITHIN,
        help=f"how near a search comes to its answer [{WITHIN}]".replace("%", "%%"),
    )
    parser.add_argument(
        "--budget",
        metavar="T",
        default=BUDGET,
        help=f"time for a search, once a rate is sustained [{BUDGET}]",
    )
    output.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Searches and measures, and says what it has found."""
    search = _prepare(arguments)
    results, failure = search.results, None
    try:
        with search.progress:
            experiment.conduct(results, latency_search.measure(search))
    except Failure as error:
        failure = error
    finally:
        if results.runs:
            results.findings = latency_tables.findings(search)
            experiment.save_findings(results)
    if failure is None or (results.runs and failure.code != Exit.USAGE):
        output.show(arguments, results)
    if failure is not None:
        raise failure
    return _exit_code(results)


def _prepare(arguments: argparse.Namespace) -> RateSearch:
    objective = None if arguments.slo is None else slo.parse(arguments.slo)
    steps = _steps(arguments.steps)
    within = percent(arguments.within, "--within")
    if not within:
        raise usage("--within: more than 0")
    base, probe = _base(arguments)
    plan = Plan(
        command="latency",
        title="Latency against load, in open loop",
        axes=(Axis(AXIS, (), "load"),),
        points=(),
        repetitions=0,
        seed=0,
        plots=PLOTS,
        metrics=(),
    )
    return RateSearch(
        base=base,
        progress=Progress(None),
        within=within,
        probe=probe,
        steps=steps,
        repetitions=count(arguments.repeat, "--repeat", most=REPETITIONS_MAX),
        settle_s=seconds(arguments.settle, "--settle"),
        budget_s=seconds(arguments.budget, "--budget"),
        slo=objective,
        results=output.create(arguments, plan),
    )


PLOTS = (
    Plot("Latency against load", "load", (), kind="load"),
    Plot("Latency by percentile", "percentile", (), kind="percentiles"),
    Plot("What a closed loop would have said", "percentile", (), kind="omission"),
)


def _steps(text: str) -> tuple[float, ...]:
    """Shares, ascending."""
    found = [number(each.strip().removesuffix("%")) for each in text.split(",")]
    known = {each for each in found if each is not None and 0 < each <= STEP_MAX}
    if len(known) < len(found) or min(known) > 100 or len(known) > STEPS_MAX:
        raise usage(
            f'--steps: "{text}" is no list of different percentages, of which one is at most 100'
        )
    return tuple(each / 100 for each in sorted(known))


def _base(arguments: argparse.Namespace) -> tuple[Spec, tuple[str, ...]]:
    """What all runs have in common, and psend's words for the short ones."""
    base = arrangement.from_arguments(arguments)
    if base.option(PSEND, "--send-rate"):
        raise usage("--send-rate: latency looks for it; --steps are shares of what it finds")
    if base.messages is not None or base.option(PSEND, "-m", "--messages"):
        raise usage("--messages: each run has a time: give a --duration")
    given = base.option(PSEND, "-d", "--duration") or DURATION
    duration_s = seconds(given, "--duration")
    probe_s = min(seconds(arguments.probe, "--probe"), duration_s)
    if not probe_s:
        raise usage("--probe, --duration: more than 0")
    base = replace(
        base,
        psend=(*_words(duration_s), "--warmup", WARMUP, *base.psend),
        precv=(*_words(duration_s)[2:], "--warmup", WARMUP, *base.precv),
    )
    base.check()
    return base, _words(probe_s)


def _words(duration_s: float) -> tuple[str, ...]:
    """A duration, and intervals that show whether something grows."""
    interval_s = max(duration_s / INTERVALS, INTERVAL_LEAST_S)
    return (
        *("--duration", f"{round(1e9 * duration_s)}ns"),
        *("--interval", f"{round(1e9 * interval_s)}ns"),
    )


def _exit_code(results: Results) -> int:
    """The closed loop and a run of a search may fail: then there is another rate."""
    if results.status == INTERRUPTED:
        return Exit.INTERRUPTED
    labels = {point.id: point.values[AXIS] for point in results.plan.points}
    needed = [p for p, label in labels.items() if is_within_reach(label)]
    failed = [run for run in results.runs if run.status == FAILED and run.point in needed]
    return failed[0].exit_code if failed else Exit.DONE
