"""--parent-fd: a driver that dies takes its programs along, whatever they are doing."""

import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pair
import pytest

HANGUP = 128 + signal.SIGHUP
LEFT = "psend: link detached by the peer before the end"
SHORT = ["--close-timeout", "300ms"]
GRACE_S = 2.0  # of SHORT: twice that, rounded up, and a second


@dataclass
class Parent:
    """Both ends of a pipe; the write end is the driver's, and here alone."""

    read_fd: int
    write_fd: int
    closed_s: float | None = None  # time.monotonic()

    @property
    def fds(self) -> tuple[int]:
        """For the program."""
        return (self.read_fd,)

    @property
    def option(self) -> list[str]:
        """For its command line."""
        return ["--parent-fd", str(self.read_fd)]

    def die(self) -> None:
        """As the kernel does for a killed driver."""
        if self.closed_s is None:
            self.closed_s = time.monotonic()
            os.close(self.write_fd)

    def gone_s(self) -> float:
        """For how long it has been dead."""
        assert self.closed_s is not None
        return time.monotonic() - self.closed_s


@pytest.fixture(name="parent")
def _parent() -> Iterator[Parent]:
    """One that lives."""
    pipe = Parent(*os.pipe())
    yield pipe
    pipe.die()
    os.close(pipe.read_fd)


def assert_ended_in_order(result: pair.Result) -> None:
    """As by a signal, with a whole report."""
    assert result.code == result.summary["exit_code"] == HANGUP, result
    assert result.summary["interrupted"] and result.summary["stop_reason"] == "signal"
    assert_whole(result)


def assert_whole(result: pair.Result) -> None:
    """The report has everything, and there is nothing to complain of."""
    kind = "sent" if result.name == "psend" else "received"
    assert sum(i["messages"][kind] for i in result.intervals) == result.messages[kind] > 0
    left = result.name == "psend" and result.summary["stop_reason"] == "detached"
    assert not result.lines or (left and result.lines == [LEFT])
    pair.assert_time_is_whole(result.summary)
    if result.name == "psend":
        pair.assert_accounts(result.summary)


def assert_both_end(children: dict[str, pair.Child], parent: Parent) -> None:
    """Who learns it a moment later may have learnt before that its peer has gone."""
    results = [pair.finish(child, 5) for child in children.values()]
    reasons = {result.summary["stop_reason"] for result in results}
    assert "signal" in reasons and reasons <= {"signal", "detached"}
    for result in results:
        assert_whole(result)
        if result.summary["stop_reason"] == "signal":
            assert_ended_in_order(result)
    assert parent.gone_s() < 5


def test_both_end(parent: Parent) -> None:
    """In the middle of a run; one pipe will do for both."""
    children = pair.start_endless(parent.option, parent.option, pass_fds=parent.fds)
    parent.die()
    assert_both_end(children, parent)


def test_standard_input(parent: Parent) -> None:
    """0 is a descriptor like any other."""
    option = ["--parent-fd", "0"]
    children = pair.start_endless(option, option, stdin=parent.read_fd)
    for child in children.values():
        assert pair.wait_for(child, "start")["options"]["parent_fd"] == 0
    parent.die()
    assert_both_end(children, parent)


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_one_ends(program: str, parent: Parent) -> None:
    """What is under way is settled, as at a signal."""
    children = pair.start_endless(**{program: parent.option}, pass_fds=parent.fds)
    parent.die()
    psend, precv = pair.finish(children["psend"], 5), pair.finish(children["precv"], 5)
    assert_ended_in_order(psend if program == "psend" else precv)
    if program == "psend":
        assert precv.code == 0
        assert psend.messages["accepted"] == psend.messages["sent"] == precv.messages["received"]
    else:
        assert psend.summary["stop_reason"] == "detached"


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_before_anything_has_happened(program: str, parent: Parent) -> None:
    """A parent that is already gone."""
    parent.die()
    arguments = ["--listen", pair.ANY_PORT, *parent.option]
    result = pair.run(program, *arguments, pass_fds=parent.fds, timeout_s=5)
    assert result.code == HANGUP and result.summary["interrupted"]
    assert result.summary["messages_per_s"] is None


def test_data_is_dropped(parent: Parent) -> None:
    """More than a pipe holds; it ends nothing."""
    children = pair.start_endless(parent.option, parent.option, pass_fds=parent.fds)
    os.write(parent.write_fd, bytes(1 << 20))
    for child in children.values():
        pair.wait_for_more(child, "interval")
    os.write(parent.write_fd, b"last words")
    parent.die()
    assert_both_end(children, parent)


def child_of(program: str, fd: int) -> pair.Child:
    """It listens, and has that descriptor."""
    child, _ = pair.listen(program, "--parent-fd", str(fd), pass_fds=(fd,))
    return child


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_socket(program: str) -> None:
    """Works as a pipe does."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = child_of(program, theirs.fileno())
        ours.send(b"hello")
        ours.close()
        assert pair.finish(child, 5).code == HANGUP


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_write_end_of_a_pipe(program: str, parent: Parent) -> None:
    """Nothing can be read from it; that its reader is gone is an error."""
    child = child_of(program, parent.write_fd)
    with pytest.raises(AssertionError):
        pair.finish(child, 0.3)
    os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), parent.read_fd, inheritable=False)
    assert pair.finish(child, 5).code == HANGUP


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_process_descriptor(program: str) -> None:
    """Readable when the process has ended, though it cannot be read."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as driver:
        fd = os.pidfd_open(driver.pid)
        child = child_of(program, fd)
        driver.kill()
    assert pair.finish(child, 5).code == HANGUP
    os.close(fd)


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_closed_standard_input(program: str) -> None:
    """Not the /dev/null that is put in its place."""
    wrapper = ["sh", "-c", 'exec "$@" <&-', "sh"]
    arguments = ["--listen", pair.ANY_PORT, "--parent-fd", "0"]
    result = pair.run(program, *arguments, wrapper=wrapper, events=False)
    assert result.code == 64 and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and "--parent-fd: descriptor 0" in result.stderr


# ---- with signals ----


def start_before_a_stopped_peer(parent: Parent, *options: str) -> pair.Child:
    """psend, which cannot flush nor close: its peer is stopped."""
    arguments = [*parent.option, *options]
    children = pair.start_endless(arguments, pass_fds=parent.fds)
    pair.send_signal(children["precv"], signal.SIGSTOP)
    pair.wait_for_more(children["psend"], "interval")
    return children["psend"]


def test_close_timeout(parent: Parent) -> None:
    """Holds as ever, and comes before the end by force."""
    child = start_before_a_stopped_peer(parent, *SHORT)
    parent.die()
    result = pair.finish(child)
    assert 0.3 <= parent.gone_s() < GRACE_S
    assert_ended_in_order(result)
    assert result.messages["unsettled"] > 0


def test_signal_after_it(parent: Parent) -> None:
    """Is the second."""
    child = start_before_a_stopped_peer(parent)
    parent.die()
    with pytest.raises(AssertionError):
        pair.finish(child, 0.3)
    pair.send_signal(child, signal.SIGTERM)
    assert_ended_in_order(pair.finish(child, 1.5))


def test_signal_before_it(parent: Parent) -> None:
    """It is not the second itself: nobody is in a hurry."""
    child = start_before_a_stopped_peer(parent, *SHORT)
    pair.send_signal(child, signal.SIGINT)
    parent.die()
    result = pair.finish(child)
    assert 0.3 <= parent.gone_s() < GRACE_S
    assert result.code == 128 + signal.SIGINT and result.summary["interrupted"]


# ---- by force ----


def full_pipe() -> tuple[int, int]:
    """One into which nothing more can be written, and that nobody reads."""
    read_fd, write_fd = os.pipe()
    os.write(write_fd, bytes(fcntl.fcntl(write_fd, fcntl.F_GETPIPE_SZ)))
    return read_fd, write_fd


def assert_killed_while_blocked(
    program: str, blocked_at: str, parent: Parent, wrapper: Sequence[str] = ()
) -> None:
    """The program waits in the write() of that event when its parent dies, for who should read it
    has stopped."""
    arguments = ["-m", "0", "--listen", pair.ANY_PORT, *SHORT, *parent.option]
    if blocked_at == "start":
        arguments += ["-f", "json"]
    else:
        arguments += ["--report-header", "no", "--interval", "10ms"]
    read_fd, write_fd = full_pipe()
    with open(write_fd, "wb", buffering=0) as stdout:
        options = {"stdout": stdout, "pass_fds": parent.fds, "wrapper": wrapper}
        child = pair.start(program, *arguments, **options)
        if blocked_at == "interval":
            url = f"{pair.HOST}:{pair.wait_for(child, 'ready')['port']}"
            pair.start(*(["precv"] if program == "psend" else ["psend", "-m", "0"]), url)
        with pytest.raises(AssertionError):
            pair.finish(child, 0.5)
        assert not [event for event in child.events if event["event"] == blocked_at]
        parent.die()
        result = pair.finish(child)
    os.close(read_fd)
    assert result.code == -signal.SIGALRM
    assert GRACE_S - 0.1 <= parent.gone_s() < GRACE_S + 1.5


@pytest.mark.parametrize("program", pair.PROGRAMS)
@pytest.mark.parametrize("blocked_at", ["start", "interval"])
def test_stdout_blocks(program: str, blocked_at: str, parent: Parent) -> None:
    """Before the run and in the middle of it."""
    assert_killed_while_blocked(program, blocked_at, parent)


def test_alarm_was_ignored_and_blocked(parent: Parent) -> None:
    """By who started us, so that it would not end anything."""
    wrapper = ["env", "--ignore-signal=ALRM", "--block-signal=ALRM"]
    assert_killed_while_blocked("precv", "start", parent, wrapper)


def test_output_that_nobody_opens(parent: Parent, tmp_path: Path) -> None:
    """A named pipe without a reader: the program waits before it has begun."""
    fifo = str(tmp_path / "fifo")
    os.mkfifo(fifo)
    arguments = ["--output", fifo, *SHORT, *parent.option]
    child = pair.start("precv", "--listen", pair.ANY_PORT, *arguments, pass_fds=parent.fds)
    with pytest.raises(AssertionError):
        pair.finish(child, 0.3)
    parent.die()
    assert pair.finish(child).code == -signal.SIGALRM
    assert parent.gone_s() < GRACE_S + 1.5
