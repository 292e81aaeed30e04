"""A against B, run in turn as A B B A, or two results directories.

  ppair compare '--credit 16' '--credit 1000'
  ppair compare --presettled '' '--library-path /opt/proton/lib'
  ppair compare --a '--precv-host old' --b '--precv-host new'
  ppair compare before/ after/ --fail-above 5%

Options that are not in A or B are for both. For each metric: the medians of both, the ratio with a
95 % interval, and in words whether it is a difference: a rank test says so, the interval leaves out
1, and the effect is large enough to count (--min-effect). If not, it is said why: the interval has
1 in it ("no difference"), the effect is small ("does not count"), or by the rank test it may be
chance ("not certain"). The rate is tested by itself, the other metrics together (Holm), so that
many of them do not make a difference by chance. With --fail-above the exit code is 7 if the whole
interval of the rate is lower than A by more than that, or if there are too few repetitions to tell.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import arrangement, experiment, machine, output, store
from ..axes import Axis
from ..failure import Exit, usage
from ..metrics import PRIMARY
from ..progress import Progress
from ..results import Plan, Point, Results
from ..spec import REPETITIONS_MAX
from ..units import count, percent

USAGE = "[OPTION...] A B"
TAKES_ARRANGEMENT = True
REPETITIONS = "18"
MIN_EFFECT = "1%"
SIDES = ("A", "B")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone, and where results go."""
    parser.add_argument("sides", metavar="A B", nargs="*", help="option strings, or directories")
    parser.add_argument("--a", metavar="'...'", help="A, where it has one word only")
    parser.add_argument("--b", metavar="'...'", help="B, the same")
    parser.add_argument("--repeat", metavar="N", help=f"[{REPETITIONS}]")
    parser.add_argument(
        "--min-effect", metavar="P", default=MIN_EFFECT, help="a smaller one does not count [1%%]"
    )
    parser.add_argument("--fail-above", metavar="P", help="exit with 7 if B is slower by more")
    parser.add_argument(
        "--force", action="store_true", help="compare results of different machines"
    )
    output.add_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    """Two specs are measured first; two directories are only read."""
    a, b = _sides(arguments)
    limit = None if arguments.fail_above is None else percent(arguments.fail_above, "--fail-above")
    folders = [text for text in (a, b) if (Path(text or "?") / "manifest.json").exists()]
    if len(folders) == 1:
        raise usage(f"{folders[0]} is a results directory, and the other is none")
    if folders:
        with store.damage_named([a, b]):
            return _compare_directories(arguments, Path(a), Path(b), limit)
    return _compare_specs(arguments, a, b, limit)


def _sides(arguments: argparse.Namespace) -> tuple[str, str]:
    given = list(arguments.sides)
    if arguments.a is not None:
        given.insert(0, arguments.a)
    if arguments.b is not None:
        given.append(arguments.b)
    if len(given) != 2:
        raise usage(f"compare takes A and B; there are {len(given)}")
    return given[0], given[1]


# ---- two specs ----


def _compare_specs(arguments: argparse.Namespace, a: str, b: str, limit: float | None) -> int:
    from .. import comparison  # scipy: not for --help

    base = arrangement.from_arguments(arguments)
    specs = [
        arrangement.parse_words(text, base, name).with_defaults()
        for name, text in zip(SIDES, (a, b))
    ]
    for spec in specs:
        spec.check()
    repetitions = count(arguments.repeat or REPETITIONS, "--repeat", most=REPETITIONS_MAX)
    plan = Plan(
        command="compare",
        title=f"A: {a or 'as it is'}; B: {b or 'as it is'}",
        axes=(Axis("side", SIDES, "side"),),
        points=tuple(Point(i, {"side": SIDES[i]}, spec) for i, spec in enumerate(specs)),
        repetitions=repetitions,
        seed=0,
        order=experiment.abba(repetitions),
    )
    results = output.create(arguments, plan)
    experiment.run_all(results, Progress(2 * repetitions))
    samples = comparison.samples_of_pairs(results)
    if not samples[PRIMARY][0]:
        output.show(arguments, results)  # it says why
        return experiment.exit_code(results)
    found = comparison.compare(samples, True, percent(arguments.min_effect, "--min-effect"))
    results.findings = comparison.findings(found, limit)
    experiment.save_findings(results)
    output.show(arguments, results)
    passed = comparison.passes(found, limit)
    return experiment.exit_code(results) or (Exit.DONE if passed else Exit.VERDICT)


# ---- two directories ----


def _compare_directories(
    arguments: argparse.Namespace, a: Path, b: Path, limit: float | None
) -> int:
    from .. import comparison

    given = [f"--{name}" for name in ("html", "out", "repeat") if getattr(arguments, name)]
    given += [option.name for option in arguments.given]
    if given:
        raise usage(f"{given[0]}: two directories are read, and nothing is measured")
    found = [store.load(a), store.load(b)]
    different = _differences(*found)
    if different and not arguments.force:
        raise usage(
            f"{a} and {b} are of different machines ({'; '.join(different)}); "
            "--force compares them all the same"
        )
    points, left_out = comparison.common_points(*found)
    if not points:
        raise usage(f"{a} and {b} have nothing to compare: {'; '.join(left_out)}")
    min_effect = percent(arguments.min_effect, "--min-effect")
    compared = [
        (values, comparison.compare(samples, False, min_effect)) for values, samples in points
    ]
    findings = comparison.joined(
        [comparison.findings(one, limit, values) for values, one in compared]
    )
    rates = comparison.sustained(*found)
    findings["sentences"] += [f"{rates}."] if rates else []
    sides = zip(SIDES, found)
    findings["sentences"] += [f"{name}: {' '.join(side.argv)}" for name, side in sides]
    findings["sentences"] += [f"Not compared: {what}." for what in left_out]
    if different:
        findings["sentences"].append(f"The machines differ: {'; '.join(different)}.")
    output.show_findings(arguments, findings)
    passed = all(comparison.passes(one, limit) for _, one in compared)
    return Exit.DONE if passed else Exit.VERDICT


def _differences(a: Results, b: Results) -> list[str]:
    """Of the machines: the driver's, and those at the other end of ssh."""
    hosts = [
        sorted({host or "" for run in side.runs for host in (peer.host for peer in run.peers)})
        for side in (a, b)
    ]
    found = machine.differences(a.machine, b.machine)
    if hosts[0] != hosts[1]:
        found.append(f"hosts: {', '.join(hosts[0])} and {', '.join(hosts[1])}")
    return found
