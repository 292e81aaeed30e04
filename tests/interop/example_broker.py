"""The example broker of libqpid-proton, compiled from where Debian's package has its source.

It keeps queues in memory, makes them when somebody attaches, grants 5 credits, sends pre-settled,
and asks for no outcomes: small, and unlike RabbitMQ in each of these. (A message that comes to it
in several reads it damages: it writes each part over the first.)
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import server
from server import HOST, Server

EXAMPLES = Path("/usr/share/proton/examples/c")
# Debian has no links for linking with these two
LIBRARIES = ["-l:libqpid-proton-proactor.so.1", "-l:libqpid-proton-core.so.10"]


@dataclass(frozen=True)
class ExampleBroker:
    """One that listens."""

    port: int
    node: Server

    @property
    def authority(self) -> str:
        """HOST:PORT."""
        return f"{HOST}:{self.port}"

    @staticmethod
    def queue(name: str) -> str:
        """Any address is one of a queue."""
        return name

    def url(self, address: str) -> str:
        """For psend, precv and ppair."""
        return f"amqp://{self.authority}/{address}"

    def stop(self) -> None:
        """Its process."""
        server.stop(self.node)


def compile_example(name: str, folder: Path) -> Path:
    """A program in FOLDER."""
    program = folder / name
    source = EXAMPLES / f"{name}.c"
    words = ["cc", "-O2", "-o", str(program), str(source), f"-I{EXAMPLES}", *LIBRARIES, "-lpthread"]
    subprocess.run(words, check=True, timeout=server.DEADLINE_S)
    return program


def start(folder: Path) -> ExampleBroker:
    """Compiles and starts it in FOLDER. Raises NotReady."""
    program = compile_example("broker", folder)
    node = server.start("broker", [str(program), HOST, "0"], folder, {})
    try:
        said = server.wait_for(node, re.compile(r"listening on (\d+)").fullmatch)
    except BaseException:
        server.stop(node)
        raise
    return ExampleBroker(int(said[1]), node)
