"""The client's share: reachable with its own login, nothing else in it, gone without trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.drivers import samba, smbclient
from probes.host import listeners
from probes.records import Access, Endpoint
from probes.smb import client_share
from probes.smb.client_share import Setting
from probes.stage import Refused

ROOT = Path(__file__).resolve().parents[3]
RUN = "0123456789abcdef"
NAME = f"pushed-{RUN}"


def setting(folder: Path, **more: Any) -> Setting:
    plain = {"run": RUN, "dialect": "3.1.1", "address": "127.0.0.1", "allow": ("127.0.0.1",)}
    return Setting(folder=str(folder), **{**plain, **more})


def put(peer: Endpoint, local: Path, name: str = NAME) -> None:
    with smbclient.connected(peer, peer.facts["dialect"]) as client:
        client.run(f"put {smbclient.quoted(str(local))} {peer.folder}\\{name}", 20)


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not done():
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.02)


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "to put"
    path.write_bytes(os.urandom(100_000))
    return path


def test_a_private_share_serves_the_server_and_goes(tmp_path: Path, local: Path) -> None:
    folder = tmp_path / "client's own"
    folder.mkdir()
    with client_share.hold(setting(folder), Endpoint()) as peer:
        assert peer.facts["engine_server"] == client_share.SAMBA
        assert peer.facts["dialect"] == "3.1.1" and peer.facts["free_bytes"] > 0
        put(peer, local)
        assert Path(peer.facts["local_path"], NAME).read_bytes() == local.read_bytes()
        (made,) = folder.iterdir()
        assert made.stat().st_mode & 0o077 == 0
        assert peer.access and peer.access.password not in repr(peer)
    assert list(folder.iterdir()) == []
    with pytest.raises(Refused), smbclient.connected(peer, "3.1.1"):
        pass


def test_it_has_no_guests_and_shows_no_shares(tmp_path: Path) -> None:
    with client_share.hold(setting(tmp_path), Endpoint()) as peer:
        guest = Access(allow_guest=True)
        for access in (guest, Access("root", "x"), replace(peer.access, password="x")):
            with pytest.raises(Refused), smbclient.connected(replace(peer, access=access), "3.1.1"):
                pass
        done = subprocess.run(
            ["smbclient", "-N", "-s", "/dev/null", "-p", str(peer.port), "-L", peer.host],
            capture_output=True,
            text=True,
            check=False,
        )
        assert client_share.SHARE not in done.stdout


@pytest.mark.parametrize(
    ("more", "key"), [({"signed": True}, "signing"), ({"encrypted": True}, "encryption")]
)
def test_it_demands_what_the_server_s_share_demands(
    tmp_path: Path, more: dict[str, bool], key: str
) -> None:
    with client_share.hold(setting(tmp_path, **more), Endpoint()) as peer:
        assert peer.facts[key]


@contextmanager
def given(tmp_path: Path) -> Iterator[tuple[Endpoint, Path]]:
    shared = tmp_path / "users share"
    shared.mkdir()
    (shared / "users own").write_bytes(b"precious")
    with samba.private_samba(shared, password="x") as server:
        access = Access(server.username, "x")
        yield Endpoint(server.host, server.port, share=server.share, access=access), shared


def test_the_user_s_own_share_gets_a_folder_for_the_time(tmp_path: Path, local: Path) -> None:
    with given(tmp_path) as (peer, shared):
        with client_share.hold(setting(tmp_path), peer) as held:
            assert held.facts["engine_server"] == client_share.GIVEN
            assert Path(held.facts["local_path"]) == shared / f"bottleneck-{RUN}"
            assert held.facts["on_folder_disk"] is True
            put(held, local)
            assert (shared / f"bottleneck-{RUN}" / NAME).exists()
        assert [path.name for path in shared.iterdir()] == ["users own"]


def test_a_folder_that_is_not_found_here_is_cleared_over_smb(
    tmp_path: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_share.locate, "locate", lambda name, hint: None)
    with given(tmp_path) as (peer, shared):
        with client_share.hold(setting(tmp_path), peer) as held:
            assert held.facts["local_path"] == ""
            assert held.facts["on_folder_disk"] is False
            put(held, local)
        assert [path.name for path in shared.iterdir()] == ["users own"]


@pytest.mark.parametrize("share", [True, False], ids=["given", "private"])
def test_nothing_is_left_when_its_holder_is_killed(
    tmp_path: Path, local: Path, share: bool
) -> None:
    """SIGKILL: no code of the holder runs any more."""
    code = """
import json, sys, time
from probes.records import Access, Endpoint
from probes.smb import client_share
port, folder = int(sys.argv[1]), sys.argv[2]
given = Endpoint("127.0.0.1", port, share="share", access=Access("bottleneck", "x"))
setting = client_share.Setting("0123456789abcdef", "3.1.1", folder, "127.0.0.1", ("127.0.0.1",))
with client_share.hold(setting, given if port else Endpoint()) as held:
    told = [held.host, held.port, held.share, held.folder, held.facts["local_path"]]
    print(json.dumps([*told, held.access.username, held.access.password]), flush=True)
    time.sleep(60)
"""
    import json

    folder = tmp_path / "client's own"
    folder.mkdir()
    with given(tmp_path) as (peer, shared):
        command = [sys.executable, "-c", code, str(peer.port if share else 0), str(folder)]
        holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        host, port, name, inside, path, user, password = json.loads(holder.stdout.readline())
        there = Endpoint(host, port, share=name, folder=inside, access=Access(user, password))
        put(replace(there, facts={"dialect": "3.1.1"}), local)
        assert Path(path, NAME).exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
        wait_until(lambda: not Path(path).exists())
        wait_until(lambda: list(folder.iterdir()) == [])
        if not share:
            wait_until(lambda: not listeners.listeners(host, port))
        assert [each.name for each in shared.iterdir()] == ["users own"]


def test_where_there_is_no_smbd_impacket_serves(
    tmp_path: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_share, "find_smbd", lambda: None)
    folder = tmp_path / "client's own"
    folder.mkdir()
    with client_share.hold(setting(folder), Endpoint()) as peer:
        assert peer.facts["engine_server"] == client_share.IMPACKET
        assert peer.facts["dialect"] == "2.0.2" and peer.facts["free_bytes"] > 0
        put(peer, local)
        assert Path(peer.facts["local_path"], NAME).read_bytes() == local.read_bytes()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("more", [{"signed": True}, {"encrypted": True}])
def test_impacket_is_no_match_for_what_is_protected(
    tmp_path: Path, more: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_share, "find_smbd", lambda: None)
    with (
        pytest.raises(client_share.Unavailable, match="install samba on the client"),
        client_share.hold(setting(tmp_path, **more), Endpoint()),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_refused_login_leaves_nothing(tmp_path: Path) -> None:
    with given(tmp_path) as (peer, shared):
        wrong = replace(peer, access=Access("bottleneck", "wrong"))
        with pytest.raises(Refused) as refused, client_share.hold(setting(tmp_path), wrong):
            pass
        assert refused.value.kind == "login"
        assert [each.name for each in shared.iterdir()] == ["users own"]
