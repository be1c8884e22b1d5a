"""The JUnit document, held to Jenkins' schema and read back."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import xmlschema

from bottleneck.documents.junit import junit_text

SCHEMA = Path(__file__).parent.parent / "data" / "junit-10.xsd"


@pytest.fixture(scope="module")
def schema():
    return xmlschema.XMLSchema10(SCHEMA)


def test_each_state_and_an_empty_judgement_are_valid_to_jenkins(judgement, empty_judgement, schema):
    for each in (judgement, empty_judgement):
        schema.validate(io.BytesIO(junit_text(each).encode()))


def test_every_recorded_report_is_a_valid_document(judged_report, schema):
    schema.validate(io.BytesIO(junit_text(judged_report).encode()))


@pytest.mark.parametrize("started", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_absent(judgement, recorded_report, schema, started):
    text = junit_text(replace(judgement, report=replace(recorded_report, started=started)))
    schema.validate(io.BytesIO(text.encode()))
    assert "timestamp=" not in text
