"""Only what a run left is removed: by name, owner and content; links and strangers stay."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes.drivers.samba import private_samba, vanishing_folder
from probes.host import leftovers, mount, processes

RUN = "bottleneck-0123456789abcdef"
STATE = "bottleneck-samba-Ab_-9xyz"
ALL_ARE_SEEN = leftovers._Users.all_are_seen


@pytest.fixture(autouse=True)
def nobody_is_hidden(monkeypatch):
    """For another user than root and in a container, too."""
    monkeypatch.setattr(leftovers._Users, "all_are_seen", True)


def made(folder, name=RUN, files=("source",)):
    path = folder / name
    path.mkdir()
    for each in files:
        (path / each).write_bytes(b"x" * 100)
    return path


def found(folder, older=0.0):
    return {
        Path(each.path).name: each
        for each in leftovers.find([str(folder)], older, temporaries=False)
    }


def test_a_run_folder_with_its_files_is_found_and_removed(tmp_path):
    files = ("source", "pushed-0123456789abcdef", "small-0123456789abcdef-12")
    path = made(tmp_path, files=files)
    (tmp_path / "mine").write_text("stays")
    (only,) = found(tmp_path).values()
    assert (only.path, only.kind, only.files, only.size_bytes) == (str(path), "run", 3, 300)
    assert only.why_left == ""
    assert leftovers.remove(only.path, 0) == ""
    assert os.listdir(tmp_path) == ["mine"]
    assert leftovers.remove(only.path, 0) == ""


def test_nested_folders_of_a_share_and_a_demonstration_go_with_it(tmp_path):
    demo = tmp_path / "bottleneck-demo-4711-Ab_-9xyz"
    (demo / "server").mkdir(parents=True)
    (demo / "client").mkdir()
    made(demo / "server")
    made(made(demo / "client", "bottleneck-share-Ab_-9xyz", ()))
    (demo / "client" / (".bottleneck-" + "0" * 32)).write_text("x")
    (only,) = found(tmp_path).values()
    assert (only.kind, only.files, only.why_left) == ("demo", 3, "")
    assert leftovers.remove(str(demo), 0) == ""
    assert not demo.exists()


@pytest.mark.parametrize(
    "name",
    [
        "bottleneck-",
        "bottleneck-0123456789abcde",
        "bottleneck-0123456789ABCDEF",
        "bottleneck-0123456789abcdef.old",
        "bottleneck-0123456789abcdef\n",
        "bottleneck",
        "xbottleneck-0123456789abcdef",
        "bottleneck-share-short",
        "bottleneck-demo--Ab_-9xyz",
    ],
)
def test_another_name_is_not_looked_at(tmp_path, name):
    path = made(tmp_path, name)
    assert found(tmp_path) == {}
    assert "name" in leftovers.remove(str(path), 0)
    assert (path / "source").exists()


def plant_link(path):
    (path / "evil").symlink_to("/etc/passwd")


def plant_linked_source(path):
    (path / "source").unlink()
    (path / "source").symlink_to("/etc/passwd")


def plant_folder(path):
    (path / "pushed-0123456789abcdef").mkdir()


def plant_strange_name(path):
    (path / "x\x1b[2Jy").write_text("x")


def plant_bytes(path):
    Path(os.fsdecode(os.fsencode(path) + b"/\xff\xfe")).write_text("x")


def plant_pipe(path):
    os.mkfifo(path / "pushed-0123456789abcdef")


def plant_second_name(path):
    os.link(path / "source", path.parent / "kept")


def plant_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path / "pushed-0123456789abcdef"))


@pytest.mark.parametrize(
    "plant",
    [
        plant_link,
        plant_linked_source,
        plant_folder,
        plant_strange_name,
        plant_bytes,
        plant_pipe,
        plant_second_name,
        plant_socket,
    ],
)
def test_a_folder_with_anything_else_in_it_stays_whole(tmp_path, monkeypatch, plant):
    monkeypatch.chdir(tmp_path)
    path = made(Path())
    plant(path)
    before = sorted(os.listdir(path))
    (only,) = found(tmp_path).values()
    assert only.why_left
    assert leftovers.remove(str(tmp_path / path), 0) == only.why_left
    assert sorted(os.listdir(path)) == before


def test_a_link_with_the_name_of_a_run_is_no_folder_of_one(tmp_path):
    target = made(tmp_path, "elsewhere")
    (tmp_path / RUN).symlink_to(target)
    (only,) = found(tmp_path).values()
    assert "no folder" in only.why_left
    assert leftovers.remove(str(tmp_path / RUN), 0) == only.why_left
    assert (target / "source").exists()


def test_what_came_in_between_the_look_and_the_removal_stays(tmp_path):
    path = made(tmp_path)
    assert found(tmp_path)[RUN].why_left == ""
    (path / "diary").write_text("mine")
    assert "diary" in leftovers.remove(str(path), 0)
    assert sorted(os.listdir(path)) == ["diary", "source"]


def test_what_is_young_stays(tmp_path):
    made(tmp_path)
    assert "a run may use it" in found(tmp_path, 3600)[RUN].why_left
    assert "a run may use it" in leftovers.remove(str(tmp_path / RUN), 3600)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root can give a file away")
def test_what_another_user_owns_stays_but_for_a_run_on_a_share(tmp_path):
    share = made(tmp_path, "bottleneck-share-Ab_-9xyz", ())
    run = made(tmp_path)
    for each in (share, run, run / "source"):
        os.chown(each, 12345, 12345)
    seen = found(tmp_path)
    assert "another user" in seen[share.name].why_left
    assert seen[RUN].why_left == ""


def test_what_a_process_has_open_is_in_use(tmp_path):
    path = made(tmp_path)
    with subprocess.Popen(["sleep", "60"], cwd=path) as process:
        try:
            assert f"process {process.pid}" in found(tmp_path)[RUN].why_left
        finally:
            process.kill()


def test_a_folder_whose_run_is_alive_is_in_use(tmp_path):
    with vanishing_folder("bottleneck-share-", tmp_path) as (folder, _):
        assert "still at work" in found(tmp_path)[folder.name].why_left
        assert "still at work" in leftovers.remove(str(folder), 0)
        assert folder.exists()
    assert found(tmp_path) == {}


ORPHANS = """
import sys
from probes.drivers import samba
samba.end_with_parent = lambda *_: None
with samba.private_samba(sys.argv[1], password="x y", options=["log level = 1"]) as server:
    print(server.process_id, server.configuration, flush=True)
    sys.stdin.read()
"""


def guardians(path):
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if path.encode() in words and b"bottleneck-samba" in words:
            yield int(each.parent.name)


def test_a_samba_that_outlived_its_run_ends_and_its_state_goes(tmp_path):
    short = Path("/tmp") / f"left-{os.getpid()}"
    short.mkdir()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", ORPHANS, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
            env={**os.environ, "TMPDIR": str(short)},
        ) as run:
            smbd, configuration = run.stdout.readline().split()
            state = Path(configuration).parent
            assert "still at work" in found(short)[state.name].why_left
            for pid in (*guardians(str(state)), run.pid):
                os.kill(pid, 9)
        seen = found(short)[state.name]
        assert seen.why_left == "" and int(smbd) in seen.processes
        assert leftovers.remove(str(state), 0) == ""
        assert not state.exists()
        assert not Path(f"/proc/{smbd}/exe").exists()  # of a zombie there is none
    finally:
        shutil.rmtree(short, ignore_errors=True)


def test_a_folder_that_only_looks_like_a_sambas_state_stays(tmp_path):
    state = made(tmp_path, STATE, ("users",))
    assert "smb.conf" in found(tmp_path)[STATE].why_left
    (state / "smb.conf").write_text("[global]\nserver role = standalone server\nprivate dir = /x\n")
    assert "none of ours" in found(tmp_path)[STATE].why_left
    (state / "smb.conf").unlink()
    (state / "smb.conf").symlink_to("/etc/samba/smb.conf")
    assert "no regular file" in found(tmp_path)[STATE].why_left
    assert leftovers.remove(str(state), 0)
    assert (state / "users").exists()


def test_a_living_private_samba_is_left_alone(tmp_path):
    before = time.monotonic()
    with private_samba(str(tmp_path), password="x y") as server:
        state = Path(server.configuration).parent
        seen = {each.path: each for each in leftovers.find([str(state.parent)], 0)}
        assert "still at work" in seen[str(state)].why_left
    assert time.monotonic() - before < 60


def test_a_host_that_shows_no_processes_keeps_everything(tmp_path, monkeypatch):
    def none():
        raise FileNotFoundError(2, "No such file or directory", "/proc")

    path = made(tmp_path)
    monkeypatch.setattr(processes, "read_all", none)
    assert "does not tell who uses it" in found(tmp_path)[RUN].why_left
    assert "does not tell who uses it" in leftovers.remove(str(path), 0)
    assert (path / "source").exists()


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), OSError(5, "Input/output error")])
def test_what_is_still_there_is_never_told_as_gone(tmp_path, monkeypatch, error):
    def broken(*_):
        raise error

    path = made(tmp_path)
    monkeypatch.setattr(leftovers, "_remove", broken)
    assert leftovers.remove(str(path), 0)
    monkeypatch.setattr(leftovers, "_look", broken)
    assert found(tmp_path)[RUN].why_left
    assert leftovers.remove(str(path), 0)
    assert (path / "source").exists()


def test_what_came_into_its_place_is_told(tmp_path, monkeypatch):
    path = made(tmp_path)
    monkeypatch.setattr(leftovers, "_remove", lambda *_: None)
    assert "came into its place" in leftovers.remove(str(path), 0)


def test_a_run_is_alive_by_whatever_path_its_guardian_names_it(tmp_path):
    link = tmp_path / "link"
    (tmp_path / "real").mkdir()
    link.symlink_to(tmp_path / "real")
    with vanishing_folder("bottleneck-share-", link) as (folder, _):
        for place in (link, tmp_path / "real"):
            assert "still at work" in found(place)[folder.name].why_left
            assert "still at work" in leftovers.remove(str(place / folder.name), 0)
        assert folder.exists()


def test_what_is_young_stays_where_a_process_may_be_hidden(tmp_path, monkeypatch):
    path = made(tmp_path)
    monkeypatch.setattr(leftovers._Users, "all_are_seen", False)
    assert "hidden" in found(tmp_path)[RUN].why_left
    assert "hidden" in leftovers.remove(str(path), 0)
    assert (path / "source").exists()
    monkeypatch.setattr(leftovers, "SURE_SECONDS", 0.0)
    assert leftovers.remove(str(path), 0) == ""


def test_root_alone_sees_them_all_and_not_in_a_container(monkeypatch):
    users = leftovers._Users()
    users._seen = {2: processes.ProcessStat(2, "kthreadd", 0, True, 0, 0, 1, 1, 0)}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert ALL_ARE_SEEN.fget(users)
    users._seen = {2: processes.ProcessStat(2, "sh", 1, False, 0, 0, 1, 1, 0)}
    assert not ALL_ARE_SEEN.fget(users)
    users._seen = {2: processes.ProcessStat(2, "kthreadd", 0, True, 0, 0, 1, 1, 0)}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not ALL_ARE_SEEN.fget(users)


@pytest.mark.parametrize(
    ("mounted", "words"),
    [
        ("cifs //nas/media rw,addr=192.0.2.7", "use bottleneck cleanup //nas/media"),
        ("nfs4 nas:/media rw,addr=192.0.2.7", "run this there"),
    ],
)
def test_another_host_s_disk_has_another_clock(tmp_path, monkeypatch, mounted, words):
    path = made(tmp_path)
    line = f"36 25 0:40 / {tmp_path} rw,relatime - {mounted}\n"
    monkeypatch.setattr(mount, "read_mount", lambda folder: mount.parse(line, folder))
    assert words in found(tmp_path)[RUN].why_left
    assert words in leftovers.remove(str(path), 0)
    assert (path / "source").exists()
