"""Where a router or broker is: [amqp[s]://][user[:password]@]host[:port][/address].

As psend and precv read it. What stands before the first slash is host and port, if it can be. If it
cannot, there are user and password: these end at the first @ behind which, up to the next slash or
the end, a host is left, with or without a port. So both may hold any of @ : / # ? % as they are;
user ends at the first colon. %XX in them is a byte, where XX are two hexadecimal digits; any other
% is itself. The address is everything behind the slash that ends the host, as it is.

A host is an IPv6 address in brackets, or bare if no port follows, or a name or IPv4 address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote_to_bytes

FORM = "[amqp[s]://][user[:password]@]host[:port][/address]"
FRESH = "{}"  # in an address, where the name of a run is to be
PORTS = {"amqp": 5672, "amqps": 5671}

_NAME = r"[^][@:/\s\x00-\x1f\x7f]+"
_IPV6 = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[^][@/\s\x00-\x1f\x7f]+)?"
_BRACKETS = rf"\[(?:{_IPV6})\]"
HOST_PORT = re.compile(rf"(?:({_BRACKETS}|{_NAME})(?::([0-9]{{1,5}}))?|({_IPV6}))")


@dataclass(frozen=True)
class Url:
    """Its parts; None is what was not there. User and password are as they are meant."""

    host: str  # without brackets
    scheme: str | None = None  # amqp or amqps
    user: bytes | None = None
    password: bytes | None = None
    port: int | None = None
    address: str | None = None  # b"" and "" were there, and are empty

    @property
    def secure(self) -> bool:
        """Whether it is TLS."""
        return self.scheme == "amqps"

    def text(self) -> str:
        """As it would be typed; what is not plain in user and password is percent-encoded."""
        scheme = f"{self.scheme}://" if self.scheme else ""
        user = "" if self.user is None else quote(self.user, safe="")
        password = "" if self.password is None else f":{quote(self.password, safe='')}"
        at = "" if self.user is None else "@"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        address = "" if self.address is None else f"/{self.address}"
        return f"{scheme}{user}{password}{at}{host}{port}{address}"


def parse(text: str) -> Url:
    """Raises ValueError, whose words quote nothing of TEXT: it may hold a password."""
    scheme, rest = _scheme(text)
    whole = _place(rest)
    if whole:
        return replace(whole, scheme=scheme)
    at = rest.find("@")
    while at >= 0:
        found = _place(rest[at + 1 :])
        if found:
            user, password = _credentials(rest[:at])
            return replace(found, scheme=scheme, user=user, password=password)
        at = rest.find("@", at + 1)
    raise ValueError(f"is not {FORM}")


def _scheme(text: str) -> tuple[str | None, str]:
    scheme, colon, rest = text.partition("://")
    if not colon or "/" in scheme or "@" in scheme:  # it is within an address, or a password
        return None, text
    if scheme not in PORTS:
        raise ValueError("has a scheme other than amqp and amqps")
    return scheme, rest


def _place(text: str) -> Url | None:
    """Host, port and address, if TEXT is no more than that."""
    authority, slash, address = text.partition("/")
    match = HOST_PORT.fullmatch(authority)
    if not match or int(match[2] or 0) > 65535:
        return None
    host = (match[1] or match[3]).strip("[]")
    port = int(match[2]) if match[2] else None
    return Url(host, port=port, address=address if slash else None)


def _credentials(text: str) -> tuple[bytes, bytes | None]:
    user, colon, password = text.partition(":")
    found = unquote_to_bytes(user), unquote_to_bytes(password) if colon else None
    if any(part and b"\0" in part for part in found):
        raise ValueError("has a user or password with a zero byte")
    return found


def without_password(text: str) -> str:
    """TEXT, if it holds none; else the same URL without it."""
    try:
        url = parse(text)
    except ValueError:
        return text
    return text if url.password is None else replace(url, password=None).text()


def is_fresh(text: str) -> bool:
    """Whether each run has an address of its own: the URL has none, or one with {}."""
    address = parse(text).address
    return not address or FRESH in address


def named(text: str, name: str) -> str:
    """The URL with NAME as its address if it has none, or in the place of {}."""
    url = parse(text)
    if not url.address:
        return f"{text.removesuffix('/')}/{name}"
    return replace(url, address=url.address.replace(FRESH, name)).text() if is_fresh(text) else text
