"""Another host: a network namespace with a name of its own, a cable to it, and an sshd there.

    near                            far, whose host name is FAR
    198.18.0.1/24  ---- cable ----  198.18.0.2/24, sshd on PORT

Both are namespaces, so that nothing of this machine's network is touched. Files, users and pids are
the same at both ends. Everything is gone after `close`.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import launch

SSHD = "/usr/sbin/sshd"
PRIVILEGE_SEPARATION = Path("/run/sshd")  # which sshd wants to be there
NAMESPACE_FILES = Path("/etc/netns")  # what is below NAME stands for /etc in that namespace
NEAR_ADDRESS = "198.18.0.1"
FAR_ADDRESS = "198.18.0.2"
NOWHERE = "198.18.0.9"  # nobody has this address
PORT = 2222
FAR = "faraway"
NUMBERS = itertools.count()
ALIASES = ("n1", "n2", "n3")  # of the far end

SERVER = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PrintMotd no
SetEnv HOME={folder}
"""

CLIENT = """\
Host {aliases} stranger
    HostName {address}
Host refused
    HostName {address}
    Port 9
Host nowhere
    HostName {nowhere}
Host stranger
    IdentityFile {folder}/other_key
Host !stranger *
    IdentityFile {folder}/user_key
Host *
    Port {port}
    User root
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile none
    StrictHostKeyChecking yes
"""


class Unavailable(Exception):
    """Why there can be no such network here."""


def _run(*words: str) -> str:
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable(f"{' '.join(words)}: {found.stderr.strip() or found.returncode}")
    return found.stdout


@dataclass
class Network:
    """Names of both ends; what is to be undone."""

    folder: Path  # for keys and settings, and for `ssh`, to be first in PATH
    near: str
    far: str
    server: subprocess.Popen[str] | None = None
    undo: ExitStack = field(default_factory=ExitStack)

    @property
    def wrapper(self) -> list[str]:
        """For commands that are to run at the near end."""
        return ["ip", "netns", "exec", self.near]

    @property
    def environment(self) -> dict[str, str]:
        """With it, `ssh` knows the other end by its names."""
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def received_bytes(self) -> int:
        """By the far end, of all that has gone through the cable."""
        path = "/sys/class/net/far/statistics/rx_bytes"
        return int(_run("ip", "netns", "exec", self.far, "cat", path))

    def cut(self) -> None:
        """The cable: nothing arrives any more, and nobody is told."""
        _run(*self.wrapper, "ip", "link", "set", "near", "down")

    def close(self) -> None:
        """Ends what is there, and undoes it all."""
        self.undo.close()


def create(folder: Path) -> Network:
    """Raises Unavailable if it cannot be made here."""
    if os.geteuid():
        raise Unavailable("network namespaces take root")
    if not Path(SSHD).exists():
        raise Unavailable(f"{SSHD} is not installed")
    _remove_stale()
    name = f"ppair-{os.getpid()}-{next(NUMBERS)}"
    near, far = (f"{name}-{end}" for end in ("near", "far"))
    network = Network(folder, near, far)
    try:
        _lay_cable(network)
        _write_settings(network)
        _start_server(network)
    except BaseException:
        network.close()
        raise
    return network


def _remove_stale() -> None:
    """Of tests that were killed."""
    for line in _run("ip", "netns", "list").splitlines():
        match = re.match(r"ppair-([0-9]+)-[0-9]+-(near|far)\b", line)
        if match and not Path(f"/proc/{match[1]}").exists():
            _remove_namespace(match[0])
            shutil.rmtree(NAMESPACE_FILES / match[0], ignore_errors=True)


def _lay_cable(network: Network) -> None:
    for name in (network.near, network.far):
        _name_hosts(network, NAMESPACE_FILES / name)
        _run("ip", "netns", "add", name)
        network.undo.callback(_remove_namespace, name)
    ends = ["near", "netns", network.near, "type", "veth", "peer", "far", "netns", network.far]
    _run("ip", "link", "add", *ends)
    places = ((network.near, "near", NEAR_ADDRESS), (network.far, "far", FAR_ADDRESS))
    for name, device, address in places:
        _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
        for up in ("lo", device):
            _run("ip", "-n", name, "link", "set", up, "up")


def _name_hosts(network: Network, folder: Path) -> None:
    """There is no name server at either end, and libqpid-proton asks for names."""
    folder.mkdir(parents=True)
    network.undo.callback(shutil.rmtree, folder)
    known = f"127.0.0.1 localhost\n{NEAR_ADDRESS} near\n{FAR_ADDRESS} {FAR}\n"
    (folder / "hosts").write_text(known, encoding="ascii")


def _remove_namespace(name: str) -> None:
    """With all processes in it, and its end of the cable."""
    with suppress(Unavailable):
        launch.kill([int(pid) for pid in _run("ip", "netns", "pids", name).split()])
    with suppress(Unavailable):
        _run("ip", "netns", "delete", name)


def _write_settings(network: Network) -> None:
    folder = network.folder
    for key in ("host_key", "user_key", "other_key"):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
    values = {
        "folder": folder,
        "address": FAR_ADDRESS,
        "nowhere": NOWHERE,
        "port": PORT,
        "aliases": " ".join(ALIASES),
    }
    (folder / "server").write_text(SERVER.format(**values), encoding="ascii")
    (folder / "client").write_text(CLIENT.format(**values), encoding="ascii")
    key = (folder / "host_key.pub").read_text(encoding="ascii")
    known = f"[{FAR_ADDRESS}]:{PORT} {key}"
    (folder / "known_hosts").write_text(known, encoding="ascii")
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "ssh"
    wrapper.write_text(
        f'#!/bin/sh\nexec /usr/bin/ssh -F "{folder}/client" "$@"\n', encoding="ascii"
    )
    wrapper.chmod(0o755)


def _start_server(network: Network) -> None:
    """Ready when it says so."""
    if not PRIVILEGE_SEPARATION.exists():
        PRIVILEGE_SEPARATION.mkdir(mode=0o755)
        network.undo.callback(PRIVILEGE_SEPARATION.rmdir)
    named = f'echo {FAR} >/proc/sys/kernel/hostname; exec "$@"'
    sshd = [SSHD, "-D", "-e", "-f", str(network.folder / "server")]
    words = ["ip", "netns", "exec", network.far, "unshare", "--uts", "sh", "-c", named, "sh", *sshd]
    network.server = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    network.undo.callback(_stop_server, network.server)
    assert network.server.stderr
    said = []
    for line in network.server.stderr:
        said.append(line.strip())
        if "Server listening" in line:
            return
    raise Unavailable(f"sshd: {'; '.join(said)}")


def _stop_server(server: subprocess.Popen[str]) -> None:
    """Its sessions, which may hold its standard error open, end with the namespace."""
    assert server.stderr
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    server.stderr.close()
