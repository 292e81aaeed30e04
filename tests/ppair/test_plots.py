"""Pictures: where things are put, and that files are what they should be."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import sample
from ppair import (
    events,
    plots,
    plots_heat,
    plots_line,
    plots_scale,
    plots_style,
    plots_time,
    run_files,
    svg,
)
from ppair.failure import Failure
from ppair.metrics import BY_NAME
from ppair.results import Plot

SVG = "{http://www.w3.org/2000/svg}"
RATE = BY_NAME["messages_per_s"]


@pytest.fixture(scope="module")
def stall(tmp_path_factory):
    """A sweep with two lines, one point of which failed."""
    return sample.stall(
        tmp_path_factory.mktemp("r") / "stall",
        repetitions=2,
        fails=lambda v, _: "it broke" if (v["taken"], v["low"]) == ("one", "20") else None,
    )


@pytest.fixture(scope="module")
def heat(tmp_path_factory):
    """A sweep over two numbers, one point of which failed."""
    return sample.heat(
        tmp_path_factory.mktemp("r") / "heat",
        repetitions=1,
        noise=0.0,
        fails=lambda v, _: "no" if (v["credit"], v["content-size"]) == ("1", "100k") else None,
    )


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """A run with many intervals and two of each program."""
    return sample.single(
        tmp_path_factory.mktemp("r") / "run", repetitions=2, interval_s=0.1, senders=2, receivers=2
    )


# ---- heat maps ----


def test_cells_are_where_their_values_are(heat):
    (found,) = plots_heat.maps(heat, heat.plan.plots[0], RATE)
    assert list(found.x.positions) == ["1", "3", "10", "30", "100", "300", "1000", "3000"]
    assert list(found.y.positions) == ["10", "100", "1k", "10k", "100k"]
    point = next(p for p in heat.plan.points if p.values == {"credit": "30", "content-size": "1k"})
    assert found.cells[2][3] == heat.aggregate(point.id, "messages_per_s").median
    assert found.failed == [(4, 0)]
    assert found.cells[4][0] is None


def test_flight_line_is_window_times_body(heat):
    (found,) = plots_heat.maps(heat, heat.plan.plots[0], RATE)
    line = plots_heat.flight_line(found, 65536)
    xs, ys = (list(scale.positions.values()) for scale in (found.x, found.y))
    for column, row in line:
        product = plots_scale.value_at(xs, column) * plots_scale.value_at(ys, row)
        assert product == pytest.approx(65536)
    assert (line[0][0], line[-1][0]) == pytest.approx((-0.5, 7.5))


def test_other_axes_have_maps_of_their_own():
    results = sample.in_memory({"1": [1], "2": [2]})
    for point in results.plan.points:
        point.values.update(y="7", z=point.values["x"])
    plot = Plot("P", "x", ("messages_per_s",), "y", "heat")
    assert [found.label for found in plots_heat.maps(results, plot, RATE)] == ["z 1", "z 2"]


def test_flight_line_is_named():
    assert plots_heat.flight_label(65536) == "bytes in flight = 64 KiB"
    assert plots_heat.flight_label(1_000_000) == "bytes in flight = 1 MB"
    assert plots_heat.flight_label(500) == "bytes in flight = 500 B"


def test_heat_map_says_line_and_failure(heat):
    (picture,) = plots.pictures(heat)
    texts = text_of(plots.svg_of(picture))
    assert {"bytes in flight = 64 KiB", "credit, messages", "body, bytes"} <= texts
    assert "x: failed (1 point)." in picture.caption


# ---- lines ----


def test_lines_are_of_the_series_with_medians_by_x(stall):
    plot = stall.plan.plots[0]
    scale = plots_line.scale_for(stall, plot)
    one, all_ = plots_line.lines(stall, plot, RATE, scale)
    assert (one.label, all_.label) == ("one", "all")
    assert [mark.x for mark in all_.marks] == list(range(0, 191, 10))
    assert 20 not in [mark.x for mark in one.marks]
    point = next(p for p in stall.plan.points if p.values == {"taken": "all", "low": "50"})
    assert all_.marks[5].median == stall.aggregate(point.id, "messages_per_s").median
    assert len(all_.marks[5].values) == 2
    assert plots_line.failed_at(stall, plot, scale) == [20]


def test_axes_that_are_neither_x_nor_series_make_lines_too(stall):
    plot = Plot("P", "low", ("messages_per_s",))
    found = plots_line.lines(stall, plot, RATE, plots_line.scale_for(stall, plot))
    assert [line.label for line in found] == ["one", "all"]


def test_values_are_in_the_unit_of_the_label(stall):
    plot = stall.plan.plots[0]
    p99 = BY_NAME["latency_p99_ns"]
    line = plots_line.lines(stall, plot, p99, plots_line.scale_for(stall, plot))[1]
    point = next(p for p in stall.plan.points if p.values == {"taken": "all", "low": "0"})
    assert line.marks[0].median == stall.aggregate(point.id, p99.name).median / 1000


@pytest.mark.parametrize(
    ("rates", "log"), [((10, 100), False), ((1, 100), True), ((0, 100), False)]
)
def test_y_is_logarithmic_where_values_differ_much(rates, log):
    results = sample.in_memory({str(i): [rate] for i, rate in enumerate(rates)})
    plot = Plot("P", "x", ("messages_per_s",))
    with plots_style.style("s"):
        axes = plots_line.draw(results, plot, False).axes[0]
    assert axes.get_yscale() == ("log" if log else "linear")
    assert log or axes.get_ylim()[0] == 0


def test_every_value_is_inside_its_panel(stall):
    with plots_style.style("s"):
        figure = plots_line.draw(stall, stall.plan.plots[0], False)
    for axes, name in zip(figure.axes, stall.plan.plots[0].y):
        metric = BY_NAME[name]
        values = [r.metrics[name] * metric.scale for r in stall.runs if r.metrics]
        assert axes.get_ylim()[0] <= min(values) and max(values) <= axes.get_ylim()[1]
        assert axes.get_xlim()[0] < 0 and axes.get_xlim()[1] > 190


def test_categories_are_bars_and_axes_begin_at_zero():
    results = sample.in_memory({"few": [1, 2, 3], "many": [1000, 1001, 1002]})
    with plots_style.style("s"):
        axes = plots_line.draw(results, Plot("P", "x", ("messages_per_s",)), False).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [2, 1001]
    assert axes.get_yscale() == "linear"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["few", "many"]


def test_labels_of_categories_are_broken_not_dropped():
    values = ("by way of the first broker", "direct, on one machine", *"abcdef")
    results = sample.in_memory({value: [1] for value in values})
    scale = plots_line.scale_for(results, Plot("P", "x", ("messages_per_s",)))
    labels = [label for _, label in plots_line.tick_places(scale)]
    assert [label.replace("\n", " ") for label in labels] == list(values)
    assert max(len(line) for label in labels for line in label.split("\n")) <= 8


def test_a_metric_without_values_has_no_panel_but_a_word(stall):
    plot = Plot("P", "low", ("messages_per_s", "flow_frames_per_1000"), "taken")
    picture = plots.Picture(stall, plot, "p")
    assert "no value of: FLOW frames per 1000 messages" in picture.caption
    assert "FLOW frames per 1000 messages" not in text_of(plots.svg_of(picture, bare=True))


def test_caption_says_what_bars_are_and_what_failed(stall):
    caption = plots.pictures(stall)[0].caption
    assert caption.startswith("200 credits at first;")
    assert "Medians of 2 runs" in caption
    assert "x: failed (1 point)." in caption


def test_a_plot_for_which_there_is_nothing_is_not_made():
    failed = sample.in_memory({"1": [None]}, plots=(Plot("P", "x", ("messages_per_s",)),))
    assert plots.pictures(failed) == []
    nowhere = sample.in_memory({"1": [1]}, plots=(Plot("P", "y", ("messages_per_s",)),))
    assert plots.pictures(nowhere) == []


def test_a_kind_that_does_not_exist_is_refused():
    results = sample.in_memory({"1": [1]}, plots=(Plot("P", "x", ("messages_per_s",), kind="pie"),))
    with pytest.raises(Failure, match='unknown kind "pie"'):
        plots.pictures(results)


# ---- event files ----


def test_event_files_are_read_once(tmp_path, monkeypatch):
    """However many questions there are; but again if they have changed."""
    results = sample.single(tmp_path / "r", repetitions=2)
    read, opened = events.read, []
    monkeypatch.setattr(run_files.events, "read", lambda file: opened.append(file) or read(file))
    for _ in range(2):
        for program, member, _ in plots_time.CURVES:
            assert run_files.merged_histogram(results, results.good(0), program, member)
    files = sorted((tmp_path / "r" / "runs").glob("*/*.jsonl"))
    assert sorted(opened) == files and len(files) == 4
    shorter = files[0].read_text(encoding="ascii").splitlines(keepends=True)[:-1]
    files[0].write_text("".join(shorter), encoding="ascii")
    for run in results.runs:
        for peer in run.peers:
            is_gone = run_files.path(results, run, peer) == files[0]
            assert (run_files.summary(results, run, peer) is None) == is_gone
    assert len(opened) == 5
    files[0].unlink()
    with pytest.raises(Failure, match="No such file"):
        run_files.merged_histogram(results, results.good(0), "precv")


def test_distribution_is_that_of_the_merged_histograms(single):
    latency, settlement = plots_time.distribution_curves(single)
    assert (latency.label, settlement.label) == ("latency", "settlement")
    merged = run_files.merged_histogram(single, single.good(0), "precv")
    assert merged.count == sum(
        run_files.first(single, run, peer, "summary")["latency_ns"]["count"]
        for run in single.runs
        for peer in run_files.peers(run, "precv")
    )
    for percent in (50, 90, 99):
        inverse = 1 / (1 - percent / 100)
        value = next(v for x, v in latency.points if x >= inverse)
        assert value == pytest.approx(merged.percentile_ns(percent) / 1000, rel=0.02)
    assert latency.points[0][1] == merged.min_ns / 1000
    assert latency.points[-1] == (merged.count, merged.max_ns / 1000)
    assert len(latency.points) <= plots_time.CURVE_POINTS_MAX + 2


def test_time_line_adds_up_instances_and_leaves_out_the_warm_up(single):
    run = single.runs[0]
    found = plots_time.timeline(single, run, "messages_per_s")
    assert len(found) == 20
    assert found[0][0] == pytest.approx(sample.WARMUP_S + 0.1)  # its end
    first = [
        next(
            e["messages_per_s"]
            for e in run_files.read(single, run, peer)
            if e["event"] == "interval" and not e["warmup"]
        )
        for peer in run_files.peers(run, "precv")
    ]
    assert found[0][1] == pytest.approx(sum(first))
    memory = plots_time.timeline(single, run, "precv_rss_bytes")
    assert memory[0][1] == pytest.approx(5.3)  # of the largest, not of both


def test_many_intervals_are_put_in_bins_whose_sum_is_the_same():
    samples = [(i / 10, (i + 1) / 10, float(i % 7)) for i in range(3001)]
    means = plots_time._binned(samples, greatest=False)
    assert len(means) <= plots_time.BINS_MAX
    whole = sum((end - start) * value for start, end, value in means)
    assert whole == pytest.approx(sum(value / 10 for _, _, value in samples))
    assert max(value for _, _, value in plots_time._binned(samples, greatest=True)) == 6


def test_run_has_distribution_and_time_line_without_asking(single):
    found = plots.pictures(single)
    assert [picture.plot.kind for picture in found] == ["distribution", "time"]
    texts = text_of(plots.svg_of(found[0])) | text_of(plots.svg_of(found[1]))
    assert {"99.9", "percentile", "time, us", "messages per second", "repetition 2"} <= texts


def test_pictures_can_do_without_event_files(tmp_path):
    results = sample.single(tmp_path / "r", repetitions=1)
    for file in (tmp_path / "r" / "runs").rglob("*.jsonl"):
        file.unlink()
    assert plots.pictures(results) == []


# ---- files ----


def text_of(text):
    """All words in an SVG."""
    return {"".join(e.itertext()).strip() for e in ElementTree.fromstring(text).iter(f"{SVG}text")}


def test_svg_is_well_formed_small_and_always_the_same(stall):
    (picture,) = plots.pictures(stall)
    first, second = (plots.file_of(picture, "svg") for _ in range(2))
    assert first == second
    assert first.isascii()
    assert len(first) < 60_000
    root = ElementTree.fromstring(first)
    assert root.tag == f"{SVG}svg"
    assert (root.get("width"), root.find(f"{SVG}title").text) == ("624", "Credit stall")
    words = text_of(first)
    assert {
        "Credit stall",
        "messages per second",
        "latency p99, us",
        "one",
        "all",
        "failed",
    } <= words
    assert "X: credit at which 100 more are granted" in words


def test_svg_ids_are_all_used_and_begin_with_the_prefix(stall):
    text = plots.svg_of(plots.pictures(stall)[0], "f1-")
    root = ElementTree.fromstring(text)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    assert ids and len(ids) == len(set(ids))
    assert set(ids) == {a or b for a, b in used}
    assert all(id.startswith("f1-") for id in ids)
    assert not re.search(r"<style|<script|<metadata|\d{4}-\d\d-\d\d", text)


def test_svg_rounds_numbers_but_not_words():
    text = (
        f'<svg xmlns="{SVG[1:-1]}" width="72pt" height="36pt"><g id="a"><style>x</style>'
        '<text id="b" x="1.23456" transform="rotate(-0 1.23456 2)">99.9999</text></g></svg>'
    )
    found = svg.tidy(text, "", 'a <b> "c"')
    assert ">99.9999<" in found and 'x="1.23"' in found
    assert "id=" not in found
    assert "transform" not in found and "<g" not in found and "style>" not in found
    assert "<title>a &lt;b&gt;" in found
    assert 'width="96"' in found


def test_bare_has_neither_title_nor_caption(stall):
    picture = plots.pictures(stall)[0]
    assert "Credit stall" not in text_of(plots.svg_of(picture, bare=True))
    assert any("200 credits" in text for text in text_of(plots.svg_of(picture)))
    assert not any("200 credits" in text for text in text_of(plots.svg_of(picture, bare=True)))


def test_png_is_as_wide_as_print_needs(heat):
    content = plots.png_of(plots.pictures(heat)[0])
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(content[16:20], "big") == 1300


def test_files_have_names_of_their_own_and_nothing_is_left_over(tmp_path):
    plot = Plot("A plot: \u00e9 & <b>?", "x", ("messages_per_s",))
    results = sample.in_memory({"1": [1], "2": [2]}, plots=(plot, plot))
    written = plots.write(results, tmp_path / "new" / "p", ("svg", "png"), "a-")
    names = ["a-01-a-plot-b.svg", "a-01-a-plot-b.png", "a-02-a-plot-b.svg", "a-02-a-plot-b.png"]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in (tmp_path / "new" / "p").iterdir()) == sorted(names)
    ElementTree.fromstring(written[0].read_bytes())


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    results = sample.in_memory({"1": [1]}, plots=(Plot("P", "x", ("messages_per_s",)),))
    with pytest.raises(Failure, match="File exists|Not a directory"):
        plots.write(results, tmp_path / "file", ("svg",))


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(Failure, match='"gif" is none of svg, png'):
        plots.write(sample.in_memory({"1": [1]}), tmp_path, ("gif",))


def test_help_does_not_wait_for_matplotlib():
    code = (
        "import sys; import ppair.page, ppair.plots, ppair.commands.report;"
        "sys.exit('matplotlib' in sys.modules or 'numpy' in sys.modules)"
    )
    scripts = Path(plots.__file__).resolve().parents[1]
    assert subprocess.run([sys.executable, "-Bc", code], cwd=scripts, check=False).returncode == 0


def test_legend_fits():
    legend = plots_style.Legend([None] * 9, ["a label of some length"] * 9)
    assert legend.columns == 2
    assert legend.height == pytest.approx(5 * plots_style.TEXT_LINE)
    assert plots_style.Legend([], []).height == 0
