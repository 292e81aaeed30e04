"""TLS, in both directions: what is accepted, what is refused, and what is said of it."""

import re
import signal
import socket
import ssl
from pathlib import Path

import gate
import pair
import pytest
from certificates import Certificates
from secured import CONNECTION, OTHER, PROGRAMS, Listener, assert_failed
from stranger import Stranger



@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of all kinds."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


def connect(
    program: str,
    port: int,
    *options: str,
    host: str = pair.HOST,
    scheme: str = "amqps",
    **more: dict,
) -> pair.Result:
    """A hundred messages, one way or the other."""
    return pair.run(program, f"{scheme}://{host}:{port}/test", "-m", "100", *options, **more)


def assert_encrypted(result: pair.Result, sasl: str | None = "ANONYMOUS") -> None:
    """It went well, and ready says how."""
    assert result.code == 0 and not result.lines, result
    ready = result.only("ready")
    assert re.fullmatch(r"TLSv1\.[23]", ready["tls"]["protocol"])
    assert re.fullmatch(r"[A-Z0-9_-]+", ready["tls"]["cipher"])
    assert set(ready["tls"]) == {"protocol", "cipher"}
    assert ready["sasl"] == sasl


# ---- accepted ----


@PROGRAMS
def test_messages_pass(files: Certificates, program: str) -> None:
    """In both directions, with bodies of several records."""
    listener, connector = OTHER[program], program
    many = pair.count(20000)
    limits = {"psend": ["-m", str(many), "--content-size", "1k"], "precv": []}
    child, url = pair.listen(listener, *files.server.options, *limits[listener])
    trust = ["--tls-ca", files.authority.file]
    result = pair.run(connector, f"amqps://{url}", *trust, *limits[connector])
    other = pair.finish(child)
    assert_encrypted(result)
    ends = {connector: result, listener: other}
    pair.assert_delivered(ends["psend"], ends["precv"], many)


@PROGRAMS
@pytest.mark.parametrize("size", ["0", "5000000"])
def test_extreme_sizes(files: Certificates, program: str, size: str) -> None:
    """A frame of any size goes through TLS's records."""
    options = {"psend": ["-m", "10", "--content-size", size, "--max-frame", "2Gi"]}
    options["precv"] = ["--max-frame", "2Gi"]
    listener = OTHER[program]
    child, url = pair.listen(listener, *files.server.options, *options[listener])
    trust = ["--tls-ca", files.authority.file]
    ends = {program: pair.run(program, f"amqps://{url}", *trust, *options[program])}
    ends[listener] = pair.finish(child)
    pair.assert_delivered(ends["psend"], ends["precv"], 10)


@pytest.mark.parametrize(
    "host,identity,options",
    [
        ("127.0.0.1", "server", []),
        ("localhost", "server", []),
        ("LOCALHOST", "named", []),
        ("127.0.0.1", "named", ["--tls-sni", "localhost"]),
    ],
)
def test_name_or_address(
    files: Certificates, host: str, identity: str, options: list[str]
) -> None:
    """Of the URL, or --tls-sni's."""
    listener = Listener("precv", *getattr(files, identity).options)
    trust = ["--tls-ca", files.authority.file]
    assert_encrypted(connect("psend", listener.port, *trust, *options, host=host))
    assert not listener.end()


def test_ipv6_address(files: Certificates) -> None:
    """It is compared as an address, not as a text; a listener may say that it speaks TLS."""
    listener = Listener("precv", *files.server.options, where="amqps://[::1]:0")
    trust = ["--tls-ca", files.authority.file]
    assert_encrypted(connect("psend", listener.port, *trust, host="[0:0::1]"))
    listener.end()


@PROGRAMS
@pytest.mark.parametrize("identity", ["wrong", "expired", "early", "stranger", "of_old"])
def test_no_verification(files: Certificates, program: str, identity: str) -> None:
    """--tls-no-verify takes anybody."""
    listener = Listener(OTHER[program], *getattr(files, identity).options)
    assert_encrypted(connect(program, listener.port, "--tls-no-verify"))
    listener.end()


def test_system_store(files: Certificates) -> None:
    """Without --tls-ca; with it, those of the system are not trusted as well."""
    listener = Listener("precv", *files.server.options)
    system = {"SSL_CERT_FILE": files.authority.file}
    assert_encrypted(connect("psend", listener.port, env=system))
    other = ["--tls-ca", files.other.file]
    result = connect("psend", listener.port, *other, env=system)
    assert_failed(result, UNKNOWN)
    listener.end()


def test_the_name_is_asked_for(files: Certificates) -> None:
    """SNI has the name; an address is not asked for, as RFC 6066 has it."""
    listener = Listener("precv")
    trust = ["--tls-ca", files.authority.file]
    with gate.Gate(listener.port, gate.server_context(files.server)) as server:
        assert_encrypted(connect("psend", server.port, *trust))
        assert_encrypted(connect("psend", server.port, *trust, host="localhost"))
        sni = ["--tls-sni", "localhost"]
        assert_encrypted(connect("psend", server.port, *trust, *sni))
    assert server.names == [None, "localhost", "localhost"]
    listener.end()


def test_version_of_tls(files: Certificates) -> None:
    """Is what was agreed upon, not the first that has the cipher."""
    context = gate.server_context(files.server)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-SHA")
    listener = Listener("precv")
    with gate.Gate(listener.port, context) as server:
        result = connect("psend", server.port, "--tls-no-verify")
    assert_encrypted(result)
    assert result.only("ready")["tls"]["protocol"] == "TLSv1.2"
    listener.end()


def test_listener_is_not_asked(files: Certificates) -> None:
    """Its ready event comes before there is a connection."""
    child, _ = pair.listen("precv", *files.server.options, "--timeout", "1ms")
    ready = pair.finish(child).only("ready")
    assert (ready["tls"], ready["sasl"]) == (None, None)


# ---- certificates that are not accepted ----

UNKNOWN = "the peer's certificate is not accepted: unable to get local issuer certificate"
EXPIRED = "the peer's certificate is not accepted: certificate has expired"
EARLY = "the peer's certificate is not accepted: certificate is not yet valid"
MAY_REFUSE = (
    "the peer closed the connection during the TLS handshake; it may not accept our certificate"
)


@PROGRAMS
@pytest.mark.parametrize(
    "identity,host,words",
    [
        ("stranger", "127.0.0.1", UNKNOWN),
        ("expired", "127.0.0.1", EXPIRED),
        ("early", "127.0.0.1", EARLY),
        ("wrong", "localhost", "the peer's certificate is not for localhost"),
        ("wrong", "127.0.0.1", "the peer's certificate is not for 127.0.0.1"),
        ("named", "127.0.0.1", "the peer's certificate is not for 127.0.0.1"),
    ],
)
def test_refused_certificate(
    files: Certificates, program: str, identity: str, host: str, words: str
) -> None:
    """The line says which check it did not pass; who listens goes on."""
    listener = Listener(OTHER[program], *getattr(files, identity).options)
    trust = ["--tls-ca", files.authority.file]
    assert_failed(connect(program, listener.port, *trust, host=host), words)
    assert_encrypted(connect(program, listener.port, "--tls-no-verify", host=host))
    assert listener.end() == [MAY_REFUSE]


def test_refused_issuer(files: Certificates) -> None:
    """It is said that it is not the certificate itself."""
    listener = Listener("precv", *files.of_old.options)
    result = connect("psend", listener.port, "--tls-ca", files.old.file)
    words = "an issuer of the peer's certificate is not accepted: certificate has expired"
    assert_failed(result, words)
    listener.end()


def test_self_signed_certificate(files: Certificates) -> None:
    """What most test servers have."""
    listener = Listener("precv", *files.other.identity.options)
    result = connect("psend", listener.port, "--tls-ca", files.authority.file)
    assert_failed(result, "the peer's certificate is not accepted: self-signed certificate")
    listener.end()


def test_peer_is_told(files: Certificates) -> None:
    """By a server that sends alerts: what it says is repeated."""
    context = gate.server_context(files.server)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(files.authority.file)
    trust = ["--tls-ca", files.authority.file]
    said = "the peer does not accept our certificate: "
    with gate.Gate(tls=context) as server:
        result = connect("psend", server.port, *trust)
        assert_failed(result, "the peer wants a certificate of ours")
        result = connect("psend", server.port, *trust, *files.impostor.options)
        assert_failed(result, said + "unknown CA")
        result = connect("psend", server.port, *trust, *files.old_client.options)
        assert_failed(result, said + "certificate expired")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        result = connect("psend", server.port, *trust)
        words = "the peer refused TLS: no cipher in common, or it wants a certificate of ours"
        assert_failed(result, words)


# ---- clients' certificates ----


@PROGRAMS
def test_client_certificate(files: Certificates, program: str) -> None:
    """Is asked for with --tls-ca, and is then who one is: EXTERNAL."""
    trust = ["--tls-ca", files.authority.file]
    listener = Listener(OTHER[program], *files.server.options, *trust)
    assert_encrypted(connect(program, listener.port, *trust, *files.client.options), "EXTERNAL")
    anonymous = ["--sasl-mechs", "ANONYMOUS"]
    result = connect(program, listener.port, *trust, *files.client.options, *anonymous)
    assert_encrypted(result)
    assert not listener.end()


def test_client_certificate_that_nobody_wants(files: Certificates) -> None:
    """It is not offered, so that it is of no use for SASL."""
    listener = Listener("precv", *files.server.options)
    trust = ["--tls-ca", files.authority.file]
    assert_encrypted(connect("psend", listener.port, *trust, *files.client.options))
    listener.end()


@PROGRAMS
@pytest.mark.parametrize(
    "identity,words,guess",
    [
        (None, "the peer has no certificate", "want a certificate of ours"),
        ("impostor", UNKNOWN, "not accept our certificate"),
        ("old_client", EXPIRED, "not accept our certificate"),
    ],
)
def test_refused_client(
    files: Certificates, program: str, identity: str | None, words: str, guess: str
) -> None:
    """The listener says why and goes on. It cannot tell its peer more than to close, since the
    library sends no alert."""
    trust = ["--tls-ca", files.authority.file]
    listener = Listener(OTHER[program], *files.server.options, *trust)
    own = getattr(files, identity).options if identity else []
    result = connect(program, listener.port, *trust, *own)
    assert_failed(
        result, f"the peer closed the connection after the TLS handshake; it may {guess}"
    )
    assert_encrypted(connect(program, listener.port, *trust, *files.client.options), "EXTERNAL")
    assert listener.end() == [words]


# ---- peers that speak something else ----

DEAF = "the peer closed the connection during the TLS handshake; it may not speak TLS"


@PROGRAMS
def test_tls_to_a_plain_port(program: str) -> None:
    """Ours closes without a word; the next client is welcome."""
    listener = Listener(OTHER[program])
    assert_failed(connect(program, listener.port), DEAF)
    assert connect(program, listener.port, scheme="amqp").code == 0
    listener.end()


@PROGRAMS
@pytest.mark.parametrize("answer", [b"AMQP\x00\x01\x00\x00", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_peer_that_answers_without_tls(program: str, answer: bytes) -> None:
    """That is enough to know."""
    with Stranger(answer) as server:
        assert_failed(pair.run(program, f"amqps://{server.url}"), "the peer does not speak TLS")


@PROGRAMS
@pytest.mark.parametrize("mechanisms", ["ANONYMOUS", "none"])
def test_plain_to_a_tls_port(files: Certificates, program: str, mechanisms: str) -> None:
    """Who listens says so, and goes on; the peer can but guess."""
    listener = Listener(OTHER[program], *files.server.options)
    result = connect(program, listener.port, "--sasl-mechs", mechanisms, scheme="amqp")
    wish = "TLS" if mechanisms != "none" else "SASL, or TLS"
    words = "the peer closed the connection before it opened its own"
    assert_failed(result, f"{words}; it may want {wish} (amqps://)", CONNECTION)
    assert_encrypted(connect(program, listener.port, "--tls-no-verify"))
    assert listener.end() == ["the peer does not use TLS"]


def test_plain_to_a_server_that_sends_alerts() -> None:
    """OpenSSL's servers answer in TLS, which can be told."""
    with Stranger(bytes([21, 3, 1, 0, 2, 2, 70])) as server:  # protocol_version
        assert_failed(pair.run("psend", server.url), "the peer speaks TLS (amqps://)")


@PROGRAMS
def test_versions_of_tls(files: Certificates, program: str, tmp_path: Path) -> None:
    """None in common."""
    settings = tmp_path / "openssl.cnf"
    settings.write_text(
        "openssl_conf = a\n[a]\nssl_conf = b\n"
        "[b]\nsystem_default = c\n[c]\nMinProtocol = TLSv1.3\n",
        encoding="ascii",
    )
    context = gate.server_context(files.server)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with gate.Gate(tls=context) as server:
        result = connect(
            program, server.port, "--tls-no-verify", env={"OPENSSL_CONF": str(settings)}
        )
        assert_failed(result, "no version of TLS in common with the peer")
        assert len(server.errors) == 1


@PROGRAMS
@pytest.mark.parametrize("killed", ["listener", "connector"])
def test_peer_is_killed(files: Certificates, program: str, killed: str) -> None:
    """Long after the handshake: a lost connection as any other, not a failure of TLS."""
    listener = OTHER[program]
    limits = {"psend": ["-m", "0"], "precv": []}
    watch = ["--interval", "50ms"]
    server, url = pair.listen(listener, *files.server.options, *limits[listener], *watch)
    client = pair.start(program, f"amqps://{url}", "--tls-no-verify", *limits[program], *watch)
    children = {"listener": server, "connector": client}
    for child in children.values():
        pair.wait_for(child, "interval", 2)
    victim = children.pop(killed)
    pair.send_signal(victim, signal.SIGKILL)
    (left,) = children.values()
    result = pair.finish(left, 5)
    assert result.code == CONNECTION and len(result.lines) == 1, result
    lost = ("connection aborted", "Connection reset by peer", "Broken pipe")
    assert result.only("error")["description"] in lost


@PROGRAMS
def test_peer_never_answers(program: str) -> None:
    """--connect-timeout holds for the handshake too."""
    with socket.create_server((pair.HOST, 0)) as server:
        port = int(server.getsockname()[1])
        result = connect(program, port, "--connect-timeout", "300ms")
    assert result.code == CONNECTION and 0.3 <= result.seconds < 8
    assert len(result.lines) == 1


def test_strangers_at_a_tls_port(files: Certificates) -> None:
    """Whatever they say, the listener goes on, and each is reported once."""
    listener = Listener("precv", *files.server.options)
    hello = bytes([22, 3, 1, 0, 5]) + b"hello"
    for words in (b"", b"GET / HTTP/1.0\r\n\r\n", hello, hello[:4]):
        with socket.create_connection((pair.HOST, listener.port)) as client:
            client.sendall(words)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
    assert_encrypted(connect("psend", listener.port, "--tls-no-verify"))
    assert len(listener.end()) == 4
