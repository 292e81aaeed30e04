"""Command line and output of the peers that are written in Python."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
KINDS = ("data", "binary", "string", "number", "list", "map")


@dataclass(frozen=True)
class Options:
    """What a peer is to do."""

    sends: bool
    listens: bool
    authority: str  # HOST:PORT, if it connects
    address: str
    ca: str  # file, if it is to connect with TLS
    messages: int
    body: bytes
    kind: str  # of the body: a data section, or a value; lists and maps hold the text and numbers
    presettled: bool
    sasl: bool  # ANONYMOUS; without it, no layer of SASL at all
    native: bool  # numbers as the library encodes the language's own
    rich: bool  # all that a message may say about itself, and annotations
    hop: bool  # and what is for the next receiver only: delivery annotations


def parse() -> Options:
    """Of this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("send", "receive"))
    parser.add_argument("--connect", default="", metavar="HOST:PORT")
    parser.add_argument("--address", default="test")
    parser.add_argument("--ca", default="", metavar="FILE")
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--body", default="X" * 100)
    parser.add_argument("--kind", choices=KINDS, default="data")
    for flag in ("presettled", "sasl", "native", "rich", "hop"):
        parser.add_argument(f"--{flag}", action="store_true")
    given = vars(parser.parse_args())
    given["body"] = given["body"].encode("ascii")
    authority = given.pop("connect")
    sends = given.pop("role") == "send"
    return Options(sends=sends, listens=not authority, authority=authority, **given)


def value(options: Options) -> object:
    """A body that is one, as Python has it."""
    text = options.body.decode("ascii")
    return {
        "binary": options.body,
        "string": text,
        "number": 42,
        "list": [text, 42, True, None],
        "map": {"text": text, "number": 42, "list": [1, 2]},
    }[options.kind]


def say(event: str, **content: Any) -> None:
    """A line of standard output."""
    json.dump({"event": event, **content}, sys.stdout, default=str)
    sys.stdout.write("\n")
    sys.stdout.flush()
