"""What a machine is, and what disturbed it: for manifests, warnings and comparisons."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# What two machines must have in common for their results to be compared.
COMPARED = ("host", "cpu_model", "cpu_count", "kernel", "governor")


@dataclass(frozen=True)
class Machine:
    """None where the kernel does not say."""

    host: str
    cpu_model: str | None
    cpu_count: int
    kernel: str
    system: str | None  # the distribution's name
    governor: str | None  # of cpu0
    python: str


def _first_line(path: str, beginning: str = "") -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith(beginning):
                    text = line[len(beginning) :].strip(' \t\n:="')
                    return text.encode("ascii", "replace").decode()
    except OSError:
        pass
    return None


def describe() -> Machine:
    """This one."""
    return Machine(
        host=socket.gethostname(),
        cpu_model=_first_line("/proc/cpuinfo", "model name"),
        cpu_count=os.cpu_count() or 1,
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        system=_first_line("/etc/os-release", "PRETTY_NAME"),
        governor=_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        python=platform.python_version(),
    )


def processors() -> list[int]:
    """Those of this one on which programs that we start may run."""
    return sorted(os.sched_getaffinity(0))


def to_json(machine: Machine) -> dict[str, Any]:
    """For the manifest."""
    return asdict(machine)


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """What makes results of two machines, as manifests have them, not comparable."""
    return [
        f"{key.replace('_', ' ')}: {a.get(key)} and {b.get(key)}"
        for key in COMPARED
        if a.get(key) != b.get(key)
    ]


@dataclass(frozen=True)
class CpuTimes:
    """Ticks of all processors since boot."""

    total: int
    steal: int


def cpu_times() -> CpuTimes | None:
    """From /proc/stat; guest time is part of user time there."""
    try:
        fields = [int(text) for text in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    except (OSError, ValueError):
        return None
    return CpuTimes(sum(fields[:8]), fields[7]) if len(fields) >= 8 else None


def steal_percent(before: CpuTimes | None, after: CpuTimes | None) -> float | None:
    """What the hypervisor gave to others in between."""
    if before is None or after is None or after.total <= before.total:
        return None
    return 100 * (after.steal - before.steal) / (after.total - before.total)
