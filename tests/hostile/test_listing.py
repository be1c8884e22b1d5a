"""A hostile server's lists of a folder's files: bounded, and safe."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from probes.smb import listing
from probes.smb.smbprotocol_connection import Entry as Listed
from tests.living import within

MIB = 1 << 20


def named(name: str, folder: bool = False, number: int = 0, attributes: int = 0) -> Listed:
    told = attributes or (0x10 if folder else 0x20)
    return Listed(name, told, 8 * MIB, datetime(2026, 11, 1, tzinfo=UTC), number)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is taken of a server that lists each folder like this."""

    class Session:
        _tree = None

        def _step(self, what: str) -> Any:
            return contextlib.nullcontext()

    def walk(answer: Any, seconds: float = 60.0) -> list[listing.Entry]:
        asked: list[str] = []

        def opened(tree: Any, path: str, *arguments: Any) -> str:
            asked.append(path)
            return path

        def listed(path: str, pattern: str, most: int, until: float) -> list[Listed]:
            return list(answer(path))

        monkeypatch.setattr(listing, "open_path", opened)
        monkeypatch.setattr(listing, "list_folder", listed)
        until = within(seconds)
        found = list(listing.walk(Session(), "top", until, listing.Passed()))
        assert len(asked) <= listing.MOST_FOLDERS
        return found

    return walk


def test_no_more_names_are_taken_than_a_tree_may_have(walked: Any) -> None:
    paths = walked(lambda path: [named(f"film {number}") for number in range(30_000)])
    assert len(paths) <= listing.MOST_LISTED


def test_folders_within_folders_without_end_are_left(walked: Any) -> None:
    def nested(path: str) -> Iterator[Any]:
        return iter([named(f"{number}", folder=True) for number in range(100)])

    assert walked(nested) == []
    deepest: list[int] = []

    def deep(path: str) -> Iterator[Any]:
        deepest.append(path.count("\\"))
        yield named("below", folder=True)

    assert walked(deep) == []
    assert max(deepest) <= listing.MOST_DEPTH


def test_a_folder_that_is_met_again_is_not_entered_again(walked: Any) -> None:
    asked: list[str] = []

    def circle(path: str) -> Iterator[Any]:
        asked.append(path)
        yield from (named("round", folder=True, number=7), named("film", number=8))

    assert len(walked(circle)) == 1
    assert asked == ["top", "top\\round"]


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "a\x1b[2Jb", "a\nb", "..\\..\\etc", "a/b", "stream:s", "x" * 256, "a\x9bb"],
)
def test_a_name_that_is_none_is_passed_over(walked: Any, name: str) -> None:
    paths = walked(lambda path: [named(name), named("film")])
    assert [each.path for each in paths] == ["top\\film"]


@pytest.mark.parametrize("attribute", [0x400, 0x1000, 0x40000, 0x400000], ids=hex)
def test_links_and_what_a_tape_or_a_cloud_would_have_to_bring_are_passed_over(
    walked: Any, attribute: int
) -> None:
    odd = named("odd", attributes=0x20 | attribute)
    assert len(walked(lambda path: [odd, named("film")])) == 1
