"""Files are copied several at once on a real server, nothing of them stays; a command follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probes.core.stage import Refused, RunFacts, Unavailable
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
        assert details["hash_ok"] and details["signing"]
        assert details["command"]["text"].startswith("rclone copy --transfers ")
        assert [path.name for path in folder.rglob("*")] == ["bottleneck-0abc", "source-0abc"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("kind", "ends_run"), [("crowded", False), ("login", True)])
def test_a_server_that_takes_no_more_sessions_ends_the_counts_but_a_login_ends_the_run(
    run_folder: Any, run_stage: Any, monkeypatch: Any, kind: str, ends_run: bool
) -> None:
    opened: list[Any] = []

    def open_few(*words: Any) -> Any:
        opened.append(words)
        if len(opened) > 5:
            raise Refused(kind, "no more")
        return open_session(*words)

    monkeypatch.setattr(parallel, "open_session", open_few)
    with run_folder() as (peer, folder, _):
        if ends_run:
            with pytest.raises(Refused, match="no more"):
                run_stage(parallel, SETTING, peer)
        else:
            _, details = run_stage(parallel, SETTING, peer)
            assert [each["files_at_once"] for each in details["cells"]] == [1, 4]
    assert list(folder.iterdir()) == []


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
    ("program", "cells", "one_connection", "text", "seconds", "one_seconds"),
    [
        (parallel.RCLONE, SLOW, 1e9, "rclone copy --transfers 16 SRC DST", 4.096 + 0.85, 65.636),
        (parallel.RCLONE, FAST, 1e9, "rclone copy --transfers 1 SRC DST", 6.058, 6.058),
        (parallel.ROBOCOPY, SLOW, 1e9, "robocopy SRC DST /E /MT:16", 4.096, 65.536),
        # A window, which each connection has one of, holds back what one connection carries.
        (parallel.ROBOCOPY, SLOW, 1.1e6, "robocopy SRC DST /E", 65.536, 65.536),
        (parallel.RCLONE, {1: 1e6}, 1e9, "rclone copy --transfers 1 SRC DST", 65.636, 65.636),
    ],
)
def test_the_command_is_that_of_the_fewest_files_at_once_that_are_about_as_fast_as_any(
    program: Any,
    cells: Any,
    one_connection: float,
    text: str,
    seconds: float,
    one_seconds: float,
) -> None:
    command = parallel.best_command(program, 65536, cells, one_connection, login=0.1)
    assert command["text"] == text
    assert command["seconds"] == pytest.approx(seconds, rel=1e-3)
    assert command["one_at_a_time_seconds"] == pytest.approx(one_seconds, rel=1e-3)
    assert command["at_least"] == (program is parallel.ROBOCOPY)
