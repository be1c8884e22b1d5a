"""Files that nobody read lately, on a real share; tests/hostile has what a hostile server lists."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes import smb_copy
from probes.records import Endpoint
from probes.smb import cold_files
from probes.smb.login import open_session
from probes.smb.session import Source
from probes.stage import Refused, Unavailable

MIB = 1 << 20
DAY = 86400.0


def old(path: Path, days: float, size: int = 2 * MIB, byte: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(byte * size)
    then = path.stat().st_mtime - days * DAY
    os.utime(path, (then, then))
    return path


def picked(peer: Endpoint, size_bytes: int = 64 * MIB, least: int = MIB, folder: str = "") -> Any:
    with open_session(peer, "3.1.1") as session:
        return cold_files.idle_files(session, folder or peer.folder, least, size_bytes)


def copied(run_stage: Any, peer: Endpoint, tmp_path: Path, **more: Any) -> Any:
    told = {"end": "folder", "size_bytes": 64 * MIB, "seconds": 60.0, "seed": "00ff11"}
    given = {"folder": str(tmp_path), "least_bytes": MIB, "cold_from": peer.folder, **told, **more}
    setting = smb_copy.Setting(copy="pull.uncached", dialect="3.1.1", **given)
    return run_stage(smb_copy, setting, peer)


def test_the_oldest_come_first_and_no_more_than_is_asked_for(run_folder: Any) -> None:
    with run_folder() as (peer, folder, _):
        old(folder / "year", 400)
        old(folder / "below" / "month", 30)
        old(folder / "week", 7)
        old(folder / "small", 900, MIB - 1)
        old(folder / "today", 0)
        all_of_them = picked(replace(peer, folder=folder.name))
        first = picked(replace(peer, folder=folder.name), 3 * MIB)
    names = [each.path.rpartition("\\")[2] for each in all_of_them.files]
    assert names == ["year", "month", "week"]
    assert all_of_them.idle_seconds == pytest.approx(7 * DAY, abs=600)
    assert [each.size_bytes for each in first.files] == [2 * MIB, MIB]
    assert first.idle_seconds == pytest.approx(30 * DAY, abs=600)


def test_they_are_read_one_behind_the_other_and_nothing_of_them_is_told(
    run_folder: Any, run_stage: Any, tmp_path: Path
) -> None:
    with run_folder() as (peer, folder, _):
        for number in range(5):
            old(folder / f"secret {number}", 10 + number, 2 * MIB + number * 1000)
        before = {each: each.stat() for each in folder.glob("secret*")}
        peer_of_all = replace(peer, facts={})
        samples, details = copied(run_stage, peer_of_all, tmp_path, cold_from=folder.name)
        after = {each: each.stat() for each in folder.glob("secret*")}
    assert samples[-1].moved_bytes == 5 * 2 * MIB
    cache = details["cache"]
    assert (cache["files"], cache["proven"], cache["requested"]) == (5, False, "uncached")
    assert cache["idle_seconds"] == pytest.approx(10 * DAY, abs=600)
    assert "hash_ok" not in details
    assert "secret" not in repr(details)
    assert len(before) == 5
    for each, then in before.items():
        assert after[each].st_mtime_ns == then.st_mtime_ns
        assert after[each].st_ctime_ns == then.st_ctime_ns
    assert not list(tmp_path.iterdir())


def test_the_bytes_are_those_of_the_files_in_their_order(
    run_folder: Any, run_stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = bytearray(6 * MIB)
    monkeypatch.setattr(
        smb_copy.FolderSink,
        "take",
        lambda self, offset, view: kept.__setitem__(slice(offset, offset + len(view)), view),
    )
    with run_folder() as (peer, folder, _):
        for number, byte in enumerate(b"cba"):
            old(folder / f"{number}", 10 + number, 2 * MIB, bytes([byte]))
        copied(run_stage, peer, tmp_path, cold_from=folder.name)
    assert kept == b"a" * 2 * MIB + b"b" * 2 * MIB + b"c" * 2 * MIB


def test_no_link_is_followed_round_in_a_circle_and_no_file_is_read_twice(run_folder: Any) -> None:
    with run_folder("follow symlinks = yes") as (peer, folder, _):
        old(folder / "a" / "film", 40)
        (folder / "a" / "again").symlink_to(folder)
        (folder / "a" / "film 2").symlink_to(folder / "a" / "film")
        found = picked(replace(peer, folder=""), folder="a")
    assert len(found.files) == 1


def test_a_folder_without_such_files_says_so(run_folder: Any) -> None:
    with run_folder() as (peer, folder, _):
        old(folder / "today", 0)
        old(folder / "small", 400, 1000)
        with pytest.raises(Unavailable, match="no file of 1 MiB or more that was not used for an"):
            picked(replace(peer, folder=folder.name))
        with pytest.raises(Refused, match="list a folder of --cold-from"):
            picked(peer, folder=f"{folder.name}\\nowhere")


def test_what_vanishes_or_is_forbidden_meanwhile_is_passed_over(
    run_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_folder() as (peer, folder, _):
        gone = old(folder / "gone", 400)
        old(folder / "there", 30)
        real = cold_files.heapq.nsmallest

        def chosen(*arguments: Any) -> Any:
            found = real(*arguments)
            gone.unlink()
            return found

        monkeypatch.setattr(cold_files.heapq, "nsmallest", chosen)
        found = picked(replace(peer, folder=folder.name))
    assert [each.path.rpartition("\\")[2] for each in found.files] == ["there"]


def test_a_file_that_shrinks_under_the_copy_ends_it_in_one_line_without_its_name(
    run_folder: Any, run_stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_folder() as (peer, folder, _):
        film = old(folder / "secret", 400, 8 * MIB)
        real = cold_files.idle_files

        def shrunk(*arguments: Any) -> Source:
            found = real(*arguments)
            os.truncate(film, MIB)
            return found

        monkeypatch.setattr(cold_files, "idle_files", shrunk)
        with pytest.raises(Exception, match=r"pull\.uncached failed after .*END_OF_FILE") as told:
            copied(run_stage, peer, tmp_path, cold_from=folder.name)
    assert "secret" not in str(told.value)


def test_the_source_past_the_cache_is_the_runs_own_file(
    run_folder: Any, run_stage: Any, tmp_path: Path
) -> None:
    with run_folder(source_bytes=2 * MIB) as (peer, _, _):
        more = {"cold_from": "", "past_cache": True, "size_bytes": 2 * MIB}
        samples, details = copied(run_stage, peer, tmp_path, **more)
    assert samples[-1].moved_bytes == 2 * MIB
    assert details["hash_ok"] is True
    assert details["cache"]["proven"] is False


def test_a_read_goes_to_the_file_and_the_place_in_it(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.turn(b"2" * 16, 3 * MIB)
    pipe.read(5 * MIB, memoryview(bytearray(100)))
    asked = peer.take()
    size, offset = struct.unpack_from("<IQ", asked, 64 + 4)
    assert (size, offset, asked[80:96]) == (100, 2 * MIB, b"2" * 16)
