"""Looking at a file of the user's changes nothing of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probes.host import page_cache
from probes.stage import Unavailable
from probes.storage import named_file, users_file


@pytest.fixture
def film(tmp_path: Path) -> Path:
    (tmp_path / "Films").mkdir()
    path = tmp_path / "Films" / "Big One.mkv"
    path.write_bytes(b"x" * 8192)
    return path


def test_it_is_found_as_the_share_spells_it(film: Path) -> None:
    told = users_file.look(str(film.parents[1]), ["films", "BIG ONE.MKV"], 1 << 30)
    assert (told["path"], told["size_bytes"]) == (str(film), 8192)


def test_two_that_differ_by_case_alone_are_not_guessed_between(film: Path) -> None:
    (film.parent / "BIG one.mkv").write_bytes(b"y")
    with pytest.raises(Unavailable, match="cannot be read"):
        users_file.look(str(film.parent), ["big one.mkv"], 1 << 30)


def test_its_time_of_access_stays(film: Path) -> None:
    os.utime(film, (1, 2))
    with named_file.opened(str(film)) as fd:
        os.read(fd, 4096)
    told = film.stat()
    assert (told.st_atime, told.st_mtime) == (1, 2)


@pytest.mark.parametrize("kind", ["folder", "fifo", "missing", "device"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "it"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    with pytest.raises(Unavailable, match="it on "):
        users_file.look(str(tmp_path), ["it"], 1 << 30)


def test_the_ratio_speaks_of_what_a_copy_reads_and_not_of_the_rest(tmp_path: Path) -> None:
    """The head of a long file may be cached from the last copy of it, the rest not."""
    film, head_bytes, size_bytes = tmp_path / "film", 4 << 20, 64 << 20
    film.write_bytes(os.urandom(size_bytes))
    with film.open("rb") as file:
        page_cache.evict(file.fileno())
        if page_cache.state(file.fileno(), size_bytes) != page_cache.CacheState(0.0, 0):
            pytest.skip("NOT TESTED: this folder's files cannot be put out of the page cache")
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        page_cache.warm(file.fileno(), head_bytes)
    head, whole = (
        users_file.look(str(tmp_path), ["film"], each)["cached_ratio"]
        for each in (head_bytes, size_bytes)
    )
    assert head == 1.0 and whole < 0.5
