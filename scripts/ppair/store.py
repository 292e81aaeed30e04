"""A results directory: writing and reading it. Schema ppair-result/1.

    DIR/manifest.json     plan, argv, machine, status, why
    DIR/runs/p000-r00/    one run: the event file and stderr of each program, and run.json
    DIR/summary.json      aggregates, warnings and findings, when the experiment ends

Files and run folders are written under another name and renamed. Nothing is ever overwritten: a run
that is done again, after a failure or an interruption, has a folder of its own, p000-r00-a1, and
the last attempt counts. scripts/README.md has every member.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from . import clock_error, files, phases
from . import spec as specs
from .advice import Warning
from .axes import Axis
from .events import MISSHAPEN, strict_json
from .failure import Exit, Failure, usage
from .metrics import PRIMARY
from .results import GOOD, Peer, Plan, Plot, Point, Results, Run

SCHEMA = "ppair-result/1"


# ---- writing ----


def write_json(path: Path, value: Any) -> None:
    """Strict JSON; raises Failure if the disk does not take it."""
    files.write(path, f"{json.dumps(value, allow_nan=False, indent=1)}\n".encode("ascii"))


def default_directory(command: str) -> Path:
    """A new name below ppair-results, here."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return Path("ppair-results") / f"{stamp}-{command}-{os.getpid()}"


def create(directory: Path, plan: Plan, argv: Sequence[str], machine: dict[str, Any]) -> Results:
    """A new directory with the plan in it."""
    try:
        directory.mkdir(parents=True)
        (directory / "runs").mkdir()
    except FileExistsError:
        raise usage(f"{directory}: exists; results are never overwritten") from None
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{directory}: {error.strerror}") from None
    results = Results(directory, plan, tuple(argv), machine, time.time_ns())
    save_manifest(results)
    return results


@contextmanager
def locked(results: Results) -> Iterator[None]:
    """Keeps another ppair from writing into the directory; raises Failure if one does."""
    descriptor = os.open(results.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(descriptor, results.directory)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise usage(f"{directory}: another ppair is at work there") from None
    except OSError:
        pass  # a file system without locks


def next_attempt(results: Results, point: int, repetition: int) -> int:
    """How often this run has been tried."""
    tried = [r for r in results.runs if (r.point, r.repetition) == (point, repetition)]
    return tried[-1].attempt + 1 if tried else 0


def record(results: Results, run: Run, scratch: Path) -> None:
    """Takes a run and its folder SCRATCH, which is in the results directory, into the results."""
    write_json(scratch / "run.json", asdict(run))
    try:
        scratch.rename(results.run_folder(run))
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{results.run_folder(run)}: {error.strerror}") from None
    _replace(results.runs, run)


def add_points(results: Results, points: Sequence[Point]) -> None:
    """For experiments that decide as they go."""
    results.plan = replace(results.plan, points=results.plan.points + tuple(points))
    save_manifest(results)


def save_manifest(results: Results) -> None:
    """All but what runs/ holds."""
    plan = asdict(results.plan)
    plan["points"] = [
        {"id": p.id, "values": p.values, "spec": specs.to_json(p.spec)} for p in results.plan.points
    ]
    write_json(
        results.directory / "manifest.json",
        {
            "schema": SCHEMA,
            "plan": plan,
            "argv": list(results.argv),
            "machine": results.machine,
            "created_ns": results.created_ns,
            "status": results.status,
            "why": results.why,
        },
    )


def save_summary(results: Results) -> None:
    """What can be made from the rest."""
    write_json(results.directory / "summary.json", summary(results))


def summary(results: Results) -> dict[str, Any]:
    """Aggregates of every metric, warnings and findings, as JSON has them."""
    names = list(dict.fromkeys(name for run in results.runs for name in run.metrics))
    points = []
    for point in results.plan.points:
        found = {name: results.aggregate(point.id, name) for name in names if name != "limited_by"}
        points.append(
            {
                "id": point.id,
                "values": point.values,
                "command": point.spec.command(),
                "runs": [
                    {
                        "repetition": run.repetition,
                        "status": run.status,
                        "why": run.why,
                        "metrics": run.metrics,
                    }
                    for run in results.of_point(point.id)
                ],
                "metrics": {
                    name: value and {**asdict(value), "spread_percent": value.spread_percent}
                    for name, value in found.items()
                },
            }
        )
    return {
        "schema": SCHEMA,
        "title": results.plan.title,
        "status": results.status,
        "why": results.why,
        "points": points,
        "warnings": [asdict(warning) for warning in results.warnings],
        "findings": results.findings,
    }


# ---- reading ----


@contextmanager
def damage_named(directories: Sequence[str]) -> Iterator[None]:
    """For whoever shows what was read: files that somebody has changed are one line."""
    try:
        yield
    except MISSHAPEN as error:
        why = f"not as it was written: {type(error).__name__}: {error}".split("\n")[0]
        raise Failure(Exit.INTERNAL, f"{', '.join(directories)}: {why}") from error


def load(directory: Path) -> Results:
    """A directory that was written before, complete or not."""
    results = _read(directory / "manifest.json", lambda value: _results(directory, value))
    points = {point.id for point in results.plan.points}
    for folder in sorted((directory / "runs").glob("p*")):
        run = _read(folder / "run.json", _run)
        if run.folder != folder.name or run.point not in points:
            raise Failure(Exit.INTERNAL, f"{folder}: is not a run of this experiment")
        _replace(results.runs, run)
    saved = directory / "summary.json"
    if saved.exists():
        results.warnings, results.findings = _read(saved, _said)
    return results


Made = TypeVar("Made")


def _read(path: Path, make: Callable[[dict[str, Any]], Made]) -> Made:
    """What MAKE makes of the object in a file; raises Failure if it cannot."""
    try:
        value = strict_json(path.read_text(encoding="ascii"))
    except OSError as error:
        raise Failure(Exit.INTERNAL, f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(Exit.INTERNAL, f"{path}: not JSON: {error}") from None
    try:
        if path.name != "run.json" and value["schema"] != SCHEMA:
            raise Failure(Exit.INTERNAL, f"{path}: schema is {value['schema']}, not {SCHEMA}")
        return make(value)
    except MISSHAPEN as error:
        raise Failure(Exit.INTERNAL, f"{path}: not as it was written: {error!r}") from None


def _results(directory: Path, manifest: dict[str, Any]) -> Results:
    return Results(
        directory,
        _plan(manifest["plan"]),
        tuple(manifest["argv"]),
        manifest["machine"],
        manifest["created_ns"],
        manifest["status"],
        manifest["why"],
    )


def _said(summary: dict[str, Any]) -> tuple[list[Warning], dict[str, Any]]:
    warnings = [Warning(**_with_tuples(entry, "points")) for entry in summary["warnings"]]
    return warnings, summary["findings"]


def _with_tuples(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """JSON has lists only."""
    return {**value, **{name: tuple(value[name]) for name in names}}


def _plan(value: dict[str, Any]) -> Plan:
    members: dict[str, Any] = {
        **_with_tuples(value, "metrics"),
        "axes": tuple(Axis(**_with_tuples(axis, "values")) for axis in value["axes"]),
        "points": tuple(
            Point(p["id"], p["values"], specs.from_json(p["spec"])) for p in value["points"]
        ),
        "plots": tuple(Plot(**_with_tuples(plot, "y")) for plot in value["plots"]),
        "order": tuple((point, repetition) for point, repetition in value["order"]),
    }
    return Plan(**members)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _check_run(value: dict[str, Any]) -> None:
    """Raises ValueError for what would be shown as a wrong number, or not at all."""
    metrics, facts = value["metrics"], value["facts"]
    clock_error.of_facts(facts)
    phases.of_facts(facts)
    for name, metric in metrics.items():
        if not (isinstance(metric, str) if name == "limited_by" else _is_number(metric)):
            raise ValueError(f"metrics: {name} is {metric!r}")
        if name.endswith(("_per_s", "_bytes", "_percent")) and metric is not None and metric < 0:
            raise ValueError(f"metrics: {name} is negative")
    if value["status"] == GOOD and facts:
        numbers = [facts[name] for name in ("psend_busy", "precv_busy", "hosts", "cpu_count")]
        cpus = [(str(program), cpu) for program, cpu in facts["cpus"]]
        known = all(n is not None and _is_number(n) for n in numbers)
        if not known or not all(cpu is None or isinstance(cpu, str) for _, cpu in cpus):
            raise ValueError("facts are not as they were written")
        if "limited_by" not in metrics or metrics.get(PRIMARY) is None:
            raise ValueError("a good run without a rate")
    if not all(isinstance(value[name], int) for name in ("point", "repetition", "attempt")):
        raise ValueError("point, repetition and attempt are numbers")


def _run(value: dict[str, Any]) -> Run:
    _check_run(value)
    peers = tuple(Peer(**_with_tuples(peer, "argv")) for peer in value["peers"])
    members: dict[str, Any] = {**value, "peers": peers}
    return Run(**members)


def _replace(runs: list[Run], run: Run) -> None:
    """RUN in the place of earlier attempts."""
    same = [r for r in runs if (r.point, r.repetition) == (run.point, run.repetition)]
    for old in same:
        if old.attempt < run.attempt:
            runs.remove(old)
    if not any(old.attempt > run.attempt for old in same):
        runs.append(run)
