"""A folder of the user's on real servers: whole, never out of itself, only read, nothing left."""

from __future__ import annotations

import hashlib
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.core.stage import Unavailable
from probes.stages import small_files
from tests.living import until

SIZES = {"a": 3, "b/empty": 0, "b/c/large": 5 << 20, "b/c/z": 70_000, "d/x": 16_384}


def fill(top: Path) -> Path:
    """Fills a folder with files of many sizes, and with entries that are not copied."""
    for name, size in SIZES.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    return top


def add_specials(top: Path, outside: Path) -> int:
    """Adds links that lead out, a FIFO and a socket; returns their number."""
    (outside / "secret").write_bytes(b"not yours")
    (top / "link").symlink_to(outside / "secret")
    (top / "b" / "folder").symlink_to(outside)
    os.mkfifo(top / "fifo")
    return 3


def state(top: Path) -> dict[str, Any]:
    """Returns all of a folder's state that a copy could change."""
    return {
        str(path): (
            path.lstat().st_mtime_ns,
            hashlib.md5(path.read_bytes()).hexdigest()
            if path.is_file() and not path.is_symlink()
            else "",
        )
        for path in sorted(top.rglob("*"))
    }


def setting(verb: str, tree: str, dialect: str = "3.1.1", **changes: Any) -> small_files.Setting:
    fields = {"seconds": 20.0, "size_bytes": 1 << 30, "tree": tree, **changes}
    return small_files.Setting(verb, 0, 0, dialect, **fields)


@pytest.mark.parametrize(
    ("dialect", "security"), [("smb1", ""), ("2.0.2", ""), ("3.1.1", "signed")]
)
def test_all_files_are_pushed_and_gone_again(
    run_folder: Any, run_stage: Any, tmp_path: Path, dialect: str, security: str
) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    outside.mkdir()
    special = add_specials(fill(tree), outside)
    state_before = state(tree)
    with run_folder() as (peer, folder, _):
        one = setting("push", "mine", dialect, security=security)
        samples, details = run_stage(small_files, one, replace(peer, path=str(tree)))
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source-0abc"]
    assert samples[-1].moved_bytes == details["bytes"] == sum(SIZES.values())
    assert details["files"] == len(SIZES) and details["whole"] is True
    assert (details["special_files"], details["unreadable_files"]) == (special, 0)
    assert details["seconds_per_file"] == pytest.approx(details["seconds"] / len(SIZES))
    assert state(tree) == state_before


def test_a_folder_of_the_share_is_pulled_and_only_read(
    run_folder: Any, run_stage: Any, tmp_path: Path
) -> None:
    with run_folder() as (peer, folder, _):
        fill(folder / "media")
        state_before = state(folder / "media")
        there = f"{folder.name}\\media"
        samples, details = run_stage(
            small_files, setting("pull", there, folder=str(tmp_path)), peer
        )
        assert state(folder / "media") == state_before
    assert samples[-1].moved_bytes == details["bytes"] == sum(SIZES.values())
    assert (details["files"], details["whole"]) == (len(SIZES), True)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read_is_counted_and_named(
    run_folder: Any, run_stage: Any, tmp_path: Path
) -> None:
    with run_folder() as (peer, folder, _):
        fill(folder / "media")
        # Samba makes a file unreadable to its user that the veto says nothing of
        (folder / "media" / "a").chmod(0)
        (folder / "media" / "gone").symlink_to(tmp_path / "nothing")
        details = run_stage(
            small_files, setting("pull", f"{folder.name}\\media", folder=str(tmp_path)), peer
        )[1]
    unreadable = 0 if os.geteuid() == 0 else 1
    assert details["files"] == len(SIZES) - unreadable
    assert details["unreadable_files"] >= unreadable


@pytest.mark.parametrize("verb", small_files.VERBS)
def test_a_tree_ends_with_its_time_or_its_room(
    run_folder: Any, run_stage: Any, tmp_path: Path, verb: str
) -> None:
    with run_folder() as (peer, folder, _):
        tree = fill(folder / "media")
        tree_name = {"push": "mine", "pull": f"{folder.name}\\media"}[verb]
        there = replace(peer, path=str(tree) if verb == "push" else "")
        one = setting(verb, tree_name, folder=str(tmp_path), size_bytes=100_000)
        details = run_stage(small_files, one, there)[1]
        assert details["whole"] is False and details["bytes"] <= 100_000
        assert details["files"] == len(SIZES) - 1
        if verb == "push":
            late = replace(one, seconds=0.001, size_bytes=1 << 30)
            assert run_stage(small_files, late, there)[1]["files"] < len(SIZES)


def test_no_file_is_no_measurement(run_folder: Any, run_stage: Any, tmp_path: Path) -> None:
    with run_folder() as (peer, _, _), pytest.raises(Unavailable, match="no file was copied"):
        run_stage(small_files, setting("push", "mine"), replace(peer, path=str(tmp_path)))


@pytest.mark.parametrize("dialect", ["smb1", "3.1.1"])
def test_the_content_is_that_of_the_files_and_kill_9_leaves_nothing(
    run_folder: Any, tmp_path: Path, dialect: str
) -> None:
    contents = {f"{number:05}".encode() * 200 for number in range(3000)}
    for content in contents:
        (tmp_path / content[:5].decode()).write_bytes(content)
    with run_folder() as (peer, folder, _):
        child = os.fork()
        if child == 0:
            one = setting("push", "mine", dialect, seconds=60.0)
            for _ in small_files.initiate(one, replace(peer, path=str(tmp_path))):
                pass
            os._exit(0)
        assert until(lambda: len([*folder.glob("*/small-*")]) >= 10)
        os.kill(child, signal.SIGSTOP)
        there = [path.read_bytes() for path in folder.glob("*/small-*")]
        assert len(set(there) & contents) >= len(there) - 1 > 0
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert until(lambda: not [*folder.glob("*/small-*")])
