"""A hostile server's lists of a folder's files: bounded, and safe."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from probes.smb import listing
from tests.living import within

MIB = 1 << 20


class Value:
    def __init__(self, value: Any) -> None:
        self._value = value

    def get_value(self) -> Any:
        return self._value


def listed(name: str, folder: bool = False, number: int = 0, **more: Any) -> dict[str, Value]:
    told = {
        "file_name": name.encode("utf-16-le", "surrogatepass"),
        "file_attributes": 0x10 if folder else 0x20,
        "end_of_file": 8 * MIB,
        "file_id": number,
        **more,
    }
    return {key: Value(value) for key, value in told.items()}


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is taken of a server that answers each question for a folder's names like this."""

    class Session:
        _tree = None

        def _step(self, what: str) -> Any:
            return contextlib.nullcontext()

    def walk(answer: Any, seconds: float = 60.0) -> list[listing.Entry]:
        asked: list[str] = []

        class Folder:
            def __init__(self, tree: Any, path: str, *arguments: Any) -> None:
                asked.append(path)
                self._answers: Iterator[Any] = answer(path)

            def query_directory(self, *arguments: Any) -> Any:
                try:
                    return next(self._answers)
                except StopIteration:
                    raise listing.NoSuchFile from None

            def close(self) -> None:
                pass

        monkeypatch.setattr(listing, "NoSuchFile", LookupError)
        monkeypatch.setattr(listing, "opened", Folder)
        until = within(seconds)
        found = list(listing.walk(Session(), "top", until, listing.Passed()))
        assert len(asked) <= listing.MOST_FOLDERS
        return found

    return walk


def test_ten_million_names_are_not_taken(walked: Any) -> None:
    """Nor does what is kept of them grow beyond a few megabytes."""
    batch = [listed(f"film {number}") for number in range(1000)]
    tracemalloc.start()
    found = walked(lambda path: (batch for _ in range(10_000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) <= listing.MOST_LISTED
    assert peak < 32 * MIB


def test_names_without_end_are_given_up_when_the_time_is_over(walked: Any) -> None:
    def for_ever(path: str) -> Iterator[Any]:
        while True:
            yield []

    assert walked(for_ever, 0.3) == []


def test_folders_within_folders_without_end_are_left(walked: Any) -> None:
    def nested(path: str) -> Iterator[Any]:
        yield [listed(f"{number}", folder=True) for number in range(100)]

    assert walked(nested) == []
    deepest: list[int] = []

    def deep(path: str) -> Iterator[Any]:
        deepest.append(path.count("\\"))
        yield [listed("below", folder=True)]

    assert walked(deep) == []
    assert max(deepest) <= listing.MOST_DEPTH


def test_a_folder_that_is_met_again_is_not_entered_again(walked: Any) -> None:
    asked: list[str] = []

    def circle(path: str) -> Iterator[Any]:
        asked.append(path)
        yield [listed("round", folder=True, number=7), listed("film", number=8)]

    assert len(walked(circle)) == 1
    assert asked == ["top", "top\\round"]


@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "a\x1b[2Jb", "a\nb", "..\\..\\etc", "a/b", "stream:s", "x" * 256, "a\x9bb"],
)
def test_a_name_that_is_none_is_passed_over(walked: Any, name: str) -> None:
    found = walked(lambda path: iter([[listed(name), listed("film")]]))
    assert [each.path for each in found] == ["top\\film"]


@pytest.mark.parametrize("attribute", [0x400, 0x1000, 0x40000, 0x400000], ids=hex)
def test_links_and_what_a_tape_or_a_cloud_would_have_to_bring_are_passed_over(
    walked: Any, attribute: int
) -> None:
    odd = listed("odd", file_attributes=0x20 | attribute)
    assert len(walked(lambda path: iter([[odd, listed("film")]]))) == 1
