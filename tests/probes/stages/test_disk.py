"""The disk stage: shapes and proofs, with the real fio; never a figure."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="attr-defined"

import getpass
import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import folders, page_cache, source_file
from probes.stages import disk
from probes.storage import foreign_io, sequential
from probes.system import tools

MIB = 1024 * 1024


@pytest.fixture
def carried_out(run_stage):
    return partial(run_stage, disk)


def setting(folder, verb, cache, size_bytes=16 * MIB, seconds=60.0):
    return disk.Setting(verb, cache, str(folder), "client", size_bytes, seconds, "ab")


@pytest.fixture
def on_disk(tmp_path):
    for each in (tmp_path, Path("/var/tmp")):
        if folders.folder_facts(str(each)).filesystem != "tmpfs":
            return each
    pytest.skip("needs a folder that is not on tmpfs")


@pytest.fixture
def source(on_disk):
    with source_file.hold(
        source_file.Setting(str(on_disk), 16 * MIB, 30.0, "ab"), Endpoint()
    ) as endpoint:
        yield endpoint


def check_shape(samples, details):
    (zone,) = details["zones"]
    assert (zone["from_ratio"], zone["to_ratio"]) == (0.0, 1.0)
    last = samples[-1]
    assert zone["bytes_per_second"] == pytest.approx(last.moved_bytes / last.elapsed_seconds)
    assert details["seek_seconds"] is None
    json.dumps(details, allow_nan=False)


def test_without_fio_all_is_written_and_flushed_past_the_cache(carried_out, on_disk, monkeypatch):
    monkeypatch.setattr(tools, "TAKE_OPEN_FILES", False)
    samples, details = carried_out(setting(on_disk, "write", "uncached", seconds=30.0), Endpoint())
    check_shape(samples, details)
    assert samples[-1].moved_bytes == 16 * MIB
    assert details["direct"]
    assert details["fio_version"] is None
    assert details["device_written_bytes"] is None or details["device_written_bytes"] >= 16 * MIB


def test_without_fio_zones_are_refused_with_the_reason(carried_out, on_disk, monkeypatch):
    monkeypatch.setattr(tools, "TAKE_OPEN_FILES", False)
    zones = replace(setting(on_disk, "read", "uncached"), pattern="zones")
    with pytest.raises(Unavailable, match="cannot be used: it takes Linux"):
        carried_out(zones, Endpoint())


@pytest.mark.parametrize("by_fio", [True, False], ids=["by fio", "by threads of our own"])
def test_an_uncached_read_is_proven_and_reads_each_byte_once(
    carried_out, on_disk, source, monkeypatch, by_fio
):
    monkeypatch.setattr(tools, "TAKE_OPEN_FILES", by_fio)
    # It ends with the file; the seconds are for a disk that others keep busy.
    samples, details = carried_out(setting(on_disk, "read", "uncached", seconds=30.0), source)
    check_shape(samples, details)
    assert samples[-1].moved_bytes == 16 * MIB
    cache = details["cache"]
    assert (cache["side"], cache["requested"]) == ("client", "uncached")
    if cache["cached_ratio_before"] is not None:
        assert cache["cached_ratio_before"] == 0.0
    assert details["stack"][0] == folders.folder_facts(str(on_disk)).filesystem


@pytest.mark.long
def test_a_longer_uncached_read_tries_both_ways(carried_out, on_disk, source):
    _, details = carried_out(setting(on_disk, "read", "uncached", seconds=5.0), source)
    if "trials_bytes_per_second" in details:
        trials = details["trials_bytes_per_second"]
        assert set(trials) == {"direct", "buffered"}
        assert details["direct"] == (trials["direct"] >= trials["buffered"])


@pytest.mark.long
def test_a_cached_read_is_proven_and_goes_on_for_its_time(carried_out, on_disk, source):
    samples, details = carried_out(setting(on_disk, "read", "cached"), source)
    check_shape(samples, details)
    assert samples[-1].moved_bytes > 16 * MIB
    assert details["direct"] is False
    cache = details["cache"]
    if cache["cached_ratio_before"] is not None:
        assert (cache["proven"], cache["cached_ratio_before"]) == (True, 1.0)


def test_an_uncached_read_that_leaves_the_file_cached_is_not_called_proven(
    carried_out, on_disk, source, monkeypatch
):
    monkeypatch.setattr(page_cache, "evict", lambda fd: None)
    _, details = carried_out(setting(on_disk, "read", "uncached"), source)
    assert details["cache"]["proven"] is False


def test_a_read_that_never_reached_the_device_is_not_called_proven(
    carried_out, on_disk, monkeypatch
):
    """Blocks that were reserved and never written are read without the disk."""
    if folders.folder_facts(str(on_disk)).device is None:
        pytest.skip("needs a block device below the folder")
    counted = foreign_io.look(folders.folder_facts(str(on_disk)).device)
    if counted.device is None:
        pytest.skip("the device is not in /proc/diskstats")
    monkeypatch.setattr(foreign_io, "look", lambda device: counted)
    fd = source_file.open_new(str(on_disk))
    try:
        os.posix_fallocate(fd, 0, 16 * MIB)
        peer = Endpoint(path=f"/proc/{os.getpid()}/fd/{fd}")
        _, details = carried_out(setting(on_disk, "read", "uncached"), peer)
    finally:
        os.close(fd)
    assert details["device_read_bytes"] == 0
    assert details["cache"]["proven"] is False


def test_another_users_file_is_proven_by_the_bytes_that_its_device_counts(
    carried_out, on_disk, source, monkeypatch
):
    """The kernel tells only a file's owner what of it is cached (mincore(2), cachestat(2))."""
    monkeypatch.setattr(page_cache, "state", lambda fd, size_bytes: None)
    _, details = carried_out(setting(on_disk, "read", "uncached"), source)
    assert details["cache"]["proven"] == ((details["device_read_bytes"] or 0) >= 16 * MIB)
    monkeypatch.setattr(foreign_io, "counts", lambda *a, **k: {"device_read_bytes": 15 * MIB})
    _, details = carried_out(setting(on_disk, "read", "uncached"), source)
    assert details["cache"]["proven"] is False
    assert "moved_bytes" not in details


def test_a_file_that_may_not_be_read_is_a_reason_with_the_account(on_disk, monkeypatch):
    def refused(path, flags):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sequential.os, "open", refused)
    with pytest.raises(
        Unavailable, match=f"{getpass.getuser()} on .* may not read the share's files"
    ):
        next(sequential.measure(setting(on_disk, "read", "uncached"), Endpoint(path="/x/source")))


def test_a_write_is_flushed_and_leaves_nothing(carried_out, tmp_path):
    samples, details = carried_out(setting(tmp_path, "write", "uncached"), Endpoint())
    check_shape(samples, details)
    assert samples[-1].moved_bytes == 16 * MIB
    assert details["cache"] is None
    assert list(tmp_path.iterdir()) == []


def test_without_direct_io_a_write_is_flushed_all_the_same(carried_out, tmp_path, monkeypatch):
    monkeypatch.setattr(sequential, "takes_direct", lambda fd: False)
    samples, details = carried_out(setting(tmp_path, "write", "uncached"), Endpoint())
    check_shape(samples, details)
    assert details["direct"] is False


def test_no_source_file_is_unavailable(tmp_path):
    with pytest.raises(Unavailable, match="no source file"):
        next(disk.initiate(setting(tmp_path, "read", "cached"), Endpoint()))


def test_a_file_below_a_block_is_unavailable(tmp_path):
    small = tmp_path / "small"
    small.write_bytes(b"x")
    with pytest.raises(Unavailable, match="smaller than one block"):
        next(disk.initiate(setting(tmp_path, "read", "cached"), Endpoint(path=str(small))))


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(Refused) as caught:
        next(disk.initiate(setting(tmp_path / "none", "write", "uncached"), Endpoint()))
    assert caught.value.kind == "usage"


def test_a_users_file_is_read_and_never_changed(carried_out, tmp_path):
    users = tmp_path / "users"
    users.write_bytes(os.urandom(4 * MIB))
    content = users.read_bytes()
    carried_out(setting(tmp_path, "read", "uncached"), Endpoint(path=str(users)))
    assert users.read_bytes() == content


def test_a_read_tells_where_its_file_lies_and_what_others_did(carried_out, on_disk, source):
    _, details = carried_out(setting(on_disk, "read", "uncached"), source)
    if details["place"] is not None:
        assert details["place"]["size_bytes"] == 16 * MIB
    if details["device_read_bytes"] is not None:
        counters = "reads read_bytes writes written_bytes busy_ratio"
        assert set(details["others"]) == set(counters.split())
        assert details["before"]["seconds"] >= foreign_io.QUIET_SECONDS
    names = [layer["name"] for layer in details["layers"]]
    assert names[0] == details["stack"][0]


@pytest.mark.long
def test_what_the_page_cache_gives_is_not_preceded_by_a_look_at_others(
    carried_out, on_disk, source
):
    _, details = carried_out(setting(on_disk, "read", "cached"), source)
    assert "before" not in details
