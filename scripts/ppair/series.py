"""A number over time, in constant memory: for soaks that last days."""

from __future__ import annotations

from dataclasses import dataclass, field

BINS_MAX = 4096


@dataclass
class Series:
    """Means over bins of equal counts of values; when there are too many, neighbours are merged."""

    values_per_bin: int = 1
    times_s: list[float] = field(default_factory=list)  # means
    values: list[float] = field(default_factory=list)  # means
    _count: int = 0  # of values in the bin that is being filled
    _time_s: float = 0.0  # their sums
    _value: float = 0.0

    def add(self, time_s: float, value: float) -> None:
        """Times must not go backwards."""
        self._count += 1
        self._time_s += time_s
        self._value += value
        if self._count < self.values_per_bin:
            return
        self.times_s.append(self._time_s / self._count)
        self.values.append(self._value / self._count)
        self._count, self._time_s, self._value = 0, 0.0, 0.0
        if len(self.values) == BINS_MAX:
            self.times_s, self.values = _halved(self.times_s), _halved(self.values)
            self.values_per_bin *= 2

    def after(self, time_s: float) -> tuple[list[float], list[float]]:
        """Times and values from then on."""
        first = next((i for i, t in enumerate(self.times_s) if t >= time_s), len(self.times_s))
        return self.times_s[first:], self.values[first:]


def _halved(numbers: list[float]) -> list[float]:
    return [(a + b) / 2 for a, b in zip(numbers[::2], numbers[1::2])]
