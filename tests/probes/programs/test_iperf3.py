"""iperf3's reports are read as they are, and nothing is believed that makes no sense."""

import json
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from probes.core.records import Endpoint, Sample
from probes.core.stage import Last, Unavailable
from probes.programs import iperf3
from probes.programs.iperf3 import Result, Setting

REPORTS = Path(__file__).with_name("iperf3_reports")


def report(name):
    return (REPORTS / f"{name}.json").read_text()


def measure(port, verb):
    return iperf3.run(Setting(verb, seconds=1.0), Endpoint(host="127.0.0.1", port=port))


def test_a_push_counts_what_the_receiver_has():
    ending = iperf3.parse(report("push"), "push")
    received = json.loads(report("push"))["end"]["sum_received"]
    assert ending.moved_bytes == received["bytes"]
    assert ending.elapsed_seconds == received["seconds"]
    assert ending.retransmitted_segments is not None
    assert ending.rtt_seconds is not None and 0 < ending.rtt_seconds < 1
    assert ending.congestion_control
    counts = [each.moved_bytes for each in ending.intervals]
    assert counts == sorted(counts) and len(counts) >= 3


@pytest.mark.parametrize("lie", [{"bytes": 10**15}, {"seconds": 1e-6}])
def test_a_server_that_claims_more_than_was_sent_is_not_believed(lie):
    document = json.loads(report("push"))
    document["end"]["sum_received"].update(lie)
    with pytest.raises(RuntimeError, match="not sent"):
        iperf3.parse(json.dumps(document), "push")


def test_a_pull_knows_no_rtt_of_the_sender():
    ending = iperf3.parse(report("pull"), "pull")
    assert ending.rtt_seconds is None
    assert ending.moved_bytes > 0


@pytest.mark.parametrize(
    ("name", "says"), [("busy", "the server is busy"), ("refused", "unable to connect")]
)
def test_an_error_is_told_in_its_own_words(name, says):
    assert iperf3.parse_error(report(name)).startswith(says)
    assert iperf3.parse_error(report("push")) is None


def test_an_error_with_control_codes_is_one_plain_line():
    said = iperf3.parse_error(json.dumps({"error": "error - a\x1b[31m\nb" + "x" * 999}))
    assert said.isprintable()
    assert len(said) <= 200


def change_report(**received):
    document = json.loads(report("push"))
    document["end"]["sum_received"].update(received)
    return json.dumps(document)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iperf3: error",
        "[]",
        "{}",
        '{"end": {}}',
        report("push")[:-300],
        change_report(bytes="many"),
        change_report(bytes=-1),
        change_report(bytes=True),
        change_report(bytes=1e300),
        change_report(seconds=0),
        change_report(bytes=0),
        report("push").replace('"bytes":', '"bytes": NaN, "b":', 1),
        json.dumps({**json.loads(report("push")), "intervals": [{"sum": {"bytes": -5, "end": 1}}]}),
    ],
)
def test_what_makes_no_sense_is_no_measurement(text):
    with pytest.raises(RuntimeError, match="iperf3"):
        iperf3.parse(text, "push")


def test_options_hold_nothing_but_the_job():
    arguments = iperf3.arguments(Setting("pull", 2, 4096, 1.2), Endpoint(host="-x;rm", port=1))
    assert arguments[:4] == ["--client", "-x;rm", "--port", "1"]
    assert {"--reverse", "--json"} <= set(arguments)
    assert arguments[arguments.index("--time") + 1] == "2"


@pytest.mark.long
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_a_real_server_measures_with_us(iperf3_port, verb):
    ending = measure(iperf3_port, verb)
    assert ending.moved_bytes > 0
    ends = [each.elapsed_seconds for each in ending.intervals]
    assert ends and ends == sorted(ends)


@pytest.mark.long
def test_a_server_that_others_use_is_waited_for_and_then_named(iperf3_port, monkeypatch):
    monkeypatch.setattr(iperf3, "BUSY_SECONDS", 0.2)
    port = str(iperf3_port)
    other = subprocess.Popen(
        ["iperf3", "--client", "127.0.0.1", "--port", port, "--time", "20", "--forceflush"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert "Connecting" in other.stdout.readline()
        assert "connected" in other.stdout.readline()
        with pytest.raises(Unavailable, match="busy with another test"):
            measure(iperf3_port, "push")
    finally:
        other.kill()
        other.communicate()


def test_a_host_without_a_server_is_a_reason_with_a_remedy():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="iperf3 -s"):
        measure(port, "push")


@pytest.mark.long
def test_a_server_that_says_nothing_is_named_as_silent(monkeypatch):
    monkeypatch.setattr(iperf3, "GRACE_SECONDS", 0.5)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(Unavailable, match=r"did not answer in 1\.5 s; is it an iperf3 server\?"),
    ):
        measure(silent.getsockname()[1], "push")


def failure_of(name):
    text = report(name)
    return iperf3.failure(Endpoint(host="nas", port=5201), text, iperf3.parse_error(text), 9.0)


def test_a_server_without_a_stream_is_not_available():
    assert [type(failure_of(name)) for name in ("silent", "refused")] == [Unavailable] * 2
    says = "accepted the connection and did not answer in 9 s; is it an iperf3 server?"
    assert str(failure_of("silent")) == f"iperf3 to nas port 5201: {says}"
    assert "Connection refused; check that `iperf3 -s` runs" in str(failure_of("refused"))


@pytest.mark.parametrize(
    ("name", "says", "counts"),
    [
        ("interrupted", "was interrupted (control socket has closed unexpectedly)", 3),
        ("stalled", "did not end in time and was stopped", 6),
    ],
)
def test_an_interrupted_transfer_keeps_what_it_moved(monkeypatch, name, says, counts):
    error = failure_of(name)
    assert str(error) == f"iperf3 to nas port 5201: the transfer {says}"
    assert len(error.intervals) == counts and error.intervals[0].moved_bytes > 0
    monkeypatch.setattr(iperf3, "run", Mock(side_effect=error))
    running = iperf3.initiate(Setting("pull"), Endpoint(host="nas"))
    assert [next(running) for _ in range(counts + 1)] == [Sample(0.0, 0), *error.intervals]
    with pytest.raises(iperf3.Interrupted):
        next(running)


@pytest.mark.parametrize("text", ["[]", '{"start": {"connected": [1]}, "intervals": [{}]}'])
def test_a_report_without_sense_is_no_transfer(text):
    error = iperf3.failure(Endpoint(host="nas", port=1), text, "odd", 9.0)
    assert isinstance(error, Unavailable) and "nas port 1: odd; check" in str(error)


def test_a_client_that_does_not_end_is_killed(monkeypatch, tmp_path):
    program = tmp_path / "iperf3"
    program.write_text("#!/bin/sh\nkill -STOP $$\n")
    program.chmod(0o700)
    monkeypatch.setattr(iperf3.tools, "find", lambda name: str(program))
    monkeypatch.setattr(iperf3, "GRACE_SECONDS", -0.9)
    monkeypatch.setattr(iperf3, "CONNECT_SECONDS", 0.1)
    with pytest.raises(RuntimeError, match="no complete report"):
        measure(1, "push")


def test_without_iperf3_the_remedy_is_told(monkeypatch):
    monkeypatch.setattr(iperf3.tools, "find", lambda name: None)
    with pytest.raises(Unavailable, match="apt install iperf3"):
        measure(1, "push")


ENDED = Result(
    moved_bytes=900,
    elapsed_seconds=1.0,
    intervals=tuple(Sample(i / 10, i * 100) for i in range(1, 11)),
    retransmitted_segments=3,
    rtt_seconds=0.004,
    congestion_control="cubic",
    version="iperf 3.12",
)


def test_the_last_sample_is_the_receivers_count(run_stage, monkeypatch):
    jobs_run = []
    monkeypatch.setattr(iperf3, "run", lambda *job: (jobs_run.append(job), ENDED)[1])
    samples, details = run_stage(iperf3, Setting("push", 2, seconds=1.0), Endpoint(host="nas"))
    assert samples[-1] == Last(1.0, 900)
    assert (jobs_run[0][1].host, jobs_run[0][1].port, jobs_run[0][0].streams) == ("nas", 5201, 2)
    assert details["limits"] == {
        "by": "unknown",
        "retransmitted_segments": 3,
        "rtt_seconds_median": 0.004,
    }
    assert details["congestion_control"] == "cubic"
    assert details["engine"] == "iperf 3.12"


def test_windows_leave_the_start_out(monkeypatch, run_stage):
    intervals = (Sample(0.1, 5), *ENDED.intervals[1:], Sample(1.1, 1100))
    monkeypatch.setattr(iperf3, "run", lambda *_: replace(ENDED, intervals=intervals))
    _, details = run_stage(iperf3, Setting(), Endpoint(host="nas"))
    assert [round(each) for each in details["window_rates_bytes_per_second"]] == [1000] * 3
