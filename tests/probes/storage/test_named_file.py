"""A file of the user's is read as it is, and nothing else is opened."""

import json
import os
import socket
from pathlib import Path

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Unavailable
from probes.files import folders, page_cache
from probes.storage import Setting, foreign_io, named_file
from probes.storage.named_file import Pass

MIB = 1 << 20


@pytest.fixture
def measure_file(drain):
    def run(path, size_bytes=1 << 40, seconds=10.0):
        options = {"path": str(path), "pattern": "file"}
        folder = str(Path(path).parent)
        setting = Setting("read", "uncached", folder, "client", size_bytes, seconds, **options)
        return drain(named_file.measure(setting, Endpoint()))

    return run


@pytest.fixture
def user_file(tmp_path):
    """8.5 MiB, flushed, last read long before it was last written."""
    path = tmp_path / "film"
    with path.open("wb") as file:
        file.write(os.urandom(8 * MIB + MIB // 2))
        file.flush()
        os.fsync(file.fileno())
    os.utime(path, (1_000_000, 2_000_000))
    return path


def test_the_whole_blocks_of_the_file_are_read_once_and_nothing_of_it_changes(
    measure_file, user_file
):
    earlier = user_file.stat()
    samples, details = measure_file(user_file)
    assert samples[-1].moved_bytes == 8 * MIB
    later = user_file.stat()
    assert (later.st_atime_ns, later.st_mtime_ns) == (earlier.st_atime_ns, earlier.st_mtime_ns)
    assert later.st_ctime_ns == earlier.st_ctime_ns
    assert details["file_bytes"] == 8 * MIB + MIB // 2
    (zone,) = details["zones"]
    assert zone["bytes_per_second"] == samples[-1].moved_bytes / samples[-1].elapsed_seconds
    if details["place"] is not None:
        assert details["place"]["size_bytes"] == 8 * MIB + MIB // 2
        assert details["place"]["unwritten_bytes"] == 0
    json.dumps(details, allow_nan=False)


def test_what_is_read_past_the_cache_is_proven_though_the_file_is_cached(measure_file, user_file):
    facts = folders.folder_facts(str(user_file.parent))
    if facts.filesystem not in ("ext4", "xfs") or facts.device is None:
        pytest.skip("needs a file system with direct I/O on a device that counts")
    _, details = measure_file(user_file)
    assert (details["direct"], details["cache"]["proven"]) == (True, True)
    assert details["device_read_bytes"] >= 8 * MIB


def test_what_was_never_written_is_told_and_its_rate_not_called_uncached(
    measure_file, tmp_path, monkeypatch
):
    device = folders.folder_facts(str(tmp_path)).device
    quiet = foreign_io.look(device)
    if quiet.device is None:
        pytest.skip("needs a device that counts")
    monkeypatch.setattr(foreign_io, "look", lambda device: quiet)
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 4096 * MIB)
    samples, details = measure_file(path, 64 * MIB)
    assert samples[-1].moved_bytes == 64 * MIB
    assert (details["device_read_bytes"], details["cache"]["proven"]) == (0, False)
    if details["place"] is not None:
        assert details["place"]["unwritten_bytes"] == 4096 * MIB


def test_size_and_time_bound_the_reading(measure_file, user_file):
    samples, _ = measure_file(user_file, 3 * MIB)
    assert samples[-1].moved_bytes == 3 * MIB


def test_nothing_but_a_regular_file_is_opened(measure_file, tmp_path):
    """Neither hangs nor opens: a FIFO has no writer, a socket no listener."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    (tmp_path / "loop").symlink_to("loop")
    for path, sentence in (
        (tmp_path / "fifo", "is a FIFO: only a regular file is read"),
        (tmp_path / "socket", "is a socket"),
        (tmp_path, "is a folder"),
        (Path(os.devnull), "is a character device"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "loop", "cannot be read"),
        ("a\0b", "cannot be read"),
        (Path("/proc/self/mountinfo"), "smaller than 1 MiB"),
    ):
        with pytest.raises(Unavailable, match=sentence):
            measure_file(path)


@pytest.mark.parametrize("depth", [1, 4])
def test_a_file_that_is_cut_meanwhile_ends_the_pass_with_a_sentence(user_file, depth):
    with user_file.open("rb") as file:
        run = Pass(file.fileno(), 64 * MIB, 60.0, depth)
        with pytest.raises(named_file.Shorter, match="became shorter"):
            run.wait(60.0)
        run.stop()


def test_a_pass_that_is_given_up_ends(tmp_path):
    path = tmp_path / "long"
    path.touch()
    os.truncate(path, 1 << 40)
    with path.open("rb") as file:
        run = Pass(file.fileno(), 1 << 40, 600.0)
        assert not run.wait(0.01)
        run.stop()
        assert run.wait(60.0)
        assert run.moved_bytes == len(run.latencies_seconds) * MIB


@pytest.fixture
def film(tmp_path: Path) -> Path:
    (tmp_path / "Films").mkdir()
    path = tmp_path / "Films" / "Big One.mkv"
    path.write_bytes(b"x" * 8192)
    return path


def test_it_is_found_as_the_share_spells_it(film: Path) -> None:
    file = named_file.look(str(film.parents[1]), ["films", "BIG ONE.MKV"], 1 << 30)
    assert (file["path"], file["size_bytes"]) == (str(film), 8192)


def test_two_that_differ_by_case_alone_are_not_guessed_between(film: Path) -> None:
    (film.parent / "BIG one.mkv").write_bytes(b"y")
    with pytest.raises(Unavailable, match="cannot be read"):
        named_file.look(str(film.parent), ["big one.mkv"], 1 << 30)


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
    head, whole_ratio = (
        named_file.look(str(tmp_path), ["film"], each)["cached_ratio"]
        for each in (head_bytes, size_bytes)
    )
    assert head == 1.0 and whole_ratio < 0.5
