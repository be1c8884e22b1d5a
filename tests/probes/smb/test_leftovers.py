"""Bounds of a search for leftovers on a share; only named ones are removed, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from probes.core.records import Endpoint
from probes.files import journal, payload
from probes.files.served_file import source_name
from probes.smb import leftovers
from probes.smb.leftovers import Setting, hold
from probes.smb.smbprotocol_session import Smb2Session
from tests.living import deadline_in

NAMES = [f"bottleneck-{number:032x}" for number in range(5)]


@pytest.fixture
def runs_share(share: Callable[..., Any]) -> Iterator[tuple[Endpoint, Path]]:
    """A share with five folders of runs."""
    with share() as (peer, folder, _):
        for name in NAMES:
            (folder / name).mkdir()
            (folder / name / source_name(name)).write_bytes(payload.make_ring(b"seed")[:100])
        yield peer, folder


def facts(peer: Endpoint, *remove: str) -> dict[str, Any]:
    with hold(Setting(0.0, remove), peer) as endpoint:
        return dict(endpoint.facts)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.long
def test_only_what_is_named_is_looked_at_and_removed(runs_share: tuple[Endpoint, Path]) -> None:
    peer, folder = runs_share
    report = facts(peer, NAMES[1])
    assert report == {"found": [], "removed": [NAMES[1]]}
    assert names(folder) == [each for each in NAMES if each != NAMES[1]]


def test_what_somebody_else_removed_is_noted_no_longer(
    runs_share: tuple[Endpoint, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's agent removes one; a folder that was not looked into stays noted."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    peer, folder = runs_share
    removed, elsewhere = NAMES[0], f"other\\{NAMES[0]}"
    for name in (removed, NAMES[1], elsewhere):
        noted = journal.enter(journal.SHARE, f"//{peer.host}:{peer.port}/{peer.share}", name)
        noted.close(is_removed=False)
    (folder / removed / source_name(removed)).unlink()
    (folder / removed).rmdir()
    facts(peer)
    assert {entry["name"] for entry, _ in journal.orphans(journal.SHARE)} == {NAMES[1], elsewhere}


def test_what_is_told_has_a_bound_and_says_so(
    runs_share: tuple[Endpoint, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "MOST_FOUND", 3)
    entries = facts(runs_share[0])["found"]
    assert [bool(each["why_left"]) for each in entries] == [False, False, True]
    assert "once more" in entries[-1]["why_left"]


def test_a_slow_server_is_left_in_time_and_each_name_told(
    runs_share: tuple[Endpoint, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, folder = runs_share
    monkeypatch.setattr(leftovers, "LOOK_SECONDS", -1.0)
    report = facts(peer, *NAMES[:2])
    assert sorted(each["path"] for each in report["found"]) == NAMES[:2]
    assert all("once more" in each["why_left"] for each in report["found"])
    assert report["removed"] == []
    assert names(folder) == NAMES


def test_what_no_run_wrote_is_removed_only_where_the_journal_names_it(
    runs_share: tuple[Endpoint, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file called source is not enough; one that was just created, and is empty, is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    peer, folder = runs_share
    for name, content in zip(NAMES[:3], (b"mine" * 100, b"old" * 100, b""), strict=True):
        (folder / name / source_name(name)).write_bytes(content)
    place = f"//{peer.host}:{peer.port}/{peer.share}"
    journal.enter(journal.SHARE, place, NAMES[1]).close(is_removed=False)
    report = facts(peer, *NAMES)
    assert sorted(report["removed"]) == NAMES[1:]
    assert [each["path"] for each in report["found"]] == NAMES[:1]
    assert "delete it by hand" in report["found"][0]["why_left"]
    assert (folder / NAMES[0] / source_name(NAMES[0])).read_bytes() == b"mine" * 100


@pytest.mark.long
def test_more_entries_than_the_bound_are_refused_and_not_cut(
    runs_share: tuple[Endpoint, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, folder = runs_share
    for number in range(9):
        (folder / NAMES[0] / f"small-{0:016x}-{number}").touch()
    monkeypatch.setattr(leftovers, "MOST_ENTRIES", 8)
    report = facts(peer, *NAMES[:2])
    (leftover,) = report["found"]
    assert leftover["path"] == NAMES[0]
    assert "more than 8 entries" in leftover["why_left"]
    assert report["removed"] == [NAMES[1]]


def test_a_folder_that_is_there_after_its_removal_is_told(
    runs_share: tuple[Endpoint, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, folder = runs_share
    session: Any = Smb2Session(peer, "").start(None, ())
    try:
        # As if its file had come after the look: a server deletes no such folder, and says nothing.
        monkeypatch.setattr(leftovers, "entries", lambda *_: iter(()))
        assert leftovers.remove(session, NAMES[0], deadline_in()) == "it is no longer empty"
        (folder / NAMES[1] / source_name(NAMES[1])).unlink()
        assert leftovers.remove(session, NAMES[1], deadline_in()) == ""
    finally:
        session.disconnect()
    assert (folder / NAMES[0] / source_name(NAMES[0])).exists()
    assert not (folder / NAMES[1]).exists()
