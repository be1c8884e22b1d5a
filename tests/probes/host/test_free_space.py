"""Room: a reserve always stays free."""

import os
from types import SimpleNamespace

import pytest

from probes.host import free_space
from probes.stage import Refused, Unavailable

GIB = 1024**3
MIB = 1024**2


@pytest.mark.parametrize(
    ("total", "reserve"),
    [
        (16 * MIB, 2 * GIB),
        (4 * GIB, 2 * GIB),
        (20 * GIB, 2 * GIB),
        (100 * GIB, 10 * GIB),
        (100 * GIB + 1, 10 * GIB + 1),
    ],
)
def test_the_reserve_is_a_tenth_and_at_least_2_gib(total, reserve):
    assert free_space.reserve_bytes(total) == reserve


def disk(monkeypatch, total, free):
    told = SimpleNamespace(f_frsize=4096, f_blocks=total // 4096, f_bavail=free // 4096)
    monkeypatch.setattr(os, "statvfs", lambda folder: told)


def test_what_may_be_used_is_the_free_part_less_the_reserve_and_its_book_keeping(monkeypatch):
    disk(monkeypatch, 100 * GIB, 15 * GIB)
    assert free_space.usable_bytes("f") == 5 * GIB - 20 * MIB
    disk(monkeypatch, 100 * GIB, 5 * GIB)
    assert free_space.usable_bytes("f") == 0


def test_less_than_4_mib_is_told_and_not_used(monkeypatch):
    disk(monkeypatch, 100 * GIB, 10 * GIB + 3 * MIB + MIB // 2)
    with pytest.raises(Unavailable, match="3 MiB are usable and 10240 MiB always stay free"):
        free_space.fitting(GIB, "f")
    assert free_space.fitting(MIB, "f") == MIB


def test_a_file_system_that_tells_no_size_is_not_taken_for_a_full_one(monkeypatch):
    disk(monkeypatch, 0, 0)
    assert free_space.fitting(GIB, "f") == GIB
    free_space.Watch("f").look_at("f")


def test_the_room_is_looked_at_after_each_64_mib_and_refused_below_the_reserve(monkeypatch):
    watch = free_space.Watch("/srv/share")
    assert [watch.due(size * MIB) for size in (63, 1, 63, 200, 1)] == [
        *(False, True, False, True, False)
    ]
    disk(monkeypatch, 100 * GIB, 10 * GIB)
    watch.look_at("f")
    disk(monkeypatch, 100 * GIB, 10 * GIB - 4096)
    with pytest.raises(
        Refused, match="/srv/share .* free space fell to 10239 MiB, and 10240 MiB always"
    ) as no:
        watch.look_at("f")
    assert no.value.kind == "space"


@pytest.mark.parametrize(
    ("wrote", "fell", "blamed"), [(100, 90, False), (100, 100, False), (100, 200, True)]
)
def test_somebody_else_is_blamed_for_what_this_run_did_not_write(monkeypatch, wrote, fell, blamed):
    watch = free_space.Watch("f", 10 * GIB + 50 * MIB)
    watch.due(wrote * MIB)
    disk(monkeypatch, 100 * GIB, 10 * GIB + (50 - fell) * MIB)
    with pytest.raises(Refused) as no:
        watch.look_at("f")
    assert ("other processes" in no.value.text) is blamed
    assert ("use a smaller --size" in no.value.text) is not blamed
