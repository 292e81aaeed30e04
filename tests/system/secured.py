"""What the tests of TLS and of SASL share: a program that others connect to, and what is said of
those that are refused."""

from __future__ import annotations

import signal

import pair
import pytest

CONNECTION, SECURITY, USAGE = 2, 3, 64
OTHER = {"psend": "precv", "precv": "psend"}
PROGRAMS = pytest.mark.parametrize("program", pair.PROGRAMS)  # the one that connects


class Listener:
    """A program that listens, and goes on until it is told to end."""

    def __init__(self, name: str, *options: str, where: str = pair.ANY_PORT) -> None:
        limits = ["-m", "0"] if name == "psend" else []
        self.child = pair.start(name, "--listen", where, "--forever", *limits, *options)
        self.port = pair.wait_for(self.child, "ready")["port"]
        self.authority = f"{pair.HOST}:{self.port}"
        self.url = f"{self.authority}/test"

    def end(self) -> list[str]:
        """As SIGINT has it. What it has said of those who knocked, which is not its failure."""
        pair.send_signal(self.child, signal.SIGINT)
        result = pair.finish(self.child)
        assert result.code == 128 + signal.SIGINT, result
        errors = result.of_kind("error")
        assert all(error["exit_code"] == 0 for error in errors)
        assert [line.partition(" failed: ")[2] for line in result.lines] == [
            ": ".join(filter(None, (error["condition"], error["description"]))) for error in errors
        ]
        return [error["description"] for error in errors]


def assert_failed(
    result: pair.Result, words: str, code: int = SECURITY, condition: str | None = None
) -> None:
    """One line, which ends with WORDS, and the same in an event."""
    assert result.code == code, result
    said = f"{condition}: {words}" if condition else words
    assert len(result.lines) == 1 and result.lines[0].endswith(f" failed: {said}"), result.lines
    error = result.only("error")
    assert (error["exit_code"], error["description"]) == (code, words)
    assert error["condition"] == condition
    assert result.seconds < 8
