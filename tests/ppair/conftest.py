"""Lets the tests import the package from the source tree; psend and precv of a fake; no orphans."""

import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_peer
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import launch  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36
ENDING_S = 10.0  # for processes that are about to end when their test does

# so that what a killed ppair leaves behind becomes our child, and is seen
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> set[int]:
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        try:
            found.update(map(int, (thread / "children").read_text().split()))
        except FileNotFoundError:  # it has ended
            pass
    return found


def _ends(pid: int) -> bool:
    """Whether it has ended, or does so soon; it is reaped."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = bool(poll.poll(1000 * ENDING_S))
    os.close(descriptor)
    if not ended:
        os.kill(pid, signal.SIGKILL)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # somebody else has
    return ended


@pytest.fixture(autouse=True)
def _no_child_is_left() -> Iterator[None]:
    """Every process that a test has started ends with it."""
    before = _children()
    yield
    left = [pid for pid in _children() - before if not _ends(pid)]
    assert not left, f"processes {left} were left"


@pytest.fixture
def fakes(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder with psend and precv that behave as told: see fake_peer.py."""

    def make(psend: list | dict | None = None, precv: list | dict | None = None) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        well = [fake_peer.WELL]
        return fake_peer.install(folder, psend or well, precv or well)

    return make


@pytest.fixture(name="ppair")
def _ppair(tmp_path: Path) -> Iterator[launch.Launcher]:
    """Runs the real thing in a folder of its own; nothing that it has started outlives the test."""
    launcher = launch.Launcher(tmp_path)
    yield launcher
    launcher.close()


@pytest.fixture(name="heard")
def _heard(tmp_path: Path) -> Iterator[dict[str, launch.Tap]]:
    """A tap for each of both programs."""
    taps = launch.taps(tmp_path)
    yield taps
    for tap in taps.values():
        tap.close()
