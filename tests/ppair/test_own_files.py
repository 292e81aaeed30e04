"""Options of psend and precv that name a file, or would take ppair's standard streams."""

from __future__ import annotations

import json
from pathlib import Path

import launch
import pytest
from launch import Launcher
from ppair import programs
from ppair.failure import Exit
from ppair.programs import EACH, PROGRAMS, RESERVED, WRITTEN

SHORT = ("--duration", "50ms", "--warmup", "10ms")
READ = {"--content-file", "--password-file", "--tls-ca", "--tls-cert", "--tls-key"}
STREAMS = ("--content-stdin", "--print-content", "--print-headers")


def _options() -> dict[str, programs.Option]:
    """Of both programs, by their long names."""
    return {
        option.name: option
        for program in PROGRAMS
        for option in programs.options_of(launch.BIN, program).values()
    }


def test_each_option_that_names_a_file_is_of_one_kind() -> None:
    """Read by all, written by each, or not taken; a new one must be thought of."""
    named = {name for name, option in _options().items() if option.argument == "FILE"}
    kinds = (READ, set(WRITTEN), set(RESERVED) & named)
    assert named == set().union(*kinds)
    assert sum(map(len, kinds)) == len(named)


@pytest.mark.parametrize("name", sorted({*WRITTEN, *STREAMS, *RESERVED}))
def test_what_is_refused_is_refused_in_one_line_before_anything_runs(
    name: str, ppair: Launcher
) -> None:
    """A file for all, whether one program has the option or both; and the streams."""
    value = [] if _options()[name].argument is None else ["one"]
    ended = ppair.run("run", *SHORT, name, *value)
    assert ended.code == Exit.USAGE and not ended.stdout
    assert len(ended.lines) == 1 and f"{name}" in ended.lines[0]
    assert not list(ppair.folder.iterdir())


def test_a_name_without_place_for_a_name_is_refused_everywhere(ppair: Launcher) -> None:
    """In each way to give an option, and by each command that measures."""
    for words in (
        ("run", "--psend.output", "one"),
        ("run", "--repeat", "1", "--psend", "--output one"),
        ("run", "-o", "one"),
        ("sweep", "--credit", "1,2", "--output=one"),
        ("compare", "--save-content one", ""),
        ("tune", "-o", "one"),
        ("latency", "-o", "one"),
        ("soak", "-m", "1k", "-o", "one"),
    ):
        ended = ppair.run(*words)
        assert ended.code == Exit.USAGE and f"with {EACH} in its name" in ended.stderr, words
    assert not list(ppair.folder.iterdir())


def test_each_program_of_each_run_has_its_own(ppair: Launcher) -> None:
    """Reports, and what was received: complete, and of one program each."""
    words = ("--senders", "2", "--receivers", "2", "--repeat", "2", "-m", "50", "--out", "out")
    files = ("-o", f"r-{EACH}.json", "--save-content", f"c-{EACH}", "--content-string", "body")
    ended = ppair.run("run", *words, *files)
    assert ended.code == 0, ended
    results = ppair.results("out")
    expected = {
        f"{run.folder}-{peer.name}": launch.events_of(results, run.folder, peer.name)
        for run in results.runs
        for peer in run.peers
    }
    found = {
        path.name.split("-", 3)[3].removesuffix(".json"): path.read_text(encoding="ascii")
        for path in ppair.folder.glob("r-ppair-*.json")
    }
    assert set(found) == set(expected) and len(found) == 8
    for name, text in found.items():
        assert [json.loads(line) for line in text.splitlines()] == expected[name]
    saved = [path.read_text(encoding="ascii") for path in ppair.folder.glob("c-ppair-*")]
    assert saved == [50 * "body"] * 4


def test_two_experiments_do_not_meet(ppair: Launcher) -> None:
    """The run's name has the time in it, as at a broker."""
    for out in ("a", "b"):
        words = ("--repeat", "1", "-m", "5", "--save-content", EACH, "--out", out)
        assert ppair.run("run", *words).code == 0
    assert len(list(ppair.folder.glob("ppair-*-p000-r00-precv-0"))) == 2


def test_what_is_no_file_may_be_one_for_all(ppair: Launcher, tmp_path: Path) -> None:
    """A device or a pipe; it is asked for to see what writing costs."""
    words = ("--psend.output", "/dev/null", "--save-content", "/dev/null")
    words += ("--repeat", "2", "-m", "50")
    assert ppair.run("run", *words).code == 0
    (tmp_path / "folder").mkdir()
    assert ppair.run("run", "--save-content", str(tmp_path / "folder")).code == Exit.USAGE
