"""Where results come from: the machine, the programs, and the commands, as tables."""

from __future__ import annotations

import shlex
import time

from . import run_files
from .failure import Failure
from .programs import PROGRAMS
from .results import GOOD, Peer, Results, Run
from .table import MISSING, Table, make


def environment_table(results: Results) -> Table:
    """Machine, programs and command."""
    machine = results.machine
    processors = f"{machine.get('cpu_model') or 'processor'}, {machine.get('cpu_count')} of them"
    created = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(results.created_ns // 10**9))
    rows = [
        ("host", machine.get("host")),
        ("processors", processors),
        ("kernel", machine.get("kernel")),
        ("system", machine.get("system")),
        ("frequency governor", machine.get("governor")),
        ("programs", programs(results)),
        ("connections", connections(results)),
        ("python", machine.get("python")),
        ("created", created),
        ("directory", results.directory),
        ("command", shlex.join(results.argv)),
        ("seed of the order", results.plan.seed),
        ("status", results.status + (f": {results.why}" if results.why else "")),
    ]
    cells = [(name, MISSING if value is None else str(value)) for name, value in rows]
    return make("Environment", ("", ""), cells)


def programs(results: Results) -> str | None:
    """Versions, as the programs of the first good run whose files are there gave them."""
    for run in (run for run in results.runs if run.status == GOOD):
        try:
            return _versions(results, run)
        except Failure:
            continue
    return None


def connections(results: Results) -> str | None:
    """How the programs of the first good run were secured: TLS and SASL; None if not at all."""
    for run in (run for run in results.runs if run.status == GOOD):
        try:
            found = [_security(results, run, peer) for peer in run.peers]
        except Failure:
            continue
        return ", ".join(dict.fromkeys(words for words in found if words)) or None
    return None


def _security(results: Results, run: Run, peer: Peer) -> str:
    """In words; programs that do not say so, and those that listen, have none."""
    ready = run_files.first(results, run, peer, "ready") or {}
    tls, sasl = ready.get("tls"), ready.get("sasl")
    words = [f"{tls['protocol']} {tls['cipher']}"] if tls else []
    words += [f"SASL {sasl}"] if sasl else []
    return " with ".join(words)


def _versions(results: Results, run: Run) -> str:
    """Programs, then libraries, then hosts other than this; each once."""
    names: list[str] = []
    libraries: list[str] = []
    hosts: list[str] = []
    for program in PROGRAMS:
        for peer in run_files.peers(run, program):
            start = run_files.first(results, run, peer, "start")
            if start is None:
                continue
            names.append(f"{program} {start['version']}")
            libraries += [f"{name} {version}" for name, version in start["libraries"].items()]
            if peer.host is not None:
                cpu = start["cpu"]
                hosts.append(f"{peer.name} on {start['host']} ({cpu['count']} x {cpu['model']})")
    return ", ".join(dict.fromkeys([*names, *libraries, *hosts]))


def commands_table(results: Results) -> Table:
    """What to type for each point, and what was run for it."""
    rows = []
    for point in results.plan.points:
        rows.append((point.label, f"ppair run {point.spec.command()}"))
        runs = results.good(point.id) or results.of_point(point.id)
        for peer in runs[0].peers if runs else ():
            rows.append((peer.name, shlex.join(peer.argv)))
    return make("Commands", ("point", "command"), rows)
