"""Room: a reserve always stays free."""

import os
from types import SimpleNamespace

import pytest

from probes.core.stage import Refused, Unavailable
from probes.files import free_space

GIB = 1024**3
MIB = 1024**2


@pytest.mark.parametrize(
    ("total", "reserve"),
    [
        (200 * MIB, 20 * MIB),
        (10 * GIB, GIB),
        (10 * GIB + 1, GIB + 1),
        (20 * GIB, 2 * GIB),
        (100 * GIB, 2 * GIB),
    ],
)
def test_the_reserve_is_a_tenth_and_at_most_2_gib(total, reserve):
    assert free_space.reserve_bytes(total) == reserve


def disk(monkeypatch, total, free):
    space = SimpleNamespace(f_frsize=4096, f_blocks=total // 4096, f_bavail=free // 4096)
    monkeypatch.setattr(os, "statvfs", lambda folder: space)


def test_what_may_be_used_is_the_free_part_less_the_reserve_and_its_book_keeping(monkeypatch):
    disk(monkeypatch, 100 * GIB, 15 * GIB)
    assert free_space.usable_bytes("f") == 13 * GIB - 52 * MIB
    disk(monkeypatch, 100 * GIB, GIB)
    assert free_space.usable_bytes("f") == 0


def test_less_than_a_mib_is_told_with_what_is_free_stays_free_and_is_needed(monkeypatch):
    disk(monkeypatch, 200 * MIB, 20 * MIB + MIB // 2)
    message = "20.5 MiB are free, 20 MiB stay free .* needs 1 MiB; free at least 1 MiB more"
    with pytest.raises(Unavailable, match=message):
        free_space.fitting_size(GIB, "f")
    assert free_space.fitting_size(4096, "f") == 4096


@pytest.mark.parametrize(("free", "size"), [(200, 44), (52, 15), (25, 2), (22, 1)])
def test_a_small_share_gets_a_small_file(monkeypatch, free, size):
    """A part of the room, 16 MiB where that is half of it, and at least 1 MiB."""
    disk(monkeypatch, 200 * MIB, free * MIB)
    assert free_space.fitting_size(GIB, "f", free_space.HELD_PARTS) == size * MIB


def test_a_file_system_that_tells_no_size_is_not_taken_for_a_full_one(monkeypatch):
    disk(monkeypatch, 0, 0)
    assert free_space.fitting_size(GIB, "f") == GIB
    free_space.Watch("f").look_at("f")


def test_the_room_is_looked_at_after_each_64_mib_and_refused_below_the_reserve(monkeypatch):
    watch = free_space.Watch("/srv/share")
    due = [watch.due(size * MIB) for size in (63, 1, 63, 200, 1)]
    assert due == [False, True, False, True, False]
    disk(monkeypatch, 100 * GIB, 2 * GIB)
    watch.look_at("f")
    disk(monkeypatch, 100 * GIB, 2 * GIB - 4096)
    with pytest.raises(
        Refused, match="/srv/share .* free space fell to 2047 MiB, and 2048 MiB always"
    ) as no:
        watch.look_at("f")
    assert no.value.kind == "space"


@pytest.mark.parametrize(
    ("wrote", "fell", "blamed"), [(100, 90, False), (100, 100, False), (100, 200, True)]
)
def test_somebody_else_is_blamed_for_what_this_run_did_not_write(monkeypatch, wrote, fell, blamed):
    watch = free_space.Watch("f", 2 * GIB + 50 * MIB)
    watch.due(wrote * MIB)
    disk(monkeypatch, 100 * GIB, 2 * GIB + (50 - fell) * MIB)
    with pytest.raises(Refused) as no:
        watch.look_at("f")
    assert ("other processes" in no.value.text) is blamed
    assert ("use a smaller --size" in no.value.text) is not blamed
