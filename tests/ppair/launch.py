"""Runs ppair as a process, hears what its programs say, and finds what it leaves behind.

Nothing here sleeps: programs are heard through named pipes, their ends waited for by descriptors of
processes. Every wait has a deadline.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppair import events, store
from ppair.results import Results

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("PPAIR_BIN", ROOT / "build" / "bin"))
DEADLINE_S = 60.0
MARK = "PPAIR_TEST_MARK"

Json = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """A process that has."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """Of standard error."""
        return self.stderr.splitlines()

    @property
    def json(self) -> Json:
        """Standard output, which is strict JSON and nothing else."""
        return dict(events.strict_json(self.stdout))


class Launcher:
    """Starts ppairs in FOLDER. What these start is known by a mark in its environment."""

    def __init__(self, folder: Path, program: Path = BIN / "ppair") -> None:
        self.folder = folder
        self.program = program
        self.mark = uuid.uuid4().hex
        self.started: list[subprocess.Popen[str]] = []

    def start(
        self,
        *words: str,
        wrapper: Sequence[str] = (),
        env: dict[str, str] | None = None,
        **how: Any,
    ) -> subprocess.Popen[str]:
        """ppair with these words; its output is kept unless HOW says otherwise."""
        given: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.folder,
            **how,
        }
        environment = {**os.environ, MARK: self.mark, **(env or {})}
        process = subprocess.Popen(
            [*wrapper, str(self.program), *words], text=True, env=environment, **given
        )
        self.started.append(process)
        return process

    def run(self, *words: str, timeout_s: float = DEADLINE_S, **how: Any) -> Ended:
        """From start to end."""
        return finish(self.start(*words, **how), timeout_s)

    def results(self, name: str) -> Results:
        """What is in the directory NAME."""
        return store.load(self.folder / name)

    def left(self) -> list[int]:
        """Programs and all else that is still there of what was started, by pid."""
        mark = f"{MARK}={self.mark}\0".encode()
        return [pid for pid, environment in _of_all("environ") if mark in environment]

    def close(self) -> None:
        """Kills what there is."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=DEADLINE_S)
        kill(self.left())


def speaks_tls() -> bool:
    """Whether psend and precv have been built with it."""
    found = subprocess.run([BIN / "psend", "--help"], capture_output=True, text=True, check=False)
    return "amqp[s]://" in found.stdout


def finish(process: subprocess.Popen[str], timeout_s: float = DEADLINE_S) -> Ended:
    """Waits for its end."""
    stdout, stderr = process.communicate(timeout=timeout_s)
    return Ended(process.returncode, stdout or "", stderr or "")


# ---- other processes ----


def _of_all(name: str) -> Iterator[tuple[int, bytes]]:
    """/proc/PID/NAME of all processes but this one."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            content = (folder / name).read_bytes()
        except OSError:  # it has ended, or is not ours
            continue
        if content and int(folder.name) != os.getpid():
            yield int(folder.name), content


def running_from(folder: Path) -> list[int]:
    """Processes, here or in other network namespaces, in whose command line FOLDER is."""
    return [pid for pid, line in _of_all("cmdline") if os.fsencode(folder) in line]


def argv_of(pid: int) -> list[str]:
    """Of a process that is there."""
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")[:-1]


def wait_until_gone(pids: Sequence[int], timeout_s: float = DEADLINE_S) -> None:
    """Until these processes, which need not be ours, have ended."""
    deadline_s = time.monotonic() + timeout_s
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            left_s = max(deadline_s - time.monotonic(), 0)
            assert select.select([fd], [], [], left_s)[0], f"{argv_of(pid)} still runs"
        finally:
            os.close(fd)


def kill(pids: Sequence[int]) -> None:
    """Processes that a test has left, which is not an error here."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_until_gone(pids)


# ---- programs ----


class Tap:
    """Hears a program that is told to write its events to a named pipe as well."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.words = shlex.join(["--output", str(path), "--interval", "20ms"])
        self.events: list[Json] = []
        self.more = threading.Condition()
        # as a writer too: no end of file between two runs
        self.file = os.fdopen(os.open(path, os.O_RDWR), "r+b", buffering=0)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        with os.fdopen(os.dup(self.file.fileno()), encoding="ascii") as lines:
            for line in lines:
                if line == "close\n":
                    break
                with self.more:
                    self.events.append(events.parse(line))
                    self.more.notify_all()

    def wait_for(self, kind: str, number: int = 1) -> Json:
        """The event of its kind with this number."""
        with self.more:
            assert self.more.wait_for(lambda: len(self.of_kind(kind)) >= number, DEADLINE_S), kind
            return self.of_kind(kind)[number - 1]

    def of_kind(self, kind: str) -> list[Json]:
        """Those so far."""
        return [event for event in self.events if event["event"] == kind]

    @property
    def pid(self) -> int:
        """Of the program that was heard last."""
        self.wait_for("start")
        return int(self.of_kind("start")[-1]["pid"])

    def close(self) -> None:
        """Hears no more."""
        self.file.write(b"close\n")
        self.reader.join(DEADLINE_S)
        self.file.close()


def taps(folder: Path) -> dict[str, Tap]:
    """One for each of both programs."""
    return {program: Tap(folder / f"{program}.tap") for program in ("psend", "precv")}


def tapped(heard: dict[str, Tap]) -> list[str]:
    """The options with which ppair lets us hear both."""
    return [word for program, tap in heard.items() for word in (f"--{program}", tap.words)]


# ---- results ----


def events_of(results: Results, folder: str, name: str) -> list[Json]:
    """Of one program of one run."""
    return list(events.read(results.directory / "runs" / folder / f"{name}.jsonl"))


def only(found: Sequence[Json], kind: str) -> Json:
    """The one event of its kind."""
    of_kind = [event for event in found if event["event"] == kind]
    assert len(of_kind) == 1, f"{len(of_kind)} {kind} events"
    return of_kind[0]
