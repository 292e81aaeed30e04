"""Labels of the points of `ppair latency`: what each of them loads the path with.

They are a closed loop, rates that a search tries ("search at 812.5/s"), and steps: shares of the
highest rate that is sustained ("10%").
"""

from __future__ import annotations

from collections.abc import Mapping

from .units import digits

AXIS = "load"  # in a point's values
CLOSED = "closed loop"
SEARCH, SLO = "search", "slo"  # kinds of a search's rates; a rate follows


def step_label(share: float) -> str:
    """10%"""
    return f"{100 * share:g}%"


def probe_label(kind: str, rate_per_s: float, exact: bool = False) -> str:
    """search at 812.5/s; with all digits where another rate of the search has the same five."""
    return f"{kind} at {digits(rate_per_s, 17 if exact else 5)}/s"


def is_probe_of(kind: str, label: str) -> bool:
    """Whether it is of a rate that a search of that kind has tried."""
    return label.startswith(f"{kind} at ")


def is_probe(values: Mapping[str, str]) -> bool:
    """Whether a point's are of a rate that any search has tried."""
    return any(is_probe_of(kind, values.get(AXIS, "")) for kind in (SEARCH, SLO))


def share_of(label: str) -> float | None:
    """Of a step; None of other points."""
    return float(label[:-1]) / 100 if label.endswith("%") else None


def is_within_reach(label: str) -> bool:
    """Whether it is a step that the path should keep up with."""
    share = share_of(label)
    return share is not None and share <= 1
