"""Where a router or broker is: [amqp[s]://][user[:password]@]host[:port][/address].

As psend and precv read it. The host begins behind the first @ that is followed by host[:port] up to
a slash or the end, or at once if what stands before the first slash is host[:port]. So user and
password may hold any of @ : / # ? % as they are, but for a password that itself looks like @host/
and for : in a user. %XX in them is a byte, where XX are two hexadecimal digits; any other % is
itself. The address is everything behind the first slash behind the host, as it is.

A host is a name, an IPv4 address, or an IPv6 address: in brackets, or bare, then without a port. An
IPv6 address may have a scope, behind % or %25.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

FORM = "[amqp[s]://][user[:password]@]host[:port][/address]"
FRESH = "{}"  # in an address, where the name of a run is to be
SCHEMES = ("amqp", "amqps")

SCHEME = re.compile(r"([A-Za-z0-9._-]*)://")
NAME_PORT = re.compile(r"([A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
BRACKETS = re.compile(r"\[([^][]+)\](?::([0-9]{1,5}))?")
SCOPE = re.compile(r"(?:25(?=.))?([A-Za-z0-9._-]+)")


@dataclass(frozen=True)
class Url:
    """Its parts; None is what was not there. User and password are decoded."""

    scheme: str | None  # amqp or amqps
    user: bytes | None
    password: bytes | None
    host: str  # without brackets
    port: int | None
    address: str | None


@dataclass(frozen=True)
class _Texts:
    """A URL as it is written: scheme + user + rest; user has an @ at its end, if there is one."""

    scheme: str
    user: str
    rest: str


def parse(text: str) -> Url:
    """Raises ValueError, whose words quote nothing of TEXT: it may hold a password."""
    texts = _split(text)
    authority, slash, address = texts.rest.partition("/")
    host, port = _place(authority) or ("", None)
    scheme = texts.scheme.removesuffix("://") or None
    user = password = None
    if texts.user:
        name, colon, secret = texts.user[:-1].partition(":")
        user, password = _decoded(name), _decoded(secret) if colon else None
    return Url(scheme, user, password, host, port, address if slash else None)


def _split(text: str) -> _Texts:
    match = SCHEME.match(text)
    scheme = match[0] if match else ""
    if match and match[1] not in SCHEMES:
        raise ValueError("has a scheme other than amqp and amqps")
    body, start = text[len(scheme) :], 0
    while not _place(body[start:].partition("/")[0]):
        at = body.find("@", start)
        if at < 0:
            raise ValueError(f"is not {FORM}")
        start = at + 1
    return _Texts(scheme, body[:start], body[start:])


def _place(text: str) -> tuple[str, int | None] | None:
    """Host and port, if TEXT is just that."""
    if _is_ipv6(text):
        return text, None
    match = NAME_PORT.fullmatch(text) or BRACKETS.fullmatch(text)
    if not match or int(match[2] or 0) > 65535 or text[0] == "[" and not _is_ipv6(match[1]):
        return None
    return match[1], None if match[2] is None else int(match[2])


def _is_ipv6(text: str) -> bool:
    address, percent, scope = text.partition("%")
    if percent and not SCOPE.fullmatch(scope):
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


def _decoded(text: str) -> bytes:
    """Of user or password."""
    found = unquote_to_bytes(text)
    if not found:
        raise ValueError("has an empty user or password")
    if b"\0" in found:
        raise ValueError("has a %00 in user or password")
    return found


def without_password(text: str) -> str:
    """TEXT, if it holds none; else the same URL without it."""
    try:
        texts = _split(text)
    except ValueError:
        return text
    name, colon, _ = texts.user.partition(":")
    return f"{texts.scheme}{name}@{texts.rest}" if colon else text


def named(text: str, name: str) -> str:
    """The URL with NAME as its address if it has none, or in the place of {}."""
    texts = _split(text)
    place, _, address = texts.rest.partition("/")
    address = address.replace(FRESH, name) if address else name
    return f"{texts.scheme}{texts.user}{place}/{address}"
