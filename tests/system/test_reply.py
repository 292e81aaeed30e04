"""precv --reply: what an answer is, where it goes, and what becomes of messages without one."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import amqp
import faults
import pair
import pytest
import wire
from proton import Condition, Data, Message, Terminus, symbol, timestamp, ulong
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container, LinkOption
from proton.utils import SyncRequestResponse


class Requester(MessagingHandler):
    """Sends messages, and receives answers by a link of its own on the same connection."""

    def __init__(
        self,
        url: str,
        requests: list[Message],
        source: str | None = "answers",  # None: precv makes one
        option: LinkOption | None = None,
        expect: int | None = None,
        prefetch: int = 10,
        auto_accept: bool = True,
    ) -> None:
        super().__init__(prefetch=prefetch, auto_accept=auto_accept)
        self.url, self.requests, self.source = url, requests, source
        self.option = option or AtLeastOnce()
        self.expect = len(requests) if expect is None else expect
        self.answers: list[Message] = []
        self.settled: list[bool] = []  # answers that came settled
        self.left = list(requests)
        self.outcomes = 0

    def on_start(self, event: Any) -> None:
        """Two links."""
        host, address = self.url.split("/")
        self.connection = event.container.connect(host, reconnect=False)
        self.receiver = event.container.create_receiver(
            self.connection, self.source, dynamic=self.source is None
        )
        self.sender = event.container.create_sender(self.connection, address, options=self.option)
        event.container.schedule(amqp.TIMEOUT_S, self)

    def on_sendable(self, event: Any) -> None:
        """There is credit."""
        self.send_some()

    def send_some(self) -> None:
        """As credit allows, when it is known where answers come from."""
        if not self.receiver.remote_source.address:
            return
        while self.sender.credit and self.left:
            message = self.left.pop(0)
            if message.reply_to is None:
                message.reply_to = self.receiver.remote_source.address
            self.sender.send(message)
        self.check()

    def on_link_opened(self, event: Any) -> None:
        """The other may have had credit already."""
        if event.link == self.receiver:
            self.send_some()

    def on_message(self, event: Any) -> None:
        """An answer."""
        self.answers.append(event.message)
        self.settled.append(event.delivery.settled)
        self.check()

    def on_settled(self, event: Any) -> None:
        """A message."""
        self.outcomes += 1
        self.check()

    def check(self) -> None:
        """Whether that is all."""
        waits = self.expect == 0 and self.outcomes < len(self.requests)
        if len(self.answers) >= self.expect and not self.left and not waits:
            self.connection.close()

    def on_timer_task(self, event: Any) -> None:
        """Too late."""
        self.connection.close()

    def on_transport_closed(self, event: Any) -> None:
        """In time."""
        event.container.stop()


def ask(url: str, requests: list[Message], **settings: Any) -> Requester:
    """Runs it."""
    requester = Requester(url, requests, **settings)
    Container(requester).run()
    return requester


def request(number: int = 1, **fields: Any) -> Message:
    """With an id, sn and ts."""
    properties = {"sn": ulong(number), "ts": time.time_ns(), "other": "x"}
    settings = {"id": f"id-{number}", "body": b"body", "inferred": True, **fields}
    return Message(properties=properties, **settings)


class Hesitant(Requester):
    """Leaves its only answer unsettled for a while, as a broker that writes it to a disk."""

    HESITATES_S = 0.5

    def __init__(self, url: str, settles: bool = True) -> None:
        super().__init__(url, [request()], auto_accept=False)
        self.settles = settles
        self.has_settled = self.closed_early = False

    def on_message(self, event: Any) -> None:
        """It has come."""
        self.answers.append(event.message)
        self.delivery = event.delivery
        event.container.schedule(self.HESITATES_S, self)

    def check(self) -> None:
        """It is for precv to end this."""

    def on_connection_closing(self, event: Any) -> None:
        """It does."""
        self.closed_early = not self.has_settled
        self.connection.close()

    def on_timer_task(self, event: Any) -> None:
        """Now."""
        if not self.answers:
            self.connection.close()  # too late
        elif self.settles and not self.has_settled:
            self.accept(self.delivery)
            self.has_settled = True


def test_answers_are_settled_before_the_end() -> None:
    """A broker may drop what a connection that closes has just brought."""
    receiver, url = pair.listen("precv", "--reply", "-m", "1")
    requester = Hesitant(url)
    Container(requester).run()
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    assert len(requester.answers) == 1 and not requester.closed_early
    assert precv.messages["answers"] == 1


def test_answers_that_are_never_settled() -> None:
    """Are waited for as long as the close timeout says."""
    receiver, url = pair.listen("precv", "--reply", "-m", "1", "--close-timeout", "300ms")
    requester = Hesitant(url, settles=False)
    Container(requester).run()
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    assert requester.closed_early and precv.seconds >= 0.3


@pytest.mark.parametrize("source", ["answers", None], ids=["named", "dynamic"])
@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "presettled"])
def test_a_client_asks(source: str | None, settled: bool) -> None:
    """Answers have what the messages had, in their order, and are settled as they were."""
    receiver, url = pair.listen("precv", "--reply")
    requests = [request(n, body=bytes([n % 256]) * n) for n in range(1, 301)]
    option = AtMostOnce() if settled else AtLeastOnce()
    asked = ask(url, requests, source=source, option=option)
    precv = pair.finish(receiver)
    pair.assert_codes([precv], 0)
    assert precv.messages["answers"] == precv.messages["received"] == 300
    assert precv.messages["unanswerable"] == 0 and not precv.lines
    assert [a.correlation_id for a in asked.answers] == [r.id for r in requests]
    assert [bytes(a.body) for a in asked.answers] == [bytes(r.body) for r in requests]
    for name in ("sn", "ts"):
        values = [r.properties[name] for r in requests]
        assert [a.properties[name] for a in asked.answers] == values
    assert set(asked.settled) == {settled}


def test_two_dynamic_addresses_differ() -> None:
    """Of two clients, each has its own answers."""
    receiver, url = pair.listen("precv", "--reply", "--forever", "-m", "4")
    asked = [ask(url, [request(n, id=str(n)) for n in (1, 2)], source=None) for _ in range(2)]
    pair.finish(receiver)
    assert [[a.correlation_id for a in one.answers] for one in asked] == [["1", "2"]] * 2
    assert len({r.reply_to for one in asked for r in one.requests}) == 2


def test_synchronous_calls() -> None:
    """The library's own request and response, which has no message id but a correlation id."""
    receiver, url = pair.listen("precv", "--reply")
    connection = amqp.connect(url)
    client = SyncRequestResponse(connection, "test")
    bodies = [b"one", "two", {"three": 3}, [4, None], None]
    answers = [client.call(Message(body=body)).body for body in bodies]
    assert answers == bodies
    connection.close()
    assert pair.finish(receiver).messages["answers"] == len(bodies)


IDS = [
    *(ulong(0), ulong(7), ulong(2**63), uuid.UUID(int=5), b"bytes", b""),
    *("text", "t" * 300, "", None),
]


def test_ids_of_every_type() -> None:
    """As they are, changing from one message to the next, and with none there is none."""
    receiver, url = pair.listen("precv", "--reply")
    requests = [request(n, id=i) for n, i in enumerate(IDS * 3)]
    asked = ask(url, requests)
    pair.assert_codes([pair.finish(receiver)], 0)
    got = [a.correlation_id for a in asked.answers]
    assert got == IDS * 3 and list(map(type, got)) == list(map(type, [r.id for r in requests]))


def test_a_correlation_id_alone() -> None:
    """Is given back; a message id comes first."""
    receiver, url = pair.listen("precv", "--reply")
    requests = [
        request(1, id=None, correlation_id="c1"),
        request(2, id=None, correlation_id=ulong(2)),
        request(3, id="id", correlation_id="c3"),
        request(4, id=None, correlation_id="c4"),
    ]
    asked = ask(url, requests)
    pair.finish(receiver)
    assert [a.correlation_id for a in asked.answers] == ["c1", ulong(2), "id", "c4"]


def test_messages_without_number_and_time() -> None:
    """The answer has none, either."""
    receiver, url = pair.listen("precv", "--reply")
    asked = ask(url, [Message(id="a", body="x"), Message(id="b", body="x", properties={"sn": 5})])
    pair.finish(receiver)
    assert [a.properties for a in asked.answers] == [None, {"sn": 5}]


def test_long_bodies() -> None:
    """Of many frames, in one piece and in several sections."""
    receiver, url = pair.listen("precv", "--reply", "--max-frame", "4Ki")
    bodies = [b"x" * 300_000, "y" * 70_000, b"z"]
    requests = [request(n, body=b, inferred=isinstance(b, bytes)) for n, b in enumerate(bodies)]
    asked = ask(url, requests)
    pair.finish(receiver)
    assert [a.body for a in asked.answers] == bodies


def test_a_long_answer_to_a_small_window() -> None:
    """Takes a time that grows with its length, not with the square of that: it would be minutes."""
    size = "2Mi" if pair.SANITIZED else "8Mi"
    window = ["--max-frame", "512", "--session-window", "1Ki"]
    psend, precv = pair.run_pair(
        ["--round-trip", "-m", "2", "--content-size", size, *window], ["--reply"]
    )
    pair.assert_delivered(psend, precv, 2)
    assert psend.messages["answered"] == precv.messages["answers"] == 2


# ---- answers in parts, to peers that go through them frame by frame ----

LONG = b"long" * 50_000


def long_request(number: int, body: bytes = LONG) -> bytes:
    """More than precv hands over at a time."""
    return bytes(request(number, reply_to="answers", body=body).encode())


def start_with_answers(url: str, window: int = wire.WINDOW, **settings: Any) -> wire.Peer:
    """A peer with a link for answers, which has credit, and the window for so many frames."""
    peer = wire.connect(url, wire.SENDER)
    peer.open(max_frame=512)
    peer.begin(window)
    peer.attach()
    attach_answers(peer, **settings)
    peer.expect(wire.ATTACH)
    peer.grant(100, handle=1, incoming_window=window)
    return peer


def read_answer(peer: wire.Peer) -> Message:
    """The next one, all of it."""
    frame = peer.expect(wire.TRANSFER)
    number, encoded = frame["delivery_id"], frame.payload
    while frame["more"]:
        frame = peer.expect(wire.TRANSFER)
        assert frame["delivery_id"] in (number, None) and not frame["aborted"]
        encoded += frame.payload
    answer = Message()
    answer.decode(encoded)
    return answer


def begin_answer(peer: wire.Peer) -> None:
    """The two frames that the window lets through."""
    for _ in range(2):
        assert peer.expect(wire.TRANSFER)["more"]


def wait_until_it_waits(receiver: pair.Child, cause: str) -> None:
    """As an interval says."""
    for number in range(1, 10_000):
        if pair.wait_for(receiver, "interval", number)["time_s"][cause] > 0:
            return


def open_window(peer: wire.Peer) -> None:
    """After those."""
    peer.grant(100, handle=1, next_incoming_id=2)


def finish_precv(receiver: pair.Child) -> pair.Result:
    """It would go on for ever."""
    pair.send_signal(receiver, pair.signal.SIGINT)
    precv = pair.finish(receiver)
    assert precv.code == 128 + pair.signal.SIGINT
    return precv


def test_long_answers_of_two_links_by_one() -> None:
    """Do not mix; each sender's are in order."""
    receiver, url = pair.listen("precv", "--reply", "--forever")
    peer = start_with_answers(url)
    peer.send(peer.attach_frame("second", handle=2))
    peer.expect(wire.ATTACH)
    for number in range(1, 21):
        message = long_request(number, LONG[: 1 + number * 9973])
        peer.send(wire.transfer(number, message, handle=2 * (number % 2)))
    answers = [read_answer(peer) for _ in range(20)]
    peer.close()
    assert finish_precv(receiver).messages["answers"] == 20
    numbers = [int(a.correlation_id.removeprefix("id-")) for a in answers]
    for odd in (0, 1):
        assert [n for n in numbers if n % 2 == odd] == list(range(2 - odd, 21, 2))
    assert [bytes(a.body) for a in answers] == [LONG[: 1 + n * 9973] for n in numbers]


def test_a_peer_that_settles_an_answer_in_its_middle() -> None:
    """Gets no more of it; the message is answered, and the next one is."""
    receiver, url = pair.listen("precv", "--reply", "--forever")
    peer = start_with_answers(url, window=2, snd_settle_mode=0)
    peer.send(wire.transfer(1, long_request(1), settled=False))
    begin_answer(peer)
    peer.settle(0)
    assert peer.expect(wire.DISPOSITION)["first"] == 0  # the message
    open_window(peer)
    assert peer.expect(wire.TRANSFER)["aborted"]
    peer.send(wire.transfer(2, long_request(2), settled=False))
    assert read_answer(peer).correlation_id == "id-2"
    peer.close()
    assert finish_precv(receiver).messages["answers"] == 2


def test_a_sender_that_goes_before_its_answer_has_come_to_its_end() -> None:
    """It is aborted on the link that it goes by, which then has those of others."""
    receiver, url = pair.listen("precv", "--reply", "--forever")
    asker = wire.connect(url, wire.SENDER).start()
    peer = start_with_answers(url, window=2)
    asker.send(wire.transfer(1, long_request(1), settled=False))
    begin_answer(peer)
    asker.reset()
    pair.wait_for(receiver, "error")
    open_window(peer)
    assert peer.expect(wire.TRANSFER)["aborted"]
    peer.send(wire.transfer(1, long_request(2)))
    assert read_answer(peer).correlation_id == "id-2"
    peer.close()
    assert finish_precv(receiver).messages["answers"] == 1


def test_a_link_that_goes_before_its_answer_has_come_to_its_end() -> None:
    """The message has no answer then, or one by the next link, from its beginning."""
    receiver, url = pair.listen("precv", "--reply", "--forever")
    peer = start_with_answers(url, window=2)
    peer.send(wire.transfer(1, long_request(1), settled=False))
    begin_answer(peer)
    peer.send(wire.frame(wire.DETACH, handle=1, closed=True))
    assert peer.expect(wire.DISPOSITION)["first"] == 0
    attach_answers(peer, name="next", handle=3)
    peer.expect(wire.ATTACH)
    peer.grant(100, handle=3, next_incoming_id=2)
    peer.send(wire.transfer(2, long_request(2), settled=False))
    assert read_answer(peer).correlation_id == "id-2"
    peer.close()
    precv = finish_precv(receiver)
    assert (precv.messages["answers"], precv.messages["unanswerable"]) == (1, 1)


def test_a_link_that_goes_while_answers_are_queued() -> None:
    """The library counts what was handed over settled for ever; the next link has answers, and a
    small window holds it up as before."""
    receiver, url = pair.listen("precv", "--reply", "--forever", "--interval", "50ms")
    peer = start_with_answers(url, window=2)
    for number in range(1, 9):
        peer.send(wire.transfer(number, long_request(number, LONG[:8000])))
    begin_answer(peer)
    wait_until_it_waits(receiver, "session")
    peer.send(wire.frame(wire.DETACH, handle=1, closed=True))
    peer.expect(wire.DETACH)
    attach_answers(peer, name="next", handle=3)
    peer.expect(wire.ATTACH)
    peer.grant(100, handle=3, next_incoming_id=2, incoming_window=wire.WINDOW)
    for number in range(9, 29):
        peer.send(wire.transfer(number, long_request(number, LONG[:8000])))
        assert read_answer(peer).correlation_id == f"id-{number}"
    peer.close()
    messages = finish_precv(receiver).messages
    assert messages["received"] == 28 and messages["answers"] + messages["unanswerable"] == 28


def test_a_run_that_ends_before_an_answer_has_come_to_its_end() -> None:
    """It is aborted, and its message is not taken."""
    receiver, url = pair.listen("precv", "--reply")
    peer = start_with_answers(url, window=2)
    peer.send(wire.transfer(1, long_request(1), settled=False))
    begin_answer(peer)
    pair.send_signal(receiver, pair.signal.SIGINT)
    peer.answer_close()
    precv = pair.finish(receiver)
    assert precv.code == 128 + pair.signal.SIGINT
    assert precv.messages["answers"] == precv.messages["received"] == 0
    assert not [f for f in peer.seen if f.code == wire.DISPOSITION]


# ---- what has no answer ----


def test_no_reply_to() -> None:
    """It is received and counted, and that is said once."""
    psend, precv = pair.run_pair(["-m", "100"], ["--reply"])
    pair.assert_codes([psend, precv], 0, 0)
    assert precv.messages["received"] == precv.messages["unanswerable"] == 100
    assert precv.messages["answers"] == 0
    assert len(precv.lines) == 1 and "reply-to" in precv.lines[0]
    assert precv.only("error")["exit_code"] == 0


def test_an_address_that_nobody_receives_from() -> None:
    """The same; messages that can be answered are."""
    receiver, url = pair.listen("precv", "--reply")
    requests = [request(n, reply_to="nobody" if n % 3 else None) for n in range(30)]
    asked = ask(url, requests, expect=10)
    precv = pair.finish(receiver)
    assert [a.properties["sn"] for a in asked.answers] == list(range(0, 30, 3))
    assert (precv.messages["answers"], precv.messages["unanswerable"]) == (10, 20)
    assert precv.code == 0 and len(precv.lines) == 1 and "nobody" in precv.lines[0]


@pytest.mark.parametrize("reply_to", ["", "x" * 5000], ids=["empty", "long"])
def test_odd_addresses(reply_to: str) -> None:
    """They are no address of a link."""
    receiver, url = pair.listen("precv", "--reply")
    asked = ask(url, [request(1, reply_to=reply_to)], expect=0)
    precv = pair.finish(receiver)
    assert precv.code == 0 and not asked.answers and precv.messages["unanswerable"] == 1


class Leaver(Requester):
    """Closes the link for answers after the first of them, and goes on asking."""

    def on_message(self, event: Any) -> None:
        """The first and last."""
        self.answers.append(event.message)
        self.receiver.close()

    def on_link_closed(self, event: Any) -> None:
        """Of that link."""
        self.requests = [request(number, reply_to="answers") for number in range(1, 12)]
        for number in range(1, 11):
            self.sender.send(self.requests[number])
        self.expect = 0


def test_a_link_that_goes_away() -> None:
    """What comes behind it has no answer, and is settled."""
    receiver, url = pair.listen("precv", "--reply")
    leaver = Leaver(url, [request(1)], expect=99)
    Container(leaver).run()
    precv = pair.finish(receiver)
    assert precv.code == 0 and precv.messages["received"] == 11
    assert precv.messages["answers"] == 1 and precv.messages["unanswerable"] == 10


# ---- credit ----


class Stingy(Requester):
    """Grants no credit for answers until it is told to."""

    def __init__(self, url: str, requests: list[Message], after_s: float) -> None:
        super().__init__(url, requests, option=AtMostOnce(), prefetch=0)
        self.after_s = after_s
        self.waiting = 0  # messages that could not be sent by then

    def on_start(self, event: Any) -> None:
        """Two links, one of them without credit."""
        host, address = self.url.split("/")
        self.connection = event.container.connect(host, reconnect=False)
        self.receiver = event.container.create_receiver(self.connection, self.source)
        self.sender = event.container.create_sender(self.connection, address, options=self.option)
        event.container.schedule(self.after_s, self)

    def on_timer_task(self, event: Any) -> None:
        """One by one, then all the rest."""
        if not self.waiting:
            self.waiting = len(self.left)
            assert not self.answers
            self.receiver.flow(1)
            event.container.schedule(self.after_s, self)
        else:
            assert len(self.answers) == 1
            self.receiver.flow(len(self.requests))


def test_messages_wait_for_credit() -> None:
    """And with them their sender; in the end each has its answer, in order."""
    receiver, url = pair.listen("precv", "--reply", "--credit", "20", "--interval", "50ms")
    requests = [request(n) for n in range(200)]
    stingy = Stingy(url, requests, after_s=0.4)
    Container(stingy).run()
    precv = pair.finish(receiver)
    assert precv.code == 0 and precv.messages["answers"] == 200
    assert stingy.waiting == 180
    assert [a.correlation_id for a in stingy.answers] == [r.id for r in requests]
    assert precv.summary["limited_by"] == "credit"


@pytest.mark.parametrize("body", [b"body", LONG], ids=["short", "long"])
def test_latency_is_without_the_wait_for_the_answer(body: bytes) -> None:
    """The message had come before its answer could go."""
    receiver, url = pair.listen(
        *("precv", "--reply", "--forever", "--interval", "50ms", "--clock", "monotonic")
    )
    peer = wire.connect(url, wire.SENDER)
    peer.start()
    attach_answers(peer)
    peer.expect(wire.ATTACH)
    began_ns = time.monotonic_ns()
    message = request(1, reply_to="answers", body=body)
    message.properties["ts"] = began_ns
    peer.send(wire.transfer(1, bytes(message.encode())))
    wait_until_it_waits(receiver, "credit")
    waiting_ns = time.monotonic_ns()
    time.sleep(0.5)
    peer.grant(10, handle=1)
    assert read_answer(peer).correlation_id == "id-1"
    peer.close()
    latency = finish_precv(receiver).summary["latency_ns"]
    assert latency["count"] == 1 and latency["max"] <= waiting_ns - began_ns


def test_answers_that_are_not_settled_are_bounded() -> None:
    """A peer that takes answers and settles none of them holds itself up."""
    receiver, url = pair.listen("precv", "--reply", "--forever", "--credit", "100")
    peer = wire.connect(url, wire.SENDER)
    peer.start()
    attach_answers(peer, snd_settle_mode=0)
    peer.expect(wire.ATTACH)
    peer.grant(2**31 - 1, handle=1)
    sent = taken = 0
    message = bytes(request(1, reply_to="answers").encode())
    credit = 100
    deadline_s = time.monotonic() + pair.DEADLINE_S
    while taken < 4096:
        assert time.monotonic() < deadline_s
        while sent < credit:
            sent += 1
            peer.send(wire.transfer(sent, message, settled=False))
        frame = peer.read()
        assert frame
        taken += frame.code == wire.TRANSFER
        if frame.code == wire.FLOW and frame["handle"] == 0:
            credit = frame["delivery_count"] + frame["credit"]
    assert sent <= 4096 + 100
    faults.assert_waits(receiver)
    peer.close()
    pair.send_signal(receiver, pair.signal.SIGINT)
    assert pair.finish(receiver).messages["answers"] == 4096


# ---- precv connects ----


class Node(MessagingHandler):
    """What a broker looks like: it sends requests to the one who receives, and takes answers at any
    address but "refused"."""

    def __init__(self, requests: list[Message]) -> None:
        super().__init__(prefetch=20)
        self.left = list(requests)
        self.answers: list[tuple[str, object]] = []  # address, id
        self.open: set[str] = set()
        self.most_open = self.opened = self.refused = 0
        self.port = 0

    def on_start(self, event: Any) -> None:
        """Listens."""
        self.acceptor = event.container.listen(f"{pair.HOST}:{self.port}")

    def on_link_opening(self, event: Any) -> None:
        """By precv."""
        link = event.link
        if link.is_sender:
            link.source.address = link.remote_source.address
        elif link.remote_target.address == "refused":
            link.target.type = Terminus.UNSPECIFIED  # as AMQP has refusals; its detach follows
            self.refused += 1
        else:
            link.target.address = link.remote_target.address
            self.open.add(link.name)
            self.opened += 1
            self.most_open = max(self.most_open, len(self.open))

    def on_link_opened(self, event: Any) -> None:
        """Both ends are."""
        if event.link.is_receiver and event.link.remote_target.address == "refused":
            event.link.condition = Condition("amqp:not-found", "there is no such node")
            event.link.close()

    def on_sendable(self, event: Any) -> None:
        """Requests, as fast as they are wanted."""
        while event.sender.credit and self.left and event.sender.source.address == "test":
            event.sender.send(self.left.pop(0))

    def on_message(self, event: Any) -> None:
        """An answer."""
        self.answers.append((event.link.target.address, event.message.correlation_id))

    def on_link_closing(self, event: Any) -> None:
        """By precv, which does not need it any more."""
        self.open.discard(event.link.name)

    def on_transport_closed(self, event: Any) -> None:
        """precv has ended."""
        self.acceptor.close()


def serve(requests: list[Message], *words: str) -> tuple[Node, pair.Result]:
    """precv receives these, answers, and ends."""
    node = Node(requests)
    with socket.create_server((pair.HOST, 0)) as probe:
        node.port = probe.getsockname()[1]
    thread = threading.Thread(target=Container(node).run, daemon=True)
    thread.start()
    words = ("--reply", "-m", str(len(requests)), *words)
    precv = pair.run("precv", f"{pair.HOST}:{node.port}/test", *words)
    thread.join(pair.DEADLINE_S)
    assert not thread.is_alive()
    return node, precv


def test_addresses_without_end() -> None:
    """By no more links at a time than are kept open; others are closed, and opened again."""
    requests = [request(n, id=str(n), reply_to=f"answers-{n % 400}") for n in range(800)]
    node, precv = serve(requests)
    pair.assert_codes([precv], 0)
    assert precv.messages["answers"] == 800 and not precv.lines
    assert sorted(node.answers) == sorted((r.reply_to, r.id) for r in requests)
    assert node.most_open <= 256 + 1 and node.opened > 400


def test_an_address_that_is_refused() -> None:
    """Its messages are counted; it is asked for once, not for each of them."""
    addresses = ["refused", "answers"]
    requests = [request(n, id=str(n), reply_to=addresses[n % 2]) for n in range(100)]
    node, precv = serve(requests)
    pair.assert_codes([precv], 0)
    assert (precv.messages["answers"], precv.messages["unanswerable"]) == (50, 50)
    assert [i for _, i in node.answers] == [str(n) for n in range(1, 100, 2)]
    assert node.refused == 1
    assert len(precv.lines) == 1 and "there is no such node" in precv.lines[0]
    assert precv.only("error")["condition"] == "amqp:not-found"


# ---- peers that do odd things ----


def attach_answers(peer: wire.Peer, **fields: Any) -> None:
    """Asks for a link for answers."""
    settings = {
        "name": "answers",
        "handle": 1,
        "role": wire.RECEIVER,
        "source": wire.node(wire.SOURCE, "answers"),
        "target": wire.node(wire.TARGET),
        **fields,
    }
    peer.send(wire.frame(wire.ATTACH, **settings))


def survives(play: Callable[[wire.Peer], None]) -> pair.Result:
    """precv with a peer that does that and goes; afterwards it serves another."""
    receiver, url = pair.listen("precv", "--reply", "--forever", "-m", "5")
    peer = wire.connect(url, wire.SENDER)
    peer.start()
    play(peer)
    peer.close()
    psend = pair.run("psend", url, "--round-trip", "-m", "4")
    assert psend.code == 0 and psend.messages["answered"] == 4
    ask(url, [request(1)])
    return pair.finish(receiver)


def test_a_link_without_an_address() -> None:
    """Is refused; the other one stays."""

    def play(peer: wire.Peer) -> None:
        attach_answers(peer, source=wire.node(wire.SOURCE, None))
        peer.expect(wire.ATTACH)
        assert "invalid-field" in repr(peer.expect(wire.DETACH)["error"])

    assert survives(play).code == 0


def test_a_second_attach() -> None:
    """Of a link that is attached."""

    def play(peer: wire.Peer) -> None:
        attach_answers(peer)
        peer.expect(wire.ATTACH)
        attach_answers(peer)
        peer.expect(wire.CLOSE)

    survives(play)


def test_credit_that_is_none() -> None:
    """2^31 and more read as less than none."""

    def play(peer: wire.Peer) -> None:
        attach_answers(peer)
        peer.expect(wire.ATTACH)
        peer.grant(2**31, handle=1)
        assert "not-implemented" in repr(peer.expect(wire.CLOSE)["error"])

    survives(play)


def test_a_transfer_to_the_link_for_answers() -> None:
    """Which is not its direction."""

    def play(peer: wire.Peer) -> None:
        attach_answers(peer)
        peer.expect(wire.ATTACH)
        peer.send(wire.transfer(1, handle=1))
        assert "not-allowed" in repr(peer.expect(wire.CLOSE)["error"])

    survives(play)


ODD = [
    b"",
    b"\x00\x53\x73\x45",  # no properties at all
    b"\x00\x53\x73\xc0\x02\x05\x40",  # fewer fields than said
    b"\x00\x53\x73\xd0\xff\xff\xff\xff\x00\x00\x00\x06",  # longer than the message
    b"\x00\x53\x73\xc0\x0c\x05\x00\x53\x01\x40\x40\x40\x40\xa1\x01a",  # a described id
    wire.encode(wire.Described(ulong(0x73), [[1, 2], None, None, None, "answers"])),
    wire.encode(wire.Described(ulong(0x73), [{"a": 1}, None, None, None, "answers"])),
    wire.encode(wire.Described(ulong(0x73), [-1, None, None, None, "answers"])),
    wire.encode(wire.Described(ulong(0x73), ["x", None, None, None, b"answers"])),
    wire.encode(wire.Described(ulong(0x73), ["x", None, None, None, symbol("answers")])),
    wire.encode(wire.Described(ulong(0x73), ["x", None, None, None, timestamp(1)])),
    wire.encode(wire.Described(ulong(0x73), ["x", None, None, None, ["answers"]])),
    wire.encode(wire.Described(ulong(0x73), {"reply-to": "answers"})),
    b"\x00\x53\x73\xc0\x0e\x05\x40\x40\x40\x40\xa1\x07ans\0ers",
]


BODIES = [b"", b"\x00\x53\x75\xa0\x01x", b"\x00\x53\x75\xb0\xff\xff\xff\xff"]


@pytest.mark.parametrize("properties", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("body", BODIES, ids=["none", "good", "cut off"])
def test_odd_messages(properties: bytes, body: bytes) -> None:
    """Are taken, answered or not, and what an answer has can be read."""
    receiver, url = pair.listen("precv", "--reply")
    peer = wire.connect(url, wire.SENDER)
    peer.start()
    attach_answers(peer)
    peer.expect(wire.ATTACH)
    peer.grant(10, handle=1)
    for number in range(1, 4):
        peer.send(wire.transfer(number, properties + body, settled=False))
    answers = []
    while True:
        frame = peer.read()
        assert frame
        if frame.code == wire.TRANSFER:
            answers.append(frame.payload)
        if frame.code == wire.DISPOSITION and frame["role"] == wire.RECEIVER:
            if (frame["last"] or frame["first"]) == 2:
                break
    peer.leave()
    precv = pair.finish(receiver)
    assert precv.code == 0
    assert precv.messages["answers"] + precv.messages["unanswerable"] == 3
    assert len(answers) <= precv.messages["answers"]
    for answer in answers:
        while answer:
            data = Data()
            answer = answer[data.decode(answer) :]
            data.rewind()
            assert data.next() and data.is_described()
