"""How ppair ends: asked to, killed, with programs that die or hang, and with nobody to talk to."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import Any

import launch
import pytest
from launch import Launcher, Tap
from ppair import store
from ppair import results as outcomes
from ppair.results import Run

ENDLESS = ("run", "--duration", "1min", "--warmup", "0", "--repeat", "2", "--out", "out")
SHORT = ("run", "--duration", "80ms", "--warmup", "20ms", "--repeat", "1", "--out", "out")


def start_endless(
    ppair: Launcher, heard: dict[str, Tap], *words: str, **how: Any
) -> subprocess.Popen[str]:
    """A run in whose middle we are."""
    process = ppair.start(*ENDLESS, *launch.tapped(heard), *words, **how)
    for tap in heard.values():
        tap.wait_for("interval", 2)
    return process


def only_run(ppair: Launcher) -> Run:
    """Of the results."""
    (run,) = ppair.results("out").runs
    return run


def assert_whole(ppair: Launcher, status: str) -> None:
    """The directory says how it ended, and has no traces of what was on its way."""
    assert ppair.results("out").status == status
    assert (ppair.folder / "out" / "summary.json").exists()
    assert not list((ppair.folder / "out").rglob(".*"))


# ---- signals ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(ppair: Launcher, heard: dict[str, Tap], number: signal.Signals) -> None:
    """The pair ends in order, and what it has measured so far is kept and shown."""
    process = start_endless(ppair, heard)
    process.send_signal(number)
    ended = launch.finish(process)
    assert ended.code == 130 and ended.lines == ["results: out"]
    assert ppair.results("out").why == f"interrupted by {number.name}"
    assert_whole(ppair, outcomes.INTERRUPTED)
    run = only_run(ppair)
    assert run.status == outcomes.INTERRUPTED and run.metrics["messages_per_s"] > 0
    assert "interrupted" in ended.stdout and "2 of 2 runs have not been done" in ended.stdout
    for tap in heard.values():
        assert tap.of_kind("summary")
    assert not ppair.left()


def test_second_signal(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """Ends at once what the first one waits for: psend cannot flush, for precv is stopped."""
    process = start_endless(ppair, heard)
    os.kill(heard["precv"].pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    asked_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert launch.finish(process).code == 130
    assert time.monotonic() - asked_s < 3
    assert not ppair.left()
    assert_whole(ppair, outcomes.INTERRUPTED)


def test_interrupted_before_anything_is_measured(ppair: Launcher) -> None:
    """The receiver cannot be ready: its file is a pipe that nobody reads."""
    os.mkfifo(ppair.folder / "fifo")
    process = ppair.start(*ENDLESS, "--precv", f"--output {ppair.folder}/fifo")
    runs = ppair.folder / "out" / "runs"
    wait_for_file(runs / ".p000-r00" / "precv-0.stderr", process)
    process.send_signal(signal.SIGINT)
    assert launch.finish(process).code == 130
    assert only_run(ppair).status == outcomes.INTERRUPTED
    assert not ppair.left()


def wait_for_file(path: Path, process: subprocess.Popen[str]) -> None:
    """Which nothing announces."""
    deadline_s = time.monotonic() + launch.DEADLINE_S
    while not path.exists():
        assert process.poll() is None and time.monotonic() < deadline_s
        time.sleep(0.01)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_killed(ppair: Launcher, heard: dict[str, Tap], command: str) -> None:
    """Its programs learn it and end; what was finished before can be read, and resumed."""
    words = ["--credit", "10,20"] if command == "sweep" else []
    process = ppair.start(command, *ENDLESS[1:], *launch.tapped(heard), *words)
    for tap in heard.values():
        tap.wait_for("interval", 2)
    process.kill()
    launch.wait_until_gone([tap.pid for tap in heard.values()], 10)
    assert process.wait(10) == -signal.SIGKILL
    launch.wait_until_gone(ppair.left(), 10)
    results = ppair.results("out")
    assert results.status == outcomes.RUNNING and not results.runs
    assert not list((ppair.folder / "out").glob(".*"))


def test_resumed_after_it_was_killed(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """Nothing of the run that it was at is in the way."""
    words = ["sweep", "--credit", "10,20", "--duration", "300ms", "--repeat", "1"]
    process = ppair.start(*words, *launch.tapped(heard), "--out", "out")
    heard["psend"].wait_for("interval")
    process.kill()
    launch.wait_until_gone(ppair.left(), 10)
    ended = ppair.run(*words, *launch.tapped(heard), "--resume", "out")
    assert ended.code == 0, ended
    assert_whole(ppair, outcomes.COMPLETE)
    folders = {path.name for path in (ppair.folder / "out" / "runs").iterdir()}
    assert folders == {"p000-r00", "p001-r00"}


# ---- programs that fail ----


@pytest.mark.parametrize("program", ["psend", "precv"])
def test_killed_program(ppair: Launcher, heard: dict[str, Tap], program: str) -> None:
    """It is named, not the other one which has lost its peer; the next repetition is run."""
    process = start_endless(ppair, heard, "--repeat", "1")
    os.kill(heard[program].pid, signal.SIGKILL)
    ended = launch.finish(process)
    run = only_run(ppair)
    assert ended.code == run.exit_code == 2
    assert run.why is not None and run.why.startswith(f"{program}-0: was ended by SIGKILL")
    assert f"failed: {program}-0: was ended by SIGKILL" in ended.stdout
    assert run.status == outcomes.FAILED and not ppair.left()
    assert_whole(ppair, outcomes.COMPLETE)


@pytest.mark.parametrize("program", ["psend", "precv"])
def test_program_hangs(ppair: Launcher, heard: dict[str, Tap], program: str) -> None:
    """It is stopped by force, in the end."""
    words = ["--duration", "200ms", "--deadline", "2s", "--repeat", "1"]
    process = start_endless(ppair, heard, *words)
    os.kill(heard[program].pid, signal.SIGSTOP)
    ended = launch.finish(process)
    run = only_run(ppair)
    assert ended.code == run.exit_code == 2
    assert run.why is not None and "has not ended 2 s after the start" in run.why
    codes = {peer.name: peer.exit_code for peer in run.peers}
    assert codes[f"{program}-0"] == 128 + signal.SIGKILL
    assert not ppair.left()


def test_deadline(ppair: Launcher) -> None:
    """Who is late is named; both are ended in order, at the same time, and psend says its summary:
    interrupted, or else it has seen first that precv has detached, which is no failure of a run by
    duration unless messages are left unsettled."""
    ended = ppair.run(*ENDLESS, "--deadline", "1s", "--repeat", "1")
    results, run = ppair.results("out"), only_run(ppair)
    assert ended.code == run.exit_code == 2
    assert run.why == "psend-0: has not ended 1 s after the start"
    assert "psend-0: has not ended" in ended.stdout
    (psend,) = [peer for peer in run.peers if peer.name == "psend-0"]
    summary = launch.only(launch.events_of(results, run.folder, "psend-0"), "summary")
    detached = 4 if summary["messages"]["unsettled"] else 0
    assert psend.exit_code == (130 if summary["interrupted"] else detached)
    assert not ppair.left()


FAILURES = {
    "refused": (["--precv", "--outcome released"], "psend-0: ended with exit code 6", 6),
    "unnumbered": (
        ["--precv", "--verify-sequence", "--psend", "--sequence no"],
        "precv-0: ended with exit code 5",
        5,
    ),
    "short": (["--precv", "-m 5 --credit 5"], "psend-0: ended with exit code 4", 4),
    "lost": (["--psend", "--first-sequence 3"], "precv: 2 messages lost", 4),
    "usage": (["--precv", "--session-window 10"], "precv-0: ended with exit code 64", 64),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failed_run(ppair: Launcher, name: str) -> None:
    """Which program, why, and its exit code; the other repetition is run too, and fails too."""
    words, why, code = FAILURES[name]
    ended = ppair.run("run", "-m", "100", "--repeat", "2", "--out", "out", *words)
    runs = ppair.results("out").runs
    refused = code == 64  # as the second repetition would be
    assert ended.code == code and len(runs) == (1 if refused else 2)
    for run in runs:
        assert run.status == outcomes.FAILED and run.exit_code == code
        assert run.why is not None and run.why.startswith(why)
    if refused:
        assert not ended.stdout and len(ended.lines) == 1
        return
    assert "No run was good." in ended.stdout and "failed" in ended.stdout
    assert "listening on" not in ended.stdout
    assert_whole(ppair, outcomes.COMPLETE)


def test_program_is_not_there(ppair: Launcher) -> None:
    """One line, which option it is, and no directory."""
    (ppair.folder / "empty").mkdir()
    ended = ppair.run(*SHORT, "--bin", "empty")
    assert ended.code == 1 and len(ended.lines) == 1 and "--bin" in ended.stderr
    assert not (ppair.folder / "out").exists()


# ---- nobody to talk to ----

CLOSED = {  # redirections: exit code, who still reads
    "<&-": 0,
    "2>&-": 0,
    ">&-": 1,
    "<&- >&- 2>&-": 1,
    ">/dev/full": 1,
    "| true": 1,
}


@pytest.mark.parametrize("redirection", CLOSED)
def test_closed_streams(ppair: Launcher, redirection: str) -> None:
    """The experiment is done and kept all the same; a report that nobody can read is an error."""
    script = f'"$@" {redirection}; exit "${{PIPESTATUS[0]}}"'
    ended = ppair.run(*SHORT, "--repeat", "2", wrapper=["bash", "-c", script, "bash"], stdin=None)
    assert ended.code == CLOSED[redirection], ended
    assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr
    assert all(re.match(r"results: |ppair: ", line) for line in ended.lines), ended
    assert ("messages/s" in ended.stdout) == (CLOSED[redirection] == 0)
    results = ppair.results("out")
    assert [run.status for run in results.runs] == [outcomes.GOOD] * 2
    assert_whole(ppair, outcomes.COMPLETE)


def test_page_cannot_be_written(ppair: Launcher) -> None:
    """The table is there, and the results are."""
    ended = ppair.run(*SHORT, "--html", "/proc/none/page.html")
    assert ended.code == 1 and "/proc/none" in ended.stderr
    assert "Traceback" not in ended.stderr and "messages/s" in ended.stdout
    assert_whole(ppair, outcomes.COMPLETE)


# ---- a terminal ----


class Terminal:
    """A pseudo-terminal with a process at its other end."""

    def __init__(self, columns: int = 100) -> None:
        self.master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (30, columns))
        self.shown = b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        try:
            while more := os.read(self.master, 4096):
                self.shown += more
        except OSError:  # nobody is at the other end any more
            pass

    def type(self, keys: bytes) -> None:
        """As somebody who sits there."""
        os.write(self.master, keys)

    def close(self) -> str:
        """All that it has shown, and that is ASCII."""
        os.close(self.slave)
        self.reader.join(launch.DEADLINE_S)
        os.close(self.master)
        return self.shown.decode("ascii")


def last_screen(shown: str) -> list[str]:
    """Lines that are still to be seen: what escape sequences erase is gone."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", shown):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[1A":
            row -= 1
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b") and part != "\r":
            lines[row] += part
    return [line for line in lines if line.strip()]


@pytest.mark.parametrize("columns", [100, 30])
def test_progress(ppair: Launcher, columns: int) -> None:
    """A line in ASCII on the terminal's last row, which is gone in the end; the cursor is back."""
    terminal = Terminal(columns)
    words = [*SHORT, "--repeat", "3", "--duration", "300ms", "--psend.interval", "20ms"]
    how: dict[str, Any] = {"stderr": terminal.slave, "env": {"TERM": "xterm"}}
    ended = ppair.run(*words, "--precv.interval", "20ms", **how)
    shown = terminal.close()
    assert ended.code == 0 and "\x1b" not in ended.stdout
    assert last_screen(shown) == ["results: out"]
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    if columns == 100:
        assert re.search(r"[0-9]+ msg/s", shown) and "3/3" in shown
    visible = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", shown)
    assert all(len(line) <= columns for line in re.split(r"[\r\n]+", visible))


def test_progress_on_a_dumb_terminal(ppair: Launcher) -> None:
    """Which has no escape sequences."""
    terminal = Terminal()
    ended = ppair.run(*SHORT, stderr=terminal.slave, env={"TERM": "dumb"})
    shown = terminal.close()
    assert ended.code == 0 and "\x1b" not in shown
    assert [line for line in shown.splitlines() if line] == ["results: out"]


def test_control_c(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """At the terminal: its signal goes to ppair alone, which ends the pair in order."""
    terminal = Terminal()
    slave = terminal.slave
    how: dict[str, Any] = {"wrapper": ["setsid", "--ctty"], "stdin": slave, "stderr": slave}
    process = start_endless(ppair, heard, env={"TERM": "xterm"}, **how)
    terminal.type(b"\x03")
    ended = launch.finish(process)
    shown = terminal.close()
    assert ended.code == 130
    assert [line.removeprefix("^C") for line in last_screen(shown)] == ["results: out"]
    run = only_run(ppair)
    assert run.status == outcomes.INTERRUPTED and run.metrics["messages_per_s"] > 0
    assert {peer.name: peer.exit_code for peer in run.peers} == {"psend-0": 130, "precv-0": 0}
