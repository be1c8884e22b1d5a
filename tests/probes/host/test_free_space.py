"""Room: a reserve always stays free."""

import os
from types import SimpleNamespace

import pytest

from probes.host import free_space
from probes.stage import Unavailable

GIB = 1024**3
MIB = 1024**2


@pytest.mark.parametrize(
    ("total", "reserve"),
    [
        (16 * MIB, 4 * MIB),
        (4 * GIB, GIB),
        (10 * GIB, 2 * GIB),
        (100 * GIB, 10 * GIB),
    ],
)
def test_the_reserve_is_a_tenth_or_2_gib_but_no_more_than_a_quarter(total, reserve):
    assert free_space.reserve_bytes(total) == reserve


def disk(monkeypatch, total, free):
    told = SimpleNamespace(f_frsize=4096, f_blocks=total // 4096, f_bavail=free // 4096)
    monkeypatch.setattr(os, "statvfs", lambda folder: told)


def test_what_may_be_used_is_the_free_part_less_the_reserve(monkeypatch):
    disk(monkeypatch, 100 * GIB, 15 * GIB)
    assert free_space.usable_bytes("f") == 5 * GIB
    disk(monkeypatch, 100 * GIB, 5 * GIB)
    assert free_space.usable_bytes("f") == 0


def test_a_file_shrinks_to_whole_mib_that_fit(monkeypatch):
    disk(monkeypatch, 100 * GIB, 10 * GIB + 7 * MIB + 4096)
    assert free_space.fitting(GIB, "f") == 7 * MIB
    assert free_space.fitting(5 * MIB + 1, "f") == 5 * MIB + 1


def test_less_than_4_mib_is_told_and_not_used(monkeypatch):
    disk(monkeypatch, 100 * GIB, 10 * GIB + 3 * MIB)
    with pytest.raises(Unavailable, match="3 MiB may be used"):
        free_space.fitting(GIB, "f")
    assert free_space.fitting(MIB, "f") == MIB
