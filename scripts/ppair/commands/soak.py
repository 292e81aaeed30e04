"""Hours, or billions of messages, in constant memory; then a verdict and an exit code.

  ppair soak --duration 8h --presettled
  ppair soak --messages 5g --presettled --credit 600 --credit-low 300 --credit-add 300

Nothing may be lost, memory of no program may grow, and the rate may not go down: trends are taken
after a settling time, with their 95 % intervals, and must be both certain and large to count (more
than 2 % and 256 KiB of memory, more than 5 % of the rate). Exit code 7 if one does. Ctrl-C ends the
soak in order, and the verdict is on what there is.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from functools import partial

from .. import arrangement, experiment, output, verdicts
from ..events import Event
from ..failure import Exit, usage
from ..peer import Peer
from ..progress import Progress
from ..programs import PRECV
from ..results import Plan, Point, Results
from ..series import Series
from ..spec import Spec
from ..table import finding
from ..units import seconds
from ..verdicts import Observed, Verdict

USAGE = "--duration T | --messages N [OPTION...] [OPTION OF psend OR precv...]"
TAKES_ARRANGEMENT = True
INTERVALS = 100  # in a short soak
INTERVAL_S = (0.1, 1.0)  # least and most
FOREVER_S = 1e9
IDLE = ("--timeout", "1min")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone, and where results go."""
    parser.add_argument(
        "--settling", metavar="T", help="left out of trends [a tenth, at most a minute]"
    )
    output.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Soaks, and judges."""
    spec = _spec(arguments)
    plan = Plan("soak", spec.command(), (), (Point(0, {}, spec),), 1, 0, order=((0, 0),))
    observed = Observed(settling_s=_settling_s(arguments))
    results = output.create(arguments, plan)
    observer = partial(_observe, observed)
    experiment.run_all(results, Progress(None, on_event=observer))
    observed.run = next(iter(results.runs), None)
    found = verdicts.judge(observed)
    results.findings = _findings(found)
    experiment.save_findings(results)
    output.show(arguments, results)
    return _exit_code(results, found)


def _spec(arguments: argparse.Namespace) -> Spec:
    spec = arrangement.from_arguments(arguments)
    if spec.duration_s is None and spec.messages is None:
        raise usage("how long? --duration 8h, or --messages 5g")
    least_s, most_s = INTERVAL_S
    interval_s = min(max((spec.duration_s or FOREVER_S) / INTERVALS, least_s), most_s)
    more = ("--interval", f"{round(interval_s * 1000)}ms", *IDLE)
    spec = replace(spec, psend=more + spec.psend, precv=more + spec.precv)
    if spec.deadline_s is None and spec.duration_s is None:
        spec = replace(spec, deadline_s=FOREVER_S)
    spec.check()
    return spec


def _settling_s(arguments: argparse.Namespace) -> float | None:
    return None if arguments.settling is None else seconds(arguments.settling, "--settling")


def _observe(observed: Observed, peer: Peer, event: Event) -> None:
    """Whole intervals after the warm-up; of each program, even if it has none."""
    if event["event"] == "start":
        observed.rss_bytes[peer.name] = Series()
        if peer.name.startswith(PRECV):
            observed.rates_per_s[peer.name] = Series()
    if event["event"] != "interval" or event["partial"] or event["warmup"]:
        return
    time_s = (event["start_s"] + event["end_s"]) / 2
    if event["rss_bytes"] is not None:
        observed.rss_bytes[peer.name].add(time_s, event["rss_bytes"])
    if peer.name.startswith(PRECV) and event["messages_per_s"] is not None:
        observed.rates_per_s[peer.name].add(time_s, event["messages_per_s"])


WORDS = {True: "passed", False: "FAILED", None: "cannot tell"}


def _findings(found: list[Verdict]) -> dict[str, object]:
    sentence = "The soak passed." if verdicts.passed(found) else "The soak FAILED."
    open_rules = [verdict.rule for verdict in found if verdict.passed is None]
    if verdicts.passed(found) and open_rules:
        sentence = f"Nothing is wrong; too short or too noisy to tell: {', '.join(open_rules)}."
    rows = [[verdict.rule, WORDS[verdict.passed], verdict.words] for verdict in found]
    return {
        "sentences": [sentence],
        "tables": [finding("Verdict", ["rule", "verdict", "numbers"], rows)],
        "verdicts": [asdict(verdict) for verdict in found],
    }


def _exit_code(results: Results, found: list[Verdict]) -> int:
    code = experiment.exit_code(results)
    if code in (Exit.DONE, Exit.INTERRUPTED) and not verdicts.passed(found):
        return Exit.VERDICT
    return code
