"""--history from outside: the trend of two runs, and a file that cannot be one."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

RECORDED = Path(__file__).parents[1] / "data/history-v1.sql"


def probe(bottleneck, target, auth_file, folder, *more):
    return bottleneck(
        *("probe", "smb-copy", target, "--auth-file", auth_file, "--folder", folder, "--yes"),
        *("--budget", 15, "--size", "1MiB", *more),
    )


def test_a_second_run_shows_the_trend(bottleneck, target, auth_file, tmp_path):
    kept, page, folder = tmp_path / "h.sqlite", tmp_path / "p.html", tmp_path / "copies"
    folder.mkdir()
    first = probe(bottleneck, target, auth_file, folder, "--history", kept)
    assert first.code in {0, 3}, first.err
    assert "Trend:" not in first.out
    second = probe(bottleneck, target, auth_file, folder, "--history", kept, "--html", page)
    assert "Trend: 2 runs since" in second.out, second.err
    assert "pull.cached" in page.read_text()
    with closing(sqlite3.connect(kept)) as file:
        assert file.execute("SELECT share FROM runs").fetchall() == [(target,)] * 2


def test_a_redacted_run_is_kept_without_names(bottleneck, target, auth_file, tmp_path):
    kept, folder = tmp_path / "h.sqlite", tmp_path / "copies"
    folder.mkdir()
    probe(bottleneck, target, auth_file, folder, "--history", kept, "--redact")
    with closing(sqlite3.connect(kept)) as file:
        ((share, client),) = file.execute("SELECT share, client FROM runs").fetchall()
    assert (share.rpartition("/")[2], client) == ("share-1", "client-host")


def test_a_file_that_is_none_is_told_and_the_verdict_is_there(
    bottleneck, target, auth_file, tmp_path
):
    photo, folder = tmp_path / "photo.png", tmp_path / "copies"
    folder.mkdir()
    photo.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    done = probe(bottleneck, target, auth_file, folder, "--history", photo)
    assert done.code == 3
    assert f"--history {photo}: not a history file, left unchanged" in done.complaint
    assert "pull.cached" in done.out
    assert photo.stat().st_size == 72


@pytest.fixture
def recorded(tmp_path):
    """A file of two runs."""
    path = tmp_path / "recorded.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(RECORDED.read_text())
    return path


def test_the_runs_are_listed_the_latest_first(bottleneck, recorded):
    done = bottleneck("history", recorded)
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    kept = "complete pull.uncached 23.6 MB/s server disk: read"
    assert lines[1:] == [
        f"//nas/media (desk) 2026-11-21 02:00 {kept}",
        f"//nas/media (desk) 2026-11-20 02:00 {kept}",
    ]


def test_the_list_is_there_as_json_in_base_units(bottleneck, recorded):
    done = bottleneck("history", recorded, "--format", "json", "--most", 1, "--units", "bits")
    (run,) = json.loads(done.out)["runs"]
    assert (run["started"], run["bytes_per_second"]) == ("2026-11-21T02:00:00+00:00", 23_600_000)


def test_the_list_is_of_the_configured_file(bottleneck, recorded):
    done = bottleneck("history", environment={"BOTTLENECK_HISTORY": str(recorded)})
    assert "//nas/media" in done.out
    none = bottleneck("history", environment={"BOTTLENECK_HISTORY": "none"})
    assert (none.code, none.complaint) == (
        64,
        "bottleneck: --history none: no runs are stored",
    )
