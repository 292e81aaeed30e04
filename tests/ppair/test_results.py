"""Results directories: what is written is what is read, in whole files, and never overwritten."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ppair import store
from ppair import results as outcomes
from ppair.advice import Warning
from ppair.axes import Axis
from ppair.failure import Exit, Failure
from ppair.results import Peer, Plan, Plot, Point, Results, Run
from ppair.spec import Spec

PLAN = Plan(
    command="sweep",
    title="Credit",
    axes=(Axis("credit", ("10", "20"), "credit, messages", log=True),),
    points=(
        Point(0, {"credit": "10"}, Spec(precv=("--credit", "10"), bin="/opt/bin")),
        Point(1, {"credit": "20"}, Spec(precv=("--credit", "20"), psend_hosts=("a", "b"))),
    ),
    repetitions=2,
    seed=7,
    plots=(Plot("Rate", "credit", ("messages_per_s",), flight_bytes=65536, kind="heat"),),
    metrics=("messages_per_s",),
    order=((1, 0), (0, 0), (0, 1), (1, 1)),
)
PEER = Peer("psend-0", None, ("/opt/bin/psend", "-f", "json"), 0, 'it said "\\u00e9"')
MACHINE = {"host": "bench", "cpu_count": 4, "governor": None}


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Results:
    return store.create(tmp_path / "out", PLAN, ("ppair", "sweep"), MACHINE)


def _run(point: int = 0, repetition: int = 0, attempt: int = 0, **more: Any) -> Run:
    given = {"status": outcomes.GOOD, "metrics": {"messages_per_s": 5.0, "limited_by": "credit"}}
    return Run(point, repetition, attempt, peers=(PEER,), **{**given, **more})


def _record(results: Results, run: Run) -> None:
    scratch = results.directory / "runs" / f".{run.folder}"
    scratch.mkdir()
    (scratch / "psend-0.jsonl").write_text("{}\n")
    store.record(results, run, scratch)


def _refused(code: int, call: Any, *arguments: Any) -> str:
    with pytest.raises(Failure) as caught:
        call(*arguments)
    assert caught.value.code == code
    return str(caught.value)


# ---- written and read ----


def test_what_is_written_is_what_is_read(results: Results) -> None:
    known = {"psend_busy": 0.5, "precv_busy": 1, "hosts": 1, "cpu_count": 2}
    _record(results, _run(1, 0, steal_percent=0.5, facts={**known, "cpus": [["psend", None]]}))
    _record(results, _run(0, 0, status=outcomes.FAILED, why="x", exit_code=4, metrics={}))
    results.status, results.why = outcomes.INTERRUPTED, "interrupted by SIGINT"
    results.warnings = [Warning("spread", "seen", "advice", (0, 1))]
    results.findings = {"sentences": ["40 credits"], "b_us": 1.5}
    store.save_manifest(results)
    store.save_summary(results)
    again = store.load(results.directory)
    assert replace(again, runs=[]) == replace(results, runs=[])
    assert sorted(again.runs, key=lambda r: r.point) == sorted(results.runs, key=lambda r: r.point)


def test_files_of_a_run_move_with_it(results: Results) -> None:
    run = _run(1, 1)
    _record(results, run)
    folder = results.run_folder(run)
    assert sorted(path.name for path in folder.iterdir()) == ["psend-0.jsonl", "run.json"]
    assert [path.name for path in (results.directory / "runs").iterdir()] == ["p001-r01"]


def test_the_manifest_is_there_before_the_first_run(results: Results) -> None:
    again = store.load(results.directory)
    assert (again.status, again.runs, again.plan) == (outcomes.RUNNING, [], PLAN)


def test_the_summary_can_be_rebuilt(results: Results) -> None:
    _record(results, _run())
    store.save_summary(results)
    written = json.loads((results.directory / "summary.json").read_text())
    assert json.loads(json.dumps(store.summary(store.load(results.directory)))) == written


def test_results_without_a_summary(results: Results) -> None:
    """Of a ppair that was killed."""
    _record(results, _run())
    again = store.load(results.directory)
    assert len(again.runs) == 1 and again.warnings == [] and again.findings == {}


def test_points_can_be_added(results: Results) -> None:
    store.add_points(results, [Point(2, {"credit": "30"}, Spec())])
    store.save_manifest(results)
    assert [point.id for point in store.load(results.directory).plan.points] == [0, 1, 2]


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (Run(0, 0), "p000-r00"),
        (Run(12, 3), "p012-r03"),
        (Run(1234, 123, 2), "p1234-r123-a2"),
    ],
)
def test_folders_are_named(run: Run, name: str) -> None:
    assert run.folder == name


# ---- attempts ----


def test_the_last_attempt_counts(results: Results) -> None:
    for attempt, status in enumerate((outcomes.FAILED, outcomes.INTERRUPTED, outcomes.GOOD)):
        assert store.next_attempt(results, 0, 0) == attempt
        _record(results, _run(attempt=attempt, status=status))
    assert [(run.attempt, run.status) for run in results.runs] == [(2, outcomes.GOOD)]
    again = store.load(results.directory)
    assert again.runs == results.runs and store.next_attempt(again, 0, 0) == 3
    assert len(list((results.directory / "runs").iterdir())) == 3


def test_more_than_ten_attempts(results: Results) -> None:
    """Their folders are not in order by name."""
    for attempt in range(12):
        _record(results, _run(attempt=attempt, status=outcomes.FAILED))
    assert [run.attempt for run in store.load(results.directory).runs] == [11]


def test_what_is_left(results: Results) -> None:
    assert results.left() == list(PLAN.order)
    _record(results, _run(0, 0))
    _record(results, _run(1, 0, status=outcomes.FAILED))
    _record(results, _run(0, 1, status=outcomes.INTERRUPTED))
    assert results.left() == [(1, 0), (0, 1), (1, 1)]


def test_nothing_is_overwritten(results: Results) -> None:
    _record(results, _run())
    scratch = results.directory / "runs" / ".again"
    scratch.mkdir()
    why = _refused(Exit.INTERNAL, store.record, results, _run(), scratch)
    assert why.endswith("runs/p000-r00: Directory not empty")
    for kind in ("directory", "file"):
        path = results.directory.parent / kind
        path.mkdir() if kind == "directory" else path.write_text("")
        why = _refused(Exit.USAGE, store.create, path, PLAN, (), {})
        assert why == f"{path}: exists; results are never overwritten"


# ---- the disk does not take it ----


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    store.write_json(path, {"a": 1})
    temporary = tmp_path / ".x.json.tmp"
    temporary.symlink_to("/dev/full")
    why = _refused(Exit.INTERNAL, store.write_json, path, {"a": [2] * 10_000})
    assert why == f"{path}: No space left on device"
    assert json.loads(path.read_text()) == {"a": 1}
    assert not temporary.is_symlink()


def test_a_run_that_cannot_be_recorded(results: Results) -> None:
    scratch = results.directory / "runs" / ".p000-r00"
    scratch.mkdir()
    (scratch / ".run.json.tmp").symlink_to("/dev/full")
    why = _refused(Exit.INTERNAL, store.record, results, _run(), scratch)
    assert why.endswith(".p000-r00/run.json: No space left on device")
    assert results.runs == [] and store.load(results.directory).runs == []


def test_a_manifest_that_cannot_be_written(results: Results) -> None:
    before = (results.directory / "manifest.json").read_bytes()
    (results.directory / ".manifest.json.tmp").symlink_to("/dev/full")
    _refused(Exit.INTERNAL, store.save_manifest, results)
    assert (results.directory / "manifest.json").read_bytes() == before


def test_json_is_strict(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        store.write_json(tmp_path / "x.json", {"a": math.nan})
    store.write_json(tmp_path / "x.json", {"a": "\u00e9"})
    assert (tmp_path / "x.json").read_bytes().isascii()


# ---- what cannot be read ----


def _spoil(path: Path, change: Any) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.pop("plan"),
        lambda v: v.pop("schema"),
        lambda v: v.pop("argv"),
        lambda v: v.update(argv=5),
        lambda v: v.update(plan=[]),
        lambda v: v["plan"].update(later=1),
        lambda v: v["plan"].pop("title"),
        lambda v: v["plan"].update(order=[1]),
        lambda v: v["plan"]["points"][0].pop("spec"),
        lambda v: v["plan"]["points"][0]["spec"].update(what=1),
        lambda v: v["plan"]["axes"].append(None),
    ],
)
def test_a_manifest_that_is_not_as_it_was_written(results: Results, change: Any) -> None:
    path = results.directory / "manifest.json"
    _spoil(path, change)
    why = _refused(Exit.INTERNAL, store.load, results.directory)
    assert why.startswith(f"{path}: not as it was written")


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.pop("point"),
        lambda v: v.pop("peers"),
        lambda v: v["peers"][0].pop("argv"),
        lambda v: v.update(peers=None),
        lambda v: v.update(unknown=1),
        lambda v: v["facts"].update(clock_error={"bound_ns": 1}),
    ],
)
def test_a_run_that_is_not_as_it_was_written(results: Results, change: Any) -> None:
    _record(results, _run())
    path = results.directory / "runs" / "p000-r00" / "run.json"
    _spoil(path, change)
    why = _refused(Exit.INTERNAL, store.load, results.directory)
    assert why.startswith(f"{path}: not as it was written")


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.pop("warnings"),
        lambda v: v.pop("findings"),
        lambda v: v.update(warnings=[{"code": "spread"}]),
        lambda v: v.update(warnings=5),
    ],
)
def test_a_summary_that_is_not_as_it_was_written(results: Results, change: Any) -> None:
    store.save_summary(results)
    path = results.directory / "summary.json"
    _spoil(path, change)
    why = _refused(Exit.INTERNAL, store.load, results.directory)
    assert why.startswith(f"{path}: not as it was written")


@pytest.mark.parametrize(
    "text", ["", "{", "[]x", '{"a": NaN}', '{"a": 1, "a": 2}', "\u00e9", "[" * 100_000]
)
def test_what_is_not_json(results: Results, text: str) -> None:
    path = results.directory / "manifest.json"
    path.write_text(text, encoding="utf-8")
    assert _refused(Exit.INTERNAL, store.load, results.directory).startswith(f"{path}: not JSON: ")


@pytest.mark.parametrize("text", ["[]", "5", "null", '"x"'])
def test_what_is_no_object(results: Results, text: str) -> None:
    path = results.directory / "manifest.json"
    path.write_text(text)
    why = _refused(Exit.INTERNAL, store.load, results.directory)
    assert why.startswith(f"{path}: not as it was written")


def test_another_schema(results: Results) -> None:
    path = results.directory / "manifest.json"
    _spoil(path, lambda v: v.update(schema="ppair-result/9"))
    why = _refused(Exit.INTERNAL, store.load, results.directory)
    assert why == f"{path}: schema is ppair-result/9, not ppair-result/1"


def test_no_results_there(tmp_path: Path) -> None:
    why = _refused(Exit.INTERNAL, store.load, tmp_path)
    assert why == f"{tmp_path}/manifest.json: No such file or directory"


def test_folders_of_runs_that_were_not_finished_are_left_out(results: Results) -> None:
    (results.directory / "runs" / ".p000-r00").mkdir()
    assert store.load(results.directory).runs == []


# ---- aggregates ----


def test_aggregate() -> None:
    found = outcomes.aggregate([10, None, 30.0, 20])
    assert found and found.values == (10.0, 30.0, 20.0)
    assert (found.mean, found.median) == (20, 20)
    assert found.stddev == statistics.stdev([10, 30, 20])
    assert found.spread_percent == pytest.approx(50)


def test_aggregate_of_one_and_of_none() -> None:
    one = outcomes.aggregate([7])
    assert one and (one.stddev, one.spread_percent) == (None, None)
    assert outcomes.aggregate([None, None]) is None and outcomes.aggregate([]) is None


def test_aggregate_of_zeros_has_no_spread() -> None:
    zeros = outcomes.aggregate([0, 0])
    assert zeros and zeros.spread_percent is None


def test_aggregates_are_of_good_runs_alone(results: Results) -> None:
    _record(results, _run(0, 0, metrics={"messages_per_s": 10.0}))
    _record(results, _run(0, 1, metrics={"messages_per_s": 99.0}, status=outcomes.INTERRUPTED))
    _record(results, _run(1, 0, metrics={"messages_per_s": 50.0}))
    found = results.aggregate(0, "messages_per_s")
    assert found and found.values == (10.0,)
    assert results.aggregate(0, "no_such_metric") is None


def test_runs_of_a_point_are_in_order(results: Results) -> None:
    for repetition in (1, 0):
        _record(results, _run(0, repetition))
    assert [run.repetition for run in results.of_point(0)] == [0, 1]


# ---- two at once ----


def test_a_directory_is_for_one_at_a_time(results: Results) -> None:
    with store.locked(results):
        why = _refused(Exit.USAGE, lambda: store.locked(results).__enter__())
        assert why == f"{results.directory}: another ppair is at work there"
    with store.locked(results):
        pass


def test_default_directories_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    a = store.default_directory("run")
    monkeypatch.setattr(store.os, "getpid", lambda: 1)
    assert a != store.default_directory("run") and a.parent == Path("ppair-results")
