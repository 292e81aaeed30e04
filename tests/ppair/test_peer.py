"""One program: its events, and every way in which it can fail, hang or be stopped."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_peer import told
from ppair import peer as peers
from ppair.events import Event
from ppair.failure import Exit, Failure
from ppair.peer import Peer, PeerFailed

Fakes = Callable[..., Path]
Steps = list[Any]

FAR_S = 60.0  # a deadline that is not to be reached
QUICK_LADDER = ((signal.SIGINT, 0.2), (signal.SIGTERM, 0.2), (signal.SIGKILL, FAR_S))


async def _start(folder: Path, observer: peers.Observer, program: str = "precv") -> Peer:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    argv = (str(folder / program), "--format", "json", "--parent-fd", "0")
    return await peers.start(f"{program}-0", None, argv, {}, work, observer)


def _with_peer(
    folder: Path,
    action: Callable[[Peer], Awaitable[Any]],
    observer: peers.Observer = lambda peer, event: None,
) -> tuple[Peer, Any]:
    """Starts precv and has it ended after ACTION, whose result or PeerFailed is returned."""

    async def body() -> tuple[Peer, Any]:
        peer = await _start(folder, observer)
        try:
            async with asyncio.timeout(FAR_S):
                return peer, await action(peer)
        except PeerFailed as failure:
            return peer, failure
        finally:
            await peers.stop(peer, QUICK_LADDER)

    return asyncio.run(body())


def _ready(peer: Peer, patience_s: float = FAR_S) -> Awaitable[Event]:
    return peers.until_ready(peer, asyncio.get_running_loop().time() + patience_s)


def _failure(fakes: Fakes, *steps: Any) -> PeerFailed:
    """Of a program that does STEPS and is waited for."""
    _, failure = _with_peer(fakes(precv=[list(steps)]), peers.until_ended)
    assert isinstance(failure, PeerFailed)
    return failure


# ---- as it should be ----


def test_its_events_are_taken_and_kept_as_they_came(fakes: Fakes) -> None:
    seen: list[str] = []
    steps = ["start", "ready", ["receive", 300], ["receive", 400], "summary"]
    peer, _ = _with_peer(
        fakes(precv=[steps]), peers.until_ended, lambda _, event: seen.append(event["event"])
    )
    assert seen == ["start", "ready", "interval", "interval", "summary"]
    lines = (peer.folder / "precv-0.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == seen
    assert peer.messages == 700
    assert (peer.start, peer.summary) == (json.loads(lines[0]), json.loads(lines[-1]))
    assert peer.exit_code == 0 and not peer.stopped_by_us


def test_ready_is_an_event(fakes: Fakes) -> None:
    _, ready = _with_peer(fakes(precv=[["start", ["ready", {"port": 1234}], "hang"]]), _ready)
    assert ready["port"] == 1234


def test_library_path_is_for_the_program_alone(fakes: Fakes, tmp_path: Path) -> None:
    folder = fakes(precv=[["start"]])

    async def body() -> None:
        argv = (str(folder / "precv"),)
        peer = await peers.start(
            "precv-0", None, argv, {"LD_LIBRARY_PATH": "/opt/x"}, tmp_path, lambda *_: None
        )
        await peer.exited.wait()
        await peers.stop(peer)

    asyncio.run(body())
    assert told(folder, "precv")[0]["library_path"] == "/opt/x"
    assert os.environ.get("LD_LIBRARY_PATH") is None


def test_it_is_not_of_our_terminal(fakes: Fakes) -> None:
    """So that Ctrl-C there does not reach it but by us."""

    async def session(peer: Peer) -> int:
        await _ready(peer)
        return os.getsid(peer.process.pid)

    peer, found = _with_peer(fakes(precv=[["start", "ready", "hang"]]), session)
    assert found == peer.process.pid


def test_errors_of_which_it_tells_do_not_pile_up(fakes: Fakes) -> None:
    error = ["raw", '{"event":"error","what":"x","exit_code":0}\n']
    peer, _ = _with_peer(
        fakes(precv=[["start", ["repeat", 500, error], "summary"]]), peers.until_ended
    )
    assert len(peer.errors) == peers.ERRORS_KEPT


# ---- not ready ----


def test_never_ready(fakes: Fakes) -> None:
    began_s = time.monotonic()
    _, failure = _with_peer(fakes(precv=[["start", "hang"]]), lambda peer: _ready(peer, 0.2))
    assert isinstance(failure, PeerFailed)
    assert str(failure) == "precv-0: was not ready in time"
    assert failure.code == Exit.CONNECTION
    assert time.monotonic() - began_s < FAR_S / 2


def test_it_ends_before_it_is_ready(fakes: Fakes) -> None:
    steps = ["start", ["stderr", "precv: first"], ["stderr", "precv: cannot listen"], ["exit", 2]]
    _, failure = _with_peer(fakes(precv=[steps]), _ready)
    assert str(failure) == (
        'precv-0: ended with exit code 2 before it was ready; it said "precv: cannot listen"'
    )
    assert failure.code == Exit.CONNECTION


def test_it_closes_its_output_before_it_is_ready_and_lives_on(fakes: Fakes) -> None:
    _, failure = _with_peer(
        fakes(precv=[["start", "close", "hang"]]), lambda peer: _ready(peer, 0.3)
    )
    assert str(failure) == "precv-0: was not ready in time"


# ---- a bad end ----


@pytest.mark.parametrize(("code", "expected"), [(1, 1), (6, 6), (64, 64), (7, 2), (77, 2)])
def test_its_exit_code_is_ours_if_it_is_in_the_table(
    fakes: Fakes, code: int, expected: int
) -> None:
    failure = _failure(fakes, "start", "ready", "summary", ["exit", code])
    assert str(failure) == f"precv-0: ended with exit code {code}"
    assert failure.code == expected


@pytest.mark.parametrize("name", ["SIGKILL", "SIGABRT", "SIGTERM"])
def test_it_is_killed(fakes: Fakes, name: str) -> None:
    failure = _failure(fakes, "start", ["stderr", "precv: oh"], ["receive", 5], ["die", name])
    assert str(failure) == f'precv-0: was ended by {name}; it said "precv: oh"'
    assert failure.code == Exit.CONNECTION


def test_it_is_killed_while_it_writes(fakes: Fakes) -> None:
    """The half line is in its file, but the signal is what is reported."""
    half = '{"event":"interval","mess'
    steps = ["start", ["receive", 5], ["raw", half], ["die", "SIGKILL"]]
    peer, failure = _with_peer(fakes(precv=[steps]), peers.until_ended)
    assert str(failure) == "precv-0: was ended by SIGKILL"
    assert (peer.folder / "precv-0.jsonl").read_text().endswith(half)
    assert peer.messages == 5


def test_no_summary(fakes: Fakes) -> None:
    failure = _failure(fakes, "start", "ready", ["exit", 0])
    assert str(failure) == "precv-0: ended without a summary"
    assert failure.code == Exit.INTERNAL


# ---- what it says cannot be understood ----


@pytest.mark.parametrize(
    "line", ["hello", "", '{"event": "error", "what": NaN}', "\u00e9\u4e2d"], ids=ascii
)
def test_garbage_is_quoted_in_ascii(fakes: Fakes, line: str) -> None:
    """See test_events.py for all that is none."""
    failure = _failure(fakes, "start", "ready", ["raw", f"{line}\n"], "hang")
    shown = line.encode("utf-8").decode("ascii", "backslashreplace")[:10]
    assert str(failure).startswith(f'precv-0: "{shown}')
    assert str(failure).endswith('" is not an event')
    assert str(failure).isascii() and len(str(failure)) < 100
    assert failure.code == Exit.INTERNAL


@pytest.mark.parametrize(
    "step",
    [
        ["interval", {"messages": {"received": "5"}}],
        ["summary", {"messages": ""}],
    ],
)
def test_counts_that_are_none(fakes: Fakes, step: Steps) -> None:
    failure = _failure(fakes, "start", "ready", step, "hang")
    assert str(failure) == f"precv-0: an event {step[0]} without its counts of messages"


def test_another_schema(fakes: Fakes) -> None:
    failure = _failure(fakes, ["start", {"schema": "ppair/9"}], "hang")
    assert str(failure) == "precv-0: schema ppair/9, where ppair/1 is understood"


def test_an_observer_that_misses_something(fakes: Fakes) -> None:
    def observer(_: Peer, event: Event) -> None:
        assert event["event"] == "start" or event["rss_bytes"]

    folder = fakes(precv=[["start", ["interval", {"rss_bytes": ""}], "hang"]])
    _, failure = _with_peer(folder, peers.until_ended, observer)
    assert str(failure) == "precv-0: an event interval that lacks something: 'rss_bytes'"


def test_a_line_of_100_mb(fakes: Fakes) -> None:
    peer, failure = _with_peer(
        fakes(precv=[["start", ["line", 100_000_000], "hang"]]), peers.until_ended
    )
    assert str(failure) == "precv-0: a line without end"
    assert (peer.folder / "precv-0.jsonl").stat().st_size < 10_000
    assert peer.exit_code == 128 + signal.SIGKILL  # it could not write on, nor take a signal


# ---- standard error ----


def test_standard_error_may_be_long(fakes: Fakes) -> None:
    """It goes to a file, so that nothing waits for us to read it; the last line is quoted."""
    steps = ["start", ["flood", 3_000_000], ["stderr", "z" * 5000], ["exit", 1]]
    peer, failure = _with_peer(fakes(precv=[steps]), peers.until_ended)
    assert str(failure) == f'precv-0: ended with exit code 1; it said "{"z" * 300}"'
    assert (peer.folder / "precv-0.stderr").stat().st_size == 3_005_001


def test_standard_error_that_is_not_ascii(fakes: Fakes) -> None:
    failure = _failure(fakes, ["stderr", "precv: caf\u00e9"], ["exit", 1])
    assert str(failure).endswith('it said "precv: caf\\xc3\\xa9"')


def test_what_it_always_says_is_not_quoted(fakes: Fakes) -> None:
    failure = _failure(fakes, ["stderr", "precv: listening on 127.0.0.1:5672"], ["exit", 1])
    assert str(failure) == "precv-0: ended with exit code 1"


# ---- stopping ----


def _stop_after_start(folder: Path) -> Peer:
    peer, _ = _with_peer(folder, _ready)
    return peer


def test_sigint_ends_it_in_order(fakes: Fakes) -> None:
    peer = _stop_after_start(fakes(precv=[["start", "ready", ["receive", 7], "hang"]]))
    assert peer.exit_code == 130 and peer.stopped_by_us
    assert peer.summary and peer.summary["messages"]["received"] == 7


def test_the_ladder_goes_on_to_sigterm(fakes: Fakes) -> None:
    peer = _stop_after_start(fakes(precv=[[["ignore", "SIGINT"], "start", "ready", "hang"]]))
    assert peer.exit_code == 128 + signal.SIGTERM


def test_the_ladder_goes_on_to_sigkill(fakes: Fakes) -> None:
    began_s = time.monotonic()
    steps = [["ignore", "SIGINT", "SIGTERM", "PARENT"], "start", "ready", "hang"]
    peer = _stop_after_start(fakes(precv=[steps]))
    assert peer.exit_code == 128 + signal.SIGKILL
    assert time.monotonic() - began_s < FAR_S / 2


def test_the_real_ladders_end_with_sigkill_in_bounded_time() -> None:
    for ladder in (peers.LADDER, peers.SHORT_LADDER):
        assert [step[0] for step in ladder] == [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
        assert sum(patience_s for _, patience_s in ladder) <= 15


def test_one_that_has_ended_is_not_signalled(fakes: Fakes) -> None:
    peer, _ = _with_peer(fakes(precv=[["start", "summary"]]), peers.until_ended)
    assert not peer.stopped_by_us


def test_interrupted_by_us_is_no_failure_but_by_others_it_is(fakes: Fakes) -> None:
    async def interrupted(peer: Peer) -> None:
        await _ready(peer)
        await peers.interrupt(peer)
        await peers.until_ended(peer)

    async def by_another(peer: Peer) -> None:
        await _ready(peer)
        os.kill(peer.process.pid, signal.SIGINT)
        await peers.until_ended(peer)

    folder = fakes(precv=[["start", "ready", "hang"]])
    assert _with_peer(folder, interrupted)[1] is None
    _, failure = _with_peer(folder, by_another)
    assert str(failure) == "precv-0: was ended by SIGINT"


def test_waiting_for_the_end_can_be_given_up(fakes: Fakes) -> None:
    """Its events are read on all the same."""

    async def give_up(peer: Peer) -> None:
        await _ready(peer)
        wait = asyncio.create_task(peers.until_ended(peer))
        await asyncio.sleep(0)
        wait.cancel()
        await asyncio.gather(wait, return_exceptions=True)
        await peers.interrupt(peer)
        await peers.until_ended(peer)

    peer, failure = _with_peer(fakes(precv=[["start", "ready", "hang"]]), give_up)
    assert failure is None and peer.summary


def test_it_ends_when_its_driver_is_gone(fakes: Fakes) -> None:
    async def close_stdin(peer: Peer) -> None:
        await _ready(peer)
        assert peer.process.stdin
        peer.process.stdin.close()
        await peer.exited.wait()

    peer, _ = _with_peer(fakes(precv=[["start", "ready", "hang"]]), close_stdin)
    assert peer.exit_code == 128 + signal.SIGHUP


# ---- descendants ----


def test_a_descendant_that_holds_the_pipe_holds_nobody(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "REST_S", 0.2)
    pid = tmp_path / "pid"
    steps = ["start", ["grandchild", str(pid)], "summary"]
    began_s = time.monotonic()
    try:
        peer, failure = _with_peer(fakes(precv=[steps]), peers.until_ended)
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert failure is None and peer.summary
    assert time.monotonic() - began_s < FAR_S / 2


def test_a_descendant_does_not_keep_it_from_being_stopped(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "REST_S", 0.2)
    pid = tmp_path / "pid"
    steps = ["start", ["grandchild", str(pid)], "ready", "hang"]
    try:
        peer = _stop_after_start(fakes(precv=[steps]))
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert peer.exit_code == 130 and peer.summary


# ---- it cannot be started, or its events not be kept ----


def test_the_program_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="precv-0: .*/precv: No such file or directory") as caught:
        asyncio.run(_start(tmp_path, lambda *_: None))
    assert caught.value.code == Exit.INTERNAL


def test_the_program_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "precv").write_text("#!/bin/sh\n")
    with pytest.raises(Failure, match="precv-0: .*/precv: Permission denied"):
        asyncio.run(_start(tmp_path, lambda *_: None))


def test_the_disk_is_full(fakes: Fakes) -> None:
    folder = fakes(precv=[["start", "ready", "summary"]])
    (folder / "work").mkdir()
    (folder / "work" / "precv-0.jsonl").symlink_to("/dev/full")
    _, failure = _with_peer(folder, peers.until_ended)
    assert str(failure) == "precv-0: precv-0.jsonl: No space left on device"
    assert failure.code == Exit.INTERNAL


def test_the_folder_is_gone(fakes: Fakes) -> None:
    folder = fakes()
    (folder / "work").write_text("a file")
    with pytest.raises(OSError):
        asyncio.run(_start(folder, lambda *_: None))


# ---- memory ----


def test_memory_does_not_grow_with_the_number_of_events(fakes: Fakes) -> None:
    line = '{"event":"interval","messages":{"received":1},"more":{"a":[1,2],"b":0.5}}\n'
    steps = ["start", ["repeat", 500, ["raw", line * 100]], "summary"]
    peak = 0

    def observer(peer: Peer, event: Event) -> None:
        nonlocal peak
        if peer.messages % 10_000 == 0:
            gc.collect()
            peak = max(peak, len(gc.get_objects()))

    before = len(gc.get_objects())
    peer, failure = _with_peer(fakes(precv=[steps]), peers.until_ended, observer)
    assert failure is None and peer.messages == 50_000
    assert 0 < peak < before + 5_000
