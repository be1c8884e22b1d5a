"""How many cores were busy: by the kernel's own ticks, never more than there are."""

from probes.net import busy
from probes.system.proc import CoreTimes


def core(number, busy_seconds, total_seconds, stolen_seconds=0.0):
    return CoreTimes(number, busy_seconds, 0.0, stolen_seconds, total_seconds)


def test_a_cores_share_is_of_its_own_ticks():
    before = {0: core(0, 10.0, 20.0), 1: core(1, 5.0, 20.0)}
    after = {0: core(0, 10.5, 21.0), 1: core(1, 6.0, 21.0)}
    assert busy.busy_cores(before, after) == 1.5


def test_no_core_is_busier_than_it_can_be():
    assert busy.busy_cores({0: core(0, 0.0, 1.0)}, {0: core(0, 1.01, 2.0)}) == 1.0
    assert busy.busy_cores({0: core(0, 1.0, 1.0)}, {0: core(0, 0.99, 2.0)}) == 0.0


def test_time_given_to_another_machine_is_not_ours():
    after = {0: core(0, 1.0, 1.0, stolen_seconds=0.75)}
    assert busy.busy_cores({0: core(0, 0.0, 0.0)}, after) == 0.25


def test_what_is_not_known_is_not_zero():
    one = {0: core(0, 1.0, 1.0)}
    assert busy.busy_cores(None, one) is None
    assert busy.busy_cores(one, None) is None
    assert busy.busy_cores(one, one) is None  # no tick in between
    assert busy.busy_cores({1: core(1, 0.0, 0.0)}, one) is None


def test_this_hosts_cores_are_those_that_we_may_use():
    assert busy.read()
