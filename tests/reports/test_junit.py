"""The JUnit document, held to Jenkins' schema and read back."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import xmlschema
from junitparser import JUnitXml

from bottleneck.gate.judged import Judged
from bottleneck.reports.junit import junit_text

SCHEMA = Path(__file__).parent.parent / "data" / "junit-10.xsd"


@pytest.fixture(scope="module")
def schema():
    return xmlschema.XMLSchema10(SCHEMA)


def cases(text):
    (suite,) = JUnitXml.fromstring(text.encode())
    return {case.name: case for case in suite}


def test_it_is_valid_to_jenkins(judgement, schema):
    schema.validate(io.BytesIO(junit_text(judgement).encode()))


def test_each_expectation_is_a_case_that_passes_fails_or_errs(judgement):
    found = cases(junit_text(judgement))
    assert len(found) == len(judgement.judged)
    assert found["path.rtt > 5 ms"].is_passed
    assert found["path.rtt > 5 ms"].system_out == "350 us"
    assert found["tcp.push < 1 MB/s"].is_error
    (failure,) = found["pull.uncached < 80 MB/s"].result
    assert (failure.message, failure.type) == ("pull.uncached runs at 23.6 MB/s", "warning")
    assert "found: 23.6 MB/s" in failure.text
    assert "limited by: disk/server/read, confidence 0.99" in failure.text


def test_counts_time_and_properties_are_those_of_the_run(judgement):
    document = JUnitXml.fromstring(junit_text(judgement).encode())
    (suite,) = document
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (6, 2, 1, 0)
    assert (document.tests, document.failures, document.errors) == (6, 2, 1)
    assert suite.time == document.time == judgement.report.elapsed_seconds
    assert (suite.timestamp, suite.hostname) == ("2026-11-20T23:45:00", "desk")
    told = {each.name: each.value for each in suite.properties()}
    assert told["share"] == "//nas/media"
    assert told["started"] == "2026-11-20T23:45:00+00:00"
    assert told["tool.fio"] == "3.33"
    assert "the server's disk reads at most" in told["summary"]


def test_no_case_claims_a_time(judgement):
    """No stage was measured for one expectation alone."""
    assert all(case.time is None for case in cases(junit_text(judgement)).values())


def test_what_nobody_asked_for_and_nobody_measured_is_skipped(judgement):
    one = Judged("disk server read", "disk.server.read", "ok", "no agent", unit="bytes_per_second")
    (case,) = cases(junit_text(replace(judgement, judged=(one,)))).values()
    assert case.is_skipped and case.result[0].message == "no agent"


def test_a_judgement_of_nothing_is_an_error_and_not_an_empty_suite(nothing, schema):
    text = junit_text(nothing)
    schema.validate(io.BytesIO(text.encode()))
    (case,) = cases(text).values()
    assert case.is_error and case.result[0].message == nothing.sentence
    assert "time=" not in text


def test_every_recorded_report_is_a_valid_document(judged_report, schema):
    schema.validate(io.BytesIO(junit_text(judged_report).encode()))


@pytest.mark.parametrize("started", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_absent(judgement, recorded, schema, started):
    text = junit_text(replace(judgement, report=replace(recorded, started=started)))
    schema.validate(io.BytesIO(text.encode()))
    assert "timestamp=" not in text
