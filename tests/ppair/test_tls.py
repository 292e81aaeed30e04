"""TLS between a pair: its certificates, and what it costs."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import launch
import pytest
import sample
from fake_peer import told
from launch import Launcher
from ppair import certificates, size_cost
from ppair import results as outcomes
from ppair.failure import Exit, Failure
from ppair.presets import PRESETS
from ppair.results import Plan, Point, Results, Run
from ppair.spec import Spec

Fakes = Callable[..., Path]
SIZES = ("10", "100", "1Ki", "4Ki", "16Ki", "64Ki")

# ---- certificates ----


def _names(folder: Path) -> list[str]:
    decoded: dict[str, Any] = ssl._ssl._test_decode_cert(  # type: ignore[attr-defined]
        str(folder / "cert.pem")
    )
    return [f"{kind} {name}" for kind, name in decoded["subjectAltName"]]


def test_a_certificate_is_for_all_addresses(tmp_path: Path) -> None:
    """It can be used by a server, and it is trusted by whoever trusts it alone."""
    folder = tmp_path / "tls"
    certificates.make(folder, ["127.0.0.1", "::1", "host.example"])
    names = ["IP Address 127.0.0.1", "IP Address 0:0:0:0:0:0:0:1", "DNS host.example"]
    assert _names(folder) == names
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    assert (folder / "key.pem").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["tls"]


def test_one_that_is_there_stays(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    folder.mkdir()
    certificates.make(folder, ["127.0.0.1"])
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("openssl", "why"),
    [
        (None, "openssl, which --tls needs: No such file or directory"),
        ("#!/bin/sh\necho one >&2; echo two >&2; exit 1\n", "openssl made no certificate: two"),
        ("#!/bin/sh\nexit 1\n", "openssl made no certificate: no reason given"),
        ("#!/bin/sh\nexec sleep 60\n", "openssl, which --tls needs: does not end"),
    ],
)
def test_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openssl: str | None, why: str
) -> None:
    monkeypatch.setattr(certificates, "TIMEOUT_S", 0.5)
    programs = tmp_path / "bin"
    programs.mkdir()
    if openssl:
        (programs / "openssl").write_text(openssl)
        (programs / "openssl").chmod(0o755)
        (programs / "sleep").symlink_to("/bin/sleep")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(Failure) as caught:
        certificates.make(tmp_path / "tls", ["127.0.0.1"])
    assert (str(caught.value), caught.value.code) == (why, Exit.INTERNAL)
    assert not (tmp_path / "tls").exists()


def test_run_with_tls(ppair: Launcher, fakes: Fakes) -> None:
    """Both programs get the experiment's certificate, and the plan has none of it."""
    sender = ["start", "ready", "summary"]
    folder = fakes(psend=[sender], precv=[["start", "ready", ["receive", 1000], "summary"]])
    words = ["--tls", "--listen-address", "127.0.0.2", "--repeat", "2", "--bin", str(folder)]
    ended = ppair.run("run", *words, "--out", "out")
    assert ended.code == 0, ended
    made = ppair.folder / "out" / "tls"
    assert _names(made) == ["IP Address 127.0.0.2"]
    for psend, precv in zip(told(folder, "psend"), told(folder, "precv")):
        assert psend["argv"][-1].startswith("amqps://127.0.0.2:")
        assert psend["argv"][psend["argv"].index("--tls-ca") + 1] == str(made / "cert.pem")
        assert precv["argv"][precv["argv"].index("--tls-key") + 1] == str(made / "key.pem")
    spec = ppair.results("out").plan.points[0].spec
    assert spec.tls and spec.command().startswith("--tls ") and "tls-ca" not in spec.command()


@pytest.mark.skipif(not launch.speaks_tls(), reason="psend does not speak TLS")
def test_run_with_tls_for_real(ppair: Launcher) -> None:
    words = ["--tls", "-m", "1000", "--repeat", "1", "--out", "out"]
    for more in ([], ["--listen-address", "::1"]):
        ended = ppair.run("run", *words[:-1], f"out{len(more)}", *more)
        assert ended.code == 0, ended


# ---- what it costs ----


def _results(cost: Callable[[str, str, float], float | None], sizes: Sequence[str]) -> Results:
    """Of the preset: COST in ns by connection, program and bytes of body."""
    axes = PRESETS["tls"].axes
    values = [{"connection": c, "content-size": s} for c in ("plain", "TLS") for s in sizes]
    points = tuple(Point(id, each, Spec()) for id, each in enumerate(values))
    plan = Plan("sweep", "", (axes[0], replace(axes[1], values=tuple(sizes))), points, 2, 0)
    results = Results(Path("x"), plan, (), sample.MACHINE, 0)
    for point in points:
        text = point.values["content-size"]
        size = 1024.0 * int(text[:-2]) if text.endswith("Ki") else float(text)
        found = {
            f"{program}_cpu_per_message_ns": cost(point.values["connection"], program, size)
            for program in ("psend", "precv")
        }
        for repetition in range(2):
            run = Run(point.id, repetition, status=outcomes.GOOD, metrics=found)
            results.runs.append(run)
    return results


def _cost(connection: str, program: str, size: float) -> float:
    encrypted = connection == "TLS"
    message, byte = (400.0, 0.05) if program == "psend" else (500.0, 0.06)
    return message + 100 * encrypted + (byte + 0.3 * encrypted) * size


def _findings(
    cost: Callable[[str, str, float], float | None], sizes: Sequence[str] = SIZES
) -> dict[str, Any]:
    return size_cost.findings(_results(cost, sizes), "content-size", "connection")


def test_what_a_message_and_a_byte_cost() -> None:
    found = _findings(_cost)
    costs = {(c["connection"], c["program"]): c for c in found["costs"]}
    assert len(costs) == 4
    for (connection, program), each in costs.items():
        at_0, at_1000 = (_cost(connection, program, size) for size in (0, 1000))
        assert each["message_ns"]["value"] == pytest.approx(at_0, rel=1e-6)
        assert each["byte_ns"]["value"] == pytest.approx((at_1000 - at_0) / 1000, rel=1e-6)
    (sentence,) = found["sentences"]
    assert sentence.startswith("TLS costs the sender 100 ns (")
    assert "0.3 ns (" in sentence and sentence.endswith("of CPU time per byte, more than plain.")
    assert [row[:2] for row in found["tables"][0]["rows"]] == [
        ["sender", "plain"],
        ["receiver", "plain"],
        ["sender", "TLS"],
        ["receiver", "TLS"],
    ]


def test_what_is_lost_in_the_noise_is_said_to_be() -> None:
    """Of two that are the same but for noise."""

    def noisy(connection: str, program: str, size: float) -> float:
        chance = random.Random(f"{connection} {program} {size}")
        return (500 + 0.1 * size) * (1 + chance.gauss(0, 0.1))

    (sentence,) = _findings(noisy)["sentences"]
    assert "nothing certain per message (at most " in sentence
    assert "nothing certain per byte (at most " in sentence


def test_too_few_sizes() -> None:
    found = _findings(_cost, SIZES[:2])
    assert found["sentences"] == ["Too few sizes were measured well to say what they cost."]
    assert found["costs"] == []


def test_of_what_was_not_measured_nothing_is_said() -> None:
    def none(connection: str, program: str, size: float) -> float | None:
        return None if connection == "TLS" else _cost(connection, program, size)

    found = _findings(none)
    assert len(found["costs"]) == 2 and found["sentences"][0].startswith("Too few")
