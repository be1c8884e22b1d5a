"""The path on the console: what was seen, what was not, and no rate where nothing was moved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bottleneck import report as reports
from bottleneck import report_schema
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report import Report, Step
from bottleneck.reports.hosts import path
from probes.records import Measured, Sample

DATA = Path(__file__).parent.parent / "data"
SECONDS = {"low_seconds": 0.0102, "median_seconds": 0.0103, "high_seconds": 0.0124}
SETTING = {"host": "192.168.1.10", "port": 445, "seconds": 3.0, "load": True}
LOADED = {
    "rtt_seconds_median": 0.0412,
    "rtt_seconds_high": 0.06,
    "buffer_delay_seconds": 0.0309,
    "buffer_delay_ratio": 3.0,
    "bytes_per_second": 11.7e6,
}
DETAILS: dict[str, Any] = {
    "rtt": {"handshake": {**SECONDS, "count": 20, "lost": 0}},
    "hops": [{"ttl": 1, "address": "192.168.1.10", "rtt_seconds": 0.0104}],
    "hops_complete": True,
    "interface_mtu_bytes": 1500,
    "push": {"path_mtu_bytes": 1500, "path_mtu_confirmed": True, "black_hole": None},
    "pull": {"path_mtu_bytes": 1500, "full_packet_bytes": 1500, "black_hole": None},
}


def with_path(**changes: Any) -> Report:
    """A report with this step beside its others."""
    report = reports.load(DATA / "report-v1-server-disk.json")
    usage = next(each.initiator for _, each in report.entries if isinstance(each, Measured))
    runs = ((Sample(0.0, 0), Sample(3.0, 0)),)
    outcome = Measured(runs, usage, None, {**DETAILS, **changes})
    return replace(report, entries=(*report.entries, (Step("path", SETTING, "client"), outcome)))


@pytest.fixture
def printed(shown):
    """The section of the path."""
    return lambda report: shown(path(report), 400)


@pytest.fixture
def section(printed):
    """The same of these details."""
    return lambda **changes: printed(with_path(**changes))


def test_a_plain_path_is_told_in_four_lines(section):
    assert section().splitlines()[1:] == [
        "Path between the hosts",
        "- RTT 10.3 ms (10.2 ms to 12.4 ms, 20 handshakes)",
        "- no router in between",
        "- client to server: packets of 1500 bytes pass",
        "- server to client: packets of 1500 bytes pass",
    ]


def test_routers_are_named_in_order_the_silent_ones_too(section):
    hops = [
        {"ttl": 1, "address": "192.168.1.1", "rtt_seconds": 0.0004},
        {"ttl": 2, "address": None, "rtt_seconds": None},
        {"ttl": 3, "address": "192.168.1.10", "rtt_seconds": 0.01},
    ]
    assert "- through 192.168.1.1 (400 \u00b5s), one without a reply\n" in section(hops=hops)
    assert "later routers do not reply" in section(hops=hops[:1], hops_complete=False)


def test_what_vanishes_and_what_waits_is_told_by_direction(section):
    text = section(
        push={"path_mtu_bytes": 1500, "black_hole": {"passes_bytes": 1400, "stalls_bytes": 1401}},
        pull={"path_mtu_bytes": 1500, "path_mtu_confirmed": True, "loaded": LOADED},
    )
    assert (
        "client to server: packets of 1400 bytes pass, those of 1401 are dropped silently" in text
    )
    assert (
        "server to client: packets of 1500 bytes pass; RTT 41.2 ms under a load of 11.7 MB/s,"
        " 30.9 ms (300%) longer than idle" in " ".join(text.split())
    )


def test_what_nobody_answered_is_not_said_to_pass(section):
    assert "1500 bytes should pass\n" in section(push={"path_mtu_bytes": 1500})
    smaller = {"path_mtu_bytes": 1500, "full_packet_bytes": 1400, "black_hole": None}
    assert "1500 bytes should pass; TCP sends at most 1400\n" in section(push=smaller)


def test_how_tcp_cuts_its_segments_within_one_host_says_nothing(printed):
    smaller = {"path_mtu_bytes": 65536, "full_packet_bytes": 32820, "black_hole": None}
    report = with_path(push=smaller)
    assert "TCP sends at most 32820" in printed(report)
    assert report.client is not None and report.client.interface is not None
    inside = replace(report.client, interface=replace(report.client.interface, name="lo"))
    text = printed(replace(report, client=inside))
    assert "65536 bytes should pass\n" in text and "32820" not in text


def test_what_was_not_measured_is_told_once_for_each_reason(section):
    text = section(not_measured={"pull": "needs an agent", "push.loaded": "needs an agent"})
    assert text.endswith("- not measured: pull, push.loaded: needs an agent\n")


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {name: strange}
        for name in (*DETAILS, "not_measured")
        for strange in (None, "x", [], {}, [None], {"handshake": 3}, {"black_hole": []}, -1)
    ],
)
def test_strange_details_are_left_out(section, changes):
    assert "Traceback" not in section(**changes)


def test_a_report_without_the_stage_has_no_such_section(printed):
    assert printed(reports.load(DATA / "report-v1-server-disk.json")) == ""


def test_a_stage_that_moves_no_payload_has_no_rate_anywhere(shown):
    """Not in the file, not in the table of stages; and the file is read back as it was."""
    report = with_path()
    document = reports.to_json(report, diagnose(report))
    assert "bytes_per_second" not in document["steps"][-1]["outcome"]
    jsonschema.validate(json.loads(json.dumps(document)), report_schema.schema())
    read = reports.loads(json.dumps(document).encode())
    assert read.entries[-1] == report.entries[-1]
    text = shown(read, 100)
    rows = [line for line in text.splitlines() if line.startswith("path")]
    assert rows == [] and " 0 kB/s" not in text


def test_a_file_that_says_no_rate_of_what_moved_is_refused():
    document = reports.to_json(with_path(), diagnose(with_path()))
    del document["steps"][0]["outcome"]["bytes_per_second"]
    with pytest.raises(reports.ReportError, match="bytes_per_second"):
        reports.loads(json.dumps(document).encode())


def test_it_changes_no_diagnosis():
    report = with_path()
    without = replace(report, entries=report.entries[:-1])
    assert diagnose(report).copies == diagnose(without).copies
