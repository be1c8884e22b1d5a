"""Time of a copy by component: bars on the terminal and on the page, figures in the document."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from bottleneck.analysis.changes import compare
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import TimeShare
from bottleneck.analysis.phrases import share_name, time_text
from bottleneck.documents import html, ticket
from bottleneck.documents.compare import print_change
from bottleneck.documents.nagios import nagios_text
from bottleneck.documents.openmetrics import openmetrics_text
from bottleneck.gate.judging import judge
from bottleneck.records.schema import schema
from bottleneck.report import report
from tests import stored_reports

DATA = Path(__file__).parents[1] / "data"
UNKNOWN = "Where the time of these copies went is unknown."


def load(name):
    return stored_reports.load(DATA / "traces" / f"{name}.json.gz")


@pytest.fixture(scope="module")
def timed_report():
    return load("server-read")


@pytest.mark.parametrize("width", [80, 120])
def test_the_section_has_bars_for_each_copy(timed_report, render, golden, width):
    answer = render(timed_report, width)
    golden(f"time-{width}", render(timed_report, width, sections=("time",)).removeprefix(answer))


def test_a_report_without_traces_says_that_it_is_not_known(render):
    untraced = stored_reports.load(DATA / "report-v1-server-disk.json")
    assert UNKNOWN in render(untraced, 100, sections=("time",))
    assert UNKNOWN not in render(untraced, 100, verbose=True)


def test_the_document_has_shares_that_sum_to_one_and_the_view(timed_report):
    document = report.to_json(timed_report, diagnose(timed_report))
    jsonschema.validate(document, schema())
    copies = [each for each in document["diagnosis"]["copies"] if "time" in each]
    assert len(copies) >= 4
    for copy in copies:
        assert copy["view"] in ("both hosts", "client alone")
        assert sum(each["ratio"] for each in copy["time"]) == pytest.approx(1.0)
        assert all(each.keys() == {"component", "side", "ratio"} for each in copy["time"])


def test_where_nothing_watched_a_copy_the_key_is_absent():
    untraced = stored_reports.load(DATA / "report-v1-server-disk.json")
    document = report.to_json(untraced, diagnose(untraced))
    assert not any({"time", "view"} & each.keys() for each in document["diagnosis"]["copies"])


def test_the_page_has_the_bars_and_a_ticket_a_line_and_none_of_the_trace(timed_report):
    diagnosis = diagnose(timed_report)
    page = html.document(timed_report, diagnosis)
    assert "pull.uncached over SMB 3.1.1, 24.0 MB/s (seen from both hosts)" in page
    assert f">{time_text(diagnosis.main_copy.time, 4)}</span></summary>" in page
    text = ticket.document(timed_report, diagnosis)
    assert (
        f"- Time of pull.uncached (seen from both hosts): {time_text(diagnosis.main_copy.time)}."
        in text
    )
    assert "trace" not in text and "looks" not in text


def test_monitoring_has_a_line_and_a_figure_for_each_component(timed_report):
    judgement = judge(timed_report, diagnose(timed_report))
    copy = judgement.diagnosis.main_copy
    assert f"\ntime of pull.uncached: {time_text(copy.time)}\n" in nagios_text(judgement)
    samples = re.findall(r"copy_time_ratio{(.*)} ([0-9.e-]+)", openmetrics_text(judgement))
    ratios = {each: float(ratio) for each, ratio in samples}
    (total,) = {round(sum(r for e, r in ratios.items() if 'copy="pull.uncached"' in e), 6)}
    assert total == 1.0
    disk = [r for e, r in ratios.items() if 'component="disk",copy="pull.uncached"' in e]
    assert max(disk) == max(each.ratio for each in copy.time)


@pytest.mark.parametrize("width", [80, 120])
def test_a_comparison_shows_where_the_time_went_in_both(timed_report, render, golden, width):
    change = compare(timed_report, load("client-write"))
    text = render(lambda console: print_change(change, console), width)
    golden(f"compare-time-{width}", text)
    verbose = render(lambda console: print_change(change, console, True), width)
    assert verbose.count("Where the time of ") == len(change.copies)


@pytest.mark.parametrize(
    ("ratios", "text"),
    [
        ((0.71, 0.22, 0.04, 0.03), "71% server disk, 22% network, 4% client disk"),
        ((0.996, 0.004), "100% server disk"),
        ((), ""),
    ],
)
def test_where_the_time_went_in_one_phrase(ratios, text):
    parts = ("disk", "server"), ("network", "path"), ("disk", "client"), ("cpu", "client")
    shares = tuple(TimeShare(*part, r) for part, r in zip(parts, ratios, strict=False))
    assert time_text(shares) == text


def test_a_traces_report_is_read_back_as_it_was(timed_report):
    text = report.dumps(timed_report, diagnose(timed_report))
    again = report.loads(text.encode())
    assert json.loads(report.dumps(again, diagnose(again))) == json.loads(text)


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
    assert share_name(share) == text
