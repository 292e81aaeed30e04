"""Numbers with units, read and written."""

from __future__ import annotations

import pytest
from ppair import units
from ppair.failure import Exit, Failure


def _refused(call: object, *arguments: object) -> str:
    with pytest.raises(Failure) as caught:
        call(*arguments)  # type: ignore[operator]
    assert caught.value.code == Exit.USAGE
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("10", 10),
        ("1.5", 1.5),
        ("10k", 10_000),
        ("5m", 5_000_000),
        ("5M", 5_000_000),
        ("2g", 2e9),
        ("2G", 2e9),
        ("1Ki", 1024),
        ("1.5Mi", 1572864),
        ("1Gi", 2**30),
        ("3ns", 3),
        ("3us", 3e3),
        ("3ms", 3e6),
        ("3s", 3e9),
        ("3min", 180e9),
        ("8h", 28800e9),
    ],
)
def test_number(text: str, value: float) -> None:
    assert units.number(text) == value


NO_NUMBERS = [
    *("", " ", "k", ".5", "5.", "1e3", "-5", "+5", "5 k", " 5", "5 ", "5K", "5x", "5mM", "5kk"),
    *("0x10", "1_000", "1,5", "\u0665", "5\n", "nan", "inf", "9" * 21),
]


@pytest.mark.parametrize("text", NO_NUMBERS, ids=ascii)
def test_what_is_no_number(text: str) -> None:
    assert units.number(text) is None
    assert "--x" in _refused(units.seconds, text, "--x")
    assert "--x" in _refused(units.count, text, "--x")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("2", 2), ("0.5", 0.5), ("500ms", 0.5), ("1min", 60), ("8h", 28800), ("1ns", 1e-9)],
)
def test_seconds(text: str, value: float) -> None:
    assert units.seconds(text, "--x") == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("text", ["5m", "5k", "1Ki"])
def test_a_count_is_no_time(text: str) -> None:
    """`5m` is neither five minutes nor five milliseconds."""
    expected = f'--x: "{text}" is not a time, such as 500ms, 2s or 8h'
    assert _refused(units.seconds, text, "--x") == expected


def test_count() -> None:
    assert units.count("1.5k", "--x") == 1500
    assert units.count("0", "--x", 0) == 0
    assert _refused(units.count, "0", "--x") == '--x: "0" is below 1'
    assert _refused(units.count, "1.5", "--x") == '--x: "1.5" is not a whole number'
    assert _refused(units.count, "0.5", "--x") == '--x: "0.5" is not a whole number'
    assert _refused(units.count, "5s", "--x") == '--x: "5s" is not a whole number'


def test_large_counts_are_exact() -> None:
    assert units.count("9007199254740993", "--x") == 9007199254740993


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), ("5", 0.05), ("0.5 %", 0.005), ("0", 0)])
def test_percent(text: str, value: float) -> None:
    assert units.percent(text, "--x") == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "%", "100%", "-1%", "5%%", "5k", "x"])
def test_what_is_no_percentage(text: str) -> None:
    assert _refused(units.percent, text, "--x").startswith(f'--x: "{text}" is not a percentage')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.0, "0"),
        (7, "7"),
        (1.0, "1"),
        (0.5, "0.5"),
        (12.3456, "12.35"),
        (999.96, "1000"),
        (1000.4, "1000"),
        (9999.6, "10000"),
        (1234567.8, "1234568"),
        (1e12, "1000000000000"),
        (0.0123456, "0.01235"),
        (0.0000123456, "0.00001235"),
        (1e-9, "0.000000001"),
        (-12.3456, "-12.35"),
        (-1e-7, "-0.0000001"),
        (-123456, "-123456"),
    ],
)
def test_digits(value: float | None, text: str) -> None:
    assert units.digits(value) == text


def test_digits_to_fewer_places() -> None:
    assert units.digits(12.3456, 2) == "12"
    assert units.digits(1.2345, 2) == "1.2"


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0, "0 s"),
        (0.3, "0.3 s"),
        (1.54, "1.5 s"),
        (9.97, "10 s"),
        (12.4, "12 s"),
        (200, "3m20s"),
        (3720, "1h02m"),
        (100_000, "27h46m"),
    ],
)
def test_duration(value_s: float, text: str) -> None:
    assert units.duration(value_s) == text
