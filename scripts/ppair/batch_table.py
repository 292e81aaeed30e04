"""The table of batches: rate and time by size, each size plain and in other variants.

Times are of the batches of all good repetitions of a point together, from their merged
distributions; rates are medians over repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import run_files
from .cells import shown_column
from .events import Event
from .histogram import Histogram
from .measured import batch_times
from .metrics import BY_NAME, PRIMARY
from .programs import PSEND
from .results import Point, Results
from .table import MISSING, Column, finding_of_columns
from .units import digits

FEW = 10  # batches, below which a p99 is a maximum and says little


@dataclass(frozen=True)
class Batches:
    """Those of one point, over all its good runs."""

    size: int
    variant: str
    first: Histogram
    last: Histogram
    ticks: Histogram  # empty without --tsc
    tsc_per_s: float | None
    messages_per_s: float | None  # median over repetitions, as the others
    bytes_per_s: float | None
    blocked: float | None

    @property
    def p50_ns(self) -> int | None:
        """Of the time until the last one is settled."""
        return self.last.percentile_ns(50)


def of_point(results: Results, point: Point, size: str, variant: str) -> Batches:
    """SIZE and VARIANT are axes of the plan."""
    summaries: list[Event] = []
    for run in results.good(point.id):
        for peer in run_files.peers(run, PSEND):
            summary = run_files.summary(results, run, peer)
            summaries += [summary] if summary else []
    medians = {
        name: found.median if (found := results.aggregate(point.id, name)) else None
        for name in ("messages_per_s", "bytes_per_s", "blocked")
    }
    ticking = [event["batch"]["tsc_per_s"] for event in summaries if event.get("batch")]
    return Batches(
        size=int(point.values[size]),
        variant=point.values[variant],
        first=batch_times(summaries, "first_ns"),
        last=batch_times(summaries, "last_ns"),
        ticks=batch_times(summaries, "last_ticks"),
        tsc_per_s=next((rate for rate in ticking if rate), None),
        **medians,
    )


def _columns(found: list[Batches]) -> list[Column]:
    """Headings and cells. Ticks come last, apart from the times in ns."""
    plain = {each.size: each.p50_ns for each in found if each.variant == found[0].variant}
    beside = [_ratio(each.p50_ns, plain.get(each.size), 2) for each in found]
    ticks = [_whole(each.ticks.percentile_ns(50)) for each in found]
    return [
        ("batch", [str(each.size) for each in found]),
        ("variant", [each.variant for each in found]),
        ("batches", [str(each.last.count) for each in found]),
        ("messages", [str(each.last.count * each.size) for each in found]),
        ("msg/s", shown_column([each.messages_per_s for each in found], BY_NAME[PRIMARY])),
        ("MB/s", shown_column([each.bytes_per_s for each in found], BY_NAME["bytes_per_s"])),
        ("first p50 ns", [_whole(each.first.percentile_ns(50)) for each in found]),
        ("batch p50 ns", [_whole(each.p50_ns) for each in found]),
        ("batch p99 ns", [_whole(each.last.percentile_ns(99)) for each in found]),
        ("batch max ns", [_whole(each.last.max_ns) for each in found]),
        ("ns/msg", [_ratio(each.p50_ns, each.size, 0) for each in found]),
        *([(f"/ {found[0].variant}", beside)] if _has_variants(found) else []),
        *([("p50 ticks", ticks)] if any(each.ticks.counts for each in found) else []),
    ]


def _has_variants(found: list[Batches]) -> bool:
    """Else a column beside the first one's would hold nothing but 1."""
    return len({each.variant for each in found}) > 1


def _ratio(part: float | None, whole: float | None, decimals: int) -> str:
    return f"{part / whole:.{decimals}f}" if part is not None and whole else MISSING


def _whole(value: int | None) -> str:
    return MISSING if value is None else str(value)


def _notes(found: list[Batches]) -> list[str]:
    """What to know of the numbers."""
    base = found[0].variant
    beside = f" / {base}: batch p50 / that of {base}." if _has_variants(found) else ""
    notes = [
        "Times are from the sending of a batch's first message to the settlement of its first and "
        "of its last, in ns by clock_gettime, over the batches of all good repetitions together; "
        f"rates are medians of the repetitions. ns/msg: batch p50 / batch.{beside}"
    ]
    rates = [each.tsc_per_s for each in found if each.tsc_per_s]
    if rates:
        notes.append(f"The time stamp counter has {rates[0] / 1e9:.3f} ticks in 1 ns.")
    few = [each for each in found if each.last.count < FEW]
    if few:
        notes.append(
            f"{_places(few)}: fewer than {FEW} batches were settled; p99 says little. A longer "
            "--duration has more."
        )
    cut = [each for each in found if each.blocked]
    if cut:
        notes.append(f"{_places(cut)}: credit ran out within batches, which waited for more.")
    return notes


def _places(found: list[Batches]) -> str:
    some = ", ".join(f"{each.size} {each.variant}" for each in found[:3])
    return f"{some} and {len(found) - 3} more" if len(found) > 3 else some


def _sentences(found: list[Batches]) -> list[str]:
    """What a message costs in small batches and in large ones, and what each variant changes."""
    times: dict[str, dict[int, int]] = {}
    for each in found:
        if each.p50_ns:
            times.setdefault(each.variant, {})[each.size] = each.p50_ns
    base = found[0].variant
    sentences = [
        _cost(variant, of_sizes) if variant == base else _compared(variant, of_sizes, base, times)
        for variant, of_sizes in times.items()
    ]
    return [sentence for sentence in sentences if sentence] or ["No batch was settled."]


def _cost(variant: str, times: dict[int, int]) -> str:
    costs = [
        f"{digits(times[size] / size)} ns in batches of {size}"
        for size in dict.fromkeys((min(times), max(times)))
    ]
    return f"{variant}: a message takes {', '.join(costs)}."


def _compared(
    variant: str, of_sizes: dict[int, int], base: str, times: dict[str, dict[int, int]]
) -> str | None:
    both = [size for size in of_sizes if size in times.get(base, {})]
    if not both:
        return None
    least, *larger = [
        (size, f"{of_sizes[size] / times[base][size]:.2f} times")
        for size in dict.fromkeys((min(both), max(both)))
    ]
    more = "".join(f", a batch of {size} {ratio}" for size, ratio in larger)
    return f"{variant}: a batch of {least[0]} takes {least[1]} as long as in {base}{more}."


def findings(results: Results, size: str, variant: str) -> dict[str, Any]:
    """SIZE and VARIANT are axes of the plan."""
    found = [of_point(results, point, size, variant) for point in results.plan.points]
    return {
        "sentences": _sentences(found),
        "tables": [finding_of_columns("By batch", _columns(found), _notes(found))],
    }
