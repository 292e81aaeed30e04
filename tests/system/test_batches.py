"""psend --batch: N messages, then none until all of them are settled."""

import shutil

import pair
import pytest
import wire
from measuring import measured

CREDIT = ["--credit", "10000"]


def batch_of(psend: pair.Result) -> pair.Json:
    """What its summary says of batches."""
    batch = psend.summary["batch"]
    assert isinstance(batch, dict)
    return batch


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_each_batch_is_timed(size: int) -> None:
    """The first settlement of each and the last, of which the first is not later."""
    batches = pair.count(2000) // size + 3
    options = ["--batch", str(size), "--max-unsettled", str(size), "-m", str(batches * size)]
    psend, precv = pair.run_pair(options, CREDIT)
    pair.assert_delivered(psend, precv, batches * size)
    batch = batch_of(psend)
    assert batch["size"] == size
    first, last = batch["first_ns"], batch["last_ns"]
    assert first["count"] == last["count"] == batches
    assert first["min"] <= last["min"] and first["max"] <= last["max"]
    assert first["mean"] <= last["mean"]
    assert batch["last_ticks"] is None and batch["tsc_per_s"] is None
    if size == 1:
        assert first["buckets"] == last["buckets"]


def test_last_batch_may_be_short() -> None:
    """It is sent, and as it never was a whole one, its end is not counted."""
    psend, precv = pair.run_pair(["--batch", "100", "--max-unsettled", "100", "-m", "250"], CREDIT)
    pair.assert_delivered(psend, precv, 250)
    assert (batch_of(psend)["first_ns"]["count"], batch_of(psend)["last_ns"]["count"]) == (3, 2)


def take(peer: wire.Peer, count: int) -> list[int]:
    """Delivery ids of the next transfers."""
    return [int(peer.expect(wire.TRANSFER)["delivery_id"]) for _ in range(count)]


def test_none_is_sent_before_all_are_settled() -> None:
    """Five, in whatever order they are settled; the sixth comes after the last of them."""
    listener = wire.listen()
    sender = pair.start(
        "psend", listener.url, *("--batch", "5", "--max-unsettled", "5", "-m", "10"),
        "--interval", "0",
    )
    peer = listener.accept(wire.RECEIVER).start()
    peer.grant(100)
    first = take(peer, 5)
    for number in (first[3], first[0], first[4], first[1]):
        peer.settle(number)
    peer.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        peer.read()
    peer.socket.settimeout(pair.DEADLINE_S)
    peer.settle(first[2])
    for number in take(peer, 5):
        peer.settle(number)
    peer.answer_close()
    psend = pair.finish(sender)
    pair.assert_codes([psend], 0)
    batch = batch_of(psend)
    assert batch["first_ns"]["count"] == batch["last_ns"]["count"] == 2
    waited_ns = batch["last_ns"]["sum"] - batch["first_ns"]["sum"]
    assert waited_ns > 0.2e9, "of the first batch: of the second all are settled at once"


def test_two_batches_under_way() -> None:
    """A queue depth of two batches and a half lets two go."""
    listener = wire.listen()
    sender = pair.start(
        "psend", listener.url, *("--batch", "4", "--max-unsettled", "10", "-m", "12"),
        "--interval", "0",
    )
    peer = listener.accept(wire.RECEIVER).start()
    peer.grant(100)
    numbers = take(peer, 8)
    for number in numbers[:2]:  # four are left: room for one more batch
        peer.settle(number)
    numbers += take(peer, 4)
    for number in numbers[2:]:
        peer.settle(number)
    peer.answer_close()
    psend = pair.finish(sender)
    pair.assert_codes([psend], 0)
    assert batch_of(psend)["last_ns"]["count"] == 3


@pytest.mark.measures
def test_ticks() -> None:
    """The same time by the processor's own counter."""
    options = ["--batch", "100", "--max-unsettled", "100", "-m", "20000", "--tsc"]
    receiver, url = pair.listen("precv", *CREDIT)
    psend = pair.run("psend", url, *options)
    if psend.code == 64:
        assert "time stamp counter" in psend.stderr
        pytest.skip("this processor has no such counter")
    precv = pair.finish(receiver)
    pair.assert_delivered(psend, precv, 20000)
    batch = batch_of(psend)
    assert batch["last_ticks"]["count"] == batch["last_ns"]["count"] == 200
    mean_ns = batch["last_ticks"]["mean"] / batch["tsc_per_s"] * 1e9
    with measured():
        assert mean_ns == pytest.approx(batch["last_ns"]["mean"], rel=0.2)
    assert 1e8 < batch["tsc_per_s"] < 1e10


def test_batches_of_a_schedule() -> None:
    """Counted from when they were due."""
    options = ["--batch", "10", "--send-rate", "1000", "-m", "500"]
    psend, precv = pair.run_pair(options)
    pair.assert_delivered(psend, precv, 500)
    batch, delay = batch_of(psend), psend.summary["send_delay_ns"]
    assert batch["first_ns"]["count"] == batch["last_ns"]["count"] == 50
    assert batch["last_ns"]["max"] >= delay["max"]
    assert batch["last_ns"]["min"] >= psend.summary["settlement_ns"]["min"]


def test_intervals_add_up() -> None:
    """Batches are of the interval in which they end."""
    options = ["--batch", "10", "--max-unsettled", "10", "-m", "30000", "--interval", "50ms"]
    psend, _ = pair.run_pair(options)
    for name in ("first_ns", "last_ns"):
        counts = [interval["batch"][name]["count"] for interval in psend.intervals]
        assert sum(counts) == batch_of(psend)[name]["count"] == 3000


def test_text() -> None:
    """Columns and lines that are there only with batches."""
    psend, _ = pair.run_pair(["--batch", "10", "-m", "1000"])
    lines = psend.stdout.splitlines()
    assert "batch us p50" in lines[0]
    for start in ("first of batch us: min", "last of batch us: min"):
        assert any(line.startswith(start) for line in lines)
    psend, _ = pair.run_pair(["-m", "1000"])
    assert "batch" not in psend.stdout


@pytest.mark.skipif(
    pair.SANITIZED or not shutil.which("valgrind"), reason="needs valgrind, and a program for it"
)
def test_ticks_of_a_lesser_processor() -> None:
    """That of valgrind has no RDTSCP, as that of some virtual machines: the counter is read, or it
    is said that there is none."""
    wrapper = ["valgrind", "--quiet"]
    words = ["--tsc", "--batch", "10", "127.0.0.1:1/test", "--connect-timeout", "100ms"]
    psend = pair.run("psend", *words, events=False, wrapper=wrapper)
    assert psend.code in (2, 64), psend.stderr
    assert len(psend.lines) == 1
