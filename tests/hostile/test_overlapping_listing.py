"""A hostile server's listing of a share: refused at once, and it is the server that is named."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import edits
import pytest
from behaviour import alter
from middle import run_middle

from probes.core.stage import Refused
from probes.programs.samba import Samba, private_samba
from probes.smb import smbprotocol_connection
from probes.smb.leftovers import Setting, hold

SECRET = "Geheim-47-correct-horse"
LONGEST = 64 << 10


def entry(following: int, name: str = "film", name_bytes: int | None = None) -> bytes:
    """A FileIdFullDirectoryInformation (MS-FSCC 2.4.18)."""
    written = name.encode("utf-16-le")
    size = len(written) if name_bytes is None else name_bytes
    times = [133_000_000 * 10**9] * 4
    return struct.pack("<II6QIIQQ", following, 0, *times, 8, 8, 0x20, size, 0, 1) + written


LISTINGS = {
    "entries of 4 bytes": struct.pack("<I", 4) * (LONGEST // 4),
    "entries of 8 bytes": struct.pack("<II", 8, 0) * (LONGEST // 8),
    "of 900 KiB": struct.pack("<I", 4) * (900 << 8),
    "longer than asked for": entry(88) * (LONGEST // 88) + entry(0),
    "an entry that begins in a name": entry(80, "a" * 40) + entry(0),
    "an entry behind the listing": entry(1 << 31),
    "a name behind the listing": entry(0, name_bytes=1000),
    "a name of 4 GiB": entry(0, name_bytes=0xFFFFFFFE),
    "cut": entry(88) + entry(0)[:40],
    "empty": b"",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def server(shared: Path) -> Iterator[Samba]:
    with private_samba(shared, password=SECRET) as started:
        yield started


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
def test_a_listing_that_is_none_is_refused_and_the_server_named(
    server: Samba, listing: bytes
) -> None:
    tampers = alter("list", edits.listing(listing), every=True)
    with run_middle((server.host, server.port), tampers, SECRET.encode()) as (port, witness):
        peer = replace(server.endpoint, host="127.0.0.1", port=port)
        with pytest.raises(Refused, match="127.0.0.1/.*list .*(the server sent|invalid)"):
            hold(Setting(0.0), peer).__enter__()
        assert witness.misbehaved == 1


def test_a_file_of_the_year_60000_is_listed_as_young() -> None:
    late = struct.pack("<II6QIIQQ", 0, 0, *[(1 << 64) - 1] * 4, 8, 8, 0x20, 2, 0, 1) + b"a\0"
    (young,) = smbprotocol_connection._entries(late)
    assert (young.name, young.changed.year > 9000) == ("a", True)


def test_a_true_listing_of_many_names_is_taken_whole(server: Samba, shared: Path) -> None:
    """More than one reply holds, with names of every length that a file system takes."""
    names = {f"bottleneck-{number:016x}" for number in range(700)}
    for number, name in enumerate(sorted(names)):
        (shared / name).mkdir()
        (shared / f"bottleneck-{'x' * (number % 200)}-{number}").touch()
    with hold(Setting(0.0), server.endpoint) as folder:
        assert {each["path"] for each in folder.facts["found"]} == names
