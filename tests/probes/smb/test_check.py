"""Which blocks of a copy are compared: first, last, and others that nobody can foretell."""

from __future__ import annotations

import pytest

from probes.host import payload
from probes.smb.ends import Check, spread

RING = payload.ring(b"check")


@pytest.mark.parametrize("size", [1, 99, 100, 101, 199, 200, 201, 2345])
def test_with_time_enough_every_byte_is_looked_at_once(size: int) -> None:
    blocks = list(spread(size, 100, 60.0))
    assert sorted(blocks) == [(start, min(size, start + 100)) for start in range(0, size, 100)]


def test_without_time_first_and_last_are_looked_at_all_the_same() -> None:
    assert list(spread(2345, 100, 0.0)) == [(0, 100), (2300, 2345)]


def test_no_two_checks_take_the_same_order() -> None:
    first, second = (list(spread(100_000, 100, 60.0)) for _ in range(2))
    assert first != second and sorted(first) == sorted(second)


def test_one_wrong_part_stays_wrong() -> None:
    check = Check(RING)
    check.take(0, payload.block(RING, 0, 10))
    check.take(10, memoryview(bytes(10)))
    check.take(20, payload.block(RING, 20, 10))
    assert (check.intact, check.checked_bytes) == (False, 30)
