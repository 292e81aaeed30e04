"""What is printed, in each format, and that its numbers agree with one another."""

import csv
import io
import math
import re
import subprocess
import time
from pathlib import Path

import pair
import pytest
from measuring import measured

TEXT_COLUMNS = {
    "psend": "time s  messages  msg/s  MB/s  call ns  settle us p50  p99  max  blocked  stalled %"
    "  cpu %  rss MB",
    "precv": "time s  messages  msg/s  MB/s  lat us p50  p99  max  credit min  cpu %  rss MB",
}
DISTRIBUTION = {"psend": "settlement_ns", "precv": "latency_ns"}
KIND = {"psend": "sent", "precv": "received"}


def run_one(program: str, *options: str, messages: int = 20000) -> pair.Result:
    """One program of a pair, with options."""
    mine = {name: [] for name in pair.PROGRAMS} | {program: list(options)}
    psend, precv = pair.run_pair(["-m", str(messages), *mine["psend"]], mine["precv"])
    pair.assert_codes((psend, precv), 0, 0)
    return psend if program == "psend" else precv


# ---- text ----


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_text(program: str) -> None:
    """A heading, rows under it, and a total."""
    text = run_one(program, "--report-every", "10000").stdout
    assert text.isascii() and text.endswith("\n") and "nan" not in text and "inf" not in text
    heading, *rest = text.splitlines()
    assert heading.split() == TEXT_COLUMNS[program].split()
    total = next(i for i, line in enumerate(rest) if line.strip().startswith("total"))
    assert total >= 2
    for row in rest[: total + 1]:
        assert len(row) == len(heading)
        assert len(row.split()) == len(re.split(" {2}", TEXT_COLUMNS[program]))
        assert all(re.fullmatch(r"-|total|-?\d+(\.\d)?", cell) for cell in row.split())
    assert {row.split()[1] for row in rest[:2]} == {"10000"}
    assert rest[total].split()[1] == "20000"
    assert text.count("msg/s") == 1
    starts = [line.split(":")[0] for line in rest[total + 1 :]]
    wanted = ["messages", DISTRIBUTION[program][:-3] + " us", "credit", "cpu", "time"]
    assert [s for s in starts if s != "stall us"] == wanted


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_text_says_where_the_time_went(program: str) -> None:
    """All of it, and what took most."""
    line = run_one(program).stdout.splitlines()[-1]
    match = re.fullmatch(r"time:((?: \w+ [\d.]+ % )+)  limited by ([\w ]+)", line)
    assert match, line
    shares = dict(re.findall(r"(\w+) ([\d.]+) %", match[1]))
    assert abs(sum(map(float, shares.values())) - 100) < 0.5
    most = max(shares, key=lambda name: float(shares[name]))
    cpu = {"psend": "sender cpu", "precv": "receiver cpu"}[program]
    assert match[2] == (cpu if most == "busy" else most)


def test_text_without_numbers() -> None:
    """What does not exist is a dash."""
    _, precv = pair.run_pair(["-m", "1000", "--timestamp", "no"])
    assert "latency us: -" in precv.stdout
    assert precv.stdout.splitlines()[1].split().count("-") == 3


def test_text_of_a_run_that_failed() -> None:
    """It ends with how it ended."""
    psend, _ = pair.run_pair(["-m", "11"], ["-m", "10"])
    assert psend.stdout.splitlines()[-1] == "ended: detached, not complete, exit code 4"


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("format_name", ["text", "csv"])
def test_report_header(program: str, format_name: str) -> None:
    """The line of headings can be left out, and nothing else with it."""
    with_header = run_one(program, "-f", format_name).stdout
    without = run_one(program, "-f", format_name, "--report-header", "no").stdout
    assert "rss" in with_header.splitlines()[0]
    assert re.match(r" +\d|interval,", without)
    assert abs(with_header.count("\n") - 1 - without.count("\n")) <= 1  # a line of stalls or not


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_quiet(program: str, tmp_path: Path) -> None:
    """Nothing but errors; what else was asked for is written."""
    file = tmp_path / "report"
    result = run_one(program, "-q", "-o", str(file), "--hdr", str(tmp_path / "hdr"))
    assert result.stdout == result.stderr == ""
    assert result.summary["messages"][KIND[program]] == 20000
    assert pair.parse_lines(file.read_text(encoding="ascii")) == result.events
    assert (tmp_path / "hdr").stat().st_size > 0


def test_where_it_listens_is_said_on_stderr() -> None:
    """stdout is for the report alone."""
    precv = run_one("precv")
    port = precv.only("ready")["port"]
    assert precv.stderr == f"precv: listening on {pair.HOST}:{port}\n"
    assert "listening" not in precv.stdout


# ---- CSV ----


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_csv(program: str) -> None:
    """Every row has a number or nothing for every name; they are those of JSON."""
    result = run_one(program, "-f", "csv", "--report-every", "5000")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    names = rows[0]
    assert names[0] == "event" and len(set(names)) == len(names)
    assert [row[0] for row in rows[1:]] == ["interval"] * (len(rows) - 2) + ["summary"]
    for row in rows[1:]:
        assert len(row) == len(names)
        for cell in row[1:]:
            assert cell == "" or math.isfinite(float(cell))
    events = [*result.intervals, result.summary]
    for row, event in zip(rows[1:], events, strict=True):
        cells = dict(zip(names, row))
        assert float(cells["end_s"]) == pytest.approx(event["end_s"], abs=1e-9)
        assert float(cells["content_bytes"]) == event["content_bytes"]
        assert float(cells["time_busy_s"]) == pytest.approx(event["time_s"]["busy"], abs=1e-9)
        prefix = DISTRIBUTION[program][:-3]
        assert float(cells[f"{prefix}_p99_ns"]) == event[DISTRIBUTION[program]]["p99"]
        assert float(cells["messages_per_s"]) == pytest.approx(event["messages_per_s"])


def test_csv_without_numbers() -> None:
    """Empty fields."""
    _, precv = pair.run_pair(["-m", "1000", "--timestamp", "no"], ["-f", "csv"])
    for row in csv.DictReader(io.StringIO(precv.stdout)):
        assert row["latency_p50_ns"] == row["latency_max_ns"] == ""
        assert row["messages"] == "1000"


# ---- JSON ----


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_json_everywhere(program: str, tmp_path: Path) -> None:
    """stdout, -o and --events have the same lines; the text sink beside them is text."""
    file = tmp_path / "report"
    result = run_one(program, "-f", "json", "-o", str(file))
    on_stdout = pair.parse_lines(result.stdout)
    assert on_stdout == result.events == pair.parse_lines(file.read_text(encoding="ascii"))
    assert result.stdout.isascii()
    beside = run_one(program, "-o", str(file))
    assert pair.parse_lines(file.read_text(encoding="ascii")) == beside.events
    assert "limited by" in beside.stdout and not beside.stdout.startswith("{")


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_json_order_and_start(program: str) -> None:
    """start, ready, intervals, summary; the configuration is inside."""
    result = run_one(program, "--percentiles", "50,99.9", "--interval", "50ms")
    kinds = [event["event"] for event in result.events]
    assert kinds == ["start", "ready"] + ["interval"] * (len(kinds) - 3) + ["summary"]
    start = result.only("start")
    assert start["schema"] == "ppair/1" and start["program"] == program
    assert set(start["libraries"]) == {"libqpid-proton", "jansson"}
    assert start["argv"][0].endswith(program) and "50,99.9" in start["argv"]
    assert start["cpu"]["count"] >= 1 and start["kernel"].startswith("Linux ")
    assert abs(start["time_ns"] - time.time_ns()) < 60e9
    ready = result.only("ready")
    assert ready["listening"] == (program == "precv") and ready["host"] == pair.HOST
    assert ready["time_ns"] >= start["time_ns"]


NUMBERS_WITHOUT_UNIT = re.compile(
    r"index|port|pid|count|exit_code|blocked|stalls|grants|granted|lowest|frames_in|frames_out"
    r"|reconnects|switches_\w+|measured_messages|percent|negative|overflow"
)
OBJECTS_WITHOUT_UNIT = ("messages", "credit", "options")


def names_of_numbers(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where in an event there are numbers."""
    if isinstance(value, dict):
        return [p for name, v in value.items() for p in names_of_numbers(v, (*path, name))]
    return [path] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_units_are_in_names(program: str) -> None:
    """Of every number that has one, or of the object it is in."""
    unit = re.compile(r".*_(ns|s|bytes|per_s)")
    for event in run_one(program).events:
        for path in names_of_numbers(event):
            assert (
                any(unit.fullmatch(name) for name in path)
                or NUMBERS_WITHOUT_UNIT.fullmatch(path[-1])
                or path[0] in OBJECTS_WITHOUT_UNIT
            ), path


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_contract_of_the_summary(program: str) -> None:
    """The names that scripts rely on."""
    summary = run_one(program).summary
    causes = {"busy", "credit", "session", "socket", "settlement", "pacing", "idle"}
    assert set(summary["time_s"]) == causes
    own = {"psend": {"settlement_ns", "call_ns"}, "precv": {"latency_ns"}}[program]
    names = (
        "stop_reason interrupted complete exit_code messages messages_per_s bytes_per_s wall_s"
        " began_time_ns first_s last_s start_s end_s content_bytes credit connection limited_by cpu"
        " rss_bytes rss_peak_bytes"
    )
    assert own | set(names.split()) <= set(summary)
    distribution = summary[DISTRIBUTION[program]]
    names = "count min sum mean stddev max negative lowest overflow buckets"
    assert set(names.split()) <= set(distribution)
    credit = {"psend": {"blocked", "stalls", "stalled_s"}, "precv": {"grants", "granted"}}
    assert credit[program] <= set(summary["credit"])
    assert summary["connection"] == {"reconnects": 0, "disconnected_s": 0}


# ---- numbers ----


def nearest_rank(buckets: list[list[int]], percent: float) -> int:
    """The lowest value of the bucket in which that part of all is reached."""
    total = sum(n for _, n in buckets)
    rank = math.ceil(percent * total / 100 - 1e-9)
    seen = 0
    for lowest, n in buckets:
        seen += n
        if seen >= rank:
            return lowest
    raise AssertionError("rank beyond all buckets")


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_distribution(program: str) -> None:
    """Buckets, percentiles, extremes, mean and deviation are of the same values."""
    d = run_one(program, "--percentiles", "1,25,50,90,99,99.9,100").summary[DISTRIBUTION[program]]
    buckets = d["buckets"]
    assert d["count"] == sum(n for _, n in buckets) == 20000
    lowests = [lowest for lowest, _ in buckets]
    assert lowests == sorted(set(lowests)) and all(n > 0 for _, n in buckets)
    assert lowests[0] <= d["min"] < lowests[0] + pair.bucket_width(lowests[0])
    assert lowests[-1] <= d["max"] < lowests[-1] + pair.bucket_width(lowests[-1])
    assert pair.percentile_names(d) == ["p1", "p25", "p50", "p90", "p99", "p99.9", "p100"]
    for name in pair.percentile_names(d):
        lowest = nearest_rank(buckets, float(name[1:]))
        expected = min(lowest + pair.bucket_width(lowest) - 1, d["max"])
        assert d[name] == expected, name
    assert d["p100"] == d["max"]
    middles = [(low + (pair.bucket_width(low) - 1) / 2, n) for low, n in buckets]
    mean = sum(middle * n for middle, n in middles) / d["count"]
    assert d["mean"] == pytest.approx(mean, rel=1 / 128)
    assert d["mean"] == pytest.approx(d["sum"] / d["count"], rel=1e-12)
    variance = sum(n * (middle - d["mean"]) ** 2 for middle, n in middles) / d["count"]
    assert d["stddev"] == pytest.approx(math.sqrt(variance), rel=0.01)


@pytest.mark.measures
def test_stalls_distribution() -> None:
    """As many as there were stalls, and as long together."""
    psend, _ = pair.run_pair(["-m", "2000"], ["--credit", "10", "--work", "50us"])
    credit = psend.summary["credit"]
    stalls = credit["stall_ns"]
    assert credit["stalls"] == stalls["count"] == sum(n for _, n in stalls["buckets"]) > 10
    assert credit["stalled_s"] == pytest.approx(stalls["mean"] * stalls["count"] / 1e9, rel=1e-6)
    assert credit["blocked"] >= credit["stalls"]
    assert credit["stalled_s"] <= psend.summary["wall_s"] * 1.001
    with measured():
        assert credit["stalled_s"] == pytest.approx(psend.summary["time_s"]["credit"], rel=0.2)


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_rates(program: str) -> None:
    """Messages over the time from the first to the last."""
    summary = run_one(program).summary
    span_s = summary["last_s"] - summary["first_s"]
    assert summary["messages_per_s"] == pytest.approx(summary["measured_messages"] / span_s, 1e-6)
    assert summary["bytes_per_s"] == pytest.approx(summary["content_bytes"] / span_s, 1e-6)
    assert summary["content_bytes"] == 100 * 20000
    assert 0 <= summary["first_s"] < summary["last_s"] <= summary["wall_s"] + 1e-3
    for period in [summary, *run_one(program, "--report-every", "1000").intervals]:
        pair.assert_time_is_whole(period)


def first_ns(result: pair.Result) -> int:
    """When the first message was sent or received, on the calendar's clock."""
    return result.summary["began_time_ns"] + round(result.summary["first_s"] * 1e9)


@pytest.mark.measures
def test_reports_of_both_on_one_time_line() -> None:
    """What lies between the first messages of both is the latency of that message."""
    psend, precv = pair.run_pair(["-m", "2", "--max-unsettled", "1"])
    latency = precv.summary["latency_ns"]
    passed_ns = first_ns(precv) - first_ns(psend)
    slack_ns = 20_000_000  # somebody else may have the processor while a clock is read
    with measured():
        assert latency["min"] - slack_ns < passed_ns < latency["max"] + slack_ns
    for result in (psend, precv):
        started_ns, now_ns = result.only("start")["time_ns"], time.time_ns()
        assert started_ns < result.summary["began_time_ns"] < now_ns


def test_run_that_never_began() -> None:
    """It has no place on the time line."""
    result = pair.run("psend", "--listen", pair.ANY_PORT, "--timeout", "1ms")
    assert result.summary["began_time_ns"] is None


def test_accounting_with_outcomes() -> None:
    """Sent messages are what became of them; no time is missing."""
    psend, _ = pair.run_pair(["-m", "0"], ["-d", "200ms"])
    pair.assert_accounts(psend.summary)
    settled = psend.summary["settlement_ns"]["count"]
    assert psend.messages["sent"] - psend.messages["unsettled"] == settled


@pytest.mark.parametrize("size,per_message", [("100", 1), ("1000", 3)])
def test_frames(size: str, per_message: int) -> None:
    """A transfer each, or several if the frame is small; little else."""
    psend, precv = pair.run_pair(
        ["-m", "5000", "--content-size", size, "--presettled"], ["--max-frame", "512"]
    )
    sent, came = psend.summary["credit"]["frames_out"], precv.summary["credit"]["frames_in"]
    assert 5000 * per_message <= sent <= came + 3 <= 5000 * per_message + 13
    grants = precv.summary["credit"]["grants"]
    assert 0 < psend.summary["credit"]["frames_in"] <= grants + 10


@pytest.mark.measures
@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_cpu_and_memory(program: str) -> None:
    """Plausible, and the peak is not below what there is."""
    summary = run_one(program, messages=pair.count(300000)).summary
    cpu = summary["cpu"]
    used_s = cpu["user_s"] + cpu["system_s"]
    with measured():
        assert 0 < used_s <= 2.2 * summary["wall_s"] + 0.05
    assert cpu["percent"] == pytest.approx(100 * used_s / cpu["span_s"], rel=1e-3)
    assert 1e6 < summary["rss_bytes"] <= summary["rss_peak_bytes"]


def test_send_calls() -> None:
    """Their time is part of the time in which the sender was busy."""
    summary = run_one("psend").summary
    assert 0 < summary["call_ns"] * 20000 <= (summary["time_s"]["busy"] + 1e-3) * 1e9


# ---- when it is printed ----


def without_settling(program: str, intervals: list[dict]) -> list[dict]:
    """The last messages of psend may be settled in an interval in which none is sent."""
    last = intervals[-1]["messages"]
    settling = program == "psend" and last["sent"] == 0 and last["accepted"] > 0
    return intervals[:-1] if settling else intervals


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_report_every(program: str) -> None:
    """Exactly so many messages each; the rest, if there is one, is a partial interval."""
    for messages, counts in ((10000, [1000] * 10), (10500, [1000] * 10 + [500])):
        result = run_one(program, "--report-every", "1000", messages=messages)
        intervals = without_settling(program, result.intervals)
        assert [i["messages"][KIND[program]] for i in intervals] == counts
        assert [i["partial"] for i in intervals] == [c != 1000 for c in counts]


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_report_every_and_interval(program: str) -> None:
    """Both: none of the time's reports disturbs those of the count."""
    result = run_one(program, "--report-every", "1000", "--interval", "10s", messages=4500)
    assert [i["messages"][KIND[program]] for i in result.intervals] == [1000] * 4 + [500]


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("options", ["--report-total", "--interval 0"])
def test_report_total(program: str, options: str) -> None:
    """The total only, also of a run with a warm-up."""
    result = run_one(program, *options.split(), "-f", "csv")
    assert not result.intervals and result.stdout.count("\n") == 2
    limits = {"psend": ["-d", "300ms"], "precv": ["-d", "300ms"]}
    limits[program] += ["--warmup", "50ms", *options.split()]
    psend, precv = pair.run_pair(limits["psend"], limits["precv"])
    assert not (psend if program == "psend" else precv).intervals


@pytest.mark.measures
def test_interval() -> None:
    """One each, and what is left."""
    psend, _ = pair.run_pair(["-d", "1s", "--interval", "200ms"])
    lengths_s = [i["end_s"] - i["start_s"] for i in psend.intervals if not i["partial"]]
    with measured():
        assert len(lengths_s) in (4, 5)
        assert all(abs(length - 0.2) < 0.05 for length in lengths_s)


@pytest.mark.measures
@pytest.mark.parametrize("format_name", ["text", "csv", "json"])
def test_lines_come_when_they_are_made(format_name: str) -> None:
    """Not when the buffer is full or the program ends."""
    receiver, url = pair.listen("precv")
    process = subprocess.Popen(
        [pair.BIN / "psend", url, "-d", "800ms", "--interval", "200ms", "-f", format_name],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        arrivals_s = [time.monotonic() for _ in process.stdout]
        process.wait(pair.DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    with measured():
        assert arrivals_s[-1] - arrivals_s[0] > 0.7
        assert sum(arrivals_s[-1] - arrival_s > 0.3 for arrival_s in arrivals_s) >= 2
    assert pair.finish(receiver).code == 0


# ---- HdrHistogram's format ----


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_hdr(program: str, tmp_path: Path) -> None:
    """As its plotters read it: values rise to the maximum, counts to the total."""
    file = tmp_path / "hdr"
    d = run_one(program, "--hdr", str(file)).summary[DISTRIBUTION[program]]
    lines = file.read_text(encoding="ascii").splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert lines[1] == ""
    rows = [line.split() for line in lines[2:] if not line.startswith("#")]
    assert len(rows) > 10
    assert all(len(row) == 4 for row in rows[:-1]) and len(rows[-1]) == 3
    columns = list(zip(*[[float(cell) for cell in row[:3]] for row in rows]))
    for column in columns:
        assert list(column) == sorted(column)
    assert columns[0][0] == pytest.approx(d["min"] / 1e3, abs=1e-3)
    assert columns[0][-1] == pytest.approx(d["max"] / 1e3, abs=1e-3)
    assert columns[1][0] == 0 and columns[1][-1] == 1
    assert columns[2][-1] == d["count"]
    for value, percentile, seen in list(zip(*columns))[1:]:
        assert seen / d["count"] >= percentile - 1e-9, value
    footer = "\n".join(lines[-3:])
    assert re.search(rf"^#\[Mean += +{d['mean'] / 1e3:.3f}, StdDeviation += ", footer, re.M)
    assert re.search(r"^#\[Max += +[\d.]+, Total count += +20000\]$", footer, re.M)
    assert re.search(r"^#\[Buckets += +\d+, SubBuckets += +\d+\]$", footer, re.M)


def test_hdr_without_values(tmp_path: Path) -> None:
    """Headings and an empty footer."""
    file = tmp_path / "hdr"
    pair.run_pair(["-m", "10", "--timestamp", "no"], ["--hdr", str(file)])
    text = file.read_text(encoding="ascii")
    assert "nan" not in text and "inf" not in text
    assert re.search(r"Total count += +0\]", text)


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_percentiles(program: str) -> None:
    """Those asked for, in the order asked for, in text as well."""
    result = run_one(program, "--percentiles", "99.99,50,75.5")
    for period in [result.summary, *result.intervals]:
        assert pair.percentile_names(period[DISTRIBUTION[program]]) == ["p99.99", "p50", "p75.5"]
    values = r" us: min [\d.]+  p99.99 [\d.]+  p50 [\d.]+  p75.5 [\d.]+  max [\d.]+  mean"
    assert re.search(values, result.stdout)
