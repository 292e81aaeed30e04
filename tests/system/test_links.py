"""Several links and peers at once, and peers that settle in unusual ways."""

import signal
import time

import amqp
import pair
import pytest
from measuring import measured
from proton import Delivery
from proton.handlers import MessagingHandler
from proton.reactor import Container


def test_unsettled_messages_of_a_dead_peer_are_not_waited_for() -> None:
    """One of two receivers is killed: the other gets the rest, and the run ends by itself."""
    sender, url = pair.listen("psend", "-m", str(pair.count(1000000)))
    slow = pair.start("precv", url, "--work", "1ms", "--credit", "100", "--interval", "20ms")
    pair.wait_for(slow, "interval")
    quick = pair.start("precv", url)
    pair.wait_for(quick, "ready")
    pair.send_signal(slow, signal.SIGKILL)
    psend = pair.finish(sender)
    pair.finish(quick)
    assert psend.code == 2
    assert psend.messages["sent"] == pair.count(1000000) and psend.messages["unsettled"] > 0
    pair.assert_accounts(psend.summary)


@pytest.mark.measures
def test_senders_share_a_slow_receiver() -> None:
    """What is due is taken from each in turn."""
    receiver, url = pair.listen("precv", "--receive-rate", "1000", "--credit", "10")
    senders = [pair.start("psend", url, "-m", "0", "-d", "1500ms") for _ in range(2)]
    accepted = [pair.finish(sender).messages["accepted"] for sender in senders]
    pair.finish(receiver)
    with measured():
        assert max(accepted) < 2 * min(accepted)


@pytest.mark.measures
def test_held_dispositions_do_not_wait_for_other_links() -> None:
    """The rest of a few messages is settled soon, however busy another sender is."""
    receiver, url = pair.listen("precv", "--ack-frequency", "1000")
    busy = pair.start("psend", url, "-m", "0", "-d", "2s")
    pair.wait_for(busy, "ready")
    few = pair.run("psend", url, "-m", "50")
    assert few.code == 0
    with measured():
        assert few.summary["wall_s"] < 1
    pair.finish(busy)
    pair.finish(receiver)


class TwoPhase(MessagingHandler):
    """A receiver that says accepted first, and settles all at the end."""

    def __init__(self, url: str, count: int) -> None:
        super().__init__(auto_accept=False, prefetch=0)
        self.url, self.count = url, count
        self.deliveries: list[Delivery] = []

    def on_start(self, event) -> None:  # type: ignore[no-untyped-def]
        """Connects."""
        connection = event.container.connect(self.url, reconnect=False)
        event.container.create_receiver(connection, "test").flow(self.count)

    def on_message(self, event) -> None:  # type: ignore[no-untyped-def]
        """Both dispositions of all messages leave in one write."""
        self.deliveries.append(event.delivery)
        if len(self.deliveries) == self.count:
            for delivery in self.deliveries:
                delivery.update(Delivery.ACCEPTED)
            for delivery in self.deliveries:
                delivery.settle()

    def on_link_closing(self, event) -> None:  # type: ignore[no-untyped-def]
        """The sender has everything."""
        event.connection.close()


def test_two_phase_settlement_counts_once() -> None:
    """Accepted, and later settled, is one outcome."""
    sender, url = pair.listen("psend", "-m", "100")
    Container(TwoPhase(url.split("/")[0], 100)).run()
    psend = pair.finish(sender)
    assert psend.code == 0
    assert psend.messages["accepted"] == 100 and psend.messages["unsettled"] == 0
    assert psend.summary["settlement_ns"]["count"] == 100


def test_leaving_needs_no_ticks() -> None:
    """The close timeout and a second signal work without interval reports to wake the program."""
    receiver, url = pair.listen("precv", "--interval", "50ms")
    sender = pair.start("psend", url, "-m", "0", "--report-total", "--close-timeout", "300ms")
    pair.wait_for(receiver, "interval", 2)
    pair.send_signal(receiver, signal.SIGSTOP)
    pair.send_signal(sender, signal.SIGINT)
    asked_s = time.monotonic()
    psend = pair.finish(sender)
    assert time.monotonic() - asked_s < 4
    assert psend.code == 128 + signal.SIGINT and psend.messages["sent"] > 0


@pytest.mark.measures
def test_a_stall_belongs_to_the_intervals_it_lasts_for() -> None:
    """Credit ends after ten messages: from then on all of the time is stalled, never more."""
    quickly = ["--interval", "200ms", "--close-timeout", "100ms"]
    sender, url = pair.listen("psend", "-m", "0", "-d", "1s", *quickly)
    connection = amqp.connect(url)
    receiver = amqp.receiver(connection, credit=10)
    psend = pair.finish(sender)
    assert receiver.credit >= 0 and connection.url  # both are kept until here
    for interval in psend.intervals[1:]:
        length_s = interval["end_s"] - interval["start_s"]
        with measured():
            assert 0.8 * length_s < interval["credit"]["stalled_s"] < 1.05 * length_s
    assert psend.summary["credit"]["stalled_s"] <= psend.summary["wall_s"]
