"""The next run finds what a killed run left behind, and nothing else."""

import contextlib
import fcntl
import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from probes.files import journal, leftovers, removal
from probes.files.created_folder import own_folder
from tests.living import STAYS

ROOT = Path(__file__).parents[3]
NAME, SOURCE = "bottleneck-0123456789abcdef", "source-0123456789abcdef"

KILLED = """
import os, signal, sys
from probes.files.created_folder import own_folder
with own_folder("run", sys.argv[1], "bottleneck-0123456789abcdef") as made:
    made.create()
    os.close(made.new_file("source-0123456789abcdef"))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    """A journal of its own; the folder of its entries."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(journal, "FALLBACK", str(tmp_path / "fallback-{}"))
    return tmp_path / "state/copy-bottleneck/runs"


@pytest.fixture
def share(tmp_path):
    """A folder in which a run was killed."""
    folder = tmp_path / "share"
    folder.mkdir()
    (folder / "users own").write_text("precious")
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], cwd=ROOT)
    assert done.returncode == -9
    assert (folder / NAME / SOURCE).exists()
    return folder


def test_the_next_run_removes_what_a_killed_one_left(share, runs):
    with own_folder(removal.RUN, str(share), "bottleneck-00") as folder:
        folder.create()
        assert sorted(os.listdir(share)) == ["bottleneck-00", "users own"]
        folder.remove()
    assert not runs.parent.exists()


def test_an_entry_is_on_the_disk_before_its_folder_is_made(tmp_path, runs, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    with own_folder(removal.RUN, str(tmp_path), NAME) as folder:
        (entry,) = runs.iterdir()
        assert {entry.stat().st_ino, runs.stat().st_ino} <= set(synced)
        assert json.loads(entry.read_text())["name"] == NAME
        assert not (tmp_path / NAME).exists()
        folder.create()
        folder.remove()


def test_the_end_of_another_run_takes_no_folder_from_under_an_entry(runs, monkeypatch):
    open_folder = journal.open_folder
    ends = iter((runs.rmdir,))

    def while_another_ends():
        fd = open_folder()
        next(ends, int)()
        return fd

    monkeypatch.setattr(journal, "open_folder", while_another_ends)
    journal.enter(removal.RUN, "/", NAME).close(is_removed=False)
    assert len(os.listdir(runs)) == 1


def test_a_report_beside_the_entries_stays(runs):
    runs.mkdir(0o700, parents=True)
    (runs.parent / "last.json").touch()
    journal.enter(removal.RUN, "/", NAME).close(is_removed=True)
    assert os.listdir(runs.parent) == ["last.json"]


@pytest.mark.parametrize("umask", [0, 0o777])
def test_folders_above_the_entries_are_this_users_alone_under_any_umask(runs, monkeypatch, umask):
    runs.parents[2].chmod(0o755)
    umask_before = os.umask(umask)
    try:
        journal.enter(removal.RUN, "/", NAME).close(is_removed=False)
    finally:
        os.umask(umask_before)
    folders = (runs, runs.parent, runs.parents[1])
    assert [each.stat().st_mode & 0o777 for each in folders] == [0o700] * 3
    assert runs.parents[2].stat().st_mode & 0o777 == 0o755


def test_a_run_that_lives_keeps_its_folder(tmp_path):
    with own_folder(removal.RUN, str(tmp_path), NAME) as folder:
        folder.create()
        assert journal.sweep() == []
        folder.remove()


def test_another_folder_of_that_name_is_left_and_said_to(share):
    (share / NAME).rename(share / "away")
    (share / NAME).mkdir()
    (share / NAME / "source").write_text("precious")
    assert journal.sweep() == [(str(share / NAME), "another object has its name")]
    assert (share / NAME / "source").exists()


def test_what_somebody_put_into_it_stays(share):
    (share / NAME / "diary").write_text("precious")
    assert journal.sweep() == [(str(share / NAME), "directory not empty")]
    assert os.listdir(share / NAME) == ["diary"]


def test_after_another_boot_devices_have_other_numbers(share, runs):
    (entry,) = runs.iterdir()
    lines = entry.read_text()
    noted = {"boot": "before", "dev": 1, "leader": os.getpid(), "started": 1}
    entry.write_text(lines + json.dumps(noted))
    assert journal.sweep() == [(str(share / NAME), "")]
    assert os.listdir(share) == ["users own"]


def test_what_lies_on_another_host_waits_there(share, runs):
    (entry,) = runs.iterdir()
    entry.write_text(entry.read_text() + json.dumps({"boot": "another", "host": "nas"}))
    assert journal.sweep() == [(str(share / NAME), "it is on nas")]
    assert (share / NAME / SOURCE).exists() and entry.exists()


def test_a_folder_that_is_not_mounted_now_is_remembered(share, runs, tmp_path):
    (entry,) = runs.iterdir()
    entry.write_text(entry.read_text() + json.dumps({"folder_dev": 1}))
    share.rename(tmp_path / "elsewhere")
    assert journal.sweep() == [(str(share / NAME), "its file system is not mounted")]
    assert entry.exists()


def test_another_folder_at_its_place_is_not_where_it_lay(share, runs, tmp_path):
    """The path leads elsewhere, as it does in another mount namespace."""
    share.rename(tmp_path / "elsewhere")
    share.mkdir()
    assert journal.sweep() == [(str(share / NAME), "its file system is not mounted")]
    assert len(os.listdir(runs)) == 1


def test_where_no_boot_is_known_hosts_and_folders_are_told_apart_all_the_same(
    share, runs, monkeypatch
):
    monkeypatch.setattr(journal, "_boot", lambda: "")
    (entry,) = runs.iterdir()
    lines = entry.read_text()
    entry.write_text(lines + json.dumps({"boot": "", "host": "nas"}) + "\n")
    assert journal.sweep() == [(str(share / NAME), "it is on nas")]
    entry.write_text(lines + json.dumps({"boot": "", "dev": 1}) + "\n")
    assert journal.sweep() == [(str(share / NAME), "")]


@pytest.mark.parametrize("variable", ["HOME", "XDG_STATE_HOME"])
def test_nothing_is_made_in_another_users_home(tmp_path, monkeypatch, variable):
    """`sudo -E` keeps the home folder of another user in root's environment."""
    mine, theirs = tmp_path / "own", tmp_path / "theirs"
    for each in (mine, theirs):
        each.mkdir()
    if os.geteuid() == 0:
        os.chown(theirs, 65534, -1)
    else:
        theirs = Path("/usr")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv(variable, str(theirs / ".state"))
    if variable == "XDG_STATE_HOME":
        monkeypatch.setenv("HOME", str(mine))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(mine)))
    assert journal._paths()[0] == f"{mine}/.local/state/copy-bottleneck/runs"


def test_without_a_home_nothing_is_made_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    journal.enter(removal.RUN, "/", NAME).close(is_removed=False)
    assert os.listdir(tmp_path) == [f"fallback-{os.geteuid()}"]


@pytest.mark.parametrize("text", ["", '{"kind": "ru'])
def test_half_an_entry_is_forgotten(runs, text):
    journal.enter(removal.RUN, "/", NAME).close(is_removed=False)
    (entry,) = runs.iterdir()
    entry.write_text(text)
    assert journal.sweep() == []
    assert not entry.exists()


STRANGE = (
    "[1]\n",
    "null\n",
    "[" * 60_000 + "\n",
    '{"kind": "run", "name": "../x"}\n',
    '{"kind": "run", "folder": "tmp", "name": "x", "host": "", "boot": "", "time": 1}\n',
    '{"kind": "share", "folder": "//x", "name": "\\u0000", "host": 1, "boot": [], "time": "x"}\n',
)


@pytest.mark.parametrize("text", STRANGE)
def test_what_it_does_not_understand_it_leaves_alone_until_it_is_old(runs, text, monkeypatch):
    journal.enter(removal.RUN, "/", NAME).close(is_removed=False)
    (entry,) = runs.iterdir()
    entry.write_text(text)
    assert list(journal.orphans(removal.RUN, journal.SHARE)) == journal.sweep() == []
    with entry.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        journal.living_objects()
    assert entry.exists()
    monkeypatch.setattr(journal, "KEPT_SECONDS", -60.0)
    journal.sweep()
    assert not entry.exists()


@pytest.mark.parametrize("planted", ["folder", "link"])
def test_the_journal_that_somebody_else_planted_stops_nobody(tmp_path, planted):
    fallback = tmp_path / f"fallback-{os.geteuid()}"
    entry = fallback / ("0" * 16)
    fallback.mkdir()
    fallback.chmod(0o777)
    if planted == "link":
        entry.symlink_to("/etc/passwd")
    else:
        entry.write_text("[" * 60_000)
    with contextlib.ExitStack() as stack:
        if planted == "folder":
            fcntl.flock(stack.enter_context(entry.open()), fcntl.LOCK_EX)
        assert journal.living_objects() == set()


@pytest.fixture
def group():
    """A process group's leader, and another process in it."""
    with contextlib.ExitStack() as stack:
        processes = []
        for _ in range(2):
            leader = processes[0].pid if processes else 0
            started = subprocess.Popen(STAYS, preexec_fn=lambda: os.setpgid(0, leader))  # noqa: B023, PLW1509
            stack.enter_context(started)
            stack.callback(started.kill)
            processes.append(started)
        yield processes


def note_leader(entry, leader, pid_space):
    note = {"leader": leader, "started": removal.started_ticks(leader), "pid_space": pid_space}
    entry.write_text(entry.read_text() + json.dumps(note) + "\n")


@pytest.mark.parametrize("why", ["it has ended", "its number is told elsewhere"])
def test_a_group_is_not_signalled_by_the_number_of_what_may_be_another(share, runs, group, why):
    (entry,) = runs.iterdir()
    leader, member = group
    note_leader(entry, leader.pid, removal.pid_space() - (why != "it has ended"))
    if why == "it has ended":
        leader.kill()
        leader.wait()
    assert journal.sweep() == [(str(share / NAME), "")]
    member.terminate()
    assert member.wait() == -signal.SIGTERM


def test_a_look_signals_nobody_and_forgets_nothing(share, runs, group):
    (entry,) = runs.iterdir()
    note_leader(entry, group[0].pid, removal.pid_space())
    (share / NAME).rename(share / "away")
    assert leftovers.find([], 0) == []
    assert entry.exists()
    group[0].terminate()
    assert group[0].wait() == -signal.SIGTERM


@pytest.mark.parametrize("planted", ["link", "open"])
def test_a_folder_that_others_may_write_to_is_no_journal(tmp_path, runs, planted):
    runs.parent.mkdir(parents=True)
    if planted == "link":
        (tmp_path / "theirs").mkdir()
        runs.symlink_to(tmp_path / "theirs")
    else:
        runs.mkdir()
        runs.chmod(0o777)
    journal.enter(removal.RUN, "/", NAME).close(is_removed=False)
    assert os.listdir(runs) == []
    fallback = tmp_path / f"fallback-{os.geteuid()}"
    assert len(os.listdir(fallback)) == 1 and fallback.stat().st_mode & 0o777 == 0o700


def test_without_any_journal_a_run_goes_on(tmp_path, runs, monkeypatch):
    monkeypatch.setattr(journal, "_paths", lambda: ("/proc/none", "/proc/nothing"))
    with own_folder(removal.RUN, str(tmp_path), NAME) as folder:
        folder.create()
        folder.remove()
    assert journal.sweep() == []
