#!/usr/bin/python3
"""Round trips of one 100-byte message on loopback: psend and precv beside sockperf and beside
libqpid-proton alone.

round_trip.py [--rounds N] [--seconds T] [BIN]: BIN holds psend and precv, build/bin if not given.
Needs two processors, gcc, pkg-config, libqpid-proton11-dev and sockperf; what is missing is
installed by scripts/install-packages.

Each side is pinned to a processor of its own, and the programs take turns, so that whatever else
the machine does meets all of them. A number is the median of the rounds' p50, in us:

    sockperf      sockperf pp --tcp -m 100: it sleeps in the kernel until a message comes
    sockperf, nb  the same with --nonblocked: it reads again and again, as the next two do
    floor         ping_pong.c: libqpid-proton's connection driver and nothing else
    pair          psend --round-trip --max-unsettled 1 --presettled --busy-poll, and precv --reply

Two bars: the pair's p50 is at most 2 times sockperf's. And what is the pair's own, beyond what
libqpid-proton itself takes, adds at most 0.3 times sockperf's to it: (pair - floor + sockperf) is
at most 1.3 times sockperf. Exits with 1 if one is missed; against sockperf --nonblocked the same
ratios are printed as well.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = ("gcc", "pkg-config", "libqpid-proton11-dev", "sockperf")
SIZE = "100"
HERE_CPU, THERE_CPU = "0", "1"
DEADLINE_S = 60.0
WHOLE_BAR, OWN_BAR = 2.0, 1.3

Measure = Callable[[float], float]  # of so many seconds, or about that; gives p50 in us


def pinned(cpu: str, *words: str) -> list[str]:
    """A command on one processor."""
    return ["taskset", "-c", cpu, *words]


def output(process: subprocess.Popen[str]) -> str:
    """Of one that ends by itself, without an error."""
    said, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, (process.args, process.returncode, said)
    return said


def start(words: list[str]) -> subprocess.Popen[str]:
    """Its output is for us alone."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=quiet, stdin=quiet, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    """What a server says when it listens."""
    assert process.stdout
    return process.stdout.readline().strip()


def stop(process: subprocess.Popen[str]) -> None:
    """One that does not end by itself."""
    process.terminate()
    process.wait(DEADLINE_S)
    assert process.stdout
    process.stdout.close()


def sockperf(port: int, *words: str) -> Measure:
    """Its server runs as long as the client does."""
    place = ["--tcp", "-i", "127.0.0.1", "-p", str(port)]

    def measure(seconds: float) -> float:
        server = start(pinned(THERE_CPU, "sockperf", "sr", *place, *words))
        time.sleep(0.5)  # it says that it is ready to nobody who reads its output
        ask = ["pp", *place, *words, "-m", SIZE, "-t", str(round(seconds)), "--full-rtt"]
        try:
            said = output(start(pinned(HERE_CPU, "sockperf", *ask)))
        finally:
            stop(server)
        found = re.search(r"percentile 50\.000 =\s*([0-9.]+)", said)
        assert found, said
        return float(found[1])

    return measure


def floor(program: str) -> Measure:
    """So many round trips as last about that long."""

    def measure(seconds: float) -> float:
        server = start(pinned(THERE_CPU, program, "serve"))
        count = str(round(seconds * 50_000))
        said = output(start(pinned(HERE_CPU, program, "ask", first_line(server), count, SIZE)))
        output(server)
        found = re.search(r"p50 (\d+)", said)
        assert found, said
        return int(found[1]) / 1000

    return measure


def pair(folder: Path, binaries: Path) -> Measure:
    """By their reports."""

    def measure(seconds: float) -> float:
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        quietly = ["--busy-poll", "--report-total", "-f", "json"]
        listen = ["--listen", "127.0.0.1:0", "--ready-file", str(ready), "--reply"]
        receiver = start([str(binaries / "precv"), *listen, "--cpu", THERE_CPU, *quietly])
        deadline_s = time.monotonic() + DEADLINE_S
        while not ready.exists():
            assert receiver.poll() is None and time.monotonic() < deadline_s
            time.sleep(0.01)
        ask = ["--round-trip", "--max-unsettled", "1", "--presettled", "--content-size", SIZE]
        words = [*ask, "-d", f"{seconds}s", "--warmup", "100ms", "--cpu", HERE_CPU, *quietly]
        url = f"{ready.read_text(encoding='ascii').strip()}/round-trip"
        said = output(start([str(binaries / "psend"), url, *words]))
        output(receiver)
        summary = json.loads(said.splitlines()[-1])
        assert summary["messages"]["answered"] == summary["messages"]["sent"] > 0
        return float(summary["round_trip_ns"]["p50"]) / 1000

    return measure


def compile_floor(folder: Path) -> str:
    """Returns the program."""
    program = str(folder / "ping_pong")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libqpid-proton"],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout.split()
    subprocess.run(["gcc", "-O2", "-o", program, str(HERE / "ping_pong.c"), *flags], check=True)
    return program


def ratio(name: str, value: float, bar: float) -> bool:
    """Prints one, and whether it is good."""
    good = value <= bar
    print(f"{name:58} {value:6.2f}   at most {bar}: {'good' if good else 'missed'}")
    return good


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each program a round")
    parser.add_argument("bin", nargs="?", type=Path, default=ROOT / "build" / "bin")
    options = parser.parse_args()
    subprocess.run([str(ROOT / "scripts" / "install-packages"), *PACKAGES], check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs: dict[str, Measure] = {
            "sockperf": sockperf(11901),
            "sockperf, nb": sockperf(11902, "--nonblocked"),
            "floor": floor(compile_floor(folder)),
            "pair": pair(folder, options.bin),
        }
        found: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, measure in programs.items():
                found[name].append(measure(options.seconds))
    p50 = {name: statistics.median(values) for name, values in found.items()}
    for name, values in found.items():
        rounds = " ".join(f"{value:.1f}" for value in values)
        print(f"{name:12} p50 {p50[name]:6.1f} us   rounds {rounds}")
    own = p50["pair"] - p50["floor"]
    print(f"{'pair - floor':12}     {own:6.1f} us")
    good = [
        ratio("pair / sockperf", p50["pair"] / p50["sockperf"], WHOLE_BAR),
        ratio("(pair - floor + sockperf) / sockperf", own / p50["sockperf"] + 1, OWN_BAR),
    ]
    polled = p50["sockperf, nb"]
    ratio("pair / sockperf --nonblocked", p50["pair"] / polled, WHOLE_BAR)
    ratio("(pair - floor + sockperf) / sockperf, --nonblocked", own / polled + 1, OWN_BAR)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
