"""The command line: which commands there are, and how ppair ends."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from . import VERSION, arrangement, secret
from .failure import Exit, Failure
from .table import plain

COMMANDS = {
    "run": "one arrangement, repeated: a table of every repetition, their mean and spread",
    "sweep": "a grid of options, or a published experiment (--preset); can be resumed",
    "tune": "the smallest credit window that is nearly as good as any, and what a grant costs",
    "latency": "latency against load, in open loop, and the highest rate that is sustained",
    "compare": "A against B: ratios with intervals, and in words whether they differ",
    "soak": "hours, or billions of messages: nothing lost, no growth, no slow-down",
    "report": "tables, plots and pages from results",
}
EPILOGUE = """\
Options of psend and precv may stand among those of a command: --credit 10 goes to whichever program
has it, --precv.max-frame 4Ki to that one alone. See psend --help, precv --help and
ppair COMMAND --help.

Exit status: 0 done; 1 internal or local I/O error; 2 a program could not connect, was not ready in
time or died; 3 refused for lack of authentication; 4 messages are missing; 5 verification failed;
6 rejected or released messages; 7 worse than the limit given (compare --fail-above, soak);
64 usage; 130 interrupted."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as psend's; man pages are made from it, and help2man wants a large U."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=98)

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Any,
        prefix: str | None = None,
    ) -> None:
        """Called by argparse."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


class Parser(argparse.ArgumentParser):
    """Errors are one line, and exit with 64."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """As everything else that is refused."""
        raise Failure(Exit.USAGE, message)


def _parser() -> Parser:
    parser = Parser(
        prog="ppair",
        usage="ppair COMMAND [OPTION...]",
        description="Experiments with psend and precv.",
        epilog="commands:\n"
        + "\n".join(f"  {name:9}{what}" for name, what in COMMANDS.items())
        + f"\n\n{EPILOGUE}",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    _add_version(parser, "ppair")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    return parser


def _add_version(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--version", action="version", version=f"{name} {VERSION}")


def _command_parser(name: str, module: ModuleType, argv: Sequence[str]) -> Parser:
    """For ARGV, as what it chooses may have options of its own."""
    parser = Parser(
        prog=f"ppair {name}",
        usage=f"ppair {name} {module.USAGE}",
        description=module.__doc__,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    _add_version(parser, f"ppair-{name}")
    module.add_arguments(parser)
    if hasattr(module, "add_chosen_arguments"):
        module.add_chosen_arguments(parser, argv)
    if getattr(module, "TAKES_ARRANGEMENT", False):
        arrangement.add_arguments(parser)
    return parser


def _run(argv: Sequence[str], programs: Path) -> int:
    if not argv or argv[0].startswith("-"):
        _parser().parse_args(list(argv))
        raise Failure(Exit.USAGE, f"which command? {', '.join(COMMANDS)}; see --help")
    name, rest = argv[0], list(argv[1:])
    if name not in COMMANDS:
        raise Failure(Exit.USAGE, f"{name}: unknown command; there are {', '.join(COMMANDS)}")
    module = importlib.import_module(f".commands.{name}", __package__)
    parser = _command_parser(name, module, rest)
    given: list[arrangement.Given] = []
    folder = arrangement.folder_of(rest, programs)
    asks = bool({"-h", "--help", "--version"} & set(rest))
    if getattr(module, "TAKES_ARRANGEMENT", False) and not asks:
        rest, given = arrangement.split(parser, rest, folder)
    arguments = parser.parse_args(rest)
    arguments.given, arguments.folder, arguments.argv = given, folder, ["ppair", *argv]
    return int(module.main(arguments))


def main(argv: Sequence[str], programs: Path) -> int:
    """Runs ppair with the words behind its name; PROGRAMS is where psend and precv are."""
    _open_closed_descriptors()
    try:
        try:
            code = _run(argv, programs)
        except SystemExit as end:  # of argparse, after --help and --version
            code = end.code if isinstance(end.code, int) else Exit.DONE
        sys.stdout.flush()
        return code
    except Failure as failure:
        _complain(str(failure))
        return failure.code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # who reads us has seen enough
        _drop_output()
        return Exit.INTERNAL
    except OSError as error:
        why = error.strerror or str(error)
        _complain(f"{error.filename}: {why}" if error.filename else why)
        _drop_output()
        return Exit.INTERNAL


def _open_closed_descriptors() -> None:
    """So that no file of ours takes the place of a standard stream that was closed.

    Writing to a standard output that was closed fails, as it would have.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free
    sys.stdout = sys.stdout or open(1, "w", encoding="ascii", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", encoding="ascii", closefd=False)


def _complain(what: str) -> None:
    """In one line of ASCII, whatever was typed, but for passwords."""
    print(f"ppair: {plain(secret.redacted(what))}", file=sys.stderr)


def _drop_output() -> None:
    """What standard output has not taken, so that it is not tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
