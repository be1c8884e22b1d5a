"""Bursts and silences are told apart from an even flow."""

import pytest

from probes.net import movement


def test_what_a_quota_lets_go_comes_in_bursts_a_period_apart():
    """Five replies in 8 ms, then nothing until the next tenth of a second."""
    moments = [0.1 * period + 0.002 * reply for period in range(12) for reply in range(5)]
    told = movement.of_moments(moments)
    assert told["burst_seconds_median"] == pytest.approx(0.1)
    assert told["burst_count_median"] == 5
    assert told["bursts"] == 11
    assert told["silent_ratio"] > 0.9


def test_an_even_flow_has_no_bursts():
    assert movement.of_moments([0.01 * at for at in range(50)]) == {"silent_ratio": 0, "bursts": 0}


def test_a_slow_link_lets_each_reply_come_alone():
    assert movement.of_moments([0.09 * at for at in range(20)])["burst_count_median"] == 1


def test_few_bursts_tell_nothing_of_their_distance():
    told = movement.of_moments([0.0, 0.1, 0.2, 0.3])
    assert told["bursts"] == 3
    assert "burst_seconds_median" not in told


@pytest.mark.parametrize("moments", [(), (1.0,), (1.0, 1.0)])
def test_nothing_is_told_of_a_moment(moments):
    assert movement.of_moments(moments) == {}


def test_a_counter_that_stands_still_is_silence():
    looks = [(0.0, 0), (0.1, 5), (0.2, 5), (0.3, None), (0.4, 5), (0.5, 9)]
    assert movement.of_counter(looks) == {"silent_ratio": pytest.approx(0.6)}


@pytest.mark.parametrize(
    "looks", [(), [(0.0, 5)], [(0.0, None), (0.1, None)], [(1.0, 1), (1.0, 2)]]
)
def test_a_counter_that_was_not_seen_twice_tells_nothing(looks):
    assert movement.of_counter(looks) == {}
