"""Where a copy's time went: bars on the terminal and on the page, figures in the document."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import jsonschema
import pytest

from bottleneck import report
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import TimeShare
from bottleneck.report_schema import schema
from bottleneck.reports import html, ticket
from bottleneck.words import share_text
from tests import stored_reports

DATA = Path(__file__).parents[1] / "data"
UNKNOWN = "Where the time of these copies went is unknown."


@pytest.fixture(scope="module")
def timed():
    kept = DATA / "traces" / "server-read.json.gz"
    return report.loads(gzip.decompress(kept.read_bytes()))


@pytest.mark.parametrize("width", [80, 120])
def test_the_section_has_bars_for_each_copy(timed, shown, golden, width):
    answer = shown(timed, width)
    golden(f"time-{width}", shown(timed, width, sections=("time",)).removeprefix(answer))


def test_a_report_without_traces_says_that_it_is_not_known(shown):
    known = stored_reports.load(DATA / "report-v1-server-disk.json")
    assert UNKNOWN in shown(known, 100, sections=("time",))
    assert UNKNOWN not in shown(known, 100, verbose=True)


def test_the_document_has_shares_that_sum_to_one_and_the_view(timed):
    told = report.to_json(timed, diagnose(timed))
    jsonschema.validate(told, schema())
    copies = [each for each in told["diagnosis"]["copies"] if "time" in each]
    assert len(copies) >= 4
    for copy in copies:
        assert copy["view"] in ("both hosts", "client alone")
        assert sum(each["ratio"] for each in copy["time"]) == pytest.approx(1.0)
        assert all(each.keys() == {"component", "side", "ratio"} for each in copy["time"])


def test_where_nothing_watched_a_copy_the_key_is_absent():
    known = stored_reports.load(DATA / "report-v1-server-disk.json")
    told = report.to_json(known, diagnose(known))
    assert not any({"time", "view"} & each.keys() for each in told["diagnosis"]["copies"])


def test_the_page_has_the_bars_and_a_ticket_none_of_the_trace(timed):
    diagnosis = diagnose(timed)
    assert "Where the time of pull.uncached over SMB 3.1.1 went" in html.document(timed, diagnosis)
    told = ticket.document(timed, diagnosis)
    assert "trace" not in told and "looks" not in told


def test_a_traces_report_is_read_back_as_it_was(timed):
    told = report.dumps(timed, diagnose(timed))
    again = report.loads(told.encode())
    assert json.loads(report.dumps(again, diagnose(again))) == json.loads(told)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (TimeShare("disk", "server", 0.7), "server disk"),
        (TimeShare("cpu", "client", 0.1), "client CPU"),
        (TimeShare("network", "path", 0.1), "network"),
        (TimeShare("tcp", "server", 0.1), "server TCP"),
        (TimeShare("smb", "server", 0.1), "SMB round trips"),
        (TimeShare("unknown", None, 0.1), "unknown"),
    ],
)
def test_a_share_is_named_in_two_words(share, text):
    assert share_text(share) == text
