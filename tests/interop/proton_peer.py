"""A peer made of python-qpid-proton: see peers.py for what all peers have in common."""

from __future__ import annotations

import base64
import sys
import time
from typing import Any

import peer_options
from peer_options import Options, say
from proton import Delivery, Message, symbol, ulong
from proton.handlers import MessagingHandler
from proton.reactor import AtMostOnce, Container

CREDIT = 100
OUTCOMES = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}


class Peer(MessagingHandler):
    """What sender and receiver share."""

    def __init__(self, options: Options) -> None:
        super().__init__(prefetch=0 if options.sends else CREDIT)
        self.options = options
        self.acceptor: Any = None
        self.failed = False
        self.settle = AtMostOnce() if options.presettled else None

    def on_start(self, event: Any) -> None:
        """Listens or connects."""
        if self.options.listens:
            self.acceptor = event.container.listen(f"{peer_options.HOST}:0")
            say("listening", port=self.acceptor._selectable._delegate.getsockname()[1])
            return
        if self.options.ca:
            event.container.ssl.client.set_trusted_ca_db(self.options.ca)
        scheme = "amqps" if self.options.ca else "amqp"
        connection = event.container.connect(
            f"{scheme}://{self.options.authority}",
            virtual_host="localhost",  # its verification knows names, and no addresses
            reconnect=False,
            sasl_enabled=self.options.sasl,
            allowed_mechs="ANONYMOUS",
        )
        if self.options.sends:
            event.container.create_sender(connection, self.options.address, options=self.settle)
        else:
            event.container.create_receiver(connection, self.options.address, options=self.settle)

    def on_link_opening(self, event: Any) -> None:
        """By a peer: both ends of the link are what it says."""
        event.link.source.copy(event.link.remote_source)
        event.link.target.copy(event.link.remote_target)
        if self.options.presettled and event.link.is_sender:
            event.link.snd_settle_mode = event.link.SND_SETTLED

    def on_session_error(self, event: Any) -> None:
        """What went wrong."""
        self.fail(event, event.session.remote_condition)

    def on_link_error(self, event: Any) -> None:
        """What went wrong."""
        self.fail(event, event.link.remote_condition)

    def on_connection_error(self, event: Any) -> None:
        """What went wrong."""
        self.fail(event, event.connection.remote_condition)

    def fail(self, event: Any, condition: Any) -> None:
        """Says so; the exit code will be 1."""
        say("error", condition=str(condition))
        self.failed = True
        self.end(event)

    def end(self, event: Any) -> None:
        """Closes what there is; it goes out behind messages and dispositions."""
        event.connection.close()
        if self.acceptor:
            self.acceptor.close()


class Sender(Peer):
    """Sends, and counts outcomes."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.sent = 0
        self.outcomes: dict[str, int] = {}

    def on_sendable(self, event: Any) -> None:
        """As many as there is credit for."""
        while event.sender.credit and self.sent < self.options.messages:
            self.sent += 1
            delivery = event.sender.send(message(self.options, self.sent))
            if self.options.presettled:
                delivery.settle()
        if self.options.presettled and self.sent == self.options.messages:
            self.end(event)

    def on_settled(self, event: Any) -> None:
        """The last one ends it."""
        name = OUTCOMES.get(event.delivery.remote_state, str(event.delivery.remote_state))
        self.outcomes[name] = self.outcomes.get(name, 0) + 1
        if sum(self.outcomes.values()) == self.options.messages:
            self.end(event)

    def on_link_closing(self, event: Any) -> None:
        """By a receiver that has all it wants."""
        self.end(event)


class Receiver(Peer):
    """Receives, and says what."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.received = 0

    def on_message(self, event: Any) -> None:
        """One more."""
        self.received += 1
        say("message", **describe(event.message))
        if self.received == self.options.messages and not self.options.listens:
            self.end(event)

    def on_link_closing(self, event: Any) -> None:
        """By a sender that has settled all."""
        self.end(event)


def message(options: Options, number: int) -> Message:
    """With this sequence number, and the time."""
    is_data = options.kind == "data"
    body = options.body if is_data else peer_options.value(options)
    made = Message(body=body, inferred=is_data, properties={})
    if options.rich:
        made.durable, made.priority, made.ttl = True, 7, 60.0
        made.id, made.user_id, made.subject = f"id-{number}", b"guest", "a subject"
        made.address, made.reply_to, made.correlation_id = "to", "answers", str(number)
        made.content_type, made.group_id, made.group_sequence = symbol("a/b"), "g", number
        made.annotations = {symbol("x-opt-note"): "ts", symbol("x-opt-sn"): ulong(1 << 40)}
        if options.hop:
            made.instructions = {symbol("x-opt-hop"): 1}
        made.properties = {"a": "sn", "tss": True, "c": -1.5}
    made.properties["sn"] = number if options.native else ulong(number)
    made.properties["ts"] = time.time_ns()
    if options.rich:
        made.properties["z"] = "last"
    return made


def describe(got: Message) -> dict[str, Any]:
    """In terms of JSON."""
    application = dict(got.properties or {})
    body = got.body
    is_data = isinstance(body, (bytes, memoryview))
    stated = {
        "message_id": got.id,
        "subject": got.subject,
        "reply_to": got.reply_to,
        "correlation_id": got.correlation_id,
        "content_type": None if got.content_type == "None" else got.content_type,
        "group_id": got.group_id,
        "user_id": got.user_id,
    }
    return {
        "sn": text(application.pop("sn", None)),
        "ts": text(application.pop("ts", None)),
        "body": base64.b64encode(bytes(body)).decode() if is_data else None,
        "value": None if is_data else plain(body),
        "application": plain(application),
        "header": {
            "durable": got.durable,
            "priority": got.priority,
            "ttl_ms": round(1000 * got.ttl),
        },
        "properties": {name: text(value) for name, value in stated.items() if value},
        "annotations": {str(key): text(value) for key, value in (got.annotations or {}).items()},
    }


def plain(value: Any) -> Any:
    """Without this library's own types of numbers."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    return int(value) if isinstance(value, int) else value


def text(value: Any) -> str:
    """Of any value; this library's numbers would say their type as well."""
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).decode()
    return str(int(value)) if isinstance(value, int) else str(value)


def main() -> None:
    """Until it has done what it is to do."""
    options = peer_options.parse()
    peer = Sender(options) if options.sends else Receiver(options)
    Container(peer).run()
    say("done", outcomes=peer.outcomes if isinstance(peer, Sender) else {})
    sys.exit(1 if peer.failed else 0)


if __name__ == "__main__":
    main()
