"""Each warning of the closed list, seen and not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from ppair import advice, store
from ppair import results as outcomes
from ppair.clock_error import ClockError
from ppair.results import Plan, Point, Results, Run
from ppair.spec import Spec

FACTS = {
    "psend_busy": 0.5,
    "precv_busy": 0.5,
    "cpus": [["psend", None], ["precv", None]],
    "hosts": 1,
    "cpu_count": 2,
    "flight_bytes": 100_000,
    "bound_bytes": 4_000_000,
    "missing": None,
}


def _run(
    rate: float = 1000.0,
    *,
    point: int = 0,
    status: str = outcomes.GOOD,
    steal: float | None = 0.0,
    limit: str = "credit",
    repetition: int | None = None,
    **facts: Any,
) -> Run:
    metrics = {"messages_per_s": rate, "limited_by": limit}
    return Run(
        point,
        -1 if repetition is None else repetition,  # numbered by _results
        status=status,
        steal_percent=steal,
        metrics=metrics if status == outcomes.GOOD else {},
        facts={**FACTS, **facts} if status == outcomes.GOOD else {},
    )


MISSED = {"target_per_s": 1000.0, "achieved_per_s": 925.0, "rate_met": 0}


def _results(*runs: Run, governor: str | None = None) -> Results:
    """Runs of a point are its repetitions, in this order."""
    ids = sorted({run.point for run in runs} | {0})
    points = tuple(Point(id, {"credit": f"{id}k", "size": "1"}, Spec()) for id in ids)
    plan = Plan("sweep", "", (), points, len(runs), 0)
    results = Results(Path("x"), plan, (), {"governor": governor}, 0)
    for run in runs:
        number = len(results.of_point(run.point)) if run.repetition < 0 else run.repetition
        results.runs.append(store.replace(run, repetition=number))
    return results


def _warnings(*runs: Run, **more: Any) -> dict[str, advice.Warning]:
    found = advice.warnings(_results(*runs, **more))
    assert len({warning.code for warning in found}) == len(found)
    return {warning.code: warning for warning in found}


def _by_broker(results: Results) -> Results:
    """The same, if all points were by way of one."""
    points = (store.replace(p, spec=Spec(via="amqp://b")) for p in results.plan.points)
    results.plan = store.replace(results.plan, points=tuple(points))
    return results


def _codes(*runs: Run, **more: Any) -> list[str]:
    return list(_warnings(*runs, **more))


def _rates(*rates: float, **more: Any) -> Sequence[Run]:
    return [_run(rate, **more) for rate in rates]


def _share(run: Run, precv_percent: float) -> Run:
    """With the CPU that its programs have used."""
    percents = {"psend_cpu_percent": 50.0, "precv_cpu_percent": precv_percent}
    return store.replace(run, metrics={**run.metrics, **percents})


def _with(run: Run, **metrics: Any) -> Run:
    """With more that was measured."""
    return store.replace(run, metrics={**run.metrics, **metrics})


def _far(run: Run, error_us: int | None, offset_us: int = 0) -> Run:
    """From here to another host, whose clock is so much ahead, give or take the rest."""
    error_ns = None if error_us is None else 1000 * error_us
    known = (error_ns, 1000 * offset_us, 1000 * (error_us - abs(offset_us))) if error_us else ()
    error = ClockError(None, "b", *(known or (None,)), why=None if known else "no bash")
    run = store.replace(run, facts={**run.facts, "clock_error": asdict(error)})
    return _with(run, latency_error_ns=error_ns)


def test_others_have_the_processors() -> None:
    """Busy and not running: then it is not its own processor that is the limit."""
    run = _run(limit="receiver cpu", precv_busy=0.95)
    assert _codes(_share(run, 60.0)) == ["contended"]
    assert _codes(_share(run, 93.0)) == ["receiver-cpu"]


def test_nothing_to_warn_of() -> None:
    assert not _codes()
    assert not _codes(*_rates(1000, 1010, 990, 1005, 995))
    assert not _codes(*_rates(1000, 1010), governor="performance")


def test_every_code_is_in_the_list_and_has_a_rule() -> None:
    bad = {"cpus": [["psend", "0"], ["precv", "0"]], "flight_bytes": 10**8}
    busy = [
        _run(rate, limit=limit, steal=9, psend_busy=0.99, precv_busy=0.99, point=p, **bad)
        for p, limit in enumerate(("sender cpu", "receiver cpu"))
        for rate in (100, 1000, 1010, 600)
    ]
    busy.append(_share(_run(1000, precv_busy=0.95, point=2, **bad), 10.0))
    broker = _run(1000, limit="broker", point=3, **bad)
    more = {"reconnects": 1, "latency_p50_ns": 90, "settlement_p50_ns": 10, "latency_negative": 1}
    busy.append(_with(_far(broker, 50), **more, **MISSED))
    found = {w.code: w for w in advice.warnings(_by_broker(_results(*busy, governor="powersave")))}
    assert tuple(found) == tuple(advice.RULES)
    for warning in found.values():
        assert warning.seen and warning.advice
        assert (warning.seen + warning.advice).isascii()
        assert not warning.seen.endswith(".") and "\n" not in warning.seen


# ---- spread ----


def test_spread() -> None:
    found = _warnings(*_rates(1000, 1200))
    assert list(found) == ["spread"]
    assert "up to 13 %" in found["spread"].seen
    assert not _codes(*_rates(1000, 1140))
    assert not _codes(_run(1000))


def test_spread_is_said_once_for_all_points() -> None:
    runs = [*_rates(1000, 1200), *_rates(1000, 1001, point=1), *_rates(1000, 1500, point=2)]
    found = _warnings(*runs)["spread"]
    assert found.points == (0, 2)
    assert "up to 28 %" in found.seen and found.seen.endswith("at 2 of 3 points")
    one = _warnings(*_rates(1000, 1001), *_rates(1000, 1500, point=1))["spread"]
    assert one.points == (1,) and one.seen.endswith("at credit=1k size=1")


# ---- processors ----


@pytest.mark.parametrize(
    ("code", "limit", "fact"),
    [("sender-cpu", "sender cpu", "psend_busy"), ("receiver-cpu", "receiver cpu", "precv_busy")],
)
def test_bound_by_a_processor(code: str, limit: str, fact: str) -> None:
    found = _warnings(_run(limit=limit, **{fact: 0.97}))
    assert list(found) == [code]
    assert f"{fact[:5]} was busy up to 97 %" in found[code].seen
    assert not _codes(_run(limit=limit, **{fact: 0.89}))
    assert not _codes(_run(limit="credit", **{fact: 0.97}))
    mixed = [_run(limit=limit, **{fact: 0.97}), _run(limit="credit", **{fact: 0.97})]
    assert not _codes(*mixed)


def test_first_repetition_slower() -> None:
    found = _warnings(*_rates(940, 1000, 1010, 1020))
    assert list(found) == ["first-slower"]
    assert "6 % slower" in found["first-slower"].seen
    assert not _codes(*_rates(960, 1000, 1010, 1020))  # less than 5 %
    assert not _codes(*_rates(940, 1000, 1010, 1070))  # the others differ by more
    assert not _codes(*_rates(940, 1000, 1010))  # a coincidence in every third case
    assert not _codes(*_rates(1000, 940, 1010, 1020))


def test_the_first_repetition_must_be_there_to_be_slower() -> None:
    others = [_run(rate, repetition=r) for r, rate in enumerate((940, 1000, 1010, 1020), start=1)]
    assert not _codes(_run(status=outcomes.FAILED, repetition=0), *others)


def test_two_programs_on_one_core() -> None:
    found = _warnings(_run(cpus=[["psend", "1"], ["precv", "1"]]))
    assert list(found) == ["shared-cpu"]
    assert found["shared-cpu"].seen == "two programs were bound to processor 1"
    assert not _codes(_run(cpus=[["psend", "0"], ["precv", "1"]]))
    assert not _codes(_run(cpus=[["psend", "0"], ["precv", None]]))
    assert not _codes(_run(cpus=[["psend", "0,1"], ["precv", "0,1"]]))


def test_two_programs_on_one_core_each_of_its_own_host() -> None:
    assert not _codes(_run(cpus=[["psend", "1"], ["precv", "1"]], hosts=2))


def test_more_programs_than_processors() -> None:
    found = _warnings(_run(cpus=[["psend", None]] * 2 + [["precv", None]]))
    assert found["shared-cpu"].seen == "3 programs had 2 processors"
    assert not _codes(_run(cpus=[["psend", None]] * 2 + [["precv", None]], cpu_count=3))


# ---- the machine ----


@pytest.mark.parametrize("governor", ["powersave", "conservative", "ondemand"])
def test_governor(governor: str) -> None:
    found = _warnings(_run(), governor=governor)
    assert list(found) == ["powersave"] and governor in found["powersave"].seen


@pytest.mark.parametrize("governor", [None, "performance", "schedutil"])
def test_governors_that_do_no_harm(governor: str | None) -> None:
    assert not _codes(_run(), governor=governor)


def test_steal() -> None:
    found = _warnings(_run(steal=0.0), _run(steal=7.4), _run(steal=None))
    assert list(found) == ["steal"] and "up to 7 %" in found["steal"].seen
    assert not _codes(_run(steal=2.0), _run(steal=None))


# ---- credit ----


def test_credit_larger_than_what_can_be_on_its_way() -> None:
    found = _warnings(_run(flight_bytes=4_000_001))
    assert list(found) == ["credit-unbound"] and "4.0 MB" in found["credit-unbound"].seen
    assert not _codes(_run(flight_bytes=4_000_000))
    assert not _codes(_run(flight_bytes=10**9, bound_bytes=None))


# ---- runs that are not good ----


def test_failed_runs_are_not_looked_at() -> None:
    failed = _run(status=outcomes.FAILED, steal=50.0)
    assert not _codes(failed, failed)
    assert not _codes(_run(1000), failed, _run(1001))


def test_warnings_are_the_same_when_they_are_read_again(tmp_path: Path) -> None:
    plan = Plan("run", "", (), (Point(0, {}, Spec()),), 2, 0, order=((0, 0), (0, 1)))
    results = store.create(tmp_path / "x", plan, (), {"governor": "powersave"})
    for repetition, rate in enumerate((1000.0, 1500.0)):
        scratch = tmp_path / "x" / "runs" / ".scratch"
        scratch.mkdir()
        store.record(results, _run(rate, repetition=repetition), scratch)
    results.warnings = advice.warnings(results)
    store.save_summary(results)
    again = store.load(tmp_path / "x")
    assert [warning.code for warning in again.warnings] == ["spread", "powersave"]
    assert again.warnings == results.warnings == advice.warnings(again)


def test_connections_that_were_made_again() -> None:
    lost = _run()
    lost = store.replace(lost, metrics={**lost.metrics, "reconnects": 3})
    none = store.replace(_run(point=1), metrics={**_run().metrics, "reconnects": 0})
    warning = _warnings(lost, none)["reconnects"]
    assert "up to 3 times in a run" in warning.seen and warning.points == (0,)
    assert "reconnects" not in _codes(none) and "reconnects" not in _codes(_run())


def test_a_broker_that_holds_both_back() -> None:
    warning = _warnings(*_rates(1000, 1000, limit="broker"))["broker"]
    assert warning.seen.startswith("neither end was busy (receivers up to 50 %)")
    assert "broker" not in _codes(_run(limit="broker"), _run(limit="credit"))


@pytest.mark.parametrize(
    ("latency", "settlement", "seen"), [(90, 10, True), (30, 10, False), (90, None, False)]
)
def test_messages_that_wait_at_a_broker(latency: int, settlement: int | None, seen: bool) -> None:
    """Of which one can only speak where there is one."""
    times = {"latency_p50_ns": latency, "settlement_p50_ns": settlement}
    run = store.replace(_run(), metrics={**_run().metrics, **times})
    found = {w.code: w for w in advice.warnings(_by_broker(_results(run)))}
    assert ("backlog" in found) == seen and "backlog" not in _codes(run)
    assert not seen or "up to 9 times" in found["backlog"].seen


# ---- open loop ----


def _missed(command: str, **more: float) -> dict[str, advice.Warning]:
    run = _run()
    results = _results(store.replace(run, metrics={**run.metrics, **MISSED, **more}))
    results.plan = store.replace(results.plan, command=command)
    return {warning.code: warning for warning in advice.warnings(results)}


def test_a_rate_that_was_missed() -> None:
    """Not where such rates are looked for."""
    assert "by up to 7.5 %" in _missed("run")["rate-missed"].seen
    assert not _missed("run", rate_met=1) and not _missed("latency")


def test_a_rate_that_was_missed_for_a_moment() -> None:
    """By less than 1 %, or in one run of several: that is none."""
    assert not _missed("run", achieved_per_s=991.0) and _missed("run", achieved_per_s=989.0)
    short = store.replace(_run(), metrics={**_run().metrics, **MISSED})
    good = store.replace(_run(), metrics={**short.metrics, "achieved_per_s": 1e3, "rate_met": 1})
    assert "rate-missed" not in _warnings(short, good, good)
    assert "rate-missed" in _warnings(short, short, good)


# ---- clocks ----


def test_clock_error_beside_the_latency() -> None:
    """Of the run in which it is most of it; and from more than a tenth on."""
    near = _with(_far(_run(), 20), latency_p50_ns=200_000)
    far = _with(_far(_run(), 60, -50), latency_p50_ns=200_000)
    farther = _with(_far(_run(point=1), 70), latency_p50_ns=300_000)
    assert not _codes(near)
    found = _warnings(near, far, farther)
    assert list(found) == ["clock-error"] and found["clock-error"].points == (0, 1)
    assert found["clock-error"].seen == (
        "latency may be off by +- 60 us: the clock of this host is 50 us ahead of that of b, +- "
        "10 us; that is 30 % of its p50 at 2 of 2 points"
    )


def test_a_clock_error_that_is_not_known_is_no_share_of_anything() -> None:
    assert not _codes(_with(_far(_run(), None), latency_p50_ns=200_000))
    assert not _codes(_far(_run(), 50)) and not _codes(_with(_run(), latency_error_ns=None))


def test_messages_from_the_future() -> None:
    found = _warnings(_with(_run(), latency_negative=7), _with(_run(), latency_negative=0))
    assert list(found) == ["negative-latency"]
    assert found["negative-latency"].seen.startswith("up to 7 messages of a run came before")
    assert not _codes(_with(_run(), latency_negative=0)) and not _codes(_run())
