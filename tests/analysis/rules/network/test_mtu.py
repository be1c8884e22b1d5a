"""Rule network/mtu: named where a copy waited on a black hole, told and not blamed elsewhere."""

from __future__ import annotations

import pytest

from bottleneck.analysis import diagnose
from probes.records import Measured, Sample

HOLE = {"passes_bytes": 1400, "stalls_bytes": 1500}
STALLED = {"rto_seconds": 1.6, "retransmitted_segments": 27}
"""Of a copy that took 4 seconds."""


def holed(world, push=None, pull=None, initiator="client"):
    """A path stage that found black holes by direction; it has no rate."""
    details = {
        "push": {"path_mtu_bytes": 1500, "black_hole": push},
        "pull": {"path_mtu_bytes": 1500, "black_hole": pull},
    }
    samples = ((Sample(0.0, 0), Sample(2.0, 0)),)
    own = world.entries[0][1].initiator
    world.put("path", initiator, {"host": "nas"}, Measured(samples, own, own, details))
    return world


@pytest.mark.parametrize(
    ("name", "direction"),
    [("pull.cached", "pull"), ("push.cached", "push"), ("push.uncached", "push")],
)
def test_a_copy_that_waited_for_packets_that_vanish_is_named(world, sockets, name, direction):
    holed(world, **{direction: HOLE})
    world.copy(name, (3.0, 3.1, 3.2), details={"sockets": sockets(**STALLED)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("network", "path", "mtu")
    assert "IP packets of 1500 bytes vanish where those of 1400 pass" in found.verdict.sentence
    side = "server" if direction == "pull" else "client"
    assert f"an MTU of 1400 on the {side}" in found.advice[0]
    assert any("sent 27 segments again" in line for line in found.evidence)


def test_the_direction_is_that_of_the_bytes_whoever_initiates(world, sockets):
    """The server's push to the client's share is the client's pull of the path."""
    holed(world, pull=HOLE)
    told = {"sockets": sockets(**STALLED)}
    world.copy("server.push.cached", (3.0, 3.1, 3.2), initiator="server", details=told)
    assert diagnose(world.report()).copies[0].verdict.named == ("network", "path", "mtu")


def test_a_copy_that_never_ended_has_the_hole_as_its_evidence(world):
    """What could not be made names nobody; the reason is told all the same."""
    holed(world, push=HOLE)
    world.fail("push.cached", "the time for it was over")
    (found,) = diagnose(world.report()).copies
    assert found.verdict.named == ("unknown", None, "not-measured")
    assert any("stalls at its first full packet" in line for line in found.evidence)


def test_the_link_is_still_there_when_the_hole_is_not(world, sockets):
    holed(world, pull=HOLE)
    idle = {"core_busy_ratios": (0.001, 0.001), "busiest_process_ratio": 0.001}
    told = {"sockets": sockets(**STALLED)}
    world.copy("pull.cached", (3.0, 3.1, 3.2), details=told, client=idle, server=idle)
    found = diagnose(world.report()).copies[0]
    assert (found.next.component, found.next.cause) == ("network", "link-rate")
    assert found.predicted_bytes_per_second.high <= 122e6


# -- decoys ------------------------------------------------------------------------------------


def test_a_hole_that_the_copy_did_not_meet_is_told_and_not_blamed(world, sockets):
    """Its connection had learned the size before."""
    holed(world, pull=HOLE)
    world.copy("pull.cached", (110, 111, 112), details={"sockets": sockets(rto_seconds=0.0)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("network", "path", "link-rate")
    assert any("IP packets of 1500 bytes vanish" in line for line in found.evidence)


def test_a_hole_in_the_other_direction_is_none_of_this_copys(world, sockets):
    holed(world, push=HOLE)
    world.copy("pull.cached", (3.0, 3.1, 3.2), details={"sockets": sockets(**STALLED)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.component == "unknown"
    assert not any("vanish" in line for line in found.evidence)


@pytest.mark.parametrize(
    "hole", [None, {}, {"passes_bytes": 1400}, {"passes_bytes": "much", "stalls_bytes": -1}, "x"]
)
def test_retransmissions_without_a_hole_are_not_the_mtus_affair(world, sockets, hole):
    holed(world, pull=hole)
    world.copy("pull.cached", (3.0, 3.1, 3.2), details={"sockets": sockets(**STALLED)})
    assert diagnose(world.report()).copies[0].verdict.component == "unknown"
