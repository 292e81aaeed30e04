"""Stands in for psend and precv: says what a script says, over real pipes, sockets and signals.

Installed by `install` as `psend` and `precv` in a folder of their own. Beside it, `psend.json` and
`precv.json` have a list of behaviours, the n-th for the n-th instance that is started (the last one
for all further ones), or, as instances of one run start at the same time, an object with that of
psend-0 as "0" and so on. What the instances were told is kept in psend.0.told and so on: `argv`,
`pid`, `library_path` and `password`. A behaviour is a list of steps, done in order:

    "start" "ready" "interval" "summary"    an event of that kind; with more: ["summary", {...}],
                                            members that replace those of the usual one
    "talk"            psend: connects to its URL and says how many messages it sends; precv: takes
                      them from all senders until those have gone, and with --forever goes on
    ["receive", n]    so many messages more, with an interval event that says so; or without, if
                      "quiet" is added
    ["raw", text]     writes just that
    ["repeat", n, step...]
    ["line", bytes]   the beginning of a line as long as that
    ["stderr", text]  ["flood", bytes]   on standard error, with a line end
    ["exit", code]  ["die", signal name]
    "hang"            waits to be stopped: by SIGINT or SIGTERM, or the end of standard input
    ["ignore", name...]   signals, or "PARENT" for the end of standard input
    ["knee", n]       psend: with --send-rate R, sends R messages, or n if that is less; precv: has
                      100 times the latency if it gets more than n messages
    ["defy", fifo]    SIGINT does not end it, but is told there
    ["await", fifo]   until somebody writes into it
    ["tell", fifo]    writes into it, as soon as somebody reads it
    ["sleep", seconds]
    "close"           standard output, and lives on
    ["grandchild", file]  a child that holds the pipes until it is killed; FILE has its pid

Stopped by SIGINT it says its summary and ends with 130, by SIGTERM with 143, without a driver 129.
After the last step it ends with the exit code in its summary.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

MESSAGES = 1000
SIZE = 100
EPOCH_NS = 1_790_000_000_000_000_000
WELL = ["start", "ready", "talk", "interval", "summary"]
ORPHAN_S = 30  # that a grandchild lives at most

HELP = """\
Usage: {program} [OPTION...] [URL]

Connection:
  -a, --address=ADDR                node at the peer
  -b, --broker=URL                  connect there
  -l, --listen=HOST:PORT            accept connections instead of making one
      --max-frame=BYTES             largest AMQP frame that we accept [16Mi]
      --password-file=FILE          with the first line of FILE as password
      --reconnect[=N]               connect again when the connection is lost
      --sasl-insecure               send a password over a connection without TLS
      --tls-ca=FILE                 certificates that a peer's must be signed by
      --tls-cert=FILE               own certificate
      --tls-key=FILE                its private key
      --user=NAME                   authenticate as NAME

Load:
  -d, --duration=T                  run for T
  -m, --messages=N                  send N messages in all; 0: no limit [1000]
      --warmup=T                    leave the first T out [0]
{own}
Report:
      --clock=realtime|monotonic    clock of ts
      --events=FD                   write the JSON report to this open descriptor as well
  -f, --format=text|csv|json        format of standard output [text]
      --interval=T                  report every T
  -o, --output=FILE                 write the JSON report to FILE as well
      --percentiles=LIST            which ones the total has
  -q, --quiet                       print nothing but errors
      --report-every=N              report every N messages
      --report-total                report the total only

Run:
      --cpu=LIST                    run on these processors only
      --parent-fd=FD                end the run when the other side is closed
      --start-at=NS                 no traffic before this time

  -h, --help                        print this help
  -V, --version                     print the version
"""
# Help is asked for often, and without Python it is quick.
LAUNCHER = f"""#!/bin/sh
[ "$1" = --help ] && exec cat "$0.help"
exec /usr/bin/python3 -IS "{__file__}" "$0" "$@"
"""
OWN = {
    "psend": """\
      --max-unsettled=N             queue depth
      --presettled                  send settled
      --batch=N                     send N messages at a time [1]
      --catch-up=none|full          after a stall [full]
      --poisson[=SEED]              exponential gaps
      --send-rate=R                 R messages a second
      --content-size=N              body of N bytes [100]
      --content-string=S            body S
      --durable                     mark messages as durable
""",
    "precv": """\
      --ack-frequency=N             settle every N-th message
      --credit=N, --capacity=N      grant N at the start [1000]
      --credit-low=N                whenever credit has fallen to N, grant more
      --receive-rate=R              take at most R messages a second
      --work=T                      spend T on each message
""",
}


# ---- what it says ----


def distribution(count: int, value: int = 200_000) -> dict:
    """So many values that are all the same."""
    known = value if count else None
    names = ("min", "mean", "stddev", "p50", "p90", "p99", "p99.9", "p99.99", "max")
    shift = max(value.bit_length() - 8, 0)
    return {
        "count": count,
        **dict.fromkeys(names, known),
        "stddev": 0.0 if count else None,
        "negative": 0,
        "lowest": None,
        "overflow": 0,
        "buckets": [[value >> shift << shift, count]] if count else [],
    }


def counts(program: str, messages: int, presettled: bool = False) -> dict:
    """All of them were accepted, and none was lost."""
    if program == "psend":
        outcome = None if presettled else 0
        kinds = ("rejected", "released", "modified", "no_outcome", "unsettled")
        accepted = None if presettled else messages
        return {"sent": messages, "accepted": accepted, **dict.fromkeys(kinds, outcome)}
    kinds = ("lost", "duplicated", "reordered", "redelivered")
    more = ("aborted", "no_sequence", "no_timestamp")
    return {"received": messages, **dict.fromkeys((*kinds, *more), 0)}


def options(program: str) -> dict:
    """The effective ones of which ppair makes use."""
    if program == "psend":
        body = {"content_size_bytes": SIZE, "content_string": None}
        return {"cpu": None, **body, "sndbuf_bytes": None}
    return {"cpu": None, "credit": 1000, "rcvbuf_bytes": None}


def start_event(program: str, argv: list) -> dict:
    """As README.md has it."""
    return {
        "event": "start",
        "schema": "ppair/1",
        "program": program,
        "version": "0.1.0",
        "libraries": {"libqpid-proton": "0.37.0"},
        "argv": argv,
        "options": options(program),
        "host": "fake",
        "cpu": {"model": "Fake", "count": 64},
        "kernel": "Linux",
        "pid": os.getpid(),
        "clock": "monotonic",
        "time_ns": EPOCH_NS,
    }


def common(program: str, messages: int) -> dict:
    """Of intervals and summaries: one second, busy for half of it."""
    credit = {"blocked": 0, "stalls": 0, "stalled_s": 0.0, "stall_ns": distribution(0)}
    if program == "precv":
        credit = {"grants": 2, "granted": messages, "lowest": 500}
    times = dict.fromkeys(("credit", "session", "socket", "settlement", "pacing", "idle"), 0.0)
    found = {
        "messages_per_s": float(messages),
        "bytes_per_s": float(messages * SIZE),
        "start_s": 0.0,
        "end_s": 1.0,
        "content_bytes": messages * SIZE,
        "settlement_ns" if program == "psend" else "latency_ns": distribution(messages),
        "credit": {**credit, "frames_in": messages, "frames_out": 5},
        "time_s": {"busy": 0.5, **times, "credit" if program == "psend" else "idle": 0.5},
        "limited_by": "busy",
        "cpu": {"user_s": 0.4, "system_s": 0.1, "span_s": 1.0, "percent": 50.0},
        "rss_bytes": 5_000_000,
        "rss_peak_bytes": 5_000_000,
    }
    return {**found, "call_ns": 200.0} if program == "psend" else found


def interval_event(program: str, messages: int) -> dict:
    """Of a second."""
    said = counts(program, messages)
    said.pop("unsettled", None)
    numbers = {"index": 0, "partial": False, "warmup": False, "messages": said}
    return {"event": "interval", **numbers, **common(program, messages)}


def summary_event(program: str, messages: int, code: int = 0, presettled: bool = False) -> dict:
    """Of a run that is one second long."""
    return {
        "event": "summary",
        "stop_reason": "signal" if code else "messages",
        "interrupted": code > 128,
        "complete": code == 0,
        "exit_code": code,
        "messages": counts(program, messages, presettled),
        "measured_messages": messages,
        "began_time_ns": EPOCH_NS,
        "first_s": 0.0 if messages else None,
        "last_s": 1.0 if messages else None,
        "wall_s": 1.0,
        **common(program, messages),
    }


def pacing(messages: int, rate: float) -> dict:
    """Members of a psend that has sent so many in a second, of RATE that were due."""
    met = abs(messages - rate) <= max(rate / 1000, 1)
    numbers = {"target_per_s": rate, "achieved_per_s": float(messages), "due": round(rate)}
    more = {"late": 0, "skipped": 0, "rate_met": met}
    return {"pacing": {**numbers, **more}, "send_delay_ns": distribution(messages, 50_000)}


def merged(event: dict, more: dict) -> dict:
    """MORE in the place of what EVENT has, members of objects one by one; "" takes one out."""
    found = dict(event)
    for name, value in more.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = merged(found[name], value) if both else value
        if value == "":
            del found[name]
    return found


# ---- what it does ----


class Fake:
    """One instance."""

    def __init__(self, program: str, argv: list, steps: list) -> None:
        self.program = program
        self.argv = argv
        self.steps = steps
        self.messages = self.number("--messages", MESSAGES) if program == "psend" else 0
        self.watched = [0]
        self.defied: str | None = None
        self.rate = float(self.word("--send-rate") or 0)
        self.knee: int | None = None
        self.server: socket.socket | None = None
        if "--listen" in argv:
            host = argv[argv.index("--listen") + 1].rpartition(":")[0]
            self.server = socket.create_server((host, 0))

    def word(self, name: str) -> str | None:
        """What an option says, the last time."""
        places = [index for index, word in enumerate(self.argv) if word == name]
        return self.argv[places[-1] + 1] if places else None

    def number(self, name: str, default: int) -> int:
        """What an option says."""
        return int(self.word(name) or default)

    # -- waiting --

    def wait(self, *files: int | socket.socket, most_s: float | None = None) -> list:
        """Until one of them can be read, or so long; ends if it is told to."""
        while True:
            found, _, _ = select.select([*self.watched, self.pipe, *files], [], [], most_s)
            if self.pipe in found:
                self.stopped(os.read(self.pipe, 1)[0])
            elif 0 in found and not os.read(0, 4096):
                sys.exit(128 + signal.SIGHUP)
            elif (found := [file for file in found if file in files]) or most_s is not None:
                return found

    def take_signals(self) -> None:
        """SIGINT and SIGTERM come as bytes of a pipe."""
        self.pipe, other = os.pipe()
        os.set_blocking(other, False)
        signal.set_wakeup_fd(other)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)

    def stopped(self, number: int) -> None:
        """As psend and precv: in order at the first SIGINT."""
        if number == signal.SIGINT and self.defied:
            self.do_tell(self.defied)
            return
        if number == signal.SIGINT:
            self.say(summary_event(self.program, self.messages, 128 + number))
        sys.exit(128 + number)

    # -- steps --

    def counted(self, event: dict) -> dict:
        """With what the rate and the knee make of it."""
        if self.rate:
            event.update(pacing(self.messages, self.rate))
        if self.program == "precv" and self.knee is not None and self.messages > self.knee:
            event["latency_ns"] = distribution(self.messages, 20_000_000)
        return event

    def say(self, event: dict) -> None:
        """One line."""
        self.raw(json.dumps(event) + "\n")

    def raw(self, text: str) -> None:
        """To standard output, at once."""
        os.write(1, text.encode())

    def do(self, step: str | list) -> None:
        """One step."""
        name, *arguments = [step] if isinstance(step, str) else step
        getattr(self, f"do_{name}")(*arguments)

    def do_start(self, more: dict = {}) -> None:  # noqa: B006
        self.say(merged(start_event(self.program, self.argv), more))

    def do_ready(self, more: dict = {}) -> None:  # noqa: B006
        port = self.server.getsockname()[1] if self.server else None
        where = {"listening": bool(self.server), "host": "127.0.0.1", "port": port}
        self.say(merged({"event": "ready", **where, "address": None, "time_ns": 0}, more))

    def do_interval(self, more: dict = {}) -> None:  # noqa: B006
        event = self.counted(interval_event(self.program, self.messages))
        self.say(merged(event, more))

    def do_summary(self, more: dict = {}) -> None:  # noqa: B006
        settled = "--presettled" in self.argv
        event = summary_event(self.program, self.messages, presettled=settled)
        event = merged(self.counted(event), more)
        self.say(event)
        self.code = event.get("exit_code", 0)

    def do_talk(self) -> None:
        if self.server is None:
            host, _, port = self.argv[-1].removeprefix("amqp://").partition("/")[0].rpartition(":")
            with socket.create_connection((host, int(port))) as peer:
                peer.sendall(f"{self.messages}\n".encode())
            return
        senders: list[socket.socket] = []
        attached = False
        while senders or not attached or "--forever" in self.argv:
            for file in self.wait(self.server, *senders):
                if file is self.server:
                    senders.append(self.server.accept()[0])
                elif said := file.recv(100):
                    attached = True
                    if "--forever" in self.argv:
                        self.do_receive(int(said))
                    else:
                        self.messages += int(said)
                else:
                    senders.remove(file)
                    file.close()

    def do_receive(self, messages: int, how: str = "") -> None:
        self.messages += messages
        if how != "quiet":
            self.say(interval_event(self.program, messages))

    def do_raw(self, text: str) -> None:
        self.raw(text)

    def do_repeat(self, times: int, *steps: str | list) -> None:
        for _ in range(times):
            for step in steps:
                self.do(step)

    def do_line(self, length: int) -> None:
        block = b"x" * 65536
        for _ in range(length // len(block)):
            os.write(1, block)  # blocks for good if nobody reads

    def do_stderr(self, text: str) -> None:
        os.write(2, f"{text}\n".encode())

    def do_flood(self, length: int) -> None:
        for _ in range(length // 100):
            os.write(2, b"y" * 99 + b"\n")

    def do_exit(self, code: int) -> None:
        sys.exit(code)

    def do_die(self, name: str) -> None:
        number = signal.Signals[name]
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)
        time.sleep(60)  # until it has taken effect

    def do_hang(self) -> None:
        self.wait()

    def do_ignore(self, *names: str) -> None:
        for name in names:
            if name == "PARENT":
                self.watched = []
            else:
                signal.signal(signal.Signals[name], signal.SIG_IGN)

    def do_await(self, fifo: str) -> None:
        descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.wait(descriptor)
        os.close(descriptor)

    def do_tell(self, fifo: str) -> None:
        with open(fifo, "w") as listener:
            listener.write(".")

    def do_knee(self, messages: int) -> None:
        self.knee = messages
        if self.rate:
            self.messages = min(round(self.rate), messages)

    def do_defy(self, fifo: str) -> None:
        self.defied = fifo

    def do_sleep(self, seconds: float) -> None:
        self.wait(most_s=seconds)

    def do_close(self) -> None:
        os.close(1)

    def do_grandchild(self, file: str) -> None:
        if os.fork() == 0:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.alarm(ORPHAN_S)
            with open(f"{file}.tmp", "w") as pid:
                pid.write(str(os.getpid()))
            os.rename(f"{file}.tmp", file)
            while True:
                signal.pause()
        while not os.path.exists(file):
            time.sleep(0.001)

    def run(self) -> int:
        """All steps."""
        self.code = 0
        self.take_signals()
        for step in self.steps:
            self.do(step)
        return self.code


def claim(folder: str, program: str, argv: list) -> int:
    """Which instance of the program we are; what we were told is left there, for `told`."""
    number = 0
    while True:
        try:
            with open(os.path.join(folder, f"{program}.{number}.told"), "x") as file:
                names = {"library_path": "LD_LIBRARY_PATH", "password": "PPAIR_PASSWORD"}
                had = {name: os.environ.get(variable) for name, variable in names.items()}
                json.dump({"argv": argv, "pid": os.getpid(), **had}, file)
            return number
        except FileExistsError:
            number += 1


def index() -> str:
    """Which instance of its run this is: ppair names files for it, psend-0.stderr."""
    return os.path.basename(os.readlink("/proc/self/fd/2"))[6:-7]


def main() -> int:
    """As the program that is the first argument, with the rest."""
    folder, program = os.path.split(sys.argv[1])
    argv = sys.argv[2:]
    number = claim(folder, program, argv)
    with open(os.path.join(folder, f"{program}.json")) as file:
        behaviours = json.load(file)
    if isinstance(behaviours, dict):
        return Fake(program, argv, behaviours[index()]).run()
    return Fake(program, argv, behaviours[min(number, len(behaviours) - 1)]).run()


# ---- for tests ----


def install(folder: Path, psend: list | dict, precv: list | dict) -> Path:
    """Makes psend and precv in FOLDER, with these behaviours."""
    for old in folder.glob("*.told"):
        old.unlink()
    for program, behaviours in (("psend", psend), ("precv", precv)):
        (folder / program).write_text(LAUNCHER)
        (folder / program).chmod(0o755)
        (folder / f"{program}.help").write_text(HELP.format(program=program, own=OWN[program]))
        (folder / f"{program}.json").write_text(json.dumps(behaviours))
    return folder


def told(folder: Path, program: str) -> list:
    """What its instances were told, in the order of their start."""
    found = []
    while (file := folder / f"{program}.{len(found)}.told").exists():
        found.append(json.loads(file.read_text()))
    return found


if __name__ == "__main__":
    sys.exit(main())
