"""ppair report, by its command line."""

import hashlib
import json
from pathlib import Path

import pytest
import sample
from ppair import cli
from ppair.commands import report
from ppair.failure import Exit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two results: a noisy sweep, and a run."""
    found = tmp_path_factory.mktemp("r")
    sample.stall(
        found / "stall", axes=sample.STALL_AXES[:1], rate=lambda _: 1e6, plots=(), noise=0.4
    )
    sample.single(found / "run", repetitions=2)
    return found


def run(*words):
    return cli.main(["report", *map(str, words)], Path("/nowhere"))


def tree(folder):
    """Names and contents of all files."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_text_is_on_standard_output_and_nothing_else(folder, capsys):
    assert run(folder / "run") == Exit.DONE
    out, err = capsys.readouterr()
    assert "repetition" in out and "Environment" in out
    assert err == ""


def test_several_directories_are_one_after_another(folder, capsys):
    assert run(folder / "stall", folder / "run") == Exit.DONE
    out = capsys.readouterr().out
    assert out.index("2 of 2 points") < out.index("repetition")


def test_warnings_are_found_again(folder, capsys):
    saved = folder / "stall" / "summary.json"
    before = saved.read_text()
    summary = json.loads(before)
    summary["warnings"] = []
    saved.write_text(json.dumps(summary))
    assert run(folder / "stall") == Exit.DONE
    assert "warning: repetitions differ" in capsys.readouterr().out
    saved.write_text(before)


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("text", "2 of 2 points measured"),
        ("markdown", "## Credit stall"),
        ("csv", "directory,point,repetition,"),
        ("iperf", '{\n\t"start": {'),
        ("quiver", '{\n\t"config": {'),
    ],
)
def test_formats(folder, capsys, name, beginning):
    assert run(folder / "stall", "--format", name) == Exit.DONE
    out = capsys.readouterr().out
    assert out.startswith(beginning)
    assert out.endswith("\n")
    assert out.isascii()


def test_every_format_is_tested():
    assert set(report.FORMATS) == {"text", "markdown", "csv", "iperf", "quiver"}


def test_files_are_named_on_standard_error(folder, capsys, tmp_path):
    words = ("--plots", tmp_path / "p", "--plot-format", "svg,png", "--html", tmp_path / "x.html")
    assert run(folder / "run", *words) == Exit.DONE
    err = capsys.readouterr().err.splitlines()
    assert err == [
        f"plot: {tmp_path}/p/01-time-by-percentile.svg",
        f"plot: {tmp_path}/p/01-time-by-percentile.png",
        f"page: {tmp_path}/x.html",
    ]
    assert all(Path(line.partition(": ")[2]).stat().st_size > 1000 for line in err)


def test_plots_of_several_results_do_not_collide(folder, capsys, tmp_path):
    assert run(folder / "run", folder / "run", "--plots", tmp_path / "p") == Exit.DONE
    names = sorted(path.name for path in (tmp_path / "p").iterdir())
    assert names == ["1-run-01-time-by-percentile.svg", "2-run-01-time-by-percentile.svg"]
    capsys.readouterr()


def test_directories_are_not_changed(folder, capsys, tmp_path):
    before = tree(folder)
    run(folder / "stall", folder / "run", "--plots", tmp_path, "--html", tmp_path / "x.html")
    capsys.readouterr()
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--format", "xml"), 64, '--format: "xml" is none of text, markdown, csv, iperf, quiver'),
        (("--plot-format", "gif"), 64, '--plot-format: "gif" is none of svg, png'),
        (("--plots",), 64, "--plots"),
    ],
)
def test_what_cannot_be_understood_is_one_line(folder, capsys, words, code, message):
    assert run(folder / "run", *words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err and err.count("\n") == 1


def test_a_directory_that_is_none_is_one_line(tmp_path, capsys):
    assert run(tmp_path / "nothing") == Exit.INTERNAL
    out, err = capsys.readouterr()
    assert out == ""
    assert str(tmp_path / "nothing") in err and err.count("\n") == 1


def test_help_has_examples_and_defaults(capsys):
    assert run("--help") == 0
    out = capsys.readouterr().out
    assert "ppair report DIR --html page.html" in out and "[svg]" in out
    assert max(map(len, out.splitlines())) <= 100
