"""Files are copied several at once on a real server, nothing of them stays; a command follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probes.core.stage import Refused, RunFacts, Unavailable
from probes.smb.frames import SmbError
from probes.smb.login import open_session
from probes.stages import parallel

SEED = "00" * 16
SETTING = parallel.Setting("pull", 65536, "3.1.1", size_bytes=1 << 30, seconds=0.1, seed=SEED)
SLOW, FAST = {1: 1e6, 4: 4e6, 16: 1.6e7}, {1: 1.1e7, 4: 1.15e7, 16: 1.2e7}
"""Bytes per second by files at once: of round trips; of a link."""


@pytest.mark.parametrize(("verb", "dialect"), [("pull", "2.1"), ("push", "3.1.1")])
def test_files_are_copied_at_once_and_removed(
    run_folder: Any, run_stage: Any, verb: str, dialect: str
) -> None:
    with run_folder() as (peer, folder, _):
        samples, details = run_stage(parallel, replace(SETTING, verb=verb, dialect=dialect), peer)
        assert samples[-1].moved_bytes >= 65536
        assert [each["files_at_once"] for each in details["cells"]] == [1, 4, 16]
        assert min(each["bytes_per_second"] for each in details["cells"]) > 0
        assert details["hash_ok"] is (True if verb == "pull" else None)
        assert details["signing"]
        assert details["command"]["text"].startswith("rclone copy --transfers ")
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source-0abc"]
    assert list(folder.iterdir()) == []


def test_a_server_that_insists_on_encryption_is_measured_encrypted(
    run_folder: Any, run_stage: Any
) -> None:
    with run_folder("server smb encrypt = required") as (peer, _, _):
        _, details = run_stage(parallel, SETTING, peer)
        assert details["encryption"] and not details["signing"] and details["hash_ok"]


CROWDED, LOGIN = Refused("crowded", "no more"), Refused("login", "no more")


@pytest.mark.parametrize("error", [CROWDED, Unavailable("no more"), SmbError("no more"), LOGIN])
def test_later_sessions_that_fail_end_the_counts_but_a_refused_login_ends_the_run(
    run_folder: Any, run_stage: Any, monkeypatch: Any, error: Exception
) -> None:
    opened: list[Any] = []

    def open_few(*words: Any) -> Any:
        opened.append(words)
        if len(opened) > 5:
            raise error
        return open_session(*words)

    monkeypatch.setattr(parallel, "open_session", open_few)
    with run_folder() as (peer, folder, _):
        # Its algorithm need not be lacking: then each login would be tried without.
        setting = replace(SETTING, security="signed")
        if error is LOGIN:
            with pytest.raises(Refused, match="no more"):
                run_stage(parallel, setting, peer)
        else:
            _, details = run_stage(parallel, setting, peer)
            assert [each["files_at_once"] for each in details["cells"]] == [1, 4]
    assert list(folder.iterdir()) == []


def test_a_session_that_breaks_in_its_copies_ends_the_counts(
    run_folder: Any, run_stage: Any, monkeypatch: Any
) -> None:
    sound, pull = list[Any](), parallel.SmallFiles.pull

    def pull_some(files: Any, number: int) -> Any:
        if files not in sound and len(set(sound)) >= 4:
            raise SmbError("the connection failed")
        sound.append(files)
        return pull(files, number)

    monkeypatch.setattr(parallel.SmallFiles, "pull", pull_some)
    with run_folder() as (peer, folder, _):
        _, details = run_stage(parallel, SETTING, peer)
        assert [each["files_at_once"] for each in details["cells"]] == [1, 4]
    assert list(folder.iterdir()) == []


def test_on_a_slow_path_only_one_file_is_copied_at_a_time(
    run_folder: Any, run_stage: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(parallel, "LONGEST_SECONDS", 0.0)
    with run_folder() as (peer, _, _):
        _, details = run_stage(parallel, SETTING, peer)
    assert [each["files_at_once"] for each in details["cells"]] == [1]
    assert details["command"]["files_at_once"] == 1


def test_a_recycle_bin_and_a_full_share_are_refused(run_folder: Any, run_stage: Any) -> None:
    with run_folder() as (peer, _, _), pytest.raises(Unavailable, match="recycle bin"):
        run_stage(parallel, SETTING, replace(peer, facts={**peer.facts, "bin": ".recycle"}))
    facts = RunFacts("", 445, "3.1.1", SEED, 60.0, True, False, 0.0, room_bytes=1 << 20)
    with pytest.raises(Unavailable, match="not enough free space"):
        parallel.fit_setting(SETTING, facts)
    assert not list(parallel.turns(replace(facts, dialect="smb1")))
    with pytest.raises(ValueError, match="no such copies"):
        next(parallel.initiate(replace(SETTING, seconds=0.0), peer))


@pytest.mark.parametrize(
    ("program", "cells", "text", "seconds", "one_seconds"),
    [
        (parallel.RCLONE, SLOW, "rclone copy --transfers 16 SRC DST", 4.096 + 0.85, 65.636),
        (parallel.RCLONE, FAST, "rclone copy --transfers 1 SRC DST", 6.058, 6.058),
        (parallel.ROBOCOPY, SLOW, "robocopy SRC DST /E /MT:16", 4.096, 65.536),
        (parallel.ROBOCOPY, FAST, "robocopy SRC DST /E", 5.958, 5.958),
        (parallel.RCLONE, {1: 1e6}, "rclone copy --transfers 1 SRC DST", 65.636, 65.636),
    ],
)
def test_the_command_is_that_of_the_fewest_files_at_once_that_are_about_as_fast_as_any(
    program: Any, cells: Any, text: str, seconds: float, one_seconds: float
) -> None:
    command = parallel.best_command(program, 65536, cells, login=0.1)
    assert command["text"] == text
    assert command["seconds"] == pytest.approx(seconds, rel=1e-3)
    assert command["one_at_a_time_seconds"] == pytest.approx(one_seconds, rel=1e-3)
    assert command["at_least"] == (program is parallel.ROBOCOPY)
