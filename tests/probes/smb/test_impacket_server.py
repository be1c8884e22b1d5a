"""impacket's server: one share for one user from named hosts, gone with its starter."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from probes.drivers import smbclient
from probes.records import Access, Endpoint
from probes.smb.impacket_server import DIALECT, impacket_server
from probes.stage import Refused, Unavailable

ACCESS = Access("bottleneck", "correct horse 47 %&'\"$")


def served(folder: Path, *allow: str):
    allowed = allow or ("127.0.0.1",)
    return impacket_server(folder, share="share", access=ACCESS, address="127.0.0.1", allow=allowed)


def test_its_user_puts_and_gets(tmp_path: Path) -> None:
    folder = tmp_path / "100 %s"
    folder.mkdir()
    content = os.urandom(300_000)
    (tmp_path / "source").write_bytes(content)
    with served(folder) as (peer, _), smbclient.connected(peer, DIALECT) as client:
        client.run(f"put {smbclient.quoted(str(tmp_path / 'source'))} there", 20)
        assert (folder / "there").read_bytes() == content
        client.run(f"get there {smbclient.quoted(str(tmp_path / 'back'))}", 20)
    assert (tmp_path / "back").read_bytes() == content


@pytest.mark.long
def test_nobody_else_gets_in(tmp_path: Path) -> None:
    with served(tmp_path) as (peer, _):
        for access in (Access("bottleneck", "wrong"), Access("other", ACCESS.password), Access()):
            there = replace(peer, access=access)
            with (
                pytest.raises((Refused, Unavailable, ConnectionError)),
                smbclient.connected(there, DIALECT) as client,
            ):
                client.run("ls", 10)


def test_other_hosts_are_turned_away(tmp_path: Path) -> None:
    with (
        served(tmp_path, "127.0.0.2") as (peer, _),
        pytest.raises(Unavailable, match="blocks this host"),
        smbclient.connected(peer, DIALECT),
    ):
        pass


def test_without_impacket_the_reason_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "impacket", None)
    with pytest.raises(Unavailable, match=r"copy-bottleneck\[smb1\]"), served(tmp_path):
        pass


def test_an_address_that_is_not_ours_is_a_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(Unavailable, match=r"192\.0\.2\.77"),
        impacket_server(tmp_path, share="share", access=ACCESS, address="192.0.2.77", allow=()) as (
            peer,
            _,
        ),
    ):
        assert isinstance(peer, Endpoint)
