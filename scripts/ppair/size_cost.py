"""What a message and a byte of it cost: CPU time per message = a + b x bytes of body.

For each value of an axis, plain and TLS, and for both programs. The line is fitted to all good
runs, with errors that are a share of the time, so that large bodies do not outweigh small ones.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from . import fits
from .fits import Line
from .inference import Interval
from .programs import PROGRAMS, PSEND
from .table import finding
from .units import digits, number

if TYPE_CHECKING:
    from .results import Results

ENDS = {program: "sender" if program == PSEND else "receiver" for program in PROGRAMS}
Costs = dict[tuple[str, str], Line]  # by value of the axis, and program


def findings(results: Results, size: str, axis: str) -> dict[str, Any]:
    """SIZE and AXIS are axes of the plan; other values of AXIS are compared with its first."""
    values = next(a.values for a in results.plan.axes if a.name == axis)
    costs: Costs = {}
    for value in values:
        for program in PROGRAMS:
            line = _line(results, size, axis, value, program)
            if line:
                costs[value, program] = line
    more = [_more(costs, values[0], value) for value in values[1:]]
    sentences = [sentence for sentence in more if sentence]
    return {
        "sentences": sentences or ["Too few sizes were measured well to say what they cost."],
        "tables": [_table(costs)],
        "costs": [
            {axis: value, "program": program, "message_ns": asdict(c.at_0), "byte_ns": asdict(c.by)}
            for (value, program), c in costs.items()
        ],
    }


def _line(results: Results, size: str, axis: str, value: str, program: str) -> Line | None:
    pairs = [
        (number(point.values[size]), run.metrics[f"{program}_cpu_per_message_ns"])
        for point in results.plan.points
        if point.values[axis] == value
        for run in results.good(point.id)
    ]
    known = [(x, y) for x, y in pairs if x is not None and y]
    return fits.line([x for x, _ in known], [y for _, y in known])


def _more(costs: Costs, base: str, value: str) -> str | None:
    """What VALUE costs beyond BASE."""
    parts = []
    for program, end in ENDS.items():
        a, b = costs.get((base, program)), costs.get((value, program))
        if a and b:
            message, byte = _difference(a.at_0, b.at_0), _difference(a.by, b.by)
            parts.append(f"the {end} {_cost(message, 'message')} and {_cost(byte, 'byte')}")
    return f"{value} costs {'; '.join(parts)}, more than {base}." if parts else None


def _cost(more: Interval, what: str) -> str:
    """What is certain."""
    if more.low <= 0 <= more.high:
        return f"nothing certain per {what} (at most {digits(more.high, 3)} ns)"
    return f"{digits(more.value, 3)} ns ({_limits(more)}) of CPU time per {what}"


def _difference(a: Interval, b: Interval) -> Interval:
    """B - A, with both errors."""
    half = math.hypot((a.high - a.low) / 2, (b.high - b.low) / 2)
    value = b.value - a.value
    return Interval(value, value - half, value + half, min(a.count, b.count))


def _limits(found: Interval) -> str:
    return f"{digits(found.low, 3)} .. {digits(found.high, 3)}"


def _table(costs: Costs) -> dict[str, Any]:
    rows = [
        [
            ENDS[program],
            value,
            digits(cost.at_0.value, 3),
            _limits(cost.at_0),
            digits(cost.by.value, 3),
            _limits(cost.by),
        ]
        for (value, program), cost in costs.items()
    ]
    return finding(
        "CPU time per message = ns/message + ns/byte x bytes of body",
        ["program", "", "ns/message", "95 %", "ns/byte", "95 %"],
        rows,
    )
