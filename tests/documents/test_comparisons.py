"""The comparisons on the console: a section for each that the report has, and none for the rest."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.analysis.finding import ABOUTS
from bottleneck.documents.comparisons import TABLES
from bottleneck.report.report import Step
from probes.core.records import Measured, Sample
from tests import stored_reports
from tests.stored_reports import diagnose

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def report():
    stored = stored_reports.load(DATA / "report-v1-comparisons.json")
    # Made before these stages were.
    setting = {"verb": "pull", "dialect": "3.1.1"}
    cells = [{"channels": n, "bytes_per_second": rate} for n, rate in ((1, 112e6), (2, 2.1e8))]
    run = (Sample(0.0, 0), Sample(1.0, 210_000_000))
    outcome = Measured((run,), None, None, {"cells": cells, "hash_ok": True})
    channels = (Step("smb-multichannel", setting, "client"), outcome)
    details = {"entries": 1000, "seconds_per_thousand": {"query": 0.05, "each": 1.1}}
    outcome = Measured(((Sample(0.0, 0), Sample(1.0, 2_000_000)),), None, None, details)
    listed = (Step("listing", {"entries": 1000, "dialect": "3.1.1"}, "client"), outcome)
    words = {"files": 1000, "files_at_once": 4, "seconds": 7.1, "one_at_a_time_seconds": 21.0}
    command = {"text": "rclone copy --transfers 4 SRC DST", **words}
    outcome = Measured(
        ((Sample(0.0, 0), Sample(1.0, 9_000_000)),), None, None, {"command": command}
    )
    setting = {"verb": "pull", "file_bytes": 65536, "dialect": "3.1.1"}
    several = (Step("parallel", setting, "client"), outcome)
    return replace(stored, entries=(*stored.entries, channels, listed, several))


def section(text, subject) -> list[str]:
    lines = text.splitlines()
    start = lines.index(TABLES[subject].heading) + 1
    return lines[start : lines.index("", start)]


def test_every_kind_of_comparison_has_its_table_and_the_report_has_all_of_them(report):
    assert set(TABLES) == set(ABOUTS)
    assert {each.about for each in diagnose(report).comparisons} == set(ABOUTS)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_of_tcp_alone_maps_bars_and_knees_are_as_they_were_looked_at(
    render, golden, report, encoding
):
    """Each cell at its window and streams, the knee in brackets; the longest bar is the best's."""
    copying = ("smb-copy", "native-copy")
    entries = tuple(entry for entry in report.entries if entry[0].stage not in copying)
    probed = replace(report, entries=entries)
    golden(f"probed-80-{encoding}", render(probed, encoding=encoding))


def test_without_a_star_the_star_is_not_explained(render, report):
    entries = tuple(
        e for e in report.entries if not str(e[0].setting.get("copy")).startswith("server.push")
    )
    lines = section(render(replace(report, entries=entries), verbose=True), "initiator")
    assert not any("*" in line for line in lines)


def test_what_a_step_does_not_tell_is_a_dot(render, report):
    bare = tuple((step, _without(outcome)) for step, outcome in report.entries)
    report = replace(report, entries=bare, server=None)
    lines = section(render(report, verbose=True), "security")
    assert lines[1].split()[-1] == "·"
    assert " · " in section(render(report, verbose=True), "dialect")[1]
    assert " · " in section(render(report, verbose=True), "small-files")[1]


def _without(outcome):
    if not isinstance(outcome, Measured):
        return outcome
    details = {
        k: v for k, v in outcome.details.items() if k not in ("request_bytes", "rtt_seconds")
    }
    return replace(outcome, responder=None, details=details)


HOSTILE = "x\x1b[2J\u202e[red]y[/red]"


def test_foreign_words_in_it_act_on_nothing(render, report):
    entries = []
    for step, outcome in report.entries:
        setting = dict(step.setting)
        if setting.get("engine"):
            setting["engine"] = HOSTILE
        if setting.get("dialect") == "smb1":
            setting["dialect"] = HOSTILE
        if step.stage in ("smb-matrix", "matrix", "udp"):
            setting["verb"] = HOSTILE
        forged = outcome
        if step.stage == "native-copy":
            mount = {"options": f"rsize=4096,{HOSTILE}", "filesystem": HOSTILE}
            details = {**outcome.details, "program": HOSTILE, "mount": mount}
            forged = replace(outcome, details=details)
        entries.append((replace(step, setting=setting), forged))
    text = render(replace(report, entries=tuple(entries)), 200, verbose=True)
    assert all(line.isprintable() for line in text.splitlines())
    text = re.sub(r"\n +", " ", text)
    assert "made by x\\x1b[2J\\u202e[red]y[/red]" in text
    assert "SMB x\\x1b[2J" in text
