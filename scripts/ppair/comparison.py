"""B against A, metric by metric: which runs are compared, and how that is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from . import inference, metrics, tables
from .failure import usage
from .inference import Comparison, Interval
from .metrics import PRIMARY, Metric
from .results import Results

Samples = dict[str, tuple[list[float | None], list[float | None]]]  # by metric: of A, of B
Compared = dict[str, Comparison]  # by metric


# ---- which runs ----


def samples_of_pairs(results: Results) -> Samples:
    """Repetitions of which both sides are good."""
    a, b = ({run.repetition: run.metrics for run in results.good(point)} for point in (0, 1))
    both = sorted(set(a) & set(b))
    return {
        metric.name: ([a[r][metric.name] for r in both], [b[r][metric.name] for r in both])
        for metric in metrics.METRICS
    }


def common_points(a: Results, b: Results) -> list[tuple[str, Samples]]:
    """Points with the same values on all axes, with their samples."""
    others = {tuple(sorted(point.values.items())): point.id for point in b.plan.points}
    found = []
    for point in a.plan.points:
        other = others.get(tuple(sorted(point.values.items())))
        if other is None:
            continue
        samples = {
            metric.name: (
                [run.metrics[metric.name] for run in a.good(point.id)],
                [run.metrics[metric.name] for run in b.good(other)],
            )
            for metric in metrics.METRICS
        }
        found.append((" ".join(f"{k}={v}" for k, v in point.values.items()), samples))
    return found


# ---- comparing ----


def compare(samples: Samples, paired: bool, min_effect: float) -> Compared:
    """The metrics that both sides have."""
    known = {
        name: (a, b)
        for name, (a, b) in samples.items()
        if any(v is not None for v in a) and any(v is not None for v in b)
    }
    if PRIMARY not in known:
        raise usage("there are no good runs of both sides to compare")
    return inference.compare_all(known, PRIMARY, paired=paired, min_effect=min_effect, seed=0)


def crosses(compared: Compared, limit: float | None) -> bool:
    """Whether B's rate is certainly lower by more than LIMIT, if there is one."""
    return limit is not None and inference.exceeds(compared[PRIMARY], limit, 1)


# ---- saying it ----


def _row(metric: Metric, found: Comparison) -> list[str]:
    change = found.ratio or found.difference
    return [
        metric.heading,
        tables.shown(found.median_a, metric),
        tables.shown(found.median_b, metric),
        "-" if found.ratio is None else f"{found.ratio.value:.3f}",
        "-" if change is None else _limits(change, 1.0 if found.ratio else metric.scale),
        inference.words(found, "B", metric.better),
    ]


def _limits(change: Interval, scale: float) -> str:
    return f"{scale * change.low:.3f} .. {scale * change.high:.3f}"


def findings(compared: Compared, limit: float | None, where: str = "") -> dict[str, Any]:
    """For results; WHERE names the point if there are several."""
    by_name = metrics.BY_NAME
    rate = compared[PRIMARY]
    sentence = f"Rate: {inference.words(rate, 'B', 1)}."
    if limit is not None:
        said = "crossed" if crosses(compared, limit) else "kept"
        sentence += f" The limit of {100 * limit:g} % is {said}."
    return {
        "sentences": [f"{where}: {sentence}" if where else sentence],
        "tables": [
            {
                "title": f"B against A{f', {where}' if where else ''}",
                "headings": ["metric", "A", "B", "B/A", "95 % interval", "in words"],
                "rows": [_row(by_name[name], found) for name, found in compared.items()],
                "notes": [f"Medians of {rate.count_a} and {rate.count_b} repetitions."],
            }
        ],
        "comparisons": {
            name: {**asdict(found), "verdict": found.verdict.value}
            for name, found in compared.items()
        },
    }


def joined(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Findings at several points as one."""
    return {
        "sentences": [sentence for block in blocks for sentence in block["sentences"]],
        "tables": [table for block in blocks for table in block["tables"]],
        "comparisons": [block["comparisons"] for block in blocks],
    }
