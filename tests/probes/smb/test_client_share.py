"""The client's share: reachable with its own login, nothing else in it, gone without trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import free_space, open_files, unnamed_file
from probes.programs import samba, smbclient
from probes.smb import client_share
from probes.smb.client_share import Setting
from probes.sockets.sock_diag import plain_address
from tests import living
from tests.living import entered

ROOT = Path(__file__).resolve().parents[3]
RUN = "0123456789abcdef"
NAME = f"pushed-{RUN}-{RUN}"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: mounting needs root")


def setting(folder: Path, **changes: Any) -> Setting:
    plain = {"run": RUN, "dialect": "3.1.1", "address": "127.0.0.1", "allow": ("127.0.0.1",)}
    return Setting(folder=str(folder), **{**plain, **changes})


def put_file(peer: Endpoint, local: Path, name: str = NAME) -> None:
    with smbclient.connect(peer, peer.facts["dialect"]) as client:
        client.run(f"put {smbclient.quoted_name(str(local))} {peer.folder}\\{name}", 20)


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
        put_file(peer, local)
        assert Path(peer.facts["local_path"], NAME).read_bytes() == local.read_bytes()
        (shared,) = folder.iterdir()
        assert shared.stat().st_mode & 0o077 == 0
        assert peer.access and peer.access.password not in repr(peer)
    assert list(folder.iterdir()) == []
    with pytest.raises(Refused), smbclient.connect(peer, "3.1.1"):
        pass


def test_it_has_no_guests_and_shows_no_shares(tmp_path: Path) -> None:
    with client_share.hold(setting(tmp_path), Endpoint()) as peer:
        guest = Access(allow_guest=True)
        for access in (guest, Access("root", "x"), replace(peer.access, password="x")):
            with pytest.raises(Refused), smbclient.connect(replace(peer, access=access), "3.1.1"):
                pass
        done = subprocess.run(
            ["smbclient", "-N", "-s", "/dev/null", "-p", str(peer.port), "-L", peer.host],
            capture_output=True,
            text=True,
            check=False,
        )
        assert client_share.SHARE not in done.stdout


@pytest.mark.parametrize(
    ("demands", "key"), [({"signed": True}, "signing"), ({"encrypted": True}, "encryption")]
)
def test_it_demands_what_the_server_s_share_demands(
    tmp_path: Path, demands: dict[str, bool], key: str
) -> None:
    with client_share.hold(setting(tmp_path, **demands), Endpoint()) as peer:
        assert peer.facts[key]


@contextmanager
def serve_users_share(tmp_path: Path) -> Iterator[tuple[Endpoint, Path]]:
    shared = tmp_path / "users share"
    shared.mkdir()
    (shared / "users own").write_bytes(b"precious")
    with samba.private_samba(shared, password="x") as server:
        yield server.endpoint, shared


def test_the_user_s_own_share_gets_a_folder_for_the_time(tmp_path: Path, local: Path) -> None:
    with serve_users_share(tmp_path) as (peer, shared):
        with client_share.hold(setting(tmp_path), peer) as endpoint:
            assert endpoint.facts["engine_server"] == client_share.GIVEN
            assert Path(endpoint.facts["local_path"]) == shared / f"bottleneck-{RUN}"
            assert endpoint.facts["on_folder_disk"] is True
            put_file(endpoint, local)
            assert (shared / f"bottleneck-{RUN}" / NAME).exists()
        assert [path.name for path in shared.iterdir()] == ["users own"]


@pytest.mark.long
def test_a_folder_that_is_not_found_here_is_cleared_over_smb(
    tmp_path: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_share.served_folder, "locate", lambda name, hint: None)
    with serve_users_share(tmp_path) as (peer, shared):
        with client_share.hold(setting(tmp_path), peer) as endpoint:
            assert endpoint.facts["local_path"] == ""
            assert endpoint.facts["on_folder_disk"] is False
            put_file(endpoint, local)
        assert [path.name for path in shared.iterdir()] == ["users own"]


@pytest.mark.long
@pytest.mark.parametrize("share", [True, False], ids=["given", "private"])
def test_the_next_sweep_leaves_nothing_of_a_killed_holder(
    tmp_path: Path, local: Path, share: bool
) -> None:
    """SIGKILL: no code of the holder runs any more."""
    code = """
import json, sys, time
from probes.core.records import Access, Endpoint
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
    with serve_users_share(tmp_path) as (peer, shared):
        command = [sys.executable, "-c", code, str(peer.port if share else 0), str(folder)]
        holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        host, port, name, inside, path, user, password = json.loads(holder.stdout.readline())
        there = Endpoint(host, port, share=name, folder=inside, access=Access(user, password))
        put_file(replace(there, facts={"dialect": "3.1.1"}), local)
        assert Path(path, NAME).exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
        if not share:
            assert living.until(lambda: not open_files.listeners(host, port))
        assert living.swept(lambda: not Path(path).exists() and list(folder.iterdir()) == [])
        assert [each.name for each in shared.iterdir()] == ["users own"]


def test_where_there_is_no_smbd_there_is_no_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_share, "find_smbd", lambda: None)
    with pytest.raises(client_share.Unavailable, match="install samba, or use --client-share"):
        entered(client_share.hold(setting(tmp_path), Endpoint()))
    assert list(tmp_path.iterdir()) == []


def test_a_refused_login_leaves_nothing(tmp_path: Path) -> None:
    with serve_users_share(tmp_path) as (peer, shared):
        wrong = replace(peer, access=Access("bottleneck", "wrong"))
        with pytest.raises(Refused) as refused, client_share.hold(setting(tmp_path), wrong):
            pass
        assert refused.value.kind == "login"
        assert [each.name for each in shared.iterdir()] == ["users own"]


@pytest.mark.parametrize(
    "address", ["ALL", "192.0.2.0/24", "192.0.2.", "nas", ".example.org", "127.0.0.1 ALL", "::", ""]
)
def test_it_answers_no_more_than_single_addresses(tmp_path: Path, address: str) -> None:
    """The server's agent tells one of them; each of these opens smbd to more than one host."""
    with pytest.raises(Unavailable, match="not the IP address of one host"):
        entered(client_share.hold(setting(tmp_path, allow=("127.0.0.1", address)), Endpoint()))
    assert list(tmp_path.iterdir()) == []


def test_an_address_is_compared_without_its_scope_and_in_one_spelling() -> None:
    assert client_share.single_address("fe80:0::1%eth0") == "fe80::1"
    assert str(plain_address("::ffff:192.0.2.7")) == client_share.single_address("192.0.2.7")


@contextmanager
def nearly_full(tmp_path: Path, spare_bytes: int, opts: str = "") -> Iterator[Path]:
    """Yields a tmpfs with spare_bytes beyond the 2 GiB that have to stay free."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = free_space.reserve_bytes(0) + spare_bytes
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}{opts}", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@needs_root
def test_it_ends_when_what_is_written_to_it_comes_to_the_reserve(tmp_path: Path) -> None:
    with nearly_full(tmp_path, 24 << 20) as folder:
        large = tmp_path / "large"
        with large.open("wb") as file:
            file.truncate(4 << 30)
        with (
            pytest.raises(Refused, match="the share opened here was closed") as refused,
            client_share.hold(setting(folder), Endpoint()) as peer,
            smbclient.connect(peer, peer.facts["dialect"]) as client,
        ):
            # Far more than there is room for, and not into the run's folder.
            client.send(f"put {smbclient.quoted_name(str(large))} large")
            assert living.until(lambda: not open_files.listeners(peer.host, peer.port))
        assert refused.value.kind == "space"
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("pace", [1, 20, 100])
def test_it_ends_before_what_comes_at_one_pace_takes_from_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pace: int
) -> None:
    mib, free = 1 << 20, 5000
    total = 20_000 * mib
    monkeypatch.setattr(free_space, "space_of", lambda place: (free * mib, total))
    with samba.vanishing_folder("bottleneck-", tmp_path) as (_, folder):
        reserve = client_share._Reserve(folder, str(tmp_path))
        reserve._look()
        while not reserve._ended:
            free -= pace
            reserve._look()
    spare = free * mib - free_space.reserve_bytes(total)
    assert 0 <= spare <= 2 * pace * mib


@needs_root
def test_it_ends_when_the_files_that_are_written_to_it_take_the_last_names(tmp_path: Path) -> None:
    """Empty files need no byte: without a free inode nobody there can make another."""
    with nearly_full(tmp_path, 1 << 30, ",nr_inodes=6000") as folder:
        with (
            pytest.raises(Refused, match="the share opened here was closed"),
            client_share.hold(setting(folder), Endpoint()) as peer,
        ):
            (shared,) = folder.iterdir()
            for number in range(5600):
                (shared / f"{number}").touch()
            assert living.until(lambda: not open_files.listeners(peer.host, peer.port))
        assert list(folder.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("full", [True, False])
def test_what_takes_its_place_is_not_emptied_in_its_stead(
    tmp_path: Path, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, precious = tmp_path / "client's own", tmp_path / "victim" / "precious"
    folder.mkdir()
    precious.parent.mkdir()
    precious.write_bytes(b"x")
    closed = pytest.raises(Refused, match="the share opened here was closed")
    with closed if full else nullcontext():  # noqa: SIM117 - it is raised when the share is left
        with client_share.hold(setting(folder), Endpoint()) as peer:
            (shared,) = folder.iterdir()
            elsewhere = shared.rename(tmp_path / "moved")
            shared.symlink_to(precious.parent)
            monkeypatch.setattr(samba, "STOP_SECONDS", 0.5)
            if full:
                monkeypatch.setattr(free_space, "reserve_bytes", lambda total: 2 * total)
                assert living.until(lambda: not open_files.listeners(peer.host, peer.port))
    assert precious.read_bytes() == b"x"
    assert list(elsewhere.iterdir()) == []


def test_nothing_is_served_where_others_can_put_something_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, private = tmp_path / "everybody's", tmp_path / "private"
    folder.mkdir()
    private.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr(unnamed_file, "on_disk", lambda: str(private))
    with client_share.hold(setting(folder), Endpoint()) as peer:
        assert Path(peer.facts["local_path"]).is_relative_to(private)
        assert list(folder.iterdir()) == []
    monkeypatch.setattr(unnamed_file, "on_disk", lambda: str(folder))
    with pytest.raises(Unavailable, match=f"{folder}: .* another --folder, or --client-share"):
        entered(client_share.hold(setting(folder), Endpoint()))
    assert [*folder.iterdir(), *private.iterdir()] == []


def test_what_a_file_system_tells_at_once_of_seconds_ends_no_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZFS and btrfs do so; a fall at one look alone is the pace at which the disk gets full."""
    gib, free = 1 << 30, [10] * 250 + [6] + [4]
    bytes_free = iter(free)
    monkeypatch.setattr(free_space, "space_of", lambda place: (next(bytes_free) * gib, 20 * gib))
    with samba.vanishing_folder("bottleneck-", tmp_path) as (_, folder):
        reserve = client_share._Reserve(folder, str(tmp_path))
        for _ in free[:-1]:
            reserve._look()
            assert not reserve._ended
        reserve._look()
        assert reserve._ended


@needs_root
def test_where_nothing_may_be_written_there_is_no_share(tmp_path: Path) -> None:
    with nearly_full(tmp_path, 1 << 20) as folder:
        with pytest.raises(Unavailable, match="free at least 1 MiB more"):
            entered(client_share.hold(setting(folder), Endpoint()))
        assert list(folder.iterdir()) == []
