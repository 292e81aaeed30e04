"""Parameters of presets: whose an option is, what is made of its value, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_peer import HELP, OWN, install
from ppair import cli, machine, preset_batch, store
from ppair.axes import Axis
from ppair.failure import Exit, Failure
from ppair.preset import Parameter, Preset, with_parameters
from ppair.preset_batch import BATCHES
from ppair.preset_tasks import TASKS
from ppair.results import Plan, Plot

Planned = Callable[..., Plan]
Refused = Callable[..., str]


@pytest.fixture(name="planned")
def _planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """The plan of a sweep; nothing is run."""
    (tmp_path / "bin").mkdir()
    folder = install(tmp_path / "bin", [], [])
    own = f"{OWN['psend']}      --batch=N                     N at a time\n      --tsc    ticks\n"
    (folder / "psend.help").write_text(HELP.format(program="psend", own=own))
    plans: list[Plan] = []

    def create(_: object, plan: Plan, *__: object) -> None:
        plans.append(plan)
        raise Failure(Exit.INTERNAL, "planned")

    monkeypatch.setattr(store, "create", create)
    monkeypatch.chdir(tmp_path)

    def planned(*words: str) -> Plan:
        code = cli.main(["sweep", *words], folder)
        assert (code, len(plans)) == (Exit.INTERNAL, 1)
        return plans.pop()

    return planned


@pytest.fixture(name="refused")
def _refused(planned: Planned, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Refused:
    """Why a sweep is; nothing is run or kept."""
    del planned

    def refused(*words: str) -> str:
        assert cli.main(["sweep", *words], tmp_path / "bin") == Exit.USAGE
        return capsys.readouterr().err.removeprefix("ppair: ").rstrip("\n")

    return refused


# ---- what a preset is ----


def _made(values: dict[str, str]) -> Preset:
    size = values["--size"]
    plot = Plot("p", "x", ("messages_per_s",))
    axes = (Axis("x", (size, values.get("--more", "none")), "x"),)
    return Preset("t", "e", axes, lambda point: ((), ()), (plot,), ())


def test_a_preset_is_made_from_the_values_of_its_parameters() -> None:
    parameters = (Parameter("--size", "N", "what"), Parameter("--more", "N", "more", "-m"))
    with pytest.raises(KeyError):
        with_parameters(_made, parameters)  # without a default
    parameters = (Parameter("--size", "N", "what", default="5"), parameters[1])
    found = with_parameters(_made, parameters)
    assert found.axes[0].values == ("5", "none") and found.parameters == parameters
    assert found.given({"--more": "7"}).axes[0].values == ("5", "7")
    assert found.given({"--size": "6"}).axes[0].values == ("6", "none")
    alone = _made({"--size": "1"})
    assert alone.given({}) is alone


def test_how_a_parameter_is_shown() -> None:
    parameter = Parameter("--size", "N", "what", "-s", "5")
    assert parameter.names == ("-s", "--size") and parameter.text == "what [5]"
    assert Parameter("--size", "N", "what").names == ("--size",)
    assert Parameter("--size", "N", "what").text == "what"


# ---- whose an option is ----


def test_parameters_are_known_where_their_preset_is_chosen(planned: Planned) -> None:
    """-d is psend's duration elsewhere."""
    plan = planned("--preset", "tasks", "-d", "8", "-t4", "--request-size=1k", "-T2s")
    (point,) = plan.points
    assert point.values == {} and plan.axes == () and plan.repetitions == 1
    assert (point.spec.senders, point.spec.receivers) == (4, 4)
    assert point.spec.option("psend", "--max-unsettled") == "8"
    assert point.spec.option("psend", "--content-size") == "1k"
    assert point.spec.option("psend", "--duration") == "2s"
    plan = planned("--credit", "1,2", "-d", "8")
    assert all(point.spec.option("psend", "--duration") == "8" for point in plan.points)


def test_elsewhere_they_are_unknown(refused: Refused) -> None:
    assert refused("--credit", "1,2", "-T", "8").startswith("-T: unknown option")
    assert refused("--preset", "settle", "--depth", "8").startswith("--depth: unknown option")
    assert refused("--preset", "batch", "--before", "x").startswith("--before: unknown option")


def test_options_of_the_programs_stay_theirs(planned: Planned) -> None:
    """And come after those of the preset."""
    words = ("--credit", "7", "--duration", "9s", "--psend.max-unsettled", "3")
    words += ("--senders", "5", "--receivers", "5")
    (point,) = planned("--preset=tasks", *words).points
    assert point.spec.option("precv", "--credit") == "7"
    assert point.spec.option("psend", "--duration") == "9s"
    assert point.spec.option("psend", "--max-unsettled") == "3"
    assert (point.spec.senders, point.spec.receivers) == (5, 5)


def test_help_has_them_with_their_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", "--help"], Path("none")) == Exit.DONE
    text = capsys.readouterr().out
    of_tasks = text.partition("\n  tasks\n")[2].partition("\n  batch\n")[0]
    for parameter in TASKS.parameters:
        assert f"{', '.join(parameter.names)} {parameter.argument}" in of_tasks
    of_batch = text.partition("\n  batch\n")[2]
    for parameter in BATCHES.parameters:
        assert f"{parameter.name} {parameter.argument}" in of_batch
    assert max(map(len, text.splitlines())) <= 100


# ---- tasks ----


def test_two_sides(planned: Planned) -> None:
    words = ("--before", "--credit 16", "--after", "--credit 1000 --senders 2")
    plan = planned("--preset", "tasks", *words, "--ack-frequency", "2")
    before, after = plan.points
    assert [p.values for p in plan.points] == [{"change": "before"}, {"change": "after"}]
    assert [p.spec.option("precv", "--credit") for p in plan.points] == ["16", "1000"]
    assert [p.spec.option("precv", "--ack-frequency") for p in plan.points] == ["2", "2"]
    assert (before.spec.senders, after.spec.senders) == (1, 2)
    assert plan.title.endswith("before: --credit 16; after: --credit 1000 --senders 2")
    assert "Of a change" in plan.plots[0].note
    assert "a change" not in planned("--preset", "tasks").plots[0].note
    assert plan.repetitions >= 12  # pairs, so that all metrics can be told to differ
    assert before.spec.option("psend", "--duration") == "1s"


def test_one_side_is_as_it_is(planned: Planned) -> None:
    plan = planned("--preset", "tasks", "--after", "--credit 1000", "--repeat", "2")
    assert [p.spec.option("precv", "--credit") for p in plan.points] == [None, "1000"]
    assert plan.repetitions == 2 and "before: as it is" in plan.title


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--tasks 0", '--tasks: "0" is below 1'),
        ("-t x", '--tasks: "x" is not a whole number'),
        ("-d 1s", '--depth: "1s" is not a whole number'),
        ("-q 1s", '--request-size: "1s" is not a number of bytes, such as 100 or 1Ki'),
        ("-T 5m", '--time: "5m" is not a time, such as 500ms, 2s or 8h'),
        ("-T", "-T: needs a value"),
        ("--before x", '--preset tasks: "x" is not an option'),
        ("--after --no-such", "--no-such: unknown option, of ppair, psend and precv alike"),
        ("--depth 1,2", '--depth: "1,2" is not a whole number'),
        ("--credit 1,2", "--credit: a preset has its own axes: give one value"),
        ("--tsc", "--tsc: there is no --batch to be timed"),
        ("--senders 2", "--senders, --receivers: --preset tasks has as many of each"),
    ],
)
def test_values_that_are_none(refused: Refused, words: str, why: str) -> None:
    assert refused("--preset", "tasks", *words.split()).startswith(why)


# ---- batch ----


def test_batches(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "processors", lambda: [2, 5, 7])
    plan = planned("--preset", "batch", "--batches", "10,1k,1")
    size, variant = plan.axes
    assert size.values == ("1", "10", "1000") and size.log
    assert variant.values == ("plain", "--tls", "pinned")
    assert len(plan.points) == 9
    for point in plan.points:
        n = int(point.values["batch"])
        assert point.spec.option("psend", "--batch") == str(n)
        assert point.spec.option("psend", "--max-unsettled") == str(n)
        # half of it is there at any time
        assert int(point.spec.option("precv", "--credit") or "") >= 2 * n
        assert point.spec.tls == (point.values["variant"] == "--tls")
        cpus = tuple(point.spec.option(program, "--cpu") for program in ("precv", "psend"))
        assert cpus == (("2", "5") if point.values["variant"] == "pinned" else (None, None))


def test_variants_can_be_chosen_or_left_out(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "processors", lambda: [0, 1, 2, 3])
    plan = planned("--preset", "batch", "--with", "--via  amqp://127.0.0.1:9/q", "--pin", "3,1")
    assert plan.axes[1].values == ("plain", "--via amqp://127.0.0.1:9/q", "pinned")
    vias = {point.values["variant"]: point.spec.via for point in plan.points}
    assert [via is not None for via in vias.values()] == [False, True, False]
    assert plan.points[2].spec.option("psend", "--cpu") == "1"
    plan = planned("--preset", "batch", "--with", "", "--pin", "", "--tsc")
    assert plan.axes[1].values == ("plain",) and "--tsc" in plan.points[0].spec.psend


def test_one_processor_is_not_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "processors", lambda: [0])
    assert BATCHES.given({}).axes[1].values == ("plain", "--tls")
    assert BATCHES.given({"--pin": "0,1"}).axes[1].values[-1] == preset_batch.PINNED


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--batches 0", '--batches: "0" is below 1'),
        ("--batches 1,,2", '--batches: "1,,2" has an empty value'),
        ("--pin 1", '--pin: "1" is not two processors, such as 0,1'),
        ("--pin 1,x", '--pin: "1,x" is not two processors, such as 0,1'),
        ("--with --batch='", "--preset batch: \"--batch='\": No closing quotation"),
        ("--max-unsettled 5", "--max-unsettled: is what --preset batch varies"),
        ("--credit 5", "--credit: is what --preset batch varies"),
        ("--pin 0,99999", "--cpu: 99999 is not among this machine's processors"),
        ("--presettled", "--max-unsettled: nothing is unsettled with --presettled"),
    ],
)
def test_batches_that_are_none(refused: Refused, words: str, why: str) -> None:
    assert refused("--preset", "batch", *words.split()) == why
