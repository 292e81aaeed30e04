"""One arrangement of psend and precv: the data that all experiments are made of."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from . import machine, url
from .failure import usage
from .programs import EACH, PRECV, PROGRAMS, PSEND, WRITTEN, value_of, with_files_of
from .units import number, seconds

# A run that is given neither messages nor a duration.
DEFAULT_DURATION = ("--duration", "1s")
DEFAULT_WARMUP = ("--warmup", "100ms")
READY_DEADLINE_S = 15.0
SPARE_S = 30.0  # beyond the duration, for connecting, flushing and closing
MESSAGES_DEADLINE_S = 600.0
PROGRAMS_MAX = 1000
REPETITIONS_MAX = 1000


@dataclass(frozen=True)
class Spec:
    """N senders and M receivers, direct or by way of a broker.

    `psend` and `precv` are words of their command lines, without what ppair sets itself. Hosts are
    ssh destinations, used in turn; none means this machine. With `via` both programs connect to
    that URL; without it receivers listen, and sender i connects to receiver i mod M.
    """

    psend: tuple[str, ...] = ()
    precv: tuple[str, ...] = ()
    senders: int = 1
    receivers: int = 1
    via: str | None = None
    psend_hosts: tuple[str, ...] = ()
    precv_hosts: tuple[str, ...] = ()
    listen: str | None = None  # address on which receivers listen; None: loopback, or their host's
    bin: str = ""  # folder of the programs, on every host
    library_path: str | None = None  # LD_LIBRARY_PATH of both programs
    deadline_s: float | None = None  # of a run in all; None: from its duration
    tls: bool = False  # receivers listen with a certificate that is made for the experiment

    def plus(self, psend: tuple[str, ...] = (), precv: tuple[str, ...] = ()) -> Spec:
        """With more words, which override earlier ones."""
        return replace(self, psend=self.psend + psend, precv=self.precv + precv)

    def hosts(self, program: str) -> tuple[str, ...]:
        """Where its instances run; empty: here."""
        return self.psend_hosts if program == PSEND else self.precv_hosts

    @property
    def local(self) -> bool:
        """Whether everything that we start is on this machine."""
        return not self.psend_hosts and not self.precv_hosts

    def option(self, program: str, *names: str) -> str | None:
        """The value that an option has been given."""
        return value_of(self.psend if program == PSEND else self.precv, *names)

    @property
    def endless(self) -> bool:
        """Whether receivers must be told to end: they have a broker, or several senders.

        The first of several may have gone before the last has come.
        """
        return self.via is not None or self.senders > self.receivers

    @property
    def shares_queue(self) -> bool:
        """Whether a receiver has messages of several senders on one link, or not all of one."""
        return self.via is not None and (self.senders > 1 or self.receivers > 1)

    @property
    def listens_with_tls(self) -> bool:
        """Whether receivers that listen speak TLS, as they do if they have a certificate."""
        return self.option(PRECV, "--tls-cert") is not None

    @property
    def by_broker(self) -> bool:
        """Whether a broker, and no queue depth of ours, decides when senders may go on."""
        return self.via is not None and not number(self.option(PSEND, "--max-unsettled") or "0")

    @property
    def presettled(self) -> bool:
        """At most once."""
        return "--presettled" in self.psend

    @property
    def duration_s(self) -> float | None:
        """Of sending, with the warm-up; None if a number of messages ends it."""
        given = self.option(PSEND, "-d", "--duration")
        if given is None:
            return None
        warmup = self.option(PSEND, "--warmup") or "0"
        return seconds(given, "--duration") + seconds(warmup, "--warmup")

    @property
    def messages(self) -> int | None:
        """Of each sender, if that is what ends it."""
        given = self.option(PSEND, "-m", "--messages")
        value = None if given is None else number(given)
        return int(value) if value else None

    @property
    def run_deadline_s(self) -> float:
        """From the first sender's start to the end of a run."""
        if self.deadline_s is not None:
            return self.deadline_s
        if self.duration_s is not None:
            return self.duration_s + SPARE_S
        return MESSAGES_DEADLINE_S

    def with_defaults(self) -> Spec:
        """With an end, if nothing says when, and a warm-up, if it ends after a time."""
        psend: tuple[str, ...] = ()
        precv: tuple[str, ...] = ()
        if self.option(PSEND, "-d", "--duration", "-m", "--messages") is None:
            psend = DEFAULT_DURATION
        if psend or self.duration_s is not None:
            psend += DEFAULT_WARMUP if self.option(PSEND, "--warmup") is None else ()
            precv += DEFAULT_WARMUP if self.option(PRECV, "--warmup") is None else ()
        return replace(self, psend=psend + self.psend, precv=precv + self.precv)

    def check(self) -> None:
        """Refuses what cannot be arranged."""
        if self.run_deadline_s <= 0:  # and times that are none are refused here
            raise usage("--deadline: leaves no time")
        if not 1 <= self.senders <= PROGRAMS_MAX or not 1 <= self.receivers <= PROGRAMS_MAX:
            raise usage(f"--senders, --receivers: one to {PROGRAMS_MAX} of each")
        if self.duration_s is None and self.option(PSEND, "-m", "--messages") and not self.messages:
            raise usage("--messages 0: has no end; give a --duration")
        if self.via is None and self.senders < self.receivers:
            raise usage(
                f"--receivers {self.receivers}: without --via each needs a sender, "
                f"and there are {self.senders}"
            )
        if self.via is None and self.psend_hosts and not self.precv_hosts and not self.listen:
            raise usage("--psend-host: say with --listen-address at which address they reach us")
        self._check_programs()
        if self.tls and self.via is not None:
            raise usage("--tls: is for a direct pair; give --via an amqps URL")
        if self.tls and not self.local:
            raise usage(
                "--tls: makes a certificate here alone; for other hosts, give --precv.tls-cert, "
                "--precv.tls-key and --psend.tls-ca files that are there"
            )

    def _check_programs(self) -> None:
        """Refuses what psend and precv would, where some points of a grid could be run and others
        would fail one by one."""
        batch = number(self.option(PSEND, "--batch") or "")
        awaited = "--round-trip" in self.psend
        paced = number(self.option(PSEND, "--send-rate") or "")
        if self.presettled and not awaited and batch and batch > 1 and not paced:
            raise usage("--batch: with --presettled there is nothing to wait for between batches")
        if self.presettled and not awaited and number(self.option(PSEND, "--max-unsettled") or ""):
            raise usage("--max-unsettled: nothing is unsettled with --presettled")
        if "--tsc" in self.psend and (not batch or self.presettled):
            raise usage("--tsc: there is no --batch to be timed")
        for program in PROGRAMS:
            for name in WRITTEN:
                self._check_written(program, name)
            here = [] if self.hosts(program) else _processors(self.option(program, "--cpu") or "")
            missing = sorted(set(here) - set(machine.processors()))
            if missing:
                raise usage(f"--cpu: {missing[0]} is not among this machine's processors")

    def _check_written(self, program: str, name: str) -> None:
        """Refuses one file for all; what is no file, such as /dev/null, may be."""
        path = self.option(program, name)
        if path is not None and EACH not in path and not _is_stream(Path(path)):
            raise usage(
                f"{name} {path}: each program of each run would write it; with {EACH} in its name "
                "each has its own"
            )

    def command(self) -> str:
        """As somebody would type it after `ppair run`."""
        words = []
        if self.senders != 1 or self.receivers != 1:
            words += ["--senders", str(self.senders), "--receivers", str(self.receivers)]
        if self.via:
            words += ["--via", self.via]
        words += ["--tls"] if self.tls else []
        for name, hosts in (("--psend-host", self.psend_hosts), ("--precv-host", self.precv_hosts)):
            words += [name, ",".join(hosts)] if hosts else []
        if self.listen:
            words += ["--listen-address", self.listen]
        if self.library_path:
            words += ["--library-path", self.library_path]
        if self.deadline_s is not None:
            words += ["--deadline", f"{self.deadline_s:.9g}s"]
        for name, given in (("--psend", self.psend), ("--precv", self.precv)):
            words += [name, shlex.join(given)] if given else []
        return shlex.join(words)

    def for_run(self, name: str, certificates: Path) -> Spec:
        """Of one run: NAME is its address at a broker, if it is to have one of its own, and in the
        names of the files that its programs write, where those' own names are still to come.

        With `tls`, CERTIFICATES is the folder of cert.pem and key.pem.
        """
        via = url.named(self.via, name) if self.via else None
        psend, precv = (
            with_files_of(words, f"{name}-{EACH}") for words in (self.psend, self.precv)
        )
        if self.tls:
            cert, key = (str(certificates / name) for name in ("cert.pem", "key.pem"))
            psend = ("--tls-ca", cert, *psend)
            precv = ("--tls-cert", cert, "--tls-key", key, *precv)
        return replace(self, via=via, psend=psend, precv=precv)

    def authenticates(self, program: str) -> bool:
        """Whether there is a user, and so there may be a password in the environment."""
        user = self.via is not None and url.parse(self.via).user is not None
        return user or self.option(program, "--user") is not None

    def program(self, name: str) -> str:
        """Path of psend or precv."""
        return str(Path(self.bin) / name)


def _is_stream(path: Path) -> bool:
    """Whether it is there, and is a device or a pipe, which several may write."""
    try:
        return not path.is_file() and not path.is_dir() and path.exists()
    except (OSError, ValueError):
        return False


def _processors(text: str) -> list[int]:
    """The ends of the ranges of a list, such as 0,2-3; none of what the programs will refuse."""
    return [int(cpu) for cpu in re.split("[,-]", text) if re.fullmatch("[0-9]{1,6}", cpu)]


def to_json(spec: Spec) -> dict[str, Any]:
    """For the manifest."""
    return asdict(spec)


def from_json(value: dict[str, Any]) -> Spec:
    """From the manifest: lists are tuples again. A password that somebody has put there is not."""
    spec = Spec(**{k: tuple(v) if isinstance(v, list) else v for k, v in value.items()})
    return replace(spec, via=url.without_password(spec.via)) if spec.via else spec
