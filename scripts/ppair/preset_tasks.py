"""The table of rds-stress: tasks that keep some requests on their way, for some time."""

from __future__ import annotations

from typing import Any

from .axes import Axis
from .failure import usage
from .preset import Parameter, Preset, Values, with_parameters
from .results import Plot, Results
from .units import count, quantity, seconds

BEFORE, AFTER = "--before", "--after"
CHANGE = "change"  # the axis
SIDES = ("before", "after")
TIME_ALONE, TIME_OF_SIDES = "5s", "1s"
REPETITIONS_OF_SIDES = "16"  # pairs, so that every metric can be told to differ

PARAMETERS = (
    Parameter("--tasks", "N", "senders, and receivers: pairs of them", "-t", "1"),
    Parameter("--depth", "N", "requests that each sender has unsettled at most", "-d", "1"),
    Parameter("--request-size", "BYTES", "body of a request", "-q", "1Ki"),
    Parameter(
        "--time",
        "T",
        f"of a run [{TIME_ALONE}; {TIME_OF_SIDES} with {BEFORE} or {AFTER}]",
        "-T",
    ),
    Parameter(BEFORE, "'...'", "options of the first table, without a change [none]"),
    Parameter(AFTER, "'...'", "options of a second table, with it, and they are compared [none]"),
)
METRICS = (
    "messages_per_s",
    "trip_p50_ns",
    "trip_p99_ns",
    "psend_cpu_percent",
    "precv_cpu_percent",
    "stalled_percent",
)
TITLE = "Tasks: requests by the clock, as rds-stress has them"
EXPECTED = (
    "With more tasks, or a greater depth, the rate rises until the processors are busy; after that "
    "only the round trip does."
)
EXPECTED_OF_CHANGE = (
    "Of a change to flow control that is worth having: fewer sends find no credit, and round trip "
    "and CPU go down with them; the rate, which other things limit, hardly changes."
)


def _findings(results: Results) -> dict[str, Any]:
    from . import tasks_table  # numpy: not for --help

    return tasks_table.findings(results, CHANGE)


def _size(text: str) -> str:
    found = quantity(text)
    if found is None or found[1]:
        raise usage(f'--request-size: "{text}" is not a number of bytes, such as 100 or 1Ki')
    return text


def _title(changes: Values) -> str:
    """With what the sides have of their own."""
    return f"{TITLE}; " + "; ".join(f"{k}: {v or 'as it is'}" for k, v in changes.items())


def _made(values: Values) -> Preset:
    sides = BEFORE in values or AFTER in values
    time = values.get("--time", TIME_OF_SIDES if sides else TIME_ALONE)
    seconds(time, "--time")
    depth = count(values["--depth"], "--depth")
    changes = dict(zip(SIDES, (values.get(BEFORE, ""), values.get(AFTER, ""))))
    of_sides = Plot(
        "What the change did",
        CHANGE,
        ("messages_per_s", "trip_mean_ns", "host_cpu_percent", "blocked"),
    )
    alone = Plot("Over time", "time", ("messages_per_s", "precv_cpu_percent"), kind="time")
    return Preset(
        title=_title(changes) if sides else TITLE,
        expected=EXPECTED_OF_CHANGE if sides else EXPECTED,
        axes=(Axis(CHANGE, SIDES, "change"),) if sides else (),
        words=lambda point: ((), ()),
        options=lambda point: changes[point[CHANGE]] if point else "",
        psend=(
            *("--max-unsettled", str(depth), "--content-size", _size(values["--request-size"])),
            *("--duration", time),
        ),
        pairs=count(values["--tasks"], "--tasks"),
        is_paired=True,
        repetitions=REPETITIONS_OF_SIDES if sides else "1",
        plots=(of_sides if sides else alone,),
        metrics=METRICS,
        findings=_findings,
    )


TASKS = with_parameters(_made, PARAMETERS)
