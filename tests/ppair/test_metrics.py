"""What is made of summaries: rates on one time line, sums, and what held a run back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fake_peer import (
    EPOCH_NS,
    distribution,
    merged,
    options,
    pacing,
    start_event,
    summary_event,
)
from ppair import facts, limits, measured, metrics
from ppair.events import Event

SECOND_NS = 1_000_000_000


def _psend(messages: int = 1000, presettled: bool = False, **more: Any) -> Event:
    return merged(summary_event("psend", messages, presettled=presettled), more)


def _precv(messages: int = 1000, **more: Any) -> Event:
    return merged(summary_event("precv", messages), more)


def _measure(psend: list[Event], precv: list[Event]) -> dict[str, Any]:
    return measured.measure(psend, precv)


# ---- rate ----


def test_rate_is_messages_over_the_time_from_first_to_last() -> None:
    precv = _precv(500, first_s=0.5, last_s=2.5, wall_s=10.0, content_bytes=50_000)
    found = _measure([_psend()], [precv])
    assert found["messages_per_s"] == 250
    assert found["bytes_per_s"] == 25_000


def test_rate_of_several_receivers_is_on_one_time_line() -> None:
    """The second began 3 s after the first: together from 0.5 s to 5 s."""
    a = _precv(900, first_s=0.5, last_s=1.0)
    b = _precv(900, first_s=1.0, last_s=2.0, began_time_ns=EPOCH_NS + 3 * SECOND_NS)
    for precv in ([a, b], [b, a]):
        assert _measure([_psend()], precv)["messages_per_s"] == pytest.approx(1800 / 4.5)


def test_began_times_are_exact_to_microseconds() -> None:
    """A float of ns since the epoch would be off by 256 ns."""
    a = _precv(10, first_s=0.0, last_s=0.0)
    b = _precv(10, first_s=0.0, last_s=0.0, began_time_ns=EPOCH_NS + 1000)
    assert _measure([_psend()], [a, b])["messages_per_s"] == pytest.approx(20e6, rel=1e-9)


def test_a_receiver_without_messages_is_no_part_of_the_time() -> None:
    none = _precv(0, began_time_ns=None)
    assert _measure([_psend()], [none, _precv(1000)])["messages_per_s"] == 1000


@pytest.mark.parametrize("precv", [_precv(0), _precv(1, first_s=0.5, last_s=0.5)])
def test_no_rate_of_nothing(precv: Event) -> None:
    found = _measure([_psend(0)], [precv])
    assert found["messages_per_s"] is None and found["bytes_per_s"] is None


def test_the_warm_up_is_not_measured() -> None:
    precv = _precv(1000, measured_messages=600)
    assert _measure([_psend()], [precv])["messages_per_s"] == 600


# ---- distributions ----


def test_percentiles_are_of_all_programs_together() -> None:
    quick, slow = distribution(900, 100), distribution(100, 200)
    precv = [_precv(900, latency_ns=quick), _precv(100, latency_ns=slow)]
    found = _measure([_psend()], precv)
    assert (found["latency_p50_ns"], found["latency_p99_ns"]) == (100, 200)
    assert found["latency_max_ns"] == 200


def test_no_percentiles_where_there_are_no_values() -> None:
    found = _measure([_psend(presettled=True, settlement_ns=distribution(0))], [_precv()])
    assert found["settlement_p50_ns"] is None and found["settlement_p99_ns"] is None


# ---- sums and means ----


def test_cpu_is_of_all_instances() -> None:
    cpu = {"user_s": 0.5, "system_s": 0.25, "percent": 75.0}
    found = _measure([_psend(cpu=cpu), _psend(cpu=cpu)], [_precv(cpu=cpu)])
    assert (found["psend_cpu_percent"], found["precv_cpu_percent"]) == (150, 75)
    assert found["psend_cpu_per_message_ns"] == pytest.approx(1.5e9 / 2000)
    assert found["precv_cpu_per_message_ns"] == pytest.approx(0.75e9 / 1000)


def test_cpu_that_one_of_them_does_not_know() -> None:
    found = _measure([_psend(), _psend(cpu={"percent": None})], [_precv()])
    assert found["psend_cpu_percent"] is None


def test_the_call_is_a_mean_over_messages() -> None:
    senders = [_psend(1000, call_ns=100.0), _psend(3000, call_ns=200.0), _psend(0, call_ns=None)]
    assert _measure(senders, [_precv()])["call_ns"] == 175


def test_no_call_of_nothing() -> None:
    assert _measure([_psend(0, call_ns=None)], [_precv()])["call_ns"] is None


def test_stalls() -> None:
    senders = [
        _psend(credit={"blocked": 5, "stalled_s": 0.5}, wall_s=1.0),
        _psend(credit={"blocked": 7, "stalled_s": 0.5}, wall_s=2.0),
    ]
    found = _measure(senders, [_precv()])
    assert found["blocked"] == 12
    assert found["stalled_percent"] == pytest.approx((50 + 25) / 2)


def test_memory_is_that_of_the_largest() -> None:
    senders = [_psend(rss_peak_bytes=n) for n in (5, 9, 7)] + [_psend(rss_peak_bytes=None)]
    found = _measure(senders, [_precv(rss_peak_bytes=None)])
    assert found["psend_rss_bytes"] == 9 and found["precv_rss_bytes"] is None


def test_flow_frames_are_known_of_settled_messages_alone() -> None:
    precv = _precv(2000, start_s=0.0, credit={"frames_out": 23})
    assert _measure([_psend(presettled=True)], [precv])["flow_frames_per_1000"] == 10
    warm = _precv(2000, start_s=0.1, credit={"frames_out": 20})  # opened in the warm-up
    assert _measure([_psend(presettled=True)], [warm])["flow_frames_per_1000"] == 10
    assert _measure([_psend()], [precv])["flow_frames_per_1000"] is None
    two = _precv(2000, start_s=0.0, credit={"frames_out": 26})
    senders = [_psend(presettled=True), _psend(presettled=True)]
    assert _measure(senders, [two])["flow_frames_per_1000"] == 10


def test_connections_made_again() -> None:
    """Of all programs; the gap is the longest; programs that do not count them have none."""
    again = {"reconnects": 2, "disconnected_s": 0.5}
    once = {"reconnects": 1, "disconnected_s": 1.5}
    senders = [
        merged(_psend(connection=each), {"messages": {"resent": resent}})
        for each, resent in ((again, 7), (once, 0))
    ]
    receiver = merged(_precv(connection=again), {"messages": {"duplicated": 3}})
    found = _measure(senders, [receiver])
    assert (found["reconnects"], found["disconnected_s"]) == (5, 1.5)
    assert (found["resent"], found["duplicated"]) == (7, 3)
    older = _measure([_psend()], [_precv()])
    assert older["reconnects"] is older["disconnected_s"] is older["resent"] is None
    nothing = _measure([_psend(connection=None)], [_precv(connection={"reconnects": None})])
    assert nothing["reconnects"] is None


def test_spinning_is_a_mean_over_those_that_spin() -> None:
    """--busy-poll of some of them."""
    senders = [
        _psend(cpu={"span_s": 2.0}, busy_poll={"polls": 9, "spun_s": 1.0}),
        _psend(cpu={"span_s": 1.0}, busy_poll={"polls": 9, "spun_s": 1.0}),
        _psend(busy_poll=None),
    ]
    found = _measure(senders, [_precv()])
    assert found["psend_spinning_percent"] == pytest.approx((50 + 100) / 2)
    assert found["precv_spinning_percent"] is None


def test_answers_that_went_wrong() -> None:
    """Counted where round trips are asked for."""
    sender = merged(_psend(), {"messages": {"unmatched": 3}})
    receiver = merged(_precv(), {"messages": {"unanswerable": 2}})
    found = _measure([sender], [receiver])
    assert (found["unmatched"], found["unanswerable"]) == (3, 2)
    assert _measure([_psend()], [_precv()])["unmatched"] is None


def test_every_metric_is_there() -> None:
    found = _measure([_psend()], [_precv()])
    assert set(found) == {metric.name for metric in metrics.METRICS} | {"limited_by"}
    assert len(metrics.BY_NAME) == len(metrics.METRICS)


# ---- limits ----


def _time(**causes: float) -> dict[str, float]:
    names = ("busy", "credit", "session", "socket", "settlement", "pacing", "idle")
    return {**dict.fromkeys(names, 0.0), **causes}


@pytest.mark.parametrize(
    ("psend", "precv", "limit"),
    [
        ({"busy": 1.0}, {"busy": 0.6, "idle": 0.4}, "sender cpu"),
        ({"busy": 0.73, "credit": 0.27}, {"busy": 0.96, "idle": 0.04}, "receiver cpu"),
        ({"busy": 0.9, "credit": 0.1}, {"busy": 0.97, "idle": 0.03}, "receiver cpu"),
        ({"busy": 0.97, "credit": 0.03}, {"busy": 0.9, "idle": 0.1}, "sender cpu"),
        ({"busy": 0.3, "credit": 0.7}, {"busy": 0.3, "idle": 0.7}, "credit"),
        ({"busy": 0.3, "settlement": 0.7}, {"busy": 0.3, "idle": 0.7}, "settlement"),
        ({"busy": 0.6, "session": 0.3, "credit": 0.1}, {"busy": 0.3, "idle": 0.7}, "session"),
        ({"busy": 0.4, "socket": 0.6}, {"busy": 0.5, "idle": 0.5}, "socket"),
        ({"busy": 0.1, "credit": 0.9}, {"busy": 0.1, "pacing": 0.9}, "receiver pacing"),
        ({"busy": 0.1, "settlement": 0.9}, {"busy": 0.1, "pacing": 0.9}, "receiver pacing"),
        ({"busy": 0.1, "idle": 0.9}, {"busy": 0.1, "pacing": 0.9}, "idle"),
        ({"busy": 0.1, "pacing": 0.9}, {"busy": 0.1, "idle": 0.9}, "pacing"),
        ({"busy": 0.5}, {"busy": 0.4}, "sender cpu"),
    ],
)
def test_limited_by(psend: dict[str, float], precv: dict[str, float], limit: str) -> None:
    events = [_psend(time_s=_time(**psend))], [_precv(time_s=_time(**precv))]
    assert limits.limited_by(*events) == limit


@pytest.mark.parametrize(
    ("psend", "precv", "limit"),
    [
        ({"busy": 0.3, "credit": 0.7}, {"busy": 0.3, "idle": 0.7}, "broker"),
        ({"busy": 0.3, "settlement": 0.7}, {"busy": 0.3, "idle": 0.7}, "broker"),
        ({"busy": 0.3, "session": 0.7}, {"busy": 0.3, "idle": 0.7}, "broker"),
        ({"busy": 0.3, "socket": 0.7}, {"busy": 0.3, "idle": 0.7}, "broker"),
        ({"busy": 0.3, "credit": 0.7}, {"busy": 0.6, "idle": 0.4}, "credit"),  # who knows?
        ({"busy": 0.3, "credit": 0.7}, {"busy": 0.9, "idle": 0.1}, "receiver cpu"),
        ({"busy": 0.3, "credit": 0.7}, {"busy": 0.1, "pacing": 0.9}, "receiver pacing"),
        ({"busy": 0.9, "credit": 0.1}, {"busy": 0.3, "idle": 0.7}, "sender cpu"),
        ({"busy": 0.1, "pacing": 0.9}, {"busy": 0.3, "idle": 0.7}, "pacing"),
        ({"busy": 0.1, "idle": 0.9}, {"busy": 0.3, "idle": 0.7}, "idle"),
    ],
)
def test_limited_by_way_of_a_broker(
    psend: dict[str, float], precv: dict[str, float], limit: str
) -> None:
    events = [_psend(time_s=_time(**psend))], [_precv(time_s=_time(**precv))]
    assert limits.limited_by(*events, by_broker=True) == limit


def test_the_busiest_of_several_is_the_limit() -> None:
    idle, busy = _time(busy=0.1, idle=0.9), _time(busy=0.95, idle=0.05)
    sender = _psend(time_s=_time(busy=0.4, credit=0.6))
    receivers = [_precv(time_s=idle), _precv(time_s=busy)]
    assert limits.limited_by([sender, sender], receivers) == "receiver cpu"


# ---- facts ----


def _start(program: str, **more: Any) -> Event:
    return merged(start_event(program, []), more)


def _facts(psend: list[Event], precv: list[Event]) -> dict[str, Any]:
    return facts.of_run(psend, precv, [_psend()], [_precv()])


def test_facts() -> None:
    psend = _start("psend", options={"cpu": "0"}, host="a")
    found = _facts([psend], [_start("precv", host="b", cpu={"count": 2})])
    assert found["cpus"] == [["psend", "0"], ["precv", None]]
    assert (found["hosts"], found["cpu_count"]) == (2, 2)
    assert (found["psend_busy"], found["precv_busy"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("size", "text", "credit", "flight"),
    [(100, None, 1000, 100_000), (100, "hello", 1000, 5000), (0, "", 7, 0)],
)
def test_flight(size: int, text: str | None, credit: int, flight: int) -> None:
    sender = _start("psend", options={"content_size_bytes": size})
    sender["options"]["content_string"] = text
    receiver = _start("precv", options={"credit": credit})
    assert _facts([sender], [receiver])["flight_bytes"] == flight


def test_what_buffers_hold() -> None:
    senders = [_start("psend", options={"sndbuf_bytes": n}) for n in (1000, 3000)]
    receiver = _start("precv", options={"rcvbuf_bytes": 500})
    assert _facts(senders, [receiver])["bound_bytes"] == facts.QUEUE_BYTES + 6000 + 1000


def test_what_buffers_may_grow_to() -> None:
    found = _facts([_start("psend")], [_start("precv", options={"rcvbuf_bytes": 500})])
    with open("/proc/sys/net/ipv4/tcp_wmem", encoding="ascii") as file:
        largest = int(file.read().split()[2])
    assert found["bound_bytes"] == facts.QUEUE_BYTES + largest + 1000


def test_options_of_which_facts_are_made_are_those_of_the_programs() -> None:
    """So that the fake does not hide that a name is another one."""
    assert set(options("psend")) == {"cpu", "content_size_bytes", "content_string", "sndbuf_bytes"}
    assert set(options("precv")) == {"cpu", "credit", "rcvbuf_bytes"}


# ---- open loop ----


def _paced(messages: int, rate: float, **more: Any) -> Event:
    return merged(_psend(messages, **pacing(messages, rate)), more)


def test_open_loops_are_added_up() -> None:
    """Of two senders one has missed its rate, and skipped some of what it owed."""
    late = {"pacing": {"late": 7, "skipped": 30}}
    found = _measure([_paced(1000, 1000.0), _paced(900, 1000.0, **late)], [_precv(1900)])
    assert (found["target_per_s"], found["achieved_per_s"]) == (2000, 1900)
    assert (found["late"], found["skipped"], found["backlog"]) == (7, 30, 70)
    assert found["rate_met"] == 0
    assert _measure([_paced(1000, 1000.0)], [_precv()])["rate_met"] == 1


@pytest.mark.parametrize(
    "each,together",
    [((True, True), 1), ((True, False), 0), ((None, False), 0), ((None, True), None)],
)
def test_a_rate_of_nothing_is_not_known(each: Sequence[bool | None], together: int | None) -> None:
    """Of a sender that had nothing to send yet."""
    senders = [_paced(1000, 1000.0, pacing={"rate_met": met}) for met in each]
    assert _measure(senders, [_precv(2000)])["rate_met"] == together


def test_delays_and_round_trips_are_merged() -> None:
    slow = _paced(1000, 1000.0, send_delay_ns=distribution(1000, 4_000_000))
    asks = {"round_trip_ns": distribution(10, 70_000)}
    found = _measure([_paced(1000, 1000.0), slow | asks, _psend(1000, round_trip_ns=None)], [])
    assert found["send_delay_p50_ns"] == pytest.approx(50_000, rel=0.01)
    assert found["send_delay_p99_ns"] == found["send_delay_max_ns"] == 4_000_000
    assert found["round_trip_p50_ns"] == 70_000


def test_more_percentiles_of_latency() -> None:
    parts = [_precv(n, latency_ns=distribution(n, v)) for n, v in ((89, 100), (10, 200), (1, 250))]
    found = _measure([_psend()], parts)
    assert (found["latency_p90_ns"], found["latency_p999_ns"]) == (200, 250)


def test_of_older_programs_there_is_no_open_loop() -> None:
    """Nor of those that are not in one."""
    for more in ({}, {"pacing": None, "send_delay_ns": None, "round_trip_ns": None}):
        found = _measure([_psend(**more)], [_precv()])
        names = [*measured.PACING, "send_delay_p99_ns", "round_trip_p50_ns"]
        assert {found[name] for name in names} == {None}


def test_backlog_is_of_the_period() -> None:
    """Of a summary, what was sent in the warm-up is not in it."""
    event = {"messages": {"sent": 500}, "pacing": {"due": 310, "skipped": 4}}
    assert measured.backlog({**event, "measured_messages": 300}) == 6
    assert measured.backlog({**event, "messages": {"sent": 310}}) == -4


def test_a_backlog_that_has_shrunk_is_none() -> None:
    """As more was sent than became due, which another sender's does not make up for."""
    shrunk = _paced(1000, 1000.0, pacing={"due": 400})
    assert _measure([shrunk], [_precv(1000)])["backlog"] == 0
    assert _measure([shrunk, _paced(900, 1000.0)], [_precv(1900)])["backlog"] == 100
