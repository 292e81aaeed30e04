"""Points x repetitions, run one after another into a results directory.

Whatever ends it, what was measured is in the directory: a run that was interrupted keeps its files
and is done again by --resume; a failed one says why. The first SIGINT, SIGTERM or SIGHUP ends the
run at hand in order, the second at once.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import time
from collections.abc import Coroutine, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from . import advice, certificates, clocks, host, machine, pair, store
from .failure import Exit, usage
from .pair import Outcome
from .peer import Observer
from .progress import Progress
from .results import COMPLETE, FAILED, GOOD, INTERRUPTED, RUNNING, Peer, Point, Results, Run
from .spec import Spec
from .units import count

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interleaved(points: int, repetitions: int, seed: int) -> tuple[tuple[int, int], ...]:
    """The order of runs: in each repetition all points, shuffled."""
    chance = random.Random(seed)
    order = []
    for repetition in range(repetitions):
        entries = [(point, repetition) for point in range(points)]
        chance.shuffle(entries)
        order += entries
    return tuple(order)


def seed_of(text: str | None) -> int:
    """As it was given, or another each time."""
    if text is None:
        return random.SystemRandom().randrange(2**31)
    return count(text, "--seed", 0)


def abba(pairs: int) -> tuple[tuple[int, int], ...]:
    """The order for two points: A B, B A, A B ..., so that a steady drift hits both alike."""
    return tuple(
        (point, repetition)
        for repetition in range(pairs)
        for point in ((0, 1) if repetition % 2 == 0 else (1, 0))
    )


def point_of(results: Results, number: int) -> Point:
    """By its id."""
    return next(point for point in results.plan.points if point.id == number)


def _for_run(results: Results, spec: Spec, name: str) -> Spec:
    """With an address of its own at a broker, and certificates."""
    folder = (results.directory / "tls").absolute()
    if spec.tls:
        specs = [point.spec for point in results.plan.points if point.spec.tls]
        certificates.make(folder, dict.fromkeys(s.listen or host.LOOPBACK for s in specs))
    return spec.for_run(f"ppair-{results.created_ns:x}-{name}", folder)


async def measure(results: Results, number: int, repetition: int, progress: Progress) -> Run:
    """One run of one point, recorded. Cancelled, it is recorded as interrupted."""
    point = point_of(results, number)
    attempt = store.next_attempt(results, number, repetition)
    planned = Run(number, repetition, attempt)
    spec = _for_run(results, point.spec, planned.folder)
    scratch = results.directory / "runs" / f".{planned.folder}"
    shutil.rmtree(scratch, ignore_errors=True)  # of a driver that was killed
    scratch.mkdir()
    progress.began(point.label)
    outcome, started_ns, began_s = Outcome(), time.time_ns(), time.monotonic()
    before = machine.cpu_times()
    cancelled = None
    try:
        await _run_pair(spec, scratch, outcome, progress.event)
    except asyncio.CancelledError as error:
        cancelled = error
        outcome.good, outcome.why, outcome.exit_code = False, "interrupted", Exit.INTERRUPTED
    status = GOOD if outcome.good else INTERRUPTED if cancelled else FAILED
    run = Run(
        number,
        repetition,
        attempt,
        status=status,
        why=outcome.why,
        exit_code=int(outcome.exit_code),
        started_ns=started_ns,
        wall_s=time.monotonic() - began_s,
        steal_percent=machine.steal_percent(before, machine.cpu_times()),
        peers=tuple(
            Peer(p.name, p.host, p.argv, p.exit_code, p.last_stderr()) for p in outcome.peers
        ),
        metrics=outcome.metrics,
        facts=outcome.facts,
    )
    store.record(results, run, scratch)
    progress.ended()
    if cancelled:
        raise cancelled
    return run


async def _run_pair(spec: Spec, folder: Path, outcome: Outcome, observer: Observer) -> None:
    """With a look at the clocks of other hosts before it and after it, while nothing runs."""
    before, after = await clocks.measure(spec), {}
    try:
        await pair.run(spec, folder, outcome, observer, before)
        if outcome.good:
            after = await clocks.measure(spec)
    finally:
        clocks.record(spec, before, after, outcome.facts, outcome.metrics)


async def settle(time_s: float) -> None:
    """Lets what the last run has left behind come to rest; a signal ends that too."""
    with suppress(TimeoutError):
        async with asyncio.timeout(time_s):
            await asyncio.Event().wait()  # which nobody sets


async def measure_all(
    results: Results, entries: Sequence[tuple[int, int]], progress: Progress
) -> None:
    """Several, in this order."""
    for number, repetition in entries:
        run = await measure(results, number, repetition, progress)
        if run.exit_code == Exit.USAGE and results.plan.command != "sweep":
            raise usage(run.why or "")  # the next one would be refused too


def run_all(results: Results, progress: Progress) -> None:
    """What is left of the plan."""
    with progress:
        conduct(results, measure_all(results, results.left(), progress))


def conduct(results: Results, steps: Coroutine[Any, Any, None]) -> None:
    """Runs STEPS to their end, and leaves a directory that says how it ended."""
    with closing(steps), store.locked(results):
        results.status, results.why = RUNNING, None
        try:
            results.status, results.why = asyncio.run(_with_signals(steps))
        except BaseException as error:
            results.status, results.why = FAILED, str(error) or type(error).__name__
            raise
        finally:
            failed = [run for run in results.runs if run.status == FAILED]
            if results.status == COMPLETE and failed:
                results.why = f"{len(failed)} of {len(results.runs)} runs failed"
            store.save_manifest(results)
            save_findings(results)


def save_findings(results: Results) -> None:
    """What can be said of the runs so far."""
    results.warnings = advice.warnings(results)
    store.save_summary(results)


async def _with_signals(steps: Coroutine[Any, Any, None]) -> tuple[str, str | None]:
    """How it ended and why."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(steps)
    signals = [number for number in SIGNALS if not _ignored(number)]
    caught: list[signal.Signals] = []

    def take(number: signal.Signals) -> None:
        caught.append(number)
        task.cancel()

    for number in signals:
        loop.add_signal_handler(number, take, number)
    try:
        await task
    except asyncio.CancelledError:
        if not caught:
            raise
        return INTERRUPTED, f"interrupted by {caught[0].name}"
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
    return COMPLETE, None


def _ignored(number: signal.Signals) -> bool:
    """SIGHUP under nohup."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


def exit_code(results: Results) -> int:
    """Of the first run that failed; 130 if it was interrupted."""
    for run in results.runs:
        if run.status == FAILED:
            return run.exit_code
    return Exit.INTERRUPTED if results.status == INTERRUPTED else Exit.DONE
