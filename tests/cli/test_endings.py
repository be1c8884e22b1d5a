"""In every ending: one complaint, the contract's code, and the report that --json asked for."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import app, exits
from bottleneck.records import schema as report_schema
from bottleneck.report import report
from tests.living import swept

ROOT = Path(__file__).parents[2]


def one_document(text):
    """The report in a text, which holds nothing else and keeps the schema."""
    document = json.loads(text)
    jsonschema.validate(document, report_schema.schema())
    report.loads(text.encode())
    return document


EARLY = [
    (64, "nas/media", ("--yes",)),
    (64, "//nas/media", ("--agent", "nonsense", "--yes", "--user", "a")),
    (64, "//nas/media", ("--folder", "/no/such/folder", "--yes", "--user", "a")),
    (64, "//nas/media", ("--user", "a")),
    (64, "//nas/media", ("--bogus",)),
    (64, "//nas/media", ("--budget", "much")),
    (64, "//nas/media", ("--password", "x")),
    (64, "smb://bob:se/cret@nas/media", ("--yes",)),
    (77, "//nas/media", ("--yes",)),
    (69, "//no-such-host.invalid/media", ("--yes", "--user", "a")),
]


@pytest.mark.parametrize(("code", "target", "options"), EARLY)
def test_a_refusal_with_json_on_stdout_is_one_failed_report(
    tmp_path, monkeypatch, capsys, code, target, options
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOTTLENECK_PASSWORD", "p")
    assert app.run(["diagnose", target, *options, "--json", "-"]) == code
    out, err = capsys.readouterr()
    document = one_document(out)
    assert document["status"] == "failed" and document["steps"] == []
    assert document["target"]["share"] == (target if target.startswith("//") else None)
    assert err.splitlines() == [f"bottleneck: {document['notes'][0]}"]
    assert "cret" not in out + err and "bob" not in out + err


@pytest.mark.long
def test_json_that_stops_being_writable_is_one_complaint_and_the_run_goes_on(
    begin, helpers, tmp_path
):
    """The folder goes away under the run."""
    folder = tmp_path / "reports"
    folder.mkdir()
    process = begin("probe", "loopback", "--budget", "5", "--json", folder / "r", cwd=tmp_path)
    helpers.wait_for(process, "loopback")
    folder.rename(tmp_path / "elsewhere")
    out, complaints = helpers.finish(process)
    assert process.returncode == 3
    assert len(complaints) == 1 and str(folder) in complaints[0]


@pytest.mark.parametrize("older", [None, ValueError("broken before")])
def test_what_breaks_while_an_interrupt_unwinds_a_command_is_an_interruption(
    monkeypatch, capsys, older
):
    """A demonstration's server and folder are closed around the run itself."""
    from bottleneck.cli import measuring

    def closing(*arguments, **options):
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("the folder is not empty") from older

    monkeypatch.setattr(measuring, "choose", closing)
    assert app.run(["probe", "loopback", "--json", "-"]) == exits.INTERRUPTED
    out, err = capsys.readouterr()
    assert one_document(out)["status"] == "interrupted"
    assert err.splitlines() == ["bottleneck: interrupted"]


@pytest.mark.long
@pytest.mark.parametrize("error", ["StageError", "Unavailable", "WireError", "AgentLost", "Odd"])
def test_whatever_breaks_a_run_its_report_is_written(tmp_path, monkeypatch, capsys, error):
    from bottleneck.agents import hosts, protocol
    from bottleneck.cli import measuring
    from probes.core.stage import Unavailable

    kinds = [hosts.StageError, hosts.AgentLost, protocol.WireError, Unavailable]
    kind = {each.__name__: each for each in kinds}.get(error, ZeroDivisionError)

    def broken(session):
        session.log.note("so far")
        session.unclosed = ["files may remain"]
        raise kind("the 7th coil burnt through")

    monkeypatch.setattr(measuring.Session, "measure", broken)
    path = tmp_path / "report.json"
    code = app.run(["probe", "loopback", "--json", str(path)])
    output = capsys.readouterr().err.splitlines()
    assert len(output) == 1 and output[0].endswith("7th coil burnt through; files may remain")
    assert code == (exits.INTERNAL if error == "Odd" else exits.UNREACHABLE)
    assert ("internal error" in output[0]) == (error == "Odd")
    document = one_document(path.read_text())
    assert document["status"] == "failed"
    assert document["notes"][0] == "so far" and "7th coil" in document["notes"][1]


def test_a_report_that_the_analysis_breaks_on_is_written_all_the_same(
    tmp_path, monkeypatch, capsys
):
    from bottleneck.analysis import diagnosis
    from bottleneck.cli import documents, measuring
    from bottleneck.report.report import Step
    from probes.core.records import Skipped

    def one_step(session):
        session.log.add(Step("tcp", {}, "client"), Skipped("no time"))

    def burns(run_report):
        assert not run_report.entries, "burnt"
        return diagnosis.diagnose(run_report)

    monkeypatch.setattr(measuring.Session, "measure", one_step)
    monkeypatch.setattr(documents, "diagnose", burns)
    path = tmp_path / "report.json"
    assert app.run(["probe", "loopback", "--json", str(path)]) == exits.INTERNAL
    assert len(capsys.readouterr().err.splitlines()) == 1
    document = one_document(path.read_text())
    assert document["status"] == "failed" and len(document["steps"]) == 1


MEETING = """
import os, sys
from bottleneck import __main__ as program
from bottleneck.cli import interrupts
hold = interrupts.hold
def told():
    hold()
    os.write(2, b"held\\n")
interrupts.hold = told
sys.argv[0] = "bottleneck"
program.main()
"""
"""The program, with a word on stderr once it has taken the signals over."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("sign", "seconds"),
    [
        *((signal.SIGINT, seconds) for seconds in (0.0, 0.3)),
        (signal.SIGTERM, 0.1),
        (signal.SIGHUP, 0.2),
    ],
)
def test_a_signal_in_the_first_second_is_one_line_one_document_and_130(
    begin, helpers, tmp_path, sign, seconds
):
    process = begin("probe", "loopback", "--json", "-", code=MEETING, cwd=tmp_path)
    helpers.wait_for(process, "held")
    time.sleep(seconds)
    process.send_signal(sign)
    out, complaints = helpers.finish(process)
    assert process.returncode == 130
    assert len(complaints) == 1 and "interrupted" in complaints[0]
    assert one_document(out)["status"] == "interrupted"


@pytest.mark.long
def test_nohup_is_meant(begin, helpers, tmp_path):
    process = begin(
        *"probe loopback --budget 5".split(), prefix=["nohup"], code=MEETING, cwd=tmp_path
    )
    helpers.wait_for(process, "held")
    process.send_signal(signal.SIGHUP)
    helpers.wait_for(process, "loopback")
    process.send_signal(signal.SIGTERM)
    helpers.finish(process)
    assert process.returncode == 130


@pytest.mark.long
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_ending(tmp_path, closed):
    refused = ("diagnose", "//no-such-host.invalid/x", "--user", "a", "--yes")
    program = [sys.executable, "-m", "bottleneck", *refused]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BOTTLENECK_PASSWORD": "p"}
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *program],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 69, done
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("tcp", "//no-such-host.invalid/x"), 69, ["no-such-host", "stdout"]),
        (("nonsense",), 64, ["nonsense"]),
    ],
)
def test_a_full_stdout_is_one_complaint_and_changes_no_ending(
    tmp_path, begin, helpers, arguments, code, said
):
    process = begin(
        "probe",
        *arguments,
        "--json",
        "-",
        prefix=["sh", "-c", 'exec "$@" >/dev/full', "sh"],
        cwd=tmp_path,
    )
    _, complaints = helpers.finish(process)
    assert process.returncode == code
    assert all(word in each for word, each in zip(said, complaints, strict=True))


REPORT = ROOT / "tests" / "data" / "report-v1-lab-no-agent.json"
GONE, FULL = 'rmdir "$PWD"; exec "$@"', 'exec "$@" >/dev/full'
NOBODY = "setpriv --reuid=65534 --clear-groups --inh-caps=+dac_read_search"
NOBODY = f"{NOBODY} --ambient-caps=+dac_read_search" if os.geteuid() == 0 else ""
SHELLS = [
    (GONE, f"explain {REPORT} --json {{}}.json", 3, ""),
    (GONE, "probe disk --yes", 64, "current folder: deleted; change to another folder"),
    (FULL, "", 3, "stdout: No space left on device"),
    (FULL, "probe tcp --help", 3, "stdout: No space left on device"),
    (FULL, "--version", 3, "stdout: No space left on device"),
    (FULL, "schema", 3, "stdout: No space left on device"),
    (FULL, "cleanup --dry-run", 3, "stdout: No space left on device"),
    (FULL, "check --help", 3, "stdout: No space left on device"),
    ('exec "$@" 2>/dev/full', "nonsense", 64, ""),
    ('ulimit -n 9; exec "$@"', "doctor", 69, "Too many open files; raise the limit"),
    (f'exec {NOBODY} prlimit --nproc=1 "$@"', "doctor", 69, "unavailable; raise the limit"),
]


@pytest.mark.long
@pytest.mark.parametrize(("shell", "arguments", "code", "says"), SHELLS)
def test_what_a_shell_takes_away_is_one_complaint(
    tmp_path, begin, helpers, shell, arguments, code, says
):
    folder = tmp_path / "folder"
    folder.mkdir()
    process = begin(*arguments.format(folder).split(), prefix=["sh", "-c", shell, "sh"], cwd=folder)
    _, complaints = helpers.finish(process)
    assert process.returncode == code
    assert [says in each for each in complaints] == [True] * bool(says)


@pytest.mark.long
@pytest.mark.parametrize("between", [0.0, 0.1])
def test_a_second_signal_is_still_one_document_and_130(begin, helpers, tmp_path, between):
    process = begin("probe", "loopback", "--budget", "20", "--json", "-", cwd=tmp_path)
    assert helpers.until(lambda: helpers.descendants(process.pid))
    process.send_signal(signal.SIGINT)
    time.sleep(between)
    process.send_signal(signal.SIGINT)
    out, complaints = helpers.finish(process)
    assert process.returncode == 130
    assert 1 <= len(complaints) <= 2
    assert one_document(out)["status"] == "interrupted"


HANGING = """
import sys, time
from bottleneck import __main__ as program
from bottleneck.cli import measuring
measuring.LATE_SECONDS, measuring.CLOSING_SECONDS, measuring.END_LOADINGS = -4.5, 0.2, 0.0
def measure(session):
    try:
        time.sleep(60)
    finally:
        time.sleep(60)
measuring.Session.measure = measure
sys.argv[0] = "bottleneck"
program.main()
"""
"""The program, with a measurement and a closing that know no end; half a second is its time."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "code", "state"), [("diagnose", 69, "failed"), ("check", 3, "unknown")]
)
def test_what_knows_no_end_is_stopped_and_is_a_document(
    begin, helpers, tmp_path, command, code, state
):
    form = {"diagnose": ("--json", "-"), "check": ("--format", "json")}[command]
    process = begin(
        command,
        "//nas/x",
        "--user",
        "a",
        "--yes",
        "--budget",
        "5",
        *form,
        code=HANGING,
        environment={"BOTTLENECK_PASSWORD": "p"},
        cwd=tmp_path,
    )
    out, complaints = helpers.finish(process)
    assert process.returncode == code
    document = json.loads(out)
    assert state in (document.get("status"), document.get("state"))
    (complaint,) = complaints
    assert "no answer" in complaint and "cleanup" in complaint
    assert "the run exceeded its limit of 5 s" in complaint


DEMO_SECONDS = 4.0
"""By then a demonstration has its server, its agents and its first files."""


@pytest.fixture
def temporary():
    """A folder for temporary files with a short name: smbd's sockets bear no long one."""
    path = Path(tempfile.mkdtemp(prefix="bn-"))
    yield path
    shutil.rmtree(path)


def left_of(process, temporary):
    here = Path("/var/tmp").glob(f"bottleneck-demo-{process.pid}-*")
    return [*map(str, here), *map(str, temporary.iterdir())]


@pytest.mark.long
@pytest.mark.parametrize("part", range(2))
def test_kill_9_of_a_demonstration_leaves_nothing_at_any_moment(
    begin, helpers, temporary, tmp_path, monkeypatch, part
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(temporary)}
    process = begin("demo", "--quick", code=MEETING, environment=state)
    helpers.wait_for(process, "held")
    time.sleep((part + random.random()) * DEMO_SECONDS / 2)
    family = helpers.descendants(process.pid)
    process.kill()
    process.wait()
    assert helpers.all_end(family)
    assert swept(lambda: left_of(process, temporary) == [])
    noted = [each.read_text() for each in tmp_path.glob("state/copy-bottleneck/runs/*")]
    assert not any('"kind": "share"' in each for each in noted)  # it has no server to come back to


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_sigterm_of_a_demonstration_leaves_nothing_and_a_report(begin, helpers, temporary, seconds):
    process = begin(
        *"demo --quick --quiet --json -".split(),
        code=MEETING,
        environment={"TMPDIR": str(temporary)},
    )
    helpers.wait_for(process, "held")
    time.sleep(seconds)
    process.terminate()
    out, complaints = helpers.finish(process)
    assert process.returncode == 130, complaints
    assert len(complaints) == 1
    assert one_document(out)["status"] == "interrupted"
    assert helpers.until(lambda: left_of(process, temporary) == [])


def test_a_reader_that_has_enough_is_no_error(tmp_path):
    command = [sys.executable, "-m", "bottleneck", "schema"]
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_altered_bytes_are_never_code_0():
    from bottleneck.cli import documents

    altered = Diagnosis(None, (), "", altered=("smb-matrix pull",))
    assert documents.is_unsure(altered, only_steps=True)
    assert not documents.is_unsure(replace(altered, altered=()), only_steps=True)
