"""A black hole is found with its size; loss, silence and slowness are never called one."""

from __future__ import annotations

import random
import time

import pytest

from probes.net import black_hole
from probes.net.black_hole import AT_ONCE, ETHERNET_BYTES, Trial, between, find
from probes.stage import Unavailable

LATER = float("inf")


def hole(largest, full):
    """Whatever is larger vanishes; TCP itself would send full packets."""

    def attempt(size):
        packet = min(size or full, full)
        return Trial(packet, packet <= largest)

    return attempt


@pytest.mark.parametrize("largest", [576, 600, 1006, 1280, 1399, 1400, 1452, 1492, 1498, 1499])
def test_the_size_is_found_to_the_byte_on_ethernet(largest):
    full, found = find(hole(largest, 1500), LATER)
    assert full == 1500
    assert found == {"passes_bytes": largest, "stalls_bytes": largest + 1}


@pytest.mark.parametrize("largest", [1492, 1500, 4352, 8000])
def test_of_jumbo_frames_it_is_found_to_a_few_bytes_and_ethernet_s_own_exactly(largest):
    _, found = find(hole(largest, 9000), LATER)
    assert found["passes_bytes"] <= largest < found["stalls_bytes"]
    assert found["stalls_bytes"] - found["passes_bytes"] <= 8
    assert largest != ETHERNET_BYTES or found["passes_bytes"] == ETHERNET_BYTES


def test_one_full_segment_that_passes_clears_the_path():
    outcomes = iter([Trial(1500, None), Trial(1500, False), Trial(1500, False), Trial(1500, True)])
    assert find(lambda size: next(outcomes), LATER) == (1500, None)
    assert next(outcomes, None) is None


def test_random_loss_is_never_called_a_black_hole():
    """Even where a fifth of all connections fails."""
    for seed in range(300):
        chance = random.Random(seed)
        outcomes = [True] * 8 + [False, None]

        def attempt(size, chance=chance, outcomes=outcomes):
            return Trial(size or 1500, chance.choice(outcomes))

        try:
            assert find(attempt, LATER)[1] is None
        except Unavailable:
            continue


def test_a_path_that_passes_nothing_is_unclear():
    with pytest.raises(Unavailable, match="small"):
        find(lambda size: Trial(size or 1500, None), LATER)


def test_a_path_that_stalls_whatever_fills_packets_has_no_size():
    with pytest.raises(Unavailable, match="576"):
        find(lambda size: Trial(size or 1500, False), LATER)


def test_a_size_that_passes_the_next_time_was_no_black_hole():
    tried = []

    def attempt(size):
        tried.append(size)
        return Trial(size or 1500, size is not None and (size <= 1400 or tried.count(size) > 1))

    with pytest.raises(Unavailable, match="now and then"):
        find(attempt, LATER)


@pytest.mark.parametrize(
    ("passed", "why"),
    [(None, "even small packets"), (False, "on 1 of 1 connections full segments")],
)
def test_at_its_deadline_no_more_is_tried_and_what_it_knows_is_the_reason(passed, why):
    begun = []

    def attempt(size):
        begun.append(size)
        return Trial(1500, passed)

    with pytest.raises(Unavailable, match=f"{why} .*no time was left"):
        find(attempt, time.monotonic())
    assert begun == [None]


def test_a_path_without_a_fault_is_cleared_at_any_deadline():
    assert find(hole(1500, 1500), time.monotonic()) == (1500, None)


def test_without_time_for_a_size_none_is_said_to_be_lost(monkeypatch):
    clock = iter([0.0, 0.0, 9.0])
    monkeypatch.setattr(black_hole.time, "monotonic", lambda: next(clock))
    with pytest.raises(Unavailable, match="no time was left to find which do"):
        find(hole(1400, 1500), 5.0)


def test_connections_are_few():
    """Of a path without a fault one, of one with a fault not thirty."""
    begun = []

    def attempt(size, largest=1500):
        begun.append(size)
        return hole(largest, 1500)(size)

    find(attempt, LATER)
    assert len(begun) == 1
    find(lambda size: attempt(size, 1400), LATER)
    assert len(begun) < 30


@pytest.mark.parametrize(("passes", "stalls"), [(575, 1500), (1400, 1404), (1400, 1401), (0, 9)])
def test_what_is_tried_lies_strictly_between(passes, stalls):
    sizes = between(passes, stalls)
    assert len(sizes) == len(set(sizes)) == min(AT_ONCE, stalls - passes - 1)
    assert all(passes < size < stalls for size in sizes)
