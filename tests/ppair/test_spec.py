"""Arrangements as data: what they mean, which are refused, and that nothing of them is lost."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ppair import arrangement, spec as specs
from ppair.failure import Exit, Failure
from ppair.presets import PRESETS
from ppair.programs import PRECV, PSEND
from ppair.spec import Spec

FULL = Spec(
    psend=("--messages", "10k", "--content-string", "a b"),
    precv=("--credit", "20"),
    senders=4,
    receivers=2,
    via="amqp://b/q",
    psend_hosts=("a", "b"),
    precv_hosts=("c",),
    listen="::1",
    bin="/opt/bin",
    library_path="/opt/lib",
    deadline_s=90.5,
)
TLS = Spec(tls=True, psend=("--warmup", "0"), precv=("--credit", "20"))


def test_json_and_back() -> None:
    for spec in (Spec(), FULL, TLS):
        assert specs.from_json(json.loads(json.dumps(specs.to_json(spec)))) == spec


def test_the_command_can_be_typed(fakes: Callable[..., Path]) -> None:
    """It gives the same arrangement again, but for the folder of the programs."""
    folder = str(fakes())
    for spec in (Spec(bin=folder), replace(FULL, bin=folder), replace(TLS, bin=folder)):
        assert arrangement.parse_words(spec.command(), Spec(bin=folder), "A") == spec


def test_the_command_says_what_is_not_usual() -> None:
    assert Spec().command() == ""
    assert Spec(psend=("-m", "5")).command() == "--psend '-m 5'"
    words = shlex.split(FULL.command())
    assert words[words.index("--psend") + 1] == "--messages 10k --content-string 'a b'"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"senders": 0}, "one to 1000 of each"),
        ({"receivers": 0}, "one to 1000 of each"),
        ({"receivers": 2}, "--receivers 2: without --via each needs a sender, and there are 1"),
        ({"senders": 2, "receivers": 3}, "without --via each needs a sender, and there are 2"),
        ({"psend_hosts": ("a",)}, "--listen-address"),
        ({"deadline_s": 0.0}, "--deadline"),
        ({"tls": True, "via": "amqp://b/q"}, "give --via an amqps URL"),
        ({"tls": True, "precv_hosts": ("a",)}, "--tls: makes a certificate here alone"),
        ({"psend": ("-d", "soon")}, '--duration: "soon" is not a time'),
        ({"psend": ("--duration", "5m")}, '--duration: "5m" is not a time'),
        ({"psend": ("-d", "1s", "--warmup", "x")}, '--warmup: "x" is not a time'),
    ],
)
def test_what_cannot_be_arranged(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(Failure) as caught:
        Spec(**fields).check()
    assert caught.value.code == Exit.USAGE
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"senders": 3, "receivers": 3},
        {"senders": 5, "receivers": 2},
        {"receivers": 5, "via": "amqp://b/q"},
        {"psend_hosts": ("a",), "precv_hosts": ("b",)},
        {"psend_hosts": ("a",), "listen": "10.0.0.1"},
        {"precv_hosts": ("a",)},
        {"psend_hosts": ("a",), "via": "amqp://b/q"},
        {"psend": ("-m", "0", "-d", "1h")},
    ],
)
def test_what_can_be_arranged(fields: dict[str, Any]) -> None:
    Spec(**fields).check()


def test_receivers_that_must_be_told_to_end() -> None:
    assert Spec(senders=2).endless and Spec(senders=3, receivers=2).endless
    assert Spec(via="amqp://b/q").endless
    assert not Spec().endless and not Spec(senders=2, receivers=2).endless


# ---- options ----


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("--messages 5", "5"),
        ("--messages=5", "5"),
        ("-m 5", "5"),
        ("-m5", "5"),
        ("-m 5 --messages 7", "7"),
        ("--messages 7 -m 5", "5"),
        ("--messages=", ""),
        ("--warmup 5", None),
        ("--messages-more 5", None),
        ("", None),
    ],
)
def test_the_value_of_an_option_is_that_of_its_last_occurrence(
    words: str, value: str | None
) -> None:
    assert Spec(psend=tuple(words.split())).option(PSEND, "-m", "--messages") == value


def test_options_are_those_of_one_program() -> None:
    spec = Spec(psend=("--warmup", "1s"), precv=("--warmup", "2s"))
    assert spec.option(PSEND, "--warmup") == "1s" and spec.option(PRECV, "--warmup") == "2s"


def test_more_words_override() -> None:
    spec = Spec(psend=("-m", "5")).plus(("-m", "6"), ("--credit", "7"))
    assert spec.option(PSEND, "-m") == "6" and spec.option(PRECV, "--credit") == "7"


@pytest.mark.parametrize(
    ("words", "messages"), [("-m 10k", 10_000), ("-m 0", None), ("-d 1s", None), ("", None)]
)
def test_messages(words: str, messages: int | None) -> None:
    assert Spec(psend=tuple(words.split())).messages == messages


def test_presettled() -> None:
    assert Spec(psend=("--presettled",)).presettled
    assert not Spec(precv=("--presettled",)).presettled


# ---- time ----


@pytest.mark.parametrize(
    ("words", "deadline_s"),
    [
        ("-d 2s", 32),
        ("-d 2s --warmup 500ms", 32.5),
        ("-d 1h -m 5", 3630),
        ("-m 5", 600),
        ("", 600),
    ],
)
def test_the_deadline_is_beyond_what_a_run_may_take(words: str, deadline_s: float) -> None:
    assert Spec(psend=tuple(words.split())).run_deadline_s == deadline_s


def test_a_deadline_that_was_given() -> None:
    assert Spec(psend=("-d", "1h"), deadline_s=5).run_deadline_s == 5


@pytest.mark.parametrize(
    ("psend", "precv", "expected"),
    [
        ("", "", ("--duration 1s --warmup 100ms", "--warmup 100ms")),
        ("-m 5", "", ("-m 5", "")),
        ("-d 3s", "", ("--warmup 100ms -d 3s", "--warmup 100ms")),
        ("-d 3s --warmup 0", "", ("-d 3s --warmup 0", "--warmup 100ms")),
        ("", "--warmup 2s", ("--duration 1s --warmup 100ms", "--warmup 2s")),
    ],
)
def test_defaults(psend: str, precv: str, expected: tuple[str, str]) -> None:
    spec = Spec(tuple(psend.split()), tuple(precv.split())).with_defaults()
    assert (" ".join(spec.psend), " ".join(spec.precv)) == expected
    assert spec.with_defaults() == spec


@pytest.mark.parametrize("name", PRESETS)
def test_presets_can_be_arranged(name: str) -> None:
    preset = PRESETS[name]
    points = list(preset.grid())
    assert points == [dict(values) for values in points]
    assert len(points) > 1 or preset.parameters  # which may ask for more
    for values in points:
        psend, precv = preset.words(values)
        Spec(preset.psend + psend, preset.precv + precv).with_defaults().check()
        assert set(values) <= {axis.name for axis in preset.axes}


def test_certificates_are_before_what_was_given() -> None:
    """So that it replaces them."""
    spec = TLS.for_run("name", Path("/out/tls"))
    assert spec.psend == ("--tls-ca", "/out/tls/cert.pem", "--warmup", "0")
    given = ("--tls-cert", "/out/tls/cert.pem", "--tls-key", "/out/tls/key.pem")
    assert spec.precv == (*given, "--credit", "20")
    assert spec.listens_with_tls and not TLS.listens_with_tls


def test_a_broker_decides_unless_a_queue_depth_does() -> None:
    via = Spec(via="amqp://b/q")
    assert via.by_broker and not Spec().by_broker
    assert via.plus(("--max-unsettled", "0")).by_broker
    assert not via.plus(("--max-unsettled", "1k")).by_broker


def test_the_program_is_in_its_folder() -> None:
    assert Spec(bin="/opt/bin").program(PSEND) == str(Path("/opt/bin/psend"))
