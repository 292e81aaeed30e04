"""Experiments as processes: order, interruption, resumption, full disks, two at a time."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_peer import WELL, told
from ppair import cli, experiment, peer as peers, store
from ppair import results as outcomes
from ppair.results import Results, Run

Fakes = Callable[..., Path]
Steps = list[Any]

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FAR_S = 30.0
HANGING = ["start", "ready", "hang"]
SWEEP = ("sweep", "--precv.credit", "10,20", "--repeat", "2")  # four runs
MAIN = """
import sys
from pathlib import Path
from ppair import cli, peer
patience_s = float(sys.argv[1])
peer.LADDER = peer.SHORT_LADDER = tuple((number, patience_s) for number, _ in peer.LADDER)
sys.exit(cli.main(sys.argv[3:], Path(sys.argv[2])))
"""


@dataclass
class Ppair:
    """Runs ppair with the programs in `bin`, in a folder of its own, which is the current one."""

    folder: Path
    bin: Path
    capfd: pytest.CaptureFixture[str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *words: str, patience_s: float = 0.5, **how: Any) -> subprocess.Popen[str]:
        """As a process, which gives its programs so long at each rung of the ladder."""
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **how}
        process = subprocess.Popen(
            ["/usr/bin/python3", "-c", MAIN, str(patience_s), str(self.bin), *words],
            env={**os.environ, "PYTHONPATH": str(SCRIPTS), "PYTHONDONTWRITEBYTECODE": "1"},
            stderr=subprocess.PIPE,
            text=True,
            **given,
        )
        self.started.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str, str]:
        """Here. Its exit code, standard output and standard error."""
        self.capfd.readouterr()
        code = cli.main(words, self.bin)
        return int(code), *self.capfd.readouterr()

    def results(self, name: str = "out") -> Results:
        """What is in a directory."""
        return store.load(self.folder / name)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Waits for its end."""
    out, err = process.communicate(timeout=FAR_S)
    return process.returncode, out or "", err


@pytest.fixture(name="ppair")
def _ppair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Ppair]:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    found = Ppair(folder, tmp_path / "bin", capfd)
    yield found
    for process in found.started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=FAR_S)


class Fifo:
    """Where a fake tells that it has come to some step."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self.descriptor = os.open(path, os.O_RDWR)  # as a writer too: no end of file

    def wait(self) -> None:
        """Until it tells."""
        assert select.select([self.descriptor], [], [], FAR_S)[0], "nobody came"
        assert os.read(self.descriptor, 1) == b"."


@pytest.fixture(name="fifo")
def _fifo(tmp_path: Path) -> Iterator[Fifo]:
    fifo = Fifo(tmp_path / "fifo")
    yield fifo
    os.close(fifo.descriptor)


def _hanging_third(fifo: Fifo) -> list[Steps]:
    """Senders of which the third tells when it has sent, and hangs."""
    return [WELL, WELL, ["start", "ready", "talk", ["tell", fifo.path], "hang"], WELL]


def _wait_until_gone(pids: list[int]) -> None:
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        gone = select.select([descriptor], [], [], FAR_S)[0]
        os.close(descriptor)
        assert gone, f"{pid} still runs"


def _pids(folder: Path) -> list[int]:
    return [each["pid"] for program in ("psend", "precv") for each in told(folder, program)]


def _status(runs: list[Run]) -> list[tuple[str, str]]:
    return [(run.folder, run.status) for run in sorted(runs, key=lambda run: run.folder)]


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---- order ----


def test_every_repetition_has_all_points_in_an_order_of_its_own() -> None:
    order = experiment.interleaved(20, 3, 7)
    by_repetition = [[p for p, r in order[20 * k : 20 * k + 20] if r == k] for k in range(3)]
    assert all(sorted(points) == list(range(20)) for points in by_repetition)
    assert len({tuple(points) for points in by_repetition}) == 3


def test_the_seed_decides_the_order() -> None:
    assert experiment.interleaved(20, 3, 7) == experiment.interleaved(20, 3, 7)
    assert experiment.interleaved(20, 3, 7) != experiment.interleaved(20, 3, 8)


def test_abba() -> None:
    assert experiment.abba(3) == ((0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2))


# ---- a sweep from start to end ----


def test_sweep_runs_its_plan(fakes: Fakes, ppair: Ppair) -> None:
    fakes()
    code, out, err = ppair.run(*SWEEP, "--seed", "5", "--out", "out")
    assert code == 0, err
    assert out and err == "results: out\n"
    results = ppair.results()
    assert (results.status, results.why, results.plan.seed) == ("complete", None, 5)
    assert results.plan.order == experiment.interleaved(2, 2, 5)
    assert all(run.status == outcomes.GOOD for run in results.runs) and len(results.runs) == 4
    credit = [each["argv"][each["argv"].index("--credit") + 1] for each in told(ppair.bin, "precv")]
    values = [results.plan.points[point].values["precv.credit"] for point, _ in results.plan.order]
    assert credit == values
    ran = sorted(results.runs, key=lambda run: run.started_ns)
    assert [(run.point, run.repetition) for run in ran] == list(results.plan.order)


def test_a_seed_is_drawn_and_recorded(fakes: Fakes, ppair: Ppair) -> None:
    fakes()
    words = ("sweep", "--credit", "1,2", "--repeat", "1")
    for name in ("a", "b"):
        assert ppair.run(*words, "--out", name)[0] == 0
    seeds = [ppair.results(name).plan.seed for name in ("a", "b")]
    assert seeds[0] != seeds[1]


def test_failed_points_are_shown_and_the_rest_is_done(fakes: Fakes, ppair: Ppair) -> None:
    dying = ["start", ["stderr", "psend: no luck"], ["exit", 6]]
    fakes(psend=[dying, WELL])
    code, out, _ = ppair.run("sweep", "--credit", "1,2", "--repeat", "1", "--out", "out")
    assert code == 6
    assert "failed" in out and "no luck" in out
    results = ppair.results()
    assert results.status == "complete" and results.why == "1 of 2 runs failed"
    assert sorted(run.status for run in results.runs) == ["failed", "good"]
    why = next(run.why for run in results.runs if run.status == "failed")
    assert why == 'psend-0: ended with exit code 6; it said "psend: no luck"'


@pytest.mark.parametrize(
    ("psend", "precv", "expected"),
    [
        (WELL, [["stderr", "x"], ["exit", 3]], 3),
        (WELL, [*WELL[:-1], ["summary", {"messages": {"received": 1}}]], 4),
        ([["raw", "what?\n"], "hang"], WELL, 1),
        (["start", ["die", "SIGKILL"]], WELL, 2),
        (["start", ["exit", 64]], WELL, 64),
    ],
)
def test_exit_codes(
    fakes: Fakes, ppair: Ppair, psend: Steps, precv: Steps, expected: int
) -> None:
    fakes(psend=[psend], precv=[precv])
    code, out, err = ppair.run("run", "--repeat", "1", "--out", "out")
    assert code == expected
    assert "Traceback" not in err
    assert ppair.results().runs[0].exit_code == expected


def test_a_program_disappears_in_the_middle(fakes: Fakes, ppair: Ppair, fifo: Fifo) -> None:
    go = f"{fifo.path}-go"
    os.mkfifo(go)
    fakes(psend=[["start", "ready", ["tell", fifo.path], ["await", go], "talk", "summary"], WELL])
    process = ppair.start("run", "--repeat", "2", "--out", "out")
    fifo.wait()
    (ppair.bin / "precv").unlink()
    Path(go).write_text(".")
    code, _, err = finish(process)
    assert code == 1 and "Traceback" not in err
    why = f"precv-0: {ppair.bin / 'precv'}: No such file or directory"
    assert [run.why for run in ppair.results().runs] == [None, why]


# ---- interrupted ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_keeps_what_was_done(
    fakes: Fakes, ppair: Ppair, fifo: Fifo, number: signal.Signals
) -> None:
    fakes(psend=_hanging_third(fifo))
    process = ppair.start(*SWEEP, "--out", "out")
    fifo.wait()
    process.send_signal(number)
    code, out, err = finish(process)
    rest = "the rest: the same command with --resume out\n"
    assert (code, err) == (130, f"results: out\n{rest}")
    _wait_until_gone(_pids(ppair.bin))
    results = ppair.results()
    assert (results.status, results.why) == ("interrupted", f"interrupted by {number.name}")
    by_order = {(run.point, run.repetition): run for run in results.runs}
    assert [by_order[entry].status for entry in results.plan.order[:3]] == [
        "good",
        "good",
        "interrupted",
    ]
    assert len(by_order) == 3
    last = by_order[results.plan.order[2]]
    assert last.why == "interrupted" and last.metrics["messages_per_s"] == 1000
    assert (results.run_folder(last) / "psend-0.jsonl").exists()
    assert "2 of 4 runs" in " ".join(out.split())  # are still to be done
    summary = json.loads((ppair.folder / "out" / "summary.json").read_text())
    assert summary["status"] == "interrupted"


def test_interrupted_twice_it_ends_at_once(fakes: Fakes, ppair: Ppair, fifo: Fifo) -> None:
    """Although the programs do not heed SIGINT, and would be given long."""
    stubborn = [["defy", fifo.path], "start", "ready", ["tell", fifo.path], "hang"]
    fakes(psend=[stubborn], precv=[[["ignore", "SIGINT"], *HANGING]])
    process = ppair.start("run", "--out", "out", patience_s=FAR_S)
    fifo.wait()
    process.send_signal(signal.SIGINT)
    fifo.wait()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=FAR_S / 2)
    assert process.returncode == 130 and "Traceback" not in err
    _wait_until_gone(_pids(ppair.bin))
    results = ppair.results()
    assert results.status == "interrupted"
    assert [run.status for run in results.runs] == ["interrupted"]
    assert {peer.exit_code for peer in results.runs[0].peers} == {137}


def test_a_hangup_that_was_ignored_still_is(fakes: Fakes, ppair: Ppair, fifo: Fifo) -> None:
    """As under nohup."""
    go = f"{fifo.path}-go"
    os.mkfifo(go)
    fakes(psend=[["start", "ready", ["tell", fifo.path], ["await", go], "talk", "summary"]])
    process = ppair.start(
        "run", "--repeat", "1", "--out", "out",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    fifo.wait()
    process.send_signal(signal.SIGHUP)
    Path(go).write_text(".")
    assert finish(process)[0] == 0
    assert ppair.results().status == "complete"


def test_killed_it_leaves_nobody_and_no_half_files(
    fakes: Fakes, ppair: Ppair, fifo: Fifo
) -> None:
    """The programs see the end of their standard input."""
    fakes(psend=_hanging_third(fifo))
    process = ppair.start(*SWEEP, "--out", "out")
    fifo.wait()
    process.kill()
    process.communicate(timeout=FAR_S)
    _wait_until_gone(_pids(ppair.bin))
    results = ppair.results()
    assert results.status == "running"
    assert [run.status for run in results.runs] == ["good", "good"]
    hidden = [p.name for p in (ppair.folder / "out").rglob(".*")]
    assert hidden == [".p{:03d}-r{:02d}".format(*results.plan.order[2])]


def test_while_it_runs_the_directory_can_be_read(
    fakes: Fakes, ppair: Ppair, fifo: Fifo
) -> None:
    fakes(psend=_hanging_third(fifo))
    process = ppair.start(*SWEEP, "--out", "out")
    fifo.wait()
    results = ppair.results()
    assert results.status == "running" and len(results.runs) == 2
    assert not list((ppair.folder / "out").rglob("*.tmp"))
    process.send_signal(signal.SIGINT)
    finish(process)


# ---- resumed ----


def _interrupted_sweep(fakes: Fakes, ppair: Ppair, fifo: Fifo, number: signal.Signals) -> Results:
    fakes(psend=_hanging_third(fifo))
    process = ppair.start(*SWEEP, "--out", "out")
    fifo.wait()
    process.send_signal(number)
    process.communicate(timeout=FAR_S)
    _wait_until_gone(_pids(ppair.bin))
    return ppair.results()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_resumed_it_does_the_rest(
    fakes: Fakes, ppair: Ppair, fifo: Fifo, number: signal.Signals
) -> None:
    before = _interrupted_sweep(fakes, ppair, fifo, number)
    kept = _tree(ppair.folder / "out" / "runs")
    fakes()
    code, _, err = ppair.run(*SWEEP, "--resume", "out")
    assert code == 0, err
    after = ppair.results()
    assert (after.status, after.why) == ("complete", None)
    assert after.plan == before.plan and after.argv == before.argv
    done = [(run.point, run.repetition) for run in sorted(after.runs, key=lambda r: r.started_ns)]
    assert tuple(done) == after.plan.order
    assert len(told(ppair.bin, "psend")) == 2
    found = _tree(ppair.folder / "out" / "runs")
    assert all(found[name] == content for name, content in kept.items() if name[0] != ".")
    third = next(r for r in after.runs if (r.point, r.repetition) == after.plan.order[2])
    assert third.attempt == (1 if number == signal.SIGINT else 0)
    assert not [name for name in found if name.startswith(".")]


def test_failed_runs_are_tried_again_in_folders_of_their_own(fakes: Fakes, ppair: Ppair) -> None:
    dying: Steps = ["start", ["exit", 2]]
    fakes(psend=[WELL, dying, WELL])
    assert ppair.run(*SWEEP, "--out", "out")[0] == 2
    first = ppair.results()
    failed = first.plan.order[1]
    fakes(psend=[dying])
    assert ppair.run(*SWEEP, "--resume", "out")[0] == 2
    fakes()
    assert ppair.run(*SWEEP, "--resume", "out")[0] == 0
    assert len(told(ppair.bin, "psend")) == 1
    results = ppair.results()
    assert results.status == "complete" and results.why is None
    assert len(results.runs) == 4 and all(run.status == "good" for run in results.runs)
    run = next(r for r in results.runs if (r.point, r.repetition) == failed)
    assert run.attempt == 2
    name = "p{:03d}-r{:02d}".format(*failed)
    folders = sorted(p.name for p in (ppair.folder / "out" / "runs").glob(f"{name}*"))
    assert folders == [name, f"{name}-a1", f"{name}-a2"]


def test_resumed_when_all_is_done_it_runs_nothing(fakes: Fakes, ppair: Ppair) -> None:
    fakes()
    words = ("sweep", "--credit", "1,2", "--repeat", "1")
    assert ppair.run(*words, "--out", "out")[0] == 0
    fakes()
    code, out, _ = ppair.run(*words, "--resume", "out")
    assert code == 0 and out
    assert not told(ppair.bin, "psend")


OTHERS = [
    (*SWEEP, "--seed", "1"),
    (*SWEEP, "--presettled"),
    (*SWEEP, "--senders", "2"),
    (*SWEEP, "--via", "amqp://b/q"),
    (*SWEEP[:-1], "3"),
    ("sweep", "--precv.credit", "10,20,30", "--repeat", "2"),
    ("sweep", "--precv.credit", "20,10", "--repeat", "2"),
    ("sweep", "--credit", "10,20", "--repeat", "2"),
]


def test_another_command_is_refused(fakes: Fakes, ppair: Ppair) -> None:
    fakes()
    assert ppair.run(*SWEEP, "--seed", "9", "--out", "out")[0] == 0
    before = _tree(ppair.folder)
    for words in OTHERS:
        code, out, err = ppair.run(*words, "--resume", "out")
        assert (code, out) == (64, ""), words
        assert err.startswith("ppair: --resume: out is of another command: ppair sweep --precv")
        assert err.count("\n") == 1
    assert _tree(ppair.folder) == before


@pytest.mark.parametrize(
    ("words", "expected", "code"),
    [
        (["--resume", "gone"], "gone/manifest.json: No such file or directory", 1),
        (["--resume", "out", "--out", "other"], "--resume, --out: one or the other", 64),
        (["--resume", ""], "manifest.json", 1),
    ],
)
def test_resume_is_refused(
    fakes: Fakes, ppair: Ppair, words: list[str], expected: str, code: int
) -> None:
    fakes()
    (ppair.folder / "out").mkdir()
    found, _, err = ppair.run(*SWEEP, *words)
    assert found == code and expected in err and err.count("\n") == 1
    assert not told(ppair.bin, "psend")


# ---- two at once ----


def test_two_at_once_do_not_disturb_each_other(fakes: Fakes, ppair: Ppair) -> None:
    """Without --out each has a directory of its own."""
    fakes()
    processes = [ppair.start("run", "--repeat", "2", "--senders", "2") for _ in range(2)]
    for process in processes:
        code, _, err = finish(process)
        assert code == 0, err
    folders = list((ppair.folder / "ppair-results").iterdir())
    assert len(folders) == 2
    for folder in folders:
        results = store.load(folder)
        assert results.status == "complete" and len(results.runs) == 2


def test_two_in_one_directory_is_refused(fakes: Fakes, ppair: Ppair, fifo: Fifo) -> None:
    fakes(psend=_hanging_third(fifo))
    process = ppair.start(*SWEEP, "--seed", "1", "--out", "out")
    fifo.wait()
    code, _, err = ppair.run(*SWEEP, "--seed", "1", "--resume", "out")
    assert (code, err) == (64, "ppair: out: another ppair is at work there\n")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130
    assert len(ppair.results().runs) == 3


# ---- the directory ----


@pytest.mark.parametrize("kind", ["empty", "results", "file"])
def test_an_existing_directory_is_refused(fakes: Fakes, ppair: Ppair, kind: str) -> None:
    fakes()
    if kind == "file":
        (ppair.folder / "out").write_text("mine")
    elif kind == "empty":
        (ppair.folder / "out").mkdir()
    else:
        assert ppair.run("run", "--repeat", "1", "--out", "out")[0] == 0
    before = _tree(ppair.folder)
    code, out, err = ppair.run("run", "--repeat", "1", "--out", "out")
    assert (code, out) == (64, "")
    assert err == "ppair: out: exists; results are never overwritten\n"
    assert _tree(ppair.folder) == before


def test_a_directory_that_cannot_be_made(fakes: Fakes, ppair: Ppair) -> None:
    fakes()
    (ppair.folder / "file").write_text("")
    code, _, err = ppair.run("run", "--out", "file/out")
    assert (code, err) == (1, "ppair: file/out: Not a directory\n")


# ---- full disks ----


def test_files_may_not_be_so_large(fakes: Fakes, ppair: Ppair) -> None:
    """A limit that events reach and the small files do not."""
    talkative = ["start", "ready", ["repeat", 200, "interval"], "talk", "summary"]
    fakes(psend=[talkative, WELL])
    process = ppair.start(
        "run", "--repeat", "2", "--out", "out",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)),
    )  # fmt: skip
    code, _, err = finish(process)
    assert code == 1 and "Traceback" not in err
    results = ppair.results()
    assert results.status == "complete"
    assert [(run.status, run.why) for run in results.runs] == [
        ("failed", "psend-0: psend-0.jsonl: File too large"),
        ("good", None),
    ]


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _fill(disk: Path, pages: int) -> None:
    """Leaves so many pages of 4 KiB."""
    stat = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"x" * (stat.f_bavail - pages) * stat.f_frsize)


@pytest.mark.parametrize("pages", [0, 1, 2, 4, 6])
def test_the_disk_is_full(fakes: Fakes, ppair: Ppair, small_disk: Path, pages: int) -> None:
    """Wherever it happens: one line, exit code 1, no half files, nobody left."""
    fakes(precv=[[*WELL[:-1], ["repeat", 3, "interval"], "summary"]])
    _fill(small_disk, pages)
    code, _, err = ppair.run("run", "--repeat", "2", "--out", str(small_disk / "out"))
    assert code == 1
    assert "Traceback" not in err
    complaints = [line for line in err.splitlines() if line.startswith("ppair: ")]
    assert len(complaints) <= 1
    assert not complaints or complaints[0].endswith("No space left on device")
    for path in small_disk.rglob("*.json"):
        json.loads(path.read_text())
    assert not list(small_disk.rglob("*.tmp"))


def test_after_the_disk_was_full_it_can_be_resumed(
    fakes: Fakes, ppair: Ppair, small_disk: Path
) -> None:
    fakes()
    _fill(small_disk, 8)
    out = str(small_disk / "out")
    assert ppair.run(*SWEEP, "--out", out)[0] == 1
    (small_disk / "ballast").unlink()
    fakes()
    assert ppair.run(*SWEEP, "--resume", out)[0] == 0
    results = store.load(Path(out))
    assert results.status == "complete" and len(results.runs) == 4


def test_standard_output_is_full(fakes: Fakes, ppair: Ppair) -> None:
    """What was measured is kept."""
    fakes()
    with open("/dev/full", "w") as full:
        code, _, err = finish(ppair.start("run", "--repeat", "1", "--out", "out", stdout=full))
    assert code == 1
    assert "No space left on device" in err and "Traceback" not in err and "Exception" not in err
    assert ppair.results().status == "complete"
