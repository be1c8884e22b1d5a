"""The last diagnosis is kept for its user alone, and explained again without its file's name."""

from __future__ import annotations

import json
import os
import stat

import pytest

from bottleneck.cli import exits
from bottleneck.report import last_report


@pytest.fixture
def location(tmp_path):
    """Returns the path of the last report, and the environment that sets it."""
    state = tmp_path / "state"
    return state / "copy-bottleneck/last.json", {"XDG_STATE_HOME": state}


@pytest.fixture
def run_diagnose(bottleneck, target, auth_file, tmp_path, location):
    folder = tmp_path / "client"
    folder.mkdir()

    def run(*extra):
        login = ("--auth-file", auth_file, "--folder", folder, "--yes")
        options = ("--size", "1MiB", "--budget", "12", "--dialects", "3.1.1", *extra)
        return bottleneck("diagnose", target, *login, *options, environment=location[1])

    return run


@pytest.mark.long
def test_what_was_diagnosed_is_explained_again_by_its_section(bottleneck, run_diagnose, location):
    path, environment = location
    done = run_diagnose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "More: --verbose, bottleneck explain --section" in done.out
    again = bottleneck("explain", "--section", "measurements", environment=environment)
    assert again.code in (exits.DONE, exits.INCOMPLETE)  # a full host makes no sure verdict
    assert again.out.splitlines()[0] == done.out.splitlines()[0]
    assert "Measurements" in again.out and "Measurements" not in done.out


@pytest.mark.long
def test_nothing_is_kept_where_the_report_itself_goes_to_stdout(run_diagnose, location):
    assert json.loads(run_diagnose("--json", "-").out)["steps"]
    assert not location[0].exists()


@pytest.mark.long
def test_what_is_kept_of_a_redacted_run_has_no_names(run_diagnose, location):
    run_diagnose("--redact")
    text = location[0].read_text()
    assert json.loads(text)["target"]["share"].endswith("/share-1")


def test_nothing_is_kept_in_a_home_of_another_user(location, monkeypatch):
    path, environment = location
    monkeypatch.setenv("XDG_STATE_HOME", str(environment["XDG_STATE_HOME"]))
    monkeypatch.setattr("bottleneck.report.last_report.os.geteuid", lambda: 47)
    assert not last_report.keep("{}")
    assert not path.parent.exists()


def test_its_folders_are_this_users_alone_under_any_umask(location, monkeypatch):
    path, environment = location
    monkeypatch.setenv("XDG_STATE_HOME", str(environment["XDG_STATE_HOME"]))
    umask = os.umask(0)
    try:
        assert last_report.keep("{}")
    finally:
        os.umask(umask)
    folders = path.parent, path.parent.parent
    assert [stat.S_IMODE(each.stat().st_mode) for each in folders] == [0o700] * 2


def test_without_a_kept_diagnosis_explain_says_what_to_do(bottleneck, location):
    done = bottleneck("explain", environment=location[1])
    assert done.code == exits.USAGE
    assert done.complaint.endswith("run `bottleneck diagnose`, or give a report file")


@pytest.mark.long
def test_a_state_folder_that_cannot_be_written_costs_nothing_but_the_hint(run_diagnose, location):
    location[0].parent.parent.mkdir()
    location[0].parent.write_text("no folder")
    done = run_diagnose()
    assert "More: --verbose, --section" in done.out
    assert "bottleneck: " not in done.err
