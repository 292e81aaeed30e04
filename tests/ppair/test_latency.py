"""ppair latency against a fake pair with a known knee: what it measures, finds, says and draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_peer import told
from launch import Ended, Launcher
from ppair import (
    latency_search,
    latency_tables,
    loads,
    plots,
    plots_load,
    slo,
    store,
    sustain,
)
from ppair.failure import Failure
from ppair.histogram import Histogram
from ppair.results import Results, Run
from ppair.spec import Spec

Fakes = Callable[..., Path]

KNEE = 800  # messages/s; a closed loop of the fake sends 1000
STEPS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 110, 130)
FEW = ("--steps", "50,100,150", "--settle", "0")


def knee(number: int = KNEE, slow: int = 10**9) -> tuple[list, list]:
    """Behaviours of psend, and of precv, which is slow beyond another rate."""
    psend = ["start", "ready", ["knee", number], "talk", "interval", "summary"]
    return [psend], [["start", "ready", "talk", ["knee", slow], "interval", "summary"]]


def run(ppair: Launcher, folder: Path, *words: str) -> Ended:
    return ppair.run("latency", "--bin", str(folder), "--out", "out", *words)


def rates(folder: Path) -> list[float | None]:
    """That psends were told, in order; None: no rate."""
    found: list[float | None] = []
    for each in told(folder, "psend"):
        argv = each["argv"]
        paced = "--send-rate" in argv
        found.append(float(argv[argv.index("--send-rate") + 1]) if paced else None)
    return found


# ---- what is measured ----


def test_a_known_knee_is_found(ppair: Launcher, fakes: Fakes) -> None:
    """Within a few percent and few runs; then come the steps."""
    folder = fakes(*knee())
    ended = run(ppair, folder, "--settle", "0")
    assert ended.code == 0, ended
    found = ppair.results("out").findings["latency"]
    sustainable = found["sustainable_per_s"]
    assert 0.97 * KNEE <= sustainable <= 1.01 * KNEE  # 1 % more is not noticed
    assert sustainable < found["not_sustained_per_s"] <= 1.04 * KNEE
    assert found["certain"] and found["closed_per_s"] == 1000
    asked = rates(folder)
    assert asked[0] is None and None not in asked[1:]
    assert len(asked) <= 1 + 10 + len(STEPS)
    expected = [share / 100 * sustainable for share in STEPS]
    assert asked[-len(STEPS) :] == pytest.approx(expected)
    assert [step["kept_up"] for step in found["steps"]] == [share <= 100 for share in STEPS]


def test_table_and_sentences(ppair: Launcher, fakes: Fakes) -> None:
    """Each step is a row with its latency and, beside it, what is timed from the sending."""
    ended = run(ppair, fakes(*knee()), *FEW)
    lines = ended.stdout.splitlines()
    assert "messages/s are sustained in open loop" in lines[0]
    assert "a closed loop sends 1000." in lines[0]
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("50%", "150%"))}
    for heading in ("offered/s", "lat p99.9 us", "settle p99 us", "delay p99 us", "kept up"):
        assert heading in tables(ppair)[0]["headings"]
    assert "yes" in rows["50%"] and "no" in rows["150%"]
    assert "Not kept up at 150%: less was sent than was due." in ended.stdout
    assert ended.stdout.isascii()


def test_percentiles_of_few_messages_are_left_out(ppair: Launcher, fakes: Fakes) -> None:
    """p99.9 of 400 would be their maximum."""
    run(ppair, fakes(*knee()), *FEW)
    half = ppair.results("out").findings["latency"]["steps"][0]["latency_ns"]
    assert half["p99.9"] is None and None not in (half["p50"], half["p99"], half["max"])


def test_report_shows_it_again(ppair: Launcher, fakes: Fakes) -> None:
    """All of it, from the directory; and the page has the pictures."""
    ended = run(ppair, fakes(*knee()), *FEW, "--html", "page.html")
    again = ppair.run("report", "out", "--html", "again.html")
    assert again.code == 0 and again.stdout.startswith(ended.stdout)
    pages = [(ppair.folder / name).read_text() for name in ("page.html", "again.html")]
    for page in pages:
        assert page.count("<svg") == 3 and page.count("<h2>Latency against load</h2>") == 1
        assert "<figcaption>Latency is from when a message was due." in page
    assert pages[0] == pages[1]


def test_pictures(ppair: Launcher, fakes: Fakes) -> None:
    """Steps by rate, those that were not kept up with hollow; what a closed loop does not see."""
    ended = run(ppair, fakes(*knee(slow=500)), *FEW, "--slo", "p99=1ms", "--budget", "1s")
    assert ended.code == 0, ended
    results = ppair.results("out")
    assert [step["label"] for step in plots_load.steps(results)] == ["50%", "100%", "150%"]
    assert [one.label for one in plots_load.step_curves(results)] == ["50%", "100%", "150%"]
    labels = [one.label for one in plots_load.omission_curves(results)]
    assert labels[0] == "open loop, 150%: from when due to received" and len(labels) == 4
    load, percentiles, omission = plots.pictures(results)
    assert "Hollow" in (drawn := plots.svg_of(load)) and "Dotted" in drawn
    hollow = drawn.count("fill: #ffffff") + drawn.count('fill="#ffffff"')
    results.findings["latency"]["steps"][2]["kept_up"] = True
    drawn = plots.svg_of(load)
    assert "Hollow" not in drawn
    assert drawn.count("fill: #ffffff") + drawn.count('fill="#ffffff"') < hollow
    assert not plots_load.omission_curves(results)
    assert "150%" in plots.svg_of(percentiles) and omission.name.startswith("03-")


def test_words_of_the_programs(ppair: Launcher, fakes: Fakes) -> None:
    """Each sender has its share of the rate; the closed loop nothing that needs one."""
    folder = fakes(*knee())
    words = ["--poisson=7", "--catch-up", "none", "--batch", "2", "--content-size", "9"]
    ended = run(ppair, folder, *FEW, *words, "--senders", "2", "--duration", "3s")
    assert ended.code == 0, ended
    first, *others = [each["argv"] for each in told(folder, "psend")][1:]
    assert "--content-size" in first and "--duration" in first
    assert not {"--poisson=7", "--catch-up", "--batch", "--start-at"} & set(first)
    sent = ppair.results("out").findings["latency"]["steps"][0]["offered_per_s"]
    last = others[-6]  # of the first step
    assert float(last[last.index("--send-rate") + 1]) == pytest.approx(sent / 2)
    assert {"--poisson=7", "--catch-up", "--batch", "--start-at"} <= set(last)
    durations = [a[max(i for i, w in enumerate(a) if w == "--duration") + 1] for a in others]
    assert durations[0] == "1000000000ns" and durations[-1] == "3s"


def test_repetitions_are_taken_together(ppair: Launcher, fakes: Fakes) -> None:
    run(ppair, fakes(*knee()), *FEW, "--repeat", "2")
    results = ppair.results("out")
    step = next(p for p in results.plan.points if p.values["load"] == "50%")
    assert len(results.good(step.id)) == 2
    (table,) = [t for t in results.findings["tables"] if t["title"] == "Latency against load"]
    assert [row[0] for row in table["rows"]] == ["closed loop", "50%", "100%", "150%"]


def tables(ppair: Launcher) -> list[dict]:
    return list(ppair.results("out").findings["tables"])


def test_a_search_is_told_in_its_order(ppair: Launcher, fakes: Fakes) -> None:
    """With the rule that it went by; its runs are named by their rates."""
    folder = fakes(*knee())
    run(ppair, folder, *FEW)
    results = ppair.results("out")
    (table,) = [t for t in tables(ppair) if t["title"] == "How the highest rate was looked for"]
    asked = [rate for rate in rates(folder)[1:-3] if rate]
    assert [float(row[0]) for row in table["rows"]] == pytest.approx(asked, rel=1e-3)
    assert asked != sorted(asked) and "Sustained: all was sent that was due" in table["notes"][0]
    assert "search at 1000/s" in [point.values["load"] for point in results.plan.points]


def test_a_step_above_that_is_kept_up_with(ppair: Launcher, fakes: Fakes) -> None:
    """Is remarked on."""
    run(ppair, fakes(*knee()), *FEW)
    before = len(ppair.results("out").runs) - 3
    psend, precv = knee()
    steady, _ = knee(10**9)
    folder = fakes(psend * (before + 2) + steady, precv)
    ended = ppair.run("latency", "--bin", str(folder), "--out", "next", *FEW)
    assert "Kept up with above it too: 150% (" in ended.stdout


# ---- objectives ----


def objective(ppair: Launcher, fakes: Fakes, what: str, slow: int = 10**9) -> tuple[dict, str]:
    """What is found, and said of it: latency is 0.2 ms, or 20 ms from SLOW messages/s on."""
    ended = run(ppair, fakes(*knee(slow=slow)), "--steps", "10,40,70,100", *FEW[2:], "--slo", what)
    assert ended.code == 0, ended
    said = next(line for line in ended.stdout.splitlines() if "of the latency below" in line)
    return ppair.results("out").findings["latency"]["slo"], said


@pytest.mark.parametrize("what", ["p99.9=1ms", "max=1ms"])
def test_an_objective_between_two_steps(ppair: Launcher, fakes: Fakes, what: str) -> None:
    """Is narrowed down."""
    found, said = objective(ppair, fakes, what, slow=430)
    assert 0.97 * 430 <= found["per_s"] <= 430 < found["not_per_s"] <= 1.03 * 430
    assert found["certain"] and not found["every"]
    assert said.startswith(f"{what.partition('=')[0]} of the latency below 1 ms: up to 4")


def test_an_objective_that_all_rates_meet(ppair: Launcher, fakes: Fakes) -> None:
    found, said = objective(ppair, fakes, "p99=1s")
    assert found["every"] and said.endswith(
        f"at every step that is kept up with, up to {found['per_s']:.4g} messages/s."
    )
    assert not any(p.values["load"].startswith("slo") for p in ppair.results("out").plan.points)


def test_an_objective_that_no_rate_meets(ppair: Launcher, fakes: Fakes) -> None:
    found, said = objective(ppair, fakes, "p99=100us")
    assert found["per_s"] is None and not found["every"]
    assert "at no rate that was tried, down to" in said
    (table,) = [t for t in tables(ppair) if t["title"] == "How p99 below 100 us was looked for"]
    assert table["headings"][-2:] == ["p99 met", "sustained"]
    assert {tuple(row[-2:]) for row in table["rows"]} == {("no", "yes")}
    least = 0.02 * ppair.results("out").findings["latency"]["sustainable_per_s"]
    assert found["least_tried_per_s"] <= least


def test_an_objective_below_the_lowest_step(ppair: Launcher, fakes: Fakes) -> None:
    found, _ = objective(ppair, fakes, "p99=1ms", slow=40)
    assert 38 <= found["per_s"] <= 41  # whole messages, of a second


def test_a_step_s_rate_that_is_tried_again(ppair: Launcher, fakes: Fakes) -> None:
    """Has a point of its own: the step has the runs that were asked for, and the search all of its
    own in its table, which are short ones."""
    run(ppair, fakes(*knee()), *FEW)
    before = len(ppair.results("out").runs) - 3
    psend, precv = knee()
    _, slow = knee(slow=0)  # once, at 50%: the next rate met it, so it is asked again
    folder = fakes(psend, precv * before + slow + precv)
    words = ["--slo", "p99=1ms", "--duration", "3s", "--probe", "1s"]
    ended = ppair.run("latency", "--bin", str(folder), "--out", "next", *FEW, *words)
    assert ended.code == 0, ended
    results = ppair.results("next")
    runs = {p.values["load"]: results.of_point(p.id) for p in results.plan.points}
    assert [len(runs[label]) for label in ("50%", "100%", "150%")] == [1, 1, 1]
    rate = results.findings["latency"]["steps"][0]["offered_per_s"]
    tried = [each for label in runs if label.startswith("slo at ") for each in runs[label]]
    assert len(tried) == 2 and rates(folder)[-2:] == pytest.approx([rate] * 2)
    (table,) = [t for t in results.findings["tables"] if t["title"].startswith("How p99 below")]
    assert [float(row[0]) for row in table["rows"]] == pytest.approx([rate] * 2, rel=1e-3)
    assert table["notes"][0].endswith("and the runs of the steps count as well.")
    for each, duration in [(runs["50%"][0], "3s"), *((one, "1000000000ns") for one in tried)]:
        argv = next(peer.argv for peer in each.peers if peer.name.startswith("psend"))
        assert [b for a, b in zip(argv, argv[1:]) if a == "--duration"][-1] == duration


def test_labels_of_a_search() -> None:
    """Five digits, or all; a kind's own."""
    assert loads.probe_label("slo", 812.5) == "slo at 812.5/s"
    close = [loads.probe_label("slo", rate, exact=True) for rate in (812.5, 812.5 + 1e-12)]
    assert close[0] == "slo at 812.5/s" != close[1]
    assert loads.is_probe_of("slo", close[1]) and not loads.is_probe_of("search", close[1])
    assert [loads.is_probe({"load": label}) for label in (close[1], "50%")] == [True, False]


@pytest.mark.parametrize("text", ["p99", "p99=", "p99=0", "p0=1ms", "p100=1ms", "q=1s", "p99=1x"])
def test_objectives_that_are_refused(text: str) -> None:
    with pytest.raises(Failure, match="--slo"):
        slo.parse(text)


def test_objectives() -> None:
    """Below is below."""
    latency = Histogram({100: 99, 200: 1}, 0.0, 100, 200)
    values = [slo.value_ns(latency, name) for name in ("p50", "p99", "p99.5", "max")]
    assert values == [100, 100, 200, 200]
    assert not slo.parse("p99=100ns").is_met(latency) and slo.parse("p99=101ns").is_met(latency)
    assert slo.parse("max=201ns").is_met(latency) and not slo.parse("max=200ns").is_met(latency)
    assert not slo.parse("max=1s").is_met(Histogram())
    needed = [slo.messages_needed(name) for name in ("p50", "p99", "p99.9", "p99.99", "max")]
    assert needed == [2, 100, 1000, 10000, 1]


# ---- what goes wrong ----


def test_no_rate_is_sustained(ppair: Launcher, fakes: Fakes) -> None:
    """It is said, and it ends."""
    ended = run(ppair, fakes(*knee(0)), *FEW)
    assert ended.code == 4 and "messages/s: nothing was sent" in ended.stderr
    assert ppair.results("out").status == "failed"


def test_a_closed_loop_that_is_too_slow(ppair: Launcher, fakes: Fakes) -> None:
    """Its messages are not settled in time: the search begins with what was received."""
    (psend,), precv = knee()
    left = {"exit_code": 4, "complete": False}
    folder = fakes([[*psend[:-1], ["summary", left]], psend], precv)
    ended = run(ppair, folder, *FEW)
    assert ended.code == 0, ended
    assert "The closed loop failed, and the search began lower: psend-0" in ended.stdout
    found = ppair.results("out").findings["latency"]
    assert found["closed_per_s"] is None and 0.97 * KNEE <= found["sustainable_per_s"]


def test_what_there_is_is_shown_of_a_failure(ppair: Launcher, fakes: Fakes) -> None:
    """Tables, page and where it is; the failure is the last line."""
    ended = run(ppair, fakes(*knee(0)), *FEW, "--html", "page.html")
    assert "How the highest rate was looked for" in ended.stdout
    assert "results: out" in ended.lines and ended.lines[-1].startswith("ppair: ")
    assert (ppair.folder / "page.html").exists()


def test_a_small_budget_ends_with_a_rate(ppair: Launcher, fakes: Fakes) -> None:
    """The search goes on, downwards, until one is sustained; it is not certain then."""
    ended = run(ppair, fakes(*knee(100)), *FEW, "--budget", "1ms")
    assert ended.code == 0, ended
    found = ppair.results("out").findings["latency"]
    assert 90 <= found["sustainable_per_s"] <= 101 and not found["certain"]


def test_a_closed_loop_that_fails(ppair: Launcher, fakes: Fakes) -> None:
    ended = run(ppair, fakes([["start", ["exit", 3]]]), *FEW)
    assert ended.code == 3 and ended.lines[-1].startswith("ppair: in a closed loop: psend-0")


def test_a_step_that_fails(ppair: Launcher, fakes: Fakes) -> None:
    """Is in the table as what was not kept up with, and decides how ppair ends."""
    run(ppair, fakes(*knee()), *FEW)
    before = len(ppair.results("out").runs) - 3
    psend, precv = knee()
    folder = fakes(psend * before + [["start", ["exit", 6]]] + psend, precv)
    ended = ppair.run("latency", "--bin", str(folder), "--out", "next", *FEW)
    assert ended.code == 6, ended
    assert "Not kept up with below it: 50%." in ended.stdout
    steps = ppair.results("next").findings["latency"]["steps"]
    assert [step["kept_up"] for step in steps] == [False, True, False]
    assert "exit code 6" in steps[0]["why"]


@pytest.mark.parametrize(
    "words",
    [
        ["--send-rate", "5"],
        ["--messages", "5"],
        ["--steps", "110"],
        ["--steps", "5,x"],
        ["--slo", "fast"],
        ["--within", "0"],
        ["--probe", "0"],
        ["--repeat", "0"],
        ["--settle", "soon"],
    ],
)
def test_refused(ppair: Launcher, fakes: Fakes, words: list[str]) -> None:
    """In one line that names it, before anything is made."""
    ended = run(ppair, fakes(), *words)
    assert ended.code == 64 and len(ended.lines) == 1 and words[0] in ended.stderr
    assert not (ppair.folder / "out").exists()


# ---- results ----


def test_an_objective_says_why_it_was_not_looked_for(tmp_path: Path) -> None:
    results = Results(tmp_path, store.Plan("latency", "T", (), (), 0, 0), (), {}, 0)
    results.why = "interrupted by SIGINT"
    search = latency_search.RateSearch(
        results, Spec(), None, 0.02, (), (0.5,), 1, 0.0, 1.0  # type: ignore[arg-type]
    )
    search.slo = slo.Slo("p99", 10**9)
    said = latency_tables.findings(search)["sentences"][-1]
    assert said == "p99 of the latency below 1 s: not looked for: interrupted by SIGINT."


def test_probes_that_do_not_meet_an_objective(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Are told of beside the steps that all do."""
    results = Results(tmp_path, store.Plan("latency", "T", (), (), 0, 0), (), {}, 0)
    search = latency_search.RateSearch(
        results, Spec(), None, 0.02, (), (0.5,), 1, 0.0, 1.0  # type: ignore[arg-type]
    )
    search.slo = slo.Slo("p99", 10**6)
    search.slo_trials.append(sustain.Trial(100.0, True))
    probes = [(rate, Run(0, n, 0, status="good")) for n, rate in enumerate((90.0, 100.0, 110.0))]
    monkeypatch.setattr(latency_tables, "_probes", lambda search, kind: probes)
    found = Histogram({2 * 10**6: 100}, 0.0, 2 * 10**6, 2 * 10**6)
    monkeypatch.setattr(latency_tables.run_files, "merged_histogram", lambda *more: found)
    said = latency_tables.findings(search)["sentences"][-1]
    assert "up to 100 messages/s, but not in 2 of 2 runs of the search (p99 up to 2 ms)." in said


def test_interrupted_at_first(tmp_path: Path) -> None:
    """Nothing is lost, and what there is can be shown."""
    results = Results(tmp_path, store.Plan("latency", "T", (), (), 0, 0), (), {}, 0)
    search = latency_search.RateSearch(
        results, Spec(), None, 0.02, (), (0.5,), 1, 0.0, 1.0  # type: ignore[arg-type]
    )
    found = latency_tables.findings(search)
    assert found["sentences"] == ["No rate has been found that is sustained."]
    assert found["tables"] == []
    results.findings = found
    assert plots.pictures(results) == []
