"""One psend or precv: started, listened to, stopped.

Its events come through a pipe, are written to NAME.jsonl as they are, and only what will be needed
of them is kept, so that memory does not grow with a run. Its standard error is NAME.stderr.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import events, host
from .events import Event
from .failure import Exit, Failure
from .host import Host

# How a peer is stopped: in order, at once, by force; and how long each may take.
LADDER = ((signal.SIGINT, 6.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0))
# One of which we want no results any more.
SHORT_LADDER = ((signal.SIGINT, 1.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0))
LINE_BYTES_MAX = 4 * 1024 * 1024  # a summary with every bucket has some 300 kB
# What a program that has ended left in the pipe is read for so long; a descendant may hold it open.
REST_S = 5.0
STDERR_SHOWN = 300
ERRORS_KEPT = 10
LISTENING = re.compile(r"\w+: listening on \S+")
# ssh's exit code for failures of its own.
SSH_FAILED = 255

Observer = Callable[["Peer", Event], None]


class PeerFailed(Exception):
    """Which peer, what happened, and the exit code for it."""

    def __init__(self, peer: Peer, what: str, code: int) -> None:
        super().__init__(f"{peer.name}{peer.place}: {what}{peer.quoted_stderr()}")
        self.peer = peer
        self.code = code


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells when the program has ended, even if a descendant of it holds its pipes."""

    def __init__(self) -> None:
        super().__init__(LINE_BYTES_MAX, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        """Called by asyncio when the exit code is known."""
        super().process_exited()
        self.exited.set()


@dataclass
class Peer:
    """A program that was started, and what it has said so far."""

    name: str
    host: Host
    argv: tuple[str, ...]
    folder: Path
    process: asyncio.subprocess.Process
    transport: asyncio.SubprocessTransport
    exited: asyncio.Event
    observer: Observer
    start: Event | None = None
    ready: Event | None = None
    summary: Event | None = None
    errors: list[Event] = field(default_factory=list)
    messages: int = 0  # sent or received, in all intervals so far
    told: asyncio.Event = field(default_factory=asyncio.Event)  # something has come, or ended
    stopped_by_us: bool = False
    reader: asyncio.Task[None] | None = None

    @property
    def place(self) -> str:
        """For messages."""
        return f" on {self.host}" if self.host else ""

    @property
    def exit_code(self) -> int | None:
        """None while it runs; 128+n when signal n has ended it."""
        code = self.process.returncode
        return code if code is None or code >= 0 else 128 - code

    def last_stderr(self) -> str:
        """The last line that it has written to its standard error, but for where it listens."""
        try:
            with (self.folder / f"{self.name}.stderr").open("rb") as file:
                file.seek(0, 2)
                file.seek(max(file.tell() - 4096, 0))
                lines = file.read().decode("ascii", "backslashreplace").strip().splitlines()
        except OSError:
            return ""
        said = [line for line in lines if not LISTENING.fullmatch(line)]
        return said[-1][:STDERR_SHOWN] if said else ""

    def quoted_stderr(self) -> str:
        """To be put behind a message."""
        said = self.last_stderr()
        return f'; it said "{said}"' if said else ""


async def start(
    name: str,
    where: Host,
    argv: tuple[str, ...],
    environment: dict[str, str],
    folder: Path,
    observer: Observer,
    password: bytes | None = None,
) -> Peer:
    """Starts ARGV, whose files are to be in FOLDER. Raises Failure if that cannot be done.

    PASSWORD is for programs on other hosts; those here have our environment.
    """
    loop = asyncio.get_running_loop()
    try:
        with (folder / f"{name}.stderr").open("wb") as stderr:
            transport, protocol = await loop.subprocess_exec(
                _Protocol,
                *host.command(where, argv, environment, password is not None),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env=host.environment_here(where, environment),
                start_new_session=True,  # Ctrl-C at the terminal is ours to pass on
            )
    except OSError as error:
        what = f"{name}: {error.filename or argv[0]}: {error.strerror}"
        raise Failure(Exit.INTERNAL, what) from None
    process = asyncio.subprocess.Process(transport, protocol, loop)
    peer = Peer(name, where, argv, folder, process, transport, protocol.exited, observer)
    if password is not None and process.stdin:
        process.stdin.write(password + b"\n")
    peer.reader = asyncio.create_task(_listen(peer))
    return peer


async def _listen(peer: Peer) -> None:
    """Reads until there is no more; of a program that has ended, at most REST_S longer."""
    tasks = [asyncio.create_task(_read(peer)), asyncio.create_task(peer.exited.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait(tasks[:1], timeout=REST_S)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        peer.told.set()


async def _read(peer: Peer) -> None:
    """Takes events until there are no more. Raises PeerFailed for what is none, or not kept."""
    stdout = peer.process.stdout
    assert stdout
    try:
        with (peer.folder / f"{peer.name}.jsonl").open("wb") as file:
            while line := await _next_line(peer, stdout):
                file.write(line)
                file.flush()
                _take(peer, line)
                peer.told.set()
    except OSError as error:
        what = f"{peer.name}.jsonl: {error.strerror}"
        raise PeerFailed(peer, what, Exit.INTERNAL) from None


async def _next_line(peer: Peer, stdout: asyncio.StreamReader) -> bytes:
    """Empty at the end. Raises PeerFailed if it is too long."""
    try:
        return await stdout.readline()
    except ValueError:
        raise PeerFailed(peer, "a line without end", Exit.INTERNAL) from None


def _take(peer: Peer, line: bytes) -> None:
    """What it says. Raises PeerFailed if that cannot be understood."""
    if not line.endswith(b"\n"):
        return  # it ended while it wrote this, of which its exit code says more
    try:
        event = events.parse(line.decode("ascii", "backslashreplace"))
        _keep(peer, event)
    except events.BadEvent as error:
        raise PeerFailed(peer, str(error), Exit.INTERNAL) from None
    except (KeyError, TypeError, AttributeError) as error:
        what = f"an event {event['event']} that lacks something: {error}"
        raise PeerFailed(peer, what, Exit.INTERNAL) from None


def _keep(peer: Peer, event: Event) -> None:
    match event["event"]:
        case "start":
            peer.start = event
        case "ready":
            peer.ready = event
        case "summary":
            peer.summary = event
        case "error":
            peer.errors = [*peer.errors, event][-ERRORS_KEPT:]
        case "interval":
            counts = event["messages"]
            peer.messages += counts.get("sent", 0) + counts.get("received", 0)
    peer.observer(peer, event)


async def until_ready(peer: Peer, deadline: float) -> Event:
    """Its ready event. Raises PeerFailed if it ends before, or has not come by DEADLINE."""
    try:
        async with asyncio.timeout_at(deadline):
            while peer.ready is None:
                peer.told.clear()
                if peer.reader is not None and peer.reader.done():
                    peer.reader.result()
                    await peer.exited.wait()
                    raise PeerFailed(
                        peer, f"{_ended(peer)} before it was ready", failure_code(peer)
                    )
                await peer.told.wait()
    except TimeoutError:
        raise PeerFailed(peer, "was not ready in time", Exit.CONNECTION) from None
    return peer.ready


async def until_ended(peer: Peer) -> None:
    """Waits for it. Raises PeerFailed if it has ended badly or without a summary."""
    assert peer.reader
    await asyncio.wait([peer.reader])  # not to be cancelled with us
    peer.reader.result()
    await peer.exited.wait()
    by_us = peer.stopped_by_us and peer.exit_code == 128 + signal.SIGINT
    if peer.exit_code and not by_us:
        raise PeerFailed(peer, _ended(peer), failure_code(peer))
    if peer.summary is None:
        raise PeerFailed(peer, "ended without a summary", Exit.INTERNAL)


def _ended(peer: Peer) -> str:
    code = peer.exit_code or 0
    if peer.host and code == SSH_FAILED:
        return "ssh failed"
    unsettled = peer.summary["messages"].get("unsettled") if peer.summary else None
    if code == Exit.SHORT and unsettled:
        return f"ended with {unsettled} messages not settled (--max-unsettled N: have less waiting)"
    if code <= 128:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(code - 128).name}"
    except ValueError:
        return f"ended with exit code {code}"


def failure_code(peer: Peer) -> int:
    """Its own exit code, where that is one of the table."""
    code = peer.exit_code or Exit.CONNECTION
    return code if code <= Exit.REFUSED or code == Exit.USAGE else Exit.CONNECTION


async def interrupt(peer: Peer) -> None:
    """Asks it to end in order; its results count."""
    if peer.exit_code is None:
        peer.stopped_by_us = True
        await _signal(peer, signal.SIGINT)


async def stop(peer: Peer, ladder: tuple[tuple[signal.Signals, float], ...] = LADDER) -> None:
    """Makes sure that it has ended. Never raises for what the peer does."""
    for number, patience_s in ladder:
        if peer.exit_code is not None:
            break
        peer.stopped_by_us = True
        await _signal(peer, number)
        try:
            async with asyncio.timeout(patience_s):
                await peer.exited.wait()
        except TimeoutError:
            continue
    if peer.reader:
        if peer.exit_code is None:
            peer.reader.cancel()
        await asyncio.gather(peer.reader, return_exceptions=True)
    peer.transport.close()


def kill(peer: Peer) -> None:
    """At once, without waiting for it."""
    if peer.exit_code is None:
        host.signal_here(peer.process.pid, signal.SIGKILL)


async def _signal(peer: Peer, number: signal.Signals) -> None:
    """By pid; of a remote program, its own, which it has told us, or else ssh's."""
    there = peer.start.get("pid") if peer.host is not None and peer.start else None
    if peer.exit_code is None and isinstance(there, int):
        await host.send_signal(peer.host, there, number)
    if peer.exit_code is None and (there is None or number == signal.SIGKILL):
        host.signal_here(peer.process.pid, number)
