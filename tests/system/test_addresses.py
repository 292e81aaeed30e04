"""From a host's name to a connection: names with several addresses, of which some are dead.

Names are made by a hosts file of the test's own, in a mount namespace; an address that does not
answer is a listening socket whose queue is full.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pair
import pytest
from measuring import measured

CONNECTION = 2
NAME = "several"
OTHER = "127.0.0.2"
ATTEMPT_S = 0.25


def can_unshare() -> bool:
    """Whether we may have namespaces of our own."""
    tools = all(shutil.which(tool) for tool in ("unshare", "nsenter", "ip", "mount"))
    return tools and not subprocess.run(["unshare", "-mn", "true"], check=False).returncode


pytestmark = pytest.mark.skipif(not can_unshare(), reason="needs namespaces")


def with_files(files: dict[str, Path]) -> list[str]:
    """A wrapper: the command sees FILES in place of those of /etc."""
    mounts = " && ".join(f"mount --bind {path} /etc/{name}" for name, path in files.items())
    return ["unshare", "-m", "sh", "-c", mounts + ' && exec "$@"', "sh"]


def with_hosts(folder: Path, *lines: str) -> list[str]:
    """A wrapper: the command knows these names, and no others."""
    hosts, switch = folder / "hosts", folder / "nsswitch.conf"
    hosts.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    switch.write_text("hosts: files\n", encoding="ascii")
    return with_files({"hosts": hosts, "nsswitch.conf": switch})


def silent(address: str, port: int = 0) -> ExitStack:
    """A port that does not answer until the stack is closed; see `port_of`."""
    stack = ExitStack()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = stack.enter_context(socket.socket(family))
    server.bind((address, port))
    server.listen(0)
    while True:
        client = stack.enter_context(socket.socket(family))
        client.setblocking(False)
        client.connect_ex(server.getsockname()[:2])
        client.settimeout(0.1)
        try:
            client.send(b"\0")  # which fails if the handshake is not complete
        except OSError:
            return stack


def free_port(*addresses: str) -> int:
    """One that is free at all of them."""
    with socket.create_server((addresses[0], 0)) as first:
        port = int(first.getsockname()[1])
        for address in addresses[1:]:
            with socket.create_server((address, port)):
                pass
    return port


def receive_at(address: str, port: int) -> pair.Child:
    """A receiver there."""
    host = f"[{address}]" if ":" in address else address
    receiver = pair.start("precv", "--listen", f"{host}:{port}", "-m", "100")
    pair.wait_for(receiver, "ready")
    return receiver


def assert_reached(sender: pair.Child, receiver: pair.Child) -> pair.Result:
    """All has arrived; returns the sender's end."""
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_delivered(psend, precv, 100)
    return psend


# ---- a name for several addresses ----


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_localhost_of_one_family(address: str, tmp_path: Path) -> None:
    """Whichever it is that listens."""
    wrapper = with_hosts(tmp_path, "127.0.0.1 localhost", "::1 localhost")
    port = free_port("127.0.0.1")
    receiver = receive_at(address, port)
    sender = pair.start("psend", f"localhost:{port}", "-m", "100", wrapper=wrapper)
    psend = assert_reached(sender, receiver)
    assert psend.only("ready")["host"] == "localhost"
    assert psend.seconds < 5


@pytest.mark.parametrize("first,second", [(OTHER, pair.HOST), (pair.HOST, OTHER)])
def test_one_address_refuses(first: str, second: str, tmp_path: Path) -> None:
    """The other one is taken at once."""
    wrapper = with_hosts(tmp_path, f"{first} {NAME}", f"{second} {NAME}")
    port = free_port(pair.HOST, OTHER)
    receiver = receive_at(pair.HOST, port)
    assert_reached(
        pair.start("psend", f"{NAME}:{port}", "-m", "100", wrapper=wrapper), receiver
    )


@pytest.mark.parametrize("first,second", [(OTHER, pair.HOST), (pair.HOST, OTHER)])
def test_one_address_is_silent(first: str, second: str, tmp_path: Path) -> None:
    """The other one is tried after 250 ms."""
    wrapper = with_hosts(tmp_path, f"{first} {NAME}", f"{second} {NAME}")
    port = free_port(pair.HOST, OTHER)
    receiver = receive_at(pair.HOST, port)
    with silent(OTHER, port):
        sender = pair.start("psend", f"{NAME}:{port}", "-m", "100", wrapper=wrapper)
        psend = assert_reached(sender, receiver)
    assert psend.seconds < 5


def test_families_are_tried_in_turn(tmp_path: Path) -> None:
    """A dead family with many addresses does not keep the other one waiting for long."""
    dead = [f"127.0.1.{n}" for n in range(1, 9)]
    wrapper = with_hosts(tmp_path, *(f"{address} {NAME}" for address in dead), f"::1 {NAME}")
    port = free_port(pair.HOST)
    receiver = receive_at("::1", port)
    with ExitStack() as stack:
        for address in dead:
            stack.enter_context(silent(address, port))
        sender = pair.start("psend", f"{NAME}:{port}", "-m", "100", wrapper=wrapper)
        psend = assert_reached(sender, receiver)
    assert psend.seconds < 8 * ATTEMPT_S + 5


# ---- what is said if there is no connection ----


def assert_failed(result: pair.Result, *words: str) -> None:
    """Code 2, and one line that has all the words."""
    assert result.code == CONNECTION, result
    assert result.summary["stop_reason"] == "failed"
    assert len(result.lines) == 1 and all(word in result.lines[0] for word in words), result.lines


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_all_refuse(program: str, tmp_path: Path) -> None:
    """Tried again for a second, as a number is."""
    wrapper = with_hosts(tmp_path, f"{OTHER} {NAME}", f"{pair.HOST} {NAME}")
    port = free_port(pair.HOST, OTHER)
    result = pair.run(program, f"{NAME}:{port}", wrapper=wrapper)
    assert_failed(result, f"connection to {NAME}:{port}", "Connection refused")
    assert 0.9 <= result.seconds < 4


@pytest.mark.parametrize("program", pair.PROGRAMS)
def test_all_are_silent(program: str, tmp_path: Path) -> None:
    """--connect-timeout is for all of them together."""
    wrapper = with_hosts(tmp_path, f"{OTHER} {NAME}", f"{pair.HOST} {NAME}")
    port = free_port(pair.HOST, OTHER)
    with silent(OTHER, port), silent(pair.HOST, port):
        result = pair.run(
            program, f"{NAME}:{port}", "--connect-timeout", "700ms", wrapper=wrapper
        )
    assert_failed(result, f"{NAME}:{port}", "no answer within the connect timeout")
    assert 0.7 <= result.seconds < 4


def test_one_refuses_and_one_is_silent(tmp_path: Path) -> None:
    """The refusal says more."""
    wrapper = with_hosts(tmp_path, f"{OTHER} {NAME}", f"{pair.HOST} {NAME}")
    port = free_port(pair.HOST, OTHER)
    with silent(OTHER, port):
        result = pair.run(
            "psend", f"{NAME}:{port}", "--connect-timeout", "700ms", wrapper=wrapper
        )
    assert_failed(result, f"{NAME}:{port}", "Connection refused")


@pytest.mark.measures
def test_name_is_unknown(tmp_path: Path) -> None:
    """Said at once."""
    result = pair.run("psend", "nobody:5672", wrapper=with_hosts(tmp_path, "127.0.0.1 localhost"))
    assert_failed(result, "connection to nobody:5672", "Name or service not known")
    with measured():
        assert result.seconds < 0.9


@pytest.fixture(name="name_server")
def _name_server(tmp_path: Path) -> Iterator[list[str]]:
    """A wrapper: names are asked for at a server that does not answer."""
    switch, resolver = tmp_path / "nsswitch.conf", tmp_path / "resolv.conf"
    switch.write_text("hosts: dns\n", encoding="ascii")
    resolver.write_text("nameserver 127.0.0.9\n", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        try:
            server.bind(("127.0.0.9", 53))
        except OSError as error:
            pytest.skip(f"port 53: {error}")
        yield with_files({"nsswitch.conf": switch, "resolv.conf": resolver})


def test_name_server_is_silent(name_server: list[str]) -> None:
    """--connect-timeout holds."""
    result = pair.run("psend", f"{NAME}:1", "--connect-timeout", "300ms", wrapper=name_server)
    assert_failed(result, f"{NAME}:1", "no answer from the name service")
    assert 0.3 <= result.seconds < 3


def test_signal_while_the_name_server_is_silent(name_server: list[str]) -> None:
    """It ends the run at once."""
    child = pair.start("precv", f"{NAME}:1", wrapper=name_server)
    pair.wait_for(child, "start")
    pair.send_signal(child, signal.SIGINT)
    result = pair.finish(child, 2)
    assert result.code == 128 + signal.SIGINT and not result.lines


# ---- in a network of its own ----


@pytest.fixture(name="network")
def _network() -> Iterator[list[str]]:
    """A wrapper: a network that has nothing but a loopback interface, with fe80::1."""
    commands = (
        "ip link set lo up && ip addr add fe80::1/64 dev lo nodad && echo ready && exec cat"
    )
    holder = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", commands], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin and holder.stdout
    try:
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("no loopback interface with fe80::1")
        yield ["nsenter", "-t", str(holder.pid), "-n"]
    finally:
        holder.stdin.close()
        holder.stdout.close()
        holder.wait(pair.DEADLINE_S)


def test_address_with_a_scope(network: list[str]) -> None:
    """It is of use to this host alone: the peer is not told."""
    wrapper = [*network, "env", "PN_LOG=frame"]
    receiver = pair.start("precv", "-l", "[fe80::1%lo]:0", "-m", "100", wrapper=wrapper)
    ready = pair.wait_for(receiver, "ready")
    assert ready["host"] == "fe80::1%lo"
    where = f"[fe80::1%lo]:{ready['port']}"
    sender = pair.start("psend", where, "-m", "100", wrapper=network)
    psend, precv = pair.finish(sender), pair.finish(receiver)
    pair.assert_codes((psend, precv), 0, 0)
    opened = [line for line in precv.stderr.splitlines() if "<- @open" in line]
    assert len(opened) == 1 and 'hostname="fe80::1"' in opened[0], opened


def test_no_route(network: list[str]) -> None:
    """There is none to any other host."""
    result = pair.run("psend", "198.18.0.1:5672", wrapper=network)
    assert_failed(result, "198.18.0.1:5672", "Network is unreachable")


def test_peers_are_named_by_numbers(network: list[str]) -> None:
    """No name server is asked for a client's name."""
    receiver = pair.start("precv", "-l", "[::1]:0", wrapper=network)
    port = pair.wait_for(receiver, "ready")["port"]
    script = f"import socket; socket.create_connection(('::1', {port})).sendall(b'HTTP/1.1 GET')"
    subprocess.run([*network, "/usr/bin/python3", "-c", script], check=True, env={**os.environ})
    what = pair.wait_for(receiver, "error")["what"]
    assert isinstance(what, str) and what.startswith("connection from [::1]:")
    pair.send_signal(receiver, signal.SIGINT)
    pair.finish(receiver)


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31m", "\u00e4"])
def test_complaints_are_one_line_of_ascii(text: str) -> None:
    """Whoever has written what is in them."""
    result = pair.run("psend", f"--property={text}")
    assert result.code == 64 and len(result.lines) == 1
    escaped = "".join(chr(c) if 32 <= c < 127 else f"\\x{c:02x}" for c in text.encode())
    assert escaped in result.lines[0]
