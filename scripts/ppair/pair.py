"""One run of one arrangement: receivers first, senders when those are ready, until all have ended.

Nothing here sleeps: every wait is for an event, the end of a process, or the deadline.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import facts, host, measured, metrics, phases, secret, peer as peers
from .accounting import count, what_is_missing
from .clock_error import Offsets
from .events import MISSHAPEN, SCHEMA, Event
from .failure import Exit, Failure
from .peer import Observer, Peer, PeerFailed
from .programs import PRECV, PSEND, with_files_of
from .spec import READY_DEADLINE_S, Spec
from .units import duration, seconds

# How long receivers may be without messages before they are taken to have all.
DRAIN_S = 5.0
# How long those that fail because another has failed may take to say so.
AFTERMATH_S = 0.3
# Exit codes that the loss of its peer can give a program.
CONSEQUENCES = (Exit.DONE, Exit.CONNECTION, Exit.SHORT, Exit.VERIFICATION, Exit.REFUSED)


@dataclass
class Outcome:
    """What came of it."""

    good: bool = False
    why: str | None = None  # if it is not
    exit_code: int = Exit.INTERNAL
    peers: list[Peer] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


async def run(
    spec: Spec, folder: Path, outcome: Outcome, observer: Observer, offsets: Offsets
) -> None:
    """Runs it, with its files in FOLDER; OFFSETS are of other hosts' clocks, if they are known.

    A failed run is an outcome, not an exception. OUTCOME is filled as things happen. Cancelled,
    this has senders end in order, and measures what there is; cancelled again, it ends them at
    once. No program outlives it.
    """
    senders: list[Peer] = []
    receivers: list[Peer] = []
    began = asyncio.get_running_loop().time()
    deadline = began + spec.run_deadline_s
    try:
        try:
            await _start_receivers(spec, folder, outcome, observer, receivers)
            await _until_ready(receivers, min(began + READY_DEADLINE_S, deadline))
            await _start_senders(spec, folder, outcome, observer, offsets, receivers, senders)
            await _until_ended(spec, senders, receivers, deadline)
        except asyncio.CancelledError:
            await _end_in_order(spec, senders, receivers)
            _account(spec, outcome, senders, receivers)
            raise
        _account(spec, outcome, senders, receivers)
    except PeerFailed as failure:
        first = await _first_cause(failure, outcome.peers)
        outcome.why, outcome.exit_code = str(first), first.code
    except (Failure, OSError) as failure:
        outcome.why = str(failure)
        outcome.exit_code = failure.code if isinstance(failure, Failure) else Exit.INTERNAL
    finally:
        await _stop_all(outcome)


# ---- starting ----


def _common(spec: Spec) -> list[str]:
    # On one machine both have one monotonic clock, which nobody sets. On several, nobody there is
    # told by a network that is cut that the driver has gone.
    return ["--clock", "monotonic"] if spec.local else ["--idle-timeout", "1min"]


def _argv(spec: Spec, program: str, name: str, *more: str) -> tuple[str, ...]:
    words = with_files_of(spec.psend if program == PSEND else spec.precv, name)
    ours = ("--format", "json", "--parent-fd", "0", *more)
    return (spec.program(program), *_common(spec), *words, *ours)


def _host_of(spec: Spec, program: str, index: int) -> host.Host:
    hosts = spec.hosts(program)
    return hosts[index % len(hosts)] if hosts else None


def listen_address(spec: Spec, where: host.Host) -> str:
    """On which a receiver there listens."""
    if spec.listen:
        return spec.listen
    return host.LOOPBACK if spec.local else host.address(where)


async def _start(
    spec: Spec,
    program: str,
    index: int,
    folder: Path,
    outcome: Outcome,
    observer: Observer,
    *more: str,
) -> Peer:
    environment = {"LD_LIBRARY_PATH": spec.library_path} if spec.library_path else {}
    where = _host_of(spec, program, index)
    name = f"{program}-{index}"
    argv = _argv(spec, program, name, *more)
    password = secret.password() if where and spec.authenticates(program) else None
    if password is not None and b"\n" in password:
        what = f"{where}: a password with a line end cannot be sent there; use --password-file"
        raise Failure(Exit.USAGE, what)
    started = await peers.start(name, where, argv, environment, folder, observer, password)
    outcome.peers.append(started)
    return started


async def _start_receivers(
    spec: Spec, folder: Path, outcome: Outcome, observer: Observer, started: list[Peer]
) -> None:
    for index in range(spec.receivers):
        where = _host_of(spec, PRECV, index)
        to = [spec.via] if spec.via else ["--listen", _join(listen_address(spec, where), 0)]
        to += ["--forever"] if spec.endless and not spec.via else []
        started.append(await _start(spec, PRECV, index, folder, outcome, observer, *to))


async def _until_ready(receivers: Sequence[Peer], deadline: float) -> None:
    async with _tasks(peers.until_ready(receiver, deadline) for receiver in receivers) as waits:
        await _all_well(waits, waits)


async def _start_senders(
    spec: Spec,
    folder: Path,
    outcome: Outcome,
    observer: Observer,
    offsets: Offsets,
    receivers: Sequence[Peer],
    started: list[Peer],
) -> None:
    in_step = enumerate(phases.words(spec, offsets))
    for (index, words), receiver in zip(in_step, itertools.cycle(receivers)):
        to = spec.via or _url(spec, listen_address(spec, receiver.host), receiver)
        started.append(await _start(spec, PSEND, index, folder, outcome, observer, *words, to))


def _join(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _url(spec: Spec, address: str, receiver: Peer) -> str:
    port = receiver.ready.get("port") if receiver.ready else None
    if not isinstance(port, int):
        raise PeerFailed(receiver, "does not say on which port it listens", Exit.INTERNAL)
    scheme = "amqps" if spec.listens_with_tls else "amqp"
    return f"{scheme}://{_join(address, port)}/ppair"


# ---- waiting ----

Tasks = list[asyncio.Task[Any]]


@asynccontextmanager
async def _tasks(coroutines: Iterable[Coroutine[Any, Any, Any]]) -> AsyncIterator[Tasks]:
    """They run at the same time, and no longer than the block."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _all_well(needed: Tasks, watched: Tasks) -> None:
    """Returns when NEEDED have ended, raises when one of WATCHED has failed."""
    while not all(task.done() for task in needed):
        pending = [task for task in watched if not task.done()]
        await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            if task.done():
                task.result()
    for task in needed:
        task.result()


async def _until_ended(
    spec: Spec, senders: Sequence[Peer], receivers: Sequence[Peer], deadline: float
) -> None:
    """Raises PeerFailed for the first that ends badly, or that has not ended by the DEADLINE."""
    everyone = [*senders, *receivers]
    async with _tasks(peers.until_ended(p) for p in everyone) as ends:
        try:
            async with asyncio.timeout_at(deadline):
                if spec.endless:
                    await _all_well(ends[: len(senders)], ends)
                    async with _tasks([_drain(spec, senders, receivers)]) as drain:
                        await _all_well(drain, [*drain, *ends])
                await _all_well(ends, ends)
        except TimeoutError:
            late = next((p for p, task in zip(everyone, ends) if not task.done()), everyone[-1])
            what = f"has not ended {duration(spec.run_deadline_s)} after the start"
            raise PeerFailed(late, what, Exit.CONNECTION) from None


async def _drain(spec: Spec, senders: Sequence[Peer], receivers: Sequence[Peer]) -> None:
    """Ends the receivers when they have what was sent, or nothing comes any more."""
    loop = asyncio.get_running_loop()
    sent = [sender.summary["messages"] for sender in senders if sender.summary]
    taken = sum(_on_the_way(spec, messages) for messages in sent)
    patience_s = DRAIN_S + seconds(spec.option(PRECV, "--interval") or "1s", "--interval")
    before, deadline = -1, 0.0
    while (now := sum(receiver.messages for receiver in receivers)) < taken:
        if now != before:
            before, deadline = now, loop.time() + patience_s
        running = [receiver for receiver in receivers if receiver.exit_code is None]
        if not running or loop.time() >= deadline:
            break
        for receiver in running:
            receiver.told.clear()
        async with _tasks(receiver.told.wait() for receiver in running) as told:
            left_s = deadline - loop.time()
            await asyncio.wait(told, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
    for receiver in receivers:
        await peers.interrupt(receiver)


def _on_the_way(spec: Spec, messages: Event) -> int:
    """What of a sender's messages may still be; receivers have what they have accepted."""
    accepted = messages.get("accepted")
    if accepted is None:
        return int(messages.get("sent") or 0)
    return int(accepted) if spec.via else 0


# ---- the end ----


async def _end_in_order(spec: Spec, senders: Sequence[Peer], receivers: Sequence[Peer]) -> None:
    """Senders first, so that what they have sent arrives; direct receivers end by themselves."""
    try:
        for p in senders:
            await peers.interrupt(p)
        await _wait_for(senders)
        if spec.endless:
            await _drain(spec, senders, receivers)
        if senders:
            await _wait_for(receivers)
    except asyncio.CancelledError:
        _kill([*senders, *receivers])
        raise


async def _wait_for(group: Sequence[Peer]) -> None:
    """Until they have ended, however they do, or are taken to hang."""
    async with _tasks(peers.until_ended(p) for p in group) as ends:
        if ends:
            await asyncio.wait(ends, timeout=peers.LADDER[0][1])


def _account(
    spec: Spec, outcome: Outcome, senders: Sequence[Peer], receivers: Sequence[Peer]
) -> None:
    """A run is good only if every message is accounted for."""
    if not senders or not all(p.summary for p in [*senders, *receivers]):
        outcome.why = "ended before there were results"
        return
    try:
        _judge(spec, outcome, senders, receivers)
    except MISSHAPEN as error:
        outcome.good, outcome.exit_code = False, Exit.INTERNAL
        outcome.why = f"start and summary are not as {SCHEMA} has them: {error!r}"


def _judge(
    spec: Spec, outcome: Outcome, senders: Sequence[Peer], receivers: Sequence[Peer]
) -> None:
    psend = [p.summary for p in senders if p.summary]
    precv = [p.summary for p in receivers if p.summary]
    starts = [[p.start for p in group if p.start] for group in (senders, receivers)]
    processors = facts.processors([*starts[0], *starts[1]])
    outcome.metrics = measured.measure(psend, precv, spec.by_broker, processors)
    if spec.shares_queue:
        outcome.metrics["duplicated"] = None  # numbers of several senders are taken for one's
    outcome.facts = facts.of_run(starts[0], starts[1], psend, precv)
    outcome.why = outcome.facts["missing"] = what_is_missing(spec, psend, precv)
    if outcome.why is None and outcome.metrics[metrics.PRIMARY] is None:
        outcome.why = _nothing_measured(psend, outcome.metrics["limited_by"])
    outcome.good = outcome.why is None
    outcome.exit_code = Exit.DONE if outcome.good else Exit.SHORT


def _nothing_measured(psend: Sequence[Event], limit: str) -> str:
    if limit == "credit" and not count(psend, "sent"):
        return "nothing was sent: the senders were never given credit"
    return "nothing was measured: fewer than two messages after the warm-up"


async def _first_cause(failure: PeerFailed, started: Sequence[Peer]) -> PeerFailed:
    """The failure that explains the others: a peer that died, rather than one that lost it."""
    if failure.code != Exit.CONNECTION or _died(failure.peer):
        return failure
    others = [p for p in started if p is not failure.peer]
    async with _tasks(p.exited.wait() for p in others) as ends:
        if ends:
            await asyncio.wait(ends, timeout=AFTERMATH_S)
    for suspect in others:
        if _died(suspect):
            try:
                await peers.until_ended(suspect)
            except PeerFailed as earlier:
                return earlier
    return failure


def _died(suspect: Peer) -> bool:
    """Of something else than the loss of its peer."""
    return suspect.exit_code is not None and suspect.exit_code not in CONSEQUENCES


async def _stop_all(outcome: Outcome) -> None:
    ladder = peers.LADDER if outcome.why is None else peers.SHORT_LADDER
    stops = [asyncio.create_task(peers.stop(p, ladder)) for p in outcome.peers]
    if not stops:
        return
    try:
        await asyncio.shield(asyncio.wait(stops))
    except asyncio.CancelledError:  # asked a second time: by force
        _kill(outcome.peers)
        await asyncio.wait(stops)
        raise


def _kill(group: Sequence[Peer]) -> None:
    for p in group:
        peers.kill(p)
