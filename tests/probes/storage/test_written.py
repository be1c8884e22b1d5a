"""Forced and sustained writes: shapes, ends and the room that stays free; never a figure."""

import errno
import json
import os
import threading

import pytest

from probes.host import free_space
from probes.records import Endpoint, Sample
from probes.stage import Last, Refused, Unavailable
from probes.storage import growing_file, sustained, synced
from probes.storage.setting import Setting

MIB = 1 << 20
ROOMS = pytest.mark.parametrize("room", [synced, sustained], ids=["synced", "sustained"])


@pytest.fixture(autouse=True)
def _room(monkeypatch):
    """Enough is free wherever the tests run."""
    monkeypatch.setattr(free_space, "fitting", lambda size_bytes, folder: size_bytes)
    monkeypatch.setattr(free_space, "room_bytes", lambda fd: None)


def carried_out(room, folder, size_bytes=16 * MIB, seconds=30.0):
    """The samples and the details of one room."""
    setting = Setting("write", "uncached", str(folder), "client", size_bytes, seconds, "ab")
    running = room.measure(setting, Endpoint())
    samples = []
    while True:
        try:
            samples.append(next(running))
        except StopIteration as end:
            return samples, end.value


@ROOMS
def test_all_that_was_asked_for_is_on_the_disk_and_then_gone(room, tmp_path):
    samples, details = carried_out(room, tmp_path)
    assert samples[0] == Sample(0.0, 0)
    assert isinstance(samples[-1], Last)
    assert samples[-1].moved_bytes == details["written_bytes"] == 16 * MIB
    for earlier, later in zip(samples, samples[1:], strict=False):
        assert earlier.elapsed_seconds <= later.elapsed_seconds
        assert earlier.moved_bytes <= later.moved_bytes
    assert details["ended_by"] == "size"
    (zone,) = details["zones"]
    assert zone["bytes_per_second"] == pytest.approx(
        samples[-1].moved_bytes / samples[-1].elapsed_seconds
    )
    assert list(tmp_path.iterdir()) == []
    json.dumps(details, allow_nan=False)


@ROOMS
def test_the_time_ends_the_writing(room, tmp_path):
    _, details = carried_out(room, tmp_path, 1 << 40, 0.1)
    assert details["ended_by"] == "time"
    assert details["written_bytes"] < 1 << 40


@ROOMS
def test_the_reserve_ends_the_writing_where_others_fill_the_disk(room, tmp_path, monkeypatch):
    monkeypatch.setattr(free_space, "LOOK_BYTES", 4 * MIB)
    rooms = iter([32 * MIB, 20 * MIB, 3 * MIB])
    monkeypatch.setattr(free_space, "room_bytes", lambda fd: next(rooms, 0))
    _, details = carried_out(room, tmp_path, 1 << 40)
    assert (details["ended_by"], details["written_bytes"]) == ("room", 11 * MIB)


@ROOMS
def test_a_full_disk_ends_the_writing_with_what_is_there(room, tmp_path, monkeypatch):
    real = os.pwrite

    def until_full(fd, data, offset):
        if offset >= 2 * MIB:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data, offset)

    monkeypatch.setattr(growing_file.os, "pwrite", until_full)
    _, details = carried_out(room, tmp_path)
    assert (details["ended_by"], details["written_bytes"]) == ("room", 2 * MIB)


@ROOMS
def test_no_room_and_no_folder_are_said(room, tmp_path, monkeypatch):
    with pytest.raises(Refused, match="does not exist"):
        carried_out(room, tmp_path / "none")
    monkeypatch.setattr(free_space, "room_bytes", lambda fd: 0)
    with pytest.raises(Unavailable, match="is full"):
        carried_out(room, tmp_path)


def test_each_forced_write_is_one_request_and_one_flush(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(synced, "_made_durable", lambda fd: flushed.append(os.fstat(fd).st_size))
    _, details = carried_out(synced, tmp_path)
    assert len(flushed) == 16 and max(flushed) == 16 * MIB
    assert details["depth"] == synced.DEPTH
    assert details["request_bytes"] == MIB
    assert 0 <= details["sync_seconds"]["median"] <= details["sync_seconds"]["p99"]


def test_a_disk_that_fails_ends_all_writers_and_is_told(tmp_path, monkeypatch):
    def broken(fd):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(synced, "_made_durable", broken)
    before = threading.active_count()
    with pytest.raises(OSError, match="Input/output"):
        carried_out(synced, tmp_path)
    assert threading.active_count() == before


def test_whoever_stops_listening_stops_the_writers(tmp_path):
    before = threading.active_count()
    setting = Setting("write", "uncached", str(tmp_path), "client", 1 << 30, 30.0, "ab")
    running = synced.measure(setting, Endpoint())
    next(running), next(running)
    running.close()
    assert threading.active_count() == before


def test_the_worst_of_a_hundred_is_the_hundredths_but_one():
    assert synced.middle_and_worst([float(each) for each in range(1, 101)]) == {
        "median": 50.5,
        "p99": 99.0,
    }
    assert synced.middle_and_worst([2.0]) == {"median": 2.0, "p99": 2.0}


def test_acknowledged_and_durable_are_told_apart(tmp_path):
    samples, details = carried_out(sustained, tmp_path, 64 * MIB)
    assert details["flushed_bytes"] == 64 * MIB
    assert details["acknowledged_bytes_per_second"] >= details["durable_bytes_per_second"]
    told = details["write_seconds"] + details["flush_seconds"]
    assert told == pytest.approx(samples[-1].elapsed_seconds)
    assert (details["knee_bytes"] is None) == (details["sustained_bytes_per_second"] is None)


def test_a_flush_that_takes_too_long_is_given_up_and_counts_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(sustained, "FLUSH_SECONDS", 0.0)
    samples, details = carried_out(sustained, tmp_path, 64 * MIB)
    assert samples[-1].moved_bytes == details["flushed_bytes"] == sustained.FLUSH_STEP_BYTES
    assert details["flush_seconds"] is None


def test_where_ranges_cannot_be_flushed_the_whole_file_is(tmp_path, monkeypatch):
    monkeypatch.setattr(sustained, "sync_range", lambda *_: False)
    samples, details = carried_out(sustained, tmp_path)
    assert samples[-1].moved_bytes == details["flushed_bytes"] == 16 * MIB
