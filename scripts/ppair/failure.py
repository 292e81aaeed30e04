"""What ends ppair early: one line and an exit code."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes: those of psend and precv, and one more."""

    DONE = 0
    INTERNAL = 1  # internal or local I/O error
    CONNECTION = 2  # a peer could not connect, was never ready, or died
    AUTHENTICATION = 3
    SHORT = 4  # fewer messages than asked, or an accounting that does not add up
    VERIFICATION = 5
    REFUSED = 6
    VERDICT = 7  # measured well, and worse than the limit that was given
    USAGE = 64
    INTERRUPTED = 130


class Failure(Exception):
    """What, where and why, in one line of ASCII; and how to exit."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


def usage(message: str) -> Failure:
    """What was typed cannot be accepted."""
    return Failure(Exit.USAGE, message)
