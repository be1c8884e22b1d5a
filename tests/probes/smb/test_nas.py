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
from probes.files import journal, payload
from probes.files.leftovers import OnShare
from probes.smb import leftovers, run_folder
from probes.smb.login import open_session
from probes.smb.pipe import EXISTING, FILE, GENERIC_READ
from probes.stages import small_files, smb_copy

RUN, SEED, MIB = "0123456789abcdef" * 2, "5eed", 1 << 20
NT1 = "server min protocol = NT1"
SHARE_READ_AND_DELETE = 0x5
BINS = {
    "keeps the tree": (".recycle", "recycle:keeptree = yes", "recycle:versions = yes"),
    "flat, of each user": ("#recycle/%U", "recycle:touch = yes"),
}
DIALECTS = pytest.mark.parametrize("dialect", ["3.1.1", "smb1"])


@contextmanager
def hold(peer: Endpoint, dialect: str = "") -> Iterator[Endpoint]:
    with run_folder.hold(run_folder.Setting(RUN, dialect, seed=SEED), peer) as opened:
        yield opened


def sizes(folder: Path) -> list[tuple[str, int]]:
    """Files below a folder, with their sizes."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [(path.name, path.stat().st_size) for path in files]


def copies(dialect: str) -> tuple[smb_copy.Setting, smb_copy.Setting]:
    usual: dict[str, Any] = {"dialect": dialect, "end": "memory", "seconds": 20.0, "seed": SEED}
    push = smb_copy.Setting("push.cached", size_bytes=4 * MIB, **usual)
    return replace(push, fill_source=True), push


@pytest.fixture(params=BINS)
def bin_share(request: pytest.FixtureRequest, share: Any) -> Iterator[tuple[Endpoint, Path, str]]:
    """A share with a recycle bin, and the bin's name."""
    place, *vfs_options = BINS[request.param]
    options = ["vfs objects = recycle", f"recycle:repository = {place}", *vfs_options]
    with share(NT1, share_options=options) as (peer, folder, _):
        (folder / "inner").mkdir()
        yield replace(peer, folder="inner"), folder, place.partition("/")[0]


@DIALECTS
def test_no_recycle_bin_keeps_anything_of_a_run(
    bin_share: tuple[Endpoint, Path, str], dialect: str
) -> None:
    peer, folder, bin_folder = bin_share
    with hold(peer, dialect) as opened:
        assert opened.facts["bin"] == bin_folder
        for setting in copies(dialect):
            deque(smb_copy.initiate(setting, opened), maxlen=0)
        with pytest.raises(Unavailable, match=f"recycle bin .{bin_folder}. would keep"):
            next(small_files.initiate(small_files.Setting("push", 9, 99, dialect, 1.0), opened))
    assert sizes(folder) == []


@DIALECTS
def test_a_push_that_breaks_off_leaves_no_byte_in_a_bin(
    bin_share: tuple[Endpoint, Path, str], dialect: str
) -> None:
    peer, folder, _ = bin_share
    with hold(peer, dialect) as opened:
        running = smb_copy.initiate(replace(copies(dialect)[1], size_bytes=1 << 30), opened)
        next(running)
        assert next(running).moved_bytes
        running.close()
    assert sizes(folder) == []


def test_cleanup_removes_from_a_bin_what_its_content_proves_and_nothing_else(share: Any) -> None:
    """A share may have a folder `bin` for programs, and archives that are named by a hash."""
    options = ["vfs objects = recycle", "recycle:repository = #recycle/%U"]
    with share(share_options=options) as (peer, folder, _):
        place = folder / "#recycle" / str(peer.access.username)
        others = [folder / "bin" / f"source-{RUN}.tar.gz", place / f"source-{RUN[::-1]}"]
        others += [folder / "bin" / f"bottleneck-{RUN[::-1]}" / "notes", place / f"pushed-{RUN}"]
        flat, nested = place / f"source-{RUN}", place / f"bottleneck-{RUN}" / f"source-{RUN}"
        for path in (*others, flat, nested):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"precious" if path in others else payload.mark(b"seed"))
        with leftovers.hold(OnShare(0.0), peer) as looked:
            reasons = {each["path"]: each["why_left"] for each in looked.facts["found"]}
        ours = tuple(path for path, why in reasons.items() if not why)
        assert sorted(path.rpartition("\\")[2] for path in ours) == [nested.parent.name, flat.name]
        with leftovers.hold(OnShare(0.0, ours), peer) as cleaned:
            assert sorted(cleaned.facts["removed"]) == sorted(ours) and not cleaned.facts["found"]
        assert sorted(sizes(folder)) == sorted((path.name, 8) for path in others)


def test_a_bin_of_any_name_is_found_on_an_empty_share(share: Any) -> None:
    options = ["vfs objects = recycle", "recycle:repository = Papierkorb"]
    with share(share_options=options) as (peer, folder, _):
        with hold(peer) as opened:
            assert opened.facts["bin"] == "Papierkorb"
        assert sizes(folder) == []


def test_what_may_be_deleted_and_not_written_is_deleted(share: Any) -> None:
    """A backup reads it here; elsewhere the rights of the file forbid to write."""
    with share() as (peer, folder, _):
        (folder / "read").write_bytes(payload.mark(b"seed"))
        with open_session(peer) as backup, open_session(peer) as session:
            backup._open_path("read", GENERIC_READ, EXISTING, FILE, sharing=SHARE_READ_AND_DELETE)
            session.remove_file("read")
        assert sizes(folder) == []


def test_the_next_run_empties_a_bin_of_what_a_killed_one_left(share: Any) -> None:
    """The server moves open files into it, whole, when nobody is left to empty them."""
    options = ["vfs objects = recycle", "recycle:repository = .recycle", "recycle:keeptree = yes"]
    with share(share_options=options) as (peer, folder, _):
        place = folder / ".recycle" / f"bottleneck-{RUN}"
        place.mkdir(parents=True)
        (place / f"source-{RUN}").write_bytes(payload.mark(b"seed") * 100)
        (place.parent / "thesis").write_text("precious")
        name = f"//{peer.host}:{peer.port}/{peer.share}"
        journal.enter(journal.SHARE, name, place.name, seconds=60).close(is_removed=False)
        with run_folder.hold(run_folder.Setting(RUN[::-1], seed=SEED), peer):
            assert not place.exists()
        assert sizes(folder) == [("thesis", 8)]


@pytest.mark.parametrize("dialect", ["", "smb1"])
@pytest.mark.parametrize(
    ("kind", "words", "of_server", "of_share"),
    [
        ("unreachable", "refuses this host .hosts allow", "hosts deny = 127.0.0.1", ""),
        ("permission", "the server may .* deny this user or host", "", "hosts deny = 127.0.0.1"),
        ("permission", "look for `veto files`", "", "veto files = /*bottleneck*/"),
        ("permission", "look for `veto files`", "", "veto files = /source*/"),
    ],
)
def test_a_refusal_says_what_to_look_for(
    share: Any, dialect: str, kind: str, words: str, of_server: str, of_share: str
) -> None:
    with share(NT1, of_server, share_options=[of_share]) as (peer, folder, _):
        with pytest.raises(Refused, match=words) as refused:
            hold(peer, dialect).__enter__()
        assert refused.value.kind == kind and sizes(folder) == []


def test_a_server_that_answers_nothing_may_have_a_limit_of_processes(share: Any) -> None:
    limited = share("max smbd processes = 2")
    words = "closed the connection at once; look for a limit"
    with limited as (peer, _, _), pytest.raises(Refused, match=words):
        hold(peer).__enter__()


@DIALECTS
def test_one_connection_is_too_few_for_a_run(share: Any, dialect: str) -> None:
    """Each further copy would be refused like the first."""
    with (
        share(NT1, share_options=["max connections = 1"]) as (peer, _, _),
        hold(peer, dialect) as opened,
        pytest.raises(Refused, match="raise `max connections`") as refused,
    ):
        next(smb_copy.initiate(copies(dialect)[1], opened))
    assert refused.value.kind == "crowded"


@DIALECTS
def test_figures_of_free_space_that_cannot_be_are_none(
    share: Any, dialect: str, tmp_path: Path
) -> None:
    """dfree says how large all is, then what is free of it."""
    script = tmp_path / "dfree"
    script.write_text("#!/bin/sh\necho 100 900\n")
    script.chmod(0o755)
    with share(NT1, f"dfree command = {script}") as (peer, _, _), hold(peer, dialect) as opened:
        assert (opened.facts["free_bytes"], opened.facts["total_bytes"]) == (None, None)


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
            hold(other, dialect).__enter__()
        assert refused.value.kind == "usage" and sizes(folder) == []


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
            hold(nobody, dialect).__enter__()
        assert refused.value.kind == "login" and sizes(folder) == []
        with hold(replace(peer, access=Access(allow_guest=True)), dialect) as opened:
            assert opened.facts["guest"] is True
