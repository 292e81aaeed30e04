"""Converters: members by the names that scripts for the other tools use, and their numbers."""

import csv
import io
import json

import pytest
import sample
from ppair import formats, histogram, run_files
from ppair.failure import Failure
from ppair.metrics import METRICS

# As iperf 3.21 writes them for TCP on Linux.
IPERF_TOP = {"start", "intervals", "end", "title", "extra_data"}
IPERF_START = {
    "connected",
    "version",
    "system_info",
    "timestamp",
    "connecting_to",
    "cookie",
    "tcp_mss_default",
    "target_bitrate",
    "fq_rate",
    "sock_bufsize",
    "sndbuf_actual",
    "rcvbuf_actual",
    "test_start",
}
IPERF_TEST = set(
    "protocol num_streams blksize omit duration bytes blocks reverse tos target_bitrate bidir "
    "fqrate interval gso gro".split()
)
AMOUNT = {"start", "end", "seconds", "bytes", "bits_per_second", "sender"}
IPERF_END = {
    "streams",
    "sum_sent",
    "sum_received",
    "cpu_utilization_percent",
    "sender_tcp_congestion",
    "receiver_tcp_congestion",
}
QUIVER_RESULTS = {
    "first_send_time",
    "last_send_time",
    "first_receive_time",
    "last_receive_time",
    "message_count",
    "message_rate",
    "latency_average",
    "latency_quartiles",
    "latency_nines",
}
QUIVER_CONFIG = set(
    "impl url output_dir timeout connection_mode channel_mode operation id host port path duration "
    "count rate body_size credit_window transaction_size durable".split()
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Two repetitions of two pairs, and a failed one."""
    return sample.single(
        tmp_path_factory.mktemp("r") / "pairs",
        repetitions=3,
        senders=2,
        receivers=2,
        fails=lambda _, repetition: "no" if repetition == 1 else None,
    )


@pytest.fixture(scope="module")
def fan_in(tmp_path_factory):
    """Two senders to one receiver."""
    return sample.single(tmp_path_factory.mktemp("r") / "fan", repetitions=1, senders=2)


def refuse(name):
    raise ValueError(name)


def documents(text):
    """JSON documents, one after another, strictly read."""
    decoder = json.JSONDecoder(parse_constant=refuse)
    found = []
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found


def summaries(results, run, program):
    return [run_files.first(results, run, p, "summary") for p in run_files.peers(run, program)]


# ---- iperf ----


def test_iperf_has_a_document_for_each_good_run(pairs):
    found = documents(formats.convert([pairs], "iperf"))
    assert [one["title"] for one in found] == ["repetition=0", "repetition=2"]
    assert found[1]["extra_data"].endswith("runs/p000-r02")


def test_iperf_of_one_run_is_one_document(fan_in):
    assert json.loads(formats.convert([fan_in], "iperf"))["start"]["test_start"]["num_streams"] == 2


def test_iperf_members_have_iperfs_names(pairs):
    one = documents(formats.convert([pairs], "iperf"))[0]
    assert set(one) == IPERF_TOP
    assert set(one["start"]) == IPERF_START
    assert set(one["start"]["test_start"]) == IPERF_TEST
    assert set(one["start"]["timestamp"]) == {"time", "timesecs", "timemillisecs"}
    assert set(one["start"]["connected"][0]) == {
        "socket",
        "local_host",
        "local_port",
        "remote_host",
        "remote_port",
    }
    assert set(one["end"]) == IPERF_END
    assert set(one["end"]["sum_received"]) == AMOUNT
    assert set(one["end"]["sum_sent"]) == AMOUNT | {"retransmits"}
    assert set(one["end"]["cpu_utilization_percent"]) == {
        f"{end}_{kind}" for end in ("host", "remote") for kind in ("total", "user", "system")
    }
    interval = one["intervals"][0]
    assert set(interval["sum"]) == AMOUNT | {"retransmits", "omitted"}
    assert set(interval["streams"][0]) >= AMOUNT | {"socket", "retransmits", "rtt", "omitted"}


def test_iperf_numbers_are_those_of_the_run(pairs):
    one = documents(formats.convert([pairs], "iperf"))[0]
    run = pairs.good(0)[0]
    received = one["end"]["sum_received"]
    assert received["bits_per_second"] == pytest.approx(8 * run.metrics["bytes_per_s"])
    assert received["bytes"] == sum(s["content_bytes"] for s in summaries(pairs, run, "precv"))
    assert received["bytes"] == sum(s["receiver"]["bytes"] for s in one["end"]["streams"])
    assert received["seconds"] == received["end"] == pytest.approx(sample.DURATION_S)
    cpu = one["end"]["cpu_utilization_percent"]
    assert cpu["host_total"] == pytest.approx(run.metrics["psend_cpu_percent"])
    assert cpu["remote_total"] == pytest.approx(run.metrics["precv_cpu_percent"])
    assert cpu["host_user"] == pytest.approx(0.8 * cpu["host_total"])


def test_iperf_intervals_add_up_and_the_warm_up_is_omitted(pairs):
    one = documents(formats.convert([pairs], "iperf"))[0]
    sums = [interval["sum"] for interval in one["intervals"]]
    assert [s["omitted"] for s in sums] == [True, False, False, False, False]
    assert [s["start"] for s in sums] == pytest.approx([0, 0, 0.5, 1.0, 1.5])
    measured = sum(s["bytes"] for s in sums if not s["omitted"])
    assert measured == one["end"]["sum_sent"]["bytes"]
    for interval in one["intervals"]:
        assert interval["sum"]["bytes"] == sum(s["bytes"] for s in interval["streams"])
        assert [s["socket"] for s in interval["streams"]] == [0, 1]
    assert one["start"]["test_start"]["omit"] == 1  # of half a second: iperf3 has whole ones


def test_iperf_stream_without_an_end_of_its_own_has_null(fan_in):
    streams = json.loads(formats.convert([fan_in], "iperf"))["end"]["streams"]
    assert len(streams) == 2
    assert streams[0]["receiver"]["bytes"] > 0
    assert streams[1]["receiver"]["bytes"] is None
    assert streams[1]["sender"]["bytes"] > 0


# ---- quiver ----


def test_quiver_members_have_quivers_names(pairs):
    one = documents(formats.convert([pairs], "quiver"))[0]
    assert set(one) == {"config", "results", "sender"}
    for summary in (one, one["sender"]):
        assert set(summary["config"]) == QUIVER_CONFIG
        assert set(summary["results"]) == QUIVER_RESULTS
    assert one["config"]["operation"] == "receive"
    assert one["sender"]["config"]["operation"] == "send"
    assert one["config"]["credit_window"] == 1000
    assert one["config"]["duration"] == 2


def test_quiver_percentiles_are_of_the_merged_distribution(pairs):
    one = documents(formats.convert([pairs], "quiver"))[0]["results"]
    run = pairs.good(0)[0]
    parts = [s["latency_ns"] for s in summaries(pairs, run, "precv")]
    merged = histogram.merge([histogram.from_distribution(part) for part in parts])
    ms = [merged.percentile_ns(p) / 1e6 for p in (25, 50, 75, 90, 99, 99.9)]
    assert one["latency_quartiles"][1:4] + one["latency_nines"][:3] == pytest.approx(ms)
    assert one["latency_quartiles"][0] == min(part["min"] for part in parts) / 1e6
    assert one["latency_quartiles"][4] == max(part["max"] for part in parts) / 1e6
    assert len(one["latency_nines"]) == 5
    assert one["latency_average"] == pytest.approx(merged.mean_ns / 1e6, rel=1e-4)


def test_quiver_counts_times_and_rates(pairs):
    one = documents(formats.convert([pairs], "quiver"))[0]
    run = pairs.good(0)[0]
    found = one["results"]
    assert found["message_rate"] == round(run.metrics["messages_per_s"])
    count = sum(s["measured_messages"] for s in summaries(pairs, run, "precv"))
    assert found["message_count"] == count
    first_ms = sample.EPOCH_NS // 10**6 + round(1000 * sample.WARMUP_S)
    assert found["first_send_time"] == found["first_receive_time"] == first_ms
    assert found["last_receive_time"] == first_ms + round(1000 * sample.DURATION_S)
    assert one["sender"]["results"]["first_receive_time"] is None
    assert one["sender"]["results"]["latency_nines"] is None


# ---- CSV ----


def test_csv_has_a_line_for_each_run_of_all_results(pairs, tmp_path):
    sweep = sample.stall(tmp_path / "s", axes=sample.STALL_AXES[:1], rate=lambda _: 5e5, plots=())
    rows = list(csv.DictReader(io.StringIO(formats.convert([pairs, sweep], "csv"))))
    assert len(rows) == 3 + 6
    assert {metric.name for metric in METRICS} | {"limited_by", "taken"} <= set(rows[0])
    assert [row["status"] for row in rows[:3]] == ["good", "failed", "good"]
    failed = rows[1]
    assert failed["why"] == "no" and failed["messages_per_s"] == "" and failed["taken"] == ""
    assert rows[3]["taken"] == "one" and rows[3]["directory"] == str(tmp_path / "s")


def test_csv_numbers_are_exact_and_missing_ones_empty(pairs):
    rows = list(csv.DictReader(io.StringIO(formats.convert([pairs], "csv"))))
    run = pairs.good(0)[1]
    assert float(rows[2]["messages_per_s"]) == pytest.approx(
        run.metrics["messages_per_s"], rel=1e-14
    )
    assert int(rows[2]["latency_max_ns"]) == run.metrics["latency_max_ns"]
    assert run.metrics["flow_frames_per_1000"] is None
    assert rows[2]["flow_frames_per_1000"] == ""


# ---- both ----


@pytest.mark.parametrize("name", ["iperf", "quiver"])
def test_without_a_good_run_there_is_nothing_to_convert(name):
    with pytest.raises(Failure, match="there is no good run"):
        formats.convert([sample.in_memory({"1": [None]})], name)


@pytest.mark.parametrize("name", ["iperf", "quiver"])
def test_a_missing_event_file_is_named(name, tmp_path):
    results = sample.single(tmp_path / "r", repetitions=1)
    (tmp_path / "r" / "runs" / "p000-r00" / "precv-0.jsonl").unlink()
    with pytest.raises(Failure, match=r"precv-0\.jsonl: No such file"):
        formats.convert([results], name)
