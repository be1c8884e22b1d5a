"""The metrics: valid to OpenMetrics and to Prometheus' older text at once, and to its linter."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import TimeShare
from bottleneck.analysis.rules.registry import CAUSES
from bottleneck.documents.openmetrics import FAMILIES, MOST_SAMPLES, PREFIX, openmetrics_text
from probes.core.records import Skipped

BASE_UNITS = {"bytes", "seconds", "ratio"}
OTHER_UNITS = re.compile(
    r"(?:pico|nano|micro|milli|centi|kilo|kibi|mega|mibi|giga|gibi|tera)?"
    r"(?:seconds|bytes)|minutes|hours|days|weeks|bits|percent"
)
ABBREVIATED = {*"s ms us ns sec b kb mb gb tb pb m h d".split()}
TYPES = {"counter", "gauge", "summary", "histogram"}


def problems(text):
    """Yields complaints as of `promtool check metrics`: the rules of client_golang's promlint."""
    for family in prometheus(text):
        words = family.name.split("_")
        if not family.documentation:
            yield family.name, "no help text"
        if any(OTHER_UNITS.fullmatch(each) and each not in BASE_UNITS for each in words):
            yield family.name, "not a base unit"
        if ABBREVIATED & set(words):
            yield family.name, "an abbreviated unit"
        if TYPES & set(words):
            yield family.name, "the type in its name"
        if family.name.endswith(("_total", "_bucket", "_count", "_sum")):
            yield family.name, "a reserved end"
        if ":" in family.name or re.search("[a-z][A-Z]", family.name):
            yield family.name, "colons or camelCase"
        for sample in family.samples:
            if {"le", "quantile"} & set(sample.labels):
                yield family.name, "a reserved label"
            if any(re.search("[a-z][A-Z]", each) for each in sample.labels):
                yield family.name, "camelCase in a label"


def samples(text):
    """All samples by name and labels. Errors: AssertionError where two are the same."""
    value_of = {}
    for family in openmetrics(text):
        for each in family.samples:
            key = (each.name.removeprefix(PREFIX), *sorted(each.labels.items()))
            assert key not in value_of, key
            value_of[key] = each.value
    return value_of


def values(text, name, **labels):
    pairs = set(labels.items())
    return [
        value
        for (sample_name, *own_pairs), value in samples(text).items()
        if sample_name == name and pairs <= set(own_pairs)
    ]


def test_both_parsers_read_the_same(judgement):
    text = openmetrics_text(judgement)
    one = [each for family in openmetrics(text) for each in family.samples]
    other = [each for family in prometheus(text) for each in family.samples]
    assert one and one == other
    assert text.endswith("\n# EOF\n")


def test_there_are_gauges_without_timestamps_alone(judgement):
    """node_exporter refuses the whole file for a timestamp or a type of OpenMetrics alone."""
    text = openmetrics_text(judgement)
    assert set(re.findall(r"^# TYPE \S+ (\S+)$", text, re.MULTILINE)) == {"gauge"}
    assert all(
        re.fullmatch(r'\w+(?:\{(?:\w+="(?:[^"\\\n]|\\[\\n"])*",?)*\})? \S+', line)
        for line in text.splitlines()
        if not line.startswith("#")
    )


def test_the_linter_has_nothing_to_say(judgement):
    assert not list(problems(openmetrics_text(judgement)))


def test_promtool_has_nothing_to_say(judgement):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed; its rules are held by the test above")
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=openmetrics_text(judgement),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_what_was_not_measured_is_absent(judgement, recorded_report):
    entries = tuple((step, Skipped("no")) for step, _ in recorded_report.entries)
    report = replace(recorded_report, entries=entries)
    diagnosis = diagnose(report)
    assert diagnosis.copies
    text = openmetrics_text(replace(judgement, report=report, diagnosis=diagnosis))
    names = {name for name, *_ in samples(text)}
    assert not names & {"copy_bytes_per_second", "cap_confidence", "stage_bytes_per_second"}
    assert "tcp.push" not in re.findall(r'expectation_bytes_per_second{metric="(.*?)"', text)


def test_words_are_the_contracts(judgement):
    for name, *labels in samples(openmetrics_text(judgement)):
        values_of = dict(labels)
        if "cause" in values_of:
            assert values_of["cause"] in CAUSES[values_of["component"]], name


def test_every_recorded_report_is_valid_to_both_parsers_and_the_linter(judged_report):
    text = openmetrics_text(judged_report)
    assert samples(text) and list(prometheus(text))
    assert not list(problems(text))


@pytest.mark.parametrize("started", ["0001-01-01T00:00:00+14:00", "2026-11-20T23:45:00"])
def test_a_time_that_is_none_is_absent(judgement, recorded_report, started):
    text = openmetrics_text(replace(judgement, report=replace(recorded_report, started=started)))
    assert not values(text, "report_timestamp_seconds")
    assert values(text, "report_duration_seconds")


def test_a_flood_of_steps_stays_within_bounds(judgement, recorded_report):
    step, outcome = next(each for each in recorded_report.entries if each[0].stage == "tcp")
    many = tuple(
        (replace(step, setting={**step.setting, "streams": streams}), outcome)
        for streams in range(2000)
    )
    text = openmetrics_text(replace(judgement, report=replace(recorded_report, entries=many)))
    assert len(values(text, "stage_bytes_per_second")) == MOST_SAMPLES
    assert all(math.isfinite(value) for value in samples(text).values())


def test_every_family_that_is_documented_can_be_written(judgement):
    copy = replace(judgement.diagnosis.copies[0], time=(TimeShare("disk", "server", 1.0),))
    timed = replace(judgement, diagnosis=replace(judgement.diagnosis, copies=(copy,)))
    names = {name for each in (judgement, timed) for name, *_ in samples(openmetrics_text(each))}
    assert names == set(FAMILIES)
