"""Senders in open loop are in step, each a share of the gap after the one before.

Several schedules of the same rate that begin when their programs happen to be ready would send
together as often as not, and each of them would be measured waiting for the others. So senders are
given a common time (--start-at), put off for each by its share of a gap: psend's schedule stays in
step with that time, even if the program has come late for it.

A sender on another host is given that time by the host's clock, whose offset from ours was measured
before the run (clocks.py). The phases are off by as much as that is uncertain, and by what the
clocks have drifted until the end; where that is no small share of the distance of two senders,
phases mean nothing, and the tables say so. A run's facts have it as `phases`. If the clock of a
host is not known, no sender is put in step: a time in its future might be any.

With --poisson there is no phase; but one seed for all would be one schedule for all, so each sender
has the next one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .clock_error import OURS, Host, Offset, Offsets
from .failure import usage
from .programs import PSEND
from .spec import Spec
from .units import digits, number

# From the first sender's start until messages are due: for starting, connecting and TLS.
LEAD_NS = 200_000_000
LEAD_OF_EACH_NS = 20_000_000
# Of the distance of two senders: beyond it one may be nearer to another's place than to its own.
ERROR_SHARE = 0.5


def is_paced(spec: Spec) -> bool:
    """Whether there are several schedules."""
    return spec.senders > 1 and spec.option(PSEND, "--send-rate") is not None


def hosts(spec: Spec) -> list[Host]:
    """Of the senders, which take them in turn, if clocks matter; None is this machine."""
    if not is_paced(spec):
        return []
    return list(spec.psend_hosts[: spec.senders]) or [None]


def words(spec: Spec, offsets: Offsets) -> list[tuple[str, ...]]:
    """For each sender, behind all others; OFFSETS are those of hosts(), as they were measured."""
    found: list[tuple[str, ...]] = [()] * spec.senders
    if not is_paced(spec):
        return found
    if not why_not(spec, offsets):
        start_ns, apart_ns = common_start_ns(spec), gap_ns(spec) / spec.senders
        there = itertools.cycle(_of(host, offsets).offset_ns or 0 for host in hosts(spec))
        found = [
            ("--start-at", str(start_ns + round(i * apart_ns) + ahead_ns))
            for i, ahead_ns in zip(range(spec.senders), there)
        ]
    seed = spec.option(PSEND, "--poisson")
    if seed is not None and seed.isdecimal():
        found = [(*each, f"--poisson={int(seed) + i}") for i, each in enumerate(found)]
    return found


def why_not(spec: Spec, offsets: Offsets) -> str | None:
    """Why senders cannot be put in step; None if they can."""
    for host in hosts(spec):
        offset = _of(host, offsets)
        if offset.offset_ns is None:
            return f"clock of {host}: {offset.why}"
    return None


def _of(host: Host, offsets: Offsets) -> Offset:
    return OURS if host is None else offsets.get(host) or Offset(None, None, 0, "was not measured")


def common_start_ns(spec: Spec) -> int:
    """Since the epoch, by our clock: as it was given, or a little later than now."""
    given = spec.option(PSEND, "--start-at")
    if given is not None and given.isdecimal():
        return int(given)
    return time.time_ns() + LEAD_NS + spec.senders * LEAD_OF_EACH_NS


def gap_ns(spec: Spec) -> float:
    """Between the messages, or batches, of each sender."""
    rate = number(spec.option(PSEND, "--send-rate") or "")
    if not rate:
        raise usage("--send-rate: is not a number of messages a second above 0")
    batch = number(spec.option(PSEND, "--batch") or "1") or 1.0
    return 1e9 * batch / rate


# ---- how far off they are ----


@dataclass(frozen=True)
class Phases:
    """Of senders on other hosts: the member `phases` of a run's facts."""

    apart_ns: int | None  # the distance of two senders; None: they are not in step
    error_ns: int | None  # by how much it may be off
    why: str | None  # if they are not in step


def to_facts(spec: Spec, before: Offsets, after: Offsets) -> dict[str, Any]:
    """The member, if there is anything to be said."""
    if not is_paced(spec) or not spec.psend_hosts or "--poisson" in _names(spec):
        return {}
    why = why_not(spec, before)
    if why:
        return {"phases": asdict(Phases(None, None, why))}
    pairs = itertools.combinations(dict.fromkeys(hosts(spec)), 2)
    error_ns = max((_error_ns(a, b, before, after) for a, b in pairs), default=0)
    apart_ns = round(gap_ns(spec) / spec.senders)
    return {"phases": asdict(Phases(apart_ns, error_ns, None))}


def of_facts(facts: Mapping[str, Any]) -> Phases | None:
    """What to_facts() has put there. Raises TypeError or ValueError if it is not as written."""
    written = facts.get("phases")
    if written is None:
        return None
    found = Phases(**written)
    numbers = [type(n) is int and n >= 0 for n in (found.apart_ns, found.error_ns)]
    if not all(numbers) and (any(numbers) or not isinstance(found.why, str)):
        raise ValueError("phases are not numbers")
    return found


def _names(spec: Spec) -> set[str]:
    return {word.partition("=")[0] for word in spec.psend}


def _error_ns(a: Host, b: Host, before: Offsets, after: Offsets) -> int:
    """At first, what was not known of the two clocks then; at the end also what they have moved."""
    at_first = _apart(a, b, before)
    at_last = _apart(a, b, after)
    assert at_first
    if at_last is None:  # of a run that has failed
        return at_first[1]
    return max(at_first[1], abs(at_last[0] - at_first[0]) + at_last[1])


def _apart(a: Host, b: Host, offsets: Offsets) -> tuple[int, int] | None:
    """By how much b's clock is ahead of a's, and how uncertain that is; None: not known."""
    ends = [_of(host, offsets) for host in (a, b)]
    known = [(end.offset_ns, end.uncertainty_ns) for end in ends]
    (x, of_x), (y, of_y) = known
    if x is None or y is None or of_x is None or of_y is None:
        return None
    return y - x, of_x + of_y


def notes(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence on the worst of RUNS, of which these are the facts, if its phases mean nothing."""
    worst, share = None, ERROR_SHARE
    for found in filter(None, map(of_facts, runs)):
        if found.error_ns is None or found.apart_ns is None:
            return [f"Senders are not in step ({found.why}): how their messages meet is by chance."]
        if found.error_ns > share * found.apart_ns:
            worst, share = (found.apart_ns, found.error_ns), found.error_ns / max(found.apart_ns, 1)
    if worst is None:
        return []
    apart_us, error_us = (digits(ns / 1e3, 3) for ns in worst)
    return [
        f"Senders' phases mean nothing: they are to be {apart_us} us apart, and their hosts' "
        f"clocks are known to +- {error_us} us."
    ]
