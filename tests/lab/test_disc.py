"""The planted disc does what is planted, and goes away without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import disc as discs
import pytest
from disc import disc, missing, sweep
from disc_files import FRAGMENT_BYTES, FRAGMENTED, FRAGMENTS, GAP_BYTES, ext4, extents
from platter import PATIENCE_SECONDS, Disc, Platter, Request, Weak

from tests.living import running

MIB = 1 << 20
PLANTED = Disc(outer_bytes_per_second=100 * MIB, inner_bytes_per_second=50 * MIB)
LATE_SECONDS = 0.001
CHILD = """
import sys
sys.path.append(sys.argv[1])
from disc import disc
from platter import Disc
with disc(Disc(60e6, 30e6)) as device:
    print(device, flush=True)
    sys.stdin.read()
"""


def _flat(**words: object) -> Disc:
    """A disc of one rate, 100 MiB/s: 1 MiB takes 10 ms."""
    return replace(PLANTED, inner_bytes_per_second=PLANTED.outer_bytes_per_second, **words)  # type: ignore[arg-type]


def _ends(platter: Platter, until: float) -> list[tuple[int, float]]:
    """Each request's number and when it was answered, seen a little late every time."""
    ends = [(each.unique, 0.0) for each in platter.done(0.0)]
    while platter.due is not None and platter.due <= until:
        due = platter.due
        ends += [(each.unique, due) for each in platter.done(due + LATE_SECONDS)]
    return ends


def test_the_rate_falls_as_a_discs_does() -> None:
    """Its square is linear in the address; a weak span has its share of what is due there."""
    assert PLANTED.bytes_per_second(0) == 100 * MIB
    middle, inner = map(PLANTED.bytes_per_second, (0.5, 1))
    assert inner == pytest.approx(50 * MIB)
    assert middle**2 == pytest.approx((100**2 + 50**2) / 2 * MIB**2)
    weak = replace(PLANTED, weak=Weak(0.4, 0.6, 0.5))
    assert weak.bytes_per_second(0.5) == PLANTED.bytes_per_second(0.5) / 2
    assert weak.bytes_per_second(0.6) == PLANTED.bytes_per_second(0.6)


def test_late_wake_ups_do_not_add_up() -> None:
    """100 requests in a row are done after one seek and their bytes, however late each is seen."""
    platter = Platter(_flat())
    for number in range(100):
        platter.take(Request(number, "read", (1000 + number) * MIB, MIB, 0.0))
    ends = _ends(platter, 10.0)
    assert [number for number, _ in ends] == list(range(100))
    assert ends[-1][1] == pytest.approx(0.008 + 100 * 0.01)


def test_a_reader_that_asks_late_finds_it_read() -> None:
    """One request at a time gets the whole rate, too; elsewhere each costs a seek."""
    platter, now = Platter(_flat()), 0.0
    for number in range(50):
        platter.take(Request(number, "read", (1000 + number) * MIB, MIB, now))
        ((_, end),) = _ends(platter, 10.0)
        now = end + LATE_SECONDS
    assert end == pytest.approx(0.008 + 50 * 0.01)
    for number in (7, 3, 11):
        platter.take(Request(number, "read", number * 5000 * MIB, MIB, now))
        ((_, end),) = _ends(platter, 10.0)
        assert end - now == pytest.approx(0.018)
        now = end + 0.1


def test_nobody_waits_for_ever() -> None:
    """Requests at the heads go first, until another has lost its patience."""
    platter = Platter(_flat())
    platter.take(Request(99, "read", 9000 * MIB, MIB, 0.0))
    for number in range(20):
        platter.take(Request(number, "read", number * MIB, MIB, 0.0))
    ends = dict(_ends(platter, 10.0))
    assert PATIENCE_SECONDS < ends[99] < PATIENCE_SECONDS + 0.04
    assert max(ends.values()) == pytest.approx(21 * 0.01 + 2 * 0.008)


def test_a_flush_waits_for_the_drives_cache() -> None:
    """A write that fits is acknowledged at once; the flush is done when it lies on the platter."""
    platter = Platter(_flat(write_cache_bytes=2 * MIB, flush_seconds=0.02))
    for number in range(3):
        platter.take(Request(number, "write", (500 + number) * MIB, MIB, 0.0))
    platter.take(Request(3, "flush", 0, 0, 0.0))
    ends = _ends(platter, 10.0)
    assert ends[:2] == [(0, 0.0), (1, 0.0)]
    assert dict(ends)[3] == pytest.approx(0.008 + 3 * 0.01 + 0.02)
    platter.take(Request(4, "flush", 0, 0, 1.0))
    assert _ends(platter, 10.0) == [(4, 1.0)]  # there is nothing to flush


@pytest.fixture
def _needs_a_disc() -> None:
    if lacks := missing():
        pytest.skip("not run: " + "; ".join(lacks))


def _traces(owner: int) -> list[str]:
    name = f"{discs.PREFIX}{owner}-"
    text = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    lines = text + Path("/proc/self/mountinfo").read_text()
    traces = [line for line in lines.splitlines() if name in line]
    return traces + [str(each) for each in discs.WORK.glob(f"{name}*")]


@pytest.mark.usefixtures("_needs_a_disc")
def test_a_device_keeps_what_is_written_and_goes_away() -> None:
    """It has the planted size, says that it turns, and takes a file system."""
    with disc(PLANTED) as device:
        queue = Path("/sys/block", device.name)
        assert int((queue / "size").read_text()) * 512 == PLANTED.size_bytes
        assert (queue / "queue" / "rotational").read_text() == "1\n"
        written = os.urandom(3 * MIB)
        with device.open("r+b") as node:
            node.seek(1 << 34)
            node.write(written)
            node.flush()
            os.fsync(node.fileno())
        read = ["dd", f"if={device}", "bs=1M", "count=3", "skip=16384", "iflag=direct"]
        assert subprocess.run(read, capture_output=True, check=True).stdout == written
        assert _traces(os.getpid())
    assert _traces(os.getpid()) == []


@pytest.mark.usefixtures("_needs_a_disc")
def test_a_killed_ones_disc_goes_with_the_next() -> None:
    """Its server and its loop device end by themselves, the dead mount and folder by a sweep."""
    child = running(CHILD, Path(__file__).parent)
    assert child.stdout is not None
    assert child.stdout.readline().startswith("/dev/loop")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert _traces(child.pid)
    sweep()
    assert _traces(child.pid) == []


@pytest.mark.long
@pytest.mark.usefixtures("_needs_a_disc")
def test_files_lie_where_they_were_put(tmp_path: Path) -> None:
    """Room at the inner end alone, a file in so many pieces: the map of the disc says so."""
    prepare = ext4("share", "root", (0.8, 1.0), fragments=True)
    with disc(PLANTED, prepare) as device:
        subprocess.run(["mount", device, tmp_path], check=True)
        try:
            pieces = extents(tmp_path / "share" / FRAGMENTED)
        finally:
            subprocess.run(["umount", tmp_path], check=True)
    assert len(pieces) == FRAGMENTS
    assert all(end - start == FRAGMENT_BYTES for start, end in pieces)
    assert all(start >= 0.8 * PLANTED.size_bytes for start, _ in pieces)
    gaps = [later[0] - earlier[1] for earlier, later in zip(pieces, pieces[1:], strict=False)]
    assert min(gaps) >= GAP_BYTES


@pytest.mark.lab
@pytest.mark.usefixtures("_needs_a_disc")
@pytest.mark.parametrize("options", [[], ["--files"]])
def test_the_product_finds_what_is_planted(options: list[str]) -> None:
    """Each zone, the ratio of both edges, the seek and the weak zone, by find_disc.py --quick."""
    command = [sys.executable, str(Path(__file__).with_name("find_disc.py")), "--quick", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
