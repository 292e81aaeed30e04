"""Numbers as the cells of tables have them: in a metric's unit, one below the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .metrics import BY_NAME, Metric
from .table import MISSING
from .units import digits


def metric_of(name: str) -> Metric:
    """By its name; one that is not known is shown as it is."""
    return BY_NAME.get(name) or Metric(name, name, name, 0)


def shown(value: float | int | None, metric: Metric) -> str:
    """A value of a metric in the unit of its heading."""
    return digits(None if value is None else value * metric.scale)


def decimals_for(values: Iterable[float | None]) -> int:
    """How many a column of these has, so that they stand one below the other."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return 0 if largest >= 1000 else 1 if largest >= 10 else 2 if largest >= 1 else 3


def decimals_of(values: Iterable[float | None], metric: Metric) -> int:
    """The same for a metric, whose values have its unit already: what is counted has none."""
    return 0 if metric.counted else decimals_for(values)


def fixed(value: float | None, decimals: int) -> str:
    """With so many decimals; but a small number is not shown as 0."""
    if value is None:
        return MISSING
    small = value != 0 and abs(value) < 10 ** (1 - decimals)
    return digits(value, 2) if small else f"{value:.{decimals}f}"


def shown_column(values: Sequence[float | int | None], metric: Metric) -> list[str]:
    """Values of a metric in the unit of its heading, as a column has them."""
    scaled = [None if value is None else value * metric.scale for value in values]
    decimals = decimals_of(scaled, metric)
    return [fixed(value, decimals) for value in scaled]


def percent(value: float | None) -> str:
    """With one decimal."""
    return MISSING if value is None else f"{value:.1f}"
