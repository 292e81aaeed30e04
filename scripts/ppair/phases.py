"""Senders in open loop are in step, each a share of the gap after the one before.

Several schedules of the same rate that begin when their programs happen to be ready would send
together as often as not, and each of them would be measured waiting for the others. So senders are
given a common time (--start-at), put off for each by its share of a gap: psend's schedule stays in
step with that time, even if the program has come late for it. That takes one clock: senders on
other hosts are left alone. With --poisson there is no phase; but one seed for all would be one
schedule for all, so each sender has the next one.
"""

from __future__ import annotations

import time

from .failure import usage
from .programs import PSEND
from .spec import Spec
from .units import number

# From the first sender's start until messages are due: for starting, connecting and TLS.
LEAD_NS = 200_000_000
LEAD_OF_EACH_NS = 20_000_000


def in_step(spec: Spec) -> bool:
    """Whether there is anything to do."""
    rate = spec.option(PSEND, "--send-rate")
    return spec.senders > 1 and not spec.psend_hosts and rate is not None


def common_start_ns(spec: Spec) -> int:
    """Since the epoch: as it was given, or a little later than now."""
    given = spec.option(PSEND, "--start-at")
    if given is not None and given.isdecimal():
        return int(given)
    return time.time_ns() + LEAD_NS + spec.senders * LEAD_OF_EACH_NS


def words(spec: Spec, index: int, start_ns: int) -> tuple[str, ...]:
    """For the sender with that INDEX, behind all others; START is common_start_ns()."""
    found = ("--start-at", str(start_ns + round(index * gap_ns(spec) / spec.senders)))
    seed = spec.option(PSEND, "--poisson")
    if seed is not None and seed.isdecimal():
        found += (f"--poisson={int(seed) + index}",)
    return found


def gap_ns(spec: Spec) -> float:
    """Between the messages, or batches, of each sender."""
    rate = number(spec.option(PSEND, "--send-rate") or "")
    if not rate:
        raise usage("--send-rate: is not a number of messages a second above 0")
    batch = number(spec.option(PSEND, "--batch") or "1") or 1.0
    return 1e9 * batch / rate
