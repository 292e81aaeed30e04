"""SASL: who we are, to whom it is told, and that nobody else gets to know the password."""

import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import amqp
import gate
import pair
import pytest
import wire
from certificates import Certificates
from gate import Gate
from secured import CONNECTION, OTHER, PROGRAMS, SECURITY, USAGE, Listener, assert_failed
from stranger import Stranger

MANY = ["-m", "100"]
UNAUTHORIZED = "amqp:unauthorized-access"


@pytest.fixture(name="behind", scope="function")
def _behind(program: str) -> Iterator[Listener]:
    """What a gate passes messages on to."""
    listener = Listener(OTHER[program])
    yield listener
    assert not listener.end()


def url_of(server: Gate, user: str = "") -> str:
    """Of a gate, for somebody."""
    return f"amqp://{user}{'@' if user else ''}{pair.HOST}:{server.port}/test"


def run(program: str, url: str, *options: str, **more: dict) -> pair.Result:
    """A hundred messages, with whatever password there is."""
    return pair.run(program, url, *MANY, *options, **more)


def assert_authenticated(result: pair.Result, mechanism: str | None) -> None:
    """It went well, and ready says as what."""
    assert result.code == 0 and not result.lines, result
    assert result.only("ready")["sasl"] == mechanism


# ---- between our programs ----


@PROGRAMS
def test_anonymous_or_none(program: str) -> None:
    """A listener takes both."""
    listener = Listener(OTHER[program])
    assert_authenticated(run(program, listener.url), "ANONYMOUS")
    assert_authenticated(run(program, listener.url, "--sasl-mechs", "PLAIN,ANONYMOUS"), "ANONYMOUS")
    assert_authenticated(run(program, listener.url, "--sasl-mechs", "none"), None)
    assert not listener.end()


@PROGRAMS
def test_listener_that_insists(program: str) -> None:
    """With --sasl-mechs; who does not authenticate is turned away."""
    listener = Listener(OTHER[program], "--sasl-mechs", "anonymous")
    result = run(program, listener.url, "--sasl-mechs", "none")
    words = "the peer closed the connection before it opened its own; it may want SASL, or TLS"
    assert_failed(result, f"{words} (amqps://)", CONNECTION)
    assert_authenticated(run(program, listener.url), "ANONYMOUS")
    assert listener.end() == ["the peer does not use SASL"]


@PROGRAMS
def test_no_common_mechanism(program: str) -> None:
    """A listener offers ANONYMOUS, which is not what one gets who has a user."""
    listener = Listener(OTHER[program])
    words = "the peer offers no SASL mechanism that may be used: "
    for mechanism, user in (("EXTERNAL", ""), ("PLAIN", "bob:x@"), ("DIGEST-MD5", "")):
        options = ["--sasl-mechs", mechanism, *(["--sasl-insecure"] if user else [])]
        result = run(program, f"{user}{listener.url}", *options)
        assert_failed(result, words + mechanism, condition=UNAUTHORIZED)
    result = run(program, f"bob:x@{listener.url}", "--sasl-insecure")
    assert_failed(result, words + "PLAIN", condition=UNAUTHORIZED)
    assert_authenticated(run(program, listener.url), "ANONYMOUS")
    listener.end()


@PROGRAMS
@pytest.mark.parametrize("mechanisms", [None, ["ANONYMOUS"]])
def test_peers_of_another_kind(program: str, mechanisms: list[str] | None) -> None:
    """python's library, with and without SASL, connects to a listener of ours."""
    listener = Listener(OTHER[program])
    options = {"sasl_enabled": bool(mechanisms)}
    if mechanisms:
        options["allowed_mechs"] = " ".join(mechanisms)
    where = listener.authority
    connection = amqp.BlockingConnection(where, timeout=amqp.TIMEOUT_S, **options)
    if program == "psend":
        sender = connection.create_sender("test")
        assert sender.send(amqp.numbered(1)).remote_state == amqp.ACCEPTED
    else:
        receiver = connection.create_receiver("test", credit=1)
        assert receiver.receive(timeout=amqp.TIMEOUT_S).properties["sn"] == 1
    connection.close()
    listener.end()


# ---- with a password ----

# Raw: what a URL may have as it is; all of them may be encoded.
RAW = ["secret", "a@b:c/d#e%f?g", "::", "@", "p%zz", "100%", "&=+$,;!*'()", "#", "?", "/", "[::1]"]
ENCODED = [*RAW, "p@ss/word", "12/34", "%41", "\u00e9", " "]


@PROGRAMS
@pytest.mark.parametrize(
    "password,written", [*((p, p) for p in RAW), *((p, quote(p, safe="")) for p in ENCODED)]
)
def test_password_in_the_url(
    program: str, behind: Listener, password: str, written: str
) -> None:
    """Arrives as it is meant."""
    with Gate(behind.port, mechanisms=["ANONYMOUS", "PLAIN", "EXTERNAL"]) as server:
        result = run(program, url_of(server, f"bob:{written}"), "--sasl-insecure")
    assert server.inits == [("PLAIN", b"\0bob\0" + password.encode())]
    assert_authenticated(result, "PLAIN")


@PROGRAMS
def test_user_with_special_characters(program: str, behind: Listener) -> None:
    """An address of e-mail as user is quite usual."""
    with Gate(behind.port, mechanisms=["PLAIN"]) as server:
        for user in ("bob@example.org", quote("d:o@m\\b/b", safe="")):
            assert_authenticated(
                run(program, url_of(server, f"{user}:x"), "--sasl-insecure"), "PLAIN"
            )
    users = [response.split(b"\0")[1] for _, response in server.inits]
    assert users == [b"bob@example.org", b"d:o@m\\b/b"]


@pytest.mark.parametrize(
    "user,options,variable,expected",
    [
        ("bob:url", ["--password-file", "FILE"], "environment", "bob:url"),
        ("bob", ["--password-file", "FILE"], "environment", "bob:file"),
        ("bob", [], "environment", "bob:environment"),
        ("", ["--user", "eve", "--password-file", "FILE"], "environment", "eve:file"),
        ("bob:url", ["--user", "eve"], "environment", "eve:url"),
        ("", ["--user", "eve"], "environment", "eve:environment"),
        ("bob:url", ["-b", "mary:broker@HOST"], None, "mary:broker"),
        ("bob:url", ["-b", "HOST"], None, "bob:url"),
        ("bob:url", ["-b", "mary@HOST"], "environment", "mary:environment"),
        ("", ["-b", "mary:broker@HOST", "--user", "eve"], None, "eve:broker"),
    ],
)
@pytest.mark.parametrize("program", ["psend"])
def test_precedence(
    program: str,
    behind: Listener,
    user: str,
    options: list[str],
    variable: str | None,
    expected: str,
    tmp_path: Path,
) -> None:
    """URL, --password-file, environment; --broker before URL, --user before both. The start event
    has the user, and no password."""
    file = tmp_path / "password"
    file.write_bytes(b"file\r\nnot this\n")
    with Gate(behind.port, mechanisms=["PLAIN"]) as server:
        host = f"{pair.HOST}:{server.port}"
        words = [w.replace("FILE", str(file)).replace("HOST", host) for w in options]
        env = {"PPAIR_PASSWORD": variable} if variable else {}
        result = run(program, url_of(server, user), *words, "--sasl-insecure", env=env)
    assert_authenticated(result, "PLAIN")
    name, password = expected.split(":")
    assert server.inits == [("PLAIN", f"\0{name}\0{password}".encode())]
    start = result.only("start")
    assert start["options"]["user"] == name and start["options"]["broker"] == f"amqp://{host}"
    assert ":url@" not in str(start) and ":broker@" not in str(start)


@pytest.mark.parametrize("program", ["psend"])
@pytest.mark.parametrize("content", [b"only", b"only\n", b"only\r\n", b"only\nmore\n"])
def test_password_file(program: str, behind: Listener, content: bytes, tmp_path: Path) -> None:
    """Its first line, however it ends."""
    file = tmp_path / "password"
    file.write_bytes(content)
    with Gate(behind.port, mechanisms=["PLAIN"]) as server:
        options = ["--password-file", str(file), "--sasl-insecure"]
        assert_authenticated(run(program, url_of(server, "bob"), *options), "PLAIN")
    assert server.inits == [("PLAIN", b"\0bob\0only")]


@PROGRAMS
def test_password_without_a_user_is_nobodys(program: str, behind: Listener) -> None:
    """The environment's alone makes no user."""
    with Gate(behind.port, mechanisms=["PLAIN", "ANONYMOUS"]) as server:
        env = {"PPAIR_PASSWORD": "secret"}
        assert_authenticated(run(program, url_of(server), env=env), "ANONYMOUS")
    assert server.inits == [("ANONYMOUS", b"anonymous")]


@PROGRAMS
def test_password_over_tls(program: str, tmp_path: Path) -> None:
    """Needs no --sasl-insecure."""
    files = Certificates(tmp_path)
    listener = Listener(OTHER[program])
    context = gate.server_context(files.server)
    with Gate(listener.port, context, ["PLAIN", "EXTERNAL"]) as server:
        trust = ["--tls-ca", files.authority.file]
        url = url_of(server, "bob:secret").replace("amqp:", "amqps:")
        assert_authenticated(run(program, url, *trust), "PLAIN")
        # who gives a password wants to use it; a certificate may be for TLS alone
        assert_authenticated(run(program, url, *trust, *files.client.options), "PLAIN")
        chosen = ["--sasl-mechs", "EXTERNAL"]
        assert_authenticated(run(program, url, *trust, *files.client.options, *chosen), "EXTERNAL")
        anonymous = url_of(server).replace("amqp:", "amqps:")
        assert_authenticated(run(program, anonymous, *trust, *files.client.options), "EXTERNAL")
    used = [mechanism for mechanism, _ in server.inits]
    assert used == ["PLAIN", "PLAIN", "EXTERNAL", "EXTERNAL"]
    listener.end()


# ---- refused ----


@PROGRAMS
@pytest.mark.parametrize(
    "outcome,words",
    [
        (gate.AUTH, "the peer refused SASL PLAIN of bob"),
        (gate.SYS, "the peer could not answer SASL PLAIN: an error"),
        (gate.TEMP, "the peer could not answer SASL PLAIN: a temporary error"),
        (gate.CLOSE, "the peer closed the connection instead of an answer to SASL PLAIN"),
    ],
)
def test_refused(program: str, outcome: int | None, words: str) -> None:
    """Said at once, with the user, and not tried again."""
    with Gate(mechanisms=["PLAIN"], outcome=outcome) as server:
        result = run(program, url_of(server, "bob:secret"), "--sasl-insecure")
    assert_failed(result, words, condition=None if outcome is gate.CLOSE else UNAUTHORIZED)
    assert len(server.inits) == 1
    assert "secret" not in str(result)


@PROGRAMS
def test_reset_is_no_refusal(program: str) -> None:
    """Nobody has said anything about who we are; but who we are is not said again and again."""
    with Gate(mechanisms=["PLAIN"], outcome=gate.RESET) as server:
        result = run(program, url_of(server, "bob:secret"), "--sasl-insecure")
        words = "Connection reset by peer before an answer to SASL PLAIN"
        assert_failed(result, words, CONNECTION)
        assert len(server.inits) == 1
        again = ["--sasl-insecure", "--reconnect=2"]
        result = run(program, url_of(server, "bob:secret"), *again)
        assert result.code == CONNECTION and result.lines[-1].endswith(words)
        assert len(server.inits) == 4


@PROGRAMS
def test_refused_anonymous(program: str) -> None:
    """There is no user to name."""
    with Gate(mechanisms=["ANONYMOUS"], outcome=gate.AUTH) as server:
        result = run(program, url_of(server))
    assert_failed(result, "the peer refused SASL ANONYMOUS", condition=UNAUTHORIZED)


def run_against(program: str, answer: bytes, *options: str) -> pair.Result:
    """A server that says but this."""
    with Stranger(answer) as server:
        return pair.run(program, server.url, *options)


@PROGRAMS
def test_peer_without_sasl(program: str) -> None:
    """It begins with AMQP: it can be told, and what helps."""
    result = run_against(program, wire.AMQP_HEADER)
    assert_failed(result, "the peer does not speak SASL (--sasl-mechs none: without)")


@PROGRAMS
def test_peer_that_insists_on_sasl(program: str) -> None:
    """It answers AMQP with SASL."""
    result = run_against(program, wire.SASL_HEADER, "--sasl-mechs", "none")
    assert_failed(result, "the peer insists on SASL, but --sasl-mechs is none")


@PROGRAMS
@pytest.mark.parametrize("mechanisms", ["ANONYMOUS", "none"])
def test_peer_is_not_amqp(program: str, mechanisms: str) -> None:
    """Not a matter of security; what was read is shown."""
    answer = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    result = run_against(program, answer, "--sasl-mechs", mechanisms)
    assert result.code == CONNECTION and "HTTP/1.1 400" in result.lines[0]


# ---- command lines that are refused ----


@PROGRAMS
@pytest.mark.parametrize(
    "option,line",
    [
        ("--sasl-insecure", "bob:secret@HOST"),
        ("--sasl-insecure", "amqp://bob:secret@HOST --sasl-mechs PLAIN,ANONYMOUS"),
        ("--user", "bob@HOST"),
        ("--user", "amqps://bob@HOST"),
        ("--user", "HOST --user bob"),
        ("--user", "HOST --user bob --sasl-mechs PLAIN"),
        ("--user", "HOST --user="),
        ("--password-file", "HOST --password-file FILE"),
        ("--password-file", "bob@HOST --password-file /nonexistent/file"),
        ("--password-file", "bob@HOST --password-file /dev/null"),
        ("--password-file", "bob@HOST --password-file /proc/self"),
        ("--sasl-mechs", "bob:secret@HOST --sasl-mechs none"),
        ("--sasl-mechs", "HOST --sasl-mechs PLAIN"),
        ("--sasl-mechs", "HOST --sasl-mechs PLAIN,none"),
        ("--sasl-mechs", "HOST --sasl-mechs ,"),
        ("--sasl-mechs", "HOST --sasl-mechs A;B"),
        ("--sasl-mechs", f"HOST --sasl-mechs {'A' * 300}"),
        ("--sasl-mechs", "--listen HOST --sasl-mechs PLAIN"),
        ("--sasl-mechs", "--listen HOST --sasl-mechs EXTERNAL"),
        ("--sasl-mechs", "--listen HOST --sasl-mechs none"),
        ("--listen", "--listen HOST --user bob"),
        ("--listen", "--listen bob:secret@HOST"),
        ("--listen", "--listen HOST --password-file FILE"),
        ("--listen", "--listen HOST --sasl-insecure"),
        ("URL", ":secret@HOST"),
        ("URL", "bob:@HOST"),
        ("URL", "@HOST"),
        ("--broker", "-b bob:secret%00@HOST"),
    ],
)
def test_wrong_line_is_refused(program: str, option: str, line: str, tmp_path: Path) -> None:
    """64 and one line that names the option, before any connection."""
    file = tmp_path / "password"
    file.write_text("secret\n", encoding="ascii")
    words = line.replace("HOST", "127.0.0.1:1").replace("FILE", str(file)).split()
    result = pair.run(program, *words, events=False)
    assert result.code == USAGE and not result.stdout, result
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(f"{program}: {option}: "), result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize("mechanisms", ["ANONYMOUS", "EXTERNAL,PLAIN", "PLAIN ANONYMOUS"])
def test_user_that_needs_no_password(mechanisms: str) -> None:
    """If other mechanisms were asked for."""
    listener = Listener("precv")
    options = ["--user", "bob", "--sasl-mechs", mechanisms]
    result = run("psend", listener.url, *options)
    assert result.code == (SECURITY if "EXTERNAL" in mechanisms else 0)
    listener.end()


# ---- secrets ----

SECRET = "s3cret"
SHAPES = [
    SECRET,
    f"a@{SECRET}:c/d#e%f?g",
    f"{SECRET}@",
    f"#{SECRET}",
    quote(f"@:/#%?{SECRET}", safe=""),
]
# a test's name gets into its environment
SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=map(str, range(len(SHAPES))))


@PROGRAMS
@SHAPE
@pytest.mark.parametrize("how", ["URL", "-bURL", "-b URL", "--broker=URL", "--broker URL", "ENV"])
def test_password_is_not_seen(
    program: str, behind: Listener, shape: str, how: str, tmp_path: Path
) -> None:
    """In /proc, on standard output and error, in events and files, while it runs and afterwards."""
    output = tmp_path / "output"
    with Gate(behind.port, mechanisms=["PLAIN"]) as server:
        url = url_of(server, "bob" if how == "ENV" else f"bob:{shape}")
        words = [word.replace("URL", url) for word in how.replace("ENV", "URL").split(" ")]
        env = {"PPAIR_PASSWORD": shape} if how == "ENV" else {}
        options = ["-m", "0", "-f", "json", "-o", str(output), "--sasl-insecure"]
        child = pair.start(program, *words, *options, env=env)
        pair.wait_for(child, "ready")
        seen = [Path(f"/proc/{child.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        pair.send_signal(child, signal.SIGINT)
        result = pair.finish(child)
    assert len(server.inits) == 1 and SECRET.encode() in server.inits[0][1]
    everything = str(result) + output.read_text(encoding="ascii") + str(seen)
    assert SECRET not in everything
    assert f"amqp://bob@{pair.HOST}:{server.port}/test" in " ".join(result.only("start")["argv"])
    assert f"amqp://bob@{pair.HOST}:{server.port}/test".encode() in seen[0]


@PROGRAMS
@SHAPE
def test_password_is_not_in_errors(program: str, shape: str) -> None:
    """Whatever fails: the name, the connection, the peer."""
    port = Listener(OTHER[program])
    for host in ("no..host", "127.0.0.1:1", port.authority):
        options = ["--sasl-insecure", "--connect-timeout", "100ms"]
        result = run(program, f"bob:{shape}@{host}", *options)
        assert result.code in (CONNECTION, SECURITY) and len(result.lines) == 1
        assert SECRET not in str(result)
    port.end()


@PROGRAMS
@pytest.mark.parametrize("variable", ["PN_TRACE_FRM", "PN_TRACE_RAW", "PN_LOG"])
def test_password_is_not_in_traces(program: str, behind: Listener, variable: str) -> None:
    """Of the library's, which are there if they are asked for."""
    with Gate(behind.port, mechanisms=["PLAIN"]) as server:
        url = url_of(server, f"bob:{SECRET}")
        env = {variable: "TRACE+" if variable == "PN_LOG" else "1"}
        env |= {"PN_TRACE_FRM": "1"} if variable == "PN_LOG" else {}
        result = pair.run(program, url, "-m", "1", "--sasl-insecure", env=env)
    assert result.code == 0 and len(server.inits) == 1
    assert "PLAIN" in result.stderr and "@open" in result.stderr or variable == "PN_TRACE_RAW"
    assert len(result.lines) > 5
    assert SECRET not in str(result)
