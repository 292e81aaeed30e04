"""compare, tune and report with the real pair. Rates are set by precv, so that noise is small."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import launch
import pytest
from launch import Launcher, Tap
from measuring import measured
from ppair import comparison, store
from ppair import results as outcomes
from ppair.spec import Spec

FAST, SLOW = "--receive-rate 2000", "--receive-rate 1000"
COUNT = ("-m", "100", "--repeat", "8")


def compared(launcher: Launcher, name: str) -> launch.Json:
    """What compare has found, by metric."""
    return dict(launcher.results(name).findings["comparisons"])


def measure(ppair: Launcher, name: str, *words: str) -> None:
    """One directory to compare, with runs enough for a test that allows for drift."""
    ended = ppair.run("run", "-m", "60", "--repeat", "16", *words, "--out", name)
    assert ended.code == 0, ended


# ---- compare: two specs ----


@pytest.mark.measures
def test_program_with_itself(ppair: Launcher) -> None:
    """Is no difference; both sides are run in turn."""
    words = [*COUNT, "--precv", FAST, "--min-effect", "20%", "--fail-above", "20%"]
    ended = ppair.run("compare", "", "", *words, "--out", "out")
    assert ended.code == 0, ended
    with measured():
        assert compared(ppair, "out")["messages_per_s"]["verdict"] == "same"
    assert ended.stdout.startswith("Rate: ") and "B is" not in ended.stdout.splitlines()[0]
    assert "The limit of 20 % is kept." in ended.stdout.splitlines()[0]
    results = ppair.results("out")
    began = [run.point for run in sorted(results.runs, key=lambda run: run.started_ns)]
    assert began == [0, 1, 1, 0] * 4


@pytest.mark.measures
def test_slow_down(ppair: Launcher) -> None:
    """Of a tenth is flagged, and fails a gate that is lower."""
    words = ["-m", "100", "--repeat", "14", "--fail-above", "1%", "--out", "out"]
    ended = ppair.run("compare", "--work 2ms", "--work 2200us", *words)
    with measured():
        assert ended.code == 7, ended
    sentence = ended.stdout.splitlines()[0]
    assert sentence.startswith("Rate: B is ") and " lower " in sentence
    assert sentence.endswith("The limit of 1 % is crossed.")
    found = compared(ppair, "out")["messages_per_s"]
    assert found["verdict"] == "different" and found["count_a"] == found["count_b"] == 14
    assert found["ratio"]["low"] < found["ratio"]["value"] < 1


def test_faster_is_no_failure(ppair: Launcher) -> None:
    """The gate is for slow-downs. Sides of one word are given as options."""
    words = [*COUNT, "--fail-above", "1%", "--json", "--out", "out"]
    ended = ppair.run("compare", "--a", SLOW, "--b", FAST, *words)
    assert ended.code == 0, ended
    found = ended.json["findings"]["comparisons"]["messages_per_s"]
    assert found["verdict"] == "different" and found["ratio"]["value"] > 1


@pytest.mark.parametrize(
    "words, code, why",
    [
        (["--credit 10"], 64, "there are 1"),
        (["", "--no-such 1"], 64, "--no-such"),
        (["", "credit"], 64, '"credit"'),
        (["", "", "--fail-above", "x"], 64, "--fail-above"),
    ],
)
def test_refused(ppair: Launcher, words: list[str], code: int, why: str) -> None:
    """In one line, before anything is run."""
    ended = ppair.run("compare", *COUNT, *words, "--out", "out")
    assert ended.code == code and not ended.stdout and len(ended.lines) == 1
    assert why in ended.stderr
    assert not (ppair.folder / "out").exists()


def test_troubles_that_neither_side_has_had_are_not_compared() -> None:
    """They would only make others harder to tell."""
    rates, none = [1000.0, 1010.0, 990.0, 1005.0] * 3, [0.0] * 12
    samples = {name: (none, none) for name in ("blocked", "resent", "duplicated")}
    samples |= {"messages_per_s": (rates, rates), "reconnects": (none, [1.0] * 12)}
    found = comparison.compare(samples, True, 0.01)
    assert set(found) == {"messages_per_s", "blocked", "reconnects"}


def test_side_that_fails(ppair: Launcher) -> None:
    """There is nothing to compare: why, and the exit code of what failed."""
    words = ["-m", "50", "--repeat", "2", "--out", "out"]
    ended = ppair.run("compare", "", "--outcome released", *words)
    assert ended.code == 6, ended
    assert "psend-0: ended with exit code 6" in ended.stdout
    results = ppair.results("out")
    assert results.status == outcomes.COMPLETE and len(results.good(0)) == 2


def test_interrupted_compare(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """Before there is a pair."""
    words = ["--duration", "1min", "--warmup", "0", "--out", "out", *launch.tapped(heard)]
    process = ppair.start("compare", "--credit 10", "--credit 20", *words)
    heard["psend"].wait_for("interval", 2)
    process.send_signal(signal.SIGINT)
    ended = launch.finish(process)
    assert ended.code == 130, ended
    assert "interrupted" in ended.stdout and ended.lines == ["results: out"]


# ---- compare: two directories ----


def test_searches_of_latency_are_not_compared(tmp_path: Path) -> None:
    """Their rates have nothing to do with each other; steps and the sustained rates have."""
    points = tuple(
        outcomes.Point(i, {"load": label}, Spec())
        for i, label in enumerate(("search at 9/s", "slo at 8/s", "10%"))
    )
    plan = outcomes.Plan("latency", "", (), points, 1, 0)
    sides = [outcomes.Results(tmp_path, plan, (), {}, 0) for _ in range(2)]
    for side, rate in zip(sides, (800.0, 600.0)):
        side.runs += [outcomes.Run(i, 0, 0, status="good") for i in range(3)]
        side.findings = {"latency": {"sustainable_per_s": rate}}
    found, left_out = comparison.common_points(*sides)
    assert [name for name, _ in found] == ["load=10%"] and not left_out
    assert "A 800, B 600 messages/s, B/A 0.750" in str(comparison.sustained(*sides))
    sides[1].findings = None
    assert comparison.sustained(*sides) is None


def test_a_ratio_of_pairs_says_what_it_is() -> None:
    """It need not be that of the medians."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    samples: comparison.Samples = {"messages_per_s": (list(values), values[::-1])}
    for paired in (True, False):
        found = comparison.compare(samples, paired, 0.01)
        (note,) = comparison.findings(found, None)["tables"][0]["notes"]
        assert ("ratios of the pairs" in note) == paired


@pytest.mark.measures
def test_directories(ppair: Launcher) -> None:
    """Are read, and not changed."""
    measure(ppair, "a", "--precv", FAST)
    measure(ppair, "b", "--precv", SLOW)
    before = {path: path.read_bytes() for path in ppair.folder.rglob("*") if path.is_file()}
    for limit, code in (("5%", 7), ("90%", 0)):
        ended = ppair.run("compare", "a", "b", "--fail-above", limit)
        with measured():
            assert ended.code == code, ended
        assert ended.stdout.startswith("Rate: B is ") and not ended.stderr
    ended = ppair.run("compare", "a", "a", "--json")
    assert ended.code == 0, ended
    assert ended.json["comparisons"][0]["messages_per_s"]["verdict"] == "same"
    after = {path: path.read_bytes() for path in ppair.folder.rglob("*") if path.is_file()}
    assert before == after
    ended = ppair.run("compare", "a", "no")
    assert ended.code == 64 and len(ended.lines) == 1


def test_different_machines(ppair: Launcher) -> None:
    """Are not compared unless that is wanted; then it is said that they are different."""
    for name in ("a", "b"):
        measure(ppair, name, "--precv", FAST)
    manifest = ppair.folder / "b" / "manifest.json"
    value = json.loads(manifest.read_text(encoding="ascii"))
    value["machine"]["cpu_model"] = "Another CPU"
    manifest.write_text(json.dumps(value), encoding="ascii")
    ended = ppair.run("compare", "a", "b")
    assert ended.code == 64 and not ended.stdout and len(ended.lines) == 1
    assert "cpu model" in ended.stderr and "Another CPU" in ended.stderr
    assert "--force" in ended.stderr
    ended = ppair.run("compare", "a", "b", "--force")
    assert ended.code == 0, ended
    assert "Another CPU" in ended.stdout and ended.stdout.startswith("Rate: ")


def test_points_in_common(ppair: Launcher) -> None:
    """Of two sweeps are compared, and no others."""
    for name, credits in (("a", "10,20"), ("b", "20,30")):
        words = ["--credit", credits, "--precv", FAST, *COUNT, "--out", name]
        assert ppair.run("sweep", *words).code == 0
    ended = ppair.run("compare", "a", "b", "--min-effect", "20%")
    assert ended.code == 0, ended
    assert "credit=20: Rate: " in ended.stdout and "Rate: B is" not in ended.stdout
    assert "credit=10: Rate" not in ended.stdout and "credit=30: Rate" not in ended.stdout
    assert "Not compared: credit=10: only A has it." in ended.stdout
    assert "Not compared: credit=30: only B has it." in ended.stdout


# ---- tune ----


@pytest.mark.measures
def test_tune(ppair: Launcher) -> None:
    """A window within the limit that was set, and the numbers from which that follows."""
    words = ["--max-credit", "256", "--duration", "30ms", "--warmup", "10ms", "--budget", "1s"]
    ended = ppair.run("tune", "--presettled", *words, "--within", "10%", "--out", "out")
    with measured():
        assert ended.code == 0, ended
    found = ppair.results("out").findings["tuning"]
    assert 1 <= found["grant"] <= found["window"] <= 256 and found["within"] == 0.1
    assert found["window_low"] <= found["window_high"]
    said = f"{found['window']} credits, {found['grant']} at a time"
    assert ended.stdout.startswith(said if found["certain"] else "Not certain yet")
    assert said in ended.stdout.splitlines()[0] and "grant costs" in ended.stdout
    results = ppair.results("out")
    for point in results.plan.points:
        grant = int(point.values["grant"])
        (run, *_) = results.good(point.id)
        start = launch.only(launch.events_of(results, run.folder, "precv-0"), "start")["options"]
        assert start["credit_add"] == grant == start["credit"] - start["credit_low"]


def test_interrupted_tune(ppair: Launcher, heard: dict[str, Tap]) -> None:
    """Keeps what was measured."""
    process = ppair.start("tune", *launch.tapped(heard), "--out", "out")
    heard["psend"].wait_for("start", 3)
    process.send_signal(signal.SIGINT)
    ended = launch.finish(process)
    assert ended.code == 130, ended
    results = ppair.results("out")
    assert results.status == outcomes.INTERRUPTED
    assert [run.status for run in results.runs].count(outcomes.GOOD) >= 2
    assert not ppair.left()


def test_tune_where_nothing_works(ppair: Launcher) -> None:
    """Says what failed, with its exit code."""
    ended = ppair.run("tune", "--precv", "--outcome released", "--out", "out")
    assert ended.code == 6, ended
    assert "psend-0: ended with exit code 6" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


# ---- report ----


def test_report(ppair: Launcher, tmp_path: Path) -> None:
    """The same numbers as when it was measured, plots of every plot, and a page of its own."""
    words = ["--credit", "10,100,1000", "-m", "500", "--repeat", "2", "--out", "out"]
    measured = ppair.run("sweep", *words)
    assert measured.code == 0, measured
    wanted = ["--html", "page.html", "--plots", "plots", "--plot-format", "svg,png"]
    ended = ppair.run("report", "out", *wanted)
    assert ended.code == 0, ended
    lines = set(ended.stdout.splitlines())
    rows = [line for line in measured.stdout.splitlines() if re.match(r" *10{1,3}  ", line)]
    assert len(rows) in (3, 6) and set(rows) <= lines  # in one block or two
    written = {path.suffix for path in (tmp_path / "plots").iterdir()}
    assert written == {".svg", ".png"}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<svg" in page and "credit" in page
    assert 'src="http' not in page and 'href="http' not in page  # good to mail around


@pytest.mark.parametrize("name", ["markdown", "csv", "iperf", "quiver"])
def test_report_formats(ppair: Launcher, name: str) -> None:
    """Of a real run."""
    measure(ppair, "out", "--precv", FAST)
    ended = ppair.run("report", "out", "--format", name)
    assert ended.code == 0 and ended.stdout.isascii(), ended
    if name in ("iperf", "quiver"):
        decoder, rest, count = json.JSONDecoder(), ended.stdout.strip(), 0
        while rest:
            _, end = decoder.raw_decode(rest)
            rest, count = rest[end:].strip(), count + 1
        assert count == 16
    if name == "csv":
        assert len(ended.stdout.splitlines()) == 17


# ---- damage ----


def test_damaged_results(ppair: Launcher, tmp_path: Path) -> None:
    """Compared or reported, they are one line that names them, not a traceback."""
    measure(ppair, "out", "--precv", FAST)
    manifest = tmp_path / "out" / "manifest.json"
    value = json.loads(manifest.read_text(encoding="ascii"))
    value["created_ns"] = value["plan"]["points"][0]["values"] = None
    manifest.write_text(json.dumps(value), encoding="ascii")
    for words in (["compare", "out", "out"], ["report", "out"]):
        ended = ppair.run(*words)
        assert ended.code == 1 and len(ended.lines) == 1, ended
        assert "out: not as it was written" in ended.stderr
