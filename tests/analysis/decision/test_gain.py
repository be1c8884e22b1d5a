"""The gain of a fix, by the facts of the copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.decision.capability import Fix
from bottleneck.analysis.decision.gain import Gain, gain, rungs
from bottleneck.analysis.facts.record import (
    ALLOWS,
    ALONE,
    BUSY,
    COSTS,
    NETWORK,
    SHOWN,
    Level,
    RateWithout,
    Sign,
)
from tests.analysis.decision.planted import (
    CHAIN,
    CORE,
    RECEIVER,
    REQUESTS,
    SENDER,
    WINDOW,
    copy,
    fact,
)

DISK = Fix(SENDER, ("disk", "server", "read"), 25e6)
LINK = Fix(NETWORK, ("network", "path", "link-rate"), 11.8e6)
LOSS = Fix(NETWORK, ("network", "path", "loss"), 5e6)
OTHERS = Fix(NETWORK, ("network", "path", "contention"), 5e6)
OTHERS_IO = Fix(SENDER, ("disk", "server", "contention"), 20e6)
NARROW = Fix(WINDOW, ("tcp", "client", "receive-window"), 4e6)
NEIGHBOUR = Fix(CORE, ("cpu", "server", "contention"), 20e6)
SIGNING = Fix(CORE, ("smb", "server", "signing"), 24e6)
MOUNT = Fix(REQUESTS, ("smb", "client", "round-trips"), 20e6)
WRITES = fact(RECEIVER, ALONE, 500)
READS = fact(SENDER, ALONE, 400)


def gain_rate(gain: Gain) -> float:
    assert gain.predicted is not None
    return gain.predicted.median / 1e6


def next_limits(gain: Gain) -> str:
    return gain.next.words if gain.next is not None else ""


def test_what_is_left_sets_the_rate_and_is_the_next_limit() -> None:
    """A copy gets the usual share of what TCP carries by itself, or the one that a twin shows."""
    path = fact(NETWORK, ALONE, 117.6)
    fix = gain(copy(24, path, WRITES), [DISK])
    assert next_limits(fix) == "network/path/link-rate"
    assert gain_rate(fix) == pytest.approx(0.975 * 117.6)
    other = fact(NETWORK, SHOWN, 108, is_of_twin=True)
    assert gain_rate(gain(copy(24, path, other, READS, WRITES), [NEIGHBOUR])) == pytest.approx(108)


def test_a_copy_that_lacks_what_is_gone_is_believed_before_any_arithmetic() -> None:
    path, twin = fact(NETWORK, ALONE, 117.6), RateWithout("disk", "server", Level.with_spread(90e6))
    assert gain_rate(gain(copy(24, path, without=(twin,)), [DISK])) == 90
    tax = RateWithout("signing", None, Level.with_spread(110e6), is_diskless=True)
    slow = copy(24, path, READS, fact(RECEIVER, ALONE, 40), without=(tax,))
    assert 30 < gain_rate(gain(slow, [SIGNING])) < 40
    beside = RateWithout("round-trips", "client", Level.with_spread(110e6))
    assert gain_rate(gain(copy(20, READS, WRITES, without=(beside,)), [MOUNT])) == 110


def test_a_disk_works_beside_the_transfer_and_is_still_one_without_others() -> None:
    """Its share of the time was others', too: where nothing was measured nothing is predicted."""
    path, without = (
        fact(NETWORK, ALONE, 117.6),
        (RateWithout("disk", "server", Level.with_spread(110e6)),),
    )
    assert 45 < gain_rate(gain(copy(24, path, fact(RECEIVER, ALONE, 60)), [DISK])) < 60
    facts = (fact(SENDER, BUSY, 1.0), path, WRITES)
    slow = copy(20, fact(SENDER, ALONE, 60), *facts, without=without, view="both")
    assert 45 < gain_rate(gain(slow, [OTHERS_IO])) < 60
    assert gain(copy(20, *facts, view="both"), [OTHERS_IO]).missing == (SENDER, 0.0)


def test_an_unknown_stage_is_named_unless_the_copys_time_shows_that_it_carries_the_rate() -> None:
    """A disk with work for 4% of the time does 20 times the rate at least."""
    bare = gain(copy(24, fact(NETWORK, ALONE, 117.6)), [DISK])
    assert bare.predicted is None and bare.missing == (RECEIVER, 0.0)
    inside = copy(24, READS, WRITES, signs=(Sign("one-host"),))  # where no path limits anything
    assert next_limits(gain(inside, [DISK])) == "disk/client/write"
    idle = (fact(NETWORK, ALONE, 117.6), fact(RECEIVER, BUSY, 0.04))
    assert gain_rate(gain(copy(24, *idle, view="both"), [DISK])) == pytest.approx(0.975 * 117.6)


def test_what_a_cap_kept_low_tells_nothing_of_what_comes_after_it() -> None:
    """TCP lost packets by itself too, and each of its connections had the same window."""
    lossy = gain(copy(5, fact(NETWORK, ALONE, 6), WRITES, READS), [LOSS])
    assert lossy.predicted is None and lossy.missing == (NETWORK, 0.0)
    narrow = copy(4, fact(NETWORK, SHOWN, 8), WRITES, READS, rtt_seconds=0.02)
    assert gain(narrow, [NARROW]).missing == (NETWORK, 8e6)
    other_way = replace(narrow, signs=(Sign("other-way", None, 11.6e6),))
    fix = gain(other_way, [NARROW])
    assert fix.predicted is not None
    assert fix.predicted.low < 8.1e6 and gain_rate(fix) == pytest.approx(0.99 * 11.6)


def test_without_others_a_path_carries_their_share_too() -> None:
    shared = replace(
        copy(5, fact(NETWORK, ALONE, 6), WRITES, READS),
        signs=(Sign("others-traffic", "server", 0.75),),
    )
    assert gain_rate(gain(shared, [OTHERS])) == pytest.approx(0.99 * 20)


def test_a_link_is_exchanged_for_the_next_kind_that_the_next_limit_can_use() -> None:
    fast = gain(copy(11.6, fact(NETWORK, ALONE, 11.8), READS, WRITES), [LINK])
    assert fast.link_bits == 1e9 and next_limits(fast) == "disk/server/read"


def test_a_cpu_is_scaled_by_its_load_and_less_is_sure_beside_a_neighbour() -> None:
    facts = (fact(CORE, COSTS, 60), fact(NETWORK, ALONE, 1170), READS, WRITES)
    assert next_limits(gain(copy(24, *facts), [DISK])) == "cpu/server/one-core"
    assert gain_rate(gain(copy(24, *facts), [DISK])) == pytest.approx(60, rel=0.2)
    paced = gain_rate(gain(copy(24, *facts, rtt_seconds=0.02), [NARROW]))
    assert paced > 1.5 * 60
    freed = gain(copy(24, *facts), [NEIGHBOUR]).predicted
    assert freed is not None and freed.high > 2 * freed.low


def test_rungs_end_and_never_fall() -> None:
    facts = (fact(CORE, COSTS, 60), fact(NETWORK, ALONE, 117.6), READS, WRITES)
    steps = list(rungs(copy(24, *facts), DISK))
    assert [each.key[0] for each in steps][:3] == ["disk", "cpu", "network"]
    rates = [each.predicted_bytes_per_second for each in steps]
    medians = [each.median for each in rates if each is not None]
    assert medians == sorted(medians) and len(steps) < len(CHAIN) + 2


def test_where_this_tool_is_the_limit_nothing_comes_after_it() -> None:
    tool = Fix(CORE, ("instrument", "server", "ceiling"), 120e6)
    assert gain(copy(115, fact(NETWORK, ALONE, 117.6)), [tool]) == Gain()


def test_a_window_of_the_other_end_bounds_a_far_copy() -> None:
    facts = (fact(("tcp", "server"), ALLOWS, 30), fact(NETWORK, ALONE, 117.6), READS, WRITES)
    far = copy(4, *facts, rtt_seconds=0.02)
    assert gain_rate(gain(far, [NARROW])) > 100  # the kernel enlarges it
    small = replace(far, signs=(Sign("small-buffer", "server"),))
    assert gain_rate(gain(small, [NARROW])) == pytest.approx(30, rel=0.05)
