"""Asks other hosts what time it is there, before and after a run and never during it.

Over one ssh connection to a host, a shell there answers each line with its time.
"""

from __future__ import annotations

import asyncio
import itertools
import shlex
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import IO, Any

from . import clock_error, host, phases
from .clock_error import Host, Offset, Trip
from .programs import PRECV, PSEND
from .spec import Spec

# bash's own variable, as a program started for each answer would make trips long.
ANSWER = 'while read -r _; do echo "$EPOCHREALTIME"; done'
TRIPS = 200
# Fewer if they are slow: as many as can be made in so long.
TRIPS_S = 2.0
# In all, with connecting, of which the programs have more to say if it fails.
PATIENCE_S = 8.0
ENDING_S = 1.0
SAID_BYTES = 4096
NOT_FOUND = 127  # the exit code if there is no bash
SSH_FAILED = 255

Ask = Callable[[], Awaitable[str]]  # sends a question, and returns the line that answers it
Clock = Callable[[], int]


class Unanswered(Exception):
    """Why; or nothing, if the program that should have asked has ended."""


def pairs(spec: Spec) -> list[tuple[Host, Host]]:
    """Hosts of senders and receivers between which messages go, each pair once."""
    senders, receivers = (
        [hosts[index % len(hosts)] if hosts else None for index in range(count)]
        for hosts, count in (
            (spec.hosts(PSEND), spec.senders),
            (spec.hosts(PRECV), spec.receivers),
        )
    )
    if spec.via:
        return list(dict.fromkeys(itertools.product(senders, receivers)))
    return list(dict.fromkeys(zip(senders, itertools.cycle(receivers))))


async def measure(spec: Spec) -> dict[str, Offset]:
    """Of each host whose clock matters, from ours."""
    ends = [pair for pair in pairs(spec) if pair[0] != pair[1]]
    named = [*(where for pair in ends for where in pair), *phases.hosts(spec)]
    hosts = [where for where in dict.fromkeys(named) if where is not None]
    offsets = await asyncio.gather(*(of_host(where) for where in hosts))
    return dict(zip(hosts, offsets))


def record(
    spec: Spec,
    before: dict[str, Offset],
    after: dict[str, Offset],
    facts: dict[str, Any],
    metrics: dict[str, Any],
) -> None:
    """Puts what was measured into the FACTS and METRICS of a run, if it had several clocks."""
    if before or after:
        facts["clocks"] = clock_error.to_facts(before, after)
    if metrics:
        facts |= phases.to_facts(spec, before, after)
    error = clock_error.worst(pairs(spec), before, after)
    if error is None:
        return
    if "monotonic" in (spec.option(program, "--clock") for program in (PSEND, PRECV)):
        why = "--clock monotonic is another clock on each host"
        error = clock_error.ClockError(error.sender, error.receiver, None, why=why)
    facts["clock_error"] = asdict(error)
    if metrics:
        metrics["latency_error_ns"] = error.bound_ns


async def of_host(where: str) -> Offset:
    """Never raises for what a host does: then the offset is not known, and why."""
    words = [*host.SSH, "--", where, shlex.join(["env", "LC_ALL=C", "bash", "-c", ANSWER])]
    # in a file, as a connection that ssh keeps for later would hold a pipe open
    with tempfile.TemporaryFile() as errors:
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=host.environment_here(where, {}),
                start_new_session=True,  # Ctrl-C at the terminal is ours to pass on
            )
        except OSError as error:
            return clock_error.unknown(f"ssh: {error.strerror}")
        try:
            return await _offset(process)
        except Unanswered as reason:
            return clock_error.unknown(str(reason) or _reason(process.returncode, errors))
        finally:
            await _end(process)


async def _offset(process: asyncio.subprocess.Process) -> Offset:
    """Raises Unanswered, without a reason if the process has ended."""
    trips: list[Trip] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            await make_trips(_asks(process), trips)
    except TimeoutError:
        if not trips:
            raise Unanswered(f"no answer in {PATIENCE_S:.0f} s") from None
    return clock_error.estimate(trips)


async def make_trips(
    ask: Ask,
    made: list[Trip],
    realtime: Clock = time.time_ns,
    monotonic: Clock = time.monotonic_ns,
) -> None:
    """Adds round trips to MADE. Raises Unanswered if ASK does or if an answer is not a time."""
    first_ns = None
    while len(made) < TRIPS:
        # in this order, so that the answer is made between sent_ns and took_ns later
        start_ns = monotonic()
        sent_ns = realtime()
        line = await ask()
        end_ns = monotonic()
        made.append(Trip(sent_ns, end_ns - start_ns, _time_ns(line)))
        first_ns = first_ns or end_ns  # the first has the connecting in it
        if end_ns - first_ns > TRIPS_S * 1e9:
            break


def _time_ns(line: str) -> int:
    """Of bash's seconds with six decimals."""
    text = line.strip()
    whole, point, decimals = text.partition(".")
    if not text:
        raise Unanswered("bash there does not know EPOCHREALTIME, which takes version 5")
    if not (point and text.isascii() and whole.isdigit() and decimals.isdigit()):
        raise Unanswered(f'the answer "{text[:40]}" is not a time')
    return int(f"{whole}{decimals:0<9.9}")


def _asks(process: asyncio.subprocess.Process) -> Ask:
    assert process.stdin and process.stdout
    stdin, stdout = process.stdin, process.stdout

    async def ask() -> str:
        try:
            stdin.write(b"\n")
            await stdin.drain()
            line = await stdout.readline()
        except ConnectionError:
            line = b""
        except ValueError:
            raise Unanswered("the answer has no end") from None
        if not line.endswith(b"\n"):
            await process.wait()
            raise Unanswered
        return line.decode("ascii", "backslashreplace")

    return ask


def _reason(code: int | None, errors: IO[bytes]) -> str:
    """Why it has ended."""
    if code == NOT_FOUND:
        return "there is no bash there"
    errors.seek(0)
    said = errors.read(SAID_BYTES).decode("ascii", "backslashreplace").strip()
    last = said.splitlines()[-1] if said else f"exit code {code}"
    return f"ssh failed: {last}" if code == SSH_FAILED else f"the shell there failed: {last}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """The shell ends with its input; what does not end in time is killed."""
    assert process.stdin
    process.stdin.close()
    try:
        async with asyncio.timeout(ENDING_S):
            await process.communicate()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
