"""From a command line to a Spec: options of ppair's own, and those of psend and precv among them.

`--credit 10` goes to every program that has the option, but for those that end a run, and without
--via those of whoever connects, which are the senders'; `--psend.warmup 1s` and
`--precv.max-frame 4Ki` to the one named; what stands behind `--psend '...'` and `--precv '...'` to
that program as it is.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import host, programs, secret, url
from .failure import usage
from .programs import PROGRAMS, PSEND, Option, value_of
from .spec import Spec
from .units import count, seconds


@dataclass(frozen=True)
class Given:
    """One option of psend or precv as it was given to ppair."""

    targets: tuple[str, ...]  # programs that get it
    name: str  # --credit
    value: str | None  # None for a flag
    prefixed: bool = False  # as --precv.credit
    is_number: bool = True  # or something else that several values can be given of
    optional: bool = False  # may be without a value

    def words(self, program: str) -> tuple[str, ...]:
        """For PROGRAM's command line."""
        if program not in self.targets:
            return ()
        return Option(self.name, "", self.optional).words(self.value)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What makes a Spec. None means that it was not given."""
    group = parser.add_argument_group("arrangement")
    group.add_argument("--psend", metavar="'...'", help="options for psend alone")
    group.add_argument("--precv", metavar="'...'", help="options for precv alone")
    group.add_argument("--senders", metavar="N", help="start N senders [1]")
    group.add_argument("--receivers", metavar="N", help="start N receivers [1]")
    group.add_argument(
        "--via",
        metavar="URL",
        help="meet at this router or broker; without an address, or with {} in it, each run has "
        "one of its own [direct]",
    )
    group.add_argument(
        "--tls",
        action="store_true",
        default=None,
        help="receivers listen with TLS, with a certificate that is made for it [plain]",
    )
    group.add_argument(
        "--psend-host", metavar="HOSTS", help="start senders there by ssh; a list, or n[1-4] [here]"
    )
    group.add_argument("--precv-host", metavar="HOSTS", help="start receivers there by ssh [here]")
    group.add_argument(
        "--listen-address", metavar="ADDR", help="receivers listen on it [127.0.0.1, or HOST's]"
    )
    group.add_argument(
        "--bin", metavar="DIR", help="folder of psend and precv, on every host [beside ppair]"
    )
    group.add_argument(
        "--library-path", metavar="DIR", help="where both find shared libraries first"
    )
    group.add_argument(
        "--deadline", metavar="T", help="for a run [its duration and 30 s, or 10min]"
    )


# ---- splitting ----


def split(
    parser: argparse.ArgumentParser, argv: Sequence[str], folder: Path
) -> tuple[list[str], list[Given]]:
    """ARGV without the options of psend and precv, and those.

    Values of PARSER's own options are joined to them, as argparse does not take a value that looks
    like an option.
    """
    # argparse has no public list of its options
    own = {name: action for action in parser._actions for name in action.option_strings}
    ours, given, rest = [], [], list(argv)
    while rest:
        word = rest.pop(0)
        name, value = programs.split_word(word)
        if name in own:
            if own[name].nargs != 0:
                word = f"{name}={_value(rest, name) if value is None else value}"
            ours.append(word)
        elif word.startswith("-") and len(word) > 1 and not any(c.isspace() for c in word):
            given.append(_given(word, rest, folder))
        else:
            ours.append(word)
    return ours, given


def _value(rest: list[str], name: str) -> str:
    if not rest:
        raise usage(f"{name}: needs a value")
    return rest.pop(0)


def _given(word: str, rest: list[str], folder: Path) -> Given:
    """The option that WORD begins, with its value from REST."""
    name, value = programs.split_word(word)
    wanted: Iterable[str] = PROGRAMS
    for program in PROGRAMS:
        if name.startswith(f"--{program}."):
            name, wanted = f"--{name.removeprefix(f'--{program}.')}", (program,)
    prefixed = wanted is not PROGRAMS
    known = {program: programs.options_of(folder, program) for program in wanted}
    # a beginning of a name must be clear among the options of all of them
    option = programs.look_up(
        {k: o for options in known.values() for k, o in options.items()}, name
    )
    if option is None:
        raise usage(f"{name}: unknown option, of ppair, psend and precv alike; see --help")
    if option.name in programs.RESERVED:
        raise usage(f"{option.name}: {programs.RESERVED[option.name]}")
    targets = tuple(program for program, options in known.items() if option.name in options)
    if option.name in programs.SENDERS_ALONE and PSEND in targets and len(targets) > 1:
        targets = (PSEND,)
    if option.argument is None and value is not None:
        raise usage(f"{name}: takes no value")
    if option.takes_value and value is None:
        value = _value(rest, name)
    is_number = option.is_number or value is None
    return Given(targets, option.name, value, prefixed, is_number, option.optional)


# ---- making ----


def folder_of(argv: Sequence[str], default: Path) -> Path:
    """Where the programs are, which must be known before ARGV can be understood."""
    given = value_of(argv, "--bin")
    return Path(given).absolute() if given else default


def apply(base: Spec, arguments: argparse.Namespace, given: Sequence[Given]) -> Spec:
    """BASE, with what was given in the place of what it has."""
    spec = replace(base, **_fields(arguments))
    folder = Path(spec.bin)
    for program in PROGRAMS:
        words = tuple(_shell_words(getattr(arguments, program), f"--{program}"))
        words += tuple(
            word
            for option in given
            if program == PSEND or not _is_of_connecting(option, spec)
            for word in option.words(program)
        )
        spec = spec.plus(**{program: programs.canonical(folder, program, words)})
    return spec


def _is_of_connecting(option: Given, spec: Spec) -> bool:
    """Whether it was given for both, and receivers, which listen, could not take it."""
    for_both = not option.prefixed and len(option.targets) > 1
    return for_both and spec.via is None and option.name in programs.CONNECTING_ALONE


def from_arguments(arguments: argparse.Namespace) -> Spec:
    """All that was given, over nothing."""
    return apply(Spec(bin=str(arguments.folder)), arguments, arguments.given)


def _shell_words(text: str | None, what: str) -> list[str]:
    text = text or ""
    try:
        return shlex.split(text)
    except ValueError as error:
        shown = "" if "@" in text else f' "{text}":'  # there may be a password
        raise usage(f"{what}:{shown} {error}") from None


def _fields(arguments: argparse.Namespace) -> dict[str, object]:
    """Fields of a Spec that were given."""
    fields = {
        "senders": _or_none(arguments.senders, lambda text: count(text, "--senders")),
        "receivers": _or_none(arguments.receivers, lambda text: count(text, "--receivers")),
        "via": _or_none(arguments.via, _via),
        "tls": arguments.tls,
        "psend_hosts": _or_none(arguments.psend_host, host.expand),
        "precv_hosts": _or_none(arguments.precv_host, host.expand),
        "listen": _or_none(
            arguments.listen_address, lambda text: _something(text, "--listen-address")
        ),
        "bin": _or_none(arguments.bin, lambda text: str(Path(text).absolute())),
        "library_path": arguments.library_path,
        "deadline_s": _or_none(arguments.deadline, lambda text: seconds(text, "--deadline")),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _something(text: str, what: str) -> str:
    """TEXT, which as the value of a variable that is not set would have been left out silently."""
    if not text:
        raise usage(f"{what}: is empty")
    return text


def _via(text: str) -> str:
    """A URL; its password is in the environment by now."""
    try:
        parsed = url.parse(_something(text, "--via"))
    except ValueError as error:
        raise usage(f"--via: {error}") from None
    if parsed.password is not None:
        raise usage(
            "--via: one password can be kept secret, and there are several: "
            f"--password-file FILE or {secret.VARIABLE} in the environment"
        )
    return text


def _or_none(text: str | None, convert: Callable[[str], Any]) -> Any:
    return None if text is None else convert(text)


def parse_words(text: str, base: Spec, what: str) -> Spec:
    """A Spec from one string, as compare takes them."""
    words = _shell_words(text, what)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_arguments(parser)
    ours, given = split(parser, words, folder_of(words, Path(base.bin)))
    arguments, extra = parser.parse_known_args(ours)
    if extra:
        raise usage(f'{what}: "{extra[0]}" is not an option')
    return apply(base, arguments, given)
