"""Where a program runs: on this machine, or at the other end of ssh.

Remote programs are told that the driver is gone by the end of their standard input, as local ones
are: ssh closes it when it dies or loses its connection.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from .failure import Exit, Failure, usage
from .secret import VARIABLE

LOOPBACK = "127.0.0.1"
# It neither asks nor waits for long: not for a connection, nor for an answer on one.
SSH_OPTIONS = (
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
)
SSH = ("ssh", *(word for option in SSH_OPTIONS for word in ("-o", option)))
# ssh would end with 255 when a signal has ended the program; a shell says which it was.
THERE = '"$@"; exit $?'
# A password comes as a line of standard input, of which `read` takes no more than that: the program
# has the rest, whose end tells it that the driver is gone.
PASSWORD_FIRST = f"IFS= read -r {VARIABLE} && export {VARIABLE} || exit 1; "
SSH_TIMEOUT_S = 15.0

Host = str | None  # an ssh destination; None: this machine


def expand(text: str) -> tuple[str, ...]:
    """Hosts of a list in ClusterShell's notation, node[1-4],other."""
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    try:
        found = tuple(NodeSet(text))
    except NodeSetException as error:
        raise usage(f'hosts: "{text}": {error}') from None
    if not found:
        raise usage("hosts: the list is empty")
    return found


def command(
    host: Host,
    argv: Sequence[str],
    environment: Mapping[str, str],
    takes_password: bool = False,
) -> list[str]:
    """What to execute here so that ARGV runs there, once it has read a password if it takes one."""
    if host is None:
        return list(argv)
    shell = (PASSWORD_FIRST if takes_password else "") + THERE
    settings = [f"{name}={value}" for name, value in environment.items()]
    remote = ["sh", "-c", shell, "sh", *(["env", *settings] if settings else []), *argv]
    return [*SSH, "--", host, shlex.join(remote)]


def environment_here(host: Host, environment: Mapping[str, str]) -> dict[str, str]:
    """Of the process that is started here: messages in English, and ENVIRONMENT if it is local."""
    return {**os.environ, "LC_ALL": "C", **({} if host else environment)}


@cache
def address(host: Host) -> str:
    """At which HOST can be reached: what ssh makes of its name, aliases considered."""
    if host is None:
        return LOOPBACK
    try:
        found = subprocess.run(
            ["ssh", "-G", "--", host],
            capture_output=True,
            text=True,
            timeout=SSH_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(Exit.INTERNAL, f"ssh -G {host}: {error}") from None
    for line in found.stdout.splitlines():
        if line.startswith("hostname "):
            return line.split(" ", 1)[1]
    raise Failure(Exit.CONNECTION, f"{host}: ssh does not know this host")


def signal_here(pid: int, number: signal.Signals) -> None:
    """To a process of ours; one that has ended is no error."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


async def send_signal(host: Host, pid: int, number: signal.Signals) -> None:
    """The same at the other end of ssh; None: here."""
    if host is None:
        signal_here(pid, number)
        return
    remote = await asyncio.create_subprocess_exec(
        *SSH, "--", host, f"kill -{int(number)} {pid}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SSH_TIMEOUT_S):
            await remote.wait()
    except TimeoutError:
        remote.kill()
