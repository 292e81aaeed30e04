"""Where URLs are taken apart, and that passwords are taken out of command lines."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Callable
from pathlib import Path

import launch
import pytest
from fake_peer import WELL, told
from launch import Launcher
from ppair import secret, spec as specs, url
from ppair.spec import Spec
from ppair.url import Url

Fakes = Callable[..., Path]


# ---- taking apart ----


@pytest.mark.parametrize(
    ("text", "host", "port", "address"),
    [
        ("host", "host", None, None),
        ("host/", "host", None, ""),
        ("host:1/queue", "host", 1, "queue"),
        ("host:0", "host", 0, None),
        ("broker.example.org:65535/a", "broker.example.org", 65535, "a"),
        ("127.0.0.1:5672/a/b", "127.0.0.1", 5672, "a/b"),
        ("host//queue/x", "host", None, "/queue/x"),
        ("host/a@b:5/c", "host", None, "a@b:5/c"),
        ("host/a?b=c#d e%20", "host", None, "a?b=c#d e%20"),
        ("host/topic://news", "host", None, "topic://news"),
        ("host:5672/amqp://x", "host", 5672, "amqp://x"),
        ("[::1]", "::1", None, None),
        ("[::1]:5/q", "::1", 5, "q"),
        ("[fe80::1%eth0]:1/q", "fe80::1%eth0", 1, "q"),
        ("[fe80::1%25eth0]", "fe80::1%25eth0", None, None),
        ("fe80::1%eth0.5/q", "fe80::1%eth0.5", None, "q"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", None, None),
        ("2001:db8::2/q", "2001:db8::2", None, "q"),
        ("::", "::", None, None),
        ("user:12/34@host", "user", 12, "34@host"),  # what can be a host is one
        ("host/user:secret@example.org", "host", None, "user:secret@example.org"),
    ],
)
def test_hosts(text: str, host: str, port: int | None, address: str | None) -> None:
    for scheme in (None, "amqp", "amqps"):
        given = f"{scheme}://{text}" if scheme else text
        assert url.parse(given) == Url(scheme, None, None, host, port, address)
        assert url.without_password(given) == given


@pytest.mark.parametrize(
    ("text", "user", "password", "host", "address"),
    [
        ("user@host", "user", None, "host", None),
        ("user:secret@host/q", "user", "secret", "host", "q"),
        ("user:sec@ret@host/q", "user", "sec@ret", "host", "q"),
        ("user:a@b:c/d#e%f?g@127.0.0.1/q", "user", "a@b:c/d#e%f?g", "127.0.0.1", "q"),
        ("user:[:]x@[::1]/q", "user", "[:]x", "::1", "q"),
        ("user:x@::1/q", "user", "x", "::1", "q"),
        ("user:a/b@host", "user", "a/b", "host", None),
        ("user://@host", "user", "//", "host", None),
        ("user:@@host", "user", "@", "host", None),
        ("user:a:b@host", "user", "a:b", "host", None),
        ("user: a\tb@host", "user", " a\tb", "host", None),
        ("guest@example.org:x@host", "guest@example.org", "x", "host", None),
        ("us%3Aer:%40%3a%2F%23%25%3f@host/a@b%40", "us:er", "@:/#%?", "host", "a@b%40"),
        ("%75ser:100%@host", "user", "100%", "host", None),
        ("user:%zz%4@host", "user", "%zz%4", "host", None),
        ("user:%C3%A9@host", "user", "\u00e9", "host", None),
        ("user:\u00e9@host", "user", "\u00e9", "host", None),
        ("user:p@ss/word@host", "user", "p", "ss", "word@host"),  # the first that leaves a host
        ("user:secret@host/a@b", "user", "secret", "host", "a@b"),
    ],
)
def test_users(text: str, user: str, password: str | None, host: str, address: str | None) -> None:
    for scheme in ("amqp", "amqps"):
        found = url.parse(f"{scheme}://{text}")
        secret_bytes = None if password is None else password.encode()
        assert found == Url(scheme, user.encode(), secret_bytes, host, None, address)


@pytest.mark.parametrize(
    "text",
    """| / /q :5672 amqp:// amqp:///q amqp://:5672 http://host amqpss://host AMQP://host ://host
    user@ user:secret@:1 user@/q host: host:/q host:x host:12x host:-1 @host :secret@host user:@host
    us%00er@host user:%00@host ho%73t host?x host:65536 host:123456 [::1 [] []:1 [::1]5672 [::1]x:1
    [::1]: [::1]:x [host] [127.0.0.1]:1 [::1::2] [::1%] ::1% a::g host:1:2 user:secret@host:x/q
    user:secret@[::1 http://user:secret@host amqp://user:secret/x@ amqp://user:secret""".split(),
)
def test_no_urls(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        url.parse(text)
    assert "secret" not in str(caught.value) and str(caught.value).isascii()


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("amqp://user:hunter2@host:1/q", "amqp://user@host:1/q"),
        ("user:hunter2@host", "user@host"),
        ("user:hun@t:e/r2@host/a:b@c", "user@host/a:b@c"),
        ("amqps://u%3As:hunter2%40@[::1]", "amqps://u%3As@[::1]"),
        ("user:hunter2@host:x", "user:hunter2@host:x"),  # not a URL
    ],
)
def test_without_the_password(text: str, without: str) -> None:
    assert url.without_password(text) == without


# ---- an address for each run ----


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("amqp://h", "amqp://h/N"),
        ("amqp://h/", "amqp://h/N"),
        ("h:5", "h:5/N"),
        ("amqp://u@[::1]", "amqp://u@[::1]/N"),
        ("amqp://h/q", "amqp://h/q"),
        ("amqp://h//queue/{}", "amqp://h//queue/N"),
        ("amqp://h/a-{}-b", "amqp://h/a-N-b"),
        ("amqp://u@h/{}", "amqp://u@h/N"),
    ],
)
def test_names_of_runs(text: str, named: str) -> None:
    assert url.named(text, "N") == Spec(via=text).for_run("N", Path()).via == named


def test_direct_runs_need_no_name() -> None:
    assert Spec().for_run("N", Path()) == Spec()


def test_each_run_has_its_own_address(ppair: Launcher, fakes: Fakes) -> None:
    """And the plan has none of them, so that it can be gone on with."""
    quiet = ["start", "ready", ["receive", 1000], "hang"]
    folder = fakes(psend=[["start", "ready", "summary"]], precv=[quiet])
    words = ["--via", "amqp://h", "--repeat", "2", "--out", "out", "--bin", str(folder)]
    assert ppair.run("run", *words).code == 0
    for program in ("psend", "precv"):
        urls = [each["argv"][-1] for each in told(folder, program)]
        assert [re.sub("[0-9a-f]{16}", "T", each) for each in urls] == [
            "amqp://h/ppair-T-p000-r00",
            "amqp://h/ppair-T-p000-r01",
        ]
    assert ppair.results("out").plan.points[0].spec.via == "amqp://h"


# ---- passwords ----

PASSWORD = "s3@cr:t/%41"  # raw, but for the last letter
SECRET = "s3@cr:t/A"
URL = f"amqp://bob:{PASSWORD}@h/q"


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        (["run", "--via", URL], ["run", "--via", "amqp://bob@h/q"]),
        (["run", f"--via={URL}"], ["run", "--via=amqp://bob@h/q"]),
        (["run", "--via", f"bob:{PASSWORD}@h/q"], ["run", "--via", "bob@h/q"]),
        (["run", "--via", URL, "-m", "5"], ["run", "--via", "amqp://bob@h/q", "-m", "5"]),
        (
            ["compare", f"--via '{URL}' --credit 5", f"--a=--via={URL}"],
            ["compare", "--via amqp://bob@h/q --credit 5", "--a=--via=amqp://bob@h/q"],
        ),
        (
            ["sweep", "--with", f"--via {URL}", f"--before=--via {URL} --tls"],
            ["sweep", "--with", "--via amqp://bob@h/q", "--before=--via amqp://bob@h/q --tls"],
        ),
    ],
)
def test_passwords_are_taken_out(words: list[str], hidden: list[str]) -> None:
    found, passwords = secret.hidden(words)
    assert found == hidden and set(passwords) == {SECRET.encode()}


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--via", "amqp://bob@h/q"],
        ["run", "--via", "amqp://h/a:b@c"],
        ["run", "--via", "not a url@"],
        ["run", "--via"],
        ["run", "--content-string", "amqp://u:p@h"],
        ["compare", "--via 'unfinished", "--psend '-m 5'"],
        [],
    ],
)
def test_what_has_none_stays_as_it_is(words: list[str]) -> None:
    assert secret.hidden(words) == (words, [])


def test_messages_do_not_quote_them() -> None:
    said = secret.redacted('"amqp://u:p w@h/q" is not')
    assert said == '"amqp://...@h/q" is not'


def test_one_that_was_put_into_a_file_is_not_read() -> None:
    spec = specs.from_json({**specs.to_json(Spec()), "via": URL})
    assert spec.via == "amqp://bob@h/q"


def test_a_user_is_what_a_password_is_for() -> None:
    assert Spec(via="amqp://bob@h").authenticates("psend")
    assert Spec(psend=("--user", "bob")).authenticates("psend")
    assert not Spec(psend=("--user", "bob")).authenticates("precv")
    assert not Spec(via="amqp://h/a@b").authenticates("psend")


def test_a_password_is_nowhere_but_where_it_belongs(ppair: Launcher, fakes: Fakes) -> None:
    """Not in the process list, nor in any file, nor in what is printed; but psend has it."""
    here, go_on = (str(ppair.folder / name) for name in ("here", "go-on"))
    for fifo in (here, go_on):
        os.mkfifo(fifo)
    listening = os.open(here, os.O_RDONLY | os.O_NONBLOCK)
    sends = ["start", "ready", ["tell", here], ["await", go_on], "summary"]
    folder = fakes(psend=[sends], precv=[["start", "ready", ["receive", 1000], "hang"]])
    words = ["--repeat", "1", "--out", "out", "--html", "p.html", "--bin", str(folder)]
    process = ppair.start("run", "--via", URL, *words)
    assert select.select([listening], [], [], launch.DEADLINE_S)[0]
    os.close(listening)
    everything = "".join(" ".join(launch.argv_of(pid)) for pid in ppair.left())
    assert everything.count("bob@h/q") == 3 and "s3" not in everything
    with open(go_on, "w", encoding="ascii") as writer:
        writer.write(".")
    ended = launch.finish(process)
    assert ended.code == 0, ended
    assert told(folder, "psend")[0]["password"] == told(folder, "precv")[0]["password"] == SECRET
    kept = [path for path in ppair.folder.rglob("*") if path.is_file() and path.parent != folder]
    assert len(kept) > 5
    for path in kept:
        assert b"s3@cr" not in path.read_bytes() and b"s3%40" not in path.read_bytes(), path
    assert "s3@cr" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--via", "amqp://u:s3cret@h h"],
        ["run", "amqp://u:s3cret@h/q"],
        ["run", "--psend", "amqp://u:s3cret@h/q"],
        ["run", "--psend", "'amqp://u:s3cret@h/q"],
        ["run", "--broker", "amqp://u:s3cret@h/q"],
        ["compare", "--via amqp://u:s3cret@h/q", "--via amqp://u:s3cret2@h/q"],
    ],
)
def test_refusals_do_not_quote_it(ppair: Launcher, fakes: Fakes, words: list[str]) -> None:
    ended = ppair.run(*words, "--bin", str(fakes()))
    assert ended.code == 64 and len(ended.lines) == 1
    assert "s3cret" not in ended.stdout + ended.stderr


def test_results_of_one_with_a_password_can_be_gone_on_with(
    ppair: Launcher, fakes: Fakes
) -> None:
    """Whether it is given in the URL again, or in the environment."""
    quiet = ["start", "ready", ["receive", 1000], "hang"]
    folder = fakes(psend=[WELL[:2] + ["summary"]], precv=[quiet])
    words = ["sweep", "--credit", "5,6", "--repeat", "1", "--bin", str(folder)]
    assert ppair.run(*words, "--via", URL, "--out", "out").code == 0
    assert ppair.run(*words, "--via", URL, "--resume", "out").code == 0
    again = ppair.run(
        *words, "--via", "amqp://bob@h/q", "--resume", "out", env={"PPAIR_PASSWORD": SECRET}
    )
    assert again.code == 0, again
