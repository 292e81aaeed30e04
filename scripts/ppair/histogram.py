"""Distributions from psend's and precv's summaries, merged exactly.

A distribution is what the JSON schema calls one, with its `buckets`: pairs of a bucket's lowest
value and its count. Buckets are those of include/histogram.h: one for each value below 256, above
that 128 of equal width for each power of two. Merging adds counts; a percentile is read from the
sum, as the highest value of the bucket in which its rank falls, and never more than the maximum,
just as psend and precv read their own. Percentiles are never averaged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

BITS = 7
OCTAVES = 42 - BITS
MAX_NS = 3_600_000_000_000  # values above it are counted in its bucket


def bucket_width(lowest: int) -> int:
    """How many values the bucket with this lowest value holds."""
    return 1 << max(lowest.bit_length() - 1 - BITS, 0)


def bucket_highest(lowest: int) -> int:
    """Its last value."""
    return lowest + bucket_width(lowest) - 1


def bucket_lowest(value: int) -> int:
    """The first value of the bucket in which VALUE is counted."""
    kept = min(value, MAX_NS)
    return kept - kept % bucket_width(kept)


@dataclass(frozen=True)
class Histogram:
    """Values in ns."""

    counts: dict[int, int] = field(default_factory=dict)  # by a bucket's lowest value
    total_ns: int = 0
    min_ns: int | None = None  # exact
    max_ns: int | None = None  # exact
    negative: int = 0
    lowest_ns: int | None = None  # of the negative ones
    overflow: int = 0

    @property
    def count(self) -> int:
        """How many values there are, negative ones left out."""
        return sum(self.counts.values())

    @property
    def mean_ns(self) -> float | None:
        """None if there are no values."""
        return float(self.total_ns) / float(self.count) if self.counts else None

    @property
    def stddev_ns(self) -> float | None:
        """Of the population, from the middles of buckets, to the last bit as psend and precv do."""
        mean_ns = self.mean_ns
        if mean_ns is None:
            return None
        squares = 0.0
        for lowest in sorted(self.counts):
            distance = self._middle_ns(lowest) - mean_ns
            squares += float(self.counts[lowest]) * distance * distance
        return math.sqrt(squares / float(self.count))

    def _middle_ns(self, lowest: int) -> float:
        """Of a bucket, as far as there are values."""
        assert self.min_ns is not None and self.max_ns is not None
        low = max(lowest, self.min_ns)
        return float(low) + float(min(bucket_highest(lowest), self.max_ns) - low) / 2

    def percentile_ns(self, percent: float) -> int | None:
        """The value at or below which so many of the values lie (nearest rank)."""
        if not self.counts or self.max_ns is None:
            return None
        exact = percent / 100 * self.count
        rank = max(math.ceil(exact - exact * 1e-15), 1)
        if rank >= self.count:
            return self.max_ns
        seen = 0
        for lowest in sorted(self.counts):
            seen += self.counts[lowest]
            if seen >= rank:
                return min(bucket_highest(lowest), self.max_ns)
        return self.max_ns


def from_distribution(distribution: dict[str, Any]) -> Histogram:
    """Of one program's summary; those of older programs have no sum, but a mean of 15 digits."""
    total_ns = distribution.get("sum")
    if total_ns is None:
        total_ns = round(Fraction(distribution["mean"] or 0) * distribution["count"])
    return Histogram(
        counts=dict(distribution["buckets"]),
        total_ns=total_ns,
        min_ns=distribution["min"],
        max_ns=distribution["max"],
        negative=distribution["negative"],
        lowest_ns=distribution.get("lowest"),
        overflow=distribution["overflow"],
    )


def merge(parts: Sequence[Histogram]) -> Histogram:
    """The histogram of all their values."""
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(part.counts)
    return Histogram(
        counts=dict(counts),
        total_ns=sum(part.total_ns for part in parts),
        min_ns=min((p.min_ns for p in parts if p.min_ns is not None), default=None),
        max_ns=max((p.max_ns for p in parts if p.max_ns is not None), default=None),
        negative=sum(part.negative for part in parts),
        lowest_ns=min((p.lowest_ns for p in parts if p.lowest_ns is not None), default=None),
        overflow=sum(part.overflow for part in parts),
    )
