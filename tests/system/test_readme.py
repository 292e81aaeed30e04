"""README.md against the programs: options, exit codes and reasons to stop are all in it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("PPAIR_BIN", ROOT / "build" / "bin"))
README = (ROOT / "README.md").read_text(encoding="ascii")
PROGRAMS = ("psend", "precv")
OPTION = re.compile(r"--[a-z][a-z0-9-]*[a-z0-9]")
# As --help lists them: "  -m, --messages=N", "      --credit=N, --capacity=N".
LISTED = re.compile(r"^ {2}(?:-\w, | {4})(--[^,\s]+(?:, --[^,\s]+)*)", re.M)


def section(title: str) -> str:
    """What is below a heading, to the next one of its level or of a higher one."""
    level = len(title.split(" ")[0])
    end = rf"(?=^#{{1,{level}}} |\Z)"
    found = re.search(rf"^{re.escape(title)}\n(.*?){end}", README, re.M | re.S)
    assert found, title
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Cells of the tables in TEXT, headings included; a bar in a cell is written \\|."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def options_in_help(program: str) -> set[str]:
    """Long ones."""
    words = [str(BIN / program), "--help"]
    shown = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {name for line in LISTED.findall(shown) for name in OPTION.findall(line)}
    assert len(found) > 30
    return found


def options_in_table(program: str) -> set[str]:
    """Those in the first column of the table, of PROGRAM or of both."""
    found: set[str] = set()
    for cells in rows(section("## Options")):
        if len(cells) == 3 and cells[1] in (program, "both"):
            found.update(OPTION.findall(cells[0]))
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_options(program: str) -> None:
    """Each option has a row for its program, and each row is of an option that exists."""
    assert options_in_table(program) == options_in_help(program)


def test_exit_codes() -> None:
    """Each has a row, and no row is of one that the programs or ppair do not have."""
    text = (ROOT / "include" / "fatal.h").read_text(encoding="ascii")
    codes = dict(re.findall(r"\b(EXIT_\w+) = (\d+)", text))
    assert len(codes) > 5
    of_signals = codes.pop("EXIT_BY_SIGNAL")
    ppair_alone = {"7"}
    named = {cells[0] for cells in rows(section("## Exit codes"))} - {"code", "---"}
    assert named == {*codes.values(), f"{of_signals}+n"} | ppair_alone


def test_stop_reasons() -> None:
    """JSON's summary lists all that there are."""
    text = (ROOT / "src" / "notes.c").read_text(encoding="ascii")
    names = re.search(r"NAMES\[\] = \{(.*?)\}", text, re.S)
    listed = re.search(r"`stop_reason` \(([^)]*)\)", section("## JSON"))
    assert names and listed
    reasons = set(re.findall(r'"(\w+)"', names[1])) - {"none"}
    assert len(reasons) > 5
    assert set(listed[1].split(", ")) == reasons


def test_links() -> None:
    """Within the page and to files of the project."""
    headings = re.findall(r"^#+ (.*)", README, re.M)
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in headings}
    for target in re.findall(r"\]\(([^)]+)\)", README):
        file, _, anchor = target.partition("#")
        assert not file or (ROOT / file).exists(), target
        assert file or anchor in anchors, target
