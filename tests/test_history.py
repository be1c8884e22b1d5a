"""A history keeps each run once, gives trends, and never touches what is not its own."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck import history, history_file, report
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import interrupts
from bottleneck.history import History, HistoryError
from bottleneck.redaction import redacted
from bottleneck.report import Report

DATA = Path(__file__).parent / "data"
NOBODY = 65534


@pytest.fixture(scope="module")
def run() -> Report:
    """A run with five copies over two dialects."""
    return report.load(DATA / "report-v1-server-disk.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def on(run: Report, day: int) -> Report:
    return replace(run, started=f"2026-10-{day:02d}T02:00:00+00:00")


DIAGNOSED: dict[int, tuple[Report, Diagnosis]] = {}
"""What was found by a run's entries, which several runs here have in common."""


def diagnosed(run: Report) -> Diagnosis:
    if id(run.entries) not in DIAGNOSED:
        DIAGNOSED[id(run.entries)] = run, diagnose(run)
    return DIAGNOSED[id(run.entries)][1]


def add(path: Path, run: Report) -> bool:
    return History(path).add(run, diagnosed(run))


def test_runs_come_back_as_trends_oldest_first(path: Path, run: Report) -> None:
    for day in (3, 1, 2):
        assert add(path, on(run, day))
    found = History(path).trends(on(run, 3))
    assert [each.copy for each in found] == [each.copy for each in diagnosed(run).copies]
    headline = next(each for each in found if each.copy == diagnosed(run).headline)
    assert [point.started[8:10] for point in headline.points] == ["01", "02", "03"]
    chosen = diagnosed(run).chosen
    assert chosen is not None
    last = headline.points[-1]
    assert last.bytes_per_second == chosen.bytes_per_second
    assert last.low_bytes_per_second <= last.bytes_per_second <= last.high_bytes_per_second
    words = (chosen.verdict.component, chosen.verdict.side, chosen.verdict.cause)
    assert last.cap == "/".join(word for word in words if word)


def test_the_same_run_is_kept_once(path: Path, run: Report) -> None:
    assert add(path, run)
    assert not add(path, run)
    assert len(History(path).runs()) == 1


def test_a_trend_ends_with_its_report_and_has_the_latest_runs(path: Path, run: Report) -> None:
    for day in range(1, 9):
        add(path, on(run, day))
    found = History(path).trends(on(run, 6), most=3)[0]
    assert [point.started[8:10] for point in found.points] == ["04", "05", "06"]


def test_offsets_do_not_change_the_order(path: Path, run: Report) -> None:
    later = replace(run, started="2026-10-01T01:00:00-08:00")
    for each in (later, replace(run, started="2026-10-01T02:00:00+00:00")):
        add(path, each)
    assert [each.started for each in History(path).runs()][0] == later.started


def test_other_shares_and_clients_have_trends_of_their_own(path: Path, run: Report) -> None:
    add(path, run)
    elsewhere = replace(run, target={**run.target, "share": "//other/share"})
    assert run.client is not None
    another = replace(run, client=replace(run.client, name="another"))
    assert History(path).trends(elsewhere) == ()
    assert History(path).trends(another) == ()


def test_redacted_runs_of_different_servers_are_not_one_trend(path: Path, run: Report) -> None:
    """Their tokens are the same: //address-1/share-1, seen from client-host."""
    document = redacted(report.to_json(run, diagnosed(run)))
    without_names = report.from_json(document)
    assert add(path, without_names)
    assert History(path).trends(without_names) == ()
    assert len(History(path).runs()) == 1


def test_a_copy_that_was_not_made_is_no_point(path: Path, run: Report) -> None:
    failed = replace(on(run, 1), entries=(), status="failed")
    add(path, failed)
    add(path, on(run, 2))
    assert {len(each.points) for each in History(path).trends(on(run, 2))} == {1}
    assert [each.status for each in History(path).runs()] == ["complete", "failed"]
    assert History(path).runs()[1].bytes_per_second is None


@pytest.mark.parametrize("name", sorted(each.name for each in DATA.glob("report-v1-*.json")))
def test_every_kind_of_report_can_be_kept(path: Path, name: str) -> None:
    loaded = report.load(DATA / name)
    assert add(path, loaded)
    assert len(History(path).runs()) == 1
    History(path).trends(loaded)


def test_a_new_file_is_its_owner_s_alone(path: Path, run: Report) -> None:
    before = os.umask(0)
    try:
        add(path, run)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_names_that_are_no_unicode_or_very_long_are_kept(path: Path, run: Report) -> None:
    strange = replace(run, target={**run.target, "share": "//nas/\udcff\x00\x1b[2J" + "x" * 10_000})
    add(path, strange)
    assert not add(path, strange)
    assert History(path).trends(strange)


def test_a_file_of_version_1_is_read_and_written(path: Path, run: Report) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.executescript((DATA / "history-v1.sql").read_text())
    recorded = replace(run, started="2026-11-21T02:00:00+00:00")
    found = History(path).trends(recorded)
    assert {len(each.points) for each in found} == {2}
    assert not add(path, recorded)
    assert add(path, replace(run, started="2026-11-22T02:00:00+00:00"))


def test_a_file_of_an_earlier_version_is_brought_up_with_its_rows(
    path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(path, run)
    later = (*history_file.MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT",))
    monkeypatch.setattr(history_file, "MIGRATIONS", later)
    assert {len(each.points) for each in History(path).trends(run)} == {1}
    assert add(path, on(run, 2))
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT note FROM runs").fetchall() == [(None,)] * 2
        assert file.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_file_of_a_later_version_stays_as_it_is(
    path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        history_file, "MIGRATIONS", (*history_file.MIGRATIONS, ("CREATE TABLE more (x)",))
    )
    add(path, run)
    monkeypatch.undo()
    refused(path, run, "later version")


def refused(path: Path, run: Report, words: str) -> None:
    """Nothing is read or added, one line says why, and the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    for use in (lambda: add(path, run), lambda: History(path).runs()):
        with pytest.raises(HistoryError) as caught:
            use()
        text = str(caught.value)
        assert words in text
        assert str(path) in text
        assert "\n" not in text
    assert (path.read_bytes() if path.is_file() else None) == before
    assert not list(path.parent.glob(f"{path.name}-*"))


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n" + bytes(200), b"x", b"SQLite format 3"])
def test_another_kind_of_file_stays_as_it_is(path: Path, run: Report, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, run, "left unchanged")


@pytest.mark.parametrize("application_id", [0, 252006673])
def test_another_program_s_database_stays_as_it_is(
    path: Path, run: Report, application_id: int
) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA application_id = {application_id}")
        file.execute("CREATE TABLE runs (mine TEXT)")
        file.commit()
    refused(path, run, "another program's database")


@pytest.mark.parametrize("made", [True, False])
def test_no_planted_journal_has_a_file_removed(path: Path, run: Report, made: bool) -> None:
    """SQLite deletes what the end of a journal names, before it has read anything."""
    if made:
        add(path, run)
    victim, journal = path.with_name("victim"), path.with_name(f"{path.name}-journal")
    victim.touch()
    name = os.fsencode(victim)
    numbers = [each.to_bytes(4) for each in (0, len(name), sum(name))]
    end = numbers[0] + name + numbers[1] + numbers[2] + bytes.fromhex("d9d505f920a163d7")
    journal.write_bytes(b"x" * 512 + end)
    foreign = "-journal belongs to another program"
    with pytest.raises(HistoryError, match=foreign if made else "No such file"):
        History(path).runs()
    with pytest.raises(HistoryError, match=foreign):
        add(path, on(run, 2))
    assert victim.exists() and journal.exists() and path.exists() == made


def test_a_log_beside_a_history_is_not_taken_for_a_part_of_it(path: Path, run: Report) -> None:
    add(path, run)
    path.with_name(f"{path.name}-wal").write_bytes(b"x")
    for use in (lambda: add(path, on(run, 2)), lambda: History(path).runs()):
        with pytest.raises(HistoryError, match="-wal belongs to another program"):
            use()
    assert path.with_name(f"{path.name}-wal").read_bytes() == b"x"


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_in_a_folder_of_everybodys_a_history_is_read_alone(
    path: Path, run: Report, mode: int
) -> None:
    path.parent.chmod(mode)
    with pytest.raises(HistoryError, match="is writable by other users"):
        add(path, run)
    assert not path.exists()
    path.parent.chmod(0o700)
    add(path, run)
    path.parent.chmod(mode)
    assert len(History(path).runs()) == 1
    with pytest.raises(HistoryError, match="is writable by other users"):
        add(path, on(run, 2))


def test_a_damaged_file_is_said_to_be(path: Path, run: Report) -> None:
    for day in range(1, 5):
        add(path, on(run, day))
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)
    refused(path, run, "damaged")


@pytest.mark.long
def test_whatever_is_damaged_is_told_in_one_line(path: Path, run: Report) -> None:
    for day in range(1, 8):
        add(path, on(run, day))
    sound, told = path.read_bytes(), 0
    for seed in range(60):
        chance = random.Random(seed)
        content = bytearray(sound)
        for _ in range(40):
            content[chance.randrange(100, len(content))] = chance.randrange(256)
        path.write_bytes(content[: None if seed % 5 else chance.randrange(len(content))])
        for use in (lambda: History(path).trends(on(run, 7)), lambda: add(path, on(run, 9))):
            try:
                use()
            except HistoryError as error:
                assert "\n" not in str(error)
                told += 1
    assert told > 20


def test_figures_that_are_none_are_said_to_be_damage(path: Path, run: Report) -> None:
    add(path, run)
    for column, value in (("bytes_per_second", "'fast'"), ("cap", "7"), ("confidence", "9e999")):
        with closing(sqlite3.connect(path)) as file:
            file.execute(f"UPDATE copies SET {column} = {value}")
            file.commit()
        with pytest.raises(HistoryError, match="damaged"):
            History(path).trends(run)


@pytest.mark.parametrize(
    "foreign",
    [
        "DROP TABLE copies; CREATE VIEW copies AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n LIMIT 9) SELECT i AS run, i AS place, '' AS copy FROM n",
        "CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM copies; END",
        "CREATE TABLE mine (x)",
        "CREATE INDEX dear ON runs (length(share))",
        "ALTER TABLE runs ADD COLUMN dear TEXT AS (hex(zeroblob(9)))",
    ],
    ids=lambda words: words.split(";")[-1].split(" AS ")[0].strip(),
)
def test_what_has_more_than_our_tables_is_not_asked(path: Path, run: Report, foreign: str) -> None:
    """A schema of a stranger's is a program: a view ran for minutes and took gigabytes."""
    add(path, run)
    with closing(sqlite3.connect(path)) as file:
        file.executescript(foreign)
    refused(path, on(run, 9), "not the tables of a history")


def test_a_value_or_an_answer_too_large_for_a_history_is_refused(path: Path, run: Report) -> None:
    add(path, run)
    fill = "INSERT INTO runs SELECT i, i, 0, 0, hex(zeroblob(?)), '', '', '', '', '' FROM n"
    for bytes_each, most in ((100_000, 1), (30_000, 50)):
        with closing(sqlite3.connect(path)) as file:
            numbers = "WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n LIMIT ?) "
            file.execute("DELETE FROM runs")
            file.execute(numbers + fill, (most, bytes_each))
            file.commit()
        with pytest.raises(HistoryError, match="too big|too much text"):
            History(path).runs(1000)


def test_a_file_that_takes_too_long_is_left(
    path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(path, run)
    monkeypatch.setattr(history_file, "READING_SECONDS", 0.0)
    monkeypatch.setattr(history_file, "STEPS_BETWEEN_LOOKS", 1)
    refused(path, on(run, 2), "took more than")


def test_a_signal_ends_what_sqlite_is_at(
    path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(path, run)
    endless = "WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i FROM n) SELECT max(i) FROM n"
    monkeypatch.setattr(history, "_RUNS", endless)
    monkeypatch.setattr(history_file, "READING_SECONDS", 60.0)
    before = signal.signal(signal.SIGALRM, interrupts._interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            History(path).runs()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_empty_file_of_somebody_s_stays_empty(
    path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "MAKING_SECONDS", 0.05)
    path.touch()
    refused(path, run, "empty")


def test_a_link_to_nothing_makes_no_file_elsewhere(path: Path, run: Report) -> None:
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(HistoryError):
        add(path, run)
    assert not path.with_name("elsewhere").exists()


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_file_is_refused(path: Path, run: Report, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(HistoryError, match="not a regular file"):
        add(path, run)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, run: Report) -> None:
    with pytest.raises(HistoryError, match="none/h: No such file"):
        add(tmp_path / "none/h", run)


def test_no_history_to_read_is_none_made(path: Path) -> None:
    with pytest.raises(HistoryError, match="No such file"):
        History(path).runs()
    assert not path.exists()


@pytest.fixture
def others_folder() -> Iterator[Path]:
    """A folder that every account may look into, where this process is root a stranger too."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_file_without_the_right_to_write_is_read_alone(
    others_folder: Path, run: Report, closed: str
) -> None:
    path = others_folder / "h"
    add(path, run)
    path.chmod(0o444 if closed == "file" else 0o666)
    others_folder.chmod(0o555 if closed == "folder" else 0o755)
    was = os.geteuid()
    if was == 0:
        os.chown(others_folder, *((NOBODY, NOBODY) if closed == "file" else (0, 0)))
        os.seteuid(NOBODY)
    try:
        with pytest.raises(HistoryError, match="no write permission"):
            add(path, on(run, 2))
        assert len(History(path).runs()) == 1
    finally:
        os.seteuid(was)
        others_folder.chmod(0o755)


def _add_many(path: Path, first: int, gate: object) -> None:
    run = report.load(DATA / "report-v1-server-disk.json")
    diagnosis = diagnosed(run)
    gate.wait()  # type: ignore[attr-defined]
    for minute in range(first, first + 20):
        History(path).add(replace(run, started=f"2026-10-01T02:{minute:02d}:00+00:00"), diagnosis)


@pytest.mark.long
def test_two_programs_write_at_once_and_nothing_is_lost(path: Path) -> None:
    """From the first moment on: the file is made by whoever comes first."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(2)
    writers = [context.Process(target=_add_many, args=(path, at, gate)) for at in (0, 20)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(60)
    assert [each.exitcode for each in writers] == [0, 0]
    assert len(History(path).runs(most=100)) == 40


def test_a_writer_that_never_lets_go_is_told_of(
    path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(path, run)
    monkeypatch.setattr(history_file, "LOCKED_SECONDS", 0.05)
    hold = "import sqlite3, sys; file = sqlite3.connect(sys.argv[1], isolation_level=None); "
    hold += "file.execute('BEGIN EXCLUSIVE'); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        for use in (lambda: add(path, on(run, 2)), lambda: History(path).runs()):
            with pytest.raises(HistoryError, match="another program is writing to it"):
                use()
        other.stdin.close()
    assert len(History(path).runs()) == 1


def test_an_error_midway_leaves_no_half_of_a_run(
    path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_COPY", "INSERT INTO copies VALUES (1)")
    with pytest.raises(HistoryError):
        add(path, run)
    assert not path.exists()
    monkeypatch.undo()
    assert add(path, run)
    assert History(path).trends(run)


def test_the_word_default_is_the_user_s_own_file(
    tmp_path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = history.keep("default", run, diagnosed(run))
    assert found
    made = tmp_path / "copy-bottleneck/history.sqlite"
    assert made.is_file()
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700
    assert history.keep("none", run, diagnosed(run)) == ()
    assert history.keep(None, run, diagnosed(run)) == ()


def test_without_a_home_the_current_folder_is_not_the_user_s_own(
    tmp_path: Path, run: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(HistoryError, match="no home directory; use --history FILE"):
        history.keep("default", run, diagnosed(run))
    assert list(tmp_path.iterdir()) == []
