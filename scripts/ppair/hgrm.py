"""HdrHistogram's percentile distributions (.hgrm): read, and written as psend and precv write them.

Values are microseconds with three decimals, so exact ns. Lines of four numbers are for people and
plotters: they are HdrHistogram's percentiles, from which buckets cannot be told. psend and precv
put what can be merged into comments below those: a line that says so, one that names what was
timed, one for each bucket with its lowest value, and sum, overflow, lowest and negative values.
src/report_hdr.c says more. What is written here of a recording is what they write, byte for
byte.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import files
from .failure import Exit, Failure, usage
from .histogram import BITS, OCTAVES, Histogram, bucket_highest, bucket_lowest

SUFFIX = ".hgrm"
STEPS = 5  # between two halvings of the distance to 100 %
EXACT = "#[Exact   = ppair-hgrm/1, every bucket follows]"
HEADINGS = ("Value", "Percentile", "TotalCount", "1/(1-Percentile)")
US = r"(-?[0-9]+\.[0-9]{3})"
COUNT = r"([0-9]+)"
TIMING = re.compile(r"#\[Timing  = ([a-z_]+)\]")
BUCKET = re.compile(rf"#\[Bucket +=  *{US}, Count +=  *{COUNT}\]")
SUM = re.compile(rf"#\[Sum +=  *{US}, Overflow +=  *{COUNT}\]")
LOWEST = re.compile(rf"#\[Lowest +=  *{US}, Negative +=  *{COUNT}\]")
MAX = re.compile(rf"#\[Max +=  *{US}, Total count +=  *{COUNT}\]")


@dataclass(frozen=True)
class Recording:
    """What a file holds."""

    timing: str | None  # what was timed: latency; None: the file is older than that
    histogram: Histogram


# ---- writing ----


def write(path: Path, recording: Recording) -> None:
    """In the place of an earlier file; folders are made."""
    files.write_in_folder(path, render(recording).encode("ascii"))


def render(recording: Recording) -> str:
    """As psend and precv would write it."""
    histogram = recording.histogram
    mean_ns, stddev_ns = histogram.mean_ns or 0.0, histogram.stddev_ns or 0.0
    value, percentile, total, inverse = HEADINGS
    lines = [
        f"{value:>16} {percentile:>14} {total:>10} {inverse:>14}",
        "",
        *_levels(histogram),
        EXACT,
        *([] if recording.timing is None else [f"#[Timing  = {recording.timing}]"]),
        *(
            _comment("Bucket", _us(lowest), "Count", count)
            for lowest, count in sorted(histogram.counts.items())
        ),
        _comment("Sum", _us(histogram.total_ns), "Overflow", histogram.overflow),
        _comment("Lowest", _us(histogram.lowest_ns or 0), "Negative", histogram.negative),
        f"#[Mean    = {mean_ns / 1000:12.3f}, StdDeviation   = {stddev_ns / 1000:12.3f}]",
        _comment("Max", _us(histogram.max_ns or 0), "Total count", histogram.count),
        _comment("Buckets", str(OCTAVES + 1), "SubBuckets", 1 << BITS),
    ]
    return "".join(f"{line}\n" for line in lines)


def _comment(name: str, value: str, other: str, count: int) -> str:
    return f"#[{name:7} = {value:>12}, {other:14} = {count:12}]"


def _us(value_ns: int) -> str:
    sign, value_ns = "-" if value_ns < 0 else "", abs(value_ns)
    return f"{sign}{value_ns // 1000}.{value_ns % 1000:03d}"


def _levels(histogram: Histogram) -> Iterator[str]:
    """The minimum, then percentiles up to the first at or below which every value is."""
    count, least_ns, most_ns = histogram.count, histogram.min_ns, histogram.max_ns
    if least_ns is None or most_ns is None:
        return
    buckets = iter(sorted(histogram.counts.items()))
    seen, lowest, rank, level = 0, 0, 0, 0
    while rank < count:
        halvings, step = divmod(level, STEPS)
        rank = count - count * (2 * STEPS - step) // (2 * STEPS << halvings)
        while seen < max(rank, 1):
            lowest, some = next(buckets)
            seen += some
        value_ns = most_ns if rank == count else min(bucket_highest(lowest), most_ns)
        distance = math.ldexp((2 * STEPS - step) / (2 * STEPS), -halvings)
        shown = _us(value_ns if rank else least_ns)
        yield f"{shown:>16} {1 - distance:.12f} {seen:10} {1 / distance:14.2f}"
        level += 1
    yield f"{_us(most_ns):>16} {1:.12f} {count:10}"  # this has no finite inverse


# ---- reading ----


def read(path: Path) -> Recording:
    """Raises Failure for a file that cannot be merged exactly, or is not whole."""
    try:
        text = path.read_text(encoding="ascii", errors="backslashreplace")
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{path}: {error.strerror}") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Recording:
    """What the file NAME, with this TEXT, holds; raises Failure as read() does."""
    lines = text.splitlines()
    if not lines or tuple(lines[0].split()) != HEADINGS:
        raise usage(f"{name}: is not a {SUFFIX} file, nor a results directory")
    if EXACT not in lines:
        raise usage(
            f"{name}: lists percentiles and not every bucket, so it cannot be merged exactly; what "
            "psend --hdr and precv --hdr write can"
        )
    try:
        return _parse(lines)
    except (LookupError, ValueError) as error:
        raise Failure(Exit.INTERNAL, f"{name}: not as it was written: {error}") from None


def _parse(lines: Sequence[str]) -> Recording:
    recording = Recording(_timing(lines), _histogram(lines))
    _check(recording, lines)
    return recording


def _timing(lines: Sequence[str]) -> str | None:
    found = [match[1] for line in lines if (match := TIMING.fullmatch(line))]
    return found[0] if found else None


def _histogram(lines: Sequence[str]) -> Histogram:
    counts = {_ns(m[1]): int(m[2]) for line in lines if (m := BUCKET.fullmatch(line))}
    total_ns, overflow = _pair(SUM, lines)
    lowest_ns, negative = _pair(LOWEST, lines)
    most_ns, count = _pair(MAX, lines)
    return Histogram(
        counts=counts,
        total_ns=total_ns,
        min_ns=_ns(lines[2].split()[0]) if count else None,  # of the first line, at 0 %
        max_ns=most_ns if count else None,
        negative=negative,
        lowest_ns=lowest_ns if negative else None,
        overflow=overflow,
    )


def _pair(pattern: re.Pattern[str], lines: Sequence[str]) -> tuple[int, int]:
    """Time and count of the one comment of its kind."""
    found = [match for line in lines if (match := pattern.fullmatch(line))]
    if len(found) != 1:
        raise ValueError("it is not whole")
    return _ns(found[0][1]), int(found[0][2])


def _ns(text: str) -> int:
    if not re.fullmatch(US, text):
        raise ValueError(f'"{text[:20]}" is not a time')
    return int(text.replace(".", ""))


def _check(recording: Recording, lines: Sequence[str]) -> None:
    """Raises ValueError for what no histogram can be, or is not what would be written of it."""
    histogram = recording.histogram
    counts, least_ns, most_ns = histogram.counts, histogram.min_ns, histogram.max_ns
    if any(bucket_lowest(lowest) != lowest for lowest in counts):
        raise ValueError("a bucket does not begin where it should")
    if counts and least_ns is not None and most_ns is not None:
        if [bucket_lowest(least_ns), bucket_lowest(most_ns)] != [min(counts), max(counts)]:
            raise ValueError("minimum and maximum are not in the first and the last bucket")
    # the mean's and deviation's last digit may be another on another kind of processor
    ours, theirs = (
        [line for line in some if not line.startswith("#[Mean")]
        for some in (render(recording).splitlines(), lines)
    )
    if ours != theirs:
        raise ValueError("its numbers do not fit together")
