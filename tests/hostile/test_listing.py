"""A hostile server's lists of a folder's files: bounded, and safe."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from probes.smb import listing
from probes.smb.smbprotocol_connection import Entry as Listed
from tests.living import deadline_in

MIB = 1 << 20


def listed_entry(name: str, folder: bool = False, number: int = 0, attributes: int = 0) -> Listed:
    bits = attributes or (0x10 if folder else 0x20)
    return Listed(name, bits, 8 * MIB, datetime(2026, 11, 1, tzinfo=UTC), number)


@pytest.fixture
def walk_server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a walk of a server that lists each folder like this."""

    class Session:
        _tree = None

        def _step(self, what: str) -> Any:
            return contextlib.nullcontext()

    def walk(answer: Any, seconds: float = 60.0) -> list[listing.Entry]:
        opened_paths: list[str] = []

        def opened(tree: Any, path: str, *arguments: Any) -> str:
            opened_paths.append(path)
            return path

        def listed(path: str, pattern: str, limit: int, until: float) -> list[Listed]:
            return list(answer(path))

        monkeypatch.setattr(listing, "open_path", opened)
        monkeypatch.setattr(listing, "list_folder", listed)
        until = deadline_in(seconds)
        entries = list(listing.walk(Session(), "top", until, listing.SkippedFiles()))
        assert len(opened_paths) <= listing.MOST_FOLDERS
        return entries

    return walk


def test_no_more_names_are_taken_than_a_tree_may_have(walk_server: Any) -> None:
    paths = walk_server(lambda path: [listed_entry(f"film {number}") for number in range(30_000)])
    assert len(paths) <= listing.MOST_LISTED


def test_folders_within_folders_without_end_are_left(walk_server: Any) -> None:
    def nested(path: str) -> Iterator[Any]:
        return iter([listed_entry(f"{number}", folder=True) for number in range(100)])

    assert walk_server(nested) == []
    deepest: list[int] = []

    def deep(path: str) -> Iterator[Any]:
        deepest.append(path.count("\\"))
        yield listed_entry("below", folder=True)

    assert walk_server(deep) == []
    assert max(deepest) <= listing.MOST_DEPTH


def test_a_folder_that_is_met_again_is_not_entered_again(walk_server: Any) -> None:
    opened_paths: list[str] = []

    def circle(path: str) -> Iterator[Any]:
        opened_paths.append(path)
        yield from (listed_entry("round", folder=True, number=7), listed_entry("film", number=8))

    assert len(walk_server(circle)) == 1
    assert opened_paths == ["top", "top\\round"]


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "a\x1b[2Jb", "a\nb", "..\\..\\etc", "a/b", "stream:s", "x" * 256, "a\x9bb"],
)
def test_a_name_that_is_none_is_passed_over(walk_server: Any, name: str) -> None:
    paths = walk_server(lambda path: [listed_entry(name), listed_entry("film")])
    assert [each.path for each in paths] == ["top\\film"]


@pytest.mark.parametrize("attribute", [0x400, 0x1000, 0x40000, 0x400000], ids=hex)
def test_links_and_what_a_tape_or_a_cloud_would_have_to_bring_are_passed_over(
    walk_server: Any, attribute: int
) -> None:
    odd = listed_entry("odd", attributes=0x20 | attribute)
    assert len(walk_server(lambda path: [odd, listed_entry("film")])) == 1
