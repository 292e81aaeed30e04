"""B against A, metric by metric: which runs are compared, and how that is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from . import cells, inference, loads, metrics
from .inference import Comparison, Interval
from .metrics import COMPARED, PRIMARY, Metric
from .results import Point, Results
from .table import finding
from .units import digits

SIDES = ("A", "B")
MIN_EFFECT = 0.01  # a smaller change does not count
Samples = dict[str, tuple[list[float | None], list[float | None]]]  # by metric: of A, of B
Compared = dict[str, Comparison]  # by metric


# ---- which runs ----


def samples_of_pairs(results: Results, names: Sequence[str] = COMPARED) -> Samples:
    """Repetitions of which both sides are good; NAMES are of metrics."""
    a, b = ({run.repetition: run.metrics for run in results.good(point)} for point in (0, 1))
    both = sorted(set(a) & set(b))
    return {
        name: ([a[r].get(name) for r in both], [b[r].get(name) for r in both]) for name in names
    }


def common_points(a: Results, b: Results) -> tuple[list[tuple[str, Samples]], list[str]]:
    """Points with the same values on all axes, with their samples; what is left out, and why.

    What a search has tried is of no point in common, even at the same rate.
    """
    others = {_name(p): p.id for p in b.plan.points if not loads.is_probe(p.values)}
    found, left_out = [], []
    for point in (p for p in a.plan.points if not loads.is_probe(p.values)):
        name = _name(point)
        other = others.pop(name, None)
        if other is None:
            left_out.append(f"{name or 'all'}: only A has it")
            continue
        sides = (a.good(point.id), b.good(other))
        empty = [side for side, runs in zip(SIDES, sides) if not runs]
        if empty:
            left_out.append(f"{name or 'all'}: no good runs of {' and '.join(empty)}")
            continue
        samples = {
            name: (
                [run.metrics.get(name) for run in sides[0]],
                [run.metrics.get(name) for run in sides[1]],
            )
            for name in COMPARED
        }
        found.append((name, samples))
    return found, left_out + [f"{name or 'all'}: only B has it" for name in others]


def sustained(a: Results, b: Results) -> str | None:
    """Of two directories of latency, whose steps are shares of these rates, in words."""
    found = [(side.findings or {}).get("latency") or {} for side in (a, b)]
    rates = [each.get("sustainable_per_s") for each in found]
    if not all(rates):
        return None
    x, y = rates
    return (
        f"Sustained in open loop: A {digits(x)}, B {digits(y)} messages/s, B/A {y / x:.3f}; "
        "a step is a share of its own side's rate"
    )


def _name(point: Point) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(point.values.items()))


# ---- comparing ----


def compare(samples: Samples, paired: bool, min_effect: float) -> Compared:
    """The metrics that both sides have, the rate among them; no troubles that neither has had."""
    known = {
        name: (a, b)
        for name, (a, b) in samples.items()
        if any(v is not None for v in a)
        and any(v is not None for v in b)
        and (metrics.BY_NAME[name].seen is not metrics.NOT_ZERO or any(a) or any(b))
    }
    return inference.compare_all(known, PRIMARY, paired=paired, min_effect=min_effect, seed=0)


def passes(compared: Compared, limit: float | None) -> bool:
    """Whether B's rate is not certainly lower by more than LIMIT; not if it cannot be told."""
    return limit is None or _kept(compared, limit) == "kept"


def _kept(compared: Compared, limit: float) -> str:
    rate = compared[PRIMARY]
    if rate.verdict is inference.Verdict.TOO_FEW:
        return "not known to be kept"
    return "crossed" if inference.exceeds(rate, limit, 1) else "kept"


# ---- saying it ----


def _row(metric: Metric, found: Comparison, name: str) -> list[str]:
    change = found.ratio or found.difference
    return [
        metric.heading,
        cells.shown(found.median_a, metric),
        cells.shown(found.median_b, metric),
        "-" if found.ratio is None else f"{found.ratio.value:.3f}",
        "-" if change is None else _limits(change, 1.0 if found.ratio else metric.scale),
        inference.words(found, name, metric.better),
    ]


def _limits(change: Interval, scale: float) -> str:
    return f"{scale * change.low:.3f} .. {scale * change.high:.3f}"


def findings(
    compared: Compared,
    limit: float | None,
    where: str = "",
    sides: tuple[str, str] = SIDES,
) -> dict[str, Any]:
    """For results; WHERE names the point if there are several, SIDES those that are compared."""
    by_name = metrics.BY_NAME
    rate = compared[PRIMARY]
    a, b = sides
    sentence = f"Rate: {inference.words(rate, b, 1)}."
    if limit is not None:
        sentence += f" The limit of {100 * limit:g} % is {_kept(compared, limit)}."
    return {
        "sentences": [f"{where}: {sentence}" if where else sentence],
        "tables": [
            finding(
                f"{b} against {a}{f', {where}' if where else ''}",
                ["metric", a, b, f"{b}/{a}", "95 % interval", "in words"],
                [_row(by_name[name], found, b) for name, found in compared.items()],
                [_note(rate, a, b)],
            )
        ],
        "comparisons": {
            name: {**asdict(found), "verdict": found.verdict.value}
            for name, found in compared.items()
        },
    }


def _note(rate: Comparison, a: str, b: str) -> str:
    """How many there are, and why a ratio is not the quotient of the medians beside it."""
    text = f"Medians of {rate.count_a} and {rate.count_b} repetitions."
    if not rate.paired:
        return text
    return (
        f"{text} {b}/{a} is the middle (mean of the middle half) of the ratios of the pairs, "
        "which is not quite the quotient of the two medians."
    )


def joined(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Findings at several points as one."""
    return {
        "sentences": [sentence for block in blocks for sentence in block["sentences"]],
        "tables": [table for block in blocks for table in block["tables"]],
        "comparisons": [block["comparisons"] for block in blocks],
    }
