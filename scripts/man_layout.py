"""Puts right what help2man, which knows nothing but indentation, makes of ppair's --help.

  man_layout.py PAGE COMMAND...

PAGE is what help2man made of COMMAND: there examples run together, and options of a preset stand
further left than the preset. Pages without either get an even left side and no more.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BEGINNINGS = (".IP", ".TP")  # of a paragraph that help2man has indented
PRESETS = '.SS "presets'
EXAMPLE = "  ppair "


def examples(usage: str) -> list[str]:
    """Lines of the first indented block that begins with an example."""
    lines = usage.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(EXAMPLE)), len(lines))
    last = next((i for i in range(first, len(lines)) if not lines[i].startswith("  ")), len(lines))
    return lines[first:last]


def literal(lines: Sequence[str]) -> list[str]:
    """As they are: nothing in them is markup, and no line is filled."""
    escaped = [line.strip("\n")[2:].replace("\\", "\\e").replace("-", "\\-") for line in lines]
    return [".PP", ".RS 4", ".nf", *(f"\\&{line}" for line in escaped), ".fi", ".RE"]


def with_examples(page: Sequence[str], lines: Sequence[str]) -> list[str]:
    """LINES in the place of what help2man has made of them, which reaches to the next paragraph
    that is not indented."""
    first = next(
        (i for i, line in enumerate(page) if line in BEGINNINGS and "ppair " in page[i + 1][:6]),
        None,
    )
    if first is None or not lines:
        return list(page)
    ends = (i for i in range(first, len(page)) if page[i].startswith((".PP", ".SS", ".SH")))
    last = next(ends, len(page))
    return [*page[:first], *literal(lines), *page[last:]]


def with_presets(page: Sequence[str]) -> list[str]:
    """Each preset is an entry, and its options are entries within it."""
    first = next((i for i, line in enumerate(page) if line.startswith(PRESETS)), len(page) - 1)
    made, rest = list(page[: first + 1]), list(page[first + 1 :])
    inner = False
    while rest:
        line = rest.pop(0)
        if line == ".TP" and not inner:
            made.append(".RS")
            inner = True
        elif inner and line == ".IP":
            made.append(".RE")
            inner = False
        if line != ".IP":
            made.append(line)
        elif " " not in rest[0]:  # a name; what else is indented is its text
            made += [".TP", f"\\fB{rest.pop(0)}\\fR"]
    return [*made, ".RE"] if inner else made


def main(argv: Sequence[str]) -> None:
    """Rewrites the page."""
    path = Path(argv[0])
    usage = subprocess.run([*argv[1:], "--help"], capture_output=True, text=True, check=True).stdout
    page = with_presets(with_examples(path.read_text("ascii").splitlines(), examples(usage)))
    title = next(i for i, line in enumerate(page) if line.startswith(".TH"))
    page.insert(title + 1, ".ad l")
    path.write_text("".join(f"{line}\n" for line in page), "ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
