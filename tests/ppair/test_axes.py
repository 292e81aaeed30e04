"""Lists and ranges of values, and grids."""

from __future__ import annotations

import math

import pytest
from ppair import axes
from ppair.axes import Axis
from ppair.failure import Exit, Failure


def _values(text: str) -> list[str]:
    return list(axes.parse_values(text, "--x"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("10", "10"),
        ("10,20,50", "10 20 50"),
        (" 10 , 20 ", "10 20"),
        ("50,10,50", "50 10"),
        ("1k,1Ki,2ms", "1k 1Ki 2ms"),
        ("accepted,rejected", "accepted rejected"),
        ("0..190 step 50", "0 50 100 150"),
        ("0..200 step 50", "0 50 100 150 200"),
        ("10..20 step 3", "10 13 16 19"),
        ("10..20 step 100", "10"),
        ("1k..3k step 1k", "1000 2000 3000"),
        ("0..0.3 step 0.1", "0 0.1 0.2 0.3"),
        ("0..1 step 0.5", "0 0.5 1"),
        ("0..0.00003 step 0.00001", "0 0.00001 0.00002 0.00003"),
        ("0..1000 11", "0 100 200 300 400 500 600 700 800 900 1000"),
        ("1..2 2", "1 2"),
        ("0.5..2 4", "0.5 1 1.5 2"),
        ("1..10", "1 2 3 4 5 6 7 8 9 10"),
        ("100..1000", "100 200 300 400 500 600 700 800 900 1000"),
        ("1 .. 10", "1 2 3 4 5 6 7 8 9 10"),
        ("1..4 20", "1 2 3 4"),
        ("1..1000 log 4", "1 10 100 1000"),
        ("1..1000  log  4", "1 10 100 1000"),
        ("1..1k log 4", "1 10 100 1000"),
        ("1..1000 log", "1 2 5 10 22 46 100 215 464 1000"),
        ("0..1000 log 5", "0 1 10 100 1000"),
        ("512..64Ki log 8", "512 1024 2048 4096 8192 16384 32768 65536"),
        ("1ms..3ms step 1ms", "1000000ns 2000000ns 3000000ns"),
        ("0..2us 3", "0ns 1000ns 2000ns"),
        ("1us..1ms log 4", "1000ns 10000ns 100000ns 1000000ns"),
    ],
)
def test_values(text: str, values: str) -> None:
    assert _values(text) == values.split()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has an empty value"),
        (",", "has an empty value"),
        ("10,,20", "has an empty value"),
        ("10,", "has an empty value"),
        ("1..1", "does not go upwards"),
        ("20..10", "does not go upwards"),
        ("20..10 step 1", "does not go upwards"),
        ("a..b", "not a range of numbers"),
        ("1..x", "not a range of numbers"),
        ("1..10s", "not a range of numbers"),
        ("1s..10", "not a range of numbers"),
        ("-5..5", "not a range of numbers"),
        ("1..3,5", "not a range of numbers"),
        ("1..3..5", "not a range of numbers"),
        ("1..10 step", "needs a step above 0"),
        ("1..10 step 0", "needs a step above 0"),
        ("1..10 step x", "needs a step above 0"),
        ("1..10 step 1ms", "needs a step above 0, of the same kind"),
        ("1ms..10ms step 5", "needs a step above 0, of the same kind"),
        ("1..10 1", "needs a number of values, 2 or more"),
        ("1..10 log 1", "needs a number of values, 2 or more"),
        ("1..10 2.5", "needs a number of values, 2 or more"),
        ("1..10 5ms", "needs a number of values, 2 or more"),
        ("1..10 lin", "needs a number of values, 2 or more"),
        ("1..10 logs", "needs a number of values, 2 or more"),
        ("1..1m step 1", "more than 10000 values"),
        ("1..1g log 1m", "more than 10000 values"),
        ("1..1g 9g", "more than 10000 values"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(Failure) as caught:
        _values(text)
    assert caught.value.code == Exit.USAGE
    assert str(caught.value).startswith(f'--x: "{text}"')
    assert why in str(caught.value)


def test_equal_ratios_have_both_ends_and_grow() -> None:
    values = [int(value) for value in _values("1..1000 log 20")]
    assert (values[0], values[-1]) == (1, 1000)
    assert values == sorted(set(values)) and len(values) == 19  # 1.00 and 1.44 are both 1
    ratios = [b / a for a, b in zip(values[8:], values[9:])]
    assert all(math.isclose(ratio, 1000 ** (1 / 19), rel_tol=0.1) for ratio in ratios)


def test_as_many_values_as_there_may_be() -> None:
    assert len(_values("1..10000 step 1")) == axes.VALUES_MAX


@pytest.mark.parametrize("text", ["10,20", "1..10", "1..10 log 3", "0..9 step 3", "1 .. 5", ","])
def test_several(text: str) -> None:
    assert axes.is_several(text)


@pytest.mark.parametrize("text", ["10", "10ms", "", "a b", "1.5", "..", "1.."])
def test_one(text: str) -> None:
    assert not axes.is_several(text)


@pytest.mark.parametrize(
    ("text", "log"),
    [
        ("1..1000 log 20", True),
        ("1..1000 20", False),
        ("1..1000 step 1", False),
        ("1,10,100", True),
        ("1,20,3", True),
        ("1,2,3", False),
        ("1,100", False),
        ("0,10,1000", False),
        ("a,b,c", False),
        ("100,1Ki,100Ki", True),
    ],
)
def test_a_log_axis(text: str, log: bool) -> None:
    assert axes.is_log(text) == log


def test_grid() -> None:
    grid = list(axes.grid((Axis("a", ("1", "2"), "a"), Axis("b", ("x", "y"), "b"))))
    assert grid == [
        {"a": "1", "b": "x"},
        {"a": "1", "b": "y"},
        {"a": "2", "b": "x"},
        {"a": "2", "b": "y"},
    ]


def test_a_grid_that_is_too_large() -> None:
    long = Axis("a", tuple(str(i) for i in range(1000)), "a")
    with pytest.raises(Failure, match="1000000 combinations are more than 10000"):
        next(axes.grid((long, long)))
