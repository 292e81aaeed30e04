"""What tune measures next, decides and says, on simulated rates."""

from __future__ import annotations

import math
import random

import pytest
from ppair import tuning
from ppair.failure import Failure
from ppair.tuning import Credit, Observation, halved

MAX_CREDIT = 4096
ROUND_TRIP_S = 40e-6
MESSAGE_S = 600e-9
GRANT_S = 2e-6


def rate(credit: Credit) -> float:
    """Messages a second: a cost per message and per grant, and a round trip to cover."""
    busy_s = MESSAGE_S + GRANT_S / credit.grant
    return 1 / max(busy_s, ROUND_TRIP_S / credit.window)


def simulate(rounds: int, seed: int, noise: float = 0.01) -> list[Observation]:
    """As tune measures: a scan, rounds near the answer, and the answer itself."""
    chance = random.Random(seed)
    found: list[Observation] = []

    def one_round(number: int, credits: list[Credit]) -> None:
        slow = chance.gauss(0, 0.1)
        for credit in credits:
            found.append((number, credit, math.log(rate(credit)) + slow + chance.gauss(0, noise)))

    for number in range(4):
        one_round(number, [*tuning.windows(MAX_CREDIT), *tuning.grants(MAX_CREDIT)])
    for number in range(4, 4 + rounds):
        one_round(number, tuning.near(tuning.answer(found, 0.01).value, MAX_CREDIT))
    size = tuning.round_window(tuning.answer(found, 0.01).value)
    for number in range(4 + rounds, 10 + rounds):
        one_round(number, tuning.answers(size, MAX_CREDIT))
    return found


def test_credit_words() -> None:
    """Low is what is left when a grant's worth has been used."""
    words = ("--credit", "40", "--credit-low", "20", "--credit-add", "20")
    assert halved(40).words() == words
    assert halved(1) == Credit(1, 1) and Credit(1, 1).words()[3] == "0"
    assert halved(41).is_halved and not Credit(40, 10).is_halved


def test_candidates() -> None:
    """Windows that precv accepts, none beyond the largest, the largest always among them."""
    for size in (4, 5, 1000, 4096):
        for credits in (
            tuning.windows(size),
            tuning.near(size * 0.3, size),
            tuning.near(1, size),
            tuning.answers(2, size),
        ):
            assert halved(size) in credits
            assert len(set(credits)) == len(credits)
            assert all(1 <= c.grant <= c.window <= size for c in credits)
        assert all(c.window == size for c in tuning.grants(size))


def test_near_windows_are_the_same_again() -> None:
    """A slightly other answer asks for the same windows, or their neighbours on the grid."""
    first, second = ({c.window for c in tuning.near(v, MAX_CREDIT)} for v in (400.0, 404.0))
    assert first == second and len(first) == 6


@pytest.mark.parametrize(
    ("value", "size"), [(0.2, 1), (1.4, 1), (39.6, 40), (99.9, 100), (1234, 1200), (1251, 1300)]
)
def test_round_window(value: float, size: int) -> None:
    """Two digits."""
    assert tuning.round_window(value) == size


def test_answers_agree() -> None:
    """Three searches in a row, with noise: within 25 %, and the rate is what was asked for."""
    best = rate(halved(MAX_CREDIT))
    sizes = []
    for seed in range(3):
        found = tuning.findings(simulate(12, seed), None, MAX_CREDIT, 0.01)["tuning"]
        sizes.append(found["window"])
        assert 0.98 < rate(halved(found["window"])) / best < 0.997
    assert max(sizes) <= 1.25 * min(sizes)


def test_findings_say_what_was_put_in() -> None:
    """Grant cost and round trip of the simulation, in numbers and in words."""
    found = tuning.findings(simulate(12, 1), 300, MAX_CREDIT, 0.01)
    cost, trip = found["tuning"]["grant_cost"], found["tuning"]["round_trip"]
    assert cost["b_ns"] == pytest.approx(1e9 * GRANT_S, rel=0.15)
    assert cost["a_ns"] == pytest.approx(1e9 * MESSAGE_S, rel=0.15)
    assert trip["seconds"] == pytest.approx(ROUND_TRIP_S, rel=0.15)
    window, grant, covered = found["sentences"]
    said = f"{found['tuning']['window']} credits, {found['tuning']['grant']} at"
    assert window.startswith(said if found["tuning"]["certain"] else "Not certain yet")
    assert said in window
    assert "% of the best rate" in window or "between" in window
    assert "One grant costs" in grant and "round trip of" in covered
    assert all(len(row) == len(t["headings"]) for t in found["tables"] for row in t["rows"])


def test_a_grant_that_costs_nothing_to_speak_of() -> None:
    """Is not given a price, let alone a negative one."""
    found = [(r, c, v + 0.03 * (c.grant < 8)) for r, c, v in simulate(6, 3)]
    flat = [(r, c, 14.0 + 0.01 * ((7 * r + c.grant) % 5)) for r, c, _ in found if c.window == 4096]
    rest = [o for o in found if o[1].window != 4096]
    sentence = tuning.findings([*rest, *flat], 300, MAX_CREDIT, 0.01)["sentences"][1]
    assert sentence.startswith("What a grant costs is lost in the noise: at most")


def test_another_refill_point_must_be_better_for_certain() -> None:
    """Half of the window, unless a quarter is faster in every round."""
    observations = simulate(6, 2, noise=0.002)
    size = min(credit.window for _, credit, _ in observations[-4:])
    quarter = Credit(size, max(round(size * 0.25), 1))
    better = [(r, c, v + (0.05 if c == quarter else 0.0)) for r, c, v in observations]
    assert tuning.findings(better, size, MAX_CREDIT, 0.01)["tuning"]["grant"] == quarter.grant
    same = [(r, c, v - (0.05 if c == quarter else 0.0)) for r, c, v in observations]
    assert tuning.findings(same, size, MAX_CREDIT, 0.01)["tuning"]["grant"] >= size // 2


def test_too_few_windows() -> None:
    """Is one line."""
    with pytest.raises(Failure, match="level off"):
        tuning.answer([(0, halved(1), 1.0), (0, halved(2), 2.0)], 0.01)
