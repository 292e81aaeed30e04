"""Options and files of TLS that are of no use: refused before any connection is made."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pair
import pytest
from certificates import Certificates, Identity
from secured import PROGRAMS, USAGE


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of all kinds."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(name="bait")
def _bait() -> Iterator[socket.socket]:
    """A socket that listens, to which nobody may connect."""
    with socket.create_server((pair.HOST, 0)) as server:
        server.setblocking(False)
        yield server


def assert_usage(result: pair.Result, option: str, file: str = "") -> None:
    """One line that begins with the option, and the file."""
    assert result.code == USAGE and result.stdout == "", result
    assert len(result.stderr.splitlines()) == 1, result.stderr
    begin = f"{result.name}: {option}: {file}"
    assert result.stderr.startswith(begin), (begin, result.stderr)


def make_encrypted_key(identity: Identity, folder: Path) -> Path:
    """With a pass phrase, which nobody may be asked for."""
    encrypted = folder / "encrypted.key"
    command = ["openssl", "pkey", "-aes256", "-passout", "pass:x", "-in", str(identity.key)]
    subprocess.run([*command, "-out", str(encrypted)], check=True, capture_output=True)
    return encrypted


@PROGRAMS
@pytest.mark.parametrize("listens", [False, True])
def test_useless_files(
    files: Certificates, program: str, listens: bool, tmp_path: Path, bait: socket.socket
) -> None:
    """64 before any connection, naming option and file; nothing is asked for."""
    where = f"amqps://{pair.HOST}:{bait.getsockname()[1]}"
    place = ["--listen", f"amqps://{pair.ANY_PORT}"] if listens else [where]
    good, text, missing = files.server, tmp_path / "text", tmp_path / "missing"
    text.write_text("not a certificate\n", encoding="ascii")
    encrypted = make_encrypted_key(good, tmp_path)
    rows = [
        ("--tls-cert", missing, [missing, good.key]),
        ("--tls-cert", text, [text, good.key]),
        ("--tls-cert", good.key, [good.key, good.key]),
        ("--tls-key", missing, [good.certificate, missing]),
        ("--tls-key", text, [good.certificate, text]),
        ("--tls-key", good.certificate, [good.certificate, good.certificate]),
        ("--tls-key", encrypted, [good.certificate, encrypted]),
        ("--tls-key", files.wrong.key, [good.certificate, files.wrong.key]),
    ]
    for option, file, (certificate, key) in rows:
        own = ["--tls-cert", str(certificate), "--tls-key", str(key)]
        assert_usage(pair.run(program, *place, *own, events=False), option, str(file))
    for file in (missing, text, tmp_path):
        if file == tmp_path and not listens:
            continue  # a directory may be a store
        result = pair.run(program, *place, *good.options, "--tls-ca", str(file), events=False)
        assert_usage(result, "--tls-ca", str(file))
    with pytest.raises(BlockingIOError):
        bait.accept()


@PROGRAMS
@pytest.mark.parametrize(
    "option,line",
    [
        ("--tls-ca", "amqp://HOST --tls-ca CA"),
        ("--tls-ca", "HOST --tls-ca CA"),
        ("--tls-ca", "--listen HOST --tls-ca CA"),
        ("--tls-cert", "HOST OWN"),
        ("--tls-cert", "--listen amqp://HOST OWN"),
        ("--tls-cert", "amqps://HOST --tls-cert CERT"),
        ("--tls-cert", "--listen HOST --tls-cert CERT"),
        ("--tls-key", "amqps://HOST --tls-key KEY"),
        ("--tls-sni", "HOST --tls-sni localhost"),
        ("--tls-sni", "amqps://HOST --tls-sni="),
        ("--tls-no-verify", "HOST --tls-no-verify"),
        ("--tls-no-verify", "amqps://HOST --tls-no-verify --tls-ca CA"),
        ("--listen", "--listen amqps://HOST"),
        ("--listen", "--listen amqps://HOST --tls-ca CA"),
        ("--listen", "--listen HOST OWN --tls-sni localhost"),
        ("--listen", "--listen HOST OWN --tls-no-verify"),
    ],
)
def test_combinations(files: Certificates, program: str, option: str, line: str) -> None:
    """An option of TLS without TLS, or half of one, is refused."""
    own = files.server
    line = line.replace("OWN", " ".join(own.options)).replace("HOST", "127.0.0.1:1")
    line = line.replace("CERT", str(own.certificate)).replace("KEY", str(own.key))
    line = line.replace("CA", files.authority.file)
    assert_usage(pair.run(program, *line.split(), events=False), option)


def test_scheme_gives_the_port() -> None:
    """5671 or 5672; what --broker does not say is as in the URL."""
    for words, broker in [
        (["amqps://localhost/x"], "amqps://localhost:5671"),
        (["localhost/x"], "amqp://localhost:5672"),
        (["amqps://localhost/x", "-b", "127.0.0.1"], "amqps://127.0.0.1:5671"),
        (["amqps://localhost/x", "-b", "amqp://127.0.0.1"], "amqp://127.0.0.1:5672"),
        (["amqps://[::1]", "-b", "[::1]:1"], "amqps://[::1]:1"),
    ]:
        result = pair.run("psend", *words, "--connect-timeout", "1ms", timeout_s=5)
        assert result.only("start")["options"]["broker"] == broker
