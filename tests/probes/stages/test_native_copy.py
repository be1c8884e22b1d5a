"""The system's own copy between real folders and a really mounted share, and every way to break."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from probes.core.records import OWN_COPIES, Endpoint
from probes.core.stage import Refused
from probes.files import created_folder, folders, payload, served_file, source_file
from probes.files.served_file import source_name
from probes.stages import native_copy
from probes.stages.native_copy import Setting
from probes.system import tools

MIB = 1 << 20
SIZE = 5 * MIB + 12_345
SEED = "00ff11"
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: mounting needs root")


@pytest.fixture
def client(tmp_path):
    folder = tmp_path / "client"
    folder.mkdir()
    return folder


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


@pytest.fixture
def hold_ends(client):
    """Holds both ends' files in a target folder: the peer to copy with."""

    def go(stack, target, size=8 * MIB):
        there = created_folder.Setting(str(target), "0123abcd", size, 30.0, SEED)
        here = source_file.Setting(str(client), size, 30.0, SEED)
        folder = stack.enter_context(created_folder.hold(there, Endpoint())).folder
        path = stack.enter_context(source_file.hold(here, Endpoint())).path
        return Endpoint(folder=folder, path=path)

    return go


@pytest.fixture
def stack():
    with ExitStack() as opened:
        yield opened


def setting(copy, client, target, size=SIZE, seconds=60.0):
    return Setting(copy, str(client), str(target), size, seconds, SEED)


@pytest.fixture
def run(run_stage):
    return partial(run_stage, native_copy)


@pytest.fixture
def run_and_check(run):
    def check(setting, peer):
        samples, details = run(setting, peer)
        assert samples[-1].moved_bytes == setting.size_bytes
        assert details["hash_ok"] is True and details["checked_bytes"] == setting.size_bytes
        assert details["acknowledged_bytes_per_second"] > 0 and details["flush_seconds"] >= 0
        assert details["program"].startswith("cp ")
        return details

    return check


def can_be_emptied(folder):
    """Whether a folder's page cache can be dropped: it does not lie in memory alone."""
    return folders.folder_facts(str(folder)).filesystem not in {"tmpfs", "overlay"}


@pytest.mark.parametrize("copy", OWN_COPIES)
def test_a_copy_between_folders_of_this_host_proves_the_cache_at_its_sender(
    run_and_check, stack, hold_ends, client, target, copy
):
    peer = hold_ends(stack, target)
    details = run_and_check(setting(copy, client, target), peer)
    verb, _, cache = copy.partition(".")
    assert details["cache"]["side"] == ("server" if verb == "pull" else "client")
    assert details["cache"]["requested"] == cache
    if cache == "cached" or can_be_emptied(target):
        assert details["cache"]["proven"] is True
        assert details["cache"]["cached_ratio_before"] == (1.0 if cache == "cached" else 0.0)
    assert details["mount"]["filesystem"] == folders.folder_facts(str(target)).filesystem
    # Else cp would share the blocks on some file systems, and nothing would be copied.
    assert details["same_filesystem"] is True and "--reflink=never" in details["program"]
    assert os.listdir(peer.folder) == [source_name(peer.folder)]
    assert list(client.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("copy", OWN_COPIES)
def test_a_copy_to_or_from_a_mounted_share_is_intact_and_leaves_nothing(
    run_and_check, smb_mount, stack, hold_ends, client, copy
):
    peer = hold_ends(stack, smb_mount.folder)
    details = run_and_check(setting(copy, client, smb_mount.folder), peer)
    assert details["mount"]["filesystem"] == "fuse.smbnetfs"
    assert details["same_filesystem"] is False and "--reflink" not in details["program"]
    if copy.startswith("pull"):
        # Another system's page cache: not for this one to prove.
        assert details["cache"] == {
            "side": "server",
            "requested": copy.partition(".")[2],
            "proven": False,
            "cached_ratio_before": None,
        }
    at_server = smb_mount.shared / Path(peer.folder).name
    assert [path.name for path in at_server.iterdir()] == [source_name(peer.folder)]
    stack.close()
    assert list(smb_mount.shared.iterdir()) == []


def test_both_sources_are_cut_to_the_size_asked_for(
    run_and_check, run, stack, hold_ends, client, target
):
    peer = hold_ends(stack, target)
    for copy, size in (("pull.cached", 3 * MIB), ("push.cached", 2 * MIB)):
        run_and_check(setting(copy, client, target, size), peer)
    assert Path(peer.folder, source_name(peer.folder)).stat().st_size == 3 * MIB
    assert Path(peer.path).stat().st_size == 2 * MIB
    with pytest.raises(ValueError, match="are to be copied"):
        run(setting("pull.cached", client, target, 4 * MIB), peer)


def test_a_users_file_is_never_cut(run, stack, hold_ends, client, target, tmp_path):
    peer = hold_ends(stack, target)
    mine = tmp_path / "mine"
    mine.write_bytes(bytes(9 * MIB))
    wrong = Endpoint(folder=peer.folder, path=str(mine))
    with pytest.raises(ValueError, match="not a file of this run"):
        run(setting("push.cached", client, target), wrong)
    assert mine.stat().st_size == 9 * MIB
    with pytest.raises(ValueError, match="not the name"):
        run(setting("pull.cached", client, target), Endpoint(folder=str(target)))


def test_one_wrong_byte_anywhere_is_told(tmp_path):
    ring = payload.make_ring(bytes.fromhex(SEED))
    content = bytearray(payload.block(ring, 0, SIZE))
    path = tmp_path / "copy"
    for offset in (0, SIZE // 2, 4 * MIB, SIZE - 1):
        wrong = bytearray(content)
        wrong[offset] ^= 1
        path.write_bytes(wrong)
        with path.open("rb") as file:
            assert served_file.intact_part(ring, file.fileno(), SIZE, float("inf"))[0] is False
    path.write_bytes(content)
    with path.open("rb") as file:
        assert served_file.intact_part(ring, file.fileno(), SIZE, float("inf")) == (True, SIZE)
        # Without time the end alone: that is where a short copy shows.
        assert served_file.intact_part(ring, file.fileno(), SIZE, 0.0) == (True, SIZE - 4 * MIB)


def test_a_program_that_copies_half_is_broken_and_not_fast(
    run, stack, hold_ends, client, target, monkeypatch, tmp_path
):
    """The size of what arrived is the last sample's, whatever the program says."""
    fake = tmp_path / "cp"
    fake.write_text(
        '#!/bin/sh\nfor last; do :; done\n[ "$last" = --version ] && exit\n'
        'head -c 1000000 /dev/zero >"$last"\n'
    )
    fake.chmod(0o755)
    peer = hold_ends(stack, target)
    monkeypatch.setattr(tools, "find", lambda name: str(fake))
    for copy in ("pull.cached", "push.cached"):
        with pytest.raises(RuntimeError, match="the copy has 1000000 bytes"):
            run(setting(copy, client, target), peer)


@pytest.mark.long
def test_without_cp_python_copies(run, stack, hold_ends, client, target, monkeypatch):
    peer = hold_ends(stack, target)
    monkeypatch.setattr(tools, "find", lambda name: None)
    for copy in OWN_COPIES:
        details = run(setting(copy, client, target), peer)[1]
        assert details["hash_ok"] is True
        assert details["program"].startswith("shutil.copyfile of Python 3.")


@pytest.fixture
def small_disk(tmp_path):
    """A file system on a block device, little larger than what stays free."""
    image, point = tmp_path / "image", tmp_path / "small"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(3072 * MIB)
    layout = ["-m", "0", "-N", "256", "-E", "nodiscard"]
    subprocess.run(["mke2fs", "-q", "-t", "ext4", *layout, image], check=True)
    subprocess.run(["mount", "-o", "loop", image, point], check=True)
    yield point
    subprocess.run(["umount", point], check=True)


@pytest.mark.long
@NEEDS_ROOT
def test_no_room_on_either_side_is_one_line(run, small_disk, stack, hold_ends, client, tmp_path):
    peer = hold_ends(stack, small_disk)
    with (small_disk / "full").open("wb") as file:
        space = os.statvfs(small_disk)
        os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - 2 * MIB)
    with pytest.raises(Refused, match="free some space") as caught:
        run(setting("push.cached", client, small_disk, 8 * MIB), peer)
    assert caught.value.kind == "space" and str(small_disk) in caught.value.text
    assert os.listdir(peer.folder) == [source_name(peer.folder)]

    other = tmp_path / "other"
    other.mkdir()
    peer = hold_ends(stack, other)
    with pytest.raises(Refused, match="free some space") as caught:
        run(setting("pull.cached", small_disk, other, 8 * MIB), peer)
    assert caught.value.kind == "space" and str(small_disk) in caught.value.text


@NEEDS_ROOT
def test_a_mount_that_becomes_read_only_is_one_line(run, stack, hold_ends, client, target):
    peer = hold_ends(stack, target)
    subprocess.run(["mount", "--bind", target, target], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True)
        with pytest.raises(Refused, match="read-only") as caught:
            run(setting("push.cached", client, target), peer)
        assert caught.value.kind == "permission" and str(target) in caught.value.text
        with (
            pytest.raises(Refused, match="read-only"),
            created_folder.hold(
                created_folder.Setting(str(target), "00aa11bb", MIB, 5.0, SEED), Endpoint()
            ),
        ):
            pass
    finally:
        subprocess.run(["umount", target], check=True)


def test_a_run_folder_that_went_away_is_one_line(run, stack, hold_ends, client, target):
    peer = hold_ends(stack, target)
    Path(peer.folder, source_name(peer.folder)).unlink()
    with pytest.raises(Refused, match=str(target)):
        run(setting("pull.cached", client, target), peer)


@pytest.mark.long
@pytest.mark.parametrize("copy", ["pull.cached", "push.cached"])
def test_a_server_that_stops_ends_the_copy_at_its_deadline(
    troubled_mount, stack, hold_ends, client, monkeypatch, copy
):
    """The mount's daemon waits for the server, and what copies waits for the daemon."""
    size = 256 * MIB if copy.startswith("pull") else 64 * MIB
    monkeypatch.setattr(created_folder, "_fill", _sparse)
    peer = hold_ends(stack, troubled_mount.folder, size)
    copying = setting(copy, client, troubled_mount.folder, size, 2.0)
    try:
        with closing(native_copy.initiate(copying, peer)) as running:
            while next(running).moved_bytes == 0:
                continue
            os.killpg(troubled_mount.smbd, signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(
                RuntimeError, match=r"after \d+ of \d+ bytes: no end within"
            ) as caught:
                list(running)
            assert time.monotonic() - began < 10
    finally:
        os.killpg(troubled_mount.smbd, signal.SIGCONT)
    assert str(troubled_mount.folder) in str(caught.value)
    # A read is let go by the kernel where the program is killed; a write under way is not.
    assert copy.startswith("pull") or "state D" in str(caught.value)


def _sparse(fd, setting, size_bytes):
    os.ftruncate(fd, size_bytes)
    return size_bytes
