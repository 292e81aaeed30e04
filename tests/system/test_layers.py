"""The source: who includes whom, what is used where, and how long things are."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 440

# Modules (a file's name without its end) by layer, 0 first.
MODULES = (
    "awaited big_endian clock encoding fatal field hex histogram kept lines mix outlet section"
    " units url",
    "backoff batches content_check credit groups numbering pacer schedule sequence waking",
    "put report report_columns report_csv report_hdr report_json report_text stats",
    "answer answer_links answer_part connections dialer endpoints engine listener message poller"
    " redirect security socket stamp text tls_verdict trace trap",
    "notes option_check option_connection option_message option_table options parent reporter"
    " signals worker",
    "answering asking content incoming outgoing pacing precv printer psend sending"
    " settling",
)
LAYERS = {name: layer for layer, names in enumerate(MODULES) for name in names.split()}

# What a module may include of its own layer, besides its own header.
SAME_LAYER = {
    ("awaited", "fatal"),
    ("hex", "big_endian"),
    ("kept", "fatal"),
    ("lines", "fatal"),
    ("outlet", "fatal"),
    ("numbering", "sequence"),
    ("report", "stats"),
    ("report_json", "report"),
    ("report_json", "put"),
    ("report_columns", "report"),
    ("report_csv", "report_columns"),
    ("report_text", "report_columns"),
    ("report_hdr", "report"),
    ("socket", "poller"),
    ("socket", "trap"),
    ("dialer", "socket"),
    ("listener", "poller"),
    ("listener", "socket"),
    ("answer", "stamp"),
    ("answer_links", "connections"),
    ("answer_links", "endpoints"),
    ("answer_links", "engine"),
    ("connections", "endpoints"),
    ("connections", "redirect"),
    ("connections", "engine"),
    ("endpoints", "answer_links"),
    ("endpoints", "connections"),
    ("endpoints", "engine"),
    ("connections", "security"),
    ("endpoints", "security"),
    ("security", "tls_verdict"),
    ("security", "trace"),
    ("engine", "answer_links"),
    ("engine", "connections"),
    ("engine", "dialer"),
    ("engine", "endpoints"),
    ("engine", "listener"),
    ("engine", "poller"),
    ("options", "option_check"),
    ("options", "option_table"),
    ("option_check", "options"),
    ("option_check", "option_connection"),
    ("option_check", "option_table"),
    ("option_connection", "options"),
    ("option_check", "option_message"),
    ("option_message", "options"),
    ("option_message", "option_table"),
    ("option_table", "options"),
    ("worker", "notes"),
    ("worker", "options"),
    ("reporter", "options"),
    ("reporter", "worker"),
    ("reporter", "parent"),
    ("reporter", "signals"),
    ("psend", "outgoing"),
    ("asking", "outgoing"),
    ("outgoing", "asking"),
    ("outgoing", "content"),
    ("outgoing", "pacing"),
    ("outgoing", "sending"),
    ("sending", "outgoing"),
    ("settling", "outgoing"),
    ("settling", "sending"),
    ("psend", "settling"),
    ("precv", "incoming"),
    ("answering", "incoming"),
    ("incoming", "answering"),
    ("incoming", "printer"),
}

# System headers that only these files may include.
RESERVED = {
    "argp.h": {"options.c"},
    "pthread.h": {"worker.c", "worker.h", "parent.c", "signals.c"},
    "semaphore.h": {"notes.h"},
    "jansson.h": {"put.h", "reporter.c"},  # reporter: its version
    **dict.fromkeys(
        ["dlfcn.h", "openssl/ssl.h", "openssl/err.h", "openssl/x509_vfy.h"], {"tls_verdict.c"}
    ),
    "poll.h": {
        *("poller.h", "poller.c", "dialer.c", "lines.c", "outlet.c"),
        *("parent.c", "printer.c", "reporter.c", "signals.c"),
    },
    "zlib.h": {"content_check.c"},
}
PROTON_LAYER = 3
# Outside that layer and the programs: the library's version, for reports.
PROTON_ELSEWHERE = {("options.c", "proton/version.h"), ("reporter.c", "proton/version.h")}

TESTS = [file for end in ("py", "c") for file in ROOT.glob(f"tests/*/test_*.{end}")]

TOP_LEVEL = {"CMakeLists.txt", "src", "include", "scripts", "tests", "README.md", "LICENSE"}


def sources() -> list[Path]:
    """All C files and headers."""
    files = sorted([*ROOT.glob("src/*.c"), *ROOT.glob("include/*.h")])
    assert len(files) > 30
    return files


def includes(file: Path) -> Iterator[str]:
    """What a file includes, as it is written there."""
    for line in file.read_text(encoding="ascii").splitlines():
        if match := re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line):
            yield match[1]


def own(name: str) -> str | None:
    """The module of a header of ours."""
    module = name.removesuffix(".h")
    return module if module in LAYERS and "/" not in name else None


FILES = pytest.mark.parametrize("file", sources(), ids=lambda path: path.name)


@FILES
def test_every_file_has_a_layer(file: Path) -> None:
    """A new module must be given one; everything in quotes is a module."""
    assert file.stem in LAYERS
    text = file.read_text(encoding="ascii")
    for name in re.findall(r'#include "([^"]+)"', text):
        assert own(name), name


@FILES
def test_a_layer_includes_lower_ones(file: Path) -> None:
    """Of its own, only what is listed above."""
    for module in filter(None, map(own, includes(file))):
        if module != file.stem and (file.stem, module) not in SAME_LAYER:
            assert LAYERS[module] < LAYERS[file.stem], f"{file.name} includes {module}.h"


def test_list_of_exceptions_is_not_longer_than_needed() -> None:
    """What is allowed is used."""
    used = {(file.stem, own(name)) for file in sources() for name in includes(file)}
    assert SAME_LAYER <= used
    assert all(LAYERS[a] == LAYERS[b] for a, b in SAME_LAYER)
    assert PROTON_ELSEWHERE <= {(f.name, n) for f in sources() for n in includes(f)}


@FILES
def test_system_headers(file: Path) -> None:
    """Each has its place."""
    for name in includes(file):
        assert file.name in RESERVED.get(name, {file.name}), f"{file.name} includes {name}"
        if name.startswith("proton/") and LAYERS[file.stem] not in (PROTON_LAYER, 5):
            assert (file.name, name) in PROTON_ELSEWHERE, f"{file.name} includes {name}"


@FILES
def test_clocks_are_read_in_one_place(file: Path) -> None:
    """And leaves call nothing but libc."""
    text = file.read_text(encoding="ascii")
    used = re.search(r"\b(clock_gettime|gettimeofday|time\(NULL\))", text)
    assert not used or file.name == "clock.c"
    if LAYERS[file.stem] == 1:
        assert "clock_" not in text  # arithmetic only: the time is an argument
    if LAYERS[file.stem] < PROTON_LAYER:
        assert not re.search(r"\bpn_\w+\(", text)


def functions(text: str) -> Iterator[tuple[str, int]]:
    """First line of each function, and the lines from its brace to the other."""
    lines = text.splitlines()
    began = None
    for number, line in enumerate(lines):
        if line == "{":
            began = number
        elif line == "}" and began is not None:
            yield lines[began - 1], number - began + 1
            began = None


@FILES
def test_functions_fit_a_screen(file: Path) -> None:
    """And files stay short."""
    text = file.read_text(encoding="ascii")
    assert text.count("\n") <= FILE_LINES_MAX
    for name, length in functions(text):
        assert length <= FUNCTION_LINES_MAX, name


def test_functions_are_found() -> None:
    """So that the test above can fail."""
    found = [f for file in sources() for f in functions(file.read_text(encoding="ascii"))]
    assert len(found) > 200 and max(length for _, length in found) > 20


@FILES
def test_headers(file: Path) -> None:
    """Each says what it is and of which layer, and guards itself; so does each program."""
    text = file.read_text(encoding="ascii")
    layer = re.search(r"^/\*.*?Layer (\d)", text, re.S)
    if file.suffix == ".h" or file.stem in ("psend", "precv"):
        assert layer and int(layer[1]) == LAYERS[file.stem]
        assert file.suffix == ".c" or f"#ifndef {file.stem.upper()}_H" in text


def test_ascii() -> None:
    """In everything that is ours; tabs in C alone."""
    files = [f for d in ("src", "include", "scripts") for f in (ROOT / d).rglob("*") if f.is_file()]
    for file in files:
        content = file.read_bytes()
        assert content.isascii(), file
        assert b"\r" not in content and b" \n" not in content and content.endswith(b"\n"), file


@FILES
def test_lines_fit(file: Path) -> None:
    """100 columns, a tab being eight."""
    for line in file.read_text(encoding="ascii").splitlines():
        assert len(line.expandtabs(8)) <= 100, line


def test_lines_of_python_fit() -> None:
    """In scripts and tests."""
    files = [*ROOT.glob("scripts/**/*.py"), *ROOT.glob("tests/**/*.py")]
    assert len(files) > 100
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            assert len(line) <= 100, f"{file}: {line}"


def top_level() -> set[str]:
    """What belongs to the project: ignored files, such as a build, do not."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if listed.returncode == 0:
            return {line.split("/")[0] for line in listed.stdout.splitlines()}
    return {entry.name for entry in ROOT.iterdir() if not entry.name.startswith("build")}


def test_top_level() -> None:
    """Nothing else lies about."""
    assert {name for name in top_level() if not name.startswith(".")} <= TOP_LEVEL


@pytest.mark.parametrize("folder", sorted({file.parent.name for file in TESTS}))
def test_every_test_is_run(folder: str) -> None:
    """By ctest: its file is in the list of its folder."""
    listed = set(re.findall(r"\w+", (ROOT / "tests" / folder / "CMakeLists.txt").read_text()))
    names = {file.stem.removeprefix("test_") for file in TESTS if file.parent.name == folder}
    assert names - listed == set()
