"""How much may wait in memory: the four settings of the kernel, as it reads them."""

from probes.host import dirty_limit
from probes.host.dirty_limit import DirtyLimit

USUAL = {
    "dirty_ratio": 20,
    "dirty_bytes": 0,
    "dirty_background_ratio": 10,
    "dirty_background_bytes": 0,
}


def test_ratios_are_of_what_is_available():
    assert dirty_limit.limits(USUAL, 1000) == DirtyLimit(100, 200)


def test_bytes_go_before_ratios():
    told = {**USUAL, "dirty_bytes": 150, "dirty_background_bytes": 60}
    assert dirty_limit.limits(told, 1000) == DirtyLimit(60, 150)


def test_a_background_limit_that_is_not_below_the_other_is_halved_from_it():
    assert dirty_limit.limits({**USUAL, "dirty_bytes": 80}, 1000) == DirtyLimit(40, 80)


def test_what_is_not_told_is_not_made_up():
    assert dirty_limit.limits({}, 1000) is None
    assert dirty_limit.limits(USUAL, None) is None
    assert dirty_limit.parse_available("MemTotal: 5 kB\n") is None
    assert dirty_limit.parse_available("MemTotal: 5 kB\nMemAvailable:   3 kB\n") == 3072


def test_this_system_tells():
    told = dirty_limit.read()
    assert told is not None
    assert 0 < told.background_bytes < told.limit_bytes
