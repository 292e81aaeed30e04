"""Numbers with units, as psend and precv take them, and as people read them.

Counts have k m g (powers of 1000), bytes k M G Ki Mi Gi, times ns us ms s min h. Where the kind is
not known, as on an axis of a sweep, the suffix decides: `m` is a million.
"""

from __future__ import annotations

import re
from decimal import Decimal

from .failure import usage

TIMES_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
SIZES = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "M": 10**6,
    "g": 10**9,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
NUMBER = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([A-Za-z]*)")


def quantity(text: str) -> tuple[Decimal, bool] | None:
    """The number that TEXT is, and whether it is a time, then in ns; None if it is none."""
    match = NUMBER.fullmatch(text)
    if not match:
        return None
    suffix = match[2]
    if suffix in SIZES:
        return Decimal(match[1]) * SIZES[suffix], False
    if suffix in TIMES_NS:
        return Decimal(match[1]) * TIMES_NS[suffix], True
    return None


def number(text: str) -> float | None:
    """The value of a number with or without a unit; times are in ns."""
    found = quantity(text)
    return None if found is None else float(found[0])


def seconds(text: str, what: str) -> float:
    """A duration; a plain number is in seconds."""
    found = quantity(text)
    if found is None or (not found[1] and not re.fullmatch(r"[0-9.]+", text)):
        raise usage(f'{what}: "{text}" is not a time, such as 500ms, 2s or 8h')
    return float(found[0]) / 1e9 if found[1] else float(found[0])


def count(text: str, what: str, least: int = 1, most: int | None = None) -> int:
    """A whole number."""
    found = quantity(text)
    if found is None or found[1] or found[0] != int(found[0]):
        raise usage(f'{what}: "{text}" is not a whole number')
    if found[0] < least:
        raise usage(f'{what}: "{text}" is below {least}')
    if most is not None and found[0] > most:
        raise usage(f'{what}: "{text}" is above {most}')
    return int(found[0])


def percent(text: str, what: str) -> float:
    """A share, "5%" or "5", as 0.05; between 0 and 100 %."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *%?", text)
    if not match or not 0 <= float(match[1]) < 100:
        raise usage(f'{what}: "{text}" is not a percentage, such as 5%')
    return float(match[1]) / 100


def digits(value: float | int | None, places: int = 4) -> str:
    """A number to so many significant digits, without exponent; "-" if there is none."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (places - 1):
        return f"{value:.0f}"
    text = f"{value:.{places}g}"
    return text if "e" not in text else f"{Decimal(text):f}"


def duration(value_s: float) -> str:
    """1h02m, 3m20s, 12 s or 1.5 s."""
    if value_s >= 3600:
        return f"{int(value_s // 3600)}h{int(value_s % 3600 // 60):02d}m"
    if value_s >= 60:
        return f"{int(value_s // 60)}m{int(value_s % 60):02d}s"
    return f"{value_s:.0f} s" if value_s >= 10 else f"{value_s:.2g} s"
