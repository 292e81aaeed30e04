"""Clients of other makes, as processes: each sends or receives so many messages, and ends.

All understand the same words:

    send|receive --messages N [--connect HOST:PORT [--ca FILE]] [--sasl] [--address A]
                 [--presettled] [--body TEXT] [--kind data|binary|string|number|list|map]
                 [--native] [--rich [--hop]]

Without --connect they listen, if their library can; with --ca they connect with TLS. Bodies are a
data section, or a value of another kind. With --native numbers are of the type that the library
chooses for the language's own; with --rich messages have header, properties and annotations, with
--hop delivery annotations too. What they see they say as JSON, one object a line: `listening` with
the port, `message` for each, `error`, and `done` with the outcomes of what was sent.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pair
import rhea
import server
from server import HOST, Server

HERE = Path(__file__).resolve().parent
FOLDER = pair.BIN.parent / "interop"  # for what is installed once
PYTHON = "/usr/bin/python3"
KINDS = ("rhea", "proton", "uamqp")
LISTENERS = ("rhea", "proton")  # uamqp is a client only

RUNNING: list[Server] = []


def start(kind: str, *words: str) -> Server:
    """A peer with these words."""
    env = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(HERE.parent / "system")}
    if kind == "rhea":
        argv = ["node", str(HERE / "rhea_peer.js")]
        env["NODE_PATH"] = str(rhea.install(FOLDER))
    else:
        argv = [PYTHON, str(HERE / f"{kind}_peer.py")]
    peer = server.start(kind, [*argv, *words], HERE, env)
    RUNNING.append(peer)
    return peer


def connect(kind: str, role: str, url: str, messages: int, *words: str) -> Server:
    """A peer that connects to HOST:PORT/ADDRESS."""
    authority, address = url.removeprefix("amqp://").split("/", 1)
    where = ["--connect", authority, "--address", address]
    return start(kind, role, *where, "--messages", str(messages), *words)


def listen(kind: str, role: str, messages: int, *words: str) -> tuple[Server, str]:
    """A peer that listens, and the URL where it does."""
    peer = start(kind, role, "--messages", str(messages), *words)
    return peer, f"{HOST}:{server.wait_for_event(peer, 'listening')['port']}/test"


def finish(peer: Server) -> list[dict[str, Any]]:
    """Waits for its end. Returns what it has seen."""
    server.finish(peer)
    RUNNING.remove(peer)
    return server.objects(peer)


def end_all() -> None:
    """Those that a failed test has left."""
    while RUNNING:
        server.stop(RUNNING.pop())


# ---- what it has seen ----


def outcomes(events: list[dict[str, Any]]) -> dict[str, int]:
    """Of what it has sent."""
    return dict(events[-1]["outcomes"])


def messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """That it has received, in their order."""
    return [event for event in events if event["event"] == "message"]


def bodies(events: list[dict[str, Any]]) -> list[bytes]:
    """Of the messages: data sections."""
    return [base64.b64decode(message["body"]) for message in messages(events)]
