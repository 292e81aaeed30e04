"""Where values lie on an axis and in a heat map, and what is written there."""

import math

import pytest
from ppair import plots_scale
from ppair.axes import Axis
from ppair.plots_scale import CATEGORY, LINEAR, LOG, SYMLOG

# ---- scales ----


@pytest.mark.parametrize(
    ("values", "log", "kind", "positions"),
    [
        (("10", "5", "1k"), False, LINEAR, [5, 10, 1000]),
        (("100", "1", "1Ki"), True, LOG, [1, 100, 1024]),
        (("16", "0", "64"), True, SYMLOG, [0, 16, 64]),
        (("1ms", "10us"), True, LOG, [10_000, 1_000_000]),
        (("one", "10"), True, CATEGORY, [0, 1]),
    ],
)
def test_scale_is_by_value_not_by_order(values, log, kind, positions):
    found = plots_scale.scale_of(Axis("a", values, "a", log), values)
    assert found.kind == kind
    assert list(found.positions.values()) == positions


def test_ticks_have_room_and_both_ends():
    values = tuple(str(x) for x in range(1, 400))
    scale = plots_scale.scale_of(Axis("a", values, "a", True), values)
    found = plots_scale.ticks(scale, 5.7, 0.075)
    assert (found[0], found[-1]) == ((1.0, "1"), (399.0, "399"))
    inches = 5.7 / math.log10(399)
    places = [(math.log10(position) * inches, 0.075 * len(text)) for position, text in found]
    gaps = [
        b - a - (width_a + width_b) / 2 for (a, width_a), (b, width_b) in zip(places, places[1:])
    ]
    assert min(gaps) > 0.05
    assert len(found) > 8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1500, "1500"),
        (65536, "64Ki"),
        (2**20, "1Mi"),
        (1_750_000, "1.75M"),
        (0.25, "0.25"),
    ],
)
def test_numbers_are_short(value, text):
    assert plots_scale.short(float(value)) == text


def test_values_stay_as_given_if_they_are_short():
    given = ("1Ki", "100000", "1500000ns", "1048576")
    assert [plots_scale.short_value(v) for v in given] == ["1Ki", "100k", "1.5ms", "1Mi"]


# ---- heat maps ----


def test_index_and_value_are_each_others_reverse():
    positions = [1.0, 3.0, 10.0, 100.0, 120.0]
    for index in (-0.4, 0.0, 0.3, 1.0, 2.5, 3.9, 4.4):
        value = plots_scale.value_at(positions, index)
        assert plots_scale.index_of(positions, value) == pytest.approx(index)
    assert plots_scale.index_of(positions, 10.0) == 2
    assert plots_scale.index_of(positions, math.sqrt(1000.0)) == pytest.approx(2.5)


def test_nothing_lies_outside_or_at_zero():
    assert plots_scale.index_of([1.0, 10.0], 100.0) is None
    assert plots_scale.index_of([1.0, 10.0], 0.01) is None
    assert plots_scale.index_of([0.0, 1.0, 10.0], 0.1) is None
    assert plots_scale.index_of([0.0, 1.0, 10.0], 1.0) == 1
    assert plots_scale.value_at([0.0, 1.0, 10.0], 0.2) is None
    assert plots_scale.index_of([5.0], 5.0) is None


def test_the_line_has_the_same_product_everywhere():
    xs, ys = [1.0, 3.0, 10.0, 30.0, 1000.0], [10.0, 100.0, 1000.0, 50_000.0]
    line = plots_scale.product_line(xs, ys, 65536)
    assert len(line) > 100
    for column, row in line:
        x, y = plots_scale.value_at(xs, column), plots_scale.value_at(ys, row)
        assert x * y == pytest.approx(65536)
    assert all(-0.5 <= column <= 4.5 and -0.5 <= row <= 3.5 for column, row in line)


def test_the_line_goes_through_a_cell_that_is_on_it():
    line = plots_scale.product_line([1.0, 16.0, 64.0], [1024.0, 4096.0, 65536.0], 65536)
    assert min(math.dist(place, (1, 1)) for place in line) < 0.01
    assert min(math.dist(place, (2, 0)) for place in line) < 0.01
