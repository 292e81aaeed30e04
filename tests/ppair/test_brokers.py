"""psend and precv by way of a real broker, a small one: whose messages are whose, and what is left.

Counts, never speeds.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import broker
import launch
import pytest
from launch import Launcher, Tap
from ppair import results as outcomes

SHORT = ("-m", "300", "--repeat", "1", "--out", "out")


@pytest.fixture(name="via", scope="module")
def _via() -> Iterator[str]:
    """One broker for all tests, which have queues of their own."""
    with broker.running() as place:
        yield f"amqp://{place}"


def counted(ppair: Launcher, kind: str, run: int = 0) -> dict[str, int]:
    """Messages of a kind, by program."""
    results = ppair.results("out")
    found = results.runs[run]
    return {
        peer.name: launch.only(launch.events_of(results, found.folder, peer.name), "summary")[
            "messages"
        ].get(kind, 0)
        for peer in found.peers
    }


@pytest.mark.parametrize("more", [[], ["--presettled"]], ids=["settled", "presettled"])
def test_one_to_one(ppair: Launcher, via: str, more: list[str]) -> None:
    """Each run has a queue of its own."""
    ended = ppair.run("run", "--via", via, *SHORT, "--repeat", "2", *more)
    assert ended.code == 0, ended
    assert f"--via {via} " in ended.stdout
    assert counted(ppair, "received", 1)["precv-0"] == 300
    addresses = {peer.argv[-1] for run in ppair.results("out").runs for peer in run.peers}
    assert len(addresses) == 2 and all(each.startswith(f"{via}/ppair-") for each in addresses)


@pytest.mark.parametrize(("senders", "receivers"), [(3, 1), (1, 3), (3, 2)])
def test_several_at_one_queue(ppair: Launcher, via: str, senders: int, receivers: int) -> None:
    """They share what is there, in whatever way; none of it is taken for loss."""
    words = ["--senders", str(senders), "--receivers", str(receivers)]
    ended = ppair.run("run", "--via", via, *SHORT, *words)
    assert ended.code == 0, ended
    assert sum(counted(ppair, "received").values()) == 300 * senders
    assert ppair.results("out").runs[0].metrics["duplicated"] is None


def test_an_address_with_a_place_for_the_name(ppair: Launcher, via: str) -> None:
    """As RabbitMQ's queues have it."""
    ended = ppair.run("run", "--via", f"{via}//queue/{{}}", *SHORT)
    assert ended.code == 0, ended
    peer = ppair.results("out").runs[0].peers[0]
    assert peer.argv[-1].startswith(f"{via}//queue/ppair-")


def test_what_an_earlier_run_has_left(ppair: Launcher, via: str) -> None:
    """It is said, and what to do; which helps."""
    queue = f"{via}/left-over"
    subprocess.run([launch.BIN / "psend", "-q", "-m", "40", queue], check=True, timeout=30)
    ended = ppair.run("run", "--via", queue, *SHORT)
    assert ended.code == 4, ended
    (run,) = ppair.results("out").runs
    assert str(run.why).startswith("messages of an earlier run were in the queue: empty it, or")
    emptied = [launch.BIN / "precv", "-q", "--timeout", "300ms", queue]
    subprocess.run(emptied, check=True, timeout=30)
    ended = ppair.run("run", "--via", queue, *SHORT[:-1], "again")
    assert ended.code == 0, ended


def test_interrupted(ppair: Launcher, via: str, heard: dict[str, Tap]) -> None:
    """Receivers have what was sent, and the queue is empty for the next."""
    words = ["--via", f"{via}/interrupted", "--warmup", "0", "--repeat", "1"]
    process = ppair.start(
        "run", *words, "--duration", "1min", "--out", "out", *launch.tapped(heard)
    )
    for tap in heard.values():
        tap.wait_for("interval", 2)
    process.send_signal(signal.SIGINT)
    ended = launch.finish(process)
    assert ended.code == 130, ended
    (run,) = ppair.results("out").runs
    assert run.status == outcomes.INTERRUPTED and run.facts["missing"] is None
    assert counted(ppair, "received")["precv-0"] == counted(ppair, "accepted")["psend-0"] > 0
    ended = ppair.run("run", *words, "-m", "100", "--out", "next")
    assert ended.code == 0, ended


@pytest.mark.parametrize(
    "words",
    [
        ["sweep", "--credit", "5,50", "-m", "100", "--repeat", "1"],
        ["compare", "--a", "", "--b", "--presettled", "-m", "100", "--repeat", "1"],
        ["soak", "-m", "500"],
    ],
    ids=lambda words: words[0],
)
def test_other_commands(ppair: Launcher, via: str, words: list[str]) -> None:
    ended = ppair.run(*words, "--via", via, "--out", "out")
    assert ended.code == 0, ended
    assert all(run.status == outcomes.GOOD for run in ppair.results("out").runs)
