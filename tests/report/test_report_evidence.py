"""Stages' details may be forged, however deep; nothing breaks.

The agent at the other end tells who limited, points, cells, tables and sockets: a liar's are no
evidence, and no word of theirs acts on a terminal.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.documents.console import print_report
from bottleneck.records import schema as report_schema
from bottleneck.report import report as reports
from probes.core.records import Measured
from probes.core.typed import to_plain

STORED = Path(__file__).parents[1] / "data" / "report-v1-comparisons.json"
SCHEMA = {"$defs": report_schema.schema()["$defs"], "$ref": "#/$defs/diagnosis"}
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
LIES = (True, -1, 0, 5e-324, 1e308, None, [{}], {"a": 1})
SHOWN = ("\x1b[2J[red]x", 2**62)
"""Lies that reach the console, if any do."""
NETWORK = ("tcp", "sweep", "latency", "matrix", "udp", "path")
FIGURES = {
    "by": "receive-window",
    "congestion_control": "reno",
    "busy_ratio": 1.0,
    "receive_window_limited_ratio": 0.9,
    "send_buffer_limited_ratio": 0.9,
    "send_queue_full_ratio": 1.0,
    "peer_window_full_ratio": 1.0,
    "reduced_ratio": 0.2,
    "full_ratio": 0.0,
    "unsent_bytes_median": 200_000,
    "unread_bytes_median": 0,
    "in_flight_bytes_median": 65_000,
    "in_flight_bytes_high": 65_535,
    "rtt_seconds_median": 0.02,
    "rtt_seconds_high": 0.03,
    "min_rtt_seconds": 0.02,
    "peer_window_bytes_median": 65_536,
    "own_window_bytes_median": 65_536,
    "congestion_window_bytes_median": 65_536,
    "segment_bytes": 1448,
    "path_mtu_bytes": 1500,
    "retransmitted_segments": 900,
    "retransmitted_bytes": 1_300_000,
    "sent_bytes": 100_000_000,
    "loss_ratio": 0.013,
    "rto_seconds": 0.5,
    "out_of_order_segments": 50,
    "send_buffer_bytes": 87_380,
    "receive_buffer_bytes": 87_380,
    "glimpses": 200,
    "receiver_glimpses": 200,
    "sender_seen": True,
    "receiver_seen": True,
    "process": "smbd",
}
"""Such that the rules about windows, buffers, loss and delay all have something to say."""
COUNTED = {"client": {"enp3s0 rx_pause": 5, "enp3s0 rx_missed_errors": 7, "enp3s0 rx_crc": 3}}


def entry_with_evidence(entry):
    step, outcome = entry
    if not isinstance(outcome, Measured):
        return entry
    evidence = {"interface_counts": COUNTED}
    if step.stage == "tcp":
        evidence |= {"limits": FIGURES, "sender": {"granted_bytes": 87_380, "cpu_seconds": 0.5}}
    if step.stage in ("smb-copy", "native-copy") and step.setting.get("end") != "memory":
        evidence |= {"sockets": FIGURES}
    return step, replace(outcome, details={**outcome.details, **evidence})


WHOLE = reports.load(STORED)


def one_of_each(entry):
    """One of each: what is left out tells the same keys."""
    step, _ = entry
    kind = step.setting.get("verb", step.setting.get("copy"))
    if step.setting.get("end") == "memory" or step.setting.get("dialect") in ("smb1", "2.1"):
        return False
    copies = ("pull.cached", "push.cached", "server.push.cached")
    return step.stage in NETWORK or kind in ("pull", *copies)


REPORT = replace(
    WHOLE, entries=tuple(entry_with_evidence(each) for each in WHOLE.entries if one_of_each(each))
)


def keys_in(value):
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from keys_in(each)
    if isinstance(value, (list, tuple)):
        for each in value[:2]:
            yield from keys_in(each)


MEASURED = [(step, outcome) for step, outcome in REPORT.entries if isinstance(outcome, Measured)]
KEYS = sorted(
    {key for step, outcome in MEASURED for key in keys_in([step.setting, outcome.details])}
    | set(REPORT.target)
)


def forge(value, key, lie):
    """Returns the value with a lie at each place of a key, however deep."""
    if isinstance(value, dict):
        return {k: lie if k == key else forge(v, key, lie) for k, v in value.items()}
    return [forge(each, key, lie) for each in value] if isinstance(value, list) else value


def judge_text(report):
    diagnosis = diagnose(report)
    return diagnosis, json.dumps(to_plain(diagnosis), allow_nan=False)


def printed_diagnosis(report):
    """Returns the diagnosis of a report that was checked against the schema and printed."""
    diagnosis, text = judge_text(report)
    VALIDATOR.validate(json.loads(text))
    file = io.StringIO()
    print_report(report, diagnosis, Console(file=file, width=100), ("all",))
    assert all(line.isprintable() for line in file.getvalue().splitlines())
    return diagnosis


def forged_report(key, lie):
    report = details_report(lambda _, details: forge(details, key, lie))
    entries = tuple((replace(s, setting=forge(s.setting, key, lie)), o) for s, o in report.entries)
    return replace(report, entries=entries, target=forge(report.target, key, lie))


def details_report(change):
    """Returns the report with each measured step's details changed."""
    entries = tuple(
        (step, replace(outcome, details=change(step, outcome.details)))
        if isinstance(outcome, Measured)
        else (step, outcome)
        for step, outcome in REPORT.entries
    )
    return replace(REPORT, entries=entries)


def test_every_stage_of_the_network_and_its_evidence_is_forged_here():
    stages = {step.stage for step, _ in MEASURED}
    assert {"tcp", "sweep", "latency", "matrix", "udp", "smb-copy"} <= stages
    assert {"points", "table", "nagle", "percentiles", "limits", "sockets", "cells"} <= set(KEYS)
    assert set(FIGURES) <= set(KEYS)
    assert {"rtt_seconds", "in_flight_bytes", "seconds_per_file", "options"} <= set(KEYS)
    assert printed_diagnosis(REPORT).copies


@pytest.mark.long
@pytest.mark.parametrize("key", KEYS)
def test_a_forged_figure_breaks_nothing(key):
    for lie in LIES:
        judge_text(forged_report(key, lie))
    for lie in SHOWN:
        printed_diagnosis(forged_report(key, lie))


@pytest.mark.parametrize("lie", [{}, {"limits": 5}, {"limits": []}, {"cells": {}}, {"points": "x"}])
def test_details_that_tell_nothing_break_nothing(lie):
    printed_diagnosis(details_report(lambda *_: lie))


@pytest.mark.parametrize("stage", sorted({step.stage for step, _ in MEASURED}))
def test_details_of_another_stage_break_nothing(stage):
    (other, *_) = [outcome.details for step, outcome in MEASURED if step.stage == stage]
    printed_diagnosis(details_report(lambda *_: other))


def test_all_figures_at_their_largest_at_once_break_nothing():
    def largest(value):
        if isinstance(value, dict):
            return {key: largest(each) for key, each in value.items()}
        if isinstance(value, list):
            return [largest(each) for each in value]
        return 2**62 if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    printed_diagnosis(details_report(lambda _, details: largest(details)))
