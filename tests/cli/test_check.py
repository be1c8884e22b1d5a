"""Every ending of `check`: one document on stdout, and 0, 1, 2 or 3 and nothing else."""

import json
import os
import signal
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bottleneck.cli import app, measuring
from bottleneck.report.report import Step
from probes.core.stage import Unavailable

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "examples" / "server-disk-read.json"
FORMATS = ("text", "nagios", "junit", "openmetrics", "github", "json")


def parse_state(name, text):
    """The state that a document tells, read as its reader would."""
    match name:
        case "json":
            return json.loads(text)["state"]
        case "junit":
            suite = next(ElementTree.fromstring(text).iter("testsuite"))
            return next(p.get("value") for p in suite.iter("property") if p.get("name") == "state")
        case "openmetrics":
            from prometheus_client.parser import text_string_to_metric_families

            samples = {s.name: s for f in text_string_to_metric_families(text) for s in f.samples}
            assert samples, text
            return None
        case "github":
            assert all(line.startswith("::") for line in text.splitlines())
            return None
        case _:
            assert text.startswith("BOTTLENECK ")
            return text.split()[1].lower()


@pytest.fixture
def store(tmp_path):
    """The recorded report, begun so many hours ago, in a folder of its own."""

    def report_file(hours=1.0, name="report.json", **fields):
        document = json.loads(RECORDED.read_text())
        document["started"] = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        document.update(fields)
        path = tmp_path / "stored" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document))
        return path

    return report_file


def check(capsys, *arguments):
    code = app.run(["check", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


WRONG = [
    ("--bogus",),
    (),
    ("//nas/media", "--report", "x"),
    ("//nas/media", "--repeat", "0"),
    ("//nas/media", "--warn", "pull.uncached < 80"),
    ("//nas/media", "--expect-cap", "networks"),
    ("//nas/media", "--baseline", "/no/such/file"),
    ("//nas/media", "--tolerance", "200%"),
    ("--report", "/dev/null"),
    ("--report", str(RECORDED), "--max-age", "26"),
    ("--report", str(RECORDED), "--format", "xml"),
    ("--report", str(RECORDED), "more", "and more"),
    ("smb://bob:se/cret@nas/media", "--yes"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_is_unknown_with_its_reason_on_stdout_and_stderr(
    capsys, monkeypatch, tmp_path, arguments
):
    monkeypatch.chdir(tmp_path)
    code, out, err = check(capsys, *arguments)
    assert code == 3
    (line,) = out.splitlines()
    (complaint,) = err.splitlines()
    assert line == complaint.replace("bottleneck: ", "BOTTLENECK UNKNOWN - ", 1)
    assert "cret" not in out and "bob" not in out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--warn", "pull.uncached < 80MB/s"), 1),
        (("--crit", "latency > 5ms"), 3),
        (("--expect-cap", "disk/server"), 0),
        (("--expect-cap", "network"), 2),
    ],
)
def test_the_exit_code_tells_what_a_stored_report_comes_to(capsys, store, options, code):
    assert check(capsys, "--report", store(), *options)[::2] == (code, "")


@pytest.mark.parametrize("measured", [False, True])
def test_under_nagios_an_ending_that_the_answer_has_not_stays_on_stderr(
    capsys, monkeypatch, tmp_path, measured
):
    """Measured figures leave no room in the answer for files that may remain."""
    warning = "stopped: test files may remain"

    def broken(session):
        if measured:
            with session.log.attempt(
                Step("disk", {"verb": "read", "side": "client"}, "client"), "disk", "its rate"
            ):
                raise Unavailable("no disk")
        session.status = "partial" if measured else "failed"
        return 3, warning

    monkeypatch.setattr(measuring, "_measure", broken)
    monkeypatch.chdir(tmp_path)
    target = ("//nas/media", "--allow-guest", "--yes", "--format", "nagios")
    code, out, err = check(capsys, *target)
    assert code == 3 and (warning in err) is measured and (warning in out) is not measured


def test_a_report_that_is_too_old_is_unknown_with_its_age(capsys, store):
    path = store(hours=30)
    code, out, _ = check(capsys, "--report", path, "--max-age", "26h", "--crit", "loss > 1%")
    assert code == 3 and "30 h old, at most 26 h is allowed" in out
    assert check(capsys, "--report", path, "--max-age", "31h")[0] == 0


def test_of_a_folder_the_report_that_began_last_counts(capsys, store):
    """Whatever was copied when, and whatever else lies there."""
    store(hours=30, name="old.json")
    newest = store(hours=2, name="new.json", target={"share": "//nas/newest"})
    os.utime(newest, (1, 1))
    (newest.parent / "answer.json").write_text('{"schema": "copy-bottleneck/check/1"}')
    (newest.parent / "garbage.json").write_bytes(b"\x89PNG")
    (newest.parent / "sub.json").mkdir()
    for source in (newest.parent, newest.parent / "*.json", newest.parent / "n*"):
        code, out, _ = check(capsys, "--report", source, "--max-age", "3h", "--format", "json")
        assert code == 0
        assert json.loads(out)["report"]["share"] == "//nas/newest"


def test_a_folder_or_pattern_without_a_report_is_unknown(capsys, tmp_path):
    (tmp_path / "garbage.json").write_text("{}")
    for source in (tmp_path, tmp_path / "*.json", tmp_path / "none*"):
        code, out, _ = check(capsys, "--report", source)
        assert code == 3 and "no report" in out


def test_the_newest_report_is_of_a_run_that_failed(capsys, store):
    store(hours=20, name="good.json")
    store(hours=1, name="bad.json", status="failed", steps=[], notes=["the server hung up"])
    code, out, _ = check(capsys, "--report", store(hours=20, name="good.json").parent)
    assert code == 3 and "the server hung up" in out


@pytest.mark.parametrize("name", ["junit", "openmetrics", "json"])
def test_the_document_goes_into_a_file_and_the_text_to_stdout(capsys, store, tmp_path, name):
    """Again and again: what this program wrote it may replace; a reader finds it whole."""
    path = tmp_path / "answer"
    options = ("--format", name, "-o", path)
    for _ in range(2):
        code, out, _ = check(capsys, "--report", store(), *options)
        assert code == 0
        assert out.startswith("BOTTLENECK OK - ")
        assert parse_state(name, path.read_text()) in ("ok", None)
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["answer"]
    for wrong in (("--bogus",), ("--report", "/no/such/file")):
        code, out, _ = check(capsys, *wrong, *options)
        assert code == 3 and out.startswith("BOTTLENECK UNKNOWN - ")
        assert parse_state(name, path.read_text()) in ("unknown", None)


@pytest.mark.parametrize("name", ["text", "nagios", "github"])
def test_what_is_for_stdout_goes_into_no_file(capsys, store, tmp_path, name):
    code, out, _ = check(capsys, "--report", store(), "--format", name, "-o", tmp_path / "answer")
    assert code == 3 and not (tmp_path / "answer").exists()
    assert parse_state(name, out) in ("unknown", None)


def test_what_cannot_be_written_is_never_ok(capsys, store, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("my own notes\n")
    for path in (notes, tmp_path / "missing" / "x", tmp_path):
        code, out, err = check(capsys, "--report", store(), "--format", "json", "-o", path)
        assert code == 3 and out and "--output" in err
    assert notes.read_text() == "my own notes\n"
    severe = ("--crit", "pull.uncached < 80MB/s")
    assert check(capsys, "--report", store(), *severe, "--format", "json", "-o", notes)[0] == 2


def test_a_github_runner_gets_its_summary(capsys, store, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    check(capsys, "--report", store(), "--format", "github")
    assert summary.read_text().startswith("before\n### bottleneck: OK")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    code, _, err = check(capsys, "--report", store(), "--format", "github")
    assert code == 3 and "GITHUB_STEP_SUMMARY" in err
    (tmp_path / "link.md").symlink_to(summary)
    text = summary.read_text()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "link.md"))
    code, _, err = check(capsys, "--report", store(), "--format", "github")
    assert code == 3 and "link.md" in err and summary.read_text() == text


@pytest.mark.long
def test_redacted_names_are_in_no_answer_and_the_baseline_still_fits(capsys, store):
    share = json.loads(RECORDED.read_text())["target"]["share"]
    options = ("--baseline", RECORDED, "--redact")
    for name in FORMATS:
        code, out, err = check(capsys, "--report", store(), *options, "--format", name)
        assert (code, err) == (0, "")
        assert share not in out and share.split("/")[2] not in out


def test_units_are_those_that_were_asked_for_but_for_programs(capsys, store):
    options = ("--report", store(), "--warn", "pull.uncached < 80MB/s", "--units", "bits")
    assert "194 Mbit/s" in check(capsys, *options)[1]
    assert "24.3 MB/s" in check(capsys, *options, "--format", "json")[1]


def test_a_server_that_is_not_there_is_unknown_and_its_report_is_written(bottleneck, tmp_path):
    path = tmp_path / "report.json"
    ended = bottleneck(
        *f"check //no-such-host.invalid/x --user a --yes --json {path}".split(),
        "--format=nagios",
        "--crit=pull.uncached < 80MB/s",
        password="p",
        cwd=tmp_path,
    )
    assert ended.code == 3
    assert ended.out.startswith("BOTTLENECK UNKNOWN - ") and "no-such-host" in ended.out
    assert json.loads(path.read_text())["status"] == "failed"


@pytest.mark.long
def test_an_interrupted_check_is_unknown(begin, helpers, tmp_path):
    """Its server takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"//127.0.0.1:{silent.getsockname()[1]}/x"
        process = begin(
            *f"check {target} --user a --yes --format json".split(),
            environment={"BOTTLENECK_PASSWORD": "p"},
            cwd=tmp_path,
        )
        helpers.until(lambda: helpers.descendants(process.pid))
        process.send_signal(signal.SIGTERM)
        out, complaints = helpers.finish(process)
    assert process.returncode == 3
    document = json.loads(out)
    assert document["state"] == "unknown" and "the run was interrupted" in document["sentence"]
    assert complaints


@pytest.mark.long
def test_a_full_stdout_is_unknown(begin, helpers, store):
    process = begin(
        *f"check --report {store()}".split(), prefix=["sh", "-c", 'exec "$@" >/dev/full', "sh"]
    )
    _, complaints = helpers.finish(process)
    assert process.returncode == 3 and "stdout" in complaints[0]


def test_a_document_on_stdout_stands_there_alone_and_the_exit_code_tells_the_state(
    capsys, store, tmp_path
):
    options = ("--crit", "pull.uncached < 80MB/s", "--junit", tmp_path / "j.xml")
    code, out, _ = check(capsys, "--report", store(), *options, "--json", "-")
    assert code == 2
    assert json.loads(out)["schema"] == "copy-bottleneck/report/1"
    assert "pull.uncached" in (tmp_path / "j.xml").read_text()
    for wrong in (("//nas/media",), ("//nas/media", "--bogus"), ("//nas/media", "--repeat", "0")):
        code, out, _ = check(capsys, *wrong, "--json", "-")
        assert code == 3
        assert json.loads(out)["status"] == "failed"


@pytest.mark.long
def test_what_a_configuration_sets_holds_for_an_answer_that_failed(
    bottleneck, store, tmp_path, monkeypatch
):
    settings, out = tmp_path / "settings.toml", tmp_path / "n.prom"
    settings.write_text('[check]\nformat = "openmetrics"\n')
    settings.chmod(0o600)
    monkeypatch.setenv("BOTTLENECK_CONFIG", str(settings))
    assert bottleneck("check", "--report", store(), "--output", out).code == 0
    assert 'state="ok"} 1.0' in out.read_text()
    (tmp_path / "broken.json").write_text("{}")
    assert bottleneck("check", "--report", tmp_path / "broken.json", "--output", out).code == 3
    assert 'state="unknown"} 1.0' in out.read_text()


def test_no_options_value_becomes_the_share_of_an_answer_that_failed(capsys):
    arguments = ("--auth-file", "/etc/secret.auth", "--user", "anna", "//nas/media", "--bogus")
    _, out, _ = check(capsys, *arguments, "--format", "openmetrics")
    assert "secret" not in out and 'share="//nas/media"' in out


@pytest.mark.long
def test_a_share_is_measured_and_judged_as_a_timer_would(bottleneck, target, auth_file, tmp_path):
    """The first run makes the baseline of the second one."""
    baseline, folder = tmp_path / "baseline.json", tmp_path / "here"
    folder.mkdir()
    common = ("--auth-file", auth_file, "--folder", folder, "--yes", "--budget", "30")
    ended = bottleneck("check", target, *common, "--json", baseline, "--format", "nagios")
    # without an agent on the server a stage is missing; Icinga takes stderr for the answer's part
    assert ended.code == 3 and "partial" in ended.out and ended.err == ""
    assert json.loads(baseline.read_text())["status"] == "partial"
    rules = ("--crit", "pull.cached < 1kB/s", "--warn", "push.cached < 900GB/s")
    ended = bottleneck("check", target, *common, "--baseline", baseline, *rules, "--format", "json")
    document = json.loads(ended.out)
    assert document["exit_code"] == ended.code and ended.code != 0 and ended.err
    states = {each["name"]: each["state"] for each in document["judged"]}
    assert states["pull.cached >= 1kB/s"] == "ok"
    assert states["push.cached >= 900GB/s"] == "warning"
    assert {"pull.cached as in the baseline", "push.uncached as in the baseline"} <= set(states)
    assert list(folder.iterdir()) == []
