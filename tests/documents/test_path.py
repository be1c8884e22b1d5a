"""The path on the console: what was seen, what was not, and no rate where nothing was moved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bottleneck.documents.hosts import path
from bottleneck.records import schema as report_schema
from bottleneck.report import report as reports
from bottleneck.report.report import Report, Step
from probes.core.records import Measured, Sample
from tests import stored_reports
from tests.stored_reports import diagnose

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
HOPS = [
    {"ttl": 1, "address": "192.168.1.1", "rtt_seconds": 0.0004},
    {"ttl": 2, "address": None, "rtt_seconds": None},
    {"ttl": 3, "address": "192.168.1.10", "rtt_seconds": 0.01},
]
INSIDE = {"path_mtu_bytes": 65536, "full_packet_bytes": 32820, "black_hole": None}
SEEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "silent router": {"hops": HOPS},
    "routers that do not reply": {"hops": HOPS[:1], "hops_complete": False},
    "lost handshakes": {"rtt": {"handshake": {**SECONDS, "count": 20, "lost": 3}}},
    "black hole, and a queue": {
        "push": {
            "path_mtu_bytes": 1500,
            "black_hole": {"passes_bytes": 1400, "stalls_bytes": 1401},
        },
        "pull": {"path_mtu_bytes": 1500, "path_mtu_confirmed": True, "loaded": LOADED},
    },
    "no reply about the MTU": {"push": {"path_mtu_bytes": 1500}},
    "smaller segments": {"push": {**INSIDE, "path_mtu_bytes": 1500, "full_packet_bytes": 1400}},
    "not measured": {"not_measured": {"pull": "needs an agent", "push.loaded": "needs an agent"}},
}


def path_report(**changes: Any) -> Report:
    report = stored_reports.load(DATA / "report-v1-server-disk.json")
    usage = next(each.initiator for _, each in report.entries if isinstance(each, Measured))
    runs = ((Sample(0.0, 0), Sample(3.0, 0)),)
    outcome = Measured(runs, usage, None, {**DETAILS, **changes})
    return replace(report, entries=(*report.entries, (Step("path", SETTING, "client"), outcome)))


@pytest.fixture
def path_text(render):
    return lambda report: render(path(report), 400)


def test_each_finding_of_a_path_is_a_line_by_its_direction(path_text, golden):
    """Unanswered sizes are not said to pass; each reason of what is missing stands once."""
    golden("path", "\n".join(f"== {name}{path_text(path_report(**SEEN[name]))}" for name in SEEN))


def test_how_tcp_cuts_its_segments_within_one_host_says_nothing(path_text):
    report = path_report(push=INSIDE)
    assert "TCP sends at most 32820" in path_text(report)
    assert report.client is not None and report.client.interface is not None
    inside = replace(report.client, interface=replace(report.client.interface, name="lo"))
    text = path_text(replace(report, client=inside))
    assert "65536 bytes should pass\n" in text and "32820" not in text


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {name: strange}
        for name in (*DETAILS, "not_measured")
        for strange in (None, "x", [], {}, [None], {"handshake": 3}, {"black_hole": []}, -1)
    ],
)
def test_strange_details_are_left_out(path_text, changes):
    assert "Traceback" not in path_text(path_report(**changes))


def test_a_stage_that_moves_no_payload_has_no_rate_anywhere(render, path_text):
    """Not in the file, not in the table of stages; and the file is read back as it was."""
    report = path_report()
    document = reports.to_json(report, diagnose(report))
    assert "bytes_per_second" not in document["steps"][-1]["outcome"]
    jsonschema.validate(json.loads(json.dumps(document)), report_schema.schema())
    read = reports.loads(json.dumps(document).encode())
    assert read.entries[-1] == report.entries[-1]
    text = render(read, 100)
    assert "\npath" not in text and " 0 kB/s" not in text
    without = replace(report, entries=report.entries[:-1])
    assert diagnose(report).copies == diagnose(without).copies
    assert path_text(without) == ""


def test_a_file_that_says_no_rate_of_what_moved_is_refused():
    document = reports.to_json(path_report(), diagnose(path_report()))
    del document["steps"][0]["outcome"]["bytes_per_second"]
    with pytest.raises(reports.ReportError, match="bytes_per_second"):
        reports.loads(json.dumps(document).encode())
