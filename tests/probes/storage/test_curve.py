"""The jump to a span is taken off, and no more than the jump."""

import pytest

from probes.core.records import Sample
from probes.programs import fio
from probes.storage.curve import subtract_seek
from probes.storage.sequential import window_rates

MIB = 1024 * 1024
RATE = 100 * MIB


def job(depth=4):
    return fio.Job(5, "read", 512 * MIB, 1.0, True, depth=depth)


def result(blocks, jump_seconds, slowest_seconds=None):
    """A job at the rate after a jump: the four requests sent off together wait for it."""
    slowest = jump_seconds + 4 * MIB / RATE if slowest_seconds is None else slowest_seconds
    return fio.Result(blocks * MIB, jump_seconds + blocks * MIB / RATE, 0.04, 0.05, slowest, blocks)


@pytest.mark.parametrize("jump", [0.0, 0.002, 0.008])
def test_the_jump_that_a_job_shows_is_taken_off(jump):
    corrected = subtract_seek(job(), result(30, jump), 0.008)
    assert corrected.bytes_per_second == pytest.approx(RATE)
    assert corrected.seconds == pytest.approx(30 * MIB / RATE)


def test_a_request_that_hangs_is_no_jump():
    """A weak spot's retry stays in the rate."""
    corrected = subtract_seek(job(), result(30, 0.5), 0.008)
    assert corrected.seconds == pytest.approx(30 * MIB / RATE + 0.5 - 0.008)


def test_a_job_too_short_to_show_its_jump_made_the_usual_one():
    assert subtract_seek(job(), result(6, 0.008), 0.008).bytes_per_second == pytest.approx(RATE)


def test_where_no_jump_is_known_none_is_taken_off():
    seconds = 30 * MIB / RATE + 0.008
    assert subtract_seek(job(), result(30, 0.008), None).seconds == pytest.approx(seconds)


def test_never_more_than_half_the_time_is_a_jump():
    assert subtract_seek(job(), result(1, 0.0), 10.0).seconds == pytest.approx(MIB / RATE / 2)


def test_windows_are_half_a_second_and_longer():
    samples = [Sample(0.25 * number, 100 * MIB * number) for number in range(8)]
    assert window_rates(samples) == pytest.approx([400.0 * MIB] * 3)
    assert window_rates(samples[:2]) == []


def test_a_window_of_a_slow_device_stays_open_until_enough_whole_blocks_came():
    """At 3 MB/s a block comes each third of a second: one or two of them are no rate."""
    samples = [Sample(0.25 * number, 3 * number // 4 * MIB) for number in range(40)]
    assert window_rates(samples) == pytest.approx([3.0 * MIB] * 3, rel=0.1)
    assert 0 not in window_rates(samples[:9])
