"""The table of rds-stress: its arithmetic on events with known numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sample
from fake_peer import distribution, interval_event, merged, start_event, summary_event
from ppair import measured, page, plots_time, store, tables, tasks_table
from ppair.axes import Axis
from ppair.preset_tasks import TASKS
from ppair.results import Plan, Point, Results, Run
from ppair.spec import Spec

Json = dict[str, Any]

PROCESSORS = 64  # of the fake start events
SPEC = Spec(
    ("--max-unsettled", "8", "--content-size", "1Ki"), ("--credit", "16"), senders=2, receivers=2
)
SIDES = Axis("change", ("before", "after"), "change")


def _psend(
    sent: int, *, call_ns: float | None = 150.0, trip_ns: int = 200, blocked: int = 0, **more: Any
) -> Json:
    """What a summary and an interval have in common; each message has 1 KiB."""
    return {
        "content_bytes": 1024 * sent,
        "call_ns": call_ns,
        "settlement_ns": distribution(sent, trip_ns),
        "credit": {"blocked": blocked},
        **more,
    }


def _precv(received: int, **more: Any) -> Json:
    return {"content_bytes": 1024 * received, **more}


def _cpu(share: float, span_s: float) -> Json:
    used = {"user_s": 0.75 * share * span_s, "system_s": 0.25 * share * span_s}
    return {"cpu": {**used, "span_s": span_s, "percent": 100 * share}}


def _interval(program: str, count: int, begin_s: float, end_s: float, **more: Any) -> Json:
    said = _psend(count) if program == "psend" else _precv(count)
    span = {"start_s": begin_s, "end_s": end_s, **_cpu(0.5, end_s - begin_s)}
    return merged(interval_event(program, count), {**said, **span, **more})


def _summary(program: str, count: int, last_s: float = 1.0, **more: Any) -> Json:
    said = _psend(count) if program == "psend" else _precv(count)
    whole = {"last_s": last_s, "wall_s": last_s, **_cpu(0.5, last_s)}
    return merged(summary_event(program, count), {**said, **whole, **more})


def _results(
    folder: Path, runs: list[tuple[int, int, dict[str, list[Json]]]], spec: Spec = SPEC
) -> Results:
    """RUNS: point, repetition, and the events of each program but for the first."""
    axes = (SIDES,) if any(point for point, *_ in runs) else ()
    values = [{"change": side} for side in SIDES.values] if axes else [{}]
    points = tuple(Point(i, each, spec) for i, each in enumerate(values))
    order = tuple((point, repetition) for point, repetition, _ in runs)
    plan = Plan("sweep", "Tasks", axes, points, 1, 0, TASKS.plots, TASKS.metrics, order)
    results = store.create(folder, plan, ("ppair",), sample.MACHINE)
    for point, repetition, written in runs:
        events = {name: [start_event(name[:5], []), *found] for name, found in written.items()}
        sample.record(results, Run(point, repetition), events)
    return results


# ---- a line ----


def test_a_line_is_made_of_sums(tmp_path: Path) -> None:
    """Two senders of unequal rate; means are weighted by their messages."""
    written = {
        "precv-0": [_interval("precv", 3000, 1, 3), _summary("precv", 3000, 2.0)],
        "precv-1": [_interval("precv", 1000, 1, 3), _summary("precv", 1000, 2.0)],
        "psend-0": [
            _interval("psend", 3000, 1, 3, **_psend(3000, call_ns=100, trip_ns=100, blocked=7)),
            _summary("psend", 3000, 2.0, **_psend(3000, call_ns=100, trip_ns=100, blocked=7)),
        ],
        "psend-1": [
            _interval("psend", 1000, 1, 3, **_psend(1000, call_ns=500, trip_ns=180, blocked=4)),
            _summary("psend", 1000, 2.0, **_psend(1000, call_ns=500, trip_ns=180, blocked=4)),
        ],
    }
    results = _results(tmp_path / "out", [(0, 0, written)])
    (table,) = tasks_table.findings(results, "change")["tables"]
    assert table["headings"][:7] == "tsks,tx/s,rx/s,tx+rx K/s,tx us/c,rtt us,cpu %".split(",")
    # 4000 each way in 2 s; (3 x 100 + 1 x 500) / 4 = 200 ns; (3 x 100 + 180) / 4 = 120 ns
    cpu = 100 * 4 * 0.5 / PROCESSORS
    numbers = ["2", "2000", "2000", "4000.00", "0.20", "0.12", f"{cpu:.2f}", "11"]
    assert table["rows"] == [[*numbers, "2.0 s"], [*numbers, "(average)"]]
    assert table["title"] == "2 tasks, depth 8, requests of 1024 bytes, credit 16"


def test_lines_are_of_seconds_and_the_last_one_is_of_the_whole(tmp_path: Path) -> None:
    """Nothing of the warm-up; a short rest has no line, but is in the average."""
    written = {
        "precv-0": [_summary("precv", 2100, 2.1)],
        "psend-0": [
            _interval("psend", 999, 0.0, 0.1, warmup=True),
            _interval("psend", 1000, 0.1, 1.0, **_psend(1000, blocked=1)),
            _interval("psend", 1000, 1.0, 2.0, **_psend(1000, blocked=0)),
            _interval("psend", 100, 2.0, 2.1, **_psend(100, blocked=2)),
            _summary("psend", 2100, 2.1, **_psend(2100, blocked=3)),
        ],
    }
    results = _results(tmp_path / "out", [(0, 0, written)])
    rows = tasks_table.table(results, results.plan.points[0])["rows"]
    assert [row[-1] for row in rows] == ["0.9 s", "1.9 s", "(average)"]
    assert [row[1] for row in rows] == ["1111", "1000", "1000"]
    assert [row[7] for row in rows] == ["1", "0", "3"]
    # of precv there are no intervals
    assert [row[2] for row in rows] == ["-", "-", "1000"]
    assert [row[3] for row in rows] == ["1111.11", "1000.00", "2000.00"]


def test_tasks_that_have_ended_are_no_longer_counted(tmp_path: Path) -> None:
    seconds = [_interval("psend", 1000, i, i + 1) for i in range(3)]
    written = {
        "precv-0": [_summary("precv", 4000, 3.0)],
        "psend-0": [*seconds, _summary("psend", 3000, 3.0)],
        "psend-1": [seconds[0], _summary("psend", 1000, 1.0)],
    }
    results = _results(tmp_path / "out", [(0, 0, written)])
    rows = tasks_table.table(results, results.plan.points[0])["rows"]
    assert [row[:2] for row in rows] == [["2", "2000"], ["1", "1000"], ["1", "1000"], ["2", "1333"]]


def test_answers_come_before_settlement(tmp_path: Path) -> None:
    """Where psend has asked for them."""
    answers = {"round_trip_ns": distribution(10, 100_000)}
    written = {
        "precv-0": [_summary("precv", 10)],
        "psend-0": [_summary("psend", 10, **answers)],
    }
    results = _results(tmp_path / "out", [(0, 0, written)])
    (row,) = tasks_table.table(results, results.plan.points[0])["rows"]
    assert row[5] == "100.00"
    found = results.runs[0].metrics
    assert found["trip_mean_ns"] == found["trip_p50_ns"] == 100_000
    assert found["settlement_p50_ns"] == 200
    curves = {curve.label: curve.points[-1] for curve in plots_time.distribution_curves(results)}
    assert curves["round trip"] == (10, 100.0)
    assert curves["settlement"] == (10, 0.2)


def test_what_does_not_exist_is_not_zero(tmp_path: Path) -> None:
    """Pre-settled messages have no round trip."""
    none = {"call_ns": None, "settlement_ns": distribution(0), "measured_messages": 0}
    none |= {"first_s": None, "content_bytes": 0}
    written = {
        "precv-0": [_summary("precv", 10)],
        "psend-0": [_summary("psend", 10, **none)],
    }
    results = _results(tmp_path / "out", [(0, 0, written)])
    (row,) = tasks_table.table(results, results.plan.points[0])["rows"]
    assert row[:6] == ["1", "-", "10", "10.00", "-", "-"] and row[7] == "0"


def test_averages_are_of_all_repetitions_together(tmp_path: Path) -> None:
    """3000 in 1 s and 1000 in 3 s are 1000 a second; what is blocked is of one run."""
    runs = [
        (
            0,
            repetition,
            {
                "precv-0": [_summary("precv", count, span_s)],
                "psend-0": [_summary("psend", count, span_s, **_psend(count, blocked=blocked))],
            },
        )
        for repetition, (count, span_s, blocked) in enumerate([(3000, 1.0, 10), (1000, 3.0, 20)])
    ]
    results = _results(tmp_path / "out", runs)
    rows = tasks_table.table(results, results.plan.points[0])["rows"]
    assert [row[-1] for row in rows] == ["run 1", "run 2", "(average)"]
    assert [row[1] for row in rows] == ["3000", "333", "1000"]
    assert [row[7] for row in rows] == ["10", "20", "15"]


def test_metrics_of_a_run_are_those_of_its_line() -> None:
    psend = [_summary("psend", 3000, 2.0), _summary("psend", 1000, 2.0)]
    found = measured.measure(psend, [_summary("precv", 4000, 2.0)], processors=2)
    assert found["sent_per_s"] == 2000
    assert found["host_cpu_percent"] == pytest.approx(100 * 3 * 0.5 / 2)
    assert measured.measure(psend, [_summary("precv", 4000)])["host_cpu_percent"] is None


# ---- before and after ----

BEFORE = {"trip_ns": 4_000_000, "blocked": 1_300_000}
AFTER = {"trip_ns": 2_000_000}


def _two_sides(folder: Path, repetitions: int, left: int = 61, kept: float = 1.0) -> Results:
    """Of a congestion patch: round trip and CPU halved, LEFT blocked, and KEPT of the rate."""
    runs = []
    for repetition in range(repetitions):
        for point, (side, share) in enumerate([(BEFORE, 0.8), ({**AFTER, "blocked": left}, 0.4)]):
            wobble = 1 + 0.01 * ((repetition * 7 + point * 3) % 5 - 2)
            count = int(100_000 * wobble * (kept if point else 1))
            trip_ns = int(side["trip_ns"] * wobble)
            said = _psend(count, trip_ns=trip_ns, blocked=int(side["blocked"] * wobble))
            cpu = _cpu(share * wobble, 1.0)
            written = {
                "precv-0": [_summary("precv", count, **cpu)],
                "psend-0": [_summary("psend", count, **said, **cpu)],
            }
            runs.append((point, repetition, written))
    return _results(folder, runs)


def test_the_table_of_a_congestion_patch(tmp_path: Path) -> None:
    found = tasks_table.findings(_two_sides(tmp_path / "out", 16), "change")
    rate, trip, cpu, blocked = found["sentences"]
    assert rate.startswith("Rate: 100000 msg/s before, ") and "no difference" in rate
    assert trip.startswith("Round trip: 4000 us before, 2000 us after; after is ")
    assert " % lower (" in trip and trip.endswith(", better.")
    assert cpu.startswith("CPU: ") and " % lower (" in cpu and cpu.endswith(", better.")
    assert blocked.startswith("Blocked sends: 1300000 before, 61 after; after is 100.0 % lower")
    before, after, compared = found["tables"]
    assert before["title"].startswith("before: ") and after["title"].startswith("after: ")
    assert len(before["rows"]) == len(after["rows"]) == 17
    assert compared["headings"] == [
        *("metric", "before", "after", "after/before", "95 % interval", "in words")
    ]
    ratios = {row[0]: row[3] for row in compared["rows"]}
    assert float(ratios["cpu %"]) == pytest.approx(0.5, rel=0.05)
    assert float(ratios["rtt mean us"]) == pytest.approx(0.5, rel=0.05)
    assert set(found["comparisons"]) == set(tasks_table.COMPARED)


def test_less_cpu_for_a_lower_rate_is_not_better(tmp_path: Path) -> None:
    found = tasks_table.findings(_two_sides(tmp_path / "out", 16, kept=0.5), "change")
    rate, _, cpu, _ = found["sentences"]
    assert rate.endswith(", worse.") and " % lower (" in cpu and cpu.endswith(" %).")


def test_none_is_not_a_share_of_many(tmp_path: Path) -> None:
    found = tasks_table.findings(_two_sides(tmp_path / "out", 12, left=0), "change")
    assert found["sentences"][3] == "Blocked sends: 1300000 before, 0 after; none is left."


def test_few_repetitions_are_not_judged(tmp_path: Path) -> None:
    """But their numbers are said."""
    found = tasks_table.findings(_two_sides(tmp_path / "out", 2), "change")
    assert len(found["sentences"]) == 4
    assert all("too few repetitions to tell" in sentence for sentence in found["sentences"])
    assert found["sentences"][3].startswith("Blocked sends: 1287000 before, ")


def test_a_side_without_good_runs(tmp_path: Path) -> None:
    results = _two_sides(tmp_path / "out", 1)
    results.runs = [run for run in results.runs if run.point == 0]
    found = tasks_table.findings(results, "change")
    assert found["sentences"] == ["Nothing can be compared: no two runs were good."]
    assert found["tables"][1]["rows"] == [] and "No run was good." in found["tables"][1]["notes"]
    results.runs, results.findings = [], found
    assert "No run was good." in tables.text_report(results)


def test_reports_have_all_of_it(tmp_path: Path) -> None:
    results = _two_sides(tmp_path / "out", 2)
    results.findings = tasks_table.findings(results, "change")
    for shown in (tables.text_report(results), page.render([results])):
        for word in ("tx+rx K/s", "(average)", "after/before", "before: 2 tasks"):
            assert word in shown, word
