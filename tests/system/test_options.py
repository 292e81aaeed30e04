"""The command line: what is refused, how, and what --help and the start event say about it."""

import re
import socket
from collections.abc import Iterator

import pair
import pytest

USAGE = 64
QUICK_S = 2.0  # far below any timeout of the programs, far above what they need

# Option to be named, and the command line; URL stands for one that must not be connected to.
FOR_BOTH = [
    ("--messages", "URL -m abc"),
    ("--messages", "URL -m -1"),
    ("--messages", "URL -m +1"),
    ("--messages", "URL -m 1.5"),
    ("--messages", "URL -m 1q"),
    ("--messages", "URL -m 1kk"),
    ("--messages", "URL -m 10M"),
    ("--messages", "URL -m 0x10"),
    ("--messages", "URL -m 1e3"),
    ("--messages", "URL -m 9223372036854775808"),
    ("--messages", "URL -m 99999999999999999999999"),
    ("--messages", "URL --messages="),
    ("--messages", "URL --messages"),
    ("-m", "URL -m"),
    ("--duration", "URL -d 0"),
    ("--duration", "URL -d 5d"),
    ("--duration", "URL -d 5S"),
    ("--duration", "URL -d -5s"),
    ("--duration", "URL -d 0.5ns"),
    ("--duration", "URL -d nan"),
    ("--warmup", "URL --warmup x"),
    ("--connect-timeout", "URL --connect-timeout 0"),
    ("--close-timeout", "URL --close-timeout -1s"),
    ("--idle-timeout", "URL --idle-timeout 1ms"),
    ("--idle-timeout", "URL --idle-timeout 2000h"),
    ("--max-frame", "URL --max-frame 511"),
    ("--max-frame", "URL --max-frame 4Gi"),
    ("--max-frame", "URL --max-frame 1m"),
    ("--session-window", "URL --session-window 4Ki"),
    ("--session-window", "URL --session-window 1Ki --max-frame 2Ki"),
    ("--sndbuf", "URL --sndbuf 0"),
    ("--rcvbuf", "URL --rcvbuf 3Gi"),
    ("--container-id", "URL --container-id="),
    ("--link-name", "URL --link-name="),
    ("--link-name", "--listen 127.0.0.1:0 --link-name x"),
    ("--first-sequence", "URL --first-sequence 1k"),
    ("--first-sequence", "URL --first-sequence -1"),
    ("--interval", "URL --interval -1s"),
    ("--interval", "URL --interval 1x"),
    ("--report-every", "URL --report-every x"),
    ("--report-header", "URL --report-header maybe"),
    ("--report-total", "URL --report-total --interval 1s"),
    ("--report-total", "URL --report-total --report-every 10"),
    ("--format", "URL -f xml"),
    ("--format", "URL --format JSON"),
    ("--output", "URL -o "),
    ("--events", "URL --events 999"),
    ("--events", "URL --events x"),
    ("--events", "URL --events 2147483648"),
    ("--parent-fd", "URL --parent-fd 999"),
    ("--parent-fd", "URL --parent-fd x"),
    ("--parent-fd", "URL --parent-fd -1"),
    ("--parent-fd", "URL --parent-fd 2147483648"),
    ("--percentiles", "URL --percentiles 101"),
    ("--percentiles", "URL --percentiles 0"),
    ("--percentiles", "URL --percentiles 50,,99"),
    ("--percentiles", "URL --percentiles 50,nan"),
    ("--percentiles", "URL --percentiles 50%"),
    ("--percentiles", "URL --percentiles " + ",".join(["50"] * 33)),
    ("--clock", "URL --clock utc"),
    ("--timeout", "URL --timeout 0"),
    ("--start-at", "URL --start-at 1s"),
    ("--start-at", "URL --start-at -1"),
    ("--cpu", "URL --cpu x"),
    ("--cpu", "URL --cpu 1-0"),
    ("--cpu", "URL --cpu 0,"),
    ("--cpu", "URL --cpu 1000"),
    ("--cpu", "URL --cpu 99999"),
    ("--forever", "URL --forever"),
    ("--reconnect", "URL --reconnect=0"),
    ("--reconnect", "URL --reconnect=x"),
    ("--reconnect", "--listen 127.0.0.1:0 --reconnect"),
    ("--listen", "URL --listen 127.0.0.1:0"),
    ("--listen", "-b URL --listen 127.0.0.1:0"),
    ("--listen", "-a node --listen 127.0.0.1:0"),
    ("--listen", "--listen 127.0.0.1"),
    ("--listen", "--listen 127.0.0.1:x"),
    ("--listen", "--listen 127.0.0.1:65536"),
    ("--listen", "--listen :5672"),
    ("URL", "URL URL"),
    ("URL", "http://127.0.0.1/x"),
    ("URL", "127.0.0.1:0"),
    ("URL", "127.0.0.1:65536"),
    ("URL", "127.0.0.1:"),
    ("URL", "[::1"),
    ("URL", "amqp://"),
    ("--broker", "-b 127.0.0.1:x"),
    ("--no-such-option", "URL --no-such-option"),
    ("--report", "URL --report 1"),
    ("--quiet", "URL --quiet=yes"),
    ("--report-total", "URL --report-total=yes"),
    ("-y", "URL -y"),
    ("-y", "URL -qy"),
]

FOR_PSEND = [
    ("--send-rate", "URL --send-rate 0"),
    ("--send-rate", "URL --send-rate -1"),
    ("--send-rate", "URL --send-rate 1e3"),
    ("--send-rate", "URL --send-rate 1000000001"),
    ("--send-rate", "URL --send-rate 1k"),
    ("--send-rate", "URL --send-rate nan"),
    ("--send-rate", "URL --send-rate 100/s"),
    ("--send-rate", "URL --send-rate"),
    ("--batch", "URL --batch 0"),
    ("--batch", "URL --batch -1"),
    ("--batch", "URL --batch 10 --max-unsettled 9"),
    ("--batch", "URL --batch 10 --presettled"),
    ("--poisson", "URL --poisson"),
    ("--poisson", "URL --send-rate 1 --poisson=0"),
    ("--poisson", "URL --send-rate 1 --poisson=x"),
    ("--poisson", "URL --send-rate 1 --poisson=9007199254740992"),
    ("--catch-up", "URL --catch-up none"),
    ("--catch-up", "URL --send-rate 1 --catch-up some"),
    ("--tsc", "URL --tsc"),
    ("--tsc", "URL --tsc --batch 10 --send-rate 100"),
    ("--hdr", "URL --hdr f --presettled"),
    ("--reply", "URL --reply"),
    ("--reply", "--reply URL"),
    ("--max-unsettled", "URL --max-unsettled x"),
    ("--max-unsettled", "URL --max-unsettled 1 --presettled"),
    ("--content-size", "URL --content-size 2Gi"),
    ("--content-size", "URL --content-size -1"),
    ("--content-size", "URL --content-size 10 --content-string abc"),
    ("--content-string", "URL --content-string="),
    ("--content-string", "URL --content-string abc --content-stdin"),
    ("--content-file", "URL --content-stdin --content-file /etc/passwd"),
    ("--content-size", "URL --content-map a=b --content-size 10"),
    ("--content-stdin", "URL --content-map a=b --content-stdin"),
    ("--content-stdin", "URL --content-stdin --parent-fd 0"),
    ("--content-file", "URL --content-file /no/such/file"),
    ("--content-file", "URL --content-file /"),
    ("--content-map", "URL --content-map abc"),
    ("--content-map", "URL --content-map =abc"),
    ("--content-map", "URL --content-map a=1 --content-map a=2"),
    ("--check-content", "URL --check-content --content-size 15"),
    ("--check-content", "URL --check-content --content-size 0"),
    ("--check-content", "URL --check-content --content-string 0123456789abcdef"),
    ("--check-content", "URL --check-content --content-stdin"),
    ("--check-content", "URL --content-map a=b --check-content"),
    ("--property", "URL -P abc"),
    ("--property", "URL -P =abc"),
    ("--property", "URL --property a=1 -P a=2"),
    ("--property", "URL -P sn=1"),
    ("--property", "URL -P ts=1"),
    ("--property", "URL -P g=1 --group-key g"),
    ("--group-key", "URL --group-key sn"),
    ("--group-key", "URL --group-key="),
    ("--group-size", "URL --group-size 0"),
    ("--group-interleave", "URL --group-interleave 0"),
    ("--group-interleave", "URL --group-interleave 10001"),
    ("--send-eos", "URL --send-eos -1"),
    ("--send-eos", "URL --send-eos 1000001"),
    ("--subject", "URL --subject="),
    ("--ttl", "URL --ttl 0"),
    ("--ttl", "URL --ttl 5s"),
    ("--ttl", "URL --ttl 4294967296"),
    ("--priority", "URL --priority 256"),
    ("--priority", "URL --priority -1"),
    ("--sequence", "URL --sequence 1"),
    ("--timestamp", "URL --timestamp maybe"),
    ("--presettled", "URL --presettled=yes"),
    ("--credit", "URL --credit 10"),
    ("--work", "URL --work 1ms"),
    ("--receive-rate", "URL --receive-rate 10"),
    ("--outcome", "URL --outcome rejected"),
    ("--verify-sequence", "URL --verify-sequence"),
]

FOR_PRECV = [
    ("--credit", "URL --credit 0"),
    ("--credit", "URL --capacity 0"),
    ("--credit", "URL --credit 2147483648"),
    ("--credit-low", "URL --credit 10 --credit-low 10"),
    ("--credit-low", "URL --credit-low 1000"),
    ("--credit-add", "URL --credit-add 0"),
    ("--credit-add", "URL --credit 2g --credit-low 1g --credit-add 2g"),
    ("--ack-frequency", "URL --ack-frequency 0"),
    ("--ack-frequency", "URL --ack-frequency 1000001"),
    ("--outcome", "URL --outcome lost"),
    ("--save-content", "URL --save-content f --output f"),
    ("--save-content", "URL --save-content f --hdr f"),
    ("--receive-rate", "URL --receive-rate 0"),
    ("--receive-rate", "URL --receive-rate -5"),
    ("--receive-rate", "URL --receive-rate 5/s"),
    ("--receive-rate", "URL --receive-rate inf"),
    ("--work", "URL --work -1ms"),
    ("--drain-batch", "URL --drain-batch x"),
    ("--presettled", "URL --presettled"),
    ("--content-size", "URL --content-size 10"),
]

# In the contract, and not built yet: never accepted and ignored.
NOT_BUILT_BOTH = [
    "--threads 2",
    "--connections 2",
    "--links 2",
    "--connect-rate 10",
]
NOT_BUILT_PSEND = ["--group-id g"]
NOT_BUILT_PRECV: list[str] = []


def wrong_lines() -> Iterator[tuple[str, str, str]]:
    """Program, option, command line."""
    for option, line in FOR_BOTH:
        yield "psend", option, line
        yield "precv", option, line
    for option, line in FOR_PSEND:
        yield "psend", option, line
    for option, line in FOR_PRECV:
        yield "precv", option, line


def lines_not_built() -> Iterator[tuple[str, str]]:
    """Program, the option with its argument."""
    for program, own in (("psend", NOT_BUILT_PSEND), ("precv", NOT_BUILT_PRECV)):
        for line in NOT_BUILT_BOTH + own:
            yield program, line


@pytest.fixture(name="bait")
def _bait() -> Iterator[socket.socket]:
    """A socket that listens, to which nobody may connect."""
    with socket.create_server((pair.HOST, 0)) as server:
        server.setblocking(False)
        yield server


def address_of(server: socket.socket) -> str:
    """HOST:PORT/ADDRESS."""
    host, port = server.getsockname()
    return f"{host}:{port}/test"


def assert_refused(result: pair.Result, option: str, bait: socket.socket) -> None:
    """Code 64, one line that names the option, nothing else, and no connection."""
    assert result.code == USAGE, result
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    name = re.escape(option)
    assert re.match(rf"{result.name}: .*(?<![\w-]){name}(?![\w-])", lines[0]), lines[0]
    assert result.seconds < QUICK_S
    with pytest.raises(BlockingIOError):
        bait.accept()


@pytest.mark.parametrize("program,option,line", wrong_lines())
def test_wrong_line_is_refused(
    program: str, option: str, line: str, bait: socket.socket
) -> None:
    """One line that names the option, code 64, before any connection."""
    arguments = line.replace("URL", address_of(bait)).split(" ")
    assert_refused(pair.run(program, *arguments, events=False), option, bait)


@pytest.mark.parametrize("program,line", lines_not_built())
def test_option_not_built_is_refused(program: str, line: str, bait: socket.socket) -> None:
    """What is not there yet is unknown."""
    result = pair.run(program, address_of(bait), *line.split(), events=False)
    assert_refused(result, line.split()[0].split("=")[0], bait)


def test_table_does_not_refuse_everything(bait: socket.socket) -> None:
    """With a good command line a connection is made, so that the tests above can fail."""
    child = pair.start("psend", address_of(bait))
    bait.settimeout(pair.DEADLINE_S)
    bait.accept()[0].close()
    pair.send_signal(child, pair.signal.SIGINT)
    pair.finish(child)


SECRET = "s3cret-word"


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize(
    "line",
    [
        f"amqp://guest:{SECRET}@127.0.0.1:1/x",
        f"guest:{SECRET}@127.0.0.1:1",
        f"-b amqp://guest:{SECRET}@127.0.0.1:1/x",
        f"--broker=guest:{SECRET}@127.0.0.1:x",
        f"amqps://guest:{SECRET}@127.0.0.1:x/x",
        f"guest:{SECRET}@:1",
        f"http://guest:{SECRET}@127.0.0.1/x",
        f"127.0.0.1:1 guest:{SECRET}@127.0.0.1:1",
        f"guest:{SECRET}@127.0.0.1:1 127.0.0.1:1",
        f"--listen guest:{SECRET}@127.0.0.1",
        f"--brokr=guest:{SECRET}@127.0.0.1:1",
        f"--b=guest:{SECRET}@127.0.0.1:1",
    ],
)
def test_password_is_not_echoed(program: str, line: str) -> None:
    """Neither on stderr nor in a report."""
    result = pair.run(program, *line.split(), "--connect-timeout", "100ms")
    everything = result.stderr + result.stdout + str(result.events)
    assert result.code == USAGE
    assert SECRET not in everything


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("option", ["--help", "-h", "--version", "-V"])
def test_help_and_version(program: str, option: str) -> None:
    """On stdout, code 0, ASCII."""
    result = pair.run(program, option, events=False)
    assert (result.code, result.stderr) == (0, "")
    assert program in result.stdout and result.stdout.isascii()
    if option in ("--version", "-V"):
        assert re.fullmatch(rf"{program} \d+\.\d+\.\d+ \(libqpid-proton [\d.]+\)\n", result.stdout)


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_that_cannot_be_written(program: str, option: str) -> None:
    """A full disk is code 1."""
    with open("/dev/full", "wb") as full:
        result = pair.run(program, option, events=False, stdout=full)
    assert result.code == 1
    assert len(result.stderr.splitlines()) == 1


def help_options(program: str) -> dict[str, str]:
    """Long names, in JSON's spelling with their unit, of all options in --help."""
    text = pair.run(program, "--help", events=False).stdout
    rows = re.findall(r"^ {2,6}(?:-\w, +)?--([a-z-]+)(?:\[?=(\S+?))?(, --\S+)?(?:\s|$)", text, re.M)
    units = {"T": "_ns", "NS": "_ns", "MS": "_ms", "BYTES": "_bytes", "R": "_per_s"}
    return {
        name.replace("-", "_"): units.get(argument, "")
        for name, argument, _ in rows
        if name not in ("help", "version")
    }


def start_event(program: str, *arguments: str) -> pair.Json:
    """Without a peer."""
    where = ["--listen", pair.ANY_PORT] if "--link-name" not in arguments else ["127.0.0.1:1"]
    limits = ["--timeout", "1ms"] if "--timeout" not in arguments else []
    quick = ["--connect-timeout", "1ms"]
    return pair.run(program, *where, *limits, *quick, *arguments).only("start")


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_every_option_is_reported(program: str) -> None:
    """--help and the start event have the same options, with units in the latter's names."""
    units = help_options(program) | ({"content_size": "_bytes"} if program == "psend" else {})
    units.pop("capacity", None)  # another name of credit
    assert len(units) > 35
    names = {name + unit for name, unit in units.items()}
    assert set(start_event(program)["options"]) == names


def value_of(options: pair.Json, name: str) -> object:
    """Of an option with or without its unit: that names have one is another test."""
    found = [options[n] for n in (name, re.sub("_(ns|ms)$", "", name)) if n in options]
    assert found, name
    return found[0]


BOTH_VALUES = [
    ("--connect-timeout", "1.5ms", "connect_timeout_ns", 1500000),
    ("--close-timeout", "2", "close_timeout_ns", 2000000000),
    ("--idle-timeout", "1min", "idle_timeout_ns", 60000000000),
    ("--max-frame", "1Ki", "max_frame_bytes", 1024),
    ("--sndbuf", "10k", "sndbuf_bytes", 10000),
    ("--rcvbuf", "1Mi", "rcvbuf_bytes", 1048576),
    ("--container-id", "me", "container_id", "me"),
    ("--link-name", "mine", "link_name", "mine"),
    ("--messages", "1.5k", "messages", 1500),
    ("--duration", "1h", "duration_ns", 3600000000000),
    ("--warmup", "1us", "warmup_ns", 1000),
    ("--first-sequence", "0", "first_sequence", 0),
    ("--interval", "20ms", "interval_ns", 20000000),
    ("--report-every", "1m", "report_every", 1000000),
    ("--report-header", "no", "report_header", False),
    ("--percentiles", "99,50.5", "percentiles", "99,50.5"),
    ("--clock", "monotonic", "clock", "monotonic"),
    ("--start-at", "12345", "start_at_ns", 12345),
    ("--timeout", "3ms", "timeout_ns", 3000000),
    ("--cpu", "0", "cpu", "0"),
    ("--format", "csv", "format", "csv"),
]
PSEND_VALUES = [
    ("--max-unsettled", "7", "max_unsettled", 7),
    ("--content-size", "1Ki", "content_size_bytes", 1024),
    ("--content-string", "abc", "content_size_bytes", 3),
    ("--ttl", "60", "ttl_ms", 60),
    ("--priority", "0", "priority", 0),
    ("--sequence", "no", "sequence", False),
    ("--timestamp", "no", "timestamp", False),
]
PRECV_VALUES = [
    ("--credit", "10", "credit", 10),
    ("--capacity", "11", "credit", 11),
    ("--credit-low", "3", "credit_low", 3),
    ("--credit", "100", "credit_low", 50),
    ("--credit", "100", "credit_add", 50),
    ("--credit-add", "1", "credit_add", 1),
    ("--drain-batch", "5", "drain_batch", 5),
    ("--ack-frequency", "9", "ack_frequency", 9),
    ("--outcome", "released", "outcome", "released"),
    ("--receive-rate", "0.5", "receive_rate_per_s", 0.5),
    ("--work", "10us", "work_ns", 10000),
]


def test_values_are_reported() -> None:
    """What was typed is what the start event has, in base units."""
    for program, own in (("psend", PSEND_VALUES), ("precv", PRECV_VALUES)):
        for option, text, name, value in BOTH_VALUES + own:
            options = start_event(program, option, text)["options"]
            assert value_of(options, name) == value, (program, option, text)


@pytest.mark.parametrize(
    "program,name",
    [
        ("psend", "priority"),
        ("psend", "ttl_ms"),
        ("psend", "duration_ns"),
        ("psend", "content_string"),
        ("precv", "receive_rate_per_s"),
        ("precv", "duration_ns"),
        ("precv", "output"),
        ("psend", "parent_fd"),
    ],
)
def test_absent_option_is_null(program: str, name: str) -> None:
    """What was not given and has no default is null, never a value that could be given."""
    assert value_of(start_event(program)["options"], name) is None


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_absent_events_descriptor_is_null(program: str) -> None:
    """0 would be standard input."""
    limits = ("--timeout", "1ms", "-f", "json")
    result = pair.run(program, "--listen", pair.ANY_PORT, *limits, events=False)
    assert pair.parse_lines(result.stdout)[0]["options"]["events"] is None
