"""The table of batches: rate and time by size, each size plain and in other variants.

Times are of the batches of all good repetitions of a point together, from their merged
distributions; rates are medians over repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import run_files
from .events import Event
from .histogram import Histogram
from .metrics import batch_times
from .programs import PSEND
from .results import Point, Results
from .units import digits

HEADINGS = (
    *("batch", "variant", "batches", "messages", "msg/s", "MB/s"),
    *("first ns p50", "batch ns p50", "p99", "max", "ns/msg"),
)
TICKS = ("ticks p50", "ticks p99")
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
            summary = run_files.first(results, run, peer, "summary")
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


def _cells(found: Batches, ticks: bool) -> list[str]:
    times_ns = [found.first.percentile_ns(50), found.p50_ns, found.last.percentile_ns(99)]
    per_message = None if found.p50_ns is None else found.p50_ns / found.size
    mega = None if found.bytes_per_s is None else found.bytes_per_s / 1e6
    in_ticks = [found.ticks.percentile_ns(50), found.ticks.percentile_ns(99)] if ticks else []
    return [
        str(found.size),
        found.variant,
        str(found.last.count),
        str(found.last.count * found.size),
        digits(found.messages_per_s),
        digits(mega),
        *map(_whole, (*times_ns, found.last.max_ns)),
        digits(per_message),
        *map(_whole, in_ticks),
    ]


def _whole(value: int | None) -> str:
    return "-" if value is None else str(value)


def _notes(found: list[Batches]) -> list[str]:
    """What to know of the numbers."""
    notes = [
        "Times are from the sending of a batch's first message to the settlement of its first and "
        "of its last, in ns by clock_gettime, over the batches of all good repetitions together; "
        "rates are medians of the repetitions. ns/msg: batch p50 / batch."
    ]
    rates = [each.tsc_per_s for each in found if each.tsc_per_s]
    if rates:
        notes.append(f"ticks: of the time stamp counter, {rates[0] / 1e9:.3f} of which are 1 ns.")
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
    times = {(each.variant, each.size): each.p50_ns for each in found if each.p50_ns}
    variants = list(dict.fromkeys(each.variant for each in found))
    sentences = []
    for variant in variants:
        sizes = [size for name, size in times if name == variant]
        if variant == variants[0] and len(sizes) > 1:
            costs = [digits(times[variant, n] / n) for n in (sizes[0], sizes[-1])]
            sentences.append(
                f"{variant}: {costs[0]} ns a message in batches of {sizes[0]}, "
                f"{costs[1]} ns in batches of {sizes[-1]}."
            )
        both = [size for size in sizes if (variants[0], size) in times]
        if variant != variants[0] and both:
            ends = dict.fromkeys((both[0], both[-1]))
            ratios = (
                f"{times[variant, n] / times[variants[0], n]:.2f} times (batches of {n})"
                for n in ends
            )
            sentences.append(f"{variant}: a batch takes {', '.join(ratios)} as long as {variants[0]}.")
    return sentences or ["No batch was settled."]


def findings(results: Results, size: str, variant: str) -> dict[str, Any]:
    """SIZE and VARIANT are axes of the plan."""
    found = [of_point(results, point, size, variant) for point in results.plan.points]
    ticks = any(each.ticks.counts for each in found)
    return {
        "sentences": _sentences(found),
        "tables": [
            {
                "title": results.plan.title,
                "headings": [*HEADINGS, *(TICKS if ticks else ())],
                "rows": [_cells(each, ticks) for each in found],
                "notes": _notes(found),
            }
        ],
    }
