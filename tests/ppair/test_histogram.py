"""Merging distributions is exact: beside brute force over the values themselves."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from ppair import histogram
from ppair.histogram import Histogram

PERCENTS = (0.01, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100)
HOUR_NS = 3_600_000_000_000


def _bucket(value: int) -> tuple[int, int]:
    """The lowest and highest value of the bucket of VALUE: include/histogram.h, in words."""
    if value < 256:
        return value, value
    power = 1 << (value.bit_length() - 1)
    width = power // 128
    lowest = value - (value - power) % width
    return lowest, lowest + width - 1


def _distribution(values: Sequence[int]) -> dict[str, Any]:
    """As a program's summary has it."""
    counts = Counter(_bucket(value)[0] for value in values)
    return {
        "count": len(values),
        "mean": math.fsum(values) / len(values) if values else None,
        "min": min(values, default=None),
        "max": max(values, default=None),
        "negative": 2,
        "overflow": 1,
        "buckets": [[lowest, n] for lowest, n in sorted(counts.items())],
    }


def _merged(parts: Sequence[Sequence[int]]) -> Histogram:
    return histogram.merge([histogram.from_distribution(_distribution(part)) for part in parts])


def _percentile(values: Sequence[int], percent: float) -> int:
    """The nearest rank's value, as a histogram shows it: the end of its bucket, or the maximum."""
    rank = max(math.ceil(round(percent * len(values) / 100, 9)), 1)
    return min(_bucket(sorted(values)[rank - 1])[1], max(values))


def _draw(seed: int, count: int) -> list[int]:
    chance = random.Random(seed)
    return [int(chance.lognormvariate(12, 2)) for _ in range(count)]


@pytest.mark.parametrize(
    "sizes", [(1,), (2,), (100,), (1000, 1), (1, 2, 3), (0, 500, 0), (400,) * 5]
)
def test_merged_is_as_if_all_values_had_been_counted_in_one(sizes: tuple[int, ...]) -> None:
    parts = [_draw(seed, count) for seed, count in enumerate(sizes)]
    everything = [value for part in parts for value in part]
    merged = _merged(parts)
    assert merged.counts == Counter(_bucket(value)[0] for value in everything)
    assert (merged.count, merged.min_ns, merged.max_ns) == (
        len(everything),
        min(everything),
        max(everything),
    )
    assert merged.mean_ns == pytest.approx(sum(everything) / len(everything), rel=1e-12)
    assert (merged.negative, merged.overflow) == (2 * len(parts), len(parts))
    for percent in PERCENTS:
        assert merged.percentile_ns(percent) == _percentile(everything, percent), percent


def test_a_percentile_is_not_an_average() -> None:
    """99 quick values and 100 slow ones: the median is a slow one."""
    merged = _merged([[100] * 99, [200] * 100])
    assert merged.percentile_ns(50) == 200
    assert merged.percentile_ns(49) == 100


def test_percentiles_are_never_below_and_close() -> None:
    values = _draw(1, 5000)
    merged = _merged([values])
    for percent in PERCENTS:
        rank = max(math.ceil(round(percent * len(values) / 100, 9)), 1)
        true = sorted(values)[rank - 1]
        found = merged.percentile_ns(percent)
        assert found is not None and true <= found <= true * (1 + 1 / 128)


@pytest.mark.parametrize("value", [0, 1, 255, 256, 257, 511, 512, 65535, 65536, 10**9, HOUR_NS])
def test_a_bucket_is_that_of_the_programs(value: int) -> None:
    lowest, highest = _bucket(value)
    assert histogram.bucket_width(lowest) == highest - lowest + 1


def test_ranks_are_not_off_by_the_rounding_of_percents() -> None:
    """99.9 % of 1000 is rank 999, though 0.999 * 1000 is a little more."""
    values = list(range(1, 101)) * 10
    assert _merged([values]).percentile_ns(99.9) == 100
    for percent in range(1, 100):
        assert _merged([list(range(1, 101))]).percentile_ns(percent) == percent


def test_nothing() -> None:
    for empty in (histogram.merge([]), _merged([[], []])):
        assert (empty.count, empty.min_ns, empty.max_ns, empty.mean_ns) == (0, None, None, None)
        assert empty.percentile_ns(50) is None


def test_one_value_is_exact() -> None:
    merged = _merged([[1_234_567]])
    assert [merged.percentile_ns(percent) for percent in PERCENTS] == [1_234_567] * len(PERCENTS)


def test_merging_merged_ones_is_the_same() -> None:
    a, b, c = _draw(1, 50), _draw(2, 60), _draw(3, 70)
    left = histogram.merge([_merged([a, b]), _merged([c])])
    right = histogram.merge([_merged([a]), _merged([b, c])])
    assert left.counts == right.counts and left.percentile_ns(99) == right.percentile_ns(99)
    assert left.mean_ns == pytest.approx(right.mean_ns)
