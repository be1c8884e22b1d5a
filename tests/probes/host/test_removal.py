"""A removal takes the very folder that the run made and nothing else, whoever renames meanwhile."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes.host import removal
from probes.host.own_folder import own_folder

NAME = "bottleneck-0123456789abcdef"
FILES = ("source", "pushed-0123456789abcdef")
OUTCOMES = {removal.MISSING, removal.OTHER, "stays"}
"""Of a removal that goes all the way and is not to succeed, whatever has the name just then."""

FLIPPER = """
import os
print("ready", flush=True)
while True:
    for one, other in [(NAME, "away"), ("users", NAME), (NAME, "users"), ("away", NAME)]:
        try:
            os.rename(one, other)
        except OSError:
            pass  # it is gone by now
    os.symlink("users", "link")
    for one, other in [(NAME, "away"), ("link", NAME), (NAME, "link"), ("away", NAME)]:
        try:
            os.rename(one, other)
        except OSError:
            pass
    os.unlink("link")
"""


def made(folder, name=NAME, files=FILES):
    path = folder / name
    path.mkdir()
    for each in files:
        (path / each).write_text("x")
    told = path.stat()
    return {"kind": removal.RUN, "name": name, "dev": told.st_dev, "ino": told.st_ino}


@pytest.fixture
def parent(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_a_folder_renamed_into_the_place_keeps_its_files(tmp_path, parent):
    """Somebody who may write to the share swaps folders and links as fast as a process can."""
    made(tmp_path, "users")
    facts = made(tmp_path)
    # Its file cannot be removed: each of hundreds of removals goes all the way.
    (tmp_path / NAME / "stays").touch()
    code = FLIPPER.replace("NAME", repr(NAME))
    became = []
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE
    ) as flipper:
        flipper.stdout.readline()
        until = time.monotonic() + 60
        while len(became) < 400 or len(set(became)) < len(OUTCOMES):
            assert time.monotonic() < until
            try:
                became.append(removal.remove(parent, facts))
            except OSError:
                became.append("stays")
        flipper.kill()
    others = [each for each in tmp_path.iterdir() if each.lstat().st_ino != facts["ino"]]
    (users,) = (each for each in others if not each.is_symlink())
    assert sorted(os.listdir(users)) == sorted(FILES)
    assert set(became) == OUTCOMES


@pytest.mark.parametrize("kind", [removal.RUN, removal.TREE])
def test_what_a_link_leads_to_stays(tmp_path, parent, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "source").touch()
    facts = {**made(tmp_path), "kind": kind}
    (tmp_path / NAME / "link").symlink_to(outside)
    if kind == removal.TREE:
        assert removal.remove(parent, facts) == removal.GONE
    else:
        with pytest.raises(OSError, match="not empty"):
            removal.remove(parent, facts)
        assert os.listdir(tmp_path / NAME) == ["link"]
    assert (outside / "source").exists()


def test_another_folder_of_that_name_stays(tmp_path, parent):
    facts = made(tmp_path)
    (tmp_path / NAME).rename(tmp_path / "away")
    assert removal.remove(parent, facts) == removal.MISSING
    made(tmp_path)
    assert removal.remove(parent, facts) == removal.OTHER
    assert sorted(os.listdir(tmp_path / NAME)) == sorted(FILES)


def test_before_its_identity_is_known_only_an_empty_folder_goes(tmp_path, parent):
    made(tmp_path)
    with pytest.raises(OSError, match="not empty"):
        removal.remove(parent, {"kind": removal.TREE, "name": NAME})
    (tmp_path / "empty").mkdir()
    told = removal.remove(parent, {"kind": removal.TREE, "name": "empty"})
    assert told == removal.GONE


def test_a_group_ends_only_while_its_leader_is_that_very_process():
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as leader:
        started = removal.started_ticks(leader.pid)
        removal.end_group({"leader": leader.pid, "started": started + 1})
        assert leader.poll() is None
        removal.end_group({"leader": leader.pid, "started": started})
        assert leader.wait(20) == -9


def test_the_guardian_outlives_its_starter_and_its_group(tmp_path):
    """As Child.kill() ends a child: SIGKILL to its whole process group."""
    code = """
import os, signal, sys
from probes.host.own_folder import own_folder
os.setsid()
with own_folder("tree", sys.argv[1], "tree") as made:
    made.create()
    os.makedirs(sys.argv[1] + "/tree/inner/most")
    os.close(made.new_file("file"))
    os.killpg(0, signal.SIGKILL)
"""
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root).returncode == -9
    until = time.monotonic() + 20
    while list(tmp_path.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_the_guardian_has_no_password_in_its_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("BOTTLENECK_PASSWORD", "canary-47")
    with own_folder(removal.RUN, str(tmp_path), NAME) as made_one:
        pid = made_one._guardian._process.pid
        assert b"canary-47" not in Path(f"/proc/{pid}/environ").read_bytes()
        made_one.create()
        made_one.remove()


@pytest.mark.parametrize("levels", [1, 3000])
def test_no_depth_is_too_deep(tmp_path, parent, levels):
    """Whoever holds a share's login nests as he likes; files lie on the way down."""
    facts = {**made(tmp_path, files=()), "kind": removal.TREE}
    at = os.open(tmp_path / NAME, os.O_RDONLY)
    for _ in range(levels):
        for each in ("inner", "beside"):
            os.mkdir(each, dir_fd=at)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        inner = os.open("inner", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    assert removal.remove(parent, facts) == removal.GONE
    assert list(tmp_path.iterdir()) == []
