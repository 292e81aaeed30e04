"""ppair with the real psend and precv: what it runs, prints and keeps. Counts, never speeds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import launch
import pytest
from launch import Launcher, Tap
from ppair import metrics, store
from ppair import results as outcomes
from ppair.presets import PRESETS
from ppair.results import Results, Run
from ppair.units import number

SHORT = ("--duration", "80ms", "--warmup", "20ms", "--repeat", "1")


def assert_done(ended: launch.Ended, directory: str) -> None:
    """Without a word but where the results are."""
    assert ended.code == 0, ended
    assert ended.lines == [f"results: {directory}"]


def assert_accounts(results: Results, run: Run) -> None:
    """All that was sent has been received and settled."""
    sent, received = 0, 0
    for peer in run.peers:
        counts = launch.only(launch.events_of(results, run.folder, peer.name), "summary")[
            "messages"
        ]
        sent += counts.get("sent", 0)
        received += counts.get("received", 0)
        assert counts.get("sent", 0) == (counts.get("accepted") or 0)
    assert sent == received > 0


def options(results: Results, run: Run, name: str) -> launch.Json:
    """The effective ones of one of its programs."""
    return dict(launch.only(launch.events_of(results, run.folder, name), "start")["options"])


# ---- run ----


def test_run(ppair: Launcher) -> None:
    """A sentence, a table with every repetition; all is accounted for."""
    ended = ppair.run("run", *SHORT, "--repeat", "3", "--out", "out")
    assert_done(ended, "out")
    assert ended.stdout.isascii() and "\x1b" not in ended.stdout
    first_words = [line.split()[0] for line in ended.stdout.splitlines() if line]
    expected = ["1", "2", "3", "median", "mean", "stddev", "spread"]
    assert [word for word in first_words if word in expected] == expected
    assert "messages/s (median of 3 runs)" in ended.stdout.splitlines()[0]
    results = ppair.results("out")
    assert [run.repetition for run in results.runs] == [0, 1, 2]
    for run in results.runs:
        assert run.status == outcomes.GOOD
        assert_accounts(results, run)


def test_json(ppair: Launcher) -> None:
    """The summary, as it is in the directory."""
    ended = ppair.run("run", *SHORT, "--repeat", "2", "--out", "out", "--json")
    assert_done(ended, "out")
    saved = (ppair.folder / "out" / "summary.json").read_text(encoding="ascii")
    assert ended.json == json.loads(saved)
    (point,) = ended.json["points"]
    rates = [run["metrics"]["messages_per_s"] for run in point["runs"]]
    assert len(rates) == 2 and point["metrics"]["messages_per_s"]["values"] == rates
    assert point["metrics"]["messages_per_s"]["mean"] == pytest.approx(sum(rates) / 2)


def test_several_of_each(ppair: Launcher) -> None:
    """Sender i goes to receiver i mod M."""
    words = ["--senders", "3", "--receivers", "2", "-m", "500", "--repeat", "1", "--out", "out"]
    assert_done(ppair.run("run", *words), "out")
    results = ppair.results("out")
    (run,) = results.runs
    assert [p.name for p in run.peers] == ["precv-0", "precv-1", "psend-0", "psend-1", "psend-2"]
    assert_accounts(results, run)
    received = [
        launch.only(launch.events_of(results, run.folder, name), "summary")["messages"]["received"]
        for name in ("precv-0", "precv-1")
    ]
    assert received == [1000, 500]


def test_options_reach_their_programs(ppair: Launcher) -> None:
    """Those that only one has, those for one alone, and those of each as they are."""
    words = [
        "--credit",
        "17",
        "--content-size=33",
        "--precv.max-frame",
        "4Ki",
        "--percentiles=50,75",
    ]
    words += ["--psend", "--priority 3 --link-name 'a b'", "--precv", "--ack-frequency 2"]
    words += [
        "--psend.interval",
        "5s",
        "--first-sequence",
        "7",
        "-m20",
        "--repeat",
        "1",
        "--out",
        "out",
    ]
    assert_done(ppair.run("run", *words), "out")
    results = ppair.results("out")
    psend = options(results, results.runs[0], "psend-0")
    precv = options(results, results.runs[0], "precv-0")
    assert precv["credit"] == 17 and precv["max_frame_bytes"] == 4096
    assert precv["ack_frequency"] == 2 and precv["interval_ns"] == 10**9
    assert psend["content_size_bytes"] == 33 and psend["max_frame_bytes"] == 16 << 20
    assert psend["priority"] == 3 and psend["link_name"] == "a b"
    assert psend["interval_ns"] == 5 * 10**9 and psend["messages"] == 20
    assert psend["first_sequence"] == precv["first_sequence"] == 7
    assert psend["percentiles"] == precv["percentiles"] == "50,75"
    assert psend["clock"] == precv["clock"] == "monotonic"


@pytest.mark.parametrize(
    "words", [["--no-such"], ["--credit"], ["--repeat", "0"], ["--listen", "x"], ["--credit", "0"]]
)
def test_refused(ppair: Launcher, words: list[str]) -> None:
    """In one line that names it, before anything is made; --credit 0 is for precv to refuse."""
    ended = ppair.run("run", "-m", "10", "--repeat", "1", "--out", "out", *words)
    assert ended.code == 64, ended
    assert not ended.stdout and len(ended.lines) == 1 and words[0] in ended.stderr
    assert words == ["--credit", "0"] or not (ppair.folder / "out").exists()


def test_library_path(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """Both programs take their libraries from there."""
    found = subprocess.run(
        ["ldd", launch.BIN / "psend"], capture_output=True, text=True, check=True
    ).stdout
    library = next(Path(line.split()[2]) for line in found.splitlines() if "libqpid-proton" in line)
    folder = ppair.folder / "proton"
    folder.mkdir()
    shutil.copy(library, folder / library.name)
    words = ["--library-path", str(folder), "--duration", "1min", "--repeat", "1", "--out", "out"]
    process = ppair.start("run", *launch.tapped(heard), *words)
    for tap in heard.values():
        tap.wait_for("interval")
        maps = Path(f"/proc/{tap.pid}/maps").read_text(encoding="utf-8")
        used = {line.split()[-1] for line in maps.splitlines() if "libqpid-proton" in line}
        assert used == {str(folder / library.name)}
    process.send_signal(signal.SIGINT)
    assert launch.finish(process).code == 130


# ---- results ----


def test_directory(ppair: Launcher) -> None:
    """Has what is documented, and nothing else; nothing in it is overwritten."""
    words = ["run", "--senders", "2", *SHORT, "--repeat", "2", "--out", "deep/out"]
    assert_done(ppair.run(*words), "deep/out")
    root = ppair.folder / "deep" / "out"
    peers = ("precv-0", "psend-0", "psend-1")
    expected = {"manifest.json", "summary.json"}
    for run in ("p000-r00", "p000-r01"):
        expected |= {f"runs/{run}/{peer}.{end}" for peer in peers for end in ("jsonl", "stderr")}
        expected.add(f"runs/{run}/run.json")
    before = {path: path.stat() for path in root.rglob("*") if path.is_file()}
    assert {str(path.relative_to(root)) for path in before} == expected
    ended = ppair.run(*words)
    assert ended.code == 64 and not ended.stdout
    assert ended.lines == ["ppair: deep/out: exists; results are never overwritten"]
    assert {path: path.stat() for path in root.rglob("*") if path.is_file()} == before


def test_load_takes_all_of_it(ppair: Launcher) -> None:
    """Written again, it is the same."""
    words = ["sweep", "--credit", "10,100", "-m", "300", "--repeat", "2", "--out", "out"]
    assert_done(ppair.run(*words), "out")
    results = ppair.results("out")
    assert len(results.runs) == 4 and not results.left() and results.status == outcomes.COMPLETE
    saved = {path: path.read_bytes() for path in (ppair.folder / "out").glob("*.json")}
    for path in saved:
        path.unlink()
    store.save_manifest(results)
    store.save_summary(results)
    assert {path: path.read_bytes() for path in (ppair.folder / "out").glob("*.json")} == saved


def test_two_at_once(ppair: Launcher) -> None:
    """Do not disturb each other; each chooses a directory of its own."""
    both = [ppair.start("run", *SHORT, "--repeat", "2") for _ in range(2)]
    ended = [launch.finish(process) for process in both]
    assert [e.code for e in ended] == [0, 0], ended
    directories = {e.stderr.removeprefix("results: ").strip() for e in ended}
    made = {f"ppair-results/{p.name}" for p in (ppair.folder / "ppair-results").iterdir()}
    assert len(directories) == 2 and directories == made
    for directory in directories:
        results = ppair.results(directory)
        assert len(results.runs) == 2
        for run in results.runs:
            assert_accounts(results, run)


# ---- sweep ----


def test_sweep_of_two_options(ppair: Launcher) -> None:
    """A grid; repetitions interleaved, in an order that the seed gives."""
    words = ["--credit", "10,100", "--content-size", "10,1k", "-m", "300", "--repeat", "2"]
    assert_done(ppair.run("sweep", *words, "--seed", "7", "--out", "out"), "out")
    results = ppair.results("out")
    grid = [p.values for p in results.plan.points]
    assert grid == [{"credit": c, "content-size": s} for c in ("10", "100") for s in ("10", "1k")]
    for run in results.runs:
        values = grid[run.point]
        assert options(results, run, "precv-0")["credit"] == int(values["credit"])
        size = options(results, run, "psend-0")["content_size_bytes"]
        assert size == {"10": 10, "1k": 1000}[values["content-size"]]
        assert_accounts(results, run)
    done = [(r.point, r.repetition) for r in sorted(results.runs, key=lambda run: run.started_ns)]
    assert done == list(results.plan.order)
    assert [repetition for _, repetition in done] == [0] * 4 + [1] * 4
    assert sorted(done) == [(p, r) for p in range(4) for r in range(2)]
    assert results.plan.seed == 7


def test_resume(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """Does what is left, and what was interrupted; what was done is not touched."""
    words = ["sweep", "--credit", "10,20,30", "--duration", "200ms", "--repeat", "2"]
    words += launch.tapped(heard)
    process = ppair.start(*words, "--out", "out")
    heard["psend"].wait_for("start", 2)
    process.send_signal(signal.SIGINT)
    assert launch.finish(process).code == 130
    before = ppair.results("out")
    assert before.status == outcomes.INTERRUPTED
    statuses = Counter(run.status for run in before.runs)
    assert statuses[outcomes.GOOD] >= 1 and statuses[outcomes.INTERRUPTED] == 1
    kept = {run.folder: run for run in before.runs}

    assert_done(ppair.run(*words, "--resume", "out"), "out")
    after = ppair.results("out")
    assert after.status == outcomes.COMPLETE and not after.left()
    assert after.plan.seed == before.plan.seed
    assert {run.status for run in after.runs} == {outcomes.GOOD} and len(after.runs) == 6
    for run in kept.values():
        assert after.run_folder(run).is_dir()
        again = next(
            r for r in after.runs if (r.point, r.repetition) == (run.point, run.repetition)
        )
        assert again.attempt == (0 if run.status == outcomes.GOOD else 1)
        assert (again == run) == (run.status == outcomes.GOOD)


def test_resume_of_another_command(ppair: Launcher) -> None:
    """Is refused."""
    assert_done(ppair.run("sweep", "--credit", "10,20", *SHORT, "--out", "out"), "out")
    ended = ppair.run("sweep", "--credit", "10,30", *SHORT, "--resume", "out")
    assert ended.code == 64 and "of another command" in ended.stderr
    assert ppair.run("sweep", "--credit", "1,2", "--resume", "none").code == 1


# ---- presets ----

AS_OPTIONS = {  # axes that are options by themselves: program, member of its options
    "content-size": ("psend-0", "content_size_bytes"),
    "credit": ("precv-0", "credit"),
    "max-frame": ("precv-0", "max_frame_bytes"),
    "session-window": ("precv-0", "session_window_bytes"),
    "low": ("precv-0", "credit_low"),
    "grant": ("precv-0", "credit_add"),
}


MORE = {  # of parameters, so that there are several points, and not too many
    "tasks": ("--before", "--credit 2", "--after", "--credit 100", "-d", "10"),
    "batch": ("--batches", "1,10,1000"),
}


@pytest.mark.parametrize("name", PRESETS)
def test_preset(ppair: Launcher, name: str) -> None:
    """All its points are good, and each is a line of the table; its plots show what there is."""
    if name in ("tls", "batch") and not launch.speaks_tls():
        pytest.skip("psend does not speak TLS")
    words = ["--preset", name, "--repeat", "1", "--duration", "30ms", "--warmup", "0"]
    ended = ppair.run("sweep", *words, *MORE.get(name, ()), "--out", "out")
    assert_done(ended, "out")
    results = ppair.results("out")
    points = results.plan.points
    assert [run.status for run in results.runs] == [outcomes.GOOD] * len(points)
    first_cells = {next(iter(point.values.values())) for point in points}
    _, _, table = ended.stdout.rpartition(f"\n{results.plan.title}\n")
    lines = [line.strip() for line in table.splitlines()]
    rows = [line for line in lines if line.startswith(tuple(f"{cell}  " for cell in first_cells))]
    assert len(rows) == len(points) > 1
    assert_shows_what_there_is(results)
    assert_varies_what_it_says(results)


def test_tasks(ppair: Launcher) -> None:
    """The table of rds-stress, a line a second; report prints it as well."""
    words = ["-t", "2", "-d8", "-q", "1k", "-T", "2.2s", "--tasks=2"]
    ended = ppair.run("sweep", "--preset", "tasks", *words, "--out", "out")
    assert_done(ended, "out")
    results = ppair.results("out")
    (run,) = results.runs
    for index in range(2):
        found = options(results, run, f"psend-{index}")
        known = [found[name] for name in ("max_unsettled", "content_size_bytes", "duration_ns")]
        assert known == [8, 1000, 2_200_000_000]
    (table,) = results.findings["tables"]
    assert table["headings"] == "tsks,tx/s,rx/s,tx+rx K/s,tx us/c,rtt us,cpu %,blocked,".split(",")
    *lines, average = table["rows"]
    assert len(lines) >= 2 and average[-1] == "(average)"
    summaries = [
        launch.only(launch.events_of(results, run.folder, f"psend-{index}"), "summary")
        for index in range(2)
    ]
    assert average[0] == "2" and int(average[7]) == sum(s["credit"]["blocked"] for s in summaries)
    for row in (*lines, average):
        tx, rx, kibibytes, call, trip, cpu = map(float, row[1:7])
        assert tx == pytest.approx(rx, rel=0.5) and kibibytes > 0
        assert call > 0 and trip > 0 and 0 < cpu < 110
    trips = [(s["settlement_ns"]["count"], s["settlement_ns"]["mean"]) for s in summaries]
    mean_us = sum(n * mean for n, mean in trips) / sum(n for n, _ in trips) / 1e3
    assert float(average[5]) == pytest.approx(mean_us, abs=0.01)
    report = ppair.run("report", "out")
    first = ended.stdout.partition("\n\n")[2].partition("\n\n")[0]
    assert report.code == 0 and first in report.stdout and "(average)" in first


def test_batch(ppair: Launcher) -> None:
    """Batches are whole; with and without an option; bound to processors, where there are two."""
    words = ["--batches", "1,100", "--with", "--content-size 1k", "--duration", "200ms"]
    ended = ppair.run("sweep", "--preset", "batch", *words, "--repeat", "2", "--out", "out")
    assert_done(ended, "out")
    results = ppair.results("out")
    (table,) = results.findings["tables"]
    cpus = os.sched_getaffinity(0)
    pinned = ["pinned"] if len(cpus) > 1 else []
    variants = ["plain", "--content-size 1k", *pinned]
    assert [row[:2] for row in table["rows"]] == [[n, v] for n in ("1", "100") for v in variants]
    assert "p50 ticks" not in table["headings"]
    for row in table["rows"]:
        cells = dict(zip(table["headings"], row))
        assert int(cells["messages"]) == int(cells["batch"]) * int(cells["batches"]) > 0
        names = ("first p50 ns", "batch p50 ns", "batch p99 ns", "batch max ns")
        first, half, p99, most = (int(cells[name]) for name in names)
        assert 0 < first <= half <= p99 <= most
    for run in results.runs:
        values = results.plan.points[run.point].values
        psend, precv = (options(results, run, name) for name in ("psend-0", "precv-0"))
        assert psend["content_size_bytes"] == (1000 if values["variant"].startswith("-") else 100)
        assert psend["batch"] == psend["max_unsettled"] == int(values["batch"])
        if values["variant"] == "pinned":
            assert {psend["cpu"], precv["cpu"]} == {str(n) for n in sorted(cpus)[:2]}
        else:
            assert psend["cpu"] is precv["cpu"] is None
        assert run.metrics["blocked"] == 0
    report = ppair.run("report", "out")
    assert report.code == 0 and "By batch" in report.stdout


def assert_shows_what_there_is(results: Results) -> None:
    """Axes and metrics of plots and table."""
    axes = {axis.name: axis for axis in results.plan.axes}
    for point in results.plan.points:
        assert point.values.keys() == axes.keys()
        assert all(value in axes[axis].values for axis, value in point.values.items())
    for plot in results.plan.plots:
        assert plot.x in axes and (plot.series is None or plot.series in axes)
        assert set(plot.y) <= metrics.BY_NAME.keys()
        assert plot.kind == "line" or len(plot.y) == 1
    assert results.plan.plots and set(results.plan.metrics) <= metrics.BY_NAME.keys()


def assert_varies_what_it_says(results: Results) -> None:
    """An axis with the name of an option is that option, as the program has understood it."""
    for run in results.runs:
        for axis, value in results.plan.points[run.point].values.items():
            if axis in AS_OPTIONS:
                peer, member = AS_OPTIONS[axis]
                assert options(results, run, peer)[member] == number(value)


def test_unknown_preset(ppair: Launcher) -> None:
    """Says which there are."""
    ended = ppair.run("sweep", "--preset", "none")
    assert ended.code == 64 and all(name in ended.stderr for name in PRESETS)
