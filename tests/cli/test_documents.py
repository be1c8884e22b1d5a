"""The documents that a run is asked for: each is written in every ending, or complained of."""

import csv
import json
import os
import signal
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from bottleneck.cli import app, command_line, exits
from bottleneck.cli.documents import Output, Saving, add_report
from bottleneck.cli.options import Documents
from bottleneck.documents.formats import KINDS
from bottleneck.documents.rows import COLUMNS
from bottleneck.records import schema as report_schema
from bottleneck.report import report
from tests.living import FakeClock

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/server-disk-read.json"


def is_json(text):
    document = json.loads(text)
    jsonschema.validate(document, report_schema.schema())
    return document["status"]


def is_html(text):
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert "<script" not in text


def is_ticket(text):
    assert text.startswith("# ") and "copy-bottleneck/ticket/" in text


def is_junit(text):
    assert ET.fromstring(text).tag == "testsuites"


def is_csv(text):
    assert tuple(next(csv.reader(text.splitlines()))) == COLUMNS


IS = {"json": is_json, "html": is_html, "ticket": is_ticket, "junit": is_junit, "csv": is_csv}


def explain_example(*extra, capsys):
    code = app.run(["explain", str(EXAMPLE), *map(str, extra)])
    return code, *capsys.readouterr()


def test_a_document_for_a_closed_stdout_is_refused(begin, helpers, tmp_path):
    process = begin(
        *f"explain {EXAMPLE} --json -".split(),
        prefix=["sh", "-c", 'exec "$@" >&-', "sh"],
        cwd=tmp_path,
    )
    _, complaints = helpers.finish(process)
    assert process.returncode == 64
    assert complaints == ["bottleneck: --json -: stdout is closed; use a file"]


@pytest.mark.parametrize("kind", KINDS)
def test_explain_writes_each_document_beside_its_words(kind, tmp_path, capsys):
    path = tmp_path / "document"
    code, out, err = explain_example(f"--{kind}", path, capsys=capsys)
    assert (code, err) == (0, "")
    IS[kind](path.read_text())
    assert "runs at 24.3 MB/s because" in " ".join(out.split())
    assert explain_example("--format", kind, capsys=capsys) == (0, path.read_text(), "")


@pytest.mark.long
def test_documents_are_written_again_over_their_own_kind_and_each_other(tmp_path, capsys):
    path = tmp_path / "document"
    for kind in (*KINDS, *reversed(KINDS)):
        assert explain_example(f"--{kind}", path, capsys=capsys)[0] == 0
        IS[kind](path.read_text())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "content", ["# My notes\n", "{}", "<!DOCTYPE html><p>mine", "<?xml version='1.0'?><x/>"]
)
def test_a_file_of_the_user_s_stays(kind, content, tmp_path, capsys):
    path = tmp_path / "mine"
    path.write_text(content)
    code, out, err = explain_example(f"--{kind}", path, capsys=capsys)
    assert code == 64 and out == ""
    assert f"--{kind} {path}" in err and "not a report of this program" in err
    assert path.read_text() == content


@pytest.mark.parametrize(
    "options",
    [
        ("--json", "-", "--html", "-"),
        ("--ticket", "x", "--junit", "x"),
        ("--ticket", "x", "--junit", "./x"),
        ("--format", "html", "--json", "-"),
        ("--format", "html", "--html", "x"),
        ("--units", "metric"),
        ("--format", "pdf"),
        ("--json", "missing/report.json"),
        ("--json", ""),
        ("--json", "."),
    ],
)
def test_what_contradicts_itself_is_refused_before_anything_is_written(
    options, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    code, out, err = explain_example(*options, capsys=capsys)
    assert (code, out) == (64, "")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_one_document_that_cannot_be_written_keeps_no_other(tmp_path, monkeypatch, capsys):
    from bottleneck.documents import ticket

    def burns(run_report, diagnosis):
        raise ZeroDivisionError("burnt")

    monkeypatch.setattr(ticket, "document", burns)
    paths = {kind: tmp_path / kind for kind in KINDS}
    options = [word for kind, path in paths.items() for word in (f"--{kind}", path)]
    code, out, err = explain_example(*options, capsys=capsys)
    assert code == exits.INCOMPLETE
    assert "Pulling a file" in out
    (line,) = err.splitlines()
    assert f"--ticket {paths['ticket']}" in line and "the ticket was not written" in line
    for kind in ("json", "html", "junit"):
        IS[kind](paths[kind].read_text())


def test_a_refusal_writes_every_document_that_was_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    paths = {each: tmp_path / each for each in KINDS}
    options = [word for each, path in paths.items() for word in (f"--{each}", str(path))]
    assert app.run(["diagnose", "//nas/media", "--bogus", *options]) == 64
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    for kind, path in paths.items():
        text = path.read_text()
        assert IS[kind](text) in ("failed", None)
        assert "--bogus" in text.replace("\\", "").replace("&#45;", "-")


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_with_a_document_on_stdout_is_that_document_alone(kind, capsys):
    assert app.run(["probe", "nonsense", f"--{kind}", "-"]) == 64
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 1
    assert IS[kind](out) in ("failed", None)


def test_json_comes_first_where_two_ask_for_stdout(capsys):
    assert app.run(["probe", "loopback", "--html", "-", "--json", "-"]) == 64
    out, err = capsys.readouterr()
    assert is_json(out) == "failed" and "cannot write both to stdout" in err


@pytest.mark.long
def test_a_run_writes_all_its_documents_with_its_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = [word for each in KINDS for word in (f"--{each}", each)]
    code = app.run(["probe", "loopback", "--budget=5", *options, "--units", "bits", "--quiet"])
    assert code == 0, capsys.readouterr()
    for kind in KINDS:
        IS[kind](Path(kind).read_text())
    command = ["bottleneck", "probe", "loopback", "--budget=5"]
    assert json.loads(Path("json").read_text())["tool"]["command"] == command
    assert "bottleneck probe loopback --budget=5" in Path("ticket").read_text()


def test_an_interrupted_run_writes_its_documents(begin, helpers, tmp_path):
    options = ("--html", "-", "--ticket", "t", "--junit", "j")
    process = begin("probe", "loopback", "--budget", "20", *options, cwd=tmp_path)
    assert helpers.until(lambda: helpers.descendants(process.pid))
    process.send_signal(signal.SIGINT)
    out, complaints = helpers.finish(process)
    assert (process.returncode, len(complaints)) == (130, 1)
    is_html(out)
    is_junit((tmp_path / "j").read_text())
    is_ticket((tmp_path / "t").read_text())
    assert is_json((tmp_path / "t.json").read_text()) == "interrupted"


def test_a_document_that_is_a_pipe_is_written_once(tmp_path, capsys):
    reader, writer = os.pipe()
    code, _, err = explain_example("--ticket", f"/dev/fd/{writer}", capsys=capsys)
    os.close(writer)
    with os.fdopen(reader) as file:
        is_ticket(file.read())
    assert (code, err) == (0, "")


# -- names ---------------------------------------------------------------------------------------


def test_a_report_is_saved_in_a_small_part_of_a_run_s_time(tmp_path):
    path, clock = tmp_path / "report.json", FakeClock(step=0.1)
    save = Saving(Output((("json", str(path)),)), clock.now)
    for note, waited, saved_note in ("1", 0.0, "1"), ("2", 1.0, "1"), ("3", 3.0, "3"):
        clock.time += waited
        save(replace(report.load(EXAMPLE), notes=(note,)))
        assert report.load(path).notes == (saved_note,)


def test_redact_leaves_no_name_in_documents_words_or_complaints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOTTLENECK_PASSWORD", "p")
    options = [word for each in KINDS for word in (f"--{each}", each)]
    code = app.run(
        [
            *"diagnose //qvxhost.invalid/qvxshare/qvxfolder --user qvxuser --yes".split(),
            *f"--folder {tmp_path} --redact".split(),
            *options,
        ]
    )
    out, err = capsys.readouterr()
    assert code == 69
    assert "server-host: the name cannot be resolved" in err
    for text in (out, err, *(Path(each).read_text() for each in KINDS)):
        assert "qvx" not in text.lower() and str(tmp_path) not in text


METRICS = ("--metrics", "http://qvxhost.invalid:9/qvxpath")


@pytest.mark.parametrize(
    "arguments",
    [
        ("diagnose", "//qvxhost/qvxshare", "--nonsense", "--redact"),
        ("diagnose", "qvxfolder", "--redact", "--yes"),
        ("diagnose", "//qvxhost/qvxshare", "--folder", "/qvxnone", "--redact", "--user", "qvx"),
        ("probe", "qvxstage", "--redact"),
        ("explain", "/qvxnone/qvx.json", "--redact"),
        ("watch", "qvxhost.invalid", "--redact", "--seconds", "2"),
        ("diagnose", "//qvxhost/qvxshare", "--agent", "qvx://qvxhost", "--redact"),
        ("diagnose", "//127.0.0.1/qvxshare", "--yes", "--redact", "--allow-guest", *METRICS),
    ],
)
def test_a_complaint_of_a_redacted_run_has_no_name(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert app.run(list(arguments)) in (64, 69, 3)
    out, err = capsys.readouterr()
    assert err.startswith("bottleneck: ")
    assert "qvx" not in out + err


def test_the_next_run_is_not_redacted(capsys):
    app.run(["explain", "/none.json", "--redact"])
    assert "/none.json" not in capsys.readouterr().err
    app.run(["explain", "/none.json"])
    assert "/none.json" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(("style", "rate"), [("iec", "23.1 MiB/s"), ("bits", "194 Mbit/s")])
def test_units_are_for_persons_alone(style, rate, capsys):
    plain = explain_example("--format", "json", capsys=capsys)
    assert explain_example("--format", "json", "--units", style, capsys=capsys) == plain
    for kind in ("text", "html", "ticket"):
        assert rate in explain_example("--format", kind, "--units", style, capsys=capsys)[1]


def test_a_ticket_is_for_persons_and_names_the_file_that_programs_read(tmp_path, capsys):
    path = tmp_path / "a.md"
    explain_example("--ticket", path, capsys=capsys)
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]
    assert app.run(["explain", str(path)]) == 64
    assert "give the .json file of its run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "beside"),
    [
        ({"ticket": "a.md"}, "a.json"),
        ({"ticket": "a.md", "json": "b"}, "b"),
        ({"ticket": "-"}, None),
        ({"ticket": "/dev/null"}, None),
    ],
)
def test_the_report_of_a_run_is_beside_its_ticket(files, beside):
    assert add_report(Documents(files)).files.get("json") == beside


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("diagnose //a/b --user u --yes -q", "diagnose //a/b --user u --yes"),
        ("diagnose //a/b --json=x --html - --ticket y --redact", "diagnose //a/b"),
        ("diagnose --units iec //a/b -v --quick", "diagnose //a/b --quick"),
        ("probe tcp //a/b --agent exec:docker", "probe tcp //a/b --agent exec:docker"),
        ("probe tcp //a/b --agent=exec:x", "probe tcp //a/b --agent=exec:..."),
        ("watch --agent ssh://u@h --seconds 3", "watch --agent ssh://u@h --seconds 3"),
    ],
)
def test_the_command_of_a_report_repeats_it_and_shows_nothing_else(arguments, command):
    line = command_line.read(app.tree(), arguments.split())
    assert list(line.repeat_command) == ["bottleneck", *command.split()]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/opt/rsync -a --delete {source} {target}", "rsync -a --delete {source} {target}"),
        (
            "rsync -e 'sshpass -p X ssh' {source} rsync://u:X@h/{target}",
            "rsync -e ... {source} ...",
        ),
        ("curl -uname:X --pass=X -T {source} {target}", "curl ... ... -T {source} {target}"),
        ("PASS=X cp {source} {target}", "PASS ... {source} {target}"),
        ("x 'X", "? ..."),
    ],
)
def test_of_a_command_that_copies_only_flags_and_braces_are_shown(typed, expected):
    line = command_line.read(app.tree(), ["diagnose", ".", "--native-command", typed])
    assert line.repeat_command[-1] == expected
    line = command_line.read(app.tree(), ["diagnose", ".", f"--native-command={typed}"])
    assert line.repeat_command[-1] == f"--native-command={expected}"


@pytest.mark.parametrize(
    "prefix", ["sshpass -p x ssh nas", "docker exec -e PASS=x nas", "sudo --secret x", "'"]
)
def test_an_agent_s_prefix_that_may_hold_a_secret_is_not_shown(prefix):
    line = command_line.read(app.tree(), ["diagnose", "//a/b", "--agent", f"exec:{prefix}"])
    assert line.repeat_command[-1] == "exec:..."
