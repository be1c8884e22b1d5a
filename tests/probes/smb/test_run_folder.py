"""The run's folder on a real share: there while it is held, gone however that ends."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.files import journal
from probes.smb.frames import SmbError
from probes.smb.login import open_session
from probes.smb.run_folder import Setting, hold
from probes.stages import smb_copy
from tests import living

RUN, SEED = "0123abcd", "5eed"
FOLDER, SOURCE = f"bottleneck-{RUN}", f"source-{RUN}"
NT1 = "server min protocol = NT1"
DIALECTS = pytest.mark.parametrize("dialect", ["", "smb1"])


def fork(work: Callable[[], object]) -> int:
    """A process of its own that does the work until it is killed."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


def kill_children(server: Any) -> None:
    children = psutil.Process(server.process_id).children(recursive=True)
    for child in children:
        # one that served a connection which is over may just be going
        with suppress(psutil.NoSuchProcess):
            child.kill()
    # smbd takes a dead process that it has not reaped for one that holds its files open
    assert living.until(lambda: not any(map(psutil.Process.is_running, children)))


def files(folder: Path) -> list[str]:
    # os.walk passes over what is removed while it looks.
    return sorted(name for _, *kinds in os.walk(folder) for names in kinds for name in names)


def hold_folder(peer: Endpoint, folder: Path, dialect: str) -> int:
    """A process of its own that holds the run's folder until it is killed."""

    def work() -> None:
        with hold(Setting(run=RUN, dialect=dialect, seed=SEED), peer):
            signal.pause()

    holder = fork(work)
    assert living.until(lambda: files(folder) == [FOLDER, SOURCE])
    return holder


@DIALECTS
def test_it_is_there_while_it_is_held_and_gone_afterwards(share: Any, dialect: str) -> None:
    with share(NT1) as (peer, folder, _):
        (folder / "mine").mkdir()
        (folder / "mine" / "precious").write_text("stays")
        with hold(Setting(run=RUN, dialect=dialect), replace(peer, folder="mine")) as endpoint:
            assert endpoint.folder == f"mine\\{FOLDER}"
            assert files(folder) == sorted(["mine", "precious", FOLDER, SOURCE])
            assert endpoint.facts["dialect"] == (dialect or "3.1.1")
            assert 0 < endpoint.facts["free_bytes"] <= endpoint.facts["total_bytes"]
            assert endpoint.facts["signing"] is None
            ways = [(i["address"], i["reached_from"]) for i in endpoint.facts["interfaces"]]
            assert ways == ([] if dialect else [(peer.host, peer.host)])
            assert json.loads(json.dumps(endpoint.facts)) == endpoint.facts
        assert files(folder) == ["mine", "precious"]


@DIALECTS
def test_a_held_folder_is_refused_to_a_second_run_of_the_same_name(
    share: Any, dialect: str
) -> None:
    with share(NT1) as (peer, folder, _):
        (folder / FOLDER).mkdir()
        with (
            pytest.raises(Exception, match="already exists"),
            hold(Setting(run=RUN, dialect=dialect), peer),
        ):
            pass
        assert files(folder) == [FOLDER]


@DIALECTS
def test_kill_9_of_the_holder_leaves_nothing(share: Any, dialect: str) -> None:
    with share(NT1) as (peer, folder, _):
        holder = hold_folder(peer, folder, dialect)
        kill(holder)
        assert living.until(lambda: files(folder) == [])


@pytest.mark.long
@pytest.mark.parametrize("copy", ["push", "pull"])
@DIALECTS
def test_kill_9_of_holder_and_running_copy_leaves_nothing(
    share: Any, dialect: str, copy: str
) -> None:
    with share(NT1) as (peer, folder, _):
        holder = hold_folder(peer, folder, dialect)
        setting = smb_copy.Setting(
            copy="push.cached",
            dialect=dialect or "3.1.1",
            end="memory",
            size_bytes=4 << 30,
            seconds=60,
            seed=SEED,
            fill_source=copy == "pull",
        )
        endpoint = replace(peer, folder=FOLDER)
        copier = fork(lambda: list(smb_copy.initiate(setting, endpoint)))
        grown = SOURCE if copy == "pull" else "pushed-*"
        assert living.until(
            lambda: any(path.stat().st_size > 64 for path in folder.glob(f"*/{grown}")), 10
        )
        kill(holder)
        time.sleep(0.2)
        kill(copier)
        assert living.until(lambda: files(folder) == [])


@DIALECTS
def test_what_a_dead_server_process_left_is_swept_and_nothing_else(
    share: Any, dialect: str
) -> None:
    with share(NT1) as (peer, folder, server):
        with hold(Setting(run=RUN, dialect=dialect), peer):
            (folder / FOLDER / f"pushed-{RUN}-0123456789abcdef").write_text("ours")
            (folder / "pushed-0123456789abcdef").write_text("not in our folder")
            kill_children(server)
        assert files(folder) == ["pushed-0123456789abcdef"]


@DIALECTS
def test_what_was_killed_with_its_server_goes_with_the_next_run_there(
    share: Any, dialect: str
) -> None:
    """The end of a container is alike, DELETE_ON_CLOSE or not; what else lies there stays."""
    with share(NT1) as (peer, folder, server):
        holder = hold_folder(peer, folder, dialect)
        kill_children(server)
        kill(holder)
        (folder / "bottleneck-0123abce").mkdir()
        assert files(folder) == [FOLDER, "bottleneck-0123abce", SOURCE]
        with hold(Setting(run="47", dialect=dialect), peer):
            assert files(folder) == ["bottleneck-0123abce", "bottleneck-47", "source-47"]
            assert not (folder / FOLDER).exists()


def test_the_folder_of_another_host_s_run_stays_for_as_long_as_that_may_take(
    share: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock may not be seen here, as on a home that NFS or sshfs serves."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    with share() as (peer, folder, _):
        (folder / FOLDER).mkdir()
        now = int((folder / FOLDER).stat().st_mtime)
        for age, stays in ((0, True), (61, False)):
            place = f"//{peer.host}:{peer.port}/{peer.share}"
            entry = journal.enter(journal.SHARE, place, FOLDER, seconds=60)
            entry.write({"boot": "another", "time": now - age})
            entry.close(is_removed=False)
            with hold(Setting(run="47"), peer):
                assert (folder / FOLDER).exists() == stays


def test_a_foreign_file_in_the_folder_is_left_alone(share: Any) -> None:
    with share() as (peer, folder, _):
        with pytest.raises(SmbError, match="it is not empty"), hold(Setting(run=RUN), peer):
            (folder / FOLDER / "somebody's").write_text("precious")
        assert files(folder) == sorted([FOLDER, "somebody's"])


@pytest.mark.long
def test_an_idle_session_lives_on_echoes(share: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from probes.smb import smbprotocol_connection

    monkeypatch.setattr(smbprotocol_connection, "KEEP_ALIVE_SECONDS", 0.2)
    with share() as (peer, folder, _), open_session(peer) as session:
        handle = session.create_folder("idle")
        window = session._connection.sequence_window  # type: ignore[attr-defined]
        low = window["low"]
        assert living.until(lambda: window["low"] > low + 1)
        assert session.space(handle).total_bytes > 0
        assert threading.active_count() < 20
    assert files(folder) == []


def test_a_server_that_is_gone_is_told_with_what_may_be_left(share: Any) -> None:
    with (
        share() as (peer, _, server),
        pytest.raises(RuntimeError, match="may remain there"),
        hold(Setting(run=RUN), peer) as endpoint,
    ):
        assert isinstance(endpoint, Endpoint)
        os.killpg(server.process_id, signal.SIGKILL)
        assert living.until(lambda: not psutil.pid_exists(server.process_id) or _zombie(server))


def _zombie(server: Any) -> bool:
    return bool(psutil.Process(server.process_id).status() == psutil.STATUS_ZOMBIE)


def test_a_share_that_is_read_only_is_called_that(share: Any) -> None:
    """Not only that access is denied: the share itself says what a user may do there."""
    with share(share_options=["read only = yes"]) as (peer, folder, _):
        text = f"{peer.share} is read-only for this user, .* use an account that may write.*--file "
        with pytest.raises(Refused, match=f"{text}FILE"), hold(Setting(RUN), peer):
            pass
        (folder / "a").mkdir()
        for name, mebibytes in (("small", 17), ("a/the film", 18), ("a/other", 16)):
            with (folder / name).open("wb") as file:
                file.truncate(mebibytes << 20)
        with pytest.raises(Refused, match=f"{text}'a/the film'"), hold(Setting(RUN), peer):
            pass


def test_for_pulls_of_a_users_file_a_read_only_share_will_do(share: Any) -> None:
    with share(share_options=["read only = yes"]) as (peer, folder, _):
        with hold(Setting(RUN, seed="ab" * 16, pulls_file=True), peer) as endpoint:
            assert (endpoint.folder, endpoint.facts["read_only"]) == (peer.folder, True)
        assert not any(folder.iterdir())
    with share() as (peer, _, _), hold(Setting(RUN, pulls_file=True), peer) as endpoint:
        assert "read_only" not in endpoint.facts and endpoint.folder.startswith("bottleneck-")
