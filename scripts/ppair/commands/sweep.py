"""Every combination of values of some options of psend and precv, or a published experiment.

  ppair sweep --credit 10,20,50,100
  ppair sweep --credit '1..1000 log 20' --content-size 100,1k,10k --presettled
  ppair sweep --precv.max-frame '512..64Ki log 8' --content-size 100k
  ppair sweep --preset credit-stall --duration 500ms --out stall
  ppair sweep --preset credit-stall --duration 500ms --resume stall
  ppair sweep --preset tasks -t 2 -d 64 --before '--credit 16' --after '--credit 1000'

An option with several values is an axis: 10,20,50 or a range, '1..1000 log 20' (20 values with
equal ratios), '0..190 step 10', '0..100 11' (11 values). Repetitions are interleaved and shuffled.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import arrangement, axes, experiment, machine, output, store
from ..arrangement import Given
from ..axes import Axis
from ..failure import usage
from ..preset import REPETITIONS, Parameter, Preset
from ..presets import PRESETS
from ..programs import PRECV, PSEND, value_of
from ..progress import Progress
from ..results import Plan, Plot, Point, Results
from ..spec import REPETITIONS_MAX, Spec
from ..units import count, number

USAGE = "[OPTION...] [OPTION OF psend OR precv [VALUES]...]"
TAKES_ARRANGEMENT = True
SERIES_MAX = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of this command alone, and where results go."""
    parser.add_argument("--preset", metavar="NAME", help="a published experiment, see below")
    parser.epilog = "presets, and what is to be seen:\n" + "".join(
        _manual(name, preset) for name, preset in PRESETS.items()
    )
    parser.add_argument(
        "--repeat", metavar="N", help=f"[{REPETITIONS}, or as many as the preset takes]"
    )
    parser.add_argument("--seed", metavar="N", help="of the order [random, and recorded]")
    parser.add_argument(
        "--resume",
        metavar="DIR",
        help="do what is left of the same command, whose results are in DIR",
    )
    output.add_arguments(parser)


def _manual(name: str, preset: Preset) -> str:
    """Of one preset."""
    what = textwrap.fill(f"{preset.title}. {preset.expected}", 90)
    options = (_line(parameter) for parameter in preset.parameters)
    return f"  {name}\n{textwrap.indent(what, ' ' * 6)}\n{''.join(options)}"


def _line(parameter: Parameter) -> str:
    """As argparse has its own."""
    short = f"{parameter.short}, " if parameter.short else "    "
    name = f"        {short}{parameter.name} {parameter.argument}"
    text = textwrap.fill(
        parameter.text, 98, initial_indent=f"{name:37} ", subsequent_indent=" " * 38
    )
    return f"{text}\n"


def add_chosen_arguments(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Parameters of the preset that is chosen; the epilog has them all."""
    for parameter in _parameters(value_of(argv, "--preset")):
        parser.add_argument(
            *parameter.names, dest=parameter.name, metavar="X", help=argparse.SUPPRESS
        )


def _parameters(name: str | None) -> tuple[Parameter, ...]:
    preset = PRESETS.get(name or "")
    return preset.parameters if preset else ()


def _chosen(arguments: argparse.Namespace) -> Preset | None:
    """The preset, made for the parameters that were given."""
    if arguments.preset is None:
        return None
    preset = PRESETS.get(arguments.preset)
    if preset is None:
        raise usage(f"--preset: {arguments.preset}: there are {', '.join(PRESETS)}")
    given = {p.name: getattr(arguments, p.name) for p in preset.parameters}
    return preset.given({name: value for name, value in given.items() if value is not None})


def main(arguments: argparse.Namespace) -> int:
    """Measures what is left, and prints the table."""
    if arguments.resume is not None and arguments.out is not None:
        raise usage("--resume, --out: one or the other, as results go where they went before")
    found = store.load(Path(arguments.resume)) if arguments.resume is not None else None
    preset = _chosen(arguments)
    plan = _plan(arguments, preset, found.plan.seed if found else None)
    results = _resumed(found, plan) if found else output.create(arguments, plan)
    experiment.run_all(results, Progress(len(results.left())))
    if preset and preset.findings:
        results.findings = preset.findings(results)
        experiment.save_findings(results)
    output.show(arguments, results)
    return experiment.exit_code(results)


def _plan(arguments: argparse.Namespace, preset: Preset | None, seed: int | None) -> Plan:
    wanted = arguments.repeat
    if wanted is None:
        wanted = preset.repetitions if preset else REPETITIONS
    repetitions = count(wanted, "--repeat", most=REPETITIONS_MAX)
    if arguments.seed is not None or seed is None:
        seed = experiment.seed_of(arguments.seed)
    several = [given for given in arguments.given if _is_axis(given)]
    single = [given for given in arguments.given if not _is_axis(given)]
    plan = (
        _preset_plan(arguments, preset, several, single)
        if preset
        else _grid_plan(arguments, several, single)
    )
    for point in plan.points:
        point.spec.check()
    order = experiment.interleaved(len(plan.points), repetitions, seed)
    return replace(plan, repetitions=repetitions, seed=seed, order=order)


def _is_axis(given: Given) -> bool:
    return bool(given.value and given.is_number and axes.is_several(given.value))


def _base(arguments: argparse.Namespace, single: Sequence[Given], preset: Preset | None) -> Spec:
    base = Spec(bin=str(arguments.folder))
    if preset:
        base = base.plus(preset.psend, preset.precv)
        base = replace(base, senders=preset.pairs, receivers=preset.pairs)
    return arrangement.apply(base, arguments, single).with_defaults()


def _preset_plan(
    arguments: argparse.Namespace,
    preset: Preset,
    several: Sequence[Given],
    single: Sequence[Given],
) -> Plan:
    if several:
        raise usage(f"{several[0].name}: a preset has its own axes: give one value")
    base = _base(arguments, single, preset)
    if preset.is_paired and base.senders != base.receivers:
        raise usage(f"--senders, --receivers: --preset {arguments.preset} has as many of each")
    points = []
    for index, values in enumerate(preset.grid()):
        psend, precv = preset.words(values)
        varied = [given.name for given in single if given.name in (*psend, *precv)]
        if varied:
            raise usage(f"{varied[0]}: is what --preset {arguments.preset} varies")
        spec = base.plus(psend, precv)
        options = preset.options(values)
        if options:
            spec = arrangement.parse_words(options, spec, f"--preset {arguments.preset}")
        points.append(Point(index, values, spec.with_defaults()))
    return Plan(
        "sweep", preset.title, preset.axes, tuple(points), 0, 0, preset.pictures(), preset.metrics
    )


def _grid_plan(
    arguments: argparse.Namespace, several: Sequence[Given], single: Sequence[Given]
) -> Plan:
    if not several:
        raise usage("nothing to vary: give an option several values, or a --preset")
    base = _base(arguments, single, None)
    found = {_axis_name(given): (given, _axis(given)) for given in several}
    if len(found) < len(several):
        raise usage("an option is there twice with several values")
    grid_axes = tuple(axis for _, axis in found.values())
    points = []
    for index, values in enumerate(axes.grid(grid_axes)):
        spec = base
        for name, value in values.items():
            given = replace(found[name][0], value=value)
            spec = spec.plus(given.words(PSEND), given.words(PRECV))
        points.append(Point(index, values, spec))
    title = "Sweep of " + " and ".join(axis.name for axis in grid_axes)
    return Plan("sweep", title, grid_axes, tuple(points), 0, 0, _plots(grid_axes))


def _axis_name(given: Given) -> str:
    return f"{given.targets[0]}.{given.name[2:]}" if given.prefixed else given.name[2:]


def _axis(given: Given) -> Axis:
    assert given.value
    values = axes.parse_values(given.value, given.name)
    return Axis(_axis_name(given), values, _axis_name(given), axes.is_log(given.value))


def _plots(grid_axes: Sequence[Axis]) -> tuple[Plot, ...]:
    """The axis with most numbers across; lines for a few values of another, else a heat map."""
    metrics = ("messages_per_s", "latency_p50_ns")
    numeric = [axis for axis in grid_axes if all(number(v) is not None for v in axis.values)]
    across = max(numeric or grid_axes, key=lambda axis: len(axis.values))
    others = [axis for axis in grid_axes if axis is not across]
    if not others:
        return (Plot(f"Rate and latency by {across.name}", across.name, metrics),)
    other = others[0]
    if len(other.values) <= SERIES_MAX or len(grid_axes) > 2:
        title = f"Rate and latency by {across.name} and {other.name}"
        return (Plot(title, across.name, metrics, other.name),)
    return (Plot("Messages per second", across.name, metrics[:1], other.name, kind="heat"),)


def _resumed(found: Results, plan: Plan) -> Results:
    """FOUND, if it is of this plan."""
    if plan != found.plan:
        raise usage(f"--resume: {found.directory} is of another command: {' '.join(found.argv)}")
    different = machine.differences(found.machine, machine.to_json(machine.describe()))
    if different:
        raise usage(f"--resume: {found.directory} is of another machine: {'; '.join(different)}")
    return found
