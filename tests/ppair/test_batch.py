"""The table of batches: its arithmetic on events with known numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sample
from fake_peer import distribution, merged, start_event, summary_event
from ppair import batch_table, measured, page, plots, store, tables
from ppair.preset_batch import BATCHES
from ppair.results import Plan, Point, Results, Run
from ppair.spec import Spec

Json = dict[str, Any]
SIZE, VARIANT = BATCHES.axes[0].name, BATCHES.axes[1].name


def _batch(size: int, count: int, last_ns: int, ticks: int | None = None) -> Json:
    return {
        "batch": {
            "size": size,
            "first_ns": distribution(count, last_ns // 2),
            "last_ns": distribution(count, last_ns),
            "last_ticks": None if ticks is None else distribution(count, ticks),
            "tsc_per_s": None if ticks is None else 2.5e9,
        }
    }


def _results(folder: Path, found: dict[tuple[int, str], list[Json]], blocked: int = 0) -> Results:
    """By batch and variant: what is in the summaries of the repetitions."""
    points = tuple(
        Point(i, {SIZE: str(size), VARIANT: variant}, Spec())
        for i, (size, variant) in enumerate(found)
    )
    order = tuple((p.id, r) for p in points for r in range(len(list(found.values())[p.id])))
    axes = tuple(
        replace(axis, values=tuple(dict.fromkeys(p.values[axis.name] for p in points)))
        for axis in BATCHES.axes
    )
    plan = Plan("sweep", "Batches", axes, points, 1, 0, BATCHES.plots, BATCHES.metrics, order)
    results = store.create(folder, plan, ("ppair",), sample.MACHINE)
    for point, repetitions in zip(points, found.values()):
        for repetition, more in enumerate(repetitions):
            psend = merged(summary_event("psend", 1000), {**more, "credit": {"blocked": blocked}})
            events = {
                "precv-0": [start_event("precv", []), summary_event("precv", 1000)],
                "psend-0": [start_event("psend", []), psend],
            }
            sample.record(results, Run(point.id, repetition), events)
    return results


def _table(results: Results) -> list[dict[str, str]]:
    (table,) = batch_table.findings(results, SIZE, VARIANT)["tables"]
    return [dict(zip(table["headings"], row)) for row in table["rows"]]


def test_batches_of_all_repetitions_are_put_together(tmp_path: Path) -> None:
    """300 of 100 ns and 100 of 200 ns: p50 100, p99 200; not a mean of two percentiles."""
    both = [_batch(10, 300, 100), _batch(10, 100, 200)]
    (row,) = _table(_results(tmp_path / "out", {(10, "plain"): both}))
    names = ("batch", "batches", "messages", "msg/s", "MB/s", "first p50 ns", "batch p50 ns")
    assert [row[name] for name in names] == ["10", "400", "4000", "1000", "0.100", "50", "100"]
    assert (row["batch p99 ns"], row["batch max ns"], row["ns/msg"]) == ("200", "200", "10")
    assert "/ plain" not in row and "p50 ticks" not in row


def test_variants_stand_beside_each_other(tmp_path: Path) -> None:
    results = _results(
        tmp_path / "out",
        {
            (1, "plain"): [_batch(1, 100, 100)],
            (1, "--tls"): [_batch(1, 100, 150)],
            (100, "plain"): [_batch(100, 100, 200)],
            (100, "--tls"): [_batch(100, 100, 240)],
        },
    )
    assert [row["/ plain"] for row in _table(results)] == ["1.00", "1.50", "1.00", "1.20"]
    found = batch_table.findings(results, SIZE, VARIANT)
    assert found["sentences"] == [
        "plain: a message takes 100 ns in batches of 1, 2 ns in batches of 100.",
        "--tls: a batch of 1 takes 1.50 times as long as in plain, a batch of 100 1.20 times.",
    ]
    assert page.render([results]) and len(plots.pictures(results)) == 2


def test_ticks_where_they_were_asked_for(tmp_path: Path) -> None:
    found = {(1, "plain"): [_batch(1, 10, 100, 250)], (10, "plain"): [_batch(10, 10, 200, 251)]}
    results = _results(tmp_path / "out", found)
    assert [row["p50 ticks"] for row in _table(results)] == ["250", "251"]
    (table,) = batch_table.findings(results, SIZE, VARIANT)["tables"]
    assert table["headings"][-1] == "p50 ticks"
    assert any("2.500 ticks in 1 ns" in note for note in table["notes"])


def test_what_makes_numbers_doubtful_is_said(tmp_path: Path) -> None:
    results = _results(tmp_path / "out", {(10, "plain"): [_batch(10, 9, 100)]}, blocked=3)
    (table,) = batch_table.findings(results, SIZE, VARIANT)["tables"]
    assert any(note.startswith("10 plain: fewer than 10 batches") for note in table["notes"])
    assert any(note.startswith("10 plain: credit ran out") for note in table["notes"])
    results = _results(tmp_path / "more", {(10, "plain"): [_batch(10, 10, 100)]})
    (table,) = batch_table.findings(results, SIZE, VARIANT)["tables"]
    assert len(table["notes"]) == 1


def test_batches_that_were_never_settled(tmp_path: Path) -> None:
    """Or of which psend says nothing."""
    results = _results(tmp_path / "out", {(10, "plain"): [_batch(10, 0, 0)], (1, "plain"): [{}]})
    for row in _table(results):
        assert (row["batches"], row["batch p50 ns"], row["batch p99 ns"]) == ("0", "-", "-")
        assert row["ns/msg"] == row["batch max ns"] == "-"
    assert batch_table.findings(results, SIZE, VARIANT)["sentences"] == ["No batch was settled."]


def test_no_heading_stands_for_two_numbers(tmp_path: Path) -> None:
    """A median of repetitions' percentiles is not that of all batches together."""
    both = [_batch(10, 300, 100), _batch(10, 100, 200)]
    results = _results(tmp_path / "out", {(10, "plain"): both})
    (found,) = batch_table.findings(results, SIZE, VARIANT)["tables"]
    shared = set(found["headings"]) & set(tables.main_table(results).headings)
    assert shared == {"variant", "msg/s"}


def test_points_without_good_runs(tmp_path: Path) -> None:
    results = _results(tmp_path / "out", {(10, "plain"): [_batch(10, 10, 100)]})
    results.runs = []
    (row,) = _table(results)
    assert row["msg/s"] == "-" and row["batches"] == "0"


def test_metrics_of_several_senders() -> None:
    parts = (_batch(10, 300, 100), _batch(10, 100, 200))
    psend = [merged(summary_event("psend", 1000), part) for part in parts]
    found = measured.measure(psend, [summary_event("precv", 2000)])
    assert (found["batches"], found["batch_first_p50_ns"]) == (400, 50)
    assert [found[f"batch_{name}_ns"] for name in ("p50", "p99", "max")] == [100, 200, 200]
    assert found["batch_per_message_ns"] == pytest.approx(10)
    found = measured.measure([summary_event("psend", 1000)], [summary_event("precv", 1000)])
    assert [found[name] for name in found if name.startswith("batch")] == [None] * 7
