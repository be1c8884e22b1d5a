"""Rule network/mtu: named where a copy waited on a black hole, told and not blamed elsewhere."""

from __future__ import annotations

import pytest

from bottleneck.analysis.diagnosis import diagnose
from probes.core.records import DROPS, Measured, Sample

HOLE = {"passes_bytes": 1400, "stalls_bytes": 1500}
STALLED = {"rto_seconds": 1.6, "retransmitted_segments": 27}
"""A connection's counts in a copy that took 4 seconds."""


def add_black_holes(world, push=None, pull=None, initiator="client"):
    """Adds a path stage that found black holes by direction; it has no rate."""
    details = {
        "push": {"path_mtu_bytes": 1500, "black_hole": push},
        "pull": {"path_mtu_bytes": 1500, "black_hole": pull},
    }
    samples = ((Sample(0.0, 0), Sample(2.0, 0)),)
    load = world.entries[0][1].initiator
    world.put("path", initiator, {"host": "nas"}, Measured(samples, load, load, details))
    return world


COPIES = {
    "of a pull": ("pull.cached", {"pull": HOLE}),
    "of a push": ("push.cached", {"push": HOLE}),
    "of a disk": ("push.uncached", {"push": HOLE}),
    "of the server's push: the client's pull of the path": ("server.push.cached", {"pull": HOLE}),
}


@pytest.mark.parametrize(("name", "holes"), COPIES.values(), ids=COPIES)
def test_a_copy_that_waited_for_packets_that_vanish_is_named(world, sockets, name, holes, expect):
    add_black_holes(world, **holes)
    details, initiator = {"sockets": sockets(**STALLED)}, "server" if "server" in name else "client"
    world.copy(name, (3.0, 3.1, 3.2), initiator=initiator, details=details)
    expect(world, "network/path/mtu")


def test_a_copy_that_stalled_on_a_hole_was_stopped_by_it(world, expect):
    """It has no rate; what stopped it was seen all the same."""
    add_black_holes(world, push=HOLE)
    world.skip("push.uncached", "out of time (use a larger --budget)")
    world.fail("push.cached", "the server stalled: it accepted nothing for 10 s")
    expect(world, "unknown/not-measured", "network/path/mtu")
    assert diagnose(world.report()).headline == "push.cached"


UNTRIED = f"{DROPS} on the path; a copy would stall"


@pytest.mark.parametrize(
    ("holes", "expected"),
    [
        ({"pull": HOLE}, ("network", "path", "mtu", 0.98)),
        ({"push": HOLE}, ("unknown", None, "not-measured", 0.0)),
    ],
    ids=["pulls", "only what the server would need for them"],
)
def test_a_pull_that_was_not_tried_is_stopped_by_its_own_directions_hole(world, holes, expected):
    """A hole of pushes is none of pulls if both hosts looked."""
    add_black_holes(world, **holes)
    world.skip("pull.cached", UNTRIED)
    verdict = world.diagnosis_of().verdict
    assert (*verdict.key, verdict.confidence) == expected


def test_a_pull_without_a_pushed_file_may_be_stopped_by_the_same_as_the_push(no_agent):
    """Seen from the client alone, the way back is unknown."""
    add_black_holes(no_agent, push=HOLE)
    no_agent.skip("pull.cached", UNTRIED)
    verdict = no_agent.diagnosis_of().verdict
    assert (verdict.cause, verdict.confidence) == ("mtu", 0.58)


def test_the_link_is_still_there_when_the_hole_is_not(world, sockets, expect):
    add_black_holes(world, pull=HOLE)
    idle = {"core_busy_ratios": (0.001, 0.001), "busiest_process_ratio": 0.001}
    details = {"sockets": sockets(**STALLED)}
    world.copy("pull.cached", (3.0, 3.1, 3.2), details=details, client=idle, server=idle)
    expect(world, "network/path/mtu")
    assert world.diagnosis_of().predicted_bytes_per_second.high <= 122e6


# -- decoys ------------------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [{"pull": HOLE}, {}], ids=["in the other direction", "none"])
def test_a_copy_that_broke_without_a_hole_in_its_way_names_nobody(world, holes, expect):
    add_black_holes(world, **holes)
    world.fail("push.cached", "the server stalled: it accepted nothing for 10 s")
    expect(world, "unknown/not-measured")


def test_a_hole_that_the_copy_did_not_meet_is_told_and_not_blamed(world, sockets, expect):
    """Its connection had learned the size before."""
    add_black_holes(world, pull=HOLE)
    world.copy("pull.cached", (110, 111, 112), details={"sockets": sockets(rto_seconds=0.0)})
    expect(world, "network/path/link-rate")


OTHER_HOLES = {
    "in the other direction": {"push": HOLE},
    "none": {"pull": None},
    "nothing told of it": {"pull": {}},
    "half of it": {"pull": {"passes_bytes": 1400}},
    "strange sizes": {"pull": {"passes_bytes": "much", "stalls_bytes": -1}},
    "strange": {"pull": "x"},
}


@pytest.mark.parametrize("holes", OTHER_HOLES.values(), ids=OTHER_HOLES)
def test_retransmissions_without_a_hole_are_not_the_mtus_affair(world, sockets, holes, expect):
    add_black_holes(world, **holes)
    world.copy("pull.cached", (3.0, 3.1, 3.2), details={"sockets": sockets(**STALLED)})
    expect(world, "unknown/inconclusive")
