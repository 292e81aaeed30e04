"""Runs psend and precv as processes, and collects what they report.

Every wait has a deadline, readiness is an event, and children are ended by their pid: the fixture
in conftest.py calls `end_children` after each test.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

BIN = Path(os.environ.get("PPAIR_BIN", Path(__file__).parents[2] / "build" / "bin"))
SANITIZED = bool(os.environ.get("PPAIR_SANITIZED"))
DEADLINE_S = 90.0  # for what comes when it is ready, on a machine that has other things to do
PROGRAMS = ("psend", "precv")
HOST = "127.0.0.1"
ANY_PORT = f"{HOST}:0"

Json = dict[str, Any]


def count(normal: int) -> int:
    """A number of messages, less of them when every instruction is checked."""
    return max(normal // 10, 1) if SANITIZED else normal


# ---- JSON, more strictly than the module reads it ----


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Json:
    """An object, if none of its keys is there twice."""
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"duplicate keys in {names}"
    return dict(pairs)


def _no_constants(name: str) -> None:
    """NaN and Infinity are not JSON."""
    raise AssertionError(f"{name} in JSON")


def parse(line: str) -> Json:
    """One event."""
    event = json.loads(line, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    assert isinstance(event, dict) and isinstance(event.get("event"), str)
    return event


def parse_lines(text: str) -> list[Json]:
    """All events of a file, each of them a whole line."""
    assert not text or text.endswith("\n")
    return [parse(line) for line in text.splitlines()]


# ---- one process ----


@dataclass
class Child:
    """A program that was started. Events are appended by a thread of their own."""

    name: str
    process: subprocess.Popen[bytes]
    started_s: float
    stdout: IO[bytes]
    stderr: IO[bytes]
    events: list[Json] = field(default_factory=list)
    arrivals_s: list[float] = field(default_factory=list)  # of events, time.monotonic()
    more: threading.Condition = field(default_factory=threading.Condition)
    ended: bool = False  # no event will follow
    reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        """For signals and /proc."""
        return self.process.pid


@dataclass(frozen=True)
class Result:
    """A program that has ended."""

    name: str
    code: int
    seconds: float
    stdout: str
    stderr: str
    events: list[Json]
    arrivals_s: list[float]

    def of_kind(self, kind: str) -> list[Json]:
        """Its events of one kind."""
        return [event for event in self.events if event["event"] == kind]

    def only(self, kind: str) -> Json:
        """The one event of its kind."""
        found = self.of_kind(kind)
        assert len(found) == 1, f"{self.name}: {len(found)} {kind} events\n{self.stderr}"
        return found[0]

    @property
    def summary(self) -> Json:
        """The last event."""
        assert self.events and self.events[-1]["event"] == "summary", self
        return self.only("summary")

    @property
    def messages(self) -> Json:
        """The summary's accounting."""
        return self.summary["messages"]

    @property
    def intervals(self) -> list[Json]:
        """All intervals, those of the warm-up too."""
        return self.of_kind("interval")

    @property
    def lines(self) -> list[str]:
        """Lines of stderr, but for the one that says where precv listens."""
        said = re.compile(r"\w+: listening on \S+:\d+")
        return [line for line in self.stderr.splitlines() if not said.fullmatch(line)]


CHILDREN: list[Child] = []  # that run, or have not been asked for their result
STDERRS: list[IO[bytes]] = []  # of all that were started, until somebody has looked


def end_children() -> None:
    """Kills what is left of them, and waits for it."""
    while CHILDREN:
        child = CHILDREN.pop()
        if child.process.poll() is None:
            child.process.kill()
        child.process.wait(timeout=DEADLINE_S)
        if child.reader:
            child.reader.join(timeout=DEADLINE_S)


def assert_sanitizers_are_content() -> None:
    """They have found nothing in any program that was started since the last call."""
    said = [line for file in STDERRS for line in read(file).splitlines()]
    STDERRS.clear()
    assert not [line for line in said if re.search(r"ERROR: \w+Sanitizer|: runtime error: ", line)]


def _read_events(child: Child, fd: int) -> None:
    """The thread: a line, an event."""
    with os.fdopen(fd, encoding="ascii") as lines:
        for line in lines:
            event = parse(line)
            with child.more:
                child.events.append(event)
                child.arrivals_s.append(time.monotonic())
                child.more.notify_all()
    with child.more:
        child.ended = True
        child.more.notify_all()


def start(
    name: str,
    *arguments: str,
    events: bool = True,
    stdin: int = subprocess.DEVNULL,
    stdout: IO[bytes] | None = None,
    pass_fds: Sequence[int] = (),
    env: dict[str, str] | None = None,
    wrapper: Sequence[str] = (),
) -> Child:
    """Starts a program, with JSON events on a pipe if it is to have them."""
    out = stdout or tempfile.TemporaryFile()
    err = tempfile.TemporaryFile()
    read_fd, write_fd = os.pipe()
    argv = [*wrapper, str(BIN / name), *arguments]
    if events:
        argv += ["--events", str(write_fd)]
    started_s = time.monotonic()
    process = subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=out,
        stderr=err,
        pass_fds=(*pass_fds, write_fd) if events else pass_fds,
        env={**os.environ, "LC_ALL": "C", **(env or {})},
    )
    os.close(write_fd)
    child = Child(name, process, started_s, out, err)
    CHILDREN.append(child)
    STDERRS.append(err)
    child.reader = threading.Thread(target=_read_events, args=(child, read_fd), daemon=True)
    child.reader.start()
    return child


def wait_for(child: Child, kind: str, number: int = 1, timeout_s: float = DEADLINE_S) -> Json:
    """The event of its kind with this number; it must come."""
    deadline_s = time.monotonic() + timeout_s
    with child.more:
        while True:
            found = [event for event in child.events if event["event"] == kind]
            if len(found) >= number:
                return found[number - 1]
            left_s = deadline_s - time.monotonic()
            assert not child.ended, f"{child.name} ended without {kind}: {read(child.stderr)}"
            assert left_s > 0, f"{child.name}: no {kind} event within {timeout_s} s"
            child.more.wait(left_s)


def read(file: IO[bytes]) -> str:
    """All that was written to one of our temporary files, or "" for other files."""
    try:
        file.seek(0)
        return file.read().decode("ascii")
    except OSError:
        return ""


def finish(child: Child, timeout_s: float = DEADLINE_S) -> Result:
    """Waits for the end."""
    try:
        child.process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise AssertionError(
            f"{child.name} has not ended within {timeout_s} s: {read(child.stderr)}"
        ) from None
    seconds = time.monotonic() - child.started_s
    assert child.reader
    child.reader.join(DEADLINE_S)
    CHILDREN.remove(child)
    return Result(
        child.name,
        child.process.returncode,
        seconds,
        read(child.stdout) if child.stdout.readable() else "",
        read(child.stderr),
        list(child.events),
        list(child.arrivals_s),
    )


def run(name: str, *arguments: str, timeout_s: float = DEADLINE_S, **options: Any) -> Result:
    """One program from start to end."""
    return finish(start(name, *arguments, **options), timeout_s)


def send_signal(child: Child, number: signal.Signals) -> None:
    """To the process itself; a stopped one has stopped when this returns."""
    os.kill(child.pid, number)
    if number == signal.SIGSTOP:
        wait_until_stopped(child)


def wait_until_stopped(child: Child) -> None:
    """All threads of the process: the kernel stops them one by one."""
    deadline_s = time.monotonic() + DEADLINE_S
    while any(thread_state(path) != "T" for path in Path(f"/proc/{child.pid}/task").iterdir()):
        assert time.monotonic() < deadline_s, f"{child.name} does not stop"
        time.sleep(0.001)


def thread_state(task: Path) -> str:
    """The letter behind the name in /proc/PID/task/TID/stat."""
    return (task / "stat").read_text().rsplit(")", 1)[1].split()[0]


def wait_for_more(child: Child, kind: str) -> None:
    """Two more events of a kind: the first of them may have begun before now."""
    with child.more:
        seen = sum(event["event"] == kind for event in child.events)
    wait_for(child, kind, seen + 2)


# ---- two processes ----


def listen(name: str, *arguments: str, **options: Any) -> tuple[Child, str]:
    """Starts a program that listens. Returns it and the URL where it can be reached."""
    child = start(name, "--listen", ANY_PORT, *arguments, **options)
    ready = wait_for(child, "ready")
    return child, f"{HOST}:{ready['port']}/test"


def run_pair(
    psend: Iterable[str] = (), precv: Iterable[str] = (), timeout_s: float = DEADLINE_S
) -> tuple[Result, Result]:
    """precv listens, psend connects; both end by themselves."""
    receiver, url = listen("precv", *precv)
    sender = start("psend", url, *psend)
    return finish(sender, timeout_s), finish(receiver, timeout_s)


def start_endless(
    psend: Iterable[str] = (), precv: Iterable[str] = (), **options: Any
) -> dict[str, Child]:
    """A pair that is at full speed and ends only if it is told to."""
    receiver, url = listen("precv", "--interval", "50ms", *precv, **options)
    sender = start("psend", url, "-m", "0", "--interval", "50ms", *psend, **options)
    for child in (sender, receiver):
        wait_for(child, "interval", 2)
    return {"psend": sender, "precv": receiver}


def words(text: str) -> list[str]:
    """A command line without quotes."""
    return text.split()


def assert_codes(results: Iterable[Result], *codes: int) -> None:
    """Exit codes as expected; says what stderr had if not."""
    found = [(result.name, result.code, result.stderr) for result in results]
    assert [code for _, code, _ in found] == list(codes), found


# ---- what holds for every report ----


def assert_delivered(psend: Result, precv: Result, messages: int) -> None:
    """Both are content, nothing is missing."""
    assert_codes((psend, precv), 0, 0)
    assert psend.messages["sent"] == messages
    assert precv.messages["received"] == messages
    assert precv.messages["lost"] == precv.messages["duplicated"] == 0
    assert psend.summary["complete"] and precv.summary["complete"]
    assert not psend.lines and not precv.lines
    if psend.messages["accepted"] is not None:
        assert_accounts(psend.summary)
        assert psend.messages["accepted"] == messages


def bucket_width(lowest: int) -> int:
    """Of the histogram's bucket that begins there: 1/128 of its power of two, at least 1 ns."""
    return max(1, 1 << max(lowest.bit_length() - 1 - 7, 0))


def percentile_names(distribution: Json) -> list[str]:
    """p50, p90 ..."""
    return [name for name in distribution if re.fullmatch(r"p[0-9.]+", name)]


def assert_accounts(summary: Json) -> None:
    """Every message that was sent has become something."""
    messages = summary["messages"]
    kinds = ("accepted", "rejected", "released", "modified", "no_outcome", "unsettled")
    assert messages["sent"] == sum(messages[kind] for kind in kinds)


def assert_time_is_whole(period: Json) -> None:
    """The causes share the wall time without rest."""
    wall_s = period["end_s"] - period["start_s"]
    assert abs(sum(period["time_s"].values()) - wall_s) <= 1e-6 * len(period["time_s"])
    assert min(period["time_s"].values()) >= 0
