"""A peer made of uamqp, whose AMQP is its own: see peers.py for what all peers have in common.

It has no way to connect without TLS, nor to listen. This one reaches a peer without TLS by way of a
relay.
"""

from __future__ import annotations

import base64
import tempfile
import time
from pathlib import Path
from typing import Any

import certificates
import peer_options
import tls_relay
import uamqp
from peer_options import HOST, Options, say
from uamqp import authentication, constants, types

CREDIT = 100
SETTLE = {
    False: constants.SenderSettleMode.Unsettled,
    True: constants.SenderSettleMode.Settled,
}


class Target(uamqp.address.Target):
    """An address that is not a URL, as anybody's but Azure's."""

    hostname = HOST


class Source(uamqp.address.Source):
    """The same."""

    hostname = HOST


def send(options: Options, how: dict[str, Any]) -> dict[str, int]:
    """Sends. Returns how many messages had which outcome."""
    outcomes: dict[str, int] = {}
    client = uamqp.SendClient(**how)
    for number in range(1, options.messages + 1):
        client.queue_message(message(options, number))
    for state in client.send_all_messages():
        name = "accepted" if state == constants.MessageState.SendComplete else str(state)
        outcomes[name] = outcomes.get(name, 0) + 1
    return outcomes


def receive(options: Options, how: dict[str, Any]) -> None:
    """Receives, and says what."""
    client = uamqp.ReceiveClient(prefetch=CREDIT, **how)
    received = 0
    try:
        while received < options.messages:
            most = min(CREDIT, options.messages - received)
            for got in client.receive_message_batch(max_batch_size=most):
                received += 1
                say("message", **describe(got))
    finally:
        client.close()


def message(options: Options, number: int) -> uamqp.Message:
    """With this sequence number, and the time."""
    numbered = {
        "sn": number if options.native else types.AMQPuLong(number),
        "ts": types.AMQPLong(time.time_ns()),
    }
    if options.kind != "data":
        given = peer_options.value(options)
        value = bytearray(given) if isinstance(given, bytes) else given  # its bytes are strings
        kind = uamqp.MessageBodyType.Value
        return uamqp.Message(value, body_type=kind, application_properties=numbered)
    if not options.rich:
        return uamqp.Message(options.body, application_properties=numbered)
    header = uamqp.message.MessageHeader()
    header.durable, header.priority, header.time_to_live = True, 7, 60000
    return uamqp.Message(
        options.body,
        header=header,
        properties=uamqp.message.MessageProperties(
            message_id=f"id-{number}",
            user_id="guest",
            to="to",
            subject="a subject",
            reply_to="answers",
            correlation_id=str(number),
            content_type="a/b",
            group_id="g",
        ),
        annotations={"x-opt-note": "ts", "x-opt-sn": types.AMQPuLong(1 << 40)},
        delivery_annotations={"x-opt-hop": 1} if options.hop else None,
        application_properties={"a": "sn", "tss": True, "c": -1.5, **numbered, "z": "last"},
    )


def text(value: Any) -> str:
    """Of a string that this library gives as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def plain(value: Any) -> Any:
    """With strings, which this library gives as bytes."""
    if isinstance(value, dict):
        return {text(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return text(value) if isinstance(value, bytes) else value


def describe(got: uamqp.Message) -> dict[str, Any]:
    """In terms of JSON."""
    properties = {text(k): v for k, v in (got.application_properties or {}).items()}
    data = got.get_data()
    is_data = isinstance(got._body, uamqp.message.DataBody)
    header = got.header
    names = ("message_id", "subject", "reply_to", "correlation_id", "content_type", "group_id")
    stated = {name: getattr(got.properties, name, None) for name in (*names, "user_id")}
    return {
        "sn": str(properties.pop("sn", None)),
        "ts": str(properties.pop("ts", None)),
        "body": base64.b64encode(b"".join(data)).decode() if is_data else None,
        "value": None if is_data else plain(data),
        "application": plain(properties),
        "header": {
            "durable": bool(header and header.durable),
            "priority": header.priority if header and header.priority is not None else 4,
            "ttl_ms": header.time_to_live if header and header.time_to_live else 0,
        },
        "properties": {name: text(v) for name, v in stated.items() if v is not None},
        "annotations": {text(k): text(v) for k, v in (got.annotations or {}).items()},
    }


def main() -> None:
    """Until it has done what it is to do."""
    options = peer_options.parse()
    host, port = options.authority.split(":")
    with tempfile.TemporaryDirectory() as folder:
        if options.ca:
            authority_file, to = options.ca, int(port)
        else:
            authority = certificates.Authority(Path(folder), "relay")
            own = authority.issue("localhost", certificates.ADDRESSES)
            authority_file, to = authority.file, tls_relay.start(own, host, int(port))
        trusted = authentication.SASLAnonymous(HOST, port=to, verify=authority_file)
        how = {
            "auth": trusted,
            "send_settle_mode": SETTLE[options.presettled],
        }
        if options.sends:
            say("done", outcomes=send(options, {"target": Target(options.address), **how}))
        else:
            receive(options, {"source": Source(options.address), **how})
            say("done", outcomes={})


if __name__ == "__main__":
    main()
