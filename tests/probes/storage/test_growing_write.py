"""Forced and sustained writes: shapes, ends, the knee, the room that stays free; no figure."""

import errno
import json
import os
import random
import threading

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import free_space
from probes.storage import Setting, growing_write
from probes.storage.growing_write import find, measure_sustained, measure_synced

MIB = 1 << 20
ROOMS = pytest.mark.parametrize(
    "room", [measure_synced, measure_sustained], ids=["synced", "sustained"]
)


@pytest.fixture(autouse=True)
def _room(monkeypatch):
    """Makes enough room free, wherever the tests run."""
    monkeypatch.setattr(free_space, "fitting_size", lambda size_bytes, folder: size_bytes)
    monkeypatch.setattr(free_space, "room_bytes", lambda fd: None)


@pytest.fixture
def carried_out(drain):
    """The samples and the details of one room."""

    def run(room, folder, size_bytes=16 * MIB, seconds=30.0):
        setting = Setting("write", "uncached", str(folder), "client", size_bytes, seconds, "ab")
        return drain(room(setting, Endpoint()))

    return run


@ROOMS
def test_all_that_was_asked_for_is_on_the_disk_and_then_gone(carried_out, room, tmp_path):
    samples, details = carried_out(room, tmp_path)
    assert samples[-1].moved_bytes == details["written_bytes"] == 16 * MIB
    assert details["ended_by"] == "size"
    (zone,) = details["zones"]
    assert zone["bytes_per_second"] == pytest.approx(
        samples[-1].moved_bytes / samples[-1].elapsed_seconds
    )
    assert list(tmp_path.iterdir()) == []
    json.dumps(details, allow_nan=False)


@ROOMS
def test_the_time_ends_the_writing(carried_out, room, tmp_path):
    _, details = carried_out(room, tmp_path, 1 << 40, 0.1)
    assert details["ended_by"] == "time"
    assert details["written_bytes"] < 1 << 40


@ROOMS
def test_the_reserve_ends_the_writing_where_others_fill_the_disk(
    carried_out, room, tmp_path, monkeypatch
):
    monkeypatch.setattr(free_space, "LOOK_BYTES", 4 * MIB)
    rooms = iter([32 * MIB, 20 * MIB, 3 * MIB])
    monkeypatch.setattr(free_space, "room_bytes", lambda fd: next(rooms, 0))
    _, details = carried_out(room, tmp_path, 1 << 40)
    assert (details["ended_by"], details["written_bytes"]) == ("room", 11 * MIB)


@ROOMS
def test_a_full_disk_ends_the_writing_with_what_is_there(carried_out, room, tmp_path, monkeypatch):
    real = os.pwrite

    def until_full(fd, data, offset):
        if offset >= 2 * MIB:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data, offset)

    monkeypatch.setattr(growing_write.os, "pwrite", until_full)
    _, details = carried_out(room, tmp_path)
    assert (details["ended_by"], details["written_bytes"]) == ("room", 2 * MIB)


@ROOMS
def test_no_room_and_no_folder_are_said(carried_out, room, tmp_path, monkeypatch):
    with pytest.raises(Refused, match="does not exist"):
        carried_out(room, tmp_path / "none")
    monkeypatch.setattr(free_space, "room_bytes", lambda fd: 0)
    with pytest.raises(Unavailable, match="is full"):
        carried_out(room, tmp_path)


def test_each_forced_write_is_one_request_and_one_flush(carried_out, tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(growing_write, "_force", lambda fd: flushed.append(os.fstat(fd).st_size))
    _, details = carried_out(measure_synced, tmp_path)
    assert len(flushed) == 16 and max(flushed) == 16 * MIB
    assert details["depth"] == growing_write.DEPTH
    assert details["request_bytes"] == MIB
    assert 0 <= details["sync_seconds"]["median"] <= details["sync_seconds"]["p99"]


def test_a_disk_that_fails_ends_all_writers_and_is_told(carried_out, tmp_path, monkeypatch):
    def broken(fd):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(growing_write, "_force", broken)
    threads = threading.active_count()
    with pytest.raises(OSError, match="Input/output"):
        carried_out(measure_synced, tmp_path)
    assert threading.active_count() == threads


def test_whoever_stops_listening_stops_the_writers(tmp_path):
    threads = threading.active_count()
    setting = Setting("write", "uncached", str(tmp_path), "client", 1 << 30, 30.0, "ab")
    running = measure_synced(setting, Endpoint())
    next(running), next(running)
    running.close()
    assert threading.active_count() == threads


def test_the_worst_of_a_hundred_is_the_hundredths_but_one():
    assert growing_write.middle_and_worst([float(each) for each in range(1, 101)]) == {
        "median": 50.5,
        "p99": 99.0,
    }
    assert growing_write.middle_and_worst([2.0]) == {"median": 2.0, "p99": 2.0}


def test_acknowledged_and_durable_are_told_apart(carried_out, tmp_path):
    samples, details = carried_out(measure_sustained, tmp_path, 64 * MIB)
    assert samples[-1].moved_bytes == 64 * MIB
    assert details["acknowledged_bytes_per_second"] >= details["durable_bytes_per_second"]
    assert 0 < details["flush_seconds"] < samples[-1].elapsed_seconds
    assert (details["knee_bytes"] is None) == (details["sustained_bytes_per_second"] is None)


def test_a_flush_that_takes_too_long_is_given_up_and_counts_what_is_there(
    carried_out, tmp_path, monkeypatch
):
    monkeypatch.setattr(growing_write, "FLUSH_SECONDS", 0.0)
    samples, details = carried_out(measure_sustained, tmp_path, 64 * MIB)
    assert samples[-1].moved_bytes == growing_write.FLUSH_STEP_BYTES
    assert details["flush_seconds"] is None


def test_where_ranges_cannot_be_flushed_the_whole_file_is(carried_out, tmp_path, monkeypatch):
    monkeypatch.setattr(growing_write, "sync_range", lambda *_: False)
    samples, details = carried_out(measure_sustained, tmp_path)
    assert samples[-1].moved_bytes == 16 * MIB


def series(*parts, seed=1, noise=0.1):
    """Windows of 0.1 s: (number, bytes per second) each, with Gaussian noise."""
    chance = random.Random(seed)
    return [
        (0.1, max(0, round(0.1 * rate * chance.gauss(1, noise))))
        for number, rate in parts
        for _ in range(number)
    ]


def test_a_cache_that_fills_up_is_a_knee_at_its_size():
    windows = series((20, 1000 * MIB), (30, 100 * MIB))
    knee = find(windows)
    assert knee.at_bytes == sum(size for _, size in windows[:20])
    assert knee.before_bytes_per_second == pytest.approx(1000 * MIB, rel=0.1)
    assert knee.after_bytes_per_second == pytest.approx(100 * MIB, rel=0.1)


def test_a_writer_that_is_stopped_and_let_go_again_has_a_knee():
    """Past the limit of dirty memory the kernel lets writers wait for 0.2 s at a time."""
    waits = [(0.2, 8 * MIB), (0.1, 40 * MIB), (0.1, 2 * MIB)] * 8
    knee = find([*series((15, 1500 * MIB)), *waits])
    assert knee.after_bytes_per_second == pytest.approx(8 * 50 * MIB / 3.2, rel=0.2)


@pytest.mark.parametrize("seed", range(40))
def test_noise_has_no_knee(seed):
    assert find(series((50, 100 * MIB), seed=seed, noise=0.4)) is None


def test_what_becomes_faster_or_a_little_slower_has_no_knee():
    assert find(series((20, 100 * MIB), (30, 1000 * MIB), noise=0.02)) is None
    assert find(series((20, 100 * MIB), (30, 80 * MIB), noise=0.02)) is None


def test_a_hiccup_and_too_few_windows_have_no_knee():
    assert find(series((40, 100 * MIB), (2, MIB), noise=0.05)) is None
    assert find(series((3, 1000 * MIB), (3, MIB))) is None
    assert find([]) is None
    assert find([(0.0, MIB)] * 20) is None
