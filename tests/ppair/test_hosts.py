"""Programs on other hosts, by ssh: another network namespace is the other host."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import launch
import network
import pytest
from launch import Launcher, Tap
from network import FAR_ADDRESS, NEAR_ADDRESS, Network
from ppair import store, tables
from ppair import results as outcomes
from ppair.results import Run

SHORT = ("run", "--duration", "200ms", "--warmup", "20ms", "--repeat", "1", "--out", "out")
ENDLESS = ("run", "--duration", "1min", "--warmup", "0", "--repeat", "1", "--out", "out")
ON_FAR = ("--precv-host", "n1")
FROM_FAR = ("--psend-host", "n1", "--listen-address", NEAR_ADDRESS)


@pytest.fixture(name="cable", scope="module")
def _cable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """One network for all tests."""
    try:
        made = network.create(tmp_path_factory.mktemp("ssh"))
    except network.Unavailable as why:
        pytest.skip(str(why))
    yield made
    made.close()


class Driver:
    """A launcher at the near end, with programs in a folder by which they are known anywhere."""

    def __init__(self, launcher: Launcher, cable: Network) -> None:
        self.launcher = launcher
        self.cable = cable
        self.bin = launcher.folder / "bin"
        self.bin.mkdir()
        for name in ("psend", "precv"):
            (self.bin / name).symlink_to(launch.BIN / name)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """ppair, with the programs of that folder."""
        how: dict[str, Any] = {"wrapper": self.cable.wrapper, "env": self.cable.environment}
        return self.launcher.start(*words, "--bin", str(self.bin), **how)

    def run(self, *words: str) -> launch.Ended:
        """From start to end."""
        return launch.finish(self.start(*words))

    def only_run(self) -> Run:
        """Of the results."""
        (run,) = self.launcher.results("out").runs
        return run

    def start_of(self, name: str) -> launch.Json:
        """A program's start event, which says where it was."""
        results = self.launcher.results("out")
        return launch.only(launch.events_of(results, self.only_run().folder, name), "start")

    def messages(self, name: str) -> launch.Json:
        """What a program has counted."""
        results = self.launcher.results("out")
        events = launch.events_of(results, self.only_run().folder, name)
        return dict(launch.only(events, "summary")["messages"])

    def left(self) -> list[int]:
        """Programs and drivers, at both ends."""
        return sorted({*launch.running_from(self.bin), *self.launcher.left()})


@pytest.fixture(name="driver")
def _driver(ppair: Launcher, cable: Network) -> Iterator[Driver]:
    made = Driver(ppair, cable)
    yield made
    launch.kill(made.left())


def start_endless(driver: Driver, heard: dict[str, Tap], *words: str) -> subprocess.Popen[str]:
    """In whose middle we are."""
    process = driver.start(*ENDLESS, *launch.tapped(heard), *words)
    for tap in heard.values():
        tap.wait_for("interval", 2)
    return process


# ---- it works ----


def test_receiver_elsewhere(driver: Driver, cable: Network) -> None:
    """All messages go through the cable, with both programs on the clock of their hosts."""
    before = cable.received_bytes()
    ended = driver.run(*SHORT, *ON_FAR, "--content-size", "1k")
    assert ended.code == 0, ended
    assert ended.lines == ["results: out"]
    run = driver.only_run()
    assert {peer.name: peer.host for peer in run.peers} == {"psend-0": None, "precv-0": "n1"}
    assert driver.start_of("precv-0")["host"] == network.FAR
    assert driver.start_of("psend-0")["host"] == os.uname().nodename
    assert driver.start_of("precv-0")["options"]["listen"] == f"{FAR_ADDRESS}:0"
    assert driver.start_of("precv-0")["clock"] == driver.start_of("psend-0")["clock"] == "realtime"
    received = driver.messages("precv-0")["received"]
    assert received == driver.messages("psend-0")["accepted"] > 0
    assert cable.received_bytes() - before > 1000 * received
    assert run.facts["hosts"] == 2


@pytest.mark.parametrize("end", [ON_FAR, FROM_FAR], ids=["precv", "psend"])
def test_clocks_of_one_machine(driver: Driver, cable: Network, end: tuple[str, ...]) -> None:
    """Are one clock: what is found between them is no more than the uncertainty."""
    ended = driver.run(*SHORT, *end)
    assert ended.code == 0, ended
    run = driver.only_run()
    (clock,) = run.facts["clocks"]
    assert clock["host"] == "n1"
    for when in ("before", "after"):
        found = clock[when]
        assert found["why"] is None and found["round_trips"] >= 10, found
        assert abs(found["offset_ns"]) <= found["uncertainty_ns"] < 1e9, found
    error = run.facts["clock_error"]
    ends = [None, "n1"] if end is ON_FAR else ["n1", None]
    assert [error["sender"], error["receiver"]] == ends
    assert abs(error["offset_ns"]) <= error["uncertainty_ns"]
    assert run.metrics["latency_error_ns"] == error["bound_ns"] > 0
    said = " ".join(ended.stdout.split())
    assert "Latency may be off by +- " in said
    results = driver.launcher.results("out")
    assert "lat +- us" in tables.main_table(results).headings


def test_a_clock_that_is_not_asked(driver: Driver, cable: Network) -> None:
    """That of a host where both programs are."""
    ended = driver.run(*SHORT, *ON_FAR, "--psend-host", "n1")
    assert ended.code == 0, ended
    run = driver.only_run()
    assert "clocks" not in run.facts and run.metrics["latency_error_ns"] is None
    assert "off by" not in ended.stdout


@pytest.mark.parametrize("rate,meant", [("4", True), ("500000", False)])
def test_senders_of_several_hosts_are_in_step(
    driver: Driver, cable: Network, rate: str, meant: bool
) -> None:
    """Each by its host's clock, as it was before the run; or that is said to mean nothing."""
    words = ["--psend-host", "n[1-2]", "--listen-address", NEAR_ADDRESS, "--senders", "2"]
    ended = driver.run("run", "-m", "2", "--send-rate", rate, *words, *SHORT[-4:])
    assert ended.code == 0, ended
    run = driver.only_run()
    offsets = {clock["host"]: clock["before"]["offset_ns"] for clock in run.facts["clocks"]}
    argvs = {peer.host: peer.argv for peer in run.peers if peer.name.startswith("psend")}
    starts = {host: int(argv[argv.index("--start-at") + 1]) for host, argv in argvs.items()}
    by_ours = [starts[host] - offsets[host] for host in ("n1", "n2")]
    apart_ns = round(1e9 / float(rate) / 2)
    assert by_ours[1] - by_ours[0] == run.facts["phases"]["apart_ns"] == apart_ns
    assert (run.facts["phases"]["error_ns"] <= apart_ns / 2) == meant
    assert ("Senders' phases mean nothing" in ended.stdout) != meant


def test_a_clock_that_does_not_answer(driver: Driver, cable: Network) -> None:
    """Is unknown, which is said, and no reason not to measure."""
    folder = driver.launcher.folder / "first"
    folder.mkdir()
    wrapper = folder / "ssh"
    wrapper.write_text(
        f"""#!/bin/sh
case $* in *EPOCHREALTIME*) exit 127 ;; esac
exec {cable.folder}/bin/ssh "$@"
"""
    )
    wrapper.chmod(0o755)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    words = [*SHORT, *ON_FAR, "--bin", str(driver.bin)]
    ended = launch.finish(driver.launcher.start(*words, wrapper=cable.wrapper, env=path))
    assert ended.code == 0, ended
    run = driver.only_run()
    assert run.facts["clock_error"]["bound_ns"] is None
    assert run.facts["clocks"][0]["before"]["why"] == "there is no bash there"
    assert run.metrics["latency_error_ns"] is None
    why = "is not known (clock of n1: there is no bash there)."
    assert why in " ".join(ended.stdout.split())


def test_sender_elsewhere(driver: Driver, cable: Network) -> None:
    """It must be told at which address we are, and comes there."""
    ended = driver.run(*SHORT, "--psend-host", "n1")
    assert ended.code == 64 and "--listen-address" in ended.stderr and len(ended.lines) == 1
    ended = driver.run(*SHORT, *FROM_FAR)
    assert ended.code == 0, ended
    assert driver.start_of("psend-0")["host"] == network.FAR
    assert driver.start_of("psend-0")["options"]["broker"].startswith(f"amqp://{NEAR_ADDRESS}:")
    assert driver.messages("precv-0")["received"] == driver.messages("psend-0")["accepted"] > 0


def test_both_elsewhere(driver: Driver, cable: Network) -> None:
    """In ClusterShell's notation; programs take hosts in turn."""
    words = ["--psend-host", "n3", "--precv-host", "n[1-2]", "--senders", "3", "--receivers", "3"]
    before = cable.received_bytes()
    ended = driver.run("run", "-m", "2000", "--content-size", "1k", *words, *SHORT[-4:])
    assert ended.code == 0, ended
    hosts = {peer.name: peer.host for peer in driver.only_run().peers}
    precv = {"precv-0": "n1", "precv-1": "n2", "precv-2": "n1"}
    assert hosts == precv | {f"psend-{i}": "n3" for i in range(3)}
    received = sum(driver.messages(f"precv-{i}")["received"] for i in range(3))
    assert received == 6000
    assert cable.received_bytes() - before < 1000 * received  # they met there


def test_words_arrive_as_they_are(driver: Driver, cable: Network) -> None:
    """Whatever a shell would make of them."""
    text = "a  'b' \"c\" $HOME `id` \\ * ; & |"
    words = ["--psend", shlex.join(["--content-string", text]), "-m", "5", *SHORT[-4:]]
    ended = driver.run("run", *words, *FROM_FAR)
    assert ended.code == 0, ended
    assert driver.start_of("psend-0")["options"]["content_string"] == text


def test_library_path(driver: Driver, heard: dict[str, Tap], cable: Network) -> None:
    """Is that of the programs at both ends."""
    process = start_endless(driver, heard, *ON_FAR, "--library-path", "/a b/c")
    for tap in heard.values():
        environment = Path(f"/proc/{tap.pid}/environ").read_bytes().split(b"\0")
        assert b"LD_LIBRARY_PATH=/a b/c" in environment
    process.send_signal(signal.SIGINT)
    assert launch.finish(process).code == 130


@pytest.mark.parametrize("ending", ["", " two  words\\n' "])
def test_password(driver: Driver, cable: Network, ending: str) -> None:
    """Arrives in the program's environment, and is on no command line at either end."""
    password = uuid.uuid4().hex + ending
    seen = driver.launcher.folder / "seen"
    (driver.bin / "precv").unlink()
    (driver.bin / "precv").write_text(
        f"""#!/bin/sh
[ "$1" = --help ] && exec {launch.BIN}/precv --help
printf %s "$PPAIR_PASSWORD" >{seen}
cat /proc/[0-9]*/cmdline >{seen}.lines 2>/dev/null
for word
do
	shift
	case $word in --user|bob) ;; *) set -- "$@" "$word" ;; esac
done
exec {launch.BIN}/precv "$@"
"""
    )
    (driver.bin / "precv").chmod(0o755)
    words = [*SHORT, *ON_FAR, "--precv.user", "bob"]
    environment = {**cable.environment, "PPAIR_PASSWORD": password}
    ended = launch.finish(
        driver.launcher.start(
            *words, "--bin", str(driver.bin), wrapper=cable.wrapper, env=environment
        )
    )
    assert ended.code == 0, ended
    assert seen.read_text() == password
    lines = Path(f"{seen}.lines").read_bytes()
    assert b"--precv-host" in lines and password[:32].encode() not in lines


# ---- it does not ----

UNREACHABLE = {  # what ssh says, and how long all may take
    "refused": ("Connection refused", 15.0),
    "nowhere": ("No route to host", 20.0),
    "stranger": ("Permission denied", 15.0),
    "no-such-name": ("resolve hostname", 20.0),
}


@pytest.mark.parametrize("host", UNREACHABLE)
@pytest.mark.parametrize("end", [ON_FAR, FROM_FAR], ids=["precv", "psend"])
def test_unreachable(driver: Driver, host: str, end: tuple[str, ...]) -> None:
    """It is named, and ssh quoted."""
    said, limit_s = UNREACHABLE[host]
    program = end[0].strip("-").removesuffix("-host")
    started_s = time.monotonic()
    ended = driver.run(*SHORT, *(host if word == "n1" else word for word in end))
    assert time.monotonic() - started_s < limit_s
    why = driver.only_run().why
    assert ended.code == driver.only_run().exit_code == 2
    assert why is not None and why.startswith(f"{program}-0 on {host}: ssh failed")
    assert said in why and "\n" not in why
    assert f"failed: {program}-0 on {host}: ssh failed" in " ".join(ended.stdout.split())
    assert not driver.left()


def test_answers_nothing(driver: Driver, cable: Network) -> None:
    """A host on which sshd hangs: it is not waited for forever."""
    assert cable.server
    os.kill(cable.server.pid, signal.SIGSTOP)
    try:
        started_s = time.monotonic()
        ended = driver.run(*SHORT, *ON_FAR)
        assert time.monotonic() - started_s < 30
    finally:
        os.kill(cable.server.pid, signal.SIGCONT)
    assert ended.code == 2
    assert str(driver.only_run().why).startswith("precv-0 on n1: ssh failed before it was ready")
    assert not driver.left()


def test_program_is_not_there(driver: Driver, cable: Network) -> None:
    """On the other host."""
    (driver.bin / "precv").unlink()
    (driver.bin / "precv").write_text(
        f'#!/bin/sh\n[ "$(uname -n)" = {network.FAR} ] && exit 127\n'
        f'exec {launch.BIN}/precv "$@"\n'
    )
    (driver.bin / "precv").chmod(0o755)
    ended = driver.run(*SHORT, *ON_FAR)
    assert ended.code == 2
    assert str(driver.only_run().why).startswith("precv-0 on n1: ended with exit code 127")


# ---- how it ends ----


@pytest.mark.parametrize("end", [ON_FAR, FROM_FAR], ids=["precv", "psend"])
def test_driver_is_killed(driver: Driver, heard: dict[str, Tap], end: tuple[str, ...]) -> None:
    """Nothing is left at the other end either."""
    process = start_endless(driver, heard, *end)
    pids = [tap.pid for tap in heard.values()]
    assert set(pids) <= set(driver.left())
    process.kill()
    launch.wait_until_gone([*pids, *driver.left()], 60)


@pytest.mark.parametrize("end", [ON_FAR, FROM_FAR], ids=["precv", "psend"])
def test_interrupted(driver: Driver, heard: dict[str, Tap], end: tuple[str, ...]) -> None:
    """Both end in order and are accounted for: the signal is sent to the remote program itself."""
    process = start_endless(driver, heard, *end)
    process.send_signal(signal.SIGINT)
    ended = launch.finish(process)
    assert ended.code == 130, ended
    run = driver.only_run()
    assert run.status == outcomes.INTERRUPTED and run.facts["missing"] is None
    assert {peer.name: peer.exit_code for peer in run.peers} == {"psend-0": 130, "precv-0": 0}
    assert not driver.left()


@pytest.mark.parametrize("end", [ON_FAR, FROM_FAR], ids=["precv", "psend"])
def test_hanging_program(driver: Driver, heard: dict[str, Tap], end: tuple[str, ...]) -> None:
    """Is killed where it is."""
    process = start_endless(driver, heard, *end, "--duration", "200ms", "--deadline", "5s")
    program = end[0].strip("-").removesuffix("-host")
    os.kill(heard[program].pid, signal.SIGSTOP)
    ended = launch.finish(process)
    assert ended.code == 2
    assert "has not ended 5 s after the start" in str(driver.only_run().why)
    assert not driver.left()


@pytest.mark.parametrize("end", [ON_FAR, FROM_FAR], ids=["precv", "psend"])
def test_killed_program(driver: Driver, heard: dict[str, Tap], end: tuple[str, ...]) -> None:
    """It is named, with its host."""
    process = start_endless(driver, heard, *end)
    program = end[0].strip("-").removesuffix("-host")
    os.kill(heard[program].pid, signal.SIGKILL)
    ended = launch.finish(process)
    assert ended.code == 2
    assert str(driver.only_run().why).startswith(f"{program}-0 on n1: was ended by SIGKILL")
    assert not driver.left()


def test_cut_cable(driver: Driver, heard: dict[str, Tap], tmp_path: Path) -> None:
    """ppair ends, and says which host it has lost; so does the program there, which nobody can
    tell. In a network of its own, as it is of no use after that."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    driver.cable = network.create(folder)
    try:
        process = start_endless(driver, heard, *ON_FAR, "--precv.idle-timeout", "2s")
        assert heard["precv"].of_kind("start")[0]["options"]["idle_timeout_ns"] == 2 * 10**9
        assert heard["psend"].of_kind("start")[0]["options"]["idle_timeout_ns"] == 60 * 10**9
        driver.cable.cut()
        started_s = time.monotonic()
        ended = launch.finish(process)
        launch.wait_until_gone([heard["precv"].pid], 10)
        assert time.monotonic() - started_s < 40
    finally:
        driver.cable.close()
    assert ended.code == 2
    assert "precv-0 on n1: ssh failed" in str(driver.only_run().why)
