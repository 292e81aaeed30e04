"""The table in tests/README.md names tests that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)(?:\[([^\]]+)\])?`")


@pytest.fixture(scope="module", name="collected")
def _collected() -> list[str]:
    """FILE::TEST[PARAMETERS] of all tests of this folder."""
    words = [sys.executable, "-m", "pytest", "--collect-only"]
    found = subprocess.run([*words, str(HERE)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    return [line.rsplit("/", 1)[-1] for line in found.stdout.splitlines() if "::" in line]


def parameters(collected: list[str], file: str, test: str) -> list[set[str]]:
    """Those of each test with this name: words between the hyphens."""
    pattern = re.compile(rf"{re.escape(file)}::{test}(?:\[(.*)\])?$")
    matches = [pattern.match(line) for line in collected]
    return [set((match[1] or "").split("-")) for match in matches if match]


def test_named_tests_exist(collected: list[str]) -> None:
    """With the values of parameters that are named, too."""
    named = NAMED.findall((HERE.parent / "README.md").read_text(encoding="ascii"))
    assert len(named) > 50
    for file, test, values in named:
        found = parameters(collected, file, test)
        assert found, f"{file}::{test} does not exist"
        for value in filter(None, values.split(", ")):
            wanted = set(value.split("-"))
            assert any(wanted <= each for each in found), f"{file}::{test} has no {value}"


def test_tests_are_named(collected: list[str]) -> None:
    """All tests of this folder but those of the table itself are in the table."""
    named = {(f, t) for f, t, _ in NAMED.findall((HERE.parent / "README.md").read_text("ascii"))}
    tests = {tuple(line.split("[")[0].split("::")) for line in collected}
    assert {test for test in tests - named if test[0] != "test_readme.py"} == set()
