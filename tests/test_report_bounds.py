"""What a foreign or damaged report can do: one line and nothing else; and what it means."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from bottleneck import report as reports
from bottleneck import report_schema
from bottleneck.analysis import diagnose
from bottleneck.report import Report, ReportError, Step
from probes.records import Failed, Measured, Sample, Skipped

DATA = Path(__file__).parent / "data"
LAB = ("lab-with-agent", "lab-no-agent")


def stored(name: str) -> Path:
    return DATA / f"report-v1-{name}.json"


@pytest.fixture
def document():
    return json.loads(stored("lab-with-agent").read_text())


@pytest.fixture
def with_agent() -> Report:
    return reports.load(stored("lab-with-agent"))


def refusal(call, *arguments) -> str:
    """The one line that a refused report ends in."""
    with pytest.raises((ReportError, OSError)) as refused:
        call(*arguments)
    text = str(refused.value)
    assert text
    assert len(text.splitlines()) == 1
    assert len(text) < 500
    assert text.isprintable()
    return text


def loads(document):
    return reports.loads(json.dumps(document).encode())


# -- what it means, for ever -------------------------------------------------------------------


def words(report: Report) -> str:
    """Each copy's verdict in words."""
    return "".join(
        f"{copy.copy} {copy.dialect}: {copy.verdict.component}/{copy.verdict.side}/"
        f"{copy.verdict.cause} {copy.verdict.confidence:.2f}\n  {copy.verdict.sentence}\n"
        for copy in diagnose(report).copies
    )


@pytest.mark.parametrize("name", LAB)
def test_a_stored_report_gives_the_same_words(name):
    """Real runs of version 0.1.0; `UPDATE_GOLDEN=1` writes the words anew."""
    path = DATA / f"report-v1-{name}.words.txt"
    told = words(reports.load(stored(name)))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")


# -- endings -----------------------------------------------------------------------------------

STEP = Step("smb-copy", {"copy": "pull.cached", "dialect": "3.1.1", "end": "folder"}, "client")


@pytest.mark.long
@pytest.mark.parametrize("status", reports.STATUSES)
@pytest.mark.parametrize(
    "change",
    [
        lambda report: report,
        lambda report: replace(report, server=None),
        lambda report: replace(report, client=None, server=None, target={}, notes=()),
        lambda report: replace(report, entries=()),
        lambda report: replace(report, entries=((STEP, Skipped("no such share")),)),
        lambda report: replace(report, entries=((STEP, Failed("reset by peer")),)),
        lambda report: replace(
            report, entries=((STEP, Failed("reset", (Sample(0.0, 0), Sample(0.5, 9)))),)
        ),
        lambda report: replace(report, entries=report.entries[:3]),
        lambda report: replace(
            report,
            entries=tuple((step, _alone(outcome)) for step, outcome in report.entries),
        ),
    ],
    ids=[
        "whole",
        "no server facts",
        "no facts",
        "no entries",
        "skipped",
        "failed",
        "failed with samples",
        "no copies",
        "no agent",
    ],
)
def test_every_ending_obeys_the_schema_and_comes_back_equal(with_agent, status, change):
    report = replace(change(with_agent), status=status)
    found = diagnose(report)
    validator = jsonschema.Draft202012Validator(report_schema.schema())
    validator.validate(json.loads(reports.dumps(report, found)))
    assert reports.from_json(reports.to_json(report, found)) == report
    assert reports.loads(reports.dumps(report, found).encode()) == report


def _alone(outcome):
    return replace(outcome, responder=None) if isinstance(outcome, Measured) else outcome


# -- files that are no report ------------------------------------------------------------------


def test_a_file_that_is_not_there_is_named_by_the_system(tmp_path):
    refusal(reports.load, tmp_path / "none.json")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "none.json")
    refusal(reports.load, tmp_path / "dangling.json")
    (tmp_path / "ring.json").symlink_to(tmp_path / "ring.json")
    refusal(reports.load, tmp_path / "ring.json")


def test_what_is_no_regular_file_is_refused_and_left_closed(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(fifo)
    before = len(os.listdir("/proc/self/fd"))
    for name in ("fifo", "folder", "link"):
        refusal(reports.load, tmp_path / name)
    refusal(reports.load, "/dev/zero")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_link_to_a_report_is_a_report(tmp_path):
    (tmp_path / "link.json").symlink_to(stored("lab-no-agent"))
    assert reports.load(tmp_path / "link.json") == reports.load(stored("lab-no-agent"))


@pytest.mark.parametrize("beyond_bytes", [1, 1 << 40])
def test_a_file_that_is_too_large_is_refused_without_being_read_whole(tmp_path, beyond_bytes):
    path = tmp_path / "large.json"
    path.touch()
    os.truncate(path, reports.LIMITS.content_bytes + beyond_bytes)
    assert "larger than" in refusal(reports.load, path)


def test_a_report_cut_anywhere_is_refused():
    content = stored("lab-no-agent").read_bytes().rstrip()
    for length in range(0, len(content) - 1, 997):
        refusal(reports.loads, content[:length])


# -- documents that are no report --------------------------------------------------------------


@pytest.mark.parametrize("where", ["schema", "target", "tool", "notes"])
@pytest.mark.parametrize("levels", [65, 300, 900, 980, 985, 990, 995, 1000, 5000, 100_000])
def test_deep_nesting_is_refused_at_every_depth(document, where, levels):
    """Between a shallow report and what the parser refuses lies what a walk of ours would not."""
    if where in ("target", "tool"):
        document[where] = {"version": "0", "x": "HERE"}
    else:
        document[where] = "HERE"
    text = json.dumps(document).replace('"HERE"', "[" * levels + "]" * levels)
    refusal(reports.loads, text.encode())


def test_what_is_written_nests_far_less_than_the_limit(document):
    deep = {}
    for _ in range(reports.LIMITS.levels - 10):
        deep = {"x": deep}
    document["steps"][0]["outcome"]["details"]["deep"] = deep
    report = loads(document)
    assert reports.loads(reports.dumps(report, diagnose(report)).encode()) == report


@pytest.mark.parametrize(
    "number", [10**400, 10**300, 2**63 + 1, -1, -(10**400), 1.5, "7", None, True, [], {}]
)
def test_a_figure_out_of_its_range_or_type_is_refused(document, number):
    """A whole number of JSON may be larger than any float."""
    changed = document
    changed["hosts"]["client"]["cores"] = number
    assert "cores" in refusal(loads, changed)


@pytest.mark.parametrize("number", [10**400, 2.0**64, -0.5, "7", None, False])
def test_an_amount_out_of_its_range_or_type_is_refused(document, number):
    document["elapsed_seconds"] = number
    assert "elapsed_seconds" in refusal(loads, document)


@pytest.mark.parametrize("size", [-1, 10**400, 0.5, "1"])
def test_a_negative_or_broken_size_is_refused(document, size):
    document["hosts"]["server"]["folder"]["free_bytes"] = size
    assert "hosts.server.folder.free_bytes" in refusal(loads, document)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 5000])
@pytest.mark.parametrize("key", ["elapsed_seconds", "unknown"])
def test_what_is_no_finite_number_is_refused_even_where_nobody_looks(document, key, literal):
    document[key] = "HERE"
    refusal(reports.loads, json.dumps(document).replace('"HERE"', literal).encode())


@pytest.mark.parametrize(
    "run",
    [
        [[0.0, 0], [1e-320, 2**60]],
        [[0.0, 0], [5e-324, 1]],
        [[0.0, 0], [1e-300, 2**62]],
    ],
)
def test_samples_whose_rate_is_no_number_are_refused(document, run):
    """The rate is a division: finite figures can make an infinite one."""
    document["steps"][0]["outcome"]["runs"] = [run]
    refusal(loads, document)
    document["steps"][0]["outcome"]["runs"] = [[[0, 0], [1, 3]], [[0, 0], [1, 3]], run]
    document["steps"][0]["outcome"]["bytes_per_second"]["median"] = 3
    refusal(loads, document)


@pytest.mark.parametrize("key", ["a\nb", "\x1b[2J", "\u202e", "\ud800", "k" * 5000])
def test_a_foreign_key_cannot_break_the_line(document, key):
    document["hosts"]["client"]["tools"] = {key: 5}
    refusal(loads, document)
    twice = json.dumps({key: 1})[:-1] + ", " + json.dumps({key: 2})[1:]
    assert "twice" in refusal(reports.loads, twice.encode())


def test_a_key_that_is_there_twice_is_refused_wherever_it_is():
    text = stored("lab-no-agent").read_text()
    for key in ("status", "client", "stage", "kind", "verb"):
        first = f'"{key}":'
        assert first in text
        assert "twice" in refusal(
            reports.loads, text.replace(first, f"{first} 0, {first}").encode()
        )


@pytest.mark.parametrize(
    "told", ["copy-bottleneck/report/2", "x\ny" * 900, None, 1, [[]], {}, True]
)
def test_another_schema_is_told_by_its_name(document, told):
    document["schema"] = told
    assert "copy-bottleneck/report/1" in refusal(loads, document)


# -- saving ------------------------------------------------------------------------------------


def test_what_cannot_be_written_as_json_leaves_the_old_file(tmp_path, with_agent):
    path = tmp_path / "r.json"
    old = '{"schema": "copy-bottleneck/report/1"}'
    path.write_text(old)
    broken = replace(with_agent, target={"share": "//nas/media", "ratio": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        reports.save(broken, diagnose(broken), path)
    assert path.read_text() == old
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "fchmod"])
def test_a_save_that_breaks_leaves_the_old_report(tmp_path, with_agent, monkeypatch, call, fault):
    path = tmp_path / "r.json"
    reports.save(with_agent, diagnose(with_agent), path)
    later = replace(with_agent, status="interrupted")

    def breaks(*_arguments):
        raise fault

    monkeypatch.setattr(os, call, breaks)
    with pytest.raises(type(fault)):
        reports.save(later, diagnose(later), path)
    monkeypatch.undo()
    assert reports.load(path) == with_agent
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]
    reports.save(later, diagnose(later), path)
    assert reports.load(path) == later


def test_a_folder_that_is_not_there_is_the_systems_error(tmp_path, with_agent):
    refusal(reports.save, with_agent, diagnose(with_agent), tmp_path / "none" / "r.json")


# -- through the program -----------------------------------------------------------------------


@pytest.mark.long
def test_explain_ends_in_one_line_whatever_the_file_is(tmp_path, bottleneck):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "deep.json").write_text("[" * 50_000)
    (tmp_path / "text.json").write_text("hello\n")
    for name in ("none.json", "folder", "fifo", "deep.json", "text.json"):
        ended = bottleneck("explain", tmp_path / name, seconds=30)
        assert ended.code == 64
        assert name in ended.complaint
        assert ended.err.strip() == ended.complaint
        assert ended.out == ""
