"""Results as other tools write them, for people with scripts for those.

    csv      one line a run: directory, point, status, all metrics in their own units (ns, bytes)
    iperf    iperf3 --json: one document for each good run, one after another as of iperf3 -s, so
             that a script for one works with one run, and jq with all; `title` and `extra_data`,
             iperf3's own, say which run
    quiver   quiver's receiver-summary.json, one document a run as above; `sender` is its
             sender-summary.json

What has no counterpart is null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .failure import Exit, Failure
from .formats_iperf import iperf
from .formats_quiver import quiver
from .metrics import METRICS
from .results import Point, Results, Run
from .table import MISSING, make, to_csv

DOCUMENTS: dict[str, Callable[[Results, Point, Run], dict[str, Any]]] = {
    "iperf": iperf,
    "quiver": quiver,
}
FORMATS = ("csv", *DOCUMENTS)
RUN_COLUMNS = ("directory", "point", "repetition", "attempt", "status", "why")


def convert(results: Sequence[Results], name: str) -> str:
    """RESULTS in a format of FORMATS."""
    if name == "csv":
        return csv(results)
    written = [
        json.dumps(DOCUMENTS[name](one, point, run), indent="\t", allow_nan=False) + "\n"
        for one in results
        for point, run in _good_runs(one)
    ]
    if not written:
        raise Failure(Exit.INTERNAL, f"--format {name}: there is no good run")
    return "".join(written)


def _good_runs(results: Results) -> Iterator[tuple[Point, Run]]:
    for point in results.plan.points:
        for run in results.good(point.id):
            yield point, run


# ---- CSV ----


def csv(results: Sequence[Results]) -> str:
    """A heading and a line for each run, failed ones included. Axes are those of all results."""
    axes = list(dict.fromkeys(axis.name for one in results for axis in one.plan.axes))
    names = [*(metric.name for metric in METRICS), "limited_by"]
    rows = [
        _line(one, point, run, axes, names)
        for one in results
        for point in one.plan.points
        for run in one.of_point(point.id)
    ]
    return to_csv(make("", (*RUN_COLUMNS, *axes, *names), rows))


def _line(
    results: Results, point: Point, run: Run, axes: Sequence[str], names: Sequence[str]
) -> list[str]:
    what = (results.directory, run.point, run.repetition, run.attempt, run.status, run.why or "")
    values = [point.values.get(axis, "") for axis in axes]
    return [*map(str, what), *values, *(_exact(run.metrics.get(name)) for name in names)]


def _exact(value: object) -> str:
    """All digits of a number."""
    if value is None:
        return MISSING
    return f"{value:.15g}" if isinstance(value, float) else str(value)
