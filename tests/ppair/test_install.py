"""`cmake --install`: ppair beside psend and precv, wherever they are put or moved to."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import launch
import pytest
from launch import Launcher

BUILD = launch.BIN.parent
SHORT = ("run", "--duration", "80ms", "--warmup", "20ms", "--repeat", "1", "--out")


@pytest.fixture(name="elsewhere")
def _elsewhere(tmp_path: Path) -> Iterator[Launcher]:
    """In a folder from which nothing of ours can be found."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    launcher = Launcher(folder)
    yield launcher
    launcher.close()


def install(*words: str, **environment: str) -> None:
    """What was built, as its user would."""
    subprocess.run(
        ["cmake", "--install", str(BUILD), *words],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def files(root: Path) -> set[str]:
    """All below it."""
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def assert_works(launcher: Launcher, prefix: Path, out: str) -> None:
    """With the programs beside it and the package that was installed with it."""
    before = files(prefix)
    launcher.program = prefix / "bin" / "ppair"
    ended = launcher.run(*SHORT, out, env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": ""})
    assert ended.code == 0, ended
    (run,) = launcher.results(out).runs
    assert {Path(peer.argv[0]).parent for peer in run.peers} == {prefix / "bin"}
    version = prefix / "share" / "ppair" / "ppair" / "__init__.py"
    text = version.read_text(encoding="ascii")
    version.write_text(text.replace('VERSION = "', 'VERSION = "installed-'), encoding="ascii")
    assert launcher.run("--version").stdout.startswith("ppair installed-")
    version.write_text(text, encoding="ascii")
    assert files(prefix) == before  # no compiled files among them


def test_prefix(elsewhere: Launcher, tmp_path: Path) -> None:
    """With a blank in its name, by way of a link, and when the whole of it was moved."""
    prefix = tmp_path / "a prefix"
    install("--prefix", str(prefix))
    installed = files(prefix)
    assert {"bin/ppair", "bin/psend", "bin/precv"} <= installed
    sources = {
        str(path.relative_to(launch.ROOT / "scripts"))
        for path in (launch.ROOT / "scripts" / "ppair").rglob("*.py")
    }
    found = {name.removeprefix("share/ppair/") for name in installed if name.endswith(".py")}
    assert found == sources
    assert_works(elsewhere, prefix, "first")

    moved = tmp_path / "deep" / "er" / "moved"
    moved.parent.mkdir(parents=True)
    prefix.rename(moved)
    assert_works(elsewhere, moved, "second")

    link = tmp_path / "link"
    link.symlink_to(moved / "bin" / "ppair")
    elsewhere.program = link
    assert elsewhere.run(*SHORT, "third").code == 0


def test_destdir(elsewhere: Launcher, tmp_path: Path) -> None:
    """As packages are made: what is below DESTDIR works there too."""
    install("--prefix", "/usr", DESTDIR=str(tmp_path / "package"))
    assert [path.name for path in (tmp_path / "package").iterdir()] == ["usr"]
    assert_works(elsewhere, tmp_path / "package" / "usr", "out")


def test_build_tree(elsewhere: Launcher) -> None:
    """Its launcher takes the package from the sources."""
    ended = elsewhere.run(*SHORT, "out")
    assert ended.code == 0, ended
    (run,) = elsewhere.results("out").runs
    assert {Path(peer.argv[0]).parent for peer in run.peers} == {launch.BIN}
