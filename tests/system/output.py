"""Standard output of a program, read from a pipe when the test says so."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pair


class Output:
    """A pipe that a program writes to. Nothing is read before read_on() is called."""

    def __init__(self) -> None:
        self._read_fd, write_fd = os.pipe()
        self.file: IO[bytes] = os.fdopen(write_fd, "wb")  # for pair.start()
        self._go = threading.Event()
        self._bytes = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        self._go.wait()
        with os.fdopen(self._read_fd, "rb", buffering=0) as pipe:
            while some := pipe.read(4096):
                self._bytes += some

    def read_on(self) -> None:
        """To the end, whenever that comes."""
        self._go.set()

    def close_reading(self) -> None:
        """Nobody will read, as when `head` has ended."""
        os.close(self._read_fd)

    def all(self) -> bytes:
        """What was written, after the program has ended."""
        self.file.close()
        self.read_on()
        self._thread.join(pair.DEADLINE_S)
        assert not self._thread.is_alive()
        return bytes(self._bytes)


@contextmanager
def opened(reading: bool = True) -> Iterator[Output]:
    """One that is closed whatever happens."""
    output = Output()
    if reading:
        output.read_on()
    try:
        yield output
    finally:
        if not output.file.closed:
            output.file.close()


def wait_until_blocked(child: pair.Child) -> pair.Json:
    """An interval of the program in which it could do nothing but wait for who reads it."""
    number = 1
    while True:
        interval = pair.wait_for(child, "interval", number)
        length_s = interval["end_s"] - interval["start_s"]
        if interval["messages"]["received"] == 0 and interval["time_s"]["socket"] > length_s / 2:
            return interval
        number += 1
