"""Where the values of an axis lie, and what is written there. Nothing here draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .axes import Axis
from .units import TIMES_NS, number, quantity

LINEAR, LOG, SYMLOG, CATEGORY = "linear", "log", "symlog", "category"
PLAIN_BELOW = 10_000  # where no number reaches this, none is written with k or M
LOG_RATIO = 50.0  # largest over smallest value from which an axis of metrics is logarithmic


@dataclass(frozen=True)
class Scale:
    """Positions by value, in the unit of units.number(); of a category, 0, 1, 2 ..."""

    kind: str
    positions: dict[str, float]
    labels: dict[str, str]

    @property
    def least_positive(self) -> float:
        """Of the positions; 1 if there is none."""
        return min((p for p in self.positions.values() if p > 0), default=1.0)


def scale_of(axis: Axis, values: Sequence[str]) -> Scale:
    """For these of the axis's values, in ascending order if they are numbers."""
    numbers = {value: number(value) for value in values}
    known = {value: float(n) for value, n in numbers.items() if n is not None}
    if len(known) < len(numbers) or not known:
        places = {value: float(index) for index, value in enumerate(numbers)}
        return Scale(CATEGORY, places, {value: value for value in numbers})
    ordered = dict(sorted(known.items(), key=lambda item: item[1]))
    kind = LINEAR
    if axis.log:
        kind = LOG if min(ordered.values()) > 0 else SYMLOG
    return Scale(kind, ordered, {value: short_value(value) for value in ordered})


# ---- numbers, short ----


def short(value: float) -> str:
    """1500 as 1500, 65536 as 64Ki, 1048576 as 1Mi, 250000 as 250k, 1750000 as 1.75M."""
    size = abs(value)
    if size >= 1024 and value % 1024 == 0 and value % 1000 != 0:
        return f"{value / 2**20:g}Mi" if value % 2**20 == 0 else f"{value / 1024:g}Ki"
    if size < PLAIN_BELOW and (size < 1000 or value % 1000 != 0):
        return f"{value:.4g}"
    return decimal(value)


def decimal(value: float) -> str:
    """With three digits and k, M or G."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * unit:
            return f"{float(f'{value / unit:.3g}'):g}{name}"
    return f"{value:.3g}"


def short_time(value_ns: float) -> str:
    """2500 as 2.5us."""
    for name in ("h", "min", "s", "ms", "us"):
        if abs(value_ns) >= TIMES_NS[name]:
            return f"{value_ns / TIMES_NS[name]:.4g}{name}"
    return f"{value_ns:.4g}ns" if value_ns else "0"


def is_time(value: str) -> bool:
    """Whether a value of an axis has a unit of time."""
    found = quantity(value)
    return found is not None and found[1]


def short_value(value: str) -> str:
    """What a tick says: the value as it was given, if that is short."""
    if len(value) <= 5:
        return value
    found = number(value)
    if found is None:
        return value
    return short_time(found) if is_time(value) else short(found)


# ---- ticks ----


def along(kind: str, position: float, least_positive: float) -> float:
    """How far along its axis a position is, in any unit; matplotlib's symlog with linthresh at the
    smallest positive value has one more decade there below."""
    if kind == LOG:
        return math.log10(position)
    if kind == SYMLOG:
        if position <= least_positive:
            return position / least_positive
        return 1 + math.log10(position / least_positive)
    return position


def ticks(scale: Scale, width: float, label_width: float) -> list[tuple[float, str]]:
    """Positions and labels at the values themselves, as many as fit side by side.

    WIDTH of the axis and LABEL_WIDTH of a character, in inches. First and last come first.
    """
    places = [
        (along(scale.kind, position, scale.least_positive), position, scale.labels[value])
        for value, position in scale.positions.items()
    ]
    span = places[-1][0] - places[0][0]
    if len(places) < 2 or span <= 0:
        return [(position, label) for _, position, label in places]
    inches = width / span
    kept = [places[0], places[-1]]
    for place in places[1:-1]:
        if all(_apart(place, other, inches, label_width) for other in kept):
            kept.append(place)
    return [(position, label) for _, position, label in sorted(kept)]


def _apart(
    a: tuple[float, float, str], b: tuple[float, float, str], inches: float, label_width: float
) -> bool:
    needed = label_width * ((len(a[2]) + len(b[2])) / 2 + 1)
    return abs(a[0] - b[0]) * inches >= needed


# ---- heat maps ----


def index_of(positions: Sequence[float], value: float) -> float | None:
    """Where VALUE lies among the cells of a heat map at 0, 1, 2 ...

    POSITIONS ascend. Between two cells the logarithm is interpolated, and half a cell beyond the
    outer ones extrapolated. None outside, and below the first positive position.
    """
    cells = [(i, math.log(p)) for i, p in enumerate(positions) if p > 0]
    if value <= 0 or len(cells) < 2:
        return None
    log = math.log(value)
    upper = next((k for k, (_, place) in enumerate(cells) if k and log <= place), len(cells) - 1)
    (i, low), (_, high) = cells[upper - 1], cells[upper]
    index = i + (log - low) / (high - low)
    return index if cells[0][0] - 0.5 <= index <= cells[-1][0] + 0.5 else None


def value_at(positions: Sequence[float], index: float) -> float | None:
    """The reverse: the value that lies at INDEX."""
    cells = [(i, math.log(p)) for i, p in enumerate(positions) if p > 0]
    if len(cells) < 2 or not cells[0][0] - 0.5 <= index <= cells[-1][0] + 0.5:
        return None
    upper = next((k for k, (i, _) in enumerate(cells) if k and index <= i), len(cells) - 1)
    (i, low), (_, high) = cells[upper - 1], cells[upper]
    return math.exp(low + (index - i) * (high - low))


def product_line(
    xs: Sequence[float], ys: Sequence[float], product: float, steps: int = 400
) -> list[tuple[float, float]]:
    """Cell positions (column, row) of the line x * y = PRODUCT, where it is inside the map."""
    found = []
    for step in range(steps + 1):
        column = -0.5 + step / steps * len(xs)
        x = value_at(xs, column)
        row = None if x is None else index_of(ys, product / x)
        if row is not None:
            found.append((column, row))
    return found
