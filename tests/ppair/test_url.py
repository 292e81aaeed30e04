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


def _parts(text: str) -> tuple[str | None, bytes | None, bytes | None, str, int | None, str | None]:
    found = url.parse(text)
    return found.scheme, found.user, found.password, found.host, found.port, found.address


# ---- taking apart ----


@pytest.mark.parametrize(
    ("text", "host", "port", "address"),
    [
        ("h", "h", None, None),
        ("h/", "h", None, ""),
        ("h:1/q", "h", 1, "q"),
        ("127.0.0.1:5672/a/b", "127.0.0.1", 5672, "a/b"),
        ("h//queue/x", "h", None, "/queue/x"),
        ("h/a@b:5/c", "h", None, "a@b:5/c"),
        ("h/q?x#y%20z", "h", None, "q?x#y%20z"),
        ("h/amqp://x", "h", None, "amqp://x"),
        ("[::1]", "::1", None, None),
        ("[::1]:5/q", "::1", 5, "q"),
        ("::1/q", "::1", None, "q"),
        ("fe80::1%eth0/q", "fe80::1%eth0", None, "q"),
        ("[fe80::1%eth0]:5672", "fe80::1%eth0", 5672, None),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.4", None, None),
        ("guest:1234/x@h/q", "guest", 1234, "x@h/q"),  # what can be a host is one
    ],
)
def test_hosts(text: str, host: str, port: int | None, address: str | None) -> None:
    for scheme in (None, "amqp", "amqps"):
        given = f"{scheme}://{text}" if scheme else text
        assert _parts(given) == (scheme, None, None, host, port, address)
        assert url.parse(given).secure == (scheme == "amqps")


@pytest.mark.parametrize(
    ("text", "user", "password", "host", "address"),
    [
        ("u@h", "u", None, "h", None),
        ("u:p@h/q", "u", "p", "h", "q"),
        ("u:@h", "u", "", "h", None),
        (":p@h", "", "p", "h", None),
        ("u:p@@h/q", "u", "p@", "h", "q"),
        ("u:p@x:y@h", "u", "p@x:y", "h", None),
        ("u:a/b@h/q", "u", "a/b", "h", "q"),
        ("u:a:b#c?d@h/q", "u", "a:b#c?d", "h", "q"),
        ("u:p%@h", "u", "p%", "h", None),
        ("u:p%4@h", "u", "p%4", "h", None),
        ("u:%40%3a%2F%25@h", "u", "@:/%", "h", None),
        ("u%40x:p@h", "u@x", "p", "h", None),
        ("u:p w@h", "u", "p w", "h", None),
        ("u:p@h/q@r", "u", "p", "h", "q@r"),  # the first @ that leaves a host
        ("u:p@[::1]:5/q", "u", "p", "::1", "q"),
        ("u:p@::1/q", "u", "p", "::1", "q"),
        ("u:\u00e9@h", "u", "\u00e9", "h", None),
    ],
)
def test_users(text: str, user: str, password: str | None, host: str, address: str | None) -> None:
    found = url.parse(f"amqp://{text}")
    said = None if found.password is None else found.password.decode()
    assert found.user is not None
    assert (found.user.decode(), said, found.host, found.address) == (user, password, host, address)
    assert url.parse(found.text()) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not [amqp[s]://]"),
        ("http://h", "has a scheme other than amqp and amqps"),
        ("amqp://", "is not [amqp[s]://]"),
        ("amqp://:5", "is not [amqp[s]://]"),
        ("amqp://h:", "is not [amqp[s]://]"),
        ("amqp://h:x", "is not [amqp[s]://]"),
        ("amqp://h:65536", "is not [amqp[s]://]"),
        ("amqp://h h", "is not [amqp[s]://]"),
        ("amqp://[h]", "is not [amqp[s]://]"),
        ("amqp://u:s3cret@", "is not [amqp[s]://]"),
        ("amqp://u:s3cret@h:x/q", "is not [amqp[s]://]"),
        ("amqp://u:s3cret%00@h", "has a user or password with a zero byte"),
    ],
)
def test_no_urls(text: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        url.parse(text)
    assert str(caught.value).startswith(why) and "s3cret" not in str(caught.value)


def test_all_of_it_written_again() -> None:
    whole = Url("::1", "amqps", b"a@b", b"c:/%", 5671, "/queue/x")
    assert whole.text() == "amqps://a%40b:c%3A%2F%25@[::1]:5671//queue/x"
    assert url.parse(whole.text()) == whole


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
    assert url.named(text, "N") == Spec(via=text).named("N").via == named
    assert url.is_fresh(text) == (text != named)


def test_direct_runs_need_no_name() -> None:
    assert Spec().named("N") == Spec()


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
