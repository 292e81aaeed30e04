"""What somebody wants of the latency: a percentile, or the maximum, below a limit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .failure import usage
from .histogram import Histogram
from .units import seconds

FORM = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,6})?)|max")


@dataclass(frozen=True)
class Slo:
    """Service level objective."""

    name: str  # p99, p99.9, max
    limit_ns: int

    def is_met(self, latency: Histogram) -> bool:
        """Not without values."""
        value = value_ns(latency, self.name)
        return value is not None and value < self.limit_ns


def value_ns(latency: Histogram, name: str) -> int | None:
    """The percentile, or maximum, of that name; None if there are no values."""
    return latency.max_ns if name == "max" else latency.percentile_ns(float(name[1:]))


def parse(text: str) -> Slo:
    """As p99=2ms."""
    name, equals, limit = text.partition("=")
    match = FORM.fullmatch(name)
    if not equals or not match or (match[1] and not float(match[1])):
        raise usage(f'--slo: "{text}" is not like p99=2ms, p99.99=10ms or max=1s')
    limit_s = seconds(limit, "--slo")
    if not limit_s:
        raise usage(f'--slo: "{text}": the limit must be above 0')
    return Slo(name, round(limit_s * 1e9))


def messages_needed(name: str) -> int:
    """So many, for a percentile to be of more than the greatest of them; for a maximum one."""
    return 1 if name == "max" else round(1 / (1 - float(name[1:]) / 100))
