"""What the tests of faults share: how a run that was spoilt must have ended, and what a process
does while it waits."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pair
import wire

SHORT, CONNECTION = 4, 2
QUICK = ["--close-timeout", "300ms"]  # a scripted peer need not answer a close
PATIENCE_S = 2.0 if not pair.SANITIZED else 10.0  # for an end that must come at once

WHERE = re.compile(
    r"(?:psend|precv): (?:(?:link|session) of )?"
    r"connection (?:to|from) (?:[\w.]+|\[[0-9a-f:]+\]):\d+ failed: (?P<why>\S.*)"
)


def other(program: str) -> str:
    """The one that PROGRAM talks to."""
    return "precv" if program == "psend" else "psend"


def why(lines: list[str]) -> str:
    """The reason in the one line of stderr, which must also say what failed, and where."""
    assert len(lines) == 1, lines
    said = WHERE.fullmatch(lines[0])
    assert said, lines
    return said["why"]


def assert_failed(result: pair.Result, reason: str) -> None:
    """Exit code 2, and one line, with this in it; the summary is there."""
    assert result.code == CONNECTION, result
    assert reason in why(result.lines)
    assert result.summary["exit_code"] == CONNECTION and not result.summary["complete"]
    if result.messages.get("accepted") is not None:
        pair.assert_accounts(result.summary)


def serve(child: pair.Child, messages: int) -> tuple[pair.Result, pair.Result]:
    """Lets a program that listens, and wants so many messages, meet a proper peer. Returns first
    the program's result."""
    ready = pair.wait_for(child, "ready")
    peer = pair.run(other(child.name), f"{pair.HOST}:{ready['port']}/test", "-m", str(messages))
    result = pair.finish(child)
    pair.assert_codes((result, peer), 0, 0)
    sent, received = (result, peer) if child.name == "psend" else (peer, result)
    assert sent.messages["accepted"] == received.messages["received"] == messages
    return result, peer


def receive(peer: wire.Peer, count: int) -> None:
    """Takes and settles so many messages of the program, then an end in order."""
    for _ in range(count):
        peer.settle(peer.expect(wire.TRANSFER)["delivery_id"])
    peer.answer_close()


def end_soon(peer: wire.Peer) -> None:
    """The program must close the connection, and not only some day."""
    peer.socket.settimeout(PATIENCE_S)
    peer.wait_for_end()


# ---- processes ----


def cpu_s(pid: int) -> float:
    """Processor time of all threads so far."""
    return sum(
        int((task / "schedstat").read_text(encoding="ascii").split()[0])
        for task in Path(f"/proc/{pid}/task").iterdir()
    ) / 1e9


def assert_waits(child: pair.Child, for_s: float = 0.3) -> None:
    """It lives, and uses next to no processor time: nothing happens meanwhile, so that time has to
    pass. What it had to do before may still go on for a while, on a machine that has other work."""
    used = []
    while not used or used[-1] >= for_s / (5 if pair.SANITIZED else 10):
        assert len(used) < 6, f"{child.name} is busy: {used} s of {for_s} s each"
        before = cpu_s(child.pid)
        time.sleep(for_s)
        assert child.process.poll() is None
        used.append(cpu_s(child.pid) - before)


def resident(pid: int) -> int:
    """Bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
