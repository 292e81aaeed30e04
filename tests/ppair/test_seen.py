"""What a run has measured because an option asked for it is in its tables; with the real pair."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch import Launcher
from ppair import metrics, page, tables
from ppair.metrics import CHOSEN, KNOWN
from ppair.results import Results

SHORT = ("--duration", "80ms", "--warmup", "20ms", "--repeat", "1")
ASKING = {
    "--batch": "--batch 20 --max-unsettled 20",
    "--tsc": "--tsc --batch 20 --max-unsettled 20",
    "--round-trip": "--round-trip --reply",
    "--send-rate": "--send-rate 2000",
    "--send-rate --batch": "--send-rate 2000 --batch 10",
    "--busy-poll": "--busy-poll --credit 100",
}
TOLD_OTHERWISE = {"rate_met"}  # by a warning


def _measured(results: Results) -> set[str]:
    (run,) = results.runs
    return {name for name, value in run.metrics.items() if value is not None}


@pytest.fixture(name="always", scope="module")
def _always(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[str]]:
    """What is measured without being asked for."""
    launcher = Launcher(tmp_path_factory.mktemp("always"))
    assert launcher.run("run", *SHORT, "--out", "out").code == 0
    yield _measured(launcher.results("out"))
    launcher.close()


@pytest.mark.parametrize("words", ASKING.values(), ids=ASKING)
def test_what_an_option_has_measured_is_seen(
    words: str, always: set[str], ppair: Launcher, tmp_path: Path
) -> None:
    """In text, markdown and on the page; in CSV, where everything is."""
    ended = ppair.run("run", *SHORT, *shlex.split(words), "--out", "out", "--html", "page.html")
    assert ended.code == 0, ended
    results = ppair.results("out")
    asked = _measured(results) - always - TOLD_OTHERWISE
    found = [metrics.BY_NAME[name] for name in asked]
    assert any(metric.seen is KNOWN for metric in found)
    assert not [metric.name for metric in found if metric.seen is CHOSEN]
    headings = [metric.heading for metric in found if metric.seen is KNOWN]
    assert set(headings) <= set(tables.main_table(results).headings)
    markdown = tables.markdown_report(results)
    html = (tmp_path / "page.html").read_text(encoding="ascii")
    for heading in headings:
        assert f" {heading} |" in markdown
        assert f">{page.text(heading)}</th>" in html
        assert set(heading.split()) <= set(ended.stdout.split())
    csv = ppair.run("report", "out", "--format", "csv").stdout
    assert asked <= set(csv.splitlines()[0].split(","))


def test_what_was_not_asked_for_is_not_there(ppair: Launcher) -> None:
    """Of a plain run there is no column without a number."""
    ended = ppair.run("run", *SHORT, "--out", "out")
    assert ended.code == 0, ended
    (row,) = tables.main_table(ppair.results("out")).rows
    assert "-" not in row


def test_a_sweep_shows_it_for_the_points_that_have_it(ppair: Launcher) -> None:
    """Each batch of its own size."""
    words = ("--batch", "1,20", "--max-unsettled", "20", "--out", "out")
    ended = ppair.run("sweep", *SHORT, *words)
    assert ended.code == 0, ended
    found = tables.main_table(ppair.results("out"))
    times = [row[found.headings.index("batch p50 ns")] for row in found.rows]
    assert len(times) == 2 and all(float(time) > 0 for time in times if time != "-")
    assert times[1] != "-"
