"""Passwords: they are in ppair's environment, never in command lines, files or what is printed.

One that is typed in a URL is in the process list, until ppair has executed itself again without it,
which is the first thing that it does. psend and precv find it in their environment, as they do when
they are used by hand.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence

from . import url

VARIABLE = "PPAIR_PASSWORD"
OPTION = "--via"  # whose value is a URL


def hide() -> None:
    """Executes this process again if its command line has a password, with that in VARIABLE.

    Several that differ stay where they are, for a Spec to refuse them.
    """
    words, passwords = hidden(sys.argv[1:])
    if len(set(passwords)) != 1:
        return
    interpreter = sys.orig_argv[1 : len(sys.orig_argv) - len(words)]
    environment = {**os.environb, VARIABLE.encode(): passwords[0]}
    os.execve(sys.executable, [sys.executable, *interpreter, *words], environment)


def hidden(argv: Sequence[str]) -> tuple[list[str], list[bytes]]:
    """ARGV without passwords, and those; also within words that are command lines themselves."""
    words: list[str] = []
    passwords: list[bytes] = []
    for index, word in enumerate(argv):
        if index and argv[index - 1] == OPTION:
            found = _of_url(word)
        elif word.startswith(f"{OPTION}="):
            rest, inner = _of_url(word.removeprefix(f"{OPTION}="))
            found = f"{OPTION}={rest}", inner
        elif OPTION in word and any(c.isspace() or c == "=" for c in word):
            found = _of_line(word)
        else:
            found = word, []
        words.append(found[0])
        passwords += found[1]
    return words, passwords


def _of_url(text: str) -> tuple[str, list[bytes]]:
    try:
        password = url.parse(text).password
    except ValueError:
        return text, []
    return (text, []) if password is None else (url.without_password(text), [password])


def _of_line(text: str) -> tuple[str, list[bytes]]:
    """Of compare and presets: '--via URL --credit 10'; --a='...' has its option's name first."""
    option = re.match(r"--[a-z][-a-z]*=", text)
    name, line = (option[0], text[option.end() :]) if option else ("", text)
    try:
        words, passwords = hidden(shlex.split(line))
    except ValueError:
        return text, []
    return (f"{name}{shlex.join(words)}", passwords) if passwords else (text, [])


def redacted(text: str) -> str:
    """For messages that quote what was typed: without what stands before an @ in a URL."""
    return re.sub(r"(amqps?://).*@", r"\1...@", text, flags=re.DOTALL)


def password() -> bytes | None:
    """For programs that have no share in our environment."""
    return os.environb.get(VARIABLE.encode())
