"""Zones of a block device and of placed files: shapes and refusals with the real fio; no figure."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="union-attr,index"

import json
import os
import subprocess
from pathlib import Path

import pytest

from probes.core.records import Endpoint, Moved
from probes.core.stage import Unavailable
from probes.programs import fio
from probes.stages import disk
from probes.storage import curve, zones
from tests.devices import loop_device

MIB = 1024 * 1024


def setting(verb="read", folder="", device="", count=3, seconds=0.6, size_bytes=48 * MIB):
    return disk.Setting(
        verb,
        "uncached",
        str(folder),
        "client",
        size_bytes,
        seconds,
        "ab",
        pattern="zones",
        device=str(device),
        zones=count,
    )


@pytest.fixture
def carried_out(run_stage):
    """Runs the stage with a setting; returns samples and details."""
    return lambda setting: run_stage(disk, setting, Endpoint())


@pytest.fixture
def memory_device():
    """A block device with nothing below it that the kernel would count."""
    content = os.memfd_create("device")
    os.ftruncate(content, 64 * MIB)
    try:
        with loop_device(f"/proc/{os.getpid()}/fd/{content}") as device:
            yield device
    finally:
        os.close(content)


def pairs(rows):
    return zip(rows, rows[1:], strict=False)


def check_shape(samples, details):
    for earlier, later in pairs(samples):
        assert earlier.elapsed_seconds < later.elapsed_seconds
        assert earlier.moved_bytes < later.moved_bytes
    starts = [each["from_ratio"] for each in details["zones"]]
    assert starts == sorted(starts)
    for each in details["zones"]:
        assert 0 <= each["from_ratio"] < each["to_ratio"] <= 1
        assert each["bytes_per_second"] > 0
        assert each["latency_seconds"]["median"] <= each["latency_seconds"]["p99"]
    assert details["located"] is True
    json.dumps(details, allow_nan=False)


@pytest.mark.long
def test_a_device_is_read_zone_by_zone_and_never_written(carried_out, memory_device):
    written = Path(f"/sys/class/block/{memory_device.name}/stat")
    counters = written.read_text().split()[4:7]
    samples, details = carried_out(setting(device=memory_device))
    check_shape(samples, details)
    assert [each["offset_bytes"] // MIB for each in details["zones"]] == [10, 31, 53]
    assert details["zones"][-1]["to_ratio"] == 1.0
    assert details["device"] == details["stack"][0] == memory_device.name
    assert details["device_bytes"] == 64 * MIB
    assert details["seek_seconds"] >= 0
    assert details["random"]["depth_32_per_second"] > 0
    assert details["cache"]["proven"] is True
    assert details["others"]["read_bytes"] == details["others"]["reads"] == 0
    assert written.read_text().split()[4:7] == counters


@pytest.mark.long
def test_a_device_whose_disk_below_gave_nothing_has_no_rate(carried_out, tmp_path, monkeypatch):
    image = tmp_path / "never-written"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    with loop_device(image) as device:
        if zones._read_below(device.name) is None:
            pytest.skip("needs a folder on a block device")
        # What other tests read of that disk meanwhile is none of this device's.
        monkeypatch.setattr(zones, "_read_below", lambda name: 5 * MIB)
        with pytest.raises(Unavailable, match="the disk below it was not"):
            carried_out(setting(device=device))


def test_what_is_no_block_device_is_told_in_a_sentence(carried_out, tmp_path):
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(bytes(MIB))
    os.mkfifo(pipe)
    for node in (file, tmp_path, pipe, "/dev/null"):
        with pytest.raises(Unavailable, match="is not a block device"):
            carried_out(setting(device=node))
    with pytest.raises(Unavailable, match="device not found"):
        carried_out(setting(device=tmp_path / "none"))


def test_a_device_without_the_right_to_read_it_is_told_with_the_remedy(
    carried_out, memory_device, monkeypatch
):
    real = os.open

    def refused(path, flags, *rest, **options):
        if str(path) == str(memory_device):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(Unavailable, match="group disk"):
        carried_out(setting(device=memory_device))


def test_a_device_too_small_for_its_zones_is_unavailable(carried_out, memory_device):
    with pytest.raises(Unavailable, match="too small for 64 zones"):
        carried_out(setting(device=memory_device, count=64))


@pytest.mark.long
@pytest.mark.parametrize("verb", ["read", "write"])
def test_files_in_a_folder_stand_for_the_zones_where_they_lie(carried_out, ext4_disk, verb):
    point, device, _ = ext4_disk
    names = sorted(os.listdir(point))
    samples, details = carried_out(setting(verb, folder=point))
    check_shape(samples, details)
    assert details["device"] == device
    assert len(details["zones"]) == 3 and len(samples) >= 1 + 3
    apart = [
        later["from_ratio"] - earlier["to_ratio"] for earlier, later in pairs(details["zones"])
    ]
    assert min(apart) > 0.05
    assert sorted(os.listdir(point)) == names
    if verb == "read":
        assert details["cache"]["cached_ratio_before"] == 0.0
        assert details["cache"]["proven"] is True
        assert details["seek_seconds"] >= 0
    else:
        assert (details["cache"], details["seek_seconds"]) == (None, None)
        for each in details["zones"]:
            assert each["acknowledged_bytes_per_second"] >= each["bytes_per_second"]


def test_of_what_tells_no_places_one_file_is_written_and_the_reason_told(carried_out):
    _, details = carried_out(setting("write", folder="/dev/shm"))
    assert (details["one_place"], details["located"]) == ("memory", False)
    (zone,) = details["zones"]
    assert (zone["from_ratio"], zone["to_ratio"]) == (0.0, 1.0)


@pytest.mark.parametrize("why", ["ssd", "discard", "full"])
def test_where_zones_say_nothing_or_are_not_to_be_had_one_file_is_written(
    carried_out, ext4_disk, why
):
    point, device, _ = ext4_disk
    if why == "ssd":
        Path(f"/sys/class/block/{device}/queue/rotational").write_text("0")
    elif why == "discard":
        subprocess.run(["mount", "-o", "remount,discard", point], check=True)
    else:
        with (point / "film").open("wb") as file:
            space = os.statvfs(point)
            free = space.f_bavail - space.f_blocks // 10 - 2500
            os.posix_fallocate(file.fileno(), 0, free * space.f_frsize)
    _, details = carried_out(setting("write", folder=point, size_bytes=24 * MIB))
    assert (details["one_place"], len(details["zones"])) == (why, 1)


def test_zones_of_less_than_four_blocks_are_unavailable(carried_out, ext4_disk):
    with pytest.raises(Unavailable, match="4 MiB each"):
        carried_out(setting(folder=ext4_disk[0], size_bytes=8 * MIB))


def test_spans_cover_the_device_and_each_is_read_at_its_centre():
    for passes in (1, 2, 3):
        zone_spans = zones.spans(9000 * MIB + 512, 9, passes)
        assert zone_spans is not None
        assert zone_spans[0].start_bytes == 0
        assert zone_spans[-1].end_bytes == 9000 * MIB + 512
        for earlier, later in zip(zone_spans, zone_spans[1:], strict=False):
            assert earlier.end_bytes == later.start_bytes
        for each in zone_spans:
            assert len(each.jobs) == passes
            offset, size = each.jobs[passes // 2]
            assert offset == pytest.approx((each.start_bytes + each.end_bytes) / 2, abs=MIB)
            for start, size in each.jobs:
                assert start % MIB == 0
                assert each.start_bytes <= start < start + size <= each.end_bytes
            ends = [start + size for start, size in each.jobs]
            assert all(end <= start for end, (start, _) in zip(ends, each.jobs[1:], strict=False))


def test_the_time_is_split_evenly_and_a_job_is_never_too_short():
    assert curve.timetable(2.0, 9) == (1, 0.2)
    passes, seconds = curve.timetable(8.0, 9)
    assert passes == 2
    assert passes * 9 * (seconds + curve.PAUSE_SECONDS) == pytest.approx(8.0)
    assert curve.timetable(100.0, 9)[0] == curve.MOST_PASSES
    assert curve.timetable(0.3, 3)[1] == pytest.approx(0.1)


def test_a_zone_of_several_passes_has_their_median_and_their_range():
    each = [Moved(MIB, seconds) for seconds in (1.0, 0.5, 0.25)]
    results = [fio.Result(MIB, 1.0, median, 0.3) for median in (0.1, 0.2, 0.3)]
    row = curve.row(each, results)
    assert row["bytes_per_second"] == 2 * MIB
    assert (row["low_bytes_per_second"], row["high_bytes_per_second"]) == (MIB, 4 * MIB)
    assert row["latency_seconds"] == {"median": 0.2, "p99": 0.3}
    assert "low_bytes_per_second" not in curve.row(each[:1], results[:1])


def test_a_seek_is_a_small_read_less_the_time_of_its_bytes():
    reads = curve.RandomReads(0.0085, 0.02, 117.0, 200.0, 0)
    assert curve.seek_seconds(reads, 8_192_000) == pytest.approx(0.008)
    assert curve.seek_seconds(reads._replace(median_seconds=None), 1e8) is None


@pytest.mark.parametrize(
    ("rates", "doubted"),
    [
        ([60, 57, 54, 51, 47, 44, 40, 36, 32], []),
        ([60, 57, 54, 51, 47, 44, 40, 28, 32], [7]),
        ([50, 57, 54, 30, 47, 44], [0, 3]),
        ([60, 57, 30], [2]),
        ([100, 100, 100], []),
        ([5], []),
    ],
)
def test_a_zone_well_below_its_neighbours_is_looked_at_again(rates, doubted):
    assert curve.doubtful_zones(rates) == doubted


@pytest.mark.parametrize(
    ("rates", "doubted"),
    [
        ([70, 68, 66, 64], []),
        ([70, 65, 66, 64], [1, 3]),
        ([60, 60, 60, 57.5], [3]),
        ([58, 60, 60, 60], [0]),
        ([70, 69], []),
        ([69.5, 62.0, 53.5, 44.0], []),
    ],
)
def test_what_lies_below_the_line_between_its_neighbours_is_looked_at_again(rates, doubted):
    places = [0.1, 0.2, 0.3, 0.4]
    assert curve.disagreeing_zones(places[: len(rates)], rates) == doubted


def test_further_looks_stay_within_their_zone_and_elsewhere_in_it():
    (_, zone, _) = zones.spans(3 << 30, 3, 1)
    looks = zones._once_more(0, [zone], 1.0)
    assert len(looks) == curve.AGAIN
    for each in looks:
        assert zone.start_bytes <= each.offset_bytes
        assert each.offset_bytes + each.size_bytes <= zone.end_bytes
        assert each.offset_bytes != zone.jobs[0][0]
