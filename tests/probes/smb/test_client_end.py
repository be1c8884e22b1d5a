"""The client's end of a copy: real files, their cache state, and folders that cannot take it."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from probes.core.stage import Refused
from probes.files import page_cache, payload, source_file
from probes.smb import client_end
from probes.smb.client_end import Check, FolderSink, FolderSource, MemorySink, spread

RING = payload.make_ring(b"\x01")
SIZE = 3 * 1024 * 1024 + 17


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(payload.block(RING, 0, SIZE))
    return path


@pytest.fixture
def on_disk(source: Path) -> Iterator[Path]:
    """A copy of the source on a file system whose pages can be dropped; /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder) / "source"
        path.write_bytes(source.read_bytes())
        yield path


def test_a_pull_lands_in_a_file_without_a_name(tmp_path: Path) -> None:
    with closing(FolderSink(str(tmp_path))) as sink:
        for offset in (1 << 20, 0, 2 << 20):
            sink.take(offset, payload.block(RING, offset, 1 << 20))
        sink.finish()
        assert list(tmp_path.iterdir()) == []
        check = Check(RING)
        sink.look(check, 3 << 20, 60.0)
        assert (check.intact, check.checked_bytes) == (True, 3 << 20)


def test_a_pull_leaves_no_more_to_its_last_flush_than_a_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that far behind have to be on the disk before the sink takes more."""
    waited: list[tuple[int, int]] = []

    def sync_range(fd: int, offset: int, size: int, flags: int) -> bool:
        if flags == source_file.SYNC_WRITTEN:
            waited.append((offset, size))
        return True

    monkeypatch.setattr(source_file, "sync_range", sync_range)
    step = memoryview(bytes(client_end.WRITEBACK_BYTES))
    with closing(FolderSink(str(tmp_path))) as sink:
        for number in range(6):
            sink.take(number * len(step), step)
    assert waited == [(0, len(step)), (len(step), len(step))]


@pytest.mark.parametrize("damaged", [0, 4 << 20, (11 << 20) + 12_344])
def test_one_wrong_byte_anywhere_in_a_pulled_file_is_found(tmp_path: Path, damaged: int) -> None:
    size = (11 << 20) + 12_345
    with closing(FolderSink(str(tmp_path))) as sink:
        for offset in range(0, size, 1 << 20):
            sink.take(offset, payload.block(RING, offset, min(1 << 20, size - offset)))
        right = payload.block(RING, damaged, 1)[0]
        sink.take(damaged, memoryview(bytes([right ^ 1])))
        check = Check(RING)
        sink.look(check, size, 60.0)
    assert not check.intact


def test_a_pulled_file_that_is_too_short_is_not_intact(tmp_path: Path) -> None:
    with closing(FolderSink(str(tmp_path))) as sink:
        sink.take(0, payload.block(RING, 0, 1 << 20))
        check = Check(RING)
        sink.look(check, 2 << 20, 60.0)
    assert (check.intact, check.checked_bytes) == (False, 1 << 20)


@pytest.mark.parametrize(("name", "kind"), [("nowhere", "usage"), ("file", "usage")])
def test_a_folder_that_is_none_is_the_users_to_mend(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="use another folder") as caught:
        FolderSink(str(tmp_path / name))
    assert caught.value.kind == kind


def test_a_full_folder_is_the_users_to_mend(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(FolderSink(str(tmp_path))) as sink:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
        try:
            with pytest.raises(Refused, match="not enough free space") as caught:
                sink.take(0, memoryview(bytes(2 << 20)))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.kind == "space"


def test_one_reply_in_sixteen_is_compared(tmp_path: Path) -> None:
    check = Check(RING)
    sink = MemorySink(check)
    for number in range(40):
        sink.take(number * 4096, payload.block(RING, number * 4096, 4096))
    assert (check.intact, check.checked_bytes) == (True, 3 * 4096)
    for number in range(32):
        wrong = memoryview(bytes(4096))
        sink.take(number * 4096, payload.block(RING, number * 4096, 4096) if number > 15 else wrong)
    assert not check.intact, "one wrong part stays wrong"


def parts(end: FolderSource) -> bytes:
    return b"".join(bytes(end.give(i, min(65536, SIZE - i))) for i in range(0, SIZE, 65536))


def test_a_file_is_given_whole_and_cached(source: Path) -> None:
    with closing(FolderSource(str(source), SIZE, cached=True)) as end:
        assert end.cache()["proven"]
        assert parts(end) == source.read_bytes()


def test_a_file_is_dropped_from_the_cache_and_the_proof_is_the_kernels(on_disk: Path) -> None:
    with closing(FolderSource(str(on_disk), SIZE, cached=False)) as end:
        cache = end.cache()
        fd = os.open(on_disk, os.O_RDONLY)
        state = page_cache.state(fd, SIZE)
        os.close(fd)
        assert cache["cached_ratio_before"] == (None if state is None else state.cached_ratio)
        assert cache["proven"] == (state is not None and state.cached_ratio <= 0.01)
        assert parts(end) == on_disk.read_bytes()


def test_a_file_through_proc_is_read_without_a_name(tmp_path: Path) -> None:
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(b"x" * 1000)
        file.flush()
        path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        with closing(FolderSource(path, 1000, cached=True)) as end:
            assert end.give(0, 1000) == b"x" * 1000


def test_a_file_that_is_too_short_is_refused_before_it_is_copied(source: Path) -> None:
    with pytest.raises(ValueError, match="bytes"):
        FolderSource(str(source), SIZE + 1, cached=True)


def test_a_file_that_shrinks_under_the_copy_is_an_error(source: Path) -> None:
    with closing(FolderSource(str(source), SIZE, cached=True)) as end:
        os.truncate(source, 1000)
        with pytest.raises(OSError, match="shorter"):
            end.give(0, 4096)


@pytest.mark.parametrize("size", [1, 99, 100, 101, 199, 200, 201, 2345])
def test_with_time_enough_every_byte_is_looked_at_once(size: int) -> None:
    blocks = list(spread(size, 100, 60.0))
    assert sorted(blocks) == [(start, min(size, start + 100)) for start in range(0, size, 100)]


def test_without_time_first_and_last_are_looked_at_all_the_same() -> None:
    assert list(spread(2345, 100, 0.0)) == [(0, 100), (2300, 2345)]


def test_no_two_checks_take_the_same_order() -> None:
    first, second = (list(spread(100_000, 100, 60.0)) for _ in range(2))
    assert first != second and sorted(first) == sorted(second)
