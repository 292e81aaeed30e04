"""Axes of a sweep: lists and ranges of values of one option, and the grid of several.

    10,20,50            these
    1..1000 log 20      20 values with equal ratios, ends included
    0..190 step 10      equal steps
    0..1000 11          11 values with equal distances; without a number there are 10

Values keep the unit that they were given with if they are a list; those of a range are written in
plain numbers, or in ns.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from .failure import usage
from .units import quantity

RANGE = re.compile(r"(\S+?) *\.\. *(\S+)(?: +(log|step))?(?: +(\S+))?")
VALUES_MAX = 10_000  # of an axis, and of a grid
STEPS_DEFAULT = 10


@dataclass(frozen=True)
class Axis:
    """What is varied, and how it is shown."""

    name: str  # key in a point's values; of a sweep by option, the option's name without dashes
    values: tuple[str, ...]
    label: str  # with its unit, for tables and plots
    log: bool = False


def parse_values(text: str, what: str) -> tuple[str, ...]:
    """The values of a list or range, in order, each once."""
    text = text.strip()
    match = RANGE.fullmatch(text)
    values = _range(match, what) if match else [value.strip() for value in text.split(",")]
    if "" in values:
        raise usage(f'{what}: "{text}" has an empty value')
    return tuple(dict.fromkeys(values))


def is_several(text: str) -> bool:
    """Whether TEXT is a list or a range."""
    return "," in text or RANGE.fullmatch(text.strip()) is not None


def is_log(text: str) -> bool:
    """Whether TEXT is a range with equal ratios, or a list that grows like one."""
    match = RANGE.fullmatch(text.strip())
    if match:
        return match[3] == "log"
    found = [quantity(value.strip()) for value in text.split(",")]
    numbers = [float(q[0]) for q in found if q is not None]
    return len(numbers) == len(found) > 2 and min(numbers) > 0 and max(numbers) >= 20 * min(numbers)


def _range(match: re.Match[str], what: str) -> list[str]:
    first, last = quantity(match[1]), quantity(match[2])
    if first is None or last is None or first[1] != last[1] and first[0] != 0:
        raise usage(f'{what}: "{match[0]}" is not a range of numbers with the same kind of unit')
    low, high = first[0], last[0]
    if low >= high:
        raise usage(f'{what}: "{match[0]}" does not go upwards')
    step = _step(match, what, last[1]) if match[3] == "step" else None
    count = int((high - low) / step) + 1 if step else _count(match, what)
    if count > VALUES_MAX:
        raise usage(f'{what}: "{match[0]}" has more than {VALUES_MAX} values')
    numbers: Iterable[float] = (
        (float(low + step * i) for i in range(count))
        if step
        else _spread(float(low), float(high), count, match[3] == "log")
    )
    whole = all(value == int(value) for value in (low, high, step or 0))
    return [_write(value, last[1], whole) for value in numbers]


def _step(match: re.Match[str], what: str, time: bool) -> Decimal:
    step = quantity(match[4] or "")
    if step is None or step[1] != time or step[0] <= 0:
        raise usage(f'{what}: "{match[0]}" needs a step above 0, of the same kind as its ends')
    return step[0]


def _count(match: re.Match[str], what: str) -> int:
    found = quantity(match[4] or str(STEPS_DEFAULT))
    if found is None or found[1] or found[0] < 2 or found[0] != int(found[0]):
        raise usage(f'{what}: "{match[0]}" needs a number of values, 2 or more')
    return int(found[0])


def _spread(low: float, high: float, count: int, log: bool) -> Iterator[float]:
    """COUNT values from LOW to HIGH; where equal ratios cannot begin, at 0, they begin at 1."""
    if log and low == 0:
        yield 0.0
        low, count = min(1.0, high), count - 1
    for i in range(count):
        share = i / (count - 1) if count > 1 else 1.0
        yield low * (high / low) ** share if log else low + (high - low) * share


def _write(value: float, time: bool, whole: bool) -> str:
    if time:
        return f"{round(value)}ns"
    # not with an exponent, which psend and precv do not read
    return str(round(value)) if whole else f"{Decimal(f'{value:.10g}'):f}"


def grid(axes: Sequence[Axis]) -> Iterator[dict[str, str]]:
    """All combinations, the last axis changing fastest."""
    count = math.prod(len(axis.values) for axis in axes)
    if count > VALUES_MAX:
        raise usage(f"{count} combinations are more than {VALUES_MAX}")
    for values in itertools.product(*(axis.values for axis in axes)):
        yield {axis.name: value for axis, value in zip(axes, values)}
