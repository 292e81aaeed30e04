"""Where results go, and how a command shows them: what the measuring commands have in common."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from . import machine, store, tables
from .results import Plan, Results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--out, --json, --html."""
    group = parser.add_argument_group("results")
    group.add_argument(
        "--out", metavar="DIR", help="a new directory for results [ppair-results/TIME-COMMAND-PID]"
    )
    group.add_argument("--json", action="store_true", help="print the summary as JSON")
    group.add_argument("--html", metavar="FILE", help="write a page with plots as well")


def create(arguments: argparse.Namespace, plan: Plan) -> Results:
    """The directory of a new experiment."""
    directory = Path(arguments.out) if arguments.out else store.default_directory(plan.command)
    return store.create(directory, plan, arguments.argv, machine.to_json(machine.describe()))


def show(arguments: argparse.Namespace, results: Results) -> None:
    """What came out, on standard output; where it is, on standard error."""
    if arguments.json:
        json.dump(store.summary(results), sys.stdout, allow_nan=False, indent=1)
        print()
    else:
        print(tables.text_report(results, environment=False), end="")
    if arguments.html:
        from . import page

        page.write_page([results], Path(arguments.html))
    print(f"results: {results.directory}", file=sys.stderr)
    if results.plan.command == "sweep" and results.left():
        print(f"the rest: the same command with --resume {results.directory}", file=sys.stderr)


def show_findings(arguments: argparse.Namespace, findings: dict[str, Any]) -> None:
    """What was found in directories that were read."""
    if arguments.json:
        json.dump(findings, sys.stdout, allow_nan=False, indent=1)
        print()
        return
    for sentence in findings["sentences"]:
        print(sentence)
    for entry in findings["tables"]:
        print()
        print(tables.to_text(tables.finding_table(entry)), end="")
