"""Processes that tests talk to: heard line by line, ended by pid, gone with the tests at latest."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

HOST = "127.0.0.1"
DEADLINE_S = 120.0  # for anything, on a machine that has other things to do
STOP_S = 10.0  # from SIGTERM on

Found = TypeVar("Found")


class NotReady(Exception):
    """Why a server cannot be used."""


@dataclass
class Server:
    """A process. What it says is appended by a thread of its own."""

    name: str
    process: subprocess.Popen[bytes]
    lines: list[str] = field(default_factory=list)
    more: threading.Condition = field(default_factory=threading.Condition)
    ended: bool = False  # no line will follow
    reader: threading.Thread | None = None


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens now. Somebody may soon: whoever uses them tries again."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start(name: str, words: Sequence[str], folder: Path, env: Mapping[str, str]) -> Server:
    """Its process ends with ours, however that ends."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *words],
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    server = Server(name, process)
    server.reader = threading.Thread(target=_hear, args=(server,), daemon=True)
    server.reader.start()
    return server


def _hear(server: Server) -> None:
    """The thread."""
    assert server.process.stdout
    with server.process.stdout as said:
        for line in said:
            with server.more:
                server.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                server.more.notify_all()
    with server.more:
        server.ended = True
        server.more.notify_all()


def wait_for(server: Server, find: Callable[[str], Found | None]) -> Found:
    """What FIND makes of the first line of which it makes anything. Raises NotReady."""
    deadline_s = time.monotonic() + DEADLINE_S
    seen = 0
    with server.more:
        while True:
            for line in server.lines[seen:]:
                if (found := find(line)) is not None:
                    return found
            seen = len(server.lines)
            left_s = deadline_s - time.monotonic()
            if server.ended or left_s <= 0:
                why = "has ended" if server.ended else "takes too long"
                raise NotReady(f"{server.name} {why}:\n{last_words(server)}")
            server.more.wait(left_s)


def objects(server: Server) -> list[dict[str, Any]]:
    """The lines that are JSON objects."""
    return [json.loads(line) for line in server.lines if line.startswith("{")]


def wait_for_event(server: Server, kind: str) -> dict[str, Any]:
    """The first JSON object whose event is KIND."""
    return wait_for(server, lambda line: _event(line, kind))


def _event(line: str, kind: str) -> dict[str, Any] | None:
    event = json.loads(line) if line.startswith("{") else {}
    return event if event.get("event") == kind else None


def last_words(server: Server, lines: int = 30) -> str:
    """The end of what it has said. Lines may be long."""
    return "\n".join(line[:200] for line in server.lines[-lines:])


def finish(server: Server) -> None:
    """Waits for the end of a process that ends by itself, without an error."""
    try:
        code = server.process.wait(DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{server.name} has not ended:\n{last_words(server)}") from None
    assert server.reader
    server.reader.join(DEADLINE_S)
    assert code == 0, f"{server.name} ended with {code}:\n{last_words(server)}"


def stop(server: Server) -> None:
    """SIGTERM; SIGKILL if that is not enough."""
    process = server.process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert server.reader
    server.reader.join(STOP_S)
