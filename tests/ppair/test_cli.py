"""The command line as a whole: refusals in one line, help that is quick, and how ppair ends."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import man_layout
import pytest
from fake_peer import WELL, install, told
from ppair import cli
from ppair.failure import Exit, Failure

Run = Callable[..., tuple[int, str, str]]

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
HELP_CPU_S = 0.5
HEAVY = ("matplotlib", "scipy", "numpy", "rich", "ClusterShell")
MAIN = """
import sys
from pathlib import Path
from ppair.cli import main
code = main(sys.argv[2:], Path(sys.argv[1]))
print(*(name for name in sys.modules if "." not in name), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the programs: one for all, whose options are read once."""
    return install(tmp_path_factory.mktemp("bin"), [WELL], [WELL])


@pytest.fixture(name="run")
def _run(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """ppair, here, in a folder of its own: exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(words, folder)
        return int(code), *capfd.readouterr()

    return run


def _process(
    words: Sequence[str], stdout: IO[str] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/usr/bin/python3", "-c", MAIN, "/nowhere", *words],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


# ---- refusals ----

REFUSED = [
    [],
    ["--no-such"],
    ["walk"],
    ["Run"],
    ["run\n"],
    ["run", "extra"],
    ["run", "--no-such", "5"],
    ["run", "--listen", "x"],
    ["run", "--repeat", "0"],
    ["run", "--repeat", "x"],
    ["run", "--repeat"],
    ["run", "--repeat", "\u00e9"],
    ["run", "--repeat", "a\nb"],
    ["run", "--json=1"],
    ["run", "\u4e2d\u6587"],
    ["run", "two\nlines"],
    ["run", "--psend", "--no\nsuch"],
    ["run", "--psend", "\x1b[31m"],
    ["run", "--senders", "1", "--receivers", "2"],
    ["run", "--psend-host", "a"],
    ["run", "--psend-host", "[["],
    ["run", "--duration", "5m"],
    ["run", "--deadline", "0"],
    ["run", "--resume", "x"],
    ["run", "--out", "."],
    ["sweep"],
    ["sweep", "--credit", "10"],
    ["sweep", "--credit", "10..1"],
    ["sweep", "--credit", "10,,20"],
    ["sweep", "--credit", "1,2", "--credit", "3,4"],
    ["sweep", "--preset", "no-such"],
    ["sweep", "--preset", "credit-stall", "--credit", "1,2"],
    ["sweep", "--credit", "1,2", "--seed", "x"],
    ["sweep", "--credit", "1..10000 step 1", "--max-frame", "1..10000 step 1"],
    ["sweep", "--credit", "1,2", "--senders", "1", "--receivers", "2"],
]


@pytest.mark.parametrize("words", REFUSED, ids=ascii)
def test_a_refusal_is_one_line_of_ascii(
    run: Run, words: list[str], folder: Path, tmp_path: Path
) -> None:
    code, out, err = run(*words)
    assert (code, out) == (Exit.USAGE, "")
    assert err.startswith("ppair: ") and err.endswith("\n") and err.count("\n") == 1
    assert err.isascii() and err[:-1].isprintable()
    assert not list(tmp_path.iterdir())
    assert not told(folder, "psend") and not told(folder, "precv")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "which command? run, sweep, tune, latency, compare, soak, report; see --help"),
        (
            ["walk"],
            "walk: unknown command; there are run, sweep, tune, latency, compare, soak, report",
        ),
        (["run", "two\nlines"], "unrecognized arguments: two\\nlines"),
        (["run", "--psend", "\u00e9"], 'psend: "\\xe9" is not an option; ppair sets the URL'),
        (
            ["run", "--no-such"],
            "--no-such: unknown option, of ppair, psend and precv alike; see --help",
        ),
        (["sweep"], "nothing to vary: give an option several values, or a --preset"),
        (
            ["sweep", "--preset", "credit-stall", "--credit", "1,2"],
            "--credit: a preset has its own axes: give one value",
        ),
    ],
)
def test_a_refusal_says_what(run: Run, words: list[str], why: str) -> None:
    assert run(*words)[2] == f"ppair: {why}\n"


def test_words_that_are_no_text(run: Run) -> None:
    """Bytes that are not UTF-8, as they come from the system."""
    code, _, err = run("run", "\udcff")
    assert (code, err) == (64, "ppair: unrecognized arguments: \\udcff\n")


def test_programs_that_are_not_there(run: Run, tmp_path: Path) -> None:
    code, out, err = run("run", "--bin", str(tmp_path / "none"), "--credit", "5")
    assert (code, out) == (Exit.INTERNAL, "")
    path = tmp_path / "none" / "psend"
    assert err == f"ppair: {path}: No such file or directory; --bin DIR says where it is\n"


# ---- help ----


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in cli.COMMANDS)])
def test_help_is_quick_and_needs_nothing(words: list[str]) -> None:
    """The least of three, as other programs run; nothing heavy is imported."""
    times_s = []
    for _ in range(3):
        before_s = _cpu_s()
        ended = _process(words)
        times_s.append(_cpu_s() - before_s)
        assert ended.returncode == 0, ended.stderr
        if times_s[-1] < HELP_CPU_S:
            break
    assert min(times_s) < HELP_CPU_S
    assert ended.stdout.isascii() and ended.stdout.startswith("Usage: ppair ")
    assert not set(HEAVY) & set(ended.stderr.split())


def test_help_is_enough() -> None:
    found = _process(["--help"]).stdout
    for name, what in cli.COMMANDS.items():
        assert f"  {name:9}{what}\n" in found
    for code in Exit:
        assert f"{int(code)} " in found
    assert max(map(len, found.splitlines())) <= 100


@pytest.mark.parametrize("words", [["--version"], ["run", "--version"], ["report", "--version"]])
def test_version(run: Run, words: list[str]) -> None:
    name = "-".join(["ppair", *words[:-1]])
    assert run(*words) == (0, f"{name} 0.1.0\n", "")


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"]])
def test_help_into_a_full_disk(words: list[str]) -> None:
    with open("/dev/full", "w", encoding="ascii") as full:
        ended = _process(words, stdout=full)
    assert ended.returncode == 1
    assert ended.stderr.startswith("ppair: No space left on device\n")
    assert "Exception" not in ended.stderr


def test_help_to_somebody_who_does_not_listen() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = _process(["--help"], stdout=writer)
    os.close(writer)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr


# ---- how a command ends ----


@pytest.mark.parametrize(
    ("ends", "code", "err"),
    [
        (Exit.SHORT, 4, ""),
        (Failure(Exit.AUTHENTICATION, "caf\u00e9\nor tea"), 3, "ppair: caf\\xe9\\nor tea\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 1, ""),
        (PermissionError(13, "No", "x\ny"), 1, "ppair: x\\ny: No\n"),
    ],
)
def test_how_a_command_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch, ends: BaseException | int, code: int, err: str
) -> None:
    def main(_: object) -> int:
        if isinstance(ends, BaseException):
            raise ends
        return ends

    command = SimpleNamespace(
        USAGE="", __doc__="", add_arguments=lambda parser: None, main=main
    )
    monkeypatch.setitem(sys.modules, "ppair.commands.soak", command)
    found = run("soak")
    assert (found[0], found[2]) == (code, err)


def test_run_prints_its_table_and_where_results_are(run: Run, tmp_path: Path) -> None:
    code, out, err = run("run", "--repeat", "2", "--messages", "500")
    assert code == 0
    assert "500" in out and out.isascii()
    (folder,) = (tmp_path / "ppair-results").iterdir()
    assert err == f"results: ppair-results/{folder.name}\n"


def test_json_is_all_that_is_printed(run: Run) -> None:
    code, out, _ = run("run", "--repeat", "1", "--json", "--out", "out")
    assert code == 0
    summary = json.loads(out)
    assert summary == json.loads(Path("out/summary.json").read_text(encoding="ascii"))
    assert summary["points"][0]["metrics"]["messages_per_s"]["mean"] == 1000


# ---- man pages ----


def test_examples_are_lines_of_a_man_page() -> None:
    usage = "Does it.\n\n  ppair run a    one\\\n  ppair run --b\n\nMore.\n\noptions:\n  ppair x\n"
    lines = man_layout.examples(usage)
    assert lines == ["  ppair run a    one\\", "  ppair run --b"]
    page = ["Does it.", ".TP", "ppair run a", "one", ".IP", "ppair run", ".PP", "More.", ".SS x"]
    made = man_layout.with_examples(page, lines)
    shown = [".nf", "\\&ppair run a    one\\e", "\\&ppair run \\-\\-b", ".fi"]
    assert made == ["Does it.", ".PP", ".RS 4", *shown, ".RE", ".PP", "More.", ".SS x"]
    assert man_layout.with_examples(page[:1], []) == page[:1]


def test_options_of_a_preset_stand_within_it_in_a_man_page() -> None:
    head = ['.SS "presets, and so on:"']
    option = [".TP", "-t", "many"]
    page = [*head, ".IP", "tasks", ".IP", "A text.", *option, ".IP", "tls", ".IP", "B b"]
    made = ["A text.", ".RS", *option, ".RE", ".TP", "\\fBtls\\fR", "B b"]
    assert man_layout.with_presets(page) == [*head, ".TP", "\\fBtasks\\fR", *made]
    assert man_layout.with_presets(page[:8])[-1] == ".RE"
