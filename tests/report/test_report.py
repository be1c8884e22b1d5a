"""The report as a file: lossless, strict, whole or not at all, and as its schema says."""

from __future__ import annotations

import copy
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.rules.registry import CAUSES
from bottleneck.records import schema as report_schema
from bottleneck.report import document_file
from bottleneck.report import report as reports
from bottleneck.report.report import Report, ReportError, Step
from probes.core.records import Failed, Measured, Sample, Skipped, Usage

DATA = Path(__file__).parents[1] / "data"
STORED = sorted(DATA.glob("report-v*.json"))
EXAMPLES = [Path(__file__).parents[2] / "examples/server-disk-read.json"]
VALIDATOR = jsonschema.Draft202012Validator(
    report_schema.schema(), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)


@pytest.fixture
def document():
    return json.loads((DATA / "report-v1-server-disk.json").read_text())


def loads(document):
    return reports.loads(json.dumps(document).encode())


def without_memory_cached(each):
    return {key: value for key, value in each.items() if key != "memory_cached_bytes"}


@pytest.mark.long
@pytest.mark.parametrize("path", STORED + EXAMPLES, ids=lambda path: path.stem)
def test_every_stored_report_loads_for_ever_and_obeys_the_schema(path):
    VALIDATOR.validate(json.loads(path.read_text()))
    report = reports.load(path)
    again = json.loads(reports.dumps(report, diagnose(report)))
    VALIDATOR.validate(again)
    assert reports.from_json(again) == report
    if path in STORED:  # every key but the diagnosis survives a load and a save unchanged
        # but for a fact that nothing read
        document = json.loads(path.read_text(), object_hook=without_memory_cached)
        assert {**again, "diagnosis": None} == {**document, "diagnosis": None}


def test_the_schema_is_one_and_knows_the_verdicts_words():
    schema = report_schema.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"]["const"] == reports.SCHEMA
    assert set(schema["$defs"]["component"]["enum"]) == set(CAUSES)
    assert set(schema["$defs"]["cause"]["enum"]) == set().union(*CAUSES.values())


def test_the_diagnosis_in_a_file_is_never_believed(document):
    forged = copy.deepcopy(document)
    forged["diagnosis"] = {"headline": "push.cached", "copies": "forged"}
    assert loads(forged) == loads(document)


def usage(**changes) -> Usage:
    values = {
        "wall_seconds": 2.0,
        "core_busy_ratios": (0.5,),
        "busiest_core_ratio": 0.5,
        "softirq_ratio": 0.0,
        "steal_ratio": 0.0,
        "copy_cpu_seconds": 0.4,
        "busiest_process_ratio": 0.2,
        "other_cpu_seconds": 0.0,
    }
    values.update(dict.fromkeys(set(Usage.__dataclass_fields__) - set(values)))
    return Usage(**{**values, **changes})


def small(outcome, initiator="client") -> Report:
    entries = ((Step("tcp", {"verb": "push"}, initiator), outcome),)
    started = "2026-11-20T23:45:00+00:00"
    return Report("partial", {"version": "0.1.0"}, started, 1.0, {}, None, None, entries, ("n",))


def written(report):
    return json.loads(reports.dumps(report, diagnose(report)))["steps"][0]["outcome"]


RUNS = tuple((Sample(0.0, 0), Sample(2.0, total)) for total in (600, 200, 400))


def test_rates_are_those_of_the_runs_and_the_samples_the_median_runs():
    outcome = written(small(Measured(RUNS, usage(), None)))
    assert outcome["bytes_per_second"] == {"median": 200, "low": 100, "high": 300, "runs": 3}
    assert outcome["samples"] == [[0.0, 0], [2.0, 400]]
    assert [run[-1][1] for run in outcome["runs"]] == [600, 200, 400]


def test_usage_is_told_by_side_whoever_ran_it():
    outcome = Measured(RUNS, usage(copy_cpu_seconds=1.5), None)
    usages = written(small(outcome, "server"))["usage"]
    assert usages["client"] is None
    assert usages["server"]["copy_cpu_seconds"] == 1.5
    assert loads_small(outcome, "server") == outcome


def loads_small(outcome, initiator="client"):
    report = small(outcome, initiator)
    return reports.loads(reports.dumps(report, diagnose(report)).encode()).entries[0][1]


def test_a_failed_step_keeps_its_samples_and_a_skipped_one_its_reason():
    failed = Failed("reset by peer", (Sample(0.0, 0), Sample(0.4, 77)))
    assert loads_small(failed) == failed
    assert loads_small(Skipped("no agent")) == Skipped("no agent")


def test_a_run_without_duration_is_written_as_failed_and_not_as_a_number():
    instant = Measured(((Sample(0.0, 0), Sample(0.0, 5)),), usage(), None)
    assert written(small(instant))["kind"] == "failed"


def test_names_that_are_no_utf_8_survive(tmp_path):
    strange = Skipped("\udcff\udc80.bin")
    path = tmp_path / "r.json"
    report = small(strange)
    document_file.write(path, reports.dumps(report, diagnose(report)))
    assert path.read_bytes().isascii()
    assert reports.load(path) == report


def test_a_report_that_tells_one_runs_samples_alone_is_read(document):
    outcome = document["steps"][0]["outcome"]
    del outcome["runs"]
    outcome["samples"] = outcome["samples"][1:]
    assert loads(document).entries[0][1].runs[0][0] == Sample(0.0, 0)


def test_keys_of_later_versions_are_left_aside(document):
    document["new"] = {"a": 1}
    document["hosts"]["client"]["new"] = 1
    document["steps"][0]["outcome"]["usage"]["client"]["new"] = None
    VALIDATOR.validate(document)
    loads(document)


def test_figures_that_a_host_did_not_tell_may_be_missing(document):
    del document["hosts"]["client"]["quota_cores"]
    del document["hosts"]["client"]["interface"]["driver"]
    report = loads(document)
    assert report.client is not None
    assert report.client.quota_cores is None


# -- refusals ----------------------------------------------------------------------------------

CHANGES = [
    ("schema", "copy-bottleneck/report/2"),
    ("schema", None),
    ("status", "done"),
    ("started", "yesterday"),
    ("elapsed_seconds", -1),
    ("elapsed_seconds", "41"),
    ("elapsed_seconds", True),
    ("elapsed_seconds", 10**30),
    ("elapsed_seconds", 10**400),
    ("target", []),
    ("hosts", None),
    ("hosts.client.cores", 1.5),
    ("hosts.client.cores", -1),
    ("hosts.client.cores", -(10**400)),
    ("hosts.client.cores", 2**63 + 1),
    ("hosts.server.folder.free_bytes", -1),
    ("hosts.client.cores", True),
    ("hosts.client.privileged", 1),
    ("hosts.client.name", 7),
    ("hosts.client.socket_buffers", {"a": 1}),
    ("hosts.client.interface", "eth0"),
    ("steps", {}),
    ("steps.0", 5),
    ("steps.0.initiator", "path"),
    ("steps.0.setting", None),
    ("steps.0.outcome.kind", "guessed"),
    ("steps.0.outcome.runs", []),
    ("steps.0.outcome.runs", [[[0, 0]]]),
    ("steps.0.outcome.runs", [[[0, 0], [0, 9]]]),
    ("steps.0.outcome.runs", [[[0, 0], [2, 9], [1, 10]]]),
    ("steps.0.outcome.runs", [[[0, 0], [1, 9], [2, 8]]]),
    ("steps.0.outcome.runs", [[[0, 0], [1, 2, 3]]]),
    ("steps.0.outcome.runs", [[[0, 0], [1, 2.5]]]),
    ("steps.0.outcome.runs", [[[0, 0], [1e-300, 10**18]]]),
    ("steps.0.outcome.runs", [[[0.0, 0], [5e-324, 1]]]),
    ("steps.0.outcome.usage.client", None),
    ("steps.0.outcome.usage.client.core_busy_ratios", 0.5),
    ("steps.0.outcome.usage.client.wall_seconds", None),
    ("steps.0.outcome.bytes_per_second.median", 12),
    ("steps.0.outcome.details", []),
    ("steps.0.outcome.details", {"window_rates_bytes_per_second": "abc"}),
    ("steps.0.outcome.details", {"window_rates_bytes_per_second": [1, "x"]}),
    ("notes", [1]),
    *(("target_rate_bytes_per_second", forged) for forged in ("fast", 0, -1)),
]


@pytest.mark.parametrize(("where", "value"), CHANGES, ids=lambda each: str(each)[:40])
def test_what_is_no_report_is_refused_in_one_line(document, where, value):
    *path, last = where.split(".")
    parent = document
    for key in path:
        parent = parent[int(key) if key.isdigit() else key]
    parent[int(last) if last.isdigit() else last] = value
    with pytest.raises(ReportError) as refused:
        loads(document)
    assert "\n" not in str(refused.value)
    assert str(refused.value)


@pytest.mark.parametrize(
    "key", ["status", "started", "elapsed_seconds", "target", "hosts", "steps"]
)
def test_a_missing_key_is_refused(document, key):
    del document[key]
    with pytest.raises(ReportError):
        loads(document)


def test_a_missing_figure_is_never_zero(document):
    del document["steps"][0]["outcome"]["usage"]["client"]["wall_seconds"]
    with pytest.raises(ReportError, match="wall_seconds is missing"):
        loads(document)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": 1e400}',
        b" " * (reports.LIMITS.content_bytes + 1),
    ],
    ids=lambda content: f"{content[:12]!r} {len(content)}",
)
def test_what_is_no_document_is_refused(content):
    with pytest.raises(ReportError):
        reports.loads(content)


# -- saving ------------------------------------------------------------------------------------

OLD = '{"schema": "copy-bottleneck/report/1"}'
"""Enough of an earlier report to be replaced by the next."""


def save(path):
    report = small(Skipped("x"))
    document_file.write(path, reports.dumps(report, diagnose(report)))
    return report


def test_saving_keeps_the_mode_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(OLD)
    path.chmod(0o640)
    report = save(path)
    assert reports.load(path) == report
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]


# -- what a foreign or damaged report can do -------------------------------------------------------


def stored_path(name: str) -> Path:
    return DATA / f"report-v1-{name}.json"


@pytest.fixture
def agent_report() -> Report:
    return reports.load(stored_path("lab-with-agent"))


def refusal(call, *arguments) -> str:
    with pytest.raises((ReportError, OSError)) as refused:
        call(*arguments)
    text = str(refused.value)
    assert text
    assert len(text.splitlines()) == 1
    assert len(text) < 500
    assert text.isprintable()
    return text


# -- what it means, for ever -------------------------------------------------------------------


def words(report: Report) -> str:
    return "".join(
        f"{copy.copy} {copy.dialect}: {copy.verdict.component}/{copy.verdict.side}/"
        f"{copy.verdict.cause} {copy.verdict.confidence:.2f}\n  {copy.verdict.sentence}\n"
        for copy in diagnose(report).copies
    )


@pytest.mark.parametrize("name", ["lab-with-agent", "lab-no-agent"])
def test_a_stored_report_gives_the_same_words(name):
    """Real runs of version 0.1.0; `UPDATE_GOLDEN=1` writes the words anew."""
    path = DATA / f"report-v1-{name}.words.txt"
    text = words(reports.load(stored_path(name)))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# -- endings -----------------------------------------------------------------------------------

STEP = Step("smb-copy", {"copy": "pull.cached", "dialect": "3.1.1", "end": "folder"}, "client")


ENDINGS = {
    "whole": lambda report: report,
    "no server facts": lambda report: replace(report, server=None),
    "no facts": lambda report: replace(report, client=None, server=None, target={}, notes=()),
    "no entries": lambda report: replace(report, entries=()),
    "skipped": lambda report: replace(report, entries=((STEP, Skipped("no such share")),)),
    "failed": lambda report: replace(report, entries=((STEP, Failed("reset by peer")),)),
    "no copies": lambda report: replace(report, entries=report.entries[:3]),
    "no agent": lambda report: replace(
        report,
        entries=tuple((step, _without_responder(outcome)) for step, outcome in report.entries),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("status", reports.STATUSES)
@pytest.mark.parametrize("change", ENDINGS)
def test_every_ending_obeys_the_schema_and_comes_back_equal(agent_report, status, change):
    report = replace(ENDINGS[change](agent_report), status=status)
    diagnosis = diagnose(report)
    validator = jsonschema.Draft202012Validator(report_schema.schema())
    validator.validate(json.loads(reports.dumps(report, diagnosis)))
    assert reports.from_json(reports.to_json(report, diagnosis)) == report
    assert reports.loads(reports.dumps(report, diagnosis).encode()) == report


def _without_responder(outcome):
    return replace(outcome, responder=None) if isinstance(outcome, Measured) else outcome


# -- files that are no report ------------------------------------------------------------------


def test_what_is_no_regular_file_is_refused_and_left_closed(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(fifo)
    open_files = len(os.listdir("/proc/self/fd"))
    for name in ("fifo", "folder", "link"):
        refusal(reports.load, tmp_path / name)
    refusal(reports.load, "/dev/zero")
    assert len(os.listdir("/proc/self/fd")) == open_files


@pytest.mark.parametrize("beyond_bytes", [1, 1 << 40])
def test_a_file_that_is_too_large_is_refused_without_being_read_whole(tmp_path, beyond_bytes):
    path = tmp_path / "large.json"
    path.touch()
    os.truncate(path, reports.LIMITS.content_bytes + beyond_bytes)
    assert "larger than" in refusal(reports.load, path)


def test_a_report_cut_anywhere_is_refused():
    content = stored_path("lab-no-agent").read_bytes().rstrip()
    for length in range(0, len(content) - 1, 997):
        refusal(reports.loads, content[:length])


def test_what_is_written_nests_far_less_than_the_limit(document):
    deep = {}
    for _ in range(reports.LIMITS.levels - 10):
        deep = {"x": deep}
    document["steps"][0]["outcome"]["details"]["deep"] = deep
    report = loads(document)
    assert reports.loads(reports.dumps(report, diagnose(report)).encode()) == report


@pytest.mark.parametrize("key", ["a\nb", "\x1b[2J", "\u202e", "\ud800", "k" * 5000])
def test_a_foreign_key_cannot_break_the_line(document, key):
    document["hosts"]["client"]["tools"] = {key: 5}
    refusal(loads, document)
    twice = json.dumps({key: 1})[:-1] + ", " + json.dumps({key: 2})[1:]
    assert "twice" in refusal(reports.loads, twice.encode())


def test_what_cannot_be_written_as_json_leaves_the_old_file(tmp_path, agent_report):
    path = tmp_path / "r.json"
    old = '{"schema": "copy-bottleneck/report/1"}'
    path.write_text(old)
    broken = replace(agent_report, target={"share": "//nas/media", "ratio": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        document_file.write(path, reports.dumps(broken, diagnose(broken)))
    assert path.read_text() == old
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "fchmod"])
def test_a_save_that_breaks_leaves_the_old_report(tmp_path, agent_report, monkeypatch, call, fault):
    path = tmp_path / "r.json"
    document_file.write(path, reports.dumps(agent_report, diagnose(agent_report)))
    later = replace(agent_report, status="interrupted")

    def breaks(*_arguments):
        raise fault

    monkeypatch.setattr(os, call, breaks)
    with pytest.raises(type(fault)):
        document_file.write(path, reports.dumps(later, diagnose(later)))
    monkeypatch.undo()
    assert reports.load(path) == agent_report
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]
    document_file.write(path, reports.dumps(later, diagnose(later)))
    assert reports.load(path) == later
