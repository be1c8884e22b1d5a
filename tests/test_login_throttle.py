"""Wrong tokens cost their own network a while, and nobody else anything."""

from __future__ import annotations

from bottleneck import login_throttle
from bottleneck.login_throttle import FREE, LONGEST_SECONDS, Throttle, delay_seconds, prefix


def test_the_first_ones_are_free_and_each_one_more_costs_twice_as_much() -> None:
    delays = [delay_seconds(count) for count in range(1, 80)]
    assert set(delays[:FREE]) == {0.0}
    assert delays[FREE + 1] == 2 * delays[FREE] > 0
    assert set(delays[20:]) == {LONGEST_SECONDS}


def test_a_network_of_ipv6_is_one_caller_and_a_mapped_address_is_ipv4() -> None:
    assert prefix("2001:db8:0:1::5") == prefix("2001:db8:0:1:ffff::6") != prefix("2001:db8:0:2::5")
    assert prefix("192.0.2.7") != prefix("192.0.2.8")


def test_their_memory_is_bounded_and_a_right_one_makes_them_forgotten() -> None:
    made = Throttle()
    for number in range(login_throttle.MOST_PREFIXES + 10):
        assert made.wrong(str(number)) == 1
    assert len(made.counts) == login_throttle.MOST_PREFIXES
    assert "0" not in made.counts
    assert made.wrong("500") == 2
    made.right("500")
    assert made.wrong("500") < 1
