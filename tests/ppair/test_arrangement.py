"""From a command line to a Spec: whose an option is, and what is refused."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_peer import HELP, OWN, install
from ppair import arrangement, programs
from ppair.arrangement import Given
from ppair.failure import Exit, Failure
from ppair.programs import PRECV, PSEND, Option
from ppair.spec import Spec

Split = Callable[..., tuple[list[str], list[Given]]]
Made = Callable[..., Spec]

BOTH = (PSEND, PRECV)


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the programs: one for all, whose options are read once."""
    return install(tmp_path_factory.mktemp("bin"), [], [])


@pytest.fixture(name="split")
def _split(folder: Path) -> Split:
    """Words of ppair's own, and options of the programs."""

    def split(*words: str) -> tuple[list[str], list[Given]]:
        return arrangement.split(_parser(), words, folder)

    return split


@pytest.fixture(name="made")
def _made(folder: Path) -> Made:
    """The Spec of a command line."""

    def made(*words: str) -> Spec:
        ours, given = arrangement.split(_parser(), words, folder)
        return arrangement.apply(Spec(bin=str(folder)), _parser().parse_args(ours), given)

    return made


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--repeat")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("sides", nargs="*")
    arrangement.add_arguments(parser)
    return parser


def _refused(call: Callable[..., object], *words: str) -> str:
    with pytest.raises(Failure) as caught:
        call(*words)
    assert caught.value.code == Exit.USAGE
    return str(caught.value)


# ---- what --help says ----


def test_options_are_read_from_help() -> None:
    psend, precv = (programs.parse_help(HELP.format(program=p, own=OWN[p])) for p in BOTH)
    assert psend["-m"] == psend["--messages"] == Option("--messages", "N")
    assert psend["--presettled"] == Option("--presettled", None)
    assert precv["--capacity"] == precv["--credit"] == Option("--credit", "N")
    assert precv["--report-total"] == Option("--report-total", None)
    assert precv["--clock"] == Option("--clock", "realtime|monotonic")
    assert precv["--reconnect"] == Option("--reconnect", "N", optional=True)
    assert "--presettled" not in precv and "--credit" not in psend


def test_options_that_are_no_part_of_a_run_are_left_out() -> None:
    options = programs.parse_help(HELP.format(program="psend", own=OWN["psend"]))
    assert not {"-h", "--help", "-V", "--version"} & set(options)


def test_text_is_not_taken_for_options() -> None:
    text = """
Usage: psend [OPTION...] [URL]
      --max-unsettled=N             queue depth; see
                                    --credit, and --messages=N
--not-indented=N   x
"""
    assert set(programs.parse_help(text)) == {"--max-unsettled"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("--credit", "--credit"),
        ("--capacity", "--credit"),
        ("--cap", "--credit"),
        ("--credit-l", "--credit-low"),
        ("--cred", None),  # which one?
        ("--ack", "--ack-frequency"),
        ("-m", "--messages"),
        ("--m", None),
        ("--", None),
        ("-", None),
        ("-x", None),
        ("--messagesx", None),
    ],
)
def test_the_beginning_of_a_name_will_do(name: str, found: str | None) -> None:
    options = programs.parse_help(HELP.format(program="precv", own=OWN["precv"]))
    option = programs.look_up(options, name)
    assert (option.name if option else None) == found


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("#!/bin/sh\nexit 0\n", "--help says nothing of options"),
        ("#!/bin/sh\necho '  --credit=N  x'; exit 3\n", "--help says nothing of options"),
        ("#!/bin/sh\nprintf '\\377\\376'\n", "--help says nothing of options"),
        ("#!/no/such/interpreter\n", "No such file or directory; --bin DIR says where it is"),
        ("", "Exec format error; --bin DIR says where it is"),
    ],
)
def test_programs_that_are_none(tmp_path: Path, program: str, why: str) -> None:
    path = tmp_path / "psend"
    path.write_text(program)
    path.chmod(0o755)
    with pytest.raises(Failure) as caught:
        programs.options_of(tmp_path, PSEND)
    assert caught.value.code == Exit.INTERNAL
    assert str(caught.value) == f"{path}: {why}"


def test_help_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "HELP_TIMEOUT_S", 0.1)
    path = tmp_path / "psend"
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    with pytest.raises(Failure, match="--help does not end"):
        programs.options_of(tmp_path, PSEND)


# ---- whose an option is ----


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("--credit 10", Given((PRECV,), "--credit", "10")),
        ("--credit=10", Given((PRECV,), "--credit", "10")),
        ("--capacity 10", Given((PRECV,), "--credit", "10")),
        ("--presettled", Given((PSEND,), "--presettled", None)),
        ("--warmup 1s", Given(BOTH, "--warmup", "1s")),
        ("-m 10k", Given((PSEND,), "--messages", "10k")),
        ("-m10k", Given((PSEND,), "--messages", "10k")),
        ("--messages 10k", Given((PSEND,), "--messages", "10k")),
        ("--mess 10k", Given((PSEND,), "--messages", "10k")),
        ("-d 1s", Given((PSEND,), "--duration", "1s")),
        ("--precv.messages 5", Given((PRECV,), "--messages", "5", True)),
        ("--psend.warmup 1s", Given((PSEND,), "--warmup", "1s", True)),
        ("--precv.max-frame=4Ki", Given((PRECV,), "--max-frame", "4Ki", True)),
        ("--psend.presettled", Given((PSEND,), "--presettled", None, True)),
        ("--report-total", Given(BOTH, "--report-total", None)),
        ("--reconnect", Given(BOTH, "--reconnect", None, optional=True)),
        ("--reconnect=5", Given(BOTH, "--reconnect", "5", optional=True)),
        ("--psend.reconnect=5", Given((PSEND,), "--reconnect", "5", True, optional=True)),
        ("--sasl-insecure", Given(BOTH, "--sasl-insecure", None)),
        ("--tls-ca f", Given(BOTH, "--tls-ca", "f", is_number=False)),
        ("--precv.tls-cert f", Given((PRECV,), "--tls-cert", "f", True, False)),
        ("--user bob", Given(BOTH, "--user", "bob", is_number=False)),
        ("--password-file f", Given(BOTH, "--password-file", "f", is_number=False)),
    ],
)
def test_an_option_goes_to_the_programs_that_have_it(
    split: Split, words: str, given: Given
) -> None:
    assert split(*words.split()) == ([], [given])


def test_values_that_look_like_options(split: Split) -> None:
    words = ("--psend", "--presettled", "--content-string", "--credit", "--precv", "-m 5")
    ours, given = split(*words, "--via", "-x", "--repeat", "--json", "--json")
    assert ours == ["--psend=--presettled", "--precv=-m 5", "--via=-x", "--repeat=--json", "--json"]
    assert given == [Given((PSEND,), "--content-string", "--credit", is_number=False)]


def test_values_with_an_equals_sign(split: Split) -> None:
    ours, given = split("--psend=--content-string=a=b", "--content-string=a=b")
    assert ours == ["--psend=--content-string=a=b"]
    assert given == [Given((PSEND,), "--content-string", "a=b", is_number=False)]


def test_short_names_of_our_own(folder: Path) -> None:
    """They go before the programs', with the value in the same word or the next."""
    parser = _parser()
    parser.add_argument("-d", "--depth")
    for words in (("-d", "8"), ("-d8",), ("--depth=8",), ("--depth", "8")):
        ours, given = arrangement.split(parser, words, folder)
        assert parser.parse_args(ours).depth == "8" and not given
    assert arrangement.split(_parser(), ("-d8",), folder)[1] == [
        Given((PSEND,), "--duration", "8")
    ]


def test_empty_values(split: Split) -> None:
    ours, given = split("--psend", "", "--content-string", "", "--content-string=")
    assert ours == ["--psend="]
    assert [each.value for each in given] == ["", ""]


def test_positional_words_are_ours(split: Split) -> None:
    """Among them whole command lines, which begin like an option: sides of a comparison."""
    words = ("DIR", "--credit 10 --presettled", "-", "--credit", "5")
    ours, given = split(*words)
    assert ours == ["DIR", "--credit 10 --presettled", "-"]
    assert given == [Given((PRECV,), "--credit", "5")]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--no-such-thing 5", "--no-such-thing: unknown option"),
        ("-x", "-x: unknown option"),
        ("--", "--: unknown option"),
        ("--psend.credit 5", "--credit: unknown option"),
        ("--precv.presettled", "--presettled: unknown option"),
        ("--psend. 5", "--: unknown option"),
        ("--cred 5", "--cred: unknown option"),
        ("--du 1s", "--du: unknown option"),  # psend's --durable, or --duration?
        ("--max 5", "--max: unknown option"),  # psend's --max-unsettled, or both's --max-frame?
        ("--rep 3", "--rep: unknown option"),  # ours is --repeat, but has to be written in full
        ("--listen x", "--listen: is ppair's own to set"),
        ("-l x", "--listen: is ppair's own to set"),
        ("--format text", "--format: is ppair's own to set"),
        ("-f text", "--format: is ppair's own to set"),
        ("-q", "--quiet: is ppair's own to set"),
        ("-b x", "--broker: is ppair's own to set"),
        ("--address x", "--address: is ppair's own to set"),
        ("--events 5", "--events: is ppair's own to set"),
        ("--parent-fd 5", "--parent-fd: is ppair's own to set"),
        ("--psend.format csv", "--format: is ppair's own to set"),
        ("--version", "--version: unknown option"),
        ("-V", "-V: unknown option"),
        ("--presettled=yes", "--presettled: takes no value"),
        ("--credit", "--credit: needs a value"),
        ("-m", "-m: needs a value"),
        ("--psend", "--psend: needs a value"),
    ],
)
def test_what_is_refused(split: Split, words: str, why: str) -> None:
    assert _refused(split, *words.split()).startswith(why)


def test_words_go_to_those_programs_alone() -> None:
    assert Given((PRECV,), "--credit", "5").words(PRECV) == ("--credit", "5")
    assert Given((PRECV,), "--credit", "5").words(PSEND) == ()
    assert Given(BOTH, "--report-total", None).words(PSEND) == ("--report-total",)


# ---- a Spec ----


def test_all_of_it(made: Made, tmp_path: Path) -> None:
    spec = made(
        *"--senders 4 --receivers 2 --via amqp://b/q --psend-host n[1-2] --precv-host c".split(),
        *"--listen-address ::1 --library-path /lib --deadline 5min --credit 10 --warmup 1s".split(),
        *("--psend", "-m 5 --content-string 'a b'", "--precv", "--work=1us"),
    )
    assert spec == Spec(
        psend=("--messages", "5", "--content-string", "a b", "--warmup", "1s"),
        precv=("--work", "1us", "--credit", "10", "--warmup", "1s"),
        senders=4,
        receivers=2,
        via="amqp://b/q",
        psend_hosts=("n1", "n2"),
        precv_hosts=("c",),
        listen="::1",
        bin=spec.bin,
        library_path="/lib",
        deadline_s=300,
    )


def test_short_and_unfinished_names_are_written_in_full(made: Made) -> None:
    """So that what a Spec is asked later is found: its duration, and whether it is pre-settled."""
    spec = made("--psend", "--durat 1h --presett", "--precv", "-m5 --cap 7")
    assert spec.psend == ("--duration", "1h", "--presettled")
    assert spec.precv == ("--messages", "5", "--credit", "7")
    assert spec.duration_s == 3600 and spec.presettled


def test_a_value_that_may_be_left_out_stays_in_its_word(made: Made) -> None:
    spec = made("--reconnect=5", "--precv", "--recon", "--credit", "7", "--via", "amqp://b/q")
    assert spec.psend == ("--reconnect=5",)
    assert spec.precv == ("--reconnect", "--reconnect=5", "--credit", "7")


def test_what_listens_does_not_get_what_is_for_connecting(made: Made) -> None:
    """Unless it is told to."""
    direct = made("--user", "bob", "--sasl-insecure")
    assert direct.psend == ("--user", "bob", "--sasl-insecure") and direct.precv == ()
    by_broker = made("--user", "bob", "--via", "amqp://b/q")
    assert by_broker.psend == by_broker.precv == ("--user", "bob")
    assert made("--precv.user", "bob").precv == ("--user", "bob")


def test_later_words_are_behind_earlier_ones(made: Made) -> None:
    spec = made("--credit", "5", "--precv", "--credit 6", "--credit", "7")
    assert spec.precv == ("--credit", "6", "--credit", "5", "--credit", "7")
    assert spec.option(PRECV, "--credit") == "7"


def test_what_is_not_given_is_as_it_was(folder: Path) -> None:
    base = Spec(bin=str(folder), senders=3, deadline_s=5, psend=("--messages", "5"))
    spec = arrangement.apply(base, _parser().parse_args(["--receivers", "2"]), [])
    assert spec == Spec(bin=base.bin, senders=3, receivers=2, deadline_s=5, psend=base.psend)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--senders", "0"], '--senders: "0" is below 1'),
        (["--senders", "two"], '--senders: "two" is not a whole number'),
        (["--receivers", "1.5"], '--receivers: "1.5" is not a whole number'),
        (["--deadline", "soon"], '--deadline: "soon" is not a time'),
        (["--via", ""], "--via: is empty"),
        (["--via", "http://b/q"], "--via: has a scheme other than amqp and amqps"),
        (["--via", "amqp://u:s3cret@b c/q"], "--via: is not [amqp[s]://][user[:password]@]host"),
        (["--via", "amqp://u:s3cret@b/q"], "--via: one password can be kept secret"),
        (["--psend", "--user 'u:s3cret@"], "--psend: No closing quotation"),
        (["--listen-address", ""], "--listen-address: is empty"),
        (["--psend-host", ""], "hosts: the list is empty"),
        (["--precv-host", "n[1-"], 'hosts: "n[1-"'),
        (["--psend", "'"], "--psend: \"'\": No closing quotation"),
        (["--psend", "-m"], "psend: -m: needs a value"),
        (["--psend", "--nothing"], "psend: --nothing: unknown option, see psend --help"),
        (["--psend", "--credit 5"], "psend: --credit: unknown option"),
        (["--psend", "amqp://x"], 'psend: "amqp://x" is not an option; ppair sets the URL'),
        (["--psend", "-m 5 6"], 'psend: "6" is not an option'),
        (["--precv", "--presettled"], "precv: --presettled: unknown option"),
        (["--precv", "--listen x"], "precv: --listen: is ppair's own to set"),
        (["--precv", "-fcsv"], "precv: --format: is ppair's own to set"),
        (["--psend", "--presettled=1"], "psend: --presettled: takes no value"),
        (["--psend", "--help"], "psend: --help: unknown option"),
        (["--psend", "-V"], "psend: -V: unknown option"),
    ],
)
def test_what_makes_no_spec(made: Made, words: list[str], why: str) -> None:
    assert _refused(made, *words).startswith(why)


def test_the_folder_of_the_programs_is_known_first(tmp_path: Path) -> None:
    default = Path("/default")
    assert arrangement.folder_of(["--credit", "5"], default) == default
    assert arrangement.folder_of(["--bin", "/a", "--credit", "5"], default) == Path("/a")
    assert arrangement.folder_of(["--bin=/a", "--bin=/b"], default) == Path("/b")
    assert arrangement.folder_of(["--bin", "here"], default) == Path.cwd() / "here"


# ---- from one string, for compare ----


def test_words_of_one_string(folder: Path) -> None:
    base = Spec(bin=str(folder), psend=("--messages", "5"))
    spec = arrangement.parse_words("--credit 10 --senders 2 --psend '-m 7'", base, "A")
    assert spec.precv == ("--credit", "10") and spec.senders == 2
    assert spec.psend == ("--messages", "5", "--messages", "7")
    assert arrangement.parse_words("", base, "A") == base


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--credit '10", "A: \"--credit '10\": No closing quotation"),
        ("what", 'A: "what" is not an option'),
        ("--nothing", "--nothing: unknown option"),
        ("--senders", "--senders: needs a value"),
        ("--repeat 5", "--repeat: unknown option"),
    ],
)
def test_a_string_that_makes_no_spec(folder: Path, text: str, why: str) -> None:
    base = Spec(bin=str(folder))
    assert _refused(lambda: arrangement.parse_words(text, base, "A")).startswith(why)


def test_programs_of_one_side(folder: Path, tmp_path: Path) -> None:
    """Two builds are compared by their folders."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "psend").write_text("#!/bin/sh\necho '      --new-option=N  x'\n")
    (other / "precv").write_text("#!/bin/sh\necho '      --credit=N  x'\n")
    for program in BOTH:
        (other / program).chmod(0o755)
    base = Spec(bin=str(folder))
    spec = arrangement.parse_words(f"--bin {other} --new-option 5", base, "B")
    assert spec.bin == str(other) and spec.psend == ("--new-option", "5")
