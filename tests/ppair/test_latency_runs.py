"""ppair latency with the real pair: directly, by way of a broker, interrupted; senders in step.

The path is made slow by its receiver, so that its limit is known and far from the machine's. What
is measured here is counts and ratios.
"""

from __future__ import annotations

import itertools
import signal
from typing import Any

import broker
import launch
import pytest
from launch import Launcher, Tap
from measuring import measured
from ppair import results as outcomes

LIMIT = 2000  # messages/s that the receiver takes
SHORT = ("--duration", "400ms", "--probe", "300ms", "--warmup", "100ms", "--settle", "0")
FEW = (*SHORT, "--steps", "25,50,200", "--precv.receive-rate", str(LIMIT), "--credit", "10")


def found_in(ppair: Launcher, out: str) -> dict[str, Any]:
    return dict(ppair.results(out).findings["latency"])


def shows_the_knee(found: dict[str, Any]) -> bool:
    """A limit that is nearly the receiver's, and latency that jumps beyond it."""
    low, _, over = found["steps"]
    return bool(
        0.5 * LIMIT < found["sustainable_per_s"] < 1.2 * LIMIT
        and low["kept_up"]
        and not over["kept_up"]
        and over["latency_ns"]["p50"] > 10 * low["latency_ns"]["p50"]
        # the wait before a send is not in what is timed from the sending
        and over["latency_ns"]["p99"] > 3 * over["settlement_p99_ns"]
        and over["send_delay_p99_ns"] > 0.5 * over["latency_ns"]["p99"]
    )


@pytest.mark.measures
def test_the_knee_of_a_slow_receiver(ppair: Launcher) -> None:
    """And what a closed loop would not have seen."""
    ended = ppair.run("latency", *FEW, "--out", "out")
    assert ended.code == 0, ended
    assert all(r.status == outcomes.GOOD for r in ppair.results("out").runs)
    found = found_in(ppair, "out")
    with measured():
        assert shows_the_knee(found), found


@pytest.mark.measures
def test_by_way_of_a_broker(ppair: Launcher) -> None:
    """Each run has a queue of its own, in which messages wait when there are too many."""
    with broker.running() as place:
        words = ["--via", f"amqp://{place}/{{}}", "--max-unsettled", "10"]
        ended = ppair.run("latency", *FEW, *words, "--out", "out", "--budget", "5s")
    with measured():
        assert ended.code == 0, ended
    results = ppair.results("out")
    queues = {peer.argv[-1] for run in results.runs for peer in run.peers}
    assert len(queues) == len(results.runs)
    low, _, over = found_in(ppair, "out")["steps"]
    with measured():
        assert over["latency_ns"]["p50"] > low["latency_ns"]["p50"]
    assert all(run.metrics["target_per_s"] for run in results.runs if run.point)


def test_interrupted(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """What was measured is there, and is said."""
    process = ppair.start("latency", *FEW, "--out", "out", *launch.tapped(heard))
    heard["psend"].wait_for("summary", 3)
    heard["psend"].wait_for("interval", len(heard["psend"].of_kind("interval")) + 2)
    process.send_signal(signal.SIGINT)
    ended = launch.finish(process)
    assert ended.code == 130, ended
    results = ppair.results("out")
    assert results.status == outcomes.INTERRUPTED and len(results.runs) >= 3
    assert found_in(ppair, "out")["closed_per_s"] > 0
    assert "How the highest rate was looked for" in ended.stdout
    assert ppair.run("report", "out").code == 0


def phase_share(ppair: Launcher, out: str, gap_s: float) -> float:
    """The smallest distance of two senders' phases, as a share of an even one's."""
    results = ppair.results(out)
    (run,) = results.runs
    begun = [
        launch.only(launch.events_of(results, run.folder, peer.name), "summary")["began_time_ns"]
        for peer in run.peers
        if peer.name.startswith("psend")
    ]
    phases = sorted((ns / 1e9) % gap_s for ns in begun)
    gaps = [b - a for a, b in itertools.pairwise([*phases, phases[0] + gap_s])]
    return min(gaps) / (gap_s / len(phases))


@pytest.mark.measures
def test_no_two_senders_are_in_phase(ppair: Launcher) -> None:
    """Each begins a quarter of the gap after the one before."""
    words = ["--senders", "4", "--send-rate", "5", "--duration", "400ms", "--warmup", "0"]
    ended = ppair.run("run", *words, "--repeat", "1", "--out", "out")
    assert ended.code == 0, ended
    metrics = ppair.results("out").runs[0].metrics
    assert metrics["target_per_s"] == 20 and metrics["latency_max_ns"] > 0
    with measured():
        assert phase_share(ppair, "out", 0.2) > 0.5
