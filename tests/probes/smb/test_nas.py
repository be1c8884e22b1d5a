"""Shares as a NAS has them, by a checkbox: bins, printers, guests; of a run nothing stays there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files.leftovers import OnShare
from probes.smb import leftovers, run_folder
from probes.stages import small_files, smb_copy

RUN, SEED, MIB = "0123456789abcdef" * 2, "5eed", 1 << 20
NT1 = "server min protocol = NT1"
BINS = {
    "keeps the tree": (".recycle", "recycle:keeptree = yes", "recycle:versions = yes"),
    "flat, of each user": ("#recycle/%U", "recycle:touch = yes"),
    "by another name": ("Papierkorb", "recycle:keeptree = yes"),
}
DIALECTS = pytest.mark.parametrize("dialect", ["3.1.1", "smb1"])


@contextmanager
def held(peer: Endpoint, dialect: str = "") -> Iterator[Endpoint]:
    with run_folder.hold(run_folder.Setting(RUN, dialect, seed=SEED), peer) as opened:
        yield opened


def kept(folder: Path) -> list[tuple[str, int]]:
    """Files below a folder, with their sizes."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [(path.name, path.stat().st_size) for path in files]


def copies(dialect: str) -> tuple[smb_copy.Setting, smb_copy.Setting]:
    usual: dict[str, Any] = {"dialect": dialect, "end": "memory", "seconds": 20.0, "seed": SEED}
    push = smb_copy.Setting("push.cached", size_bytes=4 * MIB, **usual)
    return replace(push, fill_source=True), push


@pytest.fixture(params=BINS)
def recycling(request: pytest.FixtureRequest, share: Any) -> Iterator[tuple[Endpoint, Path, str]]:
    """A share with a recycle bin, and the bin's name."""
    place, *more = BINS[request.param]
    options = ["vfs objects = recycle", f"recycle:repository = {place}", *more]
    with share(NT1, share_options=options) as (peer, folder, _):
        (folder / "inner").mkdir()
        yield replace(peer, folder="inner"), folder, place.partition("/")[0]


@DIALECTS
def test_no_recycle_bin_keeps_anything_of_a_run(
    recycling: tuple[Endpoint, Path, str], dialect: str
) -> None:
    peer, folder, bin_folder = recycling
    with held(peer, dialect) as opened:
        assert opened.facts["bin"] == bin_folder
        for setting in copies(dialect):
            deque(smb_copy.initiate(setting, opened), maxlen=0)
        with pytest.raises(Unavailable, match=f"recycle bin .{bin_folder}. would keep"):
            next(small_files.initiate(small_files.Setting("push", 9, 99, dialect, 1.0), opened))
    assert kept(folder) == []


@DIALECTS
def test_a_push_that_breaks_off_leaves_no_byte_in_a_bin(
    recycling: tuple[Endpoint, Path, str], dialect: str
) -> None:
    peer, folder, _ = recycling
    with held(peer, dialect) as opened:
        running = smb_copy.initiate(replace(copies(dialect)[1], size_bytes=1 << 30), opened)
        next(running)
        assert next(running).moved_bytes
        running.close()
    assert kept(folder) == []


def test_cleanup_finds_what_killed_runs_left_in_a_bin(share: Any) -> None:
    options = ["vfs objects = recycle", "recycle:repository = #recycle/%U"]
    with share(share_options=options) as (peer, folder, _):
        place = folder / "#recycle" / str(peer.access.username)
        place.mkdir(parents=True)
        (place / f"source-{RUN}").write_bytes(bytes(MIB))
        (place / "source of inspiration").write_text("precious")
        with leftovers.hold(OnShare(0.0), peer) as looked:
            paths = tuple(each["path"] for each in looked.facts["found"])
        assert [path.rpartition("\\")[2] for path in paths] == [f"source-{RUN}"]
        with leftovers.hold(OnShare(0.0, paths), peer) as cleaned:
            assert cleaned.facts == {"found": [], "removed": [*paths]}
        assert kept(folder) == [("source of inspiration", 8)]


@DIALECTS
@pytest.mark.parametrize(("name", "kind"), [("share", "printer"), ("IPC$", "named pipe")])
def test_a_share_of_another_kind_gets_nothing(
    share: Any, dialect: str, name: str, kind: str
) -> None:
    options = ["printable = yes", "print command = rm %s"]
    printing = "printing = bsd", "disable spoolss = no"
    with share(NT1, *printing, share_options=options) as (peer, folder, _):
        other = replace(peer, share=name)
        with pytest.raises(Refused, match=f"is a {kind}, not a share of files") as refused:
            held(other, dialect).__enter__()
        assert refused.value.kind == "usage" and kept(folder) == []


@DIALECTS
@pytest.mark.parametrize("map_to_guest", ["Bad Password", "Bad User"])
def test_a_user_whom_the_server_makes_a_guest_ends_the_run(
    share: Any, dialect: str, map_to_guest: str
) -> None:
    with share(NT1, f"map to guest = {map_to_guest}", share_options=["guest ok = yes"]) as (
        peer,
        folder,
        _,
    ):
        nobody = replace(peer, access=Access("anna", "x", allow_guest=True))
        with pytest.raises(Refused, match="treated anna as a guest") as refused:
            held(nobody, dialect).__enter__()
        assert refused.value.kind == "login" and kept(folder) == []
        with held(replace(peer, access=Access(allow_guest=True)), dialect) as opened:
            assert opened.facts["guest"] is True
