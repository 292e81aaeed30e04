"""The package's source: who imports whom, what is used where, how long things are, what is said."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sample
from ppair import advice, cli, machine, metrics, results
from ppair.axes import Axis
from ppair.spec import Spec

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scripts" / "ppair"
README = ROOT / "scripts" / "README.md"
FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 350
COLUMNS_MAX = 100

# Modules by layer, from the leaves up; those of a layer import lower ones.
STACK: tuple[tuple[str, ...], ...] = (
    ("failure", "events", "histogram", "machine", "ranks", "series", "svg", "table", "url"),
    ("units", "programs", "axes", "spec", "files", "secret", "loads"),  # words
    (  # numbers
        *("limits", "metrics", "measured", "facts", "accounting", "advice", "verdicts"),
        *("hgrm", "clock_error"),
        *("inference", "fits", "credit_fits", "size_cost", "tuning"),
        *("sustain", "slo"),
    ),
    ("results", "preset", "cells", "plots_scale"),  # what is planned and what came out
    (  # one run
        *("store", "run_files", "host", "peer", "pair", "arrangement", "progress"),
        *("certificates", "clocks", "phases"),
    ),
    ("experiment", "provenance", "distributions", "tables", "plots_style"),
    ("comparison", "credit_search", "latency_search", "batch_table"),
    ("tasks_table", "latency_tables"),
    ("preset_batch", "preset_tasks"),
    ("presets",),
    ("plots_heat", "plots_line", "plots_load", "plots_time", "formats_iperf", "formats_quiver"),
    ("plots", "formats"),
    ("page",),
    ("output",),
    tuple(f"commands.{name}" for name in cli.COMMANDS),
    ("cli",),
)
LAYERS = {module: layer for layer, modules in enumerate(STACK) for module in modules}

# What a module may import of its own layer.
SAME_LAYER = {
    ("axes", "units"),
    ("loads", "units"),
    ("spec", "programs"),
    ("spec", "units"),
    ("advice", "clock_error"),
    ("advice", "metrics"),
    ("measured", "limits"),
    ("facts", "limits"),
    ("fits", "inference"),
    ("size_cost", "fits"),
    ("size_cost", "inference"),
    ("credit_fits", "fits"),
    ("credit_fits", "inference"),
    ("tuning", "credit_fits"),
    ("tuning", "fits"),
    ("verdicts", "fits"),
    ("preset", "results"),
    ("arrangement", "host"),
    ("clocks", "host"),
    ("pair", "host"),
    ("pair", "peer"),
    ("clocks", "phases"),
    ("pair", "phases"),
    ("store", "phases"),
    ("peer", "host"),
    ("plots_load", "plots_time"),
    ("tables", "provenance"),
}
# What it may name in type hints alone, so that it is not imported when ppair runs.
FOR_TYPES = {
    ("advice", "results"),
    ("commands.tune", "credit_search"),
    ("progress", "peer"),
    ("size_cost", "results"),
    ("verdicts", "fits"),
    ("verdicts", "results"),
    ("verdicts", "series"),
}
# What shows results reads files alone.
READERS = (
    "provenance distributions cells tables plots_style plots_heat plots_line plots_load plots_time "
    "plots page formats formats_iperf formats_quiver commands.report"
).split()
MEASURERS = {
    *("arrangement", "certificates", "clocks", "experiment", "host", "pair", "peer", "progress"),
}

# Libraries that only these modules may import.
RESERVED = {
    "matplotlib": {"plots_style", "plots_heat", "plots_line", "plots_load", "plots_time"},
    "numpy": {"ranks", "inference", "fits", "credit_fits", "plots_heat"},
    "scipy": {"ranks", "inference", "fits", "credit_fits"},
    "rich": {"progress"},
    "ClusterShell": {"host"},
    "asyncio": {"clocks", "host", "peer", "pair", "experiment"},
    "subprocess": {"certificates", "host", "programs"},
    "signal": {"host", "peer", "experiment"},
    "fcntl": {"store"},
    "importlib": {"cli"},
    "argparse": {"arrangement", "cli", "output", *(f"commands.{name}" for name in cli.COMMANDS)},
}
USED_FROM_OUTSIDE = {"hide"}  # by the launcher
HEAVY = ("matplotlib", "numpy", "scipy", "rich", "ClusterShell")


def sources() -> list[Path]:
    """All modules."""
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 40
    return files


def name_of(file: Path) -> str:
    """As it is imported, below the package."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


FILES = pytest.mark.parametrize("file", sources(), ids=name_of)
MODULES = pytest.mark.parametrize(
    "file", [file for file in sources() if file.name != "__init__.py"], ids=name_of
)


@cache
def tree(file: Path) -> ast.Module:
    """Its syntax."""
    return ast.parse(file.read_text(encoding="ascii"))


def imports(file: Path, types: bool = False) -> Iterator[ast.Import | ast.ImportFrom]:
    """Wherever they stand; with TYPES, those under `if TYPE_CHECKING` and no others."""
    for_types = {
        below
        for node in ast.walk(tree(file))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for below in ast.walk(node)
    }
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and (node in for_types) == types:
            yield node


def own(file: Path, types: bool = False) -> set[str]:
    """Modules of ours that it imports."""
    found = set()
    for node in imports(file, types):
        if isinstance(node, ast.ImportFrom) and node.level:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {name for name in names if name and name != "VERSION"}
    return found


def others(file: Path) -> set[str]:
    """Libraries that it imports, Python's own included."""
    found = set()
    for node in imports(file):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif not node.level and node.module:
            found.add(node.module.split(".")[0])
    return found


# ---- layers ----


def test_every_module_has_a_layer() -> None:
    """One; and there is no layer for what does not exist."""
    modules = [name_of(file) for file in sources() if file.name != "__init__.py"]
    assert sorted(modules) == sorted(module for layer in STACK for module in layer)


@MODULES
def test_a_layer_imports_lower_ones(file: Path) -> None:
    """Of its own, only what is listed above; so commands do not import one another."""
    name = name_of(file)
    for module in own(file):
        if (name, module) not in SAME_LAYER:
            assert LAYERS[module] < LAYERS[name], f"{name} imports {module}"
    for module in own(file, types=True):
        assert (name, module) in FOR_TYPES, f"{name} imports {module} for types"


def test_lists_of_exceptions_are_not_longer_than_needed() -> None:
    """What is allowed is used."""
    used = {(name_of(file), module) for file in sources() for module in own(file)}
    assert SAME_LAYER - used == set()
    assert all(LAYERS[a] == LAYERS[b] for a, b in SAME_LAYER)
    for_types = {(name_of(f), module) for f in sources() for module in own(f, types=True)}
    assert FOR_TYPES == for_types
    libraries = {(name, name_of(file)) for file in sources() for name in others(file)}
    reserved = {(name, module) for name, users in RESERVED.items() for module in users}
    assert reserved - libraries == set()
    assert set(READERS) <= LAYERS.keys() and MEASURERS <= LAYERS.keys()


@pytest.mark.parametrize("name", READERS)
def test_what_shows_results_measures_nothing(name: str) -> None:
    """Not by way of other modules either."""
    file_of = {name_of(file): file for file in sources()}
    reached, left = set(), {name}
    while left:
        module = left.pop()
        reached.add(module)
        left |= own(file_of[module]) - reached
    assert not reached & MEASURERS


@FILES
def test_libraries(file: Path) -> None:
    """Each has its place; all but Python's own are packages of the distribution."""
    for library in others(file):
        assert name_of(file) in RESERVED.get(library, {name_of(file)}), library
        assert library in sys.stdlib_module_names or library in HEAVY, library


@pytest.mark.parametrize("command", ["run", "sweep", "latency", "soak"])
def test_libraries_are_loaded_when_they_are_needed(command: str) -> None:
    """Which is not before a run, whose processors they would share."""
    program = (
        "import sys; from pathlib import Path; from ppair import cli\n"
        f"cli.main([{command!r}, '--help'], Path('.'))\n"
        f"sys.exit(','.join(sorted(sys.modules.keys() & set({HEAVY}))))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout and found.stderr.strip() == "", found.stderr


@FILES
def test_nothing_sleeps(file: Path) -> None:
    """Every wait is for something."""
    for node in ast.walk(tree(file)):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        assert called.split(".")[-1] not in ("sleep", "killpg", "popen"), called
        assert called != "os.system"


# ---- form ----


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All of them, methods and inner ones too."""
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """In lines."""
    return (node.end_lineno or 0) - node.lineno + 1


@FILES
def test_functions_fit_a_screen(file: Path) -> None:
    """And files stay short."""
    lines = file.read_text(encoding="ascii").count("\n")
    assert lines <= FILE_LINES_MAX
    for function in functions(file):
        assert length(function) <= FUNCTION_LINES_MAX, function.name


def test_functions_are_found() -> None:
    """So that the test above can fail."""
    found = [length(function) for file in sources() for function in functions(file)]
    assert len(found) > 400 and max(found) > 30


@FILES
def test_docstrings(file: Path) -> None:
    """Of each module, class and public function."""
    assert ast.get_docstring(tree(file)), name_of(file)
    inner = {
        below
        for function in functions(file)
        for below in ast.walk(function)
        if below is not function
    }
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ClassDef):
            assert ast.get_docstring(node), node.name
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node not in inner:
            assert node.name.startswith("_") or ast.get_docstring(node), node.name


@FILES
def test_type_hints(file: Path) -> None:
    """Of every argument and result."""
    for function in functions(file):
        given = function.args
        for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs]:
            hinted = argument.annotation or argument.arg in ("self", "cls")
            assert hinted, f"{function.name}: {argument.arg}"
        assert function.returns, function.name


@FILES
def test_text(file: Path) -> None:
    """ASCII, 100 columns, no tabs."""
    content = file.read_bytes()
    assert content.isascii() and content.endswith(b"\n") and not content.endswith(b"\n\n")
    for line in content.decode("ascii").splitlines():
        assert len(line) <= COLUMNS_MAX and "\t" not in line and line == line.rstrip(), line


# ---- the manual of the files ----

FREE = {"values", "metrics", "facts", "findings"}  # members whose own members are other names


def members(value: Any) -> set[str]:
    """Of objects in JSON, however deep."""
    if isinstance(value, list):
        return set().union(*(members(item) for item in value))
    if not isinstance(value, dict):
        return set()
    inner = (members(v) for key, v in value.items() if key not in FREE)
    return set(value).union(*inner)


def fields(*classes: type) -> set[str]:
    """Of dataclasses."""
    return {field.name for cls in classes for field in dataclasses.fields(cls)}


def documented(section: str) -> set[str]:
    """Names in code between that heading and the next."""
    text = README.read_text(encoding="ascii")
    _, _, rest = text.partition(f"\n### {section}\n")
    assert rest, section
    return set(re.findall(r"`([a-z0-9_-]+)`", rest.partition("\n### ")[0]))


def written(tmp_path: Path) -> dict[str, set[str]]:
    """Members of the files of an experiment."""
    axis = Axis("credit", ("10", "20"), "credit")
    plot = results.Plot("Title", "credit", ("messages_per_s",))
    made = sample.make(tmp_path / "out", axes=(axis,), plots=(plot,), noise=0.5)
    assert made.warnings
    run = made.run_folder(made.runs[0]) / "run.json"
    files = {"run.json": run, **{n: made.directory / n for n in ("manifest.json", "summary.json")}}
    return {
        name: members(json.loads(path.read_text(encoding="ascii"))) for name, path in files.items()
    }


def test_nothing_is_there_for_tests_alone() -> None:
    """Every function, class and constant of a module is used in the package."""
    defined: dict[str, str] = {}
    used = set(cli.COMMANDS)
    for file in sources():
        for node in tree(file).body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                defined[node.name] = name_of(file)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                defined |= dict.fromkeys(names, name_of(file))
        for found in ast.walk(tree(file)):
            if isinstance(found, ast.Name) and isinstance(found.ctx, ast.Load):
                used.add(found.id)
            elif isinstance(found, ast.Attribute):
                used.add(found.attr)
            elif isinstance(found, ast.Constant):
                used.add(str(found.value))  # as getattr() has it
    unused = {name: module for name, module in defined.items() if name not in used}
    assert set(unused) - {"__all__"} == USED_FROM_OUTSIDE, unused


def test_manual_has_every_member(tmp_path: Path) -> None:
    """Of what is written, and of the types that it is written from."""
    found = written(tmp_path)
    kinds = (results.Plan, results.Point, results.Plot, Axis, Spec, machine.Machine)
    assert fields(*kinds) <= found["manifest.json"]
    assert fields(results.Run, results.Peer) <= found["run.json"]
    assert fields(results.Aggregate, advice.Warning) - found["summary.json"] <= fields(
        results.Aggregate
    )
    found["summary.json"] |= fields(results.Aggregate)
    for name, names in found.items():
        assert names - documented(name) == set(), name


def test_manual_has_no_other_members(tmp_path: Path) -> None:
    """What is documented as a member is one."""
    found = written(tmp_path)
    known = set().union(*found.values(), fields(results.Aggregate))
    known |= {metric.name for metric in metrics.METRICS} | {"limited_by", "metrics", "facts"}
    known |= {"spread_percent", *found["run.json"]}
    for section in found:
        _, _, rest = README.read_text(encoding="ascii").partition(f"\n### {section}\n")
        for line in rest.partition("\n### ")[0].splitlines():
            if line.startswith("| `"):
                names = set(re.findall(r"`([a-z0-9_]+)`", line.split("|")[1]))
                assert names <= known, line


def test_manual_has_every_metric_and_warning() -> None:
    """And the facts that warnings are made from."""
    names = {metric.name for metric in metrics.METRICS} | {"limited_by"}
    from ppair import facts

    assert facts.__doc__
    names |= set(re.findall(r"`([a-z_]+)`", facts.__doc__.split("Members", 1)[1]))
    assert names <= documented("run.json"), names - documented("run.json")
    text = " ".join(README.read_text(encoding="ascii").split())
    assert f"codes are {', '.join(advice.RULES)}" in text
