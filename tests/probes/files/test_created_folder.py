"""The run's folder in a mounted share: real payload, nothing left, one line for each refusal."""

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import created_folder, journal, payload
from probes.files.created_folder import CreatedFolder, Setting, hold, refusal
from tests.living import running

MIB = 1 << 20


def setting(folder, **changes):
    fields = {"run": "00aa11bb", "size_bytes": 5 * MIB, "seconds": 30.0, "seed": "ab", **changes}
    return Setting(folder=str(folder), **fields)


def test_the_source_holds_the_payload_and_all_goes_at_the_end(tmp_path):
    with hold(setting(tmp_path), Endpoint()) as endpoint:
        assert endpoint.folder == str(tmp_path / "bottleneck-00aa11bb")
        content = Path(endpoint.folder, "source-00aa11bb").read_bytes()
        assert len(content) == endpoint.facts["size_bytes"] == 5 * MIB
        assert payload.matches(payload.make_ring(b"\xab"), 0, memoryview(content))
        assert endpoint.facts["total_bytes"] >= endpoint.facts["free_bytes"] > 0
        Path(endpoint.folder, "pushed-00aa11bb-0123456789abcdef").touch()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_this_runs_stays_and_is_said_to(tmp_path):
    with (
        pytest.raises(OSError, match=r"bottleneck-00aa11bb may remain: directory not empty"),
        hold(setting(tmp_path), Endpoint()) as endpoint,
    ):
        Path(endpoint.folder, "pushed-by-somebody").touch()
    assert [path.name for path in tmp_path.rglob("*")] == [
        "bottleneck-00aa11bb",
        "pushed-by-somebody",
    ]


def test_an_existing_folder_of_that_name_is_not_touched(tmp_path):
    mine = tmp_path / "bottleneck-00aa11bb"
    mine.mkdir()
    (mine / "source").write_text("mine")
    with pytest.raises(RuntimeError, match="file exists"), hold(setting(tmp_path), Endpoint()):
        pass
    assert (mine / "source").read_text() == "mine"


def test_any_other_name_is_refused(tmp_path):
    with (
        pytest.raises(ValueError, match="not the name"),
        hold(setting("/x", run="../.."), Endpoint()),
    ):
        pass


def test_a_folder_that_is_gone_already_is_no_error(tmp_path):
    with hold(setting(tmp_path), Endpoint()) as endpoint:
        shutil.rmtree(endpoint.folder)


HOLDER = """
import sys
from probes.files.created_folder import Setting, hold
from probes.core.records import Endpoint
with hold(Setting(sys.argv[1], "00aa11bb", 4 << 20, 5.0, "ab"), Endpoint()) as held:
    print(held.folder, flush=True)
    sys.stdin.read()
"""


def test_the_next_sweep_removes_what_a_killed_holder_left(tmp_path):
    with running(HOLDER, tmp_path) as holder:
        folder = Path(holder.stdout.readline().strip())
        (folder / "pushed-00aa11bb-0123456789abcdef").touch()
        holder.kill()
    assert (str(folder), "") in journal.sweep()
    assert list(tmp_path.iterdir()) == []


def test_a_mount_that_hangs_is_refused_in_time(tmp_path, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(created_folder, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(os, "statvfs", lambda folder: release.wait())
    with (
        pytest.raises(Refused, match="no answer within .* check that its server is up") as caught,
        hold(setting(tmp_path), Endpoint()),
    ):
        pass
    assert caught.value.kind == "unreachable"
    release.set()


def test_a_mount_that_hangs_at_the_end_is_said_to(tmp_path, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(created_folder, "REMOVE_SECONDS", 0.05)
    with (
        pytest.raises(TimeoutError, match="may remain; the next run"),
        hold(setting(tmp_path), Endpoint()),
    ):
        monkeypatch.setattr(CreatedFolder, "remove", lambda *_: release.wait())
    release.set()


def test_room_that_a_mount_does_not_tell_is_not_none(tmp_path, monkeypatch):
    """smbnetfs says 0 of 0 bytes."""
    monkeypatch.setattr(created_folder.free_space, "space_of", lambda folder: (0, 0))
    with hold(setting(tmp_path), Endpoint()) as endpoint:
        assert endpoint.facts["size_bytes"] == 5 * MIB


def test_no_room_makes_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(
        created_folder.free_space, "space_of", lambda folder: (410 * MIB, 4096 * MIB)
    )
    with pytest.raises(Unavailable, match="410 MiB are free"), hold(setting(tmp_path), Endpoint()):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_source_is_as_large_as_the_room_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(
        created_folder.free_space, "space_of", lambda folder: (416 * MIB, 4096 * MIB)
    )
    with hold(setting(tmp_path, size_bytes=50 * MIB), Endpoint()) as endpoint:
        assert endpoint.facts["size_bytes"] == 6 * MIB


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (errno.ENOSPC, "space", "free some space"),
        (errno.EDQUOT, "space", "free some space"),
        (errno.EROFS, "permission", "read-only"),
        (errno.EACCES, "permission", "no write permission"),
        (errno.ENOENT, "usage", "not found on this host"),
        (errno.ENOTDIR, "usage", "not found on this host"),
        (errno.ESTALE, "unreachable", "mount it again"),
        (errno.ENOTCONN, "unreachable", "mount it again"),
        (errno.EHOSTDOWN, "unreachable", "mount it again"),
    ],
)
def test_each_trouble_with_a_mount_has_its_line(code, kind, says):
    error = refusal("/mnt/media", OSError(code, os.strerror(code)))
    assert isinstance(error, Refused) and error.kind == kind
    assert says in error.text and "/mnt/media" in error.text and "\n" not in error.text
