"""The events that psend and precv write, one JSON object a line (schema ppair/1).

Strict: no duplicate keys, no NaN; a line that is not an event is an error that says what it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA = "ppair/1"
KINDS = ("start", "ready", "interval", "error", "summary")
COUNTING = ("interval", "summary")

Event = dict[str, Any]

# What using JSON that is not of the shape expected can raise.
MISSHAPEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class BadEvent(ValueError):
    """A line that is not an event."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate keys")
    return found


def _no_constants(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large")
    return value


def strict_json(text: str) -> Any:
    """What TEXT says; raises ValueError if it is not JSON, and nothing but JSON."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constants,
            parse_float=_finite,
        )
    except RecursionError:
        raise ValueError("too deep") from None


def parse(line: str) -> Event:
    """One event."""
    try:
        event = strict_json(line)
    except ValueError:
        event = None
    if not isinstance(event, dict) or event.get("event") not in KINDS:
        shown = line.strip()[:60].encode("ascii", "backslashreplace").decode()
        raise BadEvent(f'"{shown}" is not an event')
    if event["event"] == "start" and event.get("schema") != SCHEMA:
        raise BadEvent(f"schema {event.get('schema')!s}, where {SCHEMA} is understood")
    if event["event"] in COUNTING and not _are_counts(event.get("messages")):
        raise BadEvent(f"an event {event['event']} without its counts of messages")
    return event


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(n is None or type(n) is int for n in value.values())


def read(path: Path) -> Iterator[Event]:
    """The events of a file, one at a time. A last line that was cut off is left out."""
    with path.open(encoding="ascii", errors="backslashreplace") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield parse(line)
