"""Files of HdrHistogram: merged exactly, written as psend and precv do, and refused if foreign."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import launch
import pytest
import sample
from ppair import cli, distributions, hgrm, histogram, run_files, store
from ppair.axes import Axis
from ppair.failure import Exit, Failure
from ppair.hgrm import Recording
from ppair.histogram import MAX_NS, Histogram

FOREIGN = """\
       Value     Percentile TotalCount 1/(1-Percentile)

       0.016 0.000000000000          1           1.00
       0.980 0.500000000000      47530           2.00
    9428.991 1.000000000000     475109
#[Mean    =       25.048, StdDeviation   =      120.097]
#[Max     =     9420.800, Total count    =       475109]
#[Buckets =           27, SubBuckets     =         2048]
"""


def of(values: Sequence[int], timing: str | None = "latency") -> Recording:
    """As psend and precv would record them."""
    return Recording(timing, count(values))


def count(values: Sequence[int]) -> Histogram:
    """In the words of include/histogram.h."""
    kept = [value for value in values if value >= 0]
    below = [value for value in values if value < 0]
    counts: Counter[int] = Counter()
    for value in kept:
        shift = max(min(value, MAX_NS).bit_length() - 8, 0)
        counts[min(value, MAX_NS) >> shift << shift] += 1
    return Histogram(
        counts=dict(counts),
        total_ns=sum(kept),
        min_ns=min(kept, default=None),
        max_ns=max(kept, default=None),
        negative=len(below),
        lowest_ns=min(below, default=None),
        overflow=sum(value > MAX_NS for value in kept),
    )


def draw(seed: int, count: int) -> list[int]:
    """Log-normal, with some below 0 and some beyond an hour."""
    chance = random.Random(seed)
    values = [int(chance.lognormvariate(12, 3)) for _ in range(count)]
    more = [chance.choice((-chance.randrange(1, 10**6), MAX_NS + chance.randrange(1, 10**13)))]
    return values + more * (count // 100)


def rows_of(text: str) -> list[list[float]]:
    """Lines that are neither headings, empty, nor comments."""
    lines = [line for line in text.splitlines()[2:] if not line.startswith("#")]
    return [[float(word) for word in line.split()] for line in lines]


# ---- reading and writing ----


@pytest.mark.parametrize(
    "values",
    [[], [0], [-1], [1_234_567], [1, 2], [255, 256, 257] * 100, [MAX_NS], [MAX_NS + 1, 10**18]],
)
def test_what_is_written_is_read_again(values: list[int]) -> None:
    assert hgrm.parse(hgrm.render(of(values)), "x") == of(values)


def test_very_many_values_are_read_again() -> None:
    """2^40 of them, one of which is slow: it must not be lost."""
    counts = {100: 2**40, 4_980_736: 1}
    many = Recording(None, Histogram(counts, 100 * 2**40 + 5_000_000, 100, 5_000_000))
    text = hgrm.render(many)
    assert hgrm.parse(text, "x") == many
    rows = rows_of(text)
    assert rows[-1] == [5000.0, 1.0, 2**40 + 1] and rows[-2][0] == 5000.0


@pytest.mark.parametrize("sizes", [(1,), (5, 0), (1000, 1, 300), (700,) * 4])
def test_merged_files_are_as_if_all_had_been_recorded_in_one(sizes: tuple[int, ...]) -> None:
    parts = [draw(seed, count) for seed, count in enumerate(sizes)]
    texts = [hgrm.render(of(part)) for part in parts]
    merged = distributions.merged([("x", hgrm.parse(text, "x")) for text in texts])
    whole = of([value for part in parts for value in part])
    assert merged == whole
    assert hgrm.render(merged) == hgrm.render(whole)


def test_lines_are_those_of_percentiles() -> None:
    """Values and counts against the values themselves."""
    values = sorted(value for value in draw(1, 5000) if 0 <= value <= MAX_NS)
    rows = rows_of(hgrm.render(of(values)))
    assert rows[0][:2] == [values[0] / 1000, 0] and rows[-1] == [values[-1] / 1000, 1, len(values)]
    for value_us, quantile, total, inverse in rows[1:-1]:
        true = values[math.ceil(round(quantile * len(values), 6)) - 1]
        assert true / 1000 <= value_us <= true / 1000 * (1 + 1 / 128)
        assert sum(value <= value_us * 1000 for value in values) == total
        assert inverse == pytest.approx(1 / (1 - quantile), abs=0.01, rel=1e-3)


def test_percentiles_are_those_that_hdrhistogram_lists() -> None:
    """However many values there are, as a plotter puts lines of files beside one another."""
    lists = [[row[1] for row in rows_of(hgrm.render(of(draw(1, n))))[:-1]] for n in (7, 90, 4000)]
    for shorter, longer in zip(lists, lists[1:]):
        assert longer[: len(shorter)] == shorter and len(longer) > len(shorter)
    assert lists[2][:9] == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65]


# ---- plotters of others ----


def points_of_google_charts(text: str) -> list[tuple[str, str]]:
    """What HdrHistogram's plotFiles.html draws: the first and the last of four words of a line."""
    split = [line.strip().split() for line in text.split("\n")]
    lines = [words for words in split if len(words) == 4 and words[0][0] != "#"]
    return [(words[3], words[0]) for words in lines if words[0][0].isdigit()]


def points_of_hdr_plot(text: str) -> list[tuple[str, ...]]:
    """What the script of that name takes: four numbers, after a blank at least."""
    number = r"\s+([0-9.]+)"
    found = (re.match(number * 4, line) for line in text.splitlines())
    return [match.groups() for match in found if match]


@pytest.mark.parametrize("values", [[5], draw(2, 300), [10**10] * 50])
def test_plotters_see_percentiles_and_nothing_else(values: list[int]) -> None:
    text = hgrm.render(of(values))
    rows = [line.split() for line in text.splitlines()[2:] if line[0] == " "][:-1]
    assert points_of_google_charts(text) == [(row[3], row[0]) for row in rows]
    assert points_of_hdr_plot(text) == [tuple(row) for row in rows]
    assert re.search(r"^#\[Mean\s+=\s+[0-9.]+,\s+StdDeviation\s+=\s+[0-9.]+", text, re.M)
    assert re.search(r"^#\[Max\s+=\s+[0-9.]+,\s+Total count\s+=\s+[0-9.]+", text, re.M)
    assert [line[:9] for line in text.splitlines()[-3:]] == ["#[Mean   ", "#[Max    ", "#[Buckets"]
    after = text[text.index("#") :]
    assert all(line.startswith("#") for line in after.splitlines())


# ---- files that are refused ----


def test_a_foreign_file_is_refused_with_its_reason() -> None:
    with pytest.raises(Failure) as refused:
        hgrm.parse(FOREIGN, "theirs.hgrm")
    assert refused.value.code == Exit.USAGE
    assert "theirs.hgrm: lists percentiles and not every bucket" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "\n", "{}\n", "Value 1\n"])
def test_what_is_no_such_file_is_refused(text: str) -> None:
    with pytest.raises(Failure) as refused:
        hgrm.parse(text, "x")
    assert refused.value.code == Exit.USAGE and "is not a .hgrm file" in str(refused.value)


GOOD = hgrm.render(of([70, 300_000, 300_100, 5_000_000, -4]))


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("Count          =            2]", "Count          =            3]"),
        ("Bucket  =      299.008", "Bucket  =      299.009"),
        ("Bucket  =        0.070", "Bucket  =        0.071"),
        ("#[Max     =     5000.000", "#[Max     =     7000.000"),
        ("Total count    =            4]", "Total count    =            5]"),
        ("#[Sum     =", "#[Sun     ="),
        ("#[Lowest  =       -0.004", "#[Lowest  =       -0.0x4"),
        ("           0.070 0.0", "           0.069 0.0"),
        ("           0.070 0.0", "           x     0.0"),
        ("        5000.000 1.000000000000          4\n", ""),
        (GOOD[GOOD.index("#[Sum") :], ""),
        ("#[Timing  = latency]", "#[Timing  = latency]ns"),
        ("#[Timing  = latency]", "#[Timing  = latency]\n#[Timing  = latency]"),
    ],
)
def test_a_damaged_file_is_one_line(there: str, instead: str) -> None:
    assert hgrm.parse(GOOD, "x").histogram.count == 4
    assert there in GOOD
    with pytest.raises(Failure) as refused:
        hgrm.parse(GOOD.replace(there, instead), "x")
    assert refused.value.code == Exit.INTERNAL
    assert str(refused.value).startswith("x: not as it was written: ")
    assert "\n" not in str(refused.value)


# ---- the programs' own files ----


MESSAGES = (1, 10, 5000, 30000, 300)  # of the runs
ASKING = 4  # the run with --round-trip


def run_pair(folder: Path, number: int) -> None:
    """psend and precv, each with its distribution and its events in a file."""
    asks, replies = (["--round-trip"], ["--reply"]) if number == ASKING else ([], [])

    def words(program: str) -> list[str]:
        ours = folder / f"{program}-{number}"
        return ["--hdr", f"{ours}.hgrm", "-o", f"{ours}.jsonl", "--interval", "50ms"]

    precv = subprocess.Popen(
        [launch.BIN / "precv", "--listen", "127.0.0.1:0", "-f", "json", *words("precv"), *replies],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert precv.stdout
        ready = next(e for line in precv.stdout if (e := json.loads(line))["event"] == "ready")
        url = f"amqp://127.0.0.1:{ready['port']}/q"
        psend = [launch.BIN / "psend", url, "-q", "-m", str(MESSAGES[number]), *words("psend")]
        subprocess.run([*psend, *asks], timeout=launch.DEADLINE_S, check=True)
        precv.communicate(timeout=launch.DEADLINE_S)
        assert precv.returncode == 0
    finally:
        precv.kill()
        precv.wait()


def timing_of(program: str, number: int) -> str:
    if program == "precv":
        return "latency"
    return "round_trip" if number == ASKING else "settlement"


def recorded(folder: Path, program: str, number: int) -> Recording:
    """What the summary says of the same distribution."""
    timing = timing_of(program, number)
    lines = (folder / f"{program}-{number}.jsonl").read_text(encoding="ascii").splitlines()
    summary: dict[str, Any] = json.loads(lines[-1])
    return Recording(timing, histogram.from_distribution(summary[f"{timing}_ns"]))


@pytest.fixture(name="recordings", scope="module")
def _recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of the pair."""
    folder: Path = tmp_path_factory.mktemp("hdr")
    for number in range(len(MESSAGES)):
        run_pair(folder, number)
    return folder


@pytest.mark.parametrize("number", range(len(MESSAGES)))
@pytest.mark.parametrize("program", ["psend", "precv"])
def test_what_the_programs_write_is_what_we_would(
    recordings: Path, program: str, number: int
) -> None:
    """Byte for byte, from the buckets of their summaries; and what is read of it as well."""
    path = recordings / f"{program}-{number}.hgrm"
    text = path.read_text(encoding="ascii")
    assert hgrm.render(recorded(recordings, program, number)) == text
    assert hgrm.render(hgrm.read(path)) == text
    assert hgrm.read(path).histogram.count == MESSAGES[number]
    assert hgrm.read(path).timing == timing_of(program, number)


def report(*words: object) -> int:
    return cli.main(["report", *map(str, words)], launch.BIN)


def test_four_files_of_programs_are_merged(
    recordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [recordings / f"precv-{number}.hgrm" for number in range(4)]
    assert report(*paths, "--hdr", tmp_path / "all.hgrm", "--format", "csv") == Exit.DONE
    out, err = capsys.readouterr()
    assert err == f"hdr: {tmp_path}/all.hgrm\n"
    whole = distributions.merged([("x", recorded(recordings, "precv", n)) for n in range(4)])
    assert (tmp_path / "all.hgrm").read_text() == hgrm.render(whole)
    lines = [line.split(",") for line in out.splitlines()]
    assert [line[:3] for line in lines[1:5]] == [
        [str(path), "latency", str(n)] for path, n in zip(paths, MESSAGES)
    ]
    assert lines[5][:3] == ["merged", "latency", "35011"]
    p99_us = whole.histogram.percentile_ns(99)
    assert p99_us is not None and lines[5][6] == f"{p99_us / 1000:.3f}"


# ---- ppair report ----


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_table_of_files(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # whatever the name of the folder
    a, b, empty = (tmp_path / f"{name}.hgrm" for name in ("a", "b", "empty"))
    hgrm.write(a, of([1_000, 2_000, -5_500]))
    hgrm.write(b, of([3_000] * 98))
    hgrm.write(empty, of([]))
    assert report(a, b, empty, "--format", name) == Exit.DONE
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "merged" in line)
    row = row.replace("|", "").replace("\\", "")
    words = ["latency", "100", "1.000", *["3.000"] * 6, "2.970"]
    assert row.split() == ["merged", *words]
    assert next(line for line in out.splitlines() if "empty" in line).count("-") >= 8
    assert "1 values below 0 are left out, the lowest -5.500 us." in " ".join(out.split())


def test_kinds_that_differ_are_not_merged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is written."""
    for name, timing in (("a", "latency"), ("b", None), ("c", "round_trip")):
        hgrm.write(tmp_path / name, of([7], timing))
    names = [tmp_path / name for name in "abc"]
    assert report(*names, "--hdr", tmp_path / "x") == Exit.USAGE
    out, err = capsys.readouterr()
    why = f"{names[0]} has latency, and {names[2]} has round_trip: they cannot be merged"
    assert out == "" and err.endswith(f"{why}\n") and err.count("\n") == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("timings", "made"),
    [
        ([None, None], None),
        (["latency", None, "latency"], None),
        (["round_trip", "round_trip"], "round_trip"),
    ],
)
def test_files_that_do_not_say_their_kind_are_merged(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    timings: list[str | None],
    made: str | None,
) -> None:
    """As those of older programs; what they make does not say it, either."""
    paths = [tmp_path / str(number) for number in range(len(timings))]
    for path, timing in zip(paths, timings):
        hgrm.write(path, of([7], timing))
        assert (timing is None) == ("Timing" not in path.read_text())
    assert report(*paths, "--hdr", tmp_path / "x", "--format", "csv") == Exit.DONE
    rows = [line.split(",")[:3] for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[1] for row in rows[:-1]] == [timing or "" for timing in timings]
    assert rows[-1] == ["merged", made or "", str(len(timings))]
    assert hgrm.read(tmp_path / "x") == of([7] * len(timings), made)


def test_a_single_file_is_not_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hgrm.write(tmp_path / "a", of([7]))
    assert report(tmp_path / "a") == Exit.DONE
    assert "merged" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("DIR",), "results directories and .hgrm files are not reported together"),
        (("--html", "x.html"), "--html: needs results directories"),
        (("--plots", "x"), "--plots: needs results directories"),
        (("--format", "iperf"), "--format iperf: needs results directories"),
        (("--hdr", "A"), "is one of those that are read"),
    ],
)
def test_what_files_cannot_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    file = tmp_path / "a.hgrm"
    hgrm.write(file, of([7]))
    before = file.read_bytes()
    known = {"DIR": tmp_path, "A": file}
    assert report(file, *(known.get(word, word) for word in words)) == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
    assert file.read_bytes() == before


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path / "no.hgrm") == Exit.INTERNAL
    assert capsys.readouterr().err.endswith("no.hgrm: No such file or directory\n")
    (tmp_path / "theirs").write_text(FOREIGN)
    assert report(tmp_path / "theirs", "--hdr", tmp_path / "x") == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == "" and "lists percentiles and not every bucket" in err and err.count("\n") == 1
    assert not (tmp_path / "x").exists()


Made = Callable[..., store.Results]


def latency(results: store.Results, point: int = 0) -> str:
    values = run_files.merged_histogram(results, results.good(point), "precv")
    return hgrm.render(Recording("latency", values))


def test_a_point_of_results_is_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all good repetitions and receivers."""
    made = sample.make(
        tmp_path / "r", repetitions=3, receivers=2, fails=lambda _, r: "no" if r == 1 else None
    )
    assert report(tmp_path / "r", "--hdr", tmp_path / "new" / "x.hgrm") == Exit.DONE
    assert capsys.readouterr().err == f"hdr: {tmp_path}/new/x.hgrm\n"
    text = (tmp_path / "new" / "x.hgrm").read_text()
    assert text == latency(made)
    parts = [made.run_folder(run) / f"precv-{i}.jsonl" for run in made.good(0) for i in range(2)]
    summaries = [json.loads(path.read_text().splitlines()[-1]) for path in parts]
    assert hgrm.parse(text, "x").histogram.count == sum(s["measured_messages"] for s in summaries)
    assert len(summaries) == 4


def test_several_points_have_a_file_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = (Axis("credit", ("10", "2 0/x"), "credit"),)
    made = sample.make(tmp_path / "r", axes=axes, repetitions=1)
    other = sample.make(tmp_path / "s", repetitions=1)
    assert report(tmp_path / "r", "--hdr", tmp_path / "x.hgrm") == Exit.DONE
    names = sorted(path.name for path in tmp_path.glob("x*"))
    assert names == ["x-credit-10.hgrm", "x-credit-2-0-x.hgrm"]
    assert (tmp_path / names[1]).read_text() == latency(made, 1)
    assert report(tmp_path / "r", tmp_path / "s", "--hdr", tmp_path / "y.hgrm") == Exit.DONE
    names = sorted(path.name for path in tmp_path.glob("y*"))
    assert names == ["y-r-credit-10.hgrm", "y-r-credit-2-0-x.hgrm", "y-s.hgrm"]
    assert (tmp_path / names[2]).read_text() == latency(other)
    assert report(tmp_path / "s", tmp_path / "s", "--hdr", tmp_path / "z") == Exit.DONE
    assert sorted(path.name for path in tmp_path.glob("z*")) == ["z-1-s", "z-2-s"]
    capsys.readouterr()


def test_what_a_search_has_tried_is_no_file(tmp_path: Path) -> None:
    axes = (Axis("load", ("closed loop", "search at 9/s", "slo at 9.5/s", "10%"), "load"),)
    sample.make(tmp_path / "r", axes=axes, repetitions=1)
    assert report(tmp_path / "r", "--hdr", tmp_path / "x.hgrm") == Exit.DONE
    names = sorted(path.name for path in tmp_path.glob("x*"))
    assert names == ["x-load-10-percent.hgrm", "x-load-closed-loop.hgrm"]


def test_no_good_run_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample.make(tmp_path / "r", fails=lambda values, repetition: "no")
    assert report(tmp_path / "r", "--hdr", tmp_path / "x") == Exit.INTERNAL
    assert "--hdr: there is no good run" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_runs_do_not_write_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Of several programs."""
    for words in (["--hdr", "x"], ["--precv.hdr", "x"], ["--precv", "--hdr x"], ["--hd=x"]):
        assert cli.main(["run", *words], launch.BIN) == Exit.USAGE
        err = capsys.readouterr().err
        assert "is one file for several runs: ppair report DIR --hdr FILE" in err
