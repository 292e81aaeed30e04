"""Tables: what is in them, and their three forms."""

import csv
import io
import json
import statistics
from dataclasses import asdict, replace

import pytest
import sample
from ppair import cells, provenance, store, table, tables
from ppair import results as outcomes
from ppair.advice import Warning
from ppair.clock_error import ClockError
from ppair.metrics import BY_NAME, CHOSEN, METRICS
from ppair.results import Plot


def column(found, heading):
    """Cells of a column by its heading."""
    index = found.headings.index(heading)
    return [row[index] for row in found.rows]


# ---- what is in them ----


def test_points_have_medians_and_rates_mean_and_spread_too():
    found = tables.main_table(sample.in_memory({"1": [100, 400, 200], "2": [5000, 5000, 5000]}))
    assert column(found, "x, things") == ["1", "2"]
    assert column(found, "msg/s") == ["200", "5000"]
    assert column(found, "mean") == ["233", "5000"]
    spread = 100 * statistics.stdev([100, 400, 200]) / statistics.mean([100, 400, 200])
    assert column(found, "spread %") == [f"{spread:.1f}", "0.0"]
    assert "good runs" not in found.headings  # all are


def test_percentiles_are_medians_of_the_runs_not_means():
    found = tables.main_table(sample.in_memory({"1": [100, 400, 200]}))
    assert column(found, "lat p99 us") == ["5000"]  # 1e9 / 200; their mean would be 5833
    assert "percentiles included" in found.notes[0]


def test_limited_by_is_that_of_the_median_run():
    found = tables.main_table(sample.in_memory({"1": [100, 400, 200], "2": [4, 3, 1, 2]}))
    assert column(found, "limited by") == ["r 200", "r 2"]


def test_columns_without_any_value_are_left_out():
    found = tables.main_table(sample.in_memory({"1": [100]}))
    assert "MB/s" not in found.headings
    assert "lat p99 us" in found.headings


def test_columns_of_trouble_are_there_if_there_is_any():
    results = sample.in_memory({"1": [1000.0], "2": [1000.0]})
    runs = [(run, {"reconnects": 0, "resent": 0}) for run in results.runs]
    results.runs = [replace(run, metrics={**run.metrics, **more}) for run, more in runs]
    assert not {"reconnects", "resent"} & set(tables.main_table(results).headings)
    results.runs[1].metrics["reconnects"] = 2
    table = tables.main_table(results)
    assert "reconnects" in table.headings and "resent" not in table.headings


def far(results):
    """The same, if receivers had been on a host whose clock is ahead, more in each run."""
    for index, run in enumerate(results.runs):
        error = ClockError(None, "B-1", 1000 * (30 + index), 1000 * (20 + index), 10_000)
        metrics = {**run.metrics, "latency_error_ns": error.bound_ns}
        facts = {**run.facts, "clock_error": asdict(error)}
        results.runs[index] = replace(run, metrics=metrics, facts=facts)
    return results


@pytest.mark.parametrize("name", ["", "1"])
def test_how_much_of_the_latency_may_be_clock_error(name):
    """In a column, and in words for the run in which it is worst."""
    found = tables.main_table(far(sample.in_memory({name: [1000, 1000]})))
    assert column(found, "lat +- us")[0] in ("30.0", "30.5")
    said = "Latency may be off by +- 31 us: the clock of B-1 is 21 us ahead of that of this host, "
    assert f"{said}+- 10 us." in found.notes
    assert said in " ".join(tables.text_report(far(sample.in_memory({name: [1, 1]}))).split())
    local = tables.main_table(sample.in_memory({name: [1000, 1000]}))
    assert "lat +- us" not in local.headings and "off by" not in " ".join(local.notes)


def test_the_plans_columns_are_all_there():
    plan = {"metrics": ("bytes_per_s", "messages_per_s", "no_such_metric")}
    found = tables.main_table(sample.in_memory({"1": [100]}, **plan))
    assert found.headings[1:3] == ("MB/s", "msg/s")
    assert "mean" not in found.headings  # of one run
    assert column(found, "MB/s") == ["-"]
    assert column(found, "no_such_metric") == ["-"]


def test_a_point_that_failed_says_so_and_why():
    results = sample.in_memory({"1": [None, None], "2": [100, None], "3": [100, 100]})
    found = tables.main_table(results)
    assert column(found, "msg/s") == ["failed", "100.0", "100.0"]
    assert column(found, "mean")[0] == "-"
    assert column(found, "good runs") == ["0/2", "1/2", "2/2"]
    assert found.notes[1] == r"failed: psend-0: no | \xe9 (x=1: 2 of 2 runs; x=2: 1 of 2 runs)"


def test_of_many_failed_points_three_are_named():
    found = tables.main_table(sample.in_memory({str(x): [None] for x in range(9)}))
    assert found.notes[1].endswith("x=2: 1 of 1 runs; and 6 more points)")


def test_what_is_still_to_be_run_is_counted():
    order = ((0, 0), (1, 0), (0, 1), (1, 1))
    results = sample.in_memory({"1": [100, 100], "2": []}, order=order)
    results.status = outcomes.INTERRUPTED
    found = tables.main_table(results)
    assert column(found, "good runs") == ["2/2", "0/2"]
    assert column(found, "msg/s") == ["100.0", "-"]
    assert found.title == "T (interrupted)"
    assert found.notes[-1] == "2 of 4 runs have not been done."


def test_run_shows_every_repetition_and_what_they_have_in_common():
    found = tables.main_table(sample.in_memory({"": [1000, 4000, 2200]}, command="run"))
    assert column(found, "repetition") == ["1", "2", "3", "median", "mean", "stddev", "spread %"]
    rates = [1000, 4000, 2200]
    assert column(found, "msg/s")[:5] == ["1000", "4000", "2200", "2200", "2400"]
    assert column(found, "msg/s")[5] == f"{statistics.stdev(rates):.0f}"
    assert column(found, "lat p99 us")[3:] == ["455", "-", "-", "-"]


def test_run_with_one_repetition_has_no_statistics():
    found = tables.main_table(sample.in_memory({"": [1000]}, command="run"))
    assert [row[0] for row in found.rows] == ["1"]


def test_run_with_a_failed_repetition():
    found = tables.main_table(sample.in_memory({"": [1000, None, 3000]}, command="run"))
    assert column(found, "msg/s")[:5] == ["1000", "failed", "3000", "2000", "2000"]


def test_every_run_is_in_the_repetitions_table():
    found = tables.repetitions_table(sample.in_memory({"1": [100, None], "2": [7]}))
    assert column(found, "run") == ["p000-r00", "p000-r01", "p001-r00"]
    assert column(found, "msg/s") == ["100.0", "failed", "7.0"]
    assert column(found, "limited by") == ["r 100", "-", "r 7"]


def test_a_small_number_is_not_shown_as_nothing():
    metric = BY_NAME["flow_frames_per_1000"]
    assert cells.shown_column([1234.5, 0.0312, 0.0, None], metric) == ["1234", "0.031", "0", "-"]
    assert cells.shown_column([97.51, 6.0], metric) == ["97.5", "6.0"]


def test_what_is_counted_is_whole():
    """But for the middle between two small counts."""
    blocked = BY_NAME["blocked"]
    assert cells.shown_column([482.0, 0.0, 3, 2.5, None], blocked) == ["482", "0", "3", "2.5", "-"]
    assert cells.shown_column([0.0], BY_NAME["stalled_percent"]) == ["0.000"]


def test_scale_is_that_of_the_heading():
    assert cells.shown(194_600, BY_NAME["latency_p50_ns"]) == "194.6"
    assert cells.shown(None, BY_NAME["latency_p50_ns"]) == "-"


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"": [1000, 2000, 4000]}, "2000 messages/s (median of 3 runs), limited by r 2000."),
        ({"": [1000]}, "1000 messages/s (one run), limited by r 1000."),
        ({"": [None]}, "No run was good."),
        (
            {"1": [5000], "2": [None], "3": [10]},
            "2 of 3 points measured: from 10 messages/s (x=3) to 5000 (x=1).",
        ),
    ],
)
def test_the_result_in_a_sentence(rates, sentence):
    assert tables.sentences(sample.in_memory(rates)) == [sentence]


def test_findings_come_first_and_take_the_sentences_place():
    results = sample.in_memory({"1": [100]})
    results.findings = {
        "sentences": ["40 credits do."],
        "tables": [{"title": "Fit", "headings": ["a", "b"], "rows": [["1", "2"]], "notes": ["N."]}],
        "window": 40,
    }
    results.warnings = [Warning("spread", "they differ", "repeat more")]
    text = tables.text_report(results)
    places = [
        text.index(part) for part in ("40 credits do.", "Fit\n", "N.\n", "msg/s", "they differ")
    ]
    assert places == sorted(places)
    assert "points measured" not in text
    assert "warning: they differ; repeat more\n" in text


def test_environment_has_versions_where_event_files_are(tmp_path):
    results = sample.single(tmp_path / "r", repetitions=1)
    rows = dict(provenance.environment_table(results).rows)
    assert rows["programs"] == "psend 0.1.0, precv 0.1.0, libqpid-proton 0.37.0, jansson 2.14"
    assert rows["created"].endswith(" UTC")
    assert rows["frequency governor"] == "-"
    for file in (tmp_path / "r" / "runs").rglob("*.jsonl"):
        file.unlink()
    assert dict(provenance.environment_table(results).rows)["programs"] == "-"


def test_environment_says_how_connections_are_secured(tmp_path):
    results = sample.single(tmp_path / "r", repetitions=1)
    assert dict(provenance.environment_table(results).rows)["connections"] == "-"
    for name, more in (
        ("psend", {"tls": {"protocol": "TLSv1.3", "cipher": "AES"}, "sasl": "PLAIN"}),
        ("precv", {"tls": None, "sasl": None}),
    ):
        (file,) = (tmp_path / "r" / "runs").rglob(f"{name}-0.jsonl")
        events = [json.loads(line) for line in file.read_text().splitlines()]
        secured = [{**e, **more} if e["event"] == "ready" else e for e in events]
        file.write_text("".join(f"{json.dumps(event)}\n" for event in secured))
    rows = dict(provenance.environment_table(results).rows)
    assert rows["connections"] == "TLSv1.3 AES with SASL PLAIN"


def test_commands_are_those_of_points_and_programs(tmp_path):
    results = sample.stall(tmp_path / "r", axes=sample.STALL_AXES[:1], plots=(), rate=lambda _: 1e5)
    rows = provenance.commands_table(results).rows
    assert rows[0] == ("taken=one", "ppair run --psend '--content-size 100'")
    assert ("precv-0", "/opt/bin/precv --format json") in rows


def test_an_axis_that_the_plan_lacks_is_made_from_the_points():
    results = sample.in_memory({"1": [1], "2": [1]}, axes=())
    assert tables.axis_by_name(results, "x").values == ("1", "2")


# ---- their forms ----


HOSTILE = table.make(
    "A | title",
    ("name", "a heading of many words", "limited by"),
    [("a|b", "1", "x"), ('q",\n', "-", "\x1b[1m"), ("\u00e9", "12.5", "-")],
    ["a *note*"],
)


def test_text_aligns_numbers_to_the_right_and_words_to_the_left():
    found = table.make("", ("n", "word"), [("1", "b"), ("100", "long"), ("-", "c")])
    assert table.to_text(found) == "  n  word\n  1  b\n100  long\n  -  c\n"


def test_text_breaks_long_headings():
    lines = table.to_text(HOSTILE).splitlines()
    assert lines[1].split() == ["a", "heading", "of"]
    assert lines[2].split() == ["name", "many", "words", "limited", "by"]
    assert len({line.index(mark) for line, mark in zip(lines[3:6:2], ("x", "-"))}) == 1


def wide(columns, keys=1, rows=3):
    """Whose cells are all different, but for those of the first of KEYS columns."""
    headings = [f"column {i} of many" for i in range(columns)]
    cells = [
        ["same" if i < keys - 1 else f"{i}.{row}" for i in range(columns)] for row in range(rows)
    ]
    return table.make("T", headings, cells, ["a note"])


@pytest.mark.parametrize("room", [80, 100, 200])
@pytest.mark.parametrize("keys", [1, 2, 3])
def test_text_that_is_too_wide_stands_in_blocks(room, keys):
    """Of which each begins with what tells rows apart; all cells are there, once."""
    found = wide(40, keys)
    lines = table.to_text(found, room).splitlines()
    assert lines[0] == "T" and lines[-1] == "a note"
    assert max(map(len, lines)) <= room
    words = " ".join(lines).split()
    blocks = "\n".join(lines).split("\n\n")
    assert len(blocks) > 1
    for row in found.rows:
        assert all(words.count(cell) == 1 for cell in row[keys:])
        assert words.count(row[keys - 1]) == len(blocks)


def test_text_is_in_one_block_if_narrow_headings_do():
    """They are broken before a table is."""
    found = table.make("", [f"head {i} of" for i in range(9)], [["1234567"] * 9])
    assert table.to_text(found, 120).splitlines()[0].startswith("head 0 of  head 1 of")
    lines = table.to_text(found, 80).splitlines()
    assert [len(line) for line in lines] == [9 * 7 + 8 * 2] * 3


def test_long_names_do_not_make_a_block_of_each_column():
    """At least as much stands beside them as they take."""
    found = table.make("", ["name", *map(str, range(40))], [["n" * 90, *["1234567"] * 40]])
    assert len("\n".join(table.to_text(found, 100).splitlines()).split("\n\n")) == 4


def test_a_column_that_is_wider_than_all_is_not_cut():
    found = table.make("", ("a", "b", "c"), [("1", "x" * 300, "2"), ("3", "y", "4")])
    lines = table.to_text(found, 80).splitlines()
    assert any(line.endswith("x" * 300) for line in lines) and "" in lines


def test_text_is_as_wide_as_the_terminal(monkeypatch):
    """That is 100 columns if there is none."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(table.shutil.os, "get_terminal_size", _no_terminal)
    assert table.text_width() == 100
    monkeypatch.setenv("COLUMNS", "200")
    assert max(map(len, table.to_text(wide(40)).splitlines())) in range(150, 201)
    monkeypatch.setenv("COLUMNS", "20")
    assert table.text_width() == 80


def _no_terminal(*_):
    raise OSError


@pytest.mark.parametrize("name", ["", "1"])
def test_all_that_can_be_measured_fits(name):
    """With every column that there is."""
    results = sample.in_memory({name: [1000, 2000]})
    everything = {metric.name: 1234567.0 for metric in METRICS}
    runs = [replace(run, metrics={**run.metrics, **everything}) for run in results.runs]
    results.runs = runs
    found = tables.main_table(results)
    assert {m.heading for m in METRICS if m.seen is not CHOSEN} <= set(found.headings)
    assert max(map(len, table.to_text(found, 100).splitlines())) <= 100


def test_text_without_headings_has_no_empty_line():
    assert table.to_text(table.make("E", ("", ""), [("a", "b")])) == "E\na  b\n"


def test_markdown_has_as_many_cells_in_every_row_and_no_markup_of_others():
    lines = [line for line in table.to_markdown(HOSTILE).splitlines() if line.startswith("|")]
    bars = [line.replace("\\|", "").count("|") for line in lines]
    assert bars == [4] * 5
    assert lines[1] == "|---|---:|---|"
    assert "\\*note\\*" in table.to_markdown(HOSTILE)


def test_csv_can_be_read_again_and_a_missing_number_is_empty():
    rows = list(csv.reader(io.StringIO(table.to_csv(HOSTILE))))
    assert rows[0] == list(HOSTILE.headings)
    assert rows[1] == ["a|b", "1", "x"]
    assert rows[2] == ['q",\\n', "", "\\x1b[1m"]


def test_all_output_is_ascii_without_control_characters(tmp_path):
    results = sample.stall(
        tmp_path / "r",
        axes=sample.STALL_AXES[:1],
        rate=lambda _: 1e5,
        fails=lambda values, _: "\u00e9\x1b[31m \U0001f600" if values["taken"] == "one" else None,
    )
    for report in (tables.text_report(results), tables.markdown_report(results)):
        assert set(report) <= {chr(c) for c in range(32, 127)} | {"\n"}
        assert "x1b[31m" in report.replace("\\", "")


def test_markdown_report_has_all_parts(tmp_path):
    results = sample.single(tmp_path / "r", repetitions=2)
    results.warnings = [Warning("spread", "they differ", "repeat_more")]
    report = tables.markdown_report(results)
    assert report.startswith("## psend and precv\n\n")
    assert "- Warning: they differ; repeat\\_more" in report
    assert "| median |" in report


def test_plots_do_not_matter_to_tables():
    results = sample.in_memory({"1": [1]}, plots=(Plot("P", "nowhere", ("nothing",)),))
    assert tables.text_report(results)


@pytest.mark.parametrize("command", ["run", "soak"])
def test_where_nothing_is_varied_each_run_has_a_row(command):
    found = tables.main_table(sample.in_memory({"": [1000]}, command=command))
    assert column(found, "repetition") == ["1"]
