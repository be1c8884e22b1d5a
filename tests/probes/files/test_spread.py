"""Files lie across the free space; what is reserved for that comes back, whatever ends it."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

from probes.files import free_space, place, spread, unnamed_file
from tests.devices import loop_device

MIB = 1 << 20
PLACES = """
import sys
from probes.files import spread, unnamed_file
fds = [unnamed_file.create(sys.argv[1]) for _ in range(9)]
print("begun", flush=True)
while True:
    spread.across(fds, 4 << 20, walks=len(sys.argv) > 2)
"""


@contextmanager
def open_files(folder, count):
    """Empty nameless files in a folder, until it is left."""
    with ExitStack() as stack:
        fds = [unnamed_file.create(str(folder)) for _ in range(count)]
        for fd in fds:
            stack.callback(os.close, fd)
        yield fds


def starts(fds):
    """Returns the place on the disk where each file begins, in MiB."""
    return [place.read_extents(fd).extents[0].physical_bytes // MIB for fd in fds]


@pytest.mark.parametrize("walks", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_files_lie_a_share_apart_and_only_they_stay(ext4_disk, walks, late):
    """Files lie side by side when the time is over."""
    with open_files(ext4_disk[0], 4) as fds:
        share = spread.share_bytes(fds[0], 4)
        free, _ = free_space.space_of(fds[0])
        seconds = iter([0.0, *[9.0 if late else 0.0] * 100])
        assert spread.across(fds, 8 * MIB, walks, clock=lambda: next(seconds)) == fds
        places = sorted(starts(fds))
        apart = [later - earlier for earlier, later in zip(places, places[1:], strict=False)]
        assert (max(apart) < 64) if late else (min(apart) > share // MIB // 2)
        assert [os.fstat(fd).st_size for fd in fds] == [8 * MIB] * 4
        assert free - free_space.space_of(fds[0])[0] == pytest.approx(4 * 8 * MIB, abs=MIB)


@pytest.mark.parametrize("walks", [False, True])
def test_what_does_not_fit_beside_the_tenth_that_stays_free_is_left_out(ext4_disk, walks):
    with open_files(ext4_disk[0], 9) as fds:
        free, total = free_space.space_of(fds[0])
        count = int((free - 0.1 * total) // (500 * MIB))
        assert spread.across(fds, 500 * MIB, walks) == fds[:count]
        assert [os.fstat(fd).st_size for fd in fds[count:]] == [0] * (9 - count)


@pytest.mark.parametrize("walks", [False, True])
def test_a_quota_that_ends_the_room_leaves_the_files_their_size(ext4_disk, monkeypatch, walks):
    """Each is placed, nearer to the others, and none holds more than it needs meanwhile."""
    quota = 700 * MIB
    with open_files(ext4_disk[0], 4) as fds:
        real = spread._reserve

        def limited(fd, start, size_bytes, kept_bytes):
            used = sum(os.fstat(each).st_blocks * 512 for each in fds)
            return used + size_bytes <= quota and real(fd, start, size_bytes, kept_bytes)

        monkeypatch.setattr(spread, "_reserve", limited)
        assert spread.across(fds, 8 * MIB, walks) == fds


@pytest.mark.long
@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_a_tenth_stays_free_and_the_rest_is_lent_for_less_than_a_second(tmp_path, filesystem):
    """A file system of 1 TiB, looked at each millisecond; the files lie over half of it."""
    make = {"ext4": ["-F", "-N", "4096", "-E", "nodiscard"], "xfs": ["-f", "-K"]}[filesystem]
    if shutil.which(f"mkfs.{filesystem}") is None:
        pytest.skip(f"NOT RUN: needs mkfs.{filesystem}")
    image, point = tmp_path / "image", tmp_path / "disk"
    point.mkdir()
    image.touch()
    os.truncate(image, 1 << 40)
    subprocess.run([f"mkfs.{filesystem}", "-q", *make, image], check=True)
    with loop_device(image) as device:
        subprocess.run(["mount", device, point], check=True)
        try:
            with open_files(point, 9) as fds:
                free, total = free_space.space_of(fds[0])
                looks, over = [], threading.Event()

                def look():
                    while not over.wait(0.001):
                        looks.append((time.monotonic(), free_space.space_of(fds[0])[0]))

                thread = threading.Thread(target=look)
                thread.start()
                spread.across(fds, 64 * MIB, walks=filesystem == "ext4")
                over.set()
                thread.join()
                places = sorted(starts(fds))
        finally:
            subprocess.run(["umount", point], check=True)
    lent = [seconds for seconds, free_now in looks if free_now < free - (3 << 30)]
    assert min(free_now for _, free_now in looks) >= max(0.1 * total, 0.49 * free)
    assert len(looks) > 5 and (not lent or lent[-1] - lent[0] < 1.0)
    assert all(later - earlier > 20_000 for earlier, later in zip(places, places[1:], strict=False))


@pytest.mark.long
@pytest.mark.parametrize("walks", [[], ["walks"]])
def test_killed_at_any_moment_nothing_is_left(ext4_disk, walks):
    point = ext4_disk[0]
    free = free_space.space_of(point)
    for number in range(20):
        with subprocess.Popen(
            [sys.executable, "-c", PLACES, point, *walks], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout.readline() == "begun\n"
            time.sleep(0.003 * number)
            child.send_signal(signal.SIGKILL)
        assert os.listdir(point) == ["lost+found"]
        assert free_space.space_of(point) == free
