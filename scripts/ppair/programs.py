"""Which options psend and precv have: read from their --help, so of whatever build is used."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .failure import Exit, Failure, usage

PSEND = "psend"
PRECV = "precv"
PROGRAMS = (PSEND, PRECV)
HELP_TIMEOUT_S = 10.0

# How a run ends is the sender's to say: the receiver ends when its senders have gone.
SENDERS_ALONE = ("--messages", "--duration")
# A program that listens does not take these: without --via they are the senders' too.
CONNECTING_ALONE = (
    "--link-name",
    "--password-file",
    "--reconnect",
    "--sasl-insecure",
    "--tls-no-verify",
    "--tls-sni",
    "--user",
)
# What ppair itself needs to hold in its hand, and why, behind the option's name.
_OURS = "is ppair's own to set"
RESERVED = {
    **dict.fromkeys(("--listen", "--broker", "--address", "--format", "--events"), _OURS),
    **dict.fromkeys(("--parent-fd", "--quiet", "--forever", "--ready-file"), _OURS),
    "--hdr": "is one file for several runs: ppair report DIR --hdr FILE makes one of all",
    "--content-stdin": "there is one standard input, and it is ppair's own",
    **dict.fromkeys(
        ("--print-content", "--print-headers"),
        "standard output is ppair's own to read; --save-content FILE keeps bodies",
    ),
}
# What names a file that a program writes: each program of each run has its own, in whose name
# EACH is replaced.
WRITTEN = ("--output", "--save-content")
EACH = "{}"
# Options that are no part of a run.
LEFT_OUT = ("--help", "--version")


@dataclass(frozen=True)
class Option:
    """One option of one program."""

    name: str  # --credit
    argument: str | None  # what --help calls its value: N, T, LIST ...; None for a flag
    optional: bool = False  # a flag that may have a value, in the same word: --reconnect[=N]

    @property
    def takes_value(self) -> bool:
        """Or is a flag."""
        return self.argument is not None and not self.optional

    def words(self, value: str | None) -> tuple[str, ...]:
        """As it stands in a command line."""
        if value is None:
            return (self.name,)
        return (f"{self.name}={value}",) if self.optional else (self.name, value)

    @property
    def is_number(self) -> bool:
        """Whether a value has no commas, so that a list of values can be told from one."""
        return self.argument not in ("LIST", "S", "URL", "ADDR", "ID", "NAME", "FILE", "HOST:PORT")


def parse_help(text: str) -> dict[str, Option]:
    """The options in the output of --help, by each of their names, long and short."""
    options: dict[str, Option] = {}
    for line in text.splitlines():
        match = re.match(r" {2,6}(-\w, )?(--[a-z][-a-z]*(?:\[?=[^\s,]+)?(?:, --[a-z]\S*)*)", line)
        if not match:
            continue
        names = match[2].split(", ")
        name, equals, argument = names[0].partition("=")
        optional = name.endswith("[")
        argument = argument.removesuffix("]") if optional else argument
        option = Option(name.removesuffix("["), argument if equals else None, optional)
        if option.name in LEFT_OUT:
            continue
        for alias in [*names, *([match[1][:2]] if match[1] else [])]:
            options[re.split(r"\[?=", alias)[0]] = option
    return options


@cache
def options_of(folder: Path, program: str) -> dict[str, Option]:
    """The options of the program in FOLDER."""
    path = folder / program
    try:
        found = subprocess.run(
            [path, "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HELP_TIMEOUT_S,
            encoding="ascii",
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else "--help does not end"
        raise Failure(Exit.INTERNAL, f"{path}: {why}; --bin DIR says where it is") from None
    options = parse_help(found.stdout)
    if found.returncode or not options:
        raise Failure(Exit.INTERNAL, f"{path}: --help says nothing of options")
    return options


def look_up(options: dict[str, Option], name: str) -> Option | None:
    """The option with this name or unambiguous beginning of a name, or None."""
    if name in options:
        return options[name]
    alike = {option for key, option in options.items() if key.startswith(name)}
    return alike.pop() if name.startswith("--") and len(name) > 3 and len(alike) == 1 else None


def with_files_of(words: Sequence[str], name: str) -> tuple[str, ...]:
    """WORDS, with NAME in the names of the files that are written."""
    before = ("", *words)
    return tuple(
        word.replace(EACH, name) if option in WRITTEN else word
        for option, word in zip(before, words)
    )


def split_word(word: str) -> tuple[str, str | None]:
    """--credit=10 or -m10k: the name, and the value that it has inside, if any."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return word[:2], word[2:] or None


def canonical(folder: Path, program: str, words: Sequence[str]) -> tuple[str, ...]:
    """WORDS with long names in full, and values as words of their own.

    Refuses what is not an option of PROGRAM, or what ppair needs itself.
    """
    options = options_of(folder, program)
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            raise usage(f'{program}: "{word}" is not an option; ppair sets the URL')
        name, value = split_word(word)
        option = look_up(options, name)
        if option is None:
            raise usage(f"{program}: {name}: unknown option, see {program} --help")
        if option.name in RESERVED:
            raise usage(f"{program}: {option.name}: {RESERVED[option.name]}")
        if option.argument is None and value is not None:
            raise usage(f"{program}: {name}: takes no value")
        if option.takes_value and value is None:
            value = next(rest, None)
            if value is None:
                raise usage(f"{program}: {name}: needs a value")
        found += option.words(value)
    return tuple(found)


def value_of(words: Sequence[str], *names: str) -> str | None:
    """What an option's last occurrence among WORDS has been given, by any of its NAMES."""
    value = None
    for index, word in enumerate(words):
        for name in names:
            if word == name and index + 1 < len(words):
                value = words[index + 1]
            elif word.startswith(f"{name}=") and name.startswith("--"):
                value = word.partition("=")[2]
            elif word.startswith(name) and len(name) == 2 and len(word) > 2 and word[1] != "-":
                value = word[2:]
    return value
